//! Moments and amounts as people read them. Local time: whoever reads it sits at this machine.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};

/// A moment: `today at 14:03`, `yesterday at 09:10`, `2026-03-01 14:03`.
pub(super) fn when(ms: i64) -> String {
    when_from(ms, &Zoned::now())
}

/// The same for the model's moments; one that is still to come is counted down to.
pub(super) fn when_model(at: landfall_engine::model::Timestamp) -> String {
    match left(at.0, now_ms()) {
        Some(left) => format!("{}, {left} from now", when(at.0)),
        None => when(at.0),
    }
}

/// How long it is until then: `1h 12m`; none when it is past.
fn left(ms: i64, now_ms: i64) -> Option<String> {
    let left = u64::try_from(ms.checked_sub(now_ms)?).ok().filter(|left| *left > 0)?;
    Some(span(left.next_multiple_of(1000)))
}

fn when_from(ms: i64, now: &Zoned) -> String {
    let Ok(at) = Timestamp::from_millisecond(ms) else { return format!("{ms} ms after 1970") };
    let at = at.to_zoned(now.time_zone().clone());
    let clock = at.strftime("%H:%M");
    let today = now.date();
    let day = |days: i64| today.checked_add(days.days()).ok();
    if at.date() == today {
        format!("today at {clock}")
    } else if Some(at.date()) == day(-1) {
        format!("yesterday at {clock}")
    } else if Some(at.date()) == day(1) {
        format!("tomorrow at {clock}")
    } else {
        at.strftime("%F %H:%M").to_string()
    }
}

/// A moment with its day and zone, for papers that are kept.
pub(super) fn dated(at: landfall_engine::model::Timestamp) -> String {
    match Timestamp::from_millisecond(at.0) {
        Ok(moment) => moment.to_zoned(TimeZone::system()).strftime("%F %T %Z").to_string(),
        Err(_) => at.0.to_string(),
    }
}

/// `08:00`, here; with the day if it is another one than today or tomorrow.
pub(super) fn clock(ms: i64) -> String {
    clock_from(ms, &Zoned::now())
}

fn clock_from(ms: i64, now: &Zoned) -> String {
    const DAY_MS: i64 = 86_400_000;
    let Ok(at) = Timestamp::from_millisecond(ms) else { return when_from(ms, now) };
    let near = (ms - now.timestamp().as_millisecond()).abs() < DAY_MS;
    let at = at.to_zoned(now.time_zone().clone());
    at.strftime(if near { "%H:%M" } else { "%F %H:%M" }).to_string()
}

/// Now, in milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// A length of time: `340 ms`, `4s`, `2m 5s`, `1h 20m`, `3 days`.
pub(super) fn span(ms: u64) -> String {
    let s = ms / 1000;
    match (s / 86_400, s / 3600 % 24, s / 60 % 60, s % 60) {
        (0, 0, 0, 0) => format!("{ms} ms"),
        (0, 0, 0, s) => format!("{s}s"),
        (0, 0, m, 0) => format!("{m}m"),
        (0, 0, m, s) => format!("{m}m {s}s"),
        (0, h, 0, _) => format!("{h}h"),
        (0, h, m, _) => format!("{h}h {m}m"),
        (1, 0, ..) => "1 day".to_owned(),
        (days, 0, ..) => format!("{days} days"),
        (days, h, ..) => format!("{days}d {h}h"),
    }
}

/// A number of tokens: `980`, `1.2k`, `3.4M`.
pub(super) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => tenths(count / 100, "k"),
        1_000_000.. => tenths(count / 100_000, "M"),
    }
}

/// A number of bytes: `12 kB`, `3.4 MB`, `1.2 GB`.
pub(super) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} bytes"),
        1_000..1_000_000 => format!("{} kB", count / 1_000),
        1_000_000..1_000_000_000 => tenths(count / 100_000, " MB"),
        1_000_000_000.. => tenths(count / 100_000_000, " GB"),
    }
}

fn tenths(count: u64, unit: &str) -> String {
    if count.is_multiple_of(10) {
        format!("{}{unit}", count / 10)
    } else {
        format!("{}.{}{unit}", count / 10, count % 10)
    }
}

/// `1 iteration`, `2 iterations`.
pub(super) fn count(number: u64, one: &str) -> String {
    landfall_text::pluralize(number, one)
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, span, tokens, when_from};

    #[test]
    fn moments_near_now_are_named_by_their_day() {
        let now = "2026-03-02T12:00:00Z[UTC]".parse().expect("a moment");
        let check = |text: &str, expect: &str| {
            let at: jiff::Timestamp = text.parse().expect("a moment");
            assert_eq!(when_from(at.as_millisecond(), &now), expect);
        };
        check("2026-03-02T09:05:00Z", "today at 09:05");
        check("2026-03-01T23:59:59Z", "yesterday at 23:59");
        check("2026-03-03T00:00:00Z", "tomorrow at 00:00");
        check("2026-02-01T07:00:00Z", "2026-02-01 07:00");
        assert_eq!(when_from(i64::MAX, &now), "9223372036854775807 ms after 1970");
    }

    #[test]
    fn amounts_are_short() {
        assert_eq!(
            [340, 4_000, 125_000, 3_600_000, 4_800_000].map(span),
            ["340 ms", "4s", "2m 5s", "1h", "1h 20m"]
        );
        assert_eq!([7 * 86_400_000, 90_000_000].map(span), ["7 days", "1d 1h"]);
        assert_eq!([980, 1_200, 2_000, 3_450_000].map(tokens), ["980", "1.2k", "2k", "3.4M"]);
        assert_eq!(
            [12, 12_345, 3_400_000, 1_250_000_000].map(bytes),
            ["12 bytes", "12 kB", "3.4 MB", "1.2 GB"]
        );
        assert_eq!([1, 2].map(|number| count(number, "iteration")), ["1 iteration", "2 iterations"]);
    }
}
