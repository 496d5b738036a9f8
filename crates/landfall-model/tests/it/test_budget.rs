//! What is spent, what it costs, and when that is enough.

use std::collections::BTreeMap;

use expect_test::expect;
use landfall_model::{
    AgentFinish, AgentUsage, Budget, BudgetDay, BudgetScope, BudgetUse as _, ContextUsage, Digest, Price,
    Prices, RunBudgets, Signal, SpendLog, Spending, Timestamp, UsageCounter, format_micro_usd,
};

const HOUR_MS: i64 = 60 * 60 * 1000;

fn usage(tokens_in: u64, tokens_cached: u64, tokens_out: u64, turns: u64) -> Signal {
    Signal::Usage(AgentUsage { tokens_in, tokens_cached, tokens_out, turns, ..AgentUsage::default() })
}

fn started(model: &str) -> Signal {
    Signal::Started { session: Some("s1".to_owned()), model: Some(model.to_owned()) }
}

fn tally(signals: &[Signal]) -> UsageCounter {
    let mut tally = UsageCounter::default();
    signals.iter().for_each(|signal| tally.hear(signal));
    tally
}

/// Dollars for a million tokens: read, read from a cache, written.
fn prices<const N: usize>(table: [(&str, u64, u64, u64); N]) -> Prices {
    let price = |(name, input, cached, output): (&str, u64, u64, u64)| {
        let usd = 1_000_000;
        (name.to_owned(), Price { input: input * usd, cached: cached * usd, output: output * usd })
    };
    Prices(table.map(price).into())
}

fn money(prices: &Prices, signals: &[Signal]) -> (u64, u64) {
    let usage = tally(signals).total_usage(prices);
    (usage.micro_usd, usage.micro_usd_priced)
}

// ── prices ───────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn the_longest_beginning_of_a_models_name_counts() {
    let table = prices([
        ("opus", 1, 0, 0),
        ("opus-4", 2, 0, 0),
        ("opus-4-6", 3, 0, 0),
        ("z", 9, 0, 0),
        ("", 7, 0, 0),
    ]);
    let of = |model: &str| table.for_model(model).map(|price| price.input / 1_000_000);
    assert_eq!(of("opus"), Some(1));
    assert_eq!(of("opus-3"), Some(1));
    assert_eq!(of("opus-4-5"), Some(2));
    assert_eq!(of("opus-4-6-20260101"), Some(3));
    assert_eq!(of("opus-5"), Some(1), "`opus-4-6` stands between them in order and does not fit");
    assert_eq!(of("zebra"), Some(9));
    assert_eq!(of("gpt"), Some(7), "the empty name fits all");
    assert_eq!(prices([("opus", 1, 0, 0)]).for_model("op"), None);
    assert_eq!(Prices::default().for_model("opus"), None);
}

#[test]
fn every_model_costs_what_the_longest_name_in_the_table_says() {
    let names = ["a", "ab", "abc", "b", "ba", "bab", "c-1", "c-1-x", "c-2"];
    let models =
        ["a", "ab", "abd", "abcd", "abb", "b", "bb", "baa", "babc", "c-1", "c-1-y", "c-1-xz", "c-3", "d", ""];
    for chosen in 0_u32..1 << names.len() {
        let named = names.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
        let price = |at: usize| Price { input: at as u64 + 1, cached: 0, output: 0 };
        let table = Prices(named.map(|(at, name)| ((*name).to_owned(), price(at))).collect());
        for model in models {
            let fits = table.0.iter().filter(|(name, _)| model.starts_with(name.as_str()));
            let longest = fits.max_by_key(|(name, _)| name.len()).map(|(_, price)| *price);
            assert_eq!(table.for_model(model), longest, "{model} in {:?}", table.0.keys());
        }
    }
}

#[test]
fn tokens_from_a_cache_cost_their_own_price() {
    let table = prices([("m", 3, 1, 10)]);
    assert_eq!(money(&table, &[started("m"), usage(1_000, 400, 200, 1)]), (600 * 3 + 400 + 200 * 10, 4_200));
    assert_eq!(
        money(&table, &[started("m"), usage(100, 400, 0, 1)]),
        (400, 400),
        "more cached than read is all cached"
    );
}

#[test]
fn the_agents_own_word_about_money_is_believed_over_the_table() {
    let table = prices([("m", 3, 1, 10)]);
    let used = usage(1_000, 0, 0, 1);
    assert_eq!(money(&table, &[started("m"), used.clone(), Signal::Cost(77)]), (77, 0));
    assert_eq!(
        money(&table, &[started("m"), used.clone(), Signal::Cost(50), Signal::Cost(77)]),
        (77, 0),
        "in all so far"
    );
    assert_eq!(
        money(&table, &[started("m"), used.clone(), Signal::Cost(0)]),
        (0, 0),
        "nothing is a price, too"
    );
    assert_eq!(money(&table, &[started("m"), used.clone()]), (3_000, 3_000));
    assert_eq!(money(&table, &[started("other"), used.clone()]), (0, 0));
    assert_eq!(money(&table, std::slice::from_ref(&used)), (0, 0), "no model, no price");
    let paid = Signal::Usage(AgentUsage { tokens_in: 1_000, micro_usd: 5, ..AgentUsage::default() });
    assert_eq!(money(&table, &[started("m"), paid]), (5, 0));
}

