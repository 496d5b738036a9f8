//! A goal becomes a graph of tasks: an agent proposes, the model checks, and what takes thought goes back to the agent.

mod answer;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use landfall_host::git::{BranchName, Git, Repo};
use landfall_model::proposal::{self, ExistingTask, ProposalFix, ProposalPlan, ProposalProblem};
use landfall_model::{AgentUsage, Budget, BudgetScope, BudgetUse as _, Spending, Timestamp, Verdict};
use thiserror::Error;

use crate::consult::{self, ConsultReply, ConsultRequest, ConsultWorkspace};
use crate::folder::StateFolder;
use crate::prompts::{PromptContext, PromptProblem, Prompts};
use crate::settings::{ProfileSettings, Settings};

/// What to propose tasks for, and how.
pub struct ProposeContext<'a> {
    /// The settings of the project.
    pub settings: &'a Settings,
    /// Who proposes.
    pub profile: &'a ProfileSettings,
    /// The root of the project.
    pub root: &'a Path,
    /// The branch that work lands on.
    pub base: &'a str,
    /// The state of the project, which the agent must not see.
    pub folder: &'a StateFolder,
    /// Our own executable.
    pub program: PathBuf,
    /// Every environment variable.
    pub environment: &'a [(OsString, OsString)],
    /// What is wanted.
    pub goal: &'a str,
    /// Where that came from.
    pub source: &'a str,
    /// At most so many tasks.
    pub tasks_max: usize,
    /// The tasks that are there.
    pub known: &'a [ExistingTask],
    /// The same for the agent, one line each.
    pub backlog: Vec<String>,
    /// What the day has cost so far.
    pub today: Spending,
    /// Whether whoever asked has left.
    pub is_stopped: &'a dyn Fn() -> bool,
}

/// A proposal that holds together.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposalResult {
    /// The tasks.
    pub plan: ProposalPlan,
    /// What was mended on the way.
    pub mended: Vec<ProposalFix>,
    /// What it took.
    pub effort: ProposalCost,
}

/// What it took.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProposalCost {
    /// How often the agent was asked.
    pub rounds: u32,
    /// What it used.
    pub usage: AgentUsage,
    /// How long it took.
    pub took_ms: u64,
    /// The model it used.
    pub model: Option<String>,
}

/// News of a proposal on its way.
#[derive(Debug, Clone, PartialEq)]
pub enum ProposalProgress {
    /// The agent is being asked.
    Asked {
        /// For the so manieth time.
        round: u32,
        /// At most.
        rounds_max: u32,
    },
    /// It answered, or failed to.
    Answered {
        /// What it used.
        usage: AgentUsage,
        /// How long it took.
        took_ms: u64,
    },
    /// Its answer goes back to it.
    SentBack {
        /// Because of these.
        problems: Vec<String>,
    },
}

/// Why there is no proposal. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ProposeError {
    /// It could not even be tried.
    #[error("ask the agent: {0}")]
    NotAsked(String),
    /// The project cannot be looked at.
    #[error("look at the project: {0}")]
    Project(String),
    /// A template is broken.
    #[error(transparent)]
    Prompt(#[from] PromptProblem),
    /// Nothing good came of all rounds.
    #[error("no proposal that holds together in {rounds} rounds; the last one was no good: {}", problems.join("; "))]
    NoGood {
        /// So many.
        rounds: u32,
        /// What was wrong with the last.
        problems: Vec<String>,
    },
    /// All it thinks of is there already.
    #[error("everything that the agent proposes is there already")]
    NothingNew,
    /// The agent says that it cannot be done.
    #[error("the agent has no tasks to propose: {0}")]
    Declined(String),
    /// The account is used up.
    #[error("the agent's account is used up")]
    Quota {
        /// When it can be used again, if it said.
        until: Option<Timestamp>,
    },
    /// A person has to log in.
    #[error("the agent wants a login: {0}")]
    Login(String),
    /// It took too long.
    #[error("the agent did not answer in time")]
    OutOfTime,
    /// It cost too much.
    #[error("the budget of the {} is used up: {what}", scope.word())]
    OverBudget {
        /// Whose.
        scope: BudgetScope,
        /// How much of how much.
        what: String,
    },
    /// It failed, again and again.
    #[error("the agent failed: {0}")]
    Failed(String),
    /// Whoever asked has left.
    #[error("stopped before there was a proposal")]
    Stopped,
}

/// How often an agent is asked for one proposal.
pub const ROUNDS_MAX: u32 = 5;
const FAILURES_MAX: u32 = 2; // in a row: what fails twice the same way fails again
const PROBLEMS_MAX: usize = 40; // told to the agent; one that makes more begins anew anyway

