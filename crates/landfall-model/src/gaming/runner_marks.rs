//! Lines by which code reaches into the test runner, or asks whether it is being tested. They are read as text: another
//! spelling can always evade them.

use super::{ChangedFile, Language, cases, ecosystems, is_test_path, rust_tests};

/// What is known of the file that a line is in.
struct MarkContext<'a> {
    path: &'a str,
    is_test: bool,
    /// Whether it helps tests and is no test itself: it may import what they import.
    is_helper: bool,
    /// Whether a program begins here: it may end where it likes.
    is_entry: bool,
    /// Whether `exit` is a name of `std::process::exit` here.
    imports_exit: bool,
    /// Names in this file for a library that asserts, or for a part of it.
    libraries: Vec<String>,
    /// Lines of a Rust file that ask what runs it, without those of its test modules.
    asking_lines: Vec<String>,
}

/// The first added line that does; none for honest code.
pub(super) fn find_marked_line(file: &ChangedFile) -> Option<&String> {
    if ecosystems::loaded_by(file).is_some() {
        return None; // it is protected as a whole
    }
    let added = file.added.join("\n");
    let text = file.after.as_deref().unwrap_or(&added);
    let context = MarkContext {
        path: &file.path,
        imports_exit: text.contains("process::exit;")
            || text.lines().any(|line| line.contains("process::{") && has_word(line, "exit")),
        is_test: is_test_path(&file.path) || !cases::test_cases(&file.path, text).is_empty(),
        is_helper: is_test_helper(&file.path),
        is_entry: is_entry(&file.path, text),
        libraries: assertion_library_names(&file.path, text),
        asking_lines: asking_lines(&file.path, text),
    };
    file.added.iter().enumerate().find_map(|(at, line)| {
        let code = normalize_spacing(line);
        let is_mark = !is_comment(&code)
            && (asks_for_tests(&context, &code)
                || asks_for_caller(&context, &code)
                || reaches_in(&context, &code, &file.added[at + 1..]));
        is_mark.then_some(line)
    })
}

/// The lines of product code that name a variable of Cargo, a thread or the program, as [`normalize_spacing`] writes them. A file of the
/// product may hold tests.
fn asking_lines(path: &str, text: &str) -> Vec<String> {
    let asks = |line: &str| ["CARGO_", "current", "args"].iter().any(|word| line.contains(word));
    if Language::from_path(path) != Language::Rust || is_test_path(path) || !asks(text) {
        return Vec::new();
    }
    let product = rust_tests::without_modules(text);
    product.lines().filter(|line| asks(line)).map(normalize_spacing).collect()
}

/// The first function of a Go test file that product code beside it had: the product has it no more, and its tests do not tell.
pub(super) fn product_in_tests<'a>(file: &'a ChangedFile, files: &[ChangedFile]) -> Option<&'a String> {
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let is_product = |other: &&ChangedFile| other.path.ends_with(".go") && !other.path.ends_with("_test.go");
    if !file.path.ends_with("_test.go") {
        return None;
    }
    let beside = || files.iter().filter(is_product).filter(|other| folder(&other.path) == folder(&file.path));
    file.added.iter().find(|line| {
        let Some(function) = go_function(line) else { return false };
        let declares = |line: &String| go_function(line).as_ref() == Some(&function);
        beside().any(|other| other.removed.iter().any(declares))
            && !beside().any(|other| other.added.iter().any(declares))
    })
}

/// The type and the name of the method that a line of Go declares, or the name of a function. What a method calls its receiver
/// and whether that is a pointer do not count: a type has one method of a name.
fn go_function(line: &str) -> Option<(Option<&str>, &str)> {
    let rest = line.strip_prefix("func ")?.trim_start();
    let (receiver, rest) = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map(|(receiver, rest)| (Some(receiver), rest))?,
        None => (None, rest),
    };
    let name = rest[..rest.find(['(', '['])?].trim();
    let on = match receiver {
        Some(receiver) => Some(receiver_type(receiver)?),
        None => None,
    };
    (!name.is_empty()).then_some((on, name))
}

