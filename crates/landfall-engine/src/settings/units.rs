//! Numbers with a range, durations and sizes, as they are written in settings. Each carries its bounds in its type,
//! so that the check, the message and the schema cannot disagree.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub const SECOND: u64 = 1000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;
pub const DAY: u64 = 24 * HOUR;
pub const KIB: u64 = 1024;
pub const MIB: u64 = 1024 * KIB;
pub const GIB: u64 = 1024 * MIB;
pub const TIB: u64 = 1024 * GIB;

/// A whole number within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundedInteger<const MIN: u32, const MAX: u32>(pub u32);

/// A duration in milliseconds within bounds, written `90s` or `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Millis<const MIN: u64, const MAX: u64>(pub u64);

/// A size in bytes within bounds, written `64MiB` or `10GB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSize<const MIN: u64, const MAX: u64>(pub u64);

/// Money in millionths of a dollar, written as a number of dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dollars(pub u64);

const DOLLARS_MAX: f64 = 1_000_000.0; // nobody means to let agents spend more

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DollarsVisitor;
        impl Visitor<'_> for DollarsVisitor {
            type Value = Dollars;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of dollars such as 40 or 2.5")
            }

            fn visit_i64<E: Error>(self, dollars: i64) -> Result<Dollars, E> {
                #[expect(clippy::cast_precision_loss, reason = "amounts beyond a million are refused")]
                self.visit_f64(dollars as f64)
            }

            fn visit_u64<E: Error>(self, dollars: u64) -> Result<Dollars, E> {
                #[expect(clippy::cast_precision_loss, reason = "amounts beyond a million are refused")]
                self.visit_f64(dollars as f64)
            }

            fn visit_f64<E: Error>(self, dollars: f64) -> Result<Dollars, E> {
                if !(0.0..=DOLLARS_MAX).contains(&dollars) {
                    return Err(E::custom(format!("{dollars} is not between 0 and {DOLLARS_MAX} dollars")));
                }
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "within the bounds that were just checked"
                )]
                Ok(Dollars((dollars * 1_000_000.0).round() as u64))
            }
        }
        deserializer.deserialize_any(DollarsVisitor)
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_precision_loss, reason = "amounts beyond a million are refused")]
        serializer.serialize_f64(self.0 as f64 / 1_000_000.0)
    }
}

impl JsonSchema for Dollars {
    fn schema_name() -> Cow<'static, str> {
        "Dollars".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": DOLLARS_MAX })
    }
}

/// Units of time, largest first: the order in which they must be written.
const TIMES: [(&str, u64); 5] = [("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND), ("ms", 1)];

/// Units of size. Powers of 1000 and of 1024 are different words, as everywhere.
const SIZES: [(&str, u64); 9] = [
    ("TiB", TIB),
    ("TB", 1_000_000_000_000),
    ("GiB", GIB),
    ("GB", 1_000_000_000),
    ("MiB", MIB),
    ("MB", 1_000_000),
    ("KiB", KIB),
    ("kB", 1000),
    ("B", 1),
];

/// The milliseconds that `text` says.
pub fn parse_millis(text: &str) -> Result<u64, String> {
    let wrong = |why: &str| format!("`{}` is not a duration: {why}", escape_beginning(text));
    let mut rest = text;
    let mut total = 0_u64;
    let mut units = TIMES.as_slice();
    if rest.is_empty() {
        return Err(wrong("it is empty"));
    }
    while !rest.is_empty() {
        let (number, after) =
            split_digits(rest).ok_or_else(|| wrong("a number must come before each unit"))?;
        let word_len = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (word, after) = after.split_at(word_len);
        if word.is_empty() {
            return Err(wrong("its unit is missing (d, h, m, s or ms)"));
        }
        let Some(&(_, unit)) = TIMES.iter().find(|(known, _)| *known == word) else {
            return Err(wrong(&format!("the units are d, h, m, s and ms, not `{}`", escape_beginning(word))));
        };
        let Some(at) = units.iter().position(|(known, _)| *known == word) else {
            return Err(wrong("larger units come first, each once"));
        };
        units = &units[at + 1..];
        total = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(unit)?.checked_add(total))
            .ok_or_else(|| wrong("it is too long"))?;
        rest = after;
    }
    Ok(total)
}

/// The bytes that `text` says.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = |why: &str| format!("`{}` is not a size: {why}", escape_beginning(text));
    let (number, word) = split_digits(text).ok_or_else(|| wrong("it must begin with a number"))?;
    let word = word.strip_prefix(' ').unwrap_or(word);
    if word.is_empty() {
        return Err(wrong("its unit is missing, such as MB or GiB"));
    }
    let Some(&(_, unit)) = SIZES.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)) else {
        return Err(wrong(&format!(
            "the units are B, kB, MB, GB, TB and KiB, MiB, GiB, TiB, not `{}`",
            escape_beginning(word)
        )));
    };
    number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).ok_or_else(|| wrong("it is too large"))
}

/// A duration as a person would write it.
pub fn show_millis(ms: u64) -> String {
    let mut rest = ms;
    let mut out = String::new();
    for (word, unit) in TIMES {
        if rest >= unit {
            out.push_str(&format!("{}{word}", rest / unit));
            rest %= unit;
        }
    }
    if out.is_empty() { "0s".to_owned() } else { out }
}

