//! Durations and sizes, as people write them.

/// `200ms`, `2s`, `1m`, `1h` in milliseconds.
pub(super) fn duration_ms(text: &str) -> Option<u64> {
    parse_with_units(text, &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)])
}

/// `10GB`, `64MiB`, `512B` in bytes.
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let thousands = [("kB", 1000), ("KB", 1000), ("MB", 1_000_000), ("GB", 1_000_000_000)];
    parse_with_units(text, &units)
        .or_else(|| parse_with_units(text, &thousands))
        .or_else(|| parse_with_units(text, &[("B", 1)]))
}

fn parse_with_units(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    units.iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?.trim_end_matches(' ');
        let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse::<u64>().ok().filter(|_| plain)?.checked_mul(*factor)
    })
}

#[cfg(test)]
mod tests {
    use super::{duration_ms, parse_bytes};

    #[test]
    fn units_are_read_and_nonsense_is_not() {
        assert_eq!(duration_ms("200ms"), Some(200));
        assert_eq!(duration_ms("2s"), Some(2000));
        assert_eq!(duration_ms("1 m"), Some(60_000));
        assert_eq!(parse_bytes("10GB"), Some(10_000_000_000));
        assert_eq!(parse_bytes("64 MiB"), Some(64 << 20));
        assert_eq!(parse_bytes("7B"), Some(7));
        for nonsense in ["", "s", "2", "-2s", "+2s", "2.5s", "2 parsecs", "99999999999999999999h"] {
            assert_eq!(duration_ms(nonsense), None, "{nonsense}");
            assert_eq!(parse_bytes(nonsense), None, "{nonsense}");
        }
    }
}
