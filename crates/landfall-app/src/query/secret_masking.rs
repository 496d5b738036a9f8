//! Secrets that are known: texts that nobody is to read in an answer.

use landfall_engine::secrets;
use landfall_engine::tracker::TrackerEnv;

use crate::project::place::ProjectLocation;

/// Those of a project. Settings that are broken complain elsewhere.
pub(crate) fn collect_secrets(place: &ProjectLocation) -> Vec<String> {
    let environment = place.engine_environment();
    let around =
        TrackerEnv { root: &place.root, folder: &place.folder, environment: &environment, author: "" };
    let settings = landfall_engine::engine::load_settings(&place.root).ok();
    let key = landfall_api::SocketKey::read(&place.folder.socket_path()).ok().flatten();
    let own = key.map(|key| key.expose().to_owned()); // nobody is told it by an answer
    secrets::collect_secrets(settings.as_ref(), &around).into_iter().chain(own).collect()
}
