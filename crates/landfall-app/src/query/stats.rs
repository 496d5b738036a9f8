//! What came of the work, from the counts that are kept along the way.

use std::collections::BTreeMap;

use jiff::{Timestamp as Instant, ToSpan as _, Zoned, tz::TimeZone};
use landfall_api::{self as api, Outcome, Problem, StatsSum};
use landfall_engine::model::Timestamp;
use landfall_engine::store::{CountKind, CountRow, LandedTaskFigures, SLOT_MS};

use crate::project::query_context::Query;
use crate::project::{conversions, problems};
use crate::query::judges;

const DAYS: u32 = 30;
const DAYS_MAX: u32 = 366;

pub(crate) fn build_stats(look: &Query<'_>, asked: api::StatsAsked) -> Result<Box<api::Stats>, Problem> {
    let days = list_days(&Zoned::now(), if asked.days == 0 { DAYS } else { asked.days.min(DAYS_MAX) });
    let from = Timestamp(days.first().map_or(0, |(_, from)| *from));
    let of = |error| problems::from_store_error(&error);
    let (seq, rows, finished, judges) = match look.place.open_reader()? {
        Some(reader) => (
            reader.head().map_err(of)?.seq.0,
            reader.tallies(from).map_err(of)?,
            reader.landed_since(from).map_err(of)?,
            judges::judge_agreement(&reader)?,
        ),
        None => (0, Vec::new(), Vec::new(), Vec::new()),
    };
    Ok(Box::new(api::Stats { judges, ..compute_stats(seq, days, &rows, &finished) }))
}

/// The last days, each with the moment it began, here.
fn list_days(now: &Zoned, many: u32) -> Vec<(String, i64)> {
    let zone: TimeZone = now.time_zone().clone();
    let today = now.date();
    let day = |back: u32| {
        let date = today.checked_sub(i64::from(back).days()).ok()?;
        let start: Instant = date.to_zoned(zone.clone()).ok()?.timestamp();
        Some((date.to_string(), start.as_millisecond()))
    };
    (0..many).rev().filter_map(day).collect()
}

fn compute_stats(
    seq: u64,
    days: Vec<(String, i64)>,
    rows: &[CountRow],
    finished: &[LandedTaskFigures],
) -> api::Stats {
    let words: BTreeMap<&str, CountKind> = CountKind::ALL.iter().map(|it| (it.word(), *it)).collect();
    let mut by_day: Vec<(StatsSum, u64)> = vec![Default::default(); days.len()];
    let (mut total, mut total_usd) = (StatsSum::default(), 0);
    let mut profiles: BTreeMap<String, (api::StatsProfile, u64)> = BTreeMap::new();
    let mut gates: BTreeMap<Outcome, u64> = BTreeMap::new();
    let mut flakes: BTreeMap<String, api::FlakeLine> = BTreeMap::new();
    let mut agreement = api::Agreement::default();
    for (slot, word, key, many) in rows {
        let Some(what) = words.get(word.as_str()) else { continue }; // of a later version
        let at = slot * SLOT_MS;
        let Some(day) = days.iter().rposition(|(_, from)| *from <= at) else { continue };
        let (sum, usd) = &mut by_day[day];
        add(sum, usd, *what, *many);
        add(&mut total, &mut total_usd, *what, *many);
        if counts_for_profile(*what) && !key.is_empty() {
            let (profile, usd) = profiles.entry(key.clone()).or_insert_with(|| (empty_profile(key), 0));
            add_to_profile(profile, usd, *what, *many);
        }
        match what {
            CountKind::Gates => {
                if let Ok(outcome) = key.parse() {
                    *gates.entry(outcome).or_default() += many;
                }
            }
            CountKind::CheckRuns => flake_line(&mut flakes, key).runs += many,
            CountKind::CheckFlakes => {
                let line = flake_line(&mut flakes, key);
                line.flakes += many;
                line.last_ms = line.last_ms.max(Some(at));
            }
            CountKind::Agreement => match key.as_str() {
                "approved/approved" => agreement.both_approved += many,
                "objected/objected" => agreement.both_objected += many,
                "approved/objected" => agreement.person_objected += many,
                "objected/approved" => agreement.person_approved += many,
                _ => {}
            },
            _ => {}
        }
    }
    total.cost_usd = conversions::micro_to_usd(total_usd);
    let days = days
        .into_iter()
        .zip(by_day)
        .map(|((day, from_ms), (sum, usd))| api::StatsDay {
            day,
            from_ms,
            sum: StatsSum { cost_usd: conversions::micro_to_usd(usd), ..sum },
        })
        .collect();
    let mut profiles: Vec<api::StatsProfile> = profiles
        .into_values()
        .map(|(profile, usd)| api::StatsProfile { cost_usd: conversions::micro_to_usd(usd), ..profile })
        .collect();
    profiles.sort_by(|a, b| (b.landed, &a.profile).cmp(&(a.landed, &b.profile)));
    let mut flakes: Vec<api::FlakeLine> = flakes.into_values().filter(|line| line.flakes > 0).collect();
    flakes.sort_by(|a, b| (b.flakes, &a.check).cmp(&(a.flakes, &b.check)));
    let took = |since: &dyn Fn(&LandedTaskFigures) -> Option<Timestamp>| {
        to_spread(finished.iter().filter_map(|it| u64::try_from(it.done.0 - since(it)?.0).ok()).collect())
    };
    api::Stats {
        seq,
        days,
        total,
        iterations: count_distribution(finished.iter().map(|it| u64::from(it.iterations))),
        cycle: took(&|it| Some(it.created)),
        lead: took(&|it| it.started),
        profiles,
        gates: gates.into_iter().map(|(outcome, count)| api::StatsGate { outcome, count }).collect(),
        flakes,
        review_rounds: count_distribution(
            finished.iter().map(|it| u64::from(it.rounds)).filter(|many| *many > 0),
        ),
        agreement,
        judges: Vec::new(),
    }
}

