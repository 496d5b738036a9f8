//! When somebody who is being told something has to go: their session is revoked or runs out, or the server ends.

use std::sync::Arc;

use tokio::sync::watch;

use crate::door::{Requester, ServerState};
use crate::keys::AccessKeys;

/// Watches over one who watches.
pub(crate) struct SessionExpiry {
    shared: Arc<ServerState>,
    /// The session they were let in by; none for the owner.
    session: Option<String>,
    /// The token they came by; none for who came by a session, or by the socket.
    token: Option<[u8; 32]>,
    revoked: Option<watch::Receiver<u64>>,
    stopping: Option<watch::Receiver<bool>>,
}

impl SessionExpiry {
    pub(crate) fn of(shared: &Arc<ServerState>, who: &Requester) -> Self {
        Self {
            shared: Arc::clone(shared),
            session: who.session().map(str::to_owned),
            token: shared.keys.as_ref().filter(|_| *who == Requester::Token).map(AccessKeys::token_hash),
            revoked: shared.keys.as_ref().map(AccessKeys::subscribe_revocations),
            stopping: shared.stopping.clone(),
        }
    }

    /// Whether they have to go now.
    pub(crate) fn is_over(&self) -> bool {
        let Some(keys) = &self.shared.keys else { return self.session.is_some() };
        match (&self.session, self.token) {
            (Some(session), _) => !keys.is_session_valid(session),
            (None, Some(token)) => token != keys.token_hash(),
            (None, None) => false,
        }
    }

    /// Waits until they have to go.
    pub(crate) async fn over(&mut self) {
        while !self.is_over() {
            tokio::select! {
                () = wait_for_revocation(&mut self.revoked) => {}
                () = wait_for_stop(&mut self.stopping) => return,
            }
        }
    }
}

/// Waits until somebody is let in no more; for ever where nobody can be.
async fn wait_for_revocation(revoked: &mut Option<watch::Receiver<u64>>) {
    let heard = match revoked {
        Some(revoked) => revoked.changed().await.is_ok(),
        None => false,
    };
    if !heard {
        std::future::pending::<()>().await;
    }
}

/// Waits until the server ends; for ever where nothing ends it.
async fn wait_for_stop(stopping: &mut Option<watch::Receiver<bool>>) {
    match stopping {
        Some(stopping) => while stopping.changed().await.is_ok() {},
        None => std::future::pending().await,
    }
}
