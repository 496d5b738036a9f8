//! Signs that a change bends the rules it is judged by. None of them proves anything; each wants a person's eye.

use crate::task::{Concern, ConcernCode};

/// One file of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Whether it is gone.
    pub deleted: bool,
    /// The lines that came, if they were read.
    pub added: Vec<String>,
    /// The lines that went.
    pub removed: Vec<String>,
}

/// What a person should look at before the change lands.
#[must_use]
pub fn concerns(files: &[ChangedFile], tests_now: Option<u64>, tests_on_base: Option<u64>) -> Vec<Concern> {
    let mut found = Vec::new();
    let mut note = |code, detail: &str| found.push(Concern { code, detail: detail.to_owned() });
    for file in files {
        if is_protected(&file.path) {
            note(ConcernCode::ProtectedPath, &file.path);
        }
        let is_test = is_test_path(&file.path);
        if is_test && file.deleted {
            note(ConcernCode::TestDeleted, &file.path);
            continue;
        }
        if let Some(line) = file.added.iter().find(|line| skips_a_test(line)) {
            note(ConcernCode::TestSkipped, &format!("{} ({})", file.path, line.trim()));
        }
        let (came, went) = (count(&file.added), count(&file.removed));
        if went > came {
            note(ConcernCode::TestRemoved, &format!("{} (−{went} +{came})", file.path));
        }
    }
    if let (Some(now), Some(base)) = (tests_now, tests_on_base)
        && now < base
    {
        note(ConcernCode::FewerTests, &format!("{now} ran, {base} on the base"));
    }
    found
}

/// The rules a change is judged by.
#[must_use]
pub fn is_protected(path: &str) -> bool {
    const FILES: [&str; 5] =
        ["landfall.toml", ".gitlab-ci.yml", "Jenkinsfile", ".travis.yml", "azure-pipelines.yml"];
    const FOLDERS: [&str; 5] = [".landfall/", ".github/workflows/", ".circleci/", ".ci/", ".buildkite/"];
    FILES.contains(&path) || FOLDERS.iter().any(|folder| path.starts_with(folder))
}

fn is_test_path(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    let in_folder =
        lower.split('/').rev().skip(1).any(|part| matches!(part, "test" | "tests" | "__tests__" | "spec"));
    in_folder
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_tests")
        || name.contains(".test.")
        || name.contains(".spec.")
        || stem == "test"
        || stem == "tests"
}

fn skips_a_test(line: &str) -> bool {
    let line = line.trim();
    const MARKS: [&str; 12] = [
        "#[ignore",
        "@pytest.mark.skip",
        "@unittest.skip",
        "pytest.skip(",
        "t.Skip(",
        "t.SkipNow(",
        "it.skip(",
        "test.skip(",
        "describe.skip(",
        "xit(",
        "xdescribe(",
        "@Disabled",
    ];
    MARKS.iter().any(|mark| line.starts_with(mark))
}

fn count(lines: &[String]) -> usize {
    lines.iter().filter(|line| begins_a_test(line)).count()
}

fn begins_a_test(line: &str) -> bool {
    let line = line.trim();
    const MARKS: [&str; 10] = [
        "#[test]",
        "#[tokio::test",
        "def test_",
        "async def test_",
        "func Test",
        "it(",
        "test(",
        "it('",
        "@Test",
        "assert",
    ];
    MARKS.iter().any(|mark| line.starts_with(mark))
}
