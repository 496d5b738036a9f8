//! Compares a certificate with a repository: what anyone with git can recompute, without the engine and without its state.

use landfall_api::{Problem, ProblemCode};
use landfall_engine::host::git::{BranchName, Git, LandingClaim, Oid, Repo, Store};
use serde_json::Value;

use crate::ProjectLocator;
use crate::project::place::ProjectLocation;
use crate::project::problems;

/// One statement of a certificate, compared with the repository.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CertificateCheck {
    /// What the certificate states.
    pub claim: String,
    /// Whether the repository agrees.
    pub holds: bool,
    /// What the repository says instead, or how the claim was recomputed.
    pub detail: String,
}

/// Compares every statement of the certificate that git can answer with the repository around `at`.
///
/// The objects are read through a temporary repository that borrows them, so nothing of the user's repository is written.
pub fn check_certificate(at: &ProjectLocator, certificate: &Value) -> Result<Vec<CertificateCheck>, Problem> {
    let named = NamedCommits::read(certificate)?;
    let place = ProjectLocation::find(at)?;
    let git = Git::find_installed().map_err(|error| problems::from_git_error(&error))?;
    let repo = Repo::discover(&git, &place.root).map_err(problems::from_repo_problem)?;
    let branch = place.base_branch().and_then(|name| name.parse::<BranchName>().ok()).ok_or_else(|| {
        Problem::new(ProblemCode::BadInput, "the base branch is unknown: HEAD is on no branch")
            .with_hint("name it with `--base BRANCH`")
    })?;
    let failed = |error| problems::from_git_error(&error);
    let folder = tempfile::tempdir().map_err(|error| {
        Problem::new(ProblemCode::Internal, format!("create a temporary folder: {error}"))
    })?;
    let store = Store::open(&git, &folder.path().join("store.git"), &repo).map_err(failed)?;
    let tip = store.import_branch(&repo, &branch).map_err(failed)?;

    let mut checks = vec![check_verified_tree(certificate, &named), check_passed_commands(certificate)];
    if !store.contains(&named.landed).map_err(failed)? {
        checks.push(CertificateCheck {
            claim: format!("commit {} landed", named.landed.short()),
            holds: false,
            detail: "this repository does not have the commit; fetch it, or check that this is the right repository".to_owned(),
        });
        return Ok(checks);
    }
    let on_base = store.is_ancestor(&named.landed, &tip).map_err(failed)?;
    checks.push(CertificateCheck {
        claim: format!("commit {} is on `{branch}`", named.landed.short()),
        holds: on_base,
        detail: match on_base {
            true => format!("`{branch}` is at {}", tip.short()),
            false => format!("`{branch}` is at {} and does not contain it", tip.short()),
        },
    });
    // A batch has several heads: the certificate names its own, the commit names all.
    let parents = store.parents_of(&named.landed).map_err(failed)?;
    let heads: Vec<Oid> = parents.iter().skip(1).cloned().collect();
    let has_head = heads.contains(&named.head);
    checks.push(CertificateCheck {
        claim: format!("it contains the work {}", named.head.short()),
        holds: has_head,
        detail: match has_head {
            true => "the work is a parent of the commit".to_owned(),
            false => "the work is not a parent of the commit".to_owned(),
        },
    });
    let claim = LandingClaim {
        landed: named.landed.clone(),
        base_before: named.base_before.clone(),
        candidate_heads: heads,
        tree: named.tree.clone(),
    };
    let (holds, detail) = match store.check_landing(&claim) {
        Ok(proof) => {
            let paths = landfall_text::pluralize(proof.changed_paths_count as u64, "path");
            (true, format!("the merge gives it again; {paths} changed"))
        }
        Err(mismatch) => (false, mismatch.to_string()),
    };
    checks.push(CertificateCheck {
        claim: format!(
            "merging the work into {} gives tree {} and nothing else",
            named.base_before.short(),
            named.tree.short()
        ),
        holds,
        detail,
    });
    Ok(checks)
}

/// What a certificate names in git.
struct NamedCommits {
    landed: Oid,
    base_before: Oid,
    head: Oid,
    tree: Oid,
}

impl NamedCommits {
    fn read(certificate: &Value) -> Result<Self, Problem> {
        let version = &certificate["v"];
        if version != 1 {
            let what = format!("this is not a certificate of version 1: `v` is {version}");
            return Err(Problem::new(ProblemCode::BadInput, what)
                .with_hint("`landfall certificate T7 --json > T7.json` writes one"));
        }
        let oid = |path: &str| -> Result<Oid, Problem> {
            let text = certificate.pointer(path).and_then(Value::as_str).unwrap_or_default();
            text.parse().map_err(|_| {
                let field = path.trim_start_matches('/').replace('/', ".");
                Problem::new(
                    ProblemCode::BadInput,
                    format!("`{field}` of the certificate is no git object id: `{text}`"),
                )
                .with_hint("`landfall certificate T7 --json > T7.json` writes a certificate again")
            })
        };
        Ok(Self {
            landed: oid("/landing/commit")?,
            base_before: oid("/landing/base_before")?,
            head: oid("/work/head")?,
            tree: oid("/landing/tree")?,
        })
    }
}

/// What was verified is what landed.
fn check_verified_tree(certificate: &Value, named: &NamedCommits) -> CertificateCheck {
    let verified = certificate["verification"]["tree"].as_str().unwrap_or_default();
    let holds = verified == named.tree.as_str();
    CertificateCheck {
        claim: "the tree that was verified is the tree that landed".to_owned(),
        holds,
        detail: match holds {
            true => format!("both are {}", named.tree.short()),
            false => format!("`{}` was verified, {} landed", verified.escape_debug(), named.tree.short()),
        },
    }
}

/// The certificate records a pass, and every required command of it passed.
fn check_passed_commands(certificate: &Value) -> CertificateCheck {
    let verification = &certificate["verification"];
    let outcome = verification["outcome"].as_str().unwrap_or_default();
    let commands = verification["commands"].as_array().map(Vec::as_slice).unwrap_or_default();
    let failed: Vec<&str> = commands
        .iter()
        .filter(|command| {
            command["required"] != false && !is_green(command["outcome"].as_str().unwrap_or_default())
        })
        .map(|command| command["name"].as_str().unwrap_or("?"))
        .collect();
    let holds = is_green(outcome) && failed.is_empty();
    CertificateCheck {
        claim: "every required check passed".to_owned(),
        holds,
        detail: match (holds, failed.is_empty()) {
            (true, _) if commands.is_empty() => {
                "no checks are configured: the pass proves nothing".to_owned()
            }
            (true, _) => "recorded by the engine; run the checks again to see it yourself".to_owned(),
            (false, true) => format!("the outcome is `{}`", outcome.escape_debug()),
            (false, false) => format!("these did not pass: {}", failed.join(", ").escape_debug()),
        },
    }
}

/// Outcomes with which work lands.
fn is_green(outcome: &str) -> bool {
    matches!(outcome, "pass" | "flaky" | "pre-existing")
}
