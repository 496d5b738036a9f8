//! How many connections there may be, and which one is closed for a new one.
//!
//! A new connection is never kept waiting by old ones: agents and strangers can open as many as they like, and `landfall
//! stop` must get in. So each source has a bounded number of connections that have proved nothing, and where there are too
//! many, the oldest of those is closed.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConnectionSource {
    /// A process, by the socket; none if it has ended.
    Process(Option<u32>),
    /// All processes of agents and checks together.
    Confined,
    /// An address; of IPv6 the network, which one machine has whole.
    Address(IpAddr),
}

impl ConnectionSource {
    pub(crate) fn from_address(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V4(v4) => IpAddr::V4(v4),
            IpAddr::V6(v6) => {
                let [a, b, c, d, ..] = v6.segments();
                IpAddr::V6([a, b, c, d, 0, 0, 0, 0].into())
            }
        })
    }
}

/// The bounds of one listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// All connections.
    pub(crate) total_max: usize,
    /// Those of one source.
    pub(crate) source_max: usize,
    /// Those of one source that have proved nothing.
    pub(crate) unproven_max: usize,
}

/// A connection, as far as its bounds go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HeldConnection {
    number: u64,
    source: ConnectionSource,
    is_proven: bool,
}

/// What becomes of a new connection.
#[derive(Debug, PartialEq, Eq)]
enum Admission {
    /// There is room.
    Take,
    /// There is room once this connection is closed.
    Replace(u64),
    /// There is no room: everybody who is there has proved who they are.
    Refuse,
}

/// Decides about a new connection from `source`. `held` is in the order in which they came.
fn judge(limits: &ConnectionLimits, held: &[HeldConnection], source: ConnectionSource) -> Admission {
    let of = |source: ConnectionSource| held.iter().filter(move |it| it.source == source);
    let unproven = |source: ConnectionSource| of(source).filter(|it| !it.is_proven);
    let replace = |source: ConnectionSource| {
        unproven(source).next().map_or(Admission::Refuse, |oldest| Admission::Replace(oldest.number))
    };
    if unproven(source).count() >= limits.unproven_max || of(source).count() >= limits.source_max {
        return replace(source);
    }
    if held.len() < limits.total_max {
        return Admission::Take;
    }
    // Whoever holds the most without proof gives way; among equals, whoever came first.
    match held.iter().rev().filter(|it| !it.is_proven).max_by_key(|it| unproven(it.source).count()) {
        Some(most) => replace(most.source),
        None => Admission::Refuse,
    }
}

/// The connections of one listener.
pub(crate) struct Connections {
    limits: ConnectionLimits,
    held: Mutex<Vec<Arc<ClientConnection>>>,
    numbers: std::sync::atomic::AtomicU64,
}

/// A connection that is held.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    number: u64,
    source: Mutex<ConnectionSource>,
    is_proven: AtomicBool,
    closing: Notify,
}

impl ClientConnection {
    /// Whoever is on the other side has proved who they are.
    pub(crate) fn mark_proven(&self) {
        self.is_proven.store(true, Ordering::Relaxed);
    }

    /// Waits until the connection has to give way to another one.
    pub(crate) async fn wait_until_closed(&self) {
        self.closing.notified().await;
    }

