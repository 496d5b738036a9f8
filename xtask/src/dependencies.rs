//! Checks every dependency against `deny.toml`: licences, banned crates, wildcard versions and sources.
//!
//! `cargo deny` reads the same file and also knows advisories, but it is no part of a toolchain and takes minutes to
//! compile. These four checks take a second, so every run makes them.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use spdx::{Expression, Licensee};

use crate::test::cargo;
use crate::web::root;

#[derive(Deserialize)]
struct Policy {
    licenses: LicensePolicy,
    bans: BanPolicy,
}

#[derive(Deserialize)]
struct LicensePolicy {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct BanPolicy {
    deny: Vec<BannedCrate>,
}

#[derive(Deserialize)]
struct BannedCrate {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// Absent for packages of this repository.
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

pub fn check() -> Result<()> {
    let root = root()?;
    let policy = fs::read_to_string(root.join("deny.toml")).context("read deny.toml")?;
    let policy: Policy = toml::from_str(&policy).context("parse deny.toml")?;
    let output = cargo(&["metadata", "--format-version=1", "--locked", "--all-features"])
        .current_dir(&root)
        .output()
        .context("start cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("parse cargo metadata")?;
    let problems = find_problems(&policy, &metadata)?;
    if !problems.is_empty() {
        bail!("deny.toml does not allow:\n  {}", problems.join("\n  "));
    }
    eprintln!("── dependencies: {} packages allowed", metadata.packages.len());
    Ok(())
}

fn find_problems(policy: &Policy, metadata: &Metadata) -> Result<Vec<String>> {
    let mut allowed = Vec::new();
    for license in &policy.licenses.allow {
        allowed.push(Licensee::parse(license).with_context(|| format!("deny.toml allows `{license}`"))?);
    }
    let mut problems = Vec::new();
    for package in &metadata.packages {
        let id = format!("{} {}", package.name, package.version);
        if let Some(banned) = policy.bans.deny.iter().find(|banned| banned.name == package.name) {
            problems.push(format!("{id}: banned, {}", banned.reason));
        }
        if !has_allowed_license(package, &allowed) {
            problems.push(format!("{id}: licence {}", package.license.as_deref().unwrap_or("unknown")));
        }
        if package.source.as_ref().is_some_and(|source| !source.starts_with("registry+")) {
            problems.push(format!("{id}: does not come from a registry"));
        }
        let is_ours = package.source.is_none();
        for dependency in package.dependencies.iter().filter(|_| is_ours) {
            if dependency.req == "*" && dependency.path.is_none() {
                problems.push(format!("{id}: any version of {}", dependency.name));
            }
        }
    }
    let sources: BTreeSet<&String> =
        metadata.packages.iter().filter_map(|package| package.source.as_ref()).collect();
    if sources.len() > 1 {
        problems.push(format!("packages come from {} registries", sources.len()));
    }
    Ok(problems)
}

fn has_allowed_license(package: &Package, allowed: &[Licensee]) -> bool {
    // Some crates still write `MIT/Apache-2.0`.
    let Some(license) = package.license.as_ref().map(|license| license.replace('/', " OR ")) else {
        return false;
    };
    let Ok(expression) = Expression::parse(&license) else { return false };
    expression.evaluate(|needed| allowed.iter().any(|licensee| licensee.satisfies(needed)))
}

#[cfg(test)]
mod tests {
    use super::{Metadata, Policy, find_problems};

    #[test]
    fn banned_crates_other_licences_wildcards_and_git_sources_are_found() {
        let policy: Policy = toml::from_str(
            "[licenses]\nallow = [\"MIT\", \"ISC\"]\n[bans]\ndeny = [{ crate = \"old\", reason = \"use new\" }]",
        )
        .expect("a policy");
        let package = |name: &str, license: &str, source: Option<&str>, req: &str| {
            let dependencies = [serde_json::json!({ "name": "other", "req": req, "path": null })];
            serde_json::json!({
                "name": name, "version": "1.0.0", "license": license, "source": source, "dependencies": dependencies
            })
        };
        let registry = Some("registry+a");
        let metadata = serde_json::json!({ "packages": [
            package("fine", "MIT OR Apache-2.0", registry, "*"),
            package("old-way", "Apache-2.0/ISC", registry, "1"),
            package("old", "MIT", registry, "1"),
            package("both", "MIT AND GPL-3.0-only", registry, "1"),
            package("fork", "MIT", Some("git+a"), "1"),
            package("ours", "MIT", None, "*"),
        ] });
        let metadata: Metadata = serde_json::from_value(metadata).expect("packages");
        assert_eq!(
            find_problems(&policy, &metadata).expect("a valid policy"),
            [
                "old 1.0.0: banned, use new",
                "both 1.0.0: licence MIT AND GPL-3.0-only",
                "fork 1.0.0: does not come from a registry",
                "ours 1.0.0: any version of other",
                "packages come from 2 registries",
            ]
        );
    }
}
