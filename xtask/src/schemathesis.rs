//! schemathesis: asks a server everything its reference says, and more. Installed once, at versions and hashes that are written
//! down, outside the repository.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::agents::{Ended, cache_folder, clear, quiet, within};
use crate::tools::Tool;

/// What pip is asked for, with the hashes of everything that comes.
const LOCK: &str = include_str!("../schemathesis/requirements.txt");

/// The test finds it through this: the python that has it.
pub const VARIABLE: &str = "LANDFALL_SCHEMATHESIS";

/// The lock file an install was made from: another one is another install.
const STAMP: &str = "installed-from.txt";

/// Some 20 MB; on a slow line that takes a while.
const INSTALL_MAX: Duration = Duration::from_secs(5 * 60);
const LOOK_MAX: Duration = Duration::from_secs(60);

/// Installs it if it is missing.
pub fn install() -> Result<Tool<PathBuf>> {
    let mut version = Command::new("python3");
    version.args(["-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"]);
    quiet(&mut version);
    if !matches!(within(version, LOOK_MAX), Ok(Ended::Well)) {
        return Ok(Tool::Missing("python 3.11 with venv is not installed".to_owned()));
    }
    let cache = cache_folder();
    if let Err(error) = fs::create_dir_all(&cache) {
        return Ok(Tool::Missing(format!("{} cannot be created: {error}", cache.display())));
    }
    // Two checkouts may be tested at once: the second waits for the first.
    let lock = File::create(cache.join("schemathesis.lock")).context("open the lock of the cache")?;
    lock.lock().context("wait for the lock of the cache")?;
    let home = cache.join("schemathesis");
    let python = home.join("bin/python");
    if fs::read_to_string(home.join(STAMP)).is_ok_and(|there| there == LOCK) && python.exists() {
        return Ok(Tool::Ready(python));
    }
    eprintln!("── schemathesis: installing");
    clear(&home)?;
    match make(&home)? {
        Ended::Well => {}
        // What breaks here is the way to the registry; what is wrong with the lock file shows where it is reached.
        Ended::Badly | Ended::TooLate => {
            clear(&home)?;
            return Ok(Tool::Missing("it cannot be installed from here".to_owned()));
        }
    }
    fs::write(home.join(STAMP), LOCK).context("write the stamp")?;
    Ok(Tool::Ready(python))
}

fn make(home: &Path) -> Result<Ended> {
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(home);
    quiet(&mut venv);
    match within(venv, INSTALL_MAX)? {
        Ended::Well => {}
        ended => return Ok(ended),
    }
    let list = home.join("requirements.txt");
    fs::write(&list, LOCK).context("write what is asked for")?;
    let mut pip = Command::new(home.join("bin/python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--require-hashes",
    ]);
    // Nothing is built, so nothing of others is run while it is installed.
    pip.args(["--only-binary", ":all:", "--requirement"]).arg(&list);
    pip.stdin(Stdio::null()).stdout(Stdio::null());
    within(pip, INSTALL_MAX)
}
