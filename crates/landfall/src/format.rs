//! The clock, as people read it.

use jiff::Timestamp;

/// Now, in Unix milliseconds.
pub fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}
