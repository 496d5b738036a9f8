//! Samples of requests and answers, made from the reference: a new operation has them before anybody thinks of it.

use std::collections::BTreeMap;

use landfall_api::{OperationRoute, Request, http, openapi};
use serde_json::{Map, Value, json};

const DEPTH_MAX: usize = 14; // references count too

/// A sample for each operation.
pub struct Samples {
    document: Value,
}

impl Samples {
    /// From the reference as it is now.
    pub fn new() -> Self {
        Self { document: openapi::openapi_document() }
    }

    /// The smallest answer of each operation.
    pub fn answers(&self) -> BTreeMap<&'static str, Vec<u8>> {
        let answer = |route: &'static OperationRoute| {
            let schema = &self.operation(route)["responses"]["200"]["content"]["application/json"]["schema"];
            (route.name, serde_json::to_vec(&self.of(schema)).expect("json"))
        };
        Request::ROUTES.iter().map(answer).collect()
    }

    /// The fullest answer of each operation, with this text wherever a text can be.
    pub fn full(&self, text: &str) -> BTreeMap<&'static str, Vec<u8>> {
        let answer = |route: &'static OperationRoute| {
            let schema = &self.operation(route)["responses"]["200"]["content"]["application/json"]["schema"];
            (route.name, serde_json::to_vec(&self.whole(schema, text, 0)).expect("json"))
        };
        Request::ROUTES.iter().map(answer).collect()
    }

    /// Everything that a schema allows, each list with one thing in it.
    fn whole(&self, schema: &Value, text: &str, depth: usize) -> Value {
        if depth > DEPTH_MAX {
            return self.of(schema); // what holds itself ends somewhere
        }
        if let Some(reference) = schema["$ref"].as_str() {
            return self.whole(
                self.document.pointer(&reference[1..]).expect("it leads somewhere"),
                text,
                depth + 1,
            );
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        for word in ["examples", "enum"] {
            if let Some(value) = schema.get(word).and_then(|it| it.get(0)) {
                return value.clone();
            }
        }
        for word in ["oneOf", "anyOf"] {
            if let Some(first) = schema.get(word).and_then(|it| it.get(0)) {
                return self.whole(first, text, depth + 1);
            }
        }
        let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or("null");
        match kind {
            "object" => {
                let all = schema["properties"].as_object().into_iter().flatten();
                // What else there may be is counted by known words.
                let fields: Map<String, Value> =
                    all.map(|(name, of)| (name.clone(), self.whole(of, text, depth + 1))).collect();
                Value::Object(fields)
            }
            "array" => json!([self.whole(&schema["items"], text, depth + 1)]),
            "string" if schema.get("pattern").is_none() && schema.get("format").is_none() => json!(text),
            _ => self.of(schema),
        }
    }

    /// The target and the body of the smallest request at this place.
    pub fn request(&self, method: &str, path: &str) -> (String, Option<String>) {
        let operation = &self.document["paths"][path][method.to_lowercase()];
        if !operation.is_object() {
            return (fill(path), None);
        }
        let mut target = fill(path);
        let must = operation["parameters"].as_array().into_iter().flatten();
        for (at, one) in must.filter(|it| it["in"] == "query" && it["required"] == true).enumerate() {
            let value = self.of(&one["schema"]);
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            target += &format!(
                "{}{}={value}",
                if at == 0 { '?' } else { '&' },
                one["name"].as_str().expect("a name")
            );
        }
        let body = operation
            .get("requestBody")
            .map(|_| self.of(&operation["requestBody"]["content"]["application/json"]["schema"]).to_string());
        (target, body)
    }

    fn operation(&self, route: &OperationRoute) -> &Value {
        &self.document["paths"][format!("{}{}", http::ROOT, route.path)][route.method.word().to_lowercase()]
    }

    /// The smallest value of a schema: what must be there, and nothing else.
    fn of(&self, schema: &Value) -> Value {
        if let Some(reference) = schema["$ref"].as_str() {
            return self.of(self.document.pointer(&reference[1..]).expect("it leads somewhere"));
        }
        for word in ["const", "default"] {
            if let Some(value) = schema.get(word) {
                return value.clone();
            }
        }
        for word in ["examples", "enum"] {
            if let Some(value) = schema.get(word).and_then(|it| it.get(0)) {
                return value.clone();
            }
        }
        for word in ["oneOf", "anyOf"] {
            if let Some(first) = schema.get(word).and_then(|it| it.get(0)) {
                return self.of(first);
            }
        }
        let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str()).unwrap_or("null");
        match kind {
            "object" => {
                let must = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let field = |name: &str| (name.to_owned(), self.of(&schema["properties"][name]));
                Value::Object(must.map(field).collect::<Map<_, _>>())
            }
            "array" => json!([]),
            "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(0)),
            "boolean" => json!(false),
            "string" => json!("x"),
            _ => Value::Null,
        }
    }
}

/// A path with something in place of its fields.
pub fn fill(path: &str) -> String {
    http::split_path(path)
        .map(|piece| match piece {
            http::PathSegment::Plain(text) => text,
            http::PathSegment::Field("task") => "T7",
            http::PathSegment::Field("run") => "R2",
            http::PathSegment::Field("issue") => "12",
            http::PathSegment::Field("operation") => "reclaim",
            http::PathSegment::Field(_) => "x",
        })
        .collect()
}

#[test]
fn every_operation_has_a_sample_that_is_understood() {
    let samples = Samples::new();
    for (name, answer) in samples.answers() {
        let understood = landfall_api::Response::of_json(name, &answer);
        assert!(
            matches!(understood, Ok(Some(_))),
            "{name}: {understood:?}: {}",
            String::from_utf8_lossy(&answer)
        );
    }
    for route in Request::ROUTES {
        let (target, body) = samples.request(route.method.word(), &format!("{}{}", http::ROOT, route.path));
        let (_, query) = target.split_once('?').unwrap_or((&target, ""));
        let fields: Vec<(String, String)> = http::split_path(route.path)
            .filter_map(|piece| match piece {
                http::PathSegment::Field(name) => Some((name.to_owned(), fill(&format!("{{{name}}}")))),
                http::PathSegment::Plain(_) => None,
            })
            .collect();
        let query = if target.contains('?') { query } else { "" };
        let read = http::read(route, &fields, query, body.unwrap_or_default().as_bytes());
        assert!(read.is_ok(), "{}: {target}: {read:?}", route.name);
    }
}
