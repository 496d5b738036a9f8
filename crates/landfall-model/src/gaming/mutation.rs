//! Mutations of changed lines: small changes to the product that a test of the change should notice. A test that stays green
//! whatever the changed lines do cannot fail.
//!
//! The choice, the limits and the conclusion are here; the engine runs the checks. It reads lines, not languages: a mutation that
//! means the same as the original, or that cannot be built, shows nothing.

use std::collections::BTreeSet;

use super::code_text::{CodeSyntax, QUOTED, mask_code};
use super::line_diff::added_lines;
use super::{ChangedFile, ProtectedInput, Tests, is_test_path, protected, rust_tests};
use crate::gate::CheckOutcome;
use crate::task::{ChangeConcern, ConcernCode};
pub use landfall_facts::evidence::{MutationOutcome, MutationRun, MutationTrial};

/// What follows if no test notices the mutations of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MutationMode {
    /// A person looks at the work before it lands.
    Review,
    /// The certificate says so. A line may be changed in a way that no test needs to notice, so this is the default.
    #[default]
    Report,
    /// No mutation is tried.
    Off,
}

impl MutationMode {
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

    /// Why a person should review the change, if a person should.
    #[must_use]
    pub fn to_concern(self, run: &MutationRun) -> Option<ChangeConcern> {
        match self {
            Self::Report | Self::Off => None,
            Self::Review => run
                .is_finding()
                .then(|| ChangeConcern { code: ConcernCode::EmptyTest, detail: run.summary_text() }),
        }
    }
}

/// One file of the work with one line altered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutation {
    /// From the root of the repository.
    pub path: String,
    /// The number of the line, from 1.
    pub line: u64,
    /// The line as the work has it, without the blanks around it.
    pub before: String,
    /// The line as it is tried.
    pub after: String,
    /// All of the altered file.
    pub text: String,
}

/// How much may be spent on mutations of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MutationBudget {
    /// Nothing more is begun after so long.
    pub total_ms: u64,
    check_ms: u64,
}

impl MutationBudget {
    /// From how long the checks took. None: they take too long to run them again for this.
    #[must_use]
    pub fn from_check_duration(check_ms: u64) -> Option<Self> {
        const CHECK_MAX_MS: u64 = 30_000;
        const TOTAL_MIN_MS: u64 = 3_000; // four quick checks, with the start of their processes
        const CHECKS: u64 = 2; // a finding needs two survivors
        let total_ms = (check_ms * CHECKS).max(TOTAL_MIN_MS);
        (check_ms <= CHECK_MAX_MS).then_some(Self { total_ms, check_ms })
    }

    /// Whether one more run of the checks fits into what is left.
    #[must_use]
    pub fn allows_another(&self, spent_ms: u64) -> bool {
        spent_ms < self.total_ms && spent_ms + self.check_ms / 2 <= self.total_ms
    }

    /// How long a command may take on a mutation that took `usual_ms` on the work: a mutation may never end. None: it did not
    /// run on the work, so its own limit holds.
    #[must_use]
    pub fn command_limit_ms(usual_ms: Option<u64>, configured_ms: u64) -> u64 {
        const FACTOR: u64 = 5;
        const START_MS: u64 = 5_000; // a busy machine may need that long for a start
        let Some(usual_ms) = usual_ms else { return configured_ms };
        (usual_ms.saturating_mul(FACTOR) + START_MS).min(configured_ms)
    }
}

