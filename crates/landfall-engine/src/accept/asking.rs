//! A judge that is an agent of the person's: asked in a fresh context, on empty ground, in the sandbox, within what may be spent.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use landfall_model::acceptance::CATALOGUE;
use landfall_model::{AgentUsage, BudgetScope, BudgetUse as _, Spending, Verdict};

use super::rubric::{self, Judge, JudgeQuestion};
use super::stamp;
use crate::consult::{self, ConsultWorkspace};
use crate::folder::StateFolder;
use crate::run_folder::key_and_session;
use crate::settings::{ProfileSettings, Settings};

/// An agent that judges.
pub struct JudgeAgent<'a> {
    /// The settings of the project.
    pub settings: &'a Settings,
    /// Who judges.
    pub profile: &'a ProfileSettings,
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

impl JudgeAgent<'_> {
    /// How long a judge may take, as the catalogue says.
    fn judge_time_limit() -> Duration {
        let spec = CATALOGUE.iter().find(|spec| spec.name == "rubric");
        Duration::from_millis(spec.map_or(300_000, |spec| spec.limit_ms))
    }

    fn add_usage(&self, usage: AgentUsage, took_ms: u64) {
        let used = *self.used.borrow();
        *self.used.borrow_mut() = used.plus(Spending { usage, time_ms: took_ms });
    }
}

impl Judge for JudgeAgent<'_> {
    fn judge(&self, question: &JudgeQuestion<'_>) -> Result<String, String> {
        let used = *self.used.borrow();
        let budgets = vec![
            (BudgetScope::Attempt, self.settings.attempt_budget, used),
            (BudgetScope::Day, self.settings.purse.day, self.today.plus(used)),
        ];
        if let Some(what) = budgets.iter().find_map(|(_, budget, spent)| budget.describe_used_up(*spent)) {
            return Err(format!("the budget is used up: {what}"));
        }
        let asked = consult::ConsultRequest {
            settings: self.settings,
            profile: self.profile,
            root: self.root,
            folder: self.folder,
            program: self.program,
            environment: self.environment,
            ground: ConsultWorkspace::Empty,
            about: "verdict",
            round: 1,
            limit: Self::judge_time_limit(),
            budgets,
            out_cap: self.settings.run.output_cap,
            is_stopped: self.is_stopped,
        };
        let shown = question.picture.map(JudgePicture::new).transpose()?;
        let prompt = |work: &Path| match &shown {
            None => Ok(question.prompt.to_owned()),
            Some(shown) => shown.write_picture(work).map(|words| format!("{}{words}", question.prompt)),
        };
        let reply = consult::consult_agent(&asked, &prompt)?;
        self.add_usage(reply.usage, reply.took_ms);
        match reply.verdict {
            Verdict::Complete | Verdict::Continue | Verdict::Checkpoint { .. } | Verdict::Pending { .. } => {
                let answer = reply.texts.join("\n");
                match shown {
                    Some(shown) => shown.require_picture_seen(answer),
                    None => Ok(answer),
                }
            }
            _ => Err(match reply.complaint.as_str() {
                "" => "the agent failed".to_owned(),
                complaint => complaint.to_owned(),
            }),
        }
    }
}

/// What a judge is told to open.
const PICTURE: &str = "page.png";

/// A picture that a judge is to look at, and what only somebody knows who did.
struct JudgePicture {
    bytes: Vec<u8>,
    digits: String,
}

impl JudgePicture {
    fn new(picture: &Path) -> Result<Self, String> {
        let bytes = std::fs::read(picture).map_err(|error| format!("read the picture: {error}"))?;
        let (random, _) = key_and_session().map_err(|error| format!("make a number: {error}"))?;
        let digits = stamp::derive_digits(&random);
        Ok(Self { bytes: stamp::stamp_digits(&bytes, &digits)?, digits })
    }

    /// Puts it where the agent works; what it is told about that.
    fn write_picture(&self, work: &Path) -> Result<String, String> {
        let written = std::fs::write(work.join(PICTURE), &self.bytes);
        written
            .map(|()| stamp::describe_stamp(PICTURE))
            .map_err(|error| format!("lay the picture down: {error}"))
    }

    /// An answer counts only if whoever gave it has seen the picture.
    fn require_picture_seen(&self, answer: String) -> Result<String, String> {
        let digits = rubric::last_verdict(&answer).map(|verdict| match &verdict["digits"] {
            serde_json::Value::String(text) => text.trim().to_owned(),
            other => other.to_string(),
        });
        if digits.as_deref() == Some(&self.digits) {
            return Ok(answer);
        }
        Err("it has not seen the picture: it could not repeat the digits on it; a profile whose agent reads pictures can be \
             named as `judge.agent`"
            .to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_cannot_repeat_the_digits_has_not_seen_the_picture() {
        let shown = JudgePicture { bytes: b"picture".to_vec(), digits: "042170".to_owned() };
        let folder = tempfile::tempdir().expect("a folder");
        let words = shown.write_picture(folder.path()).expect("there is room");
        assert!(words.contains("`page.png`") && !words.contains("042170"), "{words}");
        assert_eq!(std::fs::read(folder.path().join("page.png")).expect("it is there"), b"picture");
        let answer = |digits: &str| format!(r#"{{"verdict": "PASS", "evidence": "a list"{digits}}}"#);
        for right in [r#", "digits": "042170""#, r#", "digits": " 042170 ""#] {
            assert!(shown.require_picture_seen(answer(right)).is_ok(), "{right}");
        }
        for wrong in ["", r#", "digits": "042171""#, r#", "digits": 42170"#, r#", "digits": null"#] {
            let why = shown.require_picture_seen(answer(wrong)).expect_err(wrong);
            assert!(why.contains("judge.agent"), "{why}");
        }
        assert!(shown.require_picture_seen("042170".to_owned()).is_err(), "a number alone is no verdict");
    }
}
