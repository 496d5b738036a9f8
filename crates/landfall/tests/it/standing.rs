//! How issues stand, and what a person is to do about them: what is left of one that landed, whose part it is, which of a batch are
//! left out, who waits for whom in a circle, and what helps after somebody closed one.

use std::time::Duration;

use landfall_testkit::FakeIssue;
use serde_json::{Value, json};

use crate::both::{World, on_both};
use crate::hold_file::HoldFile;
use crate::lifecycle::works;
use crate::pipeline::{auto, issue, script, there};
use crate::serve::Served;

on_both!(
    what_is_left_of_an_issue_that_landed_is_in_the_inbox_until_it_is_closed,
    an_issue_says_whose_part_it_is_and_how_its_own_parts_stand,
);

const SMALL: [&str; 4] = ["--size", "XS", "--label", "triaged"];

/// An issue whose agent writes a file.
fn small(world: &World, file: &str, more: &[&str]) -> u64 {
    let body = script(&[works("code", file, "\"complete\"")]);
    issue(world, file, &body, &[&SMALL, more].concat())
}

fn inbox(world: &World) -> Value {
    world.landfall(&["--json", "inbox"]).json()
}

fn counted(world: &World) -> Value {
    world.landfall(&["--json", "status"]).json()["issues_left"].clone()
}

fn what_is_left_of_an_issue_that_landed_is_in_the_inbox_until_it_is_closed(world: &World) {
    let boxes = format!("{}- [ ] people like it\n- [ ] it is fast\n", there("done.txt"));
    let body = format!("{boxes}\n{}", script(&[works("code", "done.txt", "\"complete\"")]));
    let number = issue(world, "Make it so", &body, &SMALL).to_string();
    let said = auto(world, &[&number]).ok();
    assert!(said.contains("partial success"), "{said}");

    let found = inbox(world);
    assert_eq!(found["counts"]["acceptance"], 1, "{found}");
    let item = &found["items"][0];
    assert_eq!((&item["kind"], &item["task"]), (&json!("acceptance"), &json!("T1")), "{found}");
    let text = world.landfall(&["inbox"]).ok();
    assert!(text.starts_with("T1  acceptance  Make it so"), "{text}");
    for words in [
        format!("2. people like it: `landfall issue tick {number} 2`"),
        format!("3. it is fast: `landfall issue tick {number} 3`"),
        format!("`landfall auto {number}` looks again"),
    ] {
        assert!(text.contains(&words), "{words} in {text}");
    }
    assert!(!text.contains("there is done.txt"), "what holds is not left: {text}");
    assert_eq!(world.landfall(&["--json", "inbox", "T1"]).json()["items"][0]["key"], item["key"]);
    assert_eq!(counted(world), 1);
    let status = world.landfall(&["status"]).ok();
    assert!(status.contains("1 landed issue"), "{status}");

    world.landfall(&["issue", "tick", &number, "people like"]).ok();
    let text = world.landfall(&["inbox"]).ok();
    assert!(!text.contains("people like it") && text.contains("it is fast"), "a box less: {text}");
    world.landfall(&["issue", "tick", &number, "fast"]).ok();
    let text = world.landfall(&["inbox"]).ok();
    match world.tracker {
        "local" => assert!(text.contains("every box is ticked"), "it is still to be closed: {text}"),
        _ => assert_eq!(text, "nothing waits for you\n", "the forge has closed it by what landed"),
    }
    let said = auto(world, &[&number]).ok();
    assert!(said.contains("complete"), "{said}");
    assert_eq!(world.landfall(&["inbox"]).ok(), "nothing waits for you\n");
    assert_eq!(counted(world), 0);
}

#[test]
fn what_is_left_of_an_issue_vanishes_when_a_person_closes_it() {
    for how in [&[][..], &["--not-planned"]] {
        let world = World::local();
        let body = format!("- [ ] people like it\n\n{}", script(&[works("code", "a.txt", "\"complete\"")]));
        let number = issue(&world, "Liked", &body, &SMALL).to_string();
        assert!(auto(&world, &[&number]).ok().contains("partial success"));
        assert_eq!(counted(&world), 1);
        world.landfall(&[&["issue", "close", &number][..], how].concat()).ok();
        assert_eq!((inbox(&world)["items"].clone(), counted(&world)), (json!([]), json!(0)), "{how:?}");
    }
    // On a forge, closed is not yet decided: the forge closes it by what lands. Ticked and closed is.
    let world = World::github();
    let body = format!("- [ ] people like it\n\n{}", script(&[works("code", "a.txt", "\"complete\"")]));
    let number = issue(&world, "Liked", &body, &SMALL);
    assert!(auto(&world, &[&number.to_string()]).ok().contains("partial success"));
    let change = |change: fn(&mut FakeIssue)| {
        world.forge().world(|forge| change(forge.issues.get_mut(&number).expect("it is there")));
        counted(&world)
    };
    assert_eq!(change(|it| it.closed = Some("completed".to_owned())), 1);
    assert_eq!(change(|it| it.body = it.body.as_ref().map(|body| body.replace("- [ ]", "- [x]"))), 0);
}

