//! `landfall certificate`: the evidence of a landed task, shown or compared with a repository.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use landfall_api::{TaskAsked, TypedService, WireTaskId};
use landfall_text::control_chars::escape_line;
use serde_json::Value;

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::{print_data, print_json};

/// Show the proof of a landed task, or verify a certificate
///
/// Shows which checks ran on which tree, who approved what, and what landed. Prints JSON with `--json`, in a pipe and in a file.
/// `--verify` compares a certificate with the repository around it. It needs git but neither the engine nor its state.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["task", "verify"]))]
pub struct Args {
    /// Task, such as T7
    task: Option<WireTaskId>,
    /// Verify the certificate in FILE against this repository; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    verify: Option<PathBuf>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    match (args.task, args.verify) {
        (Some(task), _) => show_certificate(task, context),
        (None, Some(file)) => verify_certificate(&file, context),
        (None, None) => unreachable!("the argument group requires one of them"),
    }
}

fn show_certificate(task: WireTaskId, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let answer = context.open_service()?.certificate(TaskAsked { task })?;
    match context.json || !std::io::stdout().is_terminal() {
        true => print_json(&answer.certificate)?,
        false => print_data(&certificate_text(&answer.certificate))?,
    }
    Ok(CliExit::Ok)
}

fn verify_certificate(file: &std::path::Path, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let text = words::read_text(context, file)?;
    let certificate: Value = serde_json::from_str(&text).map_err(|error| {
        CommandFailure::usage_error(format!("`{}` is not JSON: {error}", file.display()))
            .with_hint("`landfall certificate T7 --json > T7.json` writes a certificate")
    })?;
    let checks = landfall_app::check_certificate(&context.at, &certificate)?;
    let holds = checks.iter().all(|check| check.holds);
    let answer = serde_json::json!({ "holds": holds, "checks": checks });
    context.print_answer(&answer, |_| {
        let mut text = String::new();
        for check in &checks {
            let mark = if check.holds { '✓' } else { '✗' };
            text += &format!("{mark} {}: {}\n", escape_line(&check.claim), escape_line(&check.detail));
        }
        text += match holds {
            true => "The certificate agrees with this repository.\n",
            false => "The certificate does not agree with this repository.\n",
        };
        text
    })?;
    Ok(if holds { CliExit::Ok } else { CliExit::SomeDidNotLand })
}

