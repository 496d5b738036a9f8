//! What a query is given.

use super::engine_at::EngineLocation;
use super::place::ProjectLocation;

/// One project and the engine that drives it, if one does.
pub(crate) struct Query<'a> {
    pub place: &'a ProjectLocation,
    pub engine: &'a EngineLocation,
}
