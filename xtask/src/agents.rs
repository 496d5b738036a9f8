//! Programs that npm has, the real agents foremost: installed once, at versions that are written down, outside the repository.
//!
//! `xtask/agents/<program>/` holds what npm is asked for and the hashes of everything that comes. A cache folder has one
//! folder for each program and version; it appears under its name only when it is whole, so that an interrupted
//! install is simply made again.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::tools::Tool;

/// An agent, and what npm is asked for.
struct Pinned {
    program: &'static str,
    manifest: &'static str,
    lock: &'static str,
    /// The script that puts the native program in its place, below `node_modules`. npm is told to run none; this one
    /// is run by name.
    finish: Option<&'static str>,
}

macro_rules! pinned {
    ($program:literal, $finish:expr) => {
        Pinned {
            program: $program,
            manifest: include_str!(concat!("../agents/", $program, "/package.json")),
            lock: include_str!(concat!("../agents/", $program, "/package-lock.json")),
            finish: $finish,
        }
    };
}

const PINNED: [Pinned; 5] = [
    pinned!("claude", Some("@anthropic-ai/claude-code/install.cjs")),
    pinned!("codex", None),
    pinned!("gemini", None),
    pinned!("opencode", Some("opencode-ai/postinstall.mjs")),
    // Speaks the Agent Client Protocol for Claude. Gemini speaks it by itself.
    pinned!("claude-agent-acp", None),
];

/// What the tests of the pages run on. The browser itself is not among it.
const BROWSER_TESTS: Pinned = Pinned {
    program: "playwright",
    manifest: include_str!("../../browser/package.json"),
    lock: include_str!("../../browser/package-lock.json"),
    finish: None,
};

/// Where npm puts programs, in a folder it installs to.
pub const PROGRAMS: &str = "node_modules/.bin";

/// The tests find the agents through this: folders as in `PATH`.
pub const VARIABLE: &str = "LANDFALL_AGENTS";

/// The lock file an install was made from: another one is another install.
const STAMP: &str = "installed-from.json";

/// Between the name of a program and the process that installs it: a folder that is not whole yet.
const PART: &str = ".part-";

const CACHE: &str = "LANDFALL_AGENTS_CACHE";

/// Some 400 MB for the largest; on a slow line that takes a while.
const INSTALL_MAX: Duration = Duration::from_secs(15 * 60);
/// A registry that does not name a version within this is not there.
const LOOK_MAX: Duration = Duration::from_secs(60);
/// The first start of one of them under load takes half of this.
const VERSION_MAX: Duration = Duration::from_secs(60);
/// A download may break; one that breaks three times breaks for a reason.
const TRIES_MAX: u32 = 3;

/// Installs the agent CLIs that are missing. Returns the value of [`VARIABLE`].
pub fn install() -> Result<Tool<OsString>> {
    let homes = match homes(&PINNED)? {
        Tool::Ready(homes) => homes,
        Tool::Missing(reason) => return Ok(Tool::Missing(reason)),
    };
    let folders = homes.iter().map(|home| home.join(PROGRAMS));
    Ok(Tool::Ready(std::env::join_paths(folders).context("a folder with a colon in its name")?))
}

/// Installs Playwright. Returns the folder it is in.
pub fn install_browser_tests() -> Result<Tool<PathBuf>> {
    Ok(homes(&[BROWSER_TESTS])?.map(|mut homes| homes.remove(0)))
}

/// Installs those of these that are missing. Returns the folder of each.
fn homes(wanted: &[Pinned]) -> Result<Tool<Vec<PathBuf>>> {
    for program in ["node", "npm"] {
        if !answers(program) {
            return Ok(Tool::Missing(format!("{program} is not installed")));
        }
    }
    let cache = cache_folder();
    if let Err(error) = fs::create_dir_all(&cache) {
        return Ok(Tool::Missing(format!("cannot create {}: {error}", cache.display())));
    }
    // Two checkouts may be tested at once: the second waits for the first.
    let lock = File::create(cache.join("lock")).context("open the lock of the cache")?;
    lock.lock().context("wait for the lock of the cache")?;
    for entry in fs::read_dir(&cache).context("read the cache")?.flatten() {
        if entry.file_name().to_string_lossy().contains(PART) {
            let _ = fs::remove_dir_all(entry.path()); // the next one tries again
        }
    }
    let mut homes = Vec::new();
    for pinned in wanted {
        let home = cache.join(format!("{}@{}", pinned.program, pinned.version()?));
        if !pinned.is_in(&home) {
            if !pinned.is_reachable()? {
                return Ok(Tool::Missing("the npm registry cannot be reached".to_owned()));
            }
            pinned.install(&cache, &home)?;
        }
        homes.push(home);
    }
    Ok(Tool::Ready(homes))
}

