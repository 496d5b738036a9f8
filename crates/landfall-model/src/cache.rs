//! Caches of package managers: which are known, and how a run gets one that it can change without changing the user's.
//!
//! What an agent or a check leaves in a cache would run later: in the user's own builds, in other tasks and in other
//! verifications. So each workspace and each lane has a layer of its own.

use crate::sandbox::Confinement;

/// How a run gets a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheMethod {
    /// It is the user's own: there is no sandbox.
    Shared,
    /// Changes go to a layer over it.
    Overlay,
    /// A copy stands in its place.
    Copy,
    /// A copy elsewhere, which a variable names.
    Redirect,
    /// It can be read. The tool is told to do without changing it.
    ReadOnly,
}

/// What the choice of a method depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheFacts {
    /// How the run is confined.
    pub level: Confinement,
    /// Whether an overlay can be put up whose changes go to the state folder.
    pub can_overlay: bool,
    /// Whether files of others were seen in it, which an overlay of an ordinary user could not change.
    pub has_foreign_files: bool,
    /// Whether a copy shares its content with the original until one of them changes.
    pub can_clone: bool,
    /// How much a copy would take.
    pub size: CacheSize,
    /// Whether a variable tells the tool to use another folder.
    pub can_redirect: bool,
    /// Whether the folder of the tool is there.
    pub is_there: bool,
}

/// How much there is in a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheSize {
    /// Files, folders and links.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// What a copy may be made of: it is made before the first run in a workspace, and before each verification.
pub const CACHE_COPY_MAX: CacheSize = CacheSize { files: 50_000, bytes: 1 << 30 };

/// What the copies that one workspace or lane gets may take together: every slot has such a room.
pub const CACHE_COPIES_MAX: CacheSize = CacheSize { files: 100_000, bytes: 2 << 30 };

/// Makes read-only what does not fit any more: copies are made in this order, and together they have a bound. A clone takes no
/// bytes.
pub fn bound_cache_copies(facts: &[CacheFacts], methods: &mut [CacheMethod]) {
    let mut total = CacheSize::default();
    for (facts, method) in std::iter::zip(facts, methods) {
        if !matches!(method, CacheMethod::Copy | CacheMethod::Redirect) {
            continue;
        }
        let bytes = if facts.can_clone { 0 } else { facts.size.bytes };
        let next = CacheSize {
            files: total.files.saturating_add(facts.size.files),
            bytes: total.bytes.saturating_add(bytes),
        };
        if next.files > CACHE_COPIES_MAX.files || next.bytes > CACHE_COPIES_MAX.bytes {
            *method = CacheMethod::ReadOnly;
        } else {
            total = next;
        }
    }
}

/// How a run gets a cache.
///
/// The folder of a tool that the user does not have is not made for them: the tool is sent to an empty one.
#[must_use]
pub fn choose_cache_method(facts: &CacheFacts) -> CacheMethod {
    let fits = facts.size.files <= CACHE_COPY_MAX.files
        && (facts.can_clone || facts.size.bytes <= CACHE_COPY_MAX.bytes);
    match facts.level {
        Confinement::Off => CacheMethod::Shared,
        Confinement::Write if fits && facts.can_redirect => CacheMethod::Redirect,
        Confinement::Write => CacheMethod::ReadOnly,
        Confinement::Isolated | Confinement::Strict if !facts.is_there && facts.can_redirect => {
            CacheMethod::Redirect
        }
        Confinement::Isolated | Confinement::Strict => {
            if facts.can_overlay && !facts.has_foreign_files {
                CacheMethod::Overlay
            } else if fits {
                CacheMethod::Copy
            } else {
                CacheMethod::ReadOnly
            }
        }
    }
}

/// Makes read-only what shares its variable with a cache that is read-only: the variable would lead the tool away from it.
pub fn unify_cache_methods(variables: &[Option<&'static str>], methods: &mut [CacheMethod]) {
    let read_only: Vec<&str> = std::iter::zip(variables, &*methods)
        .filter(|(_, method)| **method == CacheMethod::ReadOnly)
        .filter_map(|(variable, _)| *variable)
        .collect();
    for (variable, method) in std::iter::zip(variables, methods) {
        if *method == CacheMethod::Redirect && variable.is_some_and(|variable| read_only.contains(&variable))
        {
            *method = CacheMethod::ReadOnly;
        }
    }
}

/// What a tool must be told so that it works with the cache it gets.
#[must_use]
pub fn cache_mode(method: CacheMethod, level: Confinement) -> CacheMode {
    match (method, level) {
        (CacheMethod::Shared, _) => CacheMode::Ordinary,
        (_, Confinement::Strict) => CacheMode::Offline,
        (CacheMethod::ReadOnly, _) => CacheMode::ReadOnly,
        (CacheMethod::Overlay | CacheMethod::Copy | CacheMethod::Redirect, _) => CacheMode::Ordinary,
    }
}

/// How a tool can use its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheMode {
    /// It downloads what is missing.
    Ordinary,
    /// There is no network.
    Offline,
    /// There is a network, and nothing can be kept.
    ReadOnly,
}

