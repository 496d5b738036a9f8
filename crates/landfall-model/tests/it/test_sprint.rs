//! Sprints: when they have what they wanted, what they count, and what they expect.

use landfall_model::gate::CheckOutcome;
use landfall_model::sprint::{
    Fate, ReviewDecision, Sprint, SprintEnd, SprintEndCondition, SprintEvent, SprintPhase, SprintSpec,
    Sprints,
};
use landfall_model::{
    AgentExit, AgentRunTraces, AgentUsage, Attempt, AttemptStart, BatchId, Commit, EdgeTarget, EndCode,
    EndKind, Ending, Event, RunId, SessionStart, SprintId, StepName, StepResult, TaskId, Timestamp, Tree,
    Verdict,
};

use crate::story::{command, report};

const MINUTE: i64 = 60_000;

/// A story of one sprint: minutes pass, things happen.
struct Story {
    sprints: Sprints,
    now: Timestamp,
}

impl Story {
    fn new(goal: SprintEndCondition) -> Self {
        let mut story = Self { sprints: Sprints::default(), now: Timestamp(0) };
        story.start(goal);
        story
    }

    fn start(&mut self, goal: SprintEndCondition) {
        let sprint = self.sprints.next_id();
        self.tell(SprintEvent::Started { sprint, plan: SprintSpec::new(goal), ready: 3 });
    }

    fn tell(&mut self, event: SprintEvent) -> &mut Self {
        self.sprints.apply(self.now, &event);
        self
    }

    fn pass(&mut self, minutes: i64) -> &mut Self {
        self.now = Timestamp(self.now.0 + minutes * MINUTE);
        self
    }

    fn pause(&mut self) -> &mut Self {
        self.tell(SprintEvent::Paused { reason: "lunch".to_owned() })
    }

    fn resume(&mut self) -> &mut Self {
        self.tell(SprintEvent::Resumed)
    }

    fn task(&mut self, id: u32, events: &[Event]) -> &mut Self {
        for event in events {
            self.sprints.note(self.now, TaskId(id), event);
        }
        self
    }

    fn sprint(&self) -> &Sprint {
        self.sprints.all_sprints().last().expect("one began")
    }

    fn worked(&self) -> u64 {
        self.sprint().worked_ms(self.now) / MINUTE.unsigned_abs()
    }

    fn reached(&self) -> bool {
        self.sprint().has_reached_goal(self.now, 1)
    }

    fn fate(&self, id: u32) -> Fate {
        self.sprint().tasks[&TaskId(id)].fate
    }
}

fn entered() -> Event {
    let (step, run) = (StepName::new("work"), RunId(1));
    Event::Entered { attempt: Attempt(1), step, run, opening: AttemptStart::FreshWorkspace }
}

fn ran(tokens: u64) -> [Event; 2] {
    let usage = AgentUsage { tokens_in: tokens, micro_usd: 10 * tokens, ..AgentUsage::default() };
    [
        Event::IterationBegan { attempt: Attempt(1), iteration: 1, talk: SessionStart::New },
        Event::IterationEnded {
            attempt: Attempt(1),
            iteration: 1,
            exit: AgentExit::Code(0),
            verdict: Verdict::Complete,
            took_ms: 1,
            usage,
            head: None,
            traces: AgentRunTraces::default(),
        },
    ]
}

fn verified(outcome: CheckOutcome) -> Event {
    Event::Verified { attempt: Attempt(2), report: report(vec![command("tests", outcome)]), evidence: None }
}

fn ejected() -> Event {
    let report = report(vec![command("tests", CheckOutcome::Fail)]);
    Event::Ejected { attempt: Attempt(3), batch: BatchId(1), report }
}

fn landed() -> Event {
    Event::Landed {
        attempt: Attempt(3),
        commit: Commit::new("c"),
        base_before: Commit::new("b"),
        tree: Tree::new("t"),
        proof: String::new(),
    }
}

fn ended(kind: EndKind) -> Event {
    Event::Ended(Ending { kind, code: EndCode::Person, detail: String::new() })
}