#[test]
fn what_is_left_of_an_issue_is_on_the_page_until_somebody_closes_it() {
    let world = World::local();
    let body = format!("- [ ] people like it\n\n{}", script(&[works("code", "a.txt", "\"complete\"")]));
    let number = issue(&world, "Liked", &body, &SMALL).to_string();
    assert!(auto(&world, &[&number]).ok().contains("partial success"));
    let served = Served::start(&world, &[]);
    let (code, page) = served.get("/inbox");
    assert_eq!(code, 200, "{page}");
    let tick = "Tick box 1: people like it";
    for words in ["Acceptance", "people like it", tick, "Look at it again"] {
        assert!(page.contains(words), "{words} in {page}");
    }
    assert!(!page.contains("landfall issue tick"), "the page has the button: {page}");
    // The button ticks the box in the issue.
    let headers = format!(
        "Authorization: Bearer {}\r\nOrigin: http://{}\r\nContent-Type: application/x-www-form-urlencoded\r\n",
        served.token, served.at
    );
    let (code, said) = served.ask("POST", "/do/decide", &headers, &pressed(&page, tick));
    assert_eq!(code, 303, "{said}");
    let detail = world.landfall(&["--json", "issue", "show", &number]).json();
    assert!(detail.to_string().contains("- [x] people like it"), "{detail}");
    world.eventually("the page has no such box", || !served.get("/inbox").1.contains(tick));
    world.landfall(&["issue", "close", &number]).ok();
    world.eventually("it is gone from the page", || served.get("/inbox").1.contains("Nothing waits for you"));
    served.end();
}

/// What a browser sends for the decision of a page if this button is pressed.
fn pressed(page: &str, button: &str) -> String {
    let form = page.split("action=\"/do/decide\"").nth(1).expect("a decision");
    let form = form.split("</form>").next().expect("it has a beginning");
    let value = |tag: &str, name: &str| {
        let (_, after) = tag.split_once(&format!("{name}=\""))?;
        after.split('"').next().map(str::to_owned)
    };
    let tags: Vec<&str> = form.split('<').collect();
    let hidden = tags.iter().filter(|tag| tag.contains("type=\"hidden\""));
    let mut fields: Vec<(String, String)> =
        hidden.filter_map(|tag| Some((value(tag, " name")?, value(tag, "value")?))).collect();
    let which = tags.iter().find(|tag| tag.starts_with("button ") && tag.contains(button));
    fields.push(("do".to_owned(), value(which.expect("the button"), "value").expect("it has a value")));
    let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    fields
        .iter()
        .map(|(name, text)| format!("{}={}", encode(name), encode(text)))
        .collect::<Vec<_>>()
        .join("&")
}

#[test]
fn what_nobody_was_to_look_at_is_left_and_the_tracker_may_be_out_of_reach() {
    let world = World::github();
    let body = format!("{}\n{}", there("a.txt"), script(&[works("code", "a.txt", "\"complete\"")]));
    let number = issue(&world, "Unseen", &body, &SMALL).to_string();
    auto(&world, &[&number, "--non-interactive"]).ok();
    let text = world.landfall(&["inbox"]).ok();
    assert!(text.contains(&format!("`landfall auto {number}` looks")), "{text}");
    assert!(!text.contains("issue tick"), "nobody has to tick what can be looked at: {text}");
    let settings = world.project().join("landfall.toml");
    let there = std::fs::read_to_string(&settings).expect("the settings");
    std::fs::write(&settings, there.replace(&world.forge().url(), "http://127.0.0.1:9")).expect("written");
    let text = world.landfall(&["inbox"]).ok();
    assert!(text.starts_with("T1  acceptance  Unseen"), "as it was last seen: {text}");
    assert_eq!(counted(&world), 1);
}

fn an_issue_says_whose_part_it_is_and_how_its_own_parts_stand(world: &World) {
    let whole = issue(world, "Whole", "", &["--size", "XL"]).to_string();
    let parent = ["--parent", &whole];
    let [one, two, three] = ["One", "Two", "Three"].map(|title| issue(world, title, "", &parent).to_string());
    world.landfall(&["issue", "close", &one]).ok();
    world.landfall(&["issue", "close", &two, "--not-planned"]).ok();
    world.landfall(&["issue", "label", &three, "--add", "phase/code"]).ok();
    let text = world.landfall(&["issue", "show", &whole]).ok();
    let parts = format!(
        "parts: 2 of 3 are closed\n   [x] #{one} One (done)\n   [x] #{two} Two (not planned)\n   [ ] #{three} Three (open, code)\n"
    );
    assert!(text.contains(&parts), "{text}");
    assert!(!text.contains("part of"), "{text}");
    let shown = world.shown(whole.parse().expect("a number"));
    assert_eq!((&shown["parent"], &shown["children"][1]["state"]), (&Value::Null, &json!("not-planned")));
    let text = world.landfall(&["issue", "show", &three]).ok();
    assert!(text.contains(&format!("\npart of #{whole}\n")), "{text}");
    assert_eq!(world.shown(three.parse().expect("a number"))["parent"], format!("#{whole}"));
}

