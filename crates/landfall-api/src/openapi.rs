//! The OpenAPI document: made from the table of operations and the types, never written by hand.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::http::{self, PathSegment, ProblemBody};
use crate::operation::{Access, HttpMethod, OperationRoute, schemas};
use crate::{
    ActiveLine, LogEntry, ProblemCode, Request, Said, TaskAuto, TaskAutoAsked, TaskAutoError, TaskAutoHolder,
};

/// Where the schemas of the types are within the document.
const TYPES: &str = "/components/schemas";

/// The whole document.
#[must_use]
pub fn openapi_document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|it| {
        it.definitions_path = TYPES.into();
        it.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let types = schemas(&mut generator);
    let problem = generator.subschema_for::<ProblemBody>();
    let entry = generator.subschema_for::<LogEntry>();
    let said = generator.subschema_for::<Vec<Said>>();
    let live = generator.subschema_for::<Vec<ActiveLine>>();
    let mut paths = Map::new();
    for (route, (asked, answer)) in Request::ROUTES.iter().zip(types) {
        let operation = describe_operation(&generator, route, &asked, &answer);
        let path = paths.entry(format!("{}{}", http::ROOT, route.path)).or_insert_with(|| json!({}));
        path[route.method.word().to_lowercase()] = operation;
    }
    paths.insert(format!("{}/events", http::ROOT), describe_events(&entry, &live));
    paths.insert(format!("{}/tasks/{{task}}/output/stream", http::ROOT), output_stream(&said));
    paths.insert(format!("{}/hello", http::ROOT), describe_hello());
    paths.insert(format!("{}/openapi.json", http::ROOT), describe_reference());
    paths.insert("/metrics".to_owned(), describe_metrics());
    task_auto(&mut generator, &mut paths);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Landfall",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What a client can ask of a running Landfall. Moments are Unix milliseconds and end in `_ms`, as durations do.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:7878" }],
        "security": [{ "token": [] }, { "session": [] }],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "responses": problem_responses(&problem),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "The token that `landfall project token` prints, or one for an agent." },
                "session": { "type": "apiKey", "in": "cookie", "name": "landfall", "description": "The session of a browser; its name ends in eight letters of the project." },
            },
        },
    });
    bound_integers(&mut document);
    document
}