/// A size as a person would write it: the unit that gives the smallest whole number.
pub fn show_bytes(bytes: u64) -> String {
    let (word, unit) =
        SIZES.into_iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)).unwrap_or(("B", 1));
    format!("{}{word}", bytes / unit)
}

fn split_digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The beginning of a word for a message; what is written may be anything.
fn escape_beginning(text: &str) -> String {
    const SHOWN_MAX: usize = 40; // enough to find it again
    text.chars().take(SHOWN_MAX).flat_map(char::escape_debug).collect()
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for BoundedInteger<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberVisitor<const MIN: u32, const MAX: u32>;
        impl<const MIN: u32, const MAX: u32> NumberVisitor<MIN, MAX> {
            fn check_bounds<N: TryInto<u32> + fmt::Display + Copy, E: Error>(number: N) -> Result<u32, E> {
                match number.try_into() {
                    Ok(within) if (MIN..=MAX).contains(&within) => Ok(within),
                    Ok(_) | Err(_) => Err(E::custom(format!("{number} is out of range: {MIN} to {MAX}"))),
                }
            }
        }
        impl<const MIN: u32, const MAX: u32> Visitor<'_> for NumberVisitor<MIN, MAX> {
            type Value = u32;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {MIN} to {MAX}")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<u32, E> {
                Self::check_bounds(number)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<u32, E> {
                Self::check_bounds(number)
            }

            fn visit_i128<E: Error>(self, number: i128) -> Result<u32, E> {
                Self::check_bounds(number)
            }

            fn visit_u128<E: Error>(self, number: u128) -> Result<u32, E> {
                Self::check_bounds(number)
            }
        }
        deserializer.deserialize_any(NumberVisitor::<MIN, MAX>).map(Self)
    }
}

impl<const MIN: u32, const MAX: u32> Serialize for BoundedInteger<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

impl<const MIN: u32, const MAX: u32> JsonSchema for BoundedInteger<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Whole{MIN}To{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

/// A word of text with a unit: what durations and sizes have in common.
struct UnitVisitor {
    wanted: &'static str,
    read: fn(&str) -> Result<u64, String>,
    show: fn(u64) -> String,
    min: u64,
    max: u64,
}

impl Visitor<'_> for UnitVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wanted)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        let value = (self.read)(text).map_err(E::custom)?;
        if (self.min..=self.max).contains(&value) {
            return Ok(value);
        }
        let (min, max) = ((self.show)(self.min), (self.show)(self.max));
        Err(E::custom(format!("{text} is out of range: {min} to {max}")))
    }
}

macro_rules! worded {
    ($name:ident, $what:literal, $wanted:literal, $pattern:literal, $read:expr, $show:expr) => {
        impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for $name<MIN, MAX> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let worded = UnitVisitor { wanted: $wanted, read: $read, show: $show, min: MIN, max: MAX };
                deserializer.deserialize_any(worded).map(Self)
            }
        }

        impl<const MIN: u64, const MAX: u64> Serialize for $name<MIN, MAX> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&$show(self.0))
            }
        }

        impl<const MIN: u64, const MAX: u64> JsonSchema for $name<MIN, MAX> {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                format!("{}{MIN}To{MAX}", stringify!($name)).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "pattern": $pattern,
                    "x-unit": $what,
                    "x-minimum": $show(MIN),
                    "x-maximum": $show(MAX),
                })
            }
        }
    };
}

worded!(
    Millis,
    "duration",
    "a duration such as \"90s\" or \"1h30m\"",
    "^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$",
    parse_millis,
    show_millis
);
worded!(
    ByteSize,
    "size",
    "a size such as \"64MB\" or \"10GiB\"",
    "^[0-9]+ ?([kKMGT]i?)?B$",
    parse_bytes,
    show_bytes
);

#[cfg(test)]
mod tests {
    use super::{parse_bytes, parse_millis, show_bytes, show_millis};

    #[test]
    fn durations_read_back_as_they_are_shown() {
        for ms in [0, 1, 999, 1000, 61_001, 5_400_000, 86_400_000, 30 * 86_400_000, u64::MAX] {
            assert_eq!(parse_millis(&show_millis(ms)), Ok(ms), "{}", show_millis(ms));
        }
        assert_eq!(show_millis(5_400_000), "1h30m");
    }

    #[test]
    fn sizes_read_back_as_they_are_shown() {
        for bytes in [0, 1, 1000, 1024, 64 << 20, 1_000_000_000, u64::MAX] {
            assert_eq!(parse_bytes(&show_bytes(bytes)), Ok(bytes), "{}", show_bytes(bytes));
        }
        assert_eq!(show_bytes(64 << 20), "64MiB");
        assert_eq!(parse_bytes("10 GiB"), Ok(10 << 30));
        assert_eq!(parse_bytes("64mb"), Ok(64_000_000));
    }

    #[test]
    fn what_is_almost_a_duration_is_refused() {
        for text in
            ["", "30", "m", "30 m", "-5s", "1.5h", "5s1m", "1m1m", "3w", "99999999999999999999s", "１s"]
        {
            assert!(parse_millis(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_almost_a_size_is_refused() {
        for text in ["", "64", "MB", "-1MB", "1.5GB", "1  GB", "1M", "20000000000TB"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