#[test]
fn a_batch_leaves_out_what_nobody_is_to_do_and_follows_the_rest() {
    let world = World::local();
    let all = [1, 2, 3].map(|number| small(&world, &format!("{number}.txt"), &[]).to_string());
    let [one, two, three] = all.each_ref().map(String::as_str);
    auto(&world, &[one]).ok();
    world.landfall(&["issue", "close", two, "--not-planned"]).ok();
    let dry = auto(&world, &["--batch", one, two, three, "--dry-run"]).ok();
    assert!(dry.contains("#2 is left out: it is closed as not planned"), "{dry}");
    let said = auto(&world, &["--batch", one, two, three]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    for words in [
        "#2 is left out: it is closed as not planned; `landfall issue reopen 2` opens it again",
        "#1 is done already (T1)",
        "#3 is followed by T2",
    ] {
        assert!(said.err.contains(words), "{words} in {}", said.err);
    }
    assert!(said.out.contains("H1: 2 complete of 2 issues"), "{}", said.out);
    assert!(world.files().contains("3.txt") && !world.files().contains("2.txt"), "{}", world.files());
    let json = world.landfall(&["--json", "auto", "--batch", one, two]).json();
    assert_eq!(
        (&json["left_out"][0]["number"], json["issues"].as_array().map(Vec::len)),
        (&json!(2), Some(1))
    );
    // Where nothing is left it is refused as one alone is.
    world.landfall(&["issue", "close", three, "--not-planned"]).ok();
    for args in [&["--batch", two, three][..], &[two]] {
        let refused = auto(&world, args);
        assert_eq!(refused.code, Some(6), "{args:?}: {}", refused.err);
        assert!(refused.err.contains("#2 is closed as not planned: it is left alone"), "{}", refused.err);
    }
}

#[test]
fn an_issue_that_waits_in_a_circle_is_refused_alone_too_and_the_circle_is_named() {
    let world = World::local();
    for number in 1..=5 {
        small(&world, &format!("{number}.txt"), &[]);
    }
    // 1 waits for 2, which waits for 3 and 3 for 2; 4 waits for 5 alone.
    for (issue, blocker) in [("1", "2"), ("2", "3"), ("3", "2"), ("4", "5")] {
        world.landfall(&["issue", "edit", issue, "--blocked-by", blocker]).ok();
    }
    for args in [&["2"][..], &["1"], &["--resume", "3"], &["1", "--dry-run"], &["--batch", "1", "4"]] {
        let said = auto(&world, args);
        assert_eq!(said.code, Some(2), "{args:?}: {}\n{}", said.out, said.err);
        assert!(said.err.contains("wait for each other: #"), "{args:?}: {}", said.err);
        assert!(
            ["#2 is blocked by #3 is blocked by #2", "#3 is blocked by #2 is blocked by #3"]
                .iter()
                .any(|circle| said.err.contains(circle)),
            "{args:?}: {}",
            said.err
        );
        assert!(said.err.contains("--unblock"), "{args:?}: {}", said.err);
    }
    assert_eq!(world.landfall(&["list"]).ok(), "", "nobody waits for ever");
    // A blocker that is closed holds nobody up.
    world.landfall(&["issue", "close", "3"]).ok();
    let said = auto(&world, &["--batch", "2", "1"]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    assert!(auto(&world, &["4"]).out.contains("waits for #5"), "a line is no circle");
}

#[test]
fn after_somebody_closed_an_issue_what_comes_next_is_what_works() {
    let world = World::local();
    let hold = HoldFile::new(&world, "code");
    let slow = hold.in_step("code", &works("code", "1.txt", "\"complete\""));
    issue(&world, "Slow", &script(&[slow]), &SMALL);
    let mut run = world.start(&["auto", "1"]);
    world.eventually("its agent is at work", || world.prompts("T1").len() == 1);
    world.landfall(&["issue", "close", "1", "--not-planned"]).ok();
    hold.release();
    assert_ne!(run.wait(Duration::from_secs(60)), Some(0), "{}", world.heard());
    let (said, why) = (world.heard(), world.landfall(&["why", "T1"]).ok());
    for text in [&said, &why] {
        assert!(text.contains("`landfall issue reopen 1`, then `landfall auto 1`"), "{text}");
        for wrong in ["auto --resume", "landfall retry"] {
            assert!(!text.contains(wrong), "{wrong} in {text}");
        }
    }
    world.landfall(&["issue", "reopen", "1"]).ok();
    auto(&world, &["1"]).ok();
    assert_eq!(world.landed("1.txt"), "x");
}

#[test]
fn one_way_on_is_offered_for_an_issue_that_stopped() {
    let world = World::local();
    issue(&world, "Hopeless", &script(&["[[step.code]]\nsignal = \"blocked:no key\"\n".to_owned()]), &SMALL);
    let said = auto(&world, &["1"]);
    assert_eq!(said.code, Some(8), "{}\n{}", said.out, said.err);
    let why = world.landfall(&["why", "T1"]).ok();
    for text in [said.out + &said.err, why] {
        assert!(text.contains("`landfall auto --resume 1`"), "{text}");
        assert!(!text.contains("landfall retry"), "{text}");
    }
}
