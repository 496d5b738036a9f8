//! Verify commands of a project's own: `.landfall/verify-commands/NAME.md`. The file says in plain words what a judge has to look
//! for, and in two lines what it may be used for.

use std::collections::BTreeSet;

use super::catalogue::{self, Permission};

/// Where such files are, the first folder first.
pub const HANDLER_FOLDERS: [&str; 2] = [".landfall/verify-commands", ".wholework/verify-commands"];

/// A verify command of a project's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomVerifyCommand {
    /// Its name: that of the file.
    pub name: String,
    /// Whether it may be used where the text of an issue sets nothing going.
    pub in_safe_mode: bool,
    /// Whether someone has to allow it.
    pub permission: Permission,
    /// What it says.
    pub text: String,
}

impl CustomVerifyCommand {
    /// The command in a file. Whatever it does not say clearly counts as the stricter of two.
    #[must_use]
    pub fn parse(name: &str, text: &str) -> Option<Self> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > 60 || name.starts_with('-') || !name.bytes().all(legal) {
            return None;
        }
        let said = |label: &str| {
            let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix(label));
            line.map(|rest| rest.trim().trim_matches('`').to_ascii_lowercase()).unwrap_or_default()
        };
        let permission = match said("**Permission:**").as_str() {
            "always_allow" => Permission::Allow,
            _ => Permission::Ask,
        };
        let in_safe_mode = said("**Safe mode:**") == "compatible";
        Some(Self { name: name.to_owned(), in_safe_mode, permission, text: text.to_owned() })
    }

    /// Whether a command of ours has the same name. Ours goes first, and whoever wrote this one is told.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        catalogue::find_command(&self.name).is_some()
    }
}

/// The names that criteria may use.
#[must_use]
pub fn handler_names(handlers: &[CustomVerifyCommand]) -> BTreeSet<String> {
    handlers.iter().filter(|handler| !handler.is_hidden()).map(|handler| handler.name.clone()).collect()
}
