//! What a sitter costs. Not a test but a measurement: `cargo nextest run --release --run-ignored only --no-capture figures`.

use crate::sitter_scene::{Scene, Way, probe, within};
use landfall_host::sandbox::{CacheLayer, LayerChanges, ProcessLimits, Sandbox, SandboxLevel};
use landfall_host::sitter::{self, SitterState, SitterWatch, StopMode};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
#[ignore = "measures; run it in release and by name"]
fn figures() {
    const RUNS: usize = 300;
    let mut plain = Vec::new();
    let mut own = Vec::new();
    let mut through = [Vec::new(), Vec::new()];
    let mut started = Vec::new();
    let mut watch = SitterWatch::new().expect("a watch");
    // In turns, so that whatever else the machine does falls on all alike.
    for _ in 0..RUNS {
        let began = Instant::now();
        let status = Command::new("/bin/true").env_clear().stdin(Stdio::null()).status().expect("runs");
        assert!(status.success());
        plain.push(began.elapsed());
        let began = Instant::now();
        let status = Command::new(probe())
            .args(["code", "0"])
            .env_clear()
            .stdin(Stdio::null())
            .status()
            .expect("runs");
        assert!(status.success());
        own.push(began.elapsed());
        for (way, times) in [Way::AsItCan, Way::NoCgroup].into_iter().zip(&mut through) {
            let scene = Scene::new(way);
            let mut spec = scene.spec(&[]);
            spec.argv = vec!["/bin/true".into()];
            let began = Instant::now();
            let sitting = scene.start(&spec);
            started.push(began.elapsed());
            watch.add(1, &sitting).expect("watchable");
            assert_eq!(watch.wait(Some(Duration::from_secs(10))).expect("waits"), [1]);
            let SitterState::Ended(_) = scene.found() else { panic!("it ended") };
            times.push(began.elapsed());
        }
    }
    let base = median(&mut plain);
    println!("plain spawn + wait of /bin/true: p50 {base:?}");
    println!("plain spawn + wait of our own program: p50 {:?}", median(&mut own));
    println!("start() returns after: p50 {:?}", median(&mut started));
    for (name, times) in ["as it can", "no cgroup"].into_iter().zip(&mut through) {
        let time = median(times);
        println!("through a sitter, {name}: p50 {time:?}, {:.2}x", time.as_secs_f64() / base.as_secs_f64());
    }

    let scene = Scene::new(Way::AsItCan);
    let sitting = scene.start(&scene.spec(&["hang"]));
    within("it runs", || !scene.marked().is_empty());
    std::thread::sleep(Duration::from_millis(100));
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", sitting.pid)).expect("it runs");
    for line in rollup
        .lines()
        .filter(|line| ["Rss", "Pss:", "Private", "Swap:"].iter().any(|key| line.starts_with(key)))
    {
        println!("idle sitter: {line}");
    }
    sitter::stop_sitter(&sitting, StopMode::Now).expect("ours");
    scene.end_of(&sitting);

    let mib = 4096u64;
    let scene = Scene::new(Way::AsItCan);
    let began = Instant::now();
    scene.run(&scene.spec(&["flood", &mib.to_string()]));
    let rate = mib as f64 / 1024.0 / began.elapsed().as_secs_f64();
    println!("drained {mib} MiB at {rate:.2} GiB/s");
    let began = Instant::now();
    let status =
        Command::new(probe()).args(["flood", &mib.to_string()]).stdout(Stdio::null()).status().expect("runs");
    assert!(status.success());
    println!("the flood alone, to nowhere: {:?}", began.elapsed());
}

