use super::*;
use crate::TaskId;
use crate::acceptance::VerifyResult;
use crate::task::{EndCode, EndKind, Ending, LandingRecord, Task, TaskState};
use crate::{TaskSpec, WaitReason};

fn describe_route(size: Option<TaskSize>, wishes: &IssueOptions) -> String {
    let routed = route_issue(size, wishes);
    format!("{} | {}", routed.label(), routed.phases().join(" → "))
}

#[test]
fn each_size_takes_the_way_of_the_table() {
    let none = IssueOptions::default();
    let seen: Vec<String> =
        TaskSize::ALL.into_iter().map(Some).chain([None]).map(|size| describe_route(size, &none)).collect();
    assert_eq!(
        seen,
        [
            "XS: patch | code → verify",
            "S: patch, spec first | spec → code → verify",
            "M: pull request, light review, spec first | spec → code → review → merge → verify",
            "L: pull request, full review, spec first | spec → code → review → merge → verify",
            "XL: sub-issues | sub-issues → verify",
            "no size: pull request, light review, spec first | spec → code → review → merge → verify",
        ]
    );
}

#[test]
fn the_wishes_of_a_person_win_over_the_size() {
    let patch = IssueOptions { way: Some(IssueRoute::Patch), ..IssueOptions::default() };
    assert_eq!(describe_route(Some(TaskSize::L), &patch), "L: patch, spec first | spec → code → verify");
    let pr = IssueOptions { way: Some(IssueRoute::Pr), ..IssueOptions::default() };
    assert_eq!(
        describe_route(Some(TaskSize::XS), &pr),
        "XS: pull request, light review | code → review → merge → verify"
    );
    let full = IssueOptions { depth: Some(ReviewDepth::Full), ..IssueOptions::default() };
    assert_eq!(
        describe_route(Some(TaskSize::XS), &full),
        "XS: pull request, full review | code → review → merge → verify"
    );
    assert_eq!(
        route_issue(Some(TaskSize::XS), &IssueOptions { always_pr: true, ..IssueOptions::default() }).way,
        IssueRoute::Pr
    );
}

fn make_snapshot(open: bool, phase: Option<IssuePhase>) -> IssueSnapshot {
    IssueSnapshot { number: 7, open, phase, triaged: phase.is_some(), ..IssueSnapshot::default() }
}

