//! What runs beside the agents, and what they tell each other: hooks, messages, commands in workspaces, ports, notes.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use landfall_testkit::ScratchProject;

use crate::LANDFALL;

fn writes(path: &str, text: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = \"{path}\"\ntext = \"{text}\\n\"\n")
}

/// A server on this machine that takes everything and passes on what it was sent.
fn server() -> (String, Receiver<serde_json::Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    let (send, received) = channel();
    // It ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).expect("a line") > 2 {
                let lower = line.to_lowercase();
                length = lower
                    .strip_prefix("content-length: ")
                    .map_or(length, |it| it.trim().parse().expect("a number"));
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            if send.send(serde_json::from_slice(&body).expect("JSON")).is_err() {
                return;
            }
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .expect("an answer");
        }
    });
    (address, received)
}

#[test]
fn hooks_tell_the_story_of_a_task_and_leave_nothing_behind() {
    let scratch = ScratchProject::new(LANDFALL);
    let told = scratch.root().join("told");
    let hook =
        format!("echo $LANDFALL_HOOK $LANDFALL_TASK $LANDFALL_STATUS >> {}; sleep 600 &", told.display());
    scratch.more_settings(&format!(
        "[hooks]\npre-start = {hook:?}\npost-complete = {hook:?}\npre-merge = {hook:?}\npost-merge = {hook:?}\n\
         on-error = {hook:?}\non-escalation = {hook:?}\n"
    ));
    scratch.task("Lands", &writes("b.txt", "b"), &[]);
    scratch.task("Asks", "signal = \"pending:which port?\"\n", &[]);
    scratch.landfall(&["run"]);
    let text = std::fs::read_to_string(&told).expect("hooks were run");
    let of = |task: &str| -> Vec<String> {
        let words = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        words.filter(|words| words[1] == task).map(|words| words[0].to_owned()).collect()
    };
    assert_eq!(of("T1"), ["pre-start", "post-complete", "pre-merge", "post-merge"], "{text}");
    assert_eq!(of("T2"), ["pre-start", "on-escalation"], "{text}");
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_question_is_told_while_nobody_watches() {
    let scratch = ScratchProject::new(LANDFALL);
    let (address, received) = server();
    scratch
        .more_settings(&format!("[[notify]]\nkind = \"webhook\"\nurl = \"{address}\"\npriority = \"low\"\n"));
    scratch.task("Lands", &writes("b.txt", "b"), &[]);
    scratch.task("Asks", "signal = \"pending:which port?\"\n", &[]);
    scratch.landfall(&["run"]);
    let told: Vec<serde_json::Value> = received.try_iter().collect(); // all was told before the run ended
    let events: BTreeSet<&str> = told.iter().filter_map(|it| it["event"].as_str()).collect();
    assert_eq!(events, BTreeSet::from(["landed", "question", "run-over"]), "{told:?}");
    let question = told.iter().find(|it| it["event"] == "question").expect("it was told");
    assert_eq!(question["text"], "Asks\nwhich port?");
}

#[test]
fn commands_in_a_workspace_run_around_the_agent_and_share_its_ports() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings(
        "[workspace]\nports = \"29000-29999\"\nports_each = 5\n\
         after_create = \"echo created $LANDFALL_PORT >> around.txt\"\n\
         before_run = \"echo before $LANDFALL_PORT >> around.txt\"\n\
         after_run = \"echo after $LANDFALL_PORT >> around.txt; git add around.txt; git -c user.name=x -c user.email=x@example.org commit -qm around\"\n",
    );
    scratch.task("Lands", &writes("b.txt", "b"), &[]);
    scratch.task("Lands too", &writes("c.txt", "c"), &["--needs", "T1"]);
    scratch.landfall(&["run"]);
    let around = scratch.git(&["show", "main:around.txt"]);
    let words: Vec<&str> = around.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(words, ["created", "before", "after", "created", "before", "after"], "{around}");
    let ports: Vec<&str> = around.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert!(ports[..3].iter().all(|port| *port == ports[0]) && !ports[0].is_empty(), "{around}");
}

