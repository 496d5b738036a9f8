//! What a tracker sends by itself: believed if it is signed, and left as a mark in the state folder for whoever polls.
//! A mark says where to look and nothing else, so one that is lost costs time, and one that is there twice costs nothing.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use landfall_trackers::github::webhook::{
    Delivery, DeliveryError, WebhookSubject, parse_delivery, verify_signature,
};
use landfall_trackers::tracker::{CommentThread, IssueNumber, PrNumber};
use thiserror::Error;

use super::{TrackerEnv, at_home, find_tracker};
use crate::folder::StateFolder;
use crate::settings::TrackerSettings;

/// Where to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WebhookScope {
    /// At everything.
    All,
    /// At an issue or a pull request.
    Thread(CommentThread),
}

/// Why a delivery was not taken.
#[derive(Debug, Error)]
pub enum WebhookRejection {
    /// Nobody set this up.
    #[error("no webhook is set up here")]
    NotSet,
    /// The secret cannot be read.
    #[error("the secret of the webhook cannot be read: {0}")]
    Secret(String),
    /// It is not believed.
    #[error(transparent)]
    NotBelieved(#[from] DeliveryError),
    /// The mark cannot be left.
    #[error("leave a mark in the state folder: {0}")]
    Mark(#[from] io::Error),
}

const SECRET_BYTES_MAX: u64 = 4096;
const MARKS_MAX: usize = 10_000; // more than that is everything

/// Hears a delivery for the tracker called `name`, and leaves a mark where it says to look. `is_new` says of a delivery that is
/// believed whether it was not heard before.
///
/// # Errors
/// Why it was not taken; nothing is left then.
pub fn receive_delivery(
    settings: &TrackerSettings,
    around: &TrackerEnv<'_>,
    name: &str,
    delivery: Delivery<'_>,
    is_new: &mut dyn FnMut(&str) -> bool,
) -> Result<(), WebhookRejection> {
    let file = settings.webhook_secret_file.as_deref().filter(|_| settings.kind == Some(name));
    let file = file.ok_or(WebhookRejection::NotSet)?;
    let secret = read_secret(around, file).map_err(WebhookRejection::Secret)?;
    // A stranger has nothing else looked at.
    verify_signature(secret.as_bytes(), delivery.signature, delivery.body)?;
    let found =
        find_tracker(settings, around).map_err(|error| WebhookRejection::Secret(error.to_string()))?;
    let repository = found.setup.repository.ok_or(WebhookRejection::NotSet)?.to_string();
    let nudged = match parse_delivery(secret.as_bytes(), &repository, delivery)? {
        WebhookSubject::Nothing => return Ok(()),
        WebhookSubject::Thread(thread) => WebhookScope::Thread(thread),
        WebhookSubject::Checks(_) | WebhookSubject::Branch(_) | WebhookSubject::Repository => {
            WebhookScope::All
        }
    };
    // Only one that was signed is remembered, or a stranger could say it first.
    if is_new(delivery.id) {
        // Whoever works for another base of the project polls as well.
        for folder in around.folder.all_bases() {
            leave_mark(&folder, nudged)?;
        }
    }
    Ok(())
}

fn read_secret(around: &TrackerEnv<'_>, file: &Path) -> Result<String, String> {
    let path = at_home(around, file).ok_or("there is no home folder")?;
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(SECRET_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| error.to_string())?;
    let text = text.trim();
    if text.is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

fn leave_mark(folder: &StateFolder, nudged: WebhookScope) -> io::Result<()> {
    let nudges = folder.nudges_path();
    fs::create_dir_all(&nudges)?;
    let name = match nudged {
        WebhookScope::All => "all".to_owned(),
        WebhookScope::Thread(CommentThread::Issue(number)) => format!("issue-{}", number.get()),
        WebhookScope::Thread(CommentThread::PullRequest(number)) => format!("pr-{}", number.get()),
    };
    let many = fs::read_dir(&nudges)?.take(MARKS_MAX).count() >= MARKS_MAX;
    fs::write(nudges.join(if many { "all" } else { name.as_str() }), b"")
}

/// Takes the marks that are there. What is nudged while this looks is found by the next look.
///
/// # Errors
/// When the folder cannot be read.
pub fn take_marks(folder: &StateFolder) -> io::Result<BTreeSet<WebhookScope>> {
    let nudges = folder.nudges_path();
    let entries = match fs::read_dir(&nudges) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(error),
    };
    let mut found = BTreeSet::new();
    for entry in entries {
        let name = entry?.file_name();
        let Some(nudged) = name.to_str().and_then(parse_mark) else { continue };
        fs::remove_file(nudges.join(&name))?;
        found.insert(nudged);
    }
    Ok(found)
}

fn parse_mark(name: &str) -> Option<WebhookScope> {
    if name == "all" {
        return Some(WebhookScope::All);
    }
    let (kind, number) = name.split_once('-')?;
    Some(WebhookScope::Thread(match kind {
        "issue" => CommentThread::Issue(number.parse::<IssueNumber>().ok()?),
        "pr" => CommentThread::PullRequest(number.parse::<PrNumber>().ok()?),
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_taken_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::at_root(folder.path().join("state"));
        assert_eq!(take_marks(&state).expect("no folder is no marks"), BTreeSet::new());
        let issue = WebhookScope::Thread(CommentThread::Issue(IssueNumber::new(12).expect("not 0")));
        let pull = WebhookScope::Thread(CommentThread::PullRequest(PrNumber::new(7).expect("not 0")));
        for nudged in [issue, WebhookScope::All, pull, issue] {
            leave_mark(&state, nudged).expect("left");
        }
        fs::write(state.nudges_path().join("of-somebody"), "x").expect("written");
        assert_eq!(take_marks(&state).expect("read"), BTreeSet::from([issue, pull, WebhookScope::All]));
        assert_eq!(take_marks(&state).expect("read"), BTreeSet::new());
        assert!(state.nudges_path().join("of-somebody").exists(), "what is not ours stays");
    }
}
