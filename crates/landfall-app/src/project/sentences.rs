//! Facts as one line for people: for `log`, and the ones that matter for the news of a run.

use landfall_engine::model::auto::AutoEvent;
use landfall_engine::model::checkpoint::{CheckpointEvent, CheckpointReason};
use landfall_engine::model::gate::{CheckOutcome, CommandResult, GateReport};
use landfall_engine::model::haul::IssueBatchEvent;
use landfall_engine::model::issue::IssueEvent;
use landfall_engine::model::pilot::{PilotEvent, PilotMode};
use landfall_engine::model::queue::{BatchEnd, BatchId, BatchMember, QueueEvent};
use landfall_engine::model::review::{self, Finding};
use landfall_engine::model::sprint::{SprintEnd, SprintEndCondition, SprintEvent};
use landfall_engine::model::{
    AccountState, AgentExit, AgentUsage, AttemptStart, BaseMover, BudgetScope, EdgeTarget, EndCode, EndKind,
    Ending, EngineEvent, Event, ExhaustedBudget, RunEnd, SessionStart, StepResult, StopRequest, Task, TaskId,
    Verdict, WaitReason, Warning, YieldReason, format_micro_usd, own_limits_text,
};
use landfall_text::{format_count, format_duration, pluralize};

use crate::project::clock;
use crate::project::conversions;
use crate::project::staged_text;

/// What happened to a task, in one line without its name.
pub(crate) fn event_sentence(event: &Event) -> String {
    match event {
        Event::Added { spec } => format!("added: {}", spec.title),
        Event::Edited { spec } => format!("its words were changed: {}", spec.title),
        Event::Offered { head } => format!("its work is offered as {}", head.short_hash()),
        Event::Bound { flow, limits, driving } => format!(
            "takes the flow `{}` with the profile `{}`: at most {} and {}",
            flow.name,
            driving.profile,
            pluralize(u64::from(limits.iterations_max), "iteration"),
            format_duration(limits.task_ms)
        ),
        Event::Entered { attempt, step, run, opening } => {
            format!("attempt {attempt} of step `{step}` began in {run}: {}", opening_words(*opening))
        }
        Event::WorkspaceMade { base, .. } => format!("its workspace is ready, at {}", base.short_hash()),
        Event::IterationBegan { iteration, talk, .. } => match talk {
            SessionStart::New => format!("iteration {iteration} began"),
            SessionStart::Resumed { compact: false, .. } => {
                format!("iteration {iteration} began, with its earlier session")
            }
            SessionStart::Resumed { compact: true, .. } => {
                format!(
                    "iteration {iteration} began, with its earlier session, which is to sum itself up first"
                )
            }
        },
        Event::IterationEnded { iteration, exit, verdict, took_ms, usage, traces, .. } => {
            let used = usage_suffix(*usage);
            let model = traces.model.as_ref().map(|model| format!(" with {model}")).unwrap_or_default();
            format!(
                "iteration {iteration}{model} ended after {}{used}: {} ({})",
                format_duration(*took_ms),
                verdict_words(verdict),
                exit_words(exit)
            )
        }
        Event::Warned(warning) => format!("warning: {}", warning.to_sentence()),
        Event::Collected { head, leftovers: false, .. } => {
            format!("its work was brought in: {}", head.short_hash())
        }
        Event::Collected { head, leftovers: true, .. } => {
            format!("its work was brought in, with what the agent left uncommitted: {}", head.short_hash())
        }
        Event::Verified { report, .. } => {
            format!(
                "verified on {}: {}, {}",
                report.base.short_hash(),
                report.outcome().word(),
                gate_summary(report)
            )
        }
        Event::Conflicted { base, paths, .. } => {
            format!("conflicts with {} in {}", base.short_hash(), paths.join(", "))
        }
        Event::BaseMoved { to, .. } => format!("the base moved to {} before it could land", to.short_hash()),
        Event::Left { step, result, to, .. } => {
            format!("step `{step}` ended with {}: {}", result_words(*result), edge_target_label(to))
        }
        Event::Yielded { why, .. } => {
            format!("the attempt ended without a result: {}", yield_reason_label(*why))
        }
        Event::Waited { wait, .. } => format!("waits: {}", wait_words(wait)),
        Event::Resumed { .. } => "the wait is over".to_owned(),
        Event::ReviewWanted { concerns, .. } => {
            let list = concerns.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            format!("a person must look at it: it {list}")
        }
        Event::Reviewed { approved: true, note } => format!("approved{}", colon_suffix(note)),
        Event::Reviewed { approved: false, note } => format!("sent back{}", colon_suffix(note)),
        Event::LandingBegan { batch, report, .. } => {
            format!("{batch} is verified ({}) and lands", gate_summary(report))
        }
        Event::Requeued { unsure: false, .. } => "stands in the landing queue again".to_owned(),
        Event::Requeued { unsure: true, .. } => {
            "stands in the landing queue again; whether it landed is looked at first".to_owned()
        }
        Event::Ejected { batch, report, .. } => {
            format!("sent back out of {batch}: together with what landed before it, {}", gate_summary(report))
        }
        Event::Opinion { findings, .. } => review_opinion(findings.as_deref()),
        Event::Replied { text } => format!("the agent answers its reviewer: {}", one_line(text)),
        Event::Strode { stride, .. } => format!("the agent's own loop: {stride}"),
        Event::AccountWaitBegan { until: Some(until), .. } => {
            format!(
                "the agent waits for its account until {}; no working time is spent",
                clock::format_when(until.0)
            )
        }
        Event::AccountWaitBegan { until: None, .. } => {
            "the agent waits for its account; no working time is spent".to_owned()
        }
        Event::AccountWaitEnded { .. } => "the agent goes on after a wait for its account".to_owned(),
        Event::SentBack { to } => format!("goes on from an earlier state of its work: {}", to.short_hash()),
        Event::ReviewOwed => "landed; a person is to look at it when there is time".to_owned(),
        Event::Signed { decision, note } => format!("looked at: {}{}", decision.word(), colon_suffix(note)),
        Event::Landed { commit, base_before, .. } => {
            format!("landed as {} on {}", commit.short_hash(), base_before.short_hash())
        }
        Event::Reported { certificate, .. } => match certificate {
            Some(_) => "its report and its certificate were written".to_owned(),
            None => "its report was written".to_owned(),
        },
        Event::StopAsked { stop } => format!("it is being stopped: {}", stop_words(stop)),
        Event::Ended(ending) => ending_label(ending),
        Event::Retried { fresh: true, .. } => "taken up again, from a new workspace".to_owned(),
        Event::Retried { fresh: false, .. } => "taken up again".to_owned(),
        Event::WorkspaceRemoved { kept: None } => {
            "its workspace was given back; nothing in it was unmerged".to_owned()
        }
        Event::WorkspaceRemoved { kept: Some(kept) } => {
            format!("its workspace was given back; what was left in it is kept as {}", kept.short_hash())
        }
        Event::Messaged { about: None, text } => format!("you said to its agent: {}", one_line(text)),
        Event::Messaged { about: Some(about), text } => {
            format!("its agent is told ({about}): {}", one_line(text))
        }
        Event::Held { reason } => format!("held by you{}", colon_suffix(reason)),
        Event::Released => "released".to_owned(),
        Event::LimitsSet { limits } => {
            format!("has limits of its own: {}", own_limits_text(*limits).unwrap_or_default())
        }
        Event::Staged(event) => staged_text::staged_event_sentence(event),
        Event::Directed { step, alone: true } => format!("you want step `{step}` done, and nothing after it"),
        Event::Directed { step, alone: false } => format!("goes on with step `{step}`"),
        Event::Reopened { text } => format!("reopened by you: {}", one_line(text)),
        Event::Recovery(event) => one_line(&event.line()),
        Event::Issue(event) => one_line(&event.line()),
    }
}

