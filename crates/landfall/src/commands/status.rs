//! `landfall status`: what goes on, what waits, and how the project stands.

use landfall_api::{
    AccountLine, AccountStanding, ActiveLine, BudgetScope, ClashLine, Nothing, QueueBrief, Status,
    StatusReport, TaskActivity, TypedService,
};
use landfall_app::clock;
use landfall_text::control_chars::escape_line;
use landfall_text::quote_shell_word;

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::table::Table;
use crate::tone::{TextTone, paint_text};

/// Show what runs, what waits and why
#[derive(clap::Args)]
pub struct Args {}

pub fn run(Args {}: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let report = context.open_service()?.status(Nothing {})?;
    context.print_answer(&*report, |report| {
        let (_, others) = landfall_app::list_other_bases(&context.at);
        let line = |base: &String| {
            let (base, word) = (escape_line(base), quote_shell_word(&escape_line(base)));
            format!("base    work lands on `{base}` too: `landfall --base {word} status`\n")
        };
        let others = others.iter().map(line);
        render_status(report, clock::now_ms()) + &others.collect::<String>()
    })?;
    Ok(CliExit::Ok)
}

fn render_status(report: &StatusReport, now_ms: i64) -> String {
    let mut text = String::new();
    let since = |at: i64| landfall_text::format_duration(u64::try_from(now_ms - at).unwrap_or(0));
    match &report.run {
        Some(run) => {
            let slots = landfall_text::pluralize(run.slots.into(), "slot");
            let mode = escape_line(&run.mode);
            text += &format!("run     {} {mode} for {} with {slots}\n", run.run, since(run.since_ms));
        }
        None => text += "run     none; `landfall run` starts one\n",
    }
    if let Some(pilot) = &report.pilot {
        let label =
            if pilot.pause.is_some() { paint_text(TextTone::Warn, "PAUSED ") } else { "pilot  ".to_owned() };
        text += &format!("{label} {}\n", escape_line(&pilot.text));
    }
    if let Some(sprint) = &report.sprint {
        text += &format!("sprint  {}\n", escape_line(sprint));
    }
    if let Some(queue) = &report.queue {
        text += &format!("queue   {}\n", escape_line(&queue_summary(queue)));
        if let Some(hold) = &queue.hold {
            let label = paint_text(TextTone::Warn, "HELD   ");
            text += &format!("{label} {}; {}\n", escape_line(&hold.reason), escape_line(&hold.hint));
        }
    }
    if !report.clashes.is_empty() {
        let pairs: Vec<String> = report.clashes.iter().map(clash_text).collect();
        text += &format!("clash   {} do not fit together as they stand\n", escape_line(&pairs.join(", ")));
    }
    if report.reviews_owed > 0 {
        let many = landfall_text::pluralize(report.reviews_owed, "landed task");
        text += &format!("review  {many} to look at when there is time; `landfall review` lists them\n");
    }
    if report.issues_left > 0 {
        let (many, what) = (
            landfall_text::pluralize(report.issues_left, "landed issue"),
            "boxes to tick, or to be looked at again",
        );
        text += &format!("issues  {many} with {what}; `landfall inbox` shows what is left\n");
    }
    if let Some(engine) = &report.engine {
        let version = escape_line(&engine.version);
        text +=
            &format!("engine  process {}, version {version}, for {}\n", engine.pid, since(engine.since_ms));
    }
    let counts: Vec<String> = Status::ALL
        .iter()
        .filter_map(|status| report.counts.get(status).map(|count| colored_count(*status, *count)))
        .collect();
    text += &format!("tasks   {}\n", if counts.is_empty() { "none".to_owned() } else { counts.join(", ") });
    let base = &report.base;
    let published = if base.published { "" } else { ", not yet in your repository" };
    let at = match landfall_text::short_commit(&base.commit) {
        "" => "has no commit yet".to_owned(),
        commit => format!("at {}{published}", escape_line(commit)),
    };
    text += &format!("base    {} {at}\n", escape_line(&base.branch));
    if let Some(reason) = base.held.as_ref().or(base.unpublished.as_ref()) {
        text += &format!("{}    {}\n", paint_text(TextTone::Warn, "held"), escape_line(reason));
    }
    if let Some(disk) = &report.disk {
        let used = disk
            .used_bytes
            .map(|used| format!(", {} used here", landfall_text::format_bytes(used)))
            .unwrap_or_default();
        text += &format!("disk    {} free{used}\n", landfall_text::format_bytes(disk.free_bytes));
    }
    for account in &report.accounts {
        text += &format!("account {}\n", escape_line(&account_line(account, now_ms)));
    }
    for spent in &report.spending {
        let cost = words::render_cost(&spent.usage).map(|cost| format!(", {cost}")).unwrap_or_default();
        let tokens =
            landfall_text::format_count(spent.usage.tokens_in.saturating_add(spent.usage.tokens_out));
        let time = landfall_text::format_duration(spent.time_ms);
        let when = if spent.scope == BudgetScope::Day { "today" } else { "in this run" };
        text += &format!(
            "spent   {when}: {}{tokens} tokens{cost}, {time} of working time\n",
            spent.usage.prefix()
        );
    }
    for budget in &report.budgets {
        text += &format!("budget  {}\n", escape_line(&words::render_budget(budget)));
    }
    if let Some(spent) = words::blocking_budget(&report.budgets) {
        text += &format!("{} {}\n", paint_text(TextTone::Bad, "BLOCKED"), escape_line(&spent));
    }
    for warning in &report.warnings {
        text += &format!("{} {}\n", paint_text(TextTone::Warn, "warning"), escape_line(warning));
    }
    if !report.active.is_empty() {
        let mut table =
            Table::new(&["TASK", "DOING", "AGENT", "ITERATION", "TIME", "TOKENS", "COST", "TITLE"]);
        for line in &report.active {
            table.add_row([
                &line.task.to_string(),
                &format!("{} ({})", activity_label(line), line.step),
                &agent_label(line),
                &format!("{}/{}", line.iteration, line.iterations_max),
                &landfall_text::format_duration(line.elapsed_ms),
                &landfall_text::format_count(line.tokens),
                &line.cost_usd.map(landfall_text::format_usd).unwrap_or_default(),
                &line.title,
            ]);
        }
        text += &format!("\n{}", table.to_text());
        for line in &report.active {
            let Some(agent) = &line.agent else { continue };
            let words = if agent.words.is_empty() { String::new() } else { format!(" · {}", agent.words) };
            let progress = agent.progress.map(|percent| format!(" · {percent} %")).unwrap_or_default();
            text += &format!(
                "  {} {}{}\n",
                line.task,
                escape_line(&agent.evidence),
                escape_line(&format!("{progress}{words}"))
            );
        }
    }
    if !report.checks.is_empty() {
        let mut table = Table::new(&["VERIFYING", "CHECK", "TIME", "LIMIT", "LAST LINE"]);
        for check in &report.checks {
            table.add_row([
                &check.of,
                &check.check,
                &landfall_text::format_duration(check.elapsed_ms),
                &landfall_text::format_duration(check.limit_ms),
                &check.last_line,
            ]);
        }
        text += &format!("\n{}", table.to_text());
    }
    if !report.waiting.is_empty() {
        let mut table = Table::new(&["REASON", "WHO CAN END IT", "UNTIL", "TASKS", "DETAIL"]);
        for group in &report.waiting {
            let tasks: Vec<String> = group.tasks.iter().map(ToString::to_string).collect();
            table.add_row([
                group.wait.word(),
                &group.owner,
                &group.until_ms.map(landfall_text::format_local).unwrap_or_default(),
                &tasks.join(","),
                &group.detail,
            ]);
        }
        text += &format!("\n{}", table.to_text());
    }
    text
}

