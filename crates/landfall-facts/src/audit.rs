//! The size of a change.

use serde::{Deserialize, Serialize};

/// How large a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChangeSize {
    /// Files changed.
    pub files: u32,
    /// Lines changed.
    pub lines: u32,
    /// Folders they are in.
    pub dirs: u32,
}