/// Has the agent propose, and checks what it says, until it holds together.
///
/// # Errors
/// Why there is no proposal.
pub fn propose_tasks(
    asked: &ProposeContext<'_>,
    tell: &mut dyn FnMut(&ProposalProgress),
) -> Result<ProposalResult, ProposeError> {
    let project = |error: String| ProposeError::Project(error);
    let git = Git::find_installed().map_err(|error| project(error.full_message()))?;
    let repo = Repo::discover(&git, asked.root).map_err(|error| project(error.to_string()))?;
    let missing = || project(format!("the base branch `{}` does not exist", asked.base));
    let branch: BranchName = asked.base.parse().map_err(|_| missing())?;
    let tip = repo.branch_tip(&branch).map_err(|error| project(error.full_message()))?.ok_or_else(missing)?;
    let prompts = Prompts::load_templates(Some(&asked.root.join(".landfall/prompts")))?;
    let mut effort = ProposalCost::default();
    let mut feedback: Vec<(String, String)> = Vec::new();
    let mut problems: Vec<String> = Vec::new();
    let mut failures = 0;
    while effort.rounds < ROUNDS_MAX {
        effort.rounds += 1;
        tell(&ProposalProgress::Asked { round: effort.rounds, rounds_max: ROUNDS_MAX });
        let question = build_next_question(asked, ConsultWorkspace::Checkout(&repo, &tip), &effort)?;
        let prompt = |work: &Path| {
            let context = build_proposal_context(asked, effort.rounds, work, &feedback);
            prompts.render("propose", &context).map_err(|error| error.to_string())
        };
        let reply = consult::consult_agent(&question, &prompt).map_err(ProposeError::NotAsked)?;
        tell(&ProposalProgress::Answered { usage: reply.usage, took_ms: reply.took_ms });
        effort.usage = effort.usage.plus(reply.usage);
        effort.took_ms = effort.took_ms.saturating_add(reply.took_ms);
        effort.model = reply.model.clone().or(effort.model.take());
        let heard = match classify_reply(&reply) {
            ProposalRunOutcome::Answer => answer::parse_proposal_answer(&reply.texts),
            ProposalRunOutcome::Failed(detail) => {
                failures += 1;
                if failures >= FAILURES_MAX {
                    return Err(ProposeError::Failed(detail));
                }
                tell(&ProposalProgress::SentBack { problems: vec![format!("the agent failed: {detail}")] });
                problems = vec![detail];
                continue; // nothing to learn from: the same question again
            }
            ProposalRunOutcome::End(error) => return Err(error),
        };
        failures = 0;
        let (answer, wrong) = match heard {
            answer::ProposalAnswer::Proposal { proposal, text } => {
                let checked = proposal::check_proposal(proposal, asked.tasks_max, asked.known);
                if checked.problems.is_empty() {
                    return Ok(ProposalResult { plan: checked.plan, mended: checked.mended, effort });
                }
                // It was shown the backlog: asked again, it would think of the same.
                if checked.problems == [ProposalProblem::NothingNew] {
                    return Err(ProposeError::NothingNew);
                }
                (text, checked.problems.iter().map(ToString::to_string).collect())
            }
            answer::ProposalAnswer::Declined { why } => return Err(ProposeError::Declined(why)),
            answer::ProposalAnswer::Unreadable { problems, text } => (text, problems),
        };
        problems = wrong;
        problems.truncate(PROBLEMS_MAX);
        tell(&ProposalProgress::SentBack { problems: problems.clone() });
        feedback = vec![
            ("What has to be put right".to_owned(), problems.iter().map(|it| format!("- {it}\n")).collect()),
            ("What you proposed".to_owned(), answer),
        ];
    }
    Err(ProposeError::NoGood { rounds: effort.rounds, problems })
}

/// The next round, within the time and the money that are left.
fn build_next_question<'a>(
    asked: &'a ProposeContext<'a>,
    ground: ConsultWorkspace<'a>,
    effort: &ProposalCost,
) -> Result<ConsultRequest<'a>, ProposeError> {
    let settings = asked.settings;
    let so_far = Spending { usage: effort.usage, time_ms: effort.took_ms };
    // A proposal is as one attempt at one task.
    let budgets: Vec<(BudgetScope, Budget, Spending)> = vec![
        (BudgetScope::Attempt, settings.attempt_budget, so_far),
        (BudgetScope::Task, settings.task_budget, so_far),
        (BudgetScope::Day, settings.purse.day, asked.today.plus(so_far)),
    ];
    for (scope, budget, spent) in &budgets {
        if let Some(what) = budget.describe_used_up(*spent) {
            return Err(ProposeError::OverBudget { scope: *scope, what });
        }
    }
    let left_ms = settings.run.task_limit_ms.saturating_sub(effort.took_ms);
    if left_ms == 0 {
        return Err(ProposeError::OutOfTime);
    }
    Ok(ConsultRequest {
        settings,
        profile: asked.profile,
        root: asked.root,
        folder: asked.folder,
        program: &asked.program,
        environment: asked.environment,
        ground,
        about: "proposal",
        round: effort.rounds,
        limit: Duration::from_millis(left_ms),
        budgets,
        out_cap: settings.run.output_cap,
        is_stopped: asked.is_stopped,
    })
}

