//! What a sitter costs. Not a test but a measurement: `cargo nextest run --release --run-ignored only --no-capture figures`.

use crate::sitter_scene::{Scene, Way, probe, within};
use landfall_host::sitter::{self, Found, Stop, Watch};
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
    let mut watch = Watch::new().expect("a watch");
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
            let Found::Ended(_) = scene.found() else { panic!("it ended") };
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
    sitter::stop(&sitting, Stop::Now).expect("ours");
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

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
