//! `docs/reference/openapi.json`: written from the table of operations and the types. `LANDFALL_BLESS=1` writes it again.

use std::collections::BTreeSet;
use std::path::Path;

use landfall_api::{ProblemCode, Request, http, openapi};
use serde_json::Value;

#[test]
fn the_reference_is_what_the_types_say() {
    let document = openapi::openapi_document();
    let text = serde_json::to_string_pretty(&document).expect("json") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
    if std::env::var_os("LANDFALL_BLESS").is_some() {
        std::fs::write(&path, &text).expect("write the reference");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == text, "LANDFALL_BLESS=1 cargo test -p landfall-api --test it openapi writes it again");
}

#[test]
fn every_operation_is_in_it_and_every_reference_leads_somewhere() {
    let document = openapi::openapi_document();
    for route in Request::ROUTES {
        let there =
            &document["paths"][format!("{}{}", http::ROOT, route.path)][route.method.word().to_lowercase()];
        assert_eq!(there["operationId"], route.name);
        let named: BTreeSet<&str> = there["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|it| it["in"] == "path")
            .filter_map(|it| it["name"].as_str())
            .collect();
        let fields: BTreeSet<&str> = http::split_path(route.path)
            .filter_map(|piece| match piece {
                http::PathSegment::Field(name) => Some(name),
                http::PathSegment::Plain(_) => None,
            })
            .collect();
        assert_eq!(named, fields, "{}", route.name);
    }
    let mut references = Vec::new();
    gather(&document, &mut references);
    assert!(references.len() > 300, "{}", references.len());
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("within the document");
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

#[test]
fn every_code_of_a_problem_is_in_it() {
    let document = openapi::openapi_document();
    let text = document["components"]["schemas"]["ProblemCode"].to_string();
    for code in ProblemCode::ALL {
        assert!(text.contains(&format!("\"{}\"", code.word())), "{}", code.word());
    }
}

fn gather(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                references.push(reference.clone());
            }
            fields.values().for_each(|it| gather(it, references));
        }
        Value::Array(items) => items.iter().for_each(|it| gather(it, references)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