/// What the end of one command shows of a mutation; none if the next command decides. `runs_tests` tells whether the command
/// runs tests: the end of another one shows nothing of them. `is_unbuilt` tells whether the altered code could not be built.
#[must_use]
pub fn mutation_outcome(
    outcome: CheckOutcome,
    runs_tests: bool,
    is_unbuilt: bool,
) -> Option<MutationOutcome> {
    match outcome {
        CheckOutcome::Pass | CheckOutcome::Flaky => None,
        CheckOutcome::Timeout if runs_tests => Some(MutationOutcome::Caught),
        CheckOutcome::Fail | CheckOutcome::Broken | CheckOutcome::PreExisting
            if runs_tests && !is_unbuilt =>
        {
            Some(MutationOutcome::Caught)
        }
        CheckOutcome::Timeout | CheckOutcome::Fail | CheckOutcome::Broken | CheckOutcome::PreExisting => {
            Some(MutationOutcome::Unbuilt)
        }
    }
}

/// Mutations of one change at most.
const MUTATIONS_MAX: usize = 4;

/// The tests that a change adds or rewrites, as `file: test`.
#[must_use]
pub fn tests_of_change(files: &[ChangedFile]) -> Vec<String> {
    let tests = Tests::from_files(files);
    let is_known = |body: &[String]| tests.before.iter().any(|(_, case)| case.body == body);
    let came = tests.after.iter().filter(|(_, case)| !is_known(&case.body));
    came.map(|(path, case)| format!("{path}: {}", case.name)).collect()
}

/// Whether a file may be altered to try the tests.
pub(super) fn is_mutable(path: &str) -> bool {
    const GENERATED: [&str; 6] = [".min.js", "_pb2.py", ".pb.go", ".d.ts", ".pyi", "_generated.go"];
    const FOLDERS: [&str; 8] =
        ["node_modules", "vendor", "dist", "build", "target", "migrations", "generated", "third_party"];
    const SETTINGS: [&str; 5] = ["build.rs", "setup.py", "conftest.py", "noxfile.py", "__init__.pyi"];
    let lower = path.to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or_default();
    CodeSyntax::from_path(path).is_some()
        && !is_test_path(path)
        && !SETTINGS.contains(&name)
        && !name.contains(".config.")
        && !GENERATED.iter().any(|ending| lower.ends_with(ending))
        && !lower.split('/').rev().skip(1).any(|part| FOLDERS.contains(&part))
}

/// The mutations to try, in order; none if the change has no tests of its own, or nothing that could be altered.
///
/// Lines that only moved are left out. Of each line the most telling alteration comes first, and the files take turns.
#[must_use]
pub fn choose_mutations(files: &[ChangedFile], inputs: &[ProtectedInput]) -> Vec<Mutation> {
    if tests_of_change(files).is_empty() {
        return Vec::new();
    }
    let gone: BTreeSet<&str> = files.iter().flat_map(|file| &file.removed).map(|line| line.trim()).collect();
    let mut queues: Vec<Vec<MutationCandidate<'_>>> = files
        .iter()
        .filter(|file| is_mutable(&file.path) && !protected::is_input(&file.path, inputs))
        .map(|file| find_mutation_candidates(file, &gone))
        .collect();
    let mut chosen: Vec<Mutation> = Vec::new();
    let mut turn = 0;
    while chosen.len() < MUTATIONS_MAX && queues.iter().any(|queue| turn < queue.len()) {
        let waiting = queues.iter_mut().filter_map(|queue| queue.get(turn));
        chosen.extend(waiting.take(MUTATIONS_MAX - chosen.len()).map(MutationCandidate::to_mutation));
        turn += 1;
    }
    let mut sizes: BTreeSet<usize> =
        files.iter().filter_map(|file| file.after.as_ref()).map(String::len).collect();
    for mutation in
        chosen.iter_mut().filter(|mutation| CodeSyntax::from_path(&mutation.path) == Some(CodeSyntax::Python))
    {
        // Python takes a compiled file for the same if time, in seconds, and size are: each has a size of its own.
        loop {
            mutation.text.push('\n');
            if sizes.insert(mutation.text.len()) {
                break;
            }
        }
    }
    chosen
}

