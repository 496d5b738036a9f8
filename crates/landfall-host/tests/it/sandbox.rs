//! The sandbox from inside: what an agent can do in it, and what it cannot. As the user the tests run as, and if that is
//! root, as an ordinary one too.

use crate::sitter_scene::{PROBE, Scene, Way, probe};
use landfall_host::sandbox::{self, CacheLayer, LayerChanges, ProcessLimits, Sandbox, SandboxLevel};
use landfall_host::sitter::{self, ChildExit, SignalSpec, SitterProcess, SitterSpec, SitterState, StopMode};
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const NOBODY: u32 = 65_534;

/// Runs the story as we are, and once more as an ordinary user if we are root: this program is run again, for the one test.
fn as_root_and_as_nobody(test: &str, story: impl Fn()) {
    story();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("probe");
    fs::copy(probe(), &copy).expect("room for a copy");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).expect("ours");
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("we are root");
    let output = Command::new("/proc/self/exe")
        .args(["--exact", &format!("sandbox::{test}"), "--nocapture"])
        .env(PROBE, &copy)
        .env("TMPDIR", folder.path())
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .expect("we can run again");
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && words.contains("1 passed"),
        "as an ordinary user: {words}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A home with a repository, secrets, and Landfall's state in it.
struct House {
    scene: Scene,
    home: PathBuf,
    _service: UnixListener,
}

impl House {
    fn new(way: Way) -> House {
        let mut scene = Scene::new(way);
        let home = scene.folder.path().canonicalize().expect("it is there").join("home");
        for folder in
            [".ssh", "repo", "shared", "state/store.git/objects", "state/work/T1", "state/tmp", "state/runs"]
        {
            fs::create_dir_all(home.join(folder)).expect("writable");
        }
        let files =
            ["notes", "single", ".netrc", ".ssh/id", "state/token", "state/journal", "state/journal2"];
        let in_repo = ["a", "b", "c", "d", "f", "h", "i", "k"].map(|name| format!("repo/{name}"));
        let in_work = ["file", "file2"].map(|name| format!("state/work/T1/{name}"));
        for file in files.into_iter().map(str::to_owned).chain(in_repo).chain(in_work) {
            fs::write(home.join(file), "text").expect("writable");
        }
        fs::write(home.join("state/store.git/objects/pack"), "objects").expect("writable");
        scene.dir = home.join("state/runs/1");
        scene.marker = scene.dir.to_str().expect("plain text").to_owned();
        let service = UnixListener::bind(home.join("service.sock")).expect("a short path");
        House { scene, home, _service: service }
    }

    fn sandbox(&self, level: SandboxLevel) -> Sandbox {
        let paths = |names: &[&str]| names.iter().map(|name| self.home.join(name)).collect();
        Sandbox {
            level,
            write: paths(&["state/work/T1", "state/tmp", "single", "not-there"]),
            hide: paths(&["state", ".ssh", ".netrc", "later"]),
            read: paths(&["state/store.git/objects"]),
            private: paths(&["shared"]),
            exclusive: paths(&["state/work/T1", "state/tmp"]),
            layers: Vec::new(),
            limits: ProcessLimits::default(),
        }
    }

    fn spec(&self, level: Option<SandboxLevel>, args: &[&str]) -> SitterSpec {
        let mut spec = self.scene.spec(args);
        spec.cwd = self.home.join("state/work/T1");
        spec.sandbox = level.map(|level| self.sandbox(level));
        spec.marker = self.scene.marker.clone();
        spec
    }

    /// What the attacks met: error numbers by name.
    fn attacked(&self, level: Option<SandboxLevel>) -> BTreeMap<String, i32> {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = server.local_addr().expect("bound").port().to_string();
        let engine = std::process::id().to_string();
        let home = self.home.to_str().expect("plain");
        let ended = self.scene.run(&self.spec(level, &["attack", home, &engine, &port]));
        assert_eq!(ended.sandbox, level);
        assert_eq!(ended.exit, ChildExit::Code(0), "{}{}", self.scene.out(), self.err());
        let out = self.scene.out();
        assert!(out.ends_with("done\n"), "{out}{}", self.err());
        out.lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(name, errno)| (name.to_owned(), errno.parse().expect("a number")))
            .collect()
    }

    fn err(&self) -> String {
        String::from_utf8_lossy(&self.scene.text(sitter::SitterStream::Err)).into_owned()
    }
}

/// The names of those that succeeded, and of those that did not.
fn sides(met: &BTreeMap<String, i32>) -> (Vec<&str>, Vec<&str>) {
    let (held, broke): (Vec<_>, Vec<_>) = met.iter().partition(|(_, errno)| **errno == 0);
    (held.into_iter().map(|it| it.0.as_str()).collect(), broke.into_iter().map(|it| it.0.as_str()).collect())
}

const HONEST: [&str; 18] = [
    "dev.null",
    "dev.shm",
    "kill.own",
    "read.list",
    "read.notes",
    "read.objects",
    "read.system",
    "run.program",
    "tmp.create",
    "work.change",
    "work.chmod",
    "work.create",
    "work.folder",
    "work.link",
    "work.listed",
    "work.remove",
    "work.rename",
    "work.socket",
];

/// What the first level leaves open, and the others do not.
const ONLY_WRITE: [&str; 3] = ["hidden.list", "net.service", "repo.chmod"];
/// What takes mounts of its own.
const WITH_MOUNTS: [&str; 3] = ["dev.pty", "dev.pty-peer", "tmp.shared"];
/// What only the last level closes.
const NETWORK: [&str; 3] = ["net.host", "net.tcp", "net.udp"];

