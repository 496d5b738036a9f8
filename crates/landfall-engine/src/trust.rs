//! What a person has trusted: which sensitive settings of which repository, by their digest.
//!
//! It is kept in the state folder, where no repository writes and no agent reads. Without an entry for exactly these settings,
//! nothing that uses them begins.

use std::path::{Path, PathBuf};

use landfall_host::disk::write_atomic;
use landfall_host::user_file::{USER_FILE_BYTES_MAX, read_user_file};
use landfall_model::Timestamp;
use serde::{Deserialize, Serialize};

use crate::folder::StateFolder;
use crate::settings::{SensitiveSettings, TrustDigest};

/// How many entries are kept; the oldest go. Somebody who goes back further is asked again.
const ENTRIES_MAX: usize = 200;
const FORMAT: u32 = 1;

/// How somebody came to trust settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrustedBy {
    /// A person was shown them and said yes.
    Person,
    /// A script named their digest.
    Script,
    /// A person approved work that changes them.
    Review,
    /// `landfall init` wrote them for the person.
    Init,
    /// They were in use by a sprint of this person before there was this question.
    Sprint,
    /// A run began when there was nothing to trust.
    Run,
}

/// One entry: these settings of this repository are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustEntry {
    /// The root of the repository.
    pub root: PathBuf,
    /// The settings.
    pub digest: String,
    /// How.
    pub by: TrustedBy,
    /// When.
    pub at_ms: i64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFile {
    v: u32,
    trusted: Vec<TrustEntry>,
}

/// What is known about the settings of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustVerdict {
    /// There is nothing that has to be trusted.
    Nothing,
    /// Exactly these settings are trusted.
    Trusted,
    /// Others were trusted before; these are new.
    Changed,
    /// Nobody was ever asked about this repository.
    Unasked,
}

/// Decides whether these settings of the repository at `root` count.
#[must_use]
pub fn judge_trust(entries: &[TrustEntry], root: &Path, settings: &SensitiveSettings) -> TrustVerdict {
    if settings.is_empty() {
        return TrustVerdict::Nothing;
    }
    let digest = settings.compute_digest();
    let own: Vec<&TrustEntry> = entries.iter().filter(|entry| entry.root == root).collect();
    if own.is_empty() {
        return TrustVerdict::Unasked;
    }
    match own.iter().any(|entry| entry.digest == digest.as_str()) {
        true => TrustVerdict::Trusted,
        false => TrustVerdict::Changed,
    }
}

/// The checkouts of the projects whose states stand in `states`, as far as the user has run or trusted them.
pub(crate) fn known_checkouts(states: &Path) -> Vec<PathBuf> {
    const PROJECTS_MAX: usize = 1_000;
    let projects = std::fs::read_dir(states).into_iter().flatten().flatten().take(PROJECTS_MAX);
    let files = projects.map(|project| StateFolder::at_root(project.path()).trust_file());
    let mut roots: Vec<PathBuf> = files
        .filter_map(|file| read_user_file(&file, USER_FILE_BYTES_MAX).ok())
        .filter_map(|bytes| serde_json::from_slice::<TrustFile>(&bytes).ok())
        .flat_map(|file| file.trusted.into_iter().map(|entry| entry.root))
        .collect();
    roots.sort();
    roots.dedup();
    roots
}

/// What is trusted about one repository.
#[derive(Debug, Clone)]
pub struct TrustStore {
    file: PathBuf,
    root: PathBuf,
}