/// An alteration of one line.
struct MutationCandidate<'a> {
    file: &'a ChangedFile,
    text: &'a str,
    /// The line by its place, and where it begins.
    line: usize,
    begin: usize,
    /// How many alterations of this line come before it.
    rank: usize,
    alteration: MutationEdit,
}

/// Bytes that are replaced, from the beginning of the line.
struct MutationEdit {
    from: usize,
    to: usize,
    by: String,
    /// The lower, the more likely a test notices it.
    kind: usize,
}

impl MutationCandidate<'_> {
    fn to_mutation(&self) -> Mutation {
        let MutationEdit { from, to, by, .. } = &self.alteration;
        let line = self.text[self.begin..].lines().next().unwrap_or_default();
        let altered = format!("{}{by}{}", &line[..*from], &line[*to..]);
        let (before, after) = (line.trim().to_owned(), altered.trim().to_owned());
        let rest = &self.text[self.begin + line.len()..];
        Mutation {
            path: self.file.path.clone(),
            line: u64::try_from(self.line + 1).unwrap_or(u64::MAX),
            before,
            after,
            text: format!("{}{altered}{rest}", &self.text[..self.begin]),
        }
    }
}

/// The alterations of the changed lines of a file, the best first.
fn find_mutation_candidates<'a>(file: &'a ChangedFile, gone: &BTreeSet<&str>) -> Vec<MutationCandidate<'a>> {
    let (Some(text), Some(syntax)) = (&file.after, CodeSyntax::from_path(&file.path)) else {
        return Vec::new();
    };
    let changed = added_lines(file.before.as_deref().unwrap_or_default(), text);
    let tests = if syntax == CodeSyntax::Rust { rust_tests::module_ranges(text) } else { Vec::new() };
    let masked = mask_code(syntax, text);
    let mut found = Vec::new();
    let mut begin = 0;
    for (place, line) in text.split_inclusive('\n').enumerate() {
        let here = begin;
        begin += line.len();
        let line = line.trim_end_matches(['\n', '\r']);
        let is_of_test = tests.iter().any(|range| range.contains(&here));
        if !changed.contains(&place) || is_of_test || gone.contains(line.trim()) || !is_telling(syntax, line)
        {
            continue;
        }
        let mut alterations = find_mutation_edits(syntax, line, &masked[here..here + line.len()]);
        alterations.sort_by_key(|alteration| (alteration.kind, alteration.from));
        let ranked = alterations.into_iter().enumerate().map(|(rank, alteration)| MutationCandidate {
            file,
            text,
            line: place,
            begin: here,
            rank,
            alteration,
        });
        found.extend(ranked);
    }
    // Other lines before another alteration of one; in each round what tests notice best.
    found.sort_by_key(|candidate| (candidate.rank, candidate.alteration.kind, candidate.line));
    found
}

/// Whether the line may do something that tests are about: no import, message or version.
fn is_telling(syntax: CodeSyntax, line: &str) -> bool {
    const BEGINS: [&str; 22] = [
        "import ",
        "from ",
        "use ",
        "pub use ",
        "mod ",
        "pub mod ",
        "package ",
        "#[",
        "#![",
        "#!",
        "#include",
        "#define",
        "@",
        "assert",
        "debug_assert",
        "export {",
        "export *",
        "extern crate",
        "log.",
        "logger.",
        "logging.",
        "set -",
    ];
    const HOLDS: [&str; 21] = [
        "console.",
        ".expect(",
        "eprint",
        "dbg!",
        "panic!",
        "unreachable!",
        "todo!",
        "debug!(",
        "info!(",
        "warn!(",
        "error!(",
        "trace!(",
        "raise ",
        "throw ",
        "errors.New(",
        "fmt.Errorf(",
        "bail!(",
        "require(",
        "import(",
        "__name__",
        ">&2",
    ];
    let code = line.trim();
    let is_split =
        line.trim_end().ends_with('\\') && matches!(syntax, CodeSyntax::Shell | CodeSyntax::Python);
    !is_split
        && line.len() < 2_000
        && !BEGINS.iter().any(|begin| code.starts_with(begin))
        && !HOLDS.iter().any(|part| code.contains(part))
        && !code.to_ascii_lowercase().contains("version")
}

