//! Something to look at: a small real project with a backlog, driven by the scripted agent in real processes.
//!
//! The agent of this backlog lies once, conflicts once, stops half-way once, asks once, forgets to commit once, and
//! deletes a check once. What lands is right all the same, and the last one waits for a person.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landfall_api::taskfile::{self, TaskFileSource};
use landfall_api::{self as api, Problem, ProblemCode, TypedService as _};
use landfall_engine::EngineRequest;
use landfall_engine::host::git::{BranchName, Git, Repo, Signature};
use landfall_engine::model::{News, TaskId};

use crate::project::place::ProjectLocation;
use crate::project::{clock, problems};
use crate::run::run_handle::{RunAsked, RunHandle, RunView};
use crate::run::{self, ActiveRun};
use crate::service::ProjectService;

/// A demonstration under way.
pub struct Demo {
    /// The project that was made.
    pub root: PathBuf,
    /// Where its state is. Not where a project of the person's would have it: commands find it by `LANDFALL_STATE`.
    pub state: PathBuf,
    /// Its run. What it says at the end is shown like that of any run.
    pub run: Box<dyn RunHandle>,
}

/// The files of the project.
const FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("demo/project/README.md")),
    ("CHANGES.md", include_str!("demo/project/CHANGES.md")),
    ("landfall.toml", include_str!("demo/project/landfall.toml")),
    ("test.sh", include_str!("demo/project/test.sh")),
    ("lib/upper.sh", include_str!("demo/project/lib/upper.sh")),
    ("lib/trim.sh", include_str!("demo/project/lib/trim.sh")),
    ("tests/upper.sh", include_str!("demo/project/tests/upper.sh")),
    ("tests/trim.sh", include_str!("demo/project/tests/trim.sh")),
];

const BACKLOG: &str = include_str!("demo/backlog.md");

/// What the demo answers to the one question.
const ANSWER: &str = "with dots";

/// How long the question stands before the demo answers: long enough to be seen.
const THINKING: Duration = Duration::from_millis(600);

/// Makes the project and its backlog, and starts the run.
pub(crate) fn start(dir: Option<&Path>) -> Result<Demo, Problem> {
    let dir = prepare_demo_folder(dir)?;
    let (root, state) = (dir.join("project"), dir.join("state"));
    make_project(&root)?;
    let place = ProjectLocation::with_state(&root, Some(state.clone()))?;
    add_backlog(&place)?;
    let run = run::start(place.clone(), &RunAsked::default())?;
    Ok(Demo { root, state, run: Box::new(DemoRun { place, run, asked: None, answered: false, first: None }) })
}

