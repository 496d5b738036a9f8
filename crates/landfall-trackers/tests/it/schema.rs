//! An API description, as much of OpenAPI 3.0 as GitHub's uses: which operation a request is, whether it is a valid one, whether an
//! answer has the shape that is described, and samples of that shape.

use std::path::Path;

use serde_json::{Map, Value, json};

/// A description.
pub struct Description(Value);

/// An operation of it.
#[derive(Clone, Copy)]
pub struct Operation<'a> {
    pub id: &'a str,
    template: &'a str,
    item: &'a Value,
    it: &'a Value,
}

/// How strictly a value is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Strict {
    /// As a request: what is required is there, and nothing that is not described.
    Request,
    /// As an answer of a fake: what is there has the right shape; the fake leaves much out.
    Part,
}

/// Which sample of a shape.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// As little as is allowed: only what is required, null where that may be.
    Least,
    /// Everything that is described.
    Most,
}

/// Where a shape goes round in circles, or deeper than anyone reads.
const DEPTH_MAX: usize = 6;

impl Description {
    pub fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(serde_json::from_slice(&bytes).expect("the description is JSON"))
    }

    fn follow<'a>(&'a self, mut value: &'a Value) -> &'a Value {
        while let Some(target) = value.get("$ref").and_then(Value::as_str) {
            let pointer = target.strip_prefix('#').expect("all of it is in one file");
            value = self.0.pointer(pointer).unwrap_or_else(|| panic!("{target} is nowhere"));
        }
        value
    }

    /// The operation that a request is.
    pub fn operation(&self, method: &str, path: &str) -> Option<Operation<'_>> {
        let parts: Vec<&str> = path.split('/').collect();
        let paths = self.0["paths"].as_object().expect("a description has paths");
        let fits = |template: &str| {
            let wanted: Vec<&str> = template.split('/').collect();
            let fits = |(wanted, part): (&&str, &&str)| {
                wanted.starts_with('{') && !part.is_empty() || wanted == part
            };
            wanted.len() == parts.len() && wanted.iter().zip(&parts).all(fits)
        };
        // A path without parameters wins.
        let found = paths.iter().filter(|(template, _)| fits(template));
        let (template, item) = found.min_by_key(|(template, _)| template.matches('{').count())?;
        let it = item.get(method.to_lowercase())?;
        Some(Operation { id: it["operationId"].as_str()?, template, item, it })
    }

    fn parameters<'a>(&'a self, operation: Operation<'a>) -> impl Iterator<Item = &'a Value> {
        let lists = [&operation.item["parameters"], &operation.it["parameters"]];
        lists.into_iter().filter_map(Value::as_array).flatten().map(|parameter| self.follow(parameter))
    }

    /// What is wrong with a request; nothing if it is a valid one.
    pub fn wrong_request(
        &self,
        operation: Operation<'_>,
        path: &str,
        query: &[(String, String)],
        body: &Value,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        for (name, value) in query {
            let known =
                self.parameters(operation).find(|it| it["in"] == "query" && it["name"] == name.as_str());
            match known {
                Some(known) => self.check(
                    &known["schema"],
                    &typed(self.follow(&known["schema"]), value),
                    Strict::Request,
                    name,
                    &mut wrong,
                ),
                None => wrong.push(format!("the query `{name}` is not known")),
            }
        }
        for known in self.parameters(operation).filter(|it| it["in"] == "query" && it["required"] == true) {
            if !query.iter().any(|(name, _)| known["name"] == name.as_str()) {
                wrong.push(format!("the query {} is missing", known["name"]));
            }
        }
        for (wanted, part) in operation.template.split('/').zip(path.split('/')) {
            let Some(name) = wanted.strip_prefix('{').and_then(|it| it.strip_suffix('}')) else { continue };
            let known = self.parameters(operation).find(|it| it["in"] == "path" && it["name"] == name);
            let known =
                known.unwrap_or_else(|| panic!("`{name}` of {} is not described", operation.template));
            self.check(
                &known["schema"],
                &typed(self.follow(&known["schema"]), part),
                Strict::Request,
                name,
                &mut wrong,
            );
        }
        let described = operation.it.get("requestBody").map(|it| self.follow(it));
        match (described, body) {
            (None, Value::Null) => {}
            (None, _) => wrong.push("a body is not expected".to_owned()),
            (Some(described), Value::Null) if described["required"] == true => {
                wrong.push("the body is missing".to_owned())
            }
            (Some(_), Value::Null) => {}
            (Some(described), body) => {
                let schema = &described["content"]["application/json"]["schema"];
                self.check(schema, body, Strict::Request, "body", &mut wrong);
            }
        }
        wrong
    }

    fn response<'a>(&'a self, operation: Operation<'a>, status: u16) -> Option<&'a Value> {
        operation.it["responses"].get(status.to_string()).map(|it| self.follow(it))
    }

    /// Whether a status is one that is described.
    pub fn knows(&self, operation: Operation<'_>, status: u16) -> bool {
        self.response(operation, status).is_some()
    }

    /// What is wrong with an answer, as far as it goes.
    pub fn wrong_answer(&self, operation: Operation<'_>, status: u16, body: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        let schema =
            self.response(operation, status).and_then(|it| it.pointer("/content/application~1json/schema"));
        if let Some(schema) = schema {
            self.check(schema, body, Strict::Part, "answer", &mut wrong);
        }
        wrong
    }

    /// The answers that are shown as examples, for the statuses of success.
    pub fn examples(&self, operation: Operation<'_>) -> Vec<Value> {
        let mut found = Vec::new();
        for status in [200, 201] {
            let Some(content) =
                self.response(operation, status).and_then(|it| it.pointer("/content/application~1json"))
            else {
                continue;
            };
            found.extend(content.get("example").cloned());
            for example in content["examples"].as_object().into_iter().flat_map(Map::values) {
                let mut example = self.follow(example);
                // Some refer once more where the value should be.
                while example["value"].get("$ref").is_some() {
                    example = self.follow(&example["value"]);
                }
                found.push(example["value"].clone());
            }
        }
        found
    }

    /// An answer of the described shape. A `state` is a mere string in it; what it may be stands in its prose.
    pub fn sample(&self, operation: Operation<'_>, which: Sample, state: &str) -> Option<Value> {
        let response = self.response(operation, 200).or_else(|| self.response(operation, 201))?;
        let mut sample = self.made(response.pointer("/content/application~1json/schema")?, which, "", 0);
        put_state(&mut sample, state);
        Some(sample)
    }

    fn made(&self, schema: &Value, which: Sample, name: &str, depth: usize) -> Value {
        let schema = self.follow(schema);
        if schema["nullable"] == true && (which == Sample::Least || depth > DEPTH_MAX) {
            return Value::Null;
        }
        if let Some(words) = schema["enum"].as_array() {
            // The last one, in a full sample: a reader may know only the first.
            let word =
                if which == Sample::Least { words.first() } else { words.iter().rfind(|it| !it.is_null()) };
            return word.cloned().unwrap_or_default();
        }
        if let Some(all) = schema["allOf"].as_array() {
            let mut whole = Map::new();
            for part in all {
                if let Value::Object(part) = self.made(part, which, name, depth) {
                    whole.extend(part);
                }
            }
            return whole.into();
        }
        for either in ["oneOf", "anyOf"] {
            if let Some(choices) = schema[either].as_array() {
                let choice = if which == Sample::Least { choices.first() } else { choices.last() };
                return choice.map_or(Value::Null, |choice| self.made(choice, which, name, depth));
            }
        }
        match schema["type"].as_str() {
            Some("integer" | "number") => json!(7),
            Some("boolean") => json!(which == Sample::Most),
            Some("array") if which == Sample::Least && depth > 0 || depth > DEPTH_MAX => json!([]),
            Some("array") => json!([self.made(&schema["items"], which, name, depth + 1)]),
            Some("string") => match (schema["format"].as_str(), name) {
                (Some("date-time"), _) => json!("2026-01-02T03:04:05Z"),
                // The description does not say that these are commits and branches; GitHub's answers do.
                (_, "sha" | "head_sha" | "commit_id" | "merge_commit_sha") => {
                    json!("0123456789abcdef0123456789abcdef01234567")
                }
                (_, "ref" | "default_branch") => json!("main"),
                (_, "full_name") => json!("o/r"),
                (_, "state") => json!(STATE),
                _ => json!("text"),
            },
            _ => {
                let required: Vec<&str> =
                    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let properties = schema["properties"].as_object().into_iter().flatten();
                let wanted = properties.filter(|(name, _)| {
                    which == Sample::Most && depth <= DEPTH_MAX || required.contains(&name.as_str())
                });
                let made =
                    wanted.map(|(name, schema)| (name.clone(), self.made(schema, which, name, depth + 1)));
                Value::Object(made.collect())
            }
        }
    }

    fn fits(&self, schema: &Value, value: &Value, strict: Strict) -> bool {
        let mut wrong = Vec::new();
        self.check(schema, value, strict, "", &mut wrong);
        wrong.is_empty()
    }

    fn check(&self, schema: &Value, value: &Value, strict: Strict, at: &str, wrong: &mut Vec<String>) {
        let schema = self.follow(schema);
        if value.is_null() && schema["nullable"] == true {
            return;
        }
        if let Some(words) = schema["enum"].as_array()
            && !words.contains(value)
        {
            wrong.push(format!("{at}: {value} is none of {}", schema["enum"]));
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.check(part, value, Strict::Part, at, wrong);
        }
        for either in ["oneOf", "anyOf"] {
            if let Some(choices) = schema[either].as_array()
                && !choices.iter().any(|choice| self.fits(choice, value, strict))
            {
                wrong.push(format!("{at}: {value} fits none of the {} choices", choices.len()));
            }
        }
        let fits = match schema["type"].as_str() {
            Some("string") => value.is_string(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("number") => value.is_number(),
            Some("boolean") => value.is_boolean(),
            Some("array") => value.is_array(),
            Some("object") => value.is_object(),
            Some(_) | None => true,
        };
        if !fits {
            wrong.push(format!("{at}: {value} is no {}", schema["type"]));
            return;
        }
        if let (Some("date-time"), Some(text)) = (schema["format"].as_str(), value.as_str())
            && text.parse::<jiff::Timestamp>().is_err()
        {
            wrong.push(format!("{at}: {text} is no moment"));
        }
        if let (Some(most), Some(text)) = (schema["maxLength"].as_u64(), value.as_str())
            && text.chars().count() as u64 > most
        {
            wrong.push(format!("{at}: longer than {most}"));
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            self.check(&schema["items"], item, strict, &format!("{at}[{index}]"), wrong);
        }
        let Some(object) = value.as_object() else { return };
        let properties = schema["properties"].as_object();
        for (name, value) in object {
            let here = format!("{at}.{name}");
            match properties.and_then(|properties| properties.get(name)) {
                Some(schema) => self.check(schema, value, strict, &here, wrong),
                None if strict == Strict::Request && properties.is_some() => {
                    wrong.push(format!("{here} is not known"))
                }
                None => {}
            }
        }
        if strict == Strict::Request {
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !object.contains_key(name) {
                    wrong.push(format!("{at}.{name} is missing"));
                }
            }
        }
    }
}

