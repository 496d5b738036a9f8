//! Tasks that follow issues, among each other: a whole and its parts, and those that wait for others in the tracker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use landfall_model::haul::{IssueBatchEvent, IssueBatchId};
use landfall_model::issue::{self, IssueOptions, IssueRef, SubIssuesState};
use landfall_model::{
    EndKind, Ending, EngineEvent, Feedback, News, Task, TaskId, TaskSpec, TaskState, Timestamp, WaitReason,
};

use super::{Core, CoreEnvironment};
use crate::ask::{AskError, FollowIssue, FollowRequest, NewTaskSpec};

/// The flow of tasks that follow issues.
const FLOW: &str = "issue";

impl Core {
    /// The task that follows an issue. Where one is done and the issue was taken up again, it is the later one.
    #[must_use]
    pub fn task_following(&self, source: &IssueRef) -> Option<&Arc<Task>> {
        let source = source.to_string();
        self.world.tasks().filter(|task| task.spec.source == source).max_by_key(|task| task.id)
    }

    /// Follows issues: each has a task from then on that is not over, unless nothing is left to do for it.
    ///
    /// # Errors
    /// When one of them cannot take the way that is wanted. Nothing was changed.
    pub fn follow_issues(
        &mut self,
        out: &dyn CoreEnvironment,
        asked: &FollowRequest,
    ) -> Result<(Option<IssueBatchId>, Vec<Arc<Task>>), AskError> {
        let sources: Vec<IssueRef> = asked
            .issues
            .iter()
            .map(|issue| IssueRef { tracker: asked.tracker.clone(), number: issue.number })
            .collect();
        let mut known: Vec<Option<TaskId>> = Vec::new();
        let mut new: Vec<NewTaskSpec> = Vec::new();
        for (issue, source) in asked.issues.iter().zip(&sources) {
            let there = self
                .task_following(source)
                .filter(|task| issue.settled || should_continue(task, issue))
                .cloned();
            match &there {
                Some(task) if should_continue(task, issue) => {
                    let wish = News::Wish(merge_wishes(task, asked));
                    landfall_model::decide_and_apply(task, &self.decision_input(out, &wish))?;
                }
                Some(_) => {}
                None => new.push(new_task(issue, source)?),
            }
            known.push(there.map(|task| task.id));
        }
        let mut added = self.add_tasks(out, new)?.into_iter().map(|task| task.id);
        let ids: Vec<TaskId> = known
            .into_iter()
            .map(|id| id.or_else(|| added.next()).expect("one was added for each"))
            .collect();
        for (issue, id) in asked.issues.iter().zip(&ids) {
            if should_continue(&self.expect_task(*id), issue) {
                self.resume_followed_task(out, *id, asked)?;
            }
            self.widen_run(*id);
        }
        let haul = asked.together.map(|chosen| {
            let haul = self.hauls.next_id();
            let issues = asked.issues.iter().map(|issue| issue.number).collect();
            let tracker = asked.tracker.clone();
            self.record_engine_event(
                out,
                EngineEvent::Haul(IssueBatchEvent::Begun { haul, chosen, tracker, issues }),
            );
            haul
        });
        Ok((haul, ids.into_iter().map(|id| self.expect_task(id)).collect()))
    }

    /// Whoever asks for an issue again wants its task to go on: one that gave up is tried again, one that is held let go.
    fn resume_followed_task(
        &mut self,
        out: &dyn CoreEnvironment,
        id: TaskId,
        asked: &FollowRequest,
    ) -> Result<(), AskError> {
        let wish = News::Wish(merge_wishes(&self.expect_task(id), asked));
        self.try_handle_task_news(out, id, &wish)?;
        let task = self.expect_task(id);
        let news = match &task.state {
            TaskState::Ended(_) => Some(News::Retry { fresh: false, note: None }),
            TaskState::Waiting { wait: WaitReason::Pause, .. } => Some(News::Release),
            _ if task.hold.is_some() => Some(News::Release),
            TaskState::Draft
            | TaskState::Ready { .. }
            | TaskState::Active { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. } => None,
        };
        if let Some(news) = news {
            self.try_handle_task_news(out, id, &news)?;
        }
        Ok(())
    }

    /// What a piece of news about one task means for the issues around it.
    pub(super) fn update_related_issues(
        &mut self,
        out: &dyn CoreEnvironment,
        task: &Arc<Task>,
        parted: bool,
    ) {
        if parted {
            self.add_sub_issue_tasks(out, task);
        }
        if let TaskState::Waiting { wait: WaitReason::Parts, .. } = task.state {
            self.update_parent_task(out, task.id);
        }
        // A part may have been a task before its whole was: it knows no parent then.
        if task.is_over() || task.spec.parent.is_some() {
            for whole in self.wholes.clone() {
                self.update_parent_task(out, whole);
            }
        }
        if let (TaskState::Ended(Ending { kind: EndKind::Done, .. }), Some(source)) =
            (&task.state, IssueRef::from_source(&task.spec.source))
        {
            let named = format!("#{}", source.number);
            self.recheck_blocked_tasks(out, &|by| by.contains(&named));
        }
    }

