//! Caches of package managers: gives each workspace, lane and errand changes of its own, so that nothing that one of them
//! leaves in a cache is seen by the user or by another one. Which way is taken is decided by the model.
//!
//! The room of a cache is kept as long as the workspace, and in a lane for one verification. What the user changes in a cache
//! while an overlay is put up over it is undefined for that run, as overlayfs has it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use landfall_host::disk::{remove_tree, write_atomic};
use landfall_host::sandbox::{CacheLayer, LayerChanges, can_overlay};
use landfall_host::tree_copy::{TreeSize, can_clone, copy_tree, has_foreign_files, measure_tree};
use landfall_model::cache::{
    CACHE_COPY_MAX, CacheFacts, CacheMethod, CacheSize, PackageCache, RebuildScope, bound_cache_copies,
    cache_mode, choose_cache_method, unify_cache_methods,
};

use landfall_model::home::TOOLS;

use crate::confine::expand_home;
use crate::settings::Confinement;

/// What a run gets of caches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CacheAccess {
    /// What it sees with changes of its own.
    pub layers: Vec<CacheLayer>,
    /// Copies that it can change, for it alone.
    pub write: Vec<PathBuf>,
    /// What it can read.
    pub read: Vec<PathBuf>,
    /// What its tools must be told.
    pub env: Vec<(OsString, OsString)>,
    /// What the user should know: caches that it does not get, or cannot change.
    pub notices: Vec<CacheNotice>,
}

/// Why a run gets a cache otherwise than the settings promise.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheNotice {
    /// The cache as the settings name it.
    pub cache: String,
    /// What is the matter, and what to do about it.
    pub what: String,
}

/// Who gets caches, and where.
pub(crate) struct CacheRequest<'a> {
    /// The caches that the settings name.
    pub caches: &'a [String],
    /// How the run is confined.
    pub level: Confinement,
    /// The home folder of the run.
    pub home: Option<&'a Path>,
    /// What is hidden from the run besides the home folder itself, without links.
    pub hidden: &'a [PathBuf],
    /// The environment of the run.
    pub env: &'a [(OsString, OsString)],
    /// Where what it changes is kept. Nobody else may be running with it.
    pub room: &'a Path,
}

/// Makes ready what a run gets of caches. Repeats safely: what the room has is gone on with. A cache of which no copy can be
/// made is read-only.
///
/// # Errors
/// When the room cannot be made.
pub(crate) fn prepare_caches(request: &CacheRequest<'_>) -> io::Result<CacheAccess> {
    let mut access = CacheAccess::default();
    if request.level == Confinement::Off {
        return Ok(access);
    }
    std::fs::create_dir_all(request.room)?; // it is tried there what this machine can do
    let CachePlan { entries, others, mut methods, notices } = plan_caches(request);
    access.notices = notices;
    if entries.is_empty() {
        let _ = std::fs::remove_dir(request.room); // something else may be in it by now
        return Ok(access);
    }
    for (entry, method) in entries.iter().zip(&mut methods) {
        // Whatever the reason, a full disk perhaps: the tool can do without changing it, and the run goes on.
        if let Err(error) = entry.make_for_method(*method) {
            entry.remove_made();
            *method = CacheMethod::ReadOnly;
            access
                .notices
                .push(entry.make_notice(format!("it is read-only, because no copy can be made: {error}")));
        }
    }
    unify_cache_methods(&variables_of(&entries), &mut methods);
    for (entry, method) in entries.iter().zip(methods) {
        entry.grant_access(method, &mut access);
    }
    // Their tools find the layer that is there under the first name.
    let has_layer = |entry: &CacheEntry<'_>| access.layers.iter().any(|layer| layer.path == entry.path);
    let names: Vec<_> =
        others.iter().filter(|other| has_layer(other)).filter_map(CacheEntry::variable_past_links).collect();
    access.env.extend(names);
    Ok(access)
}

/// What a run with these settings would get otherwise than they promise. The room must be there; nothing stays in it.
pub(crate) fn find_notices(request: &CacheRequest<'_>) -> Vec<CacheNotice> {
    match request.level {
        Confinement::Off => Vec::new(),
        Confinement::Write | Confinement::Isolated | Confinement::Strict => plan_caches(request).notices,
    }
}

