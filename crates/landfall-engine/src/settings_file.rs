//! The settings of a project as they are in a checkout or in a commit.

use std::path::Path;

use landfall_host::git::Store;
use landfall_host::sandbox;
use landfall_host::user_file::{USER_FILE_BYTES_MAX, read_user_file};
use landfall_model::Commit;

use crate::ids;
use crate::open_error::OpenError;
use crate::settings::{Settings, WHOLEWORK, WHOLEWORK_BYTES_MAX};

/// The settings of the project at `root`; none are as good as empty ones.
///
/// # Errors
/// What is wrong with them, and where.
pub fn load_settings(root: &Path) -> Result<Settings, OpenError> {
    let path = root.join("landfall.toml");
    let text = match read_user_file(&path, USER_FILE_BYTES_MAX) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(OpenError::SettingsFile { path, source }),
    };
    Ok(Settings::parse_for_machine(
        sandbox::can_isolate(),
        read_wholework(root).as_deref(),
        &text,
        "landfall.toml",
    )?)
}

/// The settings in a commit, as [`load_settings`] reads those of a checkout.
///
/// # Errors
/// What is wrong with them.
pub fn settings_in(store: &Store, commit: &Commit) -> Result<Settings, OpenError> {
    let commit = ids::commit_to_oid(commit);
    let read = |path: &str, max: u64| {
        let bytes = store.read_blob(&commit, path.as_bytes(), max)?;
        Ok::<_, OpenError>(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    };
    let text = read("landfall.toml", USER_FILE_BYTES_MAX)?.unwrap_or_default();
    let wholework = read(WHOLEWORK, WHOLEWORK_BYTES_MAX).ok().flatten();
    Ok(Settings::parse_for_machine(sandbox::can_isolate(), wholework.as_deref(), &text, "landfall.toml")?)
}

/// The settings of another tool for issues, if they are there. They are a courtesy: what cannot be read is not there.
fn read_wholework(root: &Path) -> Option<String> {
    let bytes = read_user_file(&root.join(WHOLEWORK), WHOLEWORK_BYTES_MAX).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