/// Numbers have the bounds of their types, which the schemas of larger ones leave out.
fn bound_integers(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("format").is_some_and(|it| it == "uint32") {
                fields.insert("maximum".to_owned(), json!(u32::MAX));
            }
            fields.values_mut().for_each(bound_integers);
        }
        Value::Array(items) => items.iter_mut().for_each(bound_integers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The answers to what was not done, by their status.
fn problem_responses(problem: &Schema) -> Value {
    let mut answers = Map::new();
    for code in ProblemCode::ALL {
        let answer = answers.entry(format!("Problem{}", code.http_status())).or_insert_with(|| {
            json!({
                "description": "It was not done, and nothing has changed.",
                "content": { http::PROBLEM_TYPE: { "schema": problem, "examples": {} } },
            })
        });
        let word = code.word();
        answer["content"][http::PROBLEM_TYPE]["examples"][&word] = json!({ "value": {
            "type": format!("/problems#{word}"),
            "code": word,
            "status": code.http_status(),
            "detail": "what was wrong, as a lowercase fragment",
            "hint": "what to do about it",
        } });
    }
    Value::Object(answers)
}

/// An answer, and what may come instead: from the door, from the words, from the engine, from the machine.
fn operation_responses(answer: Value, method: HttpMethod) -> Value {
    let mut answers = json!({ "200": answer });
    let of_bodies = [413, 415].into_iter().filter(|_| method != HttpMethod::Get);
    for status in [401, 403, 404, 409, 421, 422, 424, 429, 500, 503, 507].into_iter().chain(of_bodies) {
        answers[status.to_string()] = json!({ "$ref": format!("#/components/responses/Problem{status}") });
    }
    answers
}

/// The words of a request, where a look says more than a schema.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "add",
        r##"{"tasks":[{"title":"Fix the parser","criteria":["tabs are understood"]},{"title":"Tell about it","needs":["#1"]}]}"##,
    ),
    ("edit", r#"{"priority":2,"ready":true}"#),
    ("message", r#"{"text":"the old format has to stay readable"}"#),
    ("stop", r#"{"now":false}"#),
    ("run_start", r#"{"slots":2}"#),
];

fn describe_operation(
    generator: &SchemaGenerator,
    route: &OperationRoute,
    asked: &Schema,
    answer: &Schema,
) -> Value {
    let (mut fields, mut required) = object_properties(generator, asked);
    let mut parameters = Vec::new();
    for piece in http::split_path(route.path) {
        let PathSegment::Field(name) = piece else { continue };
        let schema = fields.remove(name).unwrap_or_else(|| json!({ "type": "string" }));
        required.retain(|it| it != name);
        parameters.push(describe_parameter("path", name, true, schema));
    }
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.doc.trim(),
        "tags": [route.path.split('/').nth(1).unwrap_or_default()],
        "description": match route.access {
            Access::Read => "Any token may.",
            Access::Suggest => "Any token may; what an agent brings is a draft.",
            Access::Steer => "People only: an agent's token is refused.",
        },
        "responses": operation_responses(
            json!({ "description": "The answer.", "content": { "application/json": { "schema": answer } } }),
            route.method,
        ),
    });
    match route.method {
        HttpMethod::Get | HttpMethod::Delete => {
            for (name, schema) in fields {
                let must = required.contains(&name);
                parameters.push(describe_parameter("query", &name, must, without_null(schema)));
            }
        }
        HttpMethod::Post | HttpMethod::Patch => {
            let mut schema = json!({ "type": "object", "properties": fields });
            if !required.is_empty() {
                schema["required"] = json!(required);
            }
            let mut body = json!({ "schema": schema });
            let example = EXAMPLES.iter().find(|(name, _)| *name == route.name);
            if let Some(example) = example.and_then(|(_, words)| serde_json::from_str::<Value>(words).ok()) {
                body["example"] = example;
            }
            operation["requestBody"] = json!({ "required": true, "content": { "application/json": body } });
            parameters.push(json!({
                "in": "header",
                "name": "Idempotency-Key",
                "required": false,
                "description": "Asking again with the same key and the same words does nothing again, and gives the same answer.",
                "schema": { "type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$" },
            }));
        }
    }
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    operation
}

fn describe_parameter(place: &str, name: &str, required: bool, mut schema: Value) -> Value {
    let description = schema.as_object_mut().and_then(|it| it.remove("description"));
    let mut parameter = json!({ "in": place, "name": name, "required": required, "schema": schema });
    if let Some(description) = description {
        parameter["description"] = description;
    }
    parameter
}

/// What is not asked is left out of a query: nothing stands for it there.
fn without_null(mut schema: Value) -> Value {
    let is_null = |it: &Value| *it == "null" || it["type"] == "null";
    for word in ["type", "anyOf"] {
        let Some(Value::Array(kinds)) = schema.get_mut(word) else { continue };
        kinds.retain(|it| !is_null(it));
        let [kind] = kinds.as_mut_slice() else { continue };
        let kind = kind.take();
        match (word, kind) {
            ("anyOf", Value::Object(only)) => {
                let fields = schema.as_object_mut().expect("it has this field");
                fields.remove(word);
                fields.extend(only);
            }
            (_, kind) => schema[word] = kind,
        }
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.as_object_mut().expect("it has this field").remove("default");
    }
    schema
}

/// The fields of an object schema, and which of them must be there.
fn object_properties(generator: &SchemaGenerator, schema: &Schema) -> (Map<String, Value>, Vec<String>) {
    let mut schema = schema.as_value().clone();
    while let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next()) {
        match generator.definitions().get(name) {
            Some(found) => schema = found.clone(),
            None => break,
        }
    }
    let fields = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    (fields, required.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect())
}