/// What a sandbox adds to a start, with as much hidden as there will be in real life.
#[test]
#[ignore = "measures; run it in release and by name"]
fn figures_of_the_sandbox() {
    const RUNS: usize = 100;
    // Each with so many layers over caches.
    let levels = [
        (None, 0),
        (Some(SandboxLevel::Write), 0),
        (Some(SandboxLevel::Isolated), 0),
        (Some(SandboxLevel::Isolated), 9), // as many as `init` names
        (Some(SandboxLevel::Strict), 0),
    ];
    let mut times = levels.map(|_| Vec::new());
    let mut watch = SitterWatch::new().expect("a watch");
    let secrets =
        [".ssh", ".gnupg", ".aws", ".config/gcloud", ".netrc", ".kube", ".docker", ".local/state/landfall"];
    for _ in 0..RUNS {
        for ((level, layers), times) in levels.into_iter().zip(&mut times) {
            let scene = Scene::new(Way::AsItCan);
            let home = scene.folder.path().join("home");
            for at in 0..60 {
                std::fs::create_dir_all(home.join(format!("folder-{at}"))).expect("writable");
            }
            for name in secrets {
                std::fs::create_dir_all(home.join(name)).expect("writable");
            }
            let layers: Vec<CacheLayer> = (0..layers).map(|at| layer_over(&home, at)).collect();
            let mut spec = scene.spec(&[]);
            spec.argv = vec!["/bin/true".into()];
            spec.sandbox = level.map(|level| Sandbox {
                level,
                write: vec![home.join("folder-1"), home.join("folder-2")],
                hide: secrets.map(|name| home.join(name)).to_vec(),
                read: vec![],
                private: vec![],
                exclusive: vec![],
                layers: layers.clone(),
                limits: ProcessLimits::default(),
            });
            let began = Instant::now();
            let sitting = scene.start(&spec);
            watch.add(1, &sitting).expect("watchable");
            assert_eq!(watch.wait(Some(Duration::from_secs(10))).expect("waits"), [1]);
            let SitterState::Ended(ended) = scene.found() else { panic!("it ended") };
            assert_eq!(ended.exit, sitter::ChildExit::Code(0));
            times.push(began.elapsed());
        }
    }
    let base = median(&mut times[0]).as_secs_f64();
    for ((level, layers), times) in levels.into_iter().zip(&mut times) {
        let (level, time) = (level.map_or("off", SandboxLevel::name), median(times));
        println!(
            "start to end at `{level}` with {layers} layers: p50 {time:?}, {:.2}x",
            time.as_secs_f64() / base
        );
    }
}

/// A layer over a folder in the home folder.
fn layer_over(home: &std::path::Path, number: usize) -> CacheLayer {
    let path = home.join(format!("folder-{}", 10 + number));
    let (upper, work) = (home.join(format!("upper-{number}")), home.join(format!("work-{number}")));
    for folder in [&upper, &work] {
        std::fs::create_dir(folder).expect("writable");
    }
    CacheLayer { path, changes: LayerChanges::Overlay { upper, work } }
}

/// What a look at fifty agents costs.
#[test]
#[ignore = "measures; run it in release and by name"]
fn figures_of_the_pulse() {
    let scenes: Vec<Scene> = (0..50).map(|_| Scene::new(Way::NoCgroup)).collect();
    let sittings: Vec<_> =
        scenes.iter().map(|scene| scene.start(&scene.spec(&["escape-and-stay"]))).collect();
    scenes.iter().for_each(|scene| scene.hear("escaped"));
    let (mut all, mut one) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        let began = Instant::now();
        assert_eq!(sitter::measure_activities(&sittings).len(), sittings.len());
        all.push(began.elapsed());
        let began = Instant::now();
        assert_eq!(sitter::measure_activity(&sittings[0]).processes, 1);
        one.push(began.elapsed());
    }
    println!(
        "pulses of 50 runs, {} processes on the machine: p50 {:?}",
        crate::sitter_scene::processes().len(),
        median(&mut all)
    );
    println!("pulse of one run: p50 {:?}", median(&mut one));
    for (scene, sitting) in scenes.iter().zip(&sittings) {
        sitter::stop_sitter(sitting, StopMode::Now).expect("ours");
        scene.end_of(sitting);
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
