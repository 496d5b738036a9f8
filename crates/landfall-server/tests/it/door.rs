//! The door, over every route there is: who the request is for, which page it comes from, and what every answer carries.

use landfall_api::Access;
use landfall_server::{Guard, ServedRoute, served_routes};

use crate::samples::{Samples, fill};
use crate::support::{Answer, Asking, Place, raw};

/// A request for a route as it would be right, with the right kind of body.
pub fn right(place: &Place, samples: &Samples, route: &ServedRoute) -> Asking {
    let (target, body) = samples.request(route.method, &route.path);
    let asking = place.ask(route.method, &target);
    match (route.method, body) {
        ("GET", _) => asking,
        (_, Some(body)) => asking.json(&body),
        (_, None) => asking.form(""),
    }
}

fn is_page(route: &ServedRoute) -> bool {
    let for_programs = ["/api/", "/assets/", "/hooks/"];
    route.path != "/metrics" && !for_programs.iter().any(|it| route.path.starts_with(it))
}

fn changes(route: &ServedRoute) -> bool {
    route.method != "GET"
}

/// A stream does not end by itself.
pub fn ends(route: &ServedRoute) -> bool {
    !matches!(route.path.as_str(), "/api/v1/events" | "/api/v1/tasks/{task}/output/stream")
}

#[test]
fn every_route_is_known_here_and_only_these_are_open() {
    let routes = served_routes();
    assert!(routes.len() > 80, "{}", routes.len());
    let open: Vec<String> = routes
        .iter()
        .filter(|it| it.guard == Guard::Open)
        .map(|it| format!("{} {}", it.method, it.path))
        .collect();
    // A new line here is a decision: whoever can reach the address may come.
    assert_eq!(
        open,
        [
            "GET /login",
            "POST /login",
            "GET /pair/{code}",
            "POST /pair/{code}",
            "POST /hooks/{tracker}",
            "GET /assets/{name}"
        ]
    );
    for operation in landfall_api::Request::ROUTES {
        let path = format!("/api/v1{}", operation.path);
        let here = routes.iter().find(|it| it.method == operation.method.word() && it.path == path);
        assert_eq!(here.map(|it| it.guard), Some(Guard::Needs(operation.access)), "{path}");
    }
    // What programs may ask is in the reference.
    let reference = landfall_api::openapi::openapi_document();
    for route in routes.iter().filter(|it| it.path.starts_with("/api/") || it.path == "/metrics") {
        let there = &reference["paths"][&route.path][route.method.to_lowercase()];
        assert!(there.is_object(), "{} {} is not in the reference", route.method, route.path);
    }
    // Pages and forms are for people; what has another access is an operation or one of these.
    for route in
        routes.iter().filter(|it| it.guard == Guard::Needs(Access::Read) && !it.path.starts_with("/api/"))
    {
        assert_eq!(route.path, "/metrics");
    }
}

#[test]
fn a_stranger_comes_nowhere_but_to_the_open_routes() {
    let (place, samples) = (Place::new(), Samples::new());
    for route in served_routes() {
        let answer = right(&place, &samples, &route).with("Sec-Fetch-Site", "same-origin").send();
        let what = format!("{} {}: {answer:?}", route.method, route.path);
        match (route.guard, is_page(&route)) {
            (Guard::Open, _) => {
                // An empty token is a wrong one, and no code was given out; the page that asks for a token comes again.
                let again = answer.status == 403 && answer.body.contains("<h1>Sign in</h1>");
                assert!(again || ![401, 403].contains(&answer.status), "{what}");
            }
            (Guard::Needs(_), true) => {
                assert_eq!((answer.status, answer.header("location")), (303, Some("/login")), "{what}");
            }
            (Guard::Needs(_), false) => {
                assert_eq!((answer.status, answer.code().as_str()), (401, "unauthorized"), "{what}");
                assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{what}");
            }
        }
    }
    assert_eq!(place.toy.asked(), [], "nothing of it reached the project");
}

