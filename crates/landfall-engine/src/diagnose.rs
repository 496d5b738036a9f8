//! The recovery agent: it reads the evidence of a failure and answers with a plan. It has no checkout, no branch and no
//! tools of ours; what it says is measured by [`check_plan`] and by nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use landfall_model::recovery::{
    DraftStep, OPS, OpShape, PlanProblem, RecoveryPlan, RecoveryPlanBounds, RecoveryPlanDraft, STEPS_MAX,
    Symptoms, TAIL_LINES_MAX, check_plan,
};
use landfall_model::{AgentUsage, Budget, BudgetScope, Spending, Verdict};
use serde_json::Value;

use crate::consult::{self, ConsultReply, ConsultRequest, ConsultWorkspace};
use crate::folder::StateFolder;
use crate::prompts::{PromptContext, Prompts};
use crate::settings::{ProfileSettings, Settings};

/// How long it may take to read a few pages of evidence.
pub const LIMIT: Duration = Duration::from_secs(10 * 60);

/// What is known of a failure, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureEvidence<'a> {
    /// The task, written `T7`.
    pub task: &'a str,
    /// Its title.
    pub title: &'a str,
    /// The step that failed.
    pub step: &'a str,
    /// The branch of the task.
    pub branch: &'a str,
    /// How it failed.
    pub symptoms: &'a Symptoms,
    /// What was found when its result was looked for, as JSON.
    pub reconciled: &'a str,
    /// The labels of the issue.
    pub labels: &'a [String],
    /// The pull request, in a line; empty without one.
    pub pull_request: &'a str,
    /// What was tried before, one line each.
    pub tried: &'a [String],
}

/// Who is asked, and how.
pub struct DiagnosisRequest<'a> {
    /// The settings of the project.
    pub settings: &'a Settings,
    /// Who looks.
    pub profile: &'a ProfileSettings,
    /// The root of the project.
    pub root: &'a Path,
    /// The state of the project, which the agent must not see.
    pub folder: &'a StateFolder,
    /// Our own executable.
    pub program: &'a Path,
    /// Every environment variable.
    pub environment: &'a [(OsString, OsString)],
    /// The prompts of the project.
    pub prompts: &'a Prompts,
    /// What it reads.
    pub evidence: FailureEvidence<'a>,
    /// What it may spend, and what was spent before.
    pub budgets: Vec<(BudgetScope, Budget, Spending)>,
    /// Whether whoever asked has left.
    pub is_stopped: &'a dyn Fn() -> bool,
}

/// What it says.
#[derive(Debug, Clone, PartialEq)]
pub struct DiagnosisResult {
    /// Its plan, or why that is refused. A refused plan is not asked for again: a person looks.
    pub plan: Result<RecoveryPlan, PlanProblem>,
    /// What it used.
    pub usage: AgentUsage,
    /// How long it took.
    pub took_ms: u64,
}

/// Asks for a plan, once.
///
/// # Errors
/// Why it could not be asked, or did not answer.
pub fn diagnose_failure(asked: &DiagnosisRequest<'_>) -> Result<DiagnosisResult, String> {
    let question = ConsultRequest {
        settings: asked.settings,
        profile: asked.profile,
        root: asked.root,
        folder: asked.folder,
        program: asked.program,
        environment: asked.environment,
        ground: ConsultWorkspace::Empty,
        about: "diagnosis",
        round: 1,
        limit: LIMIT,
        budgets: asked.budgets.clone(),
        out_cap: asked.settings.run.output_cap,
        is_stopped: asked.is_stopped,
    };
    let text = build_diagnosis_prompt(asked)?;
    let reply = consult::consult_agent(&question, &|_: &Path| Ok(text.clone()))?;
    require_answer(&reply)?;
    let words = reply.texts.join("\n");
    let checks = check_names(asked.settings);
    let bounds = RecoveryPlanBounds { matches: asked.evidence.symptoms.matches, checks: &checks };
    let plan = parse_recovery_plan(&words).and_then(|draft| check_plan(&draft, &bounds));
    Ok(DiagnosisResult { plan, usage: reply.usage, took_ms: reply.took_ms })
}

/// What the agent is told.
///
/// # Errors
/// When the prompt of the project cannot be filled.
pub fn build_diagnosis_prompt(asked: &DiagnosisRequest<'_>) -> Result<String, String> {
    let context = build_diagnosis_context(&asked.evidence, &check_names(asked.settings));
    asked.prompts.render("diagnose", &context).map_err(|error| error.to_string())
}

/// The checks of the settings, by name.
fn check_names(settings: &Settings) -> BTreeSet<String> {
    settings.verify.commands.iter().map(|command| command.name.clone()).collect()
}

/// Whether it came to an answer at all.
fn require_answer(reply: &ConsultReply) -> Result<(), String> {
    match &reply.verdict {
        Verdict::Complete | Verdict::Continue | Verdict::Checkpoint { .. } | Verdict::Pending { .. } => {
            Ok(())
        }
        other => {
            let complaint = reply.complaint.as_str();
            let complaint = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
            Err(format!("the recovery agent did not answer: {}{complaint}", other.to_sentence()))
        }
    }
}

