//! The settings of a project, key by key.

use serde::{Deserialize, Serialize};

/// The settings of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingsReport {
    /// The file, within the repository.
    pub file: String,
    /// Whether it is there.
    pub exists: bool,
    /// Its text.
    pub text: String,
    /// Whether it can be used. A run goes on with what was in force before, where it cannot.
    pub usable: bool,
    /// What is wrong with it.
    pub problems: Vec<SettingProblem>,
    /// The tables there are, in the order of the reference.
    pub sections: Vec<SettingSection>,
}

/// A table of the settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingSection {
    /// Its name as it stands in the file, such as `run` or `agent.NAME`.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// Its keys. A table that can be there several times is listed once for each that is.
    pub keys: Vec<SettingKey>,
}

/// One key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingKey {
    /// Its name in full, such as `run.slots`.
    pub key: String,
    /// What it says.
    pub about: String,
    /// What kind of value it takes, and which.
    pub takes: String,
    /// What is in force.
    pub value: serde_json::Value,
    /// What is in force when nobody says; null where there is none.
    pub default: serde_json::Value,
    /// Whether the file says so.
    pub set: bool,
    /// The line that does, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// Something that is wrong with the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingProblem {
    /// What is wrong.
    pub text: String,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// The key, if it is one that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// The known key that is nearest to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The whole text of the file with this mended, where that is plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mended: Option<String>,
}
