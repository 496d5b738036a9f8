//! What an agent says through its socket, and the signs of life it gives without a word.

use crate::sitter_scene::{PATIENCE, Scene, Way, both_ways, within};
use landfall_host::sitter::{
    self, ChildExit, ProcessActivity, SignalSpec, SitterProcess, SitterSpec, SitterStream, SpoolReader,
    StopMode,
};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn spec(scene: &Scene, socket: &Path, args: &[&str]) -> SitterSpec {
    let mut spec = scene.spec(args);
    spec.env = vec![("LANDFALL_SIGNAL".into(), socket.into())];
    spec.signal = Some(SignalSpec { socket: socket.to_owned(), key: "secret-7".into() });
    spec
}

#[test]
fn what_is_said_with_the_key_is_kept_and_the_rest_leaves_no_trace() {
    both_ways(|scene| {
        let socket = scene.folder.path().join("signal.sock");
        let ended = scene.run(&spec(
            scene,
            &socket,
            &[
                "speak",
                r#"{"key":"secret-7","say":"progress","text":"40"}"#,
                r#"{"key":"secret-8","say":"complete"}"#,
                r#"{"say":"complete"}"#,
                "complete",
                &format!(r#"{{"key":"secret-7","say":"complete","x":{}}}"#, "[".repeat(60_000)),
                r#"{"key":"secret-7","say":"done"}"#,
                r#"{"key":"secret-7","say":"ask","text":"line one\nline two","more":{"a":1}}"#,
            ],
        ));
        assert_eq!(ended.exit, ChildExit::Code(0));
        let out = scene.out();
        let answers: Vec<bool> = out.lines().map(|line| line.contains(r#""ok":true"#)).collect();
        assert_eq!(answers, [true, false, false, false, false, false, true], "{out}");
        assert!(out.lines().skip(1).take(5).all(|line| line.contains("\"hint\":")), "{out}");
        assert!(out.contains("say one of complete, blocked"), "{out}");
        let kept = String::from_utf8(
            SpoolReader::new(&scene.dir, SitterStream::Signals, 0).read(1 << 20).expect("there"),
        );
        let kept = kept.expect("text");
        let lines: Vec<&str> = kept.lines().collect();
        assert_eq!(lines.len(), 2, "{kept}");
        let first = [r#""say":"progress""#, r#""seq":1"#, r#""text":"40""#];
        let second = [r#""more":{"a":1}"#, r#""say":"ask""#, r#""seq":2"#, r#""text":"line one\nline two""#];
        assert!(first.iter().all(|part| lines[0].contains(part)), "{kept}");
        assert!(second.iter().all(|part| lines[1].contains(part)), "{kept}");
        assert!(lines.iter().all(|line| line.contains(r#""at_ms":1"#)), "{kept}");
        assert!(!kept.contains("secret"), "the key is not for the record: {kept}");
        assert!(!socket.exists(), "the socket is gone with the run");
    });
}

#[test]
fn the_socket_is_its_owners_alone_and_its_path_may_be_long() {
    let scene = Scene::new(Way::AsItCan);
    let deep: PathBuf = scene.folder.path().join("x".repeat(100)).join("y".repeat(100));
    std::fs::create_dir_all(&deep).expect("writable");
    let socket = deep.join("signal.sock");
    let line = r#"{"key":"secret-7","say":"complete"}"#;
    let sitting = scene.start(&spec(&scene, &socket, &["speak-and-hang", line]));
    scene.hear("true");
    assert_eq!(std::fs::metadata(&socket).expect("there").permissions().mode() & 0o777, 0o600);
    sitter::stop_sitter(&sitting, StopMode::Now).expect("ours");
    scene.end_of(&sitting);
    assert!(!socket.exists());
    assert_eq!(std::fs::read_dir(&deep).expect("there").count(), 0, "nothing is left beside it");
}

#[test]
fn whatever_is_said_too_much_is_refused_and_the_run_goes_on() {
    let scene = Scene::new(Way::AsItCan);
    let socket = scene.folder.path().join("signal.sock");
    let line = r#"{"key":"secret-7","say":"discovery-local","text":"FILL"}"#;
    let ended = scene.run(&spec(&scene, &socket, &["speak-much", line]));
    assert_eq!(ended.exit, ChildExit::Code(0));
    let out = scene.out();
    assert!(out.lines().next().is_some_and(|line| line.contains("more than 65536 bytes")), "{out}");
    assert!(out.contains("68 taken, then") && out.contains("no more than 4194304 are kept"), "{out}");
    let len = std::fs::metadata(scene.dir.join("signals.jsonl")).expect("there").len();
    assert!((4_000_000..=4 << 20).contains(&len), "{len}");
}

#[test]
fn who_never_stops_speaking_is_sent_away_and_others_are_heard() {
    let scene = Scene::new(Way::AsItCan);
    let socket = scene.folder.path().join("signal.sock");
    let line = r#"{"key":"secret-7","say":"complete"}"#;
    let sitting = scene.start(&spec(&scene, &socket, &["speak-through-noise", line]));
    let began = std::time::Instant::now();
    scene.hear("true");
    assert!(began.elapsed() < std::time::Duration::from_secs(4), "{:?}", began.elapsed());
    scene.hear("sent away");
    sitter::stop_sitter(&sitting, StopMode::Now).expect("ours");
    scene.end_of(&sitting);
}

#[test]
fn a_stranger_with_the_key_is_sent_away_and_takes_nobodys_place() {
    both_ways(|scene| {
        let socket = scene.folder.path().join("signal.sock");
        let turn = scene.folder.path().join("turn");
        let line = r#"{"key":"secret-7","say":"progress","text":"40"}"#;
        let sitting =
            scene.start(&spec(scene, &socket, &["speak-after", turn.to_str().expect("plain"), line]));
        within("somebody listens", || socket.exists());
        // More than there are places, and none of them leaves.
        let strangers: Vec<UnixStream> = (0..20)
            .map(|at| {
                let mut stream = UnixStream::connect(&socket).expect("somebody listens");
                stream.set_read_timeout(Some(PATIENCE)).expect("a stream");
                if at % 2 == 0 {
                    let _ = stream.write_all(b"{\"key\":\"secret-7\",\"say\":\"complete\"}\n"); // it may be too late
                }
                stream
            })
            .collect();
        let began = Instant::now();
        for mut stream in &strangers {
            let mut answer = String::new();
            BufReader::new(&mut stream).read_line(&mut answer).expect("answered");
            assert!(answer.contains(r#""error":"only the processes of this run"#), "{answer}");
            assert!(answer.contains(r#""ok":false"#) && answer.contains(r#""hint":"#), "{answer}");
            // Some had a word on the way, and so hear that it was not read.
            let after = stream.read(&mut [0; 16]);
            assert!(
                matches!(&after, Ok(0)) || after.is_err_and(|it| it.kind() == ErrorKind::ConnectionReset)
            );
        }
        assert!(
            began.elapsed() < std::time::Duration::from_secs(4),
            "less than a guest has: {:?}",
            began.elapsed()
        );
        // Nor is an agent of the same kind heard, whose own sitter is another one.
        let other = Scene::new(Way::AsItCan);
        let ended = other.run(&spec(&other, &other.folder.path().join("s"), &["speak", line]));
        assert_eq!((ended.exit, other.out().as_str()), (ChildExit::Code(0), "{\"ok\":true}\n"));
        let other = Scene::new(Way::AsItCan);
        let mut astray = spec(&other, &other.folder.path().join("s"), &["speak", line]);
        astray.env = vec![("LANDFALL_SIGNAL".into(), socket.clone().into())];
        other.run(&astray);
        assert!(other.out().contains("only the processes of this run"), "{}", other.out());
        assert_eq!(std::fs::read(scene.dir.join("signals.jsonl")).expect("there"), b"", "nothing is kept");
        std::fs::write(&turn, "").expect("writable");
        scene.hear(r#"{"ok":true}"#);
        let kept = std::fs::read_to_string(scene.dir.join("signals.jsonl")).expect("there");
        assert_eq!((kept.lines().count(), kept.contains(r#""say":"progress","seq":1"#)), (1, true), "{kept}");
        drop(strangers);
        sitter::stop_sitter(&sitting, StopMode::Now).expect("ours");
        scene.end_of(&sitting);
    });
}

#[test]
fn who_has_lost_its_parent_and_its_session_is_still_of_the_run() {
    both_ways(|scene| {
        let socket = scene.folder.path().join("signal.sock");
        let line = r#"{"key":"secret-7","say":"complete"}"#;
        let sitting = scene.start(&spec(scene, &socket, &["speak-from-afar", line]));
        scene.hear("\n");
        assert_eq!(scene.out(), "{\"ok\":true}\n");
        sitter::stop_sitter(&sitting, StopMode::Now).expect("ours");
        scene.end_of(&sitting);
    });
}

#[test]
fn a_socket_that_cannot_be_made_is_told() {
    let scene = Scene::new(Way::AsItCan);
    let socket = scene.folder.path().join("no-folder/signal.sock");
    match scene.run(&spec(&scene, &socket, &["say", "it ran"])).exit {
        ChildExit::NotStarted { message, errno: libc::ENOENT, .. } => {
            assert!(message.contains("signal socket"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let scene = Scene::new(Way::AsItCan);
    let mut refused = spec(&scene, &scene.folder.path().join("s"), &["say", "it ran"]);
    refused.signal.as_mut().expect("one").key.clear();
    assert!(scene.try_start(&refused).is_err());
}

#[test]
fn a_run_that_works_without_a_word_has_a_pulse_and_one_that_hangs_has_not() {
    let (busy, idle) = (Scene::new(Way::AsItCan), Scene::new(Way::NoCgroup));
    let sittings = [busy.start(&busy.spec(&["busy"])), idle.start(&idle.spec(&["hang"]))];
    busy.hear("busy");
    within("the idle one runs", || !idle.marked().is_empty());
    let pulses =
        || -> [ProcessActivity; 2] { sitter::measure_activities(&sittings).try_into().expect("one each") };
    within("the idle one is at rest", || {
        let [_, first] = pulses();
        std::thread::sleep(std::time::Duration::from_millis(30));
        first == pulses()[1]
    });
    let before = pulses();
    within("the busy one works", || {
        let [now, _] = pulses();
        now.cpu_ticks > before[0].cpu_ticks && now.io_bytes > before[0].io_bytes + (1 << 20)
    });
    assert_eq!(pulses()[1], before[1], "the idle one does not");
    assert_eq!((before[0].processes, before[1].processes), (1, 0));
    for (scene, sitting) in [(&busy, &sittings[0]), (&idle, &sittings[1])] {
        assert_eq!(
            sitter::measure_activity(sitting).processes,
            before[usize::from(sitting == &sittings[1])].processes
        );
        sitter::stop_sitter(sitting, StopMode::Now).expect("ours");
        scene.end_of(sitting);
    }
    let gone = SitterProcess { pid: i32::MAX, started: 1, boot: String::new(), sandbox: None };
    assert_eq!(
        sitter::measure_activity(&gone),
        ProcessActivity { connections: Some(Vec::new()), ..ProcessActivity::default() }
    );
}
