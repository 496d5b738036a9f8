//! Answers that are the same for everybody: made once, and handed to all who ask while they hold.
//!
//! An answer holds until something is written, as the service's mark says, and never longer than [`AGE_MAX`]: what agents at
//! work say is no older than that. One is made at a time; who asks for the same meanwhile waits for it.
//!
//! What several ask for is made again as soon as something happened, before they ask, all of it in one round and of one moment.
//! Until the round is whole they are shown the one before, as long as nobody was told of more: what anybody was answered, or heard
//! from the stream of events, is in everything that is shown after it. Whatever a request wrote is shown at once.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use landfall_api::{Problem, ProblemCode, StateVersion};
use tokio::sync::{Notify, watch};

use crate::door::ServerState;

const AGE_MAX: Duration = Duration::from_millis(250); // as long as a person takes to notice
const AGE_SOON: Duration = Duration::from_millis(80); // then it is made again in the next round, if several ask
const ROUND_EVERY: Duration = Duration::from_millis(120); // at least, while several ask
const HOT: Duration = Duration::from_secs(1); // asked for twice within it: there will be a third
const PLACES_MAX: usize = 32; // questions that are remembered; people look at a few pages
const BYTES_MAX: usize = 1 << 20; // longer answers are made for who asks, and forgotten
const REST_MIN: Duration = Duration::from_millis(2); // events come in groups
const REST_PER_WORK: u32 = 1; // making ahead takes at most half a processor …
const WORK_MAX: Duration = Duration::from_millis(50); // … but for that long, after a quiet time
const ROUND_WAIT_MAX: Duration = Duration::from_millis(250); // the stream of events waits no longer for a round

/// Makes an answer.
type ResponseBuilder = Arc<dyn Fn(&Arc<ServerState>) -> Result<Bytes, Problem> + Send + Sync>;

/// The answers that are kept.
pub(crate) struct ResponseCache {
    state: Mutex<ResponseCacheState>,
    /// Somebody asks for the same again.
    hot: Notify,
    /// How far the last round came.
    round: watch::Sender<u64>,
}

#[derive(Default)]
struct ResponseCacheState {
    places: BTreeMap<String, CacheSlot>,
    /// The last event anybody was told of.
    told: u64,
}

/// One question.
struct CacheSlot {
    make: ResponseBuilder,
    /// Held while an answer is made.
    making: Arc<tokio::sync::Mutex<()>>,
    made: Option<CachedResponse>,
    /// When it was asked last, and the time before.
    asked: [Option<Instant>; 2],
}

/// An answer.
#[derive(Clone)]
struct CachedResponse {
    /// How far things had come before it was begun.
    mark: StateVersion,
    /// The last event it may tell of.
    shows: u64,
    begun: Instant,
    bytes: Bytes,
}

impl CachedResponse {
    /// Makes several, all of one moment where the service can say which.
    fn build_all(
        makes: Vec<(String, ResponseBuilder)>,
        shared: &Arc<ServerState>,
    ) -> Vec<(String, Result<Self, Problem>)> {
        let (begun, before) = (Instant::now(), shared.service.state_version().unwrap_or_default());
        let mut all = Vec::with_capacity(makes.len());
        let mut makes = makes.into_iter();
        let moment = shared.service.run_in_one_state(&mut || {
            // One that cannot be made leaves the others whole.
            let made = |make: ResponseBuilder| {
                catch_unwind(AssertUnwindSafe(|| make(shared))).unwrap_or_else(|_| Err(not_built_problem()))
            };
            all.extend(makes.by_ref().map(|(name, make)| (name, made(make))));
        });
        let after = || shared.service.state_version().unwrap_or_default().seq;
        let mark = StateVersion { seq: moment.unwrap_or(before.seq), ..before };
        let shows = moment.unwrap_or_else(after).max(mark.seq);
        let made = |bytes| Self { mark, shows, begun, bytes };
        all.into_iter().map(|(name, bytes)| (name, bytes.map(made))).collect()
    }

    fn is_valid_at(&self, mark: StateVersion, age_max: Duration) -> bool {
        self.mark.covers_version(mark) && self.begun.elapsed() <= age_max
    }
}

impl CacheSlot {
    fn is_hot(&self) -> bool {
        let [Some(last), Some(before)] = self.asked else { return false };
        last.elapsed() < HOT && last.duration_since(before) < HOT
    }
}