#[test]
fn what_is_seen_says_where_an_issue_goes_on() {
    let medium = route_issue(Some(TaskSize::M), &IssueOptions::default());
    let tiny = route_issue(Some(TaskSize::XS), &IssueOptions::default());
    let huge = route_issue(Some(TaskSize::XL), &IssueOptions::default());
    let pr = |state| PullRequestSnapshot {
        number: 9,
        url: String::new(),
        state,
        head: Some(Commit::new(&"a".repeat(40))),
        reviewed: false,
    };
    assert_eq!(next_phase(&make_snapshot(true, None), &medium), NextPhase::Triage);
    assert_eq!(next_phase(&make_snapshot(true, Some(IssuePhase::Issue)), &medium), NextPhase::Spec);
    assert_eq!(next_phase(&make_snapshot(true, Some(IssuePhase::Issue)), &tiny), NextPhase::Code);
    assert_eq!(next_phase(&make_snapshot(true, Some(IssuePhase::Issue)), &huge), NextPhase::Split);
    assert_eq!(next_phase(&make_snapshot(true, Some(IssuePhase::Ready)), &medium), NextPhase::Code);
    assert_eq!(next_phase(&make_snapshot(true, Some(IssuePhase::Verify)), &medium), NextPhase::Accept);
    // Opened again by a person, who left the label: it is worked on again.
    let again = IssueSnapshot { reopened: Some(Timestamp(1)), ..make_snapshot(true, Some(IssuePhase::Done)) };
    assert_eq!(next_phase(&again, &tiny), NextPhase::Code);
    assert_eq!(
        next_phase(&make_snapshot(true, Some(IssuePhase::Done)), &tiny),
        NextPhase::Done,
        "never opened again: it counts as done"
    );
    let landed = IssueSnapshot {
        commit: Some(Commit::new(&"c".repeat(40))),
        ..make_snapshot(true, Some(IssuePhase::Done))
    };
    assert_eq!(next_phase(&landed, &tiny), NextPhase::Accept, "it was about to be closed");
    let whole = IssueSnapshot { parts: 2, ..make_snapshot(true, Some(IssuePhase::Done)) };
    assert_eq!(
        next_phase(&whole, &huge),
        NextPhase::Split,
        "it was about to be closed, and nothing of it lands"
    );
    assert_eq!(next_phase(&make_snapshot(true, Some(IssuePhase::Done)), &huge), NextPhase::Done);
    let begun = IssueSnapshot { triaged: false, ..make_snapshot(true, Some(IssuePhase::Issue)) };
    assert_eq!(next_phase(&begun, &medium), NextPhase::Triage, "a triage that came to nothing is done again");
    assert_eq!(next_phase(&make_snapshot(false, Some(IssuePhase::Done)), &medium), NextPhase::Done);
    assert_eq!(next_phase(&make_snapshot(false, Some(IssuePhase::Verify)), &medium), NextPhase::Accept);
    assert_eq!(next_phase(&make_snapshot(false, Some(IssuePhase::Code)), &medium), NextPhase::Accept);
    let with = |state| IssueSnapshot { pr: Some(pr(state)), ..make_snapshot(true, Some(IssuePhase::Review)) };
    assert_eq!(next_phase(&with(PullRequestState::Open), &medium), NextPhase::Verify);
    assert_eq!(next_phase(&with(PullRequestState::Merged), &medium), NextPhase::Accept);
    assert_eq!(next_phase(&with(PullRequestState::Closed), &medium), NextPhase::Code);
}

#[test]
fn a_whole_never_goes_backwards_unless_it_was_opened_again() {
    use IssuePhase::{Code, Done, Review, Spec, Verify};
    assert_eq!(aggregate_phase(None, &[Some(Spec), None], false), None);
    assert_eq!(aggregate_phase(None, &[Some(Code), None], false), Some(Code));
    assert_eq!(aggregate_phase(None, &[Some(Verify), Some(Done)], false), Some(Verify));
    assert_eq!(aggregate_phase(Some(Verify), &[Some(Code), Some(Done)], false), Some(Verify));
    assert_eq!(aggregate_phase(Some(Verify), &[Some(Code), Some(Done)], true), Some(Code));
    assert_eq!(aggregate_phase(Some(Review), &[], false), Some(Review));
}

#[test]
fn parts_come_by_level_and_a_level_is_over_as_a_whole() {
    let part = |number: u64, done: bool, needs: &[u64]| SubIssue {
        number,
        title: String::new(),
        size: None,
        done,
        at_verify: false,
        needs: needs.to_vec(),
    };
    let of = |done: &[u64]| {
        let needs: [(u64, &[u64]); 5] = [(1, &[]), (2, &[]), (3, &[1]), (4, &[2, 3]), (5, &[9])];
        needs.map(|(number, needs)| part(number, done.contains(&number), needs)).to_vec()
    };
    assert_eq!(
        dependency_levels(&of(&[])),
        [vec![1, 2, 5], vec![3], vec![4]],
        "what is outside of the whole is no need"
    );
    let at = |done: &[u64]| sub_issues_state(&of(done), &|_| None);
    let going = |over: &[u64], levels| SubIssuesState::Going { over: over.to_vec(), levels };
    assert_eq!(at(&[]), going(&[], 0));
    assert_eq!(at(&[1, 5]), going(&[1, 5], 0));
    assert_eq!(at(&[1, 2, 5]), going(&[1, 2, 5], 1));
    assert_eq!(at(&[1, 2, 3, 5]), going(&[1, 2, 3, 5], 2));
    assert!(matches!(at(&[1, 2, 3, 4, 5]), SubIssuesState::Over(ends) if ends.len() == 5));
    let circle = [part(1, false, &[2]), part(2, false, &[1]), part(3, false, &[])];
    assert_eq!(dependency_levels(&circle), [vec![3], vec![1, 2]], "a circle ends, too");
}

