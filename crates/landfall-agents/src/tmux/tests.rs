//! The tables, over screens as they were and screens that only look alike.

use std::fs;
use std::path::Path;

use expect_test::expect_file;

use super::{TerminalAgentKind, TerminalScreen, read_screen, visible_messages};

/// A screen in a file: its lines, then `[cursor N] title`.
fn read(path: &Path) -> TerminalScreen {
    let text = fs::read_to_string(path).expect("a listed file can be read");
    let (lines, last) = text.trim_end_matches('\n').rsplit_once('\n').expect("a screen and its last line");
    let (cursor, title) =
        last.strip_prefix("[cursor ").and_then(|rest| rest.split_once(']')).expect("a cursor and a title");
    TerminalScreen::new(lines, cursor.parse().expect("a number"), title.trim())
}

#[test]
fn edge_05_every_screen_is_what_it_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts/tmux/screens");
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("the screens").map(|entry| entry.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    assert!(files.len() > 30, "the screens are not found");
    let mut seen = String::new();
    for path in &files {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("plain names");
        let cli = match name.split('-').next() {
            Some("claude") => TerminalAgentKind::Claude,
            Some("codex") => TerminalAgentKind::Codex,
            _ => TerminalAgentKind::Other,
        };
        let screen = read(path);
        let found = match read_screen(cli, &screen) {
            super::ScreenState::Ask(ask) => format!("{:?}, {:?}", ask.why, ask.key),
            other => format!("{other:?}"),
        };
        seen += &format!("{name}: {found}\n");
        for message in visible_messages(cli, &screen) {
            seen += &format!("    {:?}\n", message);
        }
    }
    expect_file![folder.join("seen")].assert_eq(&seen);
}

#[test]
fn a_screen_cut_anywhere_is_never_answered_otherwise() {
    // While a program draws, a look may see the upper part of the new screen over the old one, or less of it.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts/tmux/screens");
    for (name, cli) in [
        ("claude-permission-destructive", TerminalAgentKind::Claude),
        ("claude-unknown-question", TerminalAgentKind::Claude),
        ("claude-lookalike-dialog-above", TerminalAgentKind::Claude),
        ("codex-approval-destructive", TerminalAgentKind::Codex),
        ("codex-lookalike", TerminalAgentKind::Codex),
        ("other-yes-no-destructive", TerminalAgentKind::Other),
    ] {
        let whole = read(&folder.join(name).with_extension("txt"));
        for from in 0..whole.lines.len() {
            for to in from..=whole.lines.len() {
                let lines = whole.lines[from..to].to_vec();
                for cursor in 0..=lines.len() {
                    let screen = TerminalScreen { lines: lines.clone(), cursor, title: whole.title.clone() };
                    if let super::ScreenState::Ask(ask) = read_screen(cli, &screen) {
                        // A part of a question that hides what it is about must not be agreed to.
                        let kept = lines.iter().any(|line| super::is_destructive(line));
                        assert!(
                            ask.key.is_none() || cli != TerminalAgentKind::Claude && !kept && from > 0,
                            "{name} from {from} to {to}, cursor {cursor}: {ask:?}"
                        );
                    }
                }
            }
        }
    }
}
