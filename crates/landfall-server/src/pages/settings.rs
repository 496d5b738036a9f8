//! The settings: every key, what is in force and why, and what is wrong with the file.

use askama::Template;
use landfall_api::{Nothing, Problem, SettingSection, SettingsReport, TypedService as _};
use serde_json::Value;

use super::{PageContext, RenderedPage, words};

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage<'a> {
    report: &'a SettingsReport,
    /// Only what the file says.
    set: bool,
    /// Only keys that have these words.
    find: &'a str,
}

pub(super) fn draw_settings_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let mut report = visit.settings(Nothing {})?;
    let find = visit.query_value("find").unwrap_or_default();
    filter_keys(&mut report.sections, find);
    RenderedPage::new(
        "Settings",
        &SettingsPage { report: &report, set: visit.query_value("set").is_some(), find },
    )
}

/// Keeps the keys that have all the words in their name or their description.
fn filter_keys(sections: &mut Vec<SettingSection>, find: &str) {
    let find = find.to_lowercase();
    for section in sections.iter_mut() {
        section.keys.retain(|key| {
            let text = format!("{} {}", key.key, key.about).to_lowercase();
            find.split_whitespace().all(|word| text.contains(word))
        });
    }
    sections.retain(|section| !section.keys.is_empty());
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
    fn a_setting_is_found_by_its_words() {
        let key = |name: &str, about: &str| SettingKey {
            key: name.to_owned(),
            about: about.to_owned(),
            takes: String::new(),
            value: Value::Null,
            default: Value::Null,
            set: false,
            line: None,
        };
        let section =
            |keys: Vec<SettingKey>| SettingSection { name: String::new(), about: String::new(), keys };
        let mut sections = vec![
            section(vec![key("run.slots", "How many agents work"), key("run.mode", "Who picks")]),
            section(vec![key("land.batch", "How many land")]),
        ];
        filter_keys(&mut sections, "Agents run");
        let names: Vec<&str> =
            sections.iter().flat_map(|section| &section.keys).map(|key| key.key.as_str()).collect();
        assert_eq!(names, ["run.slots"]);
    }

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
            let html = SettingsPage { report: &report, set, find: "" }.render().expect("drawn");
            assert!(!html.contains("<script") && html.contains("slots"), "{html}");
        }
    }
}
