//! Who is let in: by a link that works once, until they are let in no more.

use std::io::Read;

use crate::support::{Answer, Place, raw};

fn sign_in_by(place: &Place, link: &str) -> Answer {
    let path = link.split_once("/pair/").map(|(_, code)| format!("/pair/{code}")).expect("a link of ours");
    place.ask("POST", &path).with("Origin", &format!("http://{}", place.at)).form("").send()
}

fn link(place: &Place) -> String {
    let answer = place.owner("POST", "/api/v1/pairings").json(r#"{"label":"a phone"}"#).send();
    assert_eq!(answer.status, 200, "{answer:?}");
    let value = answer.value();
    assert!(value["squares"].as_array().is_some_and(|it| it.len() > 20), "{value}");
    value["links"][0].as_str().expect("a link").to_owned()
}

#[test]
fn a_link_lets_one_browser_in_once_and_looking_at_it_does_not_use_it_up() {
    let place = Place::new();
    let link = link(&place);
    let path = link.strip_prefix(&format!("http://{}", place.at)).expect("on our address").to_owned();
    for _ in 0..3 {
        let answer = place.ask("GET", &path).send();
        assert_eq!((answer.status, answer.header("set-cookie")), (200, None), "{answer:?}");
        let mut head = place.ask("GET", &path);
        head.method = "HEAD".to_owned();
        assert_eq!(head.send().status, 200);
    }
    // A page of another site cannot sign anybody in.
    for origin in [None, Some("http://evil.example"), Some("null")] {
        let asking = place.ask("POST", &path).form("");
        let asking = origin.into_iter().fold(asking, |it, origin| it.with("Origin", origin));
        assert_eq!(asking.send().status, 403, "{origin:?}");
    }
    let answer = sign_in_by(&place, &link);
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{answer:?}");
    let cookie = answer.header("set-cookie").expect("a cookie").to_owned();
    let attributes: Vec<&str> = cookie.split("; ").skip(1).collect();
    assert_eq!(attributes, ["Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=2592000"]);
    let cookie = cookie.split(';').next().expect("a name and a value").to_owned();
    assert_eq!(place.ask("GET", "/").with("Cookie", &cookie).send().status, 200);

    let again = sign_in_by(&place, &link);
    assert_eq!(again.header("set-cookie"), None, "it works once: {again:?}");
    let wrong = sign_in_by(&place, "http://x/pair/00000000000000000000000000000000");
    assert_eq!(wrong.header("set-cookie"), None);
}

#[test]
fn sessions_are_listed_and_revoked_at_once_and_their_streams_end() {
    let place = Place::new();
    let (kept, gone) = (place.sign_in(), place.sign_in());
    let sessions = place.ask("GET", "/api/v1/sessions").with("Cookie", &gone).send().value();
    let sessions = sessions["sessions"].as_array().expect("a list");
    assert_eq!(sessions.len(), 2);
    let this = sessions.iter().find(|it| it["this"] == true).expect("the one that asks");
    let name = this["session"].as_str().expect("a name").to_owned();

    let mut streams: Vec<_> = [&kept, &gone]
        .iter()
        .map(|cookie| {
            place.ask("GET", "/api/v1/events").with("Cookie", cookie).with("Connection", "close").open()
        })
        .collect();
    for stream in &mut streams {
        let mut head = [0; 12];
        stream.read_exact(&mut head).expect("the stream begins");
        assert_eq!(&head, b"HTTP/1.1 200");
    }
    let answer = place.owner("POST", &format!("/api/v1/sessions/{name}/revoke")).json("{}").send();
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut rest = Vec::new();
    streams[1].read_to_end(&mut rest).expect("it ends of itself, at once");
    assert_eq!(place.ask("GET", "/api/v1/status").with("Cookie", &gone).send().status, 401);
    assert_eq!(place.ask("GET", "/").with("Cookie", &gone).send().header("location"), Some("/login"));
    // The other goes on.
    place.toy.write(1, None);
    let mut heard = String::new();
    while !heard.contains("fact 1") {
        let mut bytes = [0; 4096];
        let count = streams[0].read(&mut bytes).expect("the other hears on");
        assert_ne!(count, 0, "{heard}");
        heard += &String::from_utf8_lossy(&bytes[..count]);
    }
    let again = place.owner("POST", &format!("/api/v1/sessions/{name}/revoke")).json("{}").send();
    assert_eq!((again.status, again.code().as_str()), (404, "not-found"));
}

#[test]
fn a_token_of_an_agent_is_revoked_like_a_session() {
    let place = Place::new();
    let answer = place.owner("POST", "/api/v1/tokens").json(r#"{"label":"one"}"#).send().value();
    let (token, name) =
        (answer["token"].as_str().expect("a token"), answer["session"].as_str().expect("a name"));
    let status = |token: &str| {
        place.ask("GET", "/api/v1/status").with("Authorization", &format!("Bearer {token}")).send().status
    };
    assert_eq!(status(token), 200);
    assert_eq!(place.owner("POST", &format!("/api/v1/sessions/{name}/revoke")).json("{}").send().status, 200);
    assert_eq!(status(token), 401);
}

#[test]
fn signing_out_ends_the_session_and_takes_the_cookie_away() {
    let place = Place::new();
    let cookie = place.sign_in();
    let answer = place
        .ask("POST", "/logout")
        .with("Cookie", &cookie)
        .with("Origin", &format!("http://{}", place.at))
        .form("")
        .send();
    assert_eq!((answer.status, answer.header("location")), (303, Some("/login")), "{answer:?}");
    assert!(answer.header("set-cookie").is_some_and(|it| it.contains("Max-Age=0")), "{answer:?}");
    assert_eq!(place.ask("GET", "/api/v1/status").with("Cookie", &cookie).send().status, 401);
}

#[test]
fn sessions_outlive_the_server_and_links_do_not() {
    let mut place = Place::new();
    let cookie = place.sign_in();
    let link = link(&place);
    place.start();
    assert_eq!(place.ask("GET", "/api/v1/status").with("Cookie", &cookie).send().status, 200);
    assert_eq!(sign_in_by(&place, &link).header("set-cookie"), None);
}

#[test]
fn an_engine_without_an_address_lets_nobody_in_by_the_web() {
    let place = Place::new();
    place.agent();
    // What only the socket serves is asked for there: the same door, and another way to know who it is.
    let unknown =
        raw(place.at, b"GET /api/v1/status HTTP/1.1\r\nHost: landfall\r\nConnection: close\r\n\r\n");
    assert!(unknown.starts_with(b"HTTP/1.1 421"), "the socket's host is no name of ours");
}
