//! Amounts: lengths of time, sizes, money and counted nouns.

/// A length of time in its two largest units: `0.8s`, `41s`, `3m 5s`, `1h 20m`, `3d 4h`. A second unit of zero is left out.
pub fn format_duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, seconds) => {
            let tenths = ms % 1000 / 100;
            if seconds < 10 && tenths > 0 { format!("{seconds}.{tenths}s") } else { format!("{seconds}s") }
        }
        (0, 0, minutes, 0) => format!("{minutes}m"),
        (0, 0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (0, hours, 0, _) => format!("{hours}h"),
        (0, hours, minutes, _) => format!("{hours}h {minutes}m"),
        (days, 0, ..) => format!("{days}d"),
        (days, hours, ..) => format!("{days}d {hours}h"),
    }
}

/// A large number, short: `812`, `12.3k`, `4.1M`, `2G`.
pub fn format_count(number: u64) -> String {
    format_scaled(number, &["", "k", "M", "G"])
}

/// A number of bytes: `812 B`, `12.3 kB`, `1.2 GB`.
pub fn format_bytes(number: u64) -> String {
    format_scaled(number, &[" B", " kB", " MB", " GB", " TB"])
}

/// `number` in the largest unit of which it holds at least one, with one decimal place that is not zero.
fn format_scaled(number: u64, units: &[&str]) -> String {
    let mut size = 1;
    let mut unit = units.first().copied().unwrap_or_default();
    for next in units.iter().skip(1) {
        if number / size < 1000 {
            break;
        }
        size *= 1000;
        unit = next;
    }
    match number % size * 10 / size {
        0 => format!("{}{unit}", number / size),
        tenths => format!("{}.{tenths}{unit}", number / size),
    }
}

/// Money: `$0.21`. An amount below a cent has as many digits as it needs, up to six: `$0.00` would deny it.
pub fn format_usd(dollars: f64) -> String {
    if dollars > 0.0 && dollars < 0.01 {
        let digits = format!("{:.6}", dollars.max(0.000_001));
        return format!("${}", digits.trim_end_matches('0'));
    }
    format!("${dollars:.2}")
}

/// The first ten digits of a commit.
pub fn short_commit(hex: &str) -> &str {
    hex.get(..10).unwrap_or(hex)
}

/// `1 task`, `2 tasks`, `2 boxes`, `2 tries`.
pub fn pluralize(number: u64, noun: &str) -> String {
    if number == 1 {
        return format!("1 {noun}");
    }
    let ends_in_vowel = |text: &str| text.ends_with(['a', 'e', 'i', 'o', 'u']);
    match noun.strip_suffix('y') {
        Some(stem) if !ends_in_vowel(stem) => format!("{number} {stem}ies"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

/// `once`, `twice`, `3 times`.
pub fn format_times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        many => format!("{many} times"),
    }
}

/// The text with its first letter in upper case.
pub fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_at_most_two_units() {
        let cases = [
            (0, "0s"),
            (850, "0.8s"),
            (4_000, "4s"),
            (9_999, "9.9s"),
            (10_500, "10s"),
            (60_000, "1m"),
            (185_000, "3m 5s"),
            (3_599_999, "59m 59s"),
            (3_600_000, "1h"),
            (3_720_000, "1h 2m"),
            (86_400_000, "1d"),
            (273_600_000, "3d 4h"),
        ];
        for (ms, text) in cases {
            assert_eq!(format_duration(ms), text);
        }
    }

    #[test]
    fn large_numbers_are_short() {
        assert_eq!(
            [0, 812, 1000, 2_050, 12_345, 1_250_000, 3_000_000_000].map(format_count),
            ["0", "812", "1k", "2k", "12.3k", "1.2M", "3G"]
        );
        let sizes = [0, 999, 1000, 12_345, 1_250_000_000, u64::MAX];
        assert_eq!(sizes.map(format_bytes), ["0 B", "999 B", "1 kB", "12.3 kB", "1.2 GB", "18446744 TB"]);
    }

    #[test]
    fn money_below_a_cent_is_not_rounded_to_nothing() {
        assert_eq!(
            [0.0, 1e-9, 0.0042, 0.01, 0.21, 12.0].map(format_usd),
            ["$0.00", "$0.000001", "$0.0042", "$0.01", "$0.21", "$12.00"]
        );
    }

    #[test]
    fn nouns_and_times_are_counted_in_english() {
        let words = ["task", "open box", "batch", "try", "day"].map(|noun| pluralize(2, noun));
        assert_eq!(words, ["2 tasks", "2 open boxes", "2 batches", "2 tries", "2 days"]);
        assert_eq!([0, 1].map(|number| pluralize(number, "task")), ["0 tasks", "1 task"]);
        assert_eq!([1, 2, 3].map(format_times), ["once", "twice", "3 times"]);
        assert_eq!(capitalize("élan vital"), "Élan vital");
    }
}