/// Operators with what takes their place, most telling first. Blanks keep them apart from generics, arrows and references.
const OPERATORS: [(&str, &str); 24] = [
    (" === ", " !== "),
    (" !== ", " === "),
    (" == ", " != "),
    (" != ", " == "),
    (" <= ", " > "),
    (" >= ", " < "),
    (" < ", " >= "),
    (" > ", " <= "),
    (" && ", " || "),
    (" || ", " && "),
    (" + ", " - "),
    (" - ", " + "),
    (" * ", " + "),
    (" / ", " * "),
    (" % ", " + "),
    (" += ", " -= "),
    (" -= ", " += "),
    (" *= ", " += "),
    (" and ", " or "),
    (" or ", " and "),
    (" is not ", " is "),
    (" is None", " is not None"),
    (" not in ", " in "),
    (" // ", " + "),
];
const SHELL_OPERATORS: [(&str, &str); 14] = [
    (" = ", " != "),
    (" == ", " != "),
    (" != ", " = "),
    (" -eq ", " -ne "),
    (" -ne ", " -eq "),
    (" -lt ", " -ge "),
    (" -ge ", " -lt "),
    (" -gt ", " -le "),
    (" -le ", " -gt "),
    (" -z ", " -n "),
    (" -n ", " -z "),
    (" + ", " - "),
    (" - ", " + "),
    (" * ", " + "),
];
const WORDS: [(&str, &str); 4] = [("true", "false"), ("false", "true"), ("True", "False"), ("False", "True")];
/// Kinds of alterations after those of operators.
const WORD: usize = 100;
const RETURN: usize = 110;
const NUMBER: usize = 120;
const TEXT: usize = 130;
const COMMAND: usize = 140;

/// Every alteration of one line whose mask is given.
fn find_mutation_edits(syntax: CodeSyntax, line: &str, masked: &[u8]) -> Vec<MutationEdit> {
    let code_begin = body_begin(syntax, line, masked);
    // Every masked byte is ASCII, or one of a character outside of quotes: then nothing is found there.
    let code: String =
        masked.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '\u{1}' }).collect();
    let is_shell = syntax == CodeSyntax::Shell;
    let operators: &[(&str, &str)] = if is_shell { &SHELL_OPERATORS } else { &OPERATORS };
    let mut found = Vec::new();
    let mut note = |from: usize, to: usize, by: &str, kind: usize| {
        if from >= code_begin {
            found.push(MutationEdit { from, to, by: by.to_owned(), kind });
        }
    };
    for (kind, (old, new)) in operators.iter().enumerate() {
        if *old == " // " && syntax != CodeSyntax::Python {
            continue;
        }
        if let Some(at) = code[code_begin.min(code.len())..].find(old).map(|at| at + code_begin) {
            note(at, at + old.len(), new, kind);
        }
    }
    for (old, new) in WORDS {
        let is_one = |at: usize| is_alone(masked, at, old.len());
        if let Some((at, _)) = code.match_indices(old).find(|(at, _)| *at >= code_begin && is_one(*at)) {
            note(at, at + old.len(), new, if is_shell { COMMAND } else { WORD });
        }
    }
    let indent = code.len() - code.trim_start().len();
    let returned = code[indent..].strip_prefix("return ").map(str::trim_end);
    let is_whole = |value: &str| {
        ['(', '[', '{']
            .iter()
            .zip([')', ']', '}'])
            .all(|(open, close)| value.matches(*open).count() == value.matches(close).count())
    };
    match (syntax, returned) {
        (CodeSyntax::Python, Some(value)) if is_whole(value) && value != "None" => {
            note(indent, indent + "return ".len() + value.len(), "return None", RETURN);
        }
        (CodeSyntax::Script, Some(value))
            if is_whole(value) && value.ends_with(';') && value != "undefined;" =>
        {
            note(indent, indent + "return ".len() + value.len(), "return undefined;", RETURN);
        }
        _ => {}
    }
    if let Some((from, to)) = whole_number(masked, code_begin)
        && let Ok(number) = code[from..to].parse::<u32>()
    {
        note(from, to, &(u64::from(number) + 1).to_string(), NUMBER);
    }
    if let Some(inside) = text_begin(line, masked, code_begin) {
        note(inside, inside, "x", TEXT);
    }
    for command in ["echo ", "printf "] {
        if is_shell && code[indent..].starts_with(command) {
            note(indent, indent + command.len(), ": ", COMMAND);
        }
    }
    found
}

