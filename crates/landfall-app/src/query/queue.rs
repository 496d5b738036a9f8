//! The landing queue for people: who stands in line, what is verified together, and the search for a culprit, drawn.

use std::collections::BTreeMap;

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::model::flake::Flakes;
use landfall_engine::model::gate::CheckOutcome;
use landfall_engine::model::queue::{BatchDoing, BatchEnd, HoldReason, LandingBatch, Queue, QueueHold};
use landfall_engine::model::{AttemptPhase, BatchId, News, Task, TaskId, TaskState};
use landfall_engine::store::StoreReader;
use landfall_engine::{EngineRequest, RewrittenBaseChoice};
use landfall_text::pluralize;

use crate::project::command_handler::CommandHandler;
use crate::project::query_context::Query;
use crate::project::{conversions, problems};

const LINE_MAX: usize = 1_000; // named in a line; the rest is counted by `status`

/// All there is to see of it.
pub(crate) fn queue_report(look: &Query<'_>) -> Result<Box<api::QueueReport>, Problem> {
    let Some(reader) = look.place.open_reader()? else {
        let (queue, flakes) = (Queue::default(), Flakes::default());
        return Ok(Box::new(to_queue_report(&queue, &flakes, Vec::new())));
    };
    let of = |error| problems::from_store_error(&error);
    let (queue, flakes) = (reader.queue().map_err(of)?, reader.flakes().map_err(of)?);
    let mut line = Vec::new();
    for (place, id) in queue.line().take(LINE_MAX).enumerate() {
        let Some(task) = reader.task(id).map_err(of)? else { continue };
        line.push(self::queue_place(&queue, &task, place as u64 + 1));
    }
    let mut report = to_queue_report(&queue, &flakes, line);
    let mut titles: BTreeMap<api::WireTaskId, String> = BTreeMap::new();
    for batch in report.batches.iter_mut().chain(&mut report.past) {
        for member in &batch.members {
            if !titles.contains_key(member) {
                let row = reader.row(conversions::model_task(*member)).map_err(of)?;
                titles.insert(*member, row.map(|row| row.title).unwrap_or_default());
            }
        }
        batch.titles = batch.members.iter().map(|member| titles[member].clone()).collect();
    }
    Ok(Box::new(report))
}

/// The place of a task in line.
pub(crate) fn queue_place(queue: &Queue, task: &Task, place: u64) -> api::QueuePlace {
    api::QueuePlace {
        place,
        task: conversions::task_id(task.id),
        title: task.spec.title.clone(),
        since_ms: queued_since(task),
        batch: queue.batch_of(task.id).map(|batch| batch.id.to_string()),
        text: standing_sentence(queue, task.id),
    }
}

fn to_queue_report(queue: &Queue, flakes: &Flakes, line: Vec<api::QueuePlace>) -> api::QueueReport {
    let mut past: Vec<api::BatchLine> =
        queue.past_batches().map(|(batch, how, at)| closed_batch_line(batch, how, at.0)).collect();
    past.reverse();
    let flake = |(check, flake): (&str, &landfall_engine::model::flake::FlakeHistory)| api::FlakeLine {
        check: check.to_owned(),
        runs: flake.runs,
        flakes: flake.flakes,
        last_ms: flake.last.map(|at| at.0),
    };
    api::QueueReport {
        line,
        batches: queue.batches().iter().map(active_batch_line).collect(),
        hold: queue.hold().map(to_hold_line),
        past,
        flakes: flakes.flakiest_checks().into_iter().map(flake).collect(),
    }
}

/// It in a few words, if there is anything to say.
pub(crate) fn queue_brief(queue: &Queue) -> Option<Box<api::QueueBrief>> {
    if queue.is_empty() && queue.hold().is_none() && queue.batches().is_empty() {
        return None;
    }
    Some(Box::new(api::QueueBrief {
        waiting: queue.len() as u64,
        batches: queue.batches().iter().map(active_batch_line).collect(),
        hold: queue.hold().map(to_hold_line),
    }))
}

fn queued_since(task: &Task) -> i64 {
    match &task.state {
        TaskState::Active { doing: AttemptPhase::Queued { since }, .. } => since.0,
        TaskState::Active { .. }
        | TaskState::Draft
        | TaskState::Ready { .. }
        | TaskState::Waiting { .. }
        | TaskState::Review { .. }
        | TaskState::Ended(_) => task.changed.0,
    }
}

/// What a task in line waits for, as a phrase.
pub(crate) fn standing_sentence(queue: &Queue, task: TaskId) -> String {
    if let Some(batch) = queue.batch_of(task) {
        return batch_position_text(batch, task);
    }
    if let Some(hold) = queue.hold() {
        return format!("the queue is held: {}", hold.reason);
    }
    let crowded = queue.batches().iter().find(|batch| batch.crowded.contains(&task));
    if let Some(batch) = crowded {
        return format!("does not fit together with {}; it waits until that is over", batch.id);
    }
    let before = queue.line().take_while(|id| *id != task).count() as u64;
    match before {
        0 => "first in line".to_owned(),
        many => format!("behind {} in line", pluralize(many, "task")),
    }
}

