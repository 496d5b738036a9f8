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
    let _ = stream.read_to_end(&mut said); // a reset ends it too
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
    let _ = stream.read_to_end(&mut said); // a reset ends it too
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
    let _ = stream.read_to_end(&mut said); // a reset ends it too
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

#[test]
fn a_thousand_slow_bodies_of_strangers_keep_nobody_out() {
    let place = Place::new();
    let viewer = place.sign_in();
    let mut slow = Vec::new();
    for at in 0..1_040 {
        let (target, kind) = match at % 3 {
            0 => ("/login", "application/x-www-form-urlencoded"),
            1 => ("/hooks/github", "application/json"),
            _ => ("/api/v1/stop", "application/json"),
        };
        let asking = place
            .ask("POST", target)
            .with("Origin", &format!("http://{}", place.host()))
            .with("Content-Type", kind)
            .with("Content-Length", "1000");
        slow.push(asking.open());
    }
    let began = Instant::now();
    for _ in 0..10 {
        assert_eq!(place.owner("GET", "/api/v1/hello").send().status, 200);
        assert_eq!(place.ask("GET", "/").with("Cookie", &viewer).send().status, 200);
        assert_eq!(place.ask("GET", "/login").send().status, 200, "a stranger too");
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    drop(slow);
}

#[test]
fn ten_wrong_tokens_a_minute_are_looked_at() {
    let place = Place::new();
    let guess = |token: &str| {
        let asking = place.ask("POST", "/login").with("Origin", &format!("http://{}", place.host()));
        asking.form(&format!("token={token}")).send()
    };
    let statuses: Vec<u16> = (0..20).map(|at| guess(&format!("{at:064x}")).status).collect();
    assert_eq!(statuses[..10], [403; 10]);
    assert_eq!(statuses[10..], [429; 10]);
    let refused = guess(&place.token);
    assert_eq!(refused.status, 429, "nor is the right one looked at now");
    assert!(
        refused.header("retry-after").is_some() && refused.body.contains("landfall project pair"),
        "{refused:?}"
    );
    // Whoever has a link, a token or a session is not held up by others at the same address.
    let link = place.owner("POST", "/api/v1/pairings").json("{}").send();
    let link = link.value()["links"][0].as_str().expect("a link").to_owned();
    let path = link.split_once(&place.host()).expect("at our name").1.to_owned();
    let paired = place.ask("POST", &path).with("Origin", &format!("http://{}", place.host())).form("").send();
    assert_eq!(paired.status, 303, "{paired:?}");
    assert_eq!(place.owner("GET", "/api/v1/status").send().status, 200);
    // Links are not guessed either.
    let wrong = |at: u32| {
        let asking = place.ask("POST", &format!("/pair/{at:032x}"));
        asking.with("Origin", &format!("http://{}", place.host())).form("").send().status
    };
    let statuses: Vec<u16> = (0..12).map(wrong).collect();
    assert_eq!((&statuses[..10], &statuses[10..]), (&[403; 10][..], &[429; 2][..]));
    // Nor are tokens in a header. The right one is taken all the same: programs of the user are at this address, too.
    for target in ["/api/v1/status", "/", "/mcp", "/metrics"] {
        let wrong =
            |at: u32| place.ask("GET", target).with("Authorization", &format!("Bearer {at:064x}")).send();
        let statuses: Vec<u16> = (0..12).map(|at| wrong(at).status).collect();
        assert_eq!(statuses[10..], [429; 2], "{target}");
        assert_eq!(place.owner("GET", "/api/v1/status").send().status, 200);
    }
}
