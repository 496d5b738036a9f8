//! `landfall check`: runs the checks of the project without an agent.

use landfall_api::WireTaskId;
use landfall_app::CheckOptions;

use crate::checks::{CheckPrinter, is_green, verdict_text};
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::live::Interrupts;
use crate::say::print_message;

/// Run the checks of the project on its base, or on the work of a task, without an agent
///
/// The checks run as in a verification: on a clean checkout, in the sandbox, by the rules of the base branch. A pass on the base
/// is remembered, so that `landfall run` does not run them again before the first agent starts.
#[derive(clap::Args)]
pub struct Args {
    /// The task whose work is checked, merged with the base, such as T7
    task: Option<WireTaskId>,

    /// Run the checks outside of the sandbox, with all your rights, to find out whether the sandbox is to blame
    ///
    /// The code of your base branch runs as if you had started it yourself. The result is not remembered. Not for the work of
    /// a task: an agent wrote it.
    #[arg(long, conflicts_with = "task")]
    unconfined: bool,
}

pub fn run(Args { task, unconfined }: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let interrupts = Interrupts::start_listening()?;
    let asked = CheckOptions { task, is_unconfined: unconfined, ..CheckOptions::default() };
    let mut printer = if context.json {
        CheckPrinter::without_output(&interrupts)
    } else {
        CheckPrinter::with_output(&interrupts)
    };
    let Some(checked) = landfall_app::check_project(&context.at, &asked, &mut printer)? else {
        print_message("stopped; `landfall check` runs the checks again");
        return Ok(CliExit::Interrupted);
    };
    context.print_answer(&checked, verdict_text)?;
    if unconfined && !context.json {
        print_message("they ran outside of the sandbox, so this pass or failure is not remembered");
    }
    Ok(if is_green(checked.outcome) { CliExit::Ok } else { CliExit::SomeDidNotLand })
}
