//! What agents use that are asked outside of any task: it is journalled, and counts for the day.

use landfall_api::{self as api, Problem, TypedService as _};
use landfall_engine::EngineRequest;
use landfall_engine::model::AgentUsage;

use crate::project::command_handler::CommandHandler;
use crate::project::place::ProjectLocation;
use crate::service::ProjectService;

/// Has the engine note it, whichever process that is.
pub(crate) fn note_extra_usage(
    place: &ProjectLocation,
    (about, profile): (&str, &str),
    usage: AgentUsage,
    took_ms: u64,
) -> Result<(), Problem> {
    let AgentUsage {
        tokens_in,
        tokens_cached,
        tokens_out,
        turns,
        micro_usd,
        micro_usd_priced,
        tokens_unpriced,
        at_least,
    } = usage;
    let asked = api::Consulted {
        about: about.to_owned(),
        profile: profile.to_owned(),
        tokens_in,
        tokens_cached,
        tokens_out,
        turns,
        micro_usd,
        micro_usd_priced,
        tokens_unpriced,
        at_least,
        took_ms,
    };
    ProjectService::through_socket(place.clone()).consulted(asked).map(|api::Nothing {}| ())
}

impl CommandHandler<'_> {
    pub fn note_consultation(&self, asked: api::Consulted) -> Result<api::Nothing, Problem> {
        let api::Consulted { about, profile, took_ms, .. } = asked;
        let usage = AgentUsage {
            tokens_in: asked.tokens_in,
            tokens_cached: asked.tokens_cached,
            tokens_out: asked.tokens_out,
            turns: asked.turns,
            micro_usd: asked.micro_usd,
            micro_usd_priced: asked.micro_usd_priced,
            tokens_unpriced: asked.tokens_unpriced,
            at_least: asked.at_least,
        };
        self.request_done(EngineRequest::Consulted { about, profile, usage, took_ms })?;
        Ok(api::Nothing {})
    }
}
