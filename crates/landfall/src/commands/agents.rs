//! `landfall agents`: which agents there are, what each profile would run, and whether it answers.

use landfall_api::{AgentKind, AgentProfile, AgentsAsked, AgentsFound, ProbeAnswer, Probed};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::print_message;

/// List agents, and test that they answer
///
/// Shows which agents are installed and what each profile of the project would run. Outside of a project it lists the kinds of
/// agents only. Keys and tokens are never shown.
#[derive(clap::Args)]
pub struct Args {
    /// Send a tiny prompt to each profile, or to PROFILE, to test that it answers; costs a little money
    #[arg(long)]
    probe: bool,

    /// Only this profile
    profile: Option<String>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let asked = AgentsAsked { profile: args.profile };
    if args.probe {
        print_message("asking the agents; that takes up to a minute");
    }
    let found = landfall_app::find_agents(&context.at, asked, args.probe)?;
    context.print_answer(&found, render_agents)?;
    let answers = |profile: &AgentProfile| match &profile.probe {
        Some(probe) => probe.answer == ProbeAnswer::Answers,
        None => profile.problem.is_none() || !args.probe,
    };
    Ok(if found.profiles.iter().all(answers) { CliExit::Ok } else { CliExit::NeedsYou })
}

fn render_agents(found: &AgentsFound) -> String {
    let mut text = String::new();
    for kind in &found.kinds {
        text += &kind_lines(kind);
    }
    if !found.profiles.is_empty() {
        text += "\nprofiles of this project:\n";
    }
    for profile in &found.profiles {
        text += &profile_lines(profile);
    }
    text
}

fn kind_lines(kind: &AgentKind) -> String {
    let state = match (&kind.program, &kind.path) {
        (None, _) if kind.install.contains("part of Landfall") => "built in".to_owned(),
        (None, _) => "as the profile says".to_owned(),
        (Some(program), None) => format!("not installed: no `{program}` on the PATH"),
        (Some(_), Some(path)) => match (&kind.version, &kind.problem) {
            (Some(version), _) => format!("{version} ({path})"),
            (None, Some(problem)) => format!("{path}; {problem}"),
            (None, None) => path.clone(),
        },
    };
    let mut text = format!(
        "{:<10} {}\n           {}\n",
        escape_line(&kind.kind),
        escape_line(&kind.about),
        escape_line(&state)
    );
    if kind.program.is_some() && kind.path.is_none() {
        text += &format!("           install: {}\n", escape_line(&kind.install));
    }
    text
}

fn profile_lines(profile: &AgentProfile) -> String {
    let mut about = vec![profile.kind.clone()];
    about.extend(profile.model.as_ref().map(|model| format!("model {model}")));
    about.extend(profile.effort.as_ref().map(|effort| format!("effort {effort}")));
    about.push(format!("style {}", profile.style));
    about.push(format!("account {}", profile.account));
    about.push(format!("sandbox {}", profile.sandbox));
    about.extend(profile.failover.as_ref().map(|next| format!("then {next}")));
    let mut text = format!("{:<10} {}\n", escape_line(&profile.profile), escape_line(&about.join(", ")));
    if let Some(probe) = &profile.probe {
        text += &format!("           {}\n", escape_line(&probe_line(probe)));
    }
    if let Some(command) = &profile.command {
        text += &format!("           runs: {}\n", escape_line(command));
    }
    if let Some(problem) = &profile.problem {
        text += &format!("           PROBLEM: {}\n", escape_line(problem));
    }
    if let Some(hint) = &profile.hint {
        text += &format!("           hint: {}\n", escape_line(hint));
    }
    text
}

/// `answers: landfall (4.1s, sonnet, 812 tokens, $0.01)`.
fn probe_line(probe: &Probed) -> String {
    let detail = if probe.detail.is_empty() { String::new() } else { format!(": {}", probe.detail) };
    let until =
        probe.until_ms.map(|at| format!(" until {}", landfall_text::format_local(at))).unwrap_or_default();
    let mut spent = vec![landfall_text::format_duration(probe.took_ms)];
    spent.extend(probe.model.clone());
    let tokens = probe.usage.tokens_in.saturating_add(probe.usage.tokens_out);
    if tokens > 0 {
        spent.push(format!("{} tokens", landfall_text::format_count(tokens)));
    }
    if let Some(usd) = probe.usage.cost_usd {
        let from = probe.usage.cost_from.map(|from| format!(" {}", from.label())).unwrap_or_default();
        spent.push(format!("{}{from}", landfall_text::format_usd(usd)));
    }
    format!("{}{until}{detail} ({})", probe.answer.label(), spent.join(", "))
}
