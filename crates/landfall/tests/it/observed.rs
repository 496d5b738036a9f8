//! Boxes that wait until something happens in a run of another issue: they are told of it once, and looked at then.

use crate::both::{World, on_both, show};
use crate::lifecycle::works;
use crate::pipeline::{auto, issue, script, there};

on_both!(boxes_that_wait_for_an_event_hear_of_it_once_and_are_looked_at_then);

fn boxes_that_wait_for_an_event_hear_of_it_once_and_are_looked_at_then(scratch: &World) {
    let body = "- [ ] <!-- verify: file_exists \"one.txt\" --> a run is over <!-- verify-type: observation event=auto-run -->\n\
                - [ ] something was sent back <!-- verify-type: observation event=fix-cycle -->\n\
                - [ ] <!-- verify: file_exists \"one.txt\" --> when /merge runs, it is there <!-- verify-type: opportunistic -->\n\
                - [ ] <!-- verify: file_exists \"none.txt\" --> when /code runs, it is there <!-- verify-type: opportunistic -->\n";
    let waits = issue(scratch, "Waits", body, &["--label", "triaged", "--label", "phase/verify"]);
    let elsewhere = issue(scratch, "Not there yet", body, &["--label", "triaged"]);
    let small = ["--size", "XS", "--label", "triaged"];
    let one = format!("{}\n{}", there("one.txt"), script(&[works("code", "one.txt", "\"complete\"")]));
    let one = issue(scratch, "One", &one, &small);
    let said = auto(scratch, &[&one.to_string()]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let shown = show(scratch, waits);
    let comments = shown["comments"].to_string();
    assert_eq!(comments.matches("`auto-run` has happened").count(), 1, "{comments}");
    assert!(comments.contains("landfall issue verify") && !comments.contains("fix-cycle"), "{comments}");
    assert!(comments.contains("Looked at when `merge` ended"), "{comments}");
    let body = shown["body"].as_str().expect("a body").to_owned();
    assert_eq!(body.matches("- [x]").count(), 1, "what holds in passing is ticked, and no more: {body}");
    assert!(body.contains("- [x] <!-- verify: file_exists \"one.txt\" --> when /merge"), "{body}");
    assert_eq!(
        show(scratch, elsewhere)["comments"].as_array().map_or(0, Vec::len),
        0,
        "it is not on the base"
    );

    // One that is sent back is another event; the run that follows is the same one again.
    let turns = [works("code", "wrong.txt", "\"complete\""), works("code", "two.txt", "\"complete\"")];
    let two = format!("{}\n{}", there("two.txt"), script(&turns));
    let two = issue(scratch, "Two", &two, &small);
    let said = auto(scratch, &[&two.to_string()]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let comments = show(scratch, waits)["comments"].to_string();
    assert_eq!(comments.matches("`auto-run` has happened").count(), 1, "{comments}");
    assert_eq!(comments.matches("`fix-cycle` has happened").count(), 1, "{comments}");

    // It is looked at from then on, where it says how.
    let seen = scratch.landfall(&["--json", "verify", &waits.to_string()]).json();
    let results: Vec<&str> =
        seen["criteria"].as_array().into_iter().flatten().filter_map(|it| it["result"].as_str()).collect();
    assert_eq!(results, ["PASS", "SKIPPED", "SKIPPED", "SKIPPED"], "{seen}");
}
