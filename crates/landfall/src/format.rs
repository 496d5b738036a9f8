//! Numbers and moments as people read them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `0.8s`, `41s`, `3m 05s`, `1h 02m`, `3d 04h`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..10 => format!("{}.{}s", seconds, ms % 1000 / 100),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// `812`, `12.3k`, `1.2M`.
pub fn count(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{}.{}k", number / 1000, number % 1000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// `812 B`, `12.3 kB`, `1.2 GB`.
pub fn bytes(number: u64) -> String {
    let mut unit = 1u64;
    let mut name = "B";
    for next in ["kB", "MB", "GB", "TB"] {
        if number / unit < 1000 {
            break;
        }
        unit *= 1000;
        name = next;
    }
    if unit == 1 {
        format!("{number} B")
    } else {
        format!("{}.{} {name}", number / unit, number % unit / (unit / 10))
    }
}

/// `$0.21`; less than a cent in full.
pub fn usd(amount: f64) -> String {
    if amount > 0.0 && amount < 0.01 { format!("${amount:.6}") } else { format!("${amount:.2}") }
}

/// The first ten digits of a commit.
pub fn commit(hex: &str) -> &str {
    hex.get(..10).unwrap_or(hex)
}

/// `12:04:05`, here.
pub fn clock(at_ms: i64) -> String {
    at(at_ms, "%H:%M:%S")
}

/// `2026-07-29 12:04:05`, here.
pub fn moment(at_ms: i64) -> String {
    at(at_ms, "%Y-%m-%d %H:%M:%S")
}

/// The same, of a moment as records have it: `2026-07-29T00:00:00Z`.
pub fn local(rfc3339: &str) -> String {
    match rfc3339.parse::<Timestamp>() {
        Ok(at) => moment(at.as_millisecond()),
        Err(_) => rfc3339.to_owned(), // shown as it is rather than guessed
    }
}

fn at(at_ms: i64, form: &str) -> String {
    match Timestamp::from_millisecond(at_ms) {
        Ok(timestamp) => timestamp.to_zoned(TimeZone::system()).strftime(form).to_string(),
        Err(_) => format!("@{at_ms}ms"), // outside of every calendar: shown as it is rather than guessed
    }
}

/// `14:05`, here; with the day if it is another one.
pub fn until(at_ms: i64, now_ms: i64) -> String {
    let day = "%Y-%m-%d";
    if at(at_ms, day) == at(now_ms, day) { at(at_ms, "%H:%M") } else { at(at_ms, "%Y-%m-%d %H:%M") }
}

/// Now, in Unix milliseconds.
pub fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// `1 task`, `2 tasks`, `2 boxes`, `2 tries`.
pub fn plural(number: u64, noun: &str) -> String {
    if number == 1 {
        return format!("1 {noun}");
    }
    let vowel = |text: &str| text.ends_with(['a', 'e', 'i', 'o', 'u']);
    match noun.strip_suffix('y') {
        Some(stem) if !vowel(stem) => format!("{number} {stem}ies"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

/// `once`, `twice`, `3 times`.
pub fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        many => format!("{many} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, duration};

    #[test]
    fn numbers_read_well_at_every_size() {
        let durations = [0, 850, 9_999, 10_000, 59_999, 60_000, 185_000, 3_599_999, 3_720_000, 273_600_000];
        let read: Vec<String> = durations.into_iter().map(duration).collect();
        assert_eq!(
            read,
            ["0.0s", "0.8s", "9.9s", "10s", "59s", "1m 00s", "3m 05s", "59m 59s", "1h 02m", "3d 04h"]
        );
        assert_eq!([812, 1000, 12_345, 1_250_000].map(count), ["812", "1.0k", "12.3k", "1.2M"]);
        let words = ["task", "open box", "batch", "try", "day"].map(|noun| super::plural(2, noun));
        assert_eq!(words, ["2 tasks", "2 open boxes", "2 batches", "2 tries", "2 days"]);
        let sizes = [0, 999, 1000, 12_345, 1_250_000_000, u64::MAX];
        assert_eq!(sizes.map(bytes), ["0 B", "999 B", "1.0 kB", "12.3 kB", "1.2 GB", "18446744.0 TB"]);
    }
}