fn left(to: EdgeTarget) -> Event {
    let (attempt, step) = (Attempt(4), StepName::new("report"));
    Event::Left { attempt, step, result: StepResult::Done, to, feedback: None }
}

// ── goals ────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_count_counts_what_is_verified_whether_it_has_landed_or_not() {
    let mut story = Story::new(SprintEndCondition::Count(2));
    story
        .task(1, &[entered(), verified(CheckOutcome::Pass)])
        .task(2, &[entered(), verified(CheckOutcome::Fail)]);
    assert!(!story.reached());
    story.task(2, &[verified(CheckOutcome::Flaky)]);
    assert!(story.reached());
    story.task(1, &[landed()]);
    assert_eq!(
        (story.reached(), story.sprint().count_verified()),
        (true, 2),
        "landing counts no second time"
    );
}

#[test]
fn what_is_no_longer_verified_counts_no_longer() {
    let mut story = Story::new(SprintEndCondition::Count(1));
    let again = |story: &mut Story| {
        story.task(1, &[verified(CheckOutcome::Pass)]);
        assert!(story.reached());
    };
    story.task(1, &[entered()]);
    again(&mut story);
    story.task(1, &[ejected()]);
    assert!(!story.reached() && story.sprint().tasks[&TaskId(1)].ejected);
    again(&mut story);
    story.task(1, &[Event::Conflicted { attempt: Attempt(3), base: Commit::new("b"), paths: Vec::new() }]);
    assert!(!story.reached());
    again(&mut story);
    story.task(1, &ran(1));
    assert!(!story.reached(), "an agent has worked on it since");
    again(&mut story);
    story.task(1, &[Event::Reviewed { approved: false, note: "no".to_owned() }]);
    assert!(!story.reached(), "a person does not want it so");
    for kind in [EndKind::Cancelled, EndKind::Failed, EndKind::Timeout, EndKind::Blocked] {
        again(&mut story);
        story.task(1, &[ended(kind)]);
        assert!(!story.reached(), "what ended as {kind:?} is nobody's success");
        story.task(1, &[Event::Retried { fresh: false, feedback: None }]);
    }
}

#[test]
fn what_was_begun_before_or_elsewhere_does_not_count() {
    let mut story = Story::new(SprintEndCondition::Count(1));
    story.task(1, &[verified(CheckOutcome::Pass), landed()]);
    assert_eq!((story.sprint().tasks.len(), story.reached()), (1, false), "it is among the landings alone");
}

#[test]
fn a_duration_does_not_count_pauses() {
    let mut story = Story::new(SprintEndCondition::Duration { ms: 10 * MINUTE.unsigned_abs() });
    story.pass(4).pause().pass(60);
    assert_eq!(story.worked(), 4);
    assert!(!story.reached());
    assert_eq!(story.sprint().goal_due_at(story.now), None, "nothing comes by the clock in a pause");
    story.pause().pass(1).resume();
    assert_eq!((story.worked(), story.sprint().paused_ms), (4, 61 * MINUTE.unsigned_abs()));
    assert_eq!(story.sprint().goal_due_at(story.now), Some(story.now.plus_ms(6 * MINUTE.unsigned_abs())));
    story.resume().pass(5);
    assert!(!story.reached());
    story.pass(1);
    assert!(story.reached());
    story.pause().pass(30).tell(SprintEvent::Ended { why: SprintEnd::Goal }).pass(99);
    assert_eq!(story.worked(), 10, "and it stays so when it is over");
}

#[test]
fn what_completes_out_of_a_pause_does_not_count_the_pause() {
    let mut story = Story::new(SprintEndCondition::Until(Timestamp(20 * MINUTE)));
    story.pass(5).pause().pass(20).tell(SprintEvent::Completing { why: SprintEnd::Goal }).pass(2);
    assert_eq!(story.worked(), 7);
    story.tell(SprintEvent::Ended { why: SprintEnd::Goal }).pass(60);
    assert_eq!(story.worked(), 7);
}

