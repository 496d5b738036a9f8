//! A decision in place: what waits for a person, with one text and a button for each answer. The inbox and the pages of a task
//! show the same.
//!
//! All answers of a decision stand in one form, so that a person writes a text once and then chooses. The form says for each
//! answer which operation it is and what its fields are; the button that was pressed says which answer is meant.

use std::borrow::Cow;

use askama::Template;
use landfall_api::{Action, InboxItem, Problem, ProblemCode, QuickIssue, Service as _};

use super::{FormFields, PageContext, parts, response_text, words};
use crate::forms;

/// What can be answered.
#[derive(Template)]
#[template(path = "decide.html")]
pub(super) struct DecisionForm {
    /// What its elements are called by; unique on the page.
    id: String,
    /// The operations of all answers, as fields of the form.
    hidden: Vec<(String, String)>,
    /// The text that goes with an answer, if one takes any.
    text: Option<DecisionText>,
    answers: Vec<AnswerButton>,
    /// Answers that the question itself lists.
    choices: Vec<AnswerButton>,
    /// Complaints that can be ticked, where changes are requested.
    pub(super) issues: Vec<QuickIssue>,
    /// Answers that are asked about once more. Each is a form of its own.
    last_resorts: Vec<FallbackForm>,
    back: String,
}

impl askama::filters::HtmlSafe for DecisionForm {}

struct DecisionText {
    label: String,
    is_required: bool,
}

struct AnswerButton {
    /// Which answer of the form it is.
    value: String,
    label: String,
    /// The key that presses it, if it has one.
    key: &'static str,
    needs_text: bool,
}

struct FallbackForm {
    op: String,
    label: String,
    fields: Vec<(String, String)>,
    text: Option<(String, DecisionText)>,
}

/// One action, taken apart: its fields without the one that a person fills in, and the name of that one.
struct AnswerFields<'a> {
    action: &'a Action,
    fields: Vec<(String, String)>,
    text_field: Option<String>,
    decision: Option<&'a str>,
}

impl<'a> AnswerFields<'a> {
    /// None if a form cannot say the action.
    fn from_action(action: &'a Action) -> Option<Self> {
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if action.op.is_empty() || !plain(&action.op) {
            return None;
        }
        let mut fields = Vec::new();
        parts::flatten_fields(&action.asked, "", &mut fields)?;
        let decision = action.asked.pointer("/said/decision").and_then(|word| word.as_str());
        let mut text_field =
            action.fill.as_ref().map(|fill| fill.at.trim_start_matches('/').replace('/', "."));
        if (action.op.as_str(), decision) == ("review", Some("approve")) {
            text_field = Some("said.note".to_owned()); // an approval may carry a comment
        }
        if let Some(name) = &text_field {
            fields.retain(|(field, _)| field != name);
        }
        Some(Self { action, fields, text_field, decision })
    }

    fn shortcut_key(&self) -> &'static str {
        match (self.action.op.as_str(), self.decision) {
            ("review", Some("approve")) => "a",
            ("review", Some("changes")) => "c",
            ("review", Some("defer")) => "d",
            _ => "",
        }
    }

    fn is_changes(&self) -> bool {
        self.decision == Some("changes")
    }
}

impl DecisionForm {
    /// Everything that can be answered to an item of the inbox. `back` is the page that comes next.
    pub(super) fn for_item(item: &InboxItem, back: &str) -> Self {
        let id: String =
            item.key.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' }).collect();
        let mut made = Self {
            id,
            hidden: Vec::new(),
            text: None,
            answers: Vec::new(),
            choices: Vec::new(),
            issues: Vec::new(),
            last_resorts: Vec::new(),
            back: back.to_owned(),
        };
        for (place, answer) in item.actions.iter().filter_map(AnswerFields::from_action).enumerate() {
            let fill = answer.action.fill.as_ref();
            if answer.action.confirm {
                made.last_resorts.push(FallbackForm {
                    op: answer.action.op.clone(),
                    label: words::line(&answer.action.label),
                    text: answer.text_field.clone().zip(fill.map(|fill| DecisionText {
                        label: words::line(&fill.label),
                        is_required: fill.required,
                    })),
                    fields: answer.fields,
                });
                continue;
            }
            let needs_text = fill.is_some_and(|fill| fill.required);
            if let Some(fill) = fill {
                let text = made.text.get_or_insert_with(|| DecisionText {
                    label: words::line(&fill.label),
                    is_required: false,
                });
                text.is_required |= needs_text;
            }
            made.answers.push(AnswerButton {
                value: place.to_string(),
                label: words::line(&answer.action.label),
                key: answer.shortcut_key(),
                needs_text,
            });
            if answer.action.op == "answer" && needs_text {
                made.choices.extend(item.choices.iter().map(|choice| AnswerButton {
                    value: format!("{place}={choice}"),
                    label: words::line(choice),
                    key: "",
                    needs_text: false,
                }));
            }
            made.add_hidden_fields(place, &answer);
        }
        made
    }

    /// Puts an answer into the form.
    fn add_hidden_fields(&mut self, place: usize, answer: &AnswerFields<'_>) {
        let mut put =
            |name: &str, value: &str| self.hidden.push((format!("a{place}.{name}"), value.to_owned()));
        put("op", &answer.action.op);
        if let Some(name) = &answer.text_field {
            put("text", name);
        }
        if answer.is_changes() {
            put("issues", "yes");
        }
        for (name, value) in answer.fields.iter().filter(|(name, _)| name != "said.redo") {
            put(&format!("field.{name}"), value);
        }
    }