#[test]
fn a_workspace_that_cannot_be_made_fit_starts_no_agent_and_says_why() {
    let scratch = ScratchProject::new(LANDFALL);
    let ok = scratch.root().join("ok");
    scratch.more_settings(&format!(
        "[workspace]\nafter_create = \"test -e {} || {{ echo no database; exit 1; }}\"\n",
        ok.display()
    ));
    scratch.task("Waits", &writes("b.txt", "b"), &[]);
    let mut run = scratch.start(&["run"]);
    scratch.eventually("the reason", || scratch.why("T1").contains("no database"));
    assert_eq!(scratch.prompts("T1").len(), 0);
    std::fs::write(&ok, "").expect("a file");
    assert_eq!(run.wait(Duration::from_secs(120)), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.status("T1"), "done");
}

#[test]
fn what_an_agent_found_out_is_told_to_the_next() {
    let scratch = ScratchProject::new(LANDFALL);
    let finds = "[[iteration]]\nsignal = [\"discovery-global:[high] the tests need a database\", \"discovery-local:mine alone\"]\n\
                 [[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n";
    scratch.task("Finds", finds, &[]);
    scratch.task("Hears", &writes("c.txt", "c"), &["--needs", "T1"]);
    scratch.landfall(&["run"]).ok();
    let own = scratch.prompts("T1");
    assert!(!own[0].contains("What agents found out"));
    assert!(own[1].contains("- (this task, high) the tests need a database\n"), "{}", own[1]);
    assert!(own[1].contains("- (this task) mine alone\n"));
    let other = &scratch.prompts("T2")[0];
    assert!(other.contains("- (T1, high) the tests need a database\n"), "{other}");
    assert!(!other.contains("mine alone"));
    let list = scratch.landfall(&["--json", "discoveries"]).json();
    let texts: Vec<&str> =
        list["discoveries"].as_array().expect("a list").iter().filter_map(|it| it["text"].as_str()).collect();
    assert_eq!(texts, ["the tests need a database"], "the other is archived with its task");
    let all = scratch.landfall(&["discoveries", "--all"]).ok();
    assert!(all.contains("mine alone") && all.contains("nobody now"), "{all}");
    // Another engine knows it, too.
    scratch.task("Hears later", &writes("d.txt", "d"), &[]);
    scratch.landfall(&["run"]).ok();
    assert!(scratch.prompts("T3")[0].contains("the tests need a database"));
}

#[test]
fn what_a_person_withdraws_is_told_to_nobody_even_if_it_is_said_again() {
    let scratch = ScratchProject::new(LANDFALL);
    let finds = |file: &str| {
        format!(
            "signal = [\"discovery-global:the tests need a database\", \"complete\"]\n[[write]]\npath = \"{file}\"\ntext = \"x\\n\"\n"
        )
    };
    scratch.task("Finds", &finds("b.txt"), &[]);
    scratch.landfall(&["run"]).ok();
    let said = scratch.landfall(&["discoveries", "drop", "1"]).ok();
    assert!(said.contains("withdrawn: 1, from T1: the tests need a database"), "{said}");
    scratch.task("Finds it again", &finds("c.txt"), &[]);
    scratch.landfall(&["run"]).ok();
    assert!(
        !scratch.prompts("T2")[0].contains("(T1) the tests need a database"),
        "another engine knows it is withdrawn"
    );
    scratch.task("Hears nothing", &writes("d.txt", "d"), &[]);
    scratch.landfall(&["run"]).ok();
    assert!(!scratch.prompts("T3")[0].contains("need a database"), "said again, it stays withdrawn");
    let list = scratch.landfall(&["--json", "discoveries"]).json();
    assert_eq!(list["discoveries"].as_array().map(Vec::len), Some(0), "{list}");
    let all = scratch.landfall(&["--json", "discoveries", "--all"]).json();
    assert_eq!(
        (&all["discoveries"][0]["withdrawn"], &all["discoveries"][0]["times"]),
        (&true.into(), &2.into())
    );
    for unknown in ["1", "7"] {
        let refused = scratch.landfall(&["discoveries", "drop", unknown]);
        assert!(
            refused.code == Some(6) && refused.err.contains("landfall project discoveries"),
            "{refused:?}"
        );
    }
}

