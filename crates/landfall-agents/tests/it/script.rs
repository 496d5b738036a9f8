//! Scripts: what is read, what is refused and where, and how one is found for a task.

use std::path::PathBuf;

use expect_test::{Expect, expect};
use landfall_agents::registry::find_agent;
use landfall_agents::script::{
    FileContent, RepoAttack, Script, ScriptCommit, ScriptMisbehavior, ScriptNote, ScriptTurn, TestWeakening,
};
use landfall_agents::{AgentStream, LaunchError};
use landfall_model::{AgentUsage, Signal};

use crate::{at_once, brief};

fn turn(text: &str) -> ScriptTurn {
    Script::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}")).turn_for_iteration(1).clone()
}

fn refused(text: &str, expected: &Expect) {
    let error = Script::parse(text).expect_err("this script is wrong");
    let hint = error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    expected.assert_eq(&format!("{error}{hint}"));
}

#[test]
fn an_empty_script_says_it_is_done() {
    for text in ["", "# nothing\n\n"] {
        let script = Script::parse(text).expect("nothing is wrong with it");
        assert_eq!(script.turn_for_iteration(1).signals, ["<landfall>COMPLETE</landfall>"]);
        assert_eq!(script.turn_for_iteration(9).signals, ["<landfall>COMPLETE</landfall>"]);
        assert!(!script.turn_for_iteration(1).changes_files());
    }
}

#[test]
fn iterations_follow_each_other_and_the_last_repeats() {
    let script = Script::parse("[[iteration]]\nexit = 1\n[[iteration]]\nexit = 2\n").expect("fine");
    let exits: Vec<u8> = [0, 1, 2, 3, u32::MAX].map(|n| script.turn_for_iteration(n).exit).to_vec();
    assert_eq!(exits, [1, 1, 2, 2, 2]);
    let script = Script::parse("[[iteration]]\nexit = 1\n[otherwise]\nexit = 9\n").expect("fine");
    assert_eq!([1, 2, 3].map(|n| script.turn_for_iteration(n).exit), [1, 9, 9]);
}

#[test]
fn what_stands_at_the_top_is_the_default_of_every_iteration() {
    let script = Script::parse(
        "usage = { tokens_in = 5 }\nmisbehave = \"flood\"\nbytes = \"1kB\"\n\
         [[iteration]]\nmisbehave = \"ok\"\n[[iteration]]\nbytes = \"2kB\"\nusage = { tokens_out = 6 }\n",
    )
    .expect("fine");
    let (first, second) = (script.turn_for_iteration(1), script.turn_for_iteration(2));
    assert_eq!(first.mode, ScriptMisbehavior::Ok);
    assert_eq!(second.mode, ScriptMisbehavior::Flood { bytes: 2000 });
    assert_eq!(first.usage, Some(AgentUsage { tokens_in: 5, ..AgentUsage::default() }));
    assert_eq!(second.usage, Some(AgentUsage { tokens_out: 6, ..AgentUsage::default() }));
}

#[test]
fn a_full_iteration_is_read() {
    let turn = turn(
        r#"
        [[iteration]]
        session = "s-1"
        sleep = "200ms"
        delete = ["old.txt", "gone"]
        commit = "hello: by name"
        run = ["make", "check"]
        signal = ["progress:90", "discovery-local:make is slow", "complete"]
        usage = { tokens_in = 1_000, tokens_out = 0x10, micro_usd = 3 }
        exit = 7
        [[iteration.write]]
        path = "src/a.txt"
        text = "hello\n"
        [[iteration.write]]
        path = "b.bin"
        hex = "00 ff 7F"
        executable = true
        [[iteration.write]]
        path = "log"
        append = "more"
        [[iteration.edit]]
        path = "c"
        find = "x"
        replace = ""
        [[iteration.say]]
        text = "hm"
        [[iteration.say]]
        text = "warning"
        stream = "err"
        pause = "1s"
        "#,
    );
    assert_eq!(turn.session.as_deref(), Some("s-1"));
    assert_eq!(turn.sleep_ms, 200);
    assert_eq!(turn.writes[0].content, FileContent::Whole(b"hello\n".to_vec()));
    assert_eq!(turn.writes[1].content, FileContent::Whole(vec![0, 255, 127]));
    assert!(turn.writes[1].executable);
    assert_eq!(turn.writes[2].content, FileContent::Append("more".to_owned()));
    assert_eq!(turn.deletes, [PathBuf::from("old.txt"), PathBuf::from("gone")]);
    assert_eq!(turn.edits[0].find, "x");
    assert_eq!(turn.commit, ScriptCommit::Always(Some("hello: by name".to_owned())));
    assert_eq!(turn.run, ["make", "check"]);
    assert_eq!(
        turn.says.iter().map(|say| say.stream).collect::<Vec<_>>(),
        [AgentStream::Out, AgentStream::Err]
    );
    assert_eq!(turn.says[1].pause_ms, 1000);
    assert_eq!(
        turn.usage,
        Some(AgentUsage { tokens_in: 1000, tokens_out: 16, micro_usd: 3, ..AgentUsage::default() })
    );
    assert_eq!(
        turn.signals,
        [
            "<landfall>PROGRESS:90</landfall>",
            "<landfall>DISCOVERY_LOCAL:make is slow</landfall>",
            "<landfall>COMPLETE</landfall>"
        ]
    );
    assert_eq!(turn.exit, 7);
}