fn batch_position_text(batch: &LandingBatch, task: TaskId) -> String {
    let id = batch.id;
    let others: Vec<TaskId> =
        batch.members.iter().map(|member| member.task).filter(|member| *member != task).collect();
    let with =
        if others.is_empty() { String::new() } else { format!(" with {}", conversions::join_ids(&others)) };
    let on = batch.on.map(|on| format!(", as if {on} had landed")).unwrap_or_default();
    let place = batch.members.iter().position(|member| member.task == task).unwrap_or_default();
    let size = batch.members.len();
    match batch.doing {
        BatchDoing::Building => format!("in {id}: being merged{with}{on}"),
        BatchDoing::Checking(count) if count == size => format!("in {id}: being verified{with}{on}"),
        BatchDoing::Checking(count) if place < count => {
            format!(
                "in {id}, which is red: the first {count} of {size} are being verified to find out by whom"
            )
        }
        BatchDoing::Checking(count) => {
            format!(
                "in {id}, which is red: the first {count} of {size}, before it, are being verified to find out by whom"
            )
        }
        BatchDoing::Resting if batch.is_green() => match batch.on {
            Some(on) => format!("in {id}: verified{with}; it lands after {on}"),
            None => format!("in {id}: verified{with}; it lands next"),
        },
        BatchDoing::Resting => format!("in {id}{with}{on}"),
        BatchDoing::Landing(count) if place < count => format!("in {id}: landing{with}"),
        BatchDoing::Landing(_) => format!("in {id}: those before it land, then it stands in line again"),
    }
}

fn active_batch_line(batch: &LandingBatch) -> api::BatchLine {
    let size = batch.members.len();
    let doing = match batch.doing {
        BatchDoing::Building => "merging".to_owned(),
        BatchDoing::Checking(count) if count == size => "verifying".to_owned(),
        BatchDoing::Checking(count) => format!("verifying the first {count}"),
        BatchDoing::Resting if batch.is_green() => "verified, waits for its turn".to_owned(),
        BatchDoing::Resting => "waits".to_owned(),
        BatchDoing::Landing(count) if count == size => "landing".to_owned(),
        BatchDoing::Landing(count) => format!("landing the first {count}"),
    };
    let mut drawing = draw_looks(batch);
    if let BatchDoing::Checking(count) = batch.doing {
        let arrow = if drawing.is_empty() { "" } else { " → " };
        drawing = format!("{drawing}{arrow}{count} …");
    }
    to_batch_line(batch, doing, drawing)
}

/// The batches on their way, a line each: `B7  T1 T2 T3  3 ✗ → 2 …  verifying the first 2`.
pub(crate) fn draw_active_batches(queue: &Queue) -> Vec<String> {
    let line = |batch: &LandingBatch| {
        let members: Vec<String> = batch.members.iter().map(|member| member.task.to_string()).collect();
        let it = active_batch_line(batch);
        format!("{:<5} {}  {}  {}", it.batch, members.join(" "), it.drawing, it.doing)
    };
    queue.batches().iter().map(line).collect()
}

fn closed_batch_line(batch: &LandingBatch, how: &BatchEnd, at_ms: i64) -> api::BatchLine {
    let (doing, commit) = match how {
        BatchEnd::Landed { count, commit } if *count == batch.members.len() => {
            ("landed".to_owned(), Some(commit.as_str().to_owned()))
        }
        BatchEnd::Landed { count, commit } => {
            (format!("the first {count} landed"), Some(commit.as_str().to_owned()))
        }
        BatchEnd::Dropped { reason } => (reason.clone(), None),
    };
    api::BatchLine { commit, ended_ms: Some(at_ms), ..to_batch_line(batch, doing, draw_looks(batch)) }
}

fn to_batch_line(batch: &LandingBatch, doing: String, drawing: String) -> api::BatchLine {
    api::BatchLine {
        batch: batch.id.to_string(),
        on: batch.on.as_ref().map(BatchId::to_string),
        members: batch.members.iter().map(|member| conversions::task_id(member.task)).collect(),
        titles: Vec::new(),
        doing,
        looks: batch
            .looks
            .iter()
            .map(|(count, outcome)| api::BatchLook {
                count: *count as u64,
                outcome: conversions::to_api_outcome(*outcome),
            })
            .collect(),
        drawing,
        culprit: find_culprit(batch).map(conversions::task_id),
        commit: None,
        ended_ms: None,
    }
}