#[test]
fn with_the_token_every_route_answers() {
    let (place, samples) = (Place::new(), Samples::new());
    // There is a run, so its page is there too.
    let report: serde_json::Value = serde_json::from_slice(&samples.full("x")["report"]).expect("json");
    place.toy.answer("report", "", report);
    for route in served_routes().iter().filter(|it| ends(it)) {
        let mut asking = right(&place, &samples, route)
            .with("Authorization", &format!("Bearer {}", place.token))
            .with("Origin", &format!("http://{}", place.host()));
        asking.target = asking.target.replace("/assets/x", "/assets/icon.svg");
        let answer = asking.send();
        let fine = match route.path.as_str() {
            // There is no such session, and no such code.
            "/api/v1/sessions/{session}/revoke" => answer.status == 404,
            // No session has had a loop.
            "/api/sessions/{id}/task-auto" | "/api/task-auto/lookup" if route.method == "GET" => {
                answer.status == 404
            }
            // Trackers send JSON, and this is a form.
            "/hooks/{tracker}" => answer.status == 415,
            "/login" | "/pair/{code}" => [200, 403].contains(&answer.status),
            _ => answer.status == 200 || answer.status == 303,
        };
        assert!(fine, "{} {}: {answer:?}", route.method, route.path);
    }
}

#[test]
fn a1_only_our_own_names_are_answered_on_every_route() {
    let (place, samples) = (Place::new(), Samples::new());
    let port = place.at.port();
    let others = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1.nip.io:{port}"),
        String::new(),
        "127.0.0.1".to_owned(),
        "localhost".to_owned(),
        format!("127.0.0.1:{}", port.wrapping_add(1)),
        format!("[::1]:{port}"),
        format!("localhost.:{port}"),
        format!("127.0.0.1.:{port}"),
        format!("LOCALHOST:{port}"),
        format!("user@127.0.0.1:{port}"),
        format!("0:{port}"),
        "landfall".to_owned(),
    ];
    for route in served_routes() {
        let asking =
            right(&place, &samples, &route).with("Authorization", &format!("Bearer {}", place.token));
        let refused = |asking: Asking, how: &str| {
            let answer = asking.send();
            // What is no request line at all is refused before us, without a word.
            assert!([400, 421].contains(&answer.status), "{} {} {how}: {answer:?}", route.method, route.path);
        };
        for host in &others {
            let answer = asking.clone().without("Host").with("Host", host).send();
            assert_eq!(answer.status, 421, "{} {} for {host:?}: {answer:?}", route.method, route.path);
        }
        refused(asking.clone().without("Host"), "for nobody");
        refused(asking.clone().with("Host", &place.host()), "for us twice");
        refused(asking.clone().with("Host", "evil.example"), "for us and another");
        let mut absolute = asking.clone();
        absolute.target = format!("http://evil.example{}", asking.target);
        refused(absolute, "with another in its first line");
        let mut absolute = asking.clone();
        absolute.target = format!("http://{}{}", place.at, asking.target);
        refused(absolute, "with us in its first line");
    }
    assert_eq!(place.toy.asked(), [], "nothing of it reached the project");
    for host in [place.host(), format!("localhost:{port}"), "build-box:7878".to_owned()] {
        let answer = place.owner("GET", "/api/v1/status").without("Host").with("Host", &host).send();
        assert_eq!(answer.status, 200, "{host}");
    }
}

/// Headers that pages of others, or none, come with.
fn foreign(place: &Place) -> Vec<Vec<(&'static str, String)>> {
    let ours = format!("http://{}", place.host());
    vec![
        // The bare names of this machine, at our own port: another name than that of the cookie.
        vec![("Origin", format!("http://localhost:{}", place.at.port()))],
        vec![("Origin", format!("http://{}", place.at))],
        vec![("Origin", "null".to_owned())],
        vec![("Origin", "http://evil.example".to_owned())],
        vec![("Origin", format!("https://{}", place.at))],
        vec![("Origin", format!("http://127.0.0.1:{}", place.at.port().wrapping_add(1)))],
        vec![("Origin", format!("{ours}.evil.example"))],
        vec![("Origin", ours.clone()), ("Origin", "http://evil.example".to_owned())],
        vec![("Origin", ours.clone()), ("Sec-Fetch-Site", "cross-site".to_owned())],
        vec![("Sec-Fetch-Site", "cross-site".to_owned())],
        vec![("Sec-Fetch-Site", "same-site".to_owned())],
        vec![("Sec-Fetch-Site", "cross-site".to_owned()), ("Sec-Fetch-Mode", "navigate".to_owned())],
        vec![("Sec-Fetch-Site", "nonsense".to_owned())],
    ]
}

