//! `landfall run`: drives the backlog in the foreground.

use landfall_api::{Mode, RunOutcome, SprintOf, SprintStage, TypedService, UnknownWord, WireTaskId};
use landfall_app::run_handle::RunAsked;
use landfall_text::control_chars::escape_line;

use super::{autopilot, next, pause, resume};
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::{live, presence};

/// Work on the backlog until nothing more can run
///
/// Press Ctrl-C once to finish the current iterations and stop, twice to stop at once. Nothing is lost either way: the next run
/// continues from there.
///
/// Without a terminal, in CI, with LANDFALL_NON_INTERACTIVE or with --non-interactive, the run never waits for you: a task that
/// needs an answer is set aside, and a pause ends the run. Environment variables override `landfall.toml`: LANDFALL_MODE,
/// LANDFALL_SLOTS (or LANDFALL_MAX_AGENTS), LANDFALL_MODEL for the model of the default profile, and LANDFALL_TIMEOUT for the time
/// limit of a task (`run.task_limit`).
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<RunSubcommand>,

    /// Only these tasks and the tasks they need; the default is every ready task
    #[arg(value_name = "TASK")]
    tasks: Vec<WireTaskId>,

    /// Number of agents that work in parallel; the default is in `landfall.toml`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    slots: Option<u32>,

    /// Who picks tasks: `autopilot` fills every slot, `semi-auto` works on one task at a time, which you pick
    #[arg(long, value_name = "MODE", value_parser = mode)]
    mode: Option<Mode>,

    /// Never wait for you; a pause ends the run
    #[arg(long)]
    non_interactive: bool,

    /// Start the run in the background and return; questions wait in the inbox
    #[arg(long)]
    detach: bool,

    /// Start in a session of its own, which outlives the caller
    #[arg(long, hide = true, conflicts_with = "detach")]
    own_session: bool,
}

/// Control of the run that is under way.
#[derive(clap::Subcommand)]
enum RunSubcommand {
    Pause(pause::Args),
    Resume(resume::Args),
    Next(next::Args),
    Autopilot(autopilot::Args),
}

fn mode(text: &str) -> Result<Mode, String> {
    text.parse().map_err(|error: UnknownWord| error.to_string())
}

/// What is driven, as a command says it.
pub struct RunRequest {
    /// What to run; who is there is found out.
    pub asked: RunAsked,
    /// Whether the command says that nobody is.
    pub non_interactive: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    match args.action {
        Some(RunSubcommand::Pause(args)) => return pause::run(args, context),
        Some(RunSubcommand::Resume(args)) => return resume::run(args, context),
        Some(RunSubcommand::Next(args)) => return next::run(args, context),
        Some(RunSubcommand::Autopilot(args)) => return autopilot::run(args, context),
        None => {}
    }
    let mut asked = RunAsked { tasks: args.tasks, slots: args.slots, mode: args.mode, ..RunAsked::default() };
    if args.detach {
        fill_from_environment(&mut asked, &|name| std::env::var(name).ok())?;
        asked.unattended = true;
        let detached = landfall_app::run_detached(&context.at, &asked)?;
        context.print_answer(&detached, |detached| format!("{}\n", escape_line(&detached.text)))?;
        return Ok(CliExit::Ok);
    }
    if args.own_session {
        rustix::process::setsid().ok(); // it leads a session already
    }
    drive_run(RunRequest { asked, non_interactive: args.non_interactive }, context)
}

/// Drives until it ends: how that was, and what the exit code says about it.
pub fn drive_to_end(
    started: RunRequest,
    context: &CliContext,
) -> Result<(RunOutcome, CliExit), CommandFailure> {
    let RunRequest { mut asked, non_interactive } = started;
    fill_from_environment(&mut asked, &|name| std::env::var(name).ok())?;
    asked.attended = presence::absence_reason(non_interactive).is_none();
    let interrupts = live::Interrupts::start_listening()?;
    let mut run = landfall_app::run(&context.at, asked)?;
    let outcome = live::watch_run(run.as_mut(), &interrupts);
    drop(run); // the project is free again for whoever asks about what was driven
    let exit = live::exit_for_run(&outcome, &interrupts);
    Ok((outcome, exit))
}

/// Drives until it ends, and says how.
pub fn drive_run(started: RunRequest, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let (outcome, exit) = drive_to_end(started, context)?;
    let sprint = match outcome.sprint.filter(|_| !context.json) {
        Some(sprint) => {
            let report = context.open_service()?.sprint(SprintOf { sprint: Some(sprint) })?;
            let verdict = escape_line(&report.verdict).into_owned();
            let next = match report.phase {
                SprintStage::Over => String::new(),
                _ => "; `landfall sprint resume` continues".to_owned(),
            };
            format!("{sprint}: {verdict} `landfall sprint report {sprint}` says more{next}\n")
        }
        None => String::new(),
    };
    context.print_answer(&outcome, |outcome| live::render_summary(outcome) + &sprint)?;
    Ok(exit)
}

/// What the environment says where the command says nothing.
fn fill_from_environment(
    asked: &mut RunAsked,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(), CommandFailure> {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    if asked.mode.is_none()
        && let Some(text) = set("LANDFALL_MODE")
    {
        let mode = text.trim().parse().map_err(|error: UnknownWord| {
            CommandFailure::usage_error(format!("LANDFALL_MODE: {error}"))
                .with_hint("unset it, or give `--mode`")
        })?;
        asked.mode = Some(mode);
    }
    for name in ["LANDFALL_SLOTS", "LANDFALL_MAX_AGENTS"] {
        if asked.slots.is_some() {
            break;
        }
        let Some(text) = set(name) else { continue };
        let slots = text.trim().parse().ok().filter(|slots| (1..=1000).contains(slots));
        let bad = || CommandFailure::usage_error(format!("{name}: `{text}` is not a number from 1 to 1000"));
        asked.slots = Some(slots.ok_or_else(bad)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use landfall_api::Mode;

    use super::fill_from_environment;
    use landfall_app::run_handle::RunAsked;

    #[test]
    fn the_environment_stands_in_for_options_that_were_not_given() {
        let set = |pairs: &'static [(&str, &str)]| {
            move |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let mut asked = RunAsked::default();
        fill_from_environment(
            &mut asked,
            &set(&[("LANDFALL_MODE", "semi-auto"), ("LANDFALL_MAX_AGENTS", "4")]),
        )
        .expect("both fit");
        assert_eq!((asked.mode, asked.slots), (Some(Mode::SemiAuto), Some(4)));
        let mut asked = RunAsked { mode: Some(Mode::Autopilot), slots: Some(2), ..RunAsked::default() };
        fill_from_environment(&mut asked, &set(&[("LANDFALL_MODE", "semi-auto"), ("LANDFALL_SLOTS", "4")]))
            .expect("not looked at");
        assert_eq!((asked.mode, asked.slots), (Some(Mode::Autopilot), Some(2)));
        for bad in
            [&[("LANDFALL_MODE", "fast")][..], &[("LANDFALL_SLOTS", "0")], &[("LANDFALL_SLOTS", "many")]]
        {
            assert!(fill_from_environment(&mut RunAsked::default(), &set(bad)).is_err(), "{bad:?}");
        }
    }
}
