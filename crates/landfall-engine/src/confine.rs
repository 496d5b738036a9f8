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
    let mut hide: Vec<PathBuf> = vec![folder.project().to_owned(), tmp_root()];
    // The states of other projects stand beside this one.
    let beside = folder.project().parent().filter(|parent| parent.ends_with("landfall"));
    hide.extend(beside.map(Path::to_owned));
    let secrets = SECRETS.iter().filter_map(|name| Some(home.as_ref()?.join(name))).filter(own);
    hide.extend(secrets);
    hide.extend(home.as_ref().map(|home| home.join(".local/state/landfall")));
    hide.extend(settings.sandbox_hide.iter().filter_map(at_home));
    Some(Sandbox { level, write, hide, read, limits: Limits::default() })
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

/// Where the folders for temporary files of all runs are: one for each person, hidden from every run but for its own
/// part.
pub(crate) fn tmp_root() -> PathBuf {
    use std::os::unix::fs::MetadataExt as _;
    let uid = std::fs::metadata("/proc/self").map(|it| it.uid()).unwrap_or_default();
    std::env::temp_dir().join(format!("landfall-{uid}"))
}

/// The folder for temporary files of the run in `dir`: short, because programs put sockets into it, and its own.
pub(crate) fn private_tmp(dir: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    let name = blake3::hash(dir.as_os_str().as_bytes()).to_hex();
    tmp_root().join(&name.as_str()[..16])
}

/// Makes a folder for nobody else to read. One that stands already must be our own: the place is known to everyone.
pub(crate) fn make_own(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let meta = std::fs::symlink_metadata(folder)?;
            let own = std::fs::metadata("/proc/self").map(|it| it.uid()).ok() == Some(meta.uid());
            if meta.is_dir() && own && meta.mode() & 0o077 == 0 { Ok(()) } else { Err(error) }
        }
        Err(error) => Err(error),
    }
}

/// Makes it.
pub(crate) fn make_tmp(dir: &Path) -> std::io::Result<PathBuf> {
    make_own(&tmp_root())?;
    let tmp = private_tmp(dir);
    make_own(&tmp)?;
    Ok(tmp)
}

/// Gives it up.
pub(crate) fn remove_tmp(dir: &Path) {
    let tmp = private_tmp(dir);
    if std::fs::symlink_metadata(&tmp).is_ok_and(|meta| meta.is_dir()) {
        drop(std::fs::remove_dir_all(&tmp)); // what is left is in the folder for temporary files
    }
}