/// Whoever made it red, once the search is over.
fn find_culprit(batch: &LandingBatch) -> Option<TaskId> {
    let red = batch.red?;
    (red == batch.green + 1).then(|| batch.members.get(red - 1).map(|member| member.task)).flatten()
}

/// The looks at a batch, as a person follows them: `5 ✗ → 2 ✓ → 3 ✓ → 4 ✗`.
fn draw_looks(batch: &LandingBatch) -> String {
    let look = |(count, outcome): &(usize, CheckOutcome)| {
        let doubted = batch.is_doubted() && Some(*count) == batch.red;
        let mark = match outcome {
            CheckOutcome::Pass | CheckOutcome::Flaky if doubted => "? (fewer tests than on the base)",
            CheckOutcome::Pass => "✓",
            CheckOutcome::Flaky => "✓ (flaky)",
            CheckOutcome::Fail => "✗",
            CheckOutcome::Timeout => "✗ (timeout)",
            CheckOutcome::PreExisting => "? (red on the base as well)",
            CheckOutcome::Broken => "? (check broken)",
        };
        format!("{count} {mark}")
    };
    batch.looks.iter().map(look).collect::<Vec<_>>().join(" → ")
}

/// A hold, with what lets the queue move again.
pub(crate) fn to_hold_line(hold: &QueueHold) -> api::HoldLine {
    let hint = match hold.why {
        HoldReason::Gate => {
            "mend the check; Landfall tries it again by itself, and at once with `landfall queue resume`"
        }
        HoldReason::Runaway => {
            "look at what the checks say (`landfall queue`, `landfall log`), then `landfall queue resume`"
        }
        HoldReason::Machine => {
            "`landfall doctor` checks git and the disk; Landfall tries again by itself, and at once with `landfall queue resume`"
        }
        HoldReason::Person => "`landfall queue resume` lets it move again",
        HoldReason::Rewritten => {
            "`landfall queue resume` takes your branch as it is now and verifies waiting work on it; \
             `landfall queue resume --keep-landed` brings it together with what landed"
        }
        HoldReason::Deleted => {
            "make the branch again; Landfall continues by itself, or at once with `landfall queue resume`"
        }
    };
    api::HoldLine {
        why: hold.why,
        reason: hold.reason.clone(),
        since_ms: hold.since.0,
        until_ms: hold.until.map(|until| until.0),
        hint: hint.to_owned(),
    }
}

/// Why a task that stands in line, or lands, is where it is.
pub(crate) fn queue_details(reader: &StoreReader, task: &Task) -> Result<Vec<String>, Problem> {
    let TaskState::Active { doing: AttemptPhase::Queued { .. } | AttemptPhase::Landing, .. } = &task.state
    else {
        return Ok(Vec::new());
    };
    let queue = reader.queue().map_err(|error| problems::from_store_error(&error))?;
    let mut details = vec![standing_sentence(&queue, task.id)];
    if let Some(batch) = queue.batch_of(task.id) {
        let drawing = active_batch_line(batch);
        if !drawing.drawing.is_empty() {
            details.push(format!("{}: {}", drawing.batch, drawing.drawing));
        }
    }
    details.extend(queue.hold().map(|it| to_hold_line(it).hint));
    Ok(details)
}

impl CommandHandler<'_> {
    pub fn pause_queue(&self, asked: &api::PauseAsked) -> Result<api::QueueChanged, Problem> {
        let reason = match asked.reason.trim() {
            "" => "you paused it",
            reason => reason,
        };
        self.request_done(EngineRequest::HoldQueue { reason: reason.to_owned() })?;
        let waiting = self.count_waiting()?;
        let text = format!(
            "the landing queue is held: {} in line; what is landing now is finished. `landfall queue resume` lets it move.",
            pluralize(waiting, "task")
        );
        Ok(api::QueueChanged { held: true, waiting, text })
    }

    pub fn resume_queue(&self, asked: &api::QueueResume) -> Result<api::QueueChanged, Problem> {
        let rewritten =
            if asked.keep_landed { RewrittenBaseChoice::Keep } else { RewrittenBaseChoice::Rebase };
        self.request_done(EngineRequest::ResumeQueue { rewritten })?;
        let waiting = self.count_waiting()?;
        let when = if self.engine.is_alive() { "" } else { ", with the next `landfall run`" };
        let text = format!("the landing queue moves again: {} in line{when}.", pluralize(waiting, "task"));
        Ok(api::QueueChanged { held: false, waiting, text })
    }

    fn count_waiting(&self) -> Result<u64, Problem> {
        Ok(self.open_reader()?.queue().map_err(|error| problems::from_store_error(&error))?.len() as u64)
    }

    pub fn eject_from_queue(&self, id: TaskId) -> Result<api::Changed, Problem> {
        let before = self.query().load_task(&*self.reader_for_task(id)?, id)?;
        match &before.state {
            TaskState::Active { doing: AttemptPhase::Queued { .. }, .. } => {}
            TaskState::Active { doing: AttemptPhase::Landing, .. } => {
                let message = format!("{id} is landing just now; it cannot be taken out any more");
                return Err(Problem::new(ProblemCode::NotNow, message)
                    .with_hint(format!("`landfall rollback {id}` takes it back once it has landed")));
            }
            _ => {
                let message = format!("{id} does not stand in the landing queue");
                return Err(Problem::new(ProblemCode::NotNow, message).with_hint(format!(
                    "`landfall why {id}` shows its state, `landfall queue` who stands in line"
                )));
            }
        }
        let changed = self.send_news(&[conversions::task_id(id)], News::StopTask)?;
        self.describe_changes(
            &changed,
            &format!("was taken out of the landing queue; its work is kept, and `landfall retry {id}` lets it stand in line again"),
        )
    }
}

