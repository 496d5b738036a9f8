//! Runs as people count them: over all engines that drove them, each task once.

use landfall_model::pilot::{PauseReason, PilotEvent};
use landfall_model::run_history::{RunHistory, RunRecord, TaskResult};
use landfall_model::{
    EndCode, EndKind, Ending, EngineEvent, Event, Fact, JournalEntry, RunEnd, RunId, TaskId, TaskSpec,
    Timestamp,
};

const MINUTE: i64 = 60_000;

/// A story of a night: minutes pass, things happen.
#[derive(Default)]
struct Night {
    history: RunHistory,
    now: i64,
    runs: u32,
}

impl Night {
    fn tell(&mut self, fact: Fact) -> &mut Self {
        self.history.hear(&JournalEntry { at: Timestamp(self.now * MINUTE), fact });
        self
    }

    fn engine(&mut self, event: EngineEvent) -> &mut Self {
        self.tell(Fact::Engine(event))
    }

    fn task(&mut self, id: u32, needs: &[u32]) -> &mut Self {
        let mut spec = TaskSpec::new("a task").expect("a title");
        spec.needs = needs.iter().copied().map(TaskId).collect();
        self.tell(Fact::Task(TaskId(id), Event::Added { spec }))
    }

    fn ends(&mut self, id: u32, kind: EndKind) -> &mut Self {
        let ending = Ending { kind, code: EndCode::Accepted, detail: String::new() };
        self.tell(Fact::Task(TaskId(id), Event::Ended(ending)))
    }

    fn pass(&mut self, minutes: i64) -> &mut Self {
        self.now += minutes;
        self
    }

    fn start(&mut self) -> &mut Self {
        self.runs += 1;
        let (run, only) = (RunId(self.runs), Vec::new());
        self.engine(EngineEvent::Started { version: String::new() });
        if self.runs > 1 && self.records(false).last().is_some_and(|run| run.end == Some(RunEnd::Lost)) {
            self.engine(EngineEvent::RunEnded { run: RunId(self.runs - 1), why: RunEnd::Lost });
        }
        self.engine(EngineEvent::RunStarted { run, slots: 1, only })
    }

    fn end(&mut self) -> &mut Self {
        self.engine(EngineEvent::RunEnded { run: RunId(self.runs), why: RunEnd::NothingLeft })
    }

    fn pause(&mut self) -> &mut Self {
        self.engine(EngineEvent::Pilot(PilotEvent::Paused {
            why: PauseReason::Person,
            reason: "lunch".to_owned(),
        }))
    }

    fn resume(&mut self) -> &mut Self {
        self.engine(EngineEvent::Pilot(PilotEvent::Resumed))
    }

    fn records(&self, alive: bool) -> Vec<RunRecord> {
        self.history.to_records(alive, Timestamp(self.now * MINUTE))
    }

    fn last(&self) -> RunRecord {
        self.records(false).pop().expect("a run began")
    }
}

fn minutes(ms: u64) -> u64 {
    ms / MINUTE.unsigned_abs()
}

#[test]
fn a_run_that_lost_its_engine_goes_on_with_the_next_one() {
    let mut night = Night::default();
    night.task(1, &[]).task(2, &[]).start().pass(10).ends(1, EndKind::Done).pass(5);
    let lost = night.last();
    assert_eq!(
        (lost.end, lost.engines_lost(), lost.ended),
        (Some(RunEnd::Lost), 1, Some(Timestamp(10 * MINUTE)))
    );
    // What a person does meanwhile is no sign of an engine.
    night.task(3, &[]).pass(5).start().pass(10).ends(2, EndKind::Done).pass(1).end();
    let records = night.records(false);
    let [run] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(run.ids, [RunId(1), RunId(2)]);
    assert_eq!((run.end, run.engines_lost()), (Some(RunEnd::NothingLeft), 1));
    assert_eq!(minutes(run.down_ms()), 10, "from the last that the engine wrote to the next start");
    assert_eq!(run.tasks.len(), 3);
    assert_eq!(run.count_results(|task| task == TaskResult::Accepted), 2);
    assert_eq!(run.count_results(|task| task == TaskResult::NotStarted), 1);
}

#[test]
fn a_run_that_ended_by_itself_or_was_lost_long_ago_is_not_gone_on_with() {
    let mut night = Night::default();
    night.task(1, &[]).start().pass(1).end().pass(1).start().pass(1);
    assert_eq!(night.records(true).len(), 2);
    assert_eq!(night.records(true).pop().and_then(|run| run.end), None, "it goes on");
    night.pass(13 * 60).start().end();
    assert_eq!(night.records(false).len(), 3, "another night");
}

#[test]
fn time_without_an_engine_is_no_pause() {
    let mut night = Night::default();
    night.task(1, &[]).start().pass(2).pause().pass(3).resume().pass(1).pause().pass(4);
    night.ends(1, EndKind::Done).pass(30).start().pass(5).resume().end();
    let run = night.last();
    assert_eq!((minutes(run.paused_ms), minutes(run.down_ms())), (3 + 4 + 5, 30));
}

#[test]
fn each_task_is_counted_once_and_names_the_root_of_its_wait() {
    let mut night = Night::default();
    night.task(1, &[]).task(2, &[1]).task(3, &[2]).task(4, &[]).task(5, &[4, 1]).task(6, &[7]).task(7, &[6]);
    night.start().ends(1, EndKind::Blocked).end();
    let run = night.last();
    let results: Vec<TaskResult> = run.tasks.iter().map(|task| task.result).collect();
    let behind = |id| TaskResult::Behind(TaskId(id));
    assert_eq!(
        results,
        [
            TaskResult::Failed,
            behind(1),
            behind(1),
            TaskResult::NotStarted,
            behind(1), // of its two needs the one that ended without landing
            behind(7), // a circle ends somewhere
            behind(6),
        ]
    );
}
