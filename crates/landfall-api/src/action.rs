//! What can be done about something, ready to be sent.

use serde::{Deserialize, Serialize};

use crate::Request;

/// Something a person can do, ready to be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Action {
    /// What to write on a button.
    pub label: String,
    /// The operation, such as `answer`.
    pub op: String,
    /// Its request.
    pub asked: serde_json::Value,
    /// What the person still writes into the request, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Fill>,
    /// Whether to ask again before it is sent: work is thrown away or the base is changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
}

/// A text that the person writes into a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fill {
    /// Where it belongs within `asked`, as a JSON pointer such as `/text`.
    pub at: String,
    /// What to write.
    pub label: String,
    /// Whether it cannot be left empty.
    pub required: bool,
}

impl Action {
    /// Sends this request.
    ///
    /// # Panics
    /// Never: every request can be written as JSON.
    #[must_use]
    pub fn new(label: &str, request: &Request) -> Self {
        let asked = request.words().expect("requests are plain data");
        Self { label: label.to_owned(), op: request.name().to_owned(), asked, fill: None, confirm: false }
    }

    /// The same, with a text the person writes.
    #[must_use]
    pub fn with_fill(mut self, at: &str, label: &str, required: bool) -> Self {
        self.fill = Some(Fill { at: at.to_owned(), label: label.to_owned(), required });
        self
    }

    /// The same, to be asked about once more.
    #[must_use]
    pub fn with_confirmation(mut self) -> Self {
        self.confirm = true;
        self
    }
}
