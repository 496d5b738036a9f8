//! Hashes by which texts and environments are known again.

use landfall_model::Digest;

use crate::environment::variable;

/// The hash of a text.
pub(crate) fn digest_text(text: &str) -> Digest {
    Digest::new(blake3::hash(text.as_bytes()).to_hex().as_str())
}

/// The same for the environment that checks get.
pub(crate) fn environment_of(env: &[(std::ffi::OsString, std::ffi::OsString)]) -> Digest {
    let path = variable(env, "PATH").map(|value| value.to_string_lossy().into_owned());
    digest_text(&format!("{} {} {}", std::env::consts::OS, std::env::consts::ARCH, path.unwrap_or_default()))
}
