//! How strict the judges of a task are.

use serde::{Deserialize, Serialize};

use crate::score::GatePoint;

/// What a checkpoint has a number for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(from = "[u32; 3]", into = "[u32; 3]")]
pub struct GatePointValues {
    /// The plan, before work begins.
    pub post_plan: u32,
    /// The work, on the way.
    pub mid_exec: u32,
    /// The work, when it is said to be done.
    pub post_exec: u32,
}

impl GatePointValues {
    /// The number of one checkpoint.
    #[must_use]
    pub fn of(self, checkpoint: GatePoint) -> u32 {
        match checkpoint {
            GatePoint::PostPlan => self.post_plan,
            GatePoint::MidExec => self.mid_exec,
            GatePoint::PostExec => self.post_exec,
        }
    }

    /// For each checkpoint what `f` makes of both numbers.
    #[must_use]
    pub fn zip_with(self, other: Self, f: impl Fn(u32, u32) -> u32) -> Self {
        Self {
            post_plan: f(self.post_plan, other.post_plan),
            mid_exec: f(self.mid_exec, other.mid_exec),
            post_exec: f(self.post_exec, other.post_exec),
        }
    }
}

/// The numbers of the checks of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GateParams {
    /// The composite that passes, in thousandths.
    pub thresholds: GatePointValues,
    /// How often the work may go back from there: revisions of a plan, fixes on the way, fixes and new plans at the end.
    pub retries: GatePointValues,
    /// So many steps of a plan from one check on the way to the next.
    #[serde(rename = "interval")]
    pub mid_exec_interval: u32,
    /// How full a context may be before it is summed up, in percent.
    pub compact_percent: u32,
}

impl GateParams {
    /// What holds when nothing else is said.
    pub const DEFAULT: Self = Self {
        thresholds: GatePointValues { post_plan: 700, mid_exec: 600, post_exec: 750 },
        retries: GatePointValues { post_plan: 3, mid_exec: 2, post_exec: 3 },
        mid_exec_interval: 3,
        compact_percent: 82,
    };

    /// The least of everything, whoever asks. A threshold at 0.5 is where a single score blocks by itself, so a lower
    /// one would say nothing; below three quarters of a context, summing up costs more than it keeps.
    pub const LEAST: Self = Self {
        thresholds: GatePointValues { post_plan: 500, mid_exec: 500, post_exec: 600 },
        retries: GatePointValues { post_plan: 1, mid_exec: 1, post_exec: 1 },
        mid_exec_interval: 1,
        compact_percent: 75,
    };

    /// The most of everything, whoever asks. Hardly any work scores above 0.95, so a higher threshold is a way never to
    /// end; and what ten tries did not mend, another will not.
    pub const MOST: Self = Self {
        thresholds: GatePointValues { post_plan: 900, mid_exec: 850, post_exec: 950 },
        retries: GatePointValues { post_plan: 10, mid_exec: 10, post_exec: 10 },
        mid_exec_interval: 20,
        compact_percent: 90,
    };

    /// The same within [`LEAST`](Self::LEAST) and [`MOST`](Self::MOST).
    #[must_use]
    pub fn within_bounds(self) -> Self {
        self.combine_each(Self::LEAST, u32::max).combine_each(Self::MOST, u32::min)
    }

    /// Each number combined with that of `other`.
    #[must_use]
    pub fn combine_each(self, other: Self, f: impl Fn(u32, u32) -> u32) -> Self {
        Self {
            thresholds: self.thresholds.zip_with(other.thresholds, &f),
            retries: self.retries.zip_with(other.retries, &f),
            mid_exec_interval: f(self.mid_exec_interval, other.mid_exec_interval),
            compact_percent: f(self.compact_percent, other.compact_percent),
        }
    }
}

impl Default for GateParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl From<[u32; 3]> for GatePointValues {
    fn from([post_plan, mid_exec, post_exec]: [u32; 3]) -> Self {
        Self { post_plan, mid_exec, post_exec }
    }
}

impl From<GatePointValues> for [u32; 3] {
    fn from(per: GatePointValues) -> Self {
        [per.post_plan, per.mid_exec, per.post_exec]
    }
}
