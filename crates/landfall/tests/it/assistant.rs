//! `landfall mcp` for a person's assistant: a real conversation over stdin and stdout, a real project, the scripted agent.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use landfall_testkit::ScratchProject;
use serde_json::{Value, json};

use crate::LANDFALL;
use crate::sandbox::open;

/// Nothing takes longer, even on a loaded machine.
const LIMIT: Duration = Duration::from_secs(60);

/// An assistant that has started the server.
struct Assistant {
    child: Child,
    to: Option<ChildStdin>,
    from: mpsc::Receiver<Value>,
    asked: u64,
}

impl Assistant {
    fn of(scratch: &ScratchProject) -> Self {
        Self::with(scratch.command(&["mcp", "--person"]))
    }

    fn with(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the program starts");
        let (to, stdout) = (child.stdin.take(), child.stdout.take().expect("piped"));
        let (heard, from) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if heard.send(value).is_err() {
                    return;
                }
            }
        });
        let mut it = Self { child, to, from, asked: 0 };
        let hello = it.ask(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "landfall", "{hello}");
        it.tell(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        it
    }

    fn tell(&mut self, message: Value) {
        writeln!(self.to.as_mut().expect("open"), "{message}").expect("it reads");
    }

    #[track_caller]
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        self.tell(json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}));
        let answer = self.from.recv_timeout(LIMIT).expect("an answer");
        assert_eq!(answer["id"], self.asked, "{answer}");
        answer
    }

    /// The names of the tools, and whether each only looks.
    fn tools(&mut self) -> Vec<(String, bool)> {
        let answer = self.ask("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().expect("a list").clone();
        let name = |it: &Value| it["name"].as_str().expect("a name").to_owned();
        tools.iter().map(|it| (name(it), it["annotations"]["readOnlyHint"] == true)).collect()
    }

    /// What a tool answers, or what it said no with.
    #[track_caller]
    fn call(&mut self, tool: &str, words: Value) -> Result<Value, String> {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": words}));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        match result["isError"] == true {
            true => Err(text.to_owned()),
            false => Ok(serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))),
        }
    }

    /// Asks until the answer is a good one.
    #[track_caller]
    fn until(&mut self, what: &str, tool: &str, words: &Value, holds: impl Fn(&Value) -> bool) -> Value {
        let began = std::time::Instant::now();
        loop {
            let answer = self.call(tool, words.clone()).expect("it answers");
            if holds(&answer) {
                return answer;
            }
            assert!(began.elapsed() < LIMIT, "waited for {what}: {answer}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Hangs up; the server ends well.
    fn leave(mut self) {
        drop(self.to.take());
        assert_eq!(self.child.wait().expect("ours").code(), Some(0));
    }
}

impl Drop for Assistant {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it has ended
        let _ = self.child.wait(); // reaped
    }
}

fn body(script: &str) -> String {
    format!("Do as the script says.\n\n```landfall-script\n{script}\n```\n")
}

const WRITES: &str = "signal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"b\\n\"\n";

fn is(status: &'static str) -> impl Fn(&Value) -> bool {
    move |why| why["status"] == status
}

#[test]
fn an_assistant_adds_runs_looks_and_shows_the_proof() {
    let scratch = ScratchProject::new(LANDFALL);
    let mut it = Assistant::of(&scratch);
    let tools = it.tools();
    for (name, looks) in
        [("add", false), ("run", false), ("stop", false), ("answer", false), ("status", true)]
    {
        assert!(tools.contains(&(name.to_owned(), looks)), "{name}: {tools:?}");
    }
    let added = it.call(
        "add",
        json!({"tasks": [{"title": "Write b", "body": body(WRITES), "criteria": ["b is there"]}]}),
    );
    assert_eq!(added.expect("it is added")["tasks"][0]["id"], "T1");
    assert_eq!(it.call("list", json!({})).expect("a page")["tasks"][0]["title"], "Write b");
    assert_eq!(it.call("why", json!({"task": "T1"})).expect("a sentence")["status"], "ready");
    let begun = it.call("run", json!({"tasks": ["T1"], "slots": 1})).expect("it begins");
    assert!(begun["text"].as_str().is_some_and(|text| text.contains("landfall")), "{begun}");
    it.until("it to land", "why", &json!({"task": "T1"}), is("done"));
    let certificate = it.call("certificate", json!({"task": "T1"})).expect("the proof");
    assert!(certificate.to_string().contains("b is there"), "{certificate}");
    let over = it.until("the run to end", "status", &json!({}), |status| status["run"].is_null());
    assert_eq!(scratch.git(&["show", "main:b.txt"]), "b");
    assert_eq!(over["counts"]["done"], 1, "{over}");
    assert_eq!(it.call("show", json!({"task": "T1"})).expect("all of it")["id"], "T1");
    let log = it.call("log", json!({"task": "T1", "last": true})).map_or_else(|no| no, |log| log.to_string());
    assert!(log.contains("landed"), "{log}");
    it.leave();
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_question_is_passed_on_and_so_is_its_answer() {
    let scratch = ScratchProject::new(LANDFALL);
    let mut it = Assistant::of(&scratch);
    let asks = format!(
        "[[iteration]]\nsignal = \"pending:Tabs or spaces?\"\n[[iteration]]\n{}",
        WRITES.replace("[[write]]", "[[iteration.write]]")
    );
    it.call("add", json!({"tasks": [{"title": "Asks", "body": body(&asks)}]})).expect("it is added");
    it.call("run", json!({})).expect("it begins");
    it.until("the question", "inbox", &json!({}), |inbox| inbox.to_string().contains("Tabs or spaces?"));
    it.until("the run to end", "status", &json!({}), |status| status["run"].is_null());
    let early = it.call("certificate", json!({"task": "T1"})).expect_err("it has not landed");
    assert!(early.contains("T1"), "{early}");
    it.call("answer", json!({"task": "T1", "text": "spaces, please"})).expect("it is taken");
    it.call("run", json!({})).expect("it goes on");
    it.until("it to land", "why", &json!({"task": "T1"}), is("done"));
    assert!(scratch.prompts("T1")[1].contains("The answer: spaces, please"), "{:?}", scratch.prompts("T1"));
    it.until("the run to end", "status", &json!({}), |status| status["run"].is_null());
    it.leave();
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_run_goes_on_when_the_assistant_has_left_and_another_one_stops_it() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    let (go, began) = (folder.join("go"), folder.join("began"));
    let script = format!(
        "run = [\"sh\", \"-c\", \"echo x > {}; while [ ! -e {} ]; do sleep 0.02; done\"]\n{WRITES}",
        began.display(),
        go.display()
    );
    let mut it = Assistant::of(&scratch);
    it.call("add", json!({"tasks": [{"title": "Long", "body": body(&script)}]})).expect("it is added");
    let begun = it.call("run", json!({})).expect("it begins");
    assert_eq!(begun["run"], "R1", "{begun}");
    scratch.eventually("the agent to work", || began.exists());
    let twice = it.call("run", json!({})).expect_err("one run at a time");
    assert!(twice.contains("under way already") && twice.contains("hint: "), "{twice}");
    it.leave();

    let mut other = Assistant::of(&scratch);
    assert_eq!(other.call("status", json!({})).expect("it answers")["run"]["run"], "R1", "it goes on");
    other.call("stop", json!({"task": "T1", "now": true})).expect("it stops");
    let why = other.until("the pause", "why", &json!({"task": "T1"}), is("waiting"));
    assert!(why["sentence"].as_str().is_some_and(|it| it.contains("paused by you")), "{why}");
    other.until("the run to end", "status", &json!({}), |status| status["run"].is_null());
    other.leave();
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_server_that_keeps_the_project_drives_for_the_assistant() {
    let scratch = ScratchProject::new(LANDFALL);
    let mut serve = scratch.start(&["serve", "--listen", "127.0.0.1:0"]);
    scratch.eventually("the server", || scratch.heard().contains("Serving on"));
    let mut it = Assistant::of(&scratch);
    it.call("add", json!({"tasks": [{"title": "Write b", "body": body(WRITES)}]})).expect("it is added");
    let begun = it.call("run", json!({})).expect("it begins");
    if let Some(pid) = begun["pid"].as_i64() {
        assert_eq!(pid, i64::from(serve.pid()), "{begun}");
    }
    it.until("it to land", "why", &json!({"task": "T1"}), is("done"));
    it.leave();
    serve.signal("INT");
    assert_eq!(serve.wait(LIMIT), Some(0), "{}", scratch.heard());
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn what_is_refused_comes_in_the_words_of_the_problem_with_its_hint() {
    let scratch = ScratchProject::new(LANDFALL);
    let mut it = Assistant::of(&scratch);
    let no = it.call("why", json!({"task": "T9"})).expect_err("there is no such task");
    assert!(no.contains("T9") && no.contains("(unknown-task)") && no.contains("\nhint: "), "{no}");
    let no = it.call("why", json!({"task": "x"})).expect_err("that is no task");
    assert!(no.contains("`x` is not a task id such as T7"), "{no}");
    let no = it.call("why", json!({})).expect_err("the task is missing");
    assert!(no.contains("task"), "{no}");
    let no = it.call("run", json!({"taks": ["T1"]})).expect_err("a word that is not known");
    assert!(no.contains("takes no `taks`") && no.contains("known: tasks, slots, mode"), "{no}");
    let answer = it.ask("tools/call", json!({"name": "rollback", "arguments": {"task": "T1"}}));
    assert!(
        answer["error"]["message"].as_str().is_some_and(|it| it.contains("no tool `rollback`")),
        "{answer}"
    );
    it.leave();

    let elsewhere = ScratchProject::bare(LANDFALL);
    let mut it = Assistant::of(&elsewhere);
    let no = it.call("status", json!({})).expect_err("there is no project");
    assert!(no.contains("(not-a-repository)"), "{no}");
    it.leave();
}

#[test]
fn an_agent_at_work_never_gets_the_tools_of_a_person() {
    let scratch = ScratchProject::new(LANDFALL);
    for (variable, value) in [("LANDFALL_SIGNAL", "/nowhere/signal.sock"), ("LANDFALL_KEY", "k1")] {
        let mut command = scratch.command(&["mcp", "--person"]);
        let said = command.env(variable, value).output().expect("it runs");
        assert_eq!(said.status.code(), Some(6), "{said:?}");
        assert!(String::from_utf8_lossy(&said.stderr).contains("no tools of a person"), "{said:?}");
        let mut command = scratch.command(&["mcp"]);
        command.env(variable, value);
        let mut it = Assistant::with(command);
        let names: Vec<String> = it.tools().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["signal", "ask", "discovery", "follow_up"]);
        it.leave();
    }
    let mut it = Assistant::with(scratch.command(&["mcp"]));
    assert!(it.tools().iter().any(|(name, _)| name == "add"), "a person's assistant needs to say nothing");
    it.leave();
}

/// An agent that clears its environment is known by whose child it is.
#[test]
fn an_agent_that_hides_what_it_is_steers_nothing() {
    let scratch = ScratchProject::new(LANDFALL);
    crate::sandbox::off(&scratch);
    let talk = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
            "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "add", "arguments": {"tasks": [{"title": "Mine"}]}}}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "run", "arguments": {}}}),
    ];
    let lines: String = talk.iter().map(|line| format!("{line}\n")).collect();
    let (input, output) = (scratch.root().join("talk"), scratch.root().join("heard"));
    std::fs::write(&input, lines).expect("a file");
    // The input stays open until both are answered: the server answers until it ends.
    let heard_both = format!("grep -q '\"id\":2' {0} && grep -q '\"id\":3' {0}", output.display());
    let command = format!(
        "touch {3}; (cat {0}; n=0; until {heard_both} || [ $n = 600 ]; do n=$((n + 1)); sleep 0.05; done) | \
         env -u LANDFALL_SIGNAL -u LANDFALL_KEY LANDFALL_STATE={1} {LANDFALL} -C {2} mcp --person > {3}",
        input.display(),
        scratch.state().display(),
        scratch.project().display(),
        output.display()
    );
    let script = format!("run = [\"sh\", \"-c\", {command:?}]\n{WRITES}");
    scratch.task("Attacks", &script, &[]);
    scratch.landfall(&["run"]).ok();
    let heard = std::fs::read_to_string(&output).expect("it ran");
    let refused = heard.matches("an agent at work may not ask the engine").count();
    assert_eq!(refused, 2, "{heard}");
    let tasks = scratch.landfall(&["--json", "list"]).json();
    assert_eq!(tasks["tasks"].as_array().map(Vec::len), Some(1), "{tasks}");
    assert_eq!(scratch.left_behind(), []);
}
