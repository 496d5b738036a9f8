//! What a status of a provider means, for the agents that tell it.

use landfall_model::Signal;

/// The trouble behind an HTTP status; none when it is of another kind, such as a request that makes no sense.
pub(crate) fn classify_http_status(status: u64, detail: String) -> Option<Signal> {
    match status {
        401..=403 => Some(Signal::Unauthorized { detail }),
        408 | 409 | 425 | 429 | 499 | 500..=599 => Some(Signal::Transient { detail }),
        _ => None,
    }
}