#[test]
fn a_command_that_cleans_up_badly_is_a_warning_on_the_task() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings(
        "[workspace]\nafter_run = \"echo cannot clean; exit 3\"\nbefore_remove = \"exit 4\"\n",
    );
    scratch.task("Lands", &writes("b.txt", "b"), &[]);
    scratch.landfall(&["run"]).ok();
    let warnings = scratch.landfall(&["--json", "show", "T1"]).json()["warnings"].to_string();
    for words in ["`workspace.after_run` ", "cannot clean", "`workspace.before_remove` "] {
        assert!(warnings.contains(words), "`{words}` is not in: {warnings}");
    }
}

#[test]
fn a_collector_is_told_of_runs_tasks_attempts_iterations_checks_and_landings() {
    let scratch = ScratchProject::new(LANDFALL);
    let (address, received) = server();
    scratch.more_settings(&format!("[telemetry]\notlp = \"{address}\"\n"));
    // The first try is wrong, and the check says so.
    let script = "[[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"b.txt.want\"\ntext = \"right\\n\"\n\
                  [[iteration.write]]\npath = \"b.txt\"\ntext = \"wrong\\n\"\n\
                  [[iteration]]\nsignal = \"complete\"\n[[iteration.write]]\npath = \"b.txt\"\ntext = \"right\\n\"\n";
    scratch.task("Lands at last", script, &[]);
    scratch.landfall(&["run"]).ok();
    let spans: Vec<serde_json::Value> = received
        .try_iter() // all was told before the run ended
        .flat_map(|it| {
            it["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default()
        })
        .collect();
    let named = |name: &str| spans.iter().filter(|it| it["name"] == name).collect::<Vec<_>>();
    let count = |name: &str| named(name).len();
    assert_eq!(
        (count("run"), count("task"), count("iteration"), count("landing")),
        (1, 1, 2, 1),
        "{spans:#?}"
    );
    assert!(count("attempt") >= 3 && count("verification") >= 2, "{spans:#?}");
    assert!(named("verification").iter().any(|it| it["status"]["code"] == 2), "the wrong try failed");
    let time = |it: &serde_json::Value, key: &str| -> u64 {
        it[key].as_str().expect("text").parse().expect("a number")
    };
    let mut ids = BTreeSet::new();
    for span in &spans {
        let id = span["spanId"].as_str().expect("an id");
        assert!(id.len() == 16 && ids.insert(id), "{span}");
        assert_eq!(span["traceId"], spans[0]["traceId"], "one run is one trace");
        assert_eq!(span["traceId"].as_str().map(str::len), Some(32));
        let (from, to) = (time(span, "startTimeUnixNano"), time(span, "endTimeUnixNano"));
        assert!(from <= to, "{span}");
        let wanted = match span["name"].as_str().expect("a name") {
            "run" => {
                assert_eq!(span["parentSpanId"], "");
                continue;
            }
            "task" => "run",
            "attempt" => "task",
            _ => "attempt",
        };
        let parent =
            spans.iter().find(|it| it["spanId"] == span["parentSpanId"]).unwrap_or_else(|| panic!("{span}"));
        assert_eq!(parent["name"], wanted, "{span}");
        assert!(
            time(parent, "startTimeUnixNano") <= from && to <= time(parent, "endTimeUnixNano"),
            "{span} in {parent}"
        );
    }
}

#[test]
fn a_collector_that_does_not_answer_holds_nothing_up() {
    let scratch = ScratchProject::new(LANDFALL);
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port"); // it takes connections and says nothing
    let address = silent.local_addr().expect("bound");
    scratch.more_settings(&format!("[telemetry]\notlp = \"http://{address}\"\n"));
    scratch.task("Lands", &writes("b.txt", "b"), &[]);
    let began = std::time::Instant::now();
    scratch.landfall(&["run"]).ok();
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    for wrong in ["nonsense", "ftp://x", "http://a b", "http://x/?y"] {
        scratch.settings(&format!("[agent.default]\nkind = \"script\"\n[telemetry]\notlp = \"{wrong}\"\n"));
        let said = scratch.landfall(&["run"]);
        assert!(said.code != Some(0) && said.err.contains("otlp"), "{wrong}: {}", said.err);
    }
}
