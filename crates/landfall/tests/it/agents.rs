//! `landfall agents`, `doctor` and `init`, with and without agents on the `PATH`. The programs here are made up.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use landfall_testkit::ScratchProject;
use serde_json::Value;

use crate::LANDFALL;

/// A project on a machine that has git and a shell, and no agent.
fn scene() -> ScratchProject {
    let mut scratch = ScratchProject::new(LANDFALL);
    let bin = scratch.root().join("bin");
    std::fs::create_dir(&bin).expect("a new folder");
    for program in ["git", "sh", "cat", "sleep", "env"] {
        let path = std::env::var_os("PATH").expect("a PATH");
        let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|it| it.is_file());
        symlink(found.unwrap_or_else(|| panic!("this machine has no {program}")), bin.join(program))
            .expect("a link");
    }
    scratch.set("PATH", bin.to_str().expect("text"));
    scratch
}

/// Puts a program on the `PATH`.
fn install(scratch: &ScratchProject, name: &str, text: &str) {
    let path = scratch.root().join("bin").join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}")).expect("a program");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
}

fn named<'a>(list: &'a Value, key: &str, name: &str) -> &'a Value {
    let found = list.as_array().and_then(|list| list.iter().find(|it| it[key] == name));
    found.unwrap_or_else(|| panic!("no {name} in {list}"))
}

#[test]
fn without_any_agent_it_says_what_could_be_installed_and_how() {
    let scratch = scene();
    let found = scratch.landfall(&["--json", "agents"]).json();
    let claude = named(&found["kinds"], "kind", "claude");
    assert_eq!((&claude["path"], &claude["version"]), (&Value::Null, &Value::Null), "{claude}");
    let text = scratch.landfall(&["agents"]).ok();
    assert!(text.contains("not installed: no `claude` on the PATH"), "{text}");
    assert!(text.contains("install: npm install -g @anthropic-ai/claude-code"), "{text}");
    assert!(text.contains("script     The scripted agent"), "{text}");

    scratch.settings("[[verify.command]]\nname = \"tests\"\nrun = \"sh test.sh\"\n");
    let doctor = scratch.landfall(&["doctor"]).ok();
    assert!(doctor.contains("no agent profile is set"), "{doctor}");
    assert!(doctor.contains("codex: npm install -g @openai/codex"), "{doctor}");

    scratch.more_settings("[agent.default]\nkind = \"claude\"");
    let doctor = scratch.landfall(&["doctor"]);
    assert_eq!(doctor.code, Some(10), "{}", doctor.out);
    assert!(doctor.out.contains("BAD   agent default: `claude` is not on the PATH"), "{}", doctor.out);
    assert!(doctor.out.contains("to install it: npm install"), "{}", doctor.out);
    scratch.landfall(&["add", "x"]).ok();
    let run = scratch.landfall(&["run"]);
    assert_ne!(run.code, Some(0));
    assert!(run.err.contains("`claude` is not on the PATH"), "{}", run.err);
}

#[test]
fn what_is_installed_is_shown_with_its_version() {
    let scratch = scene();
    install(&scratch, "claude", "[ \"$1\" = --version ] && echo '9.9.9 (Claude Code)' && echo more\n");
    install(&scratch, "codex", "exit 3\n");
    let plain = scratch.root().join("bin/gemini");
    std::fs::write(plain, "not a program").expect("a file");
    let found = scratch.landfall(&["--json", "agents"]).json();
    assert_eq!(named(&found["kinds"], "kind", "claude")["version"], "9.9.9 (Claude Code)");
    let codex = named(&found["kinds"], "kind", "codex");
    assert_eq!(
        (&codex["version"], &codex["problem"]),
        (&Value::Null, &"it says nothing when asked for its version".into())
    );
    assert_eq!(
        named(&found["kinds"], "kind", "gemini")["path"],
        Value::Null,
        "a file that cannot be run is no program"
    );
    scratch.settings("[agent.default]\nkind = \"claude\"\n[budget]\nday_usd = 5\n[agent.plain]\nkind = \"command\"\nrun = \"cat\"\n");
    let doctor = scratch.landfall(&["doctor"]).ok();
    assert!(doctor.contains("`landfall agents --probe default`"), "{doctor}");
    assert!(
        doctor.contains("warn  budget of plain: an agent of kind `command` does not say what it uses"),
        "{doctor}"
    );
    assert!(!doctor.contains("budget of default"), "{doctor}");
    assert!(doctor.contains("sandbox: "), "{doctor}");
}

