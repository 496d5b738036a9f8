//! What programs can ask for: every operation with its words, and every type they are made of, as the description of the
//! operations tells.

use std::sync::LazyLock;

use askama::Template;
use landfall_api::http::{IDEMPOTENCY_HEADER, ROOT};
use landfall_api::{Access, HttpMethod, OperationRoute, Problem, ProblemCode, Request};
use serde_json::Value;

use super::{PageContext, RenderedPage, words};
use crate::api::OPENAPI;

/// The description of all operations. It is a file of ours, so it can be read; if not, pages do without.
static DESCRIBED: LazyLock<Value> = LazyLock::new(|| serde_json::from_slice(OPENAPI).unwrap_or_default());

#[derive(Template)]
#[template(path = "reference.html")]
struct ReferencePage {
    groups: Vec<(String, Vec<OperationReference>)>,
}

struct OperationReference {
    route: &'static OperationRoute,
    /// The words of the request: in the path, in the query, in the body.
    asked: Vec<FieldDescription>,
    answer: Vec<TypeWord>,
    example: Option<String>,
}

/// A field: where it is, what it is, what it says.
struct FieldDescription {
    name: String,
    place: String,
    kind: Vec<TypeWord>,
    required: bool,
    about: String,
}

/// A word of a type; a link if it has a page.
#[derive(Debug, PartialEq, Eq)]
struct TypeWord {
    text: String,
    link: Option<String>,
}

#[derive(Template)]
#[template(path = "reference_type.html")]
struct TypePage {
    name: String,
    about: String,
    kind: Vec<TypeWord>,
    fields: Vec<FieldDescription>,
    /// The forms it comes in, each with its fields.
    forms: Vec<(String, Vec<FieldDescription>)>,
}

pub(super) fn draw_reference_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    match visit.query_value("type") {
        Some(name) => RenderedPage::new(format!("Type {}", words::line(name)), &describe_type(name)?),
        None => RenderedPage::new("Operations for programs", &ReferencePage { groups: group_operations() }),
    }
}

/// The operations by the first word of their path.
fn group_operations() -> Vec<(String, Vec<OperationReference>)> {
    let mut groups: Vec<(String, Vec<OperationReference>)> = Vec::new();
    for route in Request::ROUTES {
        let word = route.path.split('/').nth(1).unwrap_or_default();
        let operation = describe_operation(route);
        match groups.iter_mut().find(|(name, _)| name == word) {
            Some((_, operations)) => operations.push(operation),
            None => groups.push((word.to_owned(), vec![operation])),
        }
    }
    groups
}

fn describe_operation(route: &'static OperationRoute) -> OperationReference {
    let described =
        &DESCRIBED["paths"][format!("{ROOT}{}", route.path)][route.method.word().to_ascii_lowercase()];
    let parameters = described["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut asked: Vec<FieldDescription> = parameters
        .iter()
        .filter(|it| it["in"] != "header")
        .map(|it| FieldDescription {
            name: to_text(&it["name"]),
            place: to_text(&it["in"]),
            kind: kind(&it["schema"]),
            required: it["required"] == true,
            about: to_text(&it["description"]),
        })
        .collect();
    let body = &described["requestBody"]["content"]["application/json"];
    asked.extend(list_fields(resolve_reference(&body["schema"]), "body"));
    OperationReference {
        route,
        asked,
        answer: kind(&described["responses"]["200"]["content"]["application/json"]["schema"]),
        example: body.get("example").and_then(|it| serde_json::to_string(it).ok()),
    }
}

fn describe_type(name: &str) -> Result<TypePage, Problem> {
    let schema = DESCRIBED["components"]["schemas"].get(name).ok_or_else(|| {
        Problem::new(ProblemCode::NotFound, format!("no type is called `{}`", words::line(name)))
            .with_hint("what there is: /api")
    })?;
    let forms = ["oneOf", "anyOf"].iter().find_map(|word| schema[*word].as_array());
    let forms = forms.map(Vec::as_slice).unwrap_or_default().iter().map(|form| {
        let title = match form.get("const").or_else(|| form["enum"].get(0)) {
            Some(word) => word.to_string(),
            None => join_type_words(&kind(form)),
        };
        let about = to_text(&form["description"]);
        let title = if about.is_empty() { title } else { format!("{title}: {about}") };
        (title, list_fields(resolve_reference(form), ""))
    });
    Ok(TypePage {
        name: name.to_owned(),
        about: to_text(&schema["description"]),
        kind: kind(schema),
        fields: list_fields(schema, ""),
        forms: forms.collect(),
    })
}

/// The fields of an object.
fn list_fields(schema: &Value, place: &str) -> Vec<FieldDescription> {
    let required = |name: &str| {
        let names = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        names.iter().any(|it| it == name)
    };
    let of = |(name, field): (&String, &Value)| FieldDescription {
        name: name.clone(),
        place: place.to_owned(),
        kind: kind(field),
        required: required(name),
        about: to_text(&field["description"]),
    };
    schema["properties"].as_object().map(|all| all.iter().map(of).collect()).unwrap_or_default()
}

/// What a reference leads to, or the schema itself.
fn resolve_reference(schema: &Value) -> &Value {
    match schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
        Some(path) => DESCRIBED.pointer(path).unwrap_or(schema),
        None => schema,
    }
}