#[test]
fn until_is_a_moment_whatever_was_paused() {
    let mut story = Story::new(SprintEndCondition::Until(Timestamp(10 * MINUTE)));
    assert_eq!(story.sprint().goal_due_at(story.now), Some(Timestamp(10 * MINUTE)));
    story.pass(9).pause();
    assert!(!story.reached());
    story.pass(1);
    assert!(story.reached());
}

#[test]
fn no_ready_is_reached_when_nothing_is() {
    let story = Story::new(SprintEndCondition::NoReady);
    assert!(!story.sprint().has_reached_goal(story.now, 1) && story.sprint().has_reached_goal(story.now, 0));
    assert_eq!(story.sprint().goal_due_at(story.now), None);
}

// ── what becomes of tasks ────────────────────────────────────────────────────────────────────────────────

#[test]
fn each_task_has_its_fate_and_what_it_used() {
    let mut story = Story::new(SprintEndCondition::NoReady);
    story.task(1, &[entered()]).task(1, &ran(5)).task(1, &ran(7)).pass(3).task(1, &[landed()]);
    let stat = &story.sprint().tasks[&TaskId(1)];
    assert_eq!((stat.iterations, stat.tokens, stat.micro_usd), (2, 12, 120));
    assert_eq!((stat.started, stat.completed), (Timestamp(0), Some(Timestamp(3 * MINUTE))));
    story.task(1, &[ended(EndKind::Failed)]);
    assert_eq!(story.fate(1), Fate::Landed, "what fails after landing has landed all the same");
    for (id, kind, fate) in [
        (2, EndKind::Failed, Fate::Failed),
        (3, EndKind::Timeout, Fate::Timeout),
        (4, EndKind::Blocked, Fate::Blocked),
        (5, EndKind::Cancelled, Fate::Cancelled),
    ] {
        story.task(id, &[entered()]);
        assert_eq!(story.fate(id), Fate::Open);
        story.task(id, &[ended(kind)]);
        assert_eq!((story.fate(id), story.sprint().count_in_status(fate)), (fate, 1));
        story.task(id, &[Event::Retried { fresh: false, feedback: None }]);
        assert_eq!((story.fate(id), story.sprint().tasks[&TaskId(id)].completed), (Fate::Open, None));
    }
}

#[test]
fn the_end_of_a_flow_is_an_end_too() {
    let mut story = Story::new(SprintEndCondition::NoReady);
    story.task(1, &[entered(), left(EdgeTarget::Step(StepName::new("land")))]);
    assert_eq!(story.fate(1), Fate::Open);
    story.pass(1).task(1, &[left(EdgeTarget::End)]);
    assert_eq!(story.fate(1), Fate::Landed, "a flow without landing ends by its last step");
    assert_eq!(story.sprint().tasks[&TaskId(1)].completed, Some(Timestamp(MINUTE)));
    story.task(2, &[entered(), left(EdgeTarget::Stop)]);
    assert_eq!(story.fate(2), Fate::Blocked);
    story.task(3, &[entered(), landed()]).pass(5).task(3, &[left(EdgeTarget::End)]);
    assert_eq!(
        story.sprint().tasks[&TaskId(3)].completed,
        Some(Timestamp(MINUTE)),
        "it was complete when it landed"
    );
}

#[test]
fn a_task_queued_before_the_sprint_is_among_its_landings() {
    let mut story = Story::new(SprintEndCondition::Count(1));
    story.pass(2).task(1, &[landed(), entered(), left(EdgeTarget::End)]);
    let sprint = story.sprint();
    assert_eq!(
        sprint.landings,
        [(Timestamp(2 * MINUTE), TaskId(1))],
        "the plot counts what the verdict counts"
    );
    assert_eq!(sprint.count_in_status(Fate::Landed), 1);
    assert_eq!(sprint.count_verified(), 0, "another run verified it");
}

