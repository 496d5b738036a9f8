//! The phases of an issue, as its labels say them.

pub use landfall_facts::issue::IssuePhase;

/// The phase of an issue that is made of others, by theirs. It never goes backwards: a part that is opened again leaves the
/// whole where it was, unless the whole was opened again itself.
#[must_use]
pub fn aggregate_phase(
    now: Option<IssuePhase>,
    parts: &[Option<IssuePhase>],
    reopened: bool,
) -> Option<IssuePhase> {
    let at_least = |phase: IssuePhase| !parts.is_empty() && parts.iter().all(|part| *part >= Some(phase));
    let by_parts = if at_least(IssuePhase::Verify) {
        Some(IssuePhase::Verify) // and no further: its own acceptance is still to be looked at
    } else if parts.iter().any(|part| *part >= Some(IssuePhase::Code)) {
        Some(IssuePhase::Code)
    } else {
        None
    };
    match reopened {
        true => by_parts,
        false => now.max(by_parts),
    }
}
