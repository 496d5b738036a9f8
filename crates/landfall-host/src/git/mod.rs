//! The one place that runs git.
//!
//! Three kinds of ground, and one rule for each. The **person's repository** (`repo`, `news`, `publish`) is read
//! with care and written only when nothing of theirs is in the way. The **store** (`store`, `merge`, `batch`,
//! `landing`) is ours alone and holds the truth. **Workspaces** and **lanes** (`workspace`, `lane`, `collect`,
//! `in_flight`) are checkouts that agents and verification commands may turn into anything: nothing in them is obeyed.

mod acceptance;
mod batch;
mod beside;
mod checkout_update;
mod collect;
mod file_swap;
pub(crate) mod files;
mod handover;
mod in_flight;
mod include;
mod index;
mod landing;
mod lane;
mod lease;
mod login;
mod merge;
mod names;
mod news;
mod nook;
mod object_repair;
mod objects;
mod open_files;
mod pack;
mod publish;
mod rebuild;
mod repo;
mod room;
mod run;
mod store;
mod store_repair;
mod threeway;
mod tree;
mod tree_edit;
mod workspace;

pub use batch::{BatchMerge, BatchMergeExclusion, MergedPrefix};
pub use collect::{
    CollectError, CollectOptions, CollectedWork, LeftoverCommit, LostHeadPolicy, NestedRepo,
    NestedRepoOutcome,
};
pub use in_flight::{TrialMerge, WorkInProgress};
pub use include::{InclusionRefusal, InclusionReport};
pub use landing::{LandingClaim, LandingMismatch, LandingProof};
pub use lane::{IgnoredFilesPolicy, Lane, LaneCheckout};
pub use login::{LoginError, read_login_token};
pub use merge::{ConflictKind, ConflictedPath, MergeResult};
pub use names::{BadName, BranchName, Oid, RefName};
pub use news::BranchNews;
pub use nook::ExchangeFolder;
pub use object_repair::ObjectRepairs;
pub use pack::LooseObjectStats;
pub use publish::{BlockedFile, BlockedFileReason, HeldReason, PublishMethod, PublishMode, PublishOutcome};
pub use rebuild::RebuiltWorkspace;
pub use repo::{BlobContent, BlobReader, CheckoutHead, ObjectFormat, Repo, RepoProblem};
pub use run::{Git, GitError, GitErrorKind, Signature};
pub use store::{
    BASE_REF, ChangedPath, CommitLogEntry, CompareAndSwap, DiffOptions, DiffText, LogRange, Store,
    StoreHealth, TreeChange,
};
pub use store_repair::StoredWork;
pub use tree::{CommitTree, TreeEntryKind};
pub use tree_edit::PathContent;
pub use workspace::{WarmWorkspace, Workspace, WorkspaceBackup, WorkspacePool};
