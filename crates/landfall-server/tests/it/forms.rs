//! Forms: the grammar of their fields, and where they lead.

use landfall_api::Request;

use crate::support::{Answer, Place};

fn post(place: &Place, operation: &str, fields: &str) -> Answer {
    place
        .owner("POST", &format!("/do/{operation}"))
        .with("Origin", &format!("http://{}", place.host()))
        .form(fields)
        .send()
}

/// What a form asks the project for, as JSON.
fn asked(fields: &str) -> Option<String> {
    let place = Place::new();
    let answer = post(&place, "add", fields);
    assert_eq!(answer.status, 303, "{answer:?}");
    let asked = place.toy.asked();
    asked.first().map(|it| it.words().expect("json").to_string())
}

#[test]
fn the_names_of_fields_say_what_a_value_is_and_where_it_belongs() {
    let place = Place::new();
    let check = |operation: &str, fields: &str, expected: &str| {
        let answer = post(&place, operation, fields);
        assert_eq!(answer.status, 303, "{answer:?}");
        let asked: Vec<String> = place
            .toy
            .asked()
            .iter()
            .map(|it| format!("{} {}", it.name(), it.words().expect("json")))
            .collect();
        assert_eq!(asked, [expected], "{fields}");
    };
    check("cancel", "tasks[]=T1&tasks[]=T2&back=/", r#"cancel {"tasks":["T1","T2"]}"#);
    check(
        "edit",
        "task=T3&title=a%26b&priority:n=2&ready:b=on",
        r#"edit {"task":"T3","title":"a&b","priority":2,"ready":true}"#,
    );
    check(
        "edit",
        "task=T3&criteria:l=one%0D%0A%0D%0A++two%0D%0A",
        r#"edit {"task":"T3","criteria":["one","two"]}"#,
    );
    check("edit", "task=T3&body=a%0D%0Ab&title=", r#"edit {"task":"T3","body":"a\nb"}"#);
    // A box that is ticked stands after its default.
    check("stop", "now:b=false&now:b=true", r#"stop {"now":true}"#);
    check("reclaim", "", "reclaim {}");
}

#[test]
fn a_form_that_makes_no_sense_changes_nothing_and_says_so() {
    let place = Place::new();
    let deep = format!("{}=x", vec!["a"; 20].join("."));
    let many = "a[]=x&".repeat(10_001);
    for (operation, fields) in [
        ("edit", "title=x"),
        ("edit", "task=T0&title=x"),
        ("edit", "task=T1&priority:n=high"),
        ("edit", "task=T1&priority:n={}"),
        ("edit", "task=T1&priority:q=1"),
        ("edit", "task=T1&task.x=1"),
        ("edit", "task[]=T1"),
        ("edit", deep.as_str()),
        ("edit", many.as_str()),
        ("nothing", "task=T1"),
        ("status", ""),
        ("show", "task=T1"),
        ("__proto__", ""),
    ] {
        let scripted = place
            .owner("POST", &format!("/do/{operation}"))
            .with("Origin", &format!("http://{}", place.host()))
            .with("HX-Request", "true")
            .form(fields)
            .send();
        assert_eq!(scripted.status, 200, "a toast: {scripted:?}");
        assert_eq!(place.toy.asked(), [], "{operation} {:.60}", fields);
    }
    assert_eq!(asked("tasks[]=x"), None);
}

#[test]
fn the_way_back_stays_with_us() {
    let place = Place::new();
    let lead = |back: &str| {
        let back: String = back.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = post(&place, "reclaim", &format!("back={back}"));
        answer.header("location").expect("a way back").to_owned()
    };
    for back in ["/", "/task/T7?tab=diff", "/backlog?a=b&c=//d"] {
        assert_eq!(lead(back), back);
    }
    for back in [
        "//evil.example",
        "/\\evil.example",
        "/\t/evil.example",
        "/\n/evil.example",
        "/\r\n/evil.example",
        "\\\\evil.example",
        "http://evil.example/",
        "https:evil.example",
        "javascript:alert(1)",
        "evil.example",
        " //evil.example",
        "/ /evil.example",
        "/\u{0}/evil.example",
        "/x\r\nSet-Cookie: a=b",
        "/\u{2028}/evil.example",
        "",
    ] {
        assert_eq!(lead(back), "/", "{back:?}");
    }
}

#[test]
fn what_became_of_a_form_is_told_once_and_to_nobody_else() {
    let place = Place::new();
    let (mine, other) = (place.sign_in(), place.sign_in());
    let answer = place
        .ask("POST", "/do/edit")
        .with("Cookie", &mine)
        .with("Origin", &format!("http://{}", place.host()))
        .form("task=canary-of-mine")
        .send();
    assert_eq!(answer.status, 303, "{answer:?}");
    let page = |cookie: &str| place.ask("GET", "/help").with("Cookie", cookie).send().body;
    assert!(!page(&other).contains("canary-of-mine"));
    assert!(page(&mine).contains("canary-of-mine"));
    assert!(!page(&mine).contains("canary-of-mine"));
    assert!(place.toy.asked().iter().all(|it| !matches!(it, Request::Edit(_))));
}

#[test]
fn what_a_script_asks_about_is_asked_without_scripts_too() {
    let place = Place::new();
    assert_eq!(place.toy.speak("x"), Vec::<String>::new());
    let mut asked = 0;
    for route in landfall_server::served_routes().iter().filter(|it| it.method == "GET") {
        if route.path.starts_with("/api/") || route.path.starts_with("/assets/") {
            continue;
        }
        let answer = place.owner("GET", &crate::samples::fill(&route.path)).send();
        for form in answer.body.split("<form").skip(1) {
            let form = form.split("</form>").next().expect("it ends");
            if form.contains("data-confirm=") {
                asked += 1;
                assert!(form.contains("class=\"inline sure\""), "{}: {form}", route.path);
            }
        }
    }
    assert!(asked > 20, "{asked}");
}

#[test]
fn a_run_that_ends_can_be_stopped_now() {
    let place = Place::new();
    place.toy.speak("x");
    let page = || place.owner("GET", "/").send().body;
    assert!(page().contains("id=\"act-stop\"") && !page().contains("id=\"act-stop-now\""));
    place.toy.answer("board", "/run/mode", "draining".into());
    let page = page();
    let form = page.split("id=\"act-stop-now\"").nth(1).and_then(|it| it.split("</form>").next());
    let form = form.expect("it can be stopped now");
    assert!(form.contains("name=\"now:b\" value=\"true\"") && form.contains("action=\"/do/stop\""), "{form}");
    assert!(!page.contains("id=\"act-stop\""), "it ends already");
}

#[test]
fn moments_are_told_as_people_tell_them_and_tables_fit_a_phone() {
    let place = Place::new();
    place.toy.speak("2026-05-04T10:00:00Z");
    let sprints = place.owner("GET", "/sprints").send().body;
    assert!(
        sprints
            .contains("<time datetime=\"2026-05-04T10:00:00Z\" title=\"2026-05-04 10:00:00 UTC\" data-ago="),
        "{sprints}"
    );
    let tries = place.owner("GET", "/tasks/T7/attempts").send().body;
    assert!(tries.contains("class=\"table stacked attempts\""), "{tries}");
    let line = tries.split("<tr class=\"run-line\">").nth(1).and_then(|it| it.split("</tr>").next());
    let line = line.expect("an iteration");
    assert_eq!(
        line.matches("<td").count() - line.matches("data-name=").count(),
        2,
        "its name and how it ended stand alone: {line}"
    );
}
