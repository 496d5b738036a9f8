//! A judge that is an agent of the person's: asked in a fresh context, on empty ground, in the sandbox, within what may be spent.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use landfall_model::acceptance::CATALOGUE;
use landfall_model::{Scope, Spending, Usage, Verdict};

use super::rubric::{Judge, Question};
use crate::consult::{self, Ground};
use crate::folder::StateFolder;
use crate::settings::{Profile, Settings};

/// An agent that judges.
pub struct Asking<'a> {
    /// The settings of the project.
    pub settings: &'a Settings,
    /// Who judges.
    pub profile: &'a Profile,
    /// The root of the project.
    pub root: &'a Path,
    /// The state of the project, which the agent must not see.
    pub folder: &'a StateFolder,
    /// Our own executable.
    pub program: &'a Path,
    /// Every environment variable.
    pub environment: &'a [(OsString, OsString)],
    /// What the day has cost so far.
    pub today: Spending,
    /// Whether whoever asked has left.
    pub is_stopped: &'a dyn Fn() -> bool,
    /// What it has used so far.
    pub used: RefCell<Spending>,
}

impl Asking<'_> {
    /// How long a judge may take, as the catalogue says.
    fn limit() -> Duration {
        let spec = CATALOGUE.iter().find(|spec| spec.name == "rubric");
        Duration::from_millis(spec.map_or(300_000, |spec| spec.limit_ms))
    }

    fn note(&self, usage: Usage, took_ms: u64) {
        let used = *self.used.borrow();
        *self.used.borrow_mut() = used.plus(Spending { usage, time_ms: took_ms });
    }
}

impl Judge for Asking<'_> {
    fn judge(&self, question: &Question<'_>) -> Result<String, String> {
        if question.picture.is_some() {
            return Err("this judge is shown no pictures".to_owned());
        }
        let used = *self.used.borrow();
        let budgets = vec![
            (Scope::Attempt, self.settings.attempt_budget, used),
            (Scope::Day, self.settings.purse.day, self.today.plus(used)),
        ];
        if let Some(what) = budgets.iter().find_map(|(_, budget, spent)| budget.used_up(*spent)) {
            return Err(format!("the budget is used up: {what}"));
        }
        let asked = consult::Question {
            settings: self.settings,
            profile: self.profile,
            root: self.root,
            folder: self.folder,
            program: self.program,
            environment: self.environment,
            ground: Ground::Empty,
            about: "verdict",
            round: 1,
            limit: Self::limit(),
            budgets,
            out_cap: self.settings.run.output_cap,
            is_stopped: self.is_stopped,
        };
        let reply = consult::ask(&asked, &|_| Ok(question.prompt.to_owned()))?;
        self.note(reply.usage, reply.took_ms);
        match reply.verdict {
            Verdict::Complete | Verdict::Continue | Verdict::Checkpoint { .. } | Verdict::Pending { .. } => {
                Ok(reply.texts.join("\n"))
            }
            _ => Err(match reply.complaint.as_str() {
                "" => "the agent failed".to_owned(),
                complaint => complaint.to_owned(),
            }),
        }
    }
}
