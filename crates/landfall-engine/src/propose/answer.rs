//! The proposal in what an agent said: the last block of JSON that has tasks in it.

use landfall_model::TaskSize;
use landfall_model::proposal::{ProposalGroup, ProposedTask, TaskProposal};
use serde_json::{Map, Value};

/// What was found.
pub(super) enum ProposalAnswer {
    /// A proposal; whether it is any good is for the model to say.
    Proposal {
        /// It.
        proposal: TaskProposal,
        /// As it was written.
        text: String,
    },
    /// The agent says that there is nothing to propose.
    Declined {
        /// Because.
        why: String,
    },
    /// Nothing that can be read as a proposal.
    Unreadable {
        /// What is wrong.
        problems: Vec<String>,
        /// As it was written, as far as there is something.
        text: String,
    },
}

/// Looks for the proposal in the messages of an agent, the last first, and then in all of them together: some agents
/// say a line at a time.
pub(super) fn parse_proposal_answer(texts: &[String]) -> ProposalAnswer {
    let in_one =
        texts.iter().rev().filter_map(|text| find_task_block(text)).find(|block| block.value.is_ok());
    let found = in_one.or_else(|| find_task_block(&texts.join("\n")));
    match found {
        Some(ProposalBlock { value: Ok(value), text }) => read_proposal(&value, text),
        Some(ProposalBlock { value: Err(problem), text }) => ProposalAnswer::Unreadable {
            problems: vec![format!("your JSON cannot be read: {problem}")],
            text,
        },
        None => ProposalAnswer::Unreadable {
            problems: vec!["there is no block of JSON with `tasks` in your answer".to_owned()],
            text: texts.last().map(|text| text.chars().take(SHOWN_CHARS_MAX).collect()).unwrap_or_default(),
        },
    }
}

const SHOWN_CHARS_MAX: usize = 2_000; // enough to recognise what one said

struct ProposalBlock {
    value: Result<Value, String>,
    text: String,
}

/// The last block with tasks in it; a broken one if there is no whole one.
fn find_task_block(text: &str) -> Option<ProposalBlock> {
    let mut broken: Option<ProposalBlock> = None;
    for candidate in find_fenced_blocks(text).into_iter().rev().chain(find_bare_objects(text)) {
        match parse_first_json(candidate) {
            Ok(value) if value.get("tasks").is_some() => {
                return Some(ProposalBlock { value: Ok(value), text: candidate.trim().to_owned() });
            }
            Ok(_) => {}
            Err(problem) if candidate.contains("\"tasks\"") && broken.is_none() => {
                broken = Some(ProposalBlock { value: Err(problem), text: candidate.trim().to_owned() });
            }
            Err(_) => {}
        }
    }
    broken
}

fn parse_first_json(text: &str) -> Result<Value, String> {
    // What stands after the JSON does not matter.
    let mut values = serde_json::Deserializer::from_str(text.trim_start()).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("there is nothing in it".to_owned()),
    }
}

/// What stands in fences and begins as an object. The fence may be indented; a fence inside a string of the JSON stands
/// on a line of its own only if the JSON is broken.
fn find_fenced_blocks(text: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let mut open: Option<usize> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        match open {
            None if is_fence => open = Some(at + line.len()),
            Some(from) if is_fence => {
                blocks.push(&text[from..at]);
                open = None;
            }
            None | Some(_) => {}
        }
        at += line.len();
    }
    blocks.extend(open.map(|from| &text[from..])); // left open: the answer was cut, or the agent forgot
    blocks.retain(|block| block.trim_start().starts_with('{'));
    blocks
}

/// What begins as an object at the beginning of a line.
fn find_bare_objects(text: &str) -> impl Iterator<Item = &str> {
    const TRIES_MAX: usize = 50; // an answer has one
    let mut at = 0;
    let starts = text.split_inclusive('\n').filter_map(move |line| {
        let from = at;
        at += line.len();
        line.trim_start().starts_with('{').then_some(&text[from..])
    });
    starts.take(TRIES_MAX)
}