/// Where the body of a function begins that is on one line with its signature; the beginning of the line otherwise.
fn body_begin(syntax: CodeSyntax, line: &str, masked: &[u8]) -> usize {
    let code = line.trim_start();
    let begins = |words: &[&str]| {
        words.iter().any(|word| code.starts_with(word) || code.contains(&format!(" {word}")))
    };
    let is_signature = match syntax {
        CodeSyntax::Rust => begins(&["fn ", "struct ", "enum ", "impl ", "impl<", "trait ", "where "]),
        CodeSyntax::Go => begins(&["func "]),
        CodeSyntax::Script => begins(&["function ", "class "]),
        CodeSyntax::Python => {
            code.starts_with("def ") || code.starts_with("async def ") || code.starts_with("class ")
        }
        CodeSyntax::Braces | CodeSyntax::Shell => false,
    };
    let opens = match syntax {
        CodeSyntax::Python => masked.windows(2).position(|pair| pair == b"):").map(|at| at + 2),
        _ => masked.iter().position(|byte| *byte == b'{').map(|at| at + 1),
    };
    if is_signature { opens.unwrap_or(masked.len()) } else { 0 }
}

/// Whether these bytes are no part of a longer name or number.
fn is_alone(masked: &[u8], at: usize, length: usize) -> bool {
    let joins = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$' | b'-') || !byte.is_ascii()
    };
    let before = at.checked_sub(1).and_then(|at| masked.get(at));
    !before.is_some_and(joins) && !masked.get(at + length).is_some_and(|byte| joins(byte) && *byte != b'-')
}

fn whole_number(masked: &[u8], begin: usize) -> Option<(usize, usize)> {
    let mut at = begin;
    while at < masked.len() {
        let length = masked[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length > 0 && is_alone(masked, at, length) {
            return Some((at, at + length));
        }
        at += length.max(1);
    }
    None
}

/// The place behind the first quote of a text that holds something.
fn text_begin(line: &str, masked: &[u8], begin: usize) -> Option<usize> {
    let open = begin + masked.get(begin..)?.iter().position(|byte| *byte == QUOTED)?;
    let quote = line.as_bytes()[open..].iter().position(|byte| matches!(byte, b'"' | b'\'' | b'`'))? + open;
    let next = line.as_bytes().get(quote + 1)?;
    // A character holds one, and what begins with a backslash or a brace is no plain text.
    let is_character = masked.get(quote + 3) != Some(&QUOTED);
    let is_plain = next.is_ascii_alphanumeric() || *next == b' ';
    (masked.get(quote + 1) == Some(&QUOTED) && is_plain && !is_character).then_some(quote + 1)
}

/// Whether what a check wrote says that it could not build the code.
#[must_use]
pub fn could_not_build(output: &str) -> bool {
    const MARKS: [&str; 7] = [
        "could not compile",
        "[build failed]",
        "[setup failed]",
        "error TS",
        "SyntaxError",
        "IndentationError",
        "syntax error",
    ];
    MARKS.iter().any(|mark| output.contains(mark))
}
