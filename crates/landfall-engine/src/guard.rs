//! A watch over an agent's own settings. The sandbox must leave its state open, so what it plants there is at least seen.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use landfall_agents::{GUARDED, RUNS};

/// What each guarded file or folder holds, as a digest; what is not there is not listed.
pub(crate) type ConfigFingerprints = BTreeMap<String, String>;

const FILE_MAX: u64 = 1 << 20; // settings are small; of more, the beginning and the length count
const ENTRIES_MAX: usize = 2_000; // of one folder; plug-ins are few

/// The digests of what is guarded in these state folders.
pub(crate) fn fingerprint_configs(state: &[PathBuf]) -> ConfigFingerprints {
    let guarded = state.iter().flat_map(|folder| GUARDED.iter().map(|name| folder.join(name)));
    guarded.filter_map(|path| Some((path.display().to_string(), fingerprint_path(&path)?))).collect()
}

/// What differs between the two.
pub(crate) fn find_touched_paths(before: &ConfigFingerprints, after: &ConfigFingerprints) -> Vec<String> {
    let differs = |path: &&String| before.get(*path) != after.get(*path);
    let mut paths: Vec<String> = before.keys().chain(after.keys()).filter(differs).cloned().collect();
    paths.sort();
    paths.dedup();
    paths
}

fn fingerprint_path(path: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    let meta = std::fs::symlink_metadata(path).ok()?;
    if meta.is_dir() {
        let mut folders = vec![path.to_owned()];
        let mut entries = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let Ok(meta) = entry.metadata() else { continue };
                if is_bundled_skills(&entry.path()) {
                    continue;
                }
                if meta.is_dir() && entries.len() < ENTRIES_MAX {
                    folders.push(entry.path());
                }
                entries.push(format!("{:?} {} {:?}", entry.path(), meta.len(), meta.modified().ok()));
            }
            if entries.len() >= ENTRIES_MAX {
                break;
            }
        }
        if entries.is_empty() {
            return None; // as good as not there
        }
        entries.sort();
        hasher.update(entries.join("\n").as_bytes());
    } else {
        // A pipe put in its place is not waited for.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        if let Ok(file) = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)
            && file.metadata().is_ok_and(|meta| meta.is_file())
        {
            let mut bytes = Vec::new();
            let _ = file.take(FILE_MAX).read_to_end(&mut bytes); // what can be read of it counts
            let counts = extract_program_settings(&bytes).unwrap_or(bytes);
            if counts.is_empty() {
                return None; // as good as not there
            }
            hasher.update(&counts);
        }
    }
    Some(hasher.finalize().to_hex()[..32].to_owned())
}

/// Whether these are the skills that Codex itself unpacks when it first starts. A plugin of another agent is not.
fn is_bundled_skills(path: &Path) -> bool {
    path.ends_with("skills/.system") && !path.join(".claude-plugin").exists()
}

/// Of settings in JSON or TOML, what decides about programs: agents keep harmless notes there, too, such as which folders
/// are trusted. None for what is neither.
fn extract_program_settings(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let json = || serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).ok();
    let toml = || {
        let table = toml::from_str::<toml::Table>(text).ok()?;
        table.into_iter().map(|(key, value)| Some((key, serde_json::to_value(value).ok()?))).collect()
    };
    let settings: serde_json::Map<String, serde_json::Value> = json().or_else(toml)?;
    let mut runs: Vec<(String, serde_json::Value)> =
        settings.into_iter().filter(|(key, _)| RUNS.contains(&key.as_str())).collect();
    runs.sort_by(|a, b| a.0.cmp(&b.0));
    Some(if runs.is_empty() { Vec::new() } else { format!("{runs:?}").into_bytes() })
}

#[cfg(test)]
mod tests {
    use super::{find_touched_paths, fingerprint_configs};

    #[test]
    fn what_is_planted_changed_or_taken_away_is_seen_and_the_rest_is_not() {
        let home = tempfile::tempdir().expect("a folder");
        let state = [home.path().to_owned()];
        let file = |name: &str, text: &str| {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().expect("below the home")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        file("settings.json", "{}");
        file("hooks/a.sh", "true");
        let before = fingerprint_configs(&state);
        file("history.jsonl", "a line");
        file("skills/.system/imagegen/SKILL.md", "its own");
        assert_eq!(find_touched_paths(&before, &fingerprint_configs(&state)), Vec::<String>::new());
        file("settings.json", "{\"trusted\":true}");
        assert_eq!(
            find_touched_paths(&before, &fingerprint_configs(&state)),
            Vec::<String>::new(),
            "a note is harmless"
        );
        file("settings.json", "{\"trusted\":true,\"hooks\":1}");
        file("hooks/b.sh", "true");
        file("config.toml", "notify = 1");
        file("skills/landfall/skills/auto/SKILL.md", "do something else");
        let names: Vec<String> = find_touched_paths(&before, &fingerprint_configs(&state))
            .iter()
            .map(|path| path.rsplit('/').next().expect("a name").to_owned())
            .collect();
        assert_eq!(names, ["config.toml", "hooks", "settings.json", "skills"]);
    }
}
