//! Sitters and the real processes they own.

use crate::sitter_scene::{PATIENCE, Scene, Way, both_ways, probe, processes, within};
use landfall_host::clock::{Clock as _, SystemClock};
use landfall_host::sitter::{
    self, ChildExit, Containment, EndCause, SitterProcess, SitterState, SitterStream, SitterWatch,
    SpoolReader, SpoolSummary, StartError, StopMode, StopResult,
};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::Permissions;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn spool(bytes: u64) -> SpoolSummary {
    SpoolSummary { bytes, kept: bytes, left_out: 0, cut_at: None }
}

/// A line of a status file below `/proc`.
fn status_line(path: &str, name: &str) -> String {
    let status = std::fs::read_to_string(path).expect("it runs");
    status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel tells").trim().to_owned()
}

/// Whether this process has not heard a signal yet that it was sent.
fn is_pending(pid: i32, signal: Signal) -> bool {
    let pending = status_line(&format!("/proc/{pid}/status"), "ShdPnd:");
    u64::from_str_radix(&pending, 16).expect("a mask") & 1 << (signal.as_raw() - 1) != 0
}

/// How often a thread of ours gave its processor back to wait.
fn rests_of(thread: Pid) -> u64 {
    let path = format!("/proc/self/task/{}/status", thread.as_raw_nonzero());
    status_line(&path, "voluntary_ctxt_switches:").parse().expect("a number")
}

/// How many descriptors of ours are open on this file.
fn openings_of(path: &Path) -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("proc").flatten();
    descriptors.filter(|it| std::fs::read_link(it.path()).is_ok_and(|target| target == path)).count()
}

fn kill_9(pid: i32) {
    kill_process(Pid::from_raw(pid).expect("a pid"), Signal::KILL).expect("it runs");
}

#[test]
fn a_run_ends_with_its_code_and_its_words() {
    both_ways(|scene| {
        assert_eq!(scene.found(), SitterState::Never);
        let ended = scene.run(&scene.spec(&["say", "hello"]));
        assert_eq!((ended.exit.clone(), ended.cause), (ChildExit::Code(0), EndCause::Own));
        assert_eq!((ended.out, ended.err), (spool(5), spool(0)));
        assert_eq!((ended.swept, ended.left), (0, 0));
        assert!(ended.began_ms > 1_700_000_000_000 && ended.ended_ms >= ended.began_ms);
        assert_eq!(scene.out(), "hello");
    });
    both_ways(|scene| assert_eq!(scene.run(&scene.spec(&["code", "42"])).exit, ChildExit::Code(42)));
}