/// What happened to the engine, in one line.
pub(crate) fn engine_event_sentence(event: &EngineEvent) -> String {
    match event {
        EngineEvent::Started { version } => format!("an engine took over (version {version})"),
        EngineEvent::RunStarted { run, slots, only } => {
            let only = if only.is_empty() {
                String::new()
            } else {
                format!(", only for {}", conversions::join_ids(only))
            };
            format!("run {run} began with {}{only}", pluralize(u64::from(*slots), "slot"))
        }
        EngineEvent::RunEnded { run, why } => format!("run {run} ended: {}", run_end(*why)),
        EngineEvent::BaseMoved { to, by, .. } => match by {
            BaseMover::Landing(task) => format!("the base is at {} ({task} landed)", to.short_hash()),
            BaseMover::Person => format!("the base is at {} (a person moved it)", to.short_hash()),
            BaseMover::Rebuild => {
                format!("the base is at {} (a person's commits and landed work, merged)", to.short_hash())
            }
        },
        EngineEvent::Published { commit, how } => format!("published {}: {how}", commit.short_hash()),
        EngineEvent::PublishHeld { commit, reason } => {
            format!("{} is not published: {reason}", commit.short_hash())
        }
        EngineEvent::Account { account, state } => account_words(account, state),
        EngineEvent::Queue(event) => queue_event_sentence(event),
        EngineEvent::Pilot(event) => pilot_event_sentence(event),
        EngineEvent::Sprint(event) => sprint_event_sentence(event),
        EngineEvent::Checkpoint(event) => checkpoint_event_sentence(event),
        EngineEvent::Measured { report } => format!("the base itself was checked: {}", gate_summary(report)),
        EngineEvent::DiscoveryDropped { number } => format!("discovery {number} was withdrawn"),
        EngineEvent::Consulted { about, profile, usage, .. } => {
            format!("agent `{profile}` was asked for a {about}{}", usage_suffix(*usage))
        }
        EngineEvent::Auto(AutoEvent::Started { session, module, task, iterations_max, minutes_max }) => {
            format!(
                "session `{session}` took up {task} of `{module}`: at most {}, {}",
                pluralize(u64::from(*iterations_max), "iteration"),
                pluralize(u64::from(*minutes_max), "minute"),
            )
        }
        EngineEvent::Auto(AutoEvent::StopAsked { session }) => {
            format!("the loop of session `{session}` is to stop")
        }
        EngineEvent::Haul(IssueBatchEvent::Begun { haul, issues, .. }) => {
            let numbers: Vec<String> = issues.iter().map(|number| format!("#{number}")).collect();
            format!(
                "{haul}: {} asked for together: {}",
                pluralize(issues.len() as u64, "issue"),
                numbers.join(", ")
            )
        }
    }
}

