//! `landfall project plugin`: the skills for a person's assistant, put in place and taken away.

use std::path::PathBuf;

use clap::Subcommand;
use landfall_text::control_chars::escape_line;
use serde::Serialize;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::plugin::{
    ChangeKind, PluginFileChange, PluginFileError, PluginHost, PluginLocation, PluginPlan, UntouchedFile,
};
use crate::say::print_message;

/// Install `/auto` and the other skills for your assistant
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: PluginSubcommand,
}

#[derive(Subcommand)]
enum PluginSubcommand {
    /// Install or update the plugin for Claude Code, and its skills for other agents
    ///
    /// A file that you changed stays as it is.
    Install(PluginTargetArgs),
    /// Remove the plugin; files that you changed, and files of others, stay
    Remove(PluginTargetArgs),
    /// Show where the plugin is installed, and its version
    Status,
}

#[derive(clap::Args)]
struct PluginTargetArgs {
    /// Target: `claude` for Claude Code, `skills` for agents that read Agent Skills (Codex, Gemini CLI, opencode and others);
    /// the default is both
    #[arg(long = "for", value_name = "WHOM")]
    hosts: Vec<PluginHost>,

    /// Install in this project, for everybody who works on it
    #[arg(long, conflicts_with = "user")]
    project: bool,

    /// Install in your home folder, for all your projects; this is the default
    #[arg(long)]
    user: bool,

    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Where the plugin can be, for all projects or for this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum PluginScope {
    User,
    Project,
}

/// What became of a place, for programs.
#[derive(Serialize)]
struct PluginReport {
    #[serde(rename = "for")]
    host: PluginHost,
    scope: PluginScope,
    folder: PathBuf,
    changes: Vec<PluginFileChange>,
    kept: Vec<UntouchedFile>,
    same: usize,
}

/// How a place is, for programs.
#[derive(Serialize)]
struct PluginStatus {
    #[serde(rename = "for")]
    host: PluginHost,
    scope: PluginScope,
    folder: PathBuf,
    state: PluginState,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    kept: Vec<UntouchedFile>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum PluginState {
    /// Nothing of it is there.
    Missing,
    /// It is there, in another version or not whole.
    Outdated,
    /// It is there.
    Installed,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    match args.what {
        PluginSubcommand::Install(place) => change_plugins(&place, PluginLocation::plan_install, context)?,
        PluginSubcommand::Remove(place) => change_plugins(&place, PluginLocation::plan_remove, context)?,
        PluginSubcommand::Status => {
            let mut places = Vec::new();
            for scope in [PluginScope::User, PluginScope::Project] {
                // Outside of a repository there is no place of a project.
                match find_locations(&[], scope, context) {
                    Ok(spots) => places.extend(spots.into_iter().map(|spot| (spot, scope))),
                    Err(_) if scope == PluginScope::Project => {}
                    Err(failure) => return Err(failure),
                }
            }
            let stand = |(spot, scope)| plugin_status(spot, scope);
            let standings = places.into_iter().map(stand).collect::<Result<Vec<_>, _>>()?;
            context.print_answer(&standings, |standings| standings.iter().map(standing_line).collect())?;
        }
    }
    Ok(CliExit::Ok)
}

/// Does what `plan` says in every place that is meant, or tells it.
fn change_plugins(
    place: &PluginTargetArgs,
    plan: fn(&PluginLocation) -> Result<PluginPlan, PluginFileError>,
    context: &CliContext,
) -> Result<(), CommandFailure> {
    let scope = if place.project { PluginScope::Project } else { PluginScope::User };
    let spots = find_locations(&place.hosts, scope, context)?;
    // Everything is looked at before anything is changed.
    let plans = spots.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
    let mut done = Vec::new();
    for (spot, plan) in spots.into_iter().zip(plans) {
        if !place.dry_run {
            spot.apply_plan(&plan)?;
        }
        let PluginPlan { changes, kept, same, version: _ } = plan;
        done.push(PluginReport { host: spot.host, scope, folder: spot.folder, changes, kept, same });
    }
    context
        .print_answer(&done, |done| done.iter().map(|done| render_report(done, place.dry_run)).collect())?;
    if !context.json {
        print_next_steps(&done, place.dry_run);
    }
    Ok(())
}

/// The places for these readers; for all of them when none is named.
fn find_locations(
    hosts: &[PluginHost],
    scope: PluginScope,
    context: &CliContext,
) -> Result<Vec<PluginLocation>, CommandFailure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || {
        let hint = "set HOME, or say `--project`";
        set("HOME").ok_or_else(|| CommandFailure::new(CliExit::Machine, "HOME is not set").with_hint(hint))
    };
    let (claude, others) = match scope {
        PluginScope::User => {
            let claude =
                set("CLAUDE_CONFIG_DIR").map_or_else(|| home().map(|home| home.join(".claude")), Ok)?;
            (claude, home()?.join(".agents"))
        }
        PluginScope::Project => {
            let root = landfall_app::find_project(&context.at)?.root;
            (root.join(".claude"), root.join(".agents"))
        }
    };
    let hosts = if hosts.is_empty() { &[PluginHost::Claude, PluginHost::Skills] } else { hosts };
    let spot = |host: &PluginHost| match host {
        PluginHost::Claude => PluginLocation { host: *host, folder: claude.join("skills/landfall") },
        PluginHost::Skills => PluginLocation { host: *host, folder: others.join("skills") },
    };
    let mut spots: Vec<PluginLocation> = hosts.iter().map(spot).collect();
    spots.dedup();
    Ok(spots)
}

fn plugin_status(spot: PluginLocation, scope: PluginScope) -> Result<PluginStatus, PluginFileError> {
    let plan = spot.plan_install()?;
    let state = match (&plan.version, plan.changes.is_empty()) {
        (None, _) => PluginState::Missing,
        (Some(_), true) => PluginState::Installed,
        (Some(_), false) => PluginState::Outdated,
    };
    let PluginPlan { kept, version, .. } = plan;
    Ok(PluginStatus { host: spot.host, scope, folder: spot.folder, state, version, kept })
}

fn host_label(host: PluginHost) -> &'static str {
    match host {
        PluginHost::Claude => "Claude Code",
        PluginHost::Skills => "other agents",
    }
}

