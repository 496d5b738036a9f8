//! A run that the server drives, shown here as if it were ours.

use std::time::{Duration, Instant};

use landfall_api::client::EngineClient;
use landfall_api::{Problem, ProblemCode, RunNowAsked, RunOutcome, StopAsked, TypedService as _};
use landfall_engine::host::wait::FolderWatch;

use crate::project::place::ProjectLocation;
use crate::run::run_handle::{RunAsked, RunHandle, RunMode, RunView};

/// A run in another process.
pub(crate) struct RemoteRun {
    client: EngineClient,
    shown: u64,
    mode: RunMode,
    view: RunView,
    /// Since when the server does not answer.
    lost: Option<Instant>,
    /// The folder of the journal, which the server writes.
    watch: FolderWatch,
}

/// How long a server that does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Begins a run in the server that keeps the project; none if no server does.
pub(crate) fn start(place: &ProjectLocation, asked: &RunAsked) -> Result<Option<RemoteRun>, Problem> {
    let Ok(client) = EngineClient::connect(&place.folder.socket_path()) else { return Ok(None) };
    match client.run_start(RunAsked { unattended: !asked.attended, ..asked.clone() }) {
        Ok(started) => Ok(Some(RemoteRun {
            client,
            shown: started.after,
            mode: RunMode::Running,
            view: RunView::default(),
            lost: None,
            watch: FolderWatch::for_writes(place.folder.root()),
        })),
        // An engine that drives by itself: whoever wants its lock says whose it is.
        Err(problem) if problem.code == ProblemCode::EngineBusy => Ok(None),
        Err(problem) => Err(problem),
    }
}

impl RemoteRun {
    fn fetch_view(&mut self) -> Option<RunView> {
        match self.client.run_now(RunNowAsked { after: Some(self.shown) }) {
            Ok(view) => {
                self.lost = None;
                Some(*view)
            }
            Err(_) => {
                self.lost.get_or_insert_with(Instant::now);
                None
            }
        }
    }
}

impl RunHandle for RemoteRun {
    fn snapshot(&mut self) -> RunView {
        if let Some(view) = self.fetch_view() {
            self.shown = self.shown.max(view.head);
            let news = std::mem::take(&mut self.view.news);
            self.view = view;
            self.view.news.splice(0..0, news); // what a wait has seen meanwhile
            if self.view.mode == RunMode::Draining && self.mode == RunMode::Running {
                self.mode = RunMode::Draining; // asked for by another command
            }
        }
        let view = RunView { mode: self.mode, ..self.view.clone() };
        self.view.news.clear(); // shown now
        view
    }

    fn drain(&mut self) {
        if self.mode == RunMode::Running {
            self.mode = RunMode::Draining;
        }
        let _ = self.client.stop(StopAsked { task: None, now: false }); // it is over already
    }

    fn stop_now(&mut self) {
        self.mode = RunMode::Stopping;
        let _ = self.client.stop(StopAsked { task: None, now: true }); // it is over already
    }

    fn wait(&mut self, timeout: Duration) -> Option<RunOutcome> {
        const LOOK: Duration = Duration::from_millis(100);
        let until = Instant::now() + timeout;
        loop {
            if let Some(outcome) = self.view.outcome.take() {
                return Some(*outcome);
            }
            if let Some(view) = self.fetch_view() {
                if let (Some(ours), Some(theirs)) = (self.view.run, view.run)
                    && ours != theirs
                {
                    let what = format!("{ours} is over, and {theirs} has begun meanwhile");
                    let hint = format!("`landfall report {ours}` says what became of it");
                    return Some(RunOutcome::broken_run(
                        Problem::new(ProblemCode::NotNow, what).with_hint(hint),
                    ));
                }
                self.shown = self.shown.max(view.head);
                self.view.news.extend(view.news);
                if let Some(outcome) = view.outcome {
                    return Some(*outcome);
                }
            }
            if self.lost.is_some_and(|since| since.elapsed() > PATIENCE) {
                let problem = Problem::new(ProblemCode::Internal, "the server that drives does not answer any more")
                    .with_hint("`landfall status` shows whether it still runs; agents at work are adopted by the next run");
                return Some(RunOutcome::broken_run(problem));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            self.watch.wait(left.min(LOOK));
        }
    }
}
