//! The files that a step of a flow must leave behind.

use std::path::{Component, Path};
use std::time::UNIX_EPOCH;

use landfall_host::user_file::read_user_file;
use landfall_model::issue::IssueRef;
use landfall_model::{StepKind, Task};
use landfall_trackers::tracker::IssueNumber;

use crate::exchange::{SPEC, is_spec, spec_of};
use crate::host_context::HostContext;

/// Whether a file holds more than blanks and line ends. A large file is not read: no agent writes so many of them.
fn has_text(path: &Path) -> bool {
    const BYTES_MAX: u64 = 256 << 10;
    match read_user_file(path, BYTES_MAX) {
        Ok(bytes) => bytes.iter().any(|byte| !byte.is_ascii_whitespace()),
        Err(error) => error.kind() == std::io::ErrorKind::FileTooLarge,
    }
}

/// What the step must leave behind and has not: missing, empty, not a plain file, or older than the run.
pub(crate) fn missing_outputs(site: &HostContext, task: &Task, began_ms: i64) -> Vec<String> {
    let step = task.step().and_then(|name| task.flow.as_ref()?.find_step(name));
    let Some(StepKind::Agent { output, .. }) = step.map(|step| &step.kind) else { return Vec::new() };
    let Some(workspace) = site.pool.find_workspace(&task.id.to_string()) else { return output.clone() };
    let there = |name: &str| {
        let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        let Ok(meta) = std::fs::symlink_metadata(workspace.path().join(name)) else { return false };
        let written = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let new = written.is_some_and(|at| i64::try_from(at.as_millis()).is_ok_and(|ms| ms >= began_ms));
        plain && meta.is_file() && new && has_text(&workspace.path().join(name))
    };
    let specified = || {
        let folder = &site.settings.tracker.spec_path;
        let names = std::fs::read_dir(workspace.path().join(folder)).into_iter().flatten().flatten();
        let number =
            IssueRef::from_source(&task.spec.source).and_then(|source| IssueNumber::new(source.number));
        let mut names = names.filter_map(|entry| entry.file_name().into_string().ok());
        number.is_some_and(|number| {
            names.any(|name| is_spec(&name, number) && there(&format!("{folder}/{name}")))
        })
    };
    let is_there = |name: &str| if name == SPEC { specified() } else { there(name) };
    // By the name an agent and a person can look for.
    let named = |name: &String| match name.as_str() {
        SPEC => spec_of(site, task).unwrap_or_else(|| name.clone()),
        _ => name.clone(),
    };
    output.iter().filter(|name| !is_there(name)).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::has_text;

    #[test]
    fn a_file_of_blanks_is_no_output() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plan.md");
        assert!(!has_text(&path), "it is not there");
        for (text, expected) in [("", false), (" \n\t\r\n", false), ("\n- [ ] do it\n", true)] {
            std::fs::write(&path, text).expect("ours");
            assert_eq!(has_text(&path), expected, "{text:?}");
        }
        std::fs::write(&path, vec![b' '; 300 << 10]).expect("ours");
        assert!(has_text(&path), "it is too large to look at");
    }
}
