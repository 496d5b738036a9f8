//! What agents found out, folded from the journal.

use std::collections::BTreeSet;

use landfall_api::{self as api, Problem};
use landfall_engine::EngineRequest;
use landfall_engine::model::discovery::{Discoveries, Discovery};
use landfall_engine::model::{EngineEvent, Fact};
use landfall_engine::store::Seq;

use crate::project::command_handler::CommandHandler;
use crate::project::place::ProjectLocation;
use crate::project::{conversions, problems};

/// What is known; with `all`, what is of no use any more, too.
pub(crate) fn list_discoveries(
    place: &ProjectLocation,
    asked: &api::DiscoveriesAsked,
) -> Result<api::DiscoveryList, Problem> {
    let known = load_discoveries(place)?;
    Ok(api::DiscoveryList { discoveries: known.list_discoveries(asked.all).map(to_discovery_line).collect() })
}

fn load_discoveries(place: &ProjectLocation) -> Result<Discoveries, Problem> {
    let mut known = Discoveries::default();
    if let Some(reader) = place.open_reader()? {
        let noted = reader.replay(Seq::FIRST, &mut |_, entry| {
            match &entry.fact {
                Fact::Task(task, event) => known.note(*task, entry.at, event),
                Fact::Engine(EngineEvent::DiscoveryDropped { number }) => known.withdraw_discovery(*number),
                Fact::Engine(_) => {}
            }
            Ok(())
        });
        noted.map_err(|error| problems::from_store_error(&error))?;
    }
    Ok(known)
}

fn to_discovery_line(it: &Discovery) -> api::DiscoveryLine {
    api::DiscoveryLine {
        number: it.number,
        task: conversions::task_id(it.task),
        global: it.global,
        impact: it.impact.wire_name().to_owned(),
        text: it.text.clone(),
        at_ms: it.at.0,
        seen_ms: it.seen.0,
        times: it.times,
        archived: it.archived,
        withdrawn: it.withdrawn,
    }
}

impl CommandHandler<'_> {
    pub fn drop_discoveries(&self, asked: &api::DiscoveryDrop) -> Result<api::DiscoveryList, Problem> {
        let numbers: Vec<u32> = asked.numbers.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        self.request_done(EngineRequest::DropDiscoveries { numbers: numbers.clone() })?;
        let known = load_discoveries(self.place)?;
        let dropped = numbers.iter().filter_map(|number| known.get(*number)).map(to_discovery_line).collect();
        Ok(api::DiscoveryList { discoveries: dropped })
    }
}
