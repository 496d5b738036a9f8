//! What agents are told: templates with named holes, filled with the words of a task.
//!
//! A template cannot take untrusted words as they are: titles, bodies, criteria and feedback are cleaned and quoted
//! here, before any template sees them, so that a project's own templates are as safe as ours.

pub(crate) mod quote;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use landfall_agents::nearest_word;
use landfall_model::discovery::{Discoveries, Discovery, DiscoveryImpact};
use landfall_model::{Event, TaskId, Timestamp};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use crate::flows::{PROMPTS, files_in, read_bounded};

pub use quote::{BODY_BYTES_MAX, FEEDBACK_BYTES_MAX};

const OFFERED_MAX: usize = 100; // more than fits into the bytes there are for them
const FILE_BYTES_MAX: u64 = 1024 * 1024; // more than any agent wants to read

/// Everything a template may use. Templates know the fields by these names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptContext {
    /// The task, written `T7`.
    pub task: String,
    /// Its title.
    pub title: String,
    /// Its text, as it came.
    pub body: String,
    /// What must hold when it is done.
    pub criteria: Vec<String>,
    /// Which run of the agent this is, from 1.
    pub iteration: u32,
    /// How many there may be.
    pub iterations_max: u32,
    /// The attempt it belongs to.
    pub attempt: u32,
    /// The step of the flow.
    pub step: String,
    /// Where the agent works.
    pub workspace: String,
    /// The branch it works on.
    pub branch: String,
    /// The branch its work will land on.
    pub base: String,
    /// What earlier rounds found, each under a heading.
    pub feedback: Vec<(String, String)>,
    /// The commands the work will be proved by.
    pub verify_commands: Vec<String>,
    /// Files the step must leave behind.
    pub outputs: Vec<String>,
    /// The key a tag must carry, for agents whose words may quote others.
    pub key: Option<String>,
    /// Where the task came from.
    pub source: String,
    /// Earlier runs, one line each.
    pub past: Vec<String>,
    /// What agents found out, each with who said it.
    pub discoveries: Vec<(String, String)>,
    /// Whether the agent still has the memory of the runs before.
    pub resumed: bool,
    /// Whether it is to sum itself up first, because its context is nearly full.
    pub compact: bool,
    /// The folder of its module, as seen from the workspace.
    pub module: String,
    /// The step that a loop of its own goes on with.
    pub next: Option<String>,
    /// Whether somebody else changed the state of its module since it left it.
    pub moved: bool,
    /// What reviewers found and is still open, one line each.
    pub findings: Vec<String>,
    /// The commit a reviewer read last.
    pub since: Option<String>,
    /// The commit the work branched off.
    pub fork: String,
    /// The tasks that are there, one line each: for whoever proposes more.
    pub backlog: Vec<String>,
    /// What the answer must hold to, one rule each.
    pub rules: Vec<String>,
    /// Where the papers of the task lie, below the workspace.
    pub papers: String,
    /// Whether the task has any.
    pub has_papers: bool,
    /// Where in the flow a judge is asked.
    pub checkpoint: String,
    /// The stage under way; 0 without one.
    pub stage: u32,
    /// The requirements of the objective, one line each.
    pub requirements: Vec<String>,
    /// What the person wants otherwise since it began, one line each.
    pub refinements: Vec<String>,
    /// Steps of the plan.
    pub steps: u32,
    /// Of these, done.
    pub steps_done: u32,
    /// The checks that the plan and judges named, and how they stand, one line each.
    pub proofs: Vec<String>,
    /// A judge looks after so many steps; 0: only when asked.
    pub every: u32,
    /// The most rounds in which a judge reads the change.
    pub rounds: u32,
    /// Whether verification of just this work failed.
    pub red: bool,
    /// The issue it follows, written `#7`.
    pub issue: String,
    /// The file that says what is to be done for the issue; empty if there is to be none.
    pub spec: String,
    /// What a reader of the work is to look for; empty: everything.
    pub lens: String,
    /// What an earlier phase of the issue hands on: each point, in the words of its agent.
    pub handoff: Vec<String>,
    /// The phase that wrote it; empty if it does not say.
    pub handed_by: String,
    /// What the file that says what is to be done was asked for and does not say.
    pub gaps: Vec<String>,
    /// Where to leave what the next phase should know.
    pub hand_on: String,
}