/// A cache of a package manager, at its usual place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackageCache {
    /// Where it is, with `~` for the home folder.
    pub path: &'static str,
    /// How the tool is told to use another one.
    pub redirect: CacheRedirect,
    /// What of it the tool makes again from the rest: never copied.
    pub rebuilt: RebuildScope,
    /// What tells the tool that there is no network.
    pub offline: &'static [(&'static str, &'static str)],
    /// What makes the tool work with a cache that it cannot change.
    pub read_only: &'static [(&'static str, &'static str)],
}

/// A variable that names the folder of a tool, in which its cache lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheRedirect {
    /// The variable.
    pub variable: &'static str,
    /// Where the cache lies below the folder of the tool; empty for the folder itself.
    pub below: &'static str,
    /// What below the folder of the tool the variable names; empty for the folder itself.
    pub value: &'static str,
    /// Files of the folder that the tool needs besides its cache. Never a credential.
    pub files: &'static [&'static str],
}

/// What of a cache a tool makes again from the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebuildScope {
    /// These folders at its top.
    Folders(&'static [&'static str]),
    /// All of it: it holds results of builds.
    All,
}

impl PackageCache {
    /// The cache at this path, as settings write it; none if it is not a known one.
    #[must_use]
    pub fn find_by_path(path: &str) -> Option<&'static Self> {
        let path = path.trim_end_matches('/');
        KNOWN_CACHES.iter().find(|known| known.path == path)
    }

    /// The variables for a tool with a cache in this mode.
    #[must_use]
    pub fn variables_for_mode(&self, mode: CacheMode) -> &'static [(&'static str, &'static str)] {
        match mode {
            CacheMode::Ordinary => &[],
            CacheMode::Offline => self.offline,
            CacheMode::ReadOnly => self.read_only,
        }
    }
}

const CARGO_OFFLINE: &[(&str, &str)] = &[("CARGO_NET_OFFLINE", "true")];
const NPM_OFFLINE: &[(&str, &str)] = &[("npm_config_offline", "true")];
const GO_OFFLINE: &[(&str, &str)] = &[("GOPROXY", "off")];
const ALL_COPIED: RebuildScope = RebuildScope::Folders(&[]);

const fn redirect_variable(variable: &'static str) -> CacheRedirect {
    CacheRedirect { variable, below: "", value: "", files: &[] }
}

const fn redirect_in_cargo_home(below: &'static str) -> CacheRedirect {
    CacheRedirect { variable: "CARGO_HOME", below, value: "", files: &["config.toml", "config"] }
}

