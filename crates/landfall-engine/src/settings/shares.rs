//! What is set about how many agents may be at work at once with one profile, on one account, in one area.

use std::collections::{BTreeMap, BTreeSet};

use landfall_model::{AREAS_MAX, ConcurrencyLimits, PathPattern, RepoArea};

use super::raw::{RawAccount, RawArea};
use super::resolve::{ProfileSettings, SettingsMismatch};

/// The limits besides the number of slots.
pub(super) fn resolve_caps(
    profiles: BTreeMap<String, u32>,
    accounts: BTreeMap<String, RawAccount>,
    areas: Vec<RawArea>,
    agents: &BTreeMap<String, ProfileSettings>,
) -> Result<ConcurrencyLimits, SettingsMismatch> {
    let known: BTreeSet<&str> = agents.values().map(|profile| profile.account.as_str()).collect();
    for name in accounts.keys() {
        if !known.contains(name.as_str()) {
            let what = format!("no agent works on the account `{name}`");
            let known = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let hint = match known.is_empty() {
                true => "`account` in an [agent.…] section names one".to_owned(),
                false => format!("the accounts are {known}"),
            };
            return Err(SettingsMismatch::new(&["account", name], what).with_hint(hint));
        }
    }
    let accounts = accounts.into_iter().filter_map(|(name, raw)| Some((name, raw.slots?.0))).collect();
    Ok(ConcurrencyLimits { profiles, accounts, areas: resolve_areas(areas)? })
}

fn resolve_areas(raw: Vec<RawArea>) -> Result<Vec<RepoArea>, SettingsMismatch> {
    if raw.len() > AREAS_MAX {
        let what = format!("there are {} areas; at most {AREAS_MAX} are told apart", raw.len());
        return Err(SettingsMismatch::new(&["area"], what).with_hint("put folders together into one area"));
    }
    let mut areas: Vec<RepoArea> = Vec::new();
    for (at, RawArea { name, paths, slots }) in raw.into_iter().enumerate() {
        let at = at.to_string();
        if name.trim().is_empty() || name.contains(char::is_control) {
            let what = format!("`{}` is no name for an area", name.escape_debug());
            return Err(SettingsMismatch::new(&["area", &at, "name"], what).with_hint("one line of text"));
        }
        if areas.iter().any(|area| area.name == name) {
            let what = format!("two areas are called `{name}`");
            return Err(
                SettingsMismatch::new(&["area", &at, "name"], what).with_hint("call one of them otherwise")
            );
        }
        if paths.is_empty() {
            let what = format!("the area `{name}` has no paths");
            return Err(
                SettingsMismatch::new(&["area", &at, "paths"], what).with_hint("`paths = [\"web/\"]`")
            );
        }
        let parse = |path: &String| {
            path.parse::<PathPattern>().map_err(|error| {
                SettingsMismatch::new(&["area", &at, "paths"], format!("area `{name}`: {error}"))
            })
        };
        let paths = paths.iter().map(parse).collect::<Result<_, _>>()?;
        areas.push(RepoArea { name, paths, slots: slots.0 });
    }
    Ok(areas)
}
