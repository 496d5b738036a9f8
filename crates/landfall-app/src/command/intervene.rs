//! What a person says to one task while work goes on: a message, a hold, a block, other limits.

use landfall_api::{self as api, Problem, ProblemCode};
use landfall_engine::model::{
    AttemptPhase, News, StopRequest, Task, TaskLimitOverrides, TaskState, own_limits_text,
};

use crate::project::command_handler::CommandHandler;
use crate::project::conversions;

/// What one prompt shows of one message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 * 1024; // a prompt cuts longer ones; a file of the project holds them better
const REASON_BYTES_MAX: usize = 1_000; // a sentence or two

impl CommandHandler<'_> {
    pub fn message_task(&self, asked: api::Message) -> Result<api::Changed, Problem> {
        let text = check_text(&asked.text, "message", MESSAGE_BYTES_MAX)?;
        let id = conversions::model_task(asked.task);
        let changed = self.send_news(&[asked.task], News::Message { text, now: asked.now })?;
        let what = changed.first().map_or("hears it", |task| message_delivery_label(task, asked.now));
        let what = what.replace("{id}", &id.to_string());
        self.describe_changes(&changed, &what)
    }

    pub fn hold_tasks(&self, asked: api::Hold) -> Result<api::Changed, Problem> {
        let reason = check_reason(asked.reason.as_deref().unwrap_or_default())?;
        let changed = self.send_news(&asked.tasks, News::Hold { reason })?;
        let mut answer =
            self.describe_changes(&changed, "is held; it does not go on until you release it")?;
        for (line, task) in answer.tasks.iter_mut().zip(&changed) {
            if let TaskState::Active { .. } = &task.state {
                line.text = format!("{} finishes what is under way, and then waits for you.", task.id);
            }
        }
        Ok(answer)
    }

    pub fn release_tasks(&self, asked: &api::Release) -> Result<api::Changed, Problem> {
        let changed = self.send_news(&asked.tasks, News::Release)?;
        self.describe_changes(&changed, "goes on where it was")
    }

    pub fn block_tasks(&self, asked: &api::Block) -> Result<api::Changed, Problem> {
        let reason = check_reason(&asked.reason)?;
        if reason.is_empty() {
            return Err(Problem::new(ProblemCode::BadInput, "the reason is empty")
                .with_hint("say in a few words what is in the way"));
        }
        let changed = self.send_news(&asked.tasks, News::Block { reason })?;
        let mut answer = self.describe_changes(&changed, "is blocked; its work is kept")?;
        for (line, task) in answer.tasks.iter_mut().zip(&changed) {
            if !task.is_over() {
                line.text =
                    format!("{} is being stopped and will then be blocked; its work is kept.", task.id);
            }
        }
        Ok(answer)
    }

    pub fn set_task_limits(&self, asked: &api::Limits) -> Result<api::Changed, Problem> {
        let limits = parse_task_limits(asked)?;
        let changed = self.send_news(&[asked.task], News::SetLimits { limits })?;
        let words = changed.first().and_then(|task| own_limits_text(task.own_limits)).unwrap_or_default();
        let over = changed.first().is_some_and(|task| task.is_over());
        let next = match over {
            true => format!("; `landfall retry {}` lets it continue", asked.task),
            false => String::new(),
        };
        self.describe_changes(&changed, &format!("has limits of its own now: {words}{next}"))
    }
}

/// When the agent hears a message, as the task stands.
fn message_delivery_label(task: &Task, now: bool) -> &'static str {
    match &task.state {
        TaskState::Active {
            doing: AttemptPhase::Running { stop: Some(StopRequest::Redirect), .. }, ..
        } => "stops what its agent is doing and begins again with it; its work is kept",
        TaskState::Active { doing: AttemptPhase::Running { .. }, .. } => {
            "hears it when its agent begins the next run"
        }
        TaskState::Active { doing: AttemptPhase::Preparing { .. }, .. } => "begins with it",
        TaskState::Active { doing: AttemptPhase::Checking { stop: Some(StopRequest::Redirect) }, .. } => {
            "goes back to its agent with it as soon as what is being verified is through"
        }
        TaskState::Active { .. } => {
            "is past its agent, who hears it only if the work comes back; `landfall task tell {id} --now` brings it back"
        }
        TaskState::Ready { .. } if now && task.attempt.0 > 0 => "goes on with it",
        TaskState::Draft | TaskState::Ready { .. } | TaskState::Waiting { .. } | TaskState::Review { .. } => {
            "begins its next run with it"
        }
        TaskState::Ended(_) => "is over; `landfall retry {id}` continues it",
    }
}

pub(crate) fn check_text(text: &str, what: &str, max: usize) -> Result<String, Problem> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Problem::new(ProblemCode::BadInput, format!("the {what} is empty"))
            .with_hint("say it in a few words"));
    }
    if text.len() > max {
        let message = format!("the {what} has {} bytes; at most {max} are heard", text.len());
        return Err(Problem::new(ProblemCode::BadInput, message)
            .with_hint("commit a file with it to the base, and name the file"));
    }
    Ok(text.to_owned())
}

fn check_reason(text: &str) -> Result<String, Problem> {
    match text.trim() {
        "" => Ok(String::new()),
        text => check_text(text, "reason", REASON_BYTES_MAX),
    }
}

fn parse_task_limits(asked: &api::Limits) -> Result<TaskLimitOverrides, Problem> {
    let bad = |message: &str| Problem::new(ProblemCode::BadInput, message);
    let api::Limits { task: _, iterations, time_ms, usd } = *asked;
    if iterations.is_none() && time_ms.is_none() && usd.is_none() {
        return Err(bad("no limit is named").with_hint("`--iterations`, `--time` or `--usd` name one"));
    }
    if iterations == Some(0) || time_ms == Some(0) {
        return Err(bad("a limit of nothing lets nothing go on")
            .with_hint("`landfall task hold` keeps a task from going on"));
    }
    let micro_usd = match usd {
        Some(usd) if !(usd.is_finite() && usd > 0.0 && usd <= USD_MAX) => {
            return Err(bad("that is not an amount of money").with_hint("dollars, such as 5 or 2.50"));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded just above")]
        Some(usd) => Some((usd * 1_000_000.0).round() as u64),
        None => None,
    };
    Ok(TaskLimitOverrides { iterations_max: iterations, task_ms: time_ms, micro_usd })
}

const USD_MAX: f64 = 1_000_000.0; // more is a slip of the finger
