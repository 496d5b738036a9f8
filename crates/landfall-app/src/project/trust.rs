//! Whether the settings of a project count: what they ask for, what the person has trusted, and what is refused until then.

use landfall_api::{Problem, ProblemCode};
use landfall_engine::engine::{load_settings, settings_in};
use landfall_engine::hook_scripts::{sensitive_in_checkout, sensitive_in_commit};
use landfall_engine::host::clock::{Clock as _, SystemClock};
use landfall_engine::host::git::{Git, Oid, Repo};
use landfall_engine::model::{Commit, Task, Timestamp};
use landfall_engine::settings::{SensitiveSettings, Settings, TrustDigest};
use landfall_engine::trust::{TrustError, TrustStore, TrustVerdict, TrustedBy};
use serde::Serialize;

use crate::project::place::ProjectLocation;
use crate::project::problems;
use crate::project::query_context::Query;

/// What of the settings has to be trusted, and whether it is.
#[derive(Debug, Serialize)]
pub struct TrustReport {
    /// The root of the repository.
    pub root: String,
    /// The digest of these settings.
    pub digest: String,
    /// Whether they count.
    pub trusted: bool,
    /// Whether others of this repository were trusted before.
    pub changed: bool,
    /// The settings.
    pub settings: Vec<TrustLine>,
    /// The files of the project that their commands run outside of the sandbox. A change of one asks again.
    pub scripts: Vec<String>,
}

/// One setting that has to be trusted.
#[derive(Debug, Serialize)]
pub struct TrustLine {
    /// What settings call it.
    pub key: String,
    /// What it is set to, without what may be a secret.
    pub value: String,
    /// Why it has to be trusted.
    pub why: &'static str,
}

/// What there is to trust in the project.
pub(crate) fn trust_report(place: &ProjectLocation) -> Result<TrustReport, Problem> {
    build_trust_report(place, &sensitive_settings(place)?)
}

/// Trusts the settings with this digest, if they are those of the project.
pub(crate) fn trust_settings(
    place: &ProjectLocation,
    digest: &str,
    by: TrustedBy,
) -> Result<TrustReport, Problem> {
    let digest = TrustDigest::parse(digest).map_err(|error| {
        Problem::new(ProblemCode::BadInput, error.to_string()).with_hint("`landfall trust` shows it")
    })?;
    let settings = sensitive_settings(place)?;
    if settings.compute_digest() != digest {
        let what = format!(
            "the settings of this project have the digest {}, not {}",
            settings.compute_digest().as_str(),
            digest.as_str()
        );
        return Err(Problem::new(ProblemCode::NotTrusted, what)
            .with_hint("`landfall trust` shows them; they may have changed since you read them"));
    }
    note_trusted(place, &digest, by)?;
    build_trust_report(place, &settings)
}

/// Refuses what would use settings that nobody has trusted.
pub(crate) fn check_trust(place: &ProjectLocation, settings: &Settings) -> Result<(), Problem> {
    let settings = with_scripts(place, settings)?;
    match judge_trust(place, &settings)? {
        TrustVerdict::Nothing | TrustVerdict::Trusted => Ok(()),
        TrustVerdict::Changed if settings.script_paths().next().is_some() => {
            let what =
                "has settings that need your trust, and they or the scripts that they run have changed";
            Err(untrusted_problem(&settings, what))
        }
        TrustVerdict::Changed => {
            Err(untrusted_problem(&settings, "has changed settings that need your trust"))
        }
        TrustVerdict::Unasked => Err(untrusted_problem(&settings, "has settings that need your trust")),
    }
}

/// The same before a run. A sprint that was under way before there was this question goes on with the settings it has.
pub(crate) fn check_trust_for_run(place: &ProjectLocation, settings: &Settings) -> Result<(), Problem> {
    let sensitive = with_scripts(place, settings)?;
    match judge_trust(place, &sensitive)? {
        TrustVerdict::Unasked if has_open_sprint(place)? => {
            note_trusted(place, &sensitive.compute_digest(), TrustedBy::Sprint)
        }
        // Noted, so that what appears later is a change, also while a sprint is open.
        TrustVerdict::Nothing => open_trust_store(place)
            .note_first(&sensitive.compute_digest(), TrustedBy::Run, Timestamp(SystemClock.now_ms()))
            .map_err(|error| trust_problem(&error)),
        TrustVerdict::Trusted | TrustVerdict::Changed | TrustVerdict::Unasked => check_trust(place, settings),
    }
}

/// Trusts the settings that `landfall init` has just written. What another file of the repository adds to them is not
/// included: the first run asks about it.
pub(crate) fn trust_own_settings(place: &ProjectLocation) -> Result<(), Problem> {
    let path = place.root.join("landfall.toml");
    let text =
        std::fs::read_to_string(&path).map_err(|error| problems::from_io_error("read", &path, &error))?;
    let Ok(settings) = Settings::parse(&text, "landfall.toml") else { return Ok(()) };
    let settings = with_scripts(place, &settings)?;
    match settings.is_empty() {
        true => Ok(()),
        false => note_trusted(place, &settings.compute_digest(), TrustedBy::Init),
    }
}