/// The caches that a run gets, and how.
struct CachePlan<'a> {
    entries: Vec<CacheEntry<'a>>,
    /// Other names of the same folders.
    others: Vec<CacheEntry<'a>>,
    methods: Vec<CacheMethod>,
    notices: Vec<CacheNotice>,
}

fn plan_caches<'a>(request: &'a CacheRequest<'a>) -> CachePlan<'a> {
    let (mut entries, mut others, mut notices) = (Vec::<CacheEntry<'_>>::new(), Vec::new(), Vec::new());
    for name in request.caches {
        match find_cache(request, name) {
            // A folder cannot be put over itself: two names for one folder are one cache.
            Ok(Some(entry)) => match entries.iter().find(|other| other.path == entry.path) {
                Some(first) => {
                    notices.push(
                        entry.make_notice(format!("it is the same folder as `{}`, which counts", first.name)),
                    );
                    others.push(entry);
                }
                None => entries.push(entry),
            },
            Ok(None) => {}
            Err(what) => notices.push(CacheNotice { cache: name.clone(), what }),
        }
    }
    let facts: Vec<CacheFacts> = entries.iter().map(CacheEntry::collect_facts).collect();
    let mut methods: Vec<CacheMethod> = facts.iter().map(choose_cache_method).collect();
    bound_cache_copies(&facts, &mut methods);
    unify_cache_methods(&variables_of(&entries), &mut methods);
    for (entry, method) in entries.iter().zip(&methods) {
        if *method == CacheMethod::ReadOnly {
            notices.push(entry.make_notice(format!(
                "agents and checks can read it and not change it: this machine cannot put a layer over it, and a copy of it, \
                 or of all caches together, is too large (at most {} MiB and {} files each)",
                CACHE_COPY_MAX.bytes >> 20,
                CACHE_COPY_MAX.files
            )));
        }
    }
    CachePlan { entries, others, methods, notices }
}

fn variables_of(entries: &[CacheEntry<'_>]) -> Vec<Option<&'static str>> {
    entries.iter().map(CacheEntry::redirect_variable).collect()
}

/// The cache with this name in the settings; none if it is not there.
///
/// # Errors
/// Why a run must not see the folder that stands there.
fn find_cache<'a>(request: &'a CacheRequest<'a>, name: &'a str) -> Result<Option<CacheEntry<'a>>, String> {
    let known = PackageCache::find_by_path(name);
    let Some(named) = path_of(request, name, known) else { return Ok(None) };
    // An agent of an earlier run may have put a link in its place. Nothing is made behind such a link either.
    let real = real_path(&named);
    if request.is_hidden(&real) {
        return Err(format!(
            "agents and checks do not get it: it leads to `{}`, which is hidden",
            real.display()
        ));
    }
    if request.leads_elsewhere_at_home(&named, &real) {
        let variable = known.map_or("a variable of its tool", |known| known.redirect.variable);
        return Err(format!(
            "agents and checks do not get it: it is a link to `{}` in your home folder, where files of yours may be; if that is \
             meant, set {variable} in your environment",
            real.display()
        ));
    }
    let tool = tool_folder_of(&named, known);
    let entry = |path, is_there| CacheEntry { request, name, known, named: named.clone(), path, is_there };
    if known.is_some() && !tool.is_dir() {
        return Ok(Some(entry(real, false)));
    }
    // A mount needs a folder to be put on. It is made only in a folder that its tool has already.
    if known.is_some() {
        let _ = std::fs::create_dir_all(&named); // what cannot be made is not there for the tool either
    }
    let Ok(path) = named.canonicalize() else { return Ok(None) };
    Ok((path.is_dir() && !request.is_hidden(&path)).then(|| entry(path, true)))
}

/// The folder of a tool that its cache lies in.
fn tool_folder_of(named: &Path, known: Option<&PackageCache>) -> PathBuf {
    match known.map(|known| known.redirect.below) {
        Some(below) if !below.is_empty() => named.parent().unwrap_or(named).to_owned(),
        Some(_) | None => named.to_owned(),
    }
}

/// The path without links, as far as it is there.
fn real_path(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (above.canonicalize(), path.strip_prefix(above)) {
            return real.join(rest);
        }
    }
    path.to_owned()
}

