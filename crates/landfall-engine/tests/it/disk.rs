//! Room on the disk: what goes by itself, and what never does.

use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use landfall_engine::disk::{DiskItemKind, DiskMonitor, Inventory, ReclaimScope};
use landfall_engine::errand::{self, UserCommand};
use landfall_engine::model::disk::DiskLevel;
use landfall_engine::model::{
    Attempt, EndCode, EndKind, Ending, Task, TaskId, TaskSpec, TaskState, Timestamp, World,
};
use landfall_engine::occasions::NotificationTopic;

use crate::workspace::Scene;

const FULL: &str = "[disk]\nwarn = \"90TiB\"\npause = \"90TiB\"\nstop = \"0B\"\n[keep]\nattempts = \"0s\"\nfailed = \"0s\"\n";

fn ended(number: u32, kind: EndKind) -> Task {
    let spec = TaskSpec::new("Ends").expect("a title");
    let ending = Ending { kind, code: EndCode::Person, detail: String::new() };
    let task = Task::from_spec(TaskId(number), spec, Timestamp(1));
    Task { attempt: Attempt(1), state: TaskState::Ended(ending), ..task }
}

/// The record of a run that has ended, and its temporary files.
fn record(scene: &Scene, name: &str) -> (PathBuf, PathBuf) {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = scene.site().folder.attempts_path().join(name);
    let errand = UserCommand {
        argv: errand::sh_arguments("true"),
        cwd: scene.folder.path().to_owned(),
        env: vec![("PATH".into(), std::env::var_os("PATH").expect("there is one"))],
        stdin: Vec::new(),
        sandbox: None,
        limit_ms: 60_000,
        grace_ms: 1_000,
    };
    let ran = errand::run_user_command(&scene.site().program, &dir, &errand).expect("it runs");
    assert!(ran.is_well());
    let uid = std::fs::metadata("/proc/self").expect("it is there").uid();
    let hash = blake3::hash(dir.as_os_str().as_bytes()).to_hex();
    let tmp = std::env::temp_dir().join(format!("landfall-{uid}")).join(&hash.as_str()[..16]);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&tmp).expect("a folder");
    (dir, tmp)
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn when_room_is_short_only_what_nobody_can_want_back_goes_by_itself() {
    let scene = Scene::new(FULL);
    let site = scene.site();
    let mut world = World::new(BTreeMap::new(), "loop");
    let done = scene.workspace_of(TaskId(1));
    std::fs::write(done.path().join("left.txt"), "work\n").expect("a file");
    world.put_task(ended(1, EndKind::Cancelled));
    let failed = scene.workspace_of(TaskId(2));
    world.put_task(ended(2, EndKind::Failed));
    let open = scene.workspace_of(TaskId(3));
    world.put_task(Task { state: TaskState::Draft, ..ended(3, EndKind::Done) });
    let (old, old_tmp) = record(&scene, "T1-a1-i1");
    let (needed, needed_tmp) = record(&scene, "T3-a1-i1");

    let mut governor = DiskMonitor::default();
    let looked = governor.check_disk(site, &world);
    assert_eq!(looked.disk, DiskLevel::Pause);
    assert_eq!(looked.news.expect("it got worse").topic, Some(NotificationTopic::Paused));
    eventually("it comes to an end", || !governor.is_cleaning());

    assert!(!done.path().exists() && !old.exists() && !old_tmp.exists(), "what is over goes");
    assert!(failed.path().exists(), "a failed task may be taken up again at any moment");
    assert!(open.path().exists() && needed.exists(), "a task that is open keeps all it has");
    assert!(!needed_tmp.exists(), "but not the temporary files of a run that has ended");
    let git = Command::new("git")
        .args(["-C".as_ref(), site.store.dir().as_os_str()])
        .args(["show", "refs/landfall/kept/t1/reclaimed-a1:left.txt"])
        .output()
        .expect("git is there");
    assert_eq!(String::from_utf8_lossy(&git.stdout), "work\n", "what was left in it is kept");

    let again = governor.check_disk(site, &world);
    assert_eq!((again.disk, again.news.is_none()), (DiskLevel::Pause, true), "nothing new is told");
    assert!(!governor.is_cleaning(), "and it is not done over and over");
}

#[test]
fn nothing_is_planned_that_may_still_be_at_work() {
    let scene = Scene::new(FULL);
    let site = scene.site().clone();
    let workspace = scene.workspace_of(TaskId(1));
    let dir = site.folder.attempts_path().join("T1-a1-i1");
    let task = Arc::new(ended(1, EndKind::Done));
    let plan = || {
        let now = Timestamp(site.clock.now_ms());
        let keep = &site.settings.keep;
        let inventory = Inventory { folder: &site.folder, keep, now, reach: ReclaimScope::AtRest };
        let task = |id: TaskId| Ok::<_, ()>((id == task.id).then(|| task.clone()));
        inventory.plan_removal(&task).expect("it can be looked up")
    };
    let stop = scene.folder.path().join("stop");
    let errand = UserCommand {
        argv: errand::sh_arguments(&format!("while [ ! -e {} ]; do sleep 0.02; done", stop.display())),
        cwd: scene.folder.path().to_owned(),
        env: vec![("PATH".into(), std::env::var_os("PATH").expect("there is one"))],
        stdin: Vec::new(),
        sandbox: None,
        limit_ms: 60_000,
        grace_ms: 1_000,
    };
    let program: &Path = &site.program;
    std::thread::scope(|scope| {
        let run = scope.spawn(|| errand::run_user_command(program, &dir, &errand));
        eventually("it runs", || dir.join("sitter.json").exists());
        assert_eq!(plan(), [], "its agent may still write");
        std::fs::write(&stop, "").expect("a file");
        assert!(run.join().expect("no panic").expect("it runs").is_well());
    });
    let items = plan();
    let kinds: Vec<DiskItemKind> = items.iter().map(|item| item.kind).collect();
    assert_eq!(kinds, [DiskItemKind::Workspace(TaskId(1)), DiskItemKind::Record]);
    assert!(items[0].bytes > 0 && items[0].path == workspace.path());
}

#[test]
fn the_store_is_packed_and_those_who_borrow_from_it_notice_nothing() {
    let scene = Scene::new("");
    let site = scene.site();
    let workspace = scene.workspace();
    assert!(site.store.count_loose_objects().expect("it can be counted").count > 0);
    site.store.pack_loose_objects().expect("it can be packed");
    assert_eq!(site.store.count_loose_objects().expect("it can be counted").count, 0);
    let status = Command::new("git").current_dir(workspace.path()).args(["fsck", "--full"]).output();
    let status = status.expect("git is there");
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
}
