//! After a start: what the journal expects to be under way is performed, adopted, or found to be lost.

use landfall_model::{Effect, World, expects};

/// Every effect that some task expects to be under way.
pub(crate) fn expected(world: &World) -> Vec<Effect> {
    world.tasks().flat_map(|task| expects(task)).collect()
}
