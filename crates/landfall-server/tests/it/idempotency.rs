//! Idempotency keys: asking twice is asking once.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use crate::support::{Asking, Place, until};

fn stop(place: &Place, key: &str, body: &str) -> Asking {
    place.owner("POST", "/api/v1/stop").with("Idempotency-Key", key).json(body)
}

#[test]
fn the_same_key_gives_the_same_answer_and_one_effect() {
    let place = Place::new();
    let first = stop(&place, "k1", r#"{"now":true}"#).send();
    let again = stop(&place, "k1", r#"{"now":true}"#).send();
    assert_eq!((first.status, again.status), (200, 200));
    assert_eq!(first.body, again.body);
    assert_eq!(place.toy.asked().len(), 1);
    assert_eq!(stop(&place, "k2", r#"{"now":true}"#).send().status, 200);
    assert_eq!(place.toy.asked().len(), 1, "another key is another request");
}

#[test]
fn the_same_key_with_other_words_is_refused() {
    let place = Place::new();
    assert_eq!(stop(&place, "k1", r#"{"now":true}"#).send().status, 200);
    for asking in [
        stop(&place, "k1", r#"{"now":false}"#),
        place.owner("POST", "/api/v1/pause").with("Idempotency-Key", "k1").json(r#"{"now":true}"#),
    ] {
        let answer = asking.send();
        assert_eq!((answer.status, answer.code().as_str()), (409, "key-reused"), "{answer:?}");
    }
    assert_eq!(place.toy.asked().len(), 1);
}

#[test]
fn everybody_has_keys_of_their_own() {
    let place = Place::new();
    let cookie = place.sign_in();
    let agents = [place.agent(), place.agent()];
    place.toy.asked();
    let add =
        |asking: Asking| asking.with("Idempotency-Key", "k1").json(r#"{"tasks":[{"title":"x"}]}"#).send();
    assert_eq!(add(place.owner("POST", "/api/v1/tasks")).status, 200);
    let browser = place
        .ask("POST", "/api/v1/tasks")
        .with("Cookie", &cookie)
        .with("Origin", &format!("http://{}", place.host()));
    assert_eq!(add(browser).status, 200);
    for agent in agents {
        let asking = place.ask("POST", "/api/v1/tasks").with("Authorization", &format!("Bearer {agent}"));
        assert_eq!(add(asking).status, 200);
    }
    assert_eq!(place.toy.asked().len(), 4);
}

#[test]
fn many_with_one_key_at_once_have_one_effect() {
    let place = Place::new();
    *place.toy.takes.lock().expect("no panic while it is held") = Duration::from_millis(200);
    let bodies: Vec<String> = thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| stop(&place, "k1", "{}").send())).collect();
        all.into_iter()
            .map(|it| {
                let answer = it.join().expect("no panic");
                assert_eq!(answer.status, 200, "{answer:?}");
                answer.body
            })
            .collect()
    });
    assert!(bodies.iter().all(|it| *it == bodies[0]));
    assert_eq!(place.toy.asked().len(), 1);
}

#[test]
fn a_problem_is_not_kept_for_its_key() {
    let place = Place::new();
    let bad = place.owner("POST", "/api/v1/sessions/x/revoke").with("Idempotency-Key", "k1").json("{}");
    assert_eq!(bad.clone().send().status, 404);
    assert_eq!(bad.send().status, 404);
    // Nothing was done with it, so it is still free.
    assert_eq!(stop(&place, "k1", "{}").send().status, 200);
}

/// Whether this process still has the server's end of a connection.
fn has_connection(server: SocketAddr, client: SocketAddr) -> bool {
    const ESTABLISHED: &str = "01";
    const CLOSE_WAIT: &str = "08";
    let table = std::fs::read_to_string("/proc/self/net/tcp").expect("the kernel's table of connections");
    let port = |text: &str| u16::from_str_radix(text.rsplit(':').next()?, 16).ok();
    table.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, state, ..] = fields[..] else { return false };
        (port(local), port(remote)) == (Some(server.port()), Some(client.port()))
            && [ESTABLISHED, CLOSE_WAIT].contains(&state)
    })
}

#[test]
fn who_hangs_up_and_asks_again_has_one_effect() {
    let place = Place::new();
    *place.toy.takes.lock().expect("no panic while it is held") = Duration::from_millis(700);
    let first = stop(&place, "k1", r#"{"now":true}"#).open();
    until("it is under way", || place.toy.has_asked("stop"));
    let client = first.local_addr().expect("connected");
    drop(first); // the connection is lost before the answer
    until("the server has closed its end", || !has_connection(place.at, client));
    let again = stop(&place, "k1", r#"{"now":true}"#).send();
    assert_eq!(again.status, 200, "{again:?}");
    assert_eq!(place.toy.asked().len(), 1, "it was done once, and the second one is told what came of it");
}
