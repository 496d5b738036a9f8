//! Trust in what landings make together: settings and scripts that run outside of the sandbox, each change of which a person
//! has approved in a review.
//!
//! A review approves the work of one task. If several tasks change such parts, their landings make a state that no person has
//! seen as a whole. It is trusted if the state before was, and if every change since then was approved.

use std::collections::{BTreeMap, BTreeSet};

/// A part of a project that a person has to trust.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrustedPart {
    /// A setting, by its key.
    Setting(String),
    /// The settings that limit the others.
    SettingLimits,
    /// A file that a command outside of the sandbox runs, by its path.
    Script(String),
}

/// The parts of one commit, each with the digest of what it holds. A part that the commit does not have is missing.
pub type TrustedParts = BTreeMap<TrustedPart, String>;

/// The work of one task in a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedWork {
    /// Whether a person approved exactly this work in a review.
    pub is_approved: bool,
    /// The parts where the work left the base. `None` if that is not one commit.
    pub before: Option<TrustedParts>,
    /// The parts of the work.
    pub after: TrustedParts,
}

impl LandedWork {
    /// Also counts changes of scripts that only the landed settings run, not those of the work itself. `before` and `after` are
    /// the parts of the same commits, read with the landed settings.
    pub fn count_landed_scripts(&mut self, before: &TrustedParts, after: &TrustedParts) {
        let Some(own) = &mut self.before else { return }; // everything counts as changed
        let is_script = |part: &&TrustedPart| matches!(part, TrustedPart::Script(_));
        let scripts: BTreeSet<&TrustedPart> = before.keys().chain(after.keys()).filter(is_script).collect();
        for part in scripts {
            if own.get(part) != self.after.get(part) || before.get(part) == after.get(part) {
                continue;
            }
            for (parts, digest) in [(&mut *own, before.get(part)), (&mut self.after, after.get(part))] {
                match digest {
                    Some(digest) => parts.insert(part.clone(), digest.clone()),
                    None => parts.remove(part),
                };
            }
        }
    }

    fn changes(&self, part: &TrustedPart) -> bool {
        self.before.as_ref().is_none_or(|before| before.get(part) != self.after.get(part))
    }
}

/// Decides whether a landing leaves a state that the person trusts. `base` is what it landed on, which is trusted.
///
/// Every part that differs from the base must come from approved work alone. It holds what that work holds, or it is a script
/// that git has merged of a trusted version and approved changes. A script that the base did not run yet may have come
/// without a review, so that nobody has seen it as one: it counts only as the approved work has it.
#[must_use]
pub fn is_landing_trusted(base: &TrustedParts, work: &[LandedWork], landed: &TrustedParts) -> bool {
    let parts: BTreeSet<&TrustedPart> = base.keys().chain(landed.keys()).collect();
    let mut changed = parts.into_iter().filter(|part| base.get(*part) != landed.get(*part));
    changed.all(|part| {
        let authors: Vec<&LandedWork> = work.iter().filter(|work| work.changes(part)).collect();
        if authors.is_empty() || !authors.iter().all(|work| work.is_approved) {
            return false;
        }
        let is_as_approved = authors.iter().any(|work| work.after.get(part) == landed.get(part));
        let has_script = |parts: &TrustedParts| parts.contains_key(part);
        let was_run_before =
            |work: &&LandedWork| has_script(&work.after) && work.before.as_ref().is_some_and(has_script);
        let is_merged = matches!(part, TrustedPart::Script(_))
            && has_script(base)
            && has_script(landed)
            && authors.iter().all(was_run_before);
        is_as_approved || is_merged
    })
}

#[cfg(test)]
mod tests {
    use super::{LandedWork, TrustedPart, TrustedParts, is_landing_trusted};

    /// `a=1` is a script, `.key=1` a setting, `=1` what limits the settings.
    fn parts(text: &str) -> TrustedParts {
        let part = |name: &str| match name.strip_prefix('.') {
            Some(key) => TrustedPart::Setting(key.to_owned()),
            None if name.is_empty() => TrustedPart::SettingLimits,
            None => TrustedPart::Script(name.to_owned()),
        };
        let pairs = text.split_whitespace().map(|pair| pair.split_once('=').expect("a pair"));
        pairs.map(|(name, value)| (part(name), value.to_owned())).collect()
    }

