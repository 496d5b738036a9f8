//! How agents and checks are confined: which folders the sandbox opens and hides. The host puts it up.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use landfall_host::git::{Git, Repo};
use landfall_host::sandbox::{self, ProcessLimits, Sandbox, SandboxLevel};
use landfall_host::user_file::read_user_file;
use landfall_model::denial::{self, AccessRules, DeniedAccess, SandboxDenial, access_failures};
use landfall_model::home;
use landfall_model::occupancy::{CheckoutUser, may_hand_out_files};

use crate::caches::{self, CacheAccess, CacheNotice, CacheRequest};
use crate::environment::{CERTIFICATES, variable};
use crate::folder::StateFolder;
use crate::host_context::HostContext;
use crate::logfile::LogFile;
use crate::secrets::is_secret;
use crate::settings::{Confinement, RunSettings};
use crate::trust::known_checkouts;

/// What one run may touch.
pub(crate) struct ConfinementScope {
    /// How it is confined.
    pub confinement: Confinement,
    /// The user's checkouts and their git folder: files that git ignores, and settings of git, hold secrets.
    pub checkout: Vec<PathBuf>,
    /// Where it works.
    pub work: PathBuf,
    /// Its folder for temporary files.
    pub tmp: PathBuf,
    /// Files and folders of the program's own, with `~` for the home folder.
    pub own: Vec<String>,
    /// What it may read of Landfall's state.
    pub read: Vec<PathBuf>,
    /// The caches of its tools.
    pub caches: CacheAccess,
}

/// The sandbox for it; none if the person switched it off.
pub(crate) fn build_sandbox(site: &HostContext, reach: &ConfinementScope) -> Option<Sandbox> {
    build_sandbox_from_settings(&site.settings.run, &site.folder, &site.environment, reach)
}

/// The sandbox for it, as these settings say. `env` is the user's environment: it says where their tools and secrets are.
pub(crate) fn build_sandbox_from_settings(
    settings: &RunSettings,
    folder: &StateFolder,
    env: &[(OsString, OsString)],
    reach: &ConfinementScope,
) -> Option<Sandbox> {
    let level = level_of(reach.confinement)?;
    let home = home_of(env);
    let home = home.as_deref();
    let at_home = |path: &String| expand_home(home, path);
    let mut write = vec![reach.work.clone(), reach.tmp.clone()];
    write.extend(reach.own.iter().filter_map(at_home));
    let named: Vec<PathBuf> = settings.sandbox_write.iter().filter_map(at_home).collect();
    write.extend(reach.caches.write.iter().cloned());
    let mut hide = places_to_hide(settings, folder, home);
    // The program's own state may be where secrets are; what it may write it may read.
    let is_own = |path: &PathBuf| reach.own.iter().filter_map(at_home).any(|own| path.starts_with(own));
    let of_user = home.into_iter().flat_map(hidden_home_paths).chain(moved_secrets(home, env));
    hide.extend(of_user.filter(|path| !is_own(path)));
    let mut read = vec![folder.store_path().join("objects")];
    read.extend(reach.read.iter().cloned());
    read.extend(settings.sandbox_read.iter().filter_map(at_home));
    read.extend(reach.caches.read.iter().cloned());
    let closed = hidden_paths_except_home(&hide, home);
    write.extend(named.iter().flat_map(|named| expand_writable_path(named, &closed)));
    let mut private = Vec::new();
    if level != SandboxLevel::Write {
        // What is not there yet is made in an empty folder of the run's own that stands in place of the hidden one.
        let missing = named.iter().filter(|named| is_pattern(named) || !named.exists());
        private.extend(
            missing.filter_map(|named| nearest_hidden(named, &hide)).filter(|at| Some(at.as_path()) == home),
        );
        private.dedup();
        hide.extend(sandbox::runtime_folders());
        read.extend(sandbox::needed_runtime_files());
        private.extend(sandbox::shared_temporary_folders());
    }
    let checkout = reach.checkout.iter().cloned().chain(other_project_checkouts(folder));
    let checkout: Vec<PathBuf> = checkout.filter(|path| may_be_hidden(path)).collect();
    let whole: Vec<&Path> = home.into_iter().chain(checkout.iter().map(PathBuf::as_path)).collect();
    let tools = find_tool_paths(home, &whole, env, hide.iter().chain(&private).chain(&checkout));
    let tools = without_links_to(&hide, home, tools);
    // The person may have opened a folder around one for writing; Landlock alone cannot take back a part of that.
    let is_written = |path: &PathBuf| write.iter().any(|open| path.starts_with(open));
    hide.extend(checkout.into_iter().filter(|path| !is_written(path)));
    let layers = reach.caches.layers.clone();
    // What the person opened for writing stays so, also where a toolchain or a cache is kept.
    let open: Vec<&PathBuf> = write.iter().chain(layers.iter().map(|layer| &layer.path)).collect();
    read.extend(tools.into_iter().filter(|tool| !open.iter().any(|open| tool.starts_with(open))));
    // What an agent keeps as its own state, others of its kind have as well.
    let exclusive = [&reach.work, &reach.tmp].into_iter().chain(&reach.caches.write).cloned().collect();
    Some(Sandbox { level, write, hide, read, private, exclusive, layers, limits: ProcessLimits::default() })
}

