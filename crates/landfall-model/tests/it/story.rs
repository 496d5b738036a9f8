//! A tiny language for stories about one task: what happens, what follows.
//!
//! `check([granted(), workspace(), says_complete()], expect![…])` tells the task each piece of news in turn and
//! writes one line for each: `news → where it is now [facts] ! orders`, or why the news was refused.

use std::fmt::Write as _;
use std::sync::Arc;

use expect_test::Expect;
use landfall_model::conflict::{ConflictingFile, FileConflictKind};
use landfall_model::flow::TrackerOperation;
use landfall_model::gate::{CheckOutcome, CommandResult, GateReport};
use landfall_model::resource::MachineResource;
use landfall_model::{
    AgentAssignment, AgentDriveStyle, AgentExit, AgentRunEvidence, AgentUsage, Attempt, AttemptPhase,
    BatchId, ChangeConcern, Commit, ConcernCode, ControlSignal, Digest, Effect, EndedRun, Event,
    ExhaustedBudget, Flow, IntakeState, News, POLL_MS, Prices, ReviewInput, RunId, SessionStart, Signal,
    StopRequest, Task, TaskId, TaskInput, TaskLimitOverrides, TaskLimits, TaskSpec, TaskState, Timestamp,
    Tree, UsageCounter, WaitReason, apply, decide, decide_and_apply as take,
};

use crate::flows_used::{loops, polishes};

/// One line of a story.
pub enum Line {
    /// News, made from the task as it is then.
    News(String, Box<dyn Fn(&Scene) -> News>),
    /// From here on the engine only finishes what is under way.
    Drain,
    /// The engine drives again.
    Drive,
    /// Time passes.
    Wait(u64),
    /// The engine was killed and read its journal again.
    Restart,
    /// From here on tasks are granted so.
    Driven(AgentAssignment),
    /// From here on this budget is used up, or there is something to spend again.
    Spent(Option<ExhaustedBudget>),
}

/// Where a story happens.
pub struct Scene {
    pub task: Task,
    pub flow: Arc<Flow>,
    pub limits: TaskLimits,
    pub driving: AgentAssignment,
    pub at: Timestamp,
    pub drive: IntakeState,
    pub spent: Option<ExhaustedBudget>,
    pub journal: Vec<(Timestamp, Event)>,
    /// Grows with every commit anyone makes, so that each has its own name.
    pub commits: u32,
}

impl Scene {
    pub fn new(flow: Arc<Flow>) -> Self {
        let spec = TaskSpec::new("a task").expect("a title");
        let journal = vec![(Timestamp(0), Event::Added { spec: spec.clone() })];
        Self {
            task: Task::from_spec(TaskId(1), spec, Timestamp(0)),
            flow,
            limits: TaskLimits::default(),
            driving: AgentAssignment {
                profile: "default".to_owned(),
                account: "default".to_owned(),
                style: AgentDriveStyle::Fresh,
            },
            at: Timestamp(1_000),
            drive: IntakeState::Running,
            spent: None,
            journal,
            commits: 0,
        }
    }

