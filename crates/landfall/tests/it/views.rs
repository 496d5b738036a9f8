//! What pages and a terminal view are made of, asked of an engine that runs and of a project at rest.

use std::time::Duration;

use landfall_api::client::EngineClient;
use landfall_api::{
    Board, BoardAsked, Card, ColumnName, FleetAsked, Graph, Inbox, InboxKind, Level, Output, OutputAsked,
    OutputKind, OutputOf, OutputRange, Stats, TaskAsked, TypedService as _, WireTaskId,
};
use landfall_testkit::ScratchProject;
use serde::de::DeserializeOwned;

use crate::LANDFALL;
use crate::sandbox::open;

const SOON: Duration = Duration::from_secs(60);

fn writes(path: &str, text: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = \"{path}\"\ntext = \"{text}\\n\"\n")
}

fn read<T: DeserializeOwned>(scratch: &ScratchProject, args: &[&str]) -> T {
    let said = scratch.landfall(&[&["--json"], args].concat()).json();
    serde_json::from_value(said).expect("the shape of the wire")
}

fn cards(board: &Board, name: ColumnName) -> &[Card] {
    &board.columns.iter().find(|column| column.name == name).expect("every column is there").cards
}

fn ids(board: &Board, name: ColumnName) -> Vec<String> {
    cards(board, name).iter().map(|card| card.id.to_string()).collect()
}

#[test]
fn a_board_an_inbox_and_a_fleet_show_tasks_in_every_state_while_they_are_driven() {
    let scratch = ScratchProject::new(LANDFALL);
    let folder = open(&scratch);
    let (go, began) = (folder.join("go"), folder.join("began"));
    let long = format!(
        "run = [\"sh\", \"-c\", \"echo at work; touch {}; while [ ! -e {} ]; do sleep 0.02; done\"]\n{}",
        began.display(),
        go.display(),
        writes("long.txt", "long")
    );
    scratch.task("Lands", &writes("new.txt", "a"), &[]);
    scratch.task("Asks", "[[iteration]]\nsignal = \"pending:Which?\"\n", &[]);
    scratch.task("Gives up", "signal = \"blocked:cannot\"\n", &[]);
    scratch.task("Works", &long, &["--size", "L"]);
    scratch.task("Then", &writes("c.txt", "c"), &["--needs", "T4"]);
    let mut run = scratch.start(&["run"]);
    let status = |task: &str, wanted: &str| scratch.status(task) == wanted;
    scratch.eventually("every state", || {
        began.exists()
            && status("T1", "done")
            && scratch.wait_of("T2") == "question"
            && status("T3", "blocked")
    });
    let client = EngineClient::connect(&scratch.state().join("engine.sock")).expect("the engine listens");
    let board = client.board(BoardAsked::default()).expect("a board");
    assert_eq!(ids(&board, ColumnName::Working), ["T4"]);
    assert_eq!(ids(&board, ColumnName::DoneToday), ["T1"]);
    assert_eq!(ids(&board, ColumnName::Waiting), ["T5"]);
    let mut needs_you = ids(&board, ColumnName::NeedsYou);
    needs_you.sort();
    assert_eq!(needs_you, ["T2", "T3"]);
    assert!(board.seq > 0 && board.run.is_some() && board.engine.is_some() && board.pilot.is_some());
    let works = &cards(&board, ColumnName::Working)[0];
    assert_eq!((works.iteration, works.profile.as_str(), works.doing.as_str()), (1, "default", "working"));
    assert!(works.agent.is_some() && works.elapsed_ms > 0);
    let landed = &cards(&board, ColumnName::DoneToday)[0];
    assert_eq!(landed.diff.map(|diff| (diff.files, diff.added, diff.removed)), Some((1, 1, 0)));
    assert!(landed.commit.is_some() && !landed.checks.is_empty(), "{landed:?}");
    let few = client.board(BoardAsked { cards: 1, columns: vec![ColumnName::NeedsYou] }).expect("a board");
    let [column] = few.columns.as_slice() else { panic!("one column: {few:?}") };
    assert_eq!((column.count, column.cards.len(), column.more), (2, 1, 1));

    let fleet = client.fleet(FleetAsked { count: true, agents: false }).expect("a fleet");
    let [agent] = fleet.agents.as_slice() else { panic!("one agent: {fleet:?}") };
    assert_eq!(agent.task, WireTaskId(4));
    assert!(agent.pid.is_some() && agent.memory_bytes.is_some_and(|bytes| bytes > 0), "{agent:?}");
    let of_task = |id| fleet.workspaces.iter().find(move |it| it.task == Some(WireTaskId(id)));
    assert_eq!(of_task(4).map(|it| it.state.as_str()), Some("in use"), "{fleet:?}");
    assert!(fleet.disk.as_ref().is_some_and(|disk| disk.free_bytes > 0 && !disk.used.is_empty()));

    let page = client
        .output(OutputAsked {
            of: OutputOf::latest_of(WireTaskId(4)),
            at: None,
            backward: false,
            lines: 0,
            search: "AT WORK".to_owned(),
            levels: Vec::new(),
            raw: false,
        })
        .expect("its output");
    assert!(page.output.grows && page.output.kind == OutputKind::Agent, "{page:?}");

    let range = OutputRange { of: OutputOf::latest_of(WireTaskId(1)), at: 0, bytes: 10 };
    let bytes = client.output_bytes(range).expect("its bytes");
    let content = bytes.content.bytes().expect("they are whole");
    assert_eq!((bytes.next, content.len() as u64), (10.min(bytes.total_bytes), 10.min(bytes.total_bytes)));
    let outputs = client.outputs(TaskAsked { task: WireTaskId(1) }).expect("a list").outputs;
    assert!(outputs.iter().any(|it| it.kind == OutputKind::Agent && it.iteration == Some(1)), "{outputs:?}");
    assert!(outputs.iter().any(|it| it.kind == OutputKind::Check && it.ended_ms.is_some()), "{outputs:?}");
    let settings = client.settings(landfall_api::Nothing {}).expect("the settings");
    let keys = settings.sections.iter().flat_map(|section| &section.keys);
    assert!(settings.usable && keys.filter(|key| key.set).count() > 1, "{settings:?}");

    let inbox: Inbox = read(&scratch, &["inbox"]);
    let kinds: Vec<(InboxKind, Option<WireTaskId>)> =
        inbox.items.iter().map(|it| (it.kind, it.task)).collect();
    assert!(kinds.contains(&(InboxKind::Question, Some(WireTaskId(2)))), "{kinds:?}");
    assert!(kinds.contains(&(InboxKind::Blocked, Some(WireTaskId(3)))), "{kinds:?}");
    let question = inbox.items.iter().find(|it| it.kind == InboxKind::Question).expect("it asks");
    assert!(question.text.starts_with("Which?"), "{question:?}");
    // Asked again, it is the same need.
    let again: Inbox = read(&scratch, &["inbox", "T2"]);
    assert_eq!(again.items.iter().map(|it| &it.key).collect::<Vec<_>>(), [&question.key]);
    // What an action says can be sent as it is, with the person's words put where it says.
    let action = &question.actions[0];
    let fill = action.fill.as_ref().expect("a person writes the answer");
    let mut asked = action.asked.clone();
    *asked.pointer_mut(&fill.at).expect("there") = "tabs".into();
    let request = landfall_api::Request::of_words(&action.op, asked).expect("its words");
    let request = request.expect("a request");
    landfall_api::Service::call(&client, request).expect("it is answered");
    // Its agent may have asked again by now; the journal has the answer.
    scratch.eventually("the answer to arrive", || {
        scratch.landfall(&["log", "T2", "--json"]).ok().contains("tabs")
    });

    let graph: Graph = read(&scratch, &["graph"]);
    assert_eq!(graph.critical, [WireTaskId(4), WireTaskId(5)]);
    let held = graph.nodes.iter().find(|node| node.id == WireTaskId(4)).expect("it is open");
    assert_eq!((held.unblocks, held.unblocks_all, held.tier), (1, 1, 0));
    let tree = scratch.landfall(&["graph"]).ok();
    assert!(tree.contains("└─ T5") && tree.contains("critical path: T4 → T5"), "{tree}");

    std::fs::write(&go, "").expect("ours");
    run.wait(SOON);
    let stats: Stats = read(&scratch, &["stats", "--days", "2"]);
    let today = stats.days.last().expect("two days");
    assert_eq!((today.sum.added, today.sum.landed), (5, stats.total.landed));
    assert!(today.sum.landed >= 3 && stats.total.not_landed >= 1, "{today:?}");
    assert_eq!(stats.cycle.count, stats.total.landed);
    assert_eq!(stats.profiles.first().map(|it| it.profile.as_str()), Some("default"));
    assert!(stats.gates.iter().any(|gate| gate.count > 0), "{stats:?}");
}

