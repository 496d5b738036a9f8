//! Whether a test file that comes may alter how the other tests run: it may share a process with them.
//!
//! It reads text. What it cannot tell counts as "may", which costs one more run of the checks and asks nobody.

use std::collections::BTreeSet;

use super::code_text::{CodeSyntax, QUOTED, mask_code};
use super::{ChangedFile, Language};

/// Whether it may. `sources_tests`: a script of the check reads files into its own shell whose names cannot be told.
pub(super) fn may_alter_other_tests(file: &ChangedFile, sources_tests: bool) -> bool {
    let Some(text) = &file.after else { return Language::from_path(&file.path) != Language::Rust };
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let lines = code_lines(&file.path, text);
    match Language::from_path(&file.path) {
        Language::Rust => false, // in Cargo it is a program of its own
        Language::Python => name.starts_with("__") || !is_plain(&PYTHON, &lines),
        Language::Go => !is_plain(&GO, &lines) || text.contains("//go:"),
        Language::Script => !is_plain(&SCRIPT, &lines),
        Language::Other if CodeSyntax::from_path(&file.path) == Some(CodeSyntax::Shell) => sources_tests,
        Language::Other | Language::Jvm | Language::Prose => true,
    }
}

/// The lines without comments; what is in quotes is marked. In Python, what brackets keep together is one line.
fn code_lines(path: &str, text: &str) -> Vec<String> {
    let Some(syntax) = CodeSyntax::from_path(path) else { return text.lines().map(str::to_owned).collect() };
    let code = String::from_utf8_lossy(&mask_code(syntax, text)).into_owned();
    let mut lines: Vec<String> = Vec::new();
    let mut depth = 0i64;
    for line in code.lines().map(str::trim_end) {
        match lines.last_mut().filter(|_| depth > 0 && syntax == CodeSyntax::Python) {
            Some(begun) => begun.push_str(line),
            None => lines.push(line.to_owned()),
        }
        for char in line.chars() {
            depth += i64::from(matches!(char, '(' | '[' | '{')) - i64::from(matches!(char, ')' | ']' | '}'));
        }
    }
    lines
}

/// What a test file of a language may hold without a doubt.
struct TestFileGrammar {
    /// How lines at the very left begin.
    top: &'static [&'static str],
    /// What lets code reach into other modules, or end the process.
    reaches: &'static [&'static str],
    /// Words that declare a name.
    declares: &'static [&'static str],
    /// Words by which a name stands for another module.
    imports: &'static [&'static str],
}

const PYTHON: TestFileGrammar = TestFileGrammar {
    top: &["import ", "from ", "def ", "async def ", "class ", "@", ")", "]", "}", "if __name__ =="],
    reaches: &[
        "setattr",
        "delattr",
        "globals(",
        "vars(",
        "__dict__",
        "__class__",
        "__builtins__",
        "exec(",
        "eval(",
        "compile(",
        "__import__",
        "importlib",
        "sys.",
        "ctypes",
        "gc.",
        ".start(",
        "autouse",
        "pytest_",
        "load_tests",
        "atexit",
        "signal",
        "_exit",
        "exit(",
        "kill(",
        "builtins",
        "addCleanup",
        "addModuleCleanup",
        "inspect",
        "faulthandler",
        "_getframe",
        "f_globals",
    ],
    declares: &[],
    imports: &["import ", "from "],
};

const SCRIPT: TestFileGrammar = TestFileGrammar {
    top: &[
        "import ",
        "const ",
        "let ",
        "var ",
        "test(",
        "it(",
        "describe(",
        "suite(",
        "function ",
        "async function ",
        "class ",
        "\"",
        "}",
        ")",
        "]",
        "test.each",
        "it.each",
        "describe.each",
    ],
    reaches: &[
        "require.",
        "Object.define",
        "Object.assign",
        "Reflect",
        "Proxy",
        "eval(",
        "Function(",
        "process.",
        "prototype",
        "globalThis",
        "global.",
        "window.",
        "__proto__",
        "delete ",
        "setPrototypeOf",
        "register(",
        "import(",
        "mock",
        "stub",
        "spy",
        "setup",
    ],
    declares: &["const ", "let ", "var "],
    imports: &["require(", "import "],
};

const GO: TestFileGrammar = TestFileGrammar {
    top: &["package ", "import ", "func ", "type ", "const ", ")", "}", "var "],
    reaches: &[
        "unsafe",
        "reflect.",
        "os.Exit",
        "runtime.",
        "linkname",
        "syscall",
        "flag.",
        "testing.Init",
        "plugin",
        "Setenv",
        "func init(",
        "func TestMain(",
        "func (",
    ],
    declares: &["var ", "const "],
    imports: &["import "],
};