#[test]
fn what_is_left_of_parts_is_left_of_the_whole() {
    assert_eq!(with_left(VerifyOutcome::Done, 0), VerifyOutcome::Done);
    assert_eq!(with_left(VerifyOutcome::Done, 2), VerifyOutcome::LeftOver(2));
    assert_eq!(with_left(VerifyOutcome::LeftOver(1), 2), VerifyOutcome::LeftOver(3));
    for outcome in [VerifyOutcome::Unsure, VerifyOutcome::Waiting, VerifyOutcome::Reopen { iteration: 1 }] {
        assert_eq!(with_left(outcome, 2), outcome);
    }
}

#[test]
fn an_old_commit_does_not_complete_what_was_opened_again() {
    let again = IssueSnapshot { reopened: Some(Timestamp(5)), ..make_snapshot(true, Some(IssuePhase::Code)) };
    let said = check_completion(ReconcilePoint::CodePatch, &again);
    assert_eq!(
        (said.matches, said.diagnosis.as_str()),
        (false, "no commit on the base closes it since it was opened again")
    );
    let commit = Some(Commit::new(&"b".repeat(40)));
    assert!(check_completion(ReconcilePoint::CodePatch, &IssueSnapshot { commit, ..again }).matches);
}

#[test]
fn an_issue_without_criteria_is_done_only_by_what_landed() {
    assert_eq!(outcome_without_criteria(true, false), VerifyOutcome::Done);
    assert_eq!(outcome_without_criteria(false, true), VerifyOutcome::Done);
    assert_eq!(outcome_without_criteria(false, false), VerifyOutcome::Unsure);
}

#[test]
fn checks_that_are_not_there_yet_are_waited_for_a_moment_where_the_base_has_some() {
    let since = Some(Timestamp(1_000));
    assert!(checks_may_begin(true, None, Timestamp(1_000)), "nobody has looked yet");
    assert!(checks_may_begin(true, since, Timestamp(90_999)));
    assert!(!checks_may_begin(true, since, Timestamp(91_000)));
    assert!(!checks_may_begin(false, None, Timestamp(1_000)));
}

#[test]
fn a_merged_pull_request_was_offered_and_a_closed_one_is_not() {
    let with = |state| IssueSnapshot {
        pr: Some(PullRequestSnapshot { number: 9, url: String::new(), state, head: None, reviewed: false }),
        ..make_snapshot(true, Some(IssuePhase::Verify))
    };
    let said = |state| check_completion(ReconcilePoint::CodePr, &with(state));
    assert_eq!(
        said(PullRequestState::Merged),
        ReconcileResult { matches: true, diagnosis: "pull request #9 is MERGED".to_owned() }
    );
    assert!(said(PullRequestState::Open).matches && !said(PullRequestState::Closed).matches);
    assert!(!check_completion(ReconcilePoint::CodePr, &make_snapshot(true, Some(IssuePhase::Code))).matches);
}

#[test]
fn what_kind_of_work_an_issue_is_stands_in_its_labels_and_before_its_commits() {
    let line =
        |labels: &[&str]| issue_headline(IssueKind::from_labels(labels.iter().copied()), "Mend the door");
    assert_eq!(line(&["triaged", "type/bug"]), "fix: Mend the door");
    assert_eq!(line(&["Type/Feature"]), "feat: Mend the door");
    assert_eq!(line(&["type/task"]), "chore: Mend the door");
    assert_eq!(line(&["bug"]), "fix: Mend the door", "as people write it");
    assert_eq!(line(&["enhancement"]), "feat: Mend the door", "as forges write it");
    assert_eq!(line(&["bug", "type/task"]), "chore: Mend the door", "the family comes first");
    assert_eq!(line(&["bug", "enhancement"]), "patch: Mend the door", "two that differ say nothing");
    assert_eq!(line(&["size/S"]), "patch: Mend the door");
    assert_eq!(issue_headline(None, "closes #7 and # 8"), "patch: closes 7 and # 8");
    for kind in IssueKind::ALL {
        assert_eq!(IssueKind::from_wire_name(kind.wire_name()), Some(kind));
    }
}

