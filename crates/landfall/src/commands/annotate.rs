//! `landfall task annotate`: writes into the margin of a plan.

use landfall_api::{Annotate, Note, NoteKind, PaperAsked, TypedService, UnknownWord, WireTaskId};
use landfall_text::control_chars::escape_line;

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Annotate the plan or another document of a task
///
/// `comment`, `replace` and `delete` apply to the text that `--on` names; `insert` puts its text before a line. If the plan changes,
/// it is checked again before the agent executes it. If a place is ambiguous, nothing is written.
#[derive(clap::Args)]
pub struct Args {
    /// Task, such as T7
    task: WireTaskId,

    /// `insert`, `delete`, `replace` or `comment`; leave it out with `--file`
    #[arg(value_name = "KIND", value_parser = kind, required_unless_present = "file")]
    kind: Option<NoteKind>,

    /// Text to insert, replacement or comment; `-` reads stdin
    #[arg(value_name = "TEXT")]
    words: Vec<String>,

    /// Text that the annotation applies to, exactly as in the document
    #[arg(long, value_name = "TEXT")]
    on: Option<String>,

    /// Line of the text, if it occurs more than once; for `insert`, the line to insert before
    #[arg(long, value_name = "N")]
    line: Option<usize>,

    /// Document
    #[arg(long, value_name = "NAME", default_value = "plan.md")]
    paper: String,

    /// File of annotations, one JSON object per line: `kind`, `before`, `selected`, `text`, `after`; `-` reads stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "words", "on", "line"])]
    file: Option<std::path::PathBuf>,
}

fn kind(text: &str) -> Result<NoteKind, String> {
    text.parse().map_err(|error: UnknownWord| error.to_string())
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let Args { task, kind, words: said, on, line, paper, file } = args;
    let service = context.open_service()?;
    let notes = match (file, kind) {
        (Some(file), _) => read(&words::read_text(context, &file)?)?,
        (None, Some(kind)) => {
            let text = if said.is_empty() { String::new() } else { words::read_words(context, &said)? };
            let page = service.paper(PaperAsked { task, name: paper.clone() })?;
            vec![place_note(&page.text, kind, on.as_deref(), line, text)?]
        }
        (None, None) => unreachable!("clap wants one of them"),
    };
    let done = service.annotate(Annotate { task, paper, notes })?;
    context.print_answer(&done, |done| format!("{}\n", escape_line(&done.text)))?;
    Ok(CliExit::Ok)
}

fn read(text: &str) -> Result<Vec<Note>, CommandFailure> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_str(line)
                .map_err(|error| CommandFailure::usage_error(format!("line {number}: {error}")))
        })
        .collect()
}

/// An annotation with the text around its place.
fn place_note(
    page: &str,
    kind: NoteKind,
    on: Option<&str>,
    line: Option<usize>,
    text: String,
) -> Result<Note, CommandFailure> {
    let (from, to) = match (kind, on) {
        (NoteKind::Insert, _) => {
            let line = line.ok_or_else(|| {
                CommandFailure::usage_error("`insert` needs the line it comes before")
                    .with_hint("give `--line N`")
            })?;
            let at = line_start(page, line).ok_or_else(|| {
                CommandFailure::usage_error(format!(
                    "the paper has {} lines; there is no line {line}",
                    page.lines().count()
                ))
            })?;
            (at, at)
        }
        (_, None | Some("")) => {
            return Err(CommandFailure::usage_error(format!("`{kind}` needs the text it is about"))
                .with_hint("give `--on TEXT`"));
        }
        (_, Some(on)) => {
            let in_line = |at: &usize| line.is_none_or(|line| line_number_at(page, *at) == line);
            let found: Vec<usize> = page.match_indices(on).map(|(at, _)| at).filter(in_line).collect();
            match found.as_slice() {
                [at] => (*at, at + on.len()),
                [] => {
                    return Err(CommandFailure::usage_error("that text is not in the paper")
                        .with_hint("`landfall task papers` shows it"));
                }
                many => {
                    let lines: Vec<String> =
                        many.iter().map(|at| line_number_at(page, *at).to_string()).collect();
                    return Err(CommandFailure::usage_error(format!(
                        "that text stands in the lines {}",
                        lines.join(", ")
                    ))
                    .with_hint("give `--line N`, or more of the text"));
                }
            }
        }
    };
    let text = match kind {
        NoteKind::Insert if !text.ends_with('\n') => format!("{text}\n"), // whole lines come before a line
        _ => text,
    };
    let tail = |text: &str| {
        text.chars().rev().take(CONTEXT).collect::<Vec<_>>().into_iter().rev().collect::<String>()
    };
    let head = |text: &str| text.chars().take(CONTEXT).collect::<String>();
    let shown = |text: String| text.replace("\r\n", "\n").replace('\n', "↵");
    Ok(Note {
        kind,
        before: format!("Line{}:...{}", line_number_at(page, from), shown(tail(&page[..from]))),
        selected: page[from..to].to_owned(),
        text,
        after: format!("{}...", shown(head(&page[to..]))),
    })
}

const CONTEXT: usize = 20; // what a place is known by

fn line_number_at(page: &str, at: usize) -> usize {
    1 + page[..at].matches('\n').count()
}

fn line_start(page: &str, line: usize) -> Option<usize> {
    match line {
        0 => None,
        1 => Some(0),
        line => page.match_indices('\n').nth(line - 2).map(|(at, _)| at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_known_by_the_text_around_it() {
        let page = "# Plan\n\n1. Make it\n2. Test it\n";
        let Ok(note) = place_note(page, NoteKind::Replace, Some("Make"), None, "Build".to_owned()) else {
            panic!("it is there once")
        };
        assert_eq!(
            (note.before.as_str(), note.after.as_str()),
            ("Line3:...# Plan↵↵1. ", " it↵2. Test it↵...")
        );
        let Ok(note) = place_note(page, NoteKind::Insert, None, Some(4), "1b. Look".to_owned()) else {
            panic!("there is such a line")
        };
        assert_eq!(
            (note.before.as_str(), note.text.as_str()),
            ("Line4:...# Plan↵↵1. Make it↵", "1b. Look\n")
        );
        assert!(
            place_note(page, NoteKind::Delete, Some(" it"), None, String::new()).is_err(),
            "it stands in two lines"
        );
        assert!(place_note(page, NoteKind::Delete, Some(" it"), Some(4), String::new()).is_ok());
        assert!(place_note(page, NoteKind::Comment, None, Some(4), String::new()).is_err(), "about what?");
    }
}
