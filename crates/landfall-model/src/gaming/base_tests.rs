//! The tests of the base against the work: which files are put back, and what a run of them says.

use super::{
    ChangedFile, Language, TestCase, Tests, cases, changed_tests, is_test_path, new_tests, rust_tests,
};
use crate::gate::{CheckOutcome, without_colour};
use crate::task::{ChangeConcern, ConcernCode};
pub use landfall_facts::evidence::BaseTestRun;

/// What a failing test of the base means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BaseTestMode {
    /// A person looks at the work before it lands.
    #[default]
    Review,
    /// The certificate says so.
    Report,
    /// They are not run.
    Off,
}

impl BaseTestMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Review, Self::Report, Self::Off];

    /// The word in settings.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Review => "review",
            Self::Report => "report",
            Self::Off => "off",
        }
    }

    /// Why a person should look, if they should.
    #[must_use]
    pub fn to_concern(self, run: &BaseTestRun) -> Option<ChangeConcern> {
        match self {
            Self::Off | Self::Report => None,
            Self::Review if run.outcome.is_green() || run.failing.is_empty() => None,
            Self::Review => {
                Some(ChangeConcern { code: ConcernCode::BaseTestFails, detail: run.summary_text() })
            }
        }
    }
}

/// How a file of the work becomes what the tests of the base expect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestRestoration {
    /// As it is on the base.
    FromBase {
        /// From the root of the repository.
        path: String,
    },
    /// Away: the work brought it.
    Remove {
        /// From the root of the repository.
        path: String,
    },
    /// The code of the work with the tests of the base.
    Text {
        /// From the root of the repository.
        path: String,
        /// All of the file.
        text: String,
    },
}

impl TestRestoration {
    /// The file that is put back.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::FromBase { path } | Self::Remove { path } | Self::Text { path, .. } => path,
        }
    }
}

const FAILING_MAX: usize = 20; // names in a concern and in the journal
const NAME_MAX: usize = 160;

/// What a run that came to `outcome` shows, with the number of tests that it told of. Where its output names no test,
/// the tests that the change rewrites are named.
#[must_use]
pub fn base_test_run(
    restores: &[TestRestoration],
    files: &[ChangedFile],
    outcome: CheckOutcome,
    failing: Vec<String>,
    tests: Option<u64>,
    took_ms: u64,
) -> BaseTestRun {
    let restored = |restore: &&TestRestoration| {
        matches!(restore, TestRestoration::FromBase { .. } | TestRestoration::Text { .. })
    };
    let names = restores.iter().filter(restored).map(|restore| restore.path().to_owned()).collect::<Vec<_>>();
    let failing = match outcome {
        CheckOutcome::Pass | CheckOutcome::Flaky => Vec::new(),
        CheckOutcome::PreExisting | CheckOutcome::Fail | CheckOutcome::Timeout | CheckOutcome::Broken
            if !failing.is_empty() =>
        {
            failing
        }
        CheckOutcome::PreExisting | CheckOutcome::Fail | CheckOutcome::Timeout | CheckOutcome::Broken => {
            let mut changed = changed_tests(files);
            changed.truncate(FAILING_MAX);
            // Where only new tests are left out and all others ran, the failure is about something else, such as
            // too little code that tests reach.
            let is_of_tests = !names.is_empty() || tests.is_none_or(|tests| tests == 0);
            match changed.is_empty() {
                false => changed,
                true if !names.is_empty() => names.clone(),
                true if is_of_tests => vec!["no test is named".to_owned()],
                true => Vec::new(),
            }
        }
    };
    BaseTestRun { files: names, outcome, failing, took_ms }
}

/// The files to put back so that the tests of the base meet the code of the work. None: no test of the base changed, and
/// none came that could alter how the others run. `sources_tests`: a script of the check reads files into its own shell whose
/// names cannot be told.
#[must_use]
pub fn plan_restorations(files: &[ChangedFile], sources_tests: bool) -> Vec<TestRestoration> {
    let is_prose = |path: &str| path.ends_with(".md") || path.ends_with(".rst");
    let mut found = Vec::new();
    let mut is_needed = false;
    for file in files {
        let path = file.path.clone();
        if is_test_path(&path) && !is_prose(&path) && !is_only_named_so(file) {
            if file.created && (is_rust_module(&path) || is_data(&path)) {
                continue; // the code of the work may name it
            }
            is_needed |= !file.created || new_tests::may_alter_other_tests(file, sources_tests);
            found.push(if file.created {
                TestRestoration::Remove { path }
            } else {
                TestRestoration::FromBase { path }
            });
        } else if let (Some(before), Some(after)) = (&file.before, &file.after)
            && let Some(text) = cases::with_tests_of_base(&path, before, after)
        {
            is_needed = true;
            found.push(TestRestoration::Text { path, text });
        }
    }
    if is_needed { found } else { Vec::new() }
}

fn is_rust_module(path: &str) -> bool {
    Language::from_path(path) == Language::Rust && format!("/{path}").contains("/src/")
}

fn is_data(path: &str) -> bool {
    const ENDINGS: [&str; 12] =
        ["snap", "csv", "tsv", "xml", "svg", "png", "jpg", "gz", "zip", "bin", "sql", "golden"];
    match Language::from_path(path) {
        Language::Prose => true,
        Language::Other => path.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending)),
        Language::Rust | Language::Python | Language::Go | Language::Script | Language::Jvm => false,
    }
}