#[test]
fn an_issue_is_closed_by_words_only_where_they_are_read() {
    let of = |tracker: &str| IssueRef { tracker: tracker.to_owned(), number: 7 };
    assert_eq!(closing_words(&of("github"), true, false).as_deref(), Some("Closes #7"));
    assert_eq!(closing_words(&of("github"), true, true), None, "the base is no branch that is read for it");
    assert_eq!(closing_words(&of("local"), false, false), None, "a forge would close another one");
}

#[test]
fn only_what_is_on_the_base_as_far_as_can_be_seen_is_held_against_its_criteria() {
    assert!(
        !is_begun(&make_snapshot(true, None), false)
            && !is_begun(&make_snapshot(true, Some(IssuePhase::Issue)), false)
    );
    assert!(
        is_begun(&make_snapshot(true, Some(IssuePhase::Verify)), false)
            && is_begun(&make_snapshot(false, None), false)
    );
    assert!(is_begun(&make_snapshot(true, None), true), "it was verified before, and sent back");
    let commit = Some(Commit::new(&"c".repeat(40)));
    assert!(is_begun(&IssueSnapshot { commit, ..make_snapshot(true, None) }, false));
}

#[test]
fn a_forge_that_would_not_merge_is_asked_again_while_it_looks_and_not_when_it_has_seen_enough() {
    let names = || vec!["ci".to_owned()];
    let waited = |total_ms, asked_since_running| MergeWait { total_ms, asked_since_running };
    for (checks, base_has_some, at_most_ms) in [
        (CiStatus::Running(names()), true, 1_200_000),
        (CiStatus::Running(names()), false, 1_200_000),
        (CiStatus::Absent, true, 90_000),
    ] {
        assert!(may_merge_yet(&checks, base_has_some, waited(at_most_ms - 1, 9)), "{checks:?}");
        assert!(!may_merge_yet(&checks, base_has_some, waited(at_most_ms, 0)), "{checks:?}");
    }
    // Checks that took an hour and have just passed: the forge may not know it yet.
    for (checks, base_has_some) in
        [(CiStatus::Absent, false), (CiStatus::Passed, true), (CiStatus::Passed, false)]
    {
        assert!(may_merge_yet(&checks, base_has_some, waited(3_600_000, 3)), "{checks:?}");
        assert!(!may_merge_yet(&checks, base_has_some, waited(0, 4)), "{checks:?}");
    }
    for checks in [CiStatus::Failed(names()), CiStatus::PreExisting(names()), CiStatus::Broken(names())] {
        assert!(!may_merge_yet(&checks, true, waited(0, 0)), "{checks:?}: a person has to look");
    }
}

/// A task of issue 7 in this state.
fn make_task(state: TaskState, change: impl Fn(&mut Task)) -> Task {
    let mut spec = TaskSpec::new("Fix the door").expect("a title");
    spec.source = "local:#7".to_owned();
    let mut task = Task::from_spec(TaskId(1), spec, Timestamp(0));
    task.issue = Some(Box::default());
    task.state = state;
    change(&mut task);
    task
}

fn make_landing() -> LandingRecord {
    LandingRecord {
        commit: Commit::new("0123456789abcdef"),
        base_before: Commit::new("base"),
        tree: crate::Tree::new("tree"),
        proof: String::new(),
        at: Timestamp(0),
    }
}

