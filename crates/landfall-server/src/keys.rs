//! Keys: the token of the project, sessions of browsers, tokens of agents, and links that let a browser in.
//!
//! The token is a file for its owner alone. Of everything else only a hash is kept, so that whoever reads the folder
//! cannot come in with it. Nothing here is ever logged.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use landfall_api::secret_file::{SecretFileError, random_hex, read_secret_file, write_secret_file};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;
use thiserror::Error;
use tokio::sync::watch;

const SECRET_BYTES: usize = 32; // 256 bits: nobody guesses it
const SESSIONS_MAX: usize = 200;
const SESSION_MS: i64 = 30 * 24 * 3600 * 1000; // a month on a phone
const PAIRING_MS: i64 = 10 * 60 * 1000; // long enough to find the phone
const PAIRINGS_MAX: usize = 16;
const SEEN_EVERY_MS: i64 = 60 * 1000; // how exactly `last heard of` is kept

/// The keys of one project.
pub struct AccessKeys {
    /// What cookie and host are called: no other project's are called the same.
    name: String,
    token_file: PathBuf,
    file: PathBuf,
    state: Mutex<AccessKeysState>,
    /// Counts whenever somebody is let in no more.
    revoked: watch::Sender<u64>,
}

struct AccessKeysState {
    token: [u8; 32],
    /// Which file the token was read from: a new token is a new file.
    stamp: Option<FileStamp>,
    sessions: Vec<StoredSession>,
    pairings: Vec<PendingPairing>,
}

/// Inode, and when it was last changed.
type FileStamp = (u64, i64, i64);

struct PendingPairing {
    hash: [u8; 32],
    label: String,
    until_ms: i64,
}

/// A session as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredSession {
    pub(crate) name: String,
    hash: String,
    pub(crate) agent: bool,
    pub(crate) label: String,
    pub(crate) since_ms: i64,
    pub(crate) seen_ms: i64,
    pub(crate) until_ms: i64,
}

#[derive(Default, Serialize, Deserialize)]
struct StoredKeys {
    v: u32,
    /// The hash of the token by which they came in.
    #[serde(default)]
    token: String,
    sessions: Vec<StoredSession>,
}

/// Whose a secret is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SecretOwner {
    /// The token of the project.
    Owner,
    /// A session of a browser, by its name.
    Browser(String),
    /// A token of an agent, by its name.
    Agent(String),
}

/// Why keys cannot be used.
#[derive(Debug, Error)]
pub enum KeysProblem {
    /// A file of theirs cannot be used.
    #[error(transparent)]
    File(#[from] SecretFileError),
    /// More are let in than anybody can look through.
    #[error("{SESSIONS_MAX} browsers and agents are let in already")]
    Full,
}

impl AccessKeys {
    /// Opens the keys in `folder`; makes the token if there is none.
    ///
    /// # Errors
    /// When the files cannot be used, or others could read them.
    pub fn open(folder: &Path) -> Result<Self, KeysProblem> {
        let token_file = folder.join("token");
        let stamp = file_stamp(&token_file); // before it is read: what is written after is read again
        let token = hash(&Self::read_or_create_token(folder)?);
        let file = folder.join("sessions.json");
        let kept = match read_secret_file(&file)? {
            None => StoredKeys::default(),
            Some(text) => match serde_json::from_str::<StoredKeys>(&text) {
                Ok(kept) => kept,
                Err(_) => {
                    let what = "cannot be understood; move it aside to begin anew";
                    return Err(SecretFileError::Unsafe { path: file, what }.into());
                }
            },
        };
        // Who came in by another token came in by one that was given up.
        let ours = kept.token.is_empty() || kept.token == to_hex(&token);
        let sessions = if ours { kept.sessions } else { Vec::new() };
        let name = format!("landfall-{}", &blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex()[..8]);
        let state = Mutex::new(AccessKeysState { token, stamp, sessions, pairings: Vec::new() });
        Ok(Self { name, token_file, file, state, revoked: watch::Sender::new(0) })
    }

    /// The token of the project whose keys are in `folder`; made if there is none.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn read_or_create_token(folder: &Path) -> Result<String, KeysProblem> {
        let path = folder.join("token");
        if let Some(text) = read_secret_file(&path)? {
            let text = text.trim_end().to_owned();
            let plain = text.len() == SECRET_BYTES * 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            return if plain {
                Ok(text)
            } else {
                let what = "holds no token; move it aside to get a new one";
                Err(SecretFileError::Unsafe { path, what }.into())
            };
        }
        let token = random_secret()?;
        write_secret_file(&path, &format!("{token}\n"))?;
        Ok(token)
    }

