//! The settings, key by key, as they stand in the checkout.

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::host::user_file::{USER_FILE_BYTES_MAX, read_user_text};
use landfall_engine::settings::Settings;

use crate::project::place::ProjectLocation;

const FILE: &str = "landfall.toml";

pub(crate) fn settings_report(place: &ProjectLocation) -> Result<Box<api::SettingsReport>, Problem> {
    let path = place.root.join(FILE);
    let (exists, text) = match read_user_text(&path, USER_FILE_BYTES_MAX) {
        Ok(text) => (true, text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => (false, String::new()),
        Err(error) => {
            return Err(Problem::new(ProblemCode::SettingsBroken, format!("cannot read `{FILE}`: {error}")));
        }
    };
    let described = Settings::describe_text(&text, FILE);
    let line = |line: Option<usize>| line.map(|line| line as u64);
    let problems = described.wrong.into_iter().map(|it| api::SettingProblem {
        text: it.text,
        line: line(it.line),
        column: line(it.column),
        unknown: it.unknown,
        nearest: it.nearest,
        hint: it.hint,
        mended: it.mended,
    });
    let sections = described.sections.into_iter().map(|section| api::SettingSection {
        name: section.name,
        about: section.about,
        keys: section
            .keys
            .into_iter()
            .map(|key| api::SettingKey {
                key: key.name,
                about: key.about,
                takes: key.takes,
                value: key.value,
                default: key.default,
                set: key.line.is_some(),
                line: line(key.line),
            })
            .collect(),
    });
    Ok(Box::new(api::SettingsReport {
        file: FILE.to_owned(),
        exists,
        usable: described.usable,
        problems: problems.collect(),
        sections: sections.collect(),
        text,
    }))
}
