//! Loops that sessions of clients ask for: each holds one task of a module, with limits of its own.

use std::sync::Arc;

use landfall_model::auto::{AutoEvent, LoopState};
use landfall_model::{EngineEvent, News, Task, TaskId, TaskLimitOverrides, TaskSpec, TaskState, WaitReason};

use crate::ask::{AskError, LoopRequest, NewTaskSpec};
use crate::core::{Core, CoreEnvironment};

const MINUTE_MS: u64 = 60_000;

impl Core {
    /// Lets a session have a module's task worked on; there is one from then on, if there was none.
    ///
    /// # Errors
    /// When the session or the task has a loop, or the task cannot go on. Nothing was changed.
    pub fn start_loop(
        &mut self,
        out: &dyn CoreEnvironment,
        asked: LoopRequest,
    ) -> Result<Arc<Task>, AskError> {
        let LoopRequest { session, module, spec, flow, position, iterations_max, minutes_max } = asked;
        let of_session = self.loops().find_by_session(&session).filter(|it| it.holds_session());
        if let Some(held) = of_session.or_else(|| self.loops().find_holder(&module)) {
            return Err(AskError::LoopHeld(Box::new(held.clone())));
        }
        let found =
            self.world().tasks().filter(|task| task.spec.source == spec.source).map(|task| task.id).max();
        let id = match found {
            Some(id) => id,
            None => {
                let new =
                    NewTaskSpec { spec: spec.clone(), needs_here: Vec::new(), parent_here: None, position };
                self.add_tasks(out, vec![new])?.first().map(|task| task.id).expect("one was added")
            }
        };
        let task = self.expect_task(id);
        let retry =
            matches!(task.state, TaskState::Ended(_)).then_some(News::Retry { fresh: false, note: None });
        // Whoever cannot have other limits or begin again cannot go on: it is said before anything is changed.
        let limits = News::SetLimits { limits: TaskLimitOverrides::default() };
        for probe in [&limits].into_iter().chain(&retry) {
            landfall_model::decide_and_apply(&task, &self.decision_input(out, probe))?;
        }
        let flow = flow.or_else(|| task.spec.flow.clone());
        if task.state == TaskState::Draft {
            // Its objective was written meanwhile. One edit: where it is refused, the flow stays as well.
            self.edit_task(out, id, TaskSpec { flow, ..spec })?;
        } else if task.spec.flow != flow {
            self.edit_task(out, id, TaskSpec { flow, ..task.spec.clone() })?;
        }
        if let Some(retry) = retry {
            self.try_handle_task_news(out, id, &retry)?;
        }
        let task = self.expect_task(id);
        if task.hold.is_some() || matches!(task.state, TaskState::Waiting { wait: WaitReason::Pause, .. }) {
            self.try_handle_task_news(out, id, &News::Release)?;
        }
        let task = self.expect_task(id);
        let limits = TaskLimitOverrides {
            iterations_max: Some(task.iterations_done().saturating_add(iterations_max)),
            task_ms: Some(task.counters.spent_ms.saturating_add(u64::from(minutes_max) * MINUTE_MS)),
            micro_usd: None,
        };
        let task = self.try_handle_task_news(out, id, &News::SetLimits { limits })?;
        let started = AutoEvent::Started { session, module, task: id, iterations_max, minutes_max };
        self.record_engine_event(out, EngineEvent::Auto(started));
        self.widen_run(id);
        Ok(task)
    }