impl CacheRequest<'_> {
    /// Whether this path without links is, holds or lies in a hidden place.
    fn is_hidden(&self, path: &Path) -> bool {
        self.hidden.iter().any(|hidden| path.starts_with(hidden) || hidden.starts_with(path))
    }

    /// Whether a link leads from this place to one in the home folder where no tool keeps its files. What is there is hidden
    /// with the home folder, and nobody has opened it.
    fn leads_elsewhere_at_home(&self, named: &Path, real: &Path) -> bool {
        const OF_TOOLS: [&str; 2] = [".cache", ".local/share"];
        let Some(home) = self.home else { return false };
        let real_home = real_path(home);
        let Ok(inside) = real.strip_prefix(&real_home) else { return false };
        let is_itself = [home, &real_home].iter().any(|home| named.strip_prefix(home) == Ok(inside));
        let is_of_tool = || {
            TOOLS.iter().any(|tool| inside.starts_with(tool))
                || OF_TOOLS.iter().any(|folder| inside.starts_with(folder) && inside != Path::new(folder))
        };
        !is_itself && !is_of_tool()
    }

    /// The folder that a variable of the run names; of a list, the first one: tools keep their caches there.
    fn folder_in(&self, variable: &str) -> Option<PathBuf> {
        let (_, value) = self.env.iter().find(|(name, _)| name == variable)?;
        std::env::split_paths(value).next().filter(|folder| folder.is_absolute())
    }
}

/// Variables that move all folders below a usual one.
const MOVED: [(&str, &str); 2] = [("~/.cache/", "XDG_CACHE_HOME"), ("~/.local/share/", "XDG_DATA_HOME")];

/// Where a cache is: at its usual place, or where a variable of the user's says.
fn path_of(request: &CacheRequest<'_>, name: &str, known: Option<&PackageCache>) -> Option<PathBuf> {
    let Some(known) = known else { return expand_home(request.home, name) };
    let redirect = &known.redirect;
    let own = Some(redirect.variable).filter(|_| redirect.value.is_empty());
    if let Some(folder) = own.and_then(|variable| request.folder_in(variable)) {
        return Some(join_if_named(&folder, redirect.below));
    }
    let moved = MOVED.iter().find_map(|(usual, variable)| {
        let rest = known.path.strip_prefix(usual)?;
        Some(request.folder_in(variable)?.join(rest))
    });
    moved.or_else(|| expand_home(request.home, name))
}

/// The folder of this name, or the folder itself without a name.
fn join_if_named(folder: &Path, name: &str) -> PathBuf {
    if name.is_empty() { folder.to_owned() } else { folder.join(name) }
}

/// One cache that a run gets.
struct CacheEntry<'a> {
    request: &'a CacheRequest<'a>,
    /// As the settings call it.
    name: &'a str,
    known: Option<&'static PackageCache>,
    /// Where the tool finds it.
    named: PathBuf,
    /// The same without links.
    path: PathBuf,
    /// Whether the folder of its tool is there.
    is_there: bool,
}

