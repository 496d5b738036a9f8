//! Whether everything Landfall needs is there and whole.

use askama::Template;
use landfall_api::{Ask as _, CheckState, Health, Nothing, Problem};

use super::{Page, Visit, words};

#[derive(Template)]
#[template(path = "doctor.html")]
struct Doctor {
    health: Health,
    bad: u64,
    warned: u64,
}

pub(super) fn draw(visit: &Visit<'_>) -> Result<Page, Problem> {
    let health = visit.doctor(Nothing {})?;
    let of = |state: CheckState| health.checks.iter().filter(|it| it.state == state).count() as u64;
    let (bad, warned) = (of(CheckState::Bad), of(CheckState::Warn));
    Page::new("Doctor", &Doctor { health, bad, warned })
}

fn mark(state: CheckState) -> (&'static str, &'static str, &'static str) {
    match state {
        CheckState::Ok => ("✓", "good", "well"),
        CheckState::Warn => ("⚠", "warn", "to know"),
        CheckState::Bad => ("✗", "bad", "broken"),
    }
}
