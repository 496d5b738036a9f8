//! The tests of the pages: what is in `browser/`, in a real Chromium, against the program as it was just built.
//!
//! The packages come by npm into the cache folder, the browser from the system. The pictures that the tests make are left
//! in the cache folder, to be looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::agents;
use crate::test::{cargo, runs, step};

/// What the tests need besides the program.
struct Tools {
    /// The folder that npm installed to.
    home: PathBuf,
    chromium: PathBuf,
}

/// The tests alone: all of them, or those that are named. What is missing is an error.
pub fn alone(names: &[&str]) -> Result<()> {
    match tools()? {
        Ok(tools) => run(&tools, names),
        Err(why) => bail!("the pages cannot be tested: {why}"),
    }
}

/// The tests as a part of all. Where no browser can be had, a line says so.
pub fn as_part() -> Result<()> {
    match tools()? {
        Ok(tools) => run(&tools, &[]),
        Err(why) => {
            eprintln!("── web: skipped, {why}");
            Ok(())
        }
    }
}

fn tools() -> Result<Result<Tools, String>> {
    let chromium = match chromium()? {
        Ok(chromium) => chromium,
        Err(why) => return Ok(Err(why)),
    };
    Ok(agents::install_browser_tests()?.map(|home| Tools { home, chromium }))
}

/// Where Chromium is. Root has it installed, as in a container that is made for one test.
fn chromium() -> Result<Result<PathBuf, String>> {
    if let Some(found) = in_path() {
        return Ok(Ok(found));
    }
    if !rustix::process::geteuid().is_root() || !runs("apt-get", &["--version"]) {
        return Ok(Err("Chromium is not installed; Debian has it as `chromium`".to_owned()));
    }
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    };
    // Lists that are old or not there name packages that cannot be had.
    let got = step("web: the lists of packages", apt(&["--quiet", "update"])).and_then(|()| {
        step("web: Chromium", apt(&["--quiet", "--yes", "--no-install-recommends", "install", "chromium"]))
    });
    match (got, in_path()) {
        (Ok(()), Some(found)) => Ok(Ok(found)),
        (Ok(()), None) => bail!("apt-get installed Chromium, and it is not in PATH"),
        (Err(error), _) => {
            Ok(Err(format!("Chromium is not installed, and apt-get does not bring it: {error:#}")))
        }
    }
}

fn in_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let at = |folder: PathBuf| ["chromium", "chromium-browser"].map(|name| folder.join(name));
    std::env::split_paths(&path).flat_map(at).find(|it| it.is_file())
}

fn run(tools: &Tools, names: &[&str]) -> Result<()> {
    let root = root()?;
    let node = |program: &str| {
        let mut command = Command::new(tools.home.join(agents::PROGRAMS).join(program));
        // The packages are not beside the tests; this is where else node looks for them.
        command.env("NODE_PATH", tools.home.join("node_modules"));
        command
    };
    let mut types = node("tsc");
    types.arg("--project").arg(root.join("crates/landfall-server/tsconfig.json"));
    step("web: types of the scripts", types)?;
    let mut types = node("tsc");
    types.arg("--project").arg(settings_of_tests(&tools.home, &root)?);
    step("web: types of the tests", types)?;

    step("web: build", cargo(&["build", "--package", "landfall"]))?;
    let me = std::env::current_exe().context("find our own program")?;
    let landfall = me.parent().context("our program is in a folder")?.join("landfall");

    let out = agents::cache_folder().join("web");
    match fs::remove_dir_all(&out) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("remove {}", out.display()));
        }
        Ok(()) | Err(_) => {}
    }
    fs::create_dir_all(&out).with_context(|| format!("make {}", out.display()))?;
    let mut tests = node("playwright");
    tests.arg("test").args(names).current_dir(root.join("browser"));
    tests.env("LANDFALL_BIN", landfall).env("LANDFALL_CHROMIUM", &tools.chromium);
    tests.env("LANDFALL_WEB_OUT", &out);
    let done = step("web", tests);
    eprintln!("── web: pictures are in {}", out.display());
    done
}

/// Where the checker finds the packages that the tests name: it does not look where node does.
fn settings_of_tests(home: &Path, root: &Path) -> Result<PathBuf> {
    let packages = home.join("node_modules");
    let settings = serde_json::json!({
        "extends": root.join("browser/tsconfig.json"),
        "include": [root.join("browser/**/*.ts")],
        "compilerOptions": { "typeRoots": [packages.join("@types")], "paths": { "*": [packages.join("*")] } },
    });
    let path = home.join("tsconfig.json");
    fs::write(&path, settings.to_string()).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

/// The root of the repository.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("xtask is in the repository")?.to_owned())
}