/// What a reviewer made of the work.
pub(crate) fn review_opinion(findings: Option<&[Finding]>) -> String {
    let Some(findings) = findings else { return "what its reviewer said could not be read".to_owned() };
    let open: Vec<&Finding> = findings.iter().filter(|finding| !finding.resolved).collect();
    let blocking: Vec<String> = review::blocking_findings(findings).map(ToString::to_string).collect();
    match (open.len(), blocking.len()) {
        (0, _) => "its reviewer found nothing to say against it".to_owned(),
        (many, 0) => format!("its reviewer agrees, with {}", pluralize(many as u64, "remark")),
        (_, _) => format!("its reviewer wants changes: {}", one_line(&blocking.join("; "))),
    }
}

fn queue_event_sentence(event: &QueueEvent) -> String {
    let tasks = |members: &[BatchMember]| {
        let ids: Vec<TaskId> = members.iter().map(|member| member.task).collect();
        conversions::join_ids(&ids)
    };
    match event {
        QueueEvent::Formed { batch, on: None, members } => {
            format!("{batch} was formed, to land together: {}", tasks(members))
        }
        QueueEvent::Formed { batch, on: Some(on), members } => {
            format!("{batch} was formed, to land together after {on}: {}", tasks(members))
        }
        QueueEvent::Built { batch, base, members, .. } if members.is_empty() => {
            format!("nobody of {batch} could be merged onto {}", base.short_hash())
        }
        QueueEvent::Built { batch, base, members, .. } => {
            format!("{batch} was merged onto {}: {}", base.short_hash(), tasks(members))
        }
        QueueEvent::CheckBegan { batch, count } => {
            format!("{} being verified", first(*count, batch, "is", "are"))
        }
        QueueEvent::Checked { batch, count, report } => {
            let who = first(*count, batch, "was verified", "were verified together");
            format!("{who}: {}, {}", report.outcome().word(), gate_summary(report))
        }
        QueueEvent::Doubted { batch, count } => {
            format!("{} green, with fewer tests than on the base", first(*count, batch, "is", "are"))
        }
        QueueEvent::LandingBegan { batch, count } => {
            format!("{} landing", first(*count, batch, "is", "are"))
        }
        QueueEvent::Over { batch, how: BatchEnd::Landed { count: many, commit } } => {
            format!("{batch} landed as {}: {}", commit.short_hash(), pluralize(*many as u64, "task"))
        }
        QueueEvent::Over { batch, how: BatchEnd::Dropped { reason } } => {
            format!("{batch} was given up{}", colon_suffix(reason))
        }
        QueueEvent::Held { reason, until, .. } => {
            let until =
                until.map(|until| format!(" until {}", clock::format_when(until.0))).unwrap_or_default();
            format!("the landing queue is held{until}{}", colon_suffix(reason))
        }
        QueueEvent::Resumed => "the landing queue moves again".to_owned(),
    }
}

/// So many members of a batch from its front, with a verb.
fn first(many: usize, batch: &BatchId, one: &str, several: &str) -> String {
    match many {
        1 => format!("the first of {batch} {one}"),
        many => format!("the first {many} of {batch} {several}"),
    }
}

fn pilot_event_sentence(event: &PilotEvent) -> String {
    match event {
        PilotEvent::ModeSet { mode: PilotMode::Autopilot } => "on autopilot: every slot is filled".to_owned(),
        PilotEvent::ModeSet { mode: PilotMode::SemiAuto } => {
            "semi-automatic: a person picks each task".to_owned()
        }
        PilotEvent::Assigned { task } => format!("{task} was picked"),
        PilotEvent::Settled => "what was picked is over; a person picks the next task".to_owned(),
        PilotEvent::Paused { reason, .. } => format!("paused{}", colon_suffix(reason)),
        PilotEvent::Resumed => "resumed".to_owned(),
    }
}