#[test]
fn a2_nothing_is_changed_by_a_page_of_others() {
    let (place, samples) = (Place::new(), Samples::new());
    let cookie = place.sign_in();
    for route in served_routes().iter().filter(|it| changes(it)) {
        let what = |answer: &Answer, how: &dyn std::fmt::Debug| {
            format!("{} {} with {how:?}: {answer:?}", route.method, route.path)
        };
        let plain = right(&place, &samples, route);
        let browser = plain.clone().with("Cookie", &cookie);
        let program = plain.clone().with("Authorization", &format!("Bearer {}", place.token));
        for headers in foreign(&place) {
            for asking in [&plain, &browser, &program] {
                let asking = headers.iter().fold(asking.clone(), |it, (name, value)| it.with(name, value));
                let answer = asking.send();
                assert_eq!(answer.status, 403, "{}", what(&answer, &headers));
            }
        }
        // A cookie without a word about the page is not believed; a token is nothing a page can be made to send.
        let answer = browser.clone().send();
        assert_eq!(answer.status, 403, "{}", what(&answer, &"no word"));
        assert_eq!(place.toy.asked(), [], "{} {} was carried out", route.method, route.path);
        if route.method == "DELETE" {
            continue; // it has no body, and a page of others has to ask first: `OPTIONS` is refused
        }
        // What a page may send without asking first is none of the kinds that operations take.
        let ours = browser.with("Origin", &format!("http://{}", place.host()));
        for kind in ["text/plain", "multipart/form-data; boundary=x", "application/octet-stream", "text/json"]
        {
            let answer = ours.clone().kind(kind, "{}").send();
            assert_eq!(answer.status, 415, "{}", what(&answer, &kind));
        }
        let other = if is_page(route) { "application/json" } else { "application/x-www-form-urlencoded" };
        let answer = ours.kind(other, "{}").send();
        assert_eq!(answer.status, 415, "{}", what(&answer, &other));
        assert_eq!(place.toy.asked(), [], "{} {} was carried out", route.method, route.path);
    }
}

#[test]
fn a2_nothing_is_read_by_a_page_of_others() {
    let (place, samples) = (Place::new(), Samples::new());
    let cookie = place.sign_in();
    for route in served_routes().iter().filter(|it| !changes(it)) {
        let plain = right(&place, &samples, route).with("Cookie", &cookie);
        for headers in foreign(&place) {
            let navigates = headers.iter().any(|(name, _)| *name == "Sec-Fetch-Mode");
            let asking = headers.iter().fold(plain.clone(), |it, (name, value)| it.with(name, value));
            if navigates && is_page(route) {
                continue; // a link to a page; no browser sends a strict cookie along with it
            }
            let answer = asking.send();
            assert_eq!(answer.status, 403, "{} with {headers:?}: {answer:?}", route.path);
        }
    }
    let navigates = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")];
    let link = navigates.iter().fold(place.ask("GET", "/"), |it, (name, value)| it.with(name, value));
    assert_eq!(link.send().header("location"), Some("/login"), "a link from elsewhere leads to the login");
}

