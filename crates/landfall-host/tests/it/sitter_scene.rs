//! One sitter's folder, its marker, and the checks that nothing is left of it.

use landfall_host::sitter::{
    self, SitterEnd, SitterProcess, SitterSpec, SitterState, SitterStream, SitterWatch, SpoolReader,
};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;

/// Longer than anything here takes on a machine that does ten other things; a test that gets here has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The program that plays all the other parts: as it was built, or a copy for a user who cannot get at that.
pub const PROBE: &str = "LANDFALL_TEST_PROBE";

/// How the sitter may hold its tree together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// With a control group, where the machine has one to give.
    AsItCan,
    /// Without.
    NoCgroup,
    /// With this part of the sandbox left out.
    Broken(&'static str),
}

pub struct Scene {
    pub folder: TempDir,
    pub dir: PathBuf,
    pub marker: String,
    exe: PathBuf,
    born: SystemTime,
}

/// Tells the story once for each way of containment.
pub fn both_ways(story: impl Fn(&Scene)) {
    for way in [Way::AsItCan, Way::NoCgroup] {
        let scene = Scene::new(way);
        story(&scene);
        scene.assert_nothing_left();
    }
}

pub fn probe() -> &'static Path {
    static GIVEN: OnceLock<PathBuf> = OnceLock::new();
    let built = || env!("CARGO_BIN_EXE_landfall-host-probe").into();
    GIVEN.get_or_init(|| std::env::var_os(PROBE).map_or_else(built, PathBuf::from))
}

impl Scene {
    pub fn new(way: Way) -> Scene {
        let folder = tempfile::tempdir().expect("a folder");
        // The sitter takes its orders from its name, since all tests of a binary share one environment.
        let name = match way {
            Way::AsItCan => "landfall".to_owned(),
            Way::NoCgroup => "landfall-no-cgroup".to_owned(),
            Way::Broken(part) => format!("landfall-without-{part}"),
        };
        let exe = folder.path().join(name);
        symlink(probe(), &exe).expect("a link");
        let dir = folder.path().join("run");
        let marker = dir.to_str().expect("plain text").to_owned();
        Scene { dir, marker, exe, folder, born: SystemTime::now() }
    }

    /// The probe in one of its modes, with nothing special about it.
    pub fn spec(&self, args: &[&str]) -> SitterSpec {
        SitterSpec {
            argv: std::iter::once(probe().into()).chain(args.iter().map(Into::into)).collect(),
            cwd: self.folder.path().to_owned(),
            env: vec![],
            stdin: None,
            deadline_ms: 0,
            grace_ms: 10_000,
            out_cap: 1 << 20,
            marker: self.marker.clone(),
            sandbox: None,
            signal: None,
        }
    }

    pub fn start(&self, spec: &SitterSpec) -> SitterProcess {
        sitter::start_sitter(&self.exe, &self.dir, spec).expect("starts")
    }

    pub fn try_start(&self, spec: &SitterSpec) -> Result<SitterProcess, sitter::StartError> {
        sitter::start_sitter(&self.exe, &self.dir, spec)
    }

    /// The same in another folder than the usual one.
    pub fn try_start_in(&self, dir: &Path, spec: &SitterSpec) -> Result<SitterProcess, sitter::StartError> {
        sitter::start_sitter(&self.exe, dir, spec)
    }

    /// Runs to the end.
    pub fn run(&self, spec: &SitterSpec) -> SitterEnd {
        let sitting = self.start(spec);
        self.end_of(&sitting)
    }

    pub fn end_of(&self, sitting: &SitterProcess) -> SitterEnd {
        self.end_of_in(&self.dir, sitting)
    }

    /// The same for a run that was started in another folder than the usual one.
    pub fn end_of_in(&self, dir: &Path, sitting: &SitterProcess) -> SitterEnd {
        let found = || sitter::find_sitter(dir).expect("can look");
        let mut watch = SitterWatch::new().expect("a watch");
        watch.add(7, sitting).expect("watchable");
        let until = Instant::now() + PATIENCE;
        loop {
            let ended = watch.wait(Some(until.saturating_duration_since(Instant::now()))).expect("waits");
            if ended == [7] {
                break;
            }
            assert!(Instant::now() < until, "the sitter did not end: {:?}", found());
        }
        match found() {
            SitterState::Ended(ended) => {
                self.assert_gone(sitting);
                ended
            }
            other => panic!("expected an end, found {other:?}; {}", self.complaint()),
        }
    }

    pub fn found(&self) -> SitterState {
        sitter::find_sitter(&self.dir).expect("can look")
    }

    pub fn complaint(&self) -> String {
        std::fs::read_to_string(self.dir.join("sitter.err")).unwrap_or_default()
    }

    pub fn text(&self, stream: SitterStream) -> Vec<u8> {
        SpoolReader::new(&self.dir, stream, 0).read(usize::MAX).expect("readable")
    }

    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.text(SitterStream::Out)).into_owned()
    }

    /// Waits until the child has said `word`.
    pub fn hear(&self, word: &str) {
        within(&format!("the child says {word}"), || self.out().contains(word));
    }

    /// Pids of living processes that carry our marker.
    pub fn marked(&self) -> Vec<i32> {
        let entry = format!("LANDFALL_MARK={}", self.marker);
        processes()
            .into_iter()
            .filter(|pid| {
                let env = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                env.split(|byte| *byte == 0).any(|it| it == entry.as_bytes())
            })
            .collect()
    }

    pub fn assert_gone(&self, sitting: &SitterProcess) {
        // An adopted sitter is collected by the machine's first process, in its own time; ours by us, at once.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", sitting.pid)).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        if let [state, parent, ..] = fields[..]
            && sitter::started_of(sitting.pid) == Some(sitting.started)
        {
            assert_eq!(state, "Z", "the sitter is still there");
            assert_ne!(parent, std::process::id().to_string(), "our child's zombie is still there");
        }
        assert_eq!(
            cgroups_of(sitting.pid, self.born),
            Vec::<PathBuf>::new(),
            "its control group is still there"
        );
    }

    pub fn assert_nothing_left(&self) {
        assert_eq!(self.marked(), Vec::<i32>::new(), "processes are left");
        let sitters: Vec<i32> = processes()
            .into_iter()
            .filter(|pid| {
                let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                words
                    .split(|byte| *byte == 0)
                    .any(|word| word == self.dir.to_str().expect("plain").as_bytes())
            })
            .collect();
        assert_eq!(sitters, Vec::<i32>::new(), "a sitter is left");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A failed test must not leave a fork bomb behind.
            if let Ok(SitterState::Running(sitting)) = sitter::find_sitter(&self.dir) {
                let _ = sitter::stop_sitter(&sitting, sitter::StopMode::Now); // what it leaves is swept below
                std::thread::sleep(Duration::from_millis(300));
            }
            let _ = sitter::sweep_processes(&self.marker); // the test has failed already
        }
    }
}

/// Polls until `holds`, and fails the test after a long while.
pub fn within(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn processes() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("proc");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Control groups made by the sitter `pid` since then, wherever they may be. Older ones belong to another sitter, killed
/// in some other test, whose id is used again.
pub fn cgroups_of(pid: i32, since: SystemTime) -> Vec<PathBuf> {
    let is_new = |entry: &std::fs::DirEntry| {
        entry
            .metadata()
            .and_then(|meta| meta.modified())
            .is_ok_and(|made| made + Duration::from_secs(1) > since)
    };
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("landfall.") && name.ends_with(&format!(".{pid}")) && is_new(&entry) {
                found.push(entry.path());
            }
            folders.push(entry.path());
        }
    }
    found
}