/// Whether a module is called `test` and tests nothing: a command of that name, say. The code of the work needs its own.
fn is_only_named_so(file: &ChangedFile) -> bool {
    let is_in_source = format!("/{}", file.path).contains("/src/");
    let is_code = !matches!(Language::from_path(&file.path), Language::Other | Language::Prose);
    let texts = [&file.before, &file.after];
    let tests = |text: &String| text.contains("assert") || !cases::test_cases(&file.path, text).is_empty();
    is_in_source && is_code && !texts.into_iter().flatten().any(tests)
}

/// Tests of the base that change and cannot be put back without the code around them: Rust tests outside of a module,
/// assertions in its documentation, and tests in files that are not called so.
#[must_use]
pub fn unrestored_tests(files: &[ChangedFile], mode: BaseTestMode) -> Option<ChangeConcern> {
    let now = Tests::from_files(files).after;
    let is_kept =
        |case: &TestCase| now.iter().any(|(_, other)| other.name == case.name && other.body == case.body);
    let documented = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim);
        let examples = lines.filter_map(|line| line.strip_prefix("///").or(line.strip_prefix("//!")));
        examples.map(str::trim).filter(|line| line.starts_with("assert")).map(str::to_owned).collect()
    };
    let mut documented_now: Option<Vec<String>> = None;
    let mut names = Vec::new();
    for file in files.iter().filter(|file| !is_test_path(&file.path)) {
        let Some(before) = &file.before else { continue };
        let is_rust = Language::from_path(&file.path) == Language::Rust;
        let outside = if is_rust { rust_tests::without_modules(before) } else { before.clone() };
        let cases = cases::test_cases(&file.path, &outside);
        let changed = cases.into_iter().filter(|case| !case.assertions.is_empty() && !is_kept(case));
        names.extend(changed.map(|case| format!("{}: {}", file.path, case.name)));
        if is_rust {
            let all = || files.iter().filter_map(|file| file.after.as_deref()).flat_map(documented).collect();
            let kept = documented_now.get_or_insert_with(all);
            let gone = documented(before).into_iter().filter(|line| !kept.contains(line));
            names.extend(gone.map(|line| format!("{}: {line}", file.path)));
        }
    }
    names.truncate(FAILING_MAX);
    if names.is_empty() || mode != BaseTestMode::Review {
        return None;
    }
    let detail = format!("{} (changed, and not run as the base has it)", names.join(", "));
    Some(ChangeConcern { code: ConcernCode::BaseTestFails, detail })
}

/// Which commands run tests, of commands that told of so many: others check how the work is written, which they did already.
/// If none told, all may.
#[must_use]
pub fn commands_with_tests(told: impl IntoIterator<Item = Option<u64>>) -> Vec<bool> {
    let tells: Vec<bool> = told.into_iter().map(|tests| tests.is_some()).collect();
    let is_told = tells.contains(&true);
    tells.into_iter().map(|tells| tells || !is_told).collect()
}

/// The names of failing tests in what a runner wrote.
#[must_use]
pub fn failing_tests(output: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in output.lines().filter(|line| line.len() < 2_000) {
        let line = without_colour(line);
        let Some(name) = failing_test(&line) else { continue };
        let name: String = name.trim().chars().take(NAME_MAX).collect();
        if !name.is_empty() && !found.contains(&name) && found.len() < FAILING_MAX {
            found.push(name);
        }
    }
    found
}

fn failing_test(line: &str) -> Option<&str> {
    let code = line.trim();
    // cargo: `test tests::adds ... FAILED`
    if let Some(name) = code.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
        return Some(name);
    }
    // cargo with --quiet: `---- tests::adds stdout ----`
    if let Some(name) = code.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
        return Some(name);
    }
    // go: `--- FAIL: TestAdd (0.00s)`
    if let Some(rest) = code.strip_prefix("--- FAIL: ") {
        return rest.split(" (").next();
    }
    // TAP: `not ok 1 - adds`
    if let Some(rest) = code.strip_prefix("not ok ") {
        return rest.split_once(" - ").map(|(_, name)| name.split(" # ").next().unwrap_or(name));
    }
    // node and others: `✖ adds (0.5ms)`
    if let Some(rest) = code.strip_prefix("✖ ").or(code.strip_prefix("✗ ")).or(code.strip_prefix("✕ "))
    {
        return (rest != "failing tests:").then(|| rest.rsplit_once(" (").map_or(rest, |(name, _)| name));
    }
    // jest: `● sums › adds`
    if let Some(rest) = code.strip_prefix("● ") {
        return Some(rest);
    }
    // pytest: `FAILED tests/test_a.py::test_add - assert 2 == 3`; nextest: `FAIL [ 0.01s] crate tests::adds`
    if let Some(rest) = code.strip_prefix("FAILED ").or(code.strip_prefix("ERROR ")) {
        let name = rest.split(" - ").next().unwrap_or(rest);
        return (name.contains("::") || name.contains(".py")).then_some(name);
    }
    if let Some(rest) = code.strip_prefix("FAIL ") {
        return Some(rest.split_once("] ").map_or(rest, |(_, name)| name));
    }
    // unittest: `FAIL: test_add (test_a.Sums.test_add)`
    for mark in ["FAIL: ", "ERROR: "] {
        if let Some(rest) = code.strip_prefix(mark) {
            return Some(rest.split(" (").next().unwrap_or(rest));
        }
    }
    None
}