fn standing_line(it: &PluginStatus) -> String {
    let folder = it.folder.display().to_string();
    let state = match (it.state, &it.version) {
        (PluginState::Missing, _) => "not installed".to_owned(),
        (PluginState::Installed, version) => {
            format!("installed ({})", version.as_deref().unwrap_or_default())
        }
        (PluginState::Outdated, version) => {
            format!(
                "{} or not whole; `landfall project plugin install` brings it up to date",
                version.as_deref().unwrap_or("old")
            )
        }
    };
    let scope = match it.scope {
        PluginScope::User => "user",
        PluginScope::Project => "project",
    };
    let kept: String = it.kept.iter().map(kept_line).collect();
    format!(
        "{:<12} {scope:<7} {}: {}\n{kept}",
        host_label(it.host),
        escape_line(&folder),
        escape_line(&state)
    )
}

fn kept_line(kept: &UntouchedFile) -> String {
    format!("  kept    {} ({})\n", escape_line(&kept.path.display().to_string()), kept.why)
}

fn render_report(done: &PluginReport, dry_run: bool) -> String {
    let mut text =
        format!("{} in {}\n", host_label(done.host), escape_line(&done.folder.display().to_string()));
    for PluginFileChange { path, what } in &done.changes {
        let word = match (what, dry_run) {
            (ChangeKind::Write, false) => "written",
            (ChangeKind::Update, false) => "updated",
            (ChangeKind::Remove, false) => "removed",
            (ChangeKind::Write, true) => "would write",
            (ChangeKind::Update, true) => "would update",
            (ChangeKind::Remove, true) => "would remove",
        };
        text += &format!("  {word:<7} {}\n", escape_line(&path.display().to_string()));
    }
    text.extend(done.kept.iter().map(kept_line));
    if done.changes.is_empty() && done.kept.is_empty() {
        text += if done.same == 0 { "  nothing is there\n" } else { "  nothing to do: it is up to date\n" };
    }
    text
}

/// What a person does next.
fn print_next_steps(done: &[PluginReport], dry_run: bool) {
    let wrote = |done: &&PluginReport| done.changes.iter().any(|change| change.what != ChangeKind::Remove);
    if dry_run {
        return;
    }
    if done.iter().any(|done| !done.kept.is_empty()) {
        print_message("what was kept is yours: move it away and install again to have ours");
    }
    for done in done.iter().filter(wrote) {
        match (done.host, done.scope) {
            (PluginHost::Claude, PluginScope::User) => {
                print_message(
                    "new sessions of Claude Code have `/auto`; in an open one, `/reload-plugins` brings it",
                );
            }
            (PluginHost::Claude, PluginScope::Project) => {
                print_message("Claude Code has `/auto` here once you trust this folder, in its next session");
            }
            (PluginHost::Skills, _) => {
                print_message("the next session of your agent has the skills, as `landfall-auto` and so on")
            }
        }
    }
}

impl From<PluginFileError> for CommandFailure {
    fn from(problem: PluginFileError) -> Self {
        Self::new(CliExit::Machine, problem.to_string()).with_hint(
            "doing it again goes on from there; `landfall project plugin status` shows what is in place",
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use crate::plugin::SKILLS;

    /// Commands that the skills name, as they stand in their code.
    fn commands(text: &str) -> Vec<String> {
        let fenced = text.lines().filter(|line| line.starts_with("landfall ")).map(str::to_owned);
        let inline = text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|code| code.starts_with("landfall "))
            .map(str::to_owned);
        fenced.chain(inline).collect()
    }

    /// The words of a command line: blanks part them, but not within quotes; `#` ends it.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" #").next().unwrap_or(line);
        let mut words = Vec::new();
        for (number, part) in line.split('"').enumerate() {
            match number % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words
    }

    /// Commands that may not be there yet; as soon as they are, their words are looked at.
    const COMING: [&str; 4] = ["do", "target", "refine", "annotate"];

    #[test]
    fn every_command_in_a_skill_is_one_that_there_is() {
        let mut seen = 0;
        for (name, text) in SKILLS {
            for line in commands(text) {
                let words = words(&line);
                let command =
                    words.iter().skip(1).find(|word| !word.starts_with('-')).cloned().unwrap_or_default();
                match crate::commands::build_cli().try_get_matches_from(words) {
                    Err(error)
                        if error.kind() == ErrorKind::InvalidSubcommand
                            && COMING.contains(&command.as_str()) => {}
                    Err(error) => panic!("{name}: {line}: {error}"),
                    Ok(_) => seen += 1,
                }
            }
        }
        assert!(seen > 20, "only {seen} were found");
    }
}
