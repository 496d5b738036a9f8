//! `landfall.toml`: what it says, and what is said about mistakes in it.

use std::fs;
use std::path::Path;

use expect_test::{Expect, expect};
use landfall_engine::settings::{PublishTarget, PushMode, Settings, SettingsProblem, VerifySettings};

fn parse(text: &str) -> Settings {
    Settings::parse(text, "landfall.toml").unwrap_or_else(|problem| panic!("{problem}"))
}

fn shown(problem: &SettingsProblem) -> String {
    let hint = problem.hint.as_deref().map(|hint| format!("\nhint: {hint}"));
    format!("{problem}{}\n", hint.unwrap_or_default())
}

fn refuses(text: &str, expected: Expect) {
    let problem = Settings::parse(text, "landfall.toml").expect_err("it should be refused");
    expected.assert_eq(&shown(&problem));
}

#[test]
fn an_empty_file_is_valid_and_means_the_defaults() {
    assert_eq!(parse(""), Settings::defaults());
    assert_eq!(parse("# nothing but a comment\n[run]\n[verify]\n"), Settings::defaults());
    expect![[r#"
        Settings {
            project: ProjectSettings {
                base: None,
                flow: "loop",
            },
            verify: VerifySettings {
                required: false,
                retries: 1,
                keep_ignored: false,
                base_tests: Review,
                mutation: Report,
                red_base: Wait,
                commands: [],
            },
            run: RunSettings {
                slots: 3,
                lanes: 1,
                iterations_max: 50,
                task_limit_ms: 1800000,
                stuck_after: 5,
                watch: LivenessLimits {
                    beat_ms: 60000,
                    beats: 3,
                    silence_ms: 600000,
                    first_output_ms: 120000,
                    tool_ms: 2700000,
                },
                stalls_step_max: 3,
                stalls_total_max: 10,
                compact_percent: 82,
                compactions_max: 3,
                sandbox: Isolated,
                is_sandbox_lowered: false,
                sandbox_read: [],
                caches: [],
                sandbox_write: [],
                sandbox_hide: [],
                grace_ms: 10000,
                step_grace_ms: 300000,
                output_cap: 67108864,
                restarts_max: 3,
                failures_max: 3,
                mode: Autopilot,
                env: [],
            },
            agents: {},
            caps: ConcurrencyLimits {
                profiles: {},
                accounts: {},
                areas: [],
            },
            attempt_budget: Budget {
                micro_usd: None,
                tokens: None,
                turns: None,
                time_ms: None,
            },
            task_budget: Budget {
                micro_usd: None,
                tokens: None,
                turns: None,
                time_ms: None,
            },
            purse: RunBudgets {
                run: Budget {
                    micro_usd: None,
                    tokens: None,
                    turns: None,
                    time_ms: None,
                },
                day: Budget {
                    micro_usd: None,
                    tokens: None,
                    turns: None,
                    time_ms: None,
                },
            },
            prices: Prices(
                {
                    "claude-haiku": Price {
                        input: 1000000,
                        cached: 100000,
                        output: 5000000,
                    },
                    "claude-opus": Price {
                        input: 5000000,
                        cached: 500000,
                        output: 25000000,
                    },
                    "claude-opus-4-1": Price {
                        input: 15000000,
                        cached: 1500000,
                        output: 75000000,
                    },
                    "claude-sonnet": Price {
                        input: 3000000,
                        cached: 300000,
                        output: 15000000,
                    },
                    "gemini-2.5-flash": Price {
                        input: 300000,
                        cached: 75000,
                        output: 2500000,
                    },
                    "gemini-2.5-pro": Price {
                        input: 1250000,
                        cached: 310000,
                        output: 10000000,
                    },
                    "gpt-4.1": Price {
                        input: 2000000,
                        cached: 500000,
                        output: 8000000,
                    },
                    "gpt-5": Price {
                        input: 1250000,
                        cached: 125000,
                        output: 10000000,
                    },
                    "gpt-5-mini": Price {
                        input: 250000,
                        cached: 25000,
                        output: 2000000,
                    },
                    "haiku": Price {
                        input: 1000000,
                        cached: 100000,
                        output: 5000000,
                    },
                    "opus": Price {
                        input: 5000000,
                        cached: 500000,
                        output: 25000000,
                    },
                    "sonnet": Price {
                        input: 3000000,
                        cached: 300000,
                        output: 15000000,
                    },
                },
            ),
            land: LandSettings {
                publish: Checkout,
                commit_leftovers: true,
                paths_max: 200000,
                batch: 4,
                speculate: 1,
                runaway: 20,
                conflict_wait_ms: 3600000,
                conflict_overdue: Defer,
            },
            review: ReviewSettings {
                rule: ReviewRule {
                    mode: Skip,
                    iterations_max: 3,
                    after: false,
                },
                tags: {},
                agent: None,
            },
            judge: None,
            checkpoint: CheckpointSettings {
                automatic: true,
                retention: Retention {
                    count: 50,
                    age_ms: 2592000000,
                },
            },
            keep: RetentionSettings {
                failed_ms: 604800000,
                attempts_ms: 2592000000,
            },
            disk: DiskSettings {
                warn_bytes: 1000000000,
                pause_bytes: 500000000,
                stop_bytes: 100000000,
            },
            workspace: WorkspaceSettings {
                after_create: None,
                before_run: None,
                after_run: None,
                before_remove: None,
                timeout_ms: 300000,
                ports: None,
            },
            hooks: HookSettings {
                commands: {},
                limit_ms: 30000,
                env: [],
            },
            notify: [],
            telemetry: None,
            tracker: TrackerSettings {
                kind: Some(
                    "local",
                ),
                repository: None,
                base: None,
                token_file: None,
                webhook_secret_file: None,
                folder: None,
                size_field: Some(
                    "Size",
                ),
                poll_ms: 60000,
                write_pause_ms: 1000,
                spec_path: "docs/spec",
                always_pr: false,
                file_proposals: false,
                verify_iterations_max: 3,
                concurrent: 5,
                production_url: None,
                preview_url: None,
                local_url: None,
                verify_ignore: [],
            },
            mapped: [],
        }
    "#]]
    .assert_debug_eq(&Settings::defaults());
}

/// The sample of the design, without the section that this version does not have.
const SAMPLE: &str = r#"[project]
base = "main"
flow = "loop"

[verify]
required = true
[[verify.command]]
name = "tests"
run = "cargo test"
timeout = "10m"

[run]
slots = 3
iterations_max = 50
task_limit = "30m"

[agent.default]                    # a profile
kind = "claude"
model = "opus"
[agent.judge]
kind = "codex"
[agent.mine]
kind = "command"
run = "my-agent --unattended"
"#;

#[test]
fn the_sample_of_the_design_is_understood() {
    let settings = parse(SAMPLE);
    assert_eq!(settings.project.base.as_deref(), Some("main"));
    assert!(settings.verify.required);
    assert_eq!(settings.verify.commands[0].timeout_ms, 600_000);
    assert_eq!(settings.agents.keys().collect::<Vec<_>>(), ["default", "judge", "mine"]);
    assert_eq!(settings.agents["default"].model.as_deref(), Some("opus"));
    assert_eq!(settings.agents["mine"].run.as_deref(), Some("my-agent --unattended"));
    assert_eq!(settings.agents["mine"].name, "mine");
}

#[test]
fn a_file_from_another_system_reads_the_same() {
    assert_eq!(parse(&SAMPLE.replace('\n', "\r\n")), parse(SAMPLE));
    assert_eq!(parse(&format!("\u{feff}{SAMPLE}")), parse(SAMPLE));
}

#[test]
fn a_file_cut_anywhere_is_understood_or_refused_within_its_lines() {
    for end in 0..SAMPLE.len() {
        let cut = &SAMPLE[..end];
        for problem in
            [Settings::parse(cut, "f").err(), VerifySettings::from_base(cut).err()].into_iter().flatten()
        {
            let line = problem.line.unwrap_or_else(|| panic!("no line for a file cut at {end}: {problem}"));
            assert!((1..=cut.lines().count().max(1)).contains(&line), "cut at {end}: {problem}");
        }
    }
}

#[test]
fn a_section_this_version_does_not_have_is_named_not_ignored() {
    refuses(
        &format!("{SAMPLE}\n[forge]\nkind = \"github\"\n"),
        expect![[r#"
            landfall.toml:26:2: unknown section [forge]
            hint: known sections: [project], [verify], [run], [sandbox], [agent], [account], [area], [budget], [price], [land], [review], [judge], [checkpoint], [keep], [disk], [workspace], [hooks], [notify], [telemetry], [tracker]
        "#]],
    );
    refuses(
        "[sprint]\nlength = \"8h\"\n",
        expect![[r#"
            landfall.toml:1:2: unknown section [sprint]
            hint: known sections: [project], [verify], [run], [sandbox], [agent], [account], [area], [budget], [price], [land], [review], [judge], [checkpoint], [keep], [disk], [workspace], [hooks], [notify], [telemetry], [tracker]
        "#]],
    );
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_known_one_at_every_level() {
    refuses(
        "[run]\nslots = 2\n  slotz = 3\n",
        expect![[r#"
            landfall.toml:3:3: unknown key `slotz` in [run]
            hint: did you mean `slots`?
        "#]],
    );
    refuses(
        "[rum]\nslots = 2\n",
        expect![[r#"
            landfall.toml:1:2: unknown section [rum]
            hint: did you mean [run]?
        "#]],
    );
    refuses(
        "[agent.x]\nkind = \"command\"\nmodle = \"m\"\n",
        expect![[r#"
            landfall.toml:3:1: unknown key `modle` in [agent.x]
            hint: did you mean `model`?
        "#]],
    );
    refuses(
        "[[verify.command]]\nrun = \"a\"\n[[verify.command]]\nrun = \"b\"\ntimeot = \"1s\"\n",
        expect![[r#"
            landfall.toml:5:1: unknown key `timeot` in [[verify.command]]
            hint: did you mean `timeout`?
        "#]],
    );
    refuses(
        "verify = { commands = [\"a\"] }\n",
        expect![[r#"
            landfall.toml:1:12: unknown key `commands` in [verify]
            hint: did you mean `command`?
        "#]],
    );
    refuses(
        "[run]\nzzz = 1\n",
        expect![[r#"
            landfall.toml:2:1: unknown key `zzz` in [run]
            hint: known keys: slots, lanes, iterations_max, task_limit, stuck_after, silence, first_output, heartbeat, heartbeats, tool_limit, stalls_step_max, stalls_total_max, transients_max, compact_at, compactions_max, sandbox, sandbox_read, caches, sandbox_write, sandbox_hide, grace, step_grace, output_cap, restarts_max, failures_max, mode, env
        "#]],
    );
    refuses(
        "slots = 3\n",
        expect![[r#"
            landfall.toml:1:1: unknown key `slots` outside of any section
            hint: [run] has a key of that name
        "#]],
    );
    refuses(
        "[project]\nslots = 3\n",
        expect![[r#"
            landfall.toml:2:1: unknown key `slots` in [project]
            hint: [run] has a key of that name
        "#]],
    );
    refuses(
        "[run]\n\"a\\nb\" = 1\n",
        expect![[r#"
            landfall.toml:2:1: unknown key `a\nb` in [run]
            hint: known keys: slots, lanes, iterations_max, task_limit, stuck_after, silence, first_output, heartbeat, heartbeats, tool_limit, stalls_step_max, stalls_total_max, transients_max, compact_at, compactions_max, sandbox, sandbox_read, caches, sandbox_write, sandbox_hide, grace, step_grace, output_cap, restarts_max, failures_max, mode, env
        "#]],
    );
}

#[test]
fn of_several_unknown_keys_the_first_in_the_file_is_named() {
    let problem = Settings::parse("[verify]\nzzz = 1\n[project]\nyyy = 1\n", "f").expect_err("refused");
    assert_eq!((problem.line, problem.column), (Some(2), Some(1)));
}

#[test]
fn broken_toml_is_shown_with_its_line() {
    refuses(
        "[run]\nslots = = 3\n",
        expect![[r#"
            landfall.toml:2:9: not TOML: extra `=`, expected nothing, in `slots = = 3`
        "#]],
    );
    refuses(
        "[run\nslots = 3\n",
        expect![[r#"
            landfall.toml:1:5: not TOML: unclosed table, expected `]`, in `[run`
        "#]],
    );
    refuses(
        "[run]\ntask_limit = 30m\n",
        expect![[r#"
            landfall.toml:2:14: not TOML: string values must be quoted, expected literal string, in `task_limit = 30m`
        "#]],
    );
    refuses(
        "[project]\nbase = \"main\n",
        expect![[r#"
            landfall.toml:2:13: not TOML: invalid basic string, expected `"`, in `base = "main`
        "#]],
    );
    refuses(
        "[run]\nslots = 3\nslots = 4\n",
        expect![[r#"
            landfall.toml:3:1: not TOML: duplicate key, in `slots = 4`
        "#]],
    );
    refuses(
        "just words\n",
        expect![[r#"
            landfall.toml:1:6: not TOML: key with no value, expected `=`, in `just words`
        "#]],
    );
}

#[test]
fn a_value_of_the_wrong_type_says_what_is_wanted() {
    refuses(
        "[run]\nslots = \"3\"\n",
        expect![[r#"
            landfall.toml:2:9: `run.slots`: expected a whole number from 1 to 64, found string "3"
        "#]],
    );
    refuses(
        "[run]\nslots = 1.5\n",
        expect![[r#"
            landfall.toml:2:9: `run.slots`: expected a whole number from 1 to 64, found floating point `1.5`
        "#]],
    );
    refuses(
        "[run]\ntask_limit = 30\n",
        expect![[r#"
            landfall.toml:2:14: `run.task_limit`: expected a duration such as "90s" or "1h30m", found integer `30`
        "#]],
    );
    refuses(
        "[verify]\nrequired = \"yes\"\n",
        expect![[r#"
            landfall.toml:2:12: `verify.required`: expected true or false, found string "yes"
        "#]],
    );
    refuses(
        "[verify]\ncommand = \"cargo test\"\n",
        expect![[r#"
            landfall.toml:2:11: `verify.command`: expected a list, found string "cargo test"
        "#]],
    );
    refuses(
        "[verify]\ncommand = [1]\n",
        expect![[r#"
            landfall.toml:2:12: `verify.command`: expected a command line or a table with `run`, found integer `1`
        "#]],
    );
    refuses(
        "run = 3\n",
        expect![[r#"
            landfall.toml:1:7: `run`: expected a table, found integer `3`
        "#]],
    );
    refuses(
        "[land]\npublish = \"pr\"\n",
        expect![[r#"
            landfall.toml:2:11: `land.publish`: expected one of `checkout`, `push`, `pull-request`, `none`, found unknown word `pr`
        "#]],
    );
    refuses(
        "[agent.x.env]\nA = 1\n[agent.x]\nkind = \"command\"\n",
        expect![[r#"
            landfall.toml:2:5: `agent.x.env.A`: expected text in quotes, found integer `1`
        "#]],
    );
}

#[test]
fn numbers_outside_their_range_are_refused_with_the_range() {
    refuses(
        "[run]\nslots = 0\n",
        expect![[r#"
            landfall.toml:2:9: `run.slots`: 0 is out of range: 1 to 64
        "#]],
    );
    refuses(
        "[run]\nslots = 65\n",
        expect![[r#"
            landfall.toml:2:9: `run.slots`: 65 is out of range: 1 to 64
        "#]],
    );
    refuses(
        "[run]\nslots = -1\n",
        expect![[r#"
            landfall.toml:2:9: `run.slots`: -1 is out of range: 1 to 64
        "#]],
    );
    refuses(
        "[run]\nslots = 99999999999999999999\n",
        expect![[r#"
            landfall.toml:2:9: `run.slots`: 99999999999999999999 is out of range: 1 to 64
        "#]],
    );
    refuses(
        "[run]\nlanes = 17\n",
        expect![[r#"
            landfall.toml:2:9: `run.lanes`: 17 is out of range: 1 to 16
        "#]],
    );
    refuses(
        "[run]\niterations_max = 1001\n",
        expect![[r#"
            landfall.toml:2:18: `run.iterations_max`: 1001 is out of range: 1 to 1000
        "#]],
    );
    refuses(
        "[verify]\nretries = 6\n",
        expect![[r#"
            landfall.toml:2:11: `verify.retries`: 6 is out of range: 0 to 5
        "#]],
    );
}

#[test]
fn the_ends_of_a_range_belong_to_it() {
    for (key, ends) in [
        ("slots", ["1", "64"]),
        ("lanes", ["1", "16"]),
        ("iterations_max", ["1", "1000"]),
        ("restarts_max", ["0", "100"]),
        ("task_limit", ["\"100ms\"", "\"30d\""]),
        ("grace", ["\"0s\"", "\"10m\""]),
        ("output_cap", ["\"64KiB\"", "\"10GiB\""]),
    ] {
        for end in ends {
            parse(&format!("[run]\n{key} = {end}\n"));
        }
    }
}

#[test]
fn durations_and_sizes_are_read_strictly() {
    let run =
        parse("[run]\ntask_limit = \"1h30m\"\nsilence = \"90s\"\ngrace = \"500ms\"\noutput_cap = \"64MB\"\n")
            .run;
    assert_eq!(
        (run.task_limit_ms, run.watch.silence_ms, run.grace_ms, run.output_cap),
        (5_400_000, 90_000, 500, 64_000_000)
    );
    refuses(
        "[run]\ntask_limit = \"30\"\n",
        expect![[r#"
            landfall.toml:2:14: `run.task_limit`: `30` is not a duration: its unit is missing (d, h, m, s or ms)
        "#]],
    );
    refuses(
        "[run]\ntask_limit = \"30 m\"\n",
        expect![[r#"
            landfall.toml:2:14: `run.task_limit`: `30 m` is not a duration: the units are d, h, m, s and ms, not ` m`
        "#]],
    );
    refuses(
        "[run]\ntask_limit = \"30min\"\n",
        expect![[r#"
            landfall.toml:2:14: `run.task_limit`: `30min` is not a duration: the units are d, h, m, s and ms, not `min`
        "#]],
    );
    refuses(
        "[run]\ntask_limit = \"5s1m\"\n",
        expect![[r#"
            landfall.toml:2:14: `run.task_limit`: `5s1m` is not a duration: larger units come first, each once
        "#]],
    );
    refuses(
        "[run]\ntask_limit = \"-5s\"\n",
        expect![[r#"
            landfall.toml:2:14: `run.task_limit`: `-5s` is not a duration: a number must come before each unit
        "#]],
    );
    refuses(
        "[run]\ntask_limit = \"99999999999999999999d\"\n",
        expect![[r#"
            landfall.toml:2:14: `run.task_limit`: `99999999999999999999d` is not a duration: it is too long
        "#]],
    );
    refuses(
        "[run]\ntask_limit = \"31d\"\n",
        expect![[r#"
            landfall.toml:2:14: `run.task_limit`: 31d is out of range: 100ms to 30d
        "#]],
    );
    refuses(
        "[run]\noutput_cap = \"64\"\n",
        expect![[r#"
            landfall.toml:2:14: `run.output_cap`: `64` is not a size: its unit is missing, such as MB or GiB
        "#]],
    );
    refuses(
        "[run]\noutput_cap = \"64M\"\n",
        expect![[r#"
            landfall.toml:2:14: `run.output_cap`: `64M` is not a size: the units are B, kB, MB, GB, TB and KiB, MiB, GiB, TiB, not `M`
        "#]],
    );
    refuses(
        "[run]\noutput_cap = \"1B\"\n",
        expect![[r#"
            landfall.toml:2:14: `run.output_cap`: 1B is out of range: 64KiB to 10GiB
        "#]],
    );
    refuses(
        "[[verify.command]]\nrun = \"a\"\ntimeout = \"2d\"\n",
        expect![[r#"
            landfall.toml:3:11: `verify.command.timeout`: 2d is out of range: 100ms to 1d
        "#]],
    );
}

#[test]
fn what_does_not_fit_together_is_refused_where_it_stands() {
    refuses(
        "[land]\nremote = \"origin\"\n",
        expect![[r#"
            landfall.toml:2:10: `land.remote` is set, but nothing is pushed
            hint: set `publish = "push"`, or take `remote` out
        "#]],
    );
    refuses(
        "[land]\npublish = \"push\"\nremote = \"--exec=x\"\n",
        expect![[r#"
            landfall.toml:3:10: `--exec=x` is not a remote
            hint: a name such as `origin`, or an address
        "#]],
    );
    refuses(
        "[disk]\nstop = \"2GB\"\n",
        expect![[r#"
            landfall.toml:2:8: `disk.stop` (2GB) is more than `disk.pause` (500MB)
            hint: `warn` comes first, then `pause`, then `stop`
        "#]],
    );
    refuses(
        "[disk]\npause = \"2GB\"\n",
        expect![[r#"
            landfall.toml:2:9: `disk.pause` (2GB) is more than `disk.warn` (1GB)
            hint: `warn` comes first, then `pause`, then `stop`
        "#]],
    );
    refuses(
        "[project]\nbase = \"-main\"\n",
        expect![[r#"
            landfall.toml:2:8: `-main` is not the name of a branch
            hint: a local branch such as `main`
        "#]],
    );
    refuses(
        "[project]\nflow = \"\"\n",
        expect![[r#"
            landfall.toml:2:8: `project.flow` is empty
            hint: `loop` is the default
        "#]],
    );
    refuses(
        "[run]\nenv = [\"OK\", \"A=b\"]\n",
        expect![[r#"
            landfall.toml:2:7: `A=b` in `run.env` is not the name of a variable
            hint: names only; values come from the environment
        "#]],
    );
    refuses(
        "[agent.x]\nmodel = \"m\"\n",
        expect![[r#"
            landfall.toml:1:1: `kind` is missing in [agent.x]
        "#]],
    );
    refuses(
        "[agent.x]\nkind = \"\"\n",
        expect![[r#"
            landfall.toml:2:8: `kind` in [agent.x] is empty
            hint: `landfall agents` lists the known kinds
        "#]],
    );
    refuses(
        "[agent.\"a b\"]\nkind = \"command\"\n",
        expect![[r#"
            landfall.toml:1:8: `a b` is no name for an agent
            hint: letters, digits, `-`, `_` and `.`
        "#]],
    );
    refuses(
        "[verify]\ncommand = [\"a\", \"  \"]\n",
        expect![[r#"
            landfall.toml:2:17: a verification command is empty
            hint: take it out, or say what to run
        "#]],
    );
    refuses(
        "[[verify.command]]\nname = \"t\"\nrun = \"a\"\n[[verify.command]]\nname = \"t\"\nrun = \"b\"\n",
        expect![[r#"
            landfall.toml:5:8: two commands are called `t`
            hint: call one of them otherwise
        "#]],
    );
    refuses(
        "[[verify.command]]\nname = \"t\"\n",
        expect![[r#"
            landfall.toml:1:1: `run` is missing in [verify.command]
        "#]],
    );
}

#[test]
fn commands_are_tables_or_plain_lines_and_always_have_a_name() {
    let verify = parse("[verify]\ntimeout = \"1m\"\ncommand = [\"cargo test\", \"cargo test\", { run = \"x\\ny\", timeout = \"2s\", required = false }]\n").verify;
    expect![[r#"
        required=false
        retries=1
        keep_ignored=false
        command="cargo test" run="cargo test" timeout_ms=60000 required=true
        command="cargo test (2)" run="cargo test" timeout_ms=60000 required=true
        command="x" run="x\ny" timeout_ms=2000 required=false
    "#]]
    .assert_eq(&verify.canonical_text());
    assert_eq!(verify.commands[0].timeout_ms, 60_000);
}

#[test]
fn only_the_first_commands_name_what_they_install_and_what_from() {
    let commands = |text: &str| format!("[verify]\ncommand = [{text}]\n");
    let installs = r#"{ run = "npm ci", installs = ["a/node_modules"], installs_from = ["package.json"] }"#;
    let verify = parse(&commands(&format!("{installs}, {{ run = \"npm test\" }}"))).verify;
    assert_eq!(verify.installing_commands().len(), 1);
    let refused = |text: &str, words: &str| {
        let problem = Settings::parse(&commands(text), "landfall.toml").expect_err(text);
        assert!(shown(&problem).contains(words), "{text}: {}", shown(&problem));
    };
    refused(installs, "every verification command has `installs`, so none would verify the work");
    refused(installs, "add a command without `installs` that runs the tests");
    refused(&format!("\"npm test\", {installs}"), "only the first commands may have `installs`");
    refused(r#"{ run = "x", installs = ["deps"] }"#, "`installs` without `installs_from`");
    refused(r#"{ run = "x", installs_from = ["lock"] }"#, "`installs_from` without `installs`");
    for path in ["/deps", "../deps", "a//b", ".git", ""] {
        let text = format!("{{ run = \"x\", installs = [{path:?}], installs_from = [\"lock\"] }}");
        refused(&text, "is no path inside of the project");
    }
}

#[test]
fn publishing_is_a_word_and_a_remote() {
    assert_eq!(parse("[land]\npublish = \"none\"\n").land.publish, PublishTarget::None);
    let push = |remote: &str| PublishTarget::Push { remote: remote.to_owned(), by: PushMode::Us };
    assert_eq!(parse("[land]\npublish = \"push\"\n").land.publish, push("origin"));
    assert_eq!(parse("[land]\npublish = \"push\"\nremote = \"up\"\n").land.publish, push("up"));
    let forge = "[tracker]\nkind = \"github\"\n[land]\npublish = \"pull-request\"\n";
    let offered = PublishTarget::Push { remote: "origin".to_owned(), by: PushMode::PullRequest };
    assert_eq!(parse(forge).land.publish, offered);
}

#[test]
fn the_canonical_text_changes_with_the_meaning_and_only_with_it() {
    let text = |toml: &str| parse(toml).verify.canonical_text();
    let plain = text("[verify]\ncommand = [\"a\"]\n");
    assert_eq!(
        plain,
        text(
            "# other words\n[[verify.command]]\nrequired = true\nrun = 'a'\nname = \"a\"\ntimeout = \"300s\"\n"
        )
    );
    for other in [
        "[verify]\ncommand = [\"b\"]\n",
        "[verify]\ncommand = [\"a\", \"a\"]\n",
        "[verify]\ntimeout = \"301s\"\ncommand = [\"a\"]\n",
        "[verify]\nretries = 0\ncommand = [\"a\"]\n",
        "[verify]\nrequired = true\ncommand = [\"a\"]\n",
        "[verify]\nkeep_ignored = true\ncommand = [\"a\"]\n",
        "[verify]\ncommand = [{ run = \"a\", required = false }]\n",
    ] {
        assert_ne!(plain, text(other), "{other}");
    }
    let installing =
        "[verify]\ncommand = [{ run = \"a\", installs = [\"deps\"], installs_from = [\"lock\"] }, \"b\"]\n";
    assert_ne!(text("[verify]\ncommand = [\"a\", \"b\"]\n"), text(installing));
    // A command cannot be written so that it looks like two.
    let one = text("[verify]\ncommand = [\"a\\\" timeout_ms=1 required=true\\ncommand=\\\"b\"]\n");
    assert_eq!(one.lines().filter(|line| line.starts_with("command=")).count(), 1);
}

#[test]
fn the_base_branch_is_asked_for_its_verify_section_only() {
    let newer = "[budget]\nday_usd = 40\n[run]\nslots = 1000\n[verify]\nrequired = true\ncommand = [\"make check\"]\n";
    let verify = VerifySettings::from_base(newer).expect("other sections do not matter");
    assert_eq!((verify.required, verify.commands[0].run.as_str()), (true, "make check"));
    assert_eq!(VerifySettings::from_base("").expect("no section"), Settings::defaults().verify);

    let refuses = |text: &str, expected: Expect| {
        expected
            .assert_eq(&shown(&VerifySettings::from_base(text).expect_err("the section is read strictly")));
    };
    refuses(
        "[budget]\nx = 1\n[verify]\ncomand = [\"a\"]\n",
        expect![[r#"
            landfall.toml:4:1: unknown key `comand` in [verify]
            hint: did you mean `command`?
        "#]],
    );
    refuses(
        "[verify]\nretries = 9\n",
        expect![[r#"
            landfall.toml:2:11: `verify.retries`: 9 is out of range: 0 to 5
        "#]],
    );
    refuses(
        "[[verify.command]]\nrun = \"\"\n",
        expect![[r#"
            landfall.toml:2:7: a verification command is empty
            hint: take it out, or say what to run
        "#]],
    );
    refuses(
        "verify = true\n",
        expect![[r#"
            landfall.toml:1:10: `verify`: expected a table, found boolean `true`
        "#]],
    );
    refuses(
        "[verify\n",
        expect![[r#"
            landfall.toml:1:8: not TOML: unclosed table, expected `]`, in `[verify`
        "#]],
    );
}

#[test]
fn the_reference_and_the_schema_are_what_the_code_says() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let schema = serde_json::to_string_pretty(&Settings::editor_schema()).expect("a schema is JSON");
    for (name, wanted) in
        [("settings.md", Settings::render_reference()), ("landfall.schema.json", format!("{schema}\n"))]
    {
        let file = reference.join(name);
        if std::env::var_os("LANDFALL_BLESS").is_some() {
            fs::write(&file, &wanted).expect("write the reference");
        }
        let found = fs::read_to_string(&file).unwrap_or_default();
        assert!(found == wanted, "docs/reference/{name} is out of date; run this test with LANDFALL_BLESS=1");
    }
}

#[test]
fn the_defaults_on_the_reference_page_read_back_as_the_defaults() {
    let page = Settings::render_reference();
    let (_, sample) = page.split_once("```toml\n").expect("the page ends with a sample");
    let sample = sample.trim_end().strip_suffix("```").expect("the sample is closed");
    assert_eq!(parse(sample), Settings::defaults());
}

#[test]
fn hooks_messages_and_workspaces_are_checked_before_anything_runs() {
    refuses(
        "[hooks]\npre-start = \"\"\n",
        expect![[r#"
        landfall.toml:2:13: `hooks.pre-start` is empty
        hint: take it out, or say what to run
    "#]],
    );
    refuses(
        "[hooks]\npre_start = \"true\"\n",
        expect![[r#"
        landfall.toml:2:1: unknown key `pre_start` in [hooks]
        hint: did you mean `pre-start`?
    "#]],
    );
    refuses(
        "[workspace]\nports = \"41000\"\n",
        expect![[r#"
        landfall.toml:2:9: `41000` is not a range of ports
        hint: two ports from 1024 to 65535, such as `41000-41999`
    "#]],
    );
    refuses(
        "[workspace]\nports = \"80-90\"\n",
        expect![[r#"
        landfall.toml:2:9: the ports `80-90` begin among those of the system
        hint: two ports from 1024 to 65535, such as `41000-41999`
    "#]],
    );
    refuses(
        "[workspace]\nports = \"41000-41004\"\n",
        expect![[r#"
        landfall.toml:2:9: the ports `41000-41004` are fewer than the 10 of one block (`ports_each`)
        hint: two ports from 1024 to 65535, such as `41000-41999`
    "#]],
    );
    refuses(
        "[[notify]]\nkind = \"slack\"\n",
        expect![[r#"
        landfall.toml:2:8: there is no address to post to
        hint: set `url`, or `url_env`
    "#]],
    );
    refuses(
        "[[notify]]\nkind = \"webhook\"\nurl = \"hooks.example/secret\"\n",
        expect![[r#"
        landfall.toml:3:7: `url` is not an address
        hint: `https://…`, or `http://…` for a machine of your own
    "#]],
    );
    refuses(
        "[[notify]]\nkind = \"desktop\"\n[[notify]]\nkind = \"desktop\"\nevents = [\"landing\"]\n",
        expect![[r#"
            landfall.toml:5:10: `landing` is nothing one is told of
            hint: known: question, escalation, alarm, paused, held, run-over, sprint-over, failed, landed
        "#]],
    );
    refuses(
        "[[notify]]\nkind = \"command\"\nurl = \"https://a.example\"\n",
        expect![[r#"
        landfall.toml:2:8: an address is set, but nothing of this kind is posted
        hint: `webhook`, `ntfy` and `slack` have an address
    "#]],
    );
}

#[test]
fn the_address_of_a_channel_is_not_shown() {
    let settings = parse("[[notify]]\nkind = \"slack\"\nurl = \"https://hooks.example/T0/B0/sesame\"\n");
    assert_eq!(settings.notify.len(), 1);
    let shown = format!("{settings:?}");
    assert!(!shown.contains("sesame") && !shown.contains("hooks.example"), "{shown}");
}

#[test]
fn profiles_accounts_and_areas_have_limits_of_their_own() {
    let settings = parse(
        "[agent.default]\nkind = \"claude\"\nslots = 2\n[agent.judge]\nkind = \"codex\"\naccount = \"team\"\n\
         [account.team]\nslots = 3\n[account.claude]\n\
         [[area]]\nname = \"web\"\npaths = [\"./web/\", \"**/*.css\"]\nslots = 1\n",
    );
    expect![[r#"
        ConcurrencyLimits {
            profiles: {
                "default": 2,
            },
            accounts: {
                "team": 3,
            },
            areas: [
                RepoArea {
                    name: "web",
                    paths: [
                        PathPattern {
                            text: "web/",
                            below: true,
                        },
                        PathPattern {
                            text: "**/*.css",
                            below: false,
                        },
                    ],
                    slots: 1,
                },
            ],
        }
    "#]]
    .assert_debug_eq(&settings.caps);
}

#[test]
fn a_limit_for_nobody_and_an_area_of_nothing_are_refused() {
    refuses(
        "[agent.default]\nkind = \"claude\"\n[account.clade]\nslots = 1\n",
        expect![[r#"
        landfall.toml:3:10: no agent works on the account `clade`
        hint: the accounts are `claude`
    "#]],
    );
    refuses(
        "[account.claude]\nslots = 1\n",
        expect![[r#"
        landfall.toml:1:10: no agent works on the account `claude`
        hint: `account` in an [agent.…] section names one
    "#]],
    );
    refuses(
        "[[area]]\nname = \"web\"\npaths = []\nslots = 1\n",
        expect![[r#"
        landfall.toml:3:9: the area `web` has no paths
        hint: `paths = ["web/"]`
    "#]],
    );
    refuses(
        "[[area]]\nname = \"web\"\npaths = [\"../web\"]\nslots = 1\n",
        expect![[r#"
        landfall.toml:3:9: area `web`: `../web` is not a path, a folder or a pattern below the root of the repository
    "#]],
    );
    let area = "[[area]]\nname = \"web\"\npaths = [\"web\"]\nslots = 1\n";
    refuses(
        &area.repeat(2),
        expect![[r#"
        landfall.toml:6:8: two areas are called `web`
        hint: call one of them otherwise
    "#]],
    );
    refuses(
        &area.replace("slots = 1", "slots = 0"),
        expect![[r#"
        landfall.toml:4:9: `area.slots`: 0 is out of range: 1 to 64
    "#]],
    );
    refuses(
        "[agent.default]\nkind = \"claude\"\nslots = 0\n",
        expect![[r#"
        landfall.toml:3:9: `agent.default.slots`: 0 is out of range: 1 to 64
    "#]],
    );
}

#[test]
fn what_is_set_about_the_tracker_is_understood_or_refused_where_it_stands() {
    let settings = parse(
        "[tracker]\nkind = \"github\"\nrepository = \"o/r\"\nurl = \"git.example.com\"\ntoken_file = \"~/token\"\n\
         size_field = \"\"\nspec_path = \"specs/\"\nproduction_url = \"https://www.example.com\"\nverify_ignore = [\"*.log\"]\n",
    );
    let tracker = &settings.tracker;
    assert_eq!((tracker.kind, tracker.spec_path.as_str()), (Some("github"), "specs"));
    assert_eq!(tracker.base.as_ref().map(|base| base.host_name()), Some("git.example.com"));
    assert_eq!((&tracker.size_field, tracker.verify_ignore.len()), (&None, 1));
    assert_eq!(settings.run.sandbox_hide, ["~/token"], "agents do not read the token");
    assert_eq!(parse("[tracker]\nkind = \"none\"\n").tracker.kind, None);
    for (line, expected) in [
        ("kind = \"githab\"", "`githab` is no tracker | did you mean `github`?"),
        ("kind = \"jira\"", "`jira` is no tracker | known: github, local, none"),
        (
            "repository = \"r\"",
            "`r` is not a repository such as `owner/name`: there is no `/` in it | such as `owner/name`",
        ),
        ("url = \"http://git.example.com\"", "a token goes there, so it must be https"),
        ("token_file = \"secret/token\"", "`token_file` is `secret/token`, which is not a full path"),
        ("spec_path = \"../x\"", "`../x` is not a folder of the repository"),
        ("spec_path = \"/etc\"", "`/etc` is not a folder of the repository"),
        ("spec_path = \".git/x\"", "`.git/x` is not a folder of the repository"),
        ("production_url = \"ftp://person:secret@x\"", "it is not an address"),
        ("verify_iterations_max = 21", "1 to 20"),
        ("verify_ignore = [\"../x\"]", "`../x`"),
    ] {
        let problem = Settings::parse(&format!("[tracker]\n{line}\n"), "landfall.toml").expect_err(line);
        let said = format!("{} | {}", problem.message, problem.hint.clone().unwrap_or_default());
        assert!(
            said.contains(expected) && problem.line == Some(2),
            "{line}: {said} (line {:?})",
            problem.line
        );
        assert!(!said.contains("person:secret"), "{said}");
    }
}

#[test]
fn settings_of_another_tool_count_where_landfall_toml_says_nothing() {
    let over = "auto-max-concurrent: 2\nverify-max-iterations: 4\ncolour: blue\n";
    let settings = Settings::parse_with_wholework(Some(over), "[tracker]\nconcurrent = 9\n", "landfall.toml")
        .expect("it reads");
    assert_eq!((settings.tracker.concurrent, settings.tracker.verify_iterations_max), (9, 4));
    assert_eq!(
        settings.mapped,
        [".wholework.yml: taken over: verify-max-iterations → tracker.verify_iterations_max; \
          landfall.toml says otherwise: auto-max-concurrent; not known: colour"]
    );
    assert!(parse("").mapped.is_empty(), "no file, no line");
}

#[test]
fn c37_a_tool_without_a_sign_of_life_has_2700_seconds() {
    let settings = Settings::parse("", "landfall.toml").expect("nothing is a setting");
    assert_eq!(settings.run.watch.tool_ms, 2_700_000);
}