/// The places that Landfall itself and the person hide.
fn places_to_hide(settings: &RunSettings, folder: &StateFolder, home: Option<&Path>) -> Vec<PathBuf> {
    let mut hide: Vec<PathBuf> = vec![folder.project_folder().to_owned()];
    // Only those of ours: what somebody else put there may be a link to anywhere.
    hide.extend(
        tmp_roots().filter(|root| std::fs::symlink_metadata(root).is_ok_and(|meta| is_private(&meta))),
    );
    hide.extend(other_states_folder(folder).map(Path::to_owned));
    hide.extend(settings.sandbox_hide.iter().filter_map(|path| expand_home(home, path)));
    hide
}

/// The folder in which the states of other projects stand beside this one.
fn other_states_folder(folder: &StateFolder) -> Option<&Path> {
    folder.project_folder().parent().filter(|parent| parent.ends_with("landfall"))
}

/// The checkouts of the user's other projects.
fn other_project_checkouts(folder: &StateFolder) -> Vec<PathBuf> {
    other_states_folder(folder).map(known_checkouts).unwrap_or_default()
}

/// Makes ready what a run at this level gets of the caches that the settings name. What it changes is kept in `room`.
pub(crate) fn prepare_run_caches(
    settings: &RunSettings,
    folder: &StateFolder,
    env: &[(OsString, OsString)],
    level: Confinement,
    room: &Path,
) -> std::io::Result<CacheAccess> {
    with_cache_request(settings, folder, env, level, room, caches::prepare_caches)
}

/// The caches that the settings name and that runs do not get, or cannot change, with the reason.
#[must_use]
pub fn cache_notices(
    settings: &RunSettings,
    folder: &StateFolder,
    env: &[(OsString, OsString)],
) -> Vec<CacheNotice> {
    match folder.root() {
        room if room.is_dir() => {
            with_cache_request(settings, folder, env, settings.sandbox, room, caches::find_notices)
        }
        _ => Vec::new(), // nothing has run here yet
    }
}

/// Writes down, once for each engine, which caches a run does not get, or cannot change.
pub(crate) fn log_cache_notices(site: &HostContext, caches: &CacheAccess) {
    for notice in &caches.notices {
        if site.active.is_new_notice(notice) {
            let CacheNotice { cache, what } = notice;
            let line = serde_json::json!({ "at_ms": site.now().0, "about": format!("cache `{cache}`"), "what": what });
            LogFile::at_path(site.folder.repairs_log()).append_line(&line);
        }
    }
}

