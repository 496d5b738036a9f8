//! What a publishing that was cut off left in the user's checkout: files that were taken out, and the lock of the index, because of
//! which their git commands fail. The first command that meets it cleans up.

use landfall_engine::host::git::{Git, Repo};
use landfall_engine::host::lock::{LockHolder, StateLock};

use crate::project::clock;
use crate::project::place::ProjectLocation;

/// What became of the traces.
pub(crate) enum Cleanup {
    /// There were none, or an engine has the state and cleans up itself.
    Nothing,
    /// The checkout is as it was before, or as it was to be.
    Done,
    /// Why it is not.
    Failed(String),
}

impl Cleanup {
    pub const DONE: &str = "cleaned up in your checkout after a publishing that was cut off";
    pub const HINT: &str = "`landfall run` tries again; until then git may say that `index.lock` exists";

    /// What to tell the user, if anything.
    pub fn into_sentence(self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Done => Some(Self::DONE.to_owned()),
            Self::Failed(why) => Some(format!("{why}; {}", Self::HINT)),
        }
    }
}

/// Cleans up in every checkout of this repository.
pub(crate) fn clean_up(place: &ProjectLocation, repo: &Repo) -> Cleanup {
    if place.lock.is_some() || !repo.has_publishing_traces() {
        return Cleanup::Nothing;
    }
    let me = LockHolder::this_process("landfall", clock::now_ms());
    let Ok(_lock) = StateLock::acquire(place.folder.root(), &me) else { return Cleanup::Nothing };
    match repo.recover_publishing() {
        Ok(false) => Cleanup::Nothing,
        Ok(true) => Cleanup::Done,
        Err(error) => Cleanup::Failed(error.full_message()),
    }
}

/// The same for a command that has not looked at the repository: no process is started unless the folder of this checkout
/// shows traces.
pub(crate) fn clean_up_here(place: &ProjectLocation) -> Cleanup {
    if !Repo::shows_publishing_traces(&place.git_dir) {
        return Cleanup::Nothing;
    }
    let repo = Git::find_installed().ok().and_then(|git| Repo::discover(&git, &place.root).ok());
    repo.map_or(Cleanup::Nothing, |repo| clean_up(place, &repo))
}