/// `3 done`, in the colour of its meaning.
fn colored_count(status: Status, count: u64) -> String {
    let text = format!("{count} {status}");
    TextTone::for_word(status.word()).map_or_else(|| text.clone(), |tone| paint_text(tone, &text))
}

/// `T3 and T5 (a.rs, b.rs)`.
fn clash_text(clash: &ClashLine) -> String {
    format!("{} and {} ({})", clash.task, clash.with, words::first_files(&clash.files))
}

/// `3 in line; B7 T1 T2 T3 verifying`.
fn queue_summary(queue: &QueueBrief) -> String {
    let mut parts = vec![format!("{} in line", landfall_text::pluralize(queue.waiting, "task"))];
    for batch in &queue.batches {
        let members: Vec<String> = batch.members.iter().map(ToString::to_string).collect();
        parts.push(format!("{} ({}) {}", batch.batch, members.join(" "), batch.doing));
    }
    parts.join("; ")
}

/// What is being done: what the agent is at, if one works.
fn activity_label(line: &ActiveLine) -> &str {
    let class = line.agent.as_ref().and_then(|agent| agent.class.as_deref());
    class.filter(|_| line.doing == TaskActivity::Working).unwrap_or(line.doing.word())
}

/// Who works: `default, sonnet, context 41 %, sandbox write`.
fn agent_label(line: &ActiveLine) -> String {
    let Some(agent) = &line.agent else { return String::new() };
    let mut parts = vec![agent.profile.clone()];
    parts.extend(agent.model.clone());
    parts.extend(agent.context_percent.map(|percent| format!("context {percent} %")));
    parts.push(format!("sandbox {}", agent.sandbox));
    parts.join(", ")
}

