//! Module folders: tasks that live as files in a repository, in the forms of three earlier systems.
//!
//! Three layers. *Formats* are pure: text in, values out, values into text. *Folders* touch the disk: find, read, write
//! atomically, lock, mend. *Projection* says what a folder should hold for a state, and what a person changed by hand
//! since. The journal is the truth; a folder is a picture of it that people may draw on (design 0009).
//!
//! Nothing here spawns a process or reads a clock: what git knows and what time it is come from the caller.

pub mod annotation;
pub mod baseline;
mod document;
pub mod entry;
pub mod folder;
pub mod hooks;
pub mod init;
pub mod listing;
pub mod lock;
pub mod mend;
pub mod metadata;
pub mod news;
mod problem;
pub mod project;
pub mod record;
pub mod refinement;
pub mod signal;
pub mod spec;
pub mod summary;
pub mod target;
pub mod text;
pub mod type_profile;
pub mod write;

pub use folder::{ModuleFolderSnapshot, ModuleLocation, ModuleScan, find_modules, read};
pub use metadata::{Metadata, MetadataFormat};
pub use news::{ModuleChange, WriteLog, find_changes};
pub use problem::{ModuleFormatError, UnreadableMetadata};
pub use project::{ModuleDocuments, plan_projection};
pub use record::{CompletedStage, ModuleDependency, ModulePhase, ModuleRecord, ModuleStatus, NotebookStages};
pub use spec::{ModuleSpec, read_wanted_task};
pub use write::{ExpectedFile, ModuleWrite, apply};
