//! The levels of the sandbox: which one applies, and what each leaves open. How they are put up is the host's.

/// How agents and checks are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confinement {
    /// Not at all.
    Off,
    /// No writing outside.
    Write,
    /// No writing outside, and a view of the machine of its own.
    Isolated,
    /// As `Isolated`, and no network.
    Strict,
}

impl Confinement {
    /// All of them, from the most open to the most closed.
    pub const ALL: [Self; 4] = [Self::Off, Self::Write, Self::Isolated, Self::Strict];

    /// The word people and settings use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Write => "write",
            Self::Isolated => "isolated",
            Self::Strict => "strict",
        }
    }

    /// The level of this word; none if there is no such level.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word() == word)
    }

    /// Whether a program can have a terminal at this level. `Write` has no file system of its own for terminals, and those of
    /// the user are closed to agents: whoever opens one reads what is typed there.
    #[must_use]
    pub fn has_terminals(self) -> bool {
        match self {
            Self::Write => false,
            Self::Off | Self::Isolated | Self::Strict => true,
        }
    }

    /// What an agent can still reach at this level, a phrase each.
    #[must_use]
    pub fn leaves_open(self) -> &'static [&'static str] {
        const NETWORK: &str = "the network, services on this machine included";
        const LATER_SOCKETS: &str = "sockets that a service opens after the start, outside of the home folder, /tmp, /var/tmp and /run";
        match self {
            Self::Off => &["everything that you may do"],
            Self::Write => &[
                NETWORK,
                "sockets of local services, by their path",
                "modes, owners and times of your files",
                "names of hidden files",
            ],
            Self::Isolated => &[NETWORK, LATER_SOCKETS],
            Self::Strict => &[LATER_SOCKETS],
        }
    }
}

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
            assert_eq!(Confinement::of_word(level.word()), Some(level));
        }
    }
}
