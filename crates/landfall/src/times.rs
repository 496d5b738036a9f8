//! Times as people give them: `08:00`, `6h`, `7d`.

use jiff::civil::{DateTime, Time};
use jiff::{Span, SpanRelativeTo, ToSpan as _, Unit, Zoned};

/// The next moment that a clock here shows `text`, or the moment it names with its day. Where the clock is put forward over
/// it, the moment after the gap; where it shows it twice, the first.
pub fn parse_until(text: &str, now: &Zoned) -> Result<Zoned, String> {
    let bad =
        |_| format!("`{text}` is not a time such as 08:00, or a day and a time such as \"2026-08-01 08:00\"");
    let zone = now.time_zone();
    let in_zone = |at: DateTime| {
        let moment = at.to_zoned(zone.clone());
        moment.map_err(|error| format!("`{text}` is no moment here: {error}"))
    };
    if text.contains(['-', 'T', ' ']) {
        let at: DateTime = text.trim().replacen(' ', "T", 1).parse().map_err(bad)?;
        let at = in_zone(at)?;
        return match at > *now {
            true => Ok(at),
            false => Err(format!("`{text}` is past")),
        };
    }
    let time: Time = pad_hour(text.trim()).parse().map_err(bad)?;
    let mut day = now.date();
    loop {
        let at = in_zone(day.to_datetime(time))?;
        if at > *now {
            return Ok(at);
        }
        day = day.checked_add(1.day()).map_err(|_| format!("`{text}` is after the end of the calendar"))?;
    }
}

/// `8:00` is as good as `08:00`.
fn pad_hour(text: &str) -> String {
    if text.split(':').next().is_some_and(|hour| hour.len() == 1) {
        format!("0{text}")
    } else {
        text.to_owned()
    }
}

/// How long `text` is, in milliseconds: `90m`, `6h`, `1h 30m`, `7d`. A day has 24 hours.
pub fn duration_ms(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is not a length of time such as 90m, 6h or 7d");
    let span: Span = text.trim().parse().map_err(|_| bad())?;
    let ms = span.total((Unit::Millisecond, SpanRelativeTo::days_are_24_hours())).map_err(|_| bad())?;
    const MAX_MS: f64 = 3650.0 * 86_400_000.0; // ten years: more is a slip
    if !(1.0..=MAX_MS).contains(&ms) {
        return Err(format!("`{text}` is not between a millisecond and ten years"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between the bounds above")]
    Ok(ms as u64)
}

#[cfg(test)]
mod tests {
    use jiff::Zoned;

    use super::{duration_ms, parse_until};

    #[test]
    fn the_next_time_a_clock_shows_it_is_meant() {
        let check = |now: &str, text: &str, expect: &str| {
            let now: Zoned = now.parse().expect("a moment");
            let found = parse_until(text, &now).map_or_else(|error| error, |at| at.to_string());
            assert_eq!(found, expect, "{text} at {now}");
        };
        let night = "2026-07-29T22:00:00+02:00[Europe/Berlin]";
        check(night, "23:30", "2026-07-29T23:30:00+02:00[Europe/Berlin]");
        check(night, "08:00", "2026-07-30T08:00:00+02:00[Europe/Berlin]");
        check(night, "8:00", "2026-07-30T08:00:00+02:00[Europe/Berlin]");
        check(night, "22:00", "2026-07-30T22:00:00+02:00[Europe/Berlin]");
        check(night, "2026-08-01 07:15", "2026-08-01T07:15:00+02:00[Europe/Berlin]");
        check(night, "2026-07-01 07:15", "`2026-07-01 07:15` is past");
        // The clock goes from 02:00 to 03:00.
        let spring = "2026-03-28T22:00:00+01:00[Europe/Berlin]";
        check(spring, "02:30", "2026-03-29T03:30:00+02:00[Europe/Berlin]");
        check(spring, "08:00", "2026-03-29T08:00:00+02:00[Europe/Berlin]");
        // The clock shows 02:30 twice.
        let autumn = "2026-10-24T22:00:00+02:00[Europe/Berlin]";
        check(autumn, "02:30", "2026-10-25T02:30:00+02:00[Europe/Berlin]");
        check(
            night,
            "soon",
            "`soon` is not a time such as 08:00, or a day and a time such as \"2026-08-01 08:00\"",
        );
        check(
            night,
            "25:00",
            "`25:00` is not a time such as 08:00, or a day and a time such as \"2026-08-01 08:00\"",
        );
    }

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        let hour = 3_600_000;
        for (text, ms) in [
            ("6h", 6 * hour),
            ("90m", hour * 3 / 2),
            ("1h 30m", hour * 3 / 2),
            ("7d", 168 * hour),
            ("45s", 45_000),
        ] {
            assert_eq!(duration_ms(text), Ok(ms), "{text}");
        }
        for text in ["", "6", "h", "-1h", "0s", "100000d", "soon"] {
            assert!(duration_ms(text).is_err(), "{text}");
        }
    }
}
