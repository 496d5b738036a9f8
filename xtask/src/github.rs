//! GitHub's published description of its API: fetched once, at a version and with a hash that are written down, outside the
//! repository. It is 13 MB, of which a release of Landfall needs nothing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::agents::{Ended, cache_folder, clear, quiet, within};
use crate::tools::Tool;

/// The package npm is asked for.
const PACKAGE: &str = "@octokit/openapi@23.0.2";
/// What of it is used, as it is called in the archive.
const MEMBER: &str = "package/generated/api.github.com.json";
/// What that has to be, as `sha512sum` says it.
const SHA512: &str = include_str!("../github/api.github.com.json.sha512");

/// The tests find it through this: the file.
pub const VARIABLE: &str = "LANDFALL_GITHUB_API";

/// Some 15 MB packed.
const FETCH_MAX: Duration = Duration::from_secs(5 * 60);
const LOOK_MAX: Duration = Duration::from_secs(60);

/// Fetches it if it is missing.
pub fn fetch() -> Result<Tool<PathBuf>> {
    for program in ["npm", "tar", "sha512sum"] {
        let mut version = Command::new(program);
        version.arg("--version");
        quiet(&mut version);
        if !matches!(within(version, LOOK_MAX), Ok(Ended::Well)) {
            return Ok(Tool::Missing(format!("{program} is not installed")));
        }
    }
    let cache = cache_folder();
    if let Err(error) = fs::create_dir_all(&cache) {
        return Ok(Tool::Missing(format!("{} cannot be created: {error}", cache.display())));
    }
    // Two checkouts may be tested at once: the second waits for the first.
    let lock = File::create(cache.join("github.lock")).context("open the lock of the cache")?;
    lock.lock().context("wait for the lock of the cache")?;
    let home = cache.join("github-api");
    let file = home.join("api.github.com.json");
    if file.exists() && is_the_one(&home)? {
        return Ok(Tool::Ready(file));
    }
    eprintln!("── github: fetching {PACKAGE}");
    clear(&home)?;
    fs::create_dir_all(&home).context("make the folder of the description")?;
    if unpacked(&home)? != Ended::Well {
        clear(&home)?;
        return Ok(Tool::Missing("the description of the API cannot be fetched from here".to_owned()));
    }
    ensure!(is_the_one(&home)?, "the description that was fetched is not the one that is pinned");
    Ok(Tool::Ready(file))
}

/// Fetches the package and keeps the one file of it.
fn unpacked(home: &Path) -> Result<Ended> {
    let mut npm = Command::new("npm");
    npm.args(["pack", PACKAGE, "--ignore-scripts", "--fetch-retries=2", "--loglevel=error", "--cache"]);
    npm.arg(home.join("npm")).arg("--pack-destination").arg(home).current_dir(home);
    npm.stdin(Stdio::null()).stdout(Stdio::null());
    match within(npm, FETCH_MAX)? {
        Ended::Well => {}
        ended => return Ok(ended),
    }
    let entries = fs::read_dir(home).context("read the folder of the description")?;
    let archive = entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|it| it == "tgz"));
    let archive = archive.context("npm fetched nothing")?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(&archive).args(["--strip-components=2", MEMBER]).current_dir(home);
    tar.stdin(Stdio::null()).stdout(Stdio::null());
    let ended = within(tar, FETCH_MAX)?;
    fs::remove_file(&archive).context("remove the archive")?;
    clear(&home.join("npm"))?;
    Ok(ended)
}

fn is_the_one(home: &Path) -> Result<bool> {
    fs::write(home.join("sha512"), SHA512).context("write the hash")?;
    let mut check = Command::new("sha512sum");
    check.args(["--check", "--status", "sha512"]).current_dir(home);
    quiet(&mut check);
    Ok(within(check, LOOK_MAX)? == Ended::Well)
}