/// Where programs of others are kept, and what tests leave behind to be looked at.
pub fn cache_folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let own = || variable(CACHE);
    let xdg = || variable("XDG_CACHE_HOME").map(|it| it.join("landfall-agents"));
    let home = || variable("HOME").map(|it| it.join(".cache/landfall-agents"));
    own().or_else(xdg).or_else(home).unwrap_or_else(|| std::env::temp_dir().join("landfall-agents"))
}

impl Pinned {
    /// The package and its version, as the manifest asks for them.
    fn package(&self) -> Result<(String, String)> {
        let manifest: serde_json::Value = serde_json::from_str(self.manifest)
            .with_context(|| format!("read the manifest of {}", self.program))?;
        let wanted = manifest["dependencies"].as_object().and_then(|it| it.iter().next());
        let (package, version) = wanted.with_context(|| format!("{} asks for nothing", self.program))?;
        let version = version.as_str().with_context(|| format!("{} names no version", self.program))?;
        Ok((package.clone(), version.to_owned()))
    }

    fn version(&self) -> Result<String> {
        Ok(self.package()?.1)
    }

    /// Whether the folder holds what is pinned now.
    fn is_in(&self, home: &Path) -> bool {
        fs::read_to_string(home.join(STAMP)).is_ok_and(|there| there == self.lock)
            && home.join(PROGRAMS).join(self.program).exists()
    }

    fn is_reachable(&self) -> Result<bool> {
        let (package, version) = self.package()?;
        let mut look = Command::new("npm");
        look.args(["view", &format!("{package}@{version}"), "version", "--fetch-retries=1"]);
        quiet(&mut look);
        Ok(within(look, LOOK_MAX)? == Ended::Well)
    }

    fn install(&self, cache: &Path, home: &Path) -> Result<()> {
        // What is left of an install that was ended may still be written to by what was not.
        let part = cache.join(format!("{}{PART}{}", self.program, std::process::id()));
        for tried in 1..=TRIES_MAX {
            eprintln!("── agents: installing {} {}, try {tried}", self.program, self.version()?);
            clear(&part)?;
            fs::create_dir_all(&part).with_context(|| format!("make {}", part.display()))?;
            fs::write(part.join("package.json"), self.manifest).context("write the manifest")?;
            fs::write(part.join("package-lock.json"), self.lock).context("write the lock file")?;
            let mut npm = Command::new("npm");
            // Newer versions of npm run no scripts of packages, older ones do; this way it is the same with all.
            // `ci` would insist on the packages of all platforms, and a registry may offer those of this one alone.
            npm.args([
                "install",
                "--no-save",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
                "--cache",
            ]);
            npm.arg(part.join("npm")).current_dir(&part);
            npm.stdin(Stdio::null()).stdout(Stdio::null());
            if within(npm, INSTALL_MAX)? != Ended::Well {
                continue;
            }
            if let Some(script) = self.finish {
                let mut node = Command::new("node");
                let script = part.join("node_modules").join(script);
                node.current_dir(script.parent().expect("in a package"))
                    .arg(&script)
                    .stdin(Stdio::null())
                    .stdout(Stdio::null());
                if within(node, VERSION_MAX)? != Ended::Well {
                    continue;
                }
            }
            let mut version = Command::new(part.join(PROGRAMS).join(self.program));
            version.arg("--version").env("HOME", part.join("npm")).current_dir(&part); // some write there at once
            quiet(&mut version);
            if within(version, VERSION_MAX)? != Ended::Well {
                bail!("{} is installed and does not tell its version", self.program);
            }
            clear(&part.join("npm"))?; // the packages as they came: as large as what they hold
            fs::write(part.join(STAMP), self.lock).context("write the stamp")?;
            clear(home)?;
            return fs::rename(&part, home).with_context(|| format!("name {}", home.display()));
        }
        clear(&part)?;
        bail!("{} could not be installed in {TRIES_MAX} tries", self.program);
    }
}

/// Removes a folder that may not be there.
pub fn clear(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("remove {}", folder.display())),
    }
}

fn answers(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version");
    quiet(&mut command);
    within(command, VERSION_MAX).is_ok_and(|ended| ended == Ended::Well)
}

/// Lets a command say nothing.
pub fn quiet(command: &mut Command) {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
}

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// With code 0.
    Well,
    /// With another one.
    Badly,
    /// Not in time.
    TooLate,
}

/// Runs a command, at most so long.
pub fn within(mut command: Command, limit: Duration) -> Result<Ended> {
    let began = Instant::now();
    let mut child = command.spawn().with_context(|| format!("start {command:?}"))?;
    loop {
        if let Some(status) = child.try_wait().context("wait for a command")? {
            return Ok(if status.success() { Ended::Well } else { Ended::Badly });
        }
        if began.elapsed() > limit {
            child.kill().context("end a command that takes too long")?;
            child.wait().context("wait for a command")?;
            return Ok(Ended::TooLate);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