/// An empty folder: the one that was named, or a new one among the temporary files.
fn prepare_demo_folder(dir: Option<&Path>) -> Result<PathBuf, Problem> {
    let failed = |path: &Path, error: std::io::Error| problems::from_io_error("make", path, &error);
    let Some(dir) = dir else {
        for number in 0..1_000 {
            let path = std::env::temp_dir().join(format!("landfall-demo-{}-{number}", std::process::id()));
            match create_private_folder(&path) {
                Ok(()) => return path.canonicalize().map_err(|error| failed(&path, error)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
        return Err(Problem::new(ProblemCode::Internal, "no free name among the temporary files")
            .with_hint("name a folder with `--dir`"));
    };
    std::fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
    let mut inside =
        std::fs::read_dir(dir).map_err(|error| problems::from_io_error("look into", dir, &error))?;
    if inside.next().is_some() {
        return Err(Problem::new(ProblemCode::BadInput, format!("`{}` is not empty", dir.display()))
            .with_hint("name a folder that is empty or not there yet"));
    }
    dir.canonicalize().map_err(|error| failed(dir, error))
}

fn create_private_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().mode(0o700).create(path)
}

fn make_project(root: &Path) -> Result<(), Problem> {
    for (name, text) in FILES {
        let path = root.join(name);
        let folder = path.parent().expect("every file is in the project");
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| problems::from_io_error("write", &path, &error))?;
    }
    let git = Git::find_installed().map_err(|error| problems::from_git_error(&error))?;
    let main = BranchName::new("main").expect("a plain word is a branch");
    let by = Signature {
        name: "Demo".to_owned(),
        email: "demo@landfall.invalid".to_owned(),
        at_ms: clock::now_ms(),
    };
    Repo::create(&git, root, &main, "Begin with upper and trim", &by).map_err(problems::from_repo_problem)?;
    Ok(())
}

fn add_backlog(place: &ProjectLocation) -> Result<(), Problem> {
    let tasks = taskfile::read(&[TaskFileSource { name: "backlog.md", text: BACKLOG }])
        .map_err(|error| Problem::new(ProblemCode::Internal, format!("the demo's own backlog: {error}")))?;
    ProjectService::through_socket(place.clone()).add(api::NewTasks { tasks })?;
    Ok(())
}

/// A run whose one question is answered by the demo.
struct DemoRun {
    place: ProjectLocation,
    run: ActiveRun,
    /// Who asks, and since when it has been seen.
    asked: Option<(TaskId, Instant)>,
    answered: bool,
    /// How a run ended that was over before the answer was given.
    first: Option<api::RunOutcome>,
}

impl DemoRun {
    fn answer_in_time(&mut self) {
        if self.answered {
            return;
        }
        match self.asked {
            None => self.asked = self.run.first_question().map(|task| (task, Instant::now())),
            Some((task, since)) if since.elapsed() >= THINKING => {
                let news = News::Answer { text: ANSWER.to_owned() };
                // If it has just ended, the question is answered before the next run.
                self.answered = self
                    .run
                    .engine_handle()
                    .send_request(EngineRequest::Tell(vec![task], Box::new(news)))
                    .is_ok();
            }
            Some(_) => {}
        }
    }

    /// On a slow machine everything else may be over before the demo has thought about its answer.
    fn continue_task(&mut self, task: TaskId) -> Result<(), Problem> {
        let answer = api::Answer { task: api::WireTaskId(task.0), text: ANSWER.to_owned() };
        ProjectService::through_socket(self.place.clone()).answer(answer)?;
        self.run = run::start(self.place.clone(), &RunAsked::default())?;
        Ok(())
    }
}

impl RunHandle for DemoRun {
    fn snapshot(&mut self) -> RunView {
        self.answer_in_time();
        self.run.snapshot()
    }

    fn drain(&mut self) {
        self.answered = true; // whoever leaves does not want another run
        self.run.drain();
    }

    fn stop_now(&mut self) {
        self.answered = true;
        self.run.stop_now();
    }

    fn wait(&mut self, timeout: Duration) -> Option<api::RunOutcome> {
        self.answer_in_time();
        let mut outcome = self.run.wait(timeout)?;
        if !self.answered
            && let Some(task) = self.run.first_question()
        {
            self.answered = true;
            match self.continue_task(task) {
                Ok(()) => {
                    self.first = Some(outcome);
                    return None;
                }
                Err(problem) => outcome.warnings.push(format!("the demo could not answer: {problem}")),
            }
        }
        if let Some(first) = self.first.take() {
            outcome = merge_outcomes(first, outcome);
        }
        Some(outcome)
    }
}

/// Two runs told as one.
fn merge_outcomes(first: api::RunOutcome, then: api::RunOutcome) -> api::RunOutcome {
    let mut tasks: Vec<api::OutcomeLine> = first.tasks;
    tasks.retain(|line| then.tasks.iter().all(|other| other.task != line.task));
    tasks.extend(then.tasks);
    tasks.sort_by_key(|line| line.task);
    api::RunOutcome {
        tasks,
        elapsed_ms: first.elapsed_ms + then.elapsed_ms,
        tokens: first.tokens + then.tokens,
        line: None, // it is about the second run alone
        ..then
    }
}

#[cfg(test)]
mod tests {
    use landfall_agents::script::Script;
    use landfall_api::taskfile::{self, TaskFileSource};

    use super::BACKLOG;

    #[test]
    fn the_backlog_has_eight_tasks_and_every_script_can_be_played() {
        let tasks =
            taskfile::read(&[TaskFileSource { name: "backlog.md", text: BACKLOG }]).expect("it is our own");
        assert_eq!(tasks.len(), 8);
        assert!(tasks.iter().filter(|task| !task.needs.is_empty()).count() >= 3);
        for task in tasks {
            let (_, rest) = task.body.split_once("```landfall-script\n").expect("each has a script");
            let (script, _) = rest.split_once("\n```").expect("the block is closed");
            let script = Script::parse(script);
            assert!(script.is_ok(), "{}: {script:?}", task.title);
        }
    }
}
