//! What each level of the sandbox allows, found out by trying: `landfall doctor --sandbox`. The scene is a folder of its own
//! with a home folder in it; nothing of the user's is touched.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landfall_host::sandbox::attempts::{
    ATTEMPTS, AttemptScene, CONTENT, TERMINAL_MODE, ask_engine, pass_descriptor,
};
use landfall_host::sandbox::{self, SandboxSupport};
use landfall_host::wait;

use crate::caches::CacheAccess;
use crate::confine::{self, ConfinementScope, secret_places};
use crate::errand::{self, UserCommand};
use crate::folder::StateFolder;
use crate::settings::{Confinement, Settings};

/// Longer than any attempt inside takes: each has a limit of its own.
const PROBE_MAX: Duration = Duration::from_secs(300);

/// What came of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// It succeeded.
    Allowed,
    /// The sandbox did not let it happen.
    Refused,
    /// It could not be tried: a second mount takes root.
    Untested,
}

impl ProbeOutcome {
    /// The word for it.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::Untested => "untested",
        }
    }
}

/// What was tried, with what came of it at each level that this machine supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// A word for programs.
    pub name: String,
    /// What is tried, for people.
    pub what: String,
    /// By level.
    pub outcomes: BTreeMap<Confinement, ProbeOutcome>,
}

/// The levels that this machine supports.
#[must_use]
pub fn supported_levels() -> Vec<Confinement> {
    let can = |level: Confinement| match (level, sandbox::cached_probe()) {
        (Confinement::Off, _) | (Confinement::Write, Ok(_)) => true,
        (_, Err(_)) => false,
        (Confinement::Isolated, Ok(SandboxSupport { isolated, .. })) => isolated.is_none(),
        (Confinement::Strict, Ok(SandboxSupport { strict, .. })) => strict.is_none(),
    };
    Confinement::ALL.into_iter().filter(|level| can(*level)).collect()
}

/// Starts an engine's server on a socket. It ends when the value is dropped.
pub type ServeEngine<'a> = &'a dyn Fn(&Path) -> Result<Box<dyn Any>, String>;

/// Tries everything at every level that this machine supports. `program` is Landfall itself.
///
/// # Errors
/// What could not be laid out or run.
pub fn probe_all(program: &Path, serve: ServeEngine<'_>) -> Result<Vec<Probe>, String> {
    let secrets =
        secret_places().map(|place| (format!("secret:{place}"), format!("read the secrets in `~/{place}`")));
    let named = ATTEMPTS.iter().map(|attempt| (attempt.name.to_owned(), attempt.what.to_owned()));
    let mut probes: Vec<Probe> =
        named.chain(secrets).map(|(name, what)| Probe { name, what, outcomes: BTreeMap::new() }).collect();
    for level in supported_levels() {
        let outcomes = probe_level(program, level, serve)?;
        for probe in &mut probes {
            let outcome = outcomes.get(&probe.name).copied();
            let outcome =
                outcome.ok_or_else(|| format!("level `{}` did not try `{}`", level.word(), probe.name))?;
            probe.outcomes.insert(level, outcome);
        }
    }
    Ok(probes)
}

/// The folder of the scene, removed in the end.
struct ProbeFolder(PathBuf);

impl Drop for ProbeFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // what is left is in the folder for temporary files
    }
}