/// The type that a receiver of Go names, without its parameters.
fn receiver_type(receiver: &str) -> Option<&str> {
    let plain = receiver.split('[').next()?;
    Some(plain.split_whitespace().last()?.trim_start_matches('*'))
}

/// The line without blanks beside punctuation, so that every spelling is one.
fn normalize_spacing(line: &str) -> String {
    let is_name = |char: char| char.is_alphanumeric() || matches!(char, '_' | '$' | '/' | '#' | '*');
    let mut tight = String::new();
    for word in line.split_whitespace() {
        let joins =
            tight.chars().next_back().is_some_and(is_name) && word.chars().next().is_some_and(is_name);
        if joins {
            tight.push(' ');
        }
        tight.push_str(word);
    }
    tight
}

fn words_of(code: &str) -> impl Iterator<Item = &str> {
    code.split(|char: char| !(char.is_alphanumeric() || matches!(char, '_' | '$')))
        .filter(|word| !word.is_empty())
}

fn has_word(code: &str, wanted: &str) -> bool {
    words_of(code).any(|word| word == wanted)
}

/// A file that helps tests by its name, or that of its folder.
fn is_test_helper(path: &str) -> bool {
    const NAMES: [&str; 8] = [
        "testutil",
        "testing",
        "testkit",
        "testhelper",
        "test_helper",
        "test_support",
        "testsupport",
        "testlib",
    ];
    let lower = path.to_ascii_lowercase();
    lower.split('/').any(|part| NAMES.iter().any(|name| part.starts_with(name)))
}

fn is_entry(path: &str, text: &str) -> bool {
    const STEMS: [&str; 8] = ["main", "__main__", "cli", "app", "index", "server", "run", "manage"];
    const FOLDERS: [&str; 6] = ["bin", "cmd", "scripts", "tools", "cli", "xtask"];
    let mut parts: Vec<&str> = path.split('/').collect();
    let stem = parts.pop().and_then(|name| name.split('.').next()).unwrap_or_default();
    STEMS.contains(&stem)
        || parts.iter().any(|part| FOLDERS.contains(part))
        || text.starts_with("#!/")
        || (path.ends_with(".go") && text.lines().any(|line| line.trim() == "package main"))
}

fn is_comment(code: &str) -> bool {
    code.starts_with("//") && !code.starts_with("//go:")
        || code.starts_with('#') && !code.starts_with("#[") && !code.starts_with("#![")
        || code.starts_with('*')
}

/// Names of a library that asserts: its own, and those that the file gives to it.
fn assertion_library_names(path: &str, text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut add = |list: &str| {
        for part in list.split([',', '{', '}']) {
            let name = part.split(" as ").last().unwrap_or_default().rsplit(':').next().unwrap_or_default();
            let name = name.trim_matches(['*', ' ', '(', ')']).trim_start_matches("as ");
            if !name.is_empty() && words_of(name).next() == Some(name) {
                names.push(name.to_owned());
            }
        }
    };
    match Language::from_path(path) {
        Language::Python => {
            ["unittest", "pytest", "TestCase"].iter().for_each(|name| add(name));
            for line in text.lines() {
                let code = line.trim();
                if let Some(list) = code.strip_prefix("import ") {
                    let named = list.split(',').filter(|part| is_python_runner(part));
                    named.filter(|part| part.contains(" as ")).for_each(&mut add);
                } else if let Some((module, list)) =
                    code.strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
                    && is_python_runner(module)
                {
                    add(list);
                }
            }
        }
        Language::Script => {
            ["assert", "expect", "chai"].iter().for_each(|name| add(name));
            for line in text.lines() {
                let code = plain_requires(&normalize_spacing(line));
                let declared = ["const ", "let ", "var "].iter().find_map(|word| code.strip_prefix(word));
                let declared = declared.or_else(|| code.strip_prefix("const")).unwrap_or_default();
                if let Some((list, from)) = declared.split_once('=')
                    && matches!(from.trim_end_matches(';'), "assert" | "assert.strict" | "chai")
                {
                    add(list);
                }
                if let Some((list, from)) =
                    code.strip_prefix("import").and_then(|rest| rest.rsplit_once("from"))
                    && is_assertion_module(from.trim_end_matches(';'))
                {
                    add(list);
                }
            }
        }
        Language::Rust | Language::Go | Language::Jvm | Language::Other | Language::Prose => {}
    }
    names.truncate(LIBRARIES_MAX);
    names
}

