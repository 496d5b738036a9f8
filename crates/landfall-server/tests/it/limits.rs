//! How much is taken: bytes, levels, headers, time.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use landfall_api::http::BODY_BYTES_MAX;

use crate::support::{Answer, Place, connect, raw};

#[test]
fn a_body_that_is_too_long_is_refused_however_it_comes() {
    let place = Place::new();
    let head = format!(
        "POST /api/v1/stop HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nConnection: close\r\n",
        place.at, place.token
    );
    // By its length: nothing of it need come.
    let mut stream = connect(place.at);
    stream
        .write_all(format!("{head}Content-Length: {}\r\n\r\n", BODY_BYTES_MAX + 1).as_bytes())
        .expect("sent");
    let chunk = vec![b' '; 64 * 1024];
    for _ in 0..=BODY_BYTES_MAX / chunk.len() {
        if stream.write_all(&chunk).is_err() {
            break; // it hung up on us
        }
    }
    let mut said = Vec::new();
    drop(stream.read_to_end(&mut said)); // a reset ends it too
    if let Some(answer) = Answer::read(&said) {
        assert_eq!((answer.status, answer.code().as_str()), (413, "too-large"));
    }
    // Bit by bit, without a length.
    let mut stream = connect(place.at);
    stream.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).expect("sent");
    for _ in 0..BODY_BYTES_MAX / chunk.len() + 2 {
        let sent = stream
            .write_all(b"10000\r\n")
            .and_then(|()| stream.write_all(&chunk))
            .and_then(|()| stream.write_all(b"\r\n"));
        if sent.is_err() {
            break; // it hung up on us
        }
    }
    let mut said = Vec::new();
    drop(stream.read_to_end(&mut said)); // a reset ends it too
    if let Some(answer) = Answer::read(&said) {
        assert_eq!((answer.status, answer.code().as_str()), (413, "too-large"));
    }
    assert_eq!(place.toy.asked(), [], "nothing of it was carried out");
    let fits = format!("{{{}}}", " ".repeat(BODY_BYTES_MAX - 2));
    assert_eq!(place.owner("POST", "/api/v1/stop").json(&fits).send().status, 200);
}

#[test]
fn a_body_that_is_nested_too_deeply_or_is_no_object_is_refused() {
    let place = Place::new();
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let objects = format!("{}1{}", "{\"x\":".repeat(40), "}".repeat(40));
    for body in [
        deep.as_str(),
        objects.as_str(),
        "[]",
        "null",
        "1",
        "\"x\"",
        "{",
        "{}{}",
        "{\"now\":\"yes\"}",
        "\u{0}",
    ] {
        let answer = place.owner("POST", "/api/v1/stop").json(body).send();
        assert_eq!((answer.status, answer.code().as_str()), (422, "bad-input"), "{body:.40}");
    }
    // Brackets in a text are no levels.
    let text = format!(r#"{{"now":true,"x":"{}\"["}}"#, "[".repeat(1000));
    assert_eq!(place.owner("POST", "/api/v1/stop").json(&text).send().status, 200);
}

#[test]
fn a_head_that_is_too_long_or_has_too_much_in_it_is_refused() {
    let place = Place::new();
    let many = (0..200).fold(place.owner("GET", "/api/v1/status"), |it, at| it.with(&format!("X-{at}"), "x"));
    assert_eq!(many.send().status, 431);
    let long = place.owner("GET", "/api/v1/status").with("X-Long", &"x".repeat(200_000)).text();
    let answer = Answer::read(&raw(place.at, long.as_bytes()));
    assert!(answer.is_none_or(|it| it.status == 431));
    let target = format!("/api/v1/tasks?{}", "status=ready&".repeat(20_000));
    let answer = Answer::read(&raw(place.at, place.owner("GET", &target).text().as_bytes()));
    assert!(answer.is_none_or(|it| [414, 431].contains(&it.status)));
    for nonsense in ["GET / HTTP/9.9\r\n\r\n", "\r\n\r\n\0\0", "GET /\r\n", "HELO there\r\n\r\n"] {
        let answer = Answer::read(&raw(place.at, nonsense.as_bytes()));
        assert!(
            answer.is_none_or(|it| it.status == 400 || it.status == 505 || it.status == 421),
            "{nonsense:?}"
        );
    }
    assert_eq!(place.toy.asked(), []);
}

#[test]
fn who_never_finishes_asking_is_hung_up_on() {
    let place = Place::new();
    let began = Instant::now();
    let mut stream = connect(place.at);
    stream.write_all(b"GET /api/v1/status HTTP/1.1\r\nHost: ").expect("sent");
    let mut said = Vec::new();
    drop(stream.read_to_end(&mut said)); // a reset ends it too
    let took = began.elapsed();
    assert!(took > Duration::from_secs(5) && took < Duration::from_secs(25), "{took:?}");
    assert_eq!(place.owner("GET", "/api/v1/hello").send().status, 200, "others are served");
}

#[test]
fn idempotency_keys_are_short_and_plain() {
    let place = Place::new();
    for key in ["", "with blank", "é", &"k".repeat(201)] {
        let answer = place.owner("POST", "/api/v1/stop").with("Idempotency-Key", key).json("{}").send();
        assert_eq!((answer.status, answer.code().as_str()), (422, "bad-input"), "{key:.20}");
    }
    assert_eq!(place.toy.asked(), []);
}
