//! Stories of agents as they are: sessions that are gone on with, budgets that are used up, circles, full contexts,
//! accounts that want a login.

use std::sync::Arc;

use expect_test::expect;
use landfall_model::{
    AgentDriveStyle, AgentExit, AgentSession, AgentUsage, Budget, BudgetScope, ContextUsage, ControlSignal,
    Digest, Event, ExhaustedBudget, SessionStart, Signal, Spending, Timestamp, Warning,
};

use crate::flows_used::{agent_once, flow, loops, on, polishes, step};
use crate::story::{
    Line, Scene, answers, but, cancel, cannot_start, check_in, crashes, driven, due, fails, falls_silent,
    fruitless, granted, has_a_passing_error, hits_quota, is_killed, is_refused, landing_begins, lands,
    passes, ran, retry, retry_fresh, says_complete, says_nothing, stop, taking, vanishes, working, workspace,
};

// ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────

/// A task whose agent is driven in the style `session`.
fn in_style(style: AgentDriveStyle) -> Scene {
    Scene::new(loops()).play_all([driven("main", style)])
}

fn session() -> Scene {
    in_style(AgentDriveStyle::Session)
}

/// The same run, which told its session.
fn of(id: &str, run: Line) -> Line {
    let id = id.to_owned();
    but(format!("session {id}"), run, move |run| run.traces.session = Some(id.clone()))
}

/// The same run, which left its context so full.
fn full(percent: u64, run: Line) -> Line {
    but(format!("{percent}% full"), run, move |run| {
        run.traces.context = Some(ContextUsage { used: percent * 2_000, size: 200_000 });
    })
}

fn misses_its_session() -> Line {
    ran("session gone", AgentExit::Code(1), [Signal::SessionGone])
}

