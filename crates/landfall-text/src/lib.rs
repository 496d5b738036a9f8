//! How Landfall writes amounts, moments and foreign text for people: one implementation for the terminal, the pages,
//! messages and files.
//!
//! Functions take values and return text. They read no clock and no settings; the only thing they take from the
//! machine is its time zone.

mod amounts;
pub mod control_chars;
mod moments;
mod shell;

pub use amounts::{
    capitalize, format_bytes, format_count, format_duration, format_times, format_usd, pluralize,
    short_commit,
};
pub use moments::{
    format_clock, format_dated, format_distance, format_local, format_local_rfc3339, format_near,
    format_rfc3339, format_until, format_utc,
};
pub use shell::quote_shell_word;