const LIBRARIES_MAX: usize = 50; // names in one file; each added line is compared with them

fn is_python_runner(module: &str) -> bool {
    let root = module.trim().split(['.', ' ']).next().unwrap_or_default();
    matches!(root, "unittest" | "pytest" | "_pytest")
}

fn is_assertion_module(quoted: &str) -> bool {
    let name = quoted.trim().trim_matches(['\'', '"', '`']);
    matches!(name.trim_start_matches("node:"), "assert" | "assert/strict" | "chai")
}

/// The code with the name of a library in place of the call that loads it.
fn plain_requires(code: &str) -> String {
    let mut plain = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("require(") {
        let inside = &rest[at + 8..];
        let Some((name, behind)) = inside.split_once(')').filter(|(name, _)| is_assertion_module(name))
        else {
            plain.push_str(&rest[..at + 8]);
            rest = inside;
            continue;
        };
        plain.push_str(&rest[..at]);
        plain.push_str(if name.contains("chai") { "chai" } else { "assert" });
        rest = behind;
    }
    plain + rest
}

/// Variables and names that only a test run has.
fn asks_for_tests(context: &MarkContext<'_>, code: &str) -> bool {
    const NAMES: [&str; 12] = [
        "PYTEST_CURRENT_TEST",
        "PYTEST_VERSION",
        "NODE_TEST_CONTEXT",
        "JEST_WORKER_ID",
        "VITEST_WORKER_ID",
        "VITEST_POOL_ID",
        "NEXTEST",
        "NEXTEST_RUN_ID",
        "npm_lifecycle_event",
        "npm_lifecycle_script",
        "LANDFALL_CHECK",
        "LANDFALL_TASK",
    ];
    let path = context.path;
    let is_code = match Language::from_path(path) {
        Language::Rust | Language::Python | Language::Go | Language::Script | Language::Jvm => true,
        Language::Other => {
            path.ends_with(".sh") || !path.rsplit('/').next().unwrap_or_default().contains('.')
        }
        Language::Prose => false,
    };
    is_code && words_of(code).any(|word| NAMES.contains(&word))
}

/// Product code that asks on one line who called or started it, and whether that is a test.
fn asks_for_caller(context: &MarkContext<'_>, code: &str) -> bool {
    // A Rust file of the product may hold its tests.
    let is_product = match Language::from_path(context.path) {
        Language::Rust => context.asking_lines.iter().any(|line| line == code),
        _ => !context.is_test,
    };
    if !is_product || context.is_helper {
        return false;
    }
    let has = |marks: &[&str]| marks.iter().any(|mark| code.contains(mark));
    match Language::from_path(context.path) {
        Language::Python => {
            const FRAMES: [&str; 6] =
                ["_getframe", "currentframe(", "extract_stack(", "inspect.stack(", "co_filename", "co_name"];
            has(&FRAMES) && names_tests(code)
        }
        Language::Script => has(&[".stack", "captureStackTrace("]) && names_tests(code),
        Language::Go => {
            const CALLERS: [&str; 6] = [
                "runtime.Caller",
                "runtime.FuncForPC(",
                "debug.Stack(",
                "os.Args[0]",
                "os.Executable(",
                "filepath.Base(os.Args",
            ];
            has(&CALLERS) && names_tests(code)
        }
        // The harness runs each test in a thread of its name, and a program its code in `main`.
        Language::Rust => {
            let of_thread = has(&["current().name()"]) && has(&["Some(\"main\")", "\"main\"=", "=\"main\""]);
            let of_program =
                has(&["current_exe()", "env::args"]) && (names_tests(code) || has(&["\"deps\""]));
            of_thread || of_program
        }
        Language::Other => {
            let is_shell = context.path.ends_with(".sh");
            is_shell && (has(&["/proc/$PPID", "/proc/${PPID"]) || (has_word(code, "ps") && has(&["$PPID"])))
        }
        Language::Jvm | Language::Prose => false,
    }
}