    /// Makes a new token in `folder`. The old one opens nothing any more, and whoever was let in has to come in again; a server
    /// that runs notices with the next request.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn renew_token(folder: &Path) -> Result<String, KeysProblem> {
        let token = random_secret()?;
        write_secret_file(&folder.join("token"), &format!("{token}\n"))?;
        Ok(token)
    }

    /// What the cookie is called. Cookies do not know ports: two projects on one machine must not take each other's.
    pub(crate) fn cookie_name(&self) -> &str {
        &self.name
    }

    /// A name for this machine that no other server on it has, so that no other gets the cookie.
    pub(crate) fn local_cookie_name(&self) -> String {
        format!("{}.localhost", self.name)
    }

    /// Whose secret this is. Takes the same time for every wrong one.
    pub(crate) fn find_owner(&self, secret: &str) -> Option<SecretOwner> {
        if secret.len() > 200 {
            return None;
        }
        self.look();
        let hash = hash(secret);
        if bool::from(hash.ct_eq(&self.lock().token)) {
            return Some(SecretOwner::Owner);
        }
        let now = now_ms();
        let mut state = self.lock();
        let hex = to_hex(&hash);
        let found =
            state.sessions.iter_mut().find(|it| bool::from(it.hash.as_bytes().ct_eq(hex.as_bytes())))?;
        if found.until_ms <= now {
            return None;
        }
        let known = if found.agent {
            SecretOwner::Agent(found.name.clone())
        } else {
            SecretOwner::Browser(found.name.clone())
        };
        if now - found.seen_ms > SEEN_EVERY_MS {
            found.seen_ms = now;
            let _ = self.save_state(&state); // it is kept with the next change
        }
        Some(known)
    }

    /// Reads the token again if it was renewed. Then nobody is let in any more: whoever had the old one may have let in others.
    pub(crate) fn look(&self) {
        let now = file_stamp(&self.token_file);
        let mut state = self.lock();
        if now.is_none() || now == state.stamp {
            return;
        }
        // What cannot be read is no new token; the old one stands until there is one.
        let Some(folder) = self.token_file.parent() else { return };
        let Ok(token) = Self::read_or_create_token(folder) else { return };
        state.stamp = now;
        let token = hash(&token);
        if bool::from(token.ct_eq(&state.token)) {
            return;
        }
        state.token = token;
        state.sessions.clear();
        state.pairings.clear();
        let _ = self.save_state(&state); // those in the file came in by another token, so they are not let in again
        drop(state); // whoever hears of it looks at the sessions
        self.revoked.send_modify(|count| *count += 1);
    }

    /// The mark of the token that opens now.
    pub(crate) fn token_hash(&self) -> [u8; 32] {
        self.lock().token
    }

    /// Lets somebody in. Returns the secret, and the session.
    pub(crate) fn create_session(
        &self,
        label: &str,
        agent: bool,
    ) -> Result<(String, StoredSession), KeysProblem> {
        let secret = random_secret()?;
        let now = now_ms();
        let session = StoredSession {
            name: random_secret_part()?,
            hash: to_hex(&hash(&secret)),
            agent,
            label: label.chars().filter(|it| !it.is_control()).take(120).collect(),
            since_ms: now,
            seen_ms: now,
            until_ms: now + SESSION_MS,
        };
        let mut state = self.lock();
        state.sessions.retain(|it| it.until_ms > now);
        if state.sessions.len() >= SESSIONS_MAX {
            // Somebody who is at work would be out without a word: the new one can be told.
            return Err(KeysProblem::Full);
        }
        state.sessions.push(session.clone());
        self.save_state(&state)?;
        Ok((secret, session))
    }

    /// Everybody who is let in, newest first.
    pub(crate) fn sessions(&self) -> Vec<StoredSession> {
        let now = now_ms();
        self.lock().sessions.iter().rev().filter(|it| it.until_ms > now).cloned().collect()
    }

    /// Lets somebody in no more. Says whether there was anybody.
    pub(crate) fn revoke_session(&self, name: &str) -> Result<bool, KeysProblem> {
        let mut state = self.lock();
        let before = state.sessions.len();
        state.sessions.retain(|it| it.name != name);
        let gone = state.sessions.len() < before;
        let kept = self.save_state(&state);
        drop(state); // whoever hears of it looks at the sessions
        self.revoked.send_modify(|count| *count += 1);
        kept.map(|()| gone)
    }

    /// Whether a session still opens the door.
    pub(crate) fn is_session_valid(&self, name: &str) -> bool {
        let now = now_ms();
        self.lock().sessions.iter().any(|it| it.name == name && it.until_ms > now)
    }

    /// Hears when somebody is let in no more.
    pub(crate) fn subscribe_revocations(&self) -> watch::Receiver<u64> {
        self.revoked.subscribe()
    }

    /// A code that lets one browser in, once, and until when.
    pub(crate) fn create_pairing(&self, label: &str) -> Result<(String, i64), KeysProblem> {
        let code = random_secret_part()? + &random_secret_part()?;
        let now = now_ms();
        let mut state = self.lock();
        state.pairings.retain(|it| it.until_ms > now);
        if state.pairings.len() >= PAIRINGS_MAX {
            state.pairings.remove(0);
        }
        let until_ms = now + PAIRING_MS;
        state.pairings.push(PendingPairing { hash: hash(&code), label: label.to_owned(), until_ms });
        Ok((code, until_ms))
    }

    /// Uses a code up. Returns what the browser is to be called.
    pub(crate) fn redeem_pairing(&self, code: &str, now_ms: i64) -> Option<String> {
        let hash = hash(code);
        let mut state = self.lock();
        let at =
            state.pairings.iter().position(|it| bool::from(it.hash.ct_eq(&hash)) && it.until_ms > now_ms)?;
        Some(state.pairings.remove(at).label)
    }

    fn lock(&self) -> MutexGuard<'_, AccessKeysState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn save_state(&self, state: &AccessKeysState) -> Result<(), KeysProblem> {
        let kept = StoredKeys { v: 1, token: to_hex(&state.token), sessions: state.sessions.clone() };
        let text = serde_json::to_string(&kept).unwrap_or_default(); // words and numbers always can be written
        Ok(write_secret_file(&self.file, &text)?)
    }
}