/// Where a sample has a state that is a mere string.
const STATE: &str = "(state)";

fn put_state(value: &mut Value, state: &str) {
    match value {
        Value::String(text) if text == STATE => state.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| put_state(item, state)),
        Value::Object(fields) => fields.values_mut().for_each(|field| put_state(field, state)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What stands in an address, as the type it is meant to be.
fn typed(schema: &Value, text: &str) -> Value {
    match schema["type"].as_str() {
        Some("integer") => text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number)),
        Some("boolean") => text.parse::<bool>().map_or_else(|_| json!(text), |it| json!(it)),
        _ => json!(text),
    }
}

fn small() -> Description {
    Description(json!({
        "paths": {
            "/things/{id}": {
                "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } }],
                "post": {
                    "operationId": "things/make",
                    "parameters": [{ "name": "sort", "in": "query", "schema": { "type": "string", "enum": ["asc", "desc"] } }],
                    "requestBody": { "required": true, "content": { "application/json": { "schema": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": { "oneOf": [{ "type": "string", "maxLength": 3 }, { "type": "integer" }] },
                            "at": { "type": "string", "format": "date-time", "nullable": true },
                        },
                    } } } },
                    "responses": { "200": { "content": { "application/json": {
                        "schema": { "$ref": "#/components/schemas/thing" },
                        "examples": { "default": { "$ref": "#/components/examples/thing" } },
                    } } } },
                },
            },
        },
        "components": {
            "schemas": { "thing": { "type": "object", "required": ["a", "b"], "properties": {
                "a": { "type": "string", "nullable": true },
                "b": { "type": "array", "items": { "$ref": "#/components/schemas/thing" } },
                "c": { "type": "boolean" },
            } } },
            "examples": { "thing": { "value": { "a": "x", "b": [] } } },
        },
    }))
}

