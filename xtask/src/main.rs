//! All automation: `cargo xtask test | bench`.

mod agents;
mod github;
mod schemathesis;
mod test;
mod web;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  test               format, lints, every test, the pages in a browser, the documentation
  test --fast        the tests alone
  test --agents      as `test`, then the real agents: what CI runs
  agents             the tests with the real agents alone
  schemathesis       asks a server everything its reference says, and more
  github             holds what is sent to GitHub against GitHub's own description of its API
  web [name]         the tests of the pages in a real browser, or those whose file or name has this in it
  seeded-bugs [bug]  lets the simulation find every seeded bug, or the one named
  bench [--json] [--quick] [B1 B4 …]
                     the benchmarks, floor and product in the same run, as ratios
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test::all(),
        ["test", "--fast"] => test::tests(),
        ["test", "--agents"] => test::all().and_then(|()| test::agents()),
        ["agents"] => test::agents(),
        ["schemathesis"] => test::schemathesis(),
        ["github"] => test::github(),
        ["web", rest @ ..] => web::alone(rest),
        ["seeded-bugs"] => test::find_seeded_bugs(None),
        ["seeded-bugs", bug] => test::find_seeded_bugs(Some(bug)),
        ["bench", rest @ ..] => {
            let command = ["run", "--release", "--quiet", "--package", "landfall-bench", "--"];
            test::step("bench", test::cargo(&[&command[..], rest].concat()))
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
