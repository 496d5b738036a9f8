//! Messages, to a real server on this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use landfall_engine::model::{
    EngineEvent, Event, Fact, JournalEntry, RunEnd, RunId, StepName, Timestamp, WaitReason,
};
use landfall_engine::notify::NotificationTiming;

use crate::herald::{LONG, Scene, fact, failed, landed};

/// What a server was sent.
#[derive(Debug)]
struct Request {
    line: String,
    headers: Vec<String>,
    body: String,
}

impl Request {
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find_map(|it| it.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)));
        found.map(|(_, value)| value)
    }
}

/// A server that answers with these, the last one again and again; none is no answer at all.
fn server(answers: &[Option<u16>]) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    let (send, requests) = channel();
    let answers = answers.to_vec();
    // It ends with the test's process.
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("a connection");
            let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
            let mut lines = Vec::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                let line = line.trim_end().to_owned();
                if line.is_empty() {
                    break;
                }
                lines.push(line);
            }
            let length = |line: &String| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok();
            let mut body = vec![0; lines.iter().find_map(length).unwrap_or(0)];
            reader.read_exact(&mut body).expect("a body");
            let line = lines.remove(0);
            let body = String::from_utf8(body).expect("text");
            if send.send(Request { line, headers: lines, body }).is_err() {
                return;
            }
            match answers[number.min(answers.len() - 1)] {
                Some(status) => {
                    let more = if status == 302 { "Location: /elsewhere\r\n" } else { "" };
                    let answer = format!(
                        "HTTP/1.1 {status} x\r\n{more}Content-Length: 0\r\nConnection: close\r\n\r\n"
                    );
                    stream.write_all(answer.as_bytes()).expect("an answer");
                }
                None => open.push(stream), // it stays open and says nothing
            }
        }
    });
    (address, requests)
}

fn quick() -> NotificationTiming {
    NotificationTiming {
        pause: Duration::from_millis(400),
        answer: Duration::from_millis(500),
        back_off: [Duration::from_millis(10), Duration::from_millis(20)],
        ..NotificationTiming::default()
    }
}

fn asks(task: u32, text: &str) -> JournalEntry {
    let then = StepName::new("work");
    fact(task, Event::Waited { wait: WaitReason::Question { text: text.to_owned() }, then })
}

fn run_over() -> JournalEntry {
    let event = EngineEvent::RunEnded { run: RunId(3), why: RunEnd::NothingLeft };
    JournalEntry { at: Timestamp(1_000), fact: Fact::Engine(event) }
}

#[test]
fn a_webhook_gets_json_and_the_token_and_is_tried_again() {
    let (address, requests) = server(&[Some(503), Some(200)]);
    let mut scene = Scene::new();
    scene.environment.push(("HOOK_TOKEN".to_owned(), "sesame".to_owned()));
    let settings =
        format!("[[notify]]\nkind = \"webhook\"\nurl = \"{address}/hook\"\ntoken_env = \"HOOK_TOKEN\"\n");
    let mut herald = scene.herald_with(&settings, &quick());
    herald.process_entries(&[landed(1, "a"), failed(2, "the agent crashed")], &scene.world);
    let first = requests.recv_timeout(LONG).expect("a request");
    assert_eq!(first.line, "POST /hook HTTP/1.1");
    assert_eq!(first.header("Authorization"), Some("Bearer sesame"));
    let second = requests.recv_timeout(LONG).expect("another try");
    let json = second.json();
    assert_eq!((&json["event"], &json["priority"]), (&"failed".into(), &"normal".into()));
    assert_eq!((&json["title"], &json["text"]), (&"T2 failed".into(), &"Title 2\nthe agent crashed".into()));
    assert_eq!((&json["project"], &json["tasks"][0]), (&"shop".into(), &"T2".into()));
    herald.finish_deliveries(LONG);
    assert!(requests.try_recv().is_err(), "a landing is of low priority and is not told by default");
    let log = scene.log("notices.jsonl");
    assert_eq!((&log[0]["sent"], &log[0]["tries"]), (&true.into(), &2.into()), "{log:?}");
}