/// What a proposal may hold.
const TOP: [&str; 3] = ["groups", "tasks", "why"];

fn read_proposal(value: &Value, text: String) -> ProposalAnswer {
    let mut reader = ProposalReader { problems: Vec::new() };
    let mut proposal = TaskProposal::default();
    if let Some(object) = value.as_object() {
        reader.reject_unknown_keys(object, "the proposal", &TOP);
    }
    let why = value.get("why").and_then(Value::as_str).map(str::trim).unwrap_or_default();
    for (place, item) in reader.read_list(value, "tasks", "the proposal").into_iter().enumerate() {
        proposal.tasks.extend(reader.read_task(place, &item));
    }
    for (place, item) in reader.read_list(value, "groups", "the proposal").into_iter().enumerate() {
        proposal.groups.extend(reader.read_group(place, &item));
    }
    if !reader.problems.is_empty() {
        return ProposalAnswer::Unreadable { problems: reader.problems, text };
    }
    if proposal.tasks.is_empty() && !why.is_empty() {
        return ProposalAnswer::Declined { why: why.to_owned() };
    }
    ProposalAnswer::Proposal { proposal, text }
}

/// Reads values and gathers what is wrong with them, so that the agent hears of everything at once.
struct ProposalReader {
    problems: Vec<String>,
}

impl ProposalReader {
    fn read_task(&mut self, place: usize, value: &Value) -> Option<ProposedTask> {
        let what = format!("tasks[{place}]");
        let object = self.expect_object(value, &what)?;
        self.reject_unknown_keys(
            object,
            &what,
            &["id", "title", "body", "criteria", "size", "needs", "touches", "group", "tags", "priority"],
        );
        Some(ProposedTask {
            id: self.read_text(value, "id", &what),
            title: self.read_text(value, "title", &what),
            body: self.read_text(value, "body", &what),
            criteria: self.read_texts(value, "criteria", &what),
            size: self.read_size(value, &what),
            tags: self.read_texts(value, "tags", &what),
            priority: self.read_priority(value, &what),
            needs: self.read_texts(value, "needs", &what),
            touches: self.read_texts(value, "touches", &what),
            group: Some(self.read_text(value, "group", &what)).filter(|it| !it.is_empty()),
        })
    }

    fn read_group(&mut self, place: usize, value: &Value) -> Option<ProposalGroup> {
        let what = format!("groups[{place}]");
        let object = self.expect_object(value, &what)?;
        self.reject_unknown_keys(object, &what, &["id", "title", "body"]);
        Some(ProposalGroup {
            id: self.read_text(value, "id", &what),
            title: self.read_text(value, "title", &what),
            body: self.read_text(value, "body", &what),
        })
    }

    fn add_problem(&mut self, problem: String) {
        self.problems.push(problem);
    }