/// Whether a text in quotes has a word that names tests: `test_`, `.spec.`, `_test`.
fn names_tests(code: &str) -> bool {
    let is_name = |word: &str| {
        let word = word.to_lowercase();
        ["test", "tests", "spec", "specs", "conftest", "pytest", "jest", "vitest", "mocha"]
            .contains(&word.as_str())
            || word.starts_with("test_")
            || word.ends_with("_test")
    };
    code.split(['"', '\'', '`']).skip(1).step_by(2).any(|quoted| words_of(quoted).any(is_name))
}

fn reaches_in(context: &MarkContext<'_>, code: &str, next: &[String]) -> bool {
    match Language::from_path(context.path) {
        Language::Python => python_reaches_in(context, code),
        Language::Script => script_reaches_in(context, code),
        Language::Go => go_reaches_in(context, code),
        Language::Rust => rust_reaches_in(context, code, next),
        Language::Other => {
            let squeezed: String = code.split_whitespace().collect();
            let ends_well = code.starts_with("trap") && squeezed.contains("exit0");
            let is_shell = !context.is_test && context.path.ends_with(".sh");
            is_shell && (ends_well || shell_function(code).is_some_and(is_comparison))
        }
        Language::Jvm | Language::Prose => false,
    }
}

fn python_reaches_in(context: &MarkContext<'_>, code: &str) -> bool {
    let has = |marks: &[&str]| marks.iter().any(|mark| code.contains(mark));
    let imported = code.strip_prefix("import ").is_some_and(|list| list.split(',').any(is_python_runner))
        || code.strip_prefix("from ").is_some_and(is_python_runner)
        || (has(&["__import__(", "import_module("])
            && has(&["'unittest", "\"unittest", "'pytest", "\"pytest", "'_pytest", "\"_pytest"]));
    let decides = ["def load_tests(", "load_tests=", "__test__=False", "collect_ignore"]
        .iter()
        .any(|mark| code.starts_with(mark))
        || has(&["unittest.main=", "builtins.AssertionError", "__builtins__"])
        || has_word(code, "_exit")
        || (!context.is_entry && has(&["os.exec"]));
    let looks = has(&["sys.modules", "sys.argv", "orig_argv", "stack(", "_getframe"]);
    let asks = (looks && has(&["pytest", "unittest"])) || code.starts_with("TEST_RUNNER=");
    let is_named = |name: &String| has_word(code, name);
    let sets = has(&["setattr("]) && context.libraries.iter().any(is_named);
    let imports = imported && !context.is_test && !context.is_helper;
    decides || asks || sets || imports || assigns_member(code, &context.libraries)
}

