//! How agents and checks are confined: which folders the sandbox opens and hides. The host puts it up.

use std::path::{Path, PathBuf};

use landfall_host::sandbox::{Level, Limits, Sandbox};

use crate::folder::StateFolder;
use crate::settings::{Confinement, Run};
use crate::site::Site;

/// Where people and programs keep secrets, below the home folder.
const SECRETS: [&str; 24] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".password-store",
    ".local/share/keyrings",
    ".config/git/credentials",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".vault-token",
    ".bash_history",
    ".zsh_history",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
];

/// What one run may touch.
pub(crate) struct Reach {
    /// How it is confined.
    pub confinement: Confinement,
    /// Where it works.
    pub work: PathBuf,
    /// Its folder for temporary files.
    pub tmp: PathBuf,
    /// Files and folders of the program's own, with `~` for the home folder.
    pub own: Vec<String>,
    /// What it may read of Landfall's state.
    pub read: Vec<PathBuf>,
}

/// The sandbox for it; none if the person switched it off.
pub(crate) fn sandbox(site: &Site, reach: &Reach) -> Option<Sandbox> {
    around(&site.settings.run, &site.folder, home(site).as_deref(), reach)
}

/// The sandbox for it, as these settings say.
pub(crate) fn around(
    settings: &Run,
    folder: &StateFolder,
    home: Option<&Path>,
    reach: &Reach,
) -> Option<Sandbox> {
    let level = match reach.confinement {
        Confinement::Off => return None,
        Confinement::Write => Level::Write,
        Confinement::Strict => Level::Strict,
    };
    let at_home = |path: &String| expand(home, path);
    let mut write = vec![reach.work.clone(), reach.tmp.clone()];
    write.extend(reach.own.iter().chain(&settings.sandbox_write).filter_map(at_home));
    let mut read = vec![folder.store().join("objects")];
    read.extend(reach.read.iter().cloned());
    // The program's own state may be where secrets are; what it may write it may read.
    let own = |path: &PathBuf| !write.contains(path);
    let mut hide: Vec<PathBuf> = vec![folder.project().to_owned()];
    // Only those of ours: what somebody else put there may be a link to anywhere.
    hide.extend(
        tmp_roots().filter(|root| std::fs::symlink_metadata(root).is_ok_and(|meta| is_private(&meta))),
    );
    // The states of other projects stand beside this one.
    let beside = folder.project().parent().filter(|parent| parent.ends_with("landfall"));
    hide.extend(beside.map(Path::to_owned));
    let secrets = SECRETS.iter().filter_map(|name| Some(home.as_ref()?.join(name))).filter(own);
    hide.extend(secrets);
    hide.extend(home.as_ref().map(|home| home.join(".local/state/landfall")));
    hide.extend(settings.sandbox_hide.iter().filter_map(at_home));
    Some(Sandbox { level, write, hide, read, private: Vec::new(), limits: Limits::default() })
}

/// Makes the folders an agent keeps its own state in: the sandbox opens only what is there, and some agents give up
/// without them. What looks like a file is the agent's to make.
pub(crate) fn make_state(home: Option<&Path>, own: &[String]) {
    use std::os::unix::fs::DirBuilderExt as _;
    for path in own.iter().filter_map(|path| expand(home, path)) {
        if path.extension().is_none() {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
            drop(made); // where it cannot be made, the agent says what it misses
        }
    }
}

/// Where an agent keeps its own state.
pub(crate) fn own_state(site: &Site, own: &[String]) -> Vec<PathBuf> {
    let home = home(site);
    own.iter().filter_map(|path| expand(home.as_deref(), path)).collect()
}

/// The home folder agents get.
pub(crate) fn home(site: &Site) -> Option<PathBuf> {
    site.env.iter().find(|(key, _)| key == "HOME").map(|(_, home)| PathBuf::from(home))
}

/// The path with its `~` filled in; none when there is no home folder or the path is not a full one.
pub(crate) fn expand(home: Option<&Path>, path: &str) -> Option<PathBuf> {
    let path = match path.strip_prefix('~') {
        Some("") => home?.to_owned(),
        Some(rest) => home?.join(rest.strip_prefix('/')?),
        None => PathBuf::from(path),
    };
    path.is_absolute().then_some(path)
}

/// How many other names are tried where somebody else has taken the usual one.
const TMP_ROOTS_MORE: u32 = 8;

