//! What a process keeps between two requests about a project. Clones of a `Place` share
//! one. Each part has one lock. `tracker` and `run_folders` stay locked while an entry is made, so that it is made once.

use std::fmt;

use crate::project::issue_answers::IssueAnswers;
use crate::project::open_tracker::OpenTracker;
use crate::project::reader_pool::ReaderPool;
use crate::project::run_folders::RunFolders;
use crate::project::task_cache::TaskCache;

#[derive(Default)]
pub(crate) struct ReadCaches {
    pub readers: ReaderPool,
    pub tasks: TaskCache,
    pub run_folders: RunFolders,
    pub issue_answers: IssueAnswers,
    pub tracker: OpenTracker,
}

impl fmt::Debug for ReadCaches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadCaches").finish_non_exhaustive()
    }
}