impl ResponseCacheState {
    /// The answer that holds for somebody who asks at `mark`. From here on everybody is shown at least as much.
    fn cached_answer(&mut self, name: &str, mark: StateVersion) -> Option<Bytes> {
        let place = self.places.get(name)?;
        let least = if place.is_hot() { StateVersion { seq: mark.seq.min(self.told), ..mark } } else { mark };
        let made = place.made.as_ref().filter(|made| made.is_valid_at(least, AGE_MAX))?;
        self.told = self.told.max(made.shows);
        Some(made.bytes.clone())
    }

    /// Keeps an answer, unless one was begun after it.
    fn store_response(&mut self, name: &str, made: CachedResponse) {
        let Some(place) = self.places.get_mut(name) else { return };
        if place.made.as_ref().is_none_or(|there| there.begun < made.begun) {
            place.made = (made.bytes.len() <= BYTES_MAX).then_some(made);
        }
    }
}

impl Default for ResponseCache {
    fn default() -> Self {
        Self { state: Mutex::default(), hot: Notify::new(), round: watch::Sender::new(0) }
    }
}

impl ResponseCache {
    /// The answer to a question, by its name: one that holds, or one that is made now. It must depend on nothing but the name.
    pub(crate) async fn get(
        &self,
        shared: &Arc<ServerState>,
        name: &str,
        make: impl Fn(&Arc<ServerState>) -> Result<Bytes, Problem> + Send + Sync + 'static,
    ) -> Result<Bytes, Problem> {
        let Some(mark) = shared.service.state_version() else {
            // Nobody says how long it would hold.
            return build_response(shared, name, &(Arc::new(make) as ResponseBuilder))
                .await
                .map(|made| made.bytes);
        };
        let (making, make) = {
            let mut state = self.lock_state();
            let (place, hot) = note_request(&mut state, name, make);
            if hot {
                self.hot.notify_one();
            }
            if let Some(bytes) = state.cached_answer(name, mark) {
                return Ok(bytes);
            }
            place
        };
        let _one = making.lock().await;
        if let Some(bytes) = self.lock_state().cached_answer(name, mark) {
            return Ok(bytes); // somebody just made it
        }
        let made = build_response(shared, name, &make).await?;
        let (bytes, mut state) = (made.bytes.clone(), self.lock_state());
        state.told = state.told.max(made.shows);
        state.store_response(name, made);
        Ok(bytes)
    }

    /// Somebody is told of everything up to this event, by another way: nobody is shown less from here on.
    pub(crate) fn note_told(&self, seq: u64) {
        let mut state = self.lock_state();
        state.told = state.told.max(seq);
    }

    /// Waits until what several ask for tells of this event, but not for long.
    pub(crate) async fn wait_until_ready(&self, seq: u64) {
        let mut round = self.round.subscribe();
        if self.any_hot() {
            // Whoever asks before it is ready waits for it.
            let _ = tokio::time::timeout(ROUND_WAIT_MAX, round.wait_for(|round| *round >= seq)).await; // looked at again
        }
    }

    fn any_hot(&self) -> bool {
        self.lock_state().places.values().any(CacheSlot::is_hot)
    }

    fn lock_state(&self) -> MutexGuard<'_, ResponseCacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What several ask for and is not known for `mark`, or soon will be old.
    fn due_builders(&self, mark: StateVersion) -> Vec<(String, ResponseBuilder)> {
        let state = self.lock_state();
        let hot = state.places.iter().filter(|(_, place)| place.is_hot());
        let due = hot
            .filter(|(_, place)| !place.made.as_ref().is_some_and(|made| made.is_valid_at(mark, AGE_SOON)));
        due.map(|(name, place)| (name.clone(), Arc::clone(&place.make))).collect()
    }
}

/// Notes that a question is asked: who makes its answer, and whether it is asked often.
fn note_request(
    state: &mut ResponseCacheState,
    name: &str,
    make: impl Fn(&Arc<ServerState>) -> Result<Bytes, Problem> + Send + Sync + 'static,
) -> ((Arc<tokio::sync::Mutex<()>>, ResponseBuilder), bool) {
    let places = &mut state.places;
    if places.len() >= PLACES_MAX && !places.contains_key(name) {
        let oldest = places.iter().min_by_key(|(_, place)| place.asked[0]).map(|(name, _)| name.clone());
        oldest.and_then(|name| places.remove(&name));
    }
    let new = || CacheSlot { make: Arc::new(make), making: Arc::default(), made: None, asked: [None; 2] };
    let place = places.entry(name.to_owned()).or_insert_with(new);
    place.asked = [Some(Instant::now()), place.asked[0]];
    ((Arc::clone(&place.making), Arc::clone(&place.make)), place.is_hot())
}