#[cfg(test)]
mod tests {
    use landfall_engine::model::gate::{CheckOutcome, GateReport};
    use landfall_engine::model::queue::{BatchMember, BatchPrefix, Queue, QueueEvent};
    use landfall_engine::model::{Attempt, BatchId, Commit, TaskId, Timestamp, Tree};

    use super::{active_batch_line, standing_sentence};

    /// A batch of five, of which these were verified, as the line of it and where `T4` stands.
    fn check(looks: &[(usize, bool)], now: Option<usize>, expect: expect_test::Expect) {
        let member = |number: u32| BatchMember {
            task: TaskId(number),
            attempt: Attempt(1),
            head: Commit::new(&format!("{number:040}")),
        };
        let members: Vec<BatchMember> = (1..=5).map(member).collect();
        let prefix = |number: u32| BatchPrefix {
            commit: Commit::new(&format!("c{number:039}")),
            tree: Tree::new(&format!("d{number:039}")),
        };
        let batch = BatchId(7);
        let mut queue = Queue::default();
        let mut events = vec![
            QueueEvent::Formed { batch, on: None, members: members.clone() },
            QueueEvent::Built {
                batch,
                base: Commit::new("b0"),
                members,
                prefixes: (1..=5).map(prefix).collect(),
                crowded: Vec::new(),
            },
        ];
        for (count, green) in looks {
            events.push(QueueEvent::CheckBegan { batch, count: *count });
            let report = report(if *green { CheckOutcome::Pass } else { CheckOutcome::Fail });
            events.push(QueueEvent::Checked { batch, count: *count, report });
        }
        events.extend(now.map(|count| QueueEvent::CheckBegan { batch, count }));
        for event in &events {
            queue.apply(Timestamp(0), event).expect("it can follow");
        }
        let line = active_batch_line(&queue.batches()[0]);
        let culprit = line.culprit.map(|task| format!("   {task} made it red")).unwrap_or_default();
        let at = standing_sentence(&queue, TaskId(4));
        expect.assert_eq(&format!("{}{culprit}\nT4: {at}", line.drawing));
    }

    fn report(outcome: CheckOutcome) -> GateReport {
        use landfall_engine::model::Digest;
        use landfall_engine::model::gate::CommandResult;
        GateReport {
            base: Commit::new("b0"),
            head: Commit::new("5e"),
            commit: Commit::new("c1"),
            tree: Tree::new("7d"),
            config: Digest::new("0c"),
            environment: Digest::new("0e"),
            commands: vec![CommandResult {
                name: "tests".to_owned(),
                command: "make test".to_owned(),
                required: true,
                outcome,
                exit: Some(i32::from(outcome != CheckOutcome::Pass)),
                took_ms: 10,
                limit_ms: 1_000,
                tests: None,
                excerpt: String::new(),
                caps: None,
                denied: Vec::new(),
                copied_from_base: false,
            }],
            took_ms: 10,
            reused: false,
            required: false,
            sandbox: None,
        }
    }

    #[test]
    fn the_search_for_a_culprit_is_drawn() {
        check(
            &[],
            Some(5),
            expect_test::expect![[r#"
            5 …
            T4: in B7: being verified with T1, T2, T3, T5"#]],
        );
        check(
            &[(5, false)],
            Some(3),
            expect_test::expect![[r#"
            5 ✗ → 3 …
            T4: in B7, which is red: the first 3 of 5, before it, are being verified to find out by whom"#]],
        );
        check(
            &[(5, false), (3, true), (4, false)],
            None,
            expect_test::expect![[r#"
            5 ✗ → 3 ✓ → 4 ✗   T4 made it red
            T4: in B7 with T1, T2, T3, T5"#]],
        );
        check(
            &[(5, true)],
            None,
            expect_test::expect![[r#"
            5 ✓
            T4: in B7: verified with T1, T2, T3, T5; it lands next"#]],
        );
    }
}