#[test]
fn what_a_profile_would_run_is_shown_without_its_secrets() {
    let scratch = scene();
    install(&scratch, "claude", "echo '9.9.9'\n");
    scratch.settings(
        "[agent.default]\nkind = \"claude\"\nmodel = \"sonnet\"\nstyle = \"session\"\nfailover = \"own\"\n\
         flags = [\"--append-system-prompt\", \"be brief, it's late\"]\nenv = { ANTHROPIC_API_KEY = \"sk-secret\", LEVEL = \"a b\" }\n\
         [agent.own]\nkind = \"command\"\nrun = \"sh -c 'cat > b.txt'\"\nsandbox = \"strict\"\naccount = \"mine\"\n\
         flags = [\"--token\", \"tok-secret\", \"--api-key=tok-secret\"]\n[agent.odd]\nkind = \"cluade\"\n",
    );
    let text = scratch.landfall(&["agents"]).ok();
    assert!(!text.contains("secret"), "{text}");
    for words in [
        "default    claude, model sonnet, style session, account claude, sandbox isolated, then own",
        "runs: ANTHROPIC_API_KEY=… LEVEL=… claude -p ",
        r"--append-system-prompt 'be brief, it'\''s late' < PROMPT_FILE",
        "own        command, style fresh, account mine, sandbox strict",
        "sh -c 'cat > b.txt' --token … --api-key=… < PROMPT_FILE",
        "PROBLEM: unknown agent `cluade`",
        "hint: did you mean `claude`?",
    ] {
        assert!(text.contains(words), "`{words}` is not in: {text}");
    }
    let json = scratch.landfall(&["--json", "agents", "own"]);
    assert!(!json.out.contains("secret"), "{}", json.out);
    assert_eq!(json.json()["profiles"].as_array().map(Vec::len), Some(1));
    let unknown = scratch.landfall(&["agents", "--probe", "ow"]);
    assert_ne!(unknown.code, Some(0));
    assert!(unknown.err.contains("did you mean `own`?"), "{}", unknown.err);
}

#[test]
fn outside_of_a_project_the_kinds_are_listed() {
    let scratch = ScratchProject::bare(LANDFALL);
    let found = scratch.landfall(&["--json", "agents"]).json();
    assert_eq!(found["profiles"], Value::Array(Vec::new()));
    assert_eq!(named(&found["kinds"], "kind", "script")["install"], "it is part of Landfall");
}

/// What the made-up `claude` writes for a tiny prompt.
const ANSWERS: &str = r#"cat > /dev/null
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"claude-sonnet-4-5","tools":[]}'
echo '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"landfall"}],"usage":{"input_tokens":3,"output_tokens":2}},"session_id":"s-1"}'
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"landfall","session_id":"s-1","total_cost_usd":0.0125,"modelUsage":{"claude-sonnet-4-5":{"inputTokens":3,"outputTokens":2,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"costUSD":0.0125,"contextWindow":200000}},"usage":{"input_tokens":3,"output_tokens":2}}'
"#;

const LIMITED: &str = r#"cat > /dev/null
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"claude-sonnet-4-5","tools":[]}'
echo '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":4102444800,"rateLimitType":"five_hour"},"session_id":"s-1"}'
echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"api_error":"usage_limit_reached","num_turns":1,"result":"limit","session_id":"s-1"}'
exit 1
"#;

