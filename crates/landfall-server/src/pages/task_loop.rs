//! The loop over a module's task: a strip that says how far it is, with a button to stop it, or a form to begin one.

use landfall_api::{
    LOOP_ITERATIONS, LOOP_MINUTES, LoopLine, LoopStatus, LoopsAsked, TaskDetail, TypedService as _,
};

use super::{PageContext, words};

/// What the page shows of it.
pub(super) struct LoopStrip {
    /// The module's folder, below the project.
    pub(super) module: String,
    /// The loop under way, or the last one.
    pub(super) last: Option<LoopView>,
    /// Whether one can be begun.
    pub(super) may_start: bool,
    pub(super) iterations: u32,
    pub(super) minutes: u32,
    /// The session that a browser begins one for.
    pub(super) session: String,
    pub(super) back: String,
}

/// A loop in words.
pub(super) struct LoopView {
    pub(super) session: String,
    pub(super) status: &'static str,
    pub(super) tone: &'static str,
    pub(super) iterations: String,
    pub(super) elapsed: String,
    pub(super) step: String,
    pub(super) reason: String,
    pub(super) may_stop: bool,
}

const SOURCE: &str = "module:";

/// The strip of a task; none for one that is of no module.
pub(super) fn loop_strip(visit: &PageContext<'_>, detail: &TaskDetail) -> Option<LoopStrip> {
    let module = detail.source.strip_prefix(SOURCE)?;
    let asked = LoopsAsked { task: Some(detail.line.id), ..LoopsAsked::default() };
    // How it went is worth having, and no reason to show nothing.
    let last = visit.loops(asked).ok().and_then(|list| list.loops.into_iter().next());
    let held = last.as_ref().is_some_and(|it| it.holds);
    Some(LoopStrip {
        module: words::line(module),
        may_start: !held,
        last: last.as_ref().map(to_loop_view),
        iterations: LOOP_ITERATIONS,
        minutes: LOOP_MINUTES,
        session: format!("web-{}", detail.line.id),
        back: format!("/tasks/{}", detail.line.id),
    })
}

fn to_loop_view(it: &LoopLine) -> LoopView {
    let (status, tone) = match it.status {
        LoopStatus::Running => ("running", "info"),
        LoopStatus::Stopping => ("stopping", "warn"),
        LoopStatus::Stopped => ("stopped", "muted"),
        LoopStatus::Failed => ("failed", "bad"),
    };
    let limit_ms = u64::from(it.minutes_max) * 60_000;
    LoopView {
        session: words::line(&it.session),
        status,
        tone,
        iterations: format!("{}/{}", it.iterations, it.iterations_max),
        elapsed: format!("{}/{}", words::length(it.elapsed_ms), words::length(limit_ms)),
        step: it.step.as_deref().map(words::line).unwrap_or_default(),
        reason: it.reason.as_deref().map(words::line).unwrap_or_default(),
        may_stop: it.holds && it.status != LoopStatus::Stopping,
    }
}
