//! Help: the keys of the pages, and where to find more.

use askama::Template;
use landfall_api::Problem;

use super::{PAGES, PageContext, RenderedPage};

pub(super) fn draw_help_page(_: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let pages = PAGES.iter().filter_map(|entry| entry.nav.map(|(name, key)| (key, name, entry.path)));
    RenderedPage::new("Help", &HelpPage { keys: KEYS, pages: pages.collect() })
}

#[derive(Template)]
#[template(path = "help.html")]
struct HelpPage {
    keys: &'static [(&'static str, &'static str)],
    pages: Vec<(char, &'static str, &'static str)>,
}

/// Every key that does something besides opening a page. `assets/keys.js` does it, with the same words.
const KEYS: &[(&str, &str)] = &[
    ("?", "Show the keys"),
    ("Ctrl-K", "Find a page, a task or an action"),
    ("/", "Search on this page"),
    ("j", "Next card or row"),
    ("k", "Previous card or row"),
    ("Enter", "Open it"),
    ("+", "Add a task"),
    ("i", "Actions: message, pause, redirect"),
    ("d", "Defer: work on it later"),
    ("b", "Block it, with a reason"),
    ("x", "Stop it"),
    ("1", "Open the first agent's task (to 9)"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_the_keys_that_the_script_handles() {
        let script = include_str!("../../assets/keys.js");
        for (key, what) in KEYS {
            let row = format!(r#"{{ key: "{key}", what: "{what}""#);
            assert!(script.contains(&row), "keys.js has no row {row}");
        }
        assert_eq!(script.matches("{ key: \"").count(), KEYS.len(), "keys.js has another number of rows");
    }

    /// Space scrolls every page. A key that is pressed without a thought must not change who picks the next task.
    #[test]
    fn space_does_nothing_but_scroll() {
        let script = include_str!("../../assets/keys.js");
        assert!(!script.contains("Space") && !script.contains("act-auto"), "a key switches the autopilot");
    }

    #[test]
    fn no_page_takes_the_key_of_something_else() {
        let mut taken: Vec<char> = KEYS.iter().filter_map(|(key, _)| key.parse().ok()).collect();
        for (name, key) in PAGES.iter().filter_map(|entry| entry.nav) {
            assert!(!taken.contains(&key), "the page {name} has the key {key} of something else");
            taken.push(key);
        }
    }
}
