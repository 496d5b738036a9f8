//! The reference page of the settings, written from the schema.

use super::resolve::Settings;

impl Settings {
    /// The reference page, as Markdown.
    #[must_use]
    pub fn reference() -> String {
        String::new()
    }
}
