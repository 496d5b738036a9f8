//! What npm is asked for is exact, and what the transcripts say of versions is true.

use std::path::{Path, PathBuf};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the house").to_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Each agent: its folder's name, its package and the version that is asked for.
fn pinned() -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("xtask/agents")).expect("the agents are there") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("named").to_string_lossy().into_owned();
        let wanted = json(&path.join("package.json"));
        let wanted = wanted["dependencies"].as_object().expect("a table").clone();
        assert_eq!(wanted.len(), 1, "{name} is one package");
        let (package, version) = wanted.into_iter().next().expect("one");
        found.push((name, package, version.as_str().expect("a version").to_owned()));
    }
    assert!(found.len() >= 4, "{found:?}");
    found
}

#[test]
fn agents_are_pinned_to_a_version_and_everything_in_them_to_a_hash() {
    for (name, package, version) in pinned() {
        assert!(version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'), "{name}: {version}");
        let lock = json(&root().join("xtask/agents").join(&name).join("package-lock.json"));
        let packages = lock["packages"].as_object().expect("a table");
        assert_eq!(packages[&format!("node_modules/{package}")]["version"], *version, "{name}");
        for (path, part) in packages.iter().filter(|(path, _)| !path.is_empty()) {
            let hash = part["integrity"].as_str().unwrap_or_default();
            assert!(hash.starts_with("sha512-"), "{name}: {path} has no hash");
            assert!(part["resolved"].is_null(), "{name}: {path} names a host; npm knows its registry");
        }
    }
}

#[test]
fn transcripts_are_of_the_versions_that_are_pinned() {
    let page = read(&root().join("crates/landfall-agents/transcripts/README.md"));
    for (name, package, version) in pinned() {
        if root().join("crates/landfall-agents/transcripts").join(&name).exists() {
            let line = format!("| {name} | {package} | {version} |");
            assert!(page.contains(&line), "record {name} again; the page should say: {line}");
        }
    }
}
