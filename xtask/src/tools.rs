//! The tools that tests need besides Rust, git and a C compiler: installed where that is possible, reported where it is not.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::agents::{self, Ended, within};
use crate::{github, schemathesis};

/// A tool that a test needs.
pub enum Tool<T> {
    /// It is installed; the value says where.
    Ready(T),
    /// It cannot be had here, and why.
    Missing(String),
}

impl<T> Tool<T> {
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Tool<U> {
        match self {
            Self::Ready(value) => Tool::Ready(change(value)),
            Self::Missing(reason) => Tool::Missing(reason),
        }
    }
}

/// Every tool that `cargo xtask test` uses beside the Rust toolchain.
pub struct TestTools {
    /// What the tests find in their environment: one variable for each tool that is ready.
    pub variables: Vec<(&'static str, OsString)>,
    pub browser: Tool<BrowserTools>,
    /// Tools that are missing, each with the reason.
    pub missing: Vec<String>,
}

/// What the browser tests need.
#[derive(Clone)]
pub struct BrowserTools {
    /// The folder that npm installed Playwright into.
    pub playwright: PathBuf,
    pub chromium: PathBuf,
}

/// Installs every tool that can be installed. This takes minutes on a new machine, and most of it is waiting for downloads, so
/// it runs beside the build.
pub fn install_all(with_agents: bool) -> Result<TestTools> {
    let began = Instant::now();
    let mut missing = Vec::new();
    let mut variables = Vec::new();
    let mut note = |name: &'static str, tool: Tool<OsString>, variable: Option<&'static str>| match tool {
        Tool::Ready(value) => variables.extend(variable.map(|variable| (variable, value))),
        Tool::Missing(reason) => missing.push(format!("{name}: {reason}")),
    };
    note("tmux", install_debian_package("tmux", &["tmux"])?.map(Into::into), None);
    note("schemathesis", schemathesis::install()?.map(Into::into), Some(schemathesis::VARIABLE));
    note("GitHub's API description", github::fetch()?.map(Into::into), Some(github::VARIABLE));
    if with_agents {
        note("agent CLIs", agents::install()?, Some(agents::VARIABLE));
        note("private folder", Tool::Ready(create_private_folder()?.into()), Some("LANDFALL_PRIVATE_FOLDER"));
    }
    let browser = install_browser_tools()?;
    if let Tool::Missing(reason) = &browser {
        missing.push(format!("browser: {reason}"));
    }
    for line in &missing {
        eprintln!("── tools: missing: {line}");
    }
    eprintln!("── tools: {:.0} s", began.elapsed().as_secs_f64());
    Ok(TestTools { variables, browser, missing })
}

/// Installs the agent CLIs. Returns the variables by which the tests find them.
pub fn install_agents() -> Result<Vec<(&'static str, OsString)>> {
    match agents::install()? {
        Tool::Ready(folders) => Ok(vec![
            (agents::VARIABLE, folders),
            ("LANDFALL_PRIVATE_FOLDER", create_private_folder()?.into()),
        ]),
        Tool::Missing(reason) => bail!("the agent CLIs cannot be installed: {reason}"),
    }
}

/// A folder that nobody else can write to, for tests of an agent that reads no settings elsewhere.
fn create_private_folder() -> Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = agents::cache_folder().join("private");
    std::fs::create_dir_all(&folder).context("create a private folder in the cache")?;
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))
        .context("close the private folder")?;
    Ok(folder)
}

/// Installs what the projects of `cargo xtask gaming` need, as far as that is possible. Returns the `PATH` to run them with. What
/// is still missing is found when a project looks for it.
pub fn install_gaming_tools() -> Result<OsString> {
    install_go()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    // pytest comes with schemathesis.
    let folders: Vec<PathBuf> = match schemathesis::install()? {
        Tool::Ready(python) => python.parent().map(Path::to_owned).into_iter().chain(folders).collect(),
        Tool::Missing(_) => folders.collect(),
    };
    std::env::join_paths(folders).context("a folder with a colon in its name")
}

/// Installs Go, as far as that is possible.
pub fn install_go() -> Result<Tool<PathBuf>> {
    install_debian_package("golang-go", &["go"])
}

pub fn install_browser_tools() -> Result<Tool<BrowserTools>> {
    let chromium = match install_debian_package("chromium", &["chromium", "chromium-browser"])? {
        Tool::Ready(chromium) => chromium,
        Tool::Missing(reason) => return Ok(Tool::Missing(reason)),
    };
    Ok(agents::install_browser_tests()?.map(|playwright| BrowserTools { playwright, chromium }))
}

/// Finds a program, or installs its Debian package. Only root can install packages, as in a container made for one test run.
fn install_debian_package(package: &str, programs: &[&str]) -> Result<Tool<PathBuf>> {
    if let Some(found) = find_program(programs) {
        return Ok(Tool::Ready(found));
    }
    if !rustix::process::geteuid().is_root() || find_program(&["apt-get"]).is_none() {
        return Ok(Tool::Missing(format!("`{package}` is not installed; Debian has a package of that name")));
    }
    eprintln!("── tools: installing the Debian package {package}");
    // Outdated package lists name versions that are gone.
    for args in [&["update"][..], &["--yes", "--no-install-recommends", "install", package]] {
        let mut apt = Command::new("apt-get");
        apt.arg("--quiet").args(args).env("DEBIAN_FRONTEND", "noninteractive");
        apt.stdin(Stdio::null()).stdout(Stdio::null());
        if within(apt, INSTALL_MAX)? != Ended::Well {
            return Ok(Tool::Missing(format!("`apt-get {}` failed", args.join(" "))));
        }
    }
    match find_program(programs) {
        Some(found) => Ok(Tool::Ready(found)),
        None => bail!("apt-get installed {package}, but {programs:?} is not in PATH"),
    }
}

const INSTALL_MAX: Duration = Duration::from_secs(10 * 60); // Chromium is 100 MB; a slow mirror takes minutes

/// The first of these programs that is in `PATH`.
pub fn find_program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let candidates = |folder: PathBuf| names.iter().map(move |name| folder.join(name));
    std::env::split_paths(&path).flat_map(candidates).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