/// Makes an answer in a thread of its own.
async fn build_response(
    shared: &Arc<ServerState>,
    name: &str,
    make: &ResponseBuilder,
) -> Result<CachedResponse, Problem> {
    let (mut all, _) = build_in_thread(shared, vec![(name.to_owned(), Arc::clone(make))]).await?;
    all.pop().map_or_else(|| Err(not_built_problem()), |(_, made)| made)
}

/// Makes several in one thread, and says how much of a processor's time that took.
async fn build_in_thread(
    shared: &Arc<ServerState>,
    makes: Vec<(String, ResponseBuilder)>,
) -> Result<(Vec<(String, Result<CachedResponse, Problem>)>, Duration), Problem> {
    let room = shared.rooms.read().await?;
    let shared = Arc::clone(shared);
    let made = tokio::task::spawn_blocking(move || {
        let _room = room; // whoever hung up still takes it until it is made
        let began = thread_cpu_time();
        (CachedResponse::build_all(makes, &shared), thread_cpu_time().saturating_sub(began))
    });
    made.await.map_err(|_| not_built_problem())
}

fn not_built_problem() -> Problem {
    Problem::new(ProblemCode::Internal, "the answer could not be made")
}

/// How much of a processor's time this thread has taken. On a busy machine that is far less than what went by.
fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Makes what several ask for again whenever something happened, until the server ends.
pub(crate) async fn run_refresher(shared: Arc<ServerState>, mut stopping: watch::Receiver<bool>) {
    let mut work = Duration::ZERO; // less what was rested since
    loop {
        let Some(mark) = shared.service.state_version().filter(|_| shared.kept.any_hot()) else {
            tokio::select! {
                () = shared.kept.hot.notified() => continue,
                _ = stopping.changed() => return,
            }
        };
        let began = Instant::now();
        work += refresh_due_responses(&shared, mark).await;
        let rest = REST_MIN.max(work.saturating_sub(WORK_MAX) * REST_PER_WORK);
        let resting = Instant::now();
        let waiting = Arc::clone(&shared);
        let wait = async move {
            tokio::time::sleep(rest).await;
            let wait = ROUND_EVERY.saturating_sub(began.elapsed());
            // The thread comes back soon in any case.
            let _ = tokio::task::spawn_blocking(move || waiting.service.wait_for_change(mark, wait)).await; // as above
        };
        tokio::select! {
            () = wait => work = work.saturating_sub(resting.elapsed() / REST_PER_WORK),
            _ = stopping.changed() => return,
        }
    }
}