/// A type in words.
fn kind(schema: &Value) -> Vec<TypeWord> {
    let plain = |text: &str| vec![TypeWord { text: text.to_owned(), link: None }];
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return vec![TypeWord {
            text: name.to_owned(),
            link: Some(super::build_link("/api", &[("type", name)])),
        }];
    }
    if let Some(word) = schema.get("const") {
        return plain(&word.to_string());
    }
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        return plain(&choices.join(" or "));
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        if let Some(forms) = schema[word].as_array() {
            let mut pieces = Vec::new();
            for form in forms.iter().filter(|it| it["type"] != "null") {
                if !pieces.is_empty() {
                    pieces.extend(plain(" or "));
                }
                pieces.extend(kind(form));
            }
            return pieces;
        }
    }
    let name = match &schema["type"] {
        Value::Array(names) => names.iter().find(|it| *it != "null").and_then(Value::as_str),
        other => other.as_str(),
    };
    match name {
        Some("array") => {
            let mut pieces = plain("list of ");
            pieces.extend(kind(&schema["items"]));
            pieces
        }
        Some("integer") => plain("whole number"),
        Some("boolean") => plain("true or false"),
        Some("string") => plain("text"),
        Some("object") if schema["additionalProperties"].is_object() => {
            let mut pieces = plain("object with values of ");
            pieces.extend(kind(&schema["additionalProperties"]));
            pieces
        }
        Some(other) => plain(other),
        None => plain("anything"),
    }
}

fn join_type_words(pieces: &[TypeWord]) -> String {
    pieces.iter().map(|it| it.text.as_str()).collect()
}

fn to_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn access(access: Access) -> &'static str {
    match access {
        Access::Read => "anybody with a token",
        Access::Suggest => "anybody with a token; what an agent brings is a draft",
        Access::Steer => "people only",
    }
}

/// How it is asked for from a shell.
fn shell(operation: &OperationReference) -> String {
    let route = operation.route;
    let (verb, body) = match route.method {
        HttpMethod::Get | HttpMethod::Delete => (String::new(), String::new()),
        HttpMethod::Post | HttpMethod::Patch => {
            let example = operation.example.as_deref().unwrap_or("{}").replace('\'', r"'\''");
            let body = format!(" -H 'Content-Type: application/json' -d '{example}'");
            (format!(" -X {}", route.method.word()), body)
        }
    };
    let path = route.path;
    format!(
        "curl{verb} -H \"Authorization: Bearer $(landfall project token)\"{body} http://127.0.0.1:7878{ROOT}{path}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_there_once_with_its_words() {
        let html = ReferencePage { groups: group_operations() }.render().expect("drawn");
        for route in Request::ROUTES {
            assert_eq!(html.matches(&format!("id=\"op-{}\"", route.name)).count(), 1, "{}", route.name);
            let operation = describe_operation(route);
            assert!(!operation.answer.is_empty(), "{} has an answer", route.name);
            for field in landfall_api::http::split_path(route.path) {
                if let landfall_api::http::PathSegment::Field(name) = field {
                    assert!(operation.asked.iter().any(|it| it.name == name), "{} in {}", name, route.name);
                }
            }
        }
        let add =
            Request::ROUTES.iter().find(|it| it.name == "add").map(describe_operation).expect("it is there");
        assert_eq!(join_type_words(&add.asked[0].kind), "list of NewTask");
    }

    #[test]
    fn every_type_has_a_page() {
        let names = DESCRIBED["components"]["schemas"].as_object().expect("types");
        for name in names.keys() {
            let page = describe_type(name).expect("a type").render().expect("drawn");
            assert!(page.contains("<h1"), "{name}");
        }
        assert!(describe_type("<script>").is_err());
    }
}