    /// Lets a person tick complaints that have a name. One of them is enough: a text is not needed then.
    pub(super) fn add_issue_checkboxes(&mut self, issues: &[QuickIssue]) {
        let Some(changes) = self.answers.iter_mut().find(|answer| answer.key == "c") else { return };
        self.issues = issues.to_vec();
        if !issues.is_empty() {
            changes.needs_text = false;
        }
        if let Some(text) = &mut self.text {
            text.is_required = self.answers.iter().any(|answer| answer.needs_text);
        }
    }

    /// Whether changes can be requested here.
    pub(super) fn can_request_changes(&self) -> bool {
        self.answers.iter().any(|answer| answer.key == "c")
    }

    /// Whether there is anything to answer.
    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.last_resorts.is_empty()
    }
}

/// Sends the answer whose button was pressed.
pub(super) fn send(visit: &PageContext<'_>, fields: &FormFields) -> Result<String, Problem> {
    let bad = |what: &str| {
        Problem::new(ProblemCode::BadInput, format!("the answer cannot be understood: {what}"))
            .with_hint("reload the page and answer again")
    };
    let pressed = fields.first_text("do").ok_or_else(|| bad("no button was pressed"))?;
    let (place, choice) = match pressed.split_once('=') {
        Some((place, choice)) => (place, Some(choice)),
        None => (pressed, None),
    };
    let prefix = format!("a{place}.");
    let own: Vec<(&str, &str)> = fields
        .0
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(&prefix)?, value.as_str())))
        .collect();
    let find = |wanted: &str| own.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
    let op = find("op").ok_or_else(|| bad("it has no such button"))?;
    let text: Cow<'_, str> = match choice {
        Some(choice) => choice.into(),
        None => fields.first_text("words").unwrap_or_default().replace("\r\n", "\n").into(),
    };
    let mut asked: Vec<(String, String)> = own
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("field.")?.to_owned(), (*value).to_owned())))
        .collect();
    if let Some(name) = find("text") {
        asked.push((name.to_owned(), text.into_owned()));
    }
    if find("issues").is_some() {
        let shared = fields.0.iter().filter(|(name, _)| name.starts_with("said."));
        asked.extend(shared.cloned());
    }
    visit.call(forms::read(op, &asked)?).map(|response| response_text(&response))
}

#[cfg(test)]
mod tests {
    use landfall_api::{InboxKind, Request, Retry, ReviewAsked, ReviewSaid, WireTaskId};

    use super::*;

    fn item(actions: Vec<Action>, choices: &[&str]) -> InboxItem {
        InboxItem {
            key: "question-T7-3".to_owned(),
            kind: InboxKind::Question,
            task: Some(WireTaskId(7)),
            title: "<b>x</b>".to_owned(),
            text: String::new(),
            step: None,
            since_ms: 0,
            until_ms: None,
            overdue: String::new(),
            choices: choices.iter().map(|text| (*text).to_owned()).collect(),
            concerns: Vec::new(),
            findings: Vec::new(),
            reply: None,
            files: Vec::new(),
            commit: None,
            actions,
        }
    }

    fn review() -> Vec<Action> {
        let say = |label, said| {
            Action::new(label, &Request::Review(ReviewAsked { tasks: vec![WireTaskId(7)], said }))
        };
        let changes = ReviewSaid::Changes {
            issues: Vec::new(),
            note: String::new(),
            redo: landfall_api::Redo::Keep,
            hint: None,
        };
        vec![
            say("Approve", ReviewSaid::Approve { note: String::new() }),
            say("Request changes", changes).with_fill("/said/note", "Comment", true),
            say("Reject", ReviewSaid::Reject { note: String::new() })
                .with_fill("/said/note", "Why", true)
                .with_confirmation(),
        ]
    }

    #[test]
    fn one_text_serves_all_answers() {
        let retry = |fresh| {
            let asked = Retry { tasks: vec![WireTaskId(7)], fresh, note: None };
            Action::new("Retry", &Request::Retry(asked)).with_fill("/note", "Note", false)
        };
        let html = DecisionForm::for_item(&item(vec![retry(false), retry(true)], &[]), "/").to_string();
        assert_eq!(html.matches("<textarea").count(), 1, "{html}");
        assert_eq!(html.matches("name=\"do\"").count(), 2, "{html}");
    }

    #[test]
    fn an_answer_without_a_text_is_not_held_up_by_the_text_of_another() {
        let html = DecisionForm::for_item(&item(review(), &[]), "/").to_string();
        let button = |value: &str| {
            let at = html.find(&format!("name=\"do\" value=\"{value}\"")).expect("a button");
            html[at..].split('>').next().unwrap_or_default().to_owned()
        };
        assert!(button("0").contains("formnovalidate"), "{html}");
        assert!(!button("1").contains("formnovalidate"), "{html}");
        assert!(html.contains("data-confirm=\"Reject?\""), "{html}");
    }

    #[test]
    fn the_answers_that_a_question_lists_are_buttons() {
        let asked = Request::Answer(landfall_api::Answer { task: WireTaskId(7), text: String::new() });
        let answer = Action::new("Answer", &asked).with_fill("/text", "Your answer", true);
        let html = DecisionForm::for_item(&item(vec![answer], &["<b>tabs</b>", "spaces"]), "/").to_string();
        assert!(html.contains("value=\"0=spaces\""), "{html}");
        assert!(!html.contains("<b>"), "{html}");
    }
}
