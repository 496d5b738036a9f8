//! What agents found out, folded from the journal.

use landfall_api::{self as api, Problem};
use landfall_engine::model::Fact;
use landfall_engine::model::discovery::{Discoveries, Discovery};
use landfall_engine::store::Seq;

use super::place::Place;
use super::{problem, wire};

/// What is known; with `all`, what is of no use any more, too.
pub(super) fn list(place: &Place, asked: &api::DiscoveriesAsked) -> Result<api::DiscoveryList, Problem> {
    let mut known = Discoveries::default();
    if let Some(reader) = place.reader()? {
        let noted = reader.replay(Seq::FIRST, &mut |_, entry| {
            if let Fact::Task(task, event) = &entry.fact {
                known.note(*task, entry.at, event);
            }
            Ok(())
        });
        noted.map_err(|error| problem::store(&error))?;
    }
    let line = |it: &Discovery| api::DiscoveryLine {
        number: it.number,
        task: wire::task_id(it.task),
        global: it.global,
        impact: it.impact.word().to_owned(),
        text: it.text.clone(),
        at_ms: it.at.0,
        seen_ms: it.seen.0,
        times: it.times,
        archived: it.archived,
    };
    Ok(api::DiscoveryList { discoveries: known.list(asked.all).map(line).collect() })
}
