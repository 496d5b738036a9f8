//! Ways to make a test pass by breaking the test.

use std::fs;
use std::path::Path;

use landfall_agents::script::TestWeakening;

use super::perform::ScriptFailure;
use super::voice::PlayerOutput;
use super::work::{delete_path, resolve_inside_workspace};

/// Weakens the test file.
pub(super) fn weaken_test(
    voice: &mut PlayerOutput,
    how: TestWeakening,
    target: &Path,
) -> Result<(), ScriptFailure> {
    let trouble = |source| ScriptFailure::File { what: "weaken", path: target.into(), source };
    match how {
        TestWeakening::Delete => delete_path(target)?,
        TestWeakening::Skip => {
            let path = resolve_inside_workspace(target)?;
            let text = fs::read_to_string(&path).map_err(trouble)?;
            fs::write(&path, skip_all_tests(file_extension(target), &text)).map_err(trouble)?;
        }
        TestWeakening::Trivial => {
            fs::write(resolve_inside_workspace(target)?, trivial_test(file_extension(target)))
                .map_err(trouble)?
        }
    }
    voice.print_line(&format!("fixed {}", target.display()));
    Ok(())
}

fn file_extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// The same tests, none of which runs. A language we do not know is taken for a shell script.
fn skip_all_tests(extension: &str, text: &str) -> String {
    match extension {
        "rs" => text.replace("#[test]", "#[test]\n#[ignore]"),
        "py" => format!("import unittest\nraise unittest.SkipTest(\"flaky\")\n{text}"),
        "js" | "ts" | "mjs" | "jsx" | "tsx" => {
            ["test(", "it(", "describe("].iter().fold(text.to_owned(), |text, call| {
                text.replace(&format!("\n{call}"), &format!("\n{}.skip(", call.trim_end_matches('(')))
            })
        }
        "go" => format!("//go:build never\n\n{text}"),
        _ => match text.split_once('\n') {
            Some((first, rest)) if first.starts_with("#!") => format!("{first}\nexit 0\n{rest}"),
            Some(_) | None => format!("exit 0\n{text}"),
        },
    }
}

/// A test that always passes.
fn trivial_test(extension: &str) -> &'static str {
    match extension {
        "rs" => "#[test]\nfn works() {}\n",
        "py" => "def test_works():\n    assert True\n",
        "js" | "ts" | "mjs" | "jsx" | "tsx" => "test('works', () => {});\n",
        "go" => "package main\n\nimport \"testing\"\n\nfunc TestWorks(t *testing.T) {}\n",
        _ => "#!/bin/sh\nexit 0\n",
    }
}