fn with_cache_request<T>(
    settings: &RunSettings,
    folder: &StateFolder,
    env: &[(OsString, OsString)],
    level: Confinement,
    room: &Path,
    use_it: impl Fn(&CacheRequest<'_>) -> T,
) -> T {
    let home = home_of(env);
    let home = home.as_deref();
    let mut hide = places_to_hide(settings, folder, home);
    hide.extend(home.into_iter().flat_map(hidden_home_paths).chain(moved_secrets(home, env)));
    if matches!(level, Confinement::Isolated | Confinement::Strict) {
        hide.extend(sandbox::runtime_folders());
    }
    let hidden = hidden_paths_except_home(&hide, home);
    use_it(&CacheRequest { caches: &settings.caches, level, home, hidden: &hidden, env, room })
}

/// Whether a run could hand a file of its checkout to somebody who outlives it.
pub(crate) fn may_hand_out(settings: &RunSettings, reach: &ConfinementScope) -> bool {
    may_hand_out_files(&CheckoutUser {
        level: reach.confinement,
        has_own_state: !reach.own.is_empty(),
        has_shared_folders: !settings.sandbox_write.is_empty(),
    })
}

/// The level of the host for what the settings say; none for no sandbox.
fn level_of(confinement: Confinement) -> Option<SandboxLevel> {
    match confinement {
        Confinement::Off => None,
        Confinement::Write => Some(SandboxLevel::Write),
        Confinement::Isolated => Some(SandboxLevel::Isolated),
        Confinement::Strict => Some(SandboxLevel::Strict),
    }
}

/// Whether programs can do without all of it.
fn may_be_hidden(folder: &Path) -> bool {
    const SHARED: [&str; 10] =
        ["/", "/bin", "/etc", "/home", "/lib", "/opt", "/srv", "/usr", "/usr/local", "/var"];
    !SHARED.iter().any(|shared| folder == Path::new(shared))
}

/// Every checkout of this repository that the user has, and the git folder that they share.
pub(crate) fn checkout_of(repo: &Repo) -> Vec<PathBuf> {
    repo.checkout_folders()
}

/// The same for the repository at this root.
pub(crate) fn checkout_at(root: &Path) -> Vec<PathBuf> {
    let repo = Git::find_installed().ok().and_then(|git| Repo::discover(&git, root).ok());
    repo.map_or_else(|| vec![root.to_owned()], |repo| checkout_of(&repo))
}

/// The home folder, unless it is one that programs cannot do without, and every usual place of a secret: those lie in the home
/// folder, but also below what is opened there.
fn hidden_home_paths(home: &Path) -> Vec<PathBuf> {
    let whole = may_be_hidden(home).then(|| home.to_owned());
    let secrets = all_secrets().map(|place| home.join(place));
    whole.into_iter().chain(secrets).chain([home.join(".local/state/landfall")]).collect()
}

/// Where variables and settings of the user say that secrets are.
fn moved_secrets(home: Option<&Path>, env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let moved = home::MOVED_SECRETS.iter().flat_map(|(variable, usual)| {
        let values = env.iter().filter(move |(name, _)| name == variable);
        let folders = values.flat_map(|(_, value)| std::env::split_paths(value).collect::<Vec<_>>());
        folders.flat_map(|folder| home::moved_secrets(usual, &folder, all_secrets()))
    });
    // Any other variable whose name says so. Its value may be the secret itself; only a path that is there is one.
    let is_telling =
        |name: &OsString| name.to_str().is_some_and(|name| is_secret(name) || home::is_history(name));
    let named = env.iter().filter(|(name, _)| is_telling(name)).map(|(_, value)| PathBuf::from(value));
    let named = named.chain(secrets_in_settings(home, env)).filter(|path| path.is_file() || path.is_dir());
    let mut moved: Vec<PathBuf> =
        moved.chain(named.flat_map(|path| home::moved_secrets("", &path, all_secrets()))).collect();
    moved.sort();
    moved.dedup();
    moved
}

/// The files that settings of the user's tools name as secrets.
fn secrets_in_settings(home: Option<&Path>, env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    const BYTES_MAX: u64 = 256 << 10;
    const MACHINE_WIDE: [&str; 2] = ["/etc/gitconfig", "/etc/ssh/ssh_config"];
    let usual = home.into_iter().flat_map(|home| home::SETTINGS_WITH_SECRETS.map(|name| home.join(name)));
    let named =
        env.iter().filter(|(name, _)| name == "GIT_CONFIG_GLOBAL").map(|(_, path)| PathBuf::from(path));
    let files = usual.chain(MACHINE_WIDE.map(PathBuf::from)).chain(named);
    let texts = files.filter_map(|file| read_user_file(&file, BYTES_MAX).ok()); // what we cannot read names nothing for us
    texts
        .flat_map(|text| {
            let text = String::from_utf8_lossy(&text).into_owned();
            home::secrets_named_in(&text)
                .into_iter()
                .filter_map(|path| expand_home(home, path))
                .collect::<Vec<_>>()
        })
        .collect()
}

fn all_secrets() -> impl Iterator<Item = &'static str> {
    secret_places().chain(home::SECRETS_OF_TOOLS)
}

