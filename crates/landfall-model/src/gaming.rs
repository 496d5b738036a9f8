//! Signs that a change bends the rules it is judged by. None of them proves anything; each asks for a review.
//!
//! The engine collects the facts: which files changed and what they hold, and which files the verify commands use. What
//! follows from them is decided here.

mod base_tests;
mod cases;
mod code_text;
mod ecosystems;
mod imports;
mod inputs;
mod json_text;
mod line_diff;
mod makefile;
mod mutation;
mod new_tests;
mod package_sources;
mod protected;
mod runner_marks;
mod rust_tests;
mod sections;
mod shell_text;

pub use base_tests::{
    BaseTestMode, BaseTestRun, TestRestoration, base_test_run, commands_with_tests, failing_tests,
    plan_restorations, unrestored_tests,
};
pub use cases::{TestCase, test_cases, with_tests_of_base};
pub use inputs::{INPUT_BYTES_MAX, InputScope, InputTrace, ProtectedInput};
pub use mutation::{
    Mutation, MutationBudget, MutationMode, MutationOutcome, MutationRun, MutationTrial, choose_mutations,
    could_not_build, mutation_outcome, tests_of_change,
};
pub use protected::{ProtectedChange, is_input_path, protected_changes};

use crate::task::{ChangeConcern, ConcernCode};
pub use landfall_facts::evidence::{TestCounts, TestEvidence};

/// One file of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangedFile {
    /// Its path; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Whether the base does not have it.
    pub created: bool,
    /// Whether it is gone.
    pub deleted: bool,
    /// The lines that came, if they were read.
    pub added: Vec<String>,
    /// The lines that went.
    pub removed: Vec<String>,
    /// What it holds on the base, if it is text that was read.
    pub before: Option<String>,
    /// What it holds in the work.
    pub after: Option<String>,
}

/// Whether the text of this file is needed to judge a change of it.
#[must_use]
pub fn needs_text(path: &str, inputs: &[ProtectedInput]) -> bool {
    is_telling(path) || protected::is_watched(path, inputs) || mutation::is_mutable(path)
}

/// What a person should look at before the change lands.
///
/// Counts go over the whole change: a test that moves from one file to another is neither removed nor added. Tests that
/// became one with several cases are not removed if as many run and those of the base still pass.
#[must_use]
pub fn find_concerns(
    files: &[ChangedFile],
    inputs: &[ProtectedInput],
    tests_now: Option<u64>,
    tests_on_base: Option<u64>,
    base_tests: Option<&BaseTestRun>,
) -> Vec<ChangeConcern> {
    let mut found = Vec::new();
    let mut note = |code, detail: String| found.push(ChangeConcern { code, detail });
    let tests = LineBalance::from_files(files, |file, line| begins_a_test(&file.path, line));
    // An assertion in other code is just code; one that came anywhere may be one that moved.
    let checks = LineBalance::from_files(files, |file, line| is_test_path(&file.path) && is_assertion(line));
    let is_check = |line: &&String| is_assertion(line) || cases::calls_helper(line);
    let checks_came = files.iter().flat_map(|file| &file.added).filter(is_check).count();
    let skips = LineBalance::from_files(files, |file, line| skips_a_test(&file.path, line));
    for file in files {
        if is_protected(&file.path) {
            note(ConcernCode::ProtectedPath, file.path.clone());
        }
        let held_tests = file.removed.iter().any(|line| begins_a_test(&file.path, line));
        let moved = !file.removed.is_empty()
            && files.iter().any(|other| !other.deleted && other.added == file.removed);
        let all_there = held_tests && !tests.removes_more();
        if file.deleted && is_test_path(&file.path) && !moved && !all_there {
            note(ConcernCode::TestDeleted, file.path.clone());
        }
        if skips.adds_more()
            && let Some(line) = file.added.iter().find(|line| skips_a_test(&file.path, line))
        {
            note(ConcernCode::TestSkipped, format!("{} ({})", file.path, line.trim()));
        }
        if let Some(line) =
            runner_marks::find_marked_line(file).or_else(|| runner_marks::product_in_tests(file, files))
        {
            note(ConcernCode::RunnerPatched, format!("{} ({})", file.path, line.trim()));
        }
    }
    for change in protected_changes(files, inputs) {
        note(ConcernCode::ProtectedInput, change.to_string());
    }
    for module in rust_tests::unbuilt_modules(files) {
        note(
            ConcernCode::TestRemoved,
            format!("perhaps, with the module {module}: its file stays, and is not built"),
        );
    }
    let emptied = emptied_tests(files, tests.removes_more());
    let is_told = !emptied.is_empty();
    for detail in emptied {
        note(ConcernCode::EmptyTest, detail);
    }
    let lost = |balance: &LineBalance<'_>| {
        let files = balance.files.iter().filter(|(path, _, _)| !is_deleted_test_file(files, path));
        let named: Vec<_> = files
            .filter(|(_, came, went)| went > came)
            .map(|(path, came, went)| format!("{path} (−{went} +{came})"))
            .collect();
        named.join(", ")
    };
    let as_many_run = tests_now.zip(tests_on_base).is_some_and(|(now, base)| now >= base);
    let is_rewritten =
        tests.removes_more() && as_many_run && base_tests.is_some_and(|run| run.outcome.is_green());
    if tests.removes_more() && !is_rewritten && !lost(&tests).is_empty() {
        note(ConcernCode::TestRemoved, lost(&tests));
    } else if !is_rewritten && checks.removed_count() > checks_came && !lost(&checks).is_empty() && !is_told {
        note(ConcernCode::TestRemoved, format!("assertions in {}", lost(&checks)));
    }
    match (tests_now, tests_on_base) {
        (Some(now), Some(base)) if now < base => {
            note(ConcernCode::FewerTests, format!("{now} ran, {base} on the base"));
        }
        (None, Some(base)) if base > 0 => {
            note(ConcernCode::FewerTests, format!("none were told of, {base} ran on the base"));
        }
        (_, _) => {}
    }
    found
}

