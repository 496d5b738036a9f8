//! The words that several commands share: what a task is made of, and where text comes from.

use std::io::Read;
use std::path::Path;

use landfall_api::{BudgetLine, BudgetOf, Changed, Size, Usage};

use crate::context::Context;
use crate::exit::Failure;
use crate::format;
use crate::say::clean;

const TEXT_BYTES_MAX: u64 = 32 * 1024 * 1024; // half of what the engine takes in one request

/// The text of a file, or of stdin for `-`.
pub fn read_text(context: &Context, path: &Path) -> Result<String, Failure> {
    let name = path.display();
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(context.path(path))
            .and_then(|file| file.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::usage(format!("read `{name}`: {error}")))?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(Failure::usage(format!("`{name}` has more than {TEXT_BYTES_MAX} bytes"))
            .hint("give it in several parts"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!("`{name}` is not UTF-8: byte {at} does not fit")).hint("save it as UTF-8")
    })
}

/// Text given as it is or in a file.
pub fn text_or_file(
    context: &Context,
    text: Option<String>,
    file: Option<&Path>,
) -> Result<Option<String>, Failure> {
    match (text, file) {
        (Some(text), _) => Ok(Some(text)),
        (None, Some(file)) => read_text(context, file).map(Some),
        (None, None) => Ok(None),
    }
}

/// Tasks that changed, a line each.
pub fn changed(changed: &Changed) -> String {
    changed.tasks.iter().map(|task| format!("{}\n", clean(&task.text))).collect()
}

/// Reads a size as people write it, in any case.
pub fn size(text: &str) -> Result<Size, String> {
    text.parse().map_err(|error: landfall_api::UnknownWord| error.to_string())
}

/// What agents used: `12.3k (10.0k in, 8.1k of it cached, 2.3k out) in 14 turns`.
pub fn usage(usage: &Usage) -> String {
    let all = usage.tokens_in.saturating_add(usage.tokens_out);
    if all == 0 {
        return "0".to_owned();
    }
    let cached = match usage.tokens_cached {
        0 => String::new(),
        cached => format!(" ({} of it cached)", format::count(cached)),
    };
    let turns = match usage.turns {
        0 => String::new(),
        turns => format!(" in {}", format::plural(turns, "turn")),
    };
    let (read, written) = (format::count(usage.tokens_in), format::count(usage.tokens_out));
    format!("{}: {read} in{cached}, {written} out{turns}", format::count(all))
}

/// A budget: `task: $0.20 of $1.00`.
pub fn budget(line: &BudgetLine) -> String {
    let shown = |amount: f64| match line.of {
        BudgetOf::Usd => format::usd(amount),
        BudgetOf::Tokens => format::count(whole(amount)),
        BudgetOf::Turns => whole(amount).to_string(),
        BudgetOf::Time => format::duration(whole(amount)),
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the figures were whole and positive"
)]
fn whole(amount: f64) -> u64 {
    amount as u64
}