impl CacheEntry<'_> {
    fn make_notice(&self, what: String) -> CacheNotice {
        CacheNotice { cache: self.name.to_owned(), what }
    }

    fn redirect_variable(&self) -> Option<&'static str> {
        self.known.map(|known| known.redirect.variable)
    }

    fn collect_facts(&self) -> CacheFacts {
        let can_overlay = match self.request.level {
            _ if !self.is_there => false,
            Confinement::Off | Confinement::Write => false,
            Confinement::Isolated | Confinement::Strict => can_overlay(self.request.room, &self.path),
        };
        // An overlay asks neither for the size nor for a clone, and looking through a large cache takes time.
        let has_foreign_files =
            can_overlay && !rustix::process::geteuid().is_root() && has_foreign_files(&self.path);
        let (size, can_clone) = if can_overlay && !has_foreign_files {
            (CacheSize::default(), false)
        } else {
            self.cost_of_copy()
        };
        CacheFacts {
            level: self.request.level,
            can_overlay,
            has_foreign_files,
            can_clone,
            size,
            can_redirect: self.known.is_some(),
            is_there: self.is_there,
        }
    }

    /// What a copy would take, and whether it is a clone. One that was made already takes nothing.
    fn cost_of_copy(&self) -> (CacheSize, bool) {
        let is_made = [CacheMethod::Copy, CacheMethod::Redirect].iter().any(|method| self.is_made(*method));
        if is_made || self.known.is_some_and(|known| known.rebuilt == RebuildScope::All) {
            return (CacheSize::default(), false);
        }
        let can_clone = can_clone(&self.path, self.request.room);
        let max = TreeSize {
            files: CACHE_COPY_MAX.files,
            bytes: if can_clone { u64::MAX } else { CACHE_COPY_MAX.bytes },
        };
        let TreeSize { files, bytes } = measure_tree(&self.path, self.excluded_folders(), max);
        (CacheSize { files, bytes }, can_clone)
    }

    fn excluded_folders(&self) -> &'static [&'static str] {
        match self.known.map(|known| known.rebuilt) {
            Some(RebuildScope::Folders(names)) => names,
            Some(RebuildScope::All) | None => &[],
        }
    }

    /// Makes what a method needs.
    fn make_for_method(&self, method: CacheMethod) -> io::Result<()> {
        let own = self.own_folder();
        match method {
            CacheMethod::Shared | CacheMethod::ReadOnly => Ok(()),
            CacheMethod::Overlay => self.make_once(method, || {
                std::fs::create_dir_all(own.join("upper"))?;
                std::fs::create_dir_all(own.join("work"))
            }),
            CacheMethod::Copy => self.make_once(method, || self.copy_to(&own.join("copy"))),
            CacheMethod::Redirect => self.make_once(method, || self.copy_for_redirect()),
        }
    }

    /// Removes what a method has made, or a part of it.
    fn remove_made(&self) {
        let _ = remove_tree(&self.own_folder()); // what stays is removed before it is made again
        if let Some(known) = self.known {
            let _ = remove_tree(&join_if_named(&self.tool_folder(known), known.redirect.below)); // the same
        }
    }

    fn grant_access(&self, method: CacheMethod, access: &mut CacheAccess) {
        let own = self.own_folder();
        let layer = |changes| CacheLayer { path: self.path.clone(), changes };
        match method {
            CacheMethod::Shared => {}
            CacheMethod::Overlay => {
                let (upper, work) = (own.join("upper"), own.join("work"));
                access.layers.push(layer(LayerChanges::Overlay { upper, work }));
                access.env.extend(self.variable_past_links());
            }
            CacheMethod::Copy => {
                access.layers.push(layer(LayerChanges::Copy(own.join("copy"))));
                access.env.extend(self.variable_past_links());
            }
            CacheMethod::Redirect => self.redirect_tool(access),
            CacheMethod::ReadOnly => access.read.push(self.path.clone()),
        }
        let mode = cache_mode(method, self.request.level);
        let variables = self.known.map_or(&[][..], |known| known.variables_for_mode(mode));
        access.env.extend(variables.iter().map(|(name, value)| (name.into(), value.into())));
    }

    /// The variable that leads the tool to the folder without links: a link in the hidden home folder is not there for it.
    fn variable_past_links(&self) -> Option<(OsString, OsString)> {
        let redirect = &self.known.filter(|_| self.named != self.path)?.redirect;
        let tool = if redirect.below.is_empty() { &self.named } else { self.named.parent()? };
        let tool = tool.canonicalize().ok()?;
        // A link within the folder of the tool is seen with that folder.
        let is_there = join_if_named(&tool, redirect.below) == self.path;
        is_there.then(|| (redirect.variable.into(), join_if_named(&tool, redirect.value).into_os_string()))
    }

    /// Sends the tool to its folder. Caches of the same tool share that folder.
    fn redirect_tool(&self, access: &mut CacheAccess) {
        let known = self.known.expect("only a known cache is redirected");
        let tool = self.tool_folder(known);
        if !access.write.contains(&tool) {
            let value = join_if_named(&tool, known.redirect.value);
            access.env.push((known.redirect.variable.into(), value.into_os_string()));
            access.write.push(tool);
        }
    }

    /// Puts a copy into a folder of the tool's own. An earlier run may have changed all of that folder.
    fn copy_for_redirect(&self) -> io::Result<()> {
        let known = self.known.expect("only a known cache is redirected");
        let tool = self.tool_folder(known);
        std::fs::create_dir_all(&tool)?;
        for file in known.redirect.files {
            let original = self.named.with_file_name(file);
            if original.is_file() && !self.request.is_hidden(&real_path(&original)) {
                copy_over(&original, &tool.join(file))?;
            }
        }
        let copy = join_if_named(&tool, known.redirect.below);
        remove_tree(&copy)?;
        self.copy_to(&copy)
    }

    fn tool_folder(&self, known: &PackageCache) -> PathBuf {
        self.request.room.join(known.redirect.variable)
    }

    fn copy_to(&self, folder: &Path) -> io::Result<()> {
        match self.known.map(|known| known.rebuilt) {
            _ if !self.is_there => std::fs::create_dir_all(folder),
            Some(RebuildScope::All) => std::fs::create_dir_all(folder),
            Some(RebuildScope::Folders(_)) | None => copy_tree(&self.path, folder, self.excluded_folders()),
        }
    }

    /// The folder for this cache alone.
    fn own_folder(&self) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        let hash = blake3::hash(self.path.as_os_str().as_bytes()).to_hex();
        self.request.room.join(&hash.as_str()[..16])
    }

    /// Says that what a method needs was made, and by which method.
    fn method_note_path(&self) -> PathBuf {
        self.own_folder().join("method")
    }

    fn is_made(&self, method: CacheMethod) -> bool {
        std::fs::read_to_string(self.method_note_path()).is_ok_and(|noted| noted == word_of(method))
    }

    /// Does `make` unless it was done. Half of it, or what another method has made, goes before.
    fn make_once(&self, method: CacheMethod, make: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if self.is_made(method) {
            return Ok(());
        }
        let own = self.own_folder();
        remove_tree(&own)?;
        std::fs::create_dir_all(&own)?;
        make()?;
        write_atomic(&self.method_note_path(), word_of(method).as_bytes())
    }
}

