//! Whether the journal that was found is the one that a state folder belongs to.
//!
//! Task numbers begin again with every journal. Runs, workspaces and refs of an older one would be taken for those of new
//! tasks, so they are put aside before the first task of a new journal is added.

/// What was found where the journal should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalObservation<'a> {
    /// The id it carries. Journals of older versions carry none, nor does one that is missing or empty.
    pub id: Option<&'a str>,
    /// Whether a fact is in it.
    pub has_facts: bool,
    /// Whether the state has seen a later end of this journal: it is an older copy, or its last facts were lost.
    pub is_behind: bool,
}

/// What the rest of the state folder says about its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateTraces<'a> {
    /// There is no trace of earlier work.
    None,
    /// There is earlier work, and nothing says of which journal: an older version wrote it.
    Unnamed,
    /// It belongs to the journal with this id.
    Of(&'a str),
}

/// What is done about a journal and the state around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalClaim {
    /// They belong together.
    Open,
    /// They belong together, but the state does not say so yet: it takes over the journal's id.
    Adopt,
    /// The journal of the state is lost. The state is set aside, and a new journal begins.
    SetAside,
    /// The journal is an older copy of the one that the state belongs to. What the runs of the lost facts left is set aside,
    /// and the journal continues.
    SetRunsAside,
    /// The journal belongs to other state. Nothing is opened.
    Refuse,
}

/// Decides whether a journal and the state around it belong together.
#[must_use]
pub fn decide_journal(journal: JournalObservation<'_>, traces: StateTraces<'_>) -> JournalClaim {
    match (journal.has_facts, journal.id, traces) {
        (_, Some(id), StateTraces::Of(other)) if id == other && journal.is_behind => {
            JournalClaim::SetRunsAside
        }
        (true, None, StateTraces::Of(_)) if journal.is_behind => JournalClaim::SetRunsAside,
        (_, Some(id), StateTraces::Of(other)) if id == other => JournalClaim::Open,
        (true, Some(_), StateTraces::Of(_)) => JournalClaim::Refuse,
        // Only an older version writes facts without an id: a backup that the user has put back.
        (true, None, StateTraces::Of(_)) => JournalClaim::Adopt,
        (true, _, StateTraces::None | StateTraces::Unnamed) => JournalClaim::Adopt,
        (false, _, StateTraces::None) => JournalClaim::Adopt,
        (false, _, StateTraces::Unnamed | StateTraces::Of(_)) => JournalClaim::SetAside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_journal_and_state_have_one_claim() {
        use JournalClaim::{Adopt, Open, Refuse, SetAside};
        use StateTraces::{None as Nothing, Of, Unnamed};
        let table = [
            // A new project, and the first start of a project of an older version.
            (false, None, Nothing, Adopt),
            (true, None, Nothing, Adopt),
            (true, None, Unnamed, Adopt),
            (true, Some("a"), Nothing, Adopt),
            (true, Some("a"), Unnamed, Adopt),
            // A start that was cut short before the state carried the id.
            (false, Some("a"), Nothing, Adopt),
            // Every start after that.
            (true, Some("a"), Of("a"), Open),
            (false, Some("a"), Of("a"), Open),
            // The journal is missing, empty or new.
            (false, None, Unnamed, SetAside),
            (false, None, Of("a"), SetAside),
            (false, Some("b"), Unnamed, SetAside),
            (false, Some("b"), Of("a"), SetAside),
            // A journal with facts of other state.
            (true, Some("b"), Of("a"), Refuse),
            // A backup from before journals had an id.
            (true, None, Of("a"), Adopt),
        ];
        for (has_facts, id, traces, claim) in table {
            assert_eq!(
                decide_journal(JournalObservation { id, has_facts, is_behind: false }, traces),
                claim,
                "{id:?} {has_facts} {traces:?}"
            );
        }
    }

    #[test]
    fn runs_of_facts_that_an_older_copy_of_the_journal_lacks_are_set_aside() {
        for (has_facts, id) in [(true, Some("a")), (false, Some("a")), (true, None)] {
            let found = JournalObservation { id, has_facts, is_behind: true };
            assert_eq!(decide_journal(found, StateTraces::Of("a")), JournalClaim::SetRunsAside, "{id:?}");
        }
        let other = JournalObservation { id: Some("b"), has_facts: true, is_behind: true };
        assert_eq!(decide_journal(other, StateTraces::Of("a")), JournalClaim::Refuse);
    }

    #[test]
    fn work_of_an_older_journal_is_never_opened_by_another() {
        for has_facts in [false, true] {
            for id in [None, Some("a"), Some("b")] {
                for traces in [StateTraces::Unnamed, StateTraces::Of("a")] {
                    let claim =
                        decide_journal(JournalObservation { id, has_facts, is_behind: false }, traces);
                    let belongs = traces == StateTraces::Of("a") && id == Some("a");
                    let is_old_version = has_facts && (id.is_none() || traces == StateTraces::Unnamed);
                    let opens = matches!(claim, JournalClaim::Open | JournalClaim::Adopt);
                    assert_eq!(opens, belongs || is_old_version, "{id:?} {has_facts} {traces:?}");
                }
            }
        }
    }
}