#[test]
fn what_cannot_help_is_not_tried_again_and_nothing_is_sent_elsewhere() {
    for status in [404, 302] {
        let (address, requests) = server(&[Some(status)]);
        let scene = Scene::new();
        let settings = format!("[[notify]]\nkind = \"webhook\"\nurl = \"{address}/T0/sesame\"\n");
        let mut herald = scene.herald_with(&settings, &quick());
        herald.process_entries(&[failed(1, "x")], &scene.world);
        herald.finish_deliveries(LONG);
        assert_eq!(requests.try_iter().count(), 1);
        let log = scene.log("notices.jsonl");
        assert_eq!((&log[0]["sent"], &log[0]["tries"]), (&false.into(), &1.into()), "{log:?}");
        let error = log[0]["error"].as_str().expect("why");
        assert!(error.contains(&status.to_string()) && !error.contains("sesame"), "{error}");
    }
}

#[test]
fn a_burst_is_summed_up() {
    let (address, requests) = server(&[Some(200)]);
    let scene = Scene::new();
    let settings = format!("[[notify]]\nkind = \"slack\"\nurl = \"{address}/s\"\npriority = \"low\"\n");
    let mut herald = scene.herald_with(&settings, &quick());
    herald.process_entries(&[landed(1, "a")], &scene.world);
    let first = requests.recv_timeout(LONG).expect("the first goes out at once");
    assert_eq!(first.json()["text"], "*shop: T1 landed*\nTitle 1");
    herald.process_entries(&[landed(2, "a"), landed(3, "a"), landed(4, "a")], &scene.world);
    let second = requests.recv_timeout(LONG).expect("the rest");
    let text = second.json()["text"].as_str().expect("text").to_owned();
    assert!(text.starts_with("*shop: 3 tasks landed: T2, T3, T4*\nT2 landed: Title 2\n"), "{text}");
    herald.finish_deliveries(LONG);
    assert_eq!(requests.try_iter().count(), 0);
}

#[test]
fn while_someone_watches_only_what_waits_for_them_is_sent() {
    let (address, requests) = server(&[Some(200)]);
    let scene = Scene::new();
    let settings = format!("[[notify]]\nkind = \"webhook\"\nurl = \"{address}\"\npriority = \"low\"\n");
    let mut herald = scene.herald_with(&settings, &quick());
    herald.note_watcher(true);
    herald.note_watcher(true);
    herald.note_watcher(false);
    herald.process_entries(&[landed(1, "a"), failed(2, "x"), asks(3, "which port <5>?")], &scene.world);
    let json = requests.recv_timeout(LONG).expect("a question").json();
    assert_eq!((&json["event"], &json["text"]), (&"question".into(), &"Title 3\nwhich port <5>?".into()));
    herald.note_watcher(false);
    herald.process_entries(&[run_over()], &scene.world);
    assert_eq!(requests.recv_timeout(LONG).expect("nobody watches").json()["event"], "run-over");
    herald.finish_deliveries(LONG);
    assert_eq!(requests.try_iter().count(), 0);
}

#[test]
fn channels_take_what_they_are_for_and_slack_and_ntfy_speak_their_own() {
    let (address, requests) = server(&[Some(200)]);
    let mut scene = Scene::new();
    scene.environment.push(("SLACK_URL".to_owned(), format!("{address}/slack")));
    let settings = format!(
        "[[notify]]\nkind = \"slack\"\nurl_env = \"SLACK_URL\"\nevents = [\"question\"]\n\
         [[notify]]\nkind = \"ntfy\"\nurl = \"{address}/topic\"\npriority = \"urgent\"\n\
         [[notify]]\nkind = \"ntfy\"\nurl = \"{address}/topic\"\npriority = \"high\"\nevents = [\"question\", \"landed\"]\n"
    );
    let mut herald = scene.herald_with(&settings, &quick());
    herald.process_entries(&[failed(2, "x"), asks(3, "<!channel> & now?"), landed(1, "a")], &scene.world);
    herald.finish_deliveries(LONG);
    let mut sent: Vec<Request> = requests.try_iter().collect();
    sent.sort_by_key(|it| it.line.clone());
    assert_eq!(
        sent.iter().map(|it| it.line.as_str()).collect::<Vec<_>>(),
        ["POST / HTTP/1.1", "POST /slack HTTP/1.1"]
    );
    let ntfy = sent[0].json();
    assert_eq!((&ntfy["topic"], &ntfy["priority"]), (&"topic".into(), &4.into()));
    assert_eq!(
        (&ntfy["title"], &ntfy["message"]),
        (&"shop: T3 asks".into(), &"Title 3\n<!channel> & now?".into())
    );
    assert_eq!(sent[1].json()["text"], "*shop: T3 asks*\nTitle 3\n&lt;!channel&gt; &amp; now?");
}

