//! Parts of pages that many of them have: badges, moments, bars, buttons that send an action. Each is drawn from plain values and
//! escapes them itself, so a template puts it in as it is.

use std::borrow::Borrow;

use askama::Template;
use askama::filters::HtmlSafe;
use landfall_api::{Action, Status};
use serde_json::Value;

use super::words;

/// A status: its symbol and its word.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<span class="badge s-{{ status.word() }}"><span class="beat" aria-hidden="true">{{ words::symbol(status) }}</span>{{ status.word() }}</span>"#
)]
pub(super) struct Badge {
    status: Status,
}

impl HtmlSafe for Badge {}

/// A status as a badge.
pub(super) fn badge(status: impl Borrow<Status>) -> Badge {
    Badge { status: *status.borrow() }
}

/// A moment, as far away as it is, with the moment itself to be looked at.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<time datetime="{{ words::to_rfc3339(at_ms) }}" title="{{ words::moment(at_ms) }}" data-{{ kind }}="{{ at_ms }}">{{ text }}</time>"#
)]
pub(super) struct RelativeTime {
    at_ms: i64,
    /// What scripts do with it: `ago` keeps it fresh, `until` counts down.
    kind: &'static str,
    text: String,
}

impl HtmlSafe for RelativeTime {}

/// A moment that was, or will be: `3 min ago`.
pub(super) fn ago(now_ms: impl Borrow<i64>, at_ms: impl Borrow<i64>) -> RelativeTime {
    let (now_ms, at_ms) = (*now_ms.borrow(), *at_ms.borrow());
    RelativeTime { at_ms, kind: "ago", text: words::relative_time(now_ms, at_ms) }
}

/// The time until a moment, counted down: `1h 12m`.
pub(super) fn until(now_ms: impl Borrow<i64>, at_ms: impl Borrow<i64>) -> RelativeTime {
    let (now_ms, at_ms) = (*now_ms.borrow(), *at_ms.borrow());
    let left = u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or_default();
    RelativeTime { at_ms, kind: "until", text: words::length(left / 1000 * 1000) }
}

/// How much of something is used, as a bar.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<svg class="bar {{ tone }}" role="img" aria-label="{{ label }}"><rect class="track" width="100%" height="100%"/><rect class="fill" width="{{ percent }}%" height="100%"/></svg>"#
)]
pub(super) struct ProgressBar {
    percent: u32,
    tone: &'static str,
    label: String,
}

impl HtmlSafe for ProgressBar {}

/// A bar that is filled to `percent`, in a tone such as `good`; `label` says the same in words.
pub(super) fn progress_bar(percent: f64, tone: &'static str, label: impl Into<String>) -> ProgressBar {
    ProgressBar { percent: to_whole_percent(percent), tone, label: label.into() }
}

/// A bar of something that is used up: blue, amber from 75 per cent, red from 95.
pub(super) fn used(percent: impl Into<f64>, label: impl Into<String>) -> ProgressBar {
    let percent = percent.into();
    let tone = match to_whole_percent(percent) {
        0..75 => "info",
        75..95 => "warn",
        _ => "bad",
    };
    progress_bar(percent, tone, label)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 100")]
fn to_whole_percent(percent: f64) -> u32 {
    if percent.is_finite() { percent.clamp(0.0, 100.0).round() as u32 } else { 0 }
}

/// An action as a form with one button, and a text where the person still writes one.
#[derive(Template)]
#[template(
    ext = "html",
    source = r##"<form class="row" method="post" action="/do/{{ op }}" hx-post="/do/{{ op }}" hx-target="#toasts" hx-swap="beforeend"{% if confirm %} data-confirm="{{ label }}?"{% endif %}>
{%- for (name, value) in fields %}<input type="hidden" name="{{ name }}" value="{{ value }}">{% endfor -%}
<input type="hidden" name="back" value="{{ back }}">
{%- if let Some(fill) = fill %}<label class="inline"><span class="hidden-text">{{ fill.label }}</span><input name="{{ fill.name }}" placeholder="{{ fill.label }}"{% if fill.required %} required{% endif %}></label>{% endif -%}
{%- if confirm %}<label class="inline sure"><input type="checkbox" required> sure</label>{% endif -%}
<button type="submit" class="small{% if confirm %} danger{% endif %}">{{ label }}</button></form>"##
)]
pub(super) struct ActionButton {
    op: String,
    label: String,
    fields: Vec<(String, String)>,
    fill: Option<FillField>,
    confirm: bool,
    back: String,
}

struct FillField {
    name: String,
    label: String,
    required: bool,
}

impl HtmlSafe for ActionButton {}

/// An action as a form that comes back to the page `back`; none if a form cannot say it.
pub(super) fn act(action: &Action, back: &str) -> Option<ActionButton> {
    let plain =
        |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    let fill = action.fill.as_ref().map(|fill| FillField {
        name: fill.at.trim_start_matches('/').replace('/', "."),
        label: words::line(&fill.label),
        required: fill.required,
    });
    let mut fields = Vec::new();
    flatten_fields(&action.asked, "", &mut fields)?;
    if let Some(fill) = &fill {
        fields.retain(|(name, _)| *name != fill.name);
    }
    plain(&action.op).then(|| ActionButton {
        op: action.op.clone(),
        label: words::line(&action.label),
        fields,
        fill,
        confirm: action.confirm,
        back: back.to_owned(),
    })
}

/// The fields of a form that make these words; none if there are no such fields.
pub(super) fn flatten_fields(words: &Value, at: &str, fields: &mut Vec<(String, String)>) -> Option<()> {
    match words {
        Value::Null => {}
        Value::Bool(it) => fields.push((format!("{at}:b"), it.to_string())),
        Value::Number(it) => fields.push((format!("{at}:n"), it.to_string())),
        Value::String(it) => fields.push((at.to_owned(), it.clone())),
        Value::Array(items) => {
            for item in items {
                fields.push((format!("{at}[]"), item.as_str()?.to_owned()));
            }
        }
        Value::Object(entries) => {
            for (name, value) in entries {
                let inner = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                flatten_fields(value, &inner, fields)?;
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use landfall_api::{Request, TaskAsked, WireTaskId};
    use serde_json::json;

    use super::*;

    #[test]
    fn an_action_is_a_form_that_says_the_same() {
        let mut action = Action::new("Undo <b>it</b>", &Request::Rollback(TaskAsked { task: WireTaskId(7) }))
            .with_confirmation();
        let html = act(&action, "/").expect("a form can say it").to_string();
        assert!(html.contains(r#"action="/do/rollback""#), "{html}");
        assert!(html.contains(r#"name="task" value="T7""#), "{html}");
        assert!(html.contains("data-confirm=\"Undo &#60;b&#62;it&#60;/b&#62;?\""), "{html}");
        action.asked = json!({"said": {"changes": {"note": "x", "deep": true}}, "tasks": ["T1", "T2"], "none": null, "n": 3});
        let fields = act(&action, "/").expect("a form can say it").fields;
        let mut fields: Vec<String> =
            fields.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        fields.sort(); // an object has no order
        assert_eq!(
            fields.join(" "),
            "n:n=3 said.changes.deep:b=true said.changes.note=x tasks[]=T1 tasks[]=T2"
        );
    }

    #[test]
    fn bars_stay_within_their_track() {
        for (percent, width) in [(-1.0, "0%"), (42.4, "42%"), (1e9, "100%"), (f64::NAN, "0%")] {
            assert!(
                progress_bar(percent, "good", "x")
                    .to_string()
                    .contains(&format!(r#"class="fill" width="{width}""#))
            );
        }
    }
}