/// Now, as the wire writes it.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

fn hash(secret: &str) -> [u8; 32] {
    *blake3::hash(secret.as_bytes()).as_bytes()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn file_stamp(path: &Path) -> Option<FileStamp> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    Some((meta.ino(), meta.mtime(), meta.mtime_nsec()))
}

fn random_secret() -> Result<String, SecretFileError> {
    random_hex::<SECRET_BYTES>()
}

fn random_secret_part() -> Result<String, SecretFileError> {
    random_hex::<8>()
}

#[cfg(test)]
mod tests {
    use super::{AccessKeys, PAIRING_MS, SecretOwner, now_ms};

    #[test]
    fn a_link_lets_one_in_once_and_not_for_ever() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let keys = AccessKeys::open(folder.path()).expect("keys");
        let (code, until_ms) = keys.create_pairing("a phone").expect("a code");
        let now = now_ms();
        assert!(until_ms > now && until_ms <= now + PAIRING_MS);
        assert_eq!(keys.redeem_pairing(&code, until_ms), None, "too late");
        assert_eq!(keys.redeem_pairing("", now), None);
        assert_eq!(keys.redeem_pairing(&code[..code.len() - 1], now), None);
        assert_eq!(keys.redeem_pairing(&code, now).as_deref(), Some("a phone"));
        assert_eq!(keys.redeem_pairing(&code, now), None, "used up");
    }

    #[test]
    fn a_session_ends_with_its_time() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let keys = AccessKeys::open(folder.path()).expect("keys");
        let (secret, session) = keys.create_session("a browser", false).expect("a session");
        assert_eq!(keys.find_owner(&secret), Some(SecretOwner::Browser(session.name.clone())));
        assert!(keys.is_session_valid(&session.name));
        keys.lock().sessions[0].until_ms = now_ms();
        assert_eq!(keys.find_owner(&secret), None);
        assert!(!keys.is_session_valid(&session.name) && keys.sessions().is_empty());
    }

    #[test]
    fn who_comes_when_too_many_are_let_in_is_told_and_nobody_is_put_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let keys = AccessKeys::open(folder.path()).expect("keys");
        let (first, session) = keys.create_session("the first", false).expect("a session");
        {
            let mut state = keys.lock();
            let one = state.sessions[0].clone();
            state.sessions.extend((1..super::SESSIONS_MAX).map(|at| super::StoredSession {
                hash: String::new(),
                name: at.to_string(),
                ..one.clone()
            }));
        }
        let refused = keys.create_session("one more", false).expect_err("too many");
        assert!(refused.to_string().contains("200"), "{refused}");
        assert!(keys.find_owner(&first).is_some(), "who was there first stays");
        assert!(keys.revoke_session(&session.name).expect("written"));
        assert!(keys.create_session("one more", false).is_ok(), "there is room again");
        // Those whose time is over take no room.
        keys.lock().sessions[5].until_ms = now_ms();
        assert!(keys.create_session("and one more", false).is_ok());
    }
}