/// A certificate for people.
fn certificate_text(certificate: &Value) -> String {
    let text_at = |path: &str| {
        certificate
            .pointer(path)
            .and_then(Value::as_str)
            .map(|text| escape_line(text).into_owned())
            .unwrap_or_default()
    };
    let short = |path: &str| text_at(path).chars().take(10).collect::<String>();
    let number_at = |path: &str| certificate.pointer(path).and_then(Value::as_u64);
    let list_at = |path: &str| {
        certificate.pointer(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default().iter()
    };
    let mut text = format!("{} {}\n\n", text_at("/task"), text_at("/title"));

    text += &format!("Landed    commit {} on {}", short("/landing/commit"), short("/landing/base_before"));
    if let Some(at_ms) = certificate.pointer("/landing/at_ms").and_then(Value::as_i64) {
        text += &format!(", {}", landfall_text::format_local(at_ms));
    }
    text += &format!("\nTree      {}: verified, landed and merged again\n", short("/landing/tree"));
    let tests = number_at("/verification/tests_run")
        .map(|count| format!(", {}", landfall_text::pluralize(count, "test")));
    text += &format!("Verified  {}{}", text_at("/verification/outcome"), tests.unwrap_or_default());
    if certificate.pointer("/verification/pass_taken_over") == Some(&Value::Bool(true)) {
        text += " (the same tree had passed before)";
    }
    text.push('\n');
    for command in list_at("/verification/commands") {
        let field = |name: &str| escape_line(command[name].as_str().unwrap_or_default()).into_owned();
        let took = match command["copied_from_base"] == true {
            true => Some(", copied from the base".to_owned()),
            false => {
                command["took_ms"].as_u64().map(|ms| format!(" in {}", landfall_text::format_duration(ms)))
            }
        };
        let optional = if command["required"] == false { " (optional)" } else { "" };
        text += &format!(
            "          {} {}: `{}`{}{optional}\n",
            outcome_mark(&field("outcome")),
            field("name"),
            field("command"),
            took.unwrap_or_default()
        );
    }
    text += &format!("Sandbox   checks at {}", text_at("/verification/sandbox/level"));
    match text_at("/work/sandbox/level").as_str() {
        "" => text.push('\n'),
        level => text += &format!(", agents at {level}\n"),
    }
    let counted = |path: &str| number_at(path).map_or_else(|| "?".to_owned(), |count| count.to_string());
    if certificate.pointer("/tests/in_changed_files").is_some_and(Value::is_object) {
        text += &format!(
            "Tests     in changed files: {} before, {} after; assertions: {} before, {} after\n",
            counted("/tests/in_changed_files/tests_before"),
            counted("/tests/in_changed_files/tests_after"),
            counted("/tests/in_changed_files/assertions_before"),
            counted("/tests/in_changed_files/assertions_after"),
        );
    }
    if certificate.pointer("/tests/base_tests").is_some_and(Value::is_object) {
        text += &format!(
            "          tests of the base against the work: {}\n",
            text_at("/tests/base_tests/outcome")
        );
    }
    for input in list_at("/tests/protected_inputs") {
        let path = escape_line(input["path"].as_str().unwrap_or_default()).into_owned();
        text += &format!("          changed protected input: {path}\n");
    }
    let concerns = list_at("/review/concerns");
    if concerns.len() > 0 {
        text += "Review    approved";
        match text_at("/review/note").as_str() {
            "" => text.push('\n'),
            note => text += &format!(": {note}\n"),
        }
        for concern in concerns {
            text += &format!("          - {}\n", escape_line(concern["detail"].as_str().unwrap_or_default()));
        }
    }
    let iterations = number_at("/work/iterations").unwrap_or_default();
    text += &format!(
        "Work      {} after {}\n",
        short("/work/head"),
        landfall_text::pluralize(iterations, "iteration")
    );
    for criterion in list_at("/criteria") {
        text += &format!("Criterion {}\n", escape_line(criterion.as_str().unwrap_or_default()));
    }
    for warning in list_at("/warnings") {
        text += &format!("Warning   {}\n", escape_line(warning.as_str().unwrap_or_default()));
    }
    let task = text_at("/task");
    text + &format!(
        "\nVerify it in any clone: `landfall certificate {task} --json > {task}.json`,\n\
         then `landfall certificate --verify {task}.json`\n"
    )
}

/// The mark of an outcome.
fn outcome_mark(outcome: &str) -> char {
    match outcome {
        "pass" => '✓',
        "flaky" | "pre-existing" => '!',
        _ => '✗',
    }
}

#[cfg(test)]
mod tests {
    use super::certificate_text;

    #[test]
    fn a_certificate_is_shown_as_a_readable_proof() {
        let certificate = serde_json::json!({
            "v": 1, "task": "T4", "title": "Add reverse", "criteria": ["reverse abc gives cba"],
            "verification": {
                "outcome": "pass", "tests_run": 13, "tree": "2793933e5faccad1", "pass_taken_over": false,
                "commands": [
                    { "name": "tests", "command": "sh test.sh", "required": true, "outcome": "pass", "took_ms": 1200 },
                    { "name": "lint", "command": "sh lint.sh", "required": false, "outcome": "fail", "took_ms": 61000 },
                ],
                "sandbox": { "level": "isolated" },
            },
            "tests": {
                "protected_inputs": [{ "path": "Makefile" }],
                "base_tests": { "outcome": "pass" },
                "in_changed_files": {
                    "tests_before": 1, "tests_after": 1, "assertions_before": 4, "assertions_after": 5,
                },
            },
            "review": { "concerns": [{ "code": "protected-input", "detail": "it changes Makefile" }], "note": "fine" },
            "work": { "head": "1473098fb0aa", "iterations": 2, "sandbox": { "level": "write" } },
            "landing": { "commit": "165eead1ff22", "base_before": "61805f434d11", "tree": "2793933e5faccad1" },
            "warnings": ["lint \u{1b}[31mfailed"],
        });
        let expected = "\
T4 Add reverse

Landed    commit 165eead1ff on 61805f434d
Tree      2793933e5f: verified, landed and merged again
Verified  pass, 13 tests
          ✓ tests: `sh test.sh` in 1.2s
          ✗ lint: `sh lint.sh` in 1m 1s (optional)
Sandbox   checks at isolated, agents at write
Tests     in changed files: 1 before, 1 after; assertions: 4 before, 5 after
          tests of the base against the work: pass
          changed protected input: Makefile
Review    approved: fine
          - it changes Makefile
Work      1473098fb0 after 2 iterations
Criterion reverse abc gives cba
Warning   lint \\u{1b}[31mfailed

Verify it in any clone: `landfall certificate T4 --json > T4.json`,
then `landfall certificate --verify T4.json`
";
        assert_eq!(certificate_text(&certificate), expected);
    }
}