fn describe_events(entry: &Schema, live: &Schema) -> Value {
    json!({ "get": {
        "operationId": "events",
        "tags": ["journal"],
        "summary": "The journal as it grows, as server-sent events.",
        "description": "Each fact is a message whose id is its place in the journal. `live` events tell what agents at work are at, and `alive` ones that the \
                        line still is one; they have no id. Who reads too slowly is hung up on; come back with `Last-Event-ID` and nothing is missing. \
                        Any token may.",
        "parameters": [
            { "in": "query", "name": "after", "required": false, "description": "Events after this place; from now on otherwise.", "schema": { "type": "integer", "minimum": 0 } },
            { "in": "query", "name": "task", "required": false, "description": "Only what concerns this task.", "schema": { "$ref": "#/components/schemas/TaskId" } },
            { "in": "header", "name": "Last-Event-ID", "required": false, "description": "The last event that was seen; it wins over `after`.", "schema": { "type": "integer", "minimum": 0 } },
        ],
        "responses": operation_responses(
            json!({
                "description": "The stream.",
                "content": { "text/event-stream": {
                    "schema": { "type": "string" },
                    "x-events": { "message": entry, "live": live, "alive": { "const": "yes" } },
                    "example": "id: 41\ndata: {\"seq\":41,\"at_ms\":1785283200000,\"task\":\"T7\",\"kind\":\"iteration-ended\",\"text\":\"iteration 2 ended\"}\n\n",
                } },
            }),
            HttpMethod::Get,
        ),
    } })
}

fn output_stream(lines: &Schema) -> Value {
    let query = |name: &str, what: &str, schema: Value| json!({ "in": "query", "name": name, "required": false, "description": what, "schema": schema });
    let number = || json!({ "type": "integer", "minimum": 0 });
    let small = || json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    let text = || json!({ "type": "string" });
    json!({ "get": {
        "operationId": "output_stream",
        "tags": ["tasks"],
        "summary": "One output as it grows, as server-sent events.",
        "description": "Each event has the lines since the one before, and as its id the place of the next line. `end` says that nothing more \
                        comes. Who takes nothing for a while is hung up on; come back with `Last-Event-ID` and no line is missing. Any token may.",
        "parameters": [
            { "in": "path", "name": "task", "required": true, "description": "Of this task.", "schema": { "$ref": "#/components/schemas/TaskId" } },
            query("offset", "From this place; from the start otherwise.", number()),
            query("as", "How lines are written: as data, or as rows of the page.", json!({ "type": "string", "enum": ["lines", "html"] })),
            query("key", "Exactly this output, by its `key` in the list.", text()),
            query("attempt", "Of this attempt.", small()),
            query("iteration", "Of this run of the agent.", small()),
            query("check", "Of this check.", text()),
            { "in": "header", "name": "Last-Event-ID", "required": false, "description": "The id that was seen last; it wins over `offset`.", "schema": number() },
        ],
        "responses": operation_responses(
            json!({
                "description": "The stream.",
                "content": { "text/event-stream": {
                    "schema": { "type": "string" },
                    "x-events": {
                        "message": { "type": "object", "properties": {
                            "from": number(), "next": number(), "total_bytes": number(), "grows": { "type": "boolean" }, "lines": lines,
                        } },
                        "end": { "type": "object", "properties": { "next": number() } },
                    },
                } },
            }),
            HttpMethod::Get,
        ),
    } })
}

fn describe_hello() -> Value {
    let answer = json!({ "description": "Somebody is.", "content": { "application/json": { "schema": { "type": "object" } } } });
    json!({ "get": {
        "operationId": "hello",
        "tags": ["server"],
        "summary": "Whether somebody is there; the headers `landfall-version`, `landfall-wire` and `landfall-pid` say who.",
        "description": "Any token may.",
        "responses": operation_responses(answer, HttpMethod::Get),
    } })
}

fn describe_reference() -> Value {
    let answer = json!({ "description": "OpenAPI 3.1.", "content": { "application/json": { "schema": { "type": "object" } } } });
    json!({ "get": {
        "operationId": "openapi",
        "tags": ["server"],
        "summary": "This document.",
        "description": "Any token may.",
        "responses": operation_responses(answer, HttpMethod::Get),
    } })
}

