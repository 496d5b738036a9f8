//! The way out: data to stdout, talk to stderr, and nothing from a task or an agent that a terminal would obey.

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::LazyLock;

use landfall_text::control_chars::{escape_block, escape_json};
use landfall_text::quote_shell_word;
use serde::Serialize;

use crate::commands::named;
use crate::exit::{CliExit, CommandFailure};

/// At most so many columns, with `…` where something is left out. The text is already clean.
pub fn shorten_to_columns(text: &str, columns: usize) -> Cow<'_, str> {
    console::truncate_str(text, columns, "…")
}

/// The base that is meant, where it is not the project's own: commands that are shown say so.
static BASE: LazyLock<Option<String>> = LazyLock::new(named::side_base);

/// The base that the command line names, where it is not the project's own and a person reads the answer.
pub fn side_base() -> Option<&'static str> {
    BASE.as_deref()
}

fn add_base_option<'a>(text: &'a str, base: Option<&str>) -> Cow<'a, str> {
    const SHOWN: &str = "`landfall ";
    let Some(base) = base.filter(|_| text.contains(SHOWN)) else { return Cow::Borrowed(text) };
    let base = quote_shell_word(base);
    let mut parts = text.split(SHOWN);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let said = part.split('`').next().is_some_and(|command| command.contains("--base"));
        all += &if said { format!("{SHOWN}{part}") } else { format!("{SHOWN}--base {base} {part}") };
    }
    Cow::Owned(all)
}

/// Data for stdout.
pub fn print_data(text: &str) -> Result<(), CommandFailure> {
    print_bytes(add_base_option(text, side_base()).as_bytes())
}

/// Data for stdout that may not be text.
pub fn print_bytes(bytes: &[u8]) -> Result<(), CommandFailure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(CommandFailure::output_closed()),
        Err(error) if error.kind() == ErrorKind::StorageFull => {
            Err(CommandFailure::new(CliExit::Machine, format!("write the output: {error}")))
        }
        Err(error) => Err(CommandFailure::new(CliExit::Internal, format!("write the output: {error}"))),
    }
}

/// Bytes that someone else made: as they are for a program, clean for a terminal and for whoever wants them safe.
pub fn print_untrusted(bytes: &[u8], safe: bool) -> Result<(), CommandFailure> {
    if safe || io::stdout().is_terminal() {
        return print_bytes(escape_block(&String::from_utf8_lossy(bytes)).as_bytes());
    }
    print_bytes(bytes)
}

/// JSON for stdout: in one line for a program, spread out for a terminal.
pub fn print_json<T: Serialize + ?Sized>(value: &T) -> Result<(), CommandFailure> {
    let spread = io::stdout().is_terminal();
    let text = if spread { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    let text =
        text.map_err(|error| CommandFailure::new(CliExit::Internal, format!("write JSON: {error}")))?;
    print_data(&(escape_json(text) + "\n"))
}

/// JSON for stdout in one line, whoever reads it.
pub fn print_json_line<T: Serialize + ?Sized>(value: &T) -> Result<(), CommandFailure> {
    let text = serde_json::to_string(value);
    let text =
        text.map_err(|error| CommandFailure::new(CliExit::Internal, format!("write JSON: {error}")))?;
    print_data(&(escape_json(text) + "\n"))
}

/// A line of talk on stderr. It has been cleaned where it came from outside.
pub fn print_message(text: &str) {
    let mut text = add_base_option(text, side_base()).into_owned();
    text.push('\n');
    let _ = io::stderr().lock().write_all(text.as_bytes()); // nobody listens: there is nobody to tell
}

/// Says why a command failed, for people or for programs.
pub fn print_failure(failure: &CommandFailure, json: bool) {
    if failure.code == CliExit::Ok {
        return;
    }
    if json {
        let error = serde_json::json!({ "error": {
            "exit": failure.code.exit_code(),
            "word": failure.code.wire_name(),
            "problem": failure.problem,
            "message": failure.message,
            "hint": failure.hint,
        }});
        return print_message(&escape_json(error.to_string()));
    }
    print_message(&format!("error: {}", escape_block(&failure.message)));
    if let Some(hint) = &failure.hint {
        print_message(&format!("hint: {}", escape_block(hint)));
    }
}

#[cfg(test)]
mod tests {
    use super::add_base_option;

    #[test]
    fn commands_that_are_shown_name_the_base_branch_of_the_command_line() {
        let base = "release/1.2";
        let shown = |text: &str| add_base_option(text, Some(base)).into_owned();
        assert_eq!(
            shown("see `landfall why T1`, or `landfall auto 7`"),
            "see `landfall --base release/1.2 why T1`, or `landfall --base release/1.2 auto 7`"
        );
        for same in ["nothing", "`landfall --base main why '#7'`", "landfall is a word"] {
            assert_eq!(shown(same), same);
        }
        assert_eq!(add_base_option("`landfall why T1`", None), "`landfall why T1`");
    }
}