fn probe_level(
    program: &Path,
    level: Confinement,
    serve: ServeEngine<'_>,
) -> Result<BTreeMap<String, ProbeOutcome>, String> {
    let doing = |what: &str, error: io::Error| format!("{what}: {error}");
    let root = sandbox::shared_temporary_folders().swap_remove(0);
    let root = root.join(format!("landfall-probe-{}-{}", std::process::id(), level.word()));
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&root)
        .map_err(|error| doing("make a folder to probe in", error))?;
    let folder = ProbeFolder(root);
    let server = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| doing("listen on a port", error))?;
    let port = server.local_addr().map_err(|error| doing("listen on a port", error))?.port();
    let (_master, terminal) = open_terminal().map_err(|error| doing("make a terminal", error))?;
    let engine = i32::try_from(std::process::id()).expect("process ids are small");
    let scene = AttemptScene { root: folder.0.clone(), engine, port, terminal };
    create_scene(&scene).map_err(|error| doing("lay out the scene of the probes", error))?;
    let memory = ProbeFile(Path::new("/dev/shm").join(scene.abstract_name()));
    // Anybody can make files there: one that stands already is not ours to write.
    fs::File::create_new(&memory.0)
        .and_then(|mut file| io::Write::write_all(&mut file, CONTENT.as_bytes()))
        .map_err(|error| doing("make shared memory", error))?;
    let bind = |path: PathBuf| UnixListener::bind(path).map_err(|error| doing("listen on a socket", error));
    let _before =
        [bind(scene.outside_path().join("before.sock"))?, bind(scene.home_path().join("before.sock"))?];
    let _engine = serve(&scene.engine_socket())?;
    // Otherwise nobody could act as the user there, and the probes would say nothing.
    UnixStream::connect(scene.engine_socket())
        .and_then(|stream| ask_engine(stream, &scene))
        .map_err(|error| doing("ask the engine of the scene as its user", error))?;
    let address = SocketAddr::from_abstract_name(scene.abstract_name());
    let _abstract = address
        .and_then(|address| UnixListener::bind_addr(&address))
        .map_err(|error| doing("listen on an abstract socket", error))?;
    let passing = bind(scene.shared_path().join("pass.sock"))?;
    passing.set_nonblocking(true).map_err(|error| doing("listen on a socket", error))?;
    let other = fs::OpenOptions::new().read(true).write(true).open(scene.other_work().join("file"));
    let other = other.map_err(|error| doing("open a file of another workspace", error))?;

    std::thread::scope(|scope| {
        // A thread of its own, because only its mounts have the second mount of the home folder.
        let running = scope.spawn(|| {
            let is_mounted = scene.mount_home_again().is_ok();
            Ok::<_, String>((run_inside(program, &scene, level)?, is_mounted))
        });
        // Sockets that come later, once it runs.
        let until = Instant::now() + Duration::from_secs(10);
        let mut after = Vec::new();
        // It ends by itself: each of its steps has a limit. This one only bounds the wait for it.
        wait::retry_until(PROBE_MAX, Duration::from_millis(2), || {
            if after.is_empty() && (scene.work_path().join("ready").exists() || Instant::now() > until) {
                after.push(bind(scene.outside_path().join("after.sock")));
                after.push(bind(scene.home_path().join("after.sock")));
                let _ = fs::write(scene.go_file(), ""); // it gives up waiting by itself
            }
            if let Ok((stream, _)) = passing.accept() {
                let _ = pass_descriptor(&stream, &other); // then it has none, and says so
            }
            running.is_finished().then_some(())
        });
        let (said, is_mounted) = running.join().expect("it does not panic")?;
        parse_outcomes(&said, is_mounted)
    })
}

/// A file that goes in the end.
struct ProbeFile(PathBuf);

impl Drop for ProbeFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // gone already is as good
    }
}

/// What the program inside said, by name.
fn parse_outcomes(said: &str, is_mounted: bool) -> Result<BTreeMap<String, ProbeOutcome>, String> {
    let mut found = BTreeMap::new();
    for (name, errno) in said.lines().filter_map(|line| line.rsplit_once(' ')) {
        let outcome = match errno {
            _ if name == "alias-mount" && !is_mounted => ProbeOutcome::Untested,
            "0" => ProbeOutcome::Allowed,
            _ => ProbeOutcome::Refused,
        };
        found.insert(name.to_owned(), outcome);
    }
    if found.is_empty() { Err(format!("the probes did not run: {said}")) } else { Ok(found) }
}