fn looked_at(task: &mut Task, outcome: VerifyOutcome, items: &[(&str, VerifyResult)]) {
    let items = items.iter().map(|(words, result)| ((*words).to_owned(), *result, String::new()));
    let accepted = AcceptanceOutcome { items: items.collect(), outcome };
    task.issue.as_mut().expect("it follows one").accepted = Some(accepted);
}

fn explain_task(task: &Task) -> String {
    crate::explain_task_state(task, &[], None, &|_| "today".to_owned())
}

fn make_ending(kind: EndKind, code: EndCode, detail: &str) -> TaskState {
    TaskState::Ended(Ending { kind, code, detail: detail.to_owned() })
}

#[test]
fn what_is_left_of_an_issue_is_said_with_what_closes_it() {
    let done = || make_ending(EndKind::Done, EndCode::Landed, "");
    let items = [("it is there", VerifyResult::Pass), ("people like it", VerifyResult::Skipped)];
    let left = make_task(done(), |task| {
        task.landed = Some(make_landing());
        looked_at(task, VerifyOutcome::LeftOver(1), &items);
    });
    assert_eq!(
        explain_task(&left),
        "T1 is done: it landed as 0123456789 today, but issue #7 was left open for this: people like it (SKIPPED); look at what \
         is left; `landfall issue tick 7 BOX` ticks it, and `landfall auto 7` looks again and closes it."
    );
    let whole = make_task(done(), |task| {
        task.landed = Some(make_landing());
        looked_at(task, VerifyOutcome::Done, &items[..1]);
    });
    assert_eq!(explain_task(&whole), "T1 is done: it landed as 0123456789 today.");
    let split = make_task(done(), |task| {
        let part = |number| SubIssue {
            number,
            title: String::new(),
            size: None,
            done: true,
            at_verify: false,
            needs: Vec::new(),
        };
        task.issue.as_mut().expect("it follows one").parts = vec![part(8), part(9)];
    });
    assert_eq!(explain_task(&split), "T1 is done: what it is made of is done (#8, #9).");
}

#[test]
fn what_is_left_of_an_issue_that_landed_is_listed_with_who_does_it() {
    let done = || make_ending(EndKind::Done, EndCode::Landed, "");
    let items = [("it is there", VerifyResult::Pending), ("people like it", VerifyResult::Skipped)];
    let left = make_task(done(), |task| {
        task.landed = Some(make_landing());
        looked_at(task, VerifyOutcome::LeftOver(1), &items);
    });
    let now = |open, body: &str| LandedIssue {
        open,
        unplanned: false,
        phase: Some(IssuePhase::Verify),
        body: body.to_owned(),
        forge: false,
    };
    let hinted = "- [ ] <!-- verify: file_exists \"a\" --> it is there\n";
    let first = "it landed as 0123456789, and its issue #7 is not done\n";
    let both = format!("{hinted}- [ ] people like it\n");
    let ticks = "2. people like it: `landfall issue tick 7 2`\nonce they are ticked, `landfall auto 7` looks again, and closes it";
    for (now, expected) in [
        (Some(now(true, &both)), format!("1. it is there\n{ticks}")),
        (None, format!("1. it is there\n{ticks}")),
        (
            Some(now(true, hinted)),
            "1. it is there\n`landfall auto 7` looks at them again, and closes it if they hold".to_owned(),
        ),
        (
            Some(now(true, "- [x] people like it\n")),
            "every box is ticked: `landfall auto 7` looks again, and closes it".to_owned(),
        ),
        (Some(now(true, "")), "`landfall auto 7` looks at its acceptance".to_owned()),
    ] {
        assert_eq!(describe_open_boxes(&left, now.as_ref()), Some(format!("{first}{expected}")));
    }
    assert!(is_left(&now(true, &both)));
    assert!(!is_left(&now(false, &both)), "a person closed it");
    assert!(is_left(&LandedIssue { forge: true, ..now(false, &both) }), "what landed closed it");
    assert!(!is_left(&LandedIssue { forge: true, ..now(false, "- [x] people like it\n") }));
    assert!(!is_left(&LandedIssue { unplanned: true, ..now(false, &both) }));
    assert!(
        !is_left(&LandedIssue { phase: Some(IssuePhase::Code), ..now(true, &both) }),
        "it is worked on again"
    );
}

