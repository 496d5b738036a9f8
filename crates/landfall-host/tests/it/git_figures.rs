//! What the git calls cost, in time and in processes. Run by hand, in release:
//! `cargo test --release -p landfall-host --test it git_figures -- --ignored --nocapture`

use std::time::{Duration, Instant};

use landfall_host::git::{
    IgnoredFilesPolicy, LandingClaim, MergeResult, Oid, PublishMode, RefName, WorkInProgress, Workspace,
};

use crate::git_scene::{Scene, git, main_branch, options, sig, write};

const ROUNDS: usize = 15;

#[derive(Default)]
struct Figures {
    rows: Vec<(&'static str, Vec<Duration>, u64)>,
}

impl Figures {
    fn time<T>(&mut self, scene: &Scene, what: &'static str, work: impl FnOnce() -> T) -> T {
        let processes = scene.git.spawned_count();
        let start = Instant::now();
        let result = work();
        let took = start.elapsed();
        let processes = scene.git.spawned_count() - processes;
        match self.rows.iter_mut().find(|row| row.0 == what) {
            Some(row) => {
                row.1.push(took);
                row.2 = row.2.max(processes);
            }
            None => self.rows.push((what, vec![took], processes)),
        }
        result
    }

    fn print(mut self, files: usize) {
        eprintln!("{files} files: median ms, most processes");
        for (what, times, processes) in &mut self.rows {
            times.sort();
            eprintln!("  {what:<44} {:>8.2}  {processes}", times[times.len() / 2].as_secs_f64() * 1000.0);
        }
    }
}

fn measure(files: usize) {
    let scene = Scene::with(|root| {
        for number in 0..files {
            write(
                root,
                &format!("d{}/e{}/f{number}.txt", number % 20, number % 400 / 20),
                format!("file {number}\n"),
            );
        }
    });
    let mut figures = Figures::default();
    figures.time(&scene, "import, nothing new", || {
        scene.store.import_branch(&scene.repo, &main_branch()).expect("works")
    });
    let lane = scene.lane("1");
    let mut base = scene.base.clone();
    let mut published = base.clone();
    for round in 0..ROUNDS {
        if round < 3 {
            scene.pool.drop_warm().expect("dropped");
        }
        let what = if round < 3 { "prepare, fresh" } else { "prepare, warm" };
        let branch = format!("landfall/t{round}");
        let ws = figures.time(&scene, what, || {
            scene.pool.prepare_workspace(&format!("T{round}"), &base, &branch).expect("made")
        });
        write(ws.path(), "d1/e1/f21.txt", format!("round {round}\n"));
        write(ws.path(), &format!("new{round}.txt"), "new\n");
        let committed = round % 2 == 0;
        let what = if committed { "collect, committed and clean" } else { "collect, leftovers" };
        if committed {
            git(ws.path(), ["add", "-A"]);
            git(ws.path(), ["commit", "-q", "-m", "work"]);
        }
        let collect = options("refs/landfall/heads/t1");
        let collected =
            figures.time(&scene, what, || scene.store.collect_work(&ws, &collect).expect("collected"));
        assert_eq!((collected.changed_paths_count, collected.leftovers), (2, !committed));
        figures.time(&scene, "collect again, nothing new", || {
            scene.store.collect_work(&ws, &collect).expect("collected")
        });
        let (landed, tree) = figures.time(&scene, "merge + commit + set_base", || {
            let MergeResult::Clean { tree } =
                scene.store.merge_commits(&base, &collected.head).expect("git runs")
            else {
                panic!()
            };
            let parents = [base.clone(), collected.head.clone()];
            let landed = scene.store.create_commit(&tree, &parents, "land", &sig(), &sig()).expect("commits");
            scene.store.set_base(&landed, Some(&base)).expect("git runs");
            (landed, tree)
        });
        let candidate_heads = vec![collected.head.clone()];
        let claim = LandingClaim { landed: landed.clone(), base_before: base.clone(), candidate_heads, tree };
        figures.time(&scene, "check_landing", || scene.store.check_landing(&claim).expect("agrees"));
        figures.time(&scene, "lane checkout, ignored removed", || {
            lane.check_out_commit(&landed, IgnoredFilesPolicy::Remove).expect("checked out")
        });
        figures.time(&scene, "lane checkout again, ignored kept", || {
            lane.check_out_commit(&landed, IgnoredFilesPolicy::Keep).expect("checked out")
        });
        figures.time(&scene, "publish to a clean checkout", || {
            let mode = PublishMode::Local;
            scene
                .store
                .publish_branch(&scene.repo, &main_branch(), &landed, &published, &mode, &sig())
                .expect("git runs")
        });
        let keep = RefName::new("refs/landfall/kept/t1").expect("fine");
        figures.time(&scene, "release", || {
            scene.pool.release_workspace(ws, &collected, &keep).expect("released")
        });
        published = landed.clone();
        base = landed;
    }
    batch(&scene, &mut figures, &base);
    // The floor of a landing: the same three commands, run plainly.
    let store = scene.store.dir().to_owned();
    for _ in 0..ROUNDS {
        figures.time(&scene, "floor: plain merge-tree, commit-tree, update-ref", || {
            let tree = git(&store, ["merge-tree", "--write-tree", base.as_str(), base.as_str()]);
            let commit = git(
                &store,
                [
                    "-c",
                    "user.name=x",
                    "-c",
                    "user.email=x@x",
                    "commit-tree",
                    "-p",
                    base.as_str(),
                    "-m",
                    "x",
                    &tree,
                ],
            );
            git(&store, ["update-ref", "refs/floor/x", &commit]);
        });
    }
    figures.print(files);
}

/// Four tasks at once: looked at while they are under way, then merged and proved together.
fn batch(scene: &Scene, figures: &mut Figures, base: &Oid) {
    let workspaces: Vec<Workspace> = (0..4)
        .map(|number| {
            let name = format!("B{number}");
            let ws = scene
                .pool
                .prepare_workspace(&name, base, &format!("landfall/b{number}"))
                .expect("the workspace is made");
            write(ws.path(), &format!("batch{number}.txt"), "new\n");
            git(ws.path(), ["add", "-A"]);
            git(ws.path(), ["commit", "-q", "-m", "work"]);
            ws
        })
        .collect();
    for ws in &workspaces {
        let one = WorkInProgress::Workspace(ws);
        let other = WorkInProgress::Workspace(&workspaces[0]);
        figures.time(scene, "trial merge of two in flight", || {
            scene.store.trial_merge(one, other).expect("whole")
        });
        figures
            .time(scene, "changed paths of one in flight", || scene.store.changed_paths(ws).expect("seen"));
    }
    let heads: Vec<Oid> = workspaces.iter().map(|ws| scene.collect(ws).head).collect();
    for round in 0..ROUNDS {
        let message = |count: usize| format!("land {count} in round {round}\n");
        let merged = figures.time(scene, "merge a batch of four", || {
            scene.store.merge_batch(base, &heads, &message, &sig()).expect("git runs")
        });
        let last = merged.prefixes.last().expect("they fit").clone();
        let claim = LandingClaim {
            landed: last.commit,
            base_before: base.clone(),
            candidate_heads: heads.clone(),
            tree: last.tree,
        };
        figures.time(scene, "check a batch of four", || scene.store.check_landing(&claim).expect("agrees"));
    }
}

#[test]
#[ignore = "a measurement, not a check"]
fn figures_for_a_hundred_files() {
    measure(100);
}

#[test]
#[ignore = "a measurement, not a check"]
fn figures_for_twenty_thousand_files() {
    measure(20_000);
}
