//! Which paths the sandbox kept a failing check from using: found in its output, compared with what its run was allowed.
//!
//! The words are those of the kernel's errors EACCES, EPERM and EROFS, as common tools print them. A path counts only if the
//! rules of the run deny it: a file that the user may not change either is no matter of the sandbox.

use std::path::{Path, PathBuf};

use crate::gate::without_colour;
pub use landfall_facts::denial::{DeniedAccess, SandboxDenial, settings_that_allow};

/// A path that a program could not use, as its output says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccessFailure {
    /// The path, absolute, or with `~` for the home folder.
    pub path: String,
    /// Whether the program wanted to change something, as far as its words tell.
    pub is_write: Option<bool>,
}

/// What a run may do with files: the lists of its sandbox, without links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessRules {
    /// It may change what is here.
    pub write: Vec<PathBuf>,
    /// It may read what is here, also below a hidden place.
    pub read: Vec<PathBuf>,
    /// It cannot see what is here.
    pub hide: Vec<PathBuf>,
    /// It has a folder of its own here.
    pub private: Vec<PathBuf>,
}

impl AccessRules {
    /// What the rules deny at `path`; none if it may be read and changed. The nearest rule above a path decides.
    #[must_use]
    pub fn denied_access(&self, path: &Path) -> Option<DeniedAccess> {
        let lists = [
            (&self.hide, Some(DeniedAccess::Read)),
            (&self.read, Some(DeniedAccess::Write)),
            (&self.private, None),
            (&self.write, None),
        ];
        let entries = lists.into_iter().enumerate().flat_map(|(order, (list, denied))| {
            list.iter()
                .filter(|rule| path.starts_with(rule))
                .map(move |rule| (rule.components().count(), order, denied))
        });
        let nearest = entries.max_by_key(|(depth, order, _)| (*depth, *order));
        nearest.map_or(Some(DeniedAccess::Write), |(_, _, denied)| denied)
    }
}

/// So many paths of one check are named: more do not help a person.
const DENIALS_MAX: usize = 8;

/// Which of these failures the rules explain. `home` is the home folder; `may_use` says whether the user could do it outside of
/// the sandbox, so that a path which nobody may change is not blamed on the sandbox.
#[must_use]
pub fn find_denials(
    failures: &[AccessFailure],
    rules: &AccessRules,
    home: Option<&Path>,
    may_use: &dyn Fn(&Path, DeniedAccess) -> bool,
) -> Vec<SandboxDenial> {
    let mut found: Vec<SandboxDenial> = Vec::new();
    for failure in failures {
        let path = match (failure.path.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) => continue,
            (None, _) => PathBuf::from(&failure.path),
        };
        // Devices, and what the kernel shows of processes, are closed for other reasons.
        if ["/dev", "/proc", "/sys"].iter().any(|special| path.starts_with(special)) {
            continue;
        }
        let access = match (rules.denied_access(&path), failure.is_write) {
            (None, _) | (Some(DeniedAccess::Write), Some(false)) => continue,
            (Some(DeniedAccess::Write), _) | (Some(DeniedAccess::Read), Some(true)) => DeniedAccess::Write,
            (Some(DeniedAccess::Read), Some(false)) => DeniedAccess::Read,
            // What is there was to be read; what is not was to be made.
            (Some(DeniedAccess::Read), None) if may_use(&path, DeniedAccess::Read) => DeniedAccess::Read,
            (Some(DeniedAccess::Read), None) => DeniedAccess::Write,
        };
        if !may_use(&path, access) {
            continue;
        }
        let denial = SandboxDenial {
            access,
            path: with_tilde(&path, home),
            allow: with_tilde(Path::new(&suggest_allowed_path(&path, home)), home),
        };
        if !found.iter().any(|known| known.access == access && known.allow == denial.allow) {
            found.push(denial);
        }
        if found.len() == DENIALS_MAX {
            break;
        }
    }
    found
}

