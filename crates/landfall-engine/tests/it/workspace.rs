//! Commands of the person's in a workspace, by real processes in the real sandbox.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use landfall_engine::host::git::Workspace;
use landfall_engine::model::{Attempt, Task, TaskId, TaskSpec, Timestamp};
use landfall_engine::{Engine, EngineContext, EngineOptions, workspace};

/// A project with an engine that has it open.
pub struct Scene {
    pub folder: tempfile::TempDir,
    pub engine: Engine,
    pub task: Task,
}

fn git(root: &Path, args: &[&str]) {
    let done = Command::new("git")
        .current_dir(root)
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git is there");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

impl Scene {
    pub fn new(settings: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["shop", "home"] {
            std::fs::create_dir(at(name)).expect("a folder");
        }
        std::fs::write(at("shop/landfall.toml"), settings).expect("a file");
        for args in [&["init", "-q"] as &[_], &["add", "."], &["commit", "-qm", "first"]] {
            git(&at("shop"), args);
        }
        let variable = |name: &str, value: PathBuf| (name.into(), value.into_os_string());
        let environment = vec![
            variable("LANDFALL_STATE", at("state")),
            variable("HOME", at("home")),
            ("PATH".into(), std::env::var_os("PATH").expect("there is one")),
        ];
        let program = env!("CARGO_BIN_EXE_landfall-engine-probe").into();
        let options =
            EngineOptions { program, command: "test".to_owned(), environment, base: None, lock: None };
        let engine = Engine::open(&at("shop"), &options).expect("it opens");
        let spec = TaskSpec::new("Greet <by> name").expect("a title");
        let task = Task { attempt: Attempt(1), ..Task::from_spec(TaskId(7), spec, Timestamp(1)) };
        Self { folder, engine, task }
    }

    pub fn site(&self) -> &Arc<EngineContext> {
        self.engine.site()
    }

    pub fn workspace(&self) -> Workspace {
        self.workspace_of(TaskId(7))
    }

    pub fn workspace_of(&self, task: TaskId) -> Workspace {
        let site = self.site();
        let base = site.store.import_branch(&site.repo, &site.branch).expect("a commit");
        site.pool
            .prepare_workspace(&task.to_string(), &base, &format!("landfall/t{}", task.0))
            .expect("a workspace")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.site().folder.hooks_log()).unwrap_or_default()
    }
}

#[test]
fn after_create_is_run_once_for_each_workspace_in_it_and_in_its_sandbox() {
    let scene = Scene::new(
        "[workspace]\nafter_create = \"env | sort > env; echo here >> count; echo out > $HOME/outside; echo end >> count\"\n",
    );
    let (site, made) = (scene.site(), scene.workspace());
    workspace::after_create(site, &scene.task, &made).expect("it works");
    workspace::after_create(site, &scene.task, &made).expect("it was done");
    let read = |name: &str| std::fs::read_to_string(made.path().join(name)).expect("it was written");
    assert_eq!(read("count"), "here\nend\n");
    let env = read("env");
    for wanted in ["LANDFALL_TASK=T7\n", "LANDFALL_TITLE=Greet <by> name\n", "LANDFALL_BRANCH=landfall/t7\n"]
    {
        assert!(env.contains(wanted), "{wanted} in {env}");
    }
    assert!(!scene.folder.path().join("home/outside").exists(), "it may write only in the workspace");
    // The same name, another workspace.
    workspace::before_remove(site, &scene.task, &made);
    let keep = landfall_engine::host::git::RefName::new("refs/landfall/kept/t7/test").expect("a name");
    let by = landfall_engine::host::git::Signature::for_engine(0);
    site.pool.remove_workspace(made, &keep, &by).expect("it goes");
    let task = Task { attempt: Attempt(2), ..scene.task.clone() };
    let again = scene.workspace();
    workspace::after_create(site, &task, &again).expect("it works again");
    assert!(again.path().join("count").exists());
}

#[test]
fn what_worktreeinclude_names_is_there_before_the_command_runs() {
    let scene = Scene::new("[workspace]\nafter_create = \"cp .env seen\"\n");
    let root = scene.folder.path().join("shop");
    std::fs::write(root.join(".git/info/exclude"), ".env\nother\n").expect("a file");
    std::fs::write(root.join(".worktreeinclude"), ".env\n").expect("a file");
    std::fs::write(root.join(".env"), "KEY=1\n").expect("a file");
    std::fs::write(root.join("other"), "").expect("a file");
    let made = scene.workspace();
    workspace::after_create(scene.site(), &scene.task, &made).expect("it works");
    assert_eq!(std::fs::read_to_string(made.path().join("seen")).expect("it was copied"), "KEY=1\n");
    assert!(!made.path().join("other").exists());
}

#[test]
fn a_failure_says_why_and_is_tried_again() {
    let scene = Scene::new(
        "[workspace]\nafter_create = \"test -e ok || { echo no database >&2; exit 3; }\"\nbefore_run = \"false\"\n",
    );
    let (site, made) = (scene.site(), scene.workspace());
    let why = workspace::after_create(site, &scene.task, &made).expect_err("it fails");
    assert_eq!(why, "`workspace.after_create` ended with code 3: no database");
    let why = workspace::after_create(site, &scene.task, &made).expect_err("it fails again");
    assert!(why.contains("no database"), "{why}");
    std::fs::write(made.path().join("ok"), "").expect("a file");
    workspace::after_create(site, &scene.task, &made).expect("now it works");
    let why = workspace::before_run(site, &scene.task, Attempt(1), 1, &made).expect_err("it fails");
    assert_eq!(why, "`workspace.before_run` ended with code 1");
    assert_eq!(scene.log().lines().count(), 4, "{}", scene.log());
}

#[test]
fn what_takes_too_long_is_ended_and_what_cleans_up_only_warns() {
    let scene = Scene::new(
        "[workspace]\ntimeout = \"300ms\"\nbefore_run = \"sleep 600\"\nafter_run = \"echo was here > after; false\"\n\
         [run]\ngrace = \"100ms\"\n",
    );
    let (site, made) = (scene.site(), scene.workspace());
    let why = workspace::before_run(site, &scene.task, Attempt(1), 1, &made).expect_err("it hangs");
    assert_eq!(why, "`workspace.before_run` took too long and was ended");
    workspace::after_run(site, &scene.task, Attempt(1), 1);
    assert!(made.path().join("after").exists());
    assert!(scene.log().contains("\"hook\":\"after_run\""), "{}", scene.log());
}

#[test]
fn a_workspace_has_ports_of_its_own() {
    let scene = Scene::new(
        "[workspace]\nports = \"28000-28999\"\nports_each = 4\nbefore_run = \"echo $LANDFALL_PORT $LANDFALL_PORTS >> ports\"\n",
    );
    let (site, made) = (scene.site(), scene.workspace());
    for iteration in 1..=2 {
        workspace::before_run(site, &scene.task, Attempt(1), iteration, &made).expect("it works");
    }
    let text = std::fs::read_to_string(made.path().join("ports")).expect("it was written");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], lines[1], "they stay the same");
    let (first, all) = lines[0].split_once(' ').expect("two words");
    let first: u16 = first.parse().expect("a port");
    assert_eq!(all, format!("{first}-{}", first + 3));
}