#[test]
fn a_rework_that_stops_says_what_did_not_hold() {
    let stopped = make_ending(EndKind::Blocked, EndCode::RecoveryFailed, "its agent committed nothing");
    let stopped = make_task(stopped, |task| {
        task.landed_before = vec![make_landing()];
        let items = [("it is there", VerifyResult::Fail), ("it is red", VerifyResult::Pass)];
        looked_at(task, VerifyOutcome::Reopen { iteration: 1 }, &items);
    });
    let expected = "its agent committed nothing; it had landed as 0123456789, and `it is there` did not hold";
    assert_eq!(
        explain_task(&stopped),
        format!(
            "T1 is blocked (recovery_failed): {expected}; `landfall auto --resume 7` continues from there."
        )
    );
    let summary = summarize_issue(&stopped, &IssueProgress::default()).expect("it follows an issue");
    assert_eq!(summary.why.as_deref(), Some(expected));
}

#[test]
fn one_way_on_is_offered_for_a_stop_and_it_works() {
    let blocked = |code, detail: &str| make_task(make_ending(EndKind::Blocked, code, detail), |_| {});
    let closed = blocked(EndCode::Tracker, "#7 was closed as not planned meanwhile; nothing was made yet");
    let reopen = "`landfall issue reopen 7`, then `landfall auto 7` continues from there";
    let resume = "`landfall auto --resume 7` continues from there";
    let landed = make_task(make_ending(EndKind::Failed, EndCode::Machine, "x"), |task| {
        task.landed = Some(make_landing())
    });
    let paused = TaskState::Waiting {
        wait: WaitReason::Pause,
        then: crate::StepName::new("code"),
        since: Timestamp(0),
    };
    for (task, again) in [
        (closed, reopen),
        (blocked(EndCode::Tracker, "#70 was closed as done meanwhile"), resume),
        (blocked(EndCode::AgentBlocked, "#7 was closed as done meanwhile"), resume),
        (landed, resume),
        (make_task(paused, |_| {}), resume),
    ] {
        let sentence = explain_task(&task);
        assert!(sentence.ends_with(&format!("; {again}.")), "{sentence}");
        assert!(!sentence.contains("landfall retry"), "{sentence}");
        let next = summarize_issue(&task, &IssueProgress::default()).expect("an issue").next;
        assert!(matches!(task.state, TaskState::Waiting { .. }) || next.starts_with(again), "{next}");
    }
}

#[test]
fn what_comes_next_ends_the_wait_and_leads_in_no_circle() {
    let next = |state: TaskState| {
        summarize_issue(&make_task(state, |_| {}), &IssueProgress::default()).expect("an issue").next
    };
    let waits = |wait: WaitReason| {
        next(TaskState::Waiting { wait, then: crate::StepName::new("code"), since: Timestamp(0) })
    };
    let by = |by: &[&str]| WaitReason::Blockers { by: by.iter().map(|it| (*it).to_owned()).collect() };
    assert_eq!(
        waits(by(&["#2", "#5"])),
        "`landfall auto --batch 2 5 7` does what it waits for first, and then #7"
    );
    assert_eq!(
        waits(by(&["#2", "other/place#5"])),
        "once #2 and other/place#5 is done, `landfall auto --resume 7` continues"
    );
    let asked = waits(WaitReason::Question { text: "Which port?".to_owned() });
    assert!(asked.starts_with("`landfall answer T1 "), "{asked}");
    let failed = next(make_ending(EndKind::Failed, EndCode::NothingChanged, "x"));
    assert!(!failed.contains("landfall why"), "the why stands just above: {failed}");
}