#[test]
fn what_an_agent_printed_is_read_from_its_end_and_searched() {
    let scratch = ScratchProject::new(LANDFALL);
    let lines: Vec<String> = (1..=3_000).map(|number| format!("word {number}.")).collect();
    let script = format!("say = {:?}\n{}", lines.join("\n"), writes("new.txt", "a"));
    scratch.task("Chatty", &script, &[]);
    scratch.landfall(&["run"]).ok();
    let text = scratch.landfall(&["log", "T1", "--agent", "-n", "50"]).ok();
    assert!(text.lines().count() >= 50 && text.contains("word 3000."), "{text}");
    let page: Output = read(&scratch, &["log", "T1", "--agent", "--search", "WORD 17.", "-n", "5"]);
    let found: Vec<(Level, &str)> = page.lines.iter().map(|it| (it.level, it.text.as_str())).collect();
    assert_eq!(found, [(Level::Text, "word 17.")]);
    assert!(page.output.bytes > 30_000 && !page.output.grows && page.first, "{:?}", page.output);
    let check = scratch.landfall(&["log", "T1", "--check", "none of them"]);
    assert!(check.err.contains("has no such output") && check.err.contains("T1-a1"), "{check:?}");
    let checked: Output = read(&scratch, &["log", "T1", "--check", "tests"]);
    assert_eq!((checked.output.kind, checked.output.name.as_deref()), (OutputKind::Check, Some("tests")));
    assert!(checked.lines.iter().all(|line| line.level != Level::Text));
}

#[test]
fn a_project_without_a_journal_answers_as_an_empty_one() {
    let scratch = ScratchProject::new(LANDFALL);
    let inbox: Inbox = read(&scratch, &["inbox"]);
    assert!(inbox.items.is_empty() && inbox.seq == 0);
    let graph: Graph = read(&scratch, &["graph"]);
    assert!(graph.nodes.is_empty());
    let stats: Stats = read(&scratch, &["stats", "--days", "3"]);
    assert_eq!((stats.days.len(), stats.total.landed), (3, 0));
    assert!(scratch.landfall(&["inbox"]).ok().contains("nothing waits for you"));
    assert_eq!(scratch.landfall(&["log", "T9", "--agent"]).code, Some(5));
}
