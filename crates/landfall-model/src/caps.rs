//! How many agents may be at work at once with one profile, on one account, in one part of the repository.

use std::collections::BTreeMap;

use crate::status::TurnBlocker;
use crate::touch::PathPattern;

/// The limits besides the number of slots. What is not here has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConcurrencyLimits {
    /// Agents at once, by profile.
    pub profiles: BTreeMap<String, u32>,
    /// Agents at once, by account.
    pub accounts: BTreeMap<String, u32>,
    /// Agents at once, by part of the repository; at most [`AREAS_MAX`].
    pub areas: Vec<RepoArea>,
}

/// A part of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoArea {
    /// What people call it.
    pub name: String,
    /// What belongs to it.
    pub paths: Vec<PathPattern>,
    /// Agents at once whose tasks touch it.
    pub slots: u32,
}

/// As many areas as a set in one word can hold.
pub const AREAS_MAX: usize = 64;

/// The areas a task touches, by their places in [`Caps::areas`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RepoAreaSet(u64);

impl RepoAreaSet {
    pub(crate) fn from_touches<'a>(
        caps: &ConcurrencyLimits,
        touches: impl Iterator<Item = &'a PathPattern> + Clone,
    ) -> Self {
        let touched = |area: &RepoArea| {
            touches.clone().any(|touch| area.paths.iter().any(|it| it.overlaps_with(touch)))
        };
        let places = caps.areas.iter().take(AREAS_MAX).enumerate().filter(|(_, area)| touched(area));
        Self(places.fold(0, |set, (place, _)| set | 1 << place))
    }

    fn area_indexes(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let place = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(place)
        })
    }
}

/// What an agent at work counts against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConcurrencyClaim {
    pub profile: String,
    pub account: String,
    pub areas: RepoAreaSet,
}

/// How many agents are at work, by everything that has a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ConcurrencyUsage {
    profiles: BTreeMap<String, u32>,
    accounts: BTreeMap<String, u32>,
    areas: BTreeMap<usize, u32>,
}

impl ConcurrencyUsage {
    pub(crate) fn take(&mut self, charge: &ConcurrencyClaim) {
        *self.profiles.entry(charge.profile.clone()).or_default() += 1;
        *self.accounts.entry(charge.account.clone()).or_default() += 1;
        for place in charge.areas.area_indexes() {
            *self.areas.entry(place).or_default() += 1;
        }
    }

    pub(crate) fn release_claim(&mut self, charge: &ConcurrencyClaim) {
        decrement_count(&mut self.profiles, &charge.profile);
        decrement_count(&mut self.accounts, &charge.account);
        for place in charge.areas.area_indexes() {
            decrement_count(&mut self.areas, &place);
        }
    }

    pub(crate) fn count_on_account(&self, account: &str) -> u32 {
        self.accounts.get(account).copied().unwrap_or(0)
    }

    /// Which limit keeps one more agent with this profile on this account from starting, if one does.
    pub(crate) fn full_limit(
        &self,
        caps: &ConcurrencyLimits,
        profile: &str,
        account: &str,
    ) -> Option<TurnBlocker> {
        let full = |caps: &BTreeMap<String, u32>, charged: &BTreeMap<String, u32>, name: &str| {
            caps.get(name).copied().filter(|slots| charged.get(name).copied().unwrap_or(0) >= *slots)
        };
        let of_profile = full(&caps.profiles, &self.profiles, profile)
            .map(|slots| TurnBlocker::Profile { name: profile.to_owned(), slots });
        of_profile.or_else(|| {
            full(&caps.accounts, &self.accounts, account)
                .map(|slots| TurnBlocker::Account { name: account.to_owned(), slots })
        })
    }

    /// The first of these areas that has as many agents as it may.
    pub(crate) fn full_area(&self, caps: &ConcurrencyLimits, areas: RepoAreaSet) -> Option<TurnBlocker> {
        let full = |place: &usize| self.areas.get(place).copied().unwrap_or(0) >= caps.areas[*place].slots;
        let area = &caps.areas[areas.area_indexes().find(full)?];
        Some(TurnBlocker::Area { name: area.name.clone(), slots: area.slots })
    }
}

fn decrement_count<K: Ord>(charged: &mut BTreeMap<K, u32>, key: &K) {
    let count = charged.get_mut(key).expect("it was taken before it is given back");
    *count -= 1;
    if *count == 0 {
        charged.remove(key);
    }
}