fn sprint_event_sentence(event: &SprintEvent) -> String {
    match event {
        SprintEvent::Started { sprint, plan, ready } => {
            format!(
                "sprint {sprint} began ({}), with {} ready",
                sprint_goal_label(plan.goal),
                pluralize(u64::from(*ready), "task")
            )
        }
        SprintEvent::Paused { reason } => format!("the sprint is paused{}", colon_suffix(reason)),
        SprintEvent::Resumed => "the sprint goes on".to_owned(),
        SprintEvent::Completing { why } => {
            format!("the sprint finishes what is under way: {}", sprint_end(*why))
        }
        SprintEvent::Ended { why } => format!("the sprint is over: {}", sprint_end(*why)),
    }
}

/// What a sprint wants, in a few words.
pub(crate) fn sprint_goal_label(goal: SprintEndCondition) -> String {
    match goal {
        SprintEndCondition::Count(many) => pluralize(u64::from(many), "task"),
        SprintEndCondition::Duration { ms } => format_duration(ms),
        SprintEndCondition::Until(at) => format!("until {}", clock::format_when(at.0)),
        SprintEndCondition::NoReady => "until nothing is ready".to_owned(),
    }
}

pub(crate) fn sprint_end(why: SprintEnd) -> &'static str {
    match why {
        SprintEnd::Goal => "its goal was reached",
        SprintEnd::NothingLeft => "nothing was left that could start",
        SprintEnd::Cancelled => "a person ended it",
        SprintEnd::Spent => "the budget was used up",
    }
}

fn checkpoint_event_sentence(event: &CheckpointEvent) -> String {
    match event {
        CheckpointEvent::Made { name, commit, why } => {
            let why = match why {
                CheckpointReason::Landings => "several tasks landed since the last",
                CheckpointReason::Sprint => "a sprint begins",
                CheckpointReason::Person => "a person wanted it",
                CheckpointReason::Restore => "an earlier one is to be restored",
            };
            format!("checkpoint `{name}` was made at {}: {why}", commit.short_hash())
        }
        CheckpointEvent::Dropped { name } => format!("checkpoint `{name}` is no longer kept"),
    }
}

fn account_words(account: &str, state: &AccountState) -> String {
    match state {
        AccountState::Open => format!("the account `{account}` can be worked on again"),
        AccountState::UsedUp { until, guessed: true } => format!(
            "the account `{account}` is used up and the agent named no reset; one agent tries it {} (a guess)",
            clock::format_when(until.0)
        ),
        AccountState::UsedUp { until, guessed: false } => {
            format!(
                "the account `{account}` is used up until {}; one agent tries it then",
                clock::format_when(until.0)
            )
        }
        AccountState::Troubled { until, tries } => format!(
            "the provider of the account `{account}` has trouble, {tries} times in a row; one agent tries it {}",
            clock::format_when(until.0)
        ),
        AccountState::LoggedOut { task } => {
            format!("the account `{account}` wants a login; {task} asks for it")
        }
    }
}