fn build_proposal_context(
    asked: &ProposeContext<'_>,
    round: u32,
    work: &Path,
    feedback: &[(String, String)],
) -> PromptContext {
    let first = asked.goal.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    PromptContext {
        title: first.trim_start_matches('#').chars().take(TITLE_CHARS_MAX).collect(),
        body: asked.goal.to_owned(),
        iteration: round,
        iterations_max: ROUNDS_MAX,
        step: "propose".to_owned(),
        workspace: work.to_string_lossy().into_owned(),
        base: asked.base.to_owned(),
        feedback: feedback.to_vec(),
        verify_commands: asked.settings.verify.commands.iter().map(|it| it.run.clone()).collect(),
        source: asked.source.to_owned(),
        backlog: asked.backlog.clone(),
        rules: proposal_rules(asked.tasks_max),
        ..PromptContext::default()
    }
}

const TITLE_CHARS_MAX: usize = 120; // a heading

/// What the model will check, for the agent.
fn proposal_rules(tasks_max: usize) -> Vec<String> {
    use landfall_model::proposal::{CRITERIA_MAX, GROUP_TASKS_MAX};
    vec![
        "It is about one thing, and one run of an agent can finish it. What is XL is split.".to_owned(),
        "Its title says in one line what will be different. Its body says all that is needed to begin: whoever does it \
         knows nothing else of your plan."
            .to_owned(),
        format!(
            "It has 1 to {CRITERIA_MAX} criteria, each something that can be seen or run: a command and its result, a \
             test that passes, a text that appears."
        ),
        "It can be proved by itself: code and its tests are one task, not two.".to_owned(),
        "It needs only what must really come first, and the needs never go in a circle.".to_owned(),
        "No two tasks are the same, and none is in the backlog already.".to_owned(),
        format!("A group has at most {GROUP_TASKS_MAX} tasks. Small goals need no groups."),
        format!("There are at most {tasks_max} tasks in all; fewer are better."),
    ]
}

/// What a run of the agent comes to.
enum ProposalRunOutcome {
    /// It answered; whether well is for the answer to say.
    Answer,
    /// It failed in a way that may not come back.
    Failed(String),
    /// Another round would not help.
    End(ProposeError),
}

fn classify_reply(reply: &ConsultReply) -> ProposalRunOutcome {
    let said = |detail: &str| match reply.complaint.as_str() {
        "" => detail.to_owned(),
        complaint => format!("{detail}: {complaint}"),
    };
    match &reply.verdict {
        Verdict::Complete | Verdict::Continue | Verdict::Checkpoint { .. } | Verdict::Pending { .. } => {
            ProposalRunOutcome::Answer
        }
        Verdict::Blocked { reason } => ProposalRunOutcome::End(ProposeError::Declined(reason.clone())),
        Verdict::Quota { until } => ProposalRunOutcome::End(ProposeError::Quota { until: *until }),
        Verdict::Unauthorized { detail } => ProposalRunOutcome::End(ProposeError::Login(detail.clone())),
        Verdict::Stalled | Verdict::OutOfTime => ProposalRunOutcome::End(ProposeError::OutOfTime),
        Verdict::OverBudget { scope, what } => {
            ProposalRunOutcome::End(ProposeError::OverBudget { scope: *scope, what: what.clone() })
        }
        Verdict::Stopped => ProposalRunOutcome::End(ProposeError::Stopped),
        Verdict::NotStarted { detail, hopeless: true } => {
            ProposalRunOutcome::End(ProposeError::NotAsked(detail.clone()))
        }
        Verdict::NotStarted { detail, hopeless: false } => ProposalRunOutcome::Failed(detail.clone()),
        Verdict::Transient { detail } | Verdict::Crashed { detail } => {
            ProposalRunOutcome::Failed(said(detail))
        }
        Verdict::SessionGone | Verdict::Looping | Verdict::ContextUsedUp | Verdict::Lost => {
            ProposalRunOutcome::Failed(said("it ended without an answer"))
        }
    }
}
