//! Answers that are the same for everybody: made once, and handed to all who ask while they hold.
//!
//! An answer holds until something is written, as the service's mark says, and never longer than [`AGE_MAX`]: what agents at
//! work say is no older than that. So nobody is shown less than what they wrote themselves, or were told of. One is made at
//! a time; who asks for the same meanwhile waits for it. What several ask for is made again as soon as something was written,
//! before they ask.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use landfall_api::{Mark, Problem, ProblemCode};
use tokio::sync::{Notify, watch};

use crate::door::Shared;

const AGE_MAX: Duration = Duration::from_millis(250); // as long as a person takes to notice
const AGE_SOON: Duration = Duration::from_millis(150); // then it is made again, if several ask
const HOT: Duration = Duration::from_secs(1); // asked for twice within it: there will be a third
const PLACES_MAX: usize = 32; // questions that are remembered; people look at a few pages
const BYTES_MAX: usize = 1 << 20; // longer answers are made for who asks, and forgotten
const REST_MIN: Duration = Duration::from_millis(2); // events come in groups
const REST_PER_WORK: u32 = 4; // making ahead takes at most a fifth of a processor …
const WORK_MAX: Duration = Duration::from_millis(50); // … but for that long, after a quiet time

/// Makes an answer.
type Make = Arc<dyn Fn(&Arc<Shared>) -> Result<Bytes, Problem> + Send + Sync>;

/// The answers that are kept.
#[derive(Default)]
pub(crate) struct Kept {
    places: Mutex<BTreeMap<String, Arc<Place>>>,
    /// Somebody asks for the same again.
    hot: Notify,
}

/// One question.
struct Place {
    make: Make,
    /// Held while an answer is made.
    making: tokio::sync::Mutex<()>,
    made: Mutex<Option<Made>>,
    /// When it was asked last, and the time before.
    asked: Mutex<[Option<Instant>; 2]>,
}

/// An answer.
struct Made {
    /// How far things had come before it was begun.
    mark: Mark,
    begun: Instant,
    bytes: Bytes,
}

impl Place {
    /// The answer, if it holds for somebody who asks at `mark`, and is not older than that.
    fn holds(&self, mark: Mark, age_max: Duration) -> Option<Bytes> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let good = |made: &&Made| made.mark.covers(mark) && made.begun.elapsed() <= age_max;
        made.as_ref().filter(good).map(|made| made.bytes.clone())
    }

    fn ask(&self) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        *asked = [Some(Instant::now()), asked[0]];
        is_hot(*asked)
    }

    fn is_hot(&self) -> bool {
        is_hot(*self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes it, unless somebody just did.
    async fn made(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        mark: Mark,
        age_max: Duration,
    ) -> Result<Bytes, Problem> {
        let _one = self.making.lock().await;
        if let Some(bytes) = self.holds(mark, age_max) {
            return Ok(bytes);
        }
        let room = shared.rooms.read().await?;
        let (place, shared) = (Arc::clone(self), Arc::clone(shared));
        let made = tokio::task::spawn_blocking(move || {
            let _room = room; // whoever hung up still takes it until it is made
            let (begun, mark) = (Instant::now(), shared.service.mark());
            let bytes = (place.make)(&shared)?;
            let mut made = place.made.lock().unwrap_or_else(PoisonError::into_inner);
            *made = mark.filter(|_| bytes.len() <= BYTES_MAX).map(|mark| Made {
                mark,
                begun,
                bytes: bytes.clone(),
            });
            Ok(bytes)
        });
        made.await
            .unwrap_or_else(|_| Err(Problem::new(ProblemCode::Internal, "the answer could not be made")))
    }
}

fn is_hot(asked: [Option<Instant>; 2]) -> bool {
    let [Some(last), Some(before)] = asked else { return false };
    last.elapsed() < HOT && last.duration_since(before) < HOT
}

impl Kept {
    /// The answer to a question, by its name: one that holds, or one that is made now. It must depend on nothing but the name.
    pub(crate) async fn get(
        &self,
        shared: &Arc<Shared>,
        name: &str,
        make: impl Fn(&Arc<Shared>) -> Result<Bytes, Problem> + Send + Sync + 'static,
    ) -> Result<Bytes, Problem> {
        let Some(mark) = shared.service.mark() else {
            // Nobody says how long it would hold.
            let (room, shared) = (shared.rooms.read().await?, Arc::clone(shared));
            let made = tokio::task::spawn_blocking(move || {
                let _room = room; // whoever hung up still takes it until it is made
                make(&shared)
            });
            return made.await.unwrap_or_else(|_| {
                Err(Problem::new(ProblemCode::Internal, "the answer could not be made"))
            });
        };
        let place = self.place(name, make);
        if place.ask() {
            self.hot.notify_one();
        }
        match place.holds(mark, AGE_MAX) {
            Some(bytes) => Ok(bytes),
            None => place.made(shared, mark, AGE_MAX).await,
        }
    }

    fn place(
        &self,
        name: &str,
        make: impl Fn(&Arc<Shared>) -> Result<Bytes, Problem> + Send + Sync + 'static,
    ) -> Arc<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(name) {
            return Arc::clone(place);
        }
        if places.len() >= PLACES_MAX {
            let last = |place: &Arc<Place>| place.asked.lock().unwrap_or_else(PoisonError::into_inner)[0];
            let oldest = places.iter().min_by_key(|(_, place)| last(place)).map(|(name, _)| name.clone());
            oldest.and_then(|name| places.remove(&name));
        }
        let place = Arc::new(Place {
            make: Arc::new(make),
            making: tokio::sync::Mutex::default(),
            made: Mutex::default(),
            asked: Mutex::default(),
        });
        places.insert(name.to_owned(), Arc::clone(&place));
        place
    }

    fn hot(&self) -> Vec<Arc<Place>> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.values().filter(|place| place.is_hot()).cloned().collect()
    }
}