/// A template that cannot be read or filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptProblem {
    /// The file of the template.
    pub template: String,
    /// The line, from 1, if it is about one.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl fmt::Display for PromptProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.template, self.message),
            None => write!(f, "{}: {}", self.template, self.message),
        }
    }
}

impl std::error::Error for PromptProblem {}

/// The templates of a project.
#[derive(Debug, Clone)]
pub struct Prompts {
    environment: Arc<Environment<'static>>,
    templates: Vec<Template>,
    /// What agents found out, for those who come later.
    known: Arc<Mutex<Discoveries>>,
}

#[derive(Debug, Clone)]
struct Template {
    name: String,
    file: String,
    source: String,
}

impl Prompts {
    /// The built-in templates, and those of a project's own folder, which win by name. Each is filled once with made-up
    /// words, so that a slip is found before any work begins.
    ///
    /// # Errors
    /// The first template that cannot be read, parsed or filled.
    pub fn load_templates(override_dir: Option<&Path>) -> Result<Self, PromptProblem> {
        let mut templates: Vec<Template> = PROMPTS
            .iter()
            .map(|&(name, source)| Template {
                name: name.to_owned(),
                file: format!("prompts/{name}.md"),
                source: source.to_owned(),
            })
            .collect();
        if let Some(folder) = override_dir {
            for template in load_own_templates(folder)? {
                templates.retain(|built_in| built_in.name != template.name);
                templates.push(template);
            }
        }
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
        environment.set_syntax(syntax.build().expect("the delimiters are the usual ones"));
        for template in &templates {
            let added = environment.add_template_owned(template.name.clone(), template.source.clone());
            added.map_err(|error| template.to_problem(&error))?;
        }
        let prompts = Self { environment: Arc::new(environment), templates, known: Arc::default() };
        for template in &prompts.templates {
            prompts.render(&template.name, &PromptContext::default())?;
            prompts.render(&template.name, &PromptContext::sample())?;
        }
        Ok(prompts)
    }

    /// Takes a fact in: what agents found out is offered to those who come later. For every fact there is, from the
    /// first of the journal on.
    pub fn note_event(&self, at: Timestamp, task: TaskId, event: &Event) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).note(task, at, event);
    }

    /// A person withdrew what an agent had found out: nobody is offered it any more.
    pub fn withdraw_discovery(&self, number: u32) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).withdraw_discovery(number);
    }

    /// Whether something was found out under this number and is not withdrawn.
    #[must_use]
    pub fn knows_discovery(&self, number: u32) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(number).is_some_and(|it| !it.withdrawn)
    }

    /// What an agent that works on `task` is offered, each with who said it.
    #[must_use]
    pub fn offered_discoveries(&self, task: TaskId) -> Vec<(String, String)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let from = |it: &Discovery| {
            let who = if it.task == task { "this task".to_owned() } else { it.task.to_string() };
            if it.impact == DiscoveryImpact::Medium {
                who
            } else {
                format!("{who}, {}", it.impact.wire_name())
            }
        };
        known
            .offered_to_task(task)
            .into_iter()
            .take(OFFERED_MAX)
            .map(|it| (from(it), it.text.clone()))
            .collect()
    }

    /// The names of the templates, in alphabetical order.
    #[must_use]
    pub fn template_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.templates.iter().map(|template| template.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// The template called `name`, filled with the words of `context`.
    ///
    /// # Errors
    /// When there is no such template, or it uses something there is not.
    pub fn render(&self, name: &str, context: &PromptContext) -> Result<String, PromptProblem> {
        let template = self.templates.iter().find(|template| template.name == name);
        let template = template.ok_or_else(|| PromptProblem {
            template: format!("prompts/{name}.md"),
            line: None,
            message: "there is no such prompt".to_owned(),
            hint: Some(suggest_name(name, &self.template_names(), "prompts")),
        })?;
        let holes = Serde(PromptVariables::from_context(context));
        let filled = self.environment.get_template(name).and_then(|found| found.render(holes));
        filled.map_err(|error| template.to_problem(&error))
    }
}

