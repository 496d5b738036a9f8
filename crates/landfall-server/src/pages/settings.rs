//! The settings: every key, what is in force and why, and what is wrong with the file.

use askama::Template;
use landfall_api::{Ask as _, Nothing, Problem, SettingSection, SettingsReport};
use serde_json::Value;

use super::{Page, Visit, words};

#[derive(Template)]
#[template(path = "settings.html")]
struct Settings<'a> {
    report: &'a SettingsReport,
    /// Only what the file says.
    set: bool,
}

pub(super) fn draw(visit: &Visit<'_>) -> Result<Page, Problem> {
    let report = visit.settings(Nothing {})?;
    Page::new("Settings", &Settings { report: &report, set: visit.asked("set").is_some() })
}

/// Whether the file says anything of a table.
fn says(section: &SettingSection) -> bool {
    section.keys.iter().any(|key| key.set)
}

/// A value as the file would say it.
fn value(value: &Value) -> String {
    match value {
        Value::Null => "—".to_owned(),
        other => words::visible(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use landfall_api::{SettingKey, SettingProblem};
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_and_problems_are_shown_and_words_stay_words() {
        let hostile = || "<script>x</script>".to_owned();
        let report = SettingsReport {
            file: hostile(),
            exists: true,
            text: hostile(),
            usable: false,
            problems: vec![SettingProblem {
                text: hostile(),
                line: Some(3),
                column: Some(1),
                unknown: Some(hostile()),
                nearest: Some("slots".to_owned()),
                hint: Some(hostile()),
                mended: Some(hostile()),
            }],
            sections: vec![SettingSection {
                name: hostile(),
                about: hostile(),
                keys: vec![SettingKey {
                    key: hostile(),
                    about: hostile(),
                    takes: hostile(),
                    value: json!(hostile()),
                    default: Value::Null,
                    set: true,
                    line: Some(4),
                }],
            }],
        };
        for set in [false, true] {
            let html = Settings { report: &report, set }.render().expect("drawn");
            assert!(!html.contains("<script") && html.contains("slots"), "{html}");
        }
    }
}
