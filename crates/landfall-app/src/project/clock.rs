//! The clock, and moments as seen from now.

use jiff::Timestamp;
use landfall_text::{format_duration, format_near};

/// Now, in milliseconds since 1970.
pub fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// A moment by its day: `today at 14:03`, `yesterday at 09:10`, `2026-03-01 14:03`.
pub(crate) fn format_when(at_ms: i64) -> String {
    format_near(at_ms, now_ms())
}

/// The same, with the time that is left if the moment is still to come.
pub(crate) fn format_when_or_left(at: landfall_engine::model::Timestamp) -> String {
    let left_ms = u64::try_from(at.0.saturating_sub(now_ms())).ok().filter(|left_ms| *left_ms > 0);
    match left_ms {
        Some(left_ms) => {
            let left = format_duration(left_ms.next_multiple_of(1000));
            format!("{}, {left} from now", format_when(at.0))
        }
        None => format_when(at.0),
    }
}