    /// At the start of a run: others may have done meanwhile what was waited for.
    pub(super) fn recheck_issues(&mut self, out: &dyn CoreEnvironment) {
        self.poll(out);
        for whole in self.wholes.clone() {
            self.update_parent_task(out, whole);
        }
    }

    /// Whether a task waits for something that only the tracker knows.
    #[must_use]
    pub fn waits_for_tracker(&self) -> bool {
        !self.blocked.is_empty()
    }

    /// Whether it is time to look at the issues that others wait for.
    #[must_use]
    pub fn wants_a_poll(&self, now: Timestamp, every_ms: u64) -> bool {
        self.waits_for_tracker() && now >= self.polled.plus_ms(every_ms)
    }

    /// Looks again at what the tracker may have changed: it was polled, or said so by itself.
    pub fn poll(&mut self, out: &dyn CoreEnvironment) {
        self.polled = out.now();
        self.recheck_blocked_tasks(out, &|_| true);
    }

    fn recheck_blocked_tasks(&mut self, out: &dyn CoreEnvironment, is: &dyn Fn(&[String]) -> bool) {
        let waits = |id: &TaskId| match self.world.get(*id).map(|task| &task.state) {
            Some(TaskState::Waiting { wait: WaitReason::Blockers { by }, .. }) => {
                is(by) && self.filter.admits_continuation(*id)
            }
            Some(_) | None => false,
        };
        for id in self.blocked.iter().copied().filter(waits).collect::<Vec<_>>() {
            self.handle_task_news(out, id, &News::LookAgain);
        }
    }

    /// The parts of a whole become tasks. Those that are tasks already stay as they are.
    fn add_sub_issue_tasks(&mut self, out: &dyn CoreEnvironment, whole: &Task) {
        let (Some(issue), Some(source)) = (&whole.issue, IssueRef::from_source(&whole.spec.source)) else {
            return;
        };
        let of = |number| IssueRef { tracker: source.tracker.clone(), number };
        let stands = |part: &&issue::SubIssue| {
            let task = self.task_following(&of(part.number)).filter(|task| issue::is_taken_on_by(part, task));
            task.map(|task| task.id)
        };
        let there: BTreeMap<u64, TaskId> =
            issue.parts.iter().filter_map(|part| Some((part.number, stands(&part)?))).collect();
        let before: BTreeMap<u64, Feedback> = issue
            .ended_before
            .iter()
            .filter_map(|end| Some((end.number, issue::earlier_outcome_feedback(&end.end)?)))
            .collect();
        let fresh: Vec<_> =
            issue.parts.iter().filter(|part| !part.done && !there.contains_key(&part.number)).collect();
        let place_of = |number: &u64| fresh.iter().position(|part| part.number == *number);
        let new = |part: &&issue::SubIssue| {
            let mut spec =
                TaskSpec::new(&part.title).or_else(|_| TaskSpec::new(&of(part.number).to_string()));
            let spec = spec.as_mut().map(|spec| {
                spec.source = of(part.number).to_string();
                spec.parent = Some(whole.id);
                spec.size = part.size;
                spec.flow.clone_from(&whole.spec.flow);
                spec.agent.clone_from(&whole.spec.agent);
                spec.priority = whole.spec.priority;
                spec.tags.clone_from(&whole.spec.tags);
                spec.needs = part.needs.iter().filter_map(|need| there.get(need).copied()).collect();
                spec.clone()
            });
            let needs_here = part.needs.iter().filter_map(place_of).collect();
            NewTaskSpec {
                spec: spec.expect("a source is a title").clone(),
                needs_here,
                parent_here: None,
                position: None,
            }
        };
        let tasks: Vec<NewTaskSpec> = fresh.iter().map(new).collect();
        let wishes = IssueOptions { way: None, depth: None, ..issue.wishes.clone() };
        // Whoever wants the whole wants its parts: those that gave up are tried again, and what is left of others is looked at.
        let goes_on = |part: &&issue::SubIssue| {
            let task = there.get(&part.number).and_then(|id| self.world.get(*id));
            task.is_some_and(|task| issue::goes_on_with_whole(part, task, wishes.accept))
        };
        let again: Vec<TaskId> =
            issue.parts.iter().filter(goes_on).filter_map(|part| there.get(&part.number).copied()).collect();
        match self.add_tasks(out, tasks) {
            Ok(added) => {
                let ids: Vec<TaskId> = added.iter().map(|task| task.id).collect();
                if let Some(only) = &mut self.only
                    && only.contains(&whole.id)
                {
                    only.extend(ids.iter().copied().chain(there.into_values()));
                }
                for id in ids {
                    self.handle_task_news(out, id, &News::Wish(wishes.clone()));
                    let source = IssueRef::from_source(&self.expect_task(id).spec.source);
                    if let Some(feedback) = source.and_then(|source| before.get(&source.number)) {
                        self.handle_task_news(out, id, &News::Inform(feedback.clone()));
                    }
                }
                for id in again {
                    let own = self.expect_task(id).issue.as_ref().map(|issue| issue.wishes.clone());
                    if let Some(own) = own {
                        self.handle_task_news(
                            out,
                            id,
                            &News::Wish(IssueOptions { accept: wishes.accept, ..own }),
                        );
                    }
                    self.handle_task_news(out, id, &News::Retry { fresh: false, note: None });
                }
                self.update_filter();
            }
            Err(error) => {
                let reason = format!("its sub-issues cannot be taken on: {error}");
                self.handle_task_news(out, whole.id, &News::Block { reason });
            }
        }
    }