fn is_plain(rules: &TestFileGrammar, lines: &[String]) -> bool {
    let reaches = |line: &String| rules.reaches.iter().any(|mark| line.contains(mark));
    let is_top = |line: &&String| line.chars().next().is_some_and(|char| !char.is_whitespace());
    if lines.iter().any(reaches) || !lines.iter().filter(is_top).all(|line| is_plain_top(rules, line)) {
        return false;
    }
    let own = own_names(rules, lines);
    let changes_own = |assignment: Assignment<'_>| {
        let is_new = assignment.is_short || declared_name(rules, assignment.target).is_some();
        is_new
            || assignment.target.split(',').all(|target| {
                let target = target.trim().trim_start_matches(['*', '(', '[']);
                let root = target.split(['.', '[', ')', ']', ':']).next().unwrap_or_default().trim();
                matches!(root, "_" | "self" | "cls" | "this") || own.contains(root)
            })
    };
    // An imported module is changed by `x.y = …`, a name of the file by `x = …`.
    lines.iter().flat_map(|line| find_assignments(line)).all(changes_own)
}

/// Whether a line at the very left only declares. A call there runs as soon as the file is read; requiring a module is what
/// others do as well.
fn is_plain_top(rules: &TestFileGrammar, line: &str) -> bool {
    let is_import = rules.imports.iter().any(|word| line.contains(word));
    let begins = |words: &[&str]| words.iter().any(|begin| line.starts_with(begin));
    match find_assignments(line).first() {
        Some(first) if rules.declares.is_empty() || begins(rules.declares) => {
            let is_call = has_call(first.value) && !first.value.contains("=>") && !is_import;
            let is_target = !rules.declares.is_empty() || is_name(first.target);
            is_target && !is_call
        }
        Some(_) | None => begins(rules.top),
    }
}

/// Whether a value calls something: a parenthesis behind a name.
fn has_call(value: &str) -> bool {
    value.match_indices('(').any(|(at, _)| {
        let before = value[..at].trim_end().chars().next_back();
        before.is_some_and(|char| char.is_alphanumeric() || matches!(char, '_' | ')' | ']'))
    })
}

/// Names that the file gives to values of its own: made by a call, or written there. One for a module is none of them.
fn own_names<'a>(rules: &TestFileGrammar, lines: &'a [String]) -> BTreeSet<&'a str> {
    const VALUES: [&str; 8] = ["True", "False", "None", "true", "false", "null", "nil", "new "];
    let mut names = BTreeSet::new();
    for line in lines.iter().filter(|line| !rules.imports.iter().any(|word| line.contains(word))) {
        let assigned = find_assignments(line);
        if assigned.is_empty() {
            names.extend(declared_name(rules, line)); // `let total;`
        }
        for Assignment { target, value, is_short } in assigned {
            let is_made = value.contains('(')
                || value.starts_with(['[', '{', '-', '&', char::from(QUOTED)])
                || value.starts_with(|char: char| char.is_ascii_digit())
                || VALUES.iter().any(|word| value.starts_with(word));
            let may_be_bare = rules.declares.is_empty() || is_short;
            let name_of = |part: &'a str| {
                let bare =
                    part.split(':').next().unwrap_or_default().trim().rsplit(' ').next().unwrap_or_default();
                declared_name(rules, part)
                    .or_else(|| may_be_bare.then_some(bare))
                    .filter(|name| is_name(name))
            };
            names.extend(target.split(',').filter_map(name_of).filter(|_| is_made));
        }
    }
    names
}

/// The name behind a word that declares one.
fn declared_name<'a>(rules: &TestFileGrammar, target: &'a str) -> Option<&'a str> {
    let rest = rules.declares.iter().find_map(|word| target.trim_start().strip_prefix(word))?;
    rest.split(|char: char| !(char.is_alphanumeric() || char == '_')).next()
}

/// `target = value` in a line of code.
struct Assignment<'a> {
    target: &'a str,
    value: &'a str,
    /// Whether it is `:=`, which declares.
    is_short: bool,
}

/// What a line assigns: no comparisons, no arguments by name, no defaults of parameters.
fn find_assignments(line: &str) -> Vec<Assignment<'_>> {
    let bytes = line.as_bytes();
    let byte_at = |at: usize| bytes.get(at).copied().unwrap_or(b' ');
    let mut found = Vec::new();
    // Inside of braces there may be statements, whatever is around them: each has its brackets and its beginning.
    let mut outer: Vec<(i64, usize)> = Vec::new();
    let (mut depth, mut begin) = (0i64, 0);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' => {
                outer.push((depth, begin));
                (depth, begin) = (0, at + 1);
            }
            b'}' => (depth, begin) = outer.pop().unwrap_or((0, at + 1)),
            b';' => begin = at + 1,
            b'=' if depth <= 0 => {
                let before = at.checked_sub(1).map_or(b' ', byte_at);
                let is_comparison =
                    matches!(before, b'=' | b'!' | b'<' | b'>') || matches!(byte_at(at + 1), b'=' | b'>');
                if !is_comparison {
                    let target =
                        line[begin..at].trim_end_matches(['+', '-', '*', '/', '|', '&', '%', '?', ':', '^']);
                    let value = line[at + 1..].split(';').next().unwrap_or_default();
                    let (target, value) = (target.trim(), value.trim());
                    found.push(Assignment { target, value, is_short: before == b':' });
                }
            }
            _ => {}
        }
    }
    found
}

fn is_name(text: &str) -> bool {
    let first = text.chars().next().is_some_and(|char| char.is_alphabetic() || char == '_');
    first && text.chars().all(|char| char.is_alphanumeric() || char == '_')
}