/// Trusts the settings in work that the person has approved. Settings that cannot be read trust nothing.
pub(crate) fn trust_approved_work(look: &Query<'_>, task: &Task) -> Result<(), Problem> {
    let Some(head) = task.head.as_ref().or(task.landed.as_ref().map(|landed| &landed.commit)) else {
        return Ok(());
    };
    let (place, store) = (look.place, look.open_store()?);
    let base = match &task.landed {
        Some(landed) => Some(landed.base_before.clone()),
        None => store.read_base().ok().flatten().map(|base| Commit::new(base.as_str())),
    };
    let Some(base) = base else { return Ok(()) };
    let (Ok(before), Ok(after)) = (settings_in(&store, &base), settings_in(&store, head)) else {
        return Ok(());
    };
    let of_commit = |settings: &Settings, commit: &Commit| {
        let commit: Oid = commit.as_str().parse().expect("commits in the journal came from git");
        sensitive_in_commit(settings, &place.root, &store, &commit)
            .map_err(|error| problems::from_git_error(&error))
    };
    let (before, after) = (of_commit(&before, &base)?, of_commit(&after, head)?);
    // The person has seen the difference. That is all of it only if they trust what it is based on.
    let knows_base = matches!(judge_trust(place, &before)?, TrustVerdict::Nothing | TrustVerdict::Trusted);
    match judge_trust(place, &after)? {
        TrustVerdict::Nothing | TrustVerdict::Trusted => Ok(()),
        TrustVerdict::Changed | TrustVerdict::Unasked if before == after || !knows_base => Ok(()),
        TrustVerdict::Changed | TrustVerdict::Unasked => {
            note_trusted(place, &after.compute_digest(), TrustedBy::Review)
        }
    }
}

fn sensitive_settings(place: &ProjectLocation) -> Result<SensitiveSettings, Problem> {
    let settings = load_settings(&place.root).map_err(|error| problems::open(&error))?;
    with_scripts(place, &settings)
}

/// What has to be trusted, with the files of the checkout that commands outside of the sandbox run.
fn with_scripts(place: &ProjectLocation, settings: &Settings) -> Result<SensitiveSettings, Problem> {
    if settings.unconfined_commands().is_empty() {
        return Ok(SensitiveSettings::from_settings(settings));
    }
    let git = Git::find_installed().map_err(|error| problems::from_git_error(&error))?;
    let repo = Repo::discover(&git, &place.root).map_err(problems::from_repo_problem)?;
    sensitive_in_checkout(settings, &repo).map_err(|error| problems::from_git_error(&error))
}

fn build_trust_report(place: &ProjectLocation, settings: &SensitiveSettings) -> Result<TrustReport, Problem> {
    let verdict = judge_trust(place, settings)?;
    let lines = settings.iter().map(|setting| TrustLine {
        key: setting.key.clone(),
        value: setting.shown.clone(),
        why: setting.exposure.label(),
    });
    Ok(TrustReport {
        root: place.root.display().to_string(),
        digest: settings.compute_digest().as_str().to_owned(),
        trusted: match verdict {
            TrustVerdict::Nothing | TrustVerdict::Trusted => true,
            TrustVerdict::Changed | TrustVerdict::Unasked => false,
        },
        changed: verdict == TrustVerdict::Changed,
        settings: lines.collect(),
        scripts: settings.script_paths().map(str::to_owned).collect(),
    })
}

fn judge_trust(place: &ProjectLocation, settings: &SensitiveSettings) -> Result<TrustVerdict, Problem> {
    open_trust_store(place).judge(settings).map_err(|error| trust_problem(&error))
}

fn note_trusted(place: &ProjectLocation, digest: &TrustDigest, by: TrustedBy) -> Result<(), Problem> {
    let project = place.folder.of_side(None);
    project.create_folders().map_err(|error| problems::from_io_error("make", project.root(), &error))?;
    open_trust_store(place)
        .add_trust(digest, by, Timestamp(SystemClock.now_ms()))
        .map_err(|error| trust_problem(&error))
}

fn open_trust_store(place: &ProjectLocation) -> TrustStore {
    TrustStore::for_repository(&place.folder, &place.root)
}

fn trust_problem(error: &TrustError) -> Problem {
    match error {
        TrustError::Io { path, source } => problems::from_io_error("use", path, source),
        TrustError::Format { .. } => Problem::new(ProblemCode::Corrupt, error.to_string())
            .with_hint("move the file aside, and `landfall trust` asks anew"),
    }
}

fn has_open_sprint(place: &ProjectLocation) -> Result<bool, Problem> {
    let Some(reader) = place.open_reader()? else { return Ok(false) };
    let sprints = reader.sprints().map_err(|error| problems::from_store_error(&error))?;
    Ok(sprints.open().is_some())
}

const KEYS_SHOWN_MAX: usize = 5; // `landfall trust` shows all of them

fn untrusted_problem(settings: &SensitiveSettings, what: &str) -> Problem {
    let mut keys: Vec<&str> = settings.iter().map(|setting| setting.key.as_str()).collect();
    keys.dedup();
    let more = keys.len().saturating_sub(KEYS_SHOWN_MAX);
    keys.truncate(KEYS_SHOWN_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Problem::new(ProblemCode::NotTrusted, format!("landfall.toml {what}: {}{more}", keys.join(", ")))
        .with_hint("`landfall trust` shows them and asks; in a script: `landfall trust --yes DIGEST`")
}
