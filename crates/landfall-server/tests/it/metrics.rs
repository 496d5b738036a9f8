//! `/metrics`, read the way a collector reads it.

use std::collections::BTreeMap;

use crate::support::Place;

/// A sample by its name with labels, as a collector understands the text.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let body = text.strip_suffix("# EOF\n").expect("it says where it ends");
    let mut kinds = BTreeMap::new();
    let mut samples = BTreeMap::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a kind");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} is there twice");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.split_once(' ').is_some_and(|(_, help)| !help.is_empty()), "{line}");
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            let family = name.split('{').next().expect("a name");
            let known = kinds.keys().any(|it| {
                family
                    .strip_prefix(it.as_str())
                    .is_some_and(|it| ["", "_total", "_sum", "_count", "_bucket"].contains(&it))
            });
            assert!(known, "{line} belongs to no family");
            assert!(family.starts_with("landfall_"), "{line}");
            assert!(samples.insert(name.to_owned(), value).is_none(), "{name} is there twice");
        }
    }
    samples
}

#[test]
fn a_collector_understands_it_and_it_counts() {
    let place = Place::new();
    let read = || {
        let answer = place.owner("GET", "/metrics").send();
        assert_eq!(answer.status, 200, "{answer:?}");
        let kind = answer.header("content-type").expect("a type");
        assert!(kind.starts_with("application/openmetrics-text; version=1.0.0"), "{kind}");
        parse(&answer.body)
    };
    for name in [
        "landfall_viewers",
        "landfall_run",
        "landfall_slots",
        "landfall_agents_at_work",
        "landfall_reviews_owed",
        "landfall_issues_left",
    ] {
        assert_eq!(read().get(name), Some(&0.0), "{name}");
    }
    for _ in 0..3 {
        assert_eq!(place.owner("POST", "/api/v1/stop").json("{}").send().status, 200);
    }
    assert_eq!(place.owner("POST", "/api/v1/sessions/x/revoke").json("{}").send().status, 404);
    let samples = read();
    assert_eq!(
        samples.get(r#"landfall_requests_total{operation="stop",result="ok"}"#),
        Some(&3.0),
        "{samples:?}"
    );
    assert_eq!(
        samples.get(r#"landfall_requests_total{operation="session_revoke",result="problem"}"#),
        Some(&1.0)
    );
    assert_eq!(samples.get(r#"landfall_request_seconds_count{operation="stop"}"#), Some(&3.0));
    assert_eq!(place.ask("GET", "/metrics").send().status, 401);
    let agent = place.agent();
    assert_eq!(
        place.ask("GET", "/metrics").with("Authorization", &format!("Bearer {agent}")).send().status,
        200
    );
}