    fn expect_object<'a>(&mut self, value: &'a Value, what: &str) -> Option<&'a Map<String, Value>> {
        let object = value.as_object();
        if object.is_none() {
            self.add_problem(format!("{what} is not an object"));
        }
        object
    }

    /// A key nobody reads is a slip or a misunderstanding: it is said rather than dropped.
    fn reject_unknown_keys(&mut self, object: &Map<String, Value>, what: &str, known: &[&str]) {
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            let key: String = key.chars().take(40).collect();
            self.add_problem(format!(
                "{what} has a key `{key}`, which means nothing; known: {}",
                known.join(", ")
            ));
        }
    }

    fn read_list(&mut self, value: &Value, key: &str, what: &str) -> Vec<Value> {
        match value.get(key) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items.clone(),
            Some(_) => {
                self.add_problem(format!("`{key}` of {what} is not a list"));
                Vec::new()
            }
        }
    }

    fn read_text(&mut self, value: &Value, key: &str, what: &str) -> String {
        match value.get(key) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Number(number)) if key == "id" || key == "group" => number.to_string(),
            Some(_) => {
                self.add_problem(format!("`{key}` of {what} is not text"));
                String::new()
            }
        }
    }

    fn read_texts(&mut self, value: &Value, key: &str, what: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for item in self.read_list(value, key, what) {
            match item {
                Value::String(text) => texts.push(text),
                Value::Number(number) if key == "needs" => texts.push(number.to_string()),
                _ => self.add_problem(format!("`{key}` of {what} holds something that is not text")),
            }
        }
        texts
    }

    fn read_size(&mut self, value: &Value, what: &str) -> Option<TaskSize> {
        let text = self.read_text(value, "size", what);
        if text.is_empty() {
            return None;
        }
        text.parse().map_err(|error| self.add_problem(format!("{what}: {error}"))).ok()
    }

    fn read_priority(&mut self, value: &Value, what: &str) -> Option<u8> {
        match value.get("priority") {
            None | Some(Value::Null) => None,
            Some(number) => {
                let found = number.as_u64().and_then(|it| u8::try_from(it).ok());
                if found.is_none() {
                    self.add_problem(format!("`priority` of {what} is not a number from 0 to 9"));
                }
                found
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ProposalAnswer, parse_proposal_answer};

    fn explain_answer(texts: &[&str]) -> String {
        match parse_proposal_answer(&texts.iter().map(ToString::to_string).collect::<Vec<_>>()) {
            ProposalAnswer::Proposal { proposal, .. } => {
                proposal.tasks.iter().map(|it| it.id.as_str()).collect::<Vec<_>>().join(",")
            }
            ProposalAnswer::Declined { why } => format!("declined: {why}"),
            ProposalAnswer::Unreadable { problems, .. } => format!("no: {}", problems.join("; ")),
        }
    }

    #[test]
    fn the_last_block_with_tasks_is_the_answer() {
        let json = |id: &str| format!("{{\"tasks\": [{{\"id\": \"{id}\"}}]}}");
        assert_eq!(explain_answer(&[&json("a")]), "a");
        assert_eq!(
            explain_answer(&[&format!(
                "I think…\n```json\n{}\n```\nbetter:\n```\n{}\n```\n",
                json("a"),
                json("b")
            )]),
            "b"
        );
        assert_eq!(explain_answer(&[&json("a"), &json("b"), "That is all."]), "b");
        assert_eq!(explain_answer(&["{\"tasks\":", "  [{\"id\": 7}]", "}", "bye"]), "7", "a line at a time");
        assert_eq!(explain_answer(&[&format!("words {{}} \n{} and words", json("a"))]), "a");
        assert_eq!(explain_answer(&[&format!("```json\n{}", json("a"))]), "a", "a fence that is left open");
        let code = "```json\n{\"tasks\": [{\"id\": \"a\", \"body\": \"use ```sh\\nls\\n``` here\"}]}\n```";
        assert_eq!(explain_answer(&[code]), "a", "fences inside a string");
    }

    #[test]
    fn what_is_no_answer_is_said_so_that_it_can_be_put_right() {
        assert_eq!(explain_answer(&[]), "no: there is no block of JSON with `tasks` in your answer");
        assert_eq!(
            explain_answer(&["Sure! {\"a\": 1}"]),
            "no: there is no block of JSON with `tasks` in your answer"
        );
        assert_eq!(
            explain_answer(&["{\"tasks\": [}"]),
            "no: your JSON cannot be read: expected value at line 1 column 12"
        );
        assert_eq!(explain_answer(&["{\"tasks\": [], \"why\": \"too vague\"}"]), "declined: too vague");
        assert_eq!(
            explain_answer(&[
                "{\"tasks\": [1, {\"id\": [], \"size\": \"huge\", \"needs\": \"a\", \"priority\": -1, \"depends\": []}]}"
            ]),
            "no: tasks[0] is not an object; tasks[1] has a key `depends`, which means nothing; known: id, title, body, \
             criteria, size, needs, touches, group, tags, priority; `id` of tasks[1] is not text; tasks[1]: `huge` is not a size; \
             known: XS, S, M, L, XL; `priority` of tasks[1] is not a number from 0 to 9; `needs` of tasks[1] is not a list"
        );
    }
}
