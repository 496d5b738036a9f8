//! Proposals: what is mended, what goes back, what holds.

use expect_test::{Expect, expect};
use landfall_model::proposal::{
    ExistingTask, ExistingTaskState, ProposalDependency, ProposalGroup, ProposedTask, TaskProposal,
    check_proposal,
};
use landfall_model::{TaskId, TaskSize};

/// A good task: `a: Title < needs @group`.
fn part(line: &str) -> ProposedTask {
    let (line, group) = line.split_once(" @").map_or((line, None), |(line, group)| (line, Some(group)));
    let (line, needs) = line.split_once(" < ").unwrap_or((line, ""));
    let (id, title) = line.split_once(": ").unwrap_or(("", line));
    ProposedTask {
        id: id.to_owned(),
        title: title.to_owned(),
        body: format!("About {title}."),
        criteria: vec![format!("`{title}` can be seen")],
        size: Some(TaskSize::S),
        needs: needs.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect(),
        group: group.map(str::to_owned),
        ..ProposedTask::default()
    }
}

fn group(id: &str) -> ProposalGroup {
    ProposalGroup { id: id.to_owned(), title: format!("Group {id}"), body: String::new() }
}

fn known() -> Vec<ExistingTask> {
    let known =
        |id, title: &str, standing| ExistingTask { id: TaskId(id), title: title.to_owned(), standing };
    vec![
        known(1, "Read the file", ExistingTaskState::Open),
        known(2, "Make the repository", ExistingTaskState::Landed),
        known(3, "Sing", ExistingTaskState::Over),
    ]
}

fn told(proposal: TaskProposal, max: usize) -> String {
    let checked = check_proposal(proposal, max, &known());
    let mut lines: Vec<String> = Vec::new();
    lines.extend(checked.problems.iter().map(|it| format!("problem: {it}")));
    lines.extend(checked.mended.iter().map(|it| format!("mended: {it}")));
    if checked.problems.is_empty() {
        for (place, task) in checked.plan.tasks.iter().enumerate() {
            let needs: Vec<String> = task
                .needs
                .iter()
                .map(|need| match need {
                    ProposalDependency::Here(place) => format!("#{place}"),
                    ProposalDependency::There(id) => id.to_string(),
                })
                .collect();
            let home = task.group.map(|it| format!(" in {}", checked.plan.groups[it].id)).unwrap_or_default();
            lines.push(format!("#{place} {} [{}]{home}", task.part.title, needs.join(",")));
        }
    }
    lines.join("\n")
}

fn story(tasks: &[&str], groups: &[&str], expected: Expect) {
    let tasks = tasks.iter().map(|line| part(line)).collect();
    let groups = groups.iter().map(|id| group(id)).collect();
    expected.assert_eq(&told(TaskProposal { groups, tasks }, 20));
}