#[test]
fn reviews_are_part_of_the_statistics_even_afterwards() {
    let mut story = Story::new(SprintEndCondition::NoReady);
    story.task(1, &[entered(), Event::ReviewWanted { concerns: Vec::new(), then: StepName::new("land") }]);
    assert!(story.sprint().tasks[&TaskId(1)].reviewing);
    story.task(1, &[Event::Reviewed { approved: true, note: String::new() }, landed(), Event::ReviewOwed]);
    assert_eq!(story.sprint().tasks[&TaskId(1)].review, Some(ReviewDecision::Approved));
    assert!(!story.sprint().tasks[&TaskId(1)].reviewing);
    story.tell(SprintEvent::Ended { why: SprintEnd::NothingLeft });
    story.start(SprintEndCondition::NoReady);
    let signed = Event::Signed { decision: ReviewDecision::Redo, note: String::new() };
    story.task(1, &[signed, ended(EndKind::Failed), entered()]);
    let first = &story.sprints.all_sprints()[0].tasks[&TaskId(1)];
    assert_eq!((first.review, first.fate), (Some(ReviewDecision::Redo), Fate::Landed));
}

// ── the phases ───────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn one_sprint_is_open_at_a_time_and_what_is_over_stays_over() {
    let mut story = Story::new(SprintEndCondition::NoReady);
    assert_eq!(story.sprints.open().map(|sprint| sprint.id), Some(SprintId(1)));
    story.pause();
    assert!(matches!(story.sprint().phase, SprintPhase::Paused { .. }), "{:?}", story.sprint().phase);
    story.resume().tell(SprintEvent::Completing { why: SprintEnd::Cancelled });
    assert!(story.sprints.open().is_some(), "what is under way is finished first");
    story.tell(SprintEvent::Ended { why: SprintEnd::Cancelled });
    assert_eq!((story.sprints.open(), story.sprints.next_id()), (None, SprintId(2)));
    story.pause().resume().tell(SprintEvent::Completing { why: SprintEnd::Goal });
    let over = SprintPhase::Over { why: SprintEnd::Cancelled, at: story.now };
    assert_eq!(story.sprint().phase, over);
    story.start(SprintEndCondition::Count(1));
    assert_eq!(story.sprints.open().map(|sprint| sprint.id), Some(SprintId(2)));
}

#[test]
fn a_sprint_is_written_with_an_s() {
    assert_eq!(SprintId(3).to_string(), "S3");
    for text in ["S3", "s3", "3"] {
        assert_eq!(text.parse(), Ok(SprintId(3)), "{text}");
    }
    for text in ["", "S", "S0", "0", "T3", "S-1", "S99999999999"] {
        assert!(text.parse::<SprintId>().is_err(), "{text}");
    }
}

// ── what it expects ──────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_forecast_goes_by_the_pace_of_the_last_half() {
    let mut story = Story::new(SprintEndCondition::NoReady);
    for id in 1..=4 {
        story.task(id, &[entered()]);
    }
    assert_eq!(story.sprint().forecast_completion(story.now, 5), None);
    story.pass(40).task(1, &[landed()]);
    assert_eq!(story.sprint().forecast_completion(story.now, 5), None, "one landing is no pace");
    story.pass(20).task(2, &[landed()]);
    let half_an_hour_each = Timestamp(story.now.0 + 2 * 30 * MINUTE);
    assert_eq!(story.sprint().forecast_completion(story.now, 2), Some(half_an_hour_each));
    story.pass(5).task(3, &[landed()]).pass(5).task(4, &[landed()]);
    let five_minutes_each = Timestamp(story.now.0 + 3 * 5 * MINUTE);
    assert_eq!(
        story.sprint().forecast_completion(story.now, 3),
        Some(five_minutes_each),
        "the slow first hour is past"
    );
    assert_eq!(story.sprint().forecast_completion(story.now, 0), None);
    story.pass(10);
    let ten_minutes_each = Timestamp(story.now.0 + 10 * MINUTE);
    assert_eq!(
        story.sprint().forecast_completion(story.now, 1),
        Some(ten_minutes_each),
        "it slows down while nothing lands"
    );
}
