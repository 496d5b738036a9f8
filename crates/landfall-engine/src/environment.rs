//! The environment that agents and checks get: what is picked from the engine's own, and what is added to it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Picks from the engine's environment what agents and checks may have.
pub(crate) fn safe_environment(all: &[(OsString, OsString)], named: &[String]) -> Vec<(OsString, OsString)> {
    let allowed = |key: &OsStr| {
        key.to_str().is_some_and(|key| {
            let is_proxy = PROXIES.iter().any(|proxy| proxy.eq_ignore_ascii_case(key));
            let is_known = SAFE.contains(&key) || CERTIFICATES.contains(&key) || key.starts_with("LC_");
            is_known || is_proxy || named.iter().any(|name| name == key)
        })
    };
    let mut env: Vec<_> = all.iter().filter(|(key, _)| allowed(key)).cloned().collect();
    env.push(("TERM".into(), "dumb".into()));
    env.push(("CI".into(), "true".into()));
    env
}

/// The environment with these added; the later one of a name wins.
pub(crate) fn extend_environment(
    env: &[(OsString, OsString)],
    more: Vec<(OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let mut all: Vec<(OsString, OsString)> =
        env.iter().filter(|(key, _)| !more.iter().any(|(name, _)| name == key)).cloned().collect();
    all.extend(more);
    all
}

/// The variables an agent or a check may have, besides those a person names. Credentials are not among them.
const SAFE: [&str; 19] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOCACHE",
    "JAVA_HOME",
    "NODE_PATH",
];

/// Variables that name a file or a folder of certificates, without which nothing can be downloaded behind some proxies.
pub(crate) const CERTIFICATES: [&str; 9] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    "UV_CERT",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
];

/// The proxies of the user, whose names programs read in either case.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

/// The value of a variable in an environment.
pub(crate) fn variable<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
}

/// The environment with our own program at the end of its `PATH`: agents say where they stand by it.
pub(crate) fn add_program_to_path(
    program: &Path,
    mut env: Vec<(OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let (Some(folder), Some((_, path))) = (program.parent(), env.iter_mut().find(|(key, _)| key == "PATH"))
    else {
        return env;
    };
    let folders = std::env::split_paths(path).chain([folder.to_owned()]).collect::<Vec<_>>();
    if let Ok(joined) = std::env::join_paths(folders) {
        *path = joined;
    }
    env
}