/// What someone who watches a run wants to hear of a fact. `task` is as it is after it.
pub(crate) fn task_news(event: &Event, task: Option<&Task>, branch: &str) -> Option<String> {
    match event {
        Event::IterationBegan { iteration: 1, .. } => Some("started".to_owned()),
        Event::IterationEnded { iteration, verdict, .. } => match verdict {
            Verdict::Complete => Some(format!("iteration {iteration}: the agent says it is done")),
            Verdict::Pending { .. } | Verdict::Blocked { .. } => None, // what follows says it better
            other => Some(format!("iteration {iteration} ended: {}", verdict_words(other))),
        },
        Event::Collected { leftovers: true, .. } => {
            Some("the agent left work uncommitted; the engine committed it".to_owned())
        }
        Event::Verified { report, .. } if report.outcome().is_green() => match report.reused {
            true => None,
            false => Some(format!("verification passed: {}", gate_summary(report))),
        },
        Event::Verified { report, .. } => Some(format!("verification failed: {}", gate_summary(report))),
        Event::Conflicted { paths, .. } => Some(format!("conflicts with {branch} in {}", paths.join(", "))),
        Event::BaseMoved { to, .. } => {
            Some(format!("{branch} moved to {} first; verifying on top of it", to.short_hash()))
        }
        Event::Warned(warning) => match warning {
            Warning::VerificationEmpty | Warning::Stuck { .. } | Warning::NearIterationsMax { .. } => {
                Some(format!("warning: {}", warning.to_sentence()))
            }
            Warning::Flaky { .. }
            | Warning::OptionalFailed { .. }
            | Warning::SignalMalformed { .. }
            | Warning::HookFailed { .. }
            | Warning::Folder { .. } => Some(format!("warning: {}", warning.to_sentence())),
            Warning::Discovery { .. } | Warning::SettingsTouched { .. } => Some(warning.to_sentence()),
            Warning::LeftoversCommitted => None, // told when the work was brought in
        },
        Event::Waited { wait, .. } => match wait {
            WaitReason::Question { text } => Some(format!("asks: {text}")),
            WaitReason::Slot | WaitReason::Turn(_) | WaitReason::Dependency(_) => None,
            WaitReason::Quota { .. }
            | WaitReason::Login { .. }
            | WaitReason::Budget { .. }
            | WaitReason::Backoff { .. }
            | WaitReason::Disk { .. }
            | WaitReason::Pause
            | WaitReason::Conflict { .. }
            | WaitReason::Parts
            | WaitReason::Blockers { .. }
            | WaitReason::GateBroken { .. } => Some(format!("waits: {}", wait_words(wait))),
        },
        Event::Resumed { feedback: Some(feedback) } => match feedback.text.split_once("The answer: ") {
            Some((_, answer)) => Some(format!("answered: {answer}")),
            None => Some("goes on".to_owned()),
        },
        Event::ReviewWanted { .. } => Some(event_summary(event)),
        Event::Reviewed { .. } => Some(event_summary(event)),
        Event::Ejected { .. } | Event::Opinion { .. } | Event::SentBack { .. } | Event::Signed { .. } => {
            Some(event_summary(event))
        }
        Event::Requeued { unsure: true, .. } => Some(event_summary(event)),
        Event::Landed { commit, .. } => {
            let spent = task.map(effort_summary).filter(|effort| !effort.is_empty());
            let spent = spent.map(|effort| format!(" ({effort})")).unwrap_or_default();
            Some(format!("landed as {}{spent}", commit.short_hash()))
        }
        Event::Ended(ending) if ending.kind != EndKind::Done => Some(ending_label(ending)),
        Event::Left { to: EdgeTarget::Stop, .. } => Some(event_summary(event)),
        Event::StopAsked { .. } => Some(event_summary(event)),
        Event::Retried { .. } => Some(event_summary(event)),
        Event::Messaged { .. }
        | Event::Held { .. }
        | Event::Released
        | Event::LimitsSet { .. }
        | Event::Staged(_)
        | Event::Directed { .. }
        | Event::Reopened { .. }
        | Event::Recovery(_) => Some(event_summary(event)),
        Event::Issue(IssueEvent::Seen { .. } | IssueEvent::Looked { .. } | IssueEvent::Wanted(_)) => None,
        Event::Issue(event) => Some(one_line(&event.line())),
        Event::Added { spec } => Some(format!("added: {}", spec.title)),
        Event::Edited { .. }
        | Event::Offered { .. }
        | Event::Bound { .. }
        | Event::Entered { .. }
        | Event::WorkspaceMade { .. }
        | Event::IterationBegan { .. }
        | Event::Collected { leftovers: false, .. }
        | Event::Left { .. }
        | Event::Yielded { .. }
        | Event::Resumed { feedback: None }
        | Event::LandingBegan { .. }
        | Event::Requeued { unsure: false, .. }
        | Event::ReviewOwed
        | Event::Replied { .. }
        | Event::Strode { .. }
        | Event::AccountWaitBegan { .. }
        | Event::AccountWaitEnded { .. }
        | Event::Reported { .. }
        | Event::Ended(_)
        | Event::WorkspaceRemoved { .. } => None,
    }
}

fn event_summary(fact: &Event) -> String {
    event_sentence(fact)
}

/// What someone who watches a run wants to hear of a fact about the engine.
pub(crate) fn engine_news(event: &EngineEvent) -> Option<String> {
    match event {
        EngineEvent::PublishHeld { reason, .. } => {
            Some(format!("landed work is not in your branch yet: {reason}"))
        }
        EngineEvent::BaseMoved { by: BaseMover::Rebuild, .. } | EngineEvent::Account { .. } => {
            Some(engine_event_sentence(event))
        }
        EngineEvent::Queue(it) => match it {
            QueueEvent::Checked { report, .. }
                if matches!(report.outcome(), CheckOutcome::Fail | CheckOutcome::Timeout) =>
            {
                Some(queue_event_sentence(it))
            }
            QueueEvent::Formed { members, .. } if members.len() > 1 => Some(queue_event_sentence(it)),
            QueueEvent::Held { .. } | QueueEvent::Resumed | QueueEvent::Doubted { .. } => {
                Some(queue_event_sentence(it))
            }
            QueueEvent::Formed { .. }
            | QueueEvent::Built { .. }
            | QueueEvent::CheckBegan { .. }
            | QueueEvent::Checked { .. }
            | QueueEvent::LandingBegan { .. }
            | QueueEvent::Over { .. } => None, // the landings themselves are told
        },
        EngineEvent::Sprint(SprintEvent::Paused { .. }) => None, // the pause itself is told
        EngineEvent::Pilot(_) | EngineEvent::Sprint(_) | EngineEvent::Checkpoint(_) => {
            Some(engine_event_sentence(event))
        }
        EngineEvent::Started { .. }
        | EngineEvent::RunStarted { .. }
        | EngineEvent::RunEnded { .. }
        | EngineEvent::BaseMoved { .. }
        | EngineEvent::Published { .. }
        | EngineEvent::Measured { .. }
        | EngineEvent::DiscoveryDropped { .. }
        | EngineEvent::Consulted { .. }
        | EngineEvent::Auto(_)
        | EngineEvent::Haul(_) => None,
    }
}

