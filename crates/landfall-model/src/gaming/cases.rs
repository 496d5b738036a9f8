//! The tests that a file holds, each with its assertions. It reads lines, not languages: what it cannot tell it takes for a
//! test that can fail.

use super::{Language, begins_a_test, is_test_path, rust_tests};

/// One test as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCase {
    /// As the runner reports it, with the class before it in Python.
    pub name: String,
    /// Its lines.
    pub body: Vec<String>,
    /// The lines that assert something that could be false.
    pub assertions: Vec<String>,
    /// Whether it can fail as far as its lines tell: by an assertion, or by a call that may.
    pub can_fail: bool,
    /// Whether it has nothing in it that could fail, not even a call.
    pub is_hollow: bool,
}

const CASES_MAX: usize = 5_000; // of one file; more are generated
const BODY_MAX: usize = 2_000; // lines of one test

/// The tests of a file. A shell script where tests live is one test.
#[must_use]
pub fn test_cases(path: &str, text: &str) -> Vec<TestCase> {
    let lines: Vec<&str> = text.lines().collect();
    let mut cases = Vec::new();
    match Language::from_path(path) {
        Language::Python => python_cases(&lines, &mut cases),
        Language::Rust | Language::Go | Language::Script | Language::Jvm => {
            let mut at = 0;
            while at < lines.len() && cases.len() < CASES_MAX {
                at = match begins_a_test(path, lines[at]) {
                    true => braced_case(path, &lines, at, &mut cases),
                    false => at + 1,
                };
            }
        }
        Language::Other | Language::Prose => {
            let is_script =
                is_test_path(path) && [".sh", ".bash", ".bats"].iter().any(|ending| path.ends_with(ending));
            if is_script {
                let name = path.rsplit('/').next().unwrap_or_default();
                cases.push(make_test_case(path, name.to_owned(), &lines, false));
            }
        }
    }
    cases
}

fn python_cases(lines: &[&str], cases: &mut Vec<TestCase>) {
    let mut class: Option<(usize, &str)> = None;
    for (at, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let code = line.trim_start();
        if class.is_some_and(|(place, _)| indent <= place) && !code.is_empty() {
            class = None;
        }
        if let Some(rest) = code.strip_prefix("class ") {
            class = Some((indent, word_of(rest)));
        }
        let Some(rest) = code.strip_prefix("async ").unwrap_or(code).strip_prefix("def ") else { continue };
        let name = word_of(rest);
        if !name.starts_with("test") || cases.len() >= CASES_MAX {
            continue;
        }
        let deeper = |line: &&&str| line.trim().is_empty() || line.len() - line.trim_start().len() > indent;
        let mut body: Vec<&str> = Vec::new();
        // `def test_a(): pass`
        let signature = lines[at..].iter().take(20).position(|line| line.trim_end().ends_with(':'));
        let begin = match code.rsplit_once("):") {
            Some((_, same_line)) if !same_line.trim().is_empty() && !same_line.trim().starts_with('#') => {
                body.push(same_line);
                at + 1
            }
            Some(_) | None => at + signature.unwrap_or(0) + 1,
        };
        body.extend(lines[begin.min(lines.len())..].iter().take_while(deeper).take(BODY_MAX));
        let name = class.map_or_else(|| name.to_owned(), |(_, class)| format!("{class}.{name}"));
        cases.push(make_test_case(".py", name, &body, false));
    }
}

/// A test in braces or parentheses that begins at this line, or whose mark does; the line after it.
fn braced_case(path: &str, lines: &[&str], mark: usize, cases: &mut Vec<TestCase>) -> usize {
    let language = Language::from_path(path);
    let mut panics = false;
    let mut begin = mark;
    let name = match language {
        Language::Rust => loop {
            let Some(line) = lines.get(begin) else { return begin };
            panics |= line.contains("should_panic");
            if let Some(at) = line.find("fn ") {
                break word_of(&line[at + 3..]).to_owned();
            }
            if begin > mark + 20 {
                return mark + 1;
            }
            begin += 1;
        },
        Language::Jvm => loop {
            let Some(line) = lines.get(begin) else { return begin };
            if !line.trim_start().starts_with('@')
                && let Some(at) = line.find('(')
            {
                break line[..at].split_whitespace().next_back().unwrap_or_default().to_owned();
            }
            if begin > mark + 20 {
                return mark + 1;
            }
            begin += 1;
        },
        Language::Go => word_of(lines[mark].trim_start().trim_start_matches("func ")).to_owned(),
        Language::Script => {
            let line = lines[mark];
            let quote = line.find(['\'', '"', '`']);
            let named = quote.and_then(|at| {
                let mark = line[at..].chars().next()?;
                line[at + 1..].split(mark).next()
            });
            named.unwrap_or_else(|| line.trim()).to_owned()
        }
        Language::Python | Language::Other | Language::Prose => return mark + 1,
    };
    let mut depth = 0i64;
    let mut has_opened = false;
    let mut end = begin;
    while end < lines.len() && end - begin < BODY_MAX {
        for char in without_strings(lines[end]).chars() {
            match char {
                '{' | '(' => depth += 1,
                '}' | ')' => depth -= 1,
                _ => {}
            }
            // In other languages than JavaScript the parameters are closed before the body opens.
            has_opened |= char == '{' || (language == Language::Script && char == '(');
        }
        end += 1;
        if has_opened && depth <= 0 {
            break;
        }
    }
    let mut body: Vec<&str> = lines[begin..end].to_vec();
    // Only what is behind the signature counts.
    let first = body[0];
    let behind = match language {
        Language::Script => first
            .find("=>")
            .map(|at| &first[at..])
            .or_else(|| first.find("function").map(|at| &first[at + 8..])),
        _ => None,
    };
    let behind = behind.unwrap_or(first);
    body[0] = behind
        .find('{')
        .map_or(if language == Language::Script { behind } else { "" }, |at| &behind[at + 1..]);
    if let [line] = body.as_mut_slice() {
        let end = line.trim_end().trim_end_matches(';');
        *line = end.strip_suffix("})").or(end.strip_suffix('}')).unwrap_or(line); // of the test itself
    }
    cases.push(make_test_case(path, name, &body, panics));
    end
}