/// Everything of these lists, sorted.
fn all_of(lists: &[&[&'static str]]) -> Vec<&'static str> {
    let mut all: Vec<&str> = lists.concat();
    all.sort_unstable();
    all
}

#[test]
fn without_a_sandbox_every_attack_succeeds() {
    // Else the tests below would show nothing.
    as_root_and_as_nobody("without_a_sandbox_every_attack_succeeds", || {
        let house = House::new(Way::AsItCan);
        let met = house.attacked(None);
        // These depend on the machine: whether it has the call, shows the device, lets a user have a namespace.
        let may_fail = [
            "call.io-uring",
            "call.keyctl",
            "dev.other",
            "root.disk",
            "root.mount",
            "root.packets",
            "root.proc-write",
            "userns.mount",
        ];
        let (_, failed) = sides(&met);
        let odd: Vec<&str> = failed.into_iter().filter(|name| !may_fail.contains(name)).collect();
        assert_eq!(odd, Vec::<&str>::new(), "{met:?}");
        assert!(met.len() >= 60, "{met:?}");
        house.scene.assert_nothing_left();
    });
}

#[test]
fn inside_the_sandbox_honest_work_succeeds_and_no_attack_does() {
    as_root_and_as_nobody("inside_the_sandbox_honest_work_succeeds_and_no_attack_does", || {
        let house = House::new(Way::AsItCan);
        let met = house.attacked(Some(SandboxLevel::Write));
        assert_eq!(sides(&met).0, all_of(&[&HONEST, &ONLY_WRITE, &NETWORK]), "{met:?}");
        assert_eq!(fs::read_to_string(house.home.join("repo/a")).expect("there"), "text");
        assert!(!house.home.join("repo/through").exists());
        house.scene.assert_nothing_left();
    });
}

#[test]
fn the_isolated_sandbox_closes_all_but_the_network() {
    as_root_and_as_nobody("the_isolated_sandbox_closes_all_but_the_network", || {
        for way in [Way::AsItCan, Way::NoCgroup] {
            let house = House::new(way);
            let met = house.attacked(Some(SandboxLevel::Isolated));
            assert_eq!(sides(&met).0, all_of(&[&HONEST, &WITH_MOUNTS, &NETWORK]), "{met:?}");
            // What it made in its own folders is on the real disk; what it made in a private one is gone.
            assert!(house.home.join("state/tmp/new").exists());
            assert!(!house.home.join("shared/new").exists());
            house.scene.assert_nothing_left();
        }
    });
}

/// As where the home folder lies in `/tmp`.
#[test]
fn what_is_open_in_a_hidden_place_in_a_private_folder_is_there() {
    as_root_and_as_nobody("what_is_open_in_a_hidden_place_in_a_private_folder_is_there", || {
        for level in [SandboxLevel::Isolated, SandboxLevel::Strict] {
            let house = House::new(Way::AsItCan);
            let files =
                ["state/work/T1/file", "state/store.git/objects/pack", "notes", "state/token", ".ssh/id"];
            let files = files.map(|name| house.home.join(name).to_str().expect("plain").to_owned());
            let args: Vec<&str> = ["read"].into_iter().chain(files.iter().map(String::as_str)).collect();
            let mut spec = house.spec(Some(level), &args);
            let sandbox = spec.sandbox.as_mut().expect("one");
            sandbox.private = vec![house.scene.folder.path().to_owned()];
            let ended = house.scene.run(&spec);
            let out = house.scene.out();
            let read: Vec<&str> = out.lines().filter_map(|line| line.strip_suffix(" 0")).collect();
            assert_eq!(read, [files[0].as_str(), files[1].as_str()], "{level:?}: {ended:?}");
        }
    });
}

/// Some agents keep a file in the home folder, and replace it by a lock and a new version beside it.
#[test]
fn a_program_can_replace_its_own_file_in_a_hidden_folder() {
    as_root_and_as_nobody("a_program_can_replace_its_own_file_in_a_hidden_folder", || {
        for level in [SandboxLevel::Isolated, SandboxLevel::Strict] {
            let house = House::new(Way::AsItCan);
            let mut spec = house.spec(Some(level), &[]);
            let steps = "cd \"$1\" && mkdir single.lock && echo new > single.new && echo new > single && \
                         rm single.new && rmdir single.lock && echo changed; cat notes .ssh/id; ls";
            let home = house.home.to_str().expect("plain");
            spec.argv = ["sh", "-c", steps, "sh", home].map(Into::into).to_vec();
            spec.sandbox.as_mut().expect("one").hide.push(house.home.clone());
            let ended = house.scene.run(&spec);
            let out = house.scene.out();
            assert_eq!(out, "changed\nsingle\nstate\n", "{level:?}: {ended:?} {}", house.err());
            assert_eq!(fs::read_to_string(house.home.join("single")).expect("there"), "new\n");
            // Landlock's rule for the folder reaches what is open below it; the mount there does not let anything be made.
            let house = House::new(Way::AsItCan);
            fs::create_dir_all(house.home.join(".cargo/bin")).expect("ours");
            fs::write(house.home.join(".cargo/bin/tool"), "tool").expect("ours");
            let mut spec = house.spec(Some(level), &[]);
            let steps = "cd \"$1/.cargo\" && cat bin/tool && { touch bin/new; echo x > bin/tool; rm bin/tool; mkdir new; \
                         mv bin bin2; mv ../.cargo ../other; chmod 0 bin/tool; } 2>&-; find . | sort";
            spec.argv =
                ["sh", "-c", steps, "sh", house.home.to_str().expect("plain")].map(Into::into).to_vec();
            let sandbox = spec.sandbox.as_mut().expect("one");
            sandbox.hide.push(house.home.clone());
            sandbox.read.push(house.home.join(".cargo"));
            house.scene.run(&spec);
            assert_eq!(house.scene.out(), "tool.\n./bin\n./bin/tool\n", "{level:?}: {}", house.err());
            // The same folder without such a file stays closed.
            let house = House::new(Way::AsItCan);
            let mut spec = house.spec(Some(level), &[]);
            let home = house.home.to_str().expect("plain");
            spec.argv = ["sh", "-c", "mkdir \"$1/new\" && echo made", "sh", home].map(Into::into).to_vec();
            let sandbox = spec.sandbox.as_mut().expect("one");
            sandbox.hide.push(house.home.clone());
            sandbox.write.retain(|path| !path.ends_with("single"));
            house.scene.run(&spec);
            assert_eq!(house.scene.out(), "", "{level:?}");
        }
    });
}

/// Sockets in folders that are hidden or private, and elsewhere; some listen before the start and some after it.
#[test]
fn sockets_of_others_are_out_of_reach_before_and_after_the_start() {
    as_root_and_as_nobody("sockets_of_others_are_out_of_reach_before_and_after_the_start", || {
        let is_told_apart = sandbox::probe_sandbox().expect("there is Landlock").landlock >= 9;
        for level in [SandboxLevel::Isolated, SandboxLevel::Strict, SandboxLevel::Write] {
            let house = House::new(Way::AsItCan);
            let at = |name: &str| house.home.join(name).to_str().expect("plain").to_owned();
            let before = ["shared/before", ".ssh/before", "repo/before"].map(at);
            let after = ["shared/after", ".ssh/after", "repo/after"].map(at);
            let bind = |path: &String| UnixListener::bind(path).expect("a short path");
            let _before = before.each_ref().map(bind);
            let go = at("state/work/T1/go");
            let mut args = vec!["connect", &go];
            args.extend(before.iter().chain(&after).map(String::as_str));
            let sitting = house.scene.start(&house.spec(Some(level), &args));
            house.scene.hear("waiting");
            let _after = after.each_ref().map(bind);
            fs::write(&go, "").expect("ours");
            house.scene.end_of(&sitting);
            let out = house.scene.out();
            assert!(out.ends_with("done\n"), "{out}");
            let reached: Vec<&str> = out
                .lines()
                .filter_map(|line| line.strip_suffix(" 0"))
                .map(|path| &path[at("").len()..])
                .collect();
            let expected: &[&str] = match level {
                _ if is_told_apart => &[],
                // In an open folder, a service that begins later can be reached: the guide says so.
                SandboxLevel::Isolated | SandboxLevel::Strict => &["repo/after"],
                SandboxLevel::Write => &[
                    "shared/before",
                    ".ssh/before",
                    "repo/before",
                    "shared/after",
                    ".ssh/after",
                    "repo/after",
                ],
            };
            assert_eq!(reached, expected, "{level:?}: {out}");
        }
    });
}

/// Takes mounts of our own, as whoever we are.
fn own_mounts() -> std::io::Result<()> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let namespaces = libc::CLONE_NEWNS | if user == 0 { 0 } else { libc::CLONE_NEWUSER };
    // SAFETY: a child with one thread may leave its namespaces.
    if unsafe { libc::unshare(namespaces) } == -1 {
        return Err(std::io::Error::last_os_error());
    }
    if user != 0 {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?; // root in here, so that the next program may mount
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
    }
    let private = libc::MS_REC | libc::MS_PRIVATE;
    let none = std::ptr::null();
    // SAFETY: the path outlives the call.
    match unsafe { libc::mount(none, c"/".as_ptr(), none, private, none.cast()) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// What is hidden has a second name by a mount: of itself, of what is around it, of what is in it. Tried in mounts of our own.
#[test]
fn a_second_mount_of_a_hidden_place_uncovers_nothing() {
    const NAME: &str = "a_second_mount_of_a_hidden_place_uncovers_nothing";
    const INSIDE: &str = "LANDFALL_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        return read_by_second_names();
    }
    as_root_and_as_nobody(NAME, || {
        let mut command = Command::new("/proc/self/exe");
        // SAFETY: system calls, and files of the kernel that take a few bytes each.
        unsafe { command.pre_exec(own_mounts) };
        let output = command
            .args(["--nocapture", "--exact", &format!("sandbox::{NAME}")])
            .env(INSIDE, "1")
            .output()
            .expect("we can run again");
        let words = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && words.contains("1 passed"), "{words}{complaint}");
    });
}

fn read_by_second_names() {
    for level in [SandboxLevel::Write, SandboxLevel::Isolated, SandboxLevel::Strict] {
        let house = House::new(Way::NoCgroup);
        let outside = house.scene.folder.path().canonicalize().expect("there").join("outside");
        let mounts = [("me", ".ssh"), ("above", ""), ("in", ".ssh/more"), ("repo", "repo")];
        fs::create_dir(house.home.join(".ssh/more")).expect("ours");
        fs::write(house.home.join(".ssh/more/id"), "text").expect("ours");
        for (name, of) in mounts {
            fs::create_dir_all(outside.join(name)).expect("ours");
            let done = Command::new("mount")
                .arg("--bind")
                .args([house.home.join(of), outside.join(name)])
                .status()
                .expect("mount is here");
            assert!(done.success(), "{name}");
        }
        let names = ["me/id", "above/.ssh/id", "in/id", "above/.netrc", "above/state/token", "repo/a"];
        let names = names.map(|name| outside.join(name).to_str().expect("plain").to_owned());
        let args: Vec<&str> = ["read"].into_iter().chain(names.iter().map(String::as_str)).collect();
        let ended = house.scene.run(&house.spec(Some(level), &args));
        let out = house.scene.out();
        assert!(out.ends_with("done\n"), "{level:?}: {ended:?}");
        let read: Vec<&str> = out.lines().filter_map(|line| line.strip_suffix(" 0")).collect();
        assert_eq!(read, [names[5].as_str()], "{level:?}: {out}");
        for (name, _) in mounts {
            let done = Command::new("umount").arg(outside.join(name)).status();
            assert!(done.is_ok_and(|status| status.success()), "{name}");
        }
        start_with_an_open_folder_under_a_second_name(level);
    }
}

/// An open folder in a hidden one is open under its second name as well where only Landlock hides: the same folder, and no
/// reason to start nothing.
fn start_with_an_open_folder_under_a_second_name(level: SandboxLevel) {
    let house = House::new(Way::NoCgroup);
    let (checkout, again) = (house.home.join("checkout"), house.scene.folder.path().join("outside/again"));
    for folder in [&checkout.join("tools"), &again] {
        fs::create_dir_all(folder).expect("ours");
    }
    fs::write(checkout.join("tools/program"), "text").expect("ours");
    let mount =
        |program: &str, args: &[&Path]| Command::new(program).args(args).status().expect("it is here");
    assert!(mount("mount", &[Path::new("--bind"), &checkout, &again]).success());
    let program = checkout.join("tools/program").to_str().expect("plain").to_owned();
    let mut spec = house.spec(Some(level), &["read", &program]);
    let sandbox = spec.sandbox.as_mut().expect("one");
    sandbox.hide.push(checkout.clone());
    sandbox.read.push(checkout.join("tools"));
    let ended = house.scene.run(&spec);
    assert_eq!(house.scene.out(), format!("{program} 0\ndone\n"), "{level:?}: {ended:?}");
    assert!(mount("umount", &[&again]).success());
}

#[test]
fn the_strict_sandbox_also_closes_the_network_the_services_and_the_names() {
    as_root_and_as_nobody("the_strict_sandbox_also_closes_the_network_the_services_and_the_names", || {
        let house = House::new(Way::NoCgroup);
        let met = house.attacked(Some(SandboxLevel::Strict));
        assert_eq!(sides(&met).0, all_of(&[&HONEST, &WITH_MOUNTS]), "{met:?}");
        for name in ["net.tcp", "net.udp"] {
            assert_eq!(met[name], libc::ENETUNREACH, "{met:?}");
        }
        // What it made is on the real disk, not in some copy.
        assert!(house.home.join("state/tmp/new").exists());
        house.scene.assert_nothing_left();
    });
}

#[test]
fn what_is_hidden_stays_so_when_it_is_made_later() {
    as_root_and_as_nobody("what_is_hidden_stays_so_when_it_is_made_later", || {
        for level in [SandboxLevel::Write, SandboxLevel::Isolated, SandboxLevel::Strict] {
            let house = House::new(Way::AsItCan);
            let spec = house.spec(Some(level), &["later", house.home.to_str().expect("plain")]);
            let sitting = house.scene.start(&spec);
            assert_eq!(sitting.sandbox, Some(level));
            house.scene.hear("waiting");
            fs::create_dir(house.home.join("later")).expect("ours");
            for file in ["later/secret", "neighbour", "repo/later", "state/work/T1/go"] {
                fs::write(house.home.join(file), "text").expect("ours");
            }
            house.scene.end_of(&sitting);
            let out = house.scene.out();
            for refused in ["later.read", "later.write", "later.create"] {
                assert!(!out.contains(&format!("{refused} 0")), "{level:?}: {out}");
            }
            // Beside what is hidden, what comes later is closed too; below an open folder it is open.
            assert!(out.contains(&format!("neighbour.read {}", libc::EACCES)), "{level:?}: {out}");
            assert!(out.contains("below.read 0"), "{level:?}: {out}");
        }
    });
}

#[test]
fn a_sandbox_that_does_not_hold_is_never_used() {
    as_root_and_as_nobody("a_sandbox_that_does_not_hold_is_never_used", || {
        let is_root = rustix::process::geteuid().is_root();
        let stories = [
            ("landlock", SandboxLevel::Write, "could write into"),
            ("signals", SandboxLevel::Write, "could signal its sitter"),
            ("seccomp", SandboxLevel::Write, "system call"),
            ("privileges", SandboxLevel::Write, "privileges"),
            ("network", SandboxLevel::Strict, "had a network"),
            ("signals", SandboxLevel::Strict, "could signal its sitter"),
            ("hidden", SandboxLevel::Write, "could read a file"),
            ("hidden", SandboxLevel::Isolated, "could read a file"),
        ];
        for (part, level, word) in stories.into_iter().filter(|story| is_root || story.0 != "privileges") {
            let house = House::new(Way::Broken(part));
            let ended = house.scene.run(&house.spec(Some(level), &["say", "it ran"]));
            match &ended.exit {
                ChildExit::NotStarted { message, missing: false, denied: true, .. } => {
                    assert!(
                        message.contains(word) && message.contains("sandbox = \"off\""),
                        "{part}: {message}"
                    );
                }
                other => panic!("{part}: {other:?}"),
            }
            assert_eq!((ended.sandbox, house.scene.out()), (Some(level), String::new()));
            let left: Vec<_> = fs::read_dir(&house.scene.dir).expect("there").flatten().collect();
            assert!(left.iter().all(|it| !it.file_name().to_string_lossy().contains("trial")), "{left:?}");
        }
    });
}

#[test]
fn a_sandbox_that_cannot_be_what_it_says_is_refused() {
    type Spoil = fn(&mut Sandbox, &Path);
    let stories: [(&str, Spoil); 3] = [
        ("own folder", |sandbox, home| sandbox.write.push(home.join("state/runs"))),
        ("is hidden and cannot be", |sandbox, home| sandbox.write.push(home.to_owned())),
        ("which is hidden", |sandbox, home| sandbox.write.push(home.join("repo/link"))),
    ];
    for (word, spoil) in stories {
        let house = House::new(Way::AsItCan);
        std::os::unix::fs::symlink(house.home.join(".ssh"), house.home.join("repo/link")).expect("ours");
        let mut spec = house.spec(Some(SandboxLevel::Write), &["say", "it ran"]);
        spoil(spec.sandbox.as_mut().expect("one"), &house.home);
        match house.scene.run(&spec).exit {
            ChildExit::NotStarted { message, denied: true, .. } => {
                assert!(message.contains(word), "{message}")
            }
            other => panic!("{word}: {other:?}"),
        }
    }
}

impl House {
    /// Makes a cache with a few files in it, and says where it is.
    fn cache(&self) -> PathBuf {
        let cache = self.home.join("cache");
        fs::create_dir_all(cache.join("src/lib")).expect("ours");
        for name in ["src/lib/code", "src/lib/other", "index"] {
            fs::write(cache.join(name), "as downloaded").expect("ours");
        }
        cache
    }

    /// Folders for the changes of a layer over `cache`, in the state.
    fn layer(&self, cache: &Path, owner: &str) -> CacheLayer {
        let folder = self.home.join("state/caches").join(owner);
        let (upper, work) = (folder.join("upper"), folder.join("work"));
        fs::create_dir_all(&upper).expect("ours");
        fs::create_dir_all(&work).expect("ours");
        CacheLayer { path: cache.to_owned(), changes: LayerChanges::Overlay { upper, work } }
    }

    /// What a shell says that works in the sandbox with this layer.
    fn in_layer(&self, run: &str, level: SandboxLevel, layer: &CacheLayer, script: &str) -> String {
        let sitting = self.start_in_layer(run, level, layer, script);
        self.end_in_layer(run, &sitting)
    }

    /// Starts such a shell.
    fn start_in_layer(
        &self,
        run: &str,
        level: SandboxLevel,
        layer: &CacheLayer,
        script: &str,
    ) -> SitterProcess {
        let mut spec = self.spec(Some(level), &[]);
        spec.argv = ["/bin/sh", "-c", script].map(Into::into).to_vec();
        spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let sandbox = spec.sandbox.as_mut().expect("one");
        sandbox.layers = vec![layer.clone()];
        self.scene.try_start_in(&self.home.join("state/runs").join(run), &spec).expect("starts")
    }

    /// Waits for its end; what it has said.
    fn end_in_layer(&self, run: &str, sitting: &SitterProcess) -> String {
        let dir = self.home.join("state/runs").join(run);
        self.scene.end_of_in(&dir, sitting);
        let text = |stream| {
            let text = sitter::SpoolReader::new(&dir, stream, 0).read(usize::MAX).expect("readable");
            String::from_utf8_lossy(&text).into_owned()
        };
        text(sitter::SitterStream::Out) + &text(sitter::SitterStream::Err)
    }
}

/// Changes a file, makes one, removes one, moves one to another folder, and says what there is then.
const POISON: &str = "cd \"$0\" && echo poison > src/lib/code && mkdir new && echo x > new/file && rm src/lib/other && \
    mv index new/index && cat src/lib/code && find . -type f | sort";
const POISONED: &str = "poison\n./new/file\n./new/index\n./src/lib/code\n";
const READ: &str = "cd \"$0\" && cat src/lib/code && echo && find . -type f | sort";
const DOWNLOADED: &str = "as downloaded\n./index\n./src/lib/code\n./src/lib/other\n";

fn with_folder(script: &str, folder: &Path) -> String {
    script.replace("$0", folder.to_str().expect("plain"))
}

#[test]
fn a_change_of_a_layer_reaches_neither_the_folder_nor_another_run() {
    as_root_and_as_nobody("a_change_of_a_layer_reaches_neither_the_folder_nor_another_run", || {
        for level in [SandboxLevel::Isolated, SandboxLevel::Strict] {
            let house = House::new(Way::AsItCan);
            let cache = house.cache();
            let (poison, read) = (with_folder(POISON, &cache), with_folder(READ, &cache));
            let (mine, other) = (house.layer(&cache, "T1"), house.layer(&cache, "T2"));
            assert_eq!(house.in_layer("1", level, &mine, &poison), POISONED, "{level:?}");
            assert_eq!(house.in_layer("2", level, &other, &read), DOWNLOADED, "{level:?}");
            // The same owner goes on with what it has.
            let again = house.in_layer("3", level, &mine, &read);
            assert_eq!(again, POISONED.replace("poison\n", "poison\n\n"), "{level:?}");
            assert_eq!(fs::read_to_string(cache.join("src/lib/code")).expect("there"), "as downloaded");
            assert!(cache.join("index").exists() && !cache.join("new").exists());
            // Who asks before learns that it works, and that it does not where the kernel refuses one over another folder.
            let room = house.home.join("state/caches/T1");
            assert!(sandbox::can_overlay(&room, &cache));
            assert!(!sandbox::can_overlay(&room, Path::new("/proc")));
            assert!(
                fs::read_dir(&cache).expect("there").count() == 2
                    && fs::read_dir(&room).expect("there").count() == 2
            );
            let mounts = fs::read_to_string("/proc/self/mountinfo").expect("proc");
            assert!(!mounts.contains("overlay") || !mounts.contains(cache.to_str().expect("plain")));
        }
    });
}

#[test]
fn two_runs_at_once_see_their_own_changes_of_one_folder() {
    as_root_and_as_nobody("two_runs_at_once_see_their_own_changes_of_one_folder", || {
        let house = House::new(Way::AsItCan);
        let cache = house.cache();
        let work = house.home.join("state/work/T1");
        // Each changes the same file, waits until the other one has, and says what it sees.
        let script = |mine: &str, other: &str| {
            let script = "cd \"$0\" && echo MINE > src/lib/code && rm index && touch WORK/MINE && \
                while [ ! -e WORK/OTHER ]; do sleep 0.02; done && cat src/lib/code && ls";
            let script = script.replace("WORK", work.to_str().expect("plain"));
            with_folder(&script.replace("MINE", mine).replace("OTHER", other), &cache)
        };
        let (first, second) = (house.layer(&cache, "T1"), house.layer(&cache, "T2"));
        let one = house.start_in_layer("1", SandboxLevel::Isolated, &first, &script("one", "two"));
        let two = house.start_in_layer("2", SandboxLevel::Isolated, &second, &script("two", "one"));
        assert_eq!(house.end_in_layer("1", &one), "one\nsrc\n");
        assert_eq!(house.end_in_layer("2", &two), "two\nsrc\n");
        assert_eq!(fs::read_to_string(cache.join("src/lib/code")).expect("there"), "as downloaded");
        assert!(cache.join("index").exists());
    });
}

#[test]
fn a_layer_outlives_a_run_that_was_killed_with_its_sitter() {
    as_root_and_as_nobody("a_layer_outlives_a_run_that_was_killed_with_its_sitter", || {
        let house = House::new(Way::AsItCan);
        let cache = house.cache();
        let layer = house.layer(&cache, "T1");
        let work = house.home.join("state/work/T1/began");
        let script = format!("{POISON} && touch {} && sleep 600", work.display());
        let killed = house.start_in_layer("1", SandboxLevel::Isolated, &layer, &with_folder(&script, &cache));
        crate::sitter_scene::within("it has changed the folder", || work.exists());
        let pid = rustix::process::Pid::from_raw(killed.pid).expect("a pid");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
        let dir = house.home.join("state/runs/1");
        crate::sitter_scene::within("it is gone", || {
            sitter::find_sitter(&dir).expect("can look") == SitterState::Vanished
        });
        sitter::sweep_processes(&house.scene.marker).expect("can sweep");
        house.scene.assert_nothing_left();
        // Nothing is mounted for anybody, and the next run goes on with the changes.
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("proc");
        assert!(!mounts.contains(cache.to_str().expect("plain")));
        let again = house.in_layer("2", SandboxLevel::Isolated, &layer, &with_folder(READ, &cache));
        assert_eq!(again, POISONED.replace("poison\n", "poison\n\n"));
        assert_eq!(fs::read_to_string(cache.join("src/lib/code")).expect("there"), "as downloaded");
    });
}

#[test]
fn changes_of_a_layer_can_be_kept_in_memory_where_the_kernel_allows_it() {
    as_root_and_as_nobody("changes_of_a_layer_can_be_kept_in_memory_where_the_kernel_allows_it", || {
        let house = House::new(Way::AsItCan);
        let cache = house.cache();
        let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
            return eprintln!("landfall-skip: there is no /dev/shm that can be written");
        };
        if !sandbox::can_overlay(memory.path(), &cache) {
            return; // then it is not used: `choose_cache_method` takes a copy
        }
        let (upper, work) = (memory.path().join("upper"), memory.path().join("work"));
        fs::create_dir(&upper).expect("ours");
        fs::create_dir(&work).expect("ours");
        let layer = CacheLayer { path: cache.clone(), changes: LayerChanges::Overlay { upper, work } };
        assert_eq!(
            house.in_layer("1", SandboxLevel::Isolated, &layer, &with_folder(POISON, &cache)),
            POISONED
        );
        assert_eq!(fs::read_to_string(cache.join("src/lib/code")).expect("there"), "as downloaded");
        assert!(memory.path().join("upper/new/index").exists());
    });
}

#[test]
fn a_copy_stands_in_the_place_of_a_folder_without_changing_it() {
    as_root_and_as_nobody("a_copy_stands_in_the_place_of_a_folder_without_changing_it", || {
        let house = House::new(Way::AsItCan);
        let cache = house.cache();
        let copy = house.home.join("state/caches/copy");
        fs::create_dir_all(copy.join("src/lib")).expect("ours");
        for name in ["src/lib/code", "src/lib/other", "index"] {
            fs::copy(cache.join(name), copy.join(name)).expect("ours");
        }
        let layer = CacheLayer { path: cache.clone(), changes: LayerChanges::Copy(copy.clone()) };
        let said = house.in_layer("1", SandboxLevel::Isolated, &layer, &with_folder(POISON, &cache));
        assert_eq!(said, POISONED);
        assert_eq!(fs::read_to_string(cache.join("src/lib/code")).expect("there"), "as downloaded");
        assert_eq!(fs::read_to_string(copy.join("src/lib/code")).expect("there"), "poison\n");
    });
}

#[test]
fn what_is_hidden_below_a_layer_stays_hidden() {
    as_root_and_as_nobody("what_is_hidden_below_a_layer_stays_hidden", || {
        let house = House::new(Way::AsItCan);
        let cache = house.cache();
        fs::write(cache.join("token"), "secret").expect("ours");
        fs::create_dir(cache.join("keys")).expect("ours");
        fs::write(cache.join("keys/id"), "secret").expect("ours");
        let mut spec = house.spec(Some(SandboxLevel::Isolated), &[]);
        let script = "cd \"$0\" && cat token keys/id; echo x > other && cat index";
        spec.argv = ["/bin/sh", "-c", &with_folder(script, &cache)].map(Into::into).to_vec();
        spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let sandbox = spec.sandbox.as_mut().expect("one");
        sandbox.layers = vec![house.layer(&cache, "T1")];
        sandbox.hide.extend(["token", "keys"].map(|name| cache.join(name)));
        house.scene.run(&spec);
        assert_eq!(house.scene.out(), "as downloaded", "{}", house.err());
    });
}

/// Without the right to link, a folder that two runs may write is no way for a file of one into the other.
#[test]
fn files_are_linked_and_moved_only_in_places_of_the_run_alone() {
    as_root_and_as_nobody("files_are_linked_and_moved_only_in_places_of_the_run_alone", || {
        for level in [SandboxLevel::Write, SandboxLevel::Isolated, SandboxLevel::Strict] {
            let house = House::new(Way::AsItCan);
            fs::create_dir_all(house.home.join("both/inner")).expect("ours");
            fs::create_dir(house.home.join("state/work/T1/sub")).expect("ours");
            for name in ["one", "two"] {
                fs::write(house.home.join("both").join(name), "text").expect("ours");
            }
            let mut spec = house.spec(Some(level), &[]);
            let both = house.home.join("both");
            let script = "tried() { \"$@\" 2>&- && echo yes || echo no; }
                tried ln file sub/linked; tried ln file $0/linked; tried ln $0/one taken; tried ln $0/one $0/inner/one
                tried ln $0/one $0/beside";
            spec.argv = ["/bin/sh", "-c", &with_folder(script, &both)].map(Into::into).to_vec();
            spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
            spec.sandbox.as_mut().expect("one").write.push(both);
            house.scene.run(&spec);
            // Within one folder, no other path comes to a file.
            assert_eq!(house.scene.out(), "yes\nno\nno\nno\nyes\n", "{level:?}: {}", house.err());
        }
    });
}

#[test]
fn the_level_is_on_record_while_it_runs_and_after() {
    for level in [None, Some(SandboxLevel::Write), Some(SandboxLevel::Isolated), Some(SandboxLevel::Strict)] {
        let house = House::new(Way::AsItCan);
        let sitting = house.scene.start(&house.spec(level, &["hang"]));
        crate::sitter_scene::within("it runs", || matches!(house.scene.found(), SitterState::Running(_)));
        assert_eq!(house.scene.found(), SitterState::Running(sitting.clone()));
        assert_eq!(sitting.sandbox, level);
        sitter::stop_sitter(&sitting, StopMode::Now).expect("ours");
        assert_eq!(house.scene.end_of(&sitting).sandbox, level);
    }
}

#[test]
fn nobody_slips_out_of_fifty_cancels() {
    as_root_and_as_nobody("nobody_slips_out_of_fifty_cancels", || {
        for turn in 0..50 {
            let level = if turn % 2 == 0 { SandboxLevel::Write } else { SandboxLevel::Strict };
            let way = if turn % 4 < 2 { Way::AsItCan } else { Way::NoCgroup };
            let house = House::new(way);
            let sitting = house.scene.start(&house.spec(Some(level), &["slip", &house.scene.marker]));
            house.scene.hear("slipped");
            sitter::stop_sitter(&sitting, StopMode::Now).expect("ours");
            let ended = house.scene.end_of(&sitting);
            assert_eq!(ended.left, 0, "turn {turn}: {ended:?}");
            // By the mark, and by a word in the command of those who took it off.
            house.scene.assert_nothing_left();
        }
    });
}

#[test]
fn a_sandboxed_tree_whose_sitter_was_killed_is_swept() {
    as_root_and_as_nobody("a_sandboxed_tree_whose_sitter_was_killed_is_swept", || {
        for level in [SandboxLevel::Write, SandboxLevel::Isolated, SandboxLevel::Strict] {
            let house = House::new(Way::NoCgroup);
            let sitting = house.scene.start(&house.spec(Some(level), &["escape-and-stay"]));
            house.scene.hear("escaped");
            let tree = house.scene.marked();
            assert_eq!(tree.len(), 2, "{tree:?}");
            let sitter_pid = rustix::process::Pid::from_raw(sitting.pid).expect("a pid");
            rustix::process::kill_process(sitter_pid, rustix::process::Signal::KILL).expect("it runs");
            crate::sitter_scene::within("it is gone", || house.scene.found() == SitterState::Vanished);
            // One that has just forked and left may be on its way out still.
            let swept = sitter::sweep_processes(&house.scene.marker).expect("can sweep");
            assert!((2..=3).contains(&swept), "{level:?}: {swept}");
            house.scene.assert_nothing_left();
        }
    });
}

/// An orphan without an environment is known by its control group, by its mounts, and at each level by a limit that it cannot
/// change.
#[test]
fn an_orphan_without_environment_ends_with_the_run_of_its_killed_sitter() {
    as_root_and_as_nobody("an_orphan_without_environment_ends_with_the_run_of_its_killed_sitter", || {
        let stories = [
            (Way::AsItCan, SandboxLevel::Write),
            (Way::NoCgroup, SandboxLevel::Write),
            (Way::AsItCan, SandboxLevel::Isolated),
            (Way::NoCgroup, SandboxLevel::Isolated),
            (Way::NoCgroup, SandboxLevel::Strict),
        ];
        for (way, level) in stories {
            let house = House::new(way);
            let name = house.scene.marker.clone();
            let sitting = house.scene.start(&house.spec(Some(level), &["bare-escape", &name]));
            house.scene.hear("deaf");
            let orphans = || {
                let is_orphan = |pid: &i32| {
                    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                    words.ends_with(format!("\0deaf\0{name}\0").as_bytes())
                };
                crate::sitter_scene::processes().into_iter().filter(is_orphan).collect::<Vec<_>>()
            };
            assert_eq!(orphans().len(), 1, "{way:?} {level:?}");
            let sitter_pid = rustix::process::Pid::from_raw(sitting.pid).expect("a pid");
            rustix::process::kill_process(sitter_pid, rustix::process::Signal::KILL).expect("it runs");
            crate::sitter_scene::within("it is gone", || house.scene.found() == SitterState::Vanished);
            sitter::sweep_processes(&house.scene.marker).expect("can sweep");
            let left = orphans();
            for pid in left.iter().filter_map(|pid| rustix::process::Pid::from_raw(*pid)) {
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok(); // ours, by its name
            }
            assert_eq!(left, Vec::<i32>::new(), "{way:?} {level:?}");
            house.scene.assert_nothing_left();
        }
    });
}

/// As when Landfall is worked on with Landfall.
#[test]
fn a_sandbox_fits_into_another() {
    let run = |level: &str| {
        let outer = House::new(Way::AsItCan);
        let inner = outer.home.join("state/work/T1");
        let spec = outer.spec(Some(SandboxLevel::Write), &["nested", inner.to_str().expect("plain"), level]);
        assert_eq!(outer.scene.run(&spec).exit, ChildExit::Code(0), "{}", outer.err());
        outer.scene.out()
    };
    let out = run("write");
    assert!(out.contains("Code(0)") && out.contains("it ran"), "{out}");
    // Inside a sandbox nobody mounts anything, so the strict one cannot be had, and says so.
    let out = run("strict");
    assert!(
        out.contains("NotStarted") && out.contains("cannot be had here") && !out.contains("it ran"),
        "{out}"
    );
}

#[test]
fn a_word_gets_out_of_every_sandbox() {
    as_root_and_as_nobody("a_word_gets_out_of_every_sandbox", || {
        for level in
            [None, Some(SandboxLevel::Write), Some(SandboxLevel::Isolated), Some(SandboxLevel::Strict)]
        {
            let house = House::new(Way::AsItCan);
            let line = r#"{"key":"k-1","say":"blocked","text":"why"}"#;
            let mut spec = house.spec(level, &["speak", line]);
            let socket = house.scene.dir.join("signal.sock");
            spec.env = vec![("LANDFALL_SIGNAL".into(), socket.clone().into())];
            spec.signal = Some(SignalSpec { socket: socket.clone(), key: "k-1".into() });
            let ended = house.scene.run(&spec);
            assert_eq!(ended.exit, ChildExit::Code(0), "{level:?}: {}", house.err());
            assert_eq!(house.scene.out(), "{\"ok\":true}\n", "{level:?}");
            let kept = fs::read_to_string(house.scene.dir.join("signals.jsonl")).expect("kept");
            let parts = [r#""say":"blocked""#, r#""seq":1"#, r#""text":"why""#];
            assert!(parts.iter().all(|part| kept.contains(part)), "{kept}");
            assert!(!socket.exists());
        }
    });
}

#[test]
fn limits_are_lowered_and_never_raised() {
    let house = House::new(Way::AsItCan);
    let mut spec = house.spec(Some(SandboxLevel::Write), &["state"]);
    spec.sandbox.as_mut().expect("one").limits =
        ProcessLimits { processes: 0, files: 77, file_bytes: 1 << 40 };
    house.scene.run(&spec);
    assert!(house.scene.out().contains("files Some(77)"), "{}", house.scene.out());
}

#[test]
fn the_machine_says_what_it_has() {
    // As the tests above need it all, they have failed if it is not there.
    as_root_and_as_nobody("the_machine_says_what_it_has", || {
        let available = sandbox::probe_sandbox().expect("Landlock is there");
        assert!(available.landlock >= 6, "{available:?}");
        assert_eq!(available.strict, None);
    });
}