/// Tokens and money after a comma, if there are any.
fn usage_suffix(usage: AgentUsage) -> String {
    let tokens_used = match conversions::total_tokens(usage) {
        0 => String::new(),
        some => format!(", {}{} tokens", at_least_prefix(usage), format_count(some)),
    };
    let cost = match usage.micro_usd {
        0 => String::new(),
        some => format!(", {}", format_micro_usd(some)),
    };
    format!("{tokens_used}{cost}{}", unpriced_suffix(usage))
}

fn at_least_prefix(usage: AgentUsage) -> &'static str {
    if usage.at_least { "at least " } else { "" }
}

/// That the money is not all, because some of it has no price; nothing where there is no money to speak of.
fn unpriced_suffix(usage: AgentUsage) -> String {
    match (usage.micro_usd, usage.tokens_unpriced) {
        (0, _) | (_, 0) => String::new(),
        (_, some) => format!(" without {} tokens that have no price", format_count(some)),
    }
}

/// What a task took: `2 iterations, 4s, 1.2k tokens`.
pub(crate) fn effort_summary(task: &Task) -> String {
    let counters = &task.counters;
    let mut parts = Vec::new();
    if counters.iterations > 0 {
        parts.push(pluralize(u64::from(counters.iterations), "iteration"));
    }
    if counters.spent_ms > 0 {
        parts.push(format_duration(counters.spent_ms));
    }
    let used = conversions::total_tokens(counters.usage);
    if used > 0 {
        parts.push(format!("{}{} tokens", at_least_prefix(counters.usage), format_count(used)));
    }
    if counters.usage.micro_usd > 0 {
        let all = counters.usage;
        parts.push(format!(
            "{}{}{}",
            at_least_prefix(all),
            format_micro_usd(all.micro_usd),
            unpriced_suffix(all)
        ));
    }
    parts.join(", ")
}

/// What verification came to: `tests (exit 1)`, `tests pass, 12 tests`.
pub(crate) fn gate_summary(report: &GateReport) -> String {
    if report.is_empty() {
        return "no check is configured, so nothing was verified".to_owned();
    }
    let offenders: Vec<&CommandResult> = report.blocking_commands().collect();
    let reused = if report.reused { ", reused from an earlier pass of the same tree" } else { "" };
    if offenders.is_empty() {
        return format!("{}{reused}", named_checks(report));
    }
    offenders.into_iter().map(describe_failed_check).collect::<Vec<_>>().join(", ")
}