/// Makes what several ask for again whenever something was written, until the server ends.
pub(crate) async fn make_ahead(shared: Arc<Shared>, mut stopping: watch::Receiver<bool>) {
    let mut work = Duration::ZERO; // less what was rested since
    loop {
        let hot = shared.kept.hot();
        let Some(mark) = shared.service.mark().filter(|_| !hot.is_empty()) else {
            tokio::select! {
                () = shared.kept.hot.notified() => continue,
                _ = stopping.changed() => return,
            }
        };
        let began = Instant::now();
        for place in &hot {
            drop(place.made(&shared, mark, AGE_SOON).await); // whoever asks is told what is wrong
        }
        work += began.elapsed();
        let rest = REST_MIN.max(work.saturating_sub(WORK_MAX) * REST_PER_WORK);
        let resting = Instant::now();
        let waiting = Arc::clone(&shared);
        let wait = async move {
            tokio::time::sleep(rest).await;
            let wait = AGE_SOON.saturating_sub(began.elapsed());
            // The thread comes back soon in any case.
            drop(tokio::task::spawn_blocking(move || waiting.service.wait_past(mark, wait)).await);
        };
        tokio::select! {
            () = wait => work = work.saturating_sub(resting.elapsed() / REST_PER_WORK),
            _ = stopping.changed() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use landfall_api::{Nothing, Request as Asked, Response, Service};

    use super::*;

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
    }

    impl Toy {
        fn read(&self) -> Bytes {
            let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            self.at_once_most.fetch_max(now, Ordering::SeqCst);
            let seen = self.writes.load(Ordering::SeqCst) + self.seq.load(Ordering::SeqCst);
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

        fn mark(&self) -> Option<Mark> {
            let (writes, seq) = (self.writes.load(Ordering::SeqCst), self.seq.load(Ordering::SeqCst));
            self.marks.then_some(Mark { writes, seq })
        }
    }

    fn shared(toy: &Arc<Toy>) -> Arc<Shared> {
        let service: Arc<dyn Service + Send + Sync> = Arc::clone(toy) as _;
        Arc::new(Shared::new(service, None, &[], Vec::new(), &[], "toy".to_owned()))
    }

    fn marking(slow: Duration) -> Arc<Toy> {
        Arc::new(Toy { marks: true, slow, ..Toy::default() })
    }

    async fn ask(shared: &Arc<Shared>, toy: &Arc<Toy>) -> String {
        let read = Arc::clone(toy);
        let bytes = shared.kept.get(shared, "/number", move |_| Ok(read.read())).await.expect("an answer");
        String::from_utf8(bytes.to_vec()).expect("a text")
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_asks_after_a_write_sees_it_and_who_asks_before_the_next_shares() {
        let toy = marking(Duration::ZERO);
        let shared = shared(&toy);
        for round in 0..200 {
            let (number, seq) = ((2 * round).to_string(), toy.seq.load(Ordering::SeqCst));
            assert_eq!(ask(&shared, &toy).await, number);
            assert_eq!(ask(&shared, &toy).await, number);
            toy.writes.fetch_add(1, Ordering::SeqCst); // a request
            assert_eq!(ask(&shared, &toy).await, (2 * round + 1).to_string());
            toy.seq.store(seq + 1, Ordering::SeqCst); // an event
        }
        // Twice a round; on a slow machine one may grow old between two questions.
        assert!(toy.reads() < 500, "{} looks for 600 questions", toy.reads());
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
        let ahead = tokio::spawn(make_ahead(Arc::clone(&shared), stopping));
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
            |shared: &Arc<Shared>| shared.service.call(Asked::Status(Nothing {})).map(|_| Bytes::new());
        assert_eq!(
            shared.kept.get(&shared, "/wrong", make).await.expect_err("a problem").code,
            ProblemCode::NotFound
        );
        for number in 0..PLACES_MAX * 3 {
            let name = format!("/{number}");
            shared.kept.get(&shared, &name, |_| Ok(Bytes::new())).await.expect("an answer");
        }
        assert_eq!(shared.kept.places.lock().expect("no panic").len(), PLACES_MAX);
    }
}
