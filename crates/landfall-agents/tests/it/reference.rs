//! The reference page: its examples are played as they stand, and nothing a script may say is missing from it.

use landfall_agents::script::{Script, ScriptProblem};
use landfall_agents::{CodeFenceTracker, LinePosition};

const PAGE: &str = include_str!("../../../../docs/reference/script.md");

/// The code blocks of this language, each with the line it starts after.
fn blocks(language: &str) -> Vec<(usize, String)> {
    let mut fences = CodeFenceTracker::default();
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut ours = false;
    for (line, number) in PAGE.lines().zip(1..) {
        match fences.line(line) {
            LinePosition::Opens { info } => {
                ours = info == language;
                if ours {
                    blocks.push((number, String::new()));
                }
            }
            LinePosition::Code if ours => {
                let (_, text) = blocks.last_mut().expect("opened before");
                text.push_str(line);
                text.push('\n');
            }
            LinePosition::Code | LinePosition::Closes | LinePosition::Text => {}
        }
    }
    blocks
}

#[test]
fn every_example_is_a_script() {
    let examples = blocks("toml");
    assert!(examples.len() >= 6, "the examples are not found");
    for (line, text) in examples {
        Script::parse(&text).unwrap_or_else(|error| panic!("example at line {line}: {error}"));
    }
}

#[test]
fn every_key_mode_and_attack_is_described() {
    let known = |text: &str| match Script::parse(text).expect_err("there is no such word").problem {
        ScriptProblem::UnknownKey { known, .. } | ScriptProblem::UnknownWord { known, .. } => known,
        other => panic!("{other}"),
    };
    let keys = known("qqqqqqqqqqqqqqq = 1");
    let modes = known("misbehave = \"qqqqqqqqqqqqqqq\"");
    let attacks = known("misbehave = \"move-main\"\nattack = \"qqqqqqqqqqqqqqq\"");
    let ways = known("misbehave = \"weaken-test\"\ntarget = \"a\"\nhow = \"qqqqqqqqqqqqqqq\"");
    for row in modes.iter().chain(&attacks).filter(|word| **word != "branches") {
        assert!(PAGE.contains(&format!("\n| `{row}` |")), "`{row}` has no row");
    }
    for word in keys.iter().chain(&attacks).chain(&ways) {
        let shown = PAGE.contains(&format!("`{word}`"))
            || PAGE.contains(&format!("`{word} ="))
            || PAGE.contains(&format!("[{word}]"));
        assert!(shown || PAGE.contains(&format!("\"{word}\"")), "`{word}` is not described");
    }
}