fn add(sum: &mut StatsSum, micro_usd: &mut u64, what: CountKind, many: u64) {
    match what {
        CountKind::Added => sum.added += many,
        CountKind::Rollbacks => sum.rollbacks += many,
        CountKind::Landed => sum.landed += many,
        CountKind::Failed | CountKind::Cancelled => sum.not_landed += many,
        CountKind::Attempts => sum.attempts += many,
        CountKind::Iterations => sum.iterations += many,
        CountKind::Tokens => sum.tokens += many,
        CountKind::MicroUsd => *micro_usd += many,
        CountKind::UnpricedTokens => sum.tokens_without_price += many,
        CountKind::PartialUsage => sum.runs_at_least += many,
        CountKind::AgentMs => sum.agent_ms += many,
        CountKind::VerifyMs => sum.verify_ms += many,
        CountKind::Recoveries => sum.recoveries += many,
        CountKind::QuotaWaits => sum.quota_waits += many,
        CountKind::Conflicts => sum.conflicts += many,
        CountKind::Questions => sum.questions += many,
        CountKind::Gates | CountKind::CheckRuns | CountKind::CheckFlakes | CountKind::Agreement => {}
    }
}

fn counts_for_profile(what: CountKind) -> bool {
    matches!(
        what,
        CountKind::Landed
            | CountKind::Failed
            | CountKind::Iterations
            | CountKind::Tokens
            | CountKind::MicroUsd
            | CountKind::AgentMs
    )
}

fn add_to_profile(profile: &mut api::StatsProfile, micro_usd: &mut u64, what: CountKind, many: u64) {
    match what {
        CountKind::Landed => profile.landed += many,
        CountKind::Failed => profile.failed += many,
        CountKind::Iterations => profile.iterations += many,
        CountKind::Tokens => profile.tokens += many,
        CountKind::MicroUsd => *micro_usd += many,
        CountKind::AgentMs => profile.agent_ms += many,
        _ => {} // see `of_profile`
    }
}

fn empty_profile(name: &str) -> api::StatsProfile {
    api::StatsProfile {
        profile: name.to_owned(),
        landed: 0,
        failed: 0,
        iterations: 0,
        tokens: 0,
        cost_usd: None,
        agent_ms: 0,
    }
}

fn flake_line<'a>(flakes: &'a mut BTreeMap<String, api::FlakeLine>, check: &str) -> &'a mut api::FlakeLine {
    flakes.entry(check.to_owned()).or_insert_with(|| api::FlakeLine {
        check: check.to_owned(),
        runs: 0,
        flakes: 0,
        last_ms: None,
    })
}

fn count_distribution(numbers: impl Iterator<Item = u64>) -> Vec<api::StatsCount> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for number in numbers {
        *counts.entry(number).or_default() += 1;
    }
    counts.into_iter().map(|(of, count)| api::StatsCount { of, count }).collect()
}

fn to_spread(mut took: Vec<u64>) -> api::Spread {
    took.sort_unstable();
    // The nearest rank: the smallest that so many are not above.
    let rank = |percent: usize| took.get((took.len() * percent).div_ceil(100).saturating_sub(1)).copied();
    api::Spread { count: took.len() as u64, median_ms: rank(50), p90_ms: rank(90) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_are_quicker_than_the_median_and_nine_of_ten_than_the_ninetieth() {
        let found = to_spread((1..=10).rev().collect());
        assert_eq!((found.count, found.median_ms, found.p90_ms), (10, Some(5), Some(9)));
        assert_eq!(to_spread(Vec::new()), api::Spread::default());
        assert_eq!(to_spread(vec![7]).median_ms, Some(7));
    }

    #[test]
    fn days_are_those_of_the_clock_on_the_wall() {
        let now: Zoned = "2026-03-30T00:30:00+02:00[Europe/Berlin]".parse().expect("a moment");
        let days = list_days(&now, 3);
        assert_eq!(
            days.iter().map(|(day, _)| day.as_str()).collect::<Vec<_>>(),
            ["2026-03-28", "2026-03-29", "2026-03-30"]
        );
        // The clocks went forward on the 29th: it had 23 hours.
        assert_eq!(days[2].1 - days[1].1, 23 * 3_600_000);
        assert!(days.iter().all(|(_, from)| from % SLOT_MS == 0), "a day is made of whole slots");
    }
}