#[test]
fn a3_a_stream_is_only_for_those_who_may_have_it() {
    let place = Place::new();
    let cookie = place.sign_in();
    let streams: Vec<String> =
        served_routes().iter().filter(|it| !ends(it)).map(|it| fill(&it.path)).collect();
    assert_eq!(streams.len(), 2, "{streams:?}");
    for target in &streams {
        assert_eq!(place.ask("GET", target).send().status, 401, "{target}");
        assert_eq!(
            place.ask("GET", &format!("{target}?token={}", place.token)).send().status,
            401,
            "{target}: not in the address"
        );
        for origin in ["http://evil.example", "null"] {
            let answer = place.owner("GET", target).with("Origin", origin).send();
            assert_eq!(answer.status, 403, "{target}");
        }
        let rebound = place.owner("GET", target).without("Host").with("Host", "evil.example").send();
        assert_eq!(rebound.status, 421, "{target}");
        for site in ["cross-site", "same-site"] {
            let browser =
                place.ask("GET", target).with("Cookie", &cookie).with("Sec-Fetch-Site", site).send();
            assert_eq!(browser.status, 403, "{target}");
        }
    }
    // Nothing here is a WebSocket, whoever asks.
    let upgrade = place
        .owner("GET", "/api/v1/status")
        .with("Upgrade", "websocket")
        .with("Sec-WebSocket-Version", "13")
        .with("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        .send();
    assert_eq!(upgrade.status, 200, "{upgrade:?}");
    assert_eq!(upgrade.header("upgrade"), None);
}

fn is_sealed(answer: &Answer, what: &str) {
    let policy = answer.header("content-security-policy").unwrap_or_else(|| panic!("{what}: {answer:?}"));
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{what}: {policy}");
    for word in ["unsafe-inline", "unsafe-eval", "http:", "https:", "*"] {
        assert!(!policy.contains(word), "{what}: {policy}");
    }
    for word in ["frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"] {
        assert!(policy.contains(word), "{what}: {policy}");
    }
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("x-frame-options", "DENY"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{what}: {answer:?}");
    }
    assert!(answer.header("cache-control").is_some(), "{what}: {answer:?}");
    assert!(answer.header("content-type").is_some(), "{what}: {answer:?}");
    for (name, _) in &answer.headers {
        assert!(!name.starts_with("access-control-"), "{what}: {answer:?}");
        assert!(name != "server" && name != "x-powered-by", "{what}: {answer:?}");
    }
}

#[test]
fn every_answer_is_sealed_and_none_lets_other_sites_in() {
    let (place, samples) = (Place::new(), Samples::new());
    let bearer = format!("Bearer {}", place.token);
    for route in served_routes().iter().filter(|it| ends(it)) {
        let what = format!("{} {}", route.method, route.path);
        let asking = right(&place, &samples, route);
        let owner = asking.clone().with("Authorization", &bearer);
        is_sealed(&owner.clone().send(), &what);
        is_sealed(&asking.clone().send(), &format!("{what}, a stranger"));
        is_sealed(
            &owner.clone().with("Origin", "http://evil.example").send(),
            &format!("{what}, another page"),
        );
        is_sealed(
            &owner.clone().without("Host").with("Host", "evil").send(),
            &format!("{what}, another host"),
        );
        let taken =
            |method: &str| served_routes().iter().any(|it| it.method == method && it.path == route.path);
        for method in ["OPTIONS", "PUT", "DELETE", "TRACE", "PROPFIND"].into_iter().filter(|it| !taken(it)) {
            let mut other = place.ask(method, &fill(&route.path)).with("Authorization", &bearer);
            if method == "OPTIONS" {
                other = other
                    .with("Access-Control-Request-Method", "POST")
                    .with("Access-Control-Request-Private-Network", "true");
            }
            let answer = other.with("Canary", "in-the-request").send();
            assert_eq!(answer.status, 405, "{method} {}: {answer:?}", route.path);
            assert!(answer.header("allow").is_some(), "{method} {}: {answer:?}", route.path);
            assert!(!answer.body.contains("in-the-request"), "{answer:?}");
            is_sealed(&answer, &format!("{method} {}", route.path));
        }
    }
    for target in [
        "/nothing/here",
        "/api/v1/nothing",
        "/assets/nothing",
        "/api/v1/tasks/../../token",
        "/%2e%2e/token",
        "//evil.example/",
    ] {
        let answer = place.owner("GET", target).send();
        assert_eq!(answer.status, 404, "{target}: {answer:?}");
        is_sealed(&answer, target);
    }
}

#[test]
fn a_head_is_an_answer_without_a_body() {
    let (place, samples) = (Place::new(), Samples::new());
    for route in served_routes().iter().filter(|it| !changes(it)) {
        let mut asking =
            right(&place, &samples, route).with("Authorization", &format!("Bearer {}", place.token));
        asking.method = "HEAD".to_owned();
        let answer = asking.send();
        assert!(answer.body.is_empty(), "{}: {answer:?}", route.path);
        assert!([200, 404].contains(&answer.status), "{}: {answer:?}", route.path);
    }
}

#[test]
fn each_of_several_requests_on_a_line_passes_the_door() {
    let place = Place::new();
    let good = place.owner("GET", "/api/v1/hello").text();
    let rebound = place.owner("GET", "/api/v1/status").without("Host").with("Host", "evil.example").text();
    let nobody = place.ask("GET", "/api/v1/status").text();
    let last = place.owner("GET", "/api/v1/hello").with("Connection", "close").text();
    let answers = raw(place.at, format!("{good}{rebound}{nobody}{last}").as_bytes());
    let text = String::from_utf8_lossy(&answers);
    let statuses: Vec<&str> = text.split("HTTP/1.1 ").skip(1).map(|it| &it[..3]).collect();
    assert_eq!(statuses, ["200", "421", "401", "200"]);
    // A body that is left unread is not taken for the next request.
    let smuggled = place.owner("GET", "/api/v1/hello").kind("text/plain", &good).text();
    let answers = raw(place.at, format!("{smuggled}{last}").as_bytes());
    let count = String::from_utf8_lossy(&answers).matches("HTTP/1.1 200").count();
    assert!(count <= 2, "{}", String::from_utf8_lossy(&answers));
}