/// The tests of a change, before and after it.
struct Tests {
    before: Vec<(String, TestCase)>,
    after: Vec<(String, TestCase)>,
}

impl Tests {
    fn from_files(files: &[ChangedFile]) -> Self {
        let cases = |text: fn(&ChangedFile) -> Option<&String>| -> Vec<(String, TestCase)> {
            let of_file = |file: &ChangedFile| {
                let cases = text(file).map(|text| test_cases(&file.path, text)).unwrap_or_default();
                cases.into_iter().map(|case| (file.path.clone(), case)).collect::<Vec<_>>()
            };
            files.iter().flat_map(of_file).collect()
        };
        Self { before: cases(|file| file.before.as_ref()), after: cases(|file| file.after.as_ref()) }
    }

    /// The test as it is now: in the same file, or wherever it moved.
    fn current_test(&self, path: &str, name: &str) -> Option<&TestCase> {
        let named = |same_file: bool| {
            // Of two tests with one name the later one runs.
            let mut cases = self.after.iter().rev();
            cases.find(|(file, case)| case.name == name && (!same_file || file == path)).map(|(_, case)| case)
        };
        named(true).or_else(|| named(false))
    }

    fn is_known(&self, name: &str) -> bool {
        self.before.iter().any(|(_, case)| case.name == name)
    }
}

/// How many tests and assertions the files of a change hold, before and after it.
#[must_use]
pub fn count_changed(files: &[ChangedFile]) -> TestCounts {
    let tests = Tests::from_files(files);
    let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    let assertions =
        |cases: &[(String, TestCase)]| count(cases.iter().map(|(_, case)| case.assertions.len()).sum());
    TestCounts {
        tests_before: count(tests.before.len()),
        tests_after: count(tests.after.len()),
        assertions_before: assertions(&tests.before),
        assertions_after: assertions(&tests.after),
    }
}

/// The tests of the base that the change rewrites or removes, as `file: test`.
#[must_use]
pub fn changed_tests(files: &[ChangedFile]) -> Vec<String> {
    let tests = Tests::from_files(files);
    let differs = |(path, case): &&(String, TestCase)| {
        tests.current_test(path, &case.name).is_none_or(|now| now.body != case.body)
    };
    tests.before.iter().filter(differs).map(|(path, case)| format!("{path}: {}", case.name)).collect()
}

