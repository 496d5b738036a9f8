//! What follows from the room that is left on the disk.

/// How the disk stands, from well to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum DiskLevel {
    /// There is room.
    #[default]
    Fine,
    /// Someone should know.
    Warn,
    /// No agent is started, and what is not needed is removed.
    Pause,
    /// The agents that run are stopped before they lose what they write.
    Stop,
}

impl DiskLevel {
    /// The word people and files use.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Warn => "warn",
            Self::Pause => "pause",
            Self::Stop => "stop",
        }
    }
}

/// Below how many free bytes what follows. Each is at most the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Someone should know.
    pub warn: u64,
    /// No agent is started.
    pub pause: u64,
    /// Agents are stopped.
    pub stop: u64,
}

/// How the disk stands now that `free` bytes are left, after it stood as `before`.
///
/// It gets worse at once. It gets better only when a tenth more than the threshold is free: an agent that writes and
/// removes the same file must not stop and start the others with it.
#[must_use]
pub fn next_disk_level(before: DiskLevel, free: u64, thresholds: &Thresholds) -> DiskLevel {
    let Thresholds { warn, pause, stop } = *thresholds;
    let below = |extra: fn(u64) -> u64| match free {
        free if free < extra(stop) => DiskLevel::Stop,
        free if free < extra(pause) => DiskLevel::Pause,
        free if free < extra(warn) => DiskLevel::Warn,
        _ => DiskLevel::Fine,
    };
    let worse = below(|threshold| threshold);
    let better = below(|threshold| threshold.saturating_add(threshold / 10));
    worse.max(before.min(better))
}

#[cfg(test)]
mod tests {
    use super::{DiskLevel, Thresholds, next_disk_level};

    const AT: Thresholds = Thresholds { warn: 1000, pause: 500, stop: 100 };

    fn walk(frees: &[u64]) -> String {
        let mut disk = DiskLevel::Fine;
        let step = |free: &u64| {
            disk = next_disk_level(disk, *free, &AT);
            disk.wire_name()
        };
        frees.iter().map(step).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn it_gets_worse_at_once_and_better_with_a_margin() {
        assert_eq!(walk(&[1000, 999, 1000, 1099, 1100]), "fine warn warn warn fine");
        assert_eq!(walk(&[499, 500, 549, 550, 1099, 1100]), "pause pause pause warn warn fine");
        assert_eq!(walk(&[50, 100, 109, 110, 5000]), "stop stop stop pause fine");
        assert_eq!(walk(&[5000, 0, 5000]), "fine stop fine");
    }

    #[test]
    fn what_was_before_never_makes_it_better_than_the_disk_is() {
        for before in [DiskLevel::Fine, DiskLevel::Warn, DiskLevel::Pause, DiskLevel::Stop] {
            for free in 0..1300 {
                let at_least = next_disk_level(DiskLevel::Fine, free, &AT);
                let now = next_disk_level(before, free, &AT);
                assert!(now >= at_least && now <= before.max(at_least), "{before:?} {free}: {now:?}");
            }
        }
    }

    #[test]
    fn thresholds_of_nothing_switch_it_off() {
        let off = Thresholds { warn: 0, pause: 0, stop: 0 };
        assert_eq!(next_disk_level(DiskLevel::Stop, 0, &off), DiskLevel::Fine);
        let huge = Thresholds { warn: u64::MAX, pause: u64::MAX, stop: u64::MAX };
        assert_eq!(next_disk_level(DiskLevel::Fine, u64::MAX - 1, &huge), DiskLevel::Stop);
    }
}