impl PromptContext {
    /// Made-up words with everything in them, to try a template on.
    #[must_use]
    pub fn sample() -> Self {
        Self {
            task: "T7".to_owned(),
            title: "Greet the user by name".to_owned(),
            body: "The greeting should use the name from the profile.".to_owned(),
            criteria: vec!["`greet` returns the name".to_owned()],
            iteration: 2,
            iterations_max: 50,
            attempt: 3,
            step: "work".to_owned(),
            workspace: "/workspaces/T7".to_owned(),
            branch: "landfall/T7".to_owned(),
            base: "main".to_owned(),
            feedback: vec![("Verification failed".to_owned(), "1 test failed: greets_by_name".to_owned())],
            verify_commands: vec!["cargo test".to_owned()],
            outputs: vec!["plan.md".to_owned()],
            key: Some("0123456789abcdef".to_owned()),
            source: "file:backlog.md".to_owned(),
            past: vec!["run 1 ended without a signal; it left commits".to_owned()],
            discoveries: vec![("T3".to_owned(), "the tests need a database".to_owned())],
            resumed: true,
            compact: true,
            module: "AiTasks/greeting".to_owned(),
            next: Some("exec".to_owned()),
            moved: true,
            findings: vec!["F1 (major, src/lib.rs:7): it trusts what it should check".to_owned()],
            since: Some("1111111111111111111111111111111111111111".to_owned()),
            fork: "2222222222222222222222222222222222222222".to_owned(),
            backlog: vec!["T3 Store the profile (ready)".to_owned()],
            rules: vec!["at most 20 tasks".to_owned()],
            papers: ".landfall/task".to_owned(),
            has_papers: true,
            checkpoint: "post-exec".to_owned(),
            stage: 2,
            requirements: vec!["R1 (critical): `greet` returns the name".to_owned()],
            refinements: vec!["1. in capitals, please".to_owned()],
            steps: 5,
            steps_done: 3,
            proofs: vec!["step 1 (greet): `sh test.sh` is not run yet".to_owned()],
            every: 3,
            rounds: 4,
            red: true,
            issue: "#7".to_owned(),
            spec: "docs/spec/issue-7-greet-the-user.md".to_owned(),
            lens: "bugs".to_owned(),
            handoff: vec!["decided: the name comes from the profile".to_owned()],
            handed_by: "spec".to_owned(),
            gaps: vec!["Changed Files".to_owned()],
            hand_on: "docs/spec/issue-7-greet-the-user.md".to_owned(),
        }
    }
}

/// What templates see: the context with its untrusted words cleaned and quoted.
#[derive(Serialize)]
struct PromptVariables<'a> {
    task: &'a str,
    title: String,
    body: String,
    criteria: Vec<String>,
    iteration: u32,
    iterations_max: u32,
    attempt: u32,
    step: &'a str,
    workspace: &'a str,
    branch: &'a str,
    base: &'a str,
    feedback: Vec<PromptSection>,
    verify_commands: &'a [String],
    outputs: &'a [String],
    tag: String,
    source: String,
    past: Vec<String>,
    discoveries: String,
    resumed: bool,
    compact: bool,
    module: String,
    next: &'a str,
    moved: bool,
    findings: Vec<String>,
    since: &'a str,
    fork: &'a str,
    backlog: Vec<String>,
    rules: &'a [String],
    papers: &'a str,
    has_papers: bool,
    checkpoint: &'a str,
    stage: u32,
    requirements: Vec<String>,
    refinements: Vec<String>,
    steps: u32,
    steps_done: u32,
    proofs: Vec<String>,
    every: u32,
    rounds: u32,
    red: bool,
    issue: &'a str,
    spec: &'a str,
    lens: &'a str,
    handoff: String,
    handed_by: &'a str,
    gaps: Vec<String>,
    hand_on: &'a str,
}

#[derive(Serialize)]
struct PromptSection {
    about: String,
    text: String,
}

/// The names above, for hints.
const HOLES: [&str; 47] = [
    "task",
    "title",
    "body",
    "criteria",
    "iteration",
    "iterations_max",
    "attempt",
    "step",
    "workspace",
    "branch",
    "base",
    "feedback",
    "verify_commands",
    "outputs",
    "tag",
    "source",
    "past",
    "discoveries",
    "resumed",
    "compact",
    "module",
    "next",
    "moved",
    "findings",
    "since",
    "fork",
    "backlog",
    "rules",
    "papers",
    "has_papers",
    "checkpoint",
    "stage",
    "requirements",
    "refinements",
    "steps",
    "steps_done",
    "proofs",
    "every",
    "rounds",
    "red",
    "issue",
    "spec",
    "lens",
    "handoff",
    "handed_by",
    "gaps",
    "hand_on",
];

