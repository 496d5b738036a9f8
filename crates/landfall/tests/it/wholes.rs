//! A large issue and the ones it is made of: how far they have come is told level by level, and what one part breaks of another is
//! found before the whole is done.

use landfall_testkit::ScratchProject;

use crate::both::{World, labels, on_both, show};
use crate::hold_file::HoldFile;
use crate::lifecycle::works;
use crate::pipeline::{auto, issue, script, there};

on_both!(
    what_a_whole_promises_is_looked_at_level_by_level_and_only_told,
    a_part_that_another_breaks_is_done_again_before_the_whole_is,
    what_is_left_of_a_part_for_a_person_is_left_of_the_whole,
);

/// A step that writes these files.
fn files(files: &[(&str, &str)]) -> String {
    let writes: String = files
        .iter()
        .map(|(path, text)| format!("[[step.code.write]]\npath = {path:?}\ntext = \"{text}\\n\"\n"))
        .collect();
    format!("[[step.code]]\nsignal = \"complete\"\n{writes}")
}

/// A criterion that a file says something.
fn says(path: &str, text: &str) -> String {
    format!("- [ ] <!-- verify: file_contains \"{path}\" \"{text}\" --> {path} says {text}\n")
}

fn whole(scratch: &ScratchProject, body: &str) -> u64 {
    issue(scratch, "Large", body, &["--size", "XL", "--label", "triaged"])
}

/// A small part of a whole, after another.
fn part(scratch: &ScratchProject, whole: u64, title: &str, body: &str, after: Option<u64>) -> u64 {
    let (whole, after) = (whole.to_string(), after.map(|number| number.to_string()));
    let mut more = vec!["--size", "XS", "--label", "triaged", "--parent", &whole];
    if let Some(after) = &after {
        more.extend(["--blocked-by", after]);
    }
    issue(scratch, title, body, &more)
}

fn comments(scratch: &ScratchProject, number: u64) -> String {
    show(scratch, number)["comments"].to_string()
}

