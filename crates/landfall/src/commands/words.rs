//! The words that several commands share: what a task is made of, and where text comes from.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use landfall_api::{BudgetLine, BudgetOf, BudgetScope, Changed, NewTask, Size, TaskRef, Usage};
use landfall_app::{USER_FILE_BYTES_MAX, read_user_file};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::CommandFailure;

/// What somebody said in words, or on stdin for `-`.
pub fn read_words(context: &CliContext, words: &[String]) -> Result<String, CommandFailure> {
    match words {
        [only] if only == "-" => Ok(read_text(context, "-".as_ref())?.trim().to_owned()),
        words => Ok(words.join(" ")),
    }
}

/// The text of a file, or of stdin for `-`.
pub fn read_text(context: &CliContext, path: &Path) -> Result<String, CommandFailure> {
    let name = path.display();
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        let read = std::io::stdin().lock().take(USER_FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|error| CommandFailure::usage_error(format!("cannot read `{name}`: {error}")))?;
    } else {
        bytes = read_user_file(&context.path(path), USER_FILE_BYTES_MAX).map_err(|error| {
            let failure = CommandFailure::usage_error(format!("cannot read `{name}`: {error}"));
            match error.kind() {
                std::io::ErrorKind::InvalidInput => {
                    failure.with_hint("give the text on stdin, with `-` as the file")
                }
                std::io::ErrorKind::FileTooLarge => failure.with_hint("give it in several parts"),
                _ => failure,
            }
        })?;
    }
    if bytes.len() as u64 > USER_FILE_BYTES_MAX {
        return Err(CommandFailure::usage_error(format!(
            "`{name}` has more than {USER_FILE_BYTES_MAX} bytes"
        ))
        .with_hint("give it in several parts"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CommandFailure::usage_error(format!("`{name}` is not UTF-8: byte {at} does not fit"))
            .with_hint("save it as UTF-8")
    })
}

/// Text given as it is or in a file.
pub fn read_text_or_file(
    context: &CliContext,
    text: Option<String>,
    file: Option<&Path>,
) -> Result<Option<String>, CommandFailure> {
    match (text, file) {
        (Some(text), _) => Ok(Some(text)),
        (None, Some(file)) => read_text(context, file).map(Some),
        (None, None) => Ok(None),
    }
}

/// Tasks that changed, a line each.
pub fn render_changed(changed: &Changed) -> String {
    changed.tasks.iter().map(|task| format!("{}\n", escape_line(&task.text))).collect()
}

/// Tasks that are not there yet, as a tree: each with its size, its needs and what must hold.
pub fn render_task_batch(tasks: &[NewTask]) -> String {
    let parts = parts_by_parent(tasks);
    let mut text = String::new();
    let is_top = |at: &usize| !matches!(tasks[*at].parent, Some(TaskRef::Batch(_)));
    let mut open: Vec<(usize, usize)> = (0..tasks.len()).rev().filter(is_top).map(|at| (at, 0)).collect();
    while let Some((at, depth)) = open.pop() {
        let place = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let below = parts.get(&place).map(Vec::as_slice).unwrap_or_default();
        text += &batch_lines(TaskRef::Batch(place), depth, &tasks[at], !below.is_empty());
        open.extend(below.iter().rev().map(|part| (*part, depth + 1)));
    }
    text
}

/// The tasks of a batch that others of it are a part of, by their place from 1, with the indices of those.
pub fn parts_by_parent(tasks: &[NewTask]) -> BTreeMap<u32, Vec<usize>> {
    let mut parts: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        if let Some(TaskRef::Batch(place)) = task.parent {
            parts.entry(place).or_default().push(at);
        }
    }
    parts
}

fn batch_lines(place: TaskRef, depth: usize, task: &NewTask, group: bool) -> String {
    let indent = "  ".repeat(depth);
    let mut about: Vec<String> = task.size.map(|size| size.word().to_owned()).into_iter().collect();
    about.extend(task.priority.filter(|it| *it != 5).map(|it| format!("priority {it}")));
    about.extend(task.tags.iter().cloned());
    if !task.needs.is_empty() {
        let needs: Vec<String> = task.needs.iter().map(ToString::to_string).collect();
        about.push(format!("needs {}", needs.join(", ")));
    }
    if let Some(TaskRef::Task(parent)) = task.parent {
        about.push(format!("part of {parent}"));
    }
    if task.draft && !group {
        about.push("draft".to_owned());
    }
    let about = if about.is_empty() { String::new() } else { format!("  ({})", about.join(", ")) };
    let mut text = format!("{indent}{place} {}{}\n", escape_line(&task.title), escape_line(&about));
    for criterion in &task.criteria {
        text += &format!("{indent}   - {}\n", escape_line(criterion));
    }
    text
}

