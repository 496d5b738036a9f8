//! The threads in which orders are performed.

use std::sync::Arc;

use landfall_host::crash;

use crate::host_context::HostContext;

/// Runs `work` in a thread, as soon as one can be had.
pub(crate) fn start_effect_thread<C>(
    context: &Arc<C>,
    what: &'static str,
    work: impl FnOnce(&Arc<C>) + Send + 'static,
) where
    C: AsRef<HostContext> + Send + Sync + 'static,
{
    let theirs = context.clone();
    let work = move || {
        let _fuse = AbortOnPanic;
        crash::pass_point(&format!("effect.{what}.before"));
        work(&theirs);
        crash::pass_point(&format!("effect.{what}.after"));
    };
    C::as_ref(context).shortages.start_thread(what, Box::new(work));
}

/// Held by every thread that performs. A panic there is a bug that would leave a task waiting for ever, so it ends the
/// process: the journal is whole and the next start goes on from it.
pub(crate) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}