    /// Ends the loop of a session, once what is under way is finished. One that failed lets go of its task.
    ///
    /// # Errors
    /// When it has none.
    pub fn stop_loop(&mut self, out: &dyn CoreEnvironment, session: &str) -> Result<Arc<Task>, AskError> {
        let held = self.loops().find_by_session(session).filter(|it| it.holds_session());
        let Some((task, standing)) = held.map(|it| (it.task, it.loop_state())) else {
            return Err(AskError::NoLoop(session.to_owned()));
        };
        if standing == LoopState::Stopping {
            return Ok(self.expect_task(task));
        }
        self.record_engine_event(
            out,
            EngineEvent::Auto(AutoEvent::StopAsked { session: session.to_owned() }),
        );
        if standing == LoopState::Running {
            let reason = format!("the loop of session `{session}` was stopped");
            let own = self.expect_task(task).runs_own_loop()
                && matches!(self.expect_task(task).state, TaskState::Active { .. });
            // An agent that runs its own loop would go on to its end: it is told to stop after its step.
            let news = if own { News::StopTask } else { News::Hold { reason } };
            // Refused by what is landing: that is finished, and nothing comes after it.
            let _ = self.try_handle_task_news(out, task, &news);
        }
        Ok(self.expect_task(task))
    }

    /// Ends every loop: whoever stops the run means these, too.
    pub fn stop_loops(&mut self, out: &dyn CoreEnvironment) {
        let running = self.loops().all_loops().iter().filter(|it| it.loop_state() == LoopState::Running);
        for session in running.map(|it| it.session.clone()).collect::<Vec<_>>() {
            self.record_engine_event(out, EngineEvent::Auto(AutoEvent::StopAsked { session }));
        }
    }

    /// What the task still needs, and itself.
    pub(crate) fn with_needs(&self, id: TaskId) -> Vec<TaskId> {
        let (mut all, mut open) = (Vec::new(), vec![id]);
        while let Some(id) = open.pop() {
            let Some(task) = self.world().get(id) else { continue };
            if all.contains(&id) {
                continue;
            }
            all.push(id);
            let unmet =
                |need: &&TaskId| self.world().get(**need).is_some_and(|task| !task.unblocks_dependents());
            open.extend(task.spec.needs.iter().filter(unmet));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use landfall_model::gate::GateReport;
    use landfall_model::{Commit, ExhaustedBudget, Spending, Timestamp};

    use super::*;
    use crate::engine::rules_from_settings;
    use crate::flows::load_flows;
    use crate::settings::Settings;

    struct SilentEnvironment;

    impl CoreEnvironment for SilentEnvironment {
        fn now(&self) -> Timestamp {
            Timestamp(1)
        }

        fn exhausted_budget(&self) -> Option<ExhaustedBudget> {
            None
        }

        fn note_live_spending(&self, _: TaskId, _: Option<Spending>) {}
        fn note_journalled_spending(&self, _: Timestamp, _: Spending) {}
        fn run_started(&self) {}
        fn note_pass(&self, _: &GateReport) {}
        fn trust_base(&self, _: &Commit) {}
        fn note_user_branch_tip(&self, _: &Commit) {}
    }

    #[test]
    fn a_loop_that_is_refused_leaves_the_flow_of_its_task() {
        let out = &SilentEnvironment;
        let rules = rules_from_settings(&Settings::defaults(), out.now());
        let mut core = Core::new(load_flows(None).flows, "loop", rules);
        let mut spec = TaskSpec::new("Fix the door").expect("a title");
        (spec.source, spec.draft, spec.flow) =
            ("module:AiTasks/door".to_owned(), true, Some("loop".to_owned()));
        let new =
            NewTaskSpec { spec: spec.clone(), needs_here: Vec::new(), parent_here: None, position: None };
        let id = core.add_tasks(out, vec![new]).expect("added")[0].id;
        spec.needs.insert(TaskId(99));
        let asked = LoopRequest {
            session: "one".to_owned(),
            module: "AiTasks/door".to_owned(),
            spec,
            flow: Some("staged".to_owned()),
            position: None,
            iterations_max: 3,
            minutes_max: 10,
        };
        let refused = core.start_loop(out, asked);
        assert!(matches!(refused, Err(AskError::UnknownTask(TaskId(99)))), "{refused:?}");
        assert_eq!(core.expect_task(id).spec.flow.as_deref(), Some("loop"), "nothing was changed");
    }
}