fn make_test_case(path: &str, name: String, body: &[&str], panics: bool) -> TestCase {
    let body = reachable_lines(body);
    let code: Vec<&str> = body.iter().map(|line| line.trim()).filter(|line| !is_comment(line)).collect();
    let is_caught = catches_failures(&code);
    let assertions: Vec<String> = match is_caught {
        true => Vec::new(),
        false => code
            .iter()
            .filter(|line| asserts_something(path, line))
            .map(|line| normalize_spaces(line))
            .collect(),
    };
    let may = |line: &&str| {
        const MAY: [&str; 13] = [
            "unwrap(",
            ".expect(",
            "?;",
            "check",
            "verify",
            "ensure",
            "must",
            "raise ",
            "throw ",
            "panic!",
            "fail",
            "Exception",
            "Snapshot",
        ];
        MAY.iter().any(|word| line.contains(word))
    };
    let can_fail = panics || !assertions.is_empty() || (!is_caught && code.iter().any(may));
    // A call may fail, too; only a test without one is hollow.
    let calls = |line: &&str| line.contains('(') && !is_trivial(line);
    let is_hollow = !can_fail && !code.iter().any(calls);
    TestCase {
        name,
        body: code.iter().map(|line| normalize_spaces(line)).collect(),
        assertions,
        can_fail,
        is_hollow,
    }
}

/// The lines before the first one that always ends the test.
fn reachable_lines<'a>(body: &[&'a str]) -> Vec<&'a str> {
    let indent_of = |line: &str| line.len() - line.trim_start().len();
    let indent = body
        .iter()
        .skip(usize::from(body.len() > 1))
        .filter(|line| !line.trim().is_empty())
        .map(|line| indent_of(line))
        .min();
    let ends = |line: &str| {
        let code = line.trim().trim_end_matches(';');
        let ends = matches!(
            code,
            "return"
                | "return None"
                | "return undefined"
                | "exit"
                | "exit 0"
                | "return 0"
                | "sys.exit(0)"
                | "process.exit(0)"
        );
        ends && indent == Some(indent_of(line))
    };
    let is_last =
        |at: usize| body[at + 1..].iter().all(|line| line.trim().trim_matches(['}', ')', ';']).is_empty());
    match body.iter().position(|line| ends(line)) {
        Some(at) if !is_last(at) => body[..at].to_vec(),
        Some(_) | None => body.to_vec(),
    }
}

/// Whether a test catches its own failures: all that follows `try` ends in a handler that does nothing.
fn catches_failures(code: &[&str]) -> bool {
    let python = code.windows(2).any(|pair| {
        let is_broad = ["except:", "except Exception", "except BaseException", "except AssertionError"]
            .iter()
            .any(|word| pair[0].starts_with(word));
        let same_line = pair[0].ends_with(": pass") || pair[0].ends_with(": return");
        is_broad && (same_line || matches!(pair[1], "pass" | "return" | "..."))
    });
    let script = code.iter().enumerate().any(|(at, line)| {
        let squeezed: String = line.split_whitespace().collect();
        let is_empty =
            squeezed.contains("catch{}") || (squeezed.contains("catch(") && squeezed.ends_with("{}"));
        let opens = squeezed.contains("catch") && squeezed.ends_with('{');
        is_empty || (opens && code.get(at + 1).is_some_and(|next| next.starts_with('}')))
    });
    let first_try = code.first().is_some_and(|line| line.starts_with("try"));
    first_try && (python || script)
}

fn is_comment(line: &str) -> bool {
    line.is_empty()
        || line.starts_with("//")
        || line.starts_with('#') && !line.starts_with("#[")
        || line.starts_with("/*")
        || line.starts_with("* ")
}