#[test]
fn usage_adds_up_over_a_run_and_nonsense_does_not_wrap() {
    let used =
        tally(&[usage(10, 5, 1, 1), usage(20, 0, 2, 1), usage(0, 0, 3, 0)]).total_usage(&Prices::default());
    assert_eq!((used.tokens_in, used.tokens_cached, used.tokens_out, used.turns), (30, 5, 6, 2));
    assert_eq!(used.total_tokens(), 36, "what came from the cache is part of what was read");
    let most = tally(&[started("m"), usage(u64::MAX, 0, u64::MAX, 1), usage(1, 0, 1, 1)]);
    let used = most.total_usage(&prices([("m", 1_000_000, 0, 1)]));
    assert_eq!((used.tokens_in, used.total_tokens(), used.micro_usd), (u64::MAX, u64::MAX, u64::MAX));
    let before = AgentUsage { tokens_in: 10, turns: 3, ..AgentUsage::default() };
    let since = AgentUsage { tokens_in: 25, turns: 1, ..AgentUsage::default() }.difference_from(before);
    assert_eq!((since.tokens_in, since.turns), (15, 0), "totals of a session never count backwards");
}

// ── what else a run leaves ───────────────────────────────────────────────────────────────────────────────

#[test]
fn a_tally_keeps_what_was_said_last() {
    let text = |words: &str| Signal::Text(words.to_owned());
    let tool = || Signal::ToolUse { name: "shell".to_owned(), detail: "ls".to_owned() };
    let tally = tally(&[
        started("m1"),
        Signal::Started { session: None, model: Some("m2".to_owned()) },
        text("first"),
        Signal::Context { used: 1, size: 10 },
        tool(),
        tool(),
        Signal::ToolDone,
        Signal::Compacted,
        Signal::Compacted,
        Signal::Context { used: 5, size: 10 },
        text("last words "),
        text("  \n"),
        Signal::Finished { how: AgentFinish::Success, text: String::new() },
    ]);
    assert_eq!((tally.tools_open(), tally.compactions(), tally.model()), (1, 2, Some("m2")));
    assert_eq!(
        (tally.context(), tally.last_words()),
        (Some(ContextUsage { used: 5, size: 10 }), "last words ")
    );
    let traces = tally.to_traces(&|words| Digest::new(words));
    assert_eq!((traces.session.as_deref(), traces.words), (Some("s1"), Some(Digest::new("last words"))));
    let silent = UsageCounter::default().to_traces(&|words| Digest::new(words));
    assert_eq!((silent.session, silent.words), (None, None), "no words are not the same words");
}

#[test]
fn more_tools_done_than_begun_are_none_open() {
    assert_eq!(tally(&[Signal::ToolDone, Signal::ToolDone]).tools_open(), 0);
    let tool = Signal::ToolUse { name: "shell".to_owned(), detail: String::new() };
    assert_eq!(tally(&[Signal::ToolDone, tool]).tools_open(), 1);
}

#[test]
fn long_last_words_are_cut_between_letters() {
    let words = tally(&[Signal::Text("ü".repeat(5_000))]).last_words().to_owned();
    assert_eq!(words.chars().count(), 4_000);
}

// ── budgets ──────────────────────────────────────────────────────────────────────────────────────────────

fn spent(micro_usd: u64, tokens: u64, turns: u64, time_ms: u64) -> Spending {
    Spending { usage: AgentUsage { tokens_in: tokens, micro_usd, turns, ..AgentUsage::default() }, time_ms }
}

