//! Whether a process is an agent's, whoever started that agent.

use crate::sitter_scene::{Scene, Way, both_ways, probe, within};
use landfall_host::sitter::{self, SitterState, StopMode};
use std::process::{Child, Command, Stdio};

fn is_confined(pid: i32) -> Option<bool> {
    let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
    let handle = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).expect("it runs");
    sitter::is_confined(handle)
}

fn own() -> i32 {
    i32::try_from(std::process::id()).expect("small")
}

/// A program that a person runs.
struct Ordinary(Child);

impl Ordinary {
    fn new() -> Ordinary {
        // Its words are nearly those of a sitter.
        let script = "while :; do read -r line || exit; done";
        let command = Command::new("sh").args(["-c", script, "sit", "/"]).stdin(Stdio::piped()).spawn();
        Ordinary(command.expect("runs"))
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).expect("small")
    }
}

impl Drop for Ordinary {
    fn drop(&mut self) {
        let _ = self.0.kill(); // ended already is as good
        drop(self.0.wait());
    }
}

#[test]
fn whatever_an_agent_starts_is_confined_and_others_are_not() {
    both_ways(|scene| {
        let sitting = scene.start(&scene.spec(&["escape-and-stay"]));
        scene.hear("escaped");
        let tree = scene.marked();
        assert_eq!(tree.len(), 2, "{tree:?}");
        for pid in tree.into_iter().chain([sitting.pid]) {
            assert_eq!(is_confined(pid), Some(true));
        }
        let ordinary = Ordinary::new();
        for pid in [ordinary.pid(), own(), 1] {
            assert_eq!(is_confined(pid), Some(false), "{pid}");
        }
        sitter::stop_sitter(&sitting, StopMode::Now).expect("ours");
        scene.end_of(&sitting);
    });
}

#[test]
fn an_agent_is_confined_whose_engine_is_gone() {
    let scene = Scene::new(Way::AsItCan);
    let mut engine = Command::new(probe())
        .args(["engine", scene.dir.to_str().expect("plain"), probe().to_str().expect("plain"), "hang"])
        .stdout(Stdio::null())
        .spawn()
        .expect("runs");
    within("the agent runs", || !scene.marked().is_empty());
    engine.kill().expect("ours");
    engine.wait().expect("ours");
    let SitterState::Running(sitting) = scene.found() else { panic!("{:?}", scene.found()) };
    let agent = scene.marked();
    assert_eq!(agent.len(), 1, "{agent:?}");
    assert_eq!(is_confined(agent[0]), Some(true));
    sitter::stop_sitter(&sitting, StopMode::Now).expect("ours");
    within("it is gone", || matches!(scene.found(), SitterState::Ended(_)));
}

#[test]
fn an_engine_inside_an_agent_tells_its_own_agents_from_its_own_people() {
    both_ways(|scene| {
        let other = Scene::new(Way::AsItCan);
        let stranger = other.start(&other.spec(&["hang"]));
        let inner = scene.folder.path().join("inner");
        let inner = inner.to_str().expect("plain");
        let sitting = scene.start(&scene.spec(&["judge", inner, &stranger.pid.to_string()]));
        scene.hear(".\n");
        let out = scene.out();
        let (judged, pids) = out.trim_end_matches(".\n").split_once('\n').expect("two lines");
        // Itself, its child, its own sitter; then its agent, that one's sitter, and somebody else's.
        let (people, agents) =
            ("Some(false), Some(false), Some(false)", "Some(true), Some(true), Some(true)");
        assert_eq!(judged, format!("[{people}, {agents}]"));
        for pid in pids.split(' ').map(|pid| pid.parse().expect("a pid")) {
            assert_eq!(is_confined(pid), Some(true), "to us they are all an agent's");
        }
        for (scene, sitting) in [(&other, &stranger), (scene, &sitting)] {
            sitter::stop_sitter(sitting, StopMode::Now).expect("ours");
            scene.end_of(sitting);
        }
    });
}
