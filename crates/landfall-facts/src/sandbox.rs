//! Levels of the sandbox.

words! {
    /// How agents and checks are confined.
    pub enum Confinement {
        /// Not at all.
        Off = "off",
        /// No writing outside.
        Write = "write",
        /// No writing outside, and a view of the machine of its own.
        Isolated = "isolated",
        /// As `Isolated`, and no network.
        Strict = "strict",
    }
}

impl Confinement {
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