/// How an account stands: `claude: used up, 1h 12m left, until 14:05; T3, T4 wait`.
fn account_line(account: &AccountLine, now_ms: i64) -> String {
    let tasks: Vec<String> = account.tasks.iter().map(ToString::to_string).collect();
    let wait = match tasks.as_slice() {
        [] => String::new(),
        [one] => format!("; {one} waits"),
        many => format!("; {} wait", many.join(", ")),
    };
    let used = account.used_percent.map(|percent| format!("{percent} % used"));
    let resets =
        account.resets_ms.map(|at| format!(", begins anew at {}", landfall_text::format_until(at, now_ms)));
    let name = &account.account;
    match (account.state, account.until_ms) {
        (AccountStanding::UsedUp, Some(until)) if until > now_ms => {
            let left = landfall_text::format_duration(u64::try_from(until - now_ms).unwrap_or(0));
            let at = landfall_text::format_until(until, now_ms);
            match account.until_is_a_guess {
                true => format!(
                    "{name}: used up, the agent named no reset; next try in {left}, a guess, at {at}{wait}"
                ),
                false => format!("{name}: used up, {left} left, until {at}{wait}"),
            }
        }
        (AccountStanding::UsedUp, _) => format!("{name}: its time is up; one agent tries it first{wait}"),
        (AccountStanding::Troubled, Some(until)) if until > now_ms => {
            format!(
                "{name}: its provider has trouble; one agent tries it at {}{wait}",
                landfall_text::format_until(until, now_ms)
            )
        }
        (AccountStanding::Troubled, _) => {
            format!("{name}: its provider had trouble; one agent tries it first{wait}")
        }
        (AccountStanding::LoggedOut, _) => format!("{name}: wants a login{wait}"),
        (AccountStanding::Open, _) => {
            format!("{name}: {}{}", used.unwrap_or_else(|| "open".to_owned()), resets.unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use landfall_api::{AccountLine, AccountStanding, WireTaskId};

    use super::account_line;

    #[test]
    fn accounts_are_counted_down() {
        const HOUR: i64 = 3_600_000;
        let now_ms = 1_785_283_200_000;
        let check = |state, until_ms, used_percent, tasks: &[u32], expect: expect_test::Expect| {
            let account = AccountLine {
                account: "claude".to_owned(),
                state,
                until_ms,
                until_is_a_guess: false,
                used_percent,
                resets_ms: None,
                tasks: tasks.iter().copied().map(WireTaskId).collect(),
            };
            // The clock of this machine may be in any zone.
            let line = account_line(&account, now_ms);
            expect.assert_eq(line.split(", until").next().unwrap_or_default());
        };
        let (used_up, out) = (AccountStanding::UsedUp, AccountStanding::LoggedOut);
        let later = Some(now_ms + HOUR + 720_000);
        check(used_up, later, Some(100), &[3, 4], expect_test::expect!["claude: used up, 1h 12m left"]);
        check(
            used_up,
            Some(now_ms - 1),
            None,
            &[3],
            expect_test::expect!["claude: its time is up; one agent tries it first; T3 waits"],
        );
        check(out, None, None, &[3, 4], expect_test::expect!["claude: wants a login; T3, T4 wait"]);
        check(AccountStanding::Open, None, Some(91), &[], expect_test::expect!["claude: 91 % used"]);
    }
}