#[test]
fn each_thing_is_bounded_by_itself_and_reached_is_used_up() {
    let none = Budget::default();
    let rows = [
        (
            Budget { micro_usd: Some(40_000_000), ..none },
            spent(39_999_999, 9, 9, 9),
            spent(40_123_456, 0, 0, 0),
        ),
        (Budget { tokens: Some(1_000), ..none }, spent(9, 999, 9, 9), spent(0, 1_000, 0, 0)),
        (Budget { turns: Some(5), ..none }, spent(9, 9, 4, 9), spent(0, 0, 7, 0)),
        (Budget { time_ms: Some(60_000), ..none }, spent(9, 9, 9, 59_999), spent(0, 0, 0, 3_723_000)),
    ];
    let mut told = String::new();
    for (budget, under, over) in rows {
        assert_eq!(budget.describe_used_up(under), None, "{budget:?}");
        told += &(budget.describe_used_up(over).expect("used up") + "\n");
        assert_eq!(none.describe_used_up(over), None, "no bound is never used up");
    }
    expect![[r#"
        $40.12 of $40.00
        1000 of 1000 tokens
        7 of 5 turns
        1h 2m of 1m of working time
    "#]]
    .assert_eq(&told);
    let nothing = Budget { turns: Some(0), ..none };
    assert!(nothing.describe_used_up(Spending::default()).is_some(), "nothing may be spent at all");
}

#[test]
fn money_reads_like_money() {
    let told = [0, 1, 4_999, 5_000, 10_000, 994_999, 999_999, 1_000_000, 12_345_678, u64::MAX]
        .map(format_micro_usd)
        .join(" ");
    expect!["$0.00 $0.000001 $0.004999 $0.01 $0.01 $0.99 $1.00 $1.00 $12.35 $18446744073709.55"]
        .assert_eq(&told);
}

#[test]
fn a_day_begins_at_its_midnight_and_a_run_where_it_was_started() {
    let mut ledger = SpendLog::default();
    let day = |from: i64| BudgetDay { from: Timestamp(from * HOUR_MS), to: Timestamp((from + 24) * HOUR_MS) };
    ledger.note(Timestamp(23 * HOUR_MS), spent(0, 0, 1, 10));
    ledger.note(Timestamp(24 * HOUR_MS - 1), spent(0, 0, 2, 10));
    ledger.note(Timestamp(24 * HOUR_MS), spent(0, 0, 4, 10));
    assert_eq!(ledger.spent_since(day(0).from).usage.turns, 7);
    assert_eq!(ledger.spent_since(day(24).from), spent(0, 0, 4, 10));
    assert_eq!(ledger.spent_since(day(48).from), Spending::default());
    let purse = RunBudgets {
        run: Budget { turns: Some(8), ..Budget::default() },
        day: Budget { turns: Some(6), ..Budget::default() },
    };
    let live = |turns: u64| spent(0, 0, turns, 0);
    assert_eq!(purse.exhausted_budget(&ledger, live(0), day(24)), None);
    let by_live = purse.exhausted_budget(&ledger, live(1), day(24)).expect("what runs counts, too");
    assert_eq!((by_live.scope, by_live.what.as_str()), (BudgetScope::Run, "8 of 8 turns"));
    let both = purse.exhausted_budget(&ledger, live(2), day(0)).expect("used up");
    assert_eq!(
        (both.scope, both.until),
        (BudgetScope::Day, Some(Timestamp(24 * HOUR_MS))),
        "time brings more of that"
    );
    ledger.run_started();
    assert_eq!(purse.exhausted_budget(&ledger, live(0), day(24)), None);
    assert_eq!(ledger.run(), Spending::default());
    assert_eq!(ledger.spent_since(day(0).from).usage.turns, 7, "another run is the same day");
}

#[test]
fn midnights_of_all_time_zones_are_told_apart() {
    for quarter in 0..4 * 24 {
        let midnight = quarter * HOUR_MS / 4;
        let mut ledger = SpendLog::default();
        ledger.note(Timestamp(midnight - 1), spent(0, 0, 1, 0));
        ledger.note(Timestamp(midnight), spent(0, 0, 2, 0));
        assert_eq!(ledger.spent_since(Timestamp(midnight)).usage.turns, 2, "midnight at {midnight}");
    }
}

#[test]
fn a_ledger_agrees_with_a_plain_sum_and_forgets_only_what_is_a_week_old() {
    let mut rng = crate::sim::Rng::new(7);
    let (mut ledger, mut notes) = (SpendLog::default(), Vec::new());
    let mut at = -3 * HOUR_MS; // clocks before 1970 are clocks as well
    for _ in 0..3_000 {
        at += i64::try_from(rng.below(20 * 60_000)).expect("small");
        let turns = rng.below(5) as u64;
        ledger.note(Timestamp(at), spent(0, 0, turns, 1));
        notes.push((at, turns));
        let midnight = at.div_euclid(24 * HOUR_MS) * 24 * HOUR_MS;
        for from in [midnight, midnight - 24 * HOUR_MS, midnight - 6 * 24 * HOUR_MS] {
            let sum: u64 = notes.iter().filter(|(at, _)| *at >= from).map(|(_, turns)| turns).sum();
            assert_eq!(ledger.spent_since(Timestamp(from)).usage.turns, sum, "from {from} at {at}");
        }
    }
    let all: BTreeMap<i64, u64> = notes.iter().copied().collect();
    assert_eq!(
        ledger.run().usage.turns,
        notes.iter().map(|(_, turns)| turns).sum::<u64>(),
        "{} notes",
        all.len()
    );
}

#[test]
fn what_is_spent_outside_of_a_run_is_of_the_day_alone() {
    let mut ledger = SpendLog::default();
    let spent = |time_ms| Spending { time_ms, ..Spending::default() };
    ledger.note(Timestamp(HOUR_MS), spent(1));
    ledger.note_aside(Timestamp(HOUR_MS), spent(10));
    assert_eq!((ledger.spent_since(Timestamp(0)).time_ms, ledger.run().time_ms), (11, 1));
}
