//! `docs/reference/terminal/`: every command as a terminal of 80 columns shows it, by the real program.
//!
//! `LANDFALL_BLESS=1` writes the files again. Times, commits and paths are replaced, so that they are the same on every machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::autopilot::{OnTerminal, writes};

const COLUMNS: u16 = 80;
/// What is no longer than a command in it; nobody can break a command in two.
const UNBREAKABLE: &[char] = &['`', '/'];

/// What the program shows on a terminal.
fn shown(scratch: &ScratchProject, args: &[&str]) -> String {
    let mut terminal = OnTerminal::start_with_columns(scratch, args, &[("NO_COLOR", "1")], COLUMNS);
    terminal.end(scratch); // whatever its exit code
    // The last bytes may still be on their way from the terminal.
    let mut before = String::new();
    scratch.eventually("the whole of the output", || {
        let now = terminal.screen();
        let is_whole = !now.is_empty() && now == before;
        before = now;
        is_whole
    });
    before.replace("\r\n", "\n")
}

/// All commands that are not hidden, with their subcommands, as `landfall help --all` lists them.
fn commands(scratch: &ScratchProject) -> Vec<Vec<String>> {
    let all = scratch.landfall(&["help", "--all"]).ok();
    let listed = all.lines().take_while(|line| !line.starts_with("Options:"));
    let named = listed.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    // A name has 22 columns, and a longer one a line of its own.
    let words = named.map(|line| match line.split_at_checked(22) {
        Some((name, about)) if about.starts_with(' ') => name.trim_end(),
        _ => line,
    });
    words.map(|name| name.split(' ').map(str::to_owned).collect()).collect()
}

/// A project with a task in every state that has something to say.
fn project() -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.task("Add a greeting", &writes("greeting.txt"), &[]);
    scratch.task("Support tabs", "signal = \"pending:Tabs or spaces?\"\n", &[]);
    scratch.task("Migrate the database", "signal = \"blocked:the schema is missing\"\n", &[]);
    scratch.task(
        "Report on the migrated data of the last quarter",
        &writes("report.txt"),
        &["--needs", "T3"],
    );
    scratch.task("Remove the old importer", &writes("old.txt"), &[]);
    scratch.task("Document the importer", &writes("doc.txt"), &["--needs", "T5", "--tag", "docs"]);
    scratch.landfall(&["cancel", "T5", "--reason", "still used"]).ok();
    scratch.landfall(&["run", "--slots", "1"]);
    scratch
}

/// Commands whose output on that project is worth seeing. They read, and do not wait. Nothing that is broken at the width of
/// the terminal may contain what differs in length: the time of an iteration, a level of the sandbox, a long path.
const OUTPUTS: [&[&str]; 28] = [
    &["--help"],
    &["list"],
    &["show", "T4"],
    &["status"],
    &["log", "T5"],
    &["stats"],
    &["why", "T1"],
    &["why", "T2"],
    &["why", "T3"],
    &["why", "T4"],
    &["why", "T6"],
    &["report"],
    &["report", "T3"],
    &["check"],
    &["review"],
    &["trust"],
    &["sprint", "list"],
    &["checkpoint", "list"],
    &["project", "flow", "list"],
    &["project", "discoveries"],
    &["task", "papers", "T1"],
    &["inbox"],
    &["queue"],
    &["diff", "T1"],
    &["certificate", "T1"],
    &["graph"],
    &["retry", "T9"],
    &["answer", "T2"],
];

/// The output without what differs between machines and moments.
fn steady(scratch: &ScratchProject, text: &str) -> String {
    let root = scratch.root().display().to_string();
    let text = text.replace(&root, "/scratch");
    text.lines().map(steady_line).collect()
}

fn steady_line(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut differs = false;
    let line = &without_sequence(line);
    if line.starts_with("disk  ") {
        return "disk    20.5 GB free\n".to_owned();
    }
    for word in line.split(' ') {
        let core = word.trim_matches(|c: char| "(),.;:`".contains(c));
        let steady = steady_word(core);
        differs |= steady.as_deref().is_some_and(|steady| steady.len() != core.len()) || steady.is_some();
        words.push(steady.map_or_else(|| word.to_owned(), |steady| word.replacen(core, &steady, 1)));
    }
    if !differs {
        return format!("{}\n", line.trim_end());
    }
    // Columns move with the width of a time; gaps of more than two do not say anything.
    let indent = line.len() - line.trim_start().len();
    let mut gaps = 0;
    let mut text = " ".repeat(indent.min(8));
    for word in words.iter().skip_while(|word| word.is_empty()) {
        match word.is_empty() {
            true => gaps += 1,
            false => {
                if !text.trim().is_empty() {
                    text += if gaps > 0 { "  " } else { " " };
                }
                text += word;
                gaps = 0;
            }
        }
    }
    text + "\n"
}

