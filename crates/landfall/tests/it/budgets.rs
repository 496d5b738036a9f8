//! Budgets from outside: what agents may spend, per attempt, task, run and day, and who says what they spent.

use std::time::{Duration, Instant};

use landfall_testkit::ScratchProject;
use serde_json::Value;

use crate::LANDFALL;

/// A script that works, says it is done, and reports this many dollars in the same breath: whether the budget is seen to
/// be used up before or after its end makes no difference.
fn spends(file: &str, dollars: u64) -> String {
    let usage =
        format!(r#"{{"landfall":"usage","tokens_in":900,"tokens_out":100,"micro_usd":{dollars}000000}}"#);
    format!(
        "say = [\"<landfall>COMPLETE</landfall>\", '{usage}']\n[[write]]\npath = \"{file}\"\ntext = \"work\\n\"\n"
    )
}

/// A script that reports this and then never ends by itself.
fn spends_and_hangs(usage: &str) -> String {
    format!("usage = {{ {usage} }}\nmisbehave = \"hang\"\n[[write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n")
}

fn scene(settings: &str) -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings(settings);
    scratch
}

fn status(scratch: &ScratchProject) -> Value {
    scratch.landfall(&["--json", "status"]).json()
}

/// A line of `budgets` or `spending` by its scope.
fn of_scope<'a>(list: &'a Value, scope: &str) -> &'a Value {
    let found = list.as_array().and_then(|list| list.iter().find(|it| it["scope"] == scope));
    found.unwrap_or(&Value::Null)
}

