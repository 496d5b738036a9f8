//! Shows checks while they run, and explains what did not pass: for `check`, `init` and `doctor`.

use landfall_api::{CommandReport, Outcome, ProjectChecked};
use landfall_app::CheckView;
use landfall_text::control_chars::escape_line;

use crate::live::Interrupts;
use crate::say::{print_data, print_message};

/// Prints each check with what it writes, or nothing for programs.
pub struct CheckPrinter<'a> {
    interrupts: &'a Interrupts,
    shows_output: bool,
    shows_checks: bool,
}

impl<'a> CheckPrinter<'a> {
    /// One that shows all output.
    pub fn with_output(interrupts: &'a Interrupts) -> Self {
        Self { interrupts, shows_output: true, shows_checks: true }
    }

    /// One that shows a line for each check.
    pub fn with_check_lines(interrupts: &'a Interrupts) -> Self {
        Self { interrupts, shows_output: false, shows_checks: true }
    }

    /// One that shows nothing: a program reads the answer.
    pub fn without_output(interrupts: &'a Interrupts) -> Self {
        Self { interrupts, shows_output: false, shows_checks: false }
    }
}

impl CheckView for CheckPrinter<'_> {
    fn command_started(&mut self, name: &str, run: &str) {
        match (self.shows_output, self.shows_checks) {
            (true, _) => {
                let _ = print_data(&format!("{}: {}\n", escape_line(name), escape_line(run))); // a reader that left is noticed at the end
            }
            (false, true) => print_message(&format!("checking {}: {}", escape_line(name), escape_line(run))),
            (false, false) => {}
        }
    }

    fn line_written(&mut self, line: &str) {
        if self.shows_output {
            let _ = print_data(&format!("  {}\n", escape_line(&line.replace('\t', "    ")))); // as above
        }
    }

    fn command_ended(&mut self, result: &CommandReport) {
        if self.shows_output {
            let _ = print_data(&format!("{}\n\n", result_line(result))); // as above
        }
    }

    fn is_stopped(&self) -> bool {
        self.interrupts.count_seen() > 0
    }
}

/// Whether a check passed.
pub fn is_green(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Pass | Outcome::Flaky => true,
        Outcome::PreExisting | Outcome::Fail | Outcome::Timeout | Outcome::Broken => false,
    }
}

/// How a check ended, in a line.
pub fn result_line(result: &CommandReport) -> String {
    let took = landfall_text::format_duration(result.took_ms);
    let tests = result
        .tests
        .map(|tests| format!(", {}", landfall_text::pluralize(tests, "test")))
        .unwrap_or_default();
    let name = escape_line(&result.name);
    let optional = if result.required { "" } else { " (not required)" };
    match (result.outcome, result.exit) {
        (Outcome::Pass, _) => format!("ok    {name} in {took}{tests}"),
        (Outcome::Flaky, _) => format!("ok    {name} in {took}{tests}, at the second try"),
        (Outcome::Timeout, _) => {
            format!(
                "FAIL  {name}{optional}: no end within {}",
                landfall_text::format_duration(result.limit_ms)
            )
        }
        (_, Some(0)) if result.tests == Some(0) => format!("FAIL  {name}{optional}: ran no test"),
        (_, Some(code)) => format!("FAIL  {name}{optional}: exit {code} after {took}{tests}"),
        (_, None) => format!("FAIL  {name}{optional}: it was killed"),
    }
}

/// The verdict, and for each check that did not pass what to do about it.
pub fn verdict_text(checked: &ProjectChecked) -> String {
    let of = match &checked.task {
        Some(task) => format!("the work of {task}, merged with `{}`", escape_line(&checked.branch)),
        None => format!("`{}`", escape_line(&checked.branch)),
    };
    let commit = landfall_text::short_commit(&checked.commit);
    let red: Vec<&CommandReport> =
        checked.commands.iter().filter(|it| it.required && !is_green(it.outcome)).collect();
    if checked.commands.is_empty() {
        return format!(
            "no check is set for {of}: nothing is proved\nhint: name your test command under [[verify.command]] in landfall.toml\n"
        );
    }
    if red.is_empty() {
        let known = if checked.reused { " (known from an earlier check)" } else { "" };
        return format!("the checks pass on {of} at {commit}{known}\n");
    }
    let mut text = format!("the checks do not pass on {of} at {commit}\n");
    for command in red {
        for line in explain_failed_check(command, checked) {
            text += &line;
            text.push('\n');
        }
    }
    text
}