fn script_reaches_in(context: &MarkContext<'_>, code: &str) -> bool {
    const HOOKS: [&str; 4] =
        ["process.on(", "process.once(", "process.addListener(", "process.prependListener("];
    const WRITES: [&str; 4] = ["Object.assign(", "defineProperty(", "Reflect.set(", "setPrototypeOf("];
    let code = plain_requires(code);
    let has = |marks: &[&str]| marks.iter().any(|mark| code.contains(mark));
    let is_hook = has(&HOOKS) && has(&["'exit'", "\"exit\"", "beforeExit"]);
    let ends_well = has(&["process.exitCode=0", "process.exit(0)", "process.exit()"]);
    let decides = has(&[
        "require.cache[",
        "Module._load",
        "Module.prototype.require",
        "process.reallyExit",
        "process.exit=",
    ]) || (is_hook && has(&["process.exit", "process.abort", "process.kill"]));
    let of_program = has(&["process.argv", "require.main", "module.parent"]);
    let asks = (has(&["execArgv"]) && has(&["--test"]))
        || (of_program
            && !context.is_test
            && !context.is_helper
            && has(&[".test", ".spec", "jest", "vitest", "mocha"]));
    let imports = has(&["node:test'", "node:test\"", "require('vitest", "from'vitest", "from\"vitest"]);
    let is_named = |name: &String| has_word(&code, name);
    let globals = ["global", "globalThis"].iter().any(|global| {
        ["expect", "test", "it", "assert", "describe"].iter().any(|name| {
            let assigned = code.strip_prefix(&format!("{global}.{name}="));
            assigned.is_some_and(|rest| !rest.starts_with('='))
        })
    });
    let patches = !code.starts_with("import")
        && (globals
            || assigns_member(&code, &context.libraries)
            || (has(&WRITES) && context.libraries.iter().any(is_named)));
    decides
        || patches
        || asks
        || (imports && !context.is_test && !context.is_helper)
        || (ends_well && (context.is_test || !context.is_entry))
        || (context.is_test && has(&["process.exit("]))
}

fn go_reaches_in(context: &MarkContext<'_>, code: &str) -> bool {
    let has = |marks: &[&str]| marks.iter().any(|mark| code.contains(mark));
    let imported = code.strip_prefix("import").unwrap_or(code).trim_start();
    let name = imported.strip_suffix("\"testing\"");
    let imports =
        name.is_some_and(|name| name.chars().all(|char| char.is_alphanumeric() || "._".contains(char)));
    let is_test = context.path.ends_with("_test.go") || context.is_helper;
    (imports && !is_test)
        || code.starts_with("func TestMain(")
        || has(&["go:linkname"])
        || (!is_test && has(&["Lookup(\"test.", "testing.Testing()", "\".test\""]))
        || (has(&["os.Exit(0)", "syscall.Exit(0)"]) && !is_go_program(context))
}

fn is_go_program(context: &MarkContext<'_>) -> bool {
    let name = context.path.rsplit('/').next().unwrap_or_default();
    name == "main.go" || format!("/{}", context.path).contains("/cmd/") || context.is_entry
}

fn rust_reaches_in(context: &MarkContext<'_>, code: &str, next: &[String]) -> bool {
    let has = |marks: &[&str]| marks.iter().any(|mark| code.contains(mark));
    // What is in quotes is the name of a feature.
    let unquoted: String = code.split('"').step_by(2).collect();
    let is_about_tests = has_word(&unquoted, "test") || has_word(&unquoted, "debug_assertions");
    let asks = unquoted.contains("cfg!(") && is_about_tests;
    let attribute = code.strip_prefix("#[cfg(").or(code.strip_prefix("#![cfg("));
    let excludes = attribute.is_some() && unquoted.contains("not(test") && !is_for_the_program(next);
    let excludes = excludes || (has(&["cfg_attr("]) && unquoted.contains("not(test") && has(&["path="]));
    // The file that the module had stays, and its tests are not built any more.
    let moves = code.starts_with("#[path=") && !context.is_test;
    let includes = attribute.is_some()
        && is_about_tests
        && !unquoted.contains("not(test")
        && is_statement(code.split_once(")]").map_or("", |(_, rest)| rest), next);
    let ends_well = has(&["process::exit(0"])
        || (context.imports_exit
            && code.match_indices("exit(0").any(|(at, _)| {
                !code[..at].ends_with(|char: char| char.is_alphanumeric() || matches!(char, '_' | '.' | ':'))
            }));
    // Cargo sets these for what it starts: a program that is installed has none of them.
    let asks_for_cargo = has(&["env::var"])
        && has(&["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PRIMARY_PACKAGE", "CARGO_TARGET_TMPDIR"]);
    let is_product = context.asking_lines.iter().any(|line| line == code);
    let asks = asks || (asks_for_cargo && is_product && !context.is_helper && !context.is_entry);
    asks || excludes
        || includes
        || moves
        || has(&["macro_rules!assert", "macro_rules!debug_assert"])
        || (ends_well && !context.is_entry)
}