#[test]
fn a_good_proposal_stands_as_it_is() {
    story(
        &["a: Parse the file", "b: Print it < a @g", "c: Document it < a,b,T1,t2 @g"],
        &["g"],
        expect![[r#"
            #0 Parse the file []
            #1 Print it [#0] in g
            #2 Document it [#0,#1,T1] in g"#]],
    );
}

#[test]
fn what_is_mechanical_is_mended_and_told() {
    story(
        &[
            "a: Parse the file < a",
            "b: parse  the FILE! < a",
            "c: Print it < b,a,z,T9 @nowhere",
            "d: Read the file",
            "e: Show it < d,g @g",
            "f: Hide it @g",
            "h: Make the repository",
        ],
        &["g", "empty"],
        expect![[r#"
            mended: `b` has the same title as `a` and was left out
            mended: `d` is there already as T1 and was left out
            mended: `h` is there already as T2 and was left out
            mended: `c` was in the group `nowhere`, which there is not; it is in none
            mended: `a` needed itself; that was taken out
            mended: `c` named `a` twice
            mended: `c` needed `z`, which there is not; that was taken out
            mended: `c` needed `T9`, which there is not; that was taken out
            mended: `e` needed the group `g`; it needs the tasks of the group instead
            mended: the group `empty` had no tasks and was left out
            #0 Parse the file []
            #1 Print it [#0]
            #2 Show it [#3,T1] in g
            #3 Hide it [] in g"#]],
    );
    let mut odd = part("a: Parse");
    odd.criteria = vec!["it  parses".to_owned(), " ".to_owned(), "It parses!".to_owned()];
    odd.tags = vec!["ok".to_owned(), "not a tag".to_owned()];
    odd.touches = vec!["src/parse.rs".to_owned(), "../elsewhere".to_owned()];
    odd.priority = Some(12);
    expect![[r#"
        mended: `a` had a criterion that was empty or there twice
        mended: `a` had `not a tag` as a tag, which cannot be one
        mended: `a` was to touch `../elsewhere`, which cannot be a path of the project
        mended: `a` had a priority that is out of range
        #0 Parse []"#]]
    .assert_eq(&told(TaskProposal { groups: vec![], tasks: vec![odd] }, 20));
}

#[test]
fn what_takes_thought_goes_back() {
    story(&[], &[], expect!["problem: there are no tasks in it"]);
    story(
        &["a: Read the file"],
        &[],
        expect![[r#"
        problem: every task in it is there already
        mended: `a` is there already as T1 and was left out"#]],
    );
    story(
        &["a: One < c", "b: Two < a", "c: Three < b", "d: Four < c"],
        &[],
        expect!["problem: the needs go in a circle: a → c → b → a"],
    );
    story(&["a: One", "a: Two"], &[], expect!["problem: two things have the id `a`"]);
    story(&["One"], &[], expect!["problem: task number 1 has no id"]);
    story(
        &["a: Parse it; print it < T3"],
        &[],
        expect![[r#"
        problem: `a` is about more than one thing (`;` in its title): make a task of each
        problem: `a` needs T3, which nobody goes on with"#]],
    );
    let crowd: Vec<String> = (1..=6).map(|it| format!("t{it}: Do thing {it} @g")).collect();
    story(
        &crowd.iter().map(String::as_str).collect::<Vec<_>>(),
        &["g"],
        expect!["problem: the group `g` has 6 tasks; at most 5 belong together"],
    );
    let bad = ProposedTask {
        criteria: (0..11).map(|it| format!("holds {it}")).chain(["It works.".to_owned()]).collect(),
        size: Some(TaskSize::XL),
        body: " ".to_owned(),
        title: "x".repeat(130),
        ..part("a: x")
    };
    let none = ProposedTask {
        criteria: vec![" ".to_owned()],
        size: None,
        body: "x".repeat(30_000),
        title: " ".to_owned(),
        ..part("b: y")
    };
    expect![[r#"
        problem: it has 2 tasks; at most 1 are wanted
        problem: the title of `a` has 130 characters; at most 120 make a line
        problem: `a` has no body: say what is wanted and where in the project
        problem: `a` is XL: split it into tasks that one run can finish
        problem: `a` has 12 criteria; with more than 10 it is more than one task
        problem: a criterion of `a` cannot be checked: `It works.`; say what is seen when it holds
        problem: `b` has no title
        problem: the body of `b` has 30000 bytes; at most 20000 fit one task
        problem: `b` has no size: XS, S, M or L
        problem: `b` has no criteria: say what can be checked when it is done"#]]
    .assert_eq(&told(TaskProposal { groups: vec![], tasks: vec![bad, none] }, 1));
}

#[test]
fn whatever_is_proposed_the_plan_that_stands_can_be_worked_through() {
    let mut seed = 7_u32;
    let mut next = |below: u32| {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        seed % below
    };
    let (mut stood, mut fell) = (0, 0);
    for round in 0..2_000 {
        let many = 1 + next(8);
        let ids = ["a", "b", "c", "d", "e", "f", "g", "h", "T1", "T2", "G", "nobody"];
        let tasks = (0..many)
            .map(|place| {
                let needs =
                    (0..next(3)).map(|_| ids[next(ids.len() as u32) as usize]).collect::<Vec<_>>().join(",");
                let home = if next(3) == 0 { " @G" } else { "" };
                part(&format!("{}: Title {} < {needs}{home}", ids[place as usize], next(12)))
            })
            .collect();
        let checked = check_proposal(TaskProposal { groups: vec![group("G")], tasks }, 20, &known());
        if !checked.problems.is_empty() {
            fell += 1;
            continue;
        }
        stood += 1;
        // Everything can be done in some order, and every place is one of the plan.
        let plan = &checked.plan;
        let mut done = vec![false; plan.tasks.len()];
        for _ in 0..plan.tasks.len() {
            for (place, task) in plan.tasks.iter().enumerate() {
                done[place] |= task.needs.iter().all(|need| match need {
                    ProposalDependency::Here(other) => done[*other],
                    ProposalDependency::There(id) => *id == TaskId(1),
                });
            }
        }
        assert!(done.iter().all(|done| *done), "round {round}: {plan:?}");
        assert!(plan.tasks.iter().all(|it| it.group.is_none_or(|group| group < plan.groups.len())));
    }
    assert!(stood > 200 && fell > 200, "{stood} stood, {fell} fell");
}
