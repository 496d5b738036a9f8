//! What we make of one run of the agent: signals, exit and nothing else.

use landfall_model::{Evidence, Exit, Finish, Said, Signal, Timestamp, Verdict, judge};

fn check<const N: usize>(seen: [Signal; N], exit: Exit, expect: Verdict) {
    let verdict = judge(&seen, &exit, &Evidence::default());
    assert_eq!(verdict, expect, "{seen:?} and {exit:?}");
}

fn complete() -> Signal {
    Signal::Said(Said::Complete)
}
fn blocked(reason: &str) -> Signal {
    Signal::Said(Said::Blocked(reason.to_owned()))
}
fn pending(question: &str) -> Signal {
    Signal::Said(Said::Pending(question.to_owned()))
}
fn quota() -> Signal {
    Signal::Quota { until: Some(Timestamp(9)) }
}
fn transient() -> Signal {
    Signal::Transient { detail: "overloaded".to_owned() }
}
fn tool() -> Signal {
    Signal::ToolUse { name: "edit".to_owned(), detail: String::new() }
}
fn finished(error: bool) -> Signal {
    Signal::Finished { how: if error { Finish::Error } else { Finish::Success }, text: String::new() }
}
fn crashed(detail: &str) -> Verdict {
    Verdict::Crashed { detail: detail.to_owned() }
}

const ODD_EXITS: [Exit; 5] = [Exit::Code(3), Exit::Signal(9), Exit::Deadline, Exit::Silent, Exit::Lost];

#[test]
fn a_control_word_outweighs_the_exit_in_both_directions() {
    check([complete()], Exit::Code(0), Verdict::Complete);
    for exit in ODD_EXITS {
        check([complete()], exit.clone(), Verdict::Complete);
        check([blocked("x")], exit.clone(), Verdict::Blocked { reason: "x".to_owned() });
        check([pending("x")], exit, Verdict::Pending { question: "x".to_owned() });
    }
    check([], Exit::Code(0), Verdict::Continue);
}

#[test]
fn what_we_killed_on_request_is_stopped_whatever_it_said() {
    check([complete()], Exit::Asked, Verdict::Stopped);
    check([blocked("x")], Exit::Asked, Verdict::Stopped);
    check([quota()], Exit::Asked, Verdict::Stopped);
}

#[test]
fn blocked_and_pending_outweigh_complete_and_the_last_of_the_two_wins() {
    let is_blocked = || Verdict::Blocked { reason: "b".to_owned() };
    let is_pending = || Verdict::Pending { question: "p".to_owned() };
    check([complete(), blocked("b")], Exit::Code(0), is_blocked());
    check([blocked("b"), complete()], Exit::Code(0), is_blocked());
    check([pending("p"), complete()], Exit::Code(0), is_pending());
    check([pending("p"), blocked("b")], Exit::Code(0), is_blocked());
    check([blocked("b"), pending("p")], Exit::Code(0), is_pending());
    check([Signal::Question("p".to_owned())], Exit::Code(0), is_pending());
    check([blocked("a"), blocked("b")], Exit::Code(0), is_blocked());
}

#[test]
fn resolved_is_complete_and_other_words_end_nothing() {
    check([Signal::Said(Said::Resolved)], Exit::Code(0), Verdict::Complete);
    for said in
        [Said::Progress(100), Said::DiscoveryLocal("x".to_owned()), Said::DiscoveryGlobal("x".to_owned())]
    {
        check([Signal::Said(said)], Exit::Code(0), Verdict::Continue);
    }
    check([Signal::Malformed { code: "X", text: "COMPLET".to_owned() }], Exit::Code(0), Verdict::Continue);
    check([Signal::PermissionAsked { what: "rm".to_owned() }], Exit::Code(0), Verdict::Continue);
    check([Signal::Text("COMPLETE".to_owned())], Exit::Code(0), Verdict::Continue);
}

#[test]
fn an_exit_without_a_word_is_named_for_what_it_was() {
    check([], Exit::Code(3), crashed("exit code 3"));
    check([], Exit::Signal(9), crashed("killed by signal 9"));
    check([finished(true)], Exit::Code(0), crashed("it reported an error of its own, exit code 0"));
    check([], Exit::Deadline, Verdict::OutOfTime);
    check([], Exit::Silent, Verdict::Stalled);
    check([], Exit::Lost, Verdict::Lost);
    let exit = Exit::NotStarted { detail: "no such program".to_owned(), hopeless: true };
    check([], exit, Verdict::NotStarted { detail: "no such program".to_owned(), hopeless: true });
}

#[test]
fn what_the_provider_said_explains_a_crash() {
    let is_quota = || Verdict::Quota { until: Some(Timestamp(9)) };
    let is_transient = || Verdict::Transient { detail: "overloaded".to_owned() };
    check([quota()], Exit::Code(1), is_quota());
    check([quota()], Exit::Signal(15), is_quota());
    check([quota()], Exit::Code(0), is_quota());
    check([quota(), finished(true)], Exit::Code(1), is_quota());
    check([transient()], Exit::Code(1), is_transient());
    check([transient(), finished(true)], Exit::Code(0), is_transient());
    check([transient(), quota()], Exit::Code(1), is_quota());
}

#[test]
fn a_trouble_of_the_provider_that_passed_explains_nothing() {
    check([transient(), tool()], Exit::Code(0), Verdict::Continue);
    check([transient(), tool()], Exit::Code(1), crashed("exit code 1"));
    check([transient(), finished(false)], Exit::Code(0), Verdict::Continue);
    check([quota(), tool()], Exit::Code(0), Verdict::Continue);
    check([quota(), finished(false)], Exit::Code(0), Verdict::Quota { until: Some(Timestamp(9)) });
    check([tool(), transient()], Exit::Code(1), Verdict::Transient { detail: "overloaded".to_owned() });
}

#[test]
fn waiting_for_the_provider_is_not_a_stall() {
    check([quota()], Exit::Silent, Verdict::Quota { until: Some(Timestamp(9)) });
    check([transient()], Exit::Silent, Verdict::Transient { detail: "overloaded".to_owned() });
    check([transient(), tool()], Exit::Silent, Verdict::Stalled);
}
