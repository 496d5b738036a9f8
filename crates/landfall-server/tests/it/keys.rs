//! Who is let in: by a link that works once, until they are let in no more.

use std::io::Read;

use crate::support::{Answer, Place, raw};

fn sign_in_by(place: &Place, link: &str) -> Answer {
    let path = link.split_once("/pair/").map(|(_, code)| format!("/pair/{code}")).expect("a link of ours");
    place.ask("POST", &path).with("Origin", &format!("http://{}", place.host())).form("").send()
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
    let path = link.strip_prefix(&format!("http://{}", place.host())).expect("on our own name").to_owned();
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
        .with("Origin", &format!("http://{}", place.host()))
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

#[test]
fn a_renewed_token_counts_at_once_and_whoever_came_by_the_old_one_is_out() {
    let mut place = Place::new();
    let (old, cookie, agent) = (place.token.clone(), place.sign_in(), place.agent());
    let link = link(&place);
    let by = |token: &str| format!("Bearer {token}");
    let mut streams = [
        place.owner("GET", "/api/v1/events").with("Connection", "close").open(),
        place.ask("GET", "/api/v1/events").with("Cookie", &cookie).with("Connection", "close").open(),
    ];
    for stream in &mut streams {
        let mut head = [0; 12];
        stream.read_exact(&mut head).expect("the stream begins");
        assert_eq!(&head, b"HTTP/1.1 200");
    }
    let new = landfall_server::AccessKeys::renew_token(place.folder.path()).expect("a new token");
    // Streams end of themselves: nobody asks anything.
    for mut stream in streams {
        stream.read_to_end(&mut Vec::new()).expect("it ends");
    }
    let status =
        |header: &str, value: &str| place.ask("GET", "/api/v1/status").with(header, value).send().status;
    assert_eq!(status("Authorization", &by(&new)), 200);
    for (header, value) in
        [("Authorization", by(&old)), ("Authorization", by(&agent)), ("Cookie", cookie.clone())]
    {
        assert_eq!(status(header, &value), 401, "{header}");
    }
    assert_eq!(sign_in_by(&place, &link).header("set-cookie"), None, "links of before lead nowhere");
    // Nor are they let in by a server that starts later, with the token renewed while nothing ran.
    place.token = new;
    let (cookie, agent) = (place.sign_in(), place.agent());
    place.stop();
    landfall_server::AccessKeys::renew_token(place.folder.path()).expect("a new token");
    place.start();
    for (header, value) in [("Authorization", by(&agent)), ("Cookie", cookie)] {
        assert_eq!(place.ask("GET", "/api/v1/status").with(header, &value).send().status, 401, "{header}");
    }
    assert_eq!(place.owner("GET", "/api/v1/status").send().status, 200);
}

#[test]
fn no_other_server_of_this_machine_is_shown_the_cookie() {
    let place = Place::new();
    let own = place.host();
    let (name, port) = own.split_once(':').expect("a name and a port");
    assert!(name.starts_with("landfall-") && name.ends_with(".localhost"), "{own}");
    assert_eq!(port, place.at.port().to_string());
    for bare in [place.at.to_string(), format!("localhost:{port}")] {
        let at = |asking: crate::support::Asking| asking.without("Host").with("Host", &bare);
        // Pages are at the name that only this server has.
        for target in ["/", "/login", "/pair/x", "/tasks/T7/log?search=a%20b", "/nothing"] {
            let answer = at(place.ask("GET", target)).send();
            assert_eq!(answer.status, 303, "{bare}{target}: {answer:?}");
            assert_eq!(answer.header("location"), Some(format!("http://{own}{target}").as_str()));
        }
        // And nobody is signed in by a bare one.
        let path =
            link(&place).split_once("/pair/").map(|(_, code)| format!("/pair/{code}")).expect("a link");
        for (target, form) in [("/login", format!("token={}", place.token)), (path.as_str(), String::new())] {
            let answer =
                at(place.ask("POST", target).with("Origin", &format!("http://{bare}")).form(&form)).send();
            assert_eq!(
                (answer.status, answer.header("set-cookie")),
                (403, None),
                "{bare}{target}: {answer:?}"
            );
            assert!(answer.body.contains(&own), "it says where: {}", answer.body);
        }
        // Programs with a token come by any of them.
        assert_eq!(at(place.owner("GET", "/api/v1/status")).send().status, 200);
        assert_eq!(at(place.owner("GET", "/")).send().status, 200);
        let stranger = at(place.ask("GET", "/api/v1/status")).send();
        assert_eq!((stranger.status, stranger.header("location")), (401, None));
    }
}

#[test]
fn behind_a_proxy_that_encrypts_forms_work_and_the_cookie_stays_there() {
    let place = Place::new();
    let proxied =
        |method: &str, target: &str| place.ask(method, target).without("Host").with("Host", "build.example");
    assert_eq!(proxied("GET", "/login").send().status, 200);
    let answer = proxied("POST", "/login")
        .with("Origin", "https://build.example")
        .form(&format!("token={}", place.token))
        .send();
    assert_eq!(answer.status, 303, "{answer:?}");
    let cookie = answer.header("set-cookie").expect("a cookie").to_owned();
    assert!(cookie.contains("; Secure") && cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().expect("a name and a value").to_owned();
    let form = |origin: &str| {
        let asking = proxied("POST", "/do/reclaim").with("Cookie", &cookie).with("Origin", origin);
        asking.form("").send().status
    };
    assert_eq!(form("https://build.example"), 303);
    for origin in [
        "http://build.example",
        "https://build.example:443",
        "https://build.example.evil.example",
        "https://evil.example",
        "https://BUILD.example",
        "https://build.example/",
        "null",
    ] {
        assert_eq!(form(origin), 403, "{origin}");
    }
    for host in ["build.example:443", "build.example:80", "build.example."] {
        assert_eq!(proxied("GET", "/").without("Host").with("Host", host).send().status, 421, "{host}");
    }
    let out =
        proxied("POST", "/logout").with("Cookie", &cookie).with("Origin", "https://build.example").form("");
    let out = out.send();
    assert!(out.header("set-cookie").is_some_and(|it| it.contains("Secure") && it.contains("Max-Age=0")));
    for (text, is) in [
        ("https://build.example", true),
        ("https://build.example:8443", true),
        ("http://[::1]:80", true),
        ("https://build.example/", false),
        ("https://user@build.example", false),
        ("https://", false),
        ("ftp://build.example", false),
        ("build.example", false),
        ("https://*.example", false),
        ("https://Build.example", false),
    ] {
        assert_eq!(landfall_server::is_origin(text), is, "{text}");
    }
}
