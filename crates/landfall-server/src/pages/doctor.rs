//! Whether everything Landfall needs is there and whole.

use askama::Template;
use landfall_api::{CheckState, Health, Nothing, Problem, TypedService as _};

use super::{PageContext, RenderedPage, words};

#[derive(Template)]
#[template(path = "doctor.html")]
struct DoctorPage {
    health: Health,
    bad: u64,
    warned: u64,
}

pub(super) fn draw_doctor_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let health = visit.doctor(Nothing {})?;
    let of = |state: CheckState| health.checks.iter().filter(|it| it.state == state).count() as u64;
    let (bad, warned) = (of(CheckState::Bad), of(CheckState::Warn));
    RenderedPage::new("Doctor", &DoctorPage { health, bad, warned })
}

fn mark(state: CheckState) -> (&'static str, &'static str, &'static str) {
    match state {
        CheckState::Ok => ("✓", "good", "well"),
        CheckState::Warn => ("⚠", "warn", "to know"),
        CheckState::Bad => ("✗", "bad", "broken"),
    }
}
