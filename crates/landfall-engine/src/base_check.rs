//! Runs the checks on the base before the first agent starts there. What follows from the result is decided by `base_gate` of the
//! model.

use std::sync::Arc;
use std::thread::JoinHandle;

use landfall_host::git::Oid;
use landfall_model::Commit;
use landfall_model::base_gate::{BaseCheckResult, BaseNews, RedBasePolicy};

use crate::effect_thread::AbortOnPanic;
use crate::engine_context::EngineContext;
use crate::gate::{self, verify_merge, verify_section};
use crate::ids;
use crate::land;
use crate::mail::EngineMessage;

/// Who runs them: one thread at most, as there is one lane for the base.
pub(crate) struct BaseChecker {
    site: Arc<EngineContext>,
    thread: Option<JoinHandle<()>>,
}

impl BaseChecker {
    pub fn new(site: Arc<EngineContext>) -> Self {
        Self { site, thread: None }
    }

    /// Sees that the checks run if they are wanted. `known` is where the base is by the facts.
    pub fn start_if_wanted(&mut self, is_wanted: bool, known: Option<&Commit>) {
        let is_busy = self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        if !is_wanted || is_busy {
            return;
        }
        let (site, known) = (self.site.clone(), known.cloned());
        let thread = std::thread::Builder::new().name("base-check".to_owned()).spawn(move || {
            let _fuse = AbortOnPanic;
            let (found, news) = match land::sync_base(&site) {
                Ok(base) => (Some(ids::oid_to_commit(&base)), check_base(&site, &base)),
                Err(error) => (None, Some(BaseNews::Failed(error.full_message()))),
            };
            if let Some(news) = news {
                let result = Box::new(BaseCheckResult { known, found, news });
                let _ = site.mail.send(EngineMessage::BaseChecked(result)); // the engine has left: nobody waits to start
            }
        });
        self.thread = thread.ok(); // without a thread the next turn tries again
    }

    /// Ends what is under way. Only for whoever has nothing else under way.
    pub fn stop_and_join(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if !thread.is_finished() {
            gate::interrupt_checks(&self.site);
        }
        let _ = thread.join(); // a panic there has ended the process
    }
}

/// Runs the checks of the base on the base itself, or takes over what is known of that tree. None: the engine was told to stop.
fn check_base(site: &EngineContext, base: &Oid) -> Option<BaseNews> {
    const NAME: &str = "base";
    match verify_section(site, base) {
        Err(error) => Some(BaseNews::Failed(error.full_message())),
        Ok(Ok(section)) if section.red_base == RedBasePolicy::Start => Some(BaseNews::Exempt),
        Ok(_) => match verify_merge(site, NAME, base, base, base) {
            Err(error) => Some(BaseNews::Failed(error.full_message())),
            Ok(report) => report.map(|report| BaseNews::Checked(Box::new(report))),
        },
    }
}