const NAMED_MAX: usize = 8; // tests that one concern names; the diff has the rest

/// Tests that could fail on the base and cannot any more, and tests that came and cannot fail.
fn emptied_tests(files: &[ChangedFile], fewer_tests: bool) -> Vec<String> {
    let tests = Tests::from_files(files);
    let mut found = Vec::new();
    let mut gone = Vec::new();
    for (path, case) in tests.before.iter().filter(|(_, case)| case.can_fail) {
        match tests.current_test(path, &case.name) {
            None => gone.push(format!("{path}: {}", case.name)),
            Some(now) if !now.can_fail => {
                found.push(format!(
                    "{path}: {} ({} assertions before, none now)",
                    case.name,
                    case.assertions.len()
                ));
            }
            Some(now) => found.extend(lost_assertions(&tests, path, case, now)),
        }
    }
    let came: Vec<&(String, TestCase)> =
        tests.after.iter().filter(|(_, case)| !tests.is_known(&case.name)).collect();
    // A renamed test is gone and came. One that cannot fail does not take the place of one that could.
    let replaced = came.iter().filter(|(_, case)| case.can_fail).count();
    if gone.len() > replaced && !fewer_tests {
        let names = gone.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
        found.push(format!("{names} (gone; the tests that came in their place assert nothing)"));
    }
    for (path, case) in came.into_iter().filter(|(_, case)| case.is_hollow) {
        found.push(format!("{path}: {} (it cannot fail)", case.name));
    }
    found.truncate(NAMED_MAX);
    found
}

/// Assertions that a test has lost and that no other test has gained.
fn lost_assertions(tests: &Tests, path: &str, before: &TestCase, now: &TestCase) -> Option<String> {
    if now.assertions.len() >= before.assertions.len() {
        return None; // what changed in them is shown by the tests of the base
    }
    let moved = |line: &String| {
        let elsewhere = tests.after.iter().filter(|(_, case)| case.name != before.name);
        elsewhere.flat_map(|(_, case)| &case.assertions).any(|assertion| assertion == line)
    };
    let is_lost = |line: &&String| !now.assertions.contains(line) && !moved(line);
    let lost: Vec<&String> = before.assertions.iter().filter(is_lost).collect();
    let gained = now.assertions.iter().filter(|line| !before.assertions.contains(line)).count();
    let first = lost.first().filter(|_| lost.len() > gained)?;
    let line: String = first.chars().take(120).collect();
    let (old, new) = (before.assertions.len(), now.assertions.len());
    Some(format!("{path}: {} ({old} assertions before, {new} now; gone: {line})", before.name))
}

/// A test file that is gone has a concern of its own.
fn is_deleted_test_file(files: &[ChangedFile], path: &str) -> bool {
    is_test_path(path) && files.iter().any(|file| file.deleted && file.path == path)
}

/// How many lines of a kind came and went, file by file.
struct LineBalance<'a> {
    files: Vec<(&'a str, usize, usize)>,
}

impl<'a> LineBalance<'a> {
    fn from_files(files: &'a [ChangedFile], is: impl Fn(&ChangedFile, &str) -> bool) -> Self {
        let count = |file, lines: &[String]| lines.iter().filter(|line| is(file, line)).count();
        let balance = |file: &'a ChangedFile| {
            (file.path.as_str(), count(file, &file.added), count(file, &file.removed))
        };
        Self { files: files.iter().map(balance).filter(|(_, came, went)| came + went > 0).collect() }
    }

    fn added_count(&self) -> usize {
        self.files.iter().map(|(_, came, _)| came).sum()
    }

    fn removed_count(&self) -> usize {
        self.files.iter().map(|(_, _, went)| went).sum()
    }

    fn removes_more(&self) -> bool {
        self.removed_count() > self.added_count()
    }

    fn adds_more(&self) -> bool {
        self.added_count() > self.removed_count()
    }
}