#[test]
fn a_probe_says_whether_an_agent_answers() {
    let scratch = scene();
    install(&scratch, "claude", ANSWERS);
    install(&scratch, "limited", LIMITED);
    install(&scratch, "broken", "echo 'no such model' >&2\nexit 4\n");
    install(&scratch, "plain", "cat\n");
    scratch.settings(
        "[agent.default]\nkind = \"claude\"\n[agent.limited]\nkind = \"claude\"\nrun = \"limited\"\n\
         [agent.broken]\nkind = \"command\"\nrun = \"broken\"\n[agent.plain]\nkind = \"command\"\nrun = \"plain\"\n\
         [agent.gone]\nkind = \"codex\"\n",
    );
    let said = scratch.landfall(&["--json", "agents", "--probe"]);
    assert_eq!(said.code, Some(9), "{}\n{}", said.out, said.err);
    let found = said.json();
    let probe = |name: &str| named(&found["profiles"], "profile", name)["probe"].clone();
    let answers = probe("default");
    assert_eq!(
        (&answers["answer"], &answers["detail"]),
        (&"answers".into(), &"landfall".into()),
        "{answers}"
    );
    assert_eq!(answers["usage"]["cost_usd"], 0.0125, "{answers}");
    assert_eq!(answers["model"], "claude-sonnet-4-5", "{answers}");
    let limited = probe("limited");
    assert_eq!(
        (&limited["answer"], limited["until_ms"].as_i64()),
        (&"used-up".into(), Some(4_102_444_800_000)),
        "{limited}"
    );
    let broken = probe("broken");
    assert_eq!(broken["answer"], "failed", "{broken}");
    assert!(
        broken["detail"]
            .as_str()
            .is_some_and(|it| it.contains("exit code 4") && it.contains("no such model")),
        "{broken}"
    );
    assert!(probe("plain")["detail"].as_str().is_some_and(|it| it.contains("Answer with the word landfall")));
    assert_eq!(probe("gone"), Value::Null, "what is not there is not asked");
    let log = scratch.landfall(&["log"]).ok();
    assert!(log.contains("agent `default` was asked for a probe"), "it counts for the day: {log}");

    let text = scratch.landfall(&["agents", "--probe", "default"]).ok();
    assert!(text.contains("answers: landfall (") && text.contains("$0.01 as the agent says"), "{text}");
    assert_eq!(scratch.left_behind(), []);
    // The folder of all temporary folders stays; in it there is nothing.
    let folders = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten().map(|it| it.path());
    let left: Vec<_> = folders(&scratch.root().join("tmp")).flat_map(|root| folders(&root)).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn init_takes_the_agent_that_is_installed_and_names_the_caches_of_its_tools() {
    for (installed, kind) in
        [(&["gemini", "codex"][..], "codex"), (&["opencode"], "opencode"), (&[], "script")]
    {
        let scratch = scene();
        for program in installed {
            install(&scratch, program, "echo 1.0\n");
        }
        std::fs::remove_file(scratch.project().join("landfall.toml")).expect("it is there");
        scratch.file("Cargo.toml", "[package]\nname = \"x\"\n");
        scratch.file("go.mod", "module example.invalid/x\n");
        scratch.commit("a project");
        let found = scratch.landfall(&["--json", "init", "--no-check"]).json();
        let agent = found["agent"]["kind"].as_str().unwrap_or("script");
        assert_eq!(agent, kind, "{found}");
        let text = read(&scratch.project().join("landfall.toml"));
        assert!(text.contains(&format!("[agent.default]\nkind = \"{kind}\"")), "{text}");
        assert!(
            text.contains(
                r#"caches = ["~/.cargo/registry", "~/.cargo/git", "~/go/pkg", "~/.cache/go-build"]"#
            ),
            "{text}"
        );
        let doctor = scratch.landfall(&["doctor"]).ok();
        assert!(doctor.contains("ok    agent default"), "{doctor}");
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a text")
}

/// An agent that waits for its model in vain, and has a last word while it is ended: its wait is no working time.
#[test]
fn a_last_word_of_a_silent_agent_does_not_make_its_wait_work() {
    const SILENCE_MS: u64 = 6_000;
    let scratch = scene();
    let codex = "[ \"$1\" = --version ] && echo 'codex-cli 9.9.9' && exit 0\n\
         trap 'echo \"{\\\"type\\\":\\\"turn.started\\\"}\"; exit 1' TERM INT\n\
         echo '{\"type\":\"thread.started\",\"thread_id\":\"a\"}'\n\
         sleep 3000 & wait\n";
    install(&scratch, "codex", codex);
    scratch.settings(&format!(
        "[[verify.command]]\nname = \"tests\"\nrun = \"sh test.sh\"\n[agent.default]\nkind = \"codex\"\n\
         [run]\nsandbox = \"off\"\nsilence = \"{SILENCE_MS}ms\"\nfirst_output = \"{SILENCE_MS}ms\"\n\
         heartbeat = \"500ms\"\nheartbeats = 1\ngrace = \"5s\"\n"
    ));
    scratch.landfall(&["add", "x"]).ok();
    let mut run = scratch.start(&["run"]);
    scratch
        .eventually("the agent to be ended", || scratch.why("T1").contains("the model did not answer for"));
    let why = scratch.why("T1");
    assert!(!why.contains(" ms)"), "it waited for seconds: {why}");
    let spent = scratch.detail("T1")["spent_ms"].as_u64().expect("a time");
    assert!(spent < SILENCE_MS, "the wait counts as work: {spent} ms");
    let _ = scratch.landfall(&["stop", "--now"]); // it may be over
    run.wait(std::time::Duration::from_secs(60));
}