/// The checks that passed, `unit, types (13 tests)`; and those that did not, although the report is green.
pub(crate) fn named_checks(report: &GateReport) -> String {
    let (passed, failed): (Vec<_>, Vec<_>) =
        report.commands.iter().partition(|result| result.outcome.is_green());
    let names = |results: &[&CommandResult]| {
        results.iter().map(|result| result.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let tests =
        report.test_count().map(|tests| format!(" ({})", pluralize(tests, "test"))).unwrap_or_default();
    match failed.is_empty() {
        true => names(&passed) + &tests,
        false => {
            format!("{}{tests}, without {}, which is optional and failed", names(&passed), names(&failed))
        }
    }
}

/// The end of what a check wrote that does not hold; the whole is in the log.
pub(crate) fn last_lines(result: &CommandResult) -> Vec<String> {
    const LINES: usize = 5;
    let written = result.excerpt.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let mut last: Vec<String> =
        written.rev().take(LINES).map(|line| format!("  {}: {}", result.name, one_line(line))).collect();
    last.reverse();
    last
}

fn describe_failed_check(result: &CommandResult) -> String {
    let how = match (result.outcome, result.exit) {
        (CheckOutcome::Timeout, _) => format!("no end after {}", format_duration(result.limit_ms)),
        (CheckOutcome::PreExisting, _) => "fails on the base as well".to_owned(),
        (CheckOutcome::Broken, Some(code)) if result.tests == Some(0) => format!("ran no test, exit {code}"),
        (CheckOutcome::Broken, Some(code)) => format!("could not run, exit {code}"),
        (_, Some(code)) => format!("exit {code}"),
        (_, None) => "killed".to_owned(),
    };
    format!("{} ({how})", result.name)
}

fn opening_words(opening: AttemptStart) -> &'static str {
    match opening {
        AttemptStart::Workspace => "in its workspace",
        AttemptStart::FreshWorkspace => "in a new workspace",
        AttemptStart::Check => "merging and verifying",
        AttemptStart::Land => "landing",
        AttemptStart::Queue => "waiting in the landing queue",
        AttemptStart::Report => "writing the report",
        AttemptStart::Exchange => "asking or telling its tracker",
        AttemptStart::Recover => "doing something about its failure",
    }
}

pub(crate) fn verdict_words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Complete => "the agent says it is done".to_owned(),
        Verdict::Blocked { reason } => format!("the agent is blocked: {}", one_line(reason)),
        Verdict::Pending { question } => format!("the agent asks: {}", one_line(question)),
        Verdict::Checkpoint { reason } => format!("the agent wants a look: {}", one_line(reason)),
        Verdict::Continue => "no signal".to_owned(),
        Verdict::Quota { until: Some(until) } => {
            format!("the account is used up until {}", clock::format_when(until.0))
        }
        Verdict::Quota { until: None } => "the account is used up".to_owned(),
        Verdict::Transient { detail } => format!("a passing trouble of the provider: {}", one_line(detail)),
        Verdict::Unauthorized { detail } => format!("the account wants a login: {}", one_line(detail)),
        Verdict::SessionGone => "the session to go on with is gone".to_owned(),
        Verdict::Looping => "the agent said the same thing over and over".to_owned(),
        Verdict::OverBudget { scope, what } => {
            format!("the budget of the {} was used up: {}", scope.word(), one_line(what))
        }
        Verdict::ContextUsedUp => "the agent ran out of context again and again".to_owned(),
        Verdict::Crashed { detail } => format!("the agent crashed: {}", one_line(detail)),
        Verdict::OutOfTime => "its time was up".to_owned(),
        Verdict::Stalled => "the agent was silent for too long".to_owned(),
        Verdict::Stopped => "it was stopped".to_owned(),
        Verdict::NotStarted { detail, .. } => format!("the agent could not be started: {}", one_line(detail)),
        Verdict::Lost => "the agent vanished".to_owned(),
    }
}

fn exit_words(exit: &AgentExit) -> String {
    match exit {
        AgentExit::Code(code) => format!("exit {code}"),
        AgentExit::Signal(signal) => format!("signal {signal}"),
        AgentExit::Deadline => "ended at its limit".to_owned(),
        AgentExit::Silent => "ended for silence".to_owned(),
        AgentExit::Looping => "ended for repeating itself".to_owned(),
        AgentExit::OverBudget { .. } => "ended at a budget".to_owned(),
        AgentExit::ContextUsedUp => "ended for lack of context".to_owned(),
        AgentExit::Asked => "ended because it was asked to".to_owned(),
        AgentExit::NotStarted { .. } => "never ran".to_owned(),
        AgentExit::Lost => "its end was not seen".to_owned(),
    }
}

fn result_words(result: StepResult) -> String {
    format!("`{}`", result.word())
}

fn edge_target_label(target: &EdgeTarget) -> String {
    match target {
        EdgeTarget::Step(step) => format!("on to `{step}`"),
        EdgeTarget::End => "done".to_owned(),
        EdgeTarget::Stop => "stopped there".to_owned(),
    }
}

pub(crate) fn yield_reason_label(why: YieldReason) -> &'static str {
    match why {
        YieldReason::Drained => "the run is stopping or paused",
        YieldReason::Stopped => "a person stopped it",
        YieldReason::Crashed => "the agent crashed",
        YieldReason::Lost => "the agent vanished",
        YieldReason::Stalled => "the agent was silent for too long",
        YieldReason::NotStarted => "the agent could not be started",
        YieldReason::Quota => "the account is used up",
        YieldReason::Transient => "a passing trouble of the provider",
        YieldReason::Asked => "it asked a person",
        YieldReason::GateBroken => "a check cannot be trusted",
        YieldReason::NothingChanged => "the agent says it is done, but nothing changed",
        YieldReason::Machine => "something on this machine failed",
        YieldReason::Shortage => "this machine was out of something",
        YieldReason::Budget => "a budget is used up",
        YieldReason::Overspent => "it used up the budget of an attempt",
        YieldReason::Login => "the account wants a login",
        YieldReason::Looping => "the agent repeated itself",
        YieldReason::SessionGone => "the session to go on with was gone",
        YieldReason::OutputMissing => "what the step must leave behind is not there",
        YieldReason::Redirected => "a person changed its course",
        YieldReason::Held => "a person holds it",
        YieldReason::Recovered => "it failed, and something is done about that",
        YieldReason::NotYet => "what it looked for has not happened yet",
    }
}