/// What went wrong with a check, and how it is mended.
pub fn explain_failed_check(command: &CommandReport, checked: &ProjectChecked) -> Vec<String> {
    let name = escape_line(&command.name);
    let mut lines = Vec::new();
    if !command.denied.is_empty() {
        for denied in &command.denied {
            lines.push(format!(
                "the check `{name}` tried to {} `{}`, which the sandbox denies",
                escape_line(&denied.access),
                escape_line(&denied.path)
            ));
        }
        lines.push("hint: allow it with this line under [run] in landfall.toml:".to_owned());
        lines.extend(checked.allow.iter().map(|line| format!("    {}", escape_line(line))));
        lines.push("  then `landfall trust` and `landfall check`".to_owned());
        if checked.task.is_none() {
            lines.push(
                "  `landfall check --unconfined` runs it outside of the sandbox to confirm it".to_owned(),
            );
        }
        return lines;
    }
    let program = missing_program(command);
    match (command.outcome, command.exit) {
        (Outcome::Timeout, _) => {
            let limit = landfall_text::format_duration(command.limit_ms);
            lines.push(format!("the check `{name}` did not end within {limit}"));
            lines.push("hint: give it more time with `timeout` in its [[verify.command]]".to_owned());
        }
        (_, Some(127)) | (_, Some(1 | 2)) if program.is_some() => {
            let program = program.expect("just seen");
            lines.push(format!(
                "the check `{name}` needs `{}`, which is not installed",
                escape_line(&program)
            ));
            lines.push(match install_hint(&program) {
                Some(how) => format!("hint: install it with `{how}`, then `landfall check`"),
                None => "hint: install it, then `landfall check`".to_owned(),
            });
        }
        (_, Some(0)) if command.tests == Some(0) => {
            lines.push(format!("the check `{name}` passes but runs no test, so it proves nothing yet"));
            lines
                .push("hint: agents may start all the same; nothing lands before there is a test".to_owned());
        }
        (_, Some(code)) => {
            lines.push(format!("the check `{name}` fails there with exit {code}"));
            lines.push(match checked.task {
                Some(task) => {
                    format!("hint: its output is above; `landfall why {task}` says what happens next")
                }
                None => "hint: repair it and commit, then `landfall check`;\n  \
                         to let an agent repair it, commit `red_base = \"start\"` under [verify]"
                    .to_owned(),
            });
        }
        (_, None) => lines.push(format!("the check `{name}` was killed; `landfall check` runs it again")),
    }
    lines
}

/// The program that a check did not find, as its shell or its runner says.
fn missing_program(command: &CommandReport) -> Option<String> {
    let module = |line: &str| {
        let (_, rest) = line.split_once("No module named ")?;
        let name: String =
            rest.trim_matches(['\'', '"']).chars().take_while(|c| !"'\". ".contains(*c)).collect();
        Some(name).filter(|name| !name.is_empty())
    };
    let shell = |line: &str| {
        let before = line.strip_suffix(": not found").or_else(|| line.strip_suffix(": command not found"))?;
        before.rsplit(' ').next().map(str::to_owned)
    };
    command.excerpt.lines().rev().map(str::trim).find_map(|line| shell(line).or_else(|| module(line)))
}

/// How a well-known tool is installed.
pub fn install_hint(program: &str) -> Option<&'static str> {
    Some(match program {
        "uv" => "pip install uv",
        "tox" => "pip install tox",
        "pytest" => "pip install pytest",
        "poetry" => "pip install poetry",
        "pnpm" => "npm install --global pnpm",
        "yarn" => "npm install --global yarn",
        "bun" => "npm install --global bun",
        "npm" | "node" => "apt-get install npm",
        "go" => "apt-get install golang-go",
        "make" => "apt-get install make",
        "python3" => "apt-get install python3",
        "cargo" => "apt-get install cargo",
        _ => return None,
    })
}