    /// The same with other limits.
    pub fn limited(mut self, change: impl Fn(&mut TaskLimits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// The same with a fact from before the story.
    pub fn with(mut self, event: Event) -> Self {
        self.task = apply(Some(self.task), TaskId(1), self.at, &event).expect("a fact that can be");
        self.journal.push((self.at, event));
        self
    }

    /// Tells the task one piece of news.
    pub fn hear(&mut self, news: News) -> Result<(Vec<Event>, Vec<Effect>), String> {
        self.commits += 1;
        let input = TaskInput {
            at: self.at,
            drive: self.drive,
            spent: self.spent.clone(),
            attended: true,
            poll_ms: POLL_MS,
            news,
        };
        let (task, decision) = take(&self.task, &input).map_err(|refusal| refusal.to_string())?;
        assert_eq!(decide(&self.task, &input), Ok(decision.clone()), "decide and step agree");
        let folded = decision.events.iter().fold(self.task.clone(), |task, event| {
            apply(Some(task), TaskId(1), self.at, event).expect("what was decided can be")
        });
        assert_eq!(folded, task, "the task is the fold of its events");
        self.journal.extend(decision.events.iter().map(|event| (self.at, event.clone())));
        self.task = task;
        Ok((decision.events, decision.effects))
    }

    /// Plays a line and says what came of it.
    pub fn play(&mut self, line: &Line) -> Option<String> {
        match line {
            Line::Drain => self.drive = IntakeState::Draining,
            Line::Drive => self.drive = IntakeState::Running,
            Line::Driven(driving) => self.driving = driving.clone(),
            Line::Spent(spent) => self.spent.clone_from(spent),
            Line::Wait(ms) => self.at = self.at.plus_ms(*ms),
            Line::Restart => {
                let mut folded = None;
                for (at, event) in &self.journal {
                    folded = Some(apply(folded, TaskId(1), *at, event).expect("the journal replays"));
                }
                assert_eq!(folded.as_ref(), Some(&self.task), "the fold of the journal is the task");
                let orders = orders(&landfall_model::expected_task_effects(&self.task));
                return Some(format!("restart → {}{orders}", place(&self.task)));
            }
            Line::News(name, make) => {
                let before = self.task.clone();
                let news = make(self);
                return Some(match self.hear(news) {
                    Ok((events, effects)) => {
                        format!("{name} → {} [{}]{}", place(&self.task), facts(&events), orders(&effects))
                    }
                    Err(refusal) => {
                        assert_eq!(before, self.task, "a refusal changes nothing");
                        format!("{name} ✗ {refusal}")
                    }
                });
            }
        }
        None
    }

    /// The same scene after a crash that kept only the first `events` facts.
    pub fn cut(&self, events: usize) -> Self {
        let journal = self.journal[..events].to_vec();
        let mut folded = None;
        for (at, event) in &journal {
            folded = Some(apply(folded, TaskId(1), *at, event).expect("a cut journal replays"));
        }
        let task = folded.expect("at least one fact");
        Self {
            task,
            flow: self.flow.clone(),
            limits: self.limits.clone(),
            driving: self.driving.clone(),
            at: self.at,
            drive: self.drive,
            spent: self.spent.clone(),
            journal,
            commits: self.commits,
        }
    }

    pub fn play_all<const N: usize>(mut self, lines: [Line; N]) -> Self {
        for line in lines {
            let told = self.play(&line);
            assert!(!told.as_ref().is_some_and(|told| told.contains('✗')), "{told:?}");
        }
        self
    }
}

/// A task in the flow `loop` whose agent runs.
pub fn working() -> Scene {
    Scene::new(loops()).play_all([granted(), workspace()])
}

/// Who drives a task from here on: a profile on the account of its name.
pub fn driven(profile: &str, style: AgentDriveStyle) -> Line {
    Line::Driven(AgentAssignment { profile: profile.to_owned(), account: profile.to_owned(), style })
}

/// A task in the flow `loop` that is being verified.
pub fn verifying() -> Scene {
    working().play_all([says_complete(), granted()])
}

/// A task in the flow `loop` that stands in the landing queue.
pub fn queued() -> Scene {
    verifying().play_all([passes(), granted()])
}

/// A task in the flow `loop` that is being landed.
pub fn landing() -> Scene {
    queued().play_all([landing_begins()])
}

/// A task in the flow `polishing` whose work is verified again before it lands.
pub fn checking_to_land() -> Scene {
    let scene = Scene::new(polishes()).play_all([granted(), workspace(), says_complete(), granted()]);
    scene.play_all([passes(), granted(), workspace(), says_nothing(), granted()])
}

/// A task in the flow `loop` that landed and is being reported.
pub fn reporting() -> Scene {
    landing().play_all([lands(), granted()])
}

/// Tells the story of a task in the flow `loop`.
pub fn check<const N: usize>(lines: [Line; N], expect: Expect) -> Task {
    check_in(Scene::new(loops()), lines, expect)
}

/// Tells the story and returns the task as it is at its end.
pub fn check_in<const N: usize>(mut scene: Scene, lines: [Line; N], expect: Expect) -> Task {
    let mut told = String::new();
    for line in &lines {
        if let Some(sentence) = scene.play(line) {
            writeln!(told, "{sentence}").expect("a string takes it");
        }
    }
    expect.assert_eq(&told);
    scene.task
}

// ── what can happen ──────────────────────────────────────────────────────────────────────────────────────

pub fn line(name: impl Into<String>, make: impl Fn(&Scene) -> News + 'static) -> Line {
    Line::News(name.into(), Box::new(make))
}

pub fn granted() -> Line {
    line("granted", |scene| News::Granted {
        run: RunId(1),
        flow: scene.flow.clone(),
        limits: scene.limits.clone(),
        driving: scene.driving.clone(),
    })
}

pub fn workspace() -> Line {
    line("workspace", |scene| News::WorkspaceReady { attempt: scene.task.attempt, base: commit("base") })
}

pub fn machine_fails(hopeless: bool) -> Line {
    line(if hopeless { "machine fails for good" } else { "machine fails" }, move |scene| {
        News::MachineFailed {
            attempt: scene.task.attempt,
            detail: "no room on the disk".to_owned(),
            hopeless,
        }
    })
}

/// An effect failed for lack of memory; whether there was still none right afterwards.
pub fn out_of_memory(is_missing: bool) -> Line {
    line("out of memory", move |scene| News::Exhausted {
        attempt: scene.task.attempt,
        resource: MachineResource::Memory,
        is_missing,
        detail: "git: out of memory".to_owned(),
    })
}

pub fn workspace_rebuilt() -> Line {
    line("workspace rebuilt", |scene| News::WorkspaceRebuilt { attempt: scene.task.attempt })
}

/// A run of the agent that took a second, left a commit, and ended so.
pub fn ran<const N: usize>(name: &str, exit: AgentExit, seen: [Signal; N]) -> Line {
    let seen = seen.to_vec();
    let mut tally = UsageCounter::default();
    seen.iter().for_each(|signal| tally.hear(signal));
    line(name, move |scene| {
        News::AgentEnded(EndedRun {
            attempt: scene.task.attempt,
            iteration: running(&scene.task),
            exit: exit.clone(),
            seen: seen.clone(),
            evidence: AgentRunEvidence {
                head_before: scene.task.seen_head.clone(),
                head_after: Some(commit(&format!("work{}", scene.commits))),
                ..AgentRunEvidence::default()
            },
            took_ms: 1_000,
            usage: tally.total_usage(&Prices::default()),
            traces: tally.to_traces(&|words| Digest::new(words)),
            climbed: None,
        })
    })
}

/// The same run without the files the step must leave behind.
pub fn without_output(run: Line) -> Line {
    let Line::News(name, make) = run else { panic!("only news can lack output") };
    line(format!("{name}, no output"), move |scene| match make(scene) {
        News::AgentEnded(mut run) => {
            run.evidence.missing.push("plan.md".to_owned());
            News::AgentEnded(run)
        }
        other => panic!("not a run: {other:?}"),
    })
}

/// The same run without a commit.
pub fn fruitless(run: Line) -> Line {
    let Line::News(name, make) = run else { panic!("only news can be fruitless") };
    line(format!("{name}, no commit"), move |scene| match make(scene) {
        News::AgentEnded(mut run) => {
            run.evidence.head_after.clone_from(&run.evidence.head_before);
            News::AgentEnded(run)
        }
        other => panic!("not a run: {other:?}"),
    })
}

/// The same run, which took this long.
pub fn taking(ms: u64, run: Line) -> Line {
    let Line::News(name, make) = run else { panic!("only news takes time") };
    line(name, move |scene| match make(scene) {
        News::AgentEnded(run) => News::AgentEnded(EndedRun { took_ms: ms, ..run }),
        News::Checked { attempt, head, leftovers, report, concerns, evidence, proofs, extent } => {
            let report = GateReport { took_ms: ms, ..report };
            News::Checked { attempt, head, leftovers, report, concerns, evidence, proofs, extent }
        }
        other => panic!("takes no time: {other:?}"),
    })
}

/// The same run, with something else about it.
pub fn but(word: impl Into<String>, run: Line, change: impl Fn(&mut EndedRun) + 'static) -> Line {
    let Line::News(name, make) = run else { panic!("only news can be changed") };
    line(format!("{name}, {}", word.into()), move |scene| match make(scene) {
        News::AgentEnded(mut run) => {
            change(&mut run);
            News::AgentEnded(run)
        }
        other => panic!("not a run: {other:?}"),
    })
}

/// The same news, but of the attempt before.
pub fn late(news: Line) -> Line {
    let Line::News(name, make) = news else { panic!("only news comes late") };
    line(format!("late {name}"), move |scene| {
        let mut news = make(scene);
        let older = Attempt(scene.task.attempt.0 - 1);
        match &mut news {
            News::WorkspaceReady { attempt, .. }
            | News::MachineFailed { attempt, .. }
            | News::Exhausted { attempt, .. }
            | News::AgentEnded(EndedRun { attempt, .. })
            | News::Checked { attempt, .. }
            | News::MergeConflict { attempt, .. }
            | News::NothingChanged { attempt }
            | News::WorkspaceRebuilt { attempt }
            | News::LandingBegan { attempt, .. }
            | News::Ejected { attempt, .. }
            | News::Doubted { attempt, .. }
            | News::LandUnsure { attempt }
            | News::Landed { attempt, .. }
            | News::LandMoved { attempt, .. }
            | News::LandMismatch { attempt, .. }
            | News::Strode { attempt, .. }
            | News::Reported { attempt, .. } => *attempt = older,
            other => panic!("has no attempt: {other:?}"),
        }
        news
    })
}

pub fn says_complete() -> Line {
    ran("COMPLETE", AgentExit::Code(0), [Signal::Said(ControlSignal::Complete)])
}

pub fn says_nothing() -> Line {
    ran("no word", AgentExit::Code(0), [])
}

pub fn says_blocked(reason: &str) -> Line {
    ran("BLOCKED", AgentExit::Code(0), [Signal::Said(ControlSignal::Blocked(reason.to_owned()))])
}

pub fn says_pending(question: &str) -> Line {
    ran("PENDING", AgentExit::Code(0), [Signal::Said(ControlSignal::Pending(question.to_owned()))])
}

pub fn crashes() -> Line {
    ran("crash", AgentExit::Code(1), [])
}

pub fn vanishes() -> Line {
    ran("lost", AgentExit::Lost, [])
}

pub fn falls_silent() -> Line {
    ran("silent", AgentExit::Silent, [])
}

pub fn hits_the_deadline() -> Line {
    taking(30 * 60_000, ran("deadline", AgentExit::Deadline, []))
}

pub fn hits_quota(until: Option<i64>) -> Line {
    ran("quota", AgentExit::Code(1), [Signal::Quota { until: until.map(Timestamp) }])
}

pub fn has_a_passing_error() -> Line {
    ran("transient", AgentExit::Code(1), [Signal::Transient { detail: "overloaded".to_owned() }])
}

pub fn is_refused() -> Line {
    ran("401", AgentExit::Code(1), [Signal::Unauthorized { detail: "token expired".to_owned() }])
}

pub fn cannot_start(hopeless: bool) -> Line {
    let name = if hopeless { "not started, hopeless" } else { "not started" };
    ran(name, AgentExit::NotStarted { detail: "no such program".to_owned(), hopeless }, [])
}

pub fn is_killed() -> Line {
    ran("killed", AgentExit::Asked, [])
}

/// What a check came to, under its own name: `tests pass`, `lint? fail` (optional).
pub fn command(name: &str, outcome: CheckOutcome) -> CommandResult {
    let exit = match outcome {
        CheckOutcome::Pass | CheckOutcome::Flaky => Some(0),
        CheckOutcome::Fail | CheckOutcome::PreExisting => Some(1),
        CheckOutcome::Broken => Some(127),
        CheckOutcome::Timeout => None,
    };
    CommandResult {
        name: name.trim_end_matches('?').to_owned(),
        command: format!("run {}", name.trim_end_matches('?')),
        required: !name.ends_with('?'),
        outcome,
        exit,
        took_ms: 10_000,
        limit_ms: 300_000,
        tests: None,
        excerpt: format!("{name} said so\n"),
        caps: None,
        denied: Vec::new(),
        copied_from_base: false,
    }
}

pub fn report(commands: Vec<CommandResult>) -> GateReport {
    GateReport {
        base: commit("base"),
        head: commit("head"),
        commit: commit("merge"),
        tree: Tree::new("tree"),
        config: Digest::new("config"),
        environment: Digest::new("environment"),
        commands,
        took_ms: 10_000,
        reused: false,
        required: false,
        sandbox: None,
    }
}

/// The work was merged and checked with this outcome.
pub fn checked(outcome: CheckOutcome) -> Line {
    checked_as(outcome.word(), report(vec![command("tests", outcome)]), [])
}

pub fn passes() -> Line {
    checked(CheckOutcome::Pass)
}

pub fn fails() -> Line {
    checked(CheckOutcome::Fail)
}

/// The work passed, but a person should look.
pub fn passes_with_concern() -> Line {
    checked_as("pass, concern", report(vec![command("tests", CheckOutcome::Pass)]), [concern()])
}

pub fn concern() -> ChangeConcern {
    ChangeConcern { code: ConcernCode::TestDeleted, detail: "tests/a.rs".to_owned() }
}

pub fn checked_as<const N: usize>(name: &str, report: GateReport, concerns: [ChangeConcern; N]) -> Line {
    let concerns = concerns.to_vec();
    line(format!("checked: {name}"), move |scene| News::Checked {
        attempt: scene.task.attempt,
        head: report.head.clone(),
        leftovers: false,
        report: report.clone(),
        concerns: concerns.clone(),
        evidence: None,
        proofs: Vec::new(),
        extent: None,
    })
}

pub fn passes_with_leftovers() -> Line {
    line("checked: pass, leftovers", |scene| News::Checked {
        attempt: scene.task.attempt,
        head: commit("head"),
        leftovers: true,
        report: report(vec![command("tests", CheckOutcome::Pass)]),
        concerns: Vec::new(),
        evidence: None,
        proofs: Vec::new(),
        extent: None,
    })
}

pub fn conflicts() -> Line {
    line("conflict", |scene| News::MergeConflict {
        attempt: scene.task.attempt,
        head: commit("head"),
        base: commit("newbase"),
        clashes: vec![
            clash("a.txt", FileConflictKind::Content, 3),
            clash("b.txt", FileConflictKind::Content, 1),
        ],
    })
}

/// The work does not merge, in a way that agents get wrong.
pub fn conflicts_badly() -> Line {
    line("hard conflict", |scene| News::MergeConflict {
        attempt: scene.task.attempt,
        head: commit("head"),
        base: commit("newbase"),
        clashes: vec![clash("logo.png", FileConflictKind::Binary, 0)],
    })
}

pub fn clash(path: &str, kind: FileConflictKind, lines: u32) -> ConflictingFile {
    ConflictingFile { path: path.to_owned(), kind, lines }
}

/// Its batch was verified on a base that has moved since, and the base is being moved there.
pub fn landing_begins() -> Line {
    line("landing begins", |scene| News::LandingBegan {
        attempt: scene.task.attempt,
        batch: BatchId(1),
        report: report(vec![command("tests", CheckOutcome::Pass)]),
    })
}

/// Its batch was red, and it is the culprit.
pub fn is_ejected() -> Line {
    line("ejected", |scene| News::Ejected {
        attempt: scene.task.attempt,
        batch: BatchId(1),
        report: report(vec![command("tests", CheckOutcome::Fail)]),
    })
}

pub fn is_unsure() -> Line {
    line("unsure", |scene| News::LandUnsure { attempt: scene.task.attempt })
}

/// A person looked at it.
pub fn reviewed(said: ReviewInput) -> Line {
    let name =
        format!("review {}", format!("{said:?}").split([' ', '{']).next().unwrap_or_default().to_lowercase());
    line(name, move |_| News::Review(said.clone()))
}

/// Its workspace was made again before the check could collect the work.
pub fn rebuilt() -> Line {
    line("rebuilt", |scene| News::WorkspaceRebuilt { attempt: scene.task.attempt })
}

pub fn changed_nothing() -> Line {
    line("nothing changed", |scene| News::NothingChanged { attempt: scene.task.attempt })
}

pub fn lands() -> Line {
    line("landed", |scene| News::Landed {
        attempt: scene.task.attempt,
        commit: commit("merge"),
        base_before: commit("base"),
        tree: Tree::new("tree"),
        proof: "the tree is the same".to_owned(),
    })
}

pub fn base_moved() -> Line {
    line("base moved", |scene| News::LandMoved { attempt: scene.task.attempt, to: commit("newbase") })
}

pub fn does_not_match() -> Line {
    line("mismatch", |scene| News::LandMismatch {
        attempt: scene.task.attempt,
        detail: "the tree is another".to_owned(),
    })
}

pub fn reported() -> Line {
    line("reported", |scene| News::Reported {
        attempt: scene.task.attempt,
        report: Digest::new("report"),
        certificate: Some(Digest::new("certificate")),
    })
}

pub fn due() -> Line {
    line("due", |_| News::Due)
}

pub fn base_advances() -> Line {
    line("base advanced", |_| News::BaseAdvanced)
}

pub fn route_opens() -> Line {
    line("route opened", |_| News::RouteOpened)
}

pub fn answers(text: &str) -> Line {
    let text = text.to_owned();
    line(format!("answer `{text}`"), move |_| News::Answer { text: text.clone() })
}

pub fn stop() -> Line {
    line("stop", |_| News::StopTask)
}

pub fn interrupt() -> Line {
    line("interrupt", |_| News::Interrupt)
}

pub fn cancel() -> Line {
    line("cancel", |_| News::Cancel { reason: "no longer wanted".to_owned() })
}

pub fn tell(text: &str) -> Line {
    let text = text.to_owned();
    line(format!("tell `{text}`"), move |_| News::Message { text: text.clone(), now: false })
}

pub fn redirect(text: &str) -> Line {
    let text = text.to_owned();
    line(format!("tell `{text}` now"), move |_| News::Message { text: text.clone(), now: true })
}

pub fn hold() -> Line {
    line("hold", |_| News::Hold { reason: String::new() })
}

pub fn release() -> Line {
    line("release", |_| News::Release)
}

pub fn block(reason: &str) -> Line {
    let reason = reason.to_owned();
    line("block", move |_| News::Block { reason: reason.clone() })
}

pub fn limits(limits: TaskLimitOverrides) -> Line {
    line("limits", move |_| News::SetLimits { limits })
}

pub fn retry() -> Line {
    line("retry", |_| News::Retry { fresh: false, note: None })
}

pub fn retry_with(note: &str) -> Line {
    let note = note.to_owned();
    line("retry with a note", move |_| News::Retry { fresh: false, note: Some(note.clone()) })
}

pub fn accepts(reason: &str) -> Line {
    let reason = reason.to_owned();
    line("accept", move |_| News::Accept { reason: reason.clone() })
}

pub fn retry_fresh() -> Line {
    line("retry fresh", |_| News::Retry { fresh: true, note: None })
}

/// A person changes the words of the task.
pub fn edit(change: impl Fn(&mut TaskSpec) + 'static) -> Line {
    line("edit", move |scene| {
        let mut spec = scene.task.spec.clone();
        change(&mut spec);
        News::Edit { spec, flows: None }
    })
}

pub fn workspace_removed() -> Line {
    line("workspace removed", |_| News::WorkspaceRemoved { kept: Some(commit("kept")) })
}

pub fn commit(name: &str) -> Commit {
    Commit::new(name)
}

pub fn usage(tokens: u64) -> Signal {
    Signal::Usage(AgentUsage {
        tokens_in: tokens,
        tokens_out: tokens,
        micro_usd: tokens,
        ..AgentUsage::default()
    })
}

/// The run of the agent that is under way.
fn running(task: &Task) -> u32 {
    match &task.state {
        TaskState::Active { doing: AttemptPhase::Running { iteration, .. }, .. } => *iteration,
        _ => task.counters.iterations + 1,
    }
}

// ── how it is told ───────────────────────────────────────────────────────────────────────────────────────

/// Where the task is, in a few words.
pub fn place(task: &Task) -> String {
    match &task.state {
        TaskState::Draft => "draft".to_owned(),
        TaskState::Ready { next: None, .. } => "ready".to_owned(),
        TaskState::Ready { next: Some(step), .. } => format!("ready for {step}"),
        TaskState::Active { step, doing } => format!("{step} a{}: {}", task.attempt.0, doing_word(doing)),
        TaskState::Waiting { wait, then, .. } => format!("waits for {}, then {then}", wait_word(task, wait)),
        TaskState::Review { then } => format!("review, then {then}"),
        TaskState::Ended(ending) if ending.detail.is_empty() => {
            format!("{:?}({})", ending.kind, ending.code.word())
        }
        TaskState::Ended(ending) => format!("{:?}({}: {})", ending.kind, ending.code.word(), ending.detail),
    }
}

fn wait_word(task: &Task, wait: &WaitReason) -> String {
    match wait {
        WaitReason::Quota { until, .. } => format!("quota +{}ms", until.0 - task.changed.0),
        WaitReason::Backoff { until, cause } => format!("backoff +{}ms ({cause})", until.0 - task.changed.0),
        WaitReason::Question { text } => format!("an answer to `{text}`"),
        WaitReason::GateBroken { command, detail } => format!("the gate `{command}` ({detail})"),
        WaitReason::Login { account, detail, .. } => format!("a login to {account} ({detail})"),
        WaitReason::Conflict { base, files, until, overdue } => {
            let (files, ms) = (files.join(", "), until.0 - task.changed.0);
            format!("a person, because of {files} on {base}, +{ms}ms or {}", overdue.word())
        }
        WaitReason::Dependency(_)
        | WaitReason::Slot
        | WaitReason::Turn(_)
        | WaitReason::Budget { .. }
        | WaitReason::Disk { .. }
        | WaitReason::Parts
        | WaitReason::Blockers { .. }
        | WaitReason::Pause => wait.word().to_owned(),
    }
}

fn doing_word(doing: &AttemptPhase) -> String {
    match doing {
        AttemptPhase::Preparing { fresh: true, stop } => {
            format!("preparing afresh{}", stop_word(stop.as_ref()))
        }
        AttemptPhase::Preparing { fresh: false, stop } => format!("preparing{}", stop_word(stop.as_ref())),
        AttemptPhase::Running { iteration, stop, .. } => {
            format!("running {iteration}{}", stop_word(stop.as_ref()))
        }
        AttemptPhase::Checking { stop } => format!("checking{}", stop_word(stop.as_ref())),
        AttemptPhase::Queued { .. } => "queued".to_owned(),
        AttemptPhase::Landing => "landing".to_owned(),
        AttemptPhase::Reporting => "reporting".to_owned(),
        AttemptPhase::Exchanging { stop } => format!("with the tracker{}", stop_word(stop.as_ref())),
        AttemptPhase::Recovering { stop } => format!("recovering{}", stop_word(stop.as_ref())),
    }
}

fn stop_word(stop: Option<&StopRequest>) -> &'static str {
    match stop {
        None => "",
        Some(StopRequest::Pause) => " (pausing)",
        Some(StopRequest::Interrupt) => " (interrupted)",
        Some(StopRequest::Cancel { .. }) => " (cancelling)",
        Some(StopRequest::Redirect) => " (redirecting)",
        Some(StopRequest::Block { .. }) => " (blocking)",
    }
}

fn facts(events: &[Event]) -> String {
    let words = events.iter().map(|event| match event {
        Event::Warned(warning) => format!("warned: {}", warning.to_sentence()),
        Event::IterationEnded { verdict, .. } => {
            let verdict = format!("{verdict:?}");
            let word = verdict.split([' ', '{']).next().unwrap_or_default();
            format!("iteration-ended {}", word.to_lowercase())
        }
        Event::Left { result, feedback, .. } => {
            let told = if feedback.is_some() { " with feedback" } else { "" };
            format!("left {}{told}", result.word())
        }
        Event::Yielded { why, .. } => format!("yielded {}", format!("{why:?}").to_lowercase()),
        Event::Retried { fresh: true, .. } => "retried afresh".to_owned(),
        Event::Requeued { unsure: true, .. } => "requeued unsure".to_owned(),
        Event::Signed { decision, .. } => format!("signed {}", decision.word()),
        other => other.name().to_owned(),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn orders(effects: &[Effect]) -> String {
    effects.iter().map(|effect| format!(" ! {}", order(effect))).collect()
}

fn talk_word(talk: &SessionStart) -> String {
    match talk {
        SessionStart::New => String::new(),
        SessionStart::Resumed { session, compact: false } => format!(" resuming {session}"),
        SessionStart::Resumed { session, compact: true } => format!(" resuming {session}, to be summed up"),
    }
}

fn order(effect: &Effect) -> String {
    match effect {
        Effect::Prepare { attempt, fresh: true, .. } => format!("prepare {attempt} afresh"),
        Effect::Prepare { attempt, fresh: false, .. } => format!("prepare {attempt}"),
        Effect::Spawn { attempt, iteration, deadline_ms, talk, .. } => {
            format!("spawn {attempt}/{iteration} for {}s{}", deadline_ms / 1000, talk_word(talk))
        }
        Effect::Kill { attempt, .. } => format!("kill {attempt}"),
        Effect::Check { attempt, head: Some(head), .. } => format!("check {attempt} of {head}"),
        Effect::Check { attempt, head: None, .. } => format!("check {attempt}"),
        Effect::Report { attempt, .. } => format!("report {attempt}"),
        Effect::Exchange { attempt, act, .. } => {
            format!("exchange {attempt} {}", act.map_or("split", TrackerOperation::word))
        }
        Effect::Recover { attempt, .. } => format!("recover {attempt}"),
        Effect::Tidy { .. } => "tidy".to_owned(),
    }
}