/// Why the entries cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file cannot be read or written.
    #[error("use `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is none of ours, or of a later version.
    #[error("`{}` cannot be understood: {why}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl TrustStore {
    /// That of the repository at `root`, whose state is in `folder`.
    #[must_use]
    pub fn for_repository(folder: &StateFolder, root: &Path) -> Self {
        Self { file: folder.trust_file(), root: root.to_owned() }
    }

    /// Whether these settings count.
    ///
    /// # Errors
    /// When the entries cannot be read. Then nothing is trusted.
    pub fn judge(&self, settings: &SensitiveSettings) -> Result<TrustVerdict, TrustError> {
        if settings.is_empty() {
            return Ok(TrustVerdict::Nothing);
        }
        Ok(judge_trust(&self.read_entries()?, &self.root, settings))
    }

    /// Notes that these settings are trusted. The folder of the state must be there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_trust(&self, digest: &TrustDigest, by: TrustedBy, at: Timestamp) -> Result<(), TrustError> {
        let mut trusted = self.read_entries()?;
        trusted.retain(|entry| entry.root != self.root || entry.digest != digest.as_str());
        trusted.push(TrustEntry {
            root: self.root.clone(),
            digest: digest.as_str().to_owned(),
            by,
            at_ms: at.0,
        });
        let extra = trusted.len().saturating_sub(ENTRIES_MAX);
        trusted.drain(..extra);
        let text = serde_json::to_vec_pretty(&TrustFile { v: FORMAT, trusted }).expect("words and numbers");
        write_atomic(&self.file, &text).map_err(|source| TrustError::Io { path: self.file.clone(), source })
    }

    /// The same, if nothing is known of this repository yet.
    ///
    /// # Errors
    /// As [`Self::add_trust`].
    pub fn note_first(&self, digest: &TrustDigest, by: TrustedBy, at: Timestamp) -> Result<(), TrustError> {
        match self.read_entries()?.iter().any(|entry| entry.root == self.root) {
            true => Ok(()),
            false => self.add_trust(digest, by, at),
        }
    }

    fn read_entries(&self) -> Result<Vec<TrustEntry>, TrustError> {
        let bytes = match read_user_file(&self.file, USER_FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(TrustError::Io { path: self.file.clone(), source }),
        };
        let wrong = |why: String| TrustError::Format { path: self.file.clone(), why };
        let file: TrustFile = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        match file.v {
            FORMAT => Ok(file.trusted),
            other => Err(wrong(format!("it has version {other}, and this program knows {FORMAT}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn parse_sensitive_settings(text: &str) -> SensitiveSettings {
        SensitiveSettings::from_settings(&Settings::parse(text, "landfall.toml").expect("settings"))
    }

    #[test]
    fn only_what_was_trusted_for_this_repository_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::at_root(folder.path().to_owned());
        let (one, two) = (
            parse_sensitive_settings("[hooks]\npost-merge = \"a\"\n"),
            parse_sensitive_settings("[hooks]\npost-merge = \"b\"\n"),
        );
        let store = TrustStore::for_repository(&state, Path::new("/p"));
        fn judge_settings(store: &TrustStore, settings: &SensitiveSettings) -> TrustVerdict {
            store.judge(settings).expect("readable")
        }
        assert_eq!(judge_settings(&store, &parse_sensitive_settings("")), TrustVerdict::Nothing);
        assert_eq!(judge_settings(&store, &one), TrustVerdict::Unasked);
        store.add_trust(&one.compute_digest(), TrustedBy::Person, Timestamp(7)).expect("written");
        assert_eq!(judge_settings(&store, &one), TrustVerdict::Trusted);
        assert_eq!(judge_settings(&store, &two), TrustVerdict::Changed);
        assert_eq!(
            judge_settings(&TrustStore::for_repository(&state, Path::new("/q")), &one),
            TrustVerdict::Unasked
        );
        // Work on another base has a state folder of its own, but the settings are those of the project.
        let other = TrustStore::for_repository(&state.for_base("release"), Path::new("/p"));
        assert_eq!(judge_settings(&other, &one), TrustVerdict::Trusted);
        store.add_trust(&two.compute_digest(), TrustedBy::Review, Timestamp(8)).expect("written");
        assert_eq!(
            (judge_settings(&store, &one), judge_settings(&store, &two)),
            (TrustVerdict::Trusted, TrustVerdict::Trusted)
        );
    }

    #[test]
    fn entries_that_cannot_be_understood_trust_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::at_root(folder.path().to_owned());
        let store = TrustStore::for_repository(&state, Path::new("/p"));
        let one = parse_sensitive_settings("[hooks]\npost-merge = \"a\"\n");
        for text in ["", "{}", "[]", "{\"v\":2,\"trusted\":[]}", "\u{0}"] {
            std::fs::write(state.trust_file(), text).expect("written");
            assert!(store.judge(&one).is_err(), "{text}");
            assert!(
                store.add_trust(&one.compute_digest(), TrustedBy::Person, Timestamp(7)).is_err(),
                "{text}"
            );
        }
        std::fs::remove_file(state.trust_file()).expect("ours");
        std::os::unix::fs::symlink("/dev/zero", state.trust_file()).expect("ours");
        assert!(store.judge(&one).is_err(), "a device is not read");
    }

    #[test]
    fn entries_of_the_first_version_are_read_and_their_number_is_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::at_root(folder.path().to_owned());
        let one = parse_sensitive_settings("[hooks]\npost-merge = \"a\"\n");
        let sample = format!(
            "{{\"v\":1,\"trusted\":[{{\"root\":\"/p\",\"digest\":\"{}\",\"by\":\"person\",\"at_ms\":1}}]}}",
            one.compute_digest().as_str()
        );
        std::fs::write(state.trust_file(), sample).expect("written");
        let store = TrustStore::for_repository(&state, Path::new("/p"));
        assert_eq!(store.judge(&one).expect("readable"), TrustVerdict::Trusted);
        for number in 0..ENTRIES_MAX {
            let other = parse_sensitive_settings(&format!("[hooks]\npost-merge = \"{number}\"\n"));
            store.add_trust(&other.compute_digest(), TrustedBy::Script, Timestamp(2)).expect("written");
        }
        assert_eq!(store.read_entries().expect("readable").len(), ENTRIES_MAX);
        assert_eq!(store.judge(&one).expect("readable"), TrustVerdict::Changed, "the oldest is forgotten");
    }
}