fn what_a_whole_promises_is_looked_at_level_by_level_and_only_told(scratch: &World) {
    let whole = whole(scratch, &there("second.txt"));
    let body = script(&[works("code", "first.txt", "\"complete\"")]);
    let first = part(scratch, whole, "First", &body, None);
    // The key is there the second time. It begins once the first has landed, and must not be over before that is.
    let hold = HoldFile::new(scratch, "second");
    let turns = [
        hold.in_step("code", "[[step.code]]\nsignal = \"blocked:no key\"\ncommit = false\n"),
        works("code", "second.txt", "\"complete\""),
    ];
    let second = part(scratch, whole, "Second", &script(&turns), Some(first));
    let mut run = scratch.start(&["auto", &whole.to_string()]);
    let told = || scratch.landfall(&["log", "T1"]).out.contains("(1 levels), and others go on");
    scratch.eventually("the first level is over", told);
    hold.release();
    assert_ne!(run.wait(std::time::Duration::from_secs(120)), Some(0), "{}", scratch.heard());
    let log = scratch.landfall(&["log", "T1"]).out;
    // After the first level it does not hold: that is told, and nothing else comes of it.
    assert!(log.contains(&format!("of its issues #{first} are over (1 levels), and others go on")), "{log}");
    assert!(log.contains("as a whole, this does not hold so far: there is second.txt"), "{log}");
    let shown = show(scratch, whole);
    assert!(labels(&shown).contains(&"phase/code".to_owned()), "{shown}");
    let told = comments(scratch, whole);
    assert!(
        !told.contains("does not hold") && !told.contains("verify-of"),
        "a warning is no comment: {told}"
    );
    assert!(told.contains("1 of 2 sub-issues are done"), "{told}");
    let said = auto(scratch, &["--resume", &whole.to_string()]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    assert!(comments(scratch, whole).contains("2 of 2 sub-issues are done"));
    for number in [whole, second] {
        assert_eq!(show(scratch, number)["issue"]["state"], "done", "#{number}");
    }
}

fn a_part_that_another_breaks_is_done_again_before_the_whole_is(scratch: &World) {
    let whole = whole(scratch, &there("after.txt"));
    let body = format!("{}\n{}", says("shared.txt", "one"), script(&[files(&[("shared.txt", "one")])]));
    let first = part(scratch, whole, "First", &body, None);
    let turns = [files(&[("shared.txt", "two"), ("after.txt", "x")])];
    let body = format!("{}\n{}", there("after.txt"), script(&turns));
    let second = part(scratch, whole, "Second", &body, Some(first));
    let said = auto(scratch, &[&whole.to_string()]);
    let log = scratch.landfall(&["log", "T1"]).out;
    assert_eq!(said.code, Some(0), "{}\n{}\n{log}", said.out, said.err);
    let told = comments(scratch, whole);
    assert!(told.contains("1 of 2 sub-issues are done"), "{told}");
    assert!(told.contains("it was done, and does not hold any more: shared.txt says one"), "{told}");
    assert!(told.contains(&format!("What was done for #{first} does not hold")), "{told}");
    assert!(told.contains("2 of 2 sub-issues are done"), "{told}");
    // Of a whole something is always said when it is over.
    assert_eq!(told.matches("## Auto Retrospective").count(), 1, "{told}");
    assert!(told.contains(&format!("| #{first} | First | XS: patch | SUCCESS |")), "{told}");
    let on_first = comments(scratch, first);
    assert_eq!(on_first.matches("verify-iteration: 1").count(), 1, "{on_first}");
    for number in [whole, first, second] {
        let shown = show(scratch, number);
        assert_eq!(shown["issue"]["state"], "done", "#{number}: {shown}");
        assert!(labels(&shown).contains(&"phase/done".to_owned()), "#{number}: {shown}");
    }
    // Another task does it again, and its agent is told why.
    let prompts = scratch.prompts("T4").concat();
    assert!(prompts.contains("it was done, and does not hold any more: shared.txt says one"), "{prompts}");
    let table = format!("{}{}", said.out, said.err);
    assert!(table.contains("1 round of issues that held no more"), "{table}");
}

fn what_is_left_of_a_part_for_a_person_is_left_of_the_whole(scratch: &World) {
    let whole = whole(scratch, &there("first.txt"));
    let left = "### Pre-merge\n\n- [ ] <!-- verify: file_exists \"first.txt\" --> it is there\n\n### Post-merge\n\n- [ ] people like it\n";
    let body = format!("{left}\n{}", script(&[works("code", "first.txt", "\"complete\"")]));
    let first = part(scratch, whole, "First", &body, None);
    let said = auto(scratch, &[&whole.to_string()]);
    let all = format!("{}{}", said.out, said.err);
    assert!(all.contains("partial success"), "{all}");
    let told = comments(scratch, whole);
    assert!(told.contains("LANDED (something is left for a person)"), "{told}");
    // A forge closes the part by the words of its commit; what is left of it is said by its label.
    assert_eq!(show(scratch, whole)["issue"]["state"], "open");
    for number in [whole, first] {
        let shown = show(scratch, number);
        assert!(labels(&shown).contains(&"phase/verify".to_owned()), "#{number}: {shown}");
    }
}

#[test]
fn parts_that_break_each_other_for_ever_need_a_person() {
    let scratch = ScratchProject::new(crate::LANDFALL);
    let whole = whole(&scratch, "");
    let body =
        |text: &str| format!("{}\n{}", says("shared.txt", text), script(&[files(&[("shared.txt", text)])]));
    let first = part(&scratch, whole, "First", &body("one"), None);
    let second = part(&scratch, whole, "Second", &body("two"), Some(first));
    let said = auto(&scratch, &[&whole.to_string()]);
    assert_ne!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let why = scratch.why("T1");
    assert!(why.contains("parts_failed") && why.contains("it needs a person"), "{why}");
    assert!(why.contains(&format!("#{first} failed")) || why.contains(&format!("#{second} failed")), "{why}");
    let shown = show(&scratch, whole);
    assert_eq!(shown["issue"]["state"], "open", "{shown}");
    let said: Vec<String> =
        shown["comments"].as_array().into_iter().flatten().map(|it| it["body"].to_string()).collect();
    let distinct: std::collections::BTreeSet<&String> = said.iter().collect();
    assert_eq!(said.len(), distinct.len(), "nothing is said twice: {said:#?}");
}