#[test]
fn a_day_that_is_spent_starts_no_agent_while_work_that_is_done_still_lands() {
    let scratch = scene("[run]\nslots = 1\n[budget]\nday_usd = 10");
    scratch.task("First", &spends("b.txt", 6), &[]);
    scratch.task("Second", &spends("c.txt", 6), &[]);
    scratch.task("Third", &spends("d.txt", 6), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("what is done lands", || {
        scratch.status("T2") == "done" && scratch.status("T3") == "waiting"
    });
    assert_eq!(scratch.status("T1"), "done");
    assert_eq!(scratch.wait_of("T3"), "budget");
    let why = scratch.why("T3");
    assert!(why.contains("the day's budget is used up ($12.00 of $10.00)"), "{why}");
    assert!(why.contains("from now"), "it counts down: {why}");
    let now = status(&scratch);
    assert_eq!(of_scope(&now["budgets"], "day")["used"], 12.0, "{now}");
    assert_eq!(of_scope(&now["spending"], "day")["usage"]["cost_usd"], 12.0, "{now}");
    assert_eq!(of_scope(&now["spending"], "run")["usage"]["cost_from"], "agent", "{now}");
    let text = scratch.landfall(&["status"]).ok();
    assert!(text.contains("budget  day: $12.00 of $10.00, used up"), "{text}");
    scratch.landfall(&["stop"]).ok();
    assert_eq!(run.wait(Duration::from_secs(20)), Some(0), "{}", scratch.heard());

    // While nobody drives, the journal says the same.
    assert_eq!((scratch.status("T3").as_str(), scratch.wait_of("T3").as_str()), ("waiting", "budget"));
    let listed = scratch.landfall(&["--json", "list", "--status", "waiting"]).json();
    assert_eq!(listed["tasks"][0]["id"], "T3", "{listed}");

    // A probe would cost, too.
    let probed = scratch.landfall(&["--json", "agents", "--probe"]).json()["profiles"][0]["probe"].clone();
    assert_eq!(probed["answer"], "failed", "{probed}");
    assert!(probed["detail"].as_str().is_some_and(|it| it.contains("budget is used up")), "{probed}");

    // Another run of the same day finds it spent, and waits for midnight.
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the run is under way", || !status(&scratch)["run"].is_null());
    scratch.eventually("it holds", || scratch.wait_of("T3") == "budget");
    scratch.landfall(&["stop"]).ok();
    assert_eq!(run.wait(Duration::from_secs(20)), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.facts("T3", "iteration-began"), Vec::<Value>::new(), "no agent has started");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_task_half_done_is_not_taken_up_again_on_a_day_that_is_spent() {
    let scratch = scene("[budget]\nday_usd = 10");
    let script = "[[iteration]]\nsay = \"more to do\"\nusage = { micro_usd = 12000000 }\n\
                  [[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n";
    scratch.task("Dear", script, &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("it holds", || scratch.wait_of("T1") == "budget");
    run.kill();
    // Recovery starts no agent either.
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the run is under way", || !status(&scratch)["run"].is_null());
    assert_eq!(scratch.wait_of("T1"), "budget", "{}", scratch.why("T1"));
    scratch.landfall(&["stop"]).ok();
    assert_eq!(run.wait(Duration::from_secs(20)), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.facts("T1", "iteration-began").len(), 1);
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_run_that_is_spent_ends_and_the_next_one_goes_on() {
    let scratch = scene("[run]\nslots = 1\n[budget]\nrun_usd = 10");
    scratch.task("First", &spends("b.txt", 12), &[]);
    scratch.task("Second", &spends("c.txt", 1), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(9), "{}\n{}", run.out, run.err);
    assert!(run.out.contains("held: the budget of the run is used up ($12.00 of $10.00)"), "{}", run.out);
    assert_eq!((scratch.status("T1").as_str(), scratch.status("T2").as_str()), ("done", "ready"));
    scratch.landfall(&["run"]).ok();
    assert_eq!(scratch.status("T2"), "done");
}

#[test]
fn a_task_that_is_spent_is_given_up_and_its_work_is_kept() {
    let scratch = scene("[budget]\ntask_usd = 10");
    let script = "usage = { tokens_in = 10, tokens_out = 1, micro_usd = 6000000 }\n\
                  [[iteration]]\nsay = \"one\"\n[[iteration.write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n\
                  [[iteration]]\nsay = \"two\"\n[[iteration]]\nsignal = \"complete\"\n";
    scratch.task("Dear", script, &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(8), "{}\n{}", run.out, run.err);
    let why = scratch.why("T1");
    assert!(why.contains("budget") && why.contains("$12.00 of $10.00"), "{why}");
    assert_eq!(scratch.facts("T1", "iteration-began").len(), 2, "the third did not begin");
    assert_ne!(scratch.kept("T1", "b.txt", "work\n"), Vec::<String>::new(), "the work is kept");
    let shown = scratch.landfall(&["show", "T1"]).ok();
    assert!(shown.contains("task: $12.00 of $10.00, used up"), "{shown}");
    assert!(shown.contains("$12.00, as the agent says"), "{shown}");
}

#[test]
fn an_agent_is_ended_as_soon_as_it_reports_more_than_is_left() {
    let cases = [
        ("task_usd = 2", "micro_usd = 3000000", "$3.00 of $2.00"),
        ("task_tokens = 1000", "tokens_in = 1500, tokens_out = 500", "2000 of 1000 tokens"),
    ];
    for (budget, usage, words) in cases {
        let scratch = scene(&format!("[budget]\n{budget}"));
        scratch.task("Greedy", &spends_and_hangs(usage), &[]);
        let began = Instant::now();
        let run = scratch.landfall(&["run"]);
        assert_eq!(run.code, Some(8), "{}\n{}", run.out, run.err);
        assert!(began.elapsed() < Duration::from_secs(40), "long before any silence");
        let why = scratch.why("T1");
        assert!(why.contains(words), "{why}");
        let detail = scratch.detail("T1");
        assert_eq!(detail["attempts"][0]["runs"].as_array().map(Vec::len), Some(1), "one report was enough");
        assert_eq!(scratch.left_behind(), []);
    }
}

#[test]
fn time_is_a_budget_too() {
    let scratch = scene("[budget]\ntask_time = \"1s\"");
    scratch.task("Slow", &spends_and_hangs("tokens_in = 1"), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(8), "{}\n{}", run.out, run.err);
    let why = scratch.why("T1");
    assert!(why.contains("budget") && why.contains("of working time"), "{why}");
}

#[test]
fn the_budget_of_an_attempt_ends_the_attempt_and_at_last_the_task() {
    let scratch = scene("[run]\nrestarts_max = 1\n[budget]\nattempt_usd = 2");
    scratch.task("Greedy", &spends_and_hangs("micro_usd = 3000000"), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(run.code, Some(8), "{}\n{}", run.out, run.err);
    let why = scratch.why("T1");
    assert!(why.contains("budget") && why.contains("$3.00 of $2.00"), "{why}");
    assert_eq!(scratch.facts("T1", "entered").len(), 2, "once, and once again");
}

#[test]
fn without_a_word_about_money_the_table_of_prices_says_what_it_cost() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.settings(
        "[agent.default]\nkind = \"script\"\nmodel = \"claude-sonnet-4-5\"\n\
         [agent.own]\nkind = \"script\"\nmodel = \"home-made-2\"\n[price.\"home-made\"]\ninput = 2\noutput = 4\n\
         [[verify.command]]\nname = \"tests\"\nrun = \"sh test.sh\"\n",
    );
    let script = |file: &str, usage: &str| {
        format!(
            "usage = {{ {usage} }}\nsignal = \"complete\"\n[[write]]\npath = \"{file}\"\ntext = \"work\\n\"\n"
        )
    };
    let tokens = "tokens_in = 1000000, tokens_out = 100000";
    scratch.task("Priced", &script("b.txt", tokens), &[]);
    scratch.task("Told", &script("c.txt", &format!("{tokens}, micro_usd = 250000")), &[]);
    scratch.task("Own", &script("d.txt", tokens), &["--agent", "own"]);
    scratch.landfall(&["run"]).ok();
    let usage = |task: &str| scratch.detail(task)["usage"].clone();
    let priced = usage("T1");
    assert_eq!(
        (priced["cost_usd"].as_f64(), priced["cost_from"].as_str()),
        (Some(4.5), Some("prices")),
        "{priced}"
    );
    let told = usage("T2");
    assert_eq!(
        (told["cost_usd"].as_f64(), told["cost_from"].as_str()),
        (Some(0.25), Some("agent")),
        "{told}"
    );
    let own = usage("T3");
    assert_eq!((own["cost_usd"].as_f64(), own["cost_from"].as_str()), (Some(2.4), Some("prices")), "{own}");
    let shown = scratch.landfall(&["show", "T1"]).ok();
    assert!(shown.contains("$4.50, by the table of prices"), "{shown}");
    assert!(shown.contains("by default with claude-sonnet-4-5"), "{shown}");
}
