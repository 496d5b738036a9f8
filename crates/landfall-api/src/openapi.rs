//! The OpenAPI document: made from the table of operations and the types, never written by hand.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::http::{self, Piece, ProblemBody};
use crate::operation::{Access, Method, Route, schemas};
use crate::{LogEntry, Request};

/// Where the schemas of the types are within the document.
const TYPES: &str = "/components/schemas";

/// The whole document.
#[must_use]
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|it| {
        it.definitions_path = TYPES.into();
        it.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let types = schemas(&mut generator);
    let problem = generator.subschema_for::<ProblemBody>();
    let entry = generator.subschema_for::<LogEntry>();
    let mut paths = Map::new();
    for (route, (asked, answer)) in Request::ROUTES.iter().zip(types) {
        let operation = operation(&generator, route, &asked, &answer);
        let path = paths.entry(format!("{}{}", http::ROOT, route.path)).or_insert_with(|| json!({}));
        path[route.method.word().to_lowercase()] = operation;
    }
    paths.insert(format!("{}/events", http::ROOT), events(&entry));
    paths.insert(format!("{}/hello", http::ROOT), hello());
    json!({
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
            "responses": {
                "Problem": {
                    "description": "It was not done, and nothing has changed.",
                    "content": { http::PROBLEM_TYPE: { "schema": problem } },
                },
            },
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "The token that `landfall token` prints, or one for an agent." },
                "session": { "type": "apiKey", "in": "cookie", "name": "landfall", "description": "The session of a browser; its name ends in eight letters of the project." },
            },
        },
    })
}

fn operation(generator: &SchemaGenerator, route: &Route, asked: &Schema, answer: &Schema) -> Value {
    let (mut fields, mut required) = properties(generator, asked);
    let mut parameters = Vec::new();
    for piece in http::pieces(route.path) {
        let Piece::Field(name) = piece else { continue };
        let schema = fields.remove(name).unwrap_or_else(|| json!({ "type": "string" }));
        required.retain(|it| it != name);
        parameters.push(parameter("path", name, true, schema));
    }
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.doc.trim(),
        "description": match route.access {
            Access::Read => "Any token may.",
            Access::Suggest => "Any token may; what an agent brings is a draft.",
            Access::Steer => "People only: an agent's token is refused.",
        },
        "responses": {
            "200": { "description": "The answer.", "content": { "application/json": { "schema": answer } } },
            "default": { "$ref": "#/components/responses/Problem" },
        },
    });
    match route.method {
        Method::Get => {
            for (name, schema) in fields {
                let must = required.contains(&name);
                parameters.push(parameter("query", &name, must, schema));
            }
        }
        Method::Post | Method::Patch => {
            let mut schema = json!({ "type": "object", "properties": fields });
            if !required.is_empty() {
                schema["required"] = json!(required);
            }
            operation["requestBody"] =
                json!({ "required": true, "content": { "application/json": { "schema": schema } } });
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

fn parameter(place: &str, name: &str, required: bool, mut schema: Value) -> Value {
    let description = schema.as_object_mut().and_then(|it| it.remove("description"));
    let mut parameter = json!({ "in": place, "name": name, "required": required, "schema": schema });
    if let Some(description) = description {
        parameter["description"] = description;
    }
    parameter
}

/// The fields of an object schema, and which of them must be there.
fn properties(generator: &SchemaGenerator, schema: &Schema) -> (Map<String, Value>, Vec<String>) {
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

fn events(entry: &Schema) -> Value {
    json!({ "get": {
        "operationId": "events",
        "summary": "The journal as it grows, as server-sent events.",
        "description": "Each fact is a message whose id is its place in the journal and whose data is the schema below. `live` events tell what agents \
                        at work are at; they have no id. Who reads too slowly is hung up on; come back with `Last-Event-ID` and nothing is missing.",
        "parameters": [
            { "in": "query", "name": "after", "required": false, "description": "Events after this place; from now on otherwise.", "schema": { "type": "integer", "minimum": 0 } },
            { "in": "query", "name": "task", "required": false, "description": "Only what concerns this task.", "schema": { "$ref": "#/components/schemas/TaskId" } },
            { "in": "header", "name": "Last-Event-ID", "required": false, "description": "The last event that was seen; it wins over `after`.", "schema": { "type": "integer", "minimum": 0 } },
        ],
        "responses": {
            "200": { "description": "The stream.", "content": { "text/event-stream": { "itemSchema": entry, "schema": { "type": "string" } } } },
            "default": { "$ref": "#/components/responses/Problem" },
        },
    } })
}

fn hello() -> Value {
    json!({ "get": {
        "operationId": "hello",
        "summary": "Whether somebody is there; its headers say who.",
        "responses": {
            "200": { "description": "Somebody is.", "content": { "application/json": { "schema": { "type": "object" } } } },
            "default": { "$ref": "#/components/responses/Problem" },
        },
    } })
}