#[test]
fn a_request_that_is_not_as_described_is_found() {
    let small = small();
    let operation = small.operation("POST", "/things/7").expect("it is described");
    let check = |path: &str, query: &[(&str, &str)], body: Value| {
        let query: Vec<_> =
            query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        small.wrong_request(operation, path, &query, &body)
    };
    assert_eq!(check("/things/7", &[("sort", "asc")], json!({ "name": "abc", "at": null })), [""; 0]);
    assert_eq!(check("/things/7", &[], json!({ "name": 5, "at": "2026-01-02T03:04:05Z" })), [""; 0]);
    let wrong = [
        check("/things/x", &[], json!({ "name": "a" })),
        check("/things/7", &[("sort", "up")], json!({ "name": "a" })),
        check("/things/7", &[("order", "up")], json!({ "name": "a" })),
        check("/things/7", &[], json!({ "name": "abcd" })),
        check("/things/7", &[], json!({ "name": true })),
        check("/things/7", &[], json!({ "name": "a", "at": "soon" })),
        check("/things/7", &[], json!({ "name": "a", "other": 1 })),
        check("/things/7", &[], json!({})),
        check("/things/7", &[], Value::Null),
    ];
    for (index, wrong) in wrong.iter().enumerate() {
        assert_eq!(wrong.len(), 1, "{index}: {wrong:?}");
    }
    assert!(small.operation("GET", "/things/7").is_none() && small.operation("POST", "/things").is_none());
}

#[test]
fn samples_are_of_the_shape_they_are_made_from() {
    let small = small();
    let operation = small.operation("POST", "/things/7").expect("it is described");
    assert_eq!(small.sample(operation, Sample::Least, "open"), Some(json!({ "a": null, "b": [] })));
    let most = small.sample(operation, Sample::Most, "open").expect("there is one");
    assert_eq!((&most["a"], &most["c"]), (&json!("text"), &json!(true)));
    assert_eq!(small.wrong_answer(operation, 200, &most), [""; 0]);
    assert_eq!(small.examples(operation), [json!({ "a": "x", "b": [] })]);
    assert!(!small.wrong_answer(operation, 200, &json!({ "b": [{ "a": 1 }] })).is_empty());
}