impl<'a> PromptVariables<'a> {
    fn from_context(context: &'a PromptContext) -> Self {
        let section = |(about, text): &(String, String)| PromptSection {
            about: quote::quote_line(about),
            text: quote::quote_feedback(text),
        };
        Self {
            task: &context.task,
            title: quote::quote_line(&context.title),
            body: quote::quote_body(&context.body),
            criteria: context.criteria.iter().map(|text| quote::quote_line(text)).collect(),
            iteration: context.iteration,
            iterations_max: context.iterations_max,
            attempt: context.attempt,
            step: &context.step,
            workspace: &context.workspace,
            branch: &context.branch,
            base: &context.base,
            feedback: context.feedback.iter().map(section).collect(),
            verify_commands: &context.verify_commands,
            outputs: &context.outputs,
            tag: match &context.key {
                Some(key) => format!("landfall key=\"{key}\""),
                None => "landfall".to_owned(),
            },
            source: quote::quote_line(&context.source),
            past: context.past.iter().map(|line| quote::quote_line(line)).collect(),
            discoveries: quote::quote_discoveries(&context.discoveries),
            resumed: context.resumed,
            compact: context.compact,
            module: quote::quote_line(&context.module),
            next: context.next.as_deref().unwrap_or_default(),
            moved: context.moved,
            findings: context.findings.iter().map(|line| quote::quote_line(line)).collect(),
            since: context.since.as_deref().unwrap_or_default(),
            fork: &context.fork,
            backlog: context.backlog.iter().map(|line| quote::quote_line(line)).collect(),
            rules: &context.rules,
            papers: &context.papers,
            has_papers: context.has_papers,
            checkpoint: &context.checkpoint,
            stage: context.stage,
            requirements: context.requirements.iter().map(|line| quote::quote_line(line)).collect(),
            refinements: context.refinements.iter().map(|line| quote::quote_line(line)).collect(),
            steps: context.steps,
            steps_done: context.steps_done,
            proofs: context.proofs.iter().map(|line| quote::quote_line(line)).collect(),
            every: context.every,
            rounds: context.rounds,
            red: context.red,
            issue: &context.issue,
            spec: &context.spec,
            lens: &context.lens,
            handoff: quote::quote_handoff(&context.handoff),
            handed_by: &context.handed_by,
            gaps: context.gaps.iter().map(|name| quote::quote_line(name)).collect(),
            hand_on: &context.hand_on,
        }
    }
}

fn load_own_templates(folder: &Path) -> Result<Vec<Template>, PromptProblem> {
    let problem = |path: &Path, error: std::io::Error| PromptProblem {
        template: path.display().to_string(),
        line: None,
        message: format!("read it: {error}"),
        hint: None,
    };
    let mut templates = Vec::new();
    for (name, path) in files_in(folder, "md").map_err(|error| problem(folder, error))? {
        let source = read_bounded(&path, FILE_BYTES_MAX).map_err(|error| problem(&path, error))?;
        templates.push(Template { name, file: path.display().to_string(), source });
    }
    Ok(templates)
}

impl Template {
    fn to_problem(&self, error: &minijinja::Error) -> PromptProblem {
        let line = error.line();
        let text =
            line.and_then(|line| self.source.lines().nth(line.checked_sub(1)?)).unwrap_or_default().trim();
        let shown: String = text.chars().take(80).collect();
        let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        let message = if shown.is_empty() { what } else { format!("{what}, in `{shown}`") };
        let hint = matches!(error.kind(), minijinja::ErrorKind::UndefinedError).then(|| {
            let slip =
                split_words(text).find_map(|word| nearest_word(word, HOLES).filter(|known| *known != word));
            slip.map_or_else(
                || format!("known names: {}", HOLES.join(", ")),
                |known| format!("did you mean `{known}`?"),
            )
        });
        PromptProblem { template: self.file.clone(), line, message, hint }
    }
}

fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

fn suggest_name(word: &str, known: &[&str], things: &str) -> String {
    match nearest_word(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known {things}: {}", known.join(", ")),
    }
}