fn describe_metrics() -> Value {
    let kind = "application/openmetrics-text";
    let answer =
        json!({ "description": "OpenMetrics 1.0.", "content": { kind: { "schema": { "type": "string" } } } });
    json!({ "get": {
        "operationId": "metrics",
        "tags": ["server"],
        "summary": "Numbers for a collector such as Prometheus.",
        "description": "Any token may.",
        "responses": operation_responses(answer, HttpMethod::Get),
    } })
}

/// Loops as older clients ask for them. Problems have two shapes: that of the door, and the one those clients know.
fn task_auto(generator: &mut SchemaGenerator, paths: &mut Map<String, Value>) {
    let error = generator.subschema_for::<TaskAutoError>();
    let row = generator.subschema_for::<TaskAuto>();
    let holder = generator.subschema_for::<TaskAutoHolder>();
    let asked = generator.subschema_for::<TaskAutoAsked>();
    let problem = generator.subschema_for::<ProblemBody>();
    let answers = |answer: &Schema| {
        let mut all = json!({ "200": { "description": "The answer.", "content": { "application/json": { "schema": answer } } } });
        for status in [400, 401, 403, 404, 409, 413, 415, 421, 424, 429, 500, 503, 507] {
            all[status.to_string()] = json!({
                "description": "It was not done, and nothing has changed.",
                "content": { "application/json": { "schema": error }, http::PROBLEM_TYPE: { "schema": problem } },
            });
        }
        all
    };
    let session = json!({ "in": "path", "name": "id", "required": true, "description": "The session: a name of the client's own.", "schema": { "type": "string" } });
    let operation = |name: &str, summary: &str, who: &str, answer: &Schema| {
        json!({
            "operationId": name,
            "tags": ["task-auto"],
            "summary": summary,
            "description": format!("For clients of older systems; `/api/v1/loops` is the same in the words of this API. {who}"),
            "parameters": [session],
            "responses": answers(answer),
        })
    };
    let (any, people) = ("Any token may.", "People only: an agent's token is refused.");
    let mut post = operation("task_auto_start", "Begins a loop over a module.", people, &row);
    post["requestBody"] = json!({ "required": true, "content": { "application/json": {
        "schema": asked,
        "example": { "taskDir": "/home/me/project/AiTasks/auth-refactor", "maxIterations": 20, "timeoutMinutes": 30 },
    } } });
    let of_session = json!({
        "post": post,
        "get": operation("task_auto", "The loop of a session, under way or the last one.", any, &row),
        "delete": operation("task_auto_stop", "Ends the loop of a session once the step under way is finished.", people, &row),
    });
    paths.insert("/api/sessions/{id}/task-auto".to_owned(), of_session);
    let mut lookup = operation("task_auto_lookup", "Which session has a loop for a module.", any, &holder);
    lookup["parameters"] = json!([{ "in": "query", "name": "taskDir", "required": true, "description": "The module's folder: an absolute path.", "schema": { "type": "string", "examples": ["/home/me/project/AiTasks/auth-refactor"] } }]);
    paths.insert("/api/task-auto/lookup".to_owned(), json!({ "get": lookup }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_understood() {
        for (name, words) in EXAMPLES {
            let route = Request::ROUTES.iter().find(|it| it.name == *name).expect("an operation");
            let fields: Vec<(String, String)> = http::split_path(route.path)
                .filter_map(|piece| match piece {
                    PathSegment::Field(field) => Some((field.to_owned(), "T7".to_owned())),
                    PathSegment::Plain(_) => None,
                })
                .collect();
            assert!(http::read(route, &fields, "", words.as_bytes()).is_ok(), "{name}: {words}");
        }
    }

    #[test]
    fn nothing_stands_for_null_in_a_query() {
        let of = |schema: Value| without_null(schema).to_string();
        assert_eq!(of(json!({ "type": ["string", "null"] })), r#"{"type":"string"}"#);
        assert_eq!(of(json!({ "anyOf": [{ "$ref": "#/a" }, { "type": "null" }] })), r##"{"$ref":"#/a"}"##);
        assert_eq!(of(json!({ "type": "integer" })), r#"{"type":"integer"}"#);
    }
}