/// Whether the line asserts something that could be false.
fn asserts_something(path: &str, line: &str) -> bool {
    const MARKS: [&str; 16] = [
        "assert",
        "expect(",
        "expect.",
        ".should",
        "should.",
        "require.",
        "t.Error",
        "t.Fatal",
        "t.Fail",
        ".raises(",
        "panic!(",
        "fail(",
        "t.is(",
        "t.deepEqual(",
        "t.equal(",
        "t.true(",
    ];
    const SHELL: [&str; 10] =
        ["[ ", "[[ ", "test ", "grep ", "diff ", "cmp ", "|| exit 1", "|| fail", "exit 1", "return 1"];
    let is_shell = Language::from_path(path) == Language::Other;
    let asserts = calls_helper(line)
        || MARKS.iter().any(|mark| line.contains(mark))
        || (is_shell && SHELL.iter().any(|mark| line.contains(mark)));
    asserts && !is_trivial(line)
}

/// Whether the line calls a function that asserts for its caller, as its name says.
pub(super) fn calls_helper(line: &str) -> bool {
    const HELPERS: [&str; 5] = ["check", "verify", "ensure", "expect", "must"];
    let call = line.trim().trim_start_matches("await ").trim_start_matches("self.");
    HELPERS.iter().any(|helper| call.starts_with(helper)) && call.contains('(')
}

/// Whether an assertion cannot be false: it compares something with itself, or asserts a constant.
pub(super) fn is_trivial(line: &str) -> bool {
    let code = line.trim().trim_end_matches(';');
    let inside = match code.split_once('(') {
        Some((head, rest)) if head.contains("expect") => {
            // `expect(a).toBe(a)`
            let Some((left, matcher)) = rest.split_once(").") else { return false };
            let right = matcher.split_once('(').map_or("", |(_, right)| right.trim_end_matches(')'));
            let is_constant = is_literal(left) && (right.is_empty() || is_literal(right));
            return (left.trim() == right.trim() && !right.is_empty())
                || (is_constant && !matcher.starts_with("not."));
        }
        Some((head, rest)) if head.to_ascii_lowercase().contains("assert") && !head.contains(' ') => {
            rest.strip_suffix(')').unwrap_or(rest)
        }
        Some(_) | None => match code.strip_prefix("assert ") {
            Some(rest) => rest,
            None => return matches!(code, "true" | ":" | "[ 1 = 1 ]" | "test 1 = 1" | "[ 0 -eq 0 ]"),
        },
    };
    let squeezed = inside.trim();
    if squeezed.ends_with(" or True") || squeezed.ends_with("|| true") {
        return true;
    }
    let sides: Vec<&str> = match squeezed.split_once("==") {
        Some((left, right)) => vec![left.trim(), right.trim().trim_start_matches('=').trim()],
        None => split_arguments(squeezed),
    };
    match sides.as_slice() {
        [only] => {
            matches!(*only, "True" | "true" | "1" | "not False" | "!false")
                || (is_literal(only) && !matches!(*only, "False" | "false" | "0"))
        }
        [left, right, ..] => {
            left == right
                || (matches!(*left, "true" | "True") && is_literal(right) && right.starts_with(['"', '\'']))
        }
        [] => false,
    }
}

/// Arguments that commas part outside of brackets and quotes.
fn split_arguments(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut quote, mut from) = (0i64, None, 0);
    for (at, char) in text.char_indices() {
        match (quote, char) {
            (Some(open), char) if char == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(char),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            (None, _) => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

fn is_literal(text: &str) -> bool {
    let text = text.trim();
    let quoted = text.len() >= 2
        && ['"', '\''].iter().any(|quote| {
            text.starts_with(*quote) && text.ends_with(*quote) && !text[1..text.len() - 1].contains(*quote)
        });
    quoted
        || matches!(text, "true" | "True" | "false" | "False" | "null" | "None")
        || (!text.is_empty() && text.chars().all(|char| char.is_ascii_digit() || char == '.'))
}

/// A line with single spaces.
fn normalize_spaces(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn word_of(text: &str) -> &str {
    text.split(|char: char| !(char.is_alphanumeric() || char == '_')).next().unwrap_or_default()
}

/// The line without what is in quotes and comments, so that brackets can be counted.
fn without_strings(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '/' if chars.peek() == Some(&'/') => break,
            '"' | '`' => {
                while let Some(inner) = chars.next() {
                    if inner == '\\' {
                        chars.next();
                    } else if inner == char {
                        break;
                    }
                }
            }
            // A lifetime has no second quote; a character has it at once.
            '\'' => {
                let rest: String = chars.clone().take(200).collect();
                if let Some(close) = rest.find('\'') {
                    for _ in 0..=rest[..close].chars().count() {
                        chars.next();
                    }
                }
            }
            other => out.push(other),
        }
    }
    out
}

/// The file of the work with the tests of the base in place of its own, for a Rust file that holds its unit tests. None if
/// there are none, or they are the same.
#[must_use]
pub fn with_tests_of_base(path: &str, base: &str, work: &str) -> Option<String> {
    let holds_both = Language::from_path(path) == Language::Rust && !is_test_path(path);
    holds_both.then(|| rust_tests::with_modules_of_base(base, work)).flatten()
}