/// The usual places of secrets below the home folder, the logins of agents included.
pub fn secret_places() -> impl Iterator<Item = &'static str> {
    home::SECRETS.into_iter().chain(landfall_agents::LOGINS)
}

/// What builds need of hidden places: toolchains at home, and what the environment names. None of `whole` is opened as a whole.
fn find_tool_paths<'a>(
    home: Option<&Path>,
    whole: &[&Path],
    env: &[(OsString, OsString)],
    hidden: impl Iterator<Item = &'a PathBuf> + Clone,
) -> Vec<PathBuf> {
    /// Variables that name a toolchain or a cache of one.
    const NAMED_BY: [&str; 6] = ["CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOCACHE", "JAVA_HOME", "NODE_PATH"];
    let is_hidden = |path: &Path| hidden.clone().any(|hidden| path.starts_with(hidden) && path != hidden);
    let mut found: Vec<PathBuf> =
        home.into_iter().flat_map(|home| home::TOOLS.map(|place| home.join(place))).collect();
    for (name, value) in env {
        let is_named =
            name.to_str().is_some_and(|name| NAMED_BY.contains(&name) || CERTIFICATES.contains(&name));
        if is_named || name == "PATH" {
            found.extend(std::env::split_paths(value).filter(|path| path.is_absolute() && is_hidden(path)));
        }
        if name == "PATH" {
            let folders = std::env::split_paths(value).filter(|path| is_hidden(path));
            found.extend(folders.flat_map(|folder| linked_program_paths(home, whole, &folder)));
        }
    }
    found
}

/// These places without those that lead to a hidden one other than the home folder itself. The person asked for none of them,
/// and an agent of an earlier run may have put a link in the place of one.
fn without_links_to(hide: &[PathBuf], home: Option<&Path>, mut places: Vec<PathBuf>) -> Vec<PathBuf> {
    // Hundreds of places are hidden: each one is looked up by what lies above it, and not compared with all of them.
    let hidden: HashSet<PathBuf> = hidden_paths_except_home(hide, home).into_iter().collect();
    let leads_to_hidden = |path: &Path| path.ancestors().any(|above| hidden.contains(above));
    places.retain(|path| !leads_to_hidden(path) && !leads_to_hidden(&real_or_same(path)));
    places
}

/// The hidden places other than the home folder itself, as they are named and without links.
fn hidden_paths_except_home(hide: &[PathBuf], home: Option<&Path>) -> Vec<PathBuf> {
    let hidden = hide.iter().filter(|hidden| Some(hidden.as_path()) != home);
    hidden.flat_map(|hidden| [hidden.clone(), real_or_same(hidden)]).collect()
}

