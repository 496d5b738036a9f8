//! What an agent's token opens: it reads, and brings drafts. Everything else is for people.

use landfall_api::{Access, Request};
use landfall_server::{Guard, served_routes};

use crate::door::{ends, right};
use crate::samples::Samples;
use crate::support::Place;

#[test]
fn a6_an_agent_reads_and_suggests_and_decides_nothing() {
    let (place, samples) = (Place::new(), Samples::new());
    let bearer = format!("Bearer {}", place.agent());
    place.toy.asked();
    let mut refused = 0;
    for route in served_routes().iter().filter(|it| ends(it) && it.guard != Guard::Open) {
        let answer = right(&place, &samples, route).with("Authorization", &bearer).send();
        let what = format!("{} {}: {answer:?}", route.method, route.path);
        if route.guard == Guard::Needs(Access::Steer) {
            assert_eq!(answer.status, 403, "{what}");
            assert_eq!(place.toy.asked(), [], "{what}");
            refused += 1;
        } else {
            // No session has had a loop.
            let wanted = if route.path.contains("task-auto") { 404 } else { 200 };
            assert_eq!(answer.status, wanted, "{what}");
            place.toy.asked();
        }
    }
    assert!(refused > 50, "{refused}");
    for operation in Request::ROUTES {
        let form = place
            .ask("POST", &format!("/do/{}", operation.name))
            .with("Authorization", &bearer)
            .form("task=T7");
        assert_eq!(form.send().status, 403, "/do/{}", operation.name);
    }
    assert_eq!(place.toy.asked(), [], "no form of it was carried out");
}

#[test]
fn what_an_agent_brings_is_a_draft_with_its_name() {
    let place = Place::new();
    let bearer = format!("Bearer {}", place.agent());
    place.toy.asked();
    let tasks = r#"{"tasks":[{"title":"one","draft":false,"source":"a person"},{"title":"two"}]}"#;
    let answer = place.ask("POST", "/api/v1/tasks").with("Authorization", &bearer).json(tasks).send();
    assert_eq!(answer.status, 200, "{answer:?}");
    let asked = place.toy.asked();
    let [Request::Add(new)] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(new.tasks.len(), 2);
    for task in &new.tasks {
        assert!(task.draft && task.source.starts_with("agent:"), "{task:?}");
    }
    let answer = place.owner("POST", "/api/v1/tasks").json(tasks).send();
    assert_eq!(answer.status, 200, "{answer:?}");
    let asked = place.toy.asked();
    let [Request::Add(new)] = asked.as_slice() else { panic!("{asked:?}") };
    assert!(!new.tasks[0].draft && new.tasks[0].source == "a person", "what people bring is as they say");
}

#[test]
fn a6_an_agent_cannot_make_or_end_tokens() {
    let place = Place::new();
    let (agent, other) = (place.agent(), place.agent());
    for (target, body) in
        [("/api/v1/tokens", "{}"), ("/api/v1/pairings", "{}"), ("/api/v1/sessions/x/revoke", "{}")]
    {
        let asking = place.ask("POST", target).with("Authorization", &format!("Bearer {agent}")).json(body);
        assert_eq!(asking.send().status, 403, "{target}");
    }
    // Nor can it sign in with what it has.
    for token in [&agent, &other] {
        let answer = place
            .ask("POST", "/login")
            .with("Origin", &format!("http://{}", place.host()))
            .form(&format!("token={token}"))
            .send();
        assert_eq!(answer.header("set-cookie"), None, "{answer:?}");
    }
}
