//! `landfall project reclaim`: gives disk space back.

use landfall_api::{Nothing, Reclaimed, TypedService};

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::table::Table;

/// Free disk space where nothing can be lost
#[derive(clap::Args)]
pub struct Args {
    /// Show what would be removed; without this option exactly that is removed
    #[arg(long)]
    dry_run: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let service = context.open_service()?;
    let reclaimed = if args.dry_run { service.reclaimable(Nothing {}) } else { service.reclaim(Nothing {}) }?;
    context.print_answer(&reclaimed, render_reclaimed)?;
    Ok(CliExit::Ok)
}

fn render_reclaimed(reclaimed: &Reclaimed) -> String {
    if reclaimed.items.is_empty() {
        return "nothing to free\n".to_owned();
    }
    let mut table = Table::new(&["WHAT", "SIZE", "WHERE", "WHY IT IS SAFE"]);
    for item in &reclaimed.items {
        table.add_row([&item.what, &landfall_text::format_bytes(item.bytes), &item.path, &item.why_safe]);
    }
    let mut text = table.to_text();
    text.push('\n');
    for kind in &reclaimed.kinds {
        text.push_str(&format!(
            "{} ({}): {}\n",
            kind.kind,
            kind.count,
            landfall_text::format_bytes(kind.bytes)
        ));
    }
    let verb = if reclaimed.dry_run { "would free" } else { "freed" };
    format!("{text}{verb} {}\n", landfall_text::format_bytes(reclaimed.bytes))
}
