//! Many measurements, one number.

use std::time::{Duration, Instant};

/// The middle one: on a shared machine the mean says more about the neighbours.
pub fn p50(mut of: Vec<f64>) -> f64 {
    assert!(!of.is_empty(), "nothing was measured");
    of.sort_by(f64::total_cmp);
    let middle = of.len() / 2;
    if of.len() % 2 == 1 { of[middle] } else { f64::midpoint(of[middle - 1], of[middle]) }
}

/// The value that this share of them does not exceed.
pub fn quantile(mut of: Vec<f64>, share: f64) -> f64 {
    assert!(!of.is_empty(), "nothing was measured");
    of.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a share of a length is a place"
    )]
    let place = (of.len() as f64 * share).ceil() as usize;
    of[place.clamp(1, of.len()) - 1]
}

/// Milliseconds of a span.
pub fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

/// How long something takes, in milliseconds.
pub fn timed<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(f64, T)> {
    let began = Instant::now();
    let done = work()?;
    Ok((ms(began.elapsed()), done))
}