#[test]
fn c01_a_session_is_resumed_in_the_next_iteration_and_in_the_next_step() {
    let task = check_in(
        Scene::new(polishes()).play_all([driven("main", AgentDriveStyle::Session)]),
        [
            granted(),
            workspace(),
            of("s1", says_nothing()),
            of("s1", says_complete()),
            granted(),
            fails(),
            granted(),
            workspace(),
            of("s1", says_complete()),
            granted(),
            passes(),
            granted(),
            workspace(),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            no word, session s1 → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s resuming s1
            COMPLETE, session s1 → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            checked: fail → ready for work [collected, verified, left fail with feedback]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → work a3: running 3 [workspace-made, iteration-began] ! spawn a3/3 for 1788s resuming s1
            COMPLETE, session s1 → ready for verify [iteration-ended complete, left done]
            granted → verify a4: checking [entered] ! check a4
            checked: pass → ready for polish [verified, left pass]
            granted → polish a5: preparing [entered] ! prepare a5
            workspace → polish a5: running 4 [workspace-made, iteration-began] ! spawn a5/4 for 1777s resuming s1
        "#]],
    );
    assert_eq!(task.session_start(), SessionStart::Resumed { session: "s1".to_owned(), compact: false });
}

#[test]
fn c01_in_the_fresh_style_every_run_is_new_whatever_session_it_tells() {
    check_in(
        in_style(AgentDriveStyle::Fresh),
        [granted(), workspace(), of("s1", says_nothing()), of("s2", says_nothing())],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            no word, session s1 → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
            no word, session s2 → work a1: running 3 [iteration-ended continue, iteration-began] ! spawn a1/3 for 1798s
        "#]],
    );
}

#[test]
fn an_agent_that_tells_no_session_is_started_anew() {
    check_in(
        session(),
        [granted(), workspace(), says_nothing(), says_nothing()],
        expect![[r#"
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
        no word → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
        no word → work a1: running 3 [iteration-ended continue, iteration-began] ! spawn a1/3 for 1798s
    "#]],
    );
}

#[test]
fn a_session_outlives_a_crash_a_pause_and_a_restart_of_the_engine() {
    check_in(
        session(),
        [
            granted(),
            workspace(),
            of("s1", says_nothing()),
            of("s1", crashes()),
            Line::Wait(60_000),
            due(),
            granted(),
            workspace(),
            Line::Restart,
            stop(),
            is_killed(),
            retry(),
            granted(),
            workspace(),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            no word, session s1 → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s resuming s1
            crash, session s1 → waits for backoff +530ms (the agent crashed (exit code 1)), then work [iteration-ended crashed, yielded crashed, waited]
            due → ready for work [resumed]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 2 [workspace-made, iteration-began] ! spawn a2/2 for 1798s resuming s1
            restart → work a2: running 2 ! spawn a2/2 for 1798s resuming s1
            stop → work a2: running 2 (pausing) [stop-asked] ! kill a2
            killed → waits for pause, then work [iteration-ended stopped, yielded stopped, waited]
            retry → ready for work [resumed]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → work a3: running 2 [workspace-made, iteration-began] ! spawn a3/2 for 1797s resuming s1
        "#]],
    );
}

#[test]
fn a_resumed_session_that_crashes_without_a_word_of_it_is_dropped_and_no_other_end_drops_it() {
    let resumed = || session().play_all([granted(), workspace(), of("s1", says_nothing())]);
    check_in(
        resumed(),
        [crashes(), Line::Wait(60_000), due(), granted(), workspace()],
        expect![[r#"
            crash → waits for backoff +530ms (the agent crashed (exit code 1)), then work [iteration-ended crashed, yielded crashed, waited]
            due → ready for work [resumed]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 2 [workspace-made, iteration-began] ! spawn a2/2 for 1798s
        "#]],
    );
    let ends = [
        vanishes(),
        falls_silent(),
        hits_quota(None),
        has_a_passing_error(),
        cannot_start(false),
        is_refused(),
        says_nothing(),
        of("s1", crashes()),
    ];
    for run in ends {
        let mut scene = resumed();
        let told = scene.play(&run);
        assert_eq!(scene.task.session.as_ref().map(|it| it.id.as_str()), Some("s1"), "{told:?}");
    }
}

#[test]
fn a_new_run_that_crashes_without_a_word_leaves_the_session_of_another_profile() {
    let scene = session().play_all([
        granted(),
        workspace(),
        of("s1", crashes()),
        driven("other", AgentDriveStyle::Session),
        Line::Wait(60_000),
        due(),
        granted(),
        workspace(),
        crashes(),
    ]);
    assert_eq!(scene.task.session.map(|session| session.id).as_deref(), Some("s1"));
}

#[test]
fn a_session_that_is_gone_is_no_crash_and_a_new_one_is_briefed() {
    let task = check_in(
        session(),
        [
            granted(),
            workspace(),
            of("s1", says_nothing()),
            misses_its_session(),
            granted(),
            workspace(),
            of("s2", says_nothing()),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            no word, session s1 → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s resuming s1
            session gone → ready for work [iteration-ended sessiongone, yielded sessiongone]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 2 [workspace-made, iteration-began] ! spawn a2/2 for 1798s
            no word, session s2 → work a2: running 3 [iteration-ended continue, iteration-began] ! spawn a2/3 for 1797s resuming s2
        "#]],
    );
    assert_eq!((task.counters.restarts, task.counters.sessions_lost), (0, 1));
    assert_eq!(task.counters.iterations, 2, "the run without its session is none");
    assert_eq!(task.feedback, [], "the new session was told");

    let told = Scene::new(loops())
        .play_all([
            driven("main", AgentDriveStyle::Session),
            granted(),
            workspace(),
            of("s1", says_nothing()),
            misses_its_session(),
        ])
        .task;
    let [feedback] = told.feedback.as_slice() else { panic!("one word: {:?}", told.feedback) };
    expect![[r#"
        Your earlier session is gone
        You start without its memory. What earlier runs came to is told here, what they did is in the commits of your branch: read them before you continue.
    "#]].assert_eq(&format!("{}\n{}\n", feedback.about, feedback.text));
    assert_eq!(told.past.len(), 2, "what the runs came to is there to be told");
    assert_eq!(told.session, None);
}

#[test]
fn an_agent_that_misses_a_session_nobody_asked_for_is_given_up_at_last() {
    let again = || [Line::Wait(60_000), due(), granted(), workspace(), taking(0, misses_its_session())];
    let mut scene = session();
    for line in [granted(), workspace(), taking(0, misses_its_session())] {
        scene.play(&line);
    }
    for _ in 0..10 {
        for line in again() {
            scene.play(&line);
        }
    }
    assert!(scene.task.is_over(), "after eleven tries it is {}", scene.task.state.name());
}

#[test]
fn a_retry_goes_on_with_the_session_and_a_fresh_one_drops_it() {
    let blocked =
        || session().play_all([granted(), workspace(), of("s1", crate::story::says_blocked("no access"))]);
    check_in(
        blocked(),
        [retry(), granted(), workspace()],
        expect![[r#"
        retry → ready [retried]
        granted → work a2: preparing [entered] ! prepare a2
        workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1800s resuming s1
    "#]],
    );
    check_in(
        blocked(),
        [retry_fresh(), granted(), workspace()],
        expect![[r#"
        retry fresh → ready [retried afresh]
        granted → work a2: preparing afresh [entered] ! prepare a2 afresh
        workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1800s
    "#]],
    );
    let waits = session().play_all([granted(), workspace(), of("s1", crashes())]);
    check_in(
        waits,
        [retry_fresh(), granted(), workspace()],
        expect![[r#"
        retry fresh → ready [ended, retried afresh]
        granted → work a2: preparing afresh [entered] ! prepare a2 afresh
        workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1800s
    "#]],
    );
}

#[test]
fn a_session_whose_workspace_is_gone_is_not_resumed() {
    let blocked = of("s1", crate::story::says_blocked("no access"));
    let removed = crate::story::workspace_removed();
    let task = session().play_all([granted(), workspace(), blocked, removed, retry(), granted()]).task;
    assert_eq!(task.workspace, None);
    assert_eq!(task.session_start(), SessionStart::New);
}

#[test]
fn a_session_without_room_is_not_resumed_by_a_retry() {
    let used_up = of("s1", ran("context", AgentExit::ContextUsedUp, []));
    let task = session().play_all([granted(), workspace(), used_up, retry()]).task;
    assert_eq!(task.session_start(), SessionStart::New);
}

#[test]
fn another_profile_does_not_get_the_session_and_its_own_takes_its_place() {
    let task = check_in(
        session(),
        [
            granted(),
            workspace(),
            of("s1", crashes()),
            driven("other", AgentDriveStyle::Session),
            Line::Wait(60_000),
            due(),
            granted(),
            workspace(),
            of("s2", says_nothing()),
            of("s2", crashes()),
            driven("main", AgentDriveStyle::Session),
            Line::Wait(60_000),
            due(),
            granted(),
            workspace(),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            crash, session s1 → waits for backoff +530ms (the agent crashed (exit code 1)), then work [iteration-ended crashed, yielded crashed, waited]
            due → ready for work [resumed]
            granted → work a2: preparing [bound, entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1799s
            no word, session s2 → work a2: running 2 [iteration-ended continue, iteration-began] ! spawn a2/2 for 1798s resuming s2
            crash, session s2 → waits for backoff +530ms (the agent crashed (exit code 1)), then work [iteration-ended crashed, yielded crashed, waited]
            due → ready for work [resumed]
            granted → work a3: preparing [bound, entered] ! prepare a3
            workspace → work a3: running 2 [workspace-made, iteration-began] ! spawn a3/2 for 1797s
        "#]],
    );
    assert_eq!(task.session.map(|session| session.profile).as_deref(), Some("other"));
}

#[test]
fn c11_a_session_with_little_room_is_asked_once_to_sum_itself_up() {
    let task = check_in(
        session(),
        [
            granted(),
            workspace(),
            full(81, of("s1", says_nothing())),
            full(82, of("s1", says_nothing())),
            full(95, of("s1", says_nothing())),
            full(20, of("s1", says_nothing())),
            full(90, of("s1", says_nothing())),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            no word, session s1, 81% full → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s resuming s1
            no word, session s1, 82% full → work a1: running 3 [iteration-ended continue, iteration-began] ! spawn a1/3 for 1798s resuming s1, to be summed up
            no word, session s1, 95% full → work a1: running 4 [iteration-ended continue, iteration-began] ! spawn a1/4 for 1797s resuming s1
            no word, session s1, 20% full → work a1: running 5 [iteration-ended continue, iteration-began] ! spawn a1/5 for 1796s resuming s1
            no word, session s1, 90% full → work a1: running 6 [iteration-ended continue, iteration-began] ! spawn a1/6 for 1795s resuming s1
        "#]],
    );
    assert!(task.session.is_some_and(|session| session.compacted));
    let another = check_in(
        session(),
        [
            granted(),
            workspace(),
            full(90, of("s1", says_nothing())),
            misses_its_session(),
            granted(),
            workspace(),
            full(90, of("s2", says_nothing())),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            no word, session s1, 90% full → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s resuming s1, to be summed up
            session gone → ready for work [iteration-ended sessiongone, yielded sessiongone]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 2 [workspace-made, iteration-began] ! spawn a2/2 for 1798s
            no word, session s2, 90% full → work a2: running 3 [iteration-ended continue, iteration-began] ! spawn a2/3 for 1797s resuming s2, to be summed up
        "#]],
    );
    assert_eq!(another.session_start(), SessionStart::Resumed { session: "s2".to_owned(), compact: false });
}

#[test]
fn what_a_session_has_used_adds_up_also_under_another_name_and_begins_anew_with_another() {
    let uses = |tokens: u64, run: Line| {
        but(format!("{tokens} tokens"), run, move |run| run.usage.tokens_in = tokens)
    };
    let scene = session().play_all([
        granted(),
        workspace(),
        uses(5, of("s1", says_nothing())),
        uses(7, full(30, of("s1", says_nothing()))),
        uses(1, of("s1", says_nothing())),
    ]);
    let usage = AgentUsage { tokens_in: 13, ..AgentUsage::default() };
    let context = Some(ContextUsage { used: 60_000, size: 200_000 });
    let kept =
        AgentSession { profile: "main".to_owned(), id: "s1".to_owned(), usage, context, compacted: false };
    assert_eq!(scene.task.session, Some(kept));
    let told = |scene: &Scene| {
        let session = scene.task.session.clone().expect("there is one");
        (session.id, session.usage.tokens_in, session.context)
    };
    let scene = scene.play_all([uses(3, of("s2", says_nothing()))]);
    assert_eq!(
        told(&scene),
        ("s2".to_owned(), 16, context),
        "it was resumed, and came back under another name"
    );
    let scene = scene.play_all([misses_its_session(), granted(), workspace()]);
    let scene = scene.play_all([uses(4, of("s3", says_nothing()))]);
    assert_eq!(told(&scene), ("s3".to_owned(), 4, None));
}

#[test]
fn how_full_a_context_is_never_exceeds_full() {
    for (used, size, percent) in [(0, 0, 0), (5, 0, 100), (1, 3, 33), (200, 100, 100), (u64::MAX, 1, 100)] {
        assert_eq!(ContextUsage { used, size }.used_percent(), percent, "{used} of {size}");
    }
}

#[test]
fn a_context_that_is_dropped_again_and_again_ends_the_task() {
    let task = check_in(
        working(),
        [ran("context", AgentExit::ContextUsedUp, [])],
        expect![[r#"
        context → Failed(context_budget: context budget insufficient: the agent dropped its context again and again within one run; split the task, or give it an agent with more room) [iteration-ended contextusedup, ended]
    "#]],
    );
    assert!(task.workspace.is_some(), "what it did stays");
}

// ── what it was refused, and what it found out ───────────────────────────────────────────────────────────

#[test]
fn what_an_agent_was_refused_leave_for_is_counted_over_all_its_runs() {
    let asks = |what: &str| Signal::PermissionAsked { what: what.to_owned() };
    let scene = session().play_all([
        granted(),
        workspace(),
        ran("refused twice", AgentExit::Code(0), [asks("rm"), asks("curl")]),
        ran("refused and crashed", AgentExit::Code(1), [asks("rm")]),
        Line::Wait(60_000),
        due(),
        granted(),
        workspace(),
        says_nothing(),
    ]);
    assert_eq!(scene.task.counters.permission_denials, 3);
}

#[test]
fn an_agent_that_waits_for_leave_in_vain_asks_a_person() {
    let asks = Signal::PermissionAsked { what: "rm -r target".to_owned() };
    let task = check_in(
        working(),
        [ran("wants leave", AgentExit::Silent, [asks]), answers("yes, do"), granted(), workspace()],
        expect![[r#"
            wants leave → waits for an answer to `the agent wants leave to go on: rm -r target`, then work [iteration-ended pending, yielded asked, waited]
            answer `yes, do` → ready for work [resumed]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 2 [workspace-made, iteration-began] ! spawn a2/2 for 1799s
        "#]],
    );
    assert_eq!((task.counters.stalls_total, task.counters.permission_denials), (0, 1));
}

#[test]
fn what_an_agent_found_out_is_a_warning_for_people() {
    let found = [
        Signal::Said(ControlSignal::DiscoveryLocal("the tests need a database".to_owned())),
        Signal::Said(ControlSignal::DiscoveryGlobal("the linter is slow".to_owned())),
        Signal::Said(ControlSignal::Progress(50)),
        Signal::Said(ControlSignal::Complete),
    ];
    let task = check_in(
        working(),
        [ran("discoveries", AgentExit::Code(0), found)],
        expect![[r#"
            discoveries → ready for verify [iteration-ended complete, warned: the agent found out: the tests need a database, warned: the agent found out, for every task: the linter is slow, left done]
        "#]],
    );
    let global = |warning: &Warning| matches!(warning, Warning::Discovery { global: true, .. });
    assert_eq!(task.warnings.iter().map(global).collect::<Vec<_>>(), [false, true]);
}

// ── circles ──────────────────────────────────────────────────────────────────────────────────────────────

fn loops_about() -> Line {
    ran("loops", AgentExit::Looping, [])
}

/// The same run, which ended in these words.
fn saying(words: &str, run: Line) -> Line {
    let words = words.to_owned();
    but(format!("saying `{words}`"), run, move |run| run.traces.words = Some(Digest::new(&words)))
}

#[test]
fn a_loop_is_told_to_the_agent_and_the_third_is_its_end() {
    let task = check_in(
        working(),
        [
            fruitless(loops_about()),
            granted(),
            workspace(),
            fruitless(loops_about()),
            granted(),
            workspace(),
            fruitless(loops_about()),
        ],
        expect![[r#"
            loops, no commit → ready for work [iteration-ended looping, yielded looping]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1799s
            loops, no commit → ready for work [iteration-ended looping, yielded looping]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → work a3: running 1 [workspace-made, iteration-began] ! spawn a3/1 for 1798s
            loops, no commit → Failed(reasoning_loop: the agent said and did the same over and over, and telling it so did not help) [iteration-ended looping, ended]
        "#]],
    );
    assert_eq!((task.counters.loops, task.counters.restarts, task.counters.iterations), (3, 0, 0));
}

#[test]
fn a_loop_is_told_in_words_that_help() {
    let task = working().play_all([loops_about()]).task;
    let [feedback] = task.feedback.as_slice() else { panic!("one word: {:?}", task.feedback) };
    expect![[r#"
        You are going round in a circle
        You said and did the same thing several times and nothing came of it. Stop repeating it. Say in one sentence what you were trying to reach and why it does not work, then take another way. If there is none, signal BLOCKED with the reason.
    "#]].assert_eq(&format!("{}\n{}\n", feedback.about, feedback.text));
}

#[test]
fn a_commit_by_its_own_word_forgives_loops() {
    let again = || [fruitless(loops_about()), granted(), workspace()];
    let [a, b, c] = again();
    let [d, e, f] = again();
    let [g, h, i] = again();
    let task = working().play_all([a, b, c, d, e, f, says_nothing(), g, h, i]).task;
    assert_eq!((task.counters.loops, task.is_over()), (1, false));
    let [a, b, c] = again();
    let [d, e, f] = again();
    let over = working().play_all([a, b, c, d, e, f, fruitless(says_nothing()), fruitless(loops_about())]);
    assert!(over.task.is_over(), "a run without a commit forgives nothing");
}

#[test]
fn three_runs_that_end_in_the_same_words_and_leave_nothing_are_a_loop() {
    check_in(
        working(),
        [
            fruitless(saying("Done.", says_nothing())),
            fruitless(saying("Done.", says_nothing())),
            fruitless(saying("Done.", says_nothing())),
        ],
        expect![[r#"
            no word, saying `Done.`, no commit → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
            no word, saying `Done.`, no commit → work a1: running 3 [iteration-ended continue, iteration-began] ! spawn a1/3 for 1798s
            no word, saying `Done.`, no commit → ready for work [iteration-ended looping, yielded looping]
        "#]],
    );
}

#[test]
fn a_loop_over_runs_is_counted_like_one_within_a_run() {
    let same = || fruitless(saying("Done.", says_nothing()));
    let mut scene = working();
    for _ in 0..12 {
        if scene.task.step().is_some() && matches!(scene.task.state, landfall_model::TaskState::Ready { .. })
        {
            scene.play(&granted());
            scene.play(&workspace());
        }
        scene.play(&same());
    }
    assert!(scene.task.is_over(), "the same words twelve times, and {:?}", scene.task.counters);
}

#[test]
fn the_same_words_are_no_loop_with_a_commit_with_other_words_between_or_with_none_at_all() {
    let same = || saying("Done.", says_nothing());
    let other = || fruitless(saying("Hm.", says_nothing()));
    let stories = [
        [same(), same(), same(), same()],
        [fruitless(same()), fruitless(same()), other(), fruitless(same())],
        [fruitless(same()), fruitless(same()), same(), fruitless(same())],
        [
            fruitless(says_nothing()),
            fruitless(says_nothing()),
            fruitless(says_nothing()),
            fruitless(says_nothing()),
        ],
    ];
    for story in stories {
        let scene = working().play_all(story);
        let loops = scene.journal.iter().filter(|(_, event)| {
            matches!(event, Event::Yielded { why: landfall_model::YieldReason::Looping, .. })
        });
        assert_eq!(loops.count(), 0);
    }
}

#[test]
fn the_same_words_in_another_step_are_no_loop() {
    let once = |name, to| step(name, agent_once(), [on("done", to)]);
    let flow = flow("three", [once("look", "plan"), once("plan", "check"), once("check", "end")]);
    let mut scene = Scene::new(Arc::new(flow));
    for _ in 0..3 {
        for line in [granted(), workspace(), fruitless(saying("Done.", says_nothing()))] {
            scene.play(&line);
        }
    }
    assert!(scene.task.is_over(), "each step was done once, and it is {}", scene.task.state.name());
}

// ── logins ───────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_login_is_waited_for_and_any_answer_goes_on() {
    let task = check_in(
        working(),
        [is_refused(), due(), Line::Restart, answers("done"), granted(), workspace(), is_refused()],
        expect![[r#"
            401 → waits for a login to default (token expired), then work [iteration-ended unauthorized, yielded login, waited]
            due ✗ T1 is waiting for login: no wait is over
            restart → waits for a login to default (token expired), then work
            answer `done` → ready for work [resumed]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1799s
            401 → waits for a login to default (token expired), then work [iteration-ended unauthorized, yielded login, waited]
        "#]],
    );
    let counters = &task.counters;
    assert_eq!((counters.logins, counters.restarts, counters.iterations), (2, 0, 0));
}

#[test]
fn a_wait_for_a_login_can_be_retried_paused_and_cancelled() {
    let waits = || working().play_all([is_refused()]);
    check_in(
        waits(),
        [retry()],
        expect![[r#"
        retry → ready for work [resumed]
    "#]],
    );
    check_in(
        waits(),
        [stop(), retry()],
        expect![[r#"
        stop → waits for pause, then work [waited]
        retry → ready for work [resumed]
    "#]],
    );
    check_in(
        waits(),
        [cancel()],
        expect![[r#"
        cancel → Cancelled(person: no longer wanted) [ended]
    "#]],
    );
    check_in(
        waits(),
        [retry_fresh()],
        expect![[r#"
        retry fresh → ready [ended, retried afresh]
    "#]],
    );
}

// ── budgets ──────────────────────────────────────────────────────────────────────────────────────────────

/// The same run, which spent this.
fn spending(word: &str, usage: AgentUsage, run: Line) -> Line {
    but(word, run, move |run| run.usage = usage)
}

/// One budget of each thing, with a run that uses half of it.
fn budgets() -> [(&'static str, Budget, AgentUsage, u64); 4] {
    let none = AgentUsage::default();
    [
        (
            "$1",
            Budget { micro_usd: Some(2_000_000), ..Budget::default() },
            AgentUsage { micro_usd: 1_000_000, ..none },
            10,
        ),
        (
            "500 tokens",
            Budget { tokens: Some(1_000), ..Budget::default() },
            AgentUsage { tokens_in: 400, tokens_cached: 300, tokens_out: 100, ..none },
            10,
        ),
        ("5 turns", Budget { turns: Some(10), ..Budget::default() }, AgentUsage { turns: 5, ..none }, 10),
        ("5 minutes", Budget { time_ms: Some(600_000), ..Budget::default() }, none, 300_000),
    ]
}

#[test]
fn the_budget_of_a_task_ends_it_before_the_next_run_begins() {
    let mut told = String::new();
    for (word, budget, usage, took_ms) in budgets() {
        let mut scene = Scene::new(loops()).limited(|limits| limits.task_budget = budget);
        let run = || taking(took_ms, spending(word, usage, says_nothing()));
        for line in [granted(), workspace(), run(), run()] {
            told.extend(scene.play(&line).map(|line| line + "\n"));
        }
    }
    expect![[r#"
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
        no word, $1 → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
        no word, $1 → Timeout(budget: its agent never signalled that it is complete; the budget of the task is used up: $2.00 of $2.00) [iteration-ended continue, ended]
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
        no word, 500 tokens → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
        no word, 500 tokens → Timeout(budget: its agent never signalled that it is complete; the budget of the task is used up: 1000 of 1000 tokens) [iteration-ended continue, ended]
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
        no word, 5 turns → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
        no word, 5 turns → Timeout(budget: its agent never signalled that it is complete; the budget of the task is used up: 10 of 10 turns) [iteration-ended continue, ended]
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
        no word, 5 minutes → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1500s
        no word, 5 minutes → Timeout(budget: its agent never signalled that it is complete; the budget of the task is used up: 10m of 10m of working time) [iteration-ended continue, ended]
    "#]].assert_eq(&told);
}

#[test]
fn the_budget_of_a_task_counts_every_attempt_and_ends_no_finished_work() {
    let scene = || {
        let (_, budget, ..) = budgets()[2];
        Scene::new(loops()).limited(move |limits| limits.task_budget = budget)
    };
    let five = AgentUsage { turns: 5, ..AgentUsage::default() };
    check_in(
        scene(),
        [
            granted(),
            workspace(),
            spending("5 turns", five, crashes()),
            Line::Wait(60_000),
            due(),
            granted(),
            workspace(),
            spending("5 turns", five, says_complete()),
            granted(),
            passes(),
            granted(),
            landing_begins(),
            lands(),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            crash, 5 turns → waits for backoff +530ms (the agent crashed (exit code 1)), then work [iteration-ended crashed, yielded crashed, waited]
            due → ready for work [resumed]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1799s
            COMPLETE, 5 turns → ready for verify [iteration-ended complete, left done]
            granted → verify a3: checking [entered] ! check a3
            checked: pass → ready for land [collected, verified, left pass]
            granted → land a4: queued [entered]
            landing begins → land a4: landing [landing-began]
            landed → ready for report [landed, left landed]
        "#]],
    );
    check_in(
        scene(),
        [
            granted(),
            workspace(),
            spending("10 turns", five.plus(five), says_complete()),
            granted(),
            fails(),
            granted(),
            workspace(),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
            COMPLETE, 10 turns → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            checked: fail → ready for work [collected, verified, left fail with feedback]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → Timeout(budget: its checks are still red (`tests` fails (exit 1), and writes: tests said so); the budget of the task is used up: 10 of 10 turns) [workspace-made, ended]
        "#]],
    );
}

#[test]
fn the_budget_of_an_attempt_ends_the_attempt_and_another_has_its_own() {
    let mut told = String::new();
    for (word, budget, usage, took_ms) in budgets() {
        let mut scene = Scene::new(loops()).limited(|limits| limits.attempt_budget = budget);
        let run = || taking(took_ms, spending(word, usage, says_nothing()));
        for line in
            [granted(), workspace(), run(), run(), Line::Wait(60_000), due(), granted(), workspace(), run()]
        {
            told.extend(scene.play(&line).map(|line| line + "\n"));
        }
        let spent = Spending { usage, time_ms: took_ms };
        assert_eq!(scene.task.counters.attempt, spent, "the new attempt counts its own");
    }
    expect![[r#"
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
        no word, $1 → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
        no word, $1 → waits for backoff +530ms (the budget of the attempt is used up: $2.00 of $2.00), then work [iteration-ended continue, yielded overspent, waited]
        due → ready for work [resumed]
        granted → work a2: preparing [entered] ! prepare a2
        workspace → work a2: running 3 [workspace-made, iteration-began] ! spawn a2/3 for 1799s
        no word, $1 → work a2: running 4 [iteration-ended continue, iteration-began] ! spawn a2/4 for 1799s
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
        no word, 500 tokens → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
        no word, 500 tokens → waits for backoff +530ms (the budget of the attempt is used up: 1000 of 1000 tokens), then work [iteration-ended continue, yielded overspent, waited]
        due → ready for work [resumed]
        granted → work a2: preparing [entered] ! prepare a2
        workspace → work a2: running 3 [workspace-made, iteration-began] ! spawn a2/3 for 1799s
        no word, 500 tokens → work a2: running 4 [iteration-ended continue, iteration-began] ! spawn a2/4 for 1799s
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
        no word, 5 turns → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1799s
        no word, 5 turns → waits for backoff +530ms (the budget of the attempt is used up: 10 of 10 turns), then work [iteration-ended continue, yielded overspent, waited]
        due → ready for work [resumed]
        granted → work a2: preparing [entered] ! prepare a2
        workspace → work a2: running 3 [workspace-made, iteration-began] ! spawn a2/3 for 1799s
        no word, 5 turns → work a2: running 4 [iteration-ended continue, iteration-began] ! spawn a2/4 for 1799s
        granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
        workspace → work a1: running 1 [workspace-made, iteration-began] ! spawn a1/1 for 1800s
        no word, 5 minutes → work a1: running 2 [iteration-ended continue, iteration-began] ! spawn a1/2 for 1500s
        no word, 5 minutes → waits for backoff +530ms (the budget of the attempt is used up: 10m of 10m of working time), then work [iteration-ended continue, yielded overspent, waited]
        due → ready for work [resumed]
        granted → work a2: preparing [entered] ! prepare a2
        workspace → work a2: running 3 [workspace-made, iteration-began] ! spawn a2/3 for 1200s
        no word, 5 minutes → work a2: running 4 [iteration-ended continue, iteration-began] ! spawn a2/4 for 900s
    "#]].assert_eq(&told);
}

#[test]
fn attempts_that_all_use_up_their_budget_are_not_made_for_ever() {
    let over = || {
        let exit = AgentExit::OverBudget { scope: BudgetScope::Attempt, what: "$2.00 of $2.00".to_owned() };
        let usage = AgentUsage { micro_usd: 2_000_000, ..AgentUsage::default() };
        taking(10, spending("$2", usage, ran("over budget", exit, [])))
    };
    let mut scene = working();
    for _ in 0..20 {
        for line in [over(), Line::Wait(60_000), due(), granted(), workspace()] {
            scene.play(&line);
        }
    }
    assert!(scene.task.is_over(), "twenty attempts over their budget, and {}", scene.task.state.name());
}

#[test]
fn a_run_that_is_stopped_over_a_budget_is_named_for_whose_it_was() {
    for scope in BudgetScope::ALL {
        let exit = AgentExit::OverBudget { scope, what: "900 of 800 turns".to_owned() };
        let mut scene = working();
        let told = scene.play(&ran(scope.word(), exit, [])).expect("news is told");
        match scope {
            BudgetScope::Attempt => expect!["attempt → waits for backoff +530ms (the budget of the attempt is used up: 900 of 800 turns), then work [iteration-ended overbudget, yielded overspent, waited]"].assert_eq(&told),
            BudgetScope::Task => expect!["task → Timeout(budget: its agent never signalled that it is complete; the budget of the task is used up: 900 of 800 turns) [iteration-ended overbudget, ended]"].assert_eq(&told),
            BudgetScope::Run => expect!["run → ready for work [iteration-ended overbudget, yielded budget]"].assert_eq(&told),
            BudgetScope::Day => expect!["day → ready for work [iteration-ended overbudget, yielded budget]"].assert_eq(&told),
        }
        let counters = &scene.task.counters;
        assert_eq!((counters.iterations, counters.restarts, counters.transients), (0, 0, 0));
    }
}

fn day_is_spent() -> Line {
    let what = "$40.12 of $40.00".to_owned();
    Line::Spent(Some(ExhaustedBudget { scope: BudgetScope::Day, what, until: Some(Timestamp(86_400_000)) }))
}

#[test]
fn when_the_days_budget_is_used_up_no_run_begins_and_the_next_day_it_goes_on() {
    let task = check_in(
        Scene::new(loops()),
        [
            granted(),
            day_is_spent(),
            workspace(),
            Line::Spent(None),
            granted(),
            workspace(),
            day_is_spent(),
            says_nothing(),
            Line::Spent(None),
            granted(),
            workspace(),
            day_is_spent(),
            says_complete(),
        ],
        expect![[r#"
            granted → work a1: preparing afresh [bound, entered] ! prepare a1 afresh
            workspace → ready for work [workspace-made, yielded budget]
            granted → work a2: preparing [entered] ! prepare a2
            workspace → work a2: running 1 [workspace-made, iteration-began] ! spawn a2/1 for 1800s
            no word → ready for work [iteration-ended continue, yielded budget]
            granted → work a3: preparing [entered] ! prepare a3
            workspace → work a3: running 2 [workspace-made, iteration-began] ! spawn a3/2 for 1799s
            COMPLETE → ready for verify [iteration-ended complete, left done]
        "#]],
    );
    assert_eq!((task.counters.iterations, task.counters.restarts), (2, 0));
}

#[test]
fn verification_and_landing_go_on_when_the_days_budget_is_used_up() {
    check_in(
        working(),
        [
            day_is_spent(),
            says_complete(),
            granted(),
            passes(),
            granted(),
            landing_begins(),
            lands(),
            granted(),
        ],
        expect![[r#"
            COMPLETE → ready for verify [iteration-ended complete, left done]
            granted → verify a2: checking [entered] ! check a2
            checked: pass → ready for land [collected, verified, left pass]
            granted → land a3: queued [entered]
            landing begins → land a3: landing [landing-began]
            landed → ready for report [landed, left landed]
            granted → report a4: reporting [entered] ! report a4
        "#]],
    );
}

#[test]
fn a_retry_after_a_used_up_budget_is_the_same_for_everything_that_can_be_spent() {
    let runs_again = budgets().map(|(word, budget, usage, took_ms)| {
        let mut scene = Scene::new(loops()).limited(|limits| limits.task_budget = budget);
        let run = || taking(took_ms, spending(word, usage, says_nothing()));
        for line in [granted(), workspace(), run(), run(), retry(), granted(), workspace()] {
            scene.play(&line);
        }
        (word, !scene.task.is_over())
    });
    assert!(runs_again.iter().all(|(_, again)| *again == runs_again[0].1), "{runs_again:?}");
}
