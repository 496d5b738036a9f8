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
        if let Some(flow) = flow.filter(|flow| self.expect_task(id).spec.flow.as_ref() != Some(flow)) {
            let spec = self.expect_task(id).spec.clone();
            self.edit_task(out, id, TaskSpec { flow: Some(flow), ..spec })?;
        }
        // Whoever cannot have other limits cannot go on: it is said before anything is changed.
        let probe = News::SetLimits { limits: TaskLimitOverrides::default() };
        landfall_model::decide_and_apply(&self.expect_task(id), &self.decision_input(out, &probe))?;
        match &self.expect_task(id).state {
            // Its objective was written meanwhile.
            TaskState::Draft => {
                let flow = self.expect_task(id).spec.flow.clone();
                self.edit_task(out, id, TaskSpec { flow, ..spec })?;
            }
            TaskState::Ended(_) => {
                self.try_handle_task_news(out, id, &News::Retry { fresh: false, note: None })?;
            }
            TaskState::Ready { .. }
            | TaskState::Active { .. }
            | TaskState::Waiting { .. }
            | TaskState::Review { .. } => {}
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