    fn work(is_approved: bool, before: &str, after: &str) -> LandedWork {
        LandedWork { is_approved, before: Some(parts(before)), after: parts(after) }
    }

    #[track_caller]
    fn check(base: &str, work: &[LandedWork], landed: &str, expected: bool) {
        assert_eq!(is_landing_trusted(&parts(base), work, &parts(landed)), expected, "{base} -> {landed}");
    }

    #[test]
    fn approved_changes_of_different_parts_are_trusted_together() {
        let (first, second) = (work(true, "a=1 b=1", "a=2 b=1"), work(true, "a=1 b=1", "a=1 b=2"));
        check("a=1 b=1", std::slice::from_ref(&first), "a=2 b=1", true);
        check("a=2 b=1", std::slice::from_ref(&second), "a=2 b=2", true);
        check("a=1 b=1", &[first, second], "a=2 b=2", true);
        check(".k=1 =x a=1", &[work(true, ".k=1 =x a=1", ".k=2 =y a=1")], ".k=2 =y a=1", true);
        check("a=1", &[work(true, "a=1", "a=1 new=1")], "a=1 new=1", true);
        check("a=1 b=1", &[work(true, "a=1 b=1", "a=1")], "a=1", true);
    }

    #[test]
    fn approved_changes_of_one_script_are_trusted_as_git_merges_them() {
        let (first, second) = (work(true, "a=1", "a=2"), work(true, "a=1", "a=3"));
        check("a=2", std::slice::from_ref(&second), "a=23", true);
        check("a=1", &[first, second], "a=23", true);
        // A list of settings is not a text that git merges: nobody has seen this one.
        check(".k=2", &[work(true, ".k=1", ".k=3")], ".k=23", false);
    }

    #[test]
    fn a_change_without_an_approval_is_not_trusted() {
        let refused = |before, after| work(false, before, after);
        check("a=1", &[refused("a=1", "a=2")], "a=2", false);
        check("a=1", &[work(true, "a=1", "a=2"), refused("a=1", "a=3")], "a=23", false);
        check("a=1", &[work(true, "a=1", "a=2"), refused("a=1", "a=2")], "a=2", false);
        check(
            "a=1 b=1",
            &[work(true, "a=1 b=1", "a=2 b=1"), refused("a=1 b=1", "a=1 b=2")],
            "a=2 b=2",
            false,
        );
        // Work that changes nothing of it may be there without an approval.
        check("a=1", &[work(true, "a=1", "a=2"), refused("a=1", "a=1")], "a=2", true);
        check("a=1", &[], "a=2", false);
        check("a=1", &[], "a=1", true);
        check("=x a=1", &[work(true, "=x a=1", "=x a=1")], "a=1", false);
    }

    #[test]
    fn work_from_before_a_hook_is_an_author_of_the_script_that_the_hook_runs() {
        // The hook landed meanwhile. The settings of the first work do not run `n`, which it changes as well.
        let approved = work(true, ".h=1 n=1", ".h=1 n=2");
        for is_approved in [false, true] {
            let mut early = work(is_approved, "", "");
            early.count_landed_scripts(&parts("n=1"), &parts("n=3"));
            check(".h=1 n=1", &[early, approved.clone()], ".h=1 n=23", is_approved);
        }
        // Approved work that adds a hook for an old script stays its author.
        let mut adds = work(true, "", ".h=1 n=1");
        adds.count_landed_scripts(&parts("n=1"), &parts("n=1"));
        check("", &[adds], ".h=1 n=1", true);
    }

    #[test]
    fn a_script_that_no_review_showed_as_one_is_not_trusted() {
        // Approved work calls `new`, which came meanwhile as a file that nothing ran.
        check("a=1", &[work(true, "a=1", "a=2")], "a=2 new=evil", false);
        check("a=1", &[work(true, "a=1", "a=2 new=1")], "a=2 new=evil", false);
        check("a=1", &[work(true, "a=1", "a=2"), work(false, "a=1", "a=1")], "a=2 new=evil", false);
        // Where it is not known what the work changed, all of it counts as changed.
        let unknown = LandedWork { before: None, ..work(true, "", "a=1") };
        check("a=2", std::slice::from_ref(&unknown), "a=12", false);
    }
}