    fn source(&self) -> ConnectionSource {
        *self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn to_held(&self) -> HeldConnection {
        let is_proven = self.is_proven.load(Ordering::Relaxed);
        HeldConnection { number: self.number, source: self.source(), is_proven }
    }
}

impl Connections {
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, held: Mutex::default(), numbers: std::sync::atomic::AtomicU64::new(1) })
    }

    /// Takes a new connection; none if there is no room for it. An old one may have to close for it.
    pub(crate) fn take(self: &Arc<Self>, source: ConnectionSource) -> Option<ConnectionPermit> {
        let mut all = self.lock();
        if !self.make_room(&mut all, source) {
            return None;
        }
        let connection = Arc::new(ClientConnection {
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            source: Mutex::new(source),
            is_proven: AtomicBool::new(false),
            closing: Notify::new(),
        });
        all.push(Arc::clone(&connection));
        Some(ConnectionPermit { all: Arc::clone(self), connection })
    }

    fn make_room(&self, all: &mut Vec<Arc<ClientConnection>>, source: ConnectionSource) -> bool {
        let held: Vec<HeldConnection> = all.iter().map(|it| it.to_held()).collect();
        match judge(&self.limits, &held, source) {
            Admission::Take => true,
            Admission::Replace(number) => {
                // Out of the list at once: it takes no room while it closes.
                if let Some(at) = all.iter().position(|it| it.number == number) {
                    all.remove(at).closing.notify_one();
                }
                true
            }
            Admission::Refuse => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<ClientConnection>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that a connection has. Dropping it gives the place to others.
pub(crate) struct ConnectionPermit {
    all: Arc<Connections>,
    pub(crate) connection: Arc<ClientConnection>,
}

impl ConnectionPermit {
    /// Counts the connection to the agents. Says whether there is room for one more of theirs.
    pub(crate) fn confine_source(&self) -> bool {
        let mut all = self.all.lock();
        all.retain(|it| it.number != self.connection.number);
        let has_room = self.all.make_room(&mut all, ConnectionSource::Confined);
        if has_room {
            *self.connection.source.lock().unwrap_or_else(PoisonError::into_inner) =
                ConnectionSource::Confined;
            all.push(Arc::clone(&self.connection));
        }
        has_room
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.all.lock().retain(|it| it.number != self.connection.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ConnectionLimits = ConnectionLimits { total_max: 8, source_max: 6, unproven_max: 3 };
    const A: ConnectionSource = ConnectionSource::Process(Some(1));
    const B: ConnectionSource = ConnectionSource::Process(Some(2));
    const C: ConnectionSource = ConnectionSource::Process(Some(3));

    /// The connections `sources` came, those with `true` have proved themselves; then one from `new` comes.
    #[track_caller]
    fn check(sources: &[(ConnectionSource, bool)], new: ConnectionSource, expected: &Admission) {
        let held: Vec<HeldConnection> = (1..)
            .zip(sources)
            .map(|(number, (source, is_proven))| HeldConnection {
                number,
                source: *source,
                is_proven: *is_proven,
            })
            .collect();
        assert_eq!(judge(&LIMITS, &held, new), *expected, "{sources:?}");
    }

    #[test]
    fn who_opens_too_many_without_proof_loses_their_own_oldest() {
        check(&[], A, &Admission::Take);
        check(&[(A, false), (A, false)], A, &Admission::Take);
        check(&[(B, false), (A, true), (A, false), (A, false), (A, false)], A, &Admission::Replace(3));
        check(&[(A, false), (A, false), (A, false)], B, &Admission::Take);
        check(&[(A, true); 6], A, &Admission::Refuse);
        check(
            &[(A, true), (A, true), (A, true), (A, true), (A, true), (A, false)],
            A,
            &Admission::Replace(6),
        );
    }

    #[test]
    fn a_full_house_makes_room_for_a_new_client_at_the_cost_of_strangers() {
        let mut full =
            vec![(A, false), (B, false), (B, false), (A, true), (A, true), (B, true), (B, true), (A, true)];
        check(&full, C, &Admission::Replace(2)); // of those who hold the most without proof
        full[1].1 = true;
        full[2].1 = true;
        check(&full, C, &Admission::Replace(1));
        full[0].1 = true;
        check(&full, C, &Admission::Refuse);
    }

    #[test]
    fn all_agents_together_are_one_source() {
        let all = Connections::new(LIMITS);
        let taken: Vec<ConnectionPermit> = (1..=5)
            .map(|pid| {
                let taken = all.take(ConnectionSource::Process(Some(pid))).expect("room");
                assert!(taken.confine_source());
                taken
            })
            .collect();
        assert_eq!(all.lock().len(), LIMITS.unproven_max, "two of five gave way");
        drop(taken);
        assert_eq!(all.lock().len(), 0);
    }

    #[test]
    fn an_address_of_a_network_is_that_network() {
        let of = |text: &str| ConnectionSource::from_address(text.parse().expect("an address"));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::2"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:127.0.0.1"), of("127.0.0.1"));
        assert_ne!(of("127.0.0.1"), of("127.0.0.2"));
    }
}