/// The rules a change is judged by.
#[must_use]
pub fn is_protected(path: &str) -> bool {
    const FILES: [&str; 13] = [
        "landfall.toml",
        ".wholework.yml",   // settings, where landfall.toml says nothing
        ".worktreeinclude", // it decides which of the person's files later agents get
        ".gitlab-ci.yml",
        "jenkinsfile",
        ".travis.yml",
        "azure-pipelines.yml",
        ".woodpecker.yml",
        ".drone.yml",
        ".cirrus.yml",
        "bitbucket-pipelines.yml",
        "appveyor.yml",
        ".appveyor.yml",
    ];
    const FOLDERS: [&str; 11] = [
        ".landfall",
        ".github/workflows",
        ".github/actions",
        ".gitea/workflows",
        ".forgejo/workflows",
        ".woodpecker",
        ".gitlab/ci",
        ".circleci",
        ".ci",
        ".buildkite",
        ".semaphore",
    ];
    // On a file system that ignores case, `LANDFALL.toml` is the same file.
    let path = path.to_ascii_lowercase();
    let path = path.as_str();
    // A folder, or one above it, that is a path by itself is a link now: the rules are elsewhere.
    let is_or_holds =
        |folder: &str| folder.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_in = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    // The type profile of a module sets the thresholds of its judges.
    let is_type_profile = path.rsplit('/').next() == Some(".type-profile.md");
    is_type_profile
        || FILES.contains(&path)
        || FOLDERS.iter().any(|folder| is_or_holds(folder) || is_in(folder))
}

/// Whether the lines of such a file can say anything about tests. Data outside of test folders cannot.
#[must_use]
pub fn is_telling(path: &str) -> bool {
    match Language::from_path(path) {
        Language::Rust | Language::Python | Language::Go | Language::Script | Language::Jvm => true,
        Language::Other | Language::Prose => is_test_path(path),
    }
}

/// Whether the file is code in a language whose tests are told apart.
#[must_use]
pub fn is_code(path: &str) -> bool {
    !matches!(Language::from_path(path), Language::Other | Language::Prose)
}

/// Paths whose content is the rules that a change is judged by. One of them may be a link.
pub const SETTINGS_PATHS: [&str; 8] = [
    "landfall.toml",
    ".landfall",
    ".wholework.yml",
    ".worktreeinclude",
    ".gitlab-ci.yml",
    ".github/workflows",
    ".circleci",
    ".ci",
];

/// What is protected because one of [`SETTINGS_PATHS`] is a link on the base: the link, and what it leads to.
#[must_use]
pub fn linked_settings(link: &str, target: &str) -> Vec<ProtectedInput> {
    let input =
        |path: String| ProtectedInput { path, scope: InputScope::WholeFile, used_by: link.to_owned() };
    inputs::resolve_link(link, target)
        .map(|path| vec![input(format!("{path}/*")), input(path)])
        .unwrap_or_default()
}

fn is_test_path(path: &str) -> bool {
    const FOLDERS: [&str; 10] = [
        "test",
        "tests",
        "__tests__",
        "spec",
        "testdata",
        "__snapshots__",
        "snapshots",
        "golden",
        "goldens",
        "fixtures",
    ];
    // Where only data is expectation: code of the product may be called so.
    const DATA_FOLDERS: [&str; 6] =
        ["expected", "__fixtures__", "test_data", "test-data", "approvals", "baselines"];
    const DATA_ENDINGS: [&str; 4] = [".snap", ".golden", ".expected", ".approved.txt"];
    let lower = path.to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    let is_above = |folders: &[&str]| lower.split('/').rev().skip(1).any(|part| folders.contains(&part));
    let is_data = !is_code(path)
        && !name.ends_with(".md")
        && (is_above(&DATA_FOLDERS)
            || DATA_ENDINGS.iter().any(|ending| name.ends_with(ending))
            || stem == "expected"
            || ["expected-", "expected_"].iter().any(|beginning| stem.starts_with(beginning))
            || ["-expected", "_expected"].iter().any(|end| stem.ends_with(end)));
    let in_folder = is_data || is_above(&FOLDERS);
    // What unittest finds by itself: `test*.py`.
    let helper = ["testing", "testutil", "testtools", "testlib", "testkit", "testbed", "testhelper"];
    let is_found = name.ends_with(".py")
        && stem.starts_with("test")
        && !helper.iter().any(|helper| stem.starts_with(helper));
    in_folder
        || is_found
        || stem.starts_with("test_")
        || stem.starts_with("test-")
        || ["_test", "_tests", "-test", "-tests", "-spec", "_spec"].iter().any(|end| stem.ends_with(end))
        || name.contains(".test.")
        || name.contains(".spec.")
        || stem == "test"
        || stem == "tests"
}

