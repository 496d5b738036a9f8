//! What a query is given.

use super::engine_at::EngineAt;
use super::place::Place;

/// One project and the engine that drives it, if one does.
pub(crate) struct Query<'a> {
    pub place: &'a Place,
    pub engine: &'a EngineAt,
}
