//! How issues stand, and what a person is to do about them: what is left of one that landed, whose part it is, which of a batch are
//! left out, who waits for whom in a circle, and what helps after somebody closed one.

use std::time::Duration;

use crate::both::World;
use crate::lifecycle::works;
use crate::pipeline::{auto, issue, script};

const SMALL: [&str; 4] = ["--size", "XS", "--label", "triaged"];

#[test]
fn after_somebody_closed_an_issue_what_comes_next_is_what_works() {
    let world = World::local();
    let slow = works("code", "1.txt", "\"complete\"").replacen('\n', "\nsleep = \"4s\"\n", 1);
    issue(&world, "Slow", &script(&[slow]), &SMALL);
    let mut run = world.start(&["auto", "1"]);
    world.eventually("its agent is at work", || world.prompts("T1").len() == 1);
    world.landfall(&["issue", "close", "1", "--not-planned"]).ok();
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