    /// Tells a whole how far its parts have come, or that none of them goes on any more.
    fn update_parent_task(&mut self, out: &dyn CoreEnvironment, whole: TaskId) {
        let Some(task) = self.world.get(whole) else { return };
        let (TaskState::Waiting { wait: WaitReason::Parts, .. }, Some(issue)) = (&task.state, &task.issue)
        else {
            return;
        };
        let Some(source) = IssueRef::from_source(&task.spec.source) else { return };
        let of = |number| {
            let source = IssueRef { tracker: source.tracker.clone(), number };
            self.task_following(&source).map(|task| &**task)
        };
        match issue::sub_issues_state(&issue.parts, &of) {
            SubIssuesState::Over(ends) => self.handle_task_news(out, whole, &News::PartsOver(ends)),
            SubIssuesState::Going { over, levels } if over != issue.level.over => {
                self.handle_task_news(out, whole, &News::PartsCame { over, levels });
            }
            SubIssuesState::Going { .. } => {}
        }
    }

    /// Parts that may not begin yet, because enough of the same whole are worked on.
    pub(super) fn find_resting_parts(&self) -> BTreeSet<TaskId> {
        let mut resting = BTreeSet::new();
        for whole in &self.wholes {
            let parts =
                self.world.tasks().filter(|task| task.spec.parent == Some(*whole)).map(|task| &**task);
            let could_begin = |task: &Task| self.world.unmet_needs(task).is_empty();
            resting.append(&mut issue::resting_sub_issues(parts, self.rules.parts_max, &could_begin));
        }
        resting
    }

    /// The tasks a person named, and the parts of those.
    pub(super) fn with_parts(&self, named: &BTreeSet<TaskId>) -> BTreeSet<TaskId> {
        let mut all = named.clone();
        loop {
            let parts = self.world.tasks().filter(|task| {
                task.issue.is_some() && task.spec.parent.is_some_and(|parent| all.contains(&parent))
            });
            let more: Vec<TaskId> = parts.map(|task| task.id).filter(|id| !all.contains(id)).collect();
            if more.is_empty() {
                return all;
            }
            all.extend(more);
        }
    }
}

/// Whether a task is over for good.
fn is_settled(task: &Task) -> bool {
    matches!(task.state, TaskState::Ended(Ending { kind: EndKind::Done | EndKind::Cancelled, .. }))
}

/// Whether the task of an issue goes on when somebody asks for the issue. One that landed does while its acceptance is all that is
/// left; one whose issue was opened again since has done its part, and another does the rest.
fn should_continue(task: &Task, issue: &FollowIssue) -> bool {
    !is_settled(task) || !issue.settled && issue.at_verify && issue::is_partial(task)
}

fn merge_wishes(task: &Task, asked: &FollowRequest) -> IssueOptions {
    let wishes = &asked.wishes;
    match task.issue.as_ref().filter(|_| asked.keep) {
        Some(issue) => IssueOptions {
            way: wishes.way.or(issue.wishes.way),
            depth: wishes.depth.or(issue.wishes.depth),
            ..wishes.clone()
        },
        None => wishes.clone(),
    }
}

fn new_task(issue: &FollowIssue, source: &IssueRef) -> Result<NewTaskSpec, AskError> {
    let mut spec = TaskSpec::new(&issue.title).or_else(|_| TaskSpec::new(&source.to_string()))?;
    spec.source = source.to_string();
    spec.flow = Some(FLOW.to_owned());
    spec.size = issue.size;
    Ok(NewTaskSpec { spec, needs_here: Vec::new(), parent_here: None, position: None })
}