/// Which language's marks a file may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Rust,
    Python,
    Go,
    Script,
    Jvm,
    /// Not known: any mark counts, but only where tests live.
    Other,
    /// No code.
    Prose,
}

impl Language {
    fn from_path(path: &str) -> Self {
        match path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending) {
            Some("rs") => Self::Rust,
            Some("py" | "pyi") => Self::Python,
            Some("go") => Self::Go,
            Some("js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" | "mts" | "cts" | "vue" | "svelte") => {
                Self::Script
            }
            Some("java" | "kt" | "kts" | "scala" | "groovy") => Self::Jvm,
            Some("md" | "txt" | "rst" | "adoc" | "html" | "json" | "toml" | "yaml" | "yml" | "lock") => {
                Self::Prose
            }
            Some(_) | None => Self::Other,
        }
    }
}

fn skips_a_test(path: &str, line: &str) -> bool {
    const RUST: &[&str] = &["#[ignore"];
    const PYTHON: &[&str] = &[
        "@pytest.mark.skip",
        "@pytest.mark.xfail",
        "pytestmark = pytest.mark.skip",
        "pytest.skip(",
        "@unittest.skip",
        "@unittest.expectedFailure",
        "@skip",
        "self.skipTest(",
    ];
    const GO: &[&str] = &["t.Skip(", "t.Skipf(", "t.SkipNow(", "b.Skip("];
    const SCRIPT: &[&str] = &[
        "it.skip(",
        "test.skip(",
        "describe.skip(",
        "it.only(",
        "test.only(",
        "describe.only(",
        "it.todo(",
        "test.todo(",
        "xit(",
        "xtest(",
        "xdescribe(",
        "fit(",
        "fdescribe(",
    ];
    const JVM: &[&str] = &["@Disabled", "@Ignore"];
    begins_with_mark(path, line, [RUST, PYTHON, GO, SCRIPT, JVM])
}

fn begins_a_test(path: &str, line: &str) -> bool {
    const RUST: &[&str] = &["#[test]", "#[rstest", "#[test_case", "#[tokio::test", "#[async_std::test"];
    const PYTHON: &[&str] = &["def test_", "async def test_"];
    const GO: &[&str] = &["func Test", "func Fuzz"];
    const SCRIPT: &[&str] = &["it(", "it.each(", "test(", "test.each("];
    const JVM: &[&str] = &["@Test", "@ParameterizedTest"];
    let go_test = Language::from_path(path) != Language::Go || path.ends_with("_test.go");
    let spelled = line.trim_start().starts_with("test \"") || line.trim_start().starts_with("it \"");
    let spelled = spelled && Language::from_path(path) == Language::Other && is_test_path(path);
    let is_main = line.trim_start().starts_with("func TestMain("); // it runs the tests
    spelled || (go_test && !is_main && begins_with_mark(path, line, [RUST, PYTHON, GO, SCRIPT, JVM]))
}

/// Whether the line begins with a mark of the file's language, in the order of [`Language`].
fn begins_with_mark(path: &str, line: &str, marks: [&[&str]; 5]) -> bool {
    let line = line.trim_start();
    let begins = |marks: &[&str]| marks.iter().any(|mark| line.starts_with(mark));
    let [rust, python, go, script, jvm] = marks;
    match Language::from_path(path) {
        Language::Rust => begins(rust),
        Language::Python => begins(python),
        Language::Go => begins(go),
        Language::Script => begins(script),
        Language::Jvm => begins(jvm),
        Language::Other => is_test_path(path) && marks.iter().any(|marks| begins(marks)),
        Language::Prose => false,
    }
}

fn is_assertion(line: &str) -> bool {
    let line = line.trim_start();
    ["assert", "self.assert", "expect(", "require.", "debug_assert"].iter().any(|mark| line.starts_with(mark))
}
