//! `landfall project plugin`: the skills for a person's assistant, put in place and taken away.

use std::path::PathBuf;

use clap::Subcommand;
use landfall_text::control_chars::escape_line;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::plugin::{Change, ChangeKind, Host, Kept, Plan, Spot, SpotProblem};
use crate::say::talk;

/// Install `/auto` and the other skills for your assistant
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Install or update the plugin for Claude Code, and its skills for other agents
    ///
    /// A file that you changed stays as it is.
    Install(Where),
    /// Remove the plugin; files that you changed, and files of others, stay
    Remove(Where),
    /// Show where the plugin is installed, and its version
    Status,
}

#[derive(clap::Args)]
struct Where {
    /// Target: `claude` for Claude Code, `skills` for agents that read Agent Skills (Codex, Gemini CLI, opencode and others);
    /// the default is both
    #[arg(long = "for", value_name = "WHOM")]
    hosts: Vec<Host>,

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
enum Scope {
    User,
    Project,
}

/// What became of a place, for programs.
#[derive(Serialize)]
struct Done {
    #[serde(rename = "for")]
    host: Host,
    scope: Scope,
    folder: PathBuf,
    changes: Vec<Change>,
    kept: Vec<Kept>,
    same: usize,
}

/// How a place is, for programs.
#[derive(Serialize)]
struct Standing {
    #[serde(rename = "for")]
    host: Host,
    scope: Scope,
    folder: PathBuf,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    kept: Vec<Kept>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// Nothing of it is there.
    Missing,
    /// It is there, in another version or not whole.
    Outdated,
    /// It is there.
    Installed,
}

pub fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    match args.what {
        What::Install(place) => change(&place, Spot::plan_install, context)?,
        What::Remove(place) => change(&place, Spot::plan_remove, context)?,
        What::Status => {
            let mut places = Vec::new();
            for scope in [Scope::User, Scope::Project] {
                // Outside of a repository there is no place of a project.
                match spots(&[], scope, context) {
                    Ok(spots) => places.extend(spots.into_iter().map(|spot| (spot, scope))),
                    Err(_) if scope == Scope::Project => {}
                    Err(failure) => return Err(failure),
                }
            }
            let stand = |(spot, scope)| standing(spot, scope);
            let standings = places.into_iter().map(stand).collect::<Result<Vec<_>, _>>()?;
            context.answer(&standings, |standings| standings.iter().map(standing_line).collect())?;
        }
    }
    Ok(Exit::Ok)
}

/// Does what `plan` says in every place that is meant, or tells it.
fn change(
    place: &Where,
    plan: fn(&Spot) -> Result<Plan, SpotProblem>,
    context: &Context,
) -> Result<(), Failure> {
    let scope = if place.project { Scope::Project } else { Scope::User };
    let spots = spots(&place.hosts, scope, context)?;
    // Everything is looked at before anything is changed.
    let plans = spots.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
    let mut done = Vec::new();
    for (spot, plan) in spots.into_iter().zip(plans) {
        if !place.dry_run {
            spot.carry_out(&plan)?;
        }
        let Plan { changes, kept, same, version: _ } = plan;
        done.push(Done { host: spot.host, scope, folder: spot.folder, changes, kept, same });
    }
    context.answer(&done, |done| done.iter().map(|done| lines(done, place.dry_run)).collect())?;
    if !context.json {
        after(&done, place.dry_run);
    }
    Ok(())
}

/// The places for these readers; for all of them when none is named.
fn spots(hosts: &[Host], scope: Scope, context: &Context) -> Result<Vec<Spot>, Failure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || {
        let hint = "set HOME, or say `--project`";
        set("HOME").ok_or_else(|| Failure::new(Exit::Machine, "HOME is not set").hint(hint))
    };
    let (claude, others) = match scope {
        Scope::User => {
            let claude =
                set("CLAUDE_CONFIG_DIR").map_or_else(|| home().map(|home| home.join(".claude")), Ok)?;
            (claude, home()?.join(".agents"))
        }
        Scope::Project => {
            let root = landfall_app::project(&context.at)?.root;
            (root.join(".claude"), root.join(".agents"))
        }
    };
    let hosts = if hosts.is_empty() { &[Host::Claude, Host::Skills] } else { hosts };
    let spot = |host: &Host| match host {
        Host::Claude => Spot { host: *host, folder: claude.join("skills/landfall") },
        Host::Skills => Spot { host: *host, folder: others.join("skills") },
    };
    let mut spots: Vec<Spot> = hosts.iter().map(spot).collect();
    spots.dedup();
    Ok(spots)
}

fn standing(spot: Spot, scope: Scope) -> Result<Standing, SpotProblem> {
    let plan = spot.plan_install()?;
    let state = match (&plan.version, plan.changes.is_empty()) {
        (None, _) => State::Missing,
        (Some(_), true) => State::Installed,
        (Some(_), false) => State::Outdated,
    };
    let Plan { kept, version, .. } = plan;
    Ok(Standing { host: spot.host, scope, folder: spot.folder, state, version, kept })
}

fn reader(host: Host) -> &'static str {
    match host {
        Host::Claude => "Claude Code",
        Host::Skills => "other agents",
    }
}

fn standing_line(it: &Standing) -> String {
    let folder = it.folder.display().to_string();
    let state = match (it.state, &it.version) {
        (State::Missing, _) => "not installed".to_owned(),
        (State::Installed, version) => format!("installed ({})", version.as_deref().unwrap_or_default()),
        (State::Outdated, version) => {
            format!(
                "{} or not whole; `landfall project plugin install` brings it up to date",
                version.as_deref().unwrap_or("old")
            )
        }
    };
    let scope = match it.scope {
        Scope::User => "user",
        Scope::Project => "project",
    };
    let kept: String = it.kept.iter().map(kept_line).collect();
    format!("{:<12} {scope:<7} {}: {}\n{kept}", reader(it.host), escape_line(&folder), escape_line(&state))
}

fn kept_line(kept: &Kept) -> String {
    format!("  kept    {} ({})\n", escape_line(&kept.path.display().to_string()), kept.why)
}

fn lines(done: &Done, dry_run: bool) -> String {
    let mut text = format!("{} in {}\n", reader(done.host), escape_line(&done.folder.display().to_string()));
    for Change { path, what } in &done.changes {
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
fn after(done: &[Done], dry_run: bool) {
    let wrote = |done: &&Done| done.changes.iter().any(|change| change.what != ChangeKind::Remove);
    if dry_run {
        return;
    }
    if done.iter().any(|done| !done.kept.is_empty()) {
        talk("what was kept is yours: move it away and install again to have ours");
    }
    for done in done.iter().filter(wrote) {
        match (done.host, done.scope) {
            (Host::Claude, Scope::User) => {
                talk("new sessions of Claude Code have `/auto`; in an open one, `/reload-plugins` brings it");
            }
            (Host::Claude, Scope::Project) => {
                talk("Claude Code has `/auto` here once you trust this folder, in its next session");
            }
            (Host::Skills, _) => {
                talk("the next session of your agent has the skills, as `landfall-auto` and so on")
            }
        }
    }
}

impl From<SpotProblem> for Failure {
    fn from(problem: SpotProblem) -> Self {
        Self::new(Exit::Machine, problem.to_string()).hint(
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
                match crate::commands::cli().try_get_matches_from(words) {
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