/// Where the folders for temporary files of all runs can be: one for each person, hidden from every run but for its own
/// part. The usual place comes first. It is known to everyone, so somebody else may have taken it.
fn tmp_roots() -> impl Iterator<Item = PathBuf> {
    let name = format!("landfall-{}", rustix::process::getuid().as_raw());
    let folder = std::env::temp_dir();
    let usual = folder.join(&name);
    let others = (1..=TMP_ROOTS_MORE).map(move |number| folder.join(format!("{name}-{number}")));
    std::iter::once(usual).chain(others)
}

/// The first of these folders that is ours alone; it is made if need be.
pub(crate) fn make_tmp_root(roots: impl Iterator<Item = PathBuf>) -> std::io::Result<PathBuf> {
    use std::io::ErrorKind::{AlreadyExists, NotFound, PermissionDenied, ReadOnlyFilesystem};
    let mut last = std::io::Error::from(NotFound);
    for root in roots {
        match make_own(&root) {
            Ok(()) => return Ok(root),
            // This place is not to be had. Whatever else fails, such as a full disk, fails in the next one as well.
            Err(error)
                if matches!(
                    error.kind(),
                    AlreadyExists | NotFound | PermissionDenied | ReadOnlyFilesystem
                ) =>
            {
                last = error;
            }
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// The folder for temporary files of what is no run.
pub(crate) fn tmp_root() -> std::io::Result<PathBuf> {
    make_tmp_root(tmp_roots())
}

/// Why the usual folder for temporary files cannot be used, and which one is used instead. None: it can be used.
#[must_use]
pub fn tmp_problem() -> Option<(String, Option<PathBuf>)> {
    use std::os::unix::fs::MetadataExt as _;
    let usual = tmp_roots().next().expect("the usual one comes first");
    let what = match std::fs::symlink_metadata(&usual) {
        Ok(meta) if meta.is_symlink() => "is a symbolic link".to_owned(),
        Ok(meta) if !meta.is_dir() => "is not a folder".to_owned(),
        Ok(meta) if meta.uid() != rustix::process::getuid().as_raw() => {
            format!("belongs to user {}", meta.uid())
        }
        Ok(meta) if meta.mode() & 0o077 != 0 => {
            format!("has mode {:o}, so others may use it", meta.mode() & 0o777)
        }
        Ok(_) => return None,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None, // made when it is needed
        Err(error) => format!("cannot be read: {error}"),
    };
    Some((format!("`{}` {what}", usual.display()), tmp_root().ok()))
}

/// The folders that the temporary files of the run in `dir` can be in: short, because programs put sockets into them. The
/// last one is in the state folder, which nobody else can write.
fn tmp_places(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let state = dir.parent().and_then(Path::parent).map(|state| state.join("tmp"));
    tmp_roots().chain(state)
}

fn tmp_name(dir: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    blake3::hash(dir.as_os_str().as_bytes()).to_hex().as_str()[..16].to_owned()
}

/// The folder for temporary files of the run in `dir`, if there is one.
pub(crate) fn private_tmp(dir: &Path) -> Option<PathBuf> {
    let name = tmp_name(dir);
    let is_own = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|meta| is_private(&meta));
    tmp_places(dir).filter(is_own).map(|root| root.join(&name)).find(is_own)
}

/// Whether it is a folder of ours that nobody else may read.
fn is_private(meta: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    meta.is_dir() && meta.uid() == rustix::process::getuid().as_raw() && meta.mode() & 0o077 == 0
}

/// Makes a folder for nobody else to read. One that stands already must be our own: the place is known to everyone.
pub(crate) fn make_own(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            if is_private(&std::fs::symlink_metadata(folder)?) { Ok(()) } else { Err(error) }
        }
        Err(error) => Err(error),
    }
}

/// Makes the folder for temporary files of the run in `dir`.
pub(crate) fn make_tmp(dir: &Path) -> std::io::Result<PathBuf> {
    let tmp = make_tmp_root(tmp_places(dir))?.join(tmp_name(dir));
    make_own(&tmp)?;
    Ok(tmp)
}

/// Gives it up.
pub(crate) fn remove_tmp(dir: &Path) {
    if let Some(tmp) = private_tmp(dir) {
        drop(std::fs::remove_dir_all(&tmp)); // what is left is in the folder for temporary files
    }
}