#[test]
fn every_mode_is_known_and_has_its_defaults() {
    let check = |text: &str, mode: ScriptMisbehavior| assert_eq!(turn(text).mode, mode, "{text}");
    check("misbehave = \"ok\"", ScriptMisbehavior::Ok);
    check("misbehave = \"fail\"", ScriptMisbehavior::Fail);
    check("misbehave = \"no-op\"", ScriptMisbehavior::NoOp);
    check("misbehave = \"hang\"", ScriptMisbehavior::Hang);
    check("misbehave = \"ignore-term\"", ScriptMisbehavior::IgnoreTerm);
    check("misbehave = \"crash\"", ScriptMisbehavior::Crash);
    check("misbehave = \"flood\"", ScriptMisbehavior::Flood { bytes: 64 << 20 });
    check("misbehave = \"flood\"\nbytes = \"10GB\"", ScriptMisbehavior::Flood { bytes: 10_000_000_000 });
    check("misbehave = \"huge-line\"", ScriptMisbehavior::HugeLine { bytes: 100_000_000 });
    check("misbehave = \"slow-drip\"\nfor = \"2s\"", ScriptMisbehavior::SlowDrip { for_ms: 2000 });
    check("misbehave = \"garbage\"", ScriptMisbehavior::Garbage);
    check("misbehave = \"fork-bomb\"", ScriptMisbehavior::ForkBomb { count: 200, for_ms: 60_000 });
    check(
        "misbehave = \"setsid\"",
        ScriptMisbehavior::Setsid { target: "setsid.log".into(), for_ms: 60_000 },
    );
    check("misbehave = \"orphan\"\nfor = \"5s\"", ScriptMisbehavior::Orphan { for_ms: 5000 });
    check("misbehave = \"lie\"", ScriptMisbehavior::Lie);
    check("misbehave = \"forget-commit\"", ScriptMisbehavior::ForgetCommit);
    check(
        "misbehave = \"weaken-test\"\ntarget = \"tests/a.rs\"\nhow = \"skip\"",
        ScriptMisbehavior::WeakenTest { target: "tests/a.rs".into(), how: TestWeakening::Skip },
    );
    check("misbehave = \"quota\"\nuntil = \"2s\"", ScriptMisbehavior::Quota { until_ms: Some(2000) });
    check("misbehave = \"quota\"", ScriptMisbehavior::Quota { until_ms: None });
    check("misbehave = \"transient\"", ScriptMisbehavior::Transient { detail: "overloaded".to_owned() });
    check("misbehave = \"prompt\"", ScriptMisbehavior::Prompt);
    check(
        "misbehave = \"move-main\"",
        ScriptMisbehavior::MoveMain { attack: RepoAttack::Branches, canary: None },
    );
    check(
        "misbehave = \"move-main\"\nattack = \"nested-bare\"\ncanary = \"/canary\"",
        ScriptMisbehavior::MoveMain { attack: RepoAttack::NestedBare, canary: Some("/canary".into()) },
    );
}

#[test]
fn modes_that_lie_say_they_are_done_unless_told_otherwise() {
    for mode in ["lie", "forget-commit", "weaken-test\"\ntarget = \"t"] {
        assert_eq!(turn(&format!("misbehave = \"{mode}\"")).signals, ["<landfall>COMPLETE</landfall>"]);
        assert_eq!(turn(&format!("misbehave = \"{mode}\"\nsignal = \"none\"")).signals, [""; 0]);
    }
    assert_eq!(turn("misbehave = \"flood\"").signals, [""; 0]);
}

