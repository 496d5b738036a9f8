//! Moments, given in milliseconds since 1970. Local time is that of the machine: the reader sits in front of it.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};

/// `12:04:05`, in local time.
pub fn format_clock(at_ms: i64) -> String {
    format_with(at_ms, "%H:%M:%S")
}

/// `2026-07-29 12:04:05`, in local time.
pub fn format_local(at_ms: i64) -> String {
    format_with(at_ms, "%Y-%m-%d %H:%M:%S")
}

/// The moment with its day and its time zone, for documents that are kept.
pub fn format_dated(at_ms: i64) -> String {
    format_with(at_ms, "%F %T %Z")
}

/// A moment as documents store it, in local time; text that is no moment stays as it is.
pub fn format_local_rfc3339(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(at) => format_local(at.as_millisecond()),
        Err(_) => text.to_owned(),
    }
}

fn format_with(at_ms: i64, format: &str) -> String {
    local_time(at_ms).map_or_else(|| outside_calendar(at_ms), |at| at.strftime(format).to_string())
}

/// A moment that no calendar has is shown as the number that was read, not as a guess.
fn outside_calendar(at_ms: i64) -> String {
    format!("{at_ms} ms after 1970")
}

/// A moment by its day as seen from now: `today at 14:03`, `yesterday at 09:10`, `2026-03-01 14:03`.
pub fn format_near(at_ms: i64, now_ms: i64) -> String {
    local_time(now_ms).map_or_else(|| outside_calendar(at_ms), |now| format_near_in_zone(at_ms, &now))
}

fn local_time(at_ms: i64) -> Option<Zoned> {
    Some(Timestamp::from_millisecond(at_ms).ok()?.to_zoned(TimeZone::system()))
}

fn format_near_in_zone(at_ms: i64, now: &Zoned) -> String {
    let Ok(at) = Timestamp::from_millisecond(at_ms) else { return outside_calendar(at_ms) };
    let at = at.to_zoned(now.time_zone().clone());
    let clock = at.strftime("%H:%M");
    let day = |days: i64| now.date().checked_add(days.days()).ok();
    if at.date() == now.date() {
        format!("today at {clock}")
    } else if Some(at.date()) == day(-1) {
        format!("yesterday at {clock}")
    } else if Some(at.date()) == day(1) {
        format!("tomorrow at {clock}")
    } else {
        at.strftime("%F %H:%M").to_string()
    }
}

/// The end of a wait: `08:00`, with its day if it is at least a day away from now.
pub fn format_until(at_ms: i64, now_ms: i64) -> String {
    local_time(now_ms).map_or_else(|| outside_calendar(at_ms), |now| format_until_in_zone(at_ms, &now))
}

fn format_until_in_zone(at_ms: i64, now: &Zoned) -> String {
    const DAY_MS: u64 = 86_400_000;
    let Ok(at) = Timestamp::from_millisecond(at_ms) else { return outside_calendar(at_ms) };
    let is_near = at_ms.abs_diff(now.timestamp().as_millisecond()) < DAY_MS;
    let at = at.to_zoned(now.time_zone().clone());
    at.strftime(if is_near { "%H:%M" } else { "%F %H:%M" }).to_string()
}

/// How far a moment is from now, in one unit: `3 min ago`, `in 2 h`. The scripts of the pages write the same.
pub fn format_distance(at_ms: i64, now_ms: i64) -> String {
    let seconds = now_ms.abs_diff(at_ms) / 1000;
    let distance = match seconds {
        0..5 => return "now".to_owned(),
        5..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    };
    if at_ms > now_ms { format!("in {distance}") } else { format!("{distance} ago") }
}

/// A moment for programs, in whole seconds: `2026-01-31T08:00:00Z`. Empty if no calendar has it.
pub fn format_rfc3339(at_ms: i64) -> String {
    Timestamp::from_second(at_ms.div_euclid(1000)).map(|at| at.to_string()).unwrap_or_default()
}

/// A moment in universal time: `2026-01-31 08:00:00 UTC`.
pub fn format_utc(at_ms: i64) -> String {
    format_rfc3339(at_ms).replace('T', " ").replace('Z', " UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().expect("a moment").as_millisecond()
    }

    #[test]
    fn moments_near_now_are_named_by_their_day() {
        let now = "2026-03-02T12:00:00Z[UTC]".parse().expect("a moment");
        let check = |text: &str, expect: &str| assert_eq!(format_near_in_zone(at(text), &now), expect);
        check("2026-03-02T09:05:00Z", "today at 09:05");
        check("2026-03-01T23:59:59Z", "yesterday at 23:59");
        check("2026-03-03T00:00:00Z", "tomorrow at 00:00");
        check("2026-02-01T07:00:00Z", "2026-02-01 07:00");
        assert_eq!(format_near_in_zone(i64::MAX, &now), "9223372036854775807 ms after 1970");
    }

    #[test]
    fn the_end_of_a_wait_has_a_day_if_it_is_far() {
        let now = "2026-03-02T12:00:00Z[UTC]".parse().expect("a moment");
        assert_eq!(format_until_in_zone(at("2026-03-03T08:00:00Z"), &now), "08:00");
        assert_eq!(format_until_in_zone(at("2026-03-03T12:00:00Z"), &now), "2026-03-03 12:00");
        assert_eq!(format_until_in_zone(i64::MIN, &now), "-9223372036854775808 ms after 1970");
    }

    #[test]
    fn distances_have_one_unit() {
        let now = at("2026-03-02T12:00:00Z");
        let cases =
            [(0, "now"), (-40, "40 s ago"), (180, "in 3 min"), (-7200, "2 h ago"), (3 * 86_400, "in 3 d")];
        for (seconds, text) in cases {
            assert_eq!(format_distance(now + seconds * 1000, now), text);
        }
        assert_eq!(format_utc(now), "2026-03-02 12:00:00 UTC");
        assert_eq!(format_rfc3339(i64::MAX), "");
        assert_eq!(format_local_rfc3339("soon"), "soon");
    }
}