fn real_or_same(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// How many programs of one folder are looked at.
const PROGRAMS_MAX: usize = 1_000;

/// What the programs in a folder of `PATH` consist of, where it holds only links to them, or is part of a toolchain.
fn linked_program_paths(home: Option<&Path>, whole: &[&Path], folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = toolchain_of(home, whole, folder).into_iter().collect();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(PROGRAMS_MAX);
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    for target in links.filter_map(|link| link.path().canonicalize().ok()) {
        let is_hidden = whole.iter().any(|whole| target.starts_with(whole));
        if let Some(parent) = target.parent().filter(|_| is_hidden) {
            found.extend(toolchain_of(home, whole, parent).or_else(|| {
                let is_whole = whole.iter().any(|whole| whole.starts_with(parent));
                Some(if is_whole { target.clone() } else { parent.to_owned() })
            }));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The toolchain whose programs are in `folder`, such as `~/sdk/go` for `~/sdk/go/bin`.
fn toolchain_of(home: Option<&Path>, whole: &[&Path], folder: &Path) -> Option<PathBuf> {
    let root = folder.parent().filter(|_| folder.ends_with("bin"))?;
    let is_too_much = whole.iter().any(|whole| whole.starts_with(root))
        || home.is_some_and(|home| root == home.join(".local"));
    let has_libraries = ["lib", "lib64", "libexec", "pkg"].iter().any(|name| root.join(name).is_dir());
    (!is_too_much && has_libraries).then(|| root.to_owned())
}

/// Makes the folders an agent keeps its own state in: the sandbox opens only what is there, and some agents give up
/// without them. What looks like a file is the agent's to make.
pub(crate) fn make_state(home: Option<&Path>, own: &[String]) {
    use std::os::unix::fs::DirBuilderExt as _;
    for path in own.iter().filter_map(|path| expand_home(home, path)) {
        if path.extension().is_none() {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
            drop(made); // where it cannot be made, the agent says what it misses
        }
    }
}

/// Whether a path stands for several.
fn is_pattern(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().contains(&b'*'))
}

/// The hidden place that a path lies in.
fn nearest_hidden(path: &Path, hide: &[PathBuf]) -> Option<PathBuf> {
    let above = hide.iter().filter(|hidden| path.starts_with(hidden));
    above.max_by_key(|hidden| hidden.components().count()).cloned()
}

/// The places that a path of `sandbox_write` opens: itself, or what fits a pattern in its last part. A pattern opens nothing that
/// is hidden for itself.
fn expand_writable_path(named: &Path, closed: &[PathBuf]) -> Vec<PathBuf> {
    let (Some(folder), Some(pattern)) = (named.parent(), named.file_name()) else {
        return vec![named.to_owned()];
    };
    if !is_pattern(named) {
        return vec![named.to_owned()];
    }
    let pattern = pattern.to_string_lossy();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let fitting = entries.filter(|entry| matches_pattern(&pattern, &entry.file_name().to_string_lossy()));
    let is_closed = |path: &Path| {
        // What lies around something hidden is no more to be opened than what lies in it.
        closed.iter().any(|closed| path.starts_with(closed) || closed.starts_with(path))
    };
    fitting
        .map(|entry| entry.path())
        .filter(|path| !is_closed(path) && !is_closed(&real_or_same(path)))
        .take(PROGRAMS_MAX)
        .collect()
}

/// Whether `name` fits `pattern`, in which `*` stands for any text.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            let Some((_, after)) = rest.split_once(part) else { return false };
            rest = after;
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

/// What the sandbox denied to a run, as far as its output and the rules of the run tell.
pub(crate) fn find_denials(
    sandbox: Option<&Sandbox>,
    env: &[(OsString, OsString)],
    output: &str,
) -> Vec<SandboxDenial> {
    let Some(sandbox) = sandbox else { return Vec::new() };
    let failures = access_failures(output);
    if failures.is_empty() {
        return Vec::new();
    }
    let real = |paths: &[PathBuf]| paths.iter().map(|path| real_or_same(path)).collect::<Vec<_>>();
    let mut rules = AccessRules {
        write: real(&sandbox.write),
        read: real(&sandbox.read),
        hide: real(&sandbox.hide),
        private: real(&sandbox.private),
    };
    rules.write.extend(sandbox.layers.iter().map(|layer| real_or_same(&layer.path)));
    let home = home_of(env).map(|home| real_or_same(&home));
    denial::find_denials(&failures, &rules, home.as_deref(), &is_allowed_outside)
}

/// Whether the user may do this outside of the sandbox. What is not there is made in the nearest folder above.
fn is_allowed_outside(path: &Path, access: DeniedAccess) -> bool {
    use rustix::fs::Access;
    match access {
        DeniedAccess::Read => rustix::fs::access(path, Access::READ_OK).is_ok(),
        DeniedAccess::Write => {
            let there = path.ancestors().find(|above| above.exists());
            there.is_some_and(|there| rustix::fs::access(there, Access::WRITE_OK).is_ok())
        }
    }
}

/// Where an agent keeps its own state.
pub(crate) fn own_state(site: &HostContext, own: &[String]) -> Vec<PathBuf> {
    let home = agent_home(site);
    own.iter().filter_map(|path| expand_home(home.as_deref(), path)).collect()
}

/// The home folder agents get.
pub(crate) fn agent_home(site: &HostContext) -> Option<PathBuf> {
    home_of(&site.env)
}

fn home_of(env: &[(OsString, OsString)]) -> Option<PathBuf> {
    // Without the variable, as under cron, the home folder of the account is still there to be hidden.
    let named = variable(env, "HOME").map(PathBuf::from);
    named.or_else(std::env::home_dir)
}

/// The path with its `~` filled in; none when there is no home folder or the path is not a full one.
pub(crate) fn expand_home(home: Option<&Path>, path: &str) -> Option<PathBuf> {
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
        match make_private_folder(&root) {
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
pub(crate) fn make_private_folder(folder: &Path) -> std::io::Result<()> {
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
    make_private_folder(&tmp)?;
    Ok(tmp)
}

/// Gives it up.
pub(crate) fn remove_tmp(dir: &Path) {
    if let Some(tmp) = private_tmp(dir) {
        let _ = std::fs::remove_dir_all(&tmp); // what is left is in the folder for temporary files
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{SensitiveSettings, Settings};
    use crate::trust::{TrustStore, TrustedBy};
    use landfall_model::Timestamp;

    fn sandbox_of(level: Confinement, own: &[String]) -> Sandbox {
        let env = [("HOME", "/home/me"), ("PATH", "/usr/bin:/home/me/sdk/bin:/home/me:/tmp/tools")];
        let env: [(OsString, OsString); 2] = env.map(|(name, value)| (name.into(), value.into()));
        let folder = StateFolder::at_root("/home/me/.local/state/landfall/project".into());
        let work = folder.workspaces_path().join("T1");
        let reach = ConfinementScope {
            confinement: level,
            checkout: Vec::new(),
            work,
            tmp: "/tmp/x".into(),
            own: own.to_vec(),
            read: Vec::new(),
            caches: CacheAccess::default(),
        };
        build_sandbox_from_settings(&Settings::defaults().run, &folder, &env, &reach).expect("it is on")
    }

    #[test]
    fn an_agent_sees_its_own_login_and_no_other_and_a_check_sees_none() {
        let hidden = |own: &[String]| -> Vec<&'static str> {
            let hide = sandbox_of(Confinement::Isolated, own).hide;
            secret_places().filter(|place| hide.contains(&Path::new("/home/me").join(place))).collect()
        };
        let all: Vec<&str> = secret_places().collect();
        assert_eq!(all.len(), 47);
        assert_eq!(hidden(&[]), all);
        for login in landfall_agents::LOGINS {
            let folder = Path::new(login).parent().expect("a file in a folder").display();
            let others: Vec<&str> = all.iter().copied().filter(|place| *place != login).collect();
            assert_eq!(hidden(&[format!("~/{folder}")]), others);
        }
    }

    #[test]
    fn secrets_are_hidden_where_a_variable_says_they_are() {
        let env = [
            ("HOME", "/home/me"),
            ("CARGO_HOME", "/opt/cargo"),
            ("XDG_CONFIG_HOME", "/home/me/sdk/config"),
            ("KUBECONFIG", "/srv/one:/srv/two/config:/dev/null"),
            ("CODEX_HOME", "/srv/codex"),
            ("DOCKER_CONFIG", ""),
        ];
        let env: Vec<(OsString, OsString)> = env.map(|(name, value)| (name.into(), value.into())).to_vec();
        let folder = StateFolder::at_root("/home/me/.local/state/landfall/project".into());
        let hide = |own: &[&str]| {
            let reach = ConfinementScope {
                confinement: Confinement::Isolated,
                checkout: Vec::new(),
                work: folder.workspaces_path().join("T1"),
                tmp: "/tmp/x".into(),
                own: own.iter().map(|&path| path.to_owned()).collect(),
                read: Vec::new(),
                caches: CacheAccess::default(),
            };
            build_sandbox_from_settings(&Settings::defaults().run, &folder, &env, &reach)
                .expect("it is on")
                .hide
        };
        let moved = [
            "/opt/cargo/credentials.toml",
            "/home/me/sdk/config/gh",
            "/srv/one",
            "/srv/two/config",
            "/srv/codex/auth.json",
        ];
        for place in moved {
            assert!(hide(&[]).contains(&PathBuf::from(place)), "{place}");
        }
        assert!(!hide(&[]).iter().any(|path| path.starts_with("/dev")));
        assert!(!hide(&["/srv/codex"]).contains(&PathBuf::from(moved[4])), "its own login");
    }

    #[test]
    fn secrets_are_hidden_where_other_variables_and_settings_name_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("it is there");
        let (home, elsewhere) = (top.join("home"), top.join("srv/deep"));
        for made in [home.join(".ssh"), elsewhere.join("vault-token-dir")] {
            std::fs::create_dir_all(made).expect("made");
        }
        let file = |name: &str| elsewhere.join(name);
        for name in ["deploy", "history", "tokens", "key", "ca", "plain"] {
            std::fs::write(file(name), "x").expect("written");
        }
        let git = format!("[credential]\nhelper = store --file {}\n", file("tokens").display());
        std::fs::write(home.join(".gitconfig"), git).expect("written");
        let ssh = format!("Host *\n  IdentityFile {}\n", file("key").display());
        std::fs::write(home.join(".ssh/config"), ssh).expect("written");
        let env: Vec<(OsString, OsString)> = [
            ("DEPLOY_KEY_FILE", file("deploy")),
            ("VAULT_TOKEN_DIR", file("vault-token-dir")),
            ("PSQL_HISTORY", file("history")),
            ("SSL_CERT_FILE", file("ca")),
            ("EDITOR_CONFIG", file("plain")),
            ("API_TOKEN", "/abcdefghijklmnop".into()), // a token, and no path
            ("SSH_AUTH_SOCK", "/dev/null".into()),
        ]
        .map(|(name, path)| (name.into(), path.into_os_string()))
        .to_vec();
        let hidden = moved_secrets(Some(&home), &env);
        let expected: Vec<PathBuf> =
            ["deploy", "history", "key", "tokens", "vault-token-dir"].map(file).to_vec();
        assert_eq!(hidden, expected);
    }

    #[test]
    fn the_home_folder_is_hidden_and_programs_are_found() {
        for level in [Confinement::Write, Confinement::Isolated, Confinement::Strict] {
            let sandbox = sandbox_of(level, &[]);
            assert!(sandbox.hide.contains(&PathBuf::from("/home/me")), "{level:?}");
            let reads = |path: &str| sandbox.read.contains(&PathBuf::from(path));
            assert!(reads("/home/me/.cargo") && reads("/home/me/sdk/bin"), "{level:?}: {:?}", sandbox.read);
            // A folder of programs that is the hidden folder itself would open all of it.
            assert!(!reads("/home/me"), "{level:?}");
            let is_apart = level != Confinement::Write;
            assert_eq!(reads("/tmp/tools"), is_apart, "{level:?}");
            assert_eq!(sandbox.private.contains(&PathBuf::from("/tmp")), is_apart, "{level:?}");
            assert_eq!(sandbox.hide.contains(&PathBuf::from("/run")), is_apart, "{level:?}");
        }
    }

    #[test]
    fn a_cache_that_the_person_opens_for_writing_stays_open() {
        let settings =
            Settings::parse("[run]\nsandbox_write = [\"~/.npm\", \"~/.cache\"]\n", "landfall.toml");
        let run = settings.expect("settings").run;
        let env = [("HOME".into(), "/home/me".into())];
        let folder = StateFolder::at_root("/home/me/.local/state/landfall/project".into());
        let reach = ConfinementScope {
            confinement: Confinement::Isolated,
            checkout: Vec::new(),
            work: folder.workspaces_path().join("T1"),
            tmp: "/tmp/x".into(),
            own: Vec::new(),
            read: Vec::new(),
            caches: CacheAccess::default(),
        };
        let sandbox = build_sandbox_from_settings(&run, &folder, &env, &reach).expect("it is on");
        for place in ["/home/me/.npm", "/home/me/.cache/go-build"] {
            assert!(!sandbox.read.contains(&PathBuf::from(place)), "{place}: {:?}", sandbox.read);
        }
        assert!(sandbox.read.contains(&PathBuf::from("/home/me/.cargo")));
    }

    #[test]
    fn the_checkout_is_hidden_wherever_it_is_and_programs_of_it_are_found() {
        let env = [("HOME", "/home/me"), ("PATH", "/usr/bin:/work/p/.venv/bin")];
        let env: Vec<(OsString, OsString)> = env.map(|(name, value)| (name.into(), value.into())).to_vec();
        let folder = StateFolder::at_root("/home/me/.local/state/landfall/project".into());
        let sandbox = |level: Confinement, checkout: &str, work: &str| {
            let reach = ConfinementScope {
                confinement: level,
                checkout: vec![checkout.into()],
                work: work.into(),
                tmp: "/tmp/x".into(),
                own: Vec::new(),
                read: Vec::new(),
                caches: CacheAccess::default(),
            };
            build_sandbox_from_settings(&Settings::defaults().run, &folder, &env, &reach).expect("it is on")
        };
        for level in [Confinement::Write, Confinement::Isolated, Confinement::Strict] {
            let found = sandbox(level, "/work/p", "/state/T1");
            assert!(found.hide.contains(&PathBuf::from("/work/p")), "{level:?}");
            assert!(found.read.contains(&PathBuf::from("/work/p/.venv/bin")), "{level:?}: {:?}", found.read);
            assert!(!found.read.contains(&PathBuf::from("/work/p")), "{level:?}: {:?}", found.read);
            // What cannot be hidden, and what it works in, stays.
            assert!(!sandbox(level, "/", "/state/T1").hide.contains(&PathBuf::from("/")));
            assert!(!sandbox(level, "/work/p", "/work/p").hide.contains(&PathBuf::from("/work/p")));
        }
    }

    #[test]
    fn checkouts_of_other_projects_are_hidden_as_well() {
        let states = tempfile::tempdir().expect("a folder");
        let states = states.path().join("landfall");
        for (name, root) in [("own-1", "/work/own"), ("other-2", "/srv/other"), ("brew-3", "/usr/local")] {
            std::fs::create_dir_all(states.join(name)).expect("made");
            let store = TrustStore::for_repository(&StateFolder::at_root(states.join(name)), Path::new(root));
            let digest = SensitiveSettings::from_settings(&Settings::defaults()).compute_digest();
            store.add_trust(&digest, TrustedBy::Run, Timestamp(1)).expect("written");
        }
        std::fs::create_dir(states.join("never-run-4")).expect("made");
        let folder = StateFolder::at_root(states.join("own-1"));
        let reach = ConfinementScope {
            confinement: Confinement::Isolated,
            checkout: vec!["/work/own".into()],
            work: folder.workspaces_path().join("T1"),
            tmp: "/tmp/x".into(),
            own: Vec::new(),
            read: Vec::new(),
            caches: CacheAccess::default(),
        };
        let env = [("HOME".into(), "/home/me".into())];
        let hide = build_sandbox_from_settings(&Settings::defaults().run, &folder, &env, &reach)
            .expect("it is on")
            .hide;
        let is_hidden = |root: &str| hide.contains(&PathBuf::from(root));
        assert!(is_hidden("/work/own") && is_hidden("/srv/other"), "{hide:?}");
        assert!(!is_hidden("/usr/local"), "programs cannot do without it");
    }

    #[test]
    fn programs_of_the_checkout_open_no_more_of_it_than_they_need() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        for made in ["bin", "lib", "node_modules/.bin", "node_modules/cli/dist"] {
            std::fs::create_dir_all(root.join(made)).expect("made");
        }
        std::fs::write(root.join("node_modules/cli/dist/run.js"), "").expect("written");
        std::fs::write(root.join("start"), "").expect("written");
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(root.join(target), root.join("node_modules/.bin").join(name))
        };
        link("node_modules/cli/dist/run.js", "run").expect("linked");
        link("start", "start").expect("linked");
        let found = |folder: &str| linked_program_paths(None, &[&root], &root.join(folder));
        assert_eq!(found("bin"), [] as [PathBuf; 0], "the root has a `lib`, but is the checkout");
        assert_eq!(
            found("node_modules/.bin"),
            ["node_modules/cli/dist", "start"].map(|name| root.join(name))
        );
    }

    #[test]
    fn a_link_in_the_place_of_a_tool_opens_no_secret() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path();
        for made in [".ssh", ".cache", ".cargo"] {
            std::fs::create_dir(home.join(made)).expect("made");
        }
        std::os::unix::fs::symlink(home.join(".ssh"), home.join(".cache/torch")).expect("linked");
        let hide = hidden_home_paths(home);
        let places = vec![home.join(".cargo"), home.join(".cache/torch")];
        assert_eq!(without_links_to(&hide, Some(home), places), [home.join(".cargo")]);
    }

    #[test]
    fn a_home_folder_that_is_the_machine_is_not_hidden() {
        for (home, is_hidden) in [("/", false), ("/home", false), ("/root", true), ("/var/lib/me", true)] {
            let home = PathBuf::from(home);
            assert_eq!(hidden_home_paths(&home).contains(&home), is_hidden, "{home:?}");
        }
    }
}