/// Puts a copy in the place of whatever is there, links included, without writing through one.
fn copy_over(from: &Path, to: &Path) -> io::Result<()> {
    remove_tree(to)?;
    let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut File::open(from)?, &mut target)?;
    Ok(())
}

fn word_of(method: CacheMethod) -> &'static str {
    match method {
        CacheMethod::Shared => "shared",
        CacheMethod::Overlay => "overlay",
        CacheMethod::Copy => "copy",
        CacheMethod::Redirect => "redirect",
        CacheMethod::ReadOnly => "read-only",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        folder: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            for place in ["home/.cargo/registry/cache", "home/.cargo/registry/src", "home/.npm"] {
                std::fs::create_dir_all(folder.path().join(place)).expect("ours");
            }
            for file in ["registry/cache/a.crate", "registry/src/lib.rs", "config.toml", "credentials.toml"] {
                std::fs::write(folder.path().join("home/.cargo").join(file), "theirs").expect("ours");
            }
            Self { folder }
        }

        fn home_path(&self) -> PathBuf {
            self.folder.path().canonicalize().expect("there").join("home")
        }

        fn room_path(&self) -> PathBuf {
            self.folder.path().canonicalize().expect("there").join("room")
        }

        fn prepare(&self, level: Confinement, env: &[(&str, &str)]) -> CacheAccess {
            self.prepare_these(&["~/.cargo/registry", "~/.cargo/git", "~/.npm"], level, env)
        }

        fn prepare_these(&self, caches: &[&str], level: Confinement, env: &[(&str, &str)]) -> CacheAccess {
            let caches: Vec<String> = caches.iter().map(|name| (*name).to_owned()).collect();
            let env: Vec<(OsString, OsString)> =
                env.iter().map(|(name, value)| (name.into(), value.into())).collect();
            let (home, room) = (self.home_path(), self.room_path());
            let hidden = [home.join(".ssh"), home.join(".cargo/credentials.toml")];
            let request = CacheRequest {
                caches: &caches,
                level,
                home: Some(&home),
                hidden: &hidden,
                env: &env,
                room: &room,
            };
            prepare_caches(&request).expect("there is room")
        }

        /// Puts a link to `target` in the place of `name` in the home folder.
        fn make_link(&self, name: &str, target: &Path) {
            let place = self.home_path().join(name);
            remove_tree(&place).expect("ours");
            std::os::unix::fs::symlink(target, place).expect("ours");
        }
    }

    fn value_of<'a>(access: &'a CacheAccess, name: &str) -> Option<&'a OsString> {
        access.env.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    #[test]
    fn without_mounts_the_tool_is_sent_to_a_copy_without_logins() {
        let scene = Scene::new();
        let access = scene.prepare(Confinement::Write, &[]);
        let cargo = scene.room_path().join("CARGO_HOME");
        assert_eq!(value_of(&access, "CARGO_HOME"), Some(&cargo.clone().into_os_string()));
        assert_eq!(access.write, [cargo.clone(), scene.room_path().join("npm_config_cache")]);
        assert_eq!(access.layers, []);
        assert!(cargo.join("registry/cache/a.crate").is_file() && cargo.join("config.toml").is_file());
        assert!(!cargo.join("registry/src").exists(), "unpacked again by the tool");
        assert!(cargo.join("git").is_dir(), "the cache was not there before");
        assert!(!cargo.join("credentials.toml").exists());
    }

    #[test]
    fn what_a_run_left_in_its_copy_is_there_for_the_next_run_with_the_same_room() {
        let scene = Scene::new();
        scene.prepare(Confinement::Write, &[]);
        let left = scene.room_path().join("CARGO_HOME/registry/cache/b.crate");
        std::fs::write(&left, "new").expect("ours");
        scene.prepare(Confinement::Write, &[]);
        assert!(left.is_file());
        std::fs::remove_dir_all(scene.room_path()).expect("ours");
        scene.prepare(Confinement::Write, &[]);
        assert!(!left.exists());
    }

    #[test]
    fn a_cache_that_a_variable_moves_is_found_there() {
        let scene = Scene::new();
        let moved = scene.folder.path().canonicalize().expect("there").join("elsewhere");
        std::fs::create_dir_all(moved.join("registry/cache")).expect("ours");
        std::fs::write(moved.join("registry/cache/moved.crate"), "x").expect("ours");
        let env = [("CARGO_HOME", moved.to_str().expect("plain"))];
        scene.prepare(Confinement::Write, &env);
        assert!(scene.room_path().join("CARGO_HOME/registry/cache/moved.crate").is_file());
    }

    #[test]
    fn a_level_with_mounts_gets_a_layer_for_each_cache_and_a_closed_network_an_offline_tool() {
        let scene = Scene::new();
        for (level, offline) in [(Confinement::Isolated, None), (Confinement::Strict, Some("true"))] {
            let access = scene.prepare(level, &[]);
            let paths: Vec<&PathBuf> = access.layers.iter().map(|layer| &layer.path).collect();
            for CacheLayer { path, changes } in &access.layers {
                let is_overlay = matches!(changes, LayerChanges::Overlay { .. });
                assert_eq!(is_overlay, can_overlay(&scene.room_path(), path), "{path:?}: {changes:?}");
            }
            let expected = [".cargo/registry", ".cargo/git", ".npm"].map(|name| scene.home_path().join(name));
            assert_eq!(paths, expected.iter().collect::<Vec<_>>(), "{level:?}");
            assert_eq!(access.write, Vec::<PathBuf>::new());
            let mode = value_of(&access, "CARGO_NET_OFFLINE").and_then(|value| value.to_str());
            assert_eq!(mode, offline, "{level:?}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_cache_opens_no_secret() {
        for target in ["home/.ssh", "home/.ssh/below", "home", ""] {
            for level in [Confinement::Write, Confinement::Isolated] {
                let scene = Scene::new();
                std::fs::create_dir_all(scene.home_path().join(".ssh/below")).expect("ours");
                let target = scene.folder.path().canonicalize().expect("there").join(target);
                scene.make_link(".npm", &target);
                scene.make_link("go", &scene.home_path().join(".ssh"));
                let access = scene.prepare_these(&["~/.npm", "~/go/pkg"], level, &[]);
                let told: Vec<&str> = access.notices.iter().map(|notice| notice.cache.as_str()).collect();
                assert_eq!(told, ["~/.npm", "~/go/pkg"], "{level:?} {target:?}");
                let nothing = CacheAccess { notices: access.notices.clone(), ..CacheAccess::default() };
                assert_eq!(access, nothing, "{level:?} {target:?}");
                assert!(!scene.home_path().join(".ssh/pkg").exists());
            }
        }
    }

    #[test]
    fn a_link_to_an_ordinary_folder_at_home_opens_nothing_and_the_user_is_told() {
        for level in [Confinement::Write, Confinement::Isolated] {
            for (target, is_open) in [("Documents/deep", false), ("src", false), (".cache/npm", true)] {
                let scene = Scene::new();
                let target = scene.home_path().join(target);
                std::fs::create_dir_all(&target).expect("ours");
                std::fs::write(target.join("letter"), "private").expect("ours");
                scene.make_link(".npm", &target);
                let access = scene.prepare_these(&["~/.npm"], level, &[]);
                assert_eq!(access.notices.is_empty(), is_open, "{level:?} {target:?}: {access:?}");
                assert_eq!(
                    (access.layers.is_empty(), access.read.is_empty(), access.write.is_empty()),
                    match (is_open, level) {
                        (false, _) => (true, true, true),
                        (true, Confinement::Write) => (true, true, false),
                        (true, _) => (false, true, true),
                    },
                    "{level:?} {target:?}"
                );
                // What the user says by the variable of the tool is meant.
                let named = [("npm_config_cache", target.to_str().expect("plain"))];
                let access = scene.prepare_these(&["~/.npm"], level, &named);
                assert_eq!(access.notices, [], "{level:?} {target:?}");
            }
        }
    }

    #[test]
    fn two_caches_that_are_one_folder_get_one_layer() {
        let scene = Scene::new();
        let elsewhere = scene.folder.path().canonicalize().expect("there").join("elsewhere");
        std::fs::create_dir(&elsewhere).expect("ours");
        scene.make_link(".npm", &elsewhere);
        scene.make_link(".cargo/git", &elsewhere);
        let access = scene.prepare(Confinement::Isolated, &[]);
        let of_both = access.layers.iter().filter(|layer| layer.path == elsewhere).count();
        assert_eq!(of_both, 1, "{access:?}");
        assert!(access.notices.iter().any(|notice| notice.cache == "~/.npm"), "{:?}", access.notices);
    }

    #[test]
    fn folders_of_tools_that_the_user_does_not_have_are_not_made() {
        for level in [Confinement::Write, Confinement::Isolated, Confinement::Strict] {
            let scene = Scene::new();
            remove_tree(&scene.home_path().join(".npm")).expect("ours");
            let names = ["~/.cargo/git", "~/.npm", "~/go/pkg", "~/.cache/uv", "~/mine"];
            let access = scene.prepare_these(&names, level, &[]);
            for place in [".npm", "go", ".cache", "mine"] {
                assert!(!scene.home_path().join(place).exists(), "{level:?} {place}");
            }
            // The tools have an empty one all the same.
            for variable in ["npm_config_cache", "GOPATH", "UV_CACHE_DIR"] {
                let folder = value_of(&access, variable).map(PathBuf::from).expect("told");
                assert!(folder.starts_with(scene.room_path()) && folder.is_dir(), "{level:?} {variable}");
                assert!(access.write.contains(&folder), "{level:?} {variable}");
            }
            assert_eq!(access.notices, [], "{level:?}");
        }
    }

    #[test]
    fn the_user_is_told_what_is_read_only_and_why() {
        let scene = Scene::new();
        std::fs::create_dir_all(scene.room_path()).expect("ours");
        std::fs::write(scene.room_path().join("npm_config_cache"), "in the way").expect("ours");
        let access = scene.prepare(Confinement::Write, &[]);
        let [notice] = access.notices.as_slice() else { panic!("{:?}", access.notices) };
        assert!(notice.cache == "~/.npm" && notice.what.contains("no copy can be made"), "{notice:?}");
    }

    #[test]
    fn nothing_is_written_through_a_link_in_the_folder_of_a_tool() {
        let scene = Scene::new();
        let victim = scene.home_path().join("victim");
        std::fs::write(&victim, "mine").expect("ours");
        std::fs::create_dir_all(scene.room_path().join("CARGO_HOME")).expect("ours");
        let config = scene.room_path().join("CARGO_HOME/config.toml");
        std::os::unix::fs::symlink(&victim, &config).expect("ours");
        scene.prepare(Confinement::Write, &[]);
        assert_eq!(std::fs::read_to_string(&victim).expect("there"), "mine");
        assert!(config.symlink_metadata().expect("there").is_file());
    }

    #[test]
    fn a_tool_with_one_cache_too_large_for_a_copy_keeps_its_usual_folder() {
        let scene = Scene::new();
        let large = File::create(scene.home_path().join(".cargo/registry/cache/large")).expect("ours");
        large.set_len(CACHE_COPY_MAX.bytes + 1).expect("sparse");
        let access = scene.prepare(Confinement::Write, &[]);
        if !can_clone(&scene.home_path().join(".cargo/registry"), &scene.room_path()) {
            assert_eq!(value_of(&access, "CARGO_HOME"), None);
            assert_eq!(
                access.read,
                [".cargo/registry", ".cargo/git"].map(|name| scene.home_path().join(name))
            );
            assert_eq!(
                access.write,
                [scene.room_path().join("npm_config_cache")],
                "other tools are not concerned"
            );
            assert_eq!(access.notices.len(), 2, "both caches of the tool: {:?}", access.notices);
        } else {
            // The copy shares its blocks with the original, so it takes no room, however large it is.
            let cargo = scene.room_path().join("CARGO_HOME");
            assert_eq!(value_of(&access, "CARGO_HOME"), Some(&cargo.clone().into_os_string()));
            let copy = cargo.join("registry/cache/large");
            assert_eq!(std::fs::metadata(&copy).expect("copied").len(), CACHE_COPY_MAX.bytes + 1);
            std::fs::write(&copy, "changed").expect("its own");
            let original = scene.home_path().join(".cargo/registry/cache/large");
            assert_eq!(std::fs::metadata(original).expect("there").len(), CACHE_COPY_MAX.bytes + 1);
        }
    }

    #[test]
    fn a_cache_of_which_no_copy_can_be_made_is_read_only() {
        let scene = Scene::new();
        std::fs::create_dir_all(scene.room_path()).expect("ours");
        std::fs::write(scene.room_path().join("CARGO_HOME"), "in the way").expect("ours");
        let access = scene.prepare(Confinement::Write, &[]);
        assert_eq!(value_of(&access, "CARGO_HOME"), None);
        assert_eq!(value_of(&access, "CARGO_NET_OFFLINE").and_then(|value| value.to_str()), Some("true"));
        assert_eq!(access.read, [".cargo/registry", ".cargo/git"].map(|name| scene.home_path().join(name)));
    }

    #[test]
    fn caches_that_lists_and_base_folders_move_are_found_there() {
        let scene = Scene::new();
        let top = scene.folder.path().canonicalize().expect("there");
        let path = |name: &str| top.join(name);
        for place in ["go1", "cache/pip", "data/pnpm"] {
            std::fs::create_dir_all(path(place)).expect("ours");
        }
        let list = format!("{}:{}", path("go1").display(), path("go2").display());
        let (cache, data) = (path("cache").display().to_string(), path("data").display().to_string());
        let env = [("GOPATH", list.as_str()), ("XDG_CACHE_HOME", &cache), ("XDG_DATA_HOME", &data)];
        let names = ["~/go/pkg", "~/.cache/pip", "~/.local/share/pnpm", "~/.npm"];
        let access = scene.prepare_these(&names, Confinement::Isolated, &env);
        let paths: Vec<PathBuf> = access.layers.into_iter().map(|layer| layer.path).collect();
        assert_eq!(paths, ["go1/pkg", "cache/pip", "data/pnpm", "home/.npm"].map(path));
    }

    #[test]
    fn a_tool_whose_cache_is_a_link_is_sent_to_the_folder_behind_it() {
        let scene = Scene::new();
        let elsewhere = scene.folder.path().canonicalize().expect("there").join("elsewhere");
        for place in ["npm", "cargo/registry"] {
            std::fs::create_dir_all(elsewhere.join(place)).expect("ours");
        }
        scene.make_link(".npm", &elsewhere.join("npm"));
        scene.make_link(".cargo", &elsewhere.join("cargo"));
        let access = scene.prepare(Confinement::Isolated, &[]);
        let value = |name| value_of(&access, name).map(PathBuf::from);
        assert_eq!(value("npm_config_cache"), Some(elsewhere.join("npm")));
        assert_eq!(value("CARGO_HOME"), Some(elsewhere.join("cargo")));
        assert!(access.layers.iter().all(|layer| layer.path.starts_with(&elsewhere)));
    }

    #[test]
    fn without_a_sandbox_there_is_nothing_to_prepare() {
        let scene = Scene::new();
        assert_eq!(scene.prepare(Confinement::Off, &[]), CacheAccess::default());
        assert!(!scene.room_path().exists());
    }
}