pub(crate) fn wait_words(wait: &WaitReason) -> String {
    match wait {
        WaitReason::Dependency(needs) => format!("for {} to land", conversions::join_ids(needs)),
        WaitReason::Slot => "for a slot".to_owned(),
        WaitReason::Turn(turn) => format!("for its turn: {turn}"),
        WaitReason::Quota { until, guessed: false } => {
            format!("for the agent's account until {}", clock::format_when(until.0))
        }
        WaitReason::Quota { until, guessed: true } => {
            format!(
                "for the agent's account, which named no reset; tried again {} (a guess)",
                clock::format_when(until.0)
            )
        }
        WaitReason::Login { account, detail, .. } => {
            format!("for a login to the account `{account}`{}", colon_suffix(detail))
        }
        WaitReason::Budget { what, until: Some(until) } => {
            format!("for the next day's budget at {} ({what})", clock::format_when(until.0))
        }
        WaitReason::Budget { what, until: None } => format!("for another budget ({what})"),
        WaitReason::Question { text } => format!("for an answer to: {}", one_line(text)),
        WaitReason::Backoff { until, cause } => {
            format!("until {} after {}", clock::format_when(until.0), one_line(cause))
        }
        WaitReason::Disk { detail } => format!("for room on the disk: {detail}"),
        WaitReason::Parts => "for the issues it is made of".to_owned(),
        WaitReason::Blockers { by } => format!("for {} to be done first", by.join(", ")),
        WaitReason::Pause => "for a person to take it up again".to_owned(),
        WaitReason::Conflict { base, files, until, overdue } => format!(
            "for a person to resolve its conflict with {} in {}; after {} {}",
            base.short_hash(),
            one_line(&files.join(", ")),
            clock::format_when(until.0),
            overdue.to_sentence()
        ),
        WaitReason::GateBroken { command, detail } => {
            format!("because the check `{command}` cannot be trusted: {detail}")
        }
    }
}

/// Which budget is used up, and how much of how much: `the budget of today is used up ($40.01 of $40.00)`.
pub(crate) fn exhausted_budget_text(spent: &ExhaustedBudget) -> String {
    let whose = match spent.scope {
        BudgetScope::Attempt => "of the attempt",
        BudgetScope::Task => "of the task",
        BudgetScope::Run => "of this run",
        BudgetScope::Day => "of today",
    };
    format!("the budget {whose} is used up ({})", spent.what)
}

fn stop_words(stop: &StopRequest) -> String {
    match stop {
        StopRequest::Pause => "a person wants it paused".to_owned(),
        StopRequest::Interrupt => "the engine is stopping".to_owned(),
        StopRequest::Cancel { reason } => format!("a person wants it no more{}", colon_suffix(reason)),
        StopRequest::Redirect => "a person wants its agent to hear something at once".to_owned(),
        StopRequest::Block { reason } => format!("a person says it cannot go on{}", colon_suffix(reason)),
    }
}

pub(crate) fn ending_label(ending: &Ending) -> String {
    let detail = colon_suffix(&ending.detail);
    match ending.kind {
        EndKind::Done => "done".to_owned(),
        EndKind::Failed => format!("failed ({}){detail}", ending.code.word()),
        EndKind::Timeout => format!("ran out ({}){detail}", ending.code.word()),
        EndKind::Blocked if ending.code == EndCode::AgentBlocked => {
            format!("blocked; the agent says{detail}")
        }
        EndKind::Blocked => format!("blocked ({}){detail}", ending.code.word()),
        EndKind::Cancelled => format!("cancelled{detail}"),
    }
}

pub(crate) fn run_end(why: RunEnd) -> &'static str {
    match why {
        RunEnd::NothingLeft => "nothing was left to do",
        RunEnd::Drained => "stopped between iterations",
        RunEnd::Interrupted => "stopped at once",
        RunEnd::Spent => "its budget was used up",
        RunEnd::Paused => "it was paused, and nobody was there to resume it",
        RunEnd::Goal => "the goal of the sprint was reached",
        RunEnd::OneDone => "one task was done, and nobody was there to pick another",
        RunEnd::Lost => "the engine was gone",
    }
}

fn colon_suffix(text: &str) -> String {
    if text.trim().is_empty() { String::new() } else { format!(": {}", one_line(text)) }
}

const LINE_CHARS_MAX: usize = 400; // a line of a log, not a log; the whole is in `data`

pub(crate) fn one_line(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = line.char_indices().nth(LINE_CHARS_MAX) {
        line.truncate(cut);
        line.push('…');
    }
    line
}