fn run_inside(program: &Path, scene: &AttemptScene, level: Confinement) -> Result<String, String> {
    const OUT_BYTES_MAX: u64 = 1 << 20;
    let state = StateFolder::at_root(scene.state_path());
    let dir = scene.state_path().join("attempts/probe");
    let tmp = scene.state_path().join("tmp");
    let reach = ConfinementScope {
        confinement: level,
        checkout: vec![scene.project_path()],
        work: scene.work_path(),
        tmp: tmp.clone(),
        own: Vec::new(),
        read: Vec::new(),
        caches: CacheAccess::default(),
    };
    let env: Vec<(OsString, OsString)> = [
        ("HOME", scene.home_path().into_os_string()),
        ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
        ("TMPDIR", tmp.into_os_string()),
        ("CARGO_HOME", scene.moved_cargo().into_os_string()),
    ]
    .map(|(name, value)| (name.into(), value))
    .to_vec();
    let mut settings = Settings::defaults().run;
    settings.sandbox_write.push(scene.shared_path().display().to_string());
    let mut argv: Vec<OsString> = vec![program.into(), "attempt".into(), scene.root.clone().into()];
    argv.extend([scene.engine.to_string(), scene.port.to_string()].map(OsString::from));
    argv.push(scene.terminal.clone().into());
    argv.extend(secret_places().map(OsString::from));
    let errand = UserCommand {
        argv,
        cwd: scene.work_path(),
        sandbox: confine::build_sandbox_from_settings(&settings, &state, &env, &reach),
        env,
        stdin: Vec::new(),
        limit_ms: 60_000,
        grace_ms: 1_000,
    };
    let ran = errand::run_with_output_cap(program, &dir, &errand, OUT_BYTES_MAX)?;
    if !ran.is_well() {
        return Err(format!("level `{}` {}", level.word(), ran.describe_failure()));
    }
    fs::read_to_string(dir.join("out.log")).map_err(|error| format!("read what the probes said: {error}"))
}

fn create_scene(scene: &AttemptScene) -> io::Result<()> {
    let home = scene.home_path();
    for folder in [
        scene.project_path(),
        scene.work_path(),
        scene.other_work(),
        scene.state_path().join("attempts"),
        scene.state_path().join("tmp"),
        scene.state_path().join("store.git/objects"),
        scene.shared_path(),
        scene.outside_path(),
        scene.root.join("mount"),
        home.join(".cargo"),
        scene.moved_cargo(),
    ] {
        fs::create_dir_all(folder)?;
    }
    for file in [
        scene.project_path().join("file"),
        scene.state_path().join("file"),
        scene.work_path().join("own"),
        scene.other_work().join("file"),
        scene.outside_path().join("file"),
        home.join("notes"),
        home.join(".cargo/config.toml"),
        scene.moved_cargo().join("credentials.toml"),
    ] {
        fs::write(file, CONTENT)?;
    }
    for place in secret_places() {
        let path = home.join(place);
        fs::create_dir_all(path.parent().expect("below the home folder"))?;
        fs::write(path, CONTENT)?;
    }
    // A folder among the secrets, so that there are names to list.
    fs::remove_file(home.join(".ssh"))?;
    fs::create_dir(home.join(".ssh"))?;
    fs::write(home.join(".ssh/id"), CONTENT)?;
    fs::hard_link(home.join("notes"), scene.outside_path().join("hard-link"))?;
    symlink(&home, scene.root.join("link"))
}

/// A terminal of ours, in the place of the user's.
fn open_terminal() -> io::Result<(std::os::fd::OwnedFd, PathBuf)> {
    use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    unlockpt(&master)?;
    let name = PathBuf::from(ptsname(&master, Vec::new())?.to_string_lossy().into_owned());
    fs::set_permissions(&name, fs::Permissions::from_mode(TERMINAL_MODE))?;
    Ok((master, name))
}