fn build_diagnosis_context(evidence: &FailureEvidence<'_>, checks: &BTreeSet<String>) -> PromptContext {
    let FailureEvidence { symptoms, .. } = evidence;
    let exit = symptoms.exit.map_or_else(|| "not known".to_owned(), |code| code.to_string());
    let facts: Vec<&str> = symptoms.facts.iter().map(|fact| fact.word()).collect();
    let seen = match symptoms.matches {
        Some(true) => "is there",
        Some(false) => "is not there",
        None => "could not be looked for",
    };
    let how = format!(
        "phase: {}\nexit code: {exit}\ntook: {} s\nwhat it was to bring about: {seen}\nknown: {}\nbranch: {}\nlabels: {}\npull request: {}\n",
        symptoms.phase.wire_name(),
        symptoms.took_ms / 1_000,
        if facts.is_empty() { "nothing more".to_owned() } else { facts.join(", ") },
        evidence.branch,
        if evidence.labels.is_empty() { "none".to_owned() } else { evidence.labels.join(", ") },
        if evidence.pull_request.is_empty() { "none" } else { evidence.pull_request },
    );
    let log = format!("The last lines of its log (at most {TAIL_LINES_MAX})");
    let mut feedback = vec![("How it ended".to_owned(), how), (log, symptoms.tail.clone())];
    if !evidence.reconciled.is_empty() {
        feedback.push((
            "What was found when its result was looked for".to_owned(),
            evidence.reconciled.to_owned(),
        ));
    }
    if !evidence.tried.is_empty() {
        feedback.push(("What was tried before".to_owned(), evidence.tried.join("\n")));
    }
    let rule = |OpShape { word, takes, about }: OpShape| match takes {
        Some(key) => format!("`{{\"op\": \"{word}\", \"{key}\": \"…\"}}`: {about}"),
        None => format!("`{{\"op\": \"{word}\"}}`: {about}"),
    };
    PromptContext {
        task: evidence.task.to_owned(),
        title: evidence.title.to_owned(),
        step: evidence.step.to_owned(),
        branch: evidence.branch.to_owned(),
        feedback,
        rules: OPS.into_iter().map(rule).collect(),
        verify_commands: checks.iter().cloned().collect(),
        ..PromptContext::default()
    }
}

const BLOCKS_MAX: usize = 200; // beginnings of a block that are tried

/// The plan in these words: the last JSON object of them that has an `action`. It is taken as it is, with everything in
/// it, or not at all: what is not known is not passed over.
///
/// # Errors
/// What is wrong with it.
pub fn parse_recovery_plan(words: &str) -> Result<RecoveryPlanDraft, PlanProblem> {
    let unreadable = |why: &str| PlanProblem::Unreadable(why.to_owned());
    let starts = words.rmatch_indices('{').map(|(at, _)| at).take(BLOCKS_MAX);
    let mut blocks = starts.filter_map(|at| {
        let mut stream = serde_json::Deserializer::from_str(&words[at..]).into_iter::<UniqueKeyMap>();
        stream.next()?.ok().filter(|block| block.0.contains_key("action"))
    });
    let UniqueKeyMap(block) =
        blocks.next().ok_or_else(|| unreadable("there is no JSON object with an `action` in it"))?;
    let mut draft = RecoveryPlanDraft::default();
    for (key, value) in block {
        match (key.as_str(), value) {
            ("action", Value::String(action)) => draft.action = action,
            ("rationale", Value::String(rationale)) => draft.rationale = rationale,
            ("steps", Value::Array(steps)) => {
                if steps.len() > STEPS_MAX {
                    return Err(PlanProblem::TooMany(steps.len()));
                }
                draft.steps = steps
                    .into_iter()
                    .zip(1..)
                    .map(|(it, number)| parse_draft_step(it, number))
                    .collect::<Result<_, _>>()?;
            }
            ("steps", Value::Null) => {}
            ("action" | "rationale" | "steps", other) => {
                return Err(unreadable(&format!("`{key}` is {}", describe_kind(&other))));
            }
            (_, _) => {
                let shown: String = key.chars().take(40).collect();
                return Err(unreadable(&format!("it has `{shown}`; known are action, rationale, steps")));
            }
        }
    }
    Ok(draft)
}

fn parse_draft_step(value: Value, number: usize) -> Result<DraftStep, PlanProblem> {
    let wrong = |why: String| Err(PlanProblem::Unreadable(format!("step {number} {why}")));
    let Value::Object(fields) = value else {
        return wrong(format!(
            "is {}, not an object such as {{\"op\": \"push-branch\"}}",
            describe_kind(&value)
        ));
    };
    let mut step = DraftStep::default();
    for (key, value) in fields {
        let Value::String(text) = value else {
            return wrong(format!("has {} as `{key}`; a text is wanted", describe_kind(&value)));
        };
        if key == "op" { step.op = text } else { drop(step.said.insert(key, text)) } // a map has no key twice
    }
    if step.op.is_empty() { wrong("has no `op`".to_owned()) } else { Ok(step) }
}

fn describe_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// An object in which no key is there twice: of two plans in one, nobody could say which is meant.
struct UniqueKeyMap(BTreeMap<String, Value>);

impl<'de> serde::Deserialize<'de> for UniqueKeyMap {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = UniqueKeyMap;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<UniqueKeyMap, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    if fields.insert(key, value).is_some() {
                        return Err(serde::de::Error::custom("a key is there twice"));
                    }
                }
                Ok(UniqueKeyMap(fields))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}