/// Makes all that is due, of one moment, and shows it when it is whole: one answer must not tell of what another does not know.
/// Says how much of a processor's time that took.
async fn refresh_due_responses(shared: &Arc<ServerState>, mark: StateVersion) -> Duration {
    let due = shared.kept.due_builders(mark);
    if due.is_empty() {
        shared.kept.round.send_replace(mark.seq);
        return Duration::ZERO;
    }
    let Ok((all, work)) = build_in_thread(shared, due).await else {
        return Duration::ZERO; // too many ask already; whoever asks is told
    };
    let mut state = shared.kept.lock_state();
    // Whoever asks for what could not be made is told what is wrong with it.
    let made = all.into_iter().filter_map(|(name, made)| Some((name, made.ok()?)));
    let seen = made.fold(mark.seq, |seen, (name, made)| {
        let seen = seen.max(made.mark.seq);
        state.store_response(&name, made);
        seen
    });
    drop(state);
    shared.kept.round.send_replace(seen);
    work
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use landfall_api::{Nothing, Request as Asked, Response, Service};

    use super::*;

    thread_local! {
        /// The event that reads of this thread see last, while they are of one moment.
        static MOMENT: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
    }

    /// A number that is written, and how often it was read.
    #[derive(Default)]
    struct Toy {
        writes: AtomicU64,
        seq: AtomicU64,
        reads: AtomicUsize,
        at_once: AtomicUsize,
        at_once_most: AtomicUsize,
        slow: Duration,
        marks: bool,
        moments: bool,
    }

    impl Toy {
        fn read(&self) -> Bytes {
            // What is seen is seen before anybody knows that somebody looks.
            let seq = MOMENT.get().unwrap_or_else(|| self.seq.load(Ordering::SeqCst));
            let seen = self.writes.load(Ordering::SeqCst) + seq;
            let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            self.at_once_most.fetch_max(now, Ordering::SeqCst);
            std::thread::sleep(self.slow);
            self.reads.fetch_add(1, Ordering::SeqCst);
            self.at_once.fetch_sub(1, Ordering::SeqCst);
            seen.to_string().into()
        }

        fn reads(&self) -> usize {
            self.reads.load(Ordering::SeqCst)
        }
    }

    impl Service for Toy {
        fn call(&self, _: Asked) -> Result<Response, Problem> {
            Err(Problem::new(ProblemCode::NotFound, "nothing is here"))
        }

        fn state_version(&self) -> Option<StateVersion> {
            let (writes, seq) = (self.writes.load(Ordering::SeqCst), self.seq.load(Ordering::SeqCst));
            self.marks.then_some(StateVersion { writes, seq })
        }

        fn run_in_one_state(&self, work: &mut dyn FnMut()) -> Option<u64> {
            MOMENT.set(self.moments.then(|| self.seq.load(Ordering::SeqCst)));
            work();
            MOMENT.take()
        }
    }

    fn shared(toy: &Arc<Toy>) -> Arc<ServerState> {
        let service: Arc<dyn Service + Send + Sync> = Arc::clone(toy) as _;
        Arc::new(ServerState::new(service, None, &[], Vec::new(), &[], "toy".to_owned()))
    }

    fn marking(slow: Duration) -> Arc<Toy> {
        Arc::new(Toy { marks: true, slow, ..Toy::default() })
    }

    async fn ask(shared: &Arc<ServerState>, toy: &Arc<Toy>) -> String {
        ask_at(shared, toy, "/number").await
    }

    async fn ask_at(shared: &Arc<ServerState>, toy: &Arc<Toy>, name: &str) -> String {
        let read = Arc::clone(toy);
        let bytes = shared.kept.get(shared, name, move |_| Ok(read.read())).await.expect("an answer");
        String::from_utf8(bytes.to_vec()).expect("a text")
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_asks_after_a_write_or_what_they_were_told_of_sees_it_and_others_share() {
        let toy = marking(Duration::ZERO);
        let shared = shared(&toy);
        for round in 0..200 {
            let (number, seq) = ((2 * round).to_string(), toy.seq.load(Ordering::SeqCst));
            assert_eq!(ask(&shared, &toy).await, number);
            assert_eq!(ask(&shared, &toy).await, number);
            toy.writes.fetch_add(1, Ordering::SeqCst); // a request
            assert_eq!(ask(&shared, &toy).await, (2 * round + 1).to_string());
            toy.seq.store(seq + 1, Ordering::SeqCst); // an event
            shared.mark_all_told();
        }
        // Twice a round; on a slow machine one may grow old between two questions.
        assert!(toy.reads() < 500, "{} looks for 600 questions", toy.reads());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_happened_and_nobody_was_told_of_is_shown_to_one_who_asks_once_and_soon_to_the_others() {
        let toy = marking(Duration::ZERO);
        let shared = shared(&toy);
        assert_eq!(ask(&shared, &toy).await, "0");
        toy.seq.store(1, Ordering::SeqCst);
        tokio::time::sleep(HOT).await;
        assert_eq!(ask(&shared, &toy).await, "1", "nobody else asks: made for them");
        let (asked, until) = (Instant::now(), Instant::now() + Duration::from_secs(20));
        toy.seq.store(2, Ordering::SeqCst);
        while ask(&shared, &toy).await != "2" {
            assert!(Instant::now() < until, "never shown");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(asked.elapsed() < AGE_MAX * 20, "shown after {:?}", asked.elapsed());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_too_long_to_be_kept_was_told_all_the_same() {
        let toy = marking(Duration::ZERO);
        let shared = shared(&toy);
        for _ in 0..2 {
            assert_eq!(ask(&shared, &toy).await, "0");
        }
        toy.seq.store(1, Ordering::SeqCst);
        let long = |_: &Arc<ServerState>| Ok(Bytes::from(vec![b'1'; BYTES_MAX + 1]));
        shared.kept.get(&shared, "/long", long).await.expect("an answer");
        assert_eq!(ask(&shared, &toy).await, "1", "somebody was told of it");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn nobody_is_shown_less_than_anybody_was_shown_before() {
        for moments in [false, true] {
            shown_in_order(&Arc::new(Toy {
                marks: true,
                moments,
                slow: Duration::from_millis(1),
                ..Toy::default()
            }))
            .await;
        }
    }

    async fn shown_in_order(toy: &Arc<Toy>) {
        let shared = shared(toy);
        let (stop, stopping) = watch::channel(false);
        let ahead = tokio::spawn(run_refresher(Arc::clone(&shared), stopping));
        let until = Instant::now() + Duration::from_secs(3);
        let (most, late) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(0)));
        let readers: Vec<_> = (0..4)
            .map(|number| {
                let (shared, toy, most, late) =
                    (Arc::clone(&shared), Arc::clone(toy), Arc::clone(&most), Arc::clone(&late));
                tokio::spawn(async move {
                    while Instant::now() < until {
                        for name in ["/a", "/b", "/c"] {
                            let least = most.load(Ordering::SeqCst);
                            let seen: u64 = ask_at(&shared, &toy, name).await.parse().expect("a number");
                            assert!(seen >= least, "{name} tells reader {number} of {seen}, after {least}");
                            most.fetch_max(seen, Ordering::SeqCst);
                            late.fetch_add(
                                usize::from(seen < toy.seq.load(Ordering::SeqCst)),
                                Ordering::SeqCst,
                            );
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        }
                    }
                })
            })
            .collect();
        while Instant::now() < until {
            toy.seq.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(17)).await;
        }
        for reader in readers {
            reader.await.expect("nobody is shown less");
        }
        assert!(late.load(Ordering::SeqCst) > 0, "everything was made for who asked");
        drop(stop);
        ahead.await.expect("it ends");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn many_who_ask_at_once_are_answered_by_one_look() {
        let toy = marking(Duration::from_millis(50));
        let shared = shared(&toy);
        let all: Vec<_> = (0..40)
            .map(|_| {
                let (shared, toy) = (Arc::clone(&shared), Arc::clone(&toy));
                tokio::spawn(async move { ask(&shared, &toy).await })
            })
            .collect();
        for one in all {
            assert_eq!(one.await.expect("it asks"), "0");
        }
        assert_eq!(toy.at_once_most.load(Ordering::SeqCst), 1, "one at a time");
        // On a slow machine one may grow old before everybody has asked.
        assert!(toy.reads() < 10, "{} looks for one question", toy.reads());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_was_begun_before_a_write_is_not_shown_after_it() {
        let toy = marking(Duration::from_millis(100));
        let shared = shared(&toy);
        let (early, earlier) = (Arc::clone(&shared), Arc::clone(&toy));
        let early = tokio::spawn(async move { ask(&early, &earlier).await });
        while toy.at_once.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        toy.writes.fetch_add(1, Ordering::SeqCst);
        assert_eq!(ask(&shared, &toy).await, "1");
        assert_eq!(early.await.expect("it asks"), "0", "it asked before");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_answer_grows_old_and_one_without_a_mark_is_never_kept() {
        let toy = marking(Duration::ZERO);
        let shared_toy = shared(&toy);
        ask(&shared_toy, &toy).await;
        tokio::time::sleep(AGE_MAX + Duration::from_millis(20)).await;
        ask(&shared_toy, &toy).await;
        assert_eq!(toy.reads(), 2);

        let unmarked = Arc::new(Toy::default());
        let shared_unmarked = shared(&unmarked);
        for _ in 0..3 {
            ask(&shared_unmarked, &unmarked).await;
        }
        assert_eq!(unmarked.reads(), 3);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_several_ask_for_is_made_again_before_they_ask_and_not_for_ever() {
        let toy = marking(Duration::ZERO);
        let shared = shared(&toy);
        let (stop, stopping) = watch::channel(false);
        let ahead = tokio::spawn(run_refresher(Arc::clone(&shared), stopping));
        ask(&shared, &toy).await;
        ask(&shared, &toy).await;
        let until = Instant::now() + Duration::from_secs(20);
        while toy.reads() < 3 {
            assert!(Instant::now() < until, "nothing is made ahead");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Nobody asks any more: soon nothing is made any more.
        loop {
            let before = toy.reads();
            tokio::time::sleep(HOT + AGE_MAX).await;
            if toy.reads() == before {
                break;
            }
            assert!(Instant::now() < until, "it is made for nobody");
        }
        drop(stop);
        ahead.await.expect("it ends");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_problem_is_told_and_not_kept_and_few_questions_are_remembered() {
        let toy = marking(Duration::ZERO);
        let shared = shared(&toy);
        let make =
            |shared: &Arc<ServerState>| shared.service.call(Asked::Status(Nothing {})).map(|_| Bytes::new());
        assert_eq!(
            shared.kept.get(&shared, "/wrong", make).await.expect_err("a problem").code,
            ProblemCode::NotFound
        );
        for number in 0..PLACES_MAX * 3 {
            let name = format!("/{number}");
            shared.kept.get(&shared, &name, |_| Ok(Bytes::new())).await.expect("an answer");
        }
        assert_eq!(shared.kept.lock_state().places.len(), PLACES_MAX);
    }
}
