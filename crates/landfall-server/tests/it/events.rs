//! The stream: nothing missing, nothing twice, whoever comes and goes, and nobody waits for somebody else.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use landfall_api::WireTaskId;

use crate::support::{Asking, Place, TIME_MAX, until};

/// A viewer: the places of the facts it hears.
struct Viewer {
    lines: BufReader<TcpStream>,
}

impl Viewer {
    fn new(asking: Asking) -> Self {
        let mut it = Self { lines: BufReader::new(asking.open()) };
        let status = it.line().expect("an answer");
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        let mut kind = String::new();
        while let Some(line) = it.line().filter(|it| !it.is_empty()) {
            if line.to_ascii_lowercase().starts_with("content-type:") {
                kind = line;
            }
        }
        assert!(kind.contains("text/event-stream"), "{kind}");
        it
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
        }
    }

    /// The next fact; none when the stream has ended.
    fn next(&mut self) -> Option<u64> {
        let mut id = None;
        loop {
            let line = self.line()?;
            if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.parse().expect("a number"));
            }
            if let (Some(data), Some(seq)) = (line.strip_prefix("data: "), id) {
                let entry: landfall_api::LogEntry = serde_json::from_str(data).expect("a fact");
                assert_eq!(entry.seq, seq, "the id is its place");
                return Some(seq);
            }
        }
    }

    fn hear(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.next().expect("the stream goes on")).collect()
    }
}

fn watch(place: &Place, query: &str) -> Viewer {
    Viewer::new(place.owner("GET", &format!("/api/v1/events{query}")))
}

#[test]
fn nothing_is_missing_and_nothing_comes_twice_across_many_reconnects() {
    let place = Place::new();
    let done = AtomicBool::new(false);
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut written = 0;
            while !done.load(Ordering::Relaxed) && written < 200_000 {
                place.toy.write(7, None);
                written += 7;
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let mut last = 0;
        for round in 0..25 {
            let mut viewer = if round % 2 == 0 {
                watch(&place, &format!("?after={last}"))
            } else {
                // What was seen last beats the address, as in a browser that comes back.
                Viewer::new(
                    place.owner("GET", "/api/v1/events?after=3").with("Last-Event-ID", &last.to_string()),
                )
            };
            for _ in 0..random(400) + 1 {
                let seq = viewer.next().expect("the stream goes on");
                assert_eq!(seq, last + 1, "in round {round}");
                last = seq;
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(last > 1000, "{last}");
    });
}

#[test]
fn the_last_fact_is_told_without_waiting_for_another() {
    // The only viewer has caught up, and a fact is written before the pump looks for the first time: no later fact tells of it.
    const ROUNDS_MAX: u32 = 200; // mostly the viewer is first, unless the machine is busy
    let mut hits = 0;
    for _ in 0..ROUNDS_MAX {
        let place = Place::new();
        let mut viewer = watch(&place, "?after=0");
        until("the viewer has caught up", || place.toy.looks().contains(&(false, 0)));
        place.toy.write(1, None);
        assert_eq!(viewer.next(), Some(1));
        hits += u32::from(place.toy.looks().contains(&(true, 1)));
        if hits == 5 {
            return;
        }
    }
    panic!("the pump was first in all rounds but {hits}");
}

#[test]
fn a_viewer_without_a_place_hears_what_comes_from_now_on() {
    let place = Place::new();
    place.toy.write(5, None);
    let mut viewer = watch(&place, "");
    place.toy.write(2, None);
    assert_eq!(viewer.hear(2), [6, 7]);
}

#[test]
fn ten_thousand_facts_are_caught_up_with() {
    let place = Place::new();
    place.toy.write(10_000, None);
    let mut viewer = watch(&place, "?after=0");
    let began = Instant::now();
    assert_eq!(viewer.hear(10_000), (1..=10_000).collect::<Vec<u64>>());
    assert!(began.elapsed() < TIME_MAX, "{:?}", began.elapsed());
}

#[test]
fn the_stream_of_a_task_is_of_that_task() {
    let place = Place::new();
    let mut viewer = watch(&place, "?after=0&task=T7");
    for at in 0..20 {
        place.toy.write(1, [None, Some(WireTaskId(7)), Some(WireTaskId(8))][at % 3]);
    }
    assert_eq!(viewer.hear(7), [2, 5, 8, 11, 14, 17, 20]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    for (target, id) in [
        ("/api/v1/events?after=x", None),
        ("/api/v1/events?after=-1", None),
        ("/api/v1/events?task=x", None),
        ("/api/v1/events", Some("x")),
        ("/api/v1/events?after=1", Some("")),
    ] {
        let asking = place.owner("GET", target);
        let answer = id.into_iter().fold(asking, |it, id| it.with("Last-Event-ID", id)).send();
        assert_eq!((answer.status, answer.code().as_str()), (422, "bad-input"), "{target} {id:?}");
    }
    // A place that is not there yet is waited for: the journal of before may be gone, and the viewer has to hear of what comes.
    place.toy.write(3, None);
    let mut viewer = watch(&place, "?after=3");
    place.toy.write(1, None);
    assert_eq!(viewer.next(), Some(4));
}

#[test]
fn a_viewer_that_does_not_read_is_dropped_alone_and_misses_nothing_when_it_comes_back() {
    let place = Place::new();
    let mut sleeper = watch(&place, "?after=0");
    let mut reader = watch(&place, "?after=0");
    let viewers = || {
        let text = place.owner("GET", "/metrics").send().body;
        text.lines().find_map(|line| line.strip_prefix("landfall_viewers ")).expect("there").to_owned()
    };
    until("both watch", || viewers() == "2");
    // Long facts: the kernel keeps some megabytes for the sleeper first, then it falls behind.
    let mut last = 0;
    for _ in 0..90 {
        place.toy.write_long(25, 8000);
        for _ in 0..25 {
            let seq = reader.next().expect("the reader is not held up");
            assert_eq!(seq, last + 1);
            last = seq;
        }
    }
    let mut seen = 0;
    while let Some(seq) = sleeper.next() {
        assert_eq!(seq, seen + 1);
        seen = seq;
    }
    assert!(seen < last, "it was hung up on: {seen} of {last}");
    let mut back = Viewer::new(place.owner("GET", "/api/v1/events").with("Last-Event-ID", &seen.to_string()));
    assert_eq!(back.hear((last - seen) as usize), (seen + 1..=last).collect::<Vec<u64>>());
    place.toy.write(1, None);
    assert_eq!((reader.next(), back.next()), (Some(last + 1), Some(last + 1)));
}

#[test]
fn the_end_of_the_server_ends_the_streams() {
    let mut place = Place::new();
    place.toy.write(1, None);
    let mut viewers: Vec<Viewer> = (0..10).map(|_| watch(&place, "?after=0")).collect();
    for viewer in &mut viewers {
        assert_eq!(viewer.next(), Some(1));
    }
    let began = Instant::now();
    place.stop();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    for viewer in &mut viewers {
        let mut rest = Vec::new();
        viewer.lines.read_to_end(&mut rest).expect("ended, not torn");
    }
    place.start();
    let mut viewer = watch(&place, "?after=0");
    assert_eq!(viewer.next(), Some(1));
}
