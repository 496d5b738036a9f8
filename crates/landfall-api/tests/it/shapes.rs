//! `docs/reference/json.md`: a sample of every answer with every field set, written from the types.
//!
//! `LANDFALL_BLESS=1` writes the page again. A difference here is a change of the wire.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

use landfall_api as api;
use landfall_api::import::{Format, Imported, LeftOut, There};
use landfall_api::{
    AccountLine, AccountStanding, ActiveLine, Added, AgentAtWork, AgentKind, AgentProfile, AgentRun,
    AgentsFound, AttemptKind, AttemptLine, Base, BatchLine, BatchLook, Blob, BudgetLine, BudgetOf,
    BudgetScope, BurnPoint, Changed, ChangedTask, Check, CheckState, CheckpointLine, CheckpointList,
    CheckpointsDropped, ClashLine, CommandReport, Concern, CostFrom, Counter, DeniedPath, Diff, DiskState,
    EngineState, Exported, ExportedFile, FlakeLine, FlowChecked, FlowDrawing, FlowForm, FlowLine, FlowList,
    FlowOrigin, FlowProblem, Gate, Health, HoldLine, HoldReason, InitAgent, InitCommand, InitFound,
    IssueStanding, Landed, LogEntry, LogPage, LostTask, Mode, ModuleMade, ModuleMended, ModulesMended,
    NewTask, Outcome, OutcomeLine, OwnLimits, PauseLine, PauseReason, Picked, Pilot, PilotPhase, ProbeAnswer,
    Probed, ProjectChecked, Proposal, ProposalOutcome, Publication, QueueBrief, QueueChanged, QueuePlace,
    QueueReport, QuickIssue, Reclaimed, ReclaimedItem, Report, ReportOf, Restored, ReviewLine, ReviewList,
    RolledBack, RunEnded, RunOutcome, RunState, Size, SpendingLine, SprintChanged, SprintFate, SprintGoal,
    SprintList, SprintPlan, SprintPreview, SprintRecord, SprintReport, SprintSettings, SprintStage,
    SprintTarget, SprintTask, SprintTaskStat, Status, StatusReport, Stopped, TaskActivity, TaskBrief,
    TaskDetail, TaskLine, TaskPage, TaskRef, Usage, Wait, WaitFor, WaitingGroup, Why, WireRunId,
    WireSprintId, WireTaskId,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

const AT_MS: i64 = 1_785_283_200_000;

fn line() -> TaskLine {
    TaskLine {
        id: WireTaskId(7),
        title: "Fix the parser".to_owned(),
        status: Status::Waiting,
        wait: Some(Wait {
            wait: WaitFor::Question,
            owner: "you".to_owned(),
            until_ms: Some(AT_MS),
            detail: "Tabs or spaces?".to_owned(),
        }),
        phase: Some("executing".to_owned()),
        size: Some(Size::M),
        tags: vec!["quick-win".to_owned()],
        priority: 2,
        needs: vec![WireTaskId(1)],
        parent: Some(WireTaskId(3)),
        iterations: 2,
        landed: Some("3f2a9c0d1e…".to_owned()),
    }
}

fn new_task() -> NewTask {
    NewTask {
        title: "Fix the parser".to_owned(),
        body: "Spaces are lost.".to_owned(),
        criteria: vec!["`parse(\"a b\")` keeps the space".to_owned()],
        size: Some(Size::M),
        tags: vec!["quick-win".to_owned()],
        priority: Some(2),
        needs: vec![TaskRef::Task(WireTaskId(1)), TaskRef::Batch(2)],
        touches: vec!["src/parse".to_owned()],
        parent: Some(TaskRef::Batch(1)),
        flow: Some("loop".to_owned()),
        agent: Some("default".to_owned()),
        draft: true,
        source: "import:beads:bd-2".to_owned(),
    }
}

fn usage() -> Usage {
    Usage {
        tokens_in: 11_045,
        tokens_cached: 9_000,
        tokens_out: 1_300,
        turns: 14,
        cost_usd: Some(0.21),
        cost_from: Some(CostFrom::Agent),
        tokens_without_price: 0,
        at_least: false,
    }
}

fn budget(scope: BudgetScope) -> BudgetLine {
    BudgetLine { scope, of: BudgetOf::Usd, used: 0.21, max: 5.0 }
}

fn progress() -> api::Progress {
    let mark = |phase: &str, state, percent| api::PhaseMark { phase: phase.to_owned(), state, percent };
    api::Progress {
        phase: "executing".to_owned(),
        phases: vec![
            mark("planning", api::PhaseState::Done, None),
            mark("executing", api::PhaseState::Now, Some(50)),
            mark("complete", api::PhaseState::Next, None),
        ],
        plan_steps: 4,
        plan_done: 2,
        proofs: 3,
        proofs_done: 1,
        anomalies: 1,
        fixes: 1,
        fixes_max: 3,
        stage: Some(2),
        convergence: Some(0.6667),
        composite: Some(0.815),
        verdict: Some("CONTINUE".to_owned()),
        can_do: vec!["exec".to_owned(), "check/mid-exec".to_owned()],
        directed: Some("check-mid".to_owned()),
        strip: "active · executing · exec:at work → check-mid #4".to_owned(),
    }
}

fn target() -> api::Target {
    api::Target {
        task: WireTaskId(7),
        progress: progress(),
        items: vec![api::TargetItem {
            text: "Parse what people write".to_owned(),
            requirements: vec![api::RequirementLine {
                number: 1,
                text: "tabs are understood".to_owned(),
                criteria: "a test with tabs passes".to_owned(),
                weight: "critical".to_owned(),
                coverage: Some(0.75),
                focus: true,
            }],
        }],
        constraints: vec!["no new dependency".to_owned()],
        revision: 2,
        shown: Some(2),
        confirmed: Some(1),
        awaits: true,
        question: Some("Objectives extracted …".to_owned()),
        satisfied_at: 0.95,
        stage: Some(api::StageNow { number: 2, focus: vec![1] }),
        stages: vec![api::StageLine {
            number: 1,
            focus: vec![1, 2],
            commit: "5e…".to_owned(),
            convergence: 0.6667,
        }],
        exclusions: vec![api::ExclusionLine {
            stage: 2,
            direction: "stage 2 for R2".to_owned(),
            reason: "convergence went from 0.6667 to 0.6667".to_owned(),
            abandoned: "9c…".to_owned(),
            from: 0.6667,
            to: 0.6667,
        }],
        refinements: vec![api::RefinementLine {
            number: 1,
            at_ms: AT_MS,
            text: "in capitals".to_owned(),
            state: api::RefinementState::Weighed,
            impact: Some("minor".to_owned()),
        }],
        judgements: vec![api::JudgementLine {
            findings: vec!["major (src/lib.rs:7): it panics".to_owned()],
            at_ms: AT_MS,
            checkpoint: api::FlowCheckpoint::PostExec,
            stage: Some(1),
            head: Some("5e…".to_owned()),
            scores: vec![api::ScoreLine {
                code: "D1".to_owned(),
                name: "correctness".to_owned(),
                score: 0.9,
                weight: 0.25,
                gate: Some(0.5),
            }],
            composite: Some(0.815),
            verdict: "NEEDS_FIX".to_owned(),
            passed: false,
            reasons: vec!["verification failed on just this work".to_owned()],
        }],
        thresholds: vec![api::Threshold {
            step: "check-exec".to_owned(),
            checkpoint: api::FlowCheckpoint::PostExec,
            threshold: 0.75,
        }],
        plan: vec![api::PlanStepLine {
            number: 1,
            title: "Read tabs".to_owned(),
            covers: vec![1],
            done: true,
        }],
        proofs: vec![api::ProofLine {
            of: "step 1".to_owned(),
            about: "Read tabs".to_owned(),
            command: "sh tests/tabs.sh".to_owned(),
            standing: "proved".to_owned(),
        }],
    }
}

fn by_hand(page: &mut Page) {
    let attempts = detail().attempts;
    let done = api::StepDone {
        task: WireTaskId(7),
        command: "check".to_owned(),
        driven: true,
        status: Status::Waiting,
        phase: Some("executing".to_owned()),
        attempts,
        progress: Some(Box::new(progress())),
        text: "T7 waits for you: one step was asked for by hand.".to_owned(),
    };
    page.sample(
        "`do`",
        "`driven` is false where a run under way does it. `can_do` are the words that `do` takes in this phase.",
        &done,
    );
    page.sample(
        "`target`",
        "Scores, coverage and convergence go from 0 to 1. With words or `--ok` it writes what `retry` writes, and so does \
         `refine`.",
        &target(),
    );
    let papers = api::PaperList {
        task: WireTaskId(7),
        papers: vec![api::PaperLine { name: "plan.md".to_owned(), bytes: 812, told: true }],
    };
    page.sample("`papers`", "`told` are those that the engine makes anew for every run.", &papers);
    let paper = api::Paper {
        task: WireTaskId(7),
        name: "plan.md".to_owned(),
        text: "# Plan\n\n1. Read tabs\n".to_owned(),
        told: true,
    };
    page.sample("`papers` with a name", "The text as it was written.", &paper);
    let annotated = api::Annotated {
        task: WireTaskId(7),
        paper: "plan.md".to_owned(),
        impact: "medium".to_owned(),
        status: Status::Ready,
        text: "plan.md of T7 is annotated (medium impact); it goes on with `check-re-plan`.".to_owned(),
    };
    page.sample("`annotate`", "`impact` is `none`, `low`, `medium` or `high`.", &annotated);
}

fn detail() -> TaskDetail {
    TaskDetail {
        line: line(),
        why: "T7 waits for your answer: Tabs or spaces?".to_owned(),
        body: "What is wanted, in full.".to_owned(),
        criteria: vec!["it parses an empty file".to_owned()],
        touches: vec!["src/parse.rs".to_owned()],
        flow: "loop".to_owned(),
        agent: "default".to_owned(),
        source: "cli".to_owned(),
        step: Some("work".to_owned()),
        attempt: 3,
        iterations_max: 50,
        counters: vec![Counter { name: "conflict rounds".to_owned(), used: 1, max: Some(3) }],
        spent_ms: 41_000,
        limit_ms: 1_800_000,
        tokens: 12_345,
        cost_usd: Some(0.21),
        usage: usage(),
        budgets: vec![budget(BudgetScope::Task)],
        gate: Some(Gate {
            outcome: Outcome::Fail,
            base: "b0…".to_owned(),
            head: "5e…".to_owned(),
            commit: "c1…".to_owned(),
            tree: "7d…".to_owned(),
            commands: vec![CommandReport {
                name: "tests".to_owned(),
                command: "cargo test".to_owned(),
                required: true,
                outcome: Outcome::Fail,
                exit: Some(101),
                took_ms: 9_200,
                limit_ms: 600_000,
                tests: Some(12),
                excerpt: "test parser::empty ... FAILED".to_owned(),
                denied: Vec::new(),
                copied_from_base: false,
            }],
            took_ms: 9_300,
            reused: false,
            empty: false,
        }),
        concerns: vec![Concern {
            code: "deletes-tests".to_owned(),
            text: "deletes tests/parser.rs".to_owned(),
        }],
        feedback: Some("1 check failed: …".to_owned()),
        messages: vec!["use the other parser".to_owned()],
        held: Some("until the design is settled".to_owned()),
        own_limits: Some(OwnLimits { iterations: Some(80), time_ms: Some(3_600_000), usd: Some(5.0) }),
        landed_as: Some(Landed {
            commit: "3f2a9c0d1e…".to_owned(),
            base_before: "b0…".to_owned(),
            tree: "7d…".to_owned(),
            proof: "the landed tree is the verified tree".to_owned(),
            at_ms: AT_MS,
            publication: Publication::Held("your checkout has changes".to_owned()),
        }),
        warnings: vec!["5 iterations without a commit".to_owned()],
        progress: Some(Box::new(progress())),
        branch: Some("landfall/T7".to_owned()),
        workspace: Some("…/workspaces/T7".to_owned()),
        attempts: vec![AttemptLine {
            kind: AttemptKind::Agent,
            has_failed: false,
            attempt: 1,
            step: "work".to_owned(),
            began_ms: AT_MS,
            ended_ms: Some(AT_MS + 41_000),
            iterations: 2,
            end: "verified".to_owned(),
            runs: vec![AgentRun {
                iteration: 2,
                began_ms: AT_MS,
                took_ms: Some(39_000),
                profile: "default".to_owned(),
                model: Some("claude-sonnet-4-5".to_owned()),
                session: Some("0b6c…".to_owned()),
                resumed: true,
                sandbox: Some("write".to_owned()),
                context_percent: Some(41),
                usage: usage(),
                verdict: "the agent says it is done".to_owned(),
            }],
        }],
        added_ms: AT_MS,
    }
}

fn changed() -> Changed {
    Changed {
        tasks: vec![ChangedTask {
            id: WireTaskId(7),
            status: Status::Ready,
            text: "it starts again".to_owned(),
        }],
    }
}

fn clash(task: u32, with: u32) -> ClashLine {
    ClashLine { task: WireTaskId(task), with: WireTaskId(with), files: vec!["src/parser.rs".to_owned()] }
}

fn status() -> StatusReport {
    StatusReport {
        counts: BTreeMap::from([(Status::Ready, 4), (Status::Active, 1), (Status::Done, 2)]),
        run: Some(RunState {
            run: WireRunId(2),
            since_ms: AT_MS,
            slots: 3,
            agents: 2,
            mode: "running".to_owned(),
        }),
        engine: Some(EngineState { pid: 4711, since_ms: AT_MS, version: "0.1.0".to_owned() }),
        checks: vec![running_check()],
        active: vec![ActiveLine {
            check: Some(running_check()),
            task: WireTaskId(7),
            title: "Fix the parser".to_owned(),
            step: "work".to_owned(),
            doing: TaskActivity::Working,
            iteration: 2,
            iterations_max: 50,
            elapsed_ms: 41_000,
            tokens: 12_345,
            cost_usd: Some(0.21),
            agent: Some(AgentAtWork {
                profile: "default".to_owned(),
                model: Some("claude-sonnet-4-5".to_owned()),
                sandbox: "write".to_owned(),
                class: Some("in a tool".to_owned()),
                evidence: "last word 12 s ago, processor or disk 1 s ago".to_owned(),
                context_percent: Some(41),
                progress: Some(60),
                words: "[Bash] cargo test".to_owned(),
            }),
            progress: Some(Box::new(progress())),
        }],
        pilot: Some(Box::new(pilot())),
        queue: Some(Box::new(QueueBrief { waiting: 2, batches: vec![batch()], hold: Some(hold()) })),
        sprint: Some("S3 SPRINT | 14/23 tasks | 2 failed | Until 08:00 (6h 23m left)".to_owned()),
        clashes: vec![clash(7, 8)],
        reviews_owed: 2,
        issues_left: 1,
        waiting: vec![WaitingGroup {
            wait: WaitFor::Quota,
            owner: "the engine".to_owned(),
            until_ms: Some(AT_MS),
            detail: "account `default`".to_owned(),
            tasks: vec![WireTaskId(8), WireTaskId(9)],
        }],
        accounts: vec![AccountLine {
            account: "claude".to_owned(),
            state: AccountStanding::UsedUp,
            until_ms: Some(AT_MS),
            until_is_a_guess: false,
            used_percent: Some(100),
            resets_ms: Some(AT_MS),
            tasks: vec![WireTaskId(8), WireTaskId(9)],
        }],
        spending: vec![SpendingLine { scope: BudgetScope::Day, usage: usage(), time_ms: 41_000 }],
        budgets: vec![budget(BudgetScope::Day)],
        base: Base {
            branch: "main".to_owned(),
            commit: "3f2a9c0d1e…".to_owned(),
            published: false,
            held: Some("your checkout has changes".to_owned()),
            unpublished: Some("your checkout has changes".to_owned()),
        },
        disk: Some(DiskState { free_bytes: 81_000_000_000, used_bytes: Some(120_000_000) }),
        warnings: vec!["no check is set: nothing is proved".to_owned()],
    }
}

fn outcome() -> RunOutcome {
    RunOutcome {
        run: WireRunId(2),
        ended: RunEnded::Finished,
        tasks: vec![OutcomeLine {
            task: WireTaskId(7),
            title: "Fix the parser".to_owned(),
            status: Status::Waiting,
            wait: Some(WaitFor::Question),
            iterations: 2,
            spent_ms: 41_000,
            tokens: 12_345,
            commit: Some("3f2a9c0d1e…".to_owned()),
            why: "T7 waits for your answer: Tabs or spaces?".to_owned(),
        }],
        elapsed_ms: 65_000,
        tokens: 24_690,
        cost_usd: Some(0.42),
        warnings: vec!["no check is set: nothing is proved".to_owned()],
        needs_you: vec!["T7 waits for your answer".to_owned()],
        sprint: Some(WireSprintId(3)),
        report: Some("…/reports/R2.md".to_owned()),
        line: Some(Box::new(run_report().run)),
    }
}

fn running_check() -> api::RunningCheckLine {
    api::RunningCheckLine {
        of: "T7".to_owned(),
        check: "tests".to_owned(),
        elapsed_ms: 12_000,
        limit_ms: 600_000,
        last_line: "test parse::spaces ... ok".to_owned(),
    }
}

fn run_report() -> api::RunReport {
    let usage = Usage { cost_usd: Some(0.42), tokens_in: 24_000, tokens_out: 690, ..Usage::default() };
    api::RunReport {
        run: api::RunLine {
            run: WireRunId(2),
            taken_over_by: vec![WireRunId(3)],
            began_ms: AT_MS,
            ended_ms: Some(AT_MS + 65_000),
            end: "nothing was left to do".to_owned(),
            counts: api::RunCounts { landed: 3, failed: 1, behind: 1, ..Default::default() },
            tasks: vec![WireTaskId(7)],
            usage,
            agent_ms: 41_000,
            engines_lost: 1,
            down_ms: 9_000,
            paused_ms: 4_000,
        },
        tasks: vec![api::RunTaskLine {
            task: WireTaskId(7),
            title: "Fix the parser".to_owned(),
            result: api::RunResult::Behind,
            behind: Some(WireTaskId(5)),
            status: Status::Waiting,
            iterations: 2,
            agent_ms: 41_000,
            usage,
            commit: Some("3f2a9c0d1e…".to_owned()),
            why: "T7 waits for T5, which failed.".to_owned(),
        }],
        notes: vec!["Landed work is not in your branch yet: local changes.".to_owned()],
    }
}

fn pilot() -> Pilot {
    Pilot {
        run: Some(WireRunId(2)),
        mode: Mode::SemiAuto,
        phase: PilotPhase::Paused,
        pause: Some(PauseLine { why: PauseReason::Person, reason: "lunch".to_owned(), since_ms: AT_MS }),
        picked: Some(WireTaskId(7)),
        next: Some(brief()),
        ready: 4,
        slots: 3,
        text: "R2 is paused since today at 12:00: lunch; `landfall run resume` lets it continue.".to_owned(),
    }
}

fn brief() -> TaskBrief {
    TaskBrief { task: WireTaskId(8), title: "Fix the printer".to_owned() }
}

fn batch() -> BatchLine {
    let look = |count, outcome| BatchLook { count, outcome };
    BatchLine {
        batch: "B7".to_owned(),
        on: Some("B6".to_owned()),
        members: (1..=5).map(WireTaskId).collect(),
        titles: Vec::new(),
        doing: "the first 3 landed".to_owned(),
        looks: vec![
            look(5, Outcome::Fail),
            look(2, Outcome::Pass),
            look(3, Outcome::Pass),
            look(4, Outcome::Fail),
        ],
        drawing: "5 ✗ → 2 ✓ → 3 ✓ → 4 ✗".to_owned(),
        culprit: Some(WireTaskId(4)),
        commit: Some("3f2a9c0d1e…".to_owned()),
        ended_ms: Some(AT_MS),
    }
}

fn hold() -> HoldLine {
    HoldLine {
        why: HoldReason::Person,
        reason: "lunch".to_owned(),
        since_ms: AT_MS,
        until_ms: Some(AT_MS),
        hint: "`landfall queue resume` lets it move again".to_owned(),
    }
}

fn plan() -> SprintPlan {
    SprintPlan {
        goal: SprintGoal::Count { count: 10 },
        only: vec![WireTaskId(7)],
        parents: vec![WireTaskId(3)],
        tags: vec!["quick-win".to_owned()],
        not_tags: vec!["risky".to_owned()],
        checkpoint: true,
        pause_on_error: false,
        batch_review: true,
    }
}

fn sprint() -> SprintReport {
    SprintReport {
        sprint: WireSprintId(3),
        plan: plan(),
        phase: SprintStage::Over,
        driven: false,
        because: "its goal was reached".to_owned(),
        started_ms: AT_MS,
        ended_ms: Some(AT_MS + 3_600_000),
        worked_ms: 3_000_000,
        paused_ms: 600_000,
        ready_at_start: 23,
        ready: 0,
        bar: "SPRINT | 14/23 tasks | 2 failed | Until 08:00 (6h 23m left)".to_owned(),
        verdict: "14 of 16 tasks landed, 2 failed.".to_owned(),
        landed: 14,
        total: 23,
        tasks: vec![SprintTask {
            task: WireTaskId(7),
            title: "Fix the parser".to_owned(),
            fate: SprintFate::Landed,
            status: Status::Done,
            started_ms: AT_MS,
            completed_ms: Some(AT_MS + 41_000),
            iterations: 2,
            verified: true,
            ejected: true,
            sent_back: Some(
                "sent back out of B7: together with what landed before it, tests (exit 1)".to_owned(),
            ),
            needs_you: false,
            review: Some("approved".to_owned()),
            owed: true,
            commit: Some("3f2a9c0d1e…".to_owned()),
            tokens: 12_345,
            cost_usd: Some(0.21),
            why: "T7 is done: it landed as 3f2a9c0d1e.".to_owned(),
        }],
        tokens: 12_345,
        cost_usd: Some(0.21),
        burn_up: vec![BurnPoint { at_ms: AT_MS + 41_000, landed: 1 }],
        forecast_ms: Some(AT_MS + 3_600_000),
        forecast_of: 9,
    }
}

fn record() -> SprintRecord {
    let moment = "2026-07-29T00:00:00Z".to_owned();
    SprintRecord {
        id: WireSprintId(3),
        started_at: moment.clone(),
        ended_at: Some(moment.clone()),
        target: SprintTarget { kind: "count".to_owned(), value: json!(10) },
        phase: SprintStage::Over,
        end: Some("goal".to_owned()),
        total_tasks: 16,
        completed_tasks: 14,
        failed_tasks: 2,
        reviewing_tasks: 0,
        task_stats: vec![SprintTaskStat {
            task_id: WireTaskId(7),
            started_at: moment.clone(),
            completed_at: Some(moment),
            iterations: 2,
            verification_passed: true,
            review_decision: Some("approved".to_owned()),
        }],
        settings: SprintSettings {
            max_iterations: 50,
            task_timeout: 30,
            pause_on_stuck: false,
            pause_on_errors: false,
        },
    }
}

fn lost() -> LostTask {
    LostTask {
        task: WireTaskId(7),
        title: "Fix the parser".to_owned(),
        commit: Some("3f2a9c0d1e…".to_owned()),
    }
}

/// What drives the backlog.
/// What pages and a terminal view are made of. Some of it only the socket answers.
fn views(page: &mut Page) {
    let StatusReport {
        counts,
        run,
        engine,
        mut active,
        pilot,
        queue,
        sprint,
        reviews_owed,
        issues_left,
        accounts,
        spending,
        budgets,
        base,
        disk,
        ..
    } = status();
    let agent = active.remove(0).agent;
    let TaskLine { id, title, status, wait, phase, size, tags, priority, landed, .. } = line();
    let action = api::Action::new(
        "Answer",
        &api::Request::Answer(api::Answer { task: WireTaskId(7), text: String::new() }),
    )
    .with_fill("/text", "Your answer", true)
    .with_confirmation();
    let card = api::Card {
        id,
        title,
        status,
        wait,
        phase,
        step: Some("work".to_owned()),
        doing: "working".to_owned(),
        detail: "Tabs or spaces?".to_owned(),
        profile: "default".to_owned(),
        agent: agent.clone(),
        iteration: 2,
        iterations_max: 50,
        attempt: 3,
        elapsed_ms: 41_000,
        tokens: 12_345,
        cost_usd: Some(0.21),
        diff: Some(api::DiffStat { files: 3, added: 40, removed: 7 }),
        checks: vec![api::CheckMark {
            name: "tests".to_owned(),
            state: api::MarkState::Over,
            outcome: Some(Outcome::Pass),
            took_ms: Some(9_200),
            limit_ms: Some(600_000),
        }],
        progress: Some(Box::new(progress())),
        unmet: 1,
        size,
        tags,
        priority,
        since_ms: AT_MS,
        commit: landed,
        unverified: true,
    };
    let board = api::Board {
        seq: 41,
        at_ms: AT_MS,
        columns: vec![api::Column { name: api::ColumnName::NeedsYou, count: 3, cards: vec![card], more: 2 }],
        problems: vec![api::Trouble {
            key: "stuck-T7".to_owned(),
            severity: api::Severity::Warning,
            kind: api::TroubleKind::Stuck,
            text: "T7 has left no commit in 3 iterations".to_owned(),
            task: Some(WireTaskId(7)),
            since_ms: Some(AT_MS),
            until_ms: Some(AT_MS),
            hint: "`landfall stop T7` pauses it".to_owned(),
            actions: vec![action.clone()],
        }],
        counts,
        engine,
        run,
        pilot,
        sprint,
        queue,
        next_landing: Some(QueuePlace {
            place: 1,
            task: WireTaskId(7),
            title: "Fix the parser".to_owned(),
            since_ms: AT_MS,
            batch: Some("B7".to_owned()),
            text: "first in line".to_owned(),
        }),
        reviews_owed,
        issues_left,
        accounts,
        spending,
        budgets,
        base,
        disk,
    };
    page.sample(
        "The board",
        "Columns: `working`, `needs-you`, `in-review`, `landing`, `done-today`, `next`, `waiting`. A `severity` is `error`, \
         `warning` or `info`; a check is `waiting`, `running` or `over`.",
        &board,
    );
    let inbox = api::Inbox {
        seq: 41,
        counts: BTreeMap::from([(api::InboxKind::Question, 1), (api::InboxKind::Review, 2)]),
        items: vec![api::InboxItem {
            key: "question-T7-41".to_owned(),
            kind: api::InboxKind::Question,
            task: Some(WireTaskId(7)),
            title: "Fix the parser".to_owned(),
            text: "Tabs or spaces?".to_owned(),
            step: Some("work".to_owned()),
            since_ms: AT_MS,
            until_ms: Some(AT_MS),
            overdue: "it stops as blocked".to_owned(),
            choices: vec!["tabs".to_owned(), "spaces".to_owned()],
            concerns: vec![Concern { code: "few-tests".to_owned(), text: "has no tests".to_owned() }],
            findings: vec!["F1 (high): it trusts what it should check".to_owned()],
            reply: Some("the caller checks it".to_owned()),
            files: vec!["src/parse.rs".to_owned()],
            commit: Some("3f2a9c0d1e…".to_owned()),
            actions: vec![action],
        }],
        more: 2,
    };
    page.sample(
        "`inbox`",
        "Kinds: `question`, `login`, `review`, `conflict`, `escalation`, `blocked`, `failed`, `owed`, `acceptance`, `paused`. An action is a \
         request that is ready to be sent; `fill` says what the person writes into it.",
        &inbox,
    );
    let node = api::GraphNode {
        id: WireTaskId(7),
        title: "Fix the parser".to_owned(),
        status: Status::Ready,
        size: Some(Size::M),
        phase: Some("executing".to_owned()),
        priority: 2,
        tier: 1,
        unmet: 1,
        unblocks: 2,
        unblocks_all: 5,
    };
    let graph = api::Graph {
        seq: 41,
        nodes: vec![node],
        edges: vec![api::GraphEdge {
            from: WireTaskId(1),
            to: WireTaskId(7),
            kind: api::EdgeKind::Needs,
            met: false,
        }],
        critical: vec![WireTaskId(1), WireTaskId(7)],
        left_out: 3,
    };
    page.sample("`graph`", "`to` needs `from`, or is a part of it (`parent`).", &graph);
    let sum = api::StatsSum {
        added: 5,
        landed: 3,
        not_landed: 1,
        iterations: 9,
        attempts: 14,
        tokens: 120_000,
        tokens_without_price: 0,
        runs_at_least: 0,
        cost_usd: Some(1.2),
        agent_ms: 600_000,
        verify_ms: 90_000,
        recoveries: 1,
        quota_waits: 1,
        rollbacks: 1,
        conflicts: 2,
        questions: 1,
    };
    let spread = api::Spread { count: 3, median_ms: Some(600_000), p90_ms: Some(900_000) };
    let stats = api::Stats {
        seq: 41,
        days: vec![api::StatsDay { day: "2026-07-29".to_owned(), from_ms: AT_MS, sum: sum.clone() }],
        total: sum,
        iterations: vec![api::StatsCount { of: 2, count: 3 }],
        cycle: spread,
        lead: spread,
        profiles: vec![api::StatsProfile {
            profile: "default".to_owned(),
            landed: 3,
            failed: 1,
            iterations: 9,
            tokens: 120_000,
            cost_usd: Some(1.2),
            agent_ms: 600_000,
        }],
        gates: vec![api::StatsGate { outcome: Outcome::Pass, count: 4 }],
        flakes: vec![FlakeLine { check: "tests".to_owned(), runs: 9, flakes: 1, last_ms: Some(AT_MS) }],
        review_rounds: vec![api::StatsCount { of: 1, count: 2 }],
        agreement: api::Agreement {
            both_approved: 2,
            both_objected: 1,
            person_objected: 1,
            person_approved: 1,
        },
        judges: vec![api::JudgeAgreement {
            judge: "judge".to_owned(),
            accepted: 4,
            landed: 3,
            red: 1,
            overruled: 1,
            sent_back: 2,
            agreement: Some(0.6),
        }],
    };
    page.sample(
        "`stats`",
        "Days are those of the clock on the wall. `lead` is from the first work to landing.",
        &stats,
    );
    rollup_samples(page);
    let output = api::OutputLine {
        key: "T7-a3-i2".to_owned(),
        kind: api::OutputKind::Agent,
        attempt: Some(3),
        iteration: Some(2),
        name: Some("tests".to_owned()),
        profile: Some("default".to_owned()),
        bytes: 12_000,
        stderr_bytes: 40,
        began_ms: Some(AT_MS),
        ended_ms: Some(AT_MS),
        grows: false,
    };
    let list = api::OutputList { task: WireTaskId(7), outputs: vec![output.clone()] };
    page.sample("The outputs of a task", "`kind` is `agent`, `check` or `hook`.", &list);
    let said = api::Said {
        at: 4_096,
        level: api::Level::Tool,
        at_ms: Some(AT_MS),
        text: "Bash cargo test".to_owned(),
        cut: true,
        tool: None,
    };
    let read = api::Output {
        output,
        lines: vec![said],
        from: 4_096,
        next: 4_300,
        first: false,
        last: false,
        total_bytes: 12_000,
    };
    page.sample(
        "`log --agent`",
        "A page of what was printed. Levels: `error`, `warn`, `info`, `debug`, `tool`, `text`, `raw`. With `--follow`, one such \
         line a line instead.",
        &read,
    );
    let bytes = api::OutputBytes {
        name: "T7-a3-i2.out.log".to_owned(),
        at: 0,
        next: 6,
        total_bytes: 12_000,
        grows: false,
        content: Blob::Text("plain\n".to_owned()),
    };
    page.sample("The bytes of an output", "At most a mebibyte at once.", &bytes);
    let fleet = api::Fleet {
        seq: 41,
        agents: vec![api::FleetAgent {
            task: WireTaskId(7),
            title: "Fix the parser".to_owned(),
            attempt: 3,
            iteration: 2,
            pid: Some(4_712),
            processes: Some(3),
            since_ms: AT_MS,
            cpu_ms: Some(9_000),
            memory_bytes: Some(200_000_000),
            output_bytes: 12_000,
            agent,
        }],
        workspaces: vec![api::FleetWorkspace {
            task: Some(WireTaskId(7)),
            name: "T7".to_owned(),
            status: Some(Status::Active),
            bytes: Some(12_000_000),
            state: "in use".to_owned(),
            why: "T7 is under way".to_owned(),
        }],
        workspaces_more: 1,
        lanes: vec![api::FleetLane {
            name: "0".to_owned(),
            busy: true,
            check: Some("T7-a3-v0".to_owned()),
            bytes: Some(12_000_000),
        }],
        warm: vec!["w1".to_owned()],
        disk: Some(api::FleetDisk {
            free_bytes: 9_000_000_000,
            warn_bytes: 5_000_000_000,
            pause_bytes: 2_000_000_000,
            stop_bytes: 500_000_000,
            used: vec![api::FleetUse { kind: "workspaces".to_owned(), bytes: 12_000_000 }],
        }),
        reclaimable: Some(Reclaimed { dry_run: true, items: Vec::new(), bytes: 0, kinds: Vec::new() }),
        installed: Some(AgentsFound { kinds: Vec::new(), profiles: Vec::new() }),
        orphans: vec![api::FleetOrphan {
            name: "T3-a1-i1".to_owned(),
            pid: Some(4_713),
            hint: "`landfall run` adopts it".to_owned(),
        }],
    };
    page.sample(
        "The fleet",
        "What is counted or asked for only when it is asked for is left out otherwise.",
        &fleet,
    );
    let settings = api::SettingsReport {
        file: "landfall.toml".to_owned(),
        exists: true,
        text: "[run]\nslotz = 2\n".to_owned(),
        usable: false,
        problems: vec![api::SettingProblem {
            text: "unknown key `slotz` in [run]".to_owned(),
            line: Some(2),
            column: Some(1),
            unknown: Some("slotz".to_owned()),
            nearest: Some("slots".to_owned()),
            hint: Some("did you mean `slots`?".to_owned()),
            mended: Some("[run]\nslots = 2\n".to_owned()),
        }],
        sections: vec![api::SettingSection {
            name: "run".to_owned(),
            about: "How tasks are driven.".to_owned(),
            keys: vec![api::SettingKey {
                key: "run.slots".to_owned(),
                about: "How many agents work at once.".to_owned(),
                takes: "whole number, 1 to 64".to_owned(),
                value: json!(2),
                default: json!(3),
                set: true,
                line: Some(2),
            }],
        }],
    };
    page.sample("The settings", "Every key, what is in force, and the line that says so.", &settings);
}

fn autopilot(page: &mut Page) {
    page.sample(
        "`pause`, `resume`, `auto`",
        "Who picks tasks. `phase` is `idle`, `running`, `paused`, `waiting for you` or `completed`; `why` of a pause is `person`, \
         `failures` or `sprint-error`.",
        &pilot(),
    );
    let text = "T8 is next: Fix the printer; you pick again when it is over.".to_owned();
    page.sample(
        "`next`",
        "What was picked.",
        &Picked { task: WireTaskId(8), title: "Fix the printer".to_owned(), text },
    );
    let preview = SprintPreview {
        plan: plan(),
        ready: vec![brief()],
        later: vec![TaskBrief { task: WireTaskId(9), title: "Then the rest".to_owned() }],
        more: 12,
        slots: 3,
        each_ms: Some(300_000),
        total_ms: Some(1_200_000),
        fits: Some(10),
    };
    page.sample(
        "`sprint start --dry-run`",
        "What would be in it. `goal` is `count`, `duration` (with `duration_ms`), `until_time` (with `until_ms`) or `no_ready`. \
         `total_ms` is there where tasks end it, `fits` where time does.",
        &preview,
    );
    page.sample(
        "`sprint status`, `sprint report`",
        "A sprint and what became of it. `phase` is `running`, `paused`, `completing` or `over`; `fate` is `open`, `landed`, \
         `failed`, `timeout`, `blocked` or `cancelled`. `sprint start` and `sprint resume` write what `run` writes.",
        &sprint(),
    );
    page.sample(
        "`sprint list`",
        "`sprint list --jsonl` writes one such record a line. `value` is a number of tasks, of hours, or a moment; `taskTimeout` is \
         in minutes.",
        &SprintList { sprints: vec![record()] },
    );
    let changed = SprintChanged { sprint: WireSprintId(3), text: "S3 is over.".to_owned() };
    page.sample(
        "`sprint pause`, `sprint cancel`",
        "What happens now. So does `sprint resume` while its run goes on.",
        &changed,
    );
    let queue = QueueReport {
        line: vec![QueuePlace {
            place: 1,
            task: WireTaskId(7),
            title: "Fix the parser".to_owned(),
            since_ms: AT_MS,
            batch: Some("B7".to_owned()),
            text: "in B7: being verified with T8".to_owned(),
        }],
        batches: vec![batch()],
        hold: Some(hold()),
        past: vec![batch()],
        flakes: vec![FlakeLine { check: "tests".to_owned(), runs: 41, flakes: 2, last_ms: Some(AT_MS) }],
    };
    page.sample(
        "`queue`",
        "The landing queue. A look says how many members from the front were verified together. `why` of a hold is `gate`, \
         `runaway`, `machine`, `person`, `rewritten` or `deleted`.",
        &queue,
    );
    let changed = QueueChanged { held: true, waiting: 2, text: "the landing queue is held.".to_owned() };
    page.sample("`queue pause`, `queue resume`", "`queue eject` writes what `retry` writes.", &changed);
    let reviews = ReviewList {
        before: vec![ReviewLine {
            task: WireTaskId(7),
            title: "Fix the parser".to_owned(),
            since_ms: AT_MS,
            reasons: vec!["deletes a test file: tests/parser.rs".to_owned()],
            findings: vec!["F1 (major, src/parse.rs:4): an empty file is not parsed".to_owned()],
            reply: Some("It is, by the caller.".to_owned()),
            commit: Some("3f2a9c0d1e…".to_owned()),
            attempts: vec![2, 4],
        }],
        after: Vec::new(),
        issues: vec![QuickIssue { name: "tests".to_owned(), text: "There are no tests for it.".to_owned() }],
    };
    page.sample("`review`", "What a person is to look at. A decision writes what `retry` writes.", &reviews);
    let checkpoint = CheckpointLine {
        name: "cp-4".to_owned(),
        at_ms: AT_MS,
        commit: "3f2a9c0d1e…".to_owned(),
        why: "sprint".to_owned(),
        landed_since: 2,
    };
    page.sample("`checkpoint create`", "`why` is `landings`, `sprint`, `person` or `restore`.", &checkpoint);
    page.sample("`checkpoint list`", "Newest first.", &CheckpointList { checkpoints: vec![checkpoint] });
    let restored = Restored {
        name: "cp-4".to_owned(),
        task: WireTaskId(12),
        lost: vec![lost()],
        text: "T12 brings the base back to `cp-4`.".to_owned(),
    };
    page.sample("`checkpoint restore`", "The task that brings it back, and what it takes away.", &restored);
    let dropped = CheckpointsDropped { names: vec!["cp-1".to_owned()], left: 3 };
    page.sample("`checkpoint delete`, `checkpoint cleanup`", "Those that are no longer kept.", &dropped);
}

/// The page as it grows.
struct Page(String);

impl Page {
    fn sample<T: Serialize + DeserializeOwned + PartialEq + Debug>(
        &mut self,
        commands: &str,
        about: &str,
        sample: &T,
    ) {
        let text = serde_json::to_string_pretty(sample).expect("a sample is plain");
        assert_eq!(&serde_json::from_str::<T>(&text).expect("read back"), sample, "{commands}");
        self.0 += &format!("\n## {commands}\n\n{about}\n\n```json\n{text}\n```\n");
    }
}

#[test]
fn the_page_about_json_shows_what_is_written() {
    let mut page = Page(PREFACE.to_owned());
    let init = InitFound {
        root: "…/project".to_owned(),
        base: "main".to_owned(),
        commands: vec![InitCommand {
            name: "tests".to_owned(),
            run: "cargo test".to_owned(),
            found_in: "Cargo.toml".to_owned(),
            installs: Vec::new(),
            installs_from: Vec::new(),
        }],
        agent: Some(InitAgent {
            kind: "claude".to_owned(),
            path: "/usr/local/bin/claude".to_owned(),
            login: "run `claude` once and use /login".to_owned(),
        }),
        caches: vec!["~/.cargo/registry".to_owned()],
        sandbox: "isolated".to_owned(),
        sandbox_leaves_open: vec!["the network".to_owned()],
        agents: vec![InitAgent {
            kind: "claude".to_owned(),
            path: "/usr/local/bin/claude".to_owned(),
            login: "run `claude` once and use /login".to_owned(),
        }],
        missing_tools: Vec::new(),
        checked: None,
        file: "…/project/landfall.toml".to_owned(),
        written: true,
    };
    page.sample("`init`", "What was found out. `written` is false when a file was there already.", &init);
    let checked = ProjectChecked {
        task: None,
        branch: "main".to_owned(),
        commit: "9c…".to_owned(),
        tree: "7d…".to_owned(),
        outcome: Outcome::Broken,
        commands: vec![CommandReport {
            name: "tests".to_owned(),
            command: "npm test".to_owned(),
            required: true,
            outcome: Outcome::Broken,
            exit: Some(1),
            took_ms: 2_100,
            limit_ms: 600_000,
            tests: None,
            excerpt: "Error: EROFS: read-only file system, mkdir '/home/you/.tool'".to_owned(),
            denied: vec![DeniedPath {
                access: "write".to_owned(),
                path: "~/.tool".to_owned(),
                allow: "~/.tool".to_owned(),
            }],
            copied_from_base: false,
        }],
        sandbox: "isolated".to_owned(),
        reused: false,
        took_ms: 2_200,
        allow: vec!["sandbox_write = [\"~/.tool\"]".to_owned()],
    };
    page.sample(
        "`check`",
        "What the checks came to. `allow` has the settings that allow what the sandbox denied. `init` has the same in `checked`.",
        &checked,
    );
    let made = ModuleMade {
        module: "AiTasks/login".to_owned(),
        files: vec!["AiTasks/login/.target.md".to_owned(), "AiTasks/login/.index.json".to_owned()],
        branch: "task/login".to_owned(),
        worktree: String::new(),
        commit: None,
    };
    page.sample(
        "`module init`",
        "The folder and the files that were written, below the root of the repository.",
        &made,
    );
    let mended = ModulesMended {
        mended: vec![ModuleMended {
            module: "AiTasks/login".to_owned(),
            wrong: "AiTasks/login/.index.json:3: this is no JSON: trailing comma".to_owned(),
            done: "restored from the last commit".to_owned(),
            copy: "AiTasks/login/.index.json.corrupt-2026-03-10".to_owned(),
            note: "AiTasks/login/.analysis/2026-03-10-index-recovery.md".to_owned(),
        }],
        fine: 3,
    };
    page.sample("`module mend`", "What was broken, and where the broken file is kept.", &mended);
    let verified = api::IssueVerified {
        issue: 12,
        pr: None,
        commit: "4f9c1d2b7a6e5f40312233445566778899aabbcc".to_owned(),
        mode: "safe".to_owned(),
        outcome: "reopened".to_owned(),
        text: "something does not hold (time 1); back to work".to_owned(),
        iteration: Some(1),
        ticked: 1,
        told: true,
        dry_run: false,
        criteria: vec![api::CriterionSeen {
            text: "there is a README".to_owned(),
            section: "pre-merge".to_owned(),
            result: "FAIL".to_owned(),
            evidence: "there is no `README.md`".to_owned(),
            took_ms: 3,
        }],
        notes: vec!["`.landfall/verify-commands/grep.md` is not used".to_owned()],
    };
    page.sample(
        "`verify`",
        "The criteria of an issue with what was seen. `outcome` is `done`, `left-over`, `reopened`, `needs-a-person`, `waiting`, `unsure` or `not-begun`.",
        &verified,
    );
    let issue = api::IssueLine {
        number: 12,
        title: "The parser loses spaces".to_owned(),
        state: api::IssueState::Open,
        labels: vec!["triaged".to_owned(), "size/M".to_owned()],
        size: Some(Size::M),
        author: Some("ann".to_owned()),
        comments: 1,
        updated_ms: AT_MS,
        url: "https://github.com/o/r/issues/12".to_owned(),
    };
    follow_samples(&mut page);
    page.sample("`issue new`", "The issue that was made.", &api::IssueMade { issue: issue.clone() });
    page.sample(
        "`issue list`",
        "Newest first. `state` is `open`, `done` or `not-planned`; `size` is what a label says.",
        &api::IssueList {
            tracker: "github".to_owned(),
            place: "o/r on github.com".to_owned(),
            issues: vec![issue.clone()],
            unreadable: vec![api::UnreadableIssue {
                what: ".landfall/issues/7.md".to_owned(),
                why: "line 3: invalid string".to_owned(),
            }],
        },
    );
    page.sample(
        "`issue pr`",
        "Everything about a pull request. `state` is `draft`, `open`, `merged` or `closed`.",
        &api::PullRequestDetail {
            number: 13,
            title: "fix: The parser loses spaces".to_owned(),
            state: "merged".to_owned(),
            branch: Some("landfall/issue-12".to_owned()),
            base: Some("main".to_owned()),
            head: "3f2a".repeat(10),
            merged: Some("77e1".repeat(10)),
            author: Some("ann".to_owned()),
            created_ms: AT_MS,
            url: "https://github.com/o/r/pull/13".to_owned(),
            body: "Closes #12".to_owned(),
            reviews: vec![api::PullRequestReview {
                author: Some("bo".to_owned()),
                verdict: "approved".to_owned(),
                commit: Some("3f2a".repeat(10)),
                body: "Nothing to find.".to_owned(),
            }],
            checks: vec![api::PullRequestCheck { name: "build".to_owned(), state: "success".to_owned() }],
            comments: vec![api::IssueComment {
                id: 4,
                author: Some("bo".to_owned()),
                at_ms: AT_MS,
                body: "Thanks.".to_owned(),
            }],
        },
    );
    page.sample(
        "`issue show`",
        "Everything about one issue. What others wrote is as they wrote it.",
        &api::IssueDetail {
            issue: issue.clone(),
            body: "`a b` becomes `ab`.".to_owned(),
            created_ms: AT_MS,
            parent: Some("#9".to_owned()),
            children: vec![api::IssueLine { number: 13, ..issue.clone() }],
            blocked_by: vec![api::IssueBlocker { issue: "#7".to_owned(), open: true }],
            comments: vec![api::IssueComment {
                id: 3,
                author: Some("bo".to_owned()),
                at_ms: AT_MS,
                body: "Tabs, too.".to_owned(),
            }],
            notes: vec![
                "read what #12 is made of: refused: o/x#3, a part of it, is in another repository".to_owned(),
            ],
        },
    );
    page.sample(
        "`issue comment`, `edit`, `tick`, `close`, `reopen`, `label`, `size`",
        "The issue as it is now, and what became of it in words.",
        &api::IssueChanged { issue, text: "#12 is closed as done".to_owned() },
    );
    page.sample(
        "`add`",
        "The tasks that were added, in the order they were given.",
        &Added { tasks: vec![line()] },
    );
    let tasks = TaskPage { tasks: vec![line()], next: Some(WireTaskId(7)) };
    page.sample("`list`", "A page; `next` is what to give as `--after` for the next one.", &tasks);
    page.sample(
        "`show`",
        "Everything about one task. `cost_from` is `agent`, `prices` (the table of prices, by the tokens) or `both`.",
        &detail(),
    );
    page.sample("`edit`, `retry`, `cancel`, `answer`", "The tasks that changed.", &changed());
    page.sample(
        "`run`, `demo`",
        "Written when the run has ended. `ended` is `\"finished\"`, `\"one-done\"`, `\"goal\"`, `\"drained\"`, `\"stopped\"`, \
         `{\"paused\": reason}`, `{\"held\": reason}` or `{\"broken\": problem}`. `sprint` is there if it was for one.",
        &outcome(),
    );
    page.sample(
        "`status`",
        "How the project stands. A status without tasks is left out of `counts`. The `state` of an account is `open`, `used-up` or \
         `logged-out`; `of` of a budget is `usd`, `tokens`, `turns` or `time` (in milliseconds). `agent` is there while one works and \
         the engine that runs it answers.",
        &status(),
    );
    autopilot(&mut page);
    by_hand(&mut page);
    views(&mut page);
    let why = Why {
        task: WireTaskId(7),
        status: Status::Waiting,
        sentence: "T7 waits for your answer: Tabs or spaces?".to_owned(),
        details: vec!["asked in iteration 2".to_owned()],
        progress: Some(Box::new(progress())),
        clashes: vec![clash(7, 8)],
    };
    page.sample("`why`", "The sentence, and more lines if there is more to say. `clashes` names works under way that it does not fit together with as they stand.", &why);
    let log = LogPage {
        entries: vec![LogEntry {
            seq: 41,
            at_ms: AT_MS,
            task: Some(WireTaskId(7)),
            kind: "iteration-ended".to_owned(),
            text: "iteration 2 ended: the agent asks".to_owned(),
            data: json!({ "iteration": 2 }),
        }],
        next: 41,
        more: false,
    };
    page.sample("`log`", "A page of the journal. `log -f` writes one such entry a line instead.", &log);
    let diff = Diff {
        task: WireTaskId(7),
        from: "b0…".to_owned(),
        to: "5e…".to_owned(),
        diff: Blob::Text("diff --git a/x b/x\n…".to_owned()),
    };
    page.sample("`diff`", "`encoding` is `text`, or `base64` when the diff is not UTF-8.", &diff);
    let stopped = Stopped {
        run: Some(WireRunId(2)),
        tasks: vec![WireTaskId(7)],
        text: "R2 stops after T7's iteration.".to_owned(),
        details: vec!["T7: iteration 2 of its agent stops after this iteration".to_owned()],
    };
    page.sample("`stop`", "What is being stopped.", &stopped);
    let rolled_back = RolledBack {
        task: WireTaskId(7),
        new_task: Some(WireTaskId(12)),
        text: "T12 undoes T7; `landfall run` lands it.".to_owned(),
    };
    page.sample("`rollback`", "What happens now.", &rolled_back);
    let report = Report { of: ReportOf::Task(WireTaskId(7)), markdown: "# T7 …".to_owned(), run: None };
    let report = Report { run: Some(Box::new(run_report())), ..report };
    page.sample("`report`", "`of` is a task, a run (`{\"run\": \"R2\"}`) or `\"last-run\"`.", &report);
    let flows = FlowList {
        flows: vec![FlowLine {
            name: "loop".to_owned(),
            about: "work until done and verified, land, report".to_owned(),
            origin: FlowOrigin::BuiltIn,
            steps: vec!["work".to_owned(), "land".to_owned()],
            default: true,
            not_yet: Some("step `check` is not driven yet".to_owned()),
        }],
    };
    page.sample("`flow list`", "`origin` is `built-in` or `project`.", &flows);
    let drawing =
        FlowDrawing { name: "loop".to_owned(), form: FlowForm::Text, text: "work → land …".to_owned() };
    page.sample("`flow show`", "`form` is `text`, `mermaid` or `source`.", &drawing);
    let checked = FlowChecked {
        name: "mine.toml".to_owned(),
        problems: vec![FlowProblem {
            line: Some(4),
            message: "unknown step `wrok`".to_owned(),
            hint: Some("did you mean `work`?".to_owned()),
        }],
    };
    page.sample("`flow check`", "No problems: all is well.", &checked);
    let exported = Exported {
        files: vec![ExportedFile {
            name: "T7-fix-the-parser.md".to_owned(),
            text: "+++\ntitle = \"Fix the parser\"\n+++\n".to_owned(),
        }],
    };
    page.sample("`export`", "Files that `landfall add -f` reads.", &exported);
    let imported = Imported {
        format: Format::Beads,
        dry_run: false,
        tasks: vec![new_task()],
        added: vec![line()],
        there: vec![There { id: WireTaskId(3), item: "bd-1".to_owned(), title: "The parser".to_owned() }],
        left_out: vec![LeftOut { what: "closed issue".to_owned(), count: 2 }],
    };
    page.sample(
        "`import`",
        "What is new in the file (`#2` is the second of `tasks`), and the same as it was added. `there` was imported before.",
        &imported,
    );
    let proposal = Proposal {
        number: 3,
        agent: "default".to_owned(),
        model: Some("sonnet".to_owned()),
        tasks: vec![new_task()],
        mended: vec!["`b` has the same title as `a` and was left out".to_owned()],
        rounds: 2,
        usage: usage(),
        took_ms: 41_000,
        outcome: ProposalOutcome::Added,
        added: vec![line()],
    };
    page.sample(
        "`propose`",
        "The proposal (`#2` is the second of `tasks`), and what became of it: `shown`, `added`, `drafts` or `declined`. \
         `--accept` answers as `edit` does.",
        &proposal,
    );
    let agents = AgentsFound {
        kinds: vec![AgentKind {
            kind: "claude".to_owned(),
            about: "Claude Code.".to_owned(),
            program: Some("claude".to_owned()),
            path: Some("/usr/local/bin/claude".to_owned()),
            version: Some("2.1.325 (Claude Code)".to_owned()),
            problem: Some("no answer within 10 s".to_owned()),
            install: "npm install -g @anthropic-ai/claude-code".to_owned(),
            login: "run `claude` once and use /login".to_owned(),
        }],
        profiles: vec![AgentProfile {
            profile: "default".to_owned(),
            kind: "claude".to_owned(),
            model: Some("sonnet".to_owned()),
            effort: Some("high".to_owned()),
            style: "session".to_owned(),
            account: "claude".to_owned(),
            failover: Some("spare".to_owned()),
            sandbox: "write".to_owned(),
            path: Some("/usr/local/bin/claude".to_owned()),
            command: Some("claude -p --model sonnet … < PROMPT_FILE".to_owned()),
            problem: Some("`claude` is not on the PATH".to_owned()),
            hint: Some("npm install -g @anthropic-ai/claude-code".to_owned()),
            probe: Some(Probed {
                answer: ProbeAnswer::Answers,
                detail: "landfall".to_owned(),
                until_ms: Some(AT_MS),
                model: Some("claude-sonnet-4-5".to_owned()),
                took_ms: 4_100,
                usage: usage(),
            }),
        }],
    };
    page.sample(
        "`agents`",
        "`answer` is `answers`, `wants-login`, `used-up`, `trouble`, `failed` or `silent`; it is there with `--probe` only.",
        &agents,
    );
    let health = Health {
        checks: vec![Check {
            name: "git".to_owned(),
            state: CheckState::Warn,
            detail: "version 2.38".to_owned(),
            hint: Some("2.40 or newer is faster".to_owned()),
        }],
    };
    page.sample("`doctor`", "`state` is `ok`, `warn` or `bad`.", &health);
    let found = landfall_api::DiscoveryList {
        discoveries: vec![landfall_api::DiscoveryLine {
            number: 3,
            task: WireTaskId(7),
            global: true,
            impact: "high".to_owned(),
            text: "the tests need a database on port 5432".to_owned(),
            at_ms: AT_MS,
            seen_ms: AT_MS,
            times: 2,
            archived: false,
            withdrawn: true,
        }],
    };
    page.sample("`discoveries`", "With `--all`, what is of no use any more, too.", &found);
    let reclaimed = Reclaimed {
        dry_run: true,
        items: vec![ReclaimedItem {
            what: "workspace of T7".to_owned(),
            path: "…/workspaces/T7".to_owned(),
            bytes: 12_000_000,
            why_safe: "T7 landed as 3f2a9c0d1e and nothing in it is newer".to_owned(),
        }],
        bytes: 12_000_000,
        kinds: vec![landfall_api::ReclaimedKind {
            kind: "workspace".to_owned(),
            count: 1,
            bytes: 12_000_000,
        }],
    };
    page.sample("`reclaim`", "With `--dry-run` what would go, without it what went.", &reclaimed);

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/json.md");
    if std::env::var_os("LANDFALL_BLESS").is_some() {
        std::fs::write(&path, &page.0).expect("write the page");
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap_or_default(),
        page.0,
        "LANDFALL_BLESS=1 writes it again"
    );
}

const PREFACE: &str = r#"# What `--json` writes

<!-- Made from crates/landfall-api/tests/it/shapes.rs; LANDFALL_BLESS=1 cargo test -p landfall-api writes it again. -->

Every command takes `--json`. The answer goes to stdout: one line, or spread out on a terminal. It is the same value that
the engine sends over its socket.

- Names that end in `_ms` are milliseconds: moments since 1970, or durations. `_bytes` are bytes, `_usd` dollars.
- Tasks are `"T7"`, runs `"R2"`, sprints `"S3"`, commits and trees full hex.
- Statuses: `draft`, `ready`, `active`, `waiting`, `blocked`, `review`, `landing`, `done`, `failed`, `timeout`, `cancelled`.
- Waits: `dependency`, `slot`, `quota`, `login`, `budget`, `question`, `backoff`, `disk`, `pause`, `conflict`, `gate broken`.
- Outcomes of checks: `pass`, `flaky`, `pre-existing`, `fail`, `timeout`, `broken`.
- What is not known or not there is left out. The samples below show every field.
- New fields may come at any time: take no notice of what you do not know.
- Control characters and marks that turn the direction of writing are written as `\u` escapes.

`certificate` always writes JSON, in a shape with a version of its own. `completions` writes `shell` and `script`.

An error goes to stderr, on one line, and the exit code is that of [exit-codes.md](exit-codes.md):

```json
{"error":{"exit":5,"hint":"`landfall list` shows the tasks there are","message":"there is no task T9","problem":"unknown-task","word":"unknown-thing"}}
```
"#;

fn left_out() -> api::LeftOutIssue {
    api::LeftOutIssue {
        number: 17,
        title: "Read tabs".to_owned(),
        why: "it is closed as not planned; `landfall issue reopen 17` opens it again".to_owned(),
    }
}

fn follow_samples(page: &mut Page) {
    let followed = api::IssuesFollowed {
        batch: Some(api::HaulId(3)),
        issues: vec![api::FollowedIssue {
            number: 12,
            title: "The parser loses spaces".to_owned(),
            size: Some(Size::M),
            way: "M: pull request, light review, spec first".to_owned(),
            task: Some(WireTaskId(7)),
            settled: true,
            blocked_by: vec!["#9".to_owned()],
            triage: true,
            parts: vec![api::FollowedPart {
                number: 14,
                title: "Tabs".to_owned(),
                size: Some(Size::S),
                level: 2,
                waits_for: vec![13],
            }],
            text: "is followed by T7".to_owned(),
        }],
        left_out: vec![left_out()],
        text: "1 issue, and 1 left out".to_owned(),
    };
    page.sample(
        "`auto --dry-run`",
        "Which issues would be followed, in the order in which they are begun. `task` and `batch` are there once they are. `left_out` are \
         those of a batch that nobody is to do.",
        &followed,
    );
    let summary = api::IssueSummary {
        number: 12,
        title: "The parser loses spaces".to_owned(),
        task: WireTaskId(7),
        stand: IssueStanding::Partial,
        banner: "auto #12 partial success: opportunistic pending".to_owned(),
        way: Some("M: pull request, light review, spec first".to_owned()),
        pr: Some(13),
        phases: vec![api::PhaseLine {
            phase: "code".to_owned(),
            result: "done".to_owned(),
            notes: "1 red verification → fixed".to_owned(),
            tokens: 12_000,
            cost_usd: Some(0.4),
        }],
        pending: vec!["people like it (SKIPPED)".to_owned()],
        why: Some("no idea".to_owned()),
        next: "`landfall auto 12` looks again".to_owned(),
    };
    page.sample(
        "`auto N`, `auto --batch …`",
        "What became of each issue. `stand` is `complete`, `partial`, `stopped`, `needs-person`, `waits` or `under-way`; `result` of a \
         phase is `-` if it was not run. `run` is as in `run`, and missing where nothing was left to do.",
        &api::AutoReport {
            batch: Some(api::HaulId(3)),
            issues: vec![summary],
            left_out: vec![left_out()],
            run: Some(outcome()),
        },
    );
    page.sample(
        "`auto --list`",
        "Batches of issues of which something is left, newest first.",
        &api::HaulList {
            batches: vec![api::HaulLine {
                id: api::HaulId(3),
                begun_ms: AT_MS,
                chosen: "by number".to_owned(),
                remaining: vec![14],
                completed: vec![12],
                failed: vec![13],
            }],
        },
    );
    page.sample(
        "`reconcile`",
        "Whether a phase of an issue is complete, by what can be seen. What is not there is null.",
        &api::Reconciliation {
            schema_version: "v1".to_owned(),
            phase: "merge".to_owned(),
            matches_expected: true,
            actual: api::ReconciliationSeen {
                labels: vec!["phase/verify".to_owned(), "triaged".to_owned()],
                pr_state: Some("MERGED".to_owned()),
                pr_number: Some(13),
                commits_found: true,
                spec_file: Some("docs/spec/issue-12-parser.md".to_owned()),
                issue_state: "OPEN".to_owned(),
                reopen_ts: Some("2026-07-29T00:00:00Z".to_owned()),
                hint_recent_commit: Some("4f9c1d2b7a6e5f40312233445566778899aabbcc".to_owned()),
                hint_pr_state: Some("pull request #13 is MERGED, its review is summed up".to_owned()),
            },
            diagnosis: "pull request #13 is MERGED".to_owned(),
        },
    );
}

fn rollup_samples(page: &mut Page) {
    let count = |what: &str| api::RollupCount { what: what.to_owned(), count: 2 };
    page.sample(
        "`stats --phases`",
        "What happened to issues: runs, how long phases were worked on and how long they waited besides, what was done about failures, what each phase used.",
        &api::Rollup {
            from_ms: AT_MS,
            sessions: vec![api::RollupSession {
                session: "R3".to_owned(),
                batches: vec!["H1".to_owned()],
                from_ms: AT_MS,
                until_ms: AT_MS,
                issues: vec![12, 13],
                done: 1,
                failed: 1,
            }],
            phases: vec![api::RollupPhase {
                phase: "code".to_owned(),
                begun: 3,
                count: 2,
                median_ms: Some(600_000),
                p95_ms: Some(900_000),
                worked_ms: 1_500_000,
                waited_ms: 420_000,
                waits: vec![
                    api::RollupWait { what: "person".to_owned(), ms: 300_000 },
                    api::RollupWait { what: "checks".to_owned(), ms: 120_000 },
                ],
            }],
            recoveries: vec![api::RollupRecovery { tier: "2".to_owned(), count: 2, success: 1, failed: 1 }],
            anomalies: vec![count("silent-no-op")],
            interventions: vec![count("retry")],
            tokens: vec![api::RollupTokens {
                phase: "code".to_owned(),
                model: "large-1".to_owned(),
                runs: 3,
                tokens_in: 100_000,
                tokens_cached: 60_000,
                tokens_out: 9_000,
                cost_usd: Some(1.2),
            }],
            recovery_log: vec!["### 2026-07-29T14:03:00Z: silent-no-op\n\n…\n".to_owned()],
        },
    );
    page.sample(
        "`issue events`",
        "One such object per line, oldest first. What else is known depends on `event`, and is text. By HTTP they come in pages: `events`, and `next` where there are more.",
        &api::IssueTrace {
            ts: "2026-07-29T14:03:00.120Z".to_owned(),
            issue: 12,
            event: "phase_complete".to_owned(),
            session_id: "R3".to_owned(),
            fields: [("phase", "code"), ("duration_sec", "312"), ("wait_sec", "40"), ("waited_for", "checks")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        },
    );
    page.sample(
        "`issue proposals`",
        "What agents would have done otherwise in future. `tier` is `issue`, `memory` or `note`.",
        &api::ImprovementList {
            proposals: vec![api::Improvement {
                id: "3fa91c07".to_owned(),
                tier: "issue".to_owned(),
                title: "Say where profiles are".to_owned(),
                text: "Say where profiles are: nobody knows where they are read".to_owned(),
                from: "the spec of #12, code".to_owned(),
                issue: Some(14),
                draft: Some(WireTaskId(9)),
            }],
        },
    );
}