fn with_tilde(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

/// The path or pattern that allows `path` and nothing that is not meant by it: a folder of one program, or a name in a folder that
/// many programs share.
fn suggest_allowed_path(path: &Path, home: Option<&Path>) -> String {
    /// Folders below the home folder that many programs share.
    const SHARED_AT_HOME: [&str; 7] =
        [".cache", ".config", ".local", ".local/share", ".local/state", ".local/lib", "Library"];
    let is_shared = |folder: &Path| match home.and_then(|home| folder.strip_prefix(home).ok()) {
        Some(rest) => {
            rest.as_os_str().is_empty() || SHARED_AT_HOME.iter().any(|shared| rest == Path::new(shared))
        }
        None => folder.components().count() <= 3, // `/var/lib`, `/usr/local`, `/home/somebody`
    };
    // The first folder on the way that belongs to one program. Nothing around the home folder belongs to one.
    let is_around_home = |way: &Path| home.is_some_and(|home| home.starts_with(way));
    let mut ways: Vec<&Path> = path.ancestors().collect();
    ways.reverse();
    let is_own = |way: &Path| {
        let parent = way.parent();
        !is_shared(way) && parent.is_some_and(|parent| is_shared(parent) || is_around_home(parent))
    };
    let own = ways.into_iter().find(|way| !is_around_home(way) && is_own(way));
    let own = own.unwrap_or(path);
    match own.file_name().map(|name| pattern_of(&name.to_string_lossy())) {
        Some(name) => own.with_file_name(name).display().to_string(),
        None => own.display().to_string(),
    }
}

/// A name with a `*` in place of what differs from run to run: process ids, times, random letters.
fn pattern_of(name: &str) -> String {
    const LEAST: usize = 4; // a shorter part is a version, such as `x86` or `v18`
    let mut at = 0;
    for part in name.split_inclusive(['-', '_', '.']) {
        let bare = part.trim_end_matches(['-', '_', '.']);
        let has_digit = bare.bytes().any(|byte| byte.is_ascii_digit());
        if at > 1 && has_digit && bare.len() >= LEAST {
            return format!("{}*", &name[..at]);
        }
        at += part.len();
    }
    name.to_owned()
}

/// The words of errors about access, in lower case.
const ERRORS: [&str; 9] = [
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "eacces",
    "eperm",
    "erofs",
    "accessdeniedexception",
    "permissionerror",
    "readonlyfilesystem",
];

/// Words of what changes something, in lower case.
const WRITES: [&str; 22] = [
    "erofs",
    "read-only file system",
    "readonlyfilesystem",
    "mkdir",
    "mkdtemp",
    "create",
    "creating",
    "write",
    "writing",
    "touch",
    "rename",
    "unlink",
    "remove",
    "rmdir",
    "copy",
    "chmod",
    "chown",
    "symlink",
    "lock",
    "truncate",
    "append",
    "save",
];

/// Words of what only reads, in lower case.
const READS: [&str; 5] = ["read ", "reading", "scandir", "stat ", "opendir"];

/// So far from the words of an error its path may stand, in lines: some tools write a line for each part of an error.
const LINES_AROUND: usize = 3;
/// Of this much output failures are looked for: the end says why it failed.
const LINES_MAX: usize = 4_000;

/// The paths that a program says it was not allowed to use.
#[must_use]
pub fn access_failures(output: &str) -> Vec<AccessFailure> {
    let text = without_colour(output);
    let mut lines: Vec<&str> = text.lines().rev().take(LINES_MAX).collect();
    lines.reverse();
    let mut found: Vec<AccessFailure> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let lower = line.to_lowercase();
        if !ERRORS.iter().any(|error| lower.contains(error)) {
            continue;
        }
        // The line itself, then those before it, then those after it.
        let before = (1..=LINES_AROUND).filter_map(|far| at.checked_sub(far));
        let after = (1..=LINES_AROUND).map(|far| at + far).filter(|near| *near < lines.len());
        let near = std::iter::once(at).chain(before).chain(after);
        let Some((place, paths)) =
            near.map(|near| (near, paths_in(lines[near]))).find(|(_, paths)| !paths.is_empty())
        else {
            continue;
        };
        let around = if place == at { lower } else { format!("{lower} {}", lines[place].to_lowercase()) };
        let is_write = match () {
            () if WRITES.iter().any(|word| around.contains(word)) => Some(true),
            () if READS.iter().any(|word| around.contains(word)) => Some(false),
            () => None,
        };
        for path in paths {
            let failure = AccessFailure { path, is_write };
            if !found.contains(&failure) {
                found.push(failure);
            }
        }
    }
    found
}