/// Reads a size as people write it, in any case.
pub fn size(text: &str) -> Result<Size, String> {
    text.parse().map_err(|error: landfall_api::UnknownWord| error.to_string())
}

/// What agents used: `12.3k (10k in, 8.1k of it cached, 2.3k out) in 14 turns`.
pub fn render_usage(usage: &Usage) -> String {
    let all = usage.tokens_in.saturating_add(usage.tokens_out);
    if all == 0 {
        return "0".to_owned();
    }
    let cached = match usage.tokens_cached {
        0 => String::new(),
        cached => format!(" ({} of it cached)", landfall_text::format_count(cached)),
    };
    let turns = match usage.turns {
        0 => String::new(),
        turns => format!(" in {}", landfall_text::pluralize(turns, "turn")),
    };
    let (read, written) =
        (landfall_text::format_count(usage.tokens_in), landfall_text::format_count(usage.tokens_out));
    format!("{}{}: {read} in{cached}, {written} out{turns}", usage.prefix(), landfall_text::format_count(all))
}

/// Money that agents used, and what it leaves out: `at least $1.20, without 3k tokens that have no price`. None: nothing is
/// known about money.
pub fn render_cost(usage: &Usage) -> Option<String> {
    let unpriced = match usage.tokens_without_price {
        0 => String::new(),
        some => format!(", without {} tokens that have no price", landfall_text::format_count(some)),
    };
    usage.cost_usd.map(|usd| format!("{}{}{unpriced}", usage.prefix(), landfall_text::format_usd(usd)))
}

/// A budget: `task: $0.20 of $1.00`.
pub fn render_budget(line: &BudgetLine) -> String {
    let shown = |amount: f64| match line.of {
        BudgetOf::Usd => landfall_text::format_usd(amount),
        BudgetOf::Tokens => landfall_text::format_count(to_whole(amount)),
        BudgetOf::Turns => to_whole(amount).to_string(),
        BudgetOf::Time => landfall_text::format_duration(to_whole(amount)),
    };
    let unit = match line.of {
        BudgetOf::Usd => "",
        BudgetOf::Tokens => " tokens",
        BudgetOf::Turns => " turns",
        BudgetOf::Time => " of working time",
    };
    let spent = if line.used >= line.max { ", used up" } else { "" };
    format!("{}: {} of {}{unit}{spent}", line.scope, shown(line.used), shown(line.max))
}

/// What keeps agents from starting, if it is a budget: whose, and how much of it is used.
pub fn blocking_budget(lines: &[BudgetLine]) -> Option<String> {
    let line = lines.iter().find(|line| line.used >= line.max)?;
    let whose = if line.scope == BudgetScope::Day { "the day" } else { "the run" };
    let setting = match line.scope {
        BudgetScope::Day => "wait until midnight, or raise it under `[budget]`",
        _ => "start another run with `landfall run`, or raise it under `[budget]`",
    };
    Some(format!("no agent starts: the budget of {whose} is used up ({}); {setting}", render_budget(line)))
}

/// The first few of a list of files: `a.rs, b.rs, c.rs and 4 more`.
pub fn first_files(files: &[String]) -> String {
    const SHOWN: usize = 3; // a line holds no more
    let shown = files.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the figures were whole and positive"
)]
fn to_whole(amount: f64) -> u64 {
    amount as u64
}

#[cfg(test)]
mod tests {
    use landfall_api::{BudgetLine, BudgetOf, BudgetScope};

    use super::blocking_budget;

    #[test]
    fn a_used_up_budget_names_the_section_that_raises_it() {
        for scope in [BudgetScope::Run, BudgetScope::Day] {
            let line = BudgetLine { scope, of: BudgetOf::Usd, used: 20.0, max: 20.0 };
            let text = blocking_budget(&[line]).expect("it is used up");
            assert!(text.contains(scope.word()) && text.contains("raise it under `[budget]`"), "{text}");
        }
        let left = BudgetLine { scope: BudgetScope::Day, of: BudgetOf::Usd, used: 19.0, max: 20.0 };
        assert_eq!(blocking_budget(&[left]), None);
    }
}