#[test]
fn a_server_that_does_not_answer_keeps_nobody_waiting_and_its_address_is_not_shown() {
    let (silent, _requests) = server(&[None]);
    let (address, requests) = server(&[Some(200)]);
    let mut scene = Scene::new();
    scene.environment.push(("TOKEN".to_owned(), "open-says-me".to_owned()));
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("bound")
    };
    let settings = format!(
        "[[notify]]\nkind = \"webhook\"\nurl = \"{silent}/T0/sesame\"\ntoken_env = \"TOKEN\"\n\
         [[notify]]\nkind = \"webhook\"\nurl = \"http://me:sesame@{closed}/sesame?sesame\"\n\
         [[notify]]\nkind = \"webhook\"\nurl_env = \"NOT_SET\"\n\
         [[notify]]\nkind = \"webhook\"\nurl = \"{address}\"\n"
    );
    let mut herald = scene.herald_with(&settings, &quick());
    herald.process_entries(&[failed(1, "x")], &scene.world);
    requests.recv_timeout(LONG).expect("the others are told");
    herald.finish_deliveries(LONG);
    let log = scene.log("notices.jsonl");
    assert_eq!(log.iter().filter(|it| it["sent"] == false).count(), 3, "{log:?}");
    let text = std::fs::read_to_string(scene.state().join("notices.jsonl")).expect("the log");
    assert!(!text.contains("sesame") && !text.contains("open-says-me"), "{text}");
    assert!(text.contains("the variable `NOT_SET` is not set"), "{text}");
    let silent = silent.strip_prefix("http://").expect("it has one");
    let tries = log.iter().find(|it| it["error"].as_str().is_some_and(|it| it.contains(silent)));
    assert_eq!(tries.expect("the silent one is told of")["tries"], 3);
}

#[test]
fn finishing_is_bounded_whatever_a_server_does() {
    let (silent, _requests) = server(&[None]);
    let scene = Scene::new();
    let settings = format!("[[notify]]\nkind = \"webhook\"\nurl = \"{silent}\"\n");
    let mut herald = scene.herald_with(&settings, &NotificationTiming { answer: LONG, ..quick() });
    herald.process_entries(&[failed(1, "x")], &scene.world);
    let began = Instant::now();
    herald.finish_deliveries(Duration::from_millis(300));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn a_command_and_the_desktop_are_told_by_programs() {
    let mut scene = Scene::new();
    let bin = scene.state().join("bin");
    std::fs::create_dir(&bin).expect("a folder");
    let program = bin.join("notify-send");
    let out = scene.root().join("desktop");
    std::fs::write(&program, format!("#!/bin/sh\nprintf '%s|' \"$@\" > {}\n", out.display()))
        .expect("a file");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("allowed");
    let path = &mut scene.environment[0].1;
    *path = format!("{}:{path}", bin.display());
    let settings = "[[notify]]\nkind = \"desktop\"\n\
                    [[notify]]\nkind = \"command\"\nrun = \"env | grep ^LANDFALL_ | sort > env; cat > stdin\"\n";
    let mut herald = scene.herald_with(settings, &NotificationTiming::default());
    herald.process_entries(&[asks(3, "<b>which</b>?")], &scene.world);
    herald.finish_deliveries(LONG);
    let read = |name: &str| std::fs::read_to_string(scene.root().join(name)).expect("it was written");
    assert_eq!(
        read("desktop"),
        "--app-name=Landfall|--urgency=critical|--|shop: T3 asks|Title 3\n&lt;b&gt;which&lt;/b&gt;?|"
    );
    assert!(read("env").contains("LANDFALL_EVENT=question\nLANDFALL_MARK="), "{}", read("env"));
    assert!(read("env").contains("LANDFALL_TASKS=T3\n"), "{}", read("env"));
    let json: serde_json::Value = serde_json::from_str(&read("stdin")).expect("JSON");
    assert_eq!(json["title"], "T3 asks");
}