/// Whether what follows is needed where no test harness is: a panic handler, say.
fn is_for_the_program(next: &[String]) -> bool {
    const ITEMS: [&str; 4] =
        ["#[panic_handler]", "#[global_allocator]", "#[alloc_error_handler]", "extern crate"];
    next.iter().take(4).any(|line| ITEMS.iter().any(|item| line.trim().starts_with(item)))
}

/// Whether an attribute is about a statement: the code behind it on its line, or on the next ones.
fn is_statement(behind: &str, next: &[String]) -> bool {
    const ITEMS: [&str; 15] = [
        "mod",
        "use",
        "fn",
        "pub",
        "async",
        "unsafe",
        "const",
        "static",
        "struct",
        "enum",
        "impl",
        "trait",
        "type",
        "extern",
        "macro_rules",
    ];
    const STATEMENTS: [&str; 9] =
        ["return", "if", "let", "match", "loop", "while", "for", "break", "continue"];
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//") && !line.starts_with("#[");
    let lines = std::iter::once(behind.trim()).chain(next.iter().take(5).map(|line| line.trim()));
    let Some(code) = lines.into_iter().find(is_code) else { return false };
    let first = words_of(code).next().unwrap_or_default();
    let is_item = ITEMS.contains(&first) && !code.starts_with('{');
    !is_item && (code.starts_with('{') || code.ends_with(';') || STATEMENTS.contains(&first))
}

/// Whether the line assigns to a member of one of these: `unittest.TestCase.assertEqual = lambda *a: None`.
fn assigns_member(code: &str, owners: &[String]) -> bool {
    let is_in_name = |char: char| char.is_alphanumeric() || matches!(char, '_' | '$');
    owners.iter().any(|owner| {
        code.match_indices(owner.as_str()).any(|(at, _)| {
            let before = code[..at].chars().next_back();
            let rest = &code[at + owner.len()..];
            if before.is_some_and(|char| is_in_name(char) || char == '.') || !rest.starts_with(['.', '[']) {
                return false;
            }
            let is_member = |char: char| is_in_name(char) || matches!(char, '.' | '[' | ']' | '\'' | '"');
            let behind = rest.trim_start_matches(is_member);
            behind.starts_with('=') && !behind[1..].starts_with(['=', '>'])
        })
    })
}

/// Whether a line that comes to a script can keep the one that reads it from failing.
pub(super) fn ends_the_reader(line: &str) -> bool {
    const BEGINNINGS: [&str; 6] = ["trap ", "alias ", "exec ", "set +e", "unset ", "kill "];
    let code = line.trim();
    let ends = |part: &str| matches!(part.trim(), "exit" | "exit 0" | "exit $?");
    BEGINNINGS.iter().any(|beginning| code.starts_with(beginning))
        || ecosystems::sets_runner_variable(code)
        || code.split([';', '{', '}', '&', '|']).any(ends)
        || shell_function(code).is_some_and(is_comparison)
}

/// The name of a shell function that the line defines.
pub(super) fn shell_function(code: &str) -> Option<&str> {
    let code = code.trim().trim_start_matches("function ");
    let (name, rest) = code.split_once("()")?;
    let is_name = !name.is_empty() && !name.contains([' ', '$', '"', '\'', '(']);
    let opens = rest.trim().is_empty() || rest.trim_start().starts_with(['{', '(']);
    (is_name && opens).then_some(name)
}

/// Whether a shell function of this name takes the place of something that tests compare with.
fn is_comparison(name: &str) -> bool {
    const COMMANDS: [&str; 9] = ["[", "test", "grep", "diff", "cmp", "exit", "fail", "false", "die"];
    COMMANDS.contains(&name) || name.starts_with("assert") || name.starts_with("expect")
}
