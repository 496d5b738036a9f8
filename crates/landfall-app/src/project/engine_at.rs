//! The engine that drives the project, if one does: this process, another, or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use landfall_api::EngineState;
use landfall_api::client::{EngineClient, EngineIdentity};
use landfall_engine::model::TaskId;
use landfall_engine::{EngineContext, LiveAgent, LiveSnapshot, RunningCheck};

use crate::project::place::ProjectLocation;

/// Who drives the project.
pub(crate) enum EngineLocation {
    /// This process.
    Here {
        /// What a person sees of its run.
        site: Arc<EngineContext>,
    },
    /// Another process.
    There {
        /// How it introduced itself.
        greeting: EngineIdentity,
    },
    /// This process keeps the project, and drives nothing now.
    Resting {
        /// Since when it keeps it.
        since_ms: i64,
    },
    /// Nobody.
    Nowhere,
}

impl EngineLocation {
    /// Looks for an engine in another process. Costs nothing when there is none.
    pub fn locate(place: &ProjectLocation) -> Self {
        match EngineClient::connect(&place.folder.socket_path()) {
            Ok(client) => Self::There { greeting: client.engine().clone() },
            Err(_) => Self::Nowhere, // an engine that cannot be talked to is found by whoever needs its lock
        }
    }

    /// Whether a run may be under way.
    pub fn is_alive(&self) -> bool {
        match self {
            Self::Here { .. } | Self::There { .. } => true,
            Self::Resting { .. } | Self::Nowhere => false,
        }
    }

    /// What is known of the agents at work. Only the process that drives them knows.
    pub fn live_agents(&self) -> BTreeMap<TaskId, LiveAgent> {
        match self {
            Self::Here { site } => site.live.lock().view.live.clone(),
            Self::There { .. } | Self::Resting { .. } | Self::Nowhere => BTreeMap::new(),
        }
    }

    /// The checks that run now. Only the process that drives them knows.
    pub fn running_checks(&self) -> Vec<RunningCheck> {
        match self {
            Self::Here { site } => site.running_checks(),
            Self::There { .. } | Self::Resting { .. } | Self::Nowhere => Vec::new(),
        }
    }

    /// Looks at what a person sees of its run. Only the process that drives knows, and it waits meanwhile.
    pub fn with_snapshot<T>(&self, look: impl FnOnce(&LiveSnapshot) -> T) -> Option<T> {
        match self {
            Self::Here { site } => Some(look(&site.live.lock().view)),
            Self::There { .. } | Self::Resting { .. } | Self::Nowhere => None,
        }
    }

    /// What it does, in a word.
    pub fn mode_label(&self) -> &'static str {
        match self {
            Self::Here { site } => {
                let view = &site.live.lock().view;
                match (view.stopping, view.pilot.pause()) {
                    (true, _) => "stopping",
                    (false, Some(_)) => "paused",
                    (false, None) => "running",
                }
            }
            Self::There { .. } => "running",
            Self::Resting { .. } => "at rest",
            Self::Nowhere => "gone",
        }
    }

    /// As clients see it.
    pub fn engine_state(&self, since_ms: Option<i64>) -> Option<EngineState> {
        let since_ms = match self {
            Self::Resting { since_ms } => *since_ms,
            Self::Here { .. } | Self::There { .. } | Self::Nowhere => since_ms.unwrap_or_default(),
        };
        match self {
            Self::Here { .. } | Self::Resting { .. } => Some(EngineState {
                pid: std::process::id(),
                since_ms,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }),
            Self::There { greeting } => {
                Some(EngineState { pid: greeting.pid, since_ms, version: greeting.engine.clone() })
            }
            Self::Nowhere => None,
        }
    }
}