/// The caches that `landfall init` opens, and that need no trust: nothing in them is a secret of the user.
pub const KNOWN_CACHES: &[PackageCache] = &[
    PackageCache {
        path: "~/.cargo/registry",
        redirect: redirect_in_cargo_home("registry"),
        rebuilt: RebuildScope::Folders(&["src"]), // unpacked from `cache`
        offline: CARGO_OFFLINE,
        read_only: CARGO_OFFLINE,
    },
    PackageCache {
        path: "~/.cargo/git",
        redirect: redirect_in_cargo_home("git"),
        rebuilt: RebuildScope::Folders(&["checkouts"]), // checked out from `db`
        offline: CARGO_OFFLINE,
        read_only: CARGO_OFFLINE,
    },
    PackageCache {
        path: "~/.npm",
        redirect: redirect_variable("npm_config_cache"),
        rebuilt: RebuildScope::Folders(&["_logs"]),
        offline: NPM_OFFLINE,
        read_only: NPM_OFFLINE,
    },
    PackageCache {
        path: "~/.local/share/pnpm",
        redirect: CacheRedirect { variable: "npm_config_store_dir", below: "", value: "store", files: &[] },
        rebuilt: ALL_COPIED,
        offline: NPM_OFFLINE,
        read_only: NPM_OFFLINE,
    },
    PackageCache {
        path: "~/.cache/yarn",
        redirect: redirect_variable("YARN_CACHE_FOLDER"),
        rebuilt: ALL_COPIED,
        offline: &[("YARN_ENABLE_OFFLINE_MODE", "1")],
        read_only: &[("YARN_ENABLE_OFFLINE_MODE", "1")],
    },
    PackageCache {
        path: "~/.bun/install/cache",
        redirect: redirect_variable("BUN_INSTALL_CACHE_DIR"),
        rebuilt: ALL_COPIED,
        offline: &[], // it has no such mode
        read_only: &[],
    },
    PackageCache {
        path: "~/go/pkg",
        // The checksums of modules lie beside them, so the variable of modules alone is not enough.
        redirect: CacheRedirect { variable: "GOPATH", below: "pkg", value: "", files: &[] },
        rebuilt: ALL_COPIED,
        offline: GO_OFFLINE,
        read_only: GO_OFFLINE,
    },
    PackageCache {
        path: "~/.cache/go-build",
        redirect: redirect_variable("GOCACHE"),
        rebuilt: RebuildScope::All,
        offline: &[],
        read_only: &[],
    },
    PackageCache {
        path: "~/.cache/uv",
        redirect: redirect_variable("UV_CACHE_DIR"),
        rebuilt: ALL_COPIED,
        offline: &[("UV_OFFLINE", "1")],
        read_only: &[("UV_NO_CACHE", "1")], // it has to write to its cache even if it is offline
    },
    PackageCache {
        path: "~/.cache/pip",
        redirect: redirect_variable("PIP_CACHE_DIR"),
        rebuilt: ALL_COPIED,
        offline: &[("PIP_NO_INDEX", "1")],
        read_only: &[("PIP_NO_CACHE_DIR", "1")], // it has no mode in which the cache is enough
    },
    PackageCache {
        path: "~/.cache/pypoetry",
        redirect: redirect_variable("POETRY_CACHE_DIR"),
        rebuilt: ALL_COPIED,
        offline: &[],
        read_only: &[],
    },
    PackageCache {
        path: "~/.local/share/virtualenv",
        redirect: redirect_variable("VIRTUALENV_OVERRIDE_APP_DATA"),
        rebuilt: ALL_COPIED,
        offline: &[],
        read_only: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const SMALL: CacheSize = CacheSize { files: 10, bytes: 10 };
    const LONG: CacheSize = CacheSize { files: 10, bytes: CACHE_COPY_MAX.bytes + 1 };
    const MANY: CacheSize = CacheSize { files: CACHE_COPY_MAX.files + 1, bytes: 10 };

    fn facts(level: Confinement, size: CacheSize) -> CacheFacts {
        CacheFacts {
            level,
            can_overlay: true,
            has_foreign_files: false,
            can_clone: false,
            size,
            can_redirect: true,
            is_there: true,
        }
    }

    #[test]
    fn a_tool_whose_folder_is_missing_is_sent_to_an_empty_one() {
        for level in [Confinement::Write, Confinement::Isolated, Confinement::Strict] {
            let missing = CacheFacts { is_there: false, ..facts(level, CacheSize::default()) };
            assert_eq!(choose_cache_method(&missing), CacheMethod::Redirect, "{level:?}");
        }
    }

    #[test]
    fn copies_have_a_bound_together() {
        use CacheMethod::{Copy, Overlay, ReadOnly, Redirect};
        let each = CacheSize { files: 10, bytes: CACHE_COPIES_MAX.bytes / 2 };
        let of = |size| facts(Confinement::Isolated, size);
        let many = CacheSize { files: CACHE_COPIES_MAX.files, bytes: 0 };
        let mut methods = [Copy, Overlay, Redirect, Copy, Copy];
        bound_cache_copies(&[of(each), of(LONG), of(each), of(each), of(SMALL)], &mut methods);
        assert_eq!(methods, [Copy, Overlay, Redirect, ReadOnly, ReadOnly]);
        let mut methods = [Copy, Copy, Copy];
        let cloned = CacheFacts { can_clone: true, ..of(LONG) };
        bound_cache_copies(&[cloned, cloned, of(many)], &mut methods);
        assert_eq!(methods, [Copy, Copy, ReadOnly], "clones take no bytes, but files");
    }

    #[test]
    fn a_level_with_mounts_takes_an_overlay_then_a_copy_then_nothing() {
        for level in [Confinement::Isolated, Confinement::Strict] {
            let method = |facts: CacheFacts| choose_cache_method(&facts);
            assert_eq!(method(facts(level, MANY)), CacheMethod::Overlay);
            let foreign = |size| CacheFacts { has_foreign_files: true, ..facts(level, size) };
            assert_eq!(method(foreign(SMALL)), CacheMethod::Copy);
            let without = |size| CacheFacts { can_overlay: false, ..facts(level, size) };
            assert_eq!(method(without(SMALL)), CacheMethod::Copy);
            assert_eq!(method(without(LONG)), CacheMethod::ReadOnly);
            assert_eq!(method(without(MANY)), CacheMethod::ReadOnly);
            let cloned = |size| CacheFacts { can_clone: true, ..without(size) };
            assert_eq!(method(cloned(LONG)), CacheMethod::Copy, "a clone takes no room");
            assert_eq!(method(cloned(MANY)), CacheMethod::ReadOnly, "each file takes time");
        }
    }

    #[test]
    fn without_mounts_a_variable_names_the_copy() {
        let at_write = |size| facts(Confinement::Write, size);
        assert_eq!(choose_cache_method(&at_write(SMALL)), CacheMethod::Redirect);
        assert_eq!(choose_cache_method(&at_write(LONG)), CacheMethod::ReadOnly);
        let unknown = CacheFacts { can_redirect: false, ..at_write(SMALL) };
        assert_eq!(choose_cache_method(&unknown), CacheMethod::ReadOnly);
        assert_eq!(choose_cache_method(&facts(Confinement::Off, SMALL)), CacheMethod::Shared);
    }

    #[test]
    fn a_read_only_cache_takes_those_of_its_variable_with_it() {
        use CacheMethod::{Copy, ReadOnly, Redirect};
        let (cargo, npm) = (Some("CARGO_HOME"), Some("npm_config_cache"));
        let mut methods = [Redirect, ReadOnly, Redirect, ReadOnly];
        unify_cache_methods(&[cargo, cargo, npm, None], &mut methods);
        assert_eq!(methods, [ReadOnly, ReadOnly, Redirect, ReadOnly]);
        let mut layers = [Copy, ReadOnly];
        unify_cache_methods(&[cargo, cargo], &mut layers);
        assert_eq!(layers, [Copy, ReadOnly], "a layer needs no variable");
    }

    #[test]
    fn no_method_but_that_without_a_sandbox_lets_a_run_change_the_cache() {
        for level in [Confinement::Write, Confinement::Isolated, Confinement::Strict] {
            for bits in 0..64_u32 {
                let bit = |at: u32| bits & (1 << at) != 0;
                let size = if bit(4) { MANY } else { SMALL };
                let facts = CacheFacts {
                    level,
                    can_overlay: bit(0),
                    has_foreign_files: bit(1),
                    can_clone: bit(2),
                    size,
                    can_redirect: bit(3),
                    is_there: bit(5),
                };
                assert_ne!(choose_cache_method(&facts), CacheMethod::Shared, "{facts:?}");
            }
        }
    }

    #[test]
    fn a_tool_is_offline_where_there_is_no_network() {
        assert_eq!(cache_mode(CacheMethod::Overlay, Confinement::Strict), CacheMode::Offline);
        assert_eq!(cache_mode(CacheMethod::ReadOnly, Confinement::Strict), CacheMode::Offline);
        assert_eq!(cache_mode(CacheMethod::ReadOnly, Confinement::Isolated), CacheMode::ReadOnly);
        assert_eq!(cache_mode(CacheMethod::Redirect, Confinement::Write), CacheMode::Ordinary);
    }

    #[test]
    fn every_known_cache_lies_in_the_home_folder_and_holds_no_secret() {
        for known in KNOWN_CACHES {
            let place = known.path.strip_prefix("~/").expect("in the home folder");
            let place = Path::new(place);
            let of_secret = |secret: &str| place.starts_with(secret) || Path::new(secret).starts_with(place);
            assert!(!crate::home::SECRETS.into_iter().any(of_secret), "{place:?}");
            assert_eq!(PackageCache::find_by_path(known.path), Some(known));
            for file in known.redirect.files {
                assert!(!file.contains("credential"), "{file}");
            }
        }
        assert_eq!(PackageCache::find_by_path("~/.npm/"), PackageCache::find_by_path("~/.npm"));
        assert_eq!(PackageCache::find_by_path("~/.ssh"), None);
    }
}