/// A line of the log begins with the number of the event, which depends on what else was written meanwhile.
fn without_sequence(line: &str) -> String {
    let number = line.trim_start().split(' ').next().unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let rest = line.trim_start().strip_prefix(number).unwrap_or_default();
    match is_number && rest.starts_with(" 20") {
        true => format!("{:>6}{rest}", "7"),
        false => line.to_owned(),
    }
}

/// What stands for a word that differs from run to run.
fn steady_word(word: &str) -> Option<String> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts = |by: char| word.split(by).map(str::to_owned).collect::<Vec<_>>();
    if word.len() >= 7 && is_hex(word) && word.bytes().any(|byte| byte.is_ascii_digit()) {
        return Some("3f2a9c0d1e7b".chars().cycle().take(word.len()).collect());
    }
    if parts('-').len() == 3 && parts('-').iter().all(|part| digits(part)) {
        return Some("2026-11-19".to_owned());
    }
    if (2..=3).contains(&parts(':').len()) && parts(':').iter().all(|part| digits(part)) {
        return Some(if parts(':').len() == 3 { "07:30:00" } else { "07:30" }.to_owned());
    }
    let number = word.trim_end_matches(|c: char| "msh".contains(c));
    let unit = &word[number.len()..];
    if matches!(unit, "s" | "ms" | "m" | "h") && number.split('.').all(digits) && !number.is_empty() {
        return Some("1.5s".to_owned());
    }
    None
}

#[test]
fn every_command_at_80_columns_is_in_the_reference() {
    let scratch = project();
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |scratch: &ScratchProject, args: &[&str]| {
        let name = match args {
            ["--help"] => "landfall",
            [name, ..] => name,
            [] => unreachable!("no command"),
        };
        let text = steady(scratch, &shown(scratch, args));
        let page = format!("$ landfall {}\n{text}\n", args.join(" "));
        files.entry(format!("{name}.txt")).or_default().push_str(&page);
    };
    for args in OUTPUTS {
        add(&scratch, args);
    }
    let all = commands(&scratch);
    assert!(all.len() > 60, "{all:?}");
    for command in &all {
        let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
        args.push("--help");
        add(&scratch, &args);
    }
    for (name, text) in &files {
        // Usage is written by clap, which does not break it.
        for line in text.lines().filter(|line| !line.contains(UNBREAKABLE) && !line.starts_with("Usage:")) {
            assert!(line.chars().count() <= COLUMNS.into(), "{name}: {line}");
        }
        assert!(!text.contains('\u{1b}'), "{name}: NO_COLOR is respected");
    }
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/terminal");
    if std::env::var_os("LANDFALL_BLESS").is_some() {
        let _ = std::fs::remove_dir_all(&folder); // not there the first time
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        for (name, text) in &files {
            std::fs::write(folder.join(name), text).expect("a file can be written");
        }
    }
    let there = std::fs::read_dir(&folder).map_or(0, std::iter::Iterator::count);
    assert_eq!(there, files.len(), "LANDFALL_BLESS=1 writes the files again");
    for (name, text) in &files {
        let kept = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert_eq!(&kept, text, "{name}: LANDFALL_BLESS=1 writes it again");
    }
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let scratch = project();
    let status = |variables: &[(&str, &str)]| {
        let mut terminal = OnTerminal::start_with_columns(&scratch, &["list"], variables, COLUMNS);
        terminal.end(&scratch);
        scratch.eventually("the list", || terminal.screen().contains("T6"));
        terminal.screen()
    };
    assert!(status(&[]).contains("\u{1b}[31mblocked"), "{}", status(&[]));
    for without in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        assert!(!status(&[without]).contains('\u{1b}'), "{without:?}");
    }
    let piped = scratch.command(&["list"]).env_remove("NO_COLOR").output().expect("it runs");
    assert!(!String::from_utf8_lossy(&piped.stdout).contains('\u{1b}'), "a pipe has no colours");
}