#[test]
fn unknown_words_are_refused_with_the_nearest_and_the_line() {
    refused(
        "# one\n\nsingal = \"complete\"\nzeal = 1\n",
        &expect![[r#"
        line 3: unknown key `singal` in the script
        hint: did you mean `signal`?"#]],
    );
    refused(
        "[[iteration]]\n[[iteration]]\nwirte = []\n",
        &expect![[r#"
        line 3: unknown key `wirte` in an iteration
        hint: did you mean `write`?"#]],
    );
    refused(
        "[[iteration]]\niteration = 1\n",
        &expect![[r#"
        line 2: unknown key `iteration` in an iteration
        hint: known are session, sleep, write, delete, edit, commit, run, say, usage, misbehave, signal, exit, bytes, count, for, target, how, until, detail, attack, canary"#]],
    );
    refused(
        "iterations = []\n",
        &expect![[r#"
        line 1: unknown key `iterations` in the script
        hint: did you mean `iteration`?"#]],
    );
    refused(
        "[[write]]\npath = \"a\"\ntxt = \"b\"\n",
        &expect![[r#"
        line 3: unknown key `txt` in a `write`
        hint: did you mean `text`?"#]],
    );
    refused(
        "[[edit]]\npath = \"a\"\nserach = \"b\"\n",
        &expect![[r#"
        line 3: unknown key `serach` in an `edit`
        hint: known are path, find, replace"#]],
    );
    refused(
        "usage = { tokens = 3 }\n",
        &expect![[r#"
        line 1: unknown key `tokens` in `usage`
        hint: did you mean `tokens_in`?"#]],
    );
    refused(
        "misbehave = \"forkbomb\"\n",
        &expect![[r#"
        line 1: unknown mode `forkbomb`
        hint: did you mean `fork-bomb`?"#]],
    );
    refused(
        "misbehave = \"sulk\"\n",
        &expect![[r#"
        line 1: unknown mode `sulk`
        hint: known are ok, fail, no-op, hang, ignore-term, crash, flood, huge-line, slow-drip, garbage, fork-bomb, setsid, orphan, lie, forget-commit, weaken-test, quota, transient, prompt, move-main"#]],
    );
    refused(
        "misbehave = \"move-main\"\nattack = \"hook\"\n",
        &expect![[r#"
        line 2: unknown attack `hook`
        hint: did you mean `hooks`?"#]],
    );
    refused(
        "[[say]]\ntext = \"a\"\nstream = \"stderr\"\n",
        &expect![[r#"
        line 3: unknown stream `stderr`
        hint: known are out, err"#]],
    );
}

#[test]
fn wrong_values_are_refused_with_the_line() {
    refused(
        "sleep = \"soon\"\n",
        &expect![[r#"line 1: `sleep` is `soon`, and should be a time such as "200ms", "2s" or "1m""#]],
    );
    refused(
        "sleep = 200\n",
        &expect![[r#"line 1: `sleep` is `200`, and should be a time such as "200ms", "2s" or "1m""#]],
    );
    refused("\nexit = 256\n", &expect!["line 2: `exit` is `256`, and should be a number from 0 to 255"]);
    refused("exit = -1\n", &expect!["line 1: `exit` is `-1`, and should be a number from 0 to 255"]);
    refused("commit = 1\n", &expect!["line 1: `commit` is `1`, and should be a message, `true` or `false`"]);
    refused(
        "commit = \" \"\n",
        &expect!["line 1: `commit` is ` `, and should be a message, `true` or `false`"],
    );
    refused(
        "iteration = 3\n",
        &expect!["line 1: `iteration` is `3`, and should be a list of tables, each `[[iteration]]`"],
    );
    refused("otherwise = 3\n", &expect!["line 1: `otherwise` is `3`, and should be a table"]);
    refused("run = [\"a\", 1]\n", &expect!["line 1: `run` is `1`, and should be text in quotes"]);
    refused(
        "[[write]]\npath = \"a\"\n",
        &expect!["line 1: a `write` lacks one of `text`, `append` and `hex`"],
    );
    refused("[[write]]\ntext = \"a\"\n", &expect!["line 1: a `write` lacks `path`"]);
    refused(
        "[[write]]\npath = \"a\"\ntext = \"b\"\nhex = \"00\"\n",
        &expect!["line 1: a `write` has more than one of `text`, `append` and `hex`"],
    );
    refused(
        "[[write]]\npath = \"a\"\nhex = \"0\"\n",
        &expect!["line 3: `hex` is `0`, and should be pairs of hex digits"],
    );
    refused(
        "[[edit]]\npath = \"a\"\nfind = \"\"\nreplace = \"x\"\n",
        &expect!["line 3: `find` is ``, and should be the text to look for"],
    );
    refused(
        "misbehave = \"flood\"\nbytes = \"lots\"\n",
        &expect![[r#"line 2: `bytes` is `lots`, and should be a size such as "64MiB" or "10GB""#]],
    );
    refused(
        "misbehave = \"hang\"\nbytes = \"1kB\"\n",
        &expect![[r#"
        line 2: `bytes` does not go with the mode `hang`
        hint: it goes with flood, huge-line"#]],
    );
    refused(
        "until = \"2s\"\n",
        &expect![[r#"
        line 1: `until` does not go with the mode `ok`
        hint: it goes with quota"#]],
    );
    refused("misbehave = \"weaken-test\"\n", &expect!["line 1: the mode lacks `target`, the test file"]);
    refused(
        "misbehave = \"move-main\"\nattack = \"hooks\"\n",
        &expect!["line 1: the mode lacks `canary`, the file that would betray the attack"],
    );
    refused(
        "misbehave = \"move-main\"\ncanary = \"here; rm\"\n",
        &expect!["line 2: `canary` is `here; rm`, and should be an absolute path of plain letters"],
    );
    refused("a = \n", &expect!["line 1: not TOML: string values must be quoted, expected literal string"]);
    refused("exit = 1\nexit = 2\n", &expect!["line 2: not TOML: duplicate key"]);
}

#[test]
fn signals_that_nobody_would_understand_are_refused() {
    refused(
        "signal = \"done\"\n",
        &expect![[r#"
        line 1: `signal` is `done`, which would be SIGNAL_UNKNOWN_TYPE
        hint: signals are complete, resolved, blocked:why, pending:what, progress:40, discovery-local:text, discovery-global:text, none"#]],
    );
    refused(
        "signal = \"blocked\"\n",
        &expect![[r#"
        line 1: `signal` is `blocked`, which would be SIGNAL_MISSING_PAYLOAD
        hint: signals are complete, resolved, blocked:why, pending:what, progress:40, discovery-local:text, discovery-global:text, none"#]],
    );
    refused(
        "signal = \"progress:101\"\n",
        &expect![[r#"
        line 1: `signal` is `progress:101`, which would be SIGNAL_INVALID_PAYLOAD
        hint: signals are complete, resolved, blocked:why, pending:what, progress:40, discovery-local:text, discovery-global:text, none"#]],
    );
    refused(
        "signal = [\"complete\", \"blocked:a < b\"]\n",
        &expect![[r#"
        line 1: `signal` is `blocked:a < b`, which would be SIGNAL_INVALID_PAYLOAD
        hint: signals are complete, resolved, blocked:why, pending:what, progress:40, discovery-local:text, discovery-global:text, none"#]],
    );
    refused(
        "signal = \"blocked:two\\nlines\"\n",
        &expect![[r#"
        line 1: `signal` is `blocked:two\nlines`, which would be more than one line
        hint: signals are complete, resolved, blocked:why, pending:what, progress:40, discovery-local:text, discovery-global:text, none"#]],
    );
}

#[test]
fn paths_out_of_the_workspace_are_refused() {
    refused(
        "delete = \"../x\"\n",
        &expect![[r#"
        line 1: `delete` is `../x`, which is not a path inside the workspace
        hint: paths are relative and have no `..`"#]],
    );
    for path in ["/etc/passwd", "..", "a/../../b", "a/..", "./a", "", "a\\u0000b"] {
        for text in [
            format!("delete = [\"{path}\"]"),
            format!("[[write]]\npath = \"{path}\"\ntext = \"\""),
            format!("[[edit]]\npath = \"{path}\"\nfind = \"a\"\nreplace = \"b\""),
            format!("misbehave = \"setsid\"\ntarget = \"{path}\""),
        ] {
            assert!(Script::parse(&text).is_err(), "{text}");
        }
    }
}

fn launch(body: &str, file: Option<&str>, text: Option<&str>) -> Result<String, LaunchError> {
    let mut brief = brief("script");
    brief.body = body.to_owned();
    brief.profile.script = file.map(ToOwned::to_owned);
    brief.script_text = text.map(ToOwned::to_owned);
    let launch =
        find_agent("script").expect("it is registered").create_agent().build_launch_command(&brief)?;
    let words = [
        "/usr/bin/landfall",
        "play",
        "/state/attempts/9/script.toml",
        "--iteration",
        "2",
        "--step",
        "implement",
        "--step-run",
        "1",
    ];
    assert_eq!(launch.argv, words.map(std::ffi::OsString::from));
    let (path, bytes) = &launch.files[0];
    assert_eq!(path, &PathBuf::from("/state/attempts/9/script.toml"));
    Ok(String::from_utf8(bytes.clone()).expect("scripts are text"))
}

#[test]
fn the_block_in_the_body_comes_before_the_file_of_the_profile() {
    let body = "Do it.\n\n```toml\nexit = 1\n```\n\n```landfall-script\nexit = 2\n```\n\nThanks.";
    assert_eq!(launch(body, Some("a.toml"), Some("exit = 3\n")), Ok("exit = 2\n".to_owned()));
    assert_eq!(launch("Do it.", Some("a.toml"), Some("exit = 3\n")), Ok("exit = 3\n".to_owned()));
    assert_eq!(launch("Do it.", None, None), Ok(String::new()));
}

#[test]
fn a_script_in_a_script_is_text() {
    let body = "````landfall-script\n[[write]]\npath = \"a.md\"\ntext = '''\n```landfall-script\nexit = 1\n```\n'''\n````";
    assert!(launch(body, None, None).is_ok_and(|text| text.contains("exit = 1")));
}

#[test]
fn scripts_that_cannot_be_found_or_read_say_where() {
    let told = |body: &str, file, text| {
        let error = launch(body, file, text).expect_err("this cannot be launched");
        format!("{error}\nhint: {}", error.hint().unwrap_or_default())
    };
    let all = [
        told("One.\nTwo.\n```landfall-script\n\nsingal = \"complete\"\n```\n", None, None),
        told("```landfall-script\nexit = 1\n", None, None),
        told("```landfall-script\n```\n\n```landfall-script\n```\n", None, None),
        told("", Some("agents/a.toml"), Some("exti = 1\n")),
        told("", Some("agents/a.toml"), None),
    ];
    expect![[r#"
        the script in the task's body: line 5: unknown key `singal` in the script
        hint: did you mean `signal`?

        line 1 of the task's body: the script's block is never closed
        hint: a task has one block that opens with ```landfall-script

        line 4 of the task's body: a second script
        hint: a task has one block that opens with ```landfall-script

        the script `agents/a.toml`: line 1: unknown key `exti` in the script
        hint: did you mean `exit`?

        the script `agents/a.toml` of profile `main` is not there
        hint: "#]]
    .assert_eq(&all.join("\n\n"));
}

#[test]
fn notes_survive_the_way_through_the_output() {
    let notes = [
        ScriptNote::Session { id: "s \"1\"\n".to_owned() },
        ScriptNote::Usage { tokens_in: u64::MAX, tokens_out: 0, micro_usd: 7 },
        ScriptNote::Quota { until_ms: Some(1_700_000_000_000) },
        ScriptNote::Quota { until_ms: None },
        ScriptNote::Transient { detail: "overloaded\u{1b}[31m".to_owned() },
    ];
    for note in notes {
        let line = note.line();
        assert_eq!(line.lines().count(), 1);
        assert_eq!(ScriptNote::read(&line).as_ref(), Some(&note));
        let signals = at_once(
            find_agent("script")
                .expect("it is registered")
                .create_agent()
                .create_parser(&landfall_agents::ParserContext::default()),
            line.as_bytes(),
        );
        assert!(!matches!(signals.as_slice(), [Signal::Text(_)]), "{line}");
    }
}

#[test]
fn notes_in_code_blocks_and_broken_notes_are_text() {
    let agent = find_agent("script").expect("it is registered").create_agent();
    let quota = "{\"landfall\":\"quota\",\"until_ms\":1}";
    for text in
        [format!("```\n{quota}\n```"), format!("  {quota}"), format!("{quota} ok"), format!("> {quota}")]
    {
        let signals =
            at_once(agent.create_parser(&landfall_agents::ParserContext::default()), text.as_bytes());
        assert!(signals.iter().all(|signal| matches!(signal, Signal::Text(_))), "{text}: {signals:?}");
    }
    let mut parser = agent.create_parser(&landfall_agents::ParserContext::default());
    parser.feed(
        AgentStream::Out,
        b"{\"landfall\":\"quota\",\"until_ms\":\"soon\"}\n{\"landfall\":\"x\"}\n{\"other\":1}\n",
    );
    assert_eq!(parser.raw_lines_unknown(), 2);
}
