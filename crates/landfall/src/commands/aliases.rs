//! Words that people type for a command of ours, because other tools call it so.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::CommandFailure;

/// The word that was typed, and what does it here.
const ELSEWHERE: [(&str, &str); 37] = [
    ("start", "landfall run"),
    ("go", "landfall run"),
    ("continue", "landfall run"),
    ("work", "landfall run"),
    ("approve", "landfall review T7 approve"),
    ("reject", "landfall review T7 reject \"reason\""),
    ("config", "edit landfall.toml; docs/reference/settings.md lists every setting"),
    ("settings", "edit landfall.toml; docs/reference/settings.md lists every setting"),
    ("set", "edit landfall.toml; docs/reference/settings.md lists every setting"),
    ("setup", "landfall init"),
    ("install", "landfall init"),
    ("ls", "landfall list"),
    ("tasks", "landfall list"),
    ("backlog", "landfall list"),
    ("new", "landfall add \"title\""),
    ("create", "landfall add \"title\""),
    ("task-add", "landfall add \"title\""),
    ("view", "landfall show T7"),
    ("info", "landfall show T7"),
    ("logs", "landfall log"),
    ("history", "landfall log"),
    ("events", "landfall log --follow"),
    ("tail", "landfall log --follow"),
    ("kill", "landfall stop --now"),
    ("abort", "landfall stop --now"),
    ("quit", "landfall stop"),
    ("ps", "landfall status"),
    ("state", "landfall status"),
    ("watch", "landfall top"),
    ("tui", "landfall top"),
    ("ui", "landfall serve"),
    ("web", "landfall serve"),
    ("server", "landfall serve"),
    ("revert", "landfall rollback T7"),
    ("undo", "landfall rollback T7"),
    ("cost", "landfall stats"),
    ("login", "landfall agents --probe"),
];

/// What to type instead of an unknown command, if it is a word of other tools.
pub fn explain_unknown_command(error: &clap::Error) -> Option<CommandFailure> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let (_, instead) = ELSEWHERE.iter().find(|(elsewhere, _)| elsewhere == word)?;
    let failure = CommandFailure::usage_error(format!("unknown command `{word}`"));
    Some(failure.with_hint(match instead.starts_with("landfall ") {
        true => format!("`{instead}` does this; `landfall help` lists the commands"),
        false => (*instead).to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::{ELSEWHERE, explain_unknown_command};

    #[test]
    fn a_word_of_another_tool_leads_to_the_right_command() {
        for (word, instead) in ELSEWHERE {
            let error = super::super::build_cli()
                .try_get_matches_from(["landfall", word])
                .expect_err(&format!("`{word}` is a command now: remove it from the table"));
            let failure = explain_unknown_command(&error).expect("the table has it");
            let hint = failure.hint.expect("there is a hint");
            assert!(hint.contains(instead), "{word}: {hint}");
            if let Some(line) = instead.strip_prefix("landfall ") {
                let words = line.split(' ').map(|word| word.trim_matches('"'));
                let read =
                    super::super::build_cli().try_get_matches_from(["landfall"].into_iter().chain(words));
                assert!(read.is_ok(), "`{instead}` cannot be typed: {}", read.unwrap_err());
            }
        }
    }
}
