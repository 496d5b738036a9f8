//! The plugin for a person's assistant: what it consists of, where it goes, and how it gets there and away again.
//!
//! The files are those of the folder `plugin/` of the repository and come with the program. `stamp` marks each copy, so
//! that a copy that a person changed is known; `spot` compares a place with what belongs there and changes it.

mod files;
mod spot;
mod stamp;

pub use spot::{
    ChangeKind, PluginFileChange, PluginFileError, PluginHost, PluginLocation, PluginPlan, UntouchedFile,
};

#[cfg(test)]
pub use files::SKILLS;
