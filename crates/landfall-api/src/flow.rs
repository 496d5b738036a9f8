//! Flows, for people who choose or write one.

use serde::{Deserialize, Serialize};

/// The flows there are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowList {
    /// By name.
    pub flows: Vec<FlowLine>,
}

/// One flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowLine {
    /// What it is called.
    pub name: String,
    /// What it is for, in one line.
    pub about: String,
    /// Where it comes from.
    pub origin: FlowOrigin,
    /// Its steps, the first one first.
    pub steps: Vec<String>,
    /// Whether tasks without a flow of their own take it.
    pub default: bool,
    /// Why a task that a person adds cannot take it, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_yet: Option<String>,
}

/// Where a flow comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FlowOrigin {
    /// It is part of Landfall.
    BuiltIn,
    /// It is a file of the project.
    Project,
}

/// Asks for one flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowShow {
    /// What it is called.
    pub name: String,
    /// How to draw it.
    pub form: FlowForm,
}

/// How a flow is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FlowForm {
    /// Lines of text.
    #[default]
    Text,
    /// A Mermaid state diagram.
    Mermaid,
    /// The file itself.
    Source,
}

/// A flow, drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowDrawing {
    /// What it is called.
    pub name: String,
    /// How it is drawn.
    pub form: FlowForm,
    /// The drawing.
    pub text: String,
}

/// Asks whether a flow file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowCheck {
    /// What to call it in messages, usually its path.
    pub name: String,
    /// What the file says.
    pub text: String,
}

/// What is wrong with a flow file; nothing, if there are no problems.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowChecked {
    /// What it was called in the request.
    pub name: String,
    /// In the order of the file.
    pub problems: Vec<FlowProblem>,
}

/// One thing that is wrong with a flow file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowProblem {
    /// Where, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
