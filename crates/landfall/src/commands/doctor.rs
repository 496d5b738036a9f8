//! `landfall doctor`: whether everything Landfall needs is there and whole.

use landfall_api::{Ask, CheckState, Health, Nothing};

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::say::clean;

/// Checks that everything Landfall needs is there and whole.
#[derive(clap::Args)]
pub struct Args {
    /// Makes the tables again from the journal. The journal itself is never changed.
    #[arg(long)]
    rebuild: bool,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let service = context.service()?;
    let health = if args.rebuild { service.rebuild(Nothing {}) } else { service.doctor(Nothing {}) }?;
    context.answer(&health, text)?;
    let bad = health.checks.iter().any(|check| check.state == CheckState::Bad);
    Ok(if bad { Exit::Machine } else { Exit::Ok })
}

fn text(health: &Health) -> String {
    let mut text = String::new();
    for check in &health.checks {
        let state = match check.state {
            CheckState::Ok => "ok",
            CheckState::Warn => "warn",
            CheckState::Bad => "BAD",
        };
        text += &format!("{state:<5} {}: {}\n", clean(&check.name), clean(&check.detail));
        if let Some(hint) = &check.hint {
            text += &format!("      hint: {}\n", clean(hint));
        }
    }
    text
}
