//! The levels of the sandbox: which one applies, and what each leaves open. How they are put up is the host's.

pub use landfall_facts::sandbox::Confinement;

/// The level where the settings name none: the highest that leaves agents the network and that this machine supports, but
/// never one below the level that the settings require.
#[must_use]
pub fn default_confinement(can_isolate: bool, required: Option<Confinement>) -> Confinement {
    let highest = if can_isolate { Confinement::Isolated } else { Confinement::Write };
    required.map_or(highest, |required| required.max(highest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_isolated_where_it_works_and_never_below_what_is_required() {
        assert_eq!(default_confinement(true, None), Confinement::Isolated);
        assert_eq!(default_confinement(false, None), Confinement::Write);
        assert_eq!(default_confinement(true, Some(Confinement::Write)), Confinement::Isolated);
        assert_eq!(default_confinement(false, Some(Confinement::Isolated)), Confinement::Isolated);
        for required in Confinement::ALL {
            for can_isolate in [true, false] {
                let level = default_confinement(can_isolate, Some(required));
                assert!(level >= required && level >= default_confinement(can_isolate, None));
            }
        }
    }

    #[test]
    fn a_higher_level_is_larger_and_has_another_word() {
        assert!(Confinement::ALL.is_sorted());
        for level in Confinement::ALL {
            assert_eq!(Confinement::from_word(level.word()), Some(level));
        }
    }
}