#[test]
fn the_record_says_what_held_the_tree() {
    let scene = Scene::new(Way::NoCgroup);
    assert_eq!(scene.run(&scene.spec(&["code", "0"])).contained, Containment::Subreaper);
    let scene = Scene::new(Way::AsItCan);
    let record = scene.run(&scene.spec(&["code", "0"]));
    let text = std::fs::read_to_string(scene.dir.join("exit.json")).expect("a record");
    assert!(text.starts_with(r#"{"v":1,"#), "{text}");
    let word = match record.contained {
        Containment::Cgroup => r#""contained":"cgroup""#,
        Containment::Subreaper => r#""contained":"subreaper""#,
    };
    assert!(text.contains(word), "{text}");
}

/// Where version 1 counts processes, each run is bounded by a group of its own, which goes with it.
#[test]
fn a_run_is_bounded_by_a_control_group_and_ended_before_others_if_memory_is_short() {
    let scene = Scene::new(Way::AsItCan);
    let mut spec = scene.spec(&[]);
    let script = "cat /proc/self/cgroup /proc/self/oom_score_adj";
    spec.argv = ["/bin/sh", "-c", script].map(Into::into).to_vec();
    spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    assert_eq!(scene.run(&spec).exit, ChildExit::Code(0));
    let said = scene.out();
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").expect("proc");
    let own: i32 = own.trim().parse().expect("a number");
    let score: i32 = said.lines().last().expect("a line").parse().expect("a number");
    assert_eq!(score, (own + 500).min(1000), "{said}");
    let group = |text: &str| text.lines().find_map(|line| Some(line.split_once(":pids:")?.1.to_owned()));
    let Some(group_of_test) = group(&std::fs::read_to_string("/proc/self/cgroup").expect("proc")) else {
        return eprintln!("landfall-skip: version 1 of control groups counts no processes here");
    };
    if !rustix::process::geteuid().is_root() {
        return eprintln!("landfall-skip: a control group of version 1 needs root");
    }
    let group = group(&said).expect("one");
    assert!(group.starts_with(&group_of_test) && group.contains("/landfall."), "{said}");
    let folder = std::path::Path::new("/sys/fs/cgroup/pids").join(group.trim_start_matches('/'));
    assert!(!folder.exists(), "{folder:?} is left");
}

#[test]
fn a_run_cannot_have_more_processes_than_half_of_the_limit_around_it() {
    let scene = Scene::new(Way::AsItCan);
    let mut spec = scene.spec(&[]);
    let script =
        "group=$(sed -n 's/.*:pids:/\\/sys\\/fs\\/cgroup\\/pids/p' /proc/self/cgroup); cat $group/pids.max";
    spec.argv = ["/bin/sh", "-c", script].map(Into::into).to_vec();
    spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    scene.run(&spec);
    let said = scene.out();
    if !rustix::process::geteuid().is_root() || !std::path::Path::new("/sys/fs/cgroup/pids").is_dir() {
        return eprintln!("landfall-skip: a control group of version 1 that counts processes needs root");
    }
    let limit: u64 = said.trim().parse().expect("a limit");
    assert!((16..=32_768).contains(&limit), "{limit}");
}

#[test]
fn a_death_by_signal_is_not_a_code() {
    both_ways(|scene| assert_eq!(scene.run(&scene.spec(&["abort"])).exit, ChildExit::Signal(libc::SIGABRT)));
}

#[test]
fn what_cannot_be_run_is_said_to_be_so() {
    both_ways(|scene| {
        let mut spec = scene.spec(&[]);
        spec.argv = vec!["no-such-program".into()];
        spec.env = vec![("PATH".into(), "/nowhere:/usr/bin".into())];
        match scene.run(&spec).exit {
            ChildExit::NotStarted { missing: true, denied: false, errno: libc::ENOENT, .. } => {}
            other => panic!("{other:?}"),
        }
    });
    both_ways(|scene| {
        let plain = scene.folder.path().join("plain");
        std::fs::write(&plain, "text").expect("writable");
        std::fs::set_permissions(&plain, Permissions::from_mode(0o600)).expect("ours");
        let mut spec = scene.spec(&[]);
        spec.argv = vec!["plain".into()];
        spec.env = vec![("PATH".into(), scene.folder.path().into())];
        match scene.run(&spec).exit {
            ChildExit::NotStarted { missing: false, denied: true, errno: libc::EACCES, .. } => {}
            other => panic!("{other:?}"),
        }
    });
    both_ways(|scene| {
        let mut spec = scene.spec(&["code", "0"]);
        spec.cwd = "/no/such/folder".into();
        match scene.run(&spec).exit {
            ChildExit::NotStarted { message, missing: false, denied: false, errno: libc::ENOENT } => {
                assert!(message.contains("/no/such/folder"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    });
    both_ways(|scene| {
        let mut spec = scene.spec(&["cat"]);
        spec.stdin = Some(scene.folder.path().join("no-prompt"));
        match scene.run(&spec).exit {
            ChildExit::NotStarted { message, .. } => assert!(message.contains("no-prompt"), "{message}"),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_starts() {
    let scene = Scene::new(Way::AsItCan);
    let sound = scene.spec(&["code", "0"]);
    for spoil in [
        |spec: &mut sitter::SitterSpec| spec.argv.clear(),
        |spec: &mut sitter::SitterSpec| spec.argv.push("a\0b".into()),
        |spec: &mut sitter::SitterSpec| spec.env.push(("A=B".into(), "c".into())),
        |spec: &mut sitter::SitterSpec| spec.marker.clear(),
    ] {
        let mut spec = sound.clone();
        spoil(&mut spec);
        assert!(matches!(scene.try_start(&spec), Err(StartError::Spec { .. })), "{spec:?}");
    }
    assert_eq!(scene.found(), SitterState::Never);
}

#[test]
fn the_input_file_is_delivered_and_then_ends() {
    both_ways(|scene| {
        let prompt: Vec<u8> = (0..300_000u32).flat_map(|number| number.to_le_bytes()).collect();
        let path = scene.folder.path().join("prompt.md");
        std::fs::write(&path, &prompt).expect("writable");
        let mut spec = scene.spec(&["cat"]);
        spec.stdin = Some(path);
        spec.out_cap = 1 << 24;
        let ended = scene.run(&spec);
        assert_eq!(ended.exit, ChildExit::Code(0));
        assert!(scene.text(SitterStream::Out) == prompt, "the bytes differ");
    });
    both_ways(|scene| assert_eq!(scene.run(&scene.spec(&["cat"])).out, spool(0)));
}

#[test]
fn the_environment_is_what_was_given_and_the_mark() {
    both_ways(|scene| {
        let mut spec = scene.spec(&["env"]);
        spec.env = vec![
            ("ONE".into(), "1 and = more".into()),
            ("LANDFALL_MARK".into(), "someone else's".into()),
            ("EMPTY".into(), "".into()),
        ];
        scene.run(&spec);
        let out = scene.out();
        let mark = format!("LANDFALL_MARK={}", scene.marker);
        assert_eq!(out.lines().collect::<Vec<_>>(), ["ONE=1 and = more", "EMPTY=", &mark]);
    });
}

#[test]
fn the_child_starts_with_a_clean_slate() {
    both_ways(|scene| {
        scene.run(&scene.spec(&["state"]));
        let out = scene.out();
        for line in [
            "SigBlk:\t0000000000000000",
            "SigPnd:\t0000000000000000",
            "Umask:\t0022",
            "open [0, 1, 2]",
            "leads its session: true",
            "core Some(0)",
        ] {
            assert!(out.lines().any(|it| it == line), "`{line}` is not in:\n{out}");
        }
        // The Rust runtime of the probe itself ignores SIGPIPE (bit 12); nothing else may be ignored.
        assert!(out.contains("SigIgn:\t0000000000001000"), "{out}");
        assert!(out.contains(&format!("folder {}", scene.folder.path().display())), "{out}");
    });
}

#[test]
fn an_engine_with_many_open_files_does_not_pass_its_limit_on() {
    let scene = Scene::new(Way::AsItCan);
    let mut engine = Command::new("prlimit")
        .arg("--nofile=300:900")
        .arg(probe())
        .args(["engine", scene.dir.to_str().expect("plain")])
        .arg(probe())
        .arg("state")
        .stdout(Stdio::piped())
        .spawn()
        .expect("prlimit is there");
    within("it ends", || matches!(scene.found(), SitterState::Ended(_)));
    let raised = std::fs::read_to_string(format!("/proc/{}/limits", engine.id())).expect("it runs");
    engine.kill().expect("ours");
    engine.wait().expect("ours");
    let words: Vec<&str> = raised
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .expect("one")
        .split_whitespace()
        .collect();
    assert_eq!(words[3..5], ["900", "900"]);
    assert!(scene.out().contains("files Some(300)"), "{}", scene.out());
    scene.assert_nothing_left();
}

#[test]
fn secrets_stay_with_their_owner() {
    let scene = Scene::new(Way::AsItCan);
    std::fs::create_dir(&scene.dir).expect("new");
    std::fs::set_permissions(&scene.dir, Permissions::from_mode(0o755)).expect("ours");
    scene.run(&scene.spec(&["say", "x"]));
    let mode = |name: &str| std::fs::metadata(scene.dir.join(name)).expect(name).permissions().mode() & 0o777;
    assert_eq!(mode(""), 0o700);
    for name in ["spec.json", "sitter.json", "exit.json", "out.log", "err.log", "lock"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    let mut names: Vec<String> = std::fs::read_dir(&scene.dir)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["err.log", "exit.json", "lock", "out.log", "sitter.json", "spec.json"]);
}

#[test]
fn the_deadline_ends_a_run() {
    both_ways(|scene| {
        let mut spec = scene.spec(&["hang"]);
        spec.deadline_ms = 100;
        let ended = scene.run(&spec);
        assert_eq!((ended.exit.clone(), ended.cause), (ChildExit::Signal(libc::SIGTERM), EndCause::Deadline));
        assert!(ended.ended_ms - ended.began_ms >= 100, "{ended:?}");
    });
}

#[test]
fn the_deadline_stands_still_while_it_is_paused() {
    let scene = Scene::new(Way::AsItCan);
    std::fs::create_dir(&scene.dir).expect("new");
    let until_ms = SystemClock.now_ms() + 1_500;
    sitter::pause_deadline(&scene.dir, until_ms).expect("ours");
    let mut spec = scene.spec(&["hang"]);
    spec.deadline_ms = 100;
    let ended = scene.run(&spec);
    assert_eq!(ended.cause, EndCause::Deadline);
    assert!(ended.ended_ms >= until_ms, "{ended:?} before {until_ms}");
    sitter::resume_deadline(&scene.dir).expect("ours");
    sitter::resume_deadline(&scene.dir).expect("it goes on already");
}

#[test]
fn a_child_that_will_not_hear_is_killed_after_its_grace() {
    both_ways(|scene| {
        let mut spec = scene.spec(&["deaf"]);
        spec.deadline_ms = 200;
        spec.grace_ms = 150;
        let ended = scene.run(&spec);
        assert_eq!((ended.exit.clone(), ended.cause), (ChildExit::Signal(libc::SIGKILL), EndCause::Deadline));
        assert!(ended.ended_ms - ended.began_ms >= 350, "{ended:?}");
    });
}

#[test]
fn a_polite_child_has_its_grace() {
    both_ways(|scene| {
        let file = scene.folder.path().join("heard");
        let spec = scene.spec(&["polite", file.to_str().expect("plain")]);
        let sitting = scene.start(&spec);
        scene.hear("ready");
        let asked = Instant::now();
        assert_eq!(sitter::stop_sitter(&sitting, StopMode::Gently).expect("ours"), StopResult::Asked);
        let ended = scene.end_of(&sitting);
        assert_eq!((ended.exit.clone(), ended.cause, ended.swept), (ChildExit::Code(3), EndCause::Asked, 0));
        assert!(asked.elapsed() < Duration::from_millis(spec.grace_ms), "did not wait out the grace");
        assert_eq!(std::fs::read_to_string(file).expect("it wrote"), "15");
    });
}

#[test]
fn asking_twice_is_asking_once_and_now_overtakes_gently() {
    both_ways(|scene| {
        let sitting = scene.start(&scene.spec(&["deaf"]));
        scene.hear("deaf");
        // Repeated gentle asking is not impatience. Each time the sitter has acted on the one before when it hears the next.
        for _ in 0..5 {
            assert_eq!(sitter::stop_sitter(&sitting, StopMode::Gently).expect("ours"), StopResult::Asked);
            within("the sitter hears it", || !is_pending(sitting.pid, Signal::TERM));
        }
        assert!(matches!(scene.found(), SitterState::Running(_)));
        let asked = Instant::now();
        for _ in 0..5 {
            sitter::stop_sitter(&sitting, StopMode::Now).expect("ours, or gone");
        }
        let ended = scene.end_of(&sitting);
        assert_eq!((ended.exit.clone(), ended.cause), (ChildExit::Signal(libc::SIGKILL), EndCause::Asked));
        assert!(asked.elapsed() < Duration::from_secs(5));
        assert_eq!(sitter::stop_sitter(&sitting, StopMode::Gently).expect("no error"), StopResult::Gone);
        assert_eq!(sitter::stop_sitter(&sitting, StopMode::Now).expect("no error"), StopResult::Gone);
    });
}

#[test]
fn a_stop_that_comes_before_the_sitter_listens_is_not_lost() {
    for _ in 0..20 {
        let scene = Scene::new(Way::AsItCan);
        let sitting = scene.start(&scene.spec(&["hang"]));
        assert_eq!(sitter::stop_sitter(&sitting, StopMode::Gently).expect("ours"), StopResult::Asked);
        assert_eq!(scene.end_of(&sitting).cause, EndCause::Asked);
        scene.assert_nothing_left();
    }
}

#[test]
fn a_terminal_cannot_reach_a_sitter() {
    let scene = Scene::new(Way::AsItCan);
    let sitting = scene.start(&scene.spec(&["hang"]));
    within("it has begun", || !scene.marked().is_empty());
    let status = std::fs::read_to_string(format!("/proc/{}/status", sitting.pid)).expect("it runs");
    let mask = |name: &str| {
        let hex = status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel tells");
        u64::from_str_radix(hex.trim(), 16).expect("a mask")
    };
    let without_effect = mask("SigBlk:") | mask("SigIgn:");
    for signal in [Signal::INT, Signal::HUP, Signal::QUIT, Signal::PIPE, Signal::ALARM] {
        assert_ne!(without_effect & 1 << (signal.as_raw() - 1), 0, "{signal:?} is blocked or ignored");
        kill_process(Pid::from_raw(sitting.pid).expect("a pid"), signal).expect("it runs");
    }
    assert_eq!(scene.found(), SitterState::Running(sitting.clone()));
    let session = rustix::process::getsid(Pid::from_raw(sitting.pid)).expect("it runs");
    assert_eq!(session.as_raw_nonzero().get(), sitting.pid, "a session of its own");
    sitter::stop_sitter(&sitting, StopMode::Now).expect("ours");
    scene.end_of(&sitting);
    scene.assert_nothing_left();
}

#[test]
fn a_daemon_does_not_escape() {
    both_ways(|scene| {
        let ended = scene.run(&scene.spec(&["escape"]));
        assert_eq!((ended.exit.clone(), ended.cause, ended.swept), (ChildExit::Code(0), EndCause::Own, 1));
    });
    both_ways(|scene| {
        let mut spec = scene.spec(&["escape-and-stay"]);
        spec.grace_ms = 100;
        let sitting = scene.start(&spec);
        scene.hear("escaped");
        within("all three are there, and one has left", || scene.marked().len() == 2);
        sitter::stop_sitter(&sitting, StopMode::Gently).expect("ours");
        let ended = scene.end_of(&sitting);
        assert_eq!((ended.exit, ended.swept), (ChildExit::Signal(libc::SIGTERM), 1));
    });
    both_ways(|scene| {
        let before = processes();
        let sitting = scene.start(&scene.spec(&["bare-escape"]));
        within("the one without a mark is there", || scene.out().contains("deaf"));
        sitter::stop_sitter(&sitting, StopMode::Now).expect("ours");
        assert_eq!(scene.end_of(&sitting).swept, 1);
        let bare = |pid: &i32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words == [probe().to_str().expect("plain").as_bytes(), b"\0deaf\0"].concat()
                && std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default().is_empty()
        };
        let left: Vec<i32> =
            processes().into_iter().filter(|pid| !before.contains(pid)).filter(bare).collect();
        assert_eq!(left, Vec::<i32>::new());
    });
}

/// Those of a fork bomb that keep forking. What they fork is mostly gone before somebody who looks on a busy machine has read of it.
const BOMB: usize = 16;

#[test]
fn a_fork_bomb_loses() {
    both_ways(|scene| {
        let sitting = scene.start(&scene.spec(&["bomb"]));
        within("it has grown", || scene.marked().len() >= BOMB);
        let asked = Instant::now();
        sitter::stop_sitter(&sitting, StopMode::Now).expect("ours");
        let ended = scene.end_of(&sitting);
        assert_eq!(
            (ended.exit.clone(), ended.cause, ended.left),
            (ChildExit::Signal(libc::SIGKILL), EndCause::Asked, 0)
        );
        assert!(ended.swept > 10, "{ended:?}");
        assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    });
}

#[test]
fn a_chain_of_short_lives_is_caught_between_two_links() {
    both_ways(|scene| {
        let ended = scene.run(&scene.spec(&["chain"]));
        assert_eq!((ended.exit.clone(), ended.cause, ended.left), (ChildExit::Code(0), EndCause::Own, 0));
    });
}

#[test]
fn a_child_left_behind_with_the_pipe_does_not_hold_us_up() {
    both_ways(|scene| {
        let ended = scene.run(&scene.spec(&["leave-child"]));
        assert_eq!((ended.exit, ended.swept), (ChildExit::Code(0), 1));
        assert_eq!(scene.out(), "left one behind\n");
    });
}

#[test]
fn a_last_word_after_the_end_is_heard() {
    both_ways(|scene| {
        let ended = scene.run(&scene.spec(&["late-word"]));
        assert_eq!((ended.exit, ended.swept), (ChildExit::Code(0), 0));
        assert_eq!(scene.out(), "early\nlate\n");
    });
}

#[test]
fn two_gigabytes_leave_a_capped_file_a_mark_and_a_small_sitter() {
    const MIB: u64 = 2048;
    let scene = Scene::new(Way::AsItCan);
    let sitting = scene.start(&scene.spec(&["flood", &MIB.to_string()]));
    let mut rss_max = 0;
    while matches!(scene.found(), SitterState::Running(_) | SitterState::Starting) {
        rss_max = rss_max.max(status_kib(sitting.pid, "RssAnon:"));
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = scene.end_of(&sitting);
    let bytes = MIB * (1 << 20) + 13;
    assert_eq!(ended.exit, ChildExit::Code(0));
    assert_eq!(ended.out.bytes, bytes);
    assert_eq!(ended.out.kept, 1 << 20);
    assert_eq!(ended.out.left_out, bytes - (1 << 20));
    let text = scene.text(SitterStream::Out);
    let mark = format!("\n[landfall: {} bytes left out here]\n", ended.out.left_out);
    assert_eq!(text.len(), (1 << 20) + mark.len());
    let at = usize::try_from(ended.out.cut_at.expect("cut")).expect("small");
    assert_eq!(at, (1 << 20) - (1 << 16));
    assert_eq!(&text[at..at + mark.len()], mark.as_bytes());
    assert!(text.ends_with(b"xxxthe very end\n"), "the end is kept");
    assert!(rss_max > 0 && rss_max < 2048, "{rss_max} KiB");
    scene.assert_nothing_left();
}

fn status_kib(pid: i32, key: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn one_huge_line_is_bytes_like_any_other() {
    both_ways(|scene| {
        let mut spec = scene.spec(&["flood", "64"]);
        spec.out_cap = 1 << 30;
        let ended = scene.run(&spec);
        assert_eq!(ended.out, spool((64 << 20) + 13));
        let text = scene.text(SitterStream::Out);
        assert_eq!(text.len(), (64 << 20) + 13);
        assert!(text[..64 << 20].iter().all(|byte| *byte == b'x'));
    });
}

#[test]
fn a_slow_drip_can_be_followed_while_it_drips() {
    let scene = Scene::new(Way::AsItCan);
    let sitting = scene.start(&scene.spec(&["drip", "20", "20"]));
    let mut follow = SpoolReader::new(&scene.dir, SitterStream::Out, 0);
    let mut text = Vec::new();
    let mut portions = 0;
    within("all lines come", || {
        let more = follow.read(64).expect("readable");
        assert!(more.len() <= 64);
        portions += u32::from(!more.is_empty());
        text.extend(more);
        text.ends_with(b"line 19\n")
    });
    assert!(portions > 5, "it came in {portions} portions");
    assert_eq!(follow.offset(), text.len() as u64);
    assert_eq!(scene.end_of(&sitting).out, spool(text.len() as u64));
    assert_eq!(SpoolReader::new(&scene.dir, SitterStream::Out, 7).read(6).expect("readable"), b"line 1");
}

#[test]
fn a_full_disk_neither_stops_the_child_nor_the_record() {
    // What a full disk says, said by a limit: files of this user may not grow past 8 KiB.
    let scene = Scene::new(Way::AsItCan);
    let mut engine = Command::new("prlimit")
        .arg("--fsize=8192")
        .arg(probe())
        .args(["engine", scene.dir.to_str().expect("plain")])
        .arg(probe())
        .args(["flood", "16"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("prlimit is there");
    within("it ends", || matches!(scene.found(), SitterState::Ended(_)));
    engine.kill().expect("ours");
    engine.wait().expect("ours");
    let SitterState::Ended(ended) = scene.found() else { panic!("just seen") };
    assert_eq!(ended.exit, ChildExit::Code(0));
    assert_eq!(ended.out.bytes, (16 << 20) + 13);
    assert_eq!(ended.out.kept + ended.out.left_out, ended.out.bytes);
    assert_eq!(ended.out.kept, 8192);
    scene.assert_nothing_left();
}

/// Starts an engine in a process of its own and returns it with the sitter it started.
fn engine(scene: &Scene, command: &[&str]) -> (std::process::Child, i32) {
    let mut engine = Command::new(probe())
        .args(["engine", scene.dir.to_str().expect("plain")])
        .arg(probe())
        .args(command)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the probe runs");
    let mut line = String::new();
    BufReader::new(engine.stdout.take().expect("piped")).read_line(&mut line).expect("it speaks");
    let pid = line
        .split(' ')
        .next()
        .and_then(|pid| pid.parse().ok())
        .unwrap_or_else(|| panic!("engine said {line}"));
    (engine, pid)
}

#[test]
fn an_engine_that_is_killed_finds_its_agent_again() {
    let scene = Scene::new(Way::AsItCan);
    let (mut engine, pid) = engine(&scene, &["drip", "30", "20"]);
    engine.kill().expect("ours");
    engine.wait().expect("ours");
    let mut sitting = None;
    within("it is found running", || match scene.found() {
        SitterState::Running(found) => {
            sitting = Some(found);
            true
        }
        _ => false,
    });
    let sitting = sitting.expect("just found");
    assert_eq!(sitting.pid, pid);
    assert!(matches!(scene.try_start(&scene.spec(&["code", "0"])), Err(StartError::AlreadyStarted { .. })));
    let ended = scene.end_of(&sitting);
    assert_eq!((ended.exit.clone(), ended.cause), (ChildExit::Code(0), EndCause::Own));
    assert_eq!(scene.out(), (0..30).map(|line| format!("line {line}\n")).collect::<String>());
    assert!(matches!(scene.try_start(&scene.spec(&["code", "0"])), Err(StartError::AlreadyStarted { .. })));
    scene.assert_nothing_left();
}

#[test]
fn an_engine_that_dies_at_any_step_of_starting_leaves_a_folder_that_can_be_judged() {
    for point in ["sitter.start.locked", "sitter.start.written", "sitter.start.spawned"] {
        let scene = Scene::new(Way::AsItCan);
        let status = Command::new(probe())
            .args(["engine", scene.dir.to_str().expect("plain")])
            .arg(probe())
            .args(["say", "once"])
            .env("LANDFALL_CRASH", point)
            .stdout(Stdio::null())
            .status()
            .expect("the probe runs");
        assert!(!status.success(), "{point} was not passed");
        within("it is settled", || matches!(scene.found(), SitterState::Never | SitterState::Ended(_)));
        match (point, scene.found()) {
            ("sitter.start.spawned", SitterState::Ended(_)) => {}
            (_, SitterState::Never) => {
                assert_ne!(point, "sitter.start.spawned");
                assert_eq!(scene.run(&scene.spec(&["say", "once"])).exit, ChildExit::Code(0));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(scene.out(), "once", "{point}");
        scene.assert_nothing_left();
    }
}

#[test]
fn a_sitter_that_dies_at_any_step_leaves_a_folder_that_can_be_judged() {
    for point in ["sitter.locked", "sitter.named", "sitter.spawned", "sitter.ended", "sitter.told"] {
        let scene = Scene::new(Way::AsItCan);
        // The engine passes its own `LANDFALL_…` on, and passes none of these points itself.
        let mut engine = Command::new(probe())
            .args(["engine", scene.dir.to_str().expect("plain")])
            .arg(probe())
            .args(["say", "once"])
            .env("LANDFALL_CRASH", point)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the probe runs");
        let mut line = String::new();
        BufReader::new(engine.stdout.take().expect("piped")).read_line(&mut line).expect("it speaks");
        within("it is settled", || !matches!(scene.found(), SitterState::Running(_) | SitterState::Starting));
        match (point, scene.found()) {
            ("sitter.locked", SitterState::Never) => {
                assert_eq!(scene.run(&scene.spec(&["say", "once"])).exit, ChildExit::Code(0));
            }
            ("sitter.named" | "sitter.spawned" | "sitter.ended", SitterState::Vanished) => {
                assert!(matches!(
                    scene.try_start(&scene.spec(&["say", "2"])),
                    Err(StartError::AlreadyStarted { .. })
                ));
            }
            ("sitter.told", SitterState::Ended(_)) => {}
            other => panic!("{other:?}"),
        }
        engine.kill().expect("ours");
        engine.wait().expect("ours");
        sitter::sweep_processes(&scene.marker).expect("swept");
        scene.assert_nothing_left();
    }
}

#[test]
fn a_reader_that_stops_while_it_holds_the_lock_does_not_prevent_a_start() {
    let scene = Scene::new(Way::AsItCan);
    std::fs::create_dir_all(&scene.dir).expect("ours");
    let lock = std::fs::File::create(scene.dir.join("lock")).expect("ours");
    lock.try_lock_shared().expect("nobody holds it");
    std::thread::scope(|scope| {
        let (tell_thread, thread) = std::sync::mpsc::channel();
        let scene = &scene;
        let started = scope.spawn(move || {
            tell_thread.send(rustix::thread::gettid()).expect("the test listens");
            scene.try_start(&scene.spec(&["say", "once"]))
        });
        let thread = thread.recv().expect("it says who it is");
        // A reader that lost its processor, until the start has tried in vain: between two tries it rests.
        within("the start opens the lock", || openings_of(&scene.dir.join("lock")) == 2);
        let rests = rests_of(thread);
        within("the start has tried, rested and tried again", || rests_of(thread) > rests + 2);
        lock.unlock().expect("ours");
        let sitting = started.join().expect("no panic").expect("it starts when the reader is done");
        scene.end_of(&sitting);
    });
    assert_eq!(scene.out(), "once");
    scene.assert_nothing_left();
}

#[test]
fn a_second_start_in_a_folder_is_refused_at_every_moment() {
    let scene = Scene::new(Way::AsItCan);
    let spec = scene.spec(&["hang"]);
    let sitting = scene.start(&spec);
    let until = Instant::now() + Duration::from_millis(300);
    while Instant::now() < until {
        assert!(matches!(scene.try_start(&spec), Err(StartError::AlreadyStarted { .. })));
    }
    assert_eq!(scene.found(), SitterState::Running(sitting.clone()));
    // Called by hand, past `start`: the lock and sitter.json stand in the way.
    let status = Command::new(probe()).arg("sit").arg(&scene.dir).status().expect("runs");
    assert_eq!(status.code(), Some(75));
    sitter::stop_sitter(&sitting, StopMode::Now).expect("ours");
    let ended = scene.end_of(&sitting);
    let status = Command::new(probe()).arg("sit").arg(&scene.dir).status().expect("runs");
    assert_eq!(status.code(), Some(75));
    assert_eq!(scene.found(), SitterState::Ended(ended));
    scene.assert_nothing_left();
}

#[test]
fn a_start_that_is_refused_does_not_look_like_a_sitter() {
    let scene = Scene::new(Way::AsItCan);
    let spec = scene.spec(&["hang"]);
    let sitting = scene.start(&spec);
    within("it runs", || scene.marked().len() == 1);
    kill_9(sitting.pid);
    sitter::sweep_processes(&scene.marker).expect("swept");
    within("it has vanished", || scene.found() == SitterState::Vanished);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                assert!(matches!(scene.try_start(&spec), Err(StartError::AlreadyStarted { .. })));
            }
        });
        for _ in 0..300 {
            assert_eq!(scene.found(), SitterState::Vanished);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    scene.assert_nothing_left();
}

#[test]
fn looking_does_not_disturb_starting() {
    let scene = Scene::new(Way::AsItCan);
    std::fs::create_dir(&scene.dir).expect("new");
    std::fs::write(scene.dir.join("lock"), "").expect("new");
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| while !matches!(scene.found(), SitterState::Ended(_)) {});
        let sitting = scene.start(&scene.spec(&["code", "0"]));
        within("it ends", || looking.is_finished());
        scene.end_of(&sitting);
    });
}

#[test]
fn a_sitter_that_is_killed_has_vanished_and_a_sweep_leaves_nothing() {
    both_ways(|scene| {
        let mut spec = scene.spec(&["escape-and-stay"]);
        spec.deadline_ms = 60_000;
        let sitting = scene.start(&spec);
        scene.hear("escaped");
        within("both are there", || scene.marked().len() == 2);
        kill_9(sitting.pid);
        within("it has vanished", || scene.found() == SitterState::Vanished);
        assert_eq!(scene.marked().len(), 2, "its tree lives on");
        assert_eq!(sitter::sweep_processes(&scene.marker).expect("swept"), 2);
        assert_eq!(sitter::sweep_processes(&scene.marker).expect("swept"), 0);
        scene.assert_gone(&sitting);
        assert!(matches!(scene.try_start(&spec), Err(StartError::AlreadyStarted { .. })));
    });
}

#[test]
fn a_sweep_kills_a_fork_bomb_and_spares_strangers() {
    both_ways(|scene| {
        let stranger = Scene::new(Way::NoCgroup);
        let kept = stranger.start(&stranger.spec(&["hang"]));
        within("the stranger runs", || stranger.marked().len() == 1);
        let sitting = scene.start(&scene.spec(&["bomb"]));
        within("it has grown", || scene.marked().len() >= BOMB);
        kill_9(sitting.pid);
        within("it has vanished", || scene.found() == SitterState::Vanished);
        assert!(sitter::sweep_processes(&scene.marker).expect("swept") > 10);
        scene.assert_nothing_left();
        scene.assert_gone(&sitting);
        assert_eq!(stranger.marked().len(), 1);
        assert_eq!(stranger.found(), SitterState::Running(kept.clone()));
        sitter::stop_sitter(&kept, StopMode::Now).expect("ours");
        stranger.end_of(&kept);
    });
    assert!(sitter::sweep_processes("").is_err());
}

#[test]
fn a_process_with_another_start_time_is_never_signalled() {
    let scene = Scene::new(Way::AsItCan);
    let mut bystander = Command::new(probe()).arg("hang").spawn().expect("runs");
    let pid = i32::try_from(bystander.id()).expect("small");
    let started = sitter::started_of(pid).expect("it runs");
    let boot = landfall_host::disk::boot_id().expect("known");
    let mut watch = SitterWatch::new().expect("a watch");
    for (id, double) in [
        SitterProcess { pid, started: started - 1, boot: boot.clone(), sandbox: None },
        SitterProcess { pid, started: started + 1, boot: boot.clone(), sandbox: None },
        SitterProcess { pid, started, boot: "an earlier boot".into(), sandbox: None },
        SitterProcess { pid: i32::MAX, started, boot: boot.clone(), sandbox: None },
        SitterProcess { pid: 0, started, boot: boot.clone(), sandbox: None },
        SitterProcess { pid: -1, started, boot, sandbox: None },
    ]
    .into_iter()
    .enumerate()
    {
        for how in [StopMode::Gently, StopMode::Now] {
            assert_eq!(sitter::stop_sitter(&double, how).expect("no error"), StopResult::Gone);
        }
        watch.add(id as u64, &double).expect("watchable");
        assert_eq!(watch.wait(Some(PATIENCE)).expect("waits"), [id as u64]);
    }
    assert!(bystander.try_wait().expect("ours").is_none(), "the bystander lives");
    bystander.kill().expect("ours");
    bystander.wait().expect("ours");
    drop(scene);
}

#[test]
fn two_hundred_sitters_are_watched_by_one_thread() {
    const COUNT: u64 = 200;
    let mut watch = SitterWatch::new().expect("a watch");
    let scenes: Vec<Scene> = (0..COUNT).map(|_| Scene::new(Way::AsItCan)).collect();
    let sittings: Vec<SitterProcess> =
        scenes.iter().map(|scene| scene.start(&scene.spec(&["say", "here"]))).collect();
    for (id, sitting) in sittings.iter().enumerate() {
        watch.add(id as u64, sitting).expect("watchable");
    }
    assert_eq!(watch.len() as u64, COUNT);
    let mut ended = Vec::new();
    let until = Instant::now() + PATIENCE;
    while (ended.len() as u64) < COUNT {
        assert!(Instant::now() < until, "only {} of {COUNT} ended", ended.len());
        ended.extend(watch.wait(Some(Duration::from_secs(1))).expect("waits"));
    }
    ended.sort_unstable();
    assert_eq!(ended, (0..COUNT).collect::<Vec<_>>(), "each once");
    assert!(watch.is_empty());
    assert_eq!(watch.wait(Some(Duration::ZERO)).expect("waits"), Vec::<u64>::new());
    for (scene, sitting) in scenes.iter().zip(&sittings) {
        assert!(matches!(scene.found(), SitterState::Ended(_)), "{:?}", scene.found());
        assert_eq!(scene.out(), "here");
        scene.assert_gone(sitting);
    }
}

#[test]
fn a_wait_can_be_ended_from_elsewhere() {
    let mut watch = SitterWatch::new().expect("a watch");
    let waker = watch.waker();
    let caller = std::thread::spawn(move || waker.wake());
    assert_eq!(watch.wait(Some(PATIENCE)).expect("waits"), Vec::<u64>::new());
    caller.join().expect("it woke us");
    let began = Instant::now();
    assert_eq!(watch.wait(Some(Duration::from_millis(30))).expect("waits"), Vec::<u64>::new());
    assert!(began.elapsed() >= Duration::from_millis(25), "one call wakes once");
}

#[test]
fn damaged_files_count_as_vanished_and_never_as_an_end() {
    let scene = Scene::new(Way::AsItCan);
    scene.run(&scene.spec(&["code", "0"]));
    for damage in ["", "{", r#"{"v":99}"#] {
        std::fs::write(scene.dir.join("exit.json"), damage).expect("ours");
        assert_eq!(scene.found(), SitterState::Vanished, "{damage:?}");
    }
    std::fs::remove_file(scene.dir.join("exit.json")).expect("ours");
    assert_eq!(scene.found(), SitterState::Vanished);
    std::fs::write(scene.dir.join("sitter.json"), "").expect("ours");
    assert_eq!(scene.found(), SitterState::Vanished);
    std::fs::remove_file(scene.dir.join("sitter.json")).expect("ours");
    assert_eq!(scene.found(), SitterState::Never);
}

#[test]
fn a_sitter_that_its_child_has_stopped_hears_a_stop() {
    for how in [StopMode::Gently, StopMode::Now] {
        both_ways(|scene| {
            let mut spec = scene.spec(&[]);
            spec.argv = ["sh", "-c", "kill -STOP $PPID; echo held; sleep 60"].map(Into::into).to_vec();
            spec.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())];
            let sitting = scene.start(&spec);
            within("the sitter is stopped", || state_of(sitting.pid) == Some('T'));
            assert_eq!(sitter::stop_sitter(&sitting, how).expect("ours"), StopResult::Asked);
            assert_eq!(scene.end_of(&sitting).cause, EndCause::Asked);
        });
    }
}

fn state_of(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

#[test]
fn an_abandoned_run_is_over_to_the_last_process_whatever_its_sitter_is_at() {
    both_ways(|scene| {
        // A process without the mark, which only its descent gives away, below a sitter that is stopped again and again.
        let script = "env -i sleep 61 & env -i sh -c \"while :; do kill -STOP $PPID; done\" & sleep 60";
        let mut spec = scene.spec(&[]);
        spec.argv = ["sh", "-c", script].map(Into::into).to_vec();
        spec.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())];
        let sitting = scene.start(&spec);
        within("the sitter is stopped", || state_of(sitting.pid) == Some('T'));
        let session = child_of(sitting.pid);
        let tree: Vec<i32> = processes().into_iter().filter(|pid| session_of(*pid) == session).collect();
        assert!(tree.len() >= 3, "{tree:?}");
        sitter::abandon_sitter(&scene.dir, &scene.marker).expect("all of it ends");
        scene.assert_gone(&sitting);
        assert_eq!(tree.into_iter().find(|pid| state_of(*pid).is_some_and(|it| it != 'Z')), None);
        assert_eq!(scene.found(), SitterState::Vanished);
    });
}

fn fields_of(pid: i32) -> Vec<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().unwrap_or_default().split(' ').map(str::to_owned).collect()
}

fn session_of(pid: i32) -> Option<i32> {
    fields_of(pid).get(3)?.parse().ok()
}

fn child_of(parent: i32) -> Option<i32> {
    processes().into_iter().find(|pid| fields_of(*pid).get(1) == Some(&parent.to_string()))
}

#[test]
fn an_abandoned_folder_is_never_used() {
    let scene = Scene::new(Way::AsItCan);
    std::fs::create_dir(&scene.dir).expect("ours");
    assert_eq!(sitter::abandon_sitter(&scene.dir, &scene.marker).expect("nothing to end"), 0);
    match scene.try_start(&scene.spec(&["code", "0"])) {
        Err(StartError::AlreadyStarted { .. }) => {}
        other => panic!("{other:?}"),
    }
}
