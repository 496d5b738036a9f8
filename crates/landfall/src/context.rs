//! What every command is told: where the project is and how to answer.

use std::path::PathBuf;

use landfall_api::Service;
use serde::Serialize;

use crate::exit::CommandFailure;
use crate::{say, tone};

/// Where the project is and how to answer.
pub struct CliContext {
    /// The project the command is about.
    pub at: landfall_app::ProjectLocator,
    /// Whether programs read the output.
    pub json: bool,
}

impl CliContext {
    /// Whoever answers for the project now: the engine that runs, or our own for the moment. TypedService again for every look,
    /// so that nothing is held in between.
    pub fn open_service(&self) -> Result<Box<dyn Service>, CommandFailure> {
        Ok(landfall_app::open_service(&self.at)?)
    }

    /// The answer on stdout: as JSON, or as `text` writes it.
    pub fn print_answer<T: Serialize + ?Sized>(
        &self,
        answer: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), CommandFailure> {
        if self.json {
            say::print_json(answer)
        } else {
            say::print_data(&tone::fit_to_terminal(&text(answer)))
        }
    }

    /// A path as the person meant it, seen from the folder the command is about.
    pub fn path(&self, path: &std::path::Path) -> PathBuf {
        self.at.dir.join(path)
    }
}