/// The absolute paths in a line. A path in quotes may hold spaces.
fn paths_in(line: &str) -> Vec<String> {
    const QUOTES: [(char, char); 5] = [('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('`', '\'')];
    let mut found = Vec::new();
    let mut rest = line;
    let mut last = ' ';
    while let Some(first) = rest.chars().next() {
        let starts = rest.starts_with('/') || rest.starts_with("~/");
        let quote = QUOTES.iter().filter(|(open, _)| *open == last);
        let begins_word = last.is_whitespace() || "([=:,<".contains(last);
        let end = match starts {
            true => quote
                .filter_map(|(_, close)| rest.find(*close))
                .min()
                .or_else(|| begins_word.then(|| end_of_word(rest))),
            false => None,
        };
        match end {
            Some(end) if end > 1 => {
                let path = rest[..end].trim_end_matches(['/', '.']);
                // A path to a line of code, or of an address, is none that failed.
                if path.len() > 1 && !path.starts_with("//") {
                    found.push(path.to_owned());
                }
                last = rest[..end].chars().next_back().expect("it is not empty");
                rest = &rest[end..];
            }
            _ => {
                last = first;
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    found
}

/// Where a path without quotes ends.
fn end_of_word(text: &str) -> usize {
    let is_end = |c: char| c.is_whitespace() || ":,;)]>'\"`’".contains(c);
    text.find(is_end).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(output: &str) -> Option<(String, Option<bool>)> {
        let mut found = access_failures(output);
        let first = (!found.is_empty()).then(|| found.remove(0))?;
        Some((first.path, first.is_write))
    }

    #[test]
    fn the_words_of_common_tools_name_the_path() {
        let write = Some(true);
        let cases: [(&str, &str, Option<bool>); 16] = [
            (
                "Error: EROFS: read-only file system, mkdir '/root/.node-spawn-wrap-12-ab'",
                "/root/.node-spawn-wrap-12-ab",
                write,
            ),
            ("Error: EACCES: permission denied, open '/home/me/.x y/z'", "/home/me/.x y/z", None),
            ("Error: EACCES: permission denied, scandir '/home/me/.ssh'", "/home/me/.ssh", Some(false)),
            (
                "npm error code EROFS\nnpm error syscall mkdir\nnpm error path /root/.npm/_cacache",
                "/root/.npm/_cacache",
                write,
            ),
            (
                "PermissionError: [Errno 13] Permission denied: '/home/me/.config/t'",
                "/home/me/.config/t",
                None,
            ),
            ("OSError: [Errno 30] Read-only file system: '/root/.tool'", "/root/.tool", write),
            ("mkdir: cannot create directory ‘/opt/x’: Permission denied", "/opt/x", write),
            ("touch: cannot touch '/usr/x': Read-only file system", "/usr/x", write),
            ("sh: 1: cannot create /root/.stamp: Read-only file system", "/root/.stamp", write),
            ("bash: /root/.stamp: Permission denied", "/root/.stamp", None),
            (
                "error: failed to open `/root/.cache/x/lock`\n\nCaused by:\n  Read-only file system (os error 30)",
                "/root/.cache/x/lock",
                write,
            ),
            ("open /root/.cache/go-build/ab: permission denied", "/root/.cache/go-build/ab", None),
            ("mkdir /root/go/pkg: read-only file system", "/root/go/pkg", write),
            ("java.nio.file.AccessDeniedException: /home/me/.gradle", "/home/me/.gradle", None),
            (
                "error: could not lock config file /root/.gitconfig: Read-only file system",
                "/root/.gitconfig",
                write,
            ),
            (
                "error: failed to create directory `/root/.local/share/uv`: Permission denied (os error 13)",
                "/root/.local/share/uv",
                write,
            ),
        ];
        for (output, path, is_write) in cases {
            assert_eq!(one(output), Some((path.to_owned(), is_write)), "{output}");
        }
        assert_eq!(
            one("\u{1b}[31mtouch: cannot touch '~/.x': Permission denied\u{1b}[0m"),
            Some(("~/.x".to_owned(), write))
        );
    }

    #[test]
    fn output_without_such_an_error_names_nothing() {
        for output in [
            "assertion failed: left == right\n  at /root/project/src/lib.rs:4",
            "permission denied",
            "see https://example.invalid/x: permission denied",
            "test permissions ... ok /usr/x",
        ] {
            assert_eq!(access_failures(output), [], "{output}");
        }
    }

    fn rules() -> AccessRules {
        let list = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        AccessRules {
            write: list(&["/home/me/.local/state/landfall/p/lane", "/home/me/.own"]),
            read: list(&["/home/me/.cargo"]),
            hide: list(&["/home/me", "/home/me/.cargo/credentials.toml"]),
            private: list(&["/tmp"]),
        }
    }

    #[test]
    fn the_nearest_rule_says_what_is_denied() {
        let rules = rules();
        let of = |path: &str| rules.denied_access(Path::new(path));
        assert_eq!(of("/home/me/.local/state/landfall/p/lane/a"), None);
        assert_eq!((of("/tmp/x"), of("/home/me/.own/x")), (None, None));
        assert_eq!(of("/home/me/.x"), Some(DeniedAccess::Read));
        assert_eq!(of("/home/me/.cargo/bin"), Some(DeniedAccess::Write));
        assert_eq!(of("/home/me/.cargo/credentials.toml"), Some(DeniedAccess::Read));
        assert_eq!(of("/usr/lib"), Some(DeniedAccess::Write));
    }

    fn blamed(output: &str, may_use: bool) -> Vec<String> {
        let home = Path::new("/home/me");
        let there = |_: &Path, access| may_use && access == DeniedAccess::Write;
        let found = find_denials(&access_failures(output), &rules(), Some(home), &there);
        settings_that_allow(&found)
    }

    #[test]
    fn what_the_rules_deny_is_named_with_the_setting_that_allows_it() {
        let cases = [
            (
                "EROFS: read-only file system, mkdir '/home/me/.node-spawn-wrap-4711-a0b1c2'",
                "~/.node-spawn-wrap-*",
            ),
            ("EROFS: read-only file system, mkdir '/home/me/.tool'", "~/.tool"),
            ("EROFS: read-only file system, open '/home/me/.config/tool/state.json'", "~/.config/tool"),
            ("EROFS: read-only file system, open '/home/me/.cache/pre-commit/a/b'", "~/.cache/pre-commit"),
            ("EROFS: read-only file system, open '/var/lib/tool/x/y'", "/var/lib/tool"),
        ];
        for (output, allow) in cases {
            assert_eq!(blamed(output, true), [format!("sandbox_write = [{allow:?}]")], "{output}");
        }
        let two = "mkdir: cannot create directory '/home/me/.b': Permission denied\n\
                   mkdir: cannot create directory '/home/me/.a': Permission denied";
        assert_eq!(blamed(two, true), ["sandbox_write = [\"~/.a\", \"~/.b\"]"]);
    }

    #[test]
    fn no_folder_around_the_home_folder_is_ever_proposed() {
        let home = Path::new("/srv/people/of/here/me");
        let rules = AccessRules { hide: vec![home.to_owned()], ..AccessRules::default() };
        let failure = |path: &str| AccessFailure { path: path.to_owned(), is_write: Some(true) };
        let allow =
            |path: &str| find_denials(&[failure(path)], &rules, Some(home), &|_, _| true)[0].allow.clone();
        assert_eq!(allow("/srv/people/of/here/me/.tool-4711-ab12"), "~/.tool-*");
        assert_eq!(allow("/srv/people/of/here/me/.config/tool/x"), "~/.config/tool");
        assert_eq!(allow("/srv/people/of/here/you/x"), "/srv/people/of/here/you");
    }

    #[test]
    fn what_the_sandbox_does_not_deny_is_not_blamed_on_it() {
        assert_eq!(blamed("touch: cannot touch '/tmp/x': Permission denied", true), Vec::<String>::new());
        assert_eq!(
            blamed("touch: cannot touch '/home/me/.own/x': Permission denied", true),
            Vec::<String>::new()
        );
        assert_eq!(blamed("touch: cannot touch '/usr/x': Permission denied", false), Vec::<String>::new());
        assert_eq!(blamed("touch: cannot touch '/dev/sda': Permission denied", true), Vec::<String>::new());
    }
}
