//! B2 and B3: whole tasks, eight at once: a workspace, an agent that edits and commits, a merge onto the base.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, ensure};

use super::lab::{Lab, Project, git, repository};
use super::table::{Amount, Row, Target};
use super::times::{p50, timed};

const SLOTS: u32 = 8;

/// How large a comparison is.
struct Size {
    id: &'static str,
    files: u32,
    tasks: u32,
    /// Plain worktrees are slow where there are many files, and their number is not in question.
    tasks_plain: u32,
    rounds: u32,
    plain_min: f64,
}

/// B2.
pub fn measure_small(lab: &Lab) -> Result<Vec<Row>> {
    let rounds = lab.pick(5, 2);
    measure(lab, &Size { id: "B2", files: 100, tasks: 64, tasks_plain: 64, rounds, plain_min: 0.0 })
}

/// B3. Making and removing the checkouts takes longer than the measurement, so a quick run has smaller ones.
pub fn measure_large(lab: &Lab) -> Result<Vec<Row>> {
    let (files, rounds) = lab.pick((20_000, 2), (5_000, 1));
    measure(lab, &Size { id: "B3", files, tasks: 16, tasks_plain: 8, rounds, plain_min: 3.0 })
}

fn measure(lab: &Lab, size: &Size) -> Result<Vec<Row>> {
    let floors = lab.folder()?;
    let warm = Floor::new(lab, size, floors.path().join("warm"))?.with_pool()?;
    let plain = Floor::new(lab, size, floors.path().join("plain"))?;
    let product = product(lab, size)?;
    let (mut per_warm, mut per_checked, mut per_plain, mut per_product) = (vec![], vec![], vec![], vec![]);
    for round in 0..size.rounds {
        per_warm.push(warm.round(size.tasks, Floor::pooled)?);
        per_product.push(product_round(&product, size.tasks)?);
        per_checked.push(warm.round(size.tasks, Floor::pooled_and_checked)?);
        if round == 0 {
            per_plain.push(plain.round(size.tasks_plain, Floor::plain)?);
        }
    }
    let rate = |rates: Vec<f64>| Amount { value: p50(rates), unit: "tasks/s" };
    let product = rate(per_product);
    let row = |against: &str, floor: Amount, target: Target, note: &str| Row {
        id: size.id,
        what: format!("{} tasks, {} files, against {against}", size.tasks, size.files),
        floor: Some(floor),
        product,
        target,
        note: note.to_owned(),
    };
    let plain_target = if size.plain_min > 0.0 { Target::RatioMin(size.plain_min) } else { Target::None };
    Ok(vec![
        row(
            "a warm pool",
            rate(per_warm),
            Target::RatioMin(0.5),
            "floor: 8 standing worktrees; reset, agent, merge-tree, commit-tree, update-ref; nothing is verified or durable",
        ),
        row(
            "the same, verified",
            rate(per_checked),
            Target::None,
            "floor: as above, and each merge is checked out in a lane and `sh -c true` run there before it lands",
        ),
        row(
            "plain worktrees",
            rate(per_plain),
            plain_target,
            "floor: worktree add, agent, merge, worktree remove",
        ),
    ])
}

fn product(lab: &Lab, size: &Size) -> Result<Project> {
    let settings = format!(
        "[verify]\ncommand = [\"true\"]\n[agent.default]\nkind = \"command\"\nrun = \"{}\"\n",
        lab.agent_line(&format!("edit {}", size.files))
    );
    let project = lab.project(size.files, &settings)?;
    product_round(&project, 2 * SLOTS)?; // the floor's pool is warm too
    Ok(project)
}

/// Tasks per second.
fn product_round(project: &Project, tasks: u32) -> Result<f64> {
    let landed = "SELECT count(*) FROM task WHERE status = 'done'";
    project.add(tasks)?;
    let before = project.count(landed)?;
    let (ms, ()) = timed(|| project.run_to_end(SLOTS))?;
    let now = project.count(landed)? - before;
    ensure!(now == i64::from(tasks), "{now} of {tasks} tasks landed:\n{}", project.log());
    Ok(f64::from(tasks) / ms * 1000.0)
}

/// The same work by plain git.
struct Floor<'a> {
    agent: &'a Path,
    root: PathBuf,
    files: u32,
    /// The last task, as in a backlog that is never reset.
    last: AtomicU32,
    tip: Mutex<String>,
}

impl<'a> Floor<'a> {
    fn new(lab: &'a Lab, size: &Size, root: PathBuf) -> Result<Self> {
        repository(&root, size.files, "")?;
        let tip = Mutex::new(git(&root, &["rev-parse", "main"])?);
        Ok(Self { agent: &lab.agent, root, files: size.files, last: AtomicU32::new(0), tip })
    }

    /// Standing checkouts: one for each slot, and one to verify in.
    fn with_pool(self) -> Result<Self> {
        for seat in 0..=SLOTS {
            let path = self.seat(seat);
            git(&self.root, &["worktree", "add", "-q", "--detach", &path.to_string_lossy(), "main"])?;
        }
        git(&self.root, &["checkout", "-q", "--detach"])?; // so that the branch can be moved under it
        Ok(self)
    }

    fn seat(&self, number: u32) -> PathBuf {
        self.root.with_extension(format!("seat{number}"))
    }

    /// Does so many tasks, eight at once, and says how many a second that was.
    fn round(&self, tasks: u32, task: fn(&Self, u32, u32) -> Result<()>) -> Result<f64> {
        let until = self.last.load(Ordering::SeqCst) + tasks;
        let (ms, ()) = timed(|| {
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..SLOTS)
                    .map(|seat| {
                        scope.spawn(move || {
                            loop {
                                let number = self.last.fetch_add(1, Ordering::SeqCst) + 1;
                                if number > until {
                                    return Ok(());
                                }
                                task(self, seat, number)?;
                            }
                        })
                    })
                    .collect();
                workers.into_iter().try_for_each(|it| it.join().expect("no thread of ours panics"))
            })
        })?;
        self.last.store(until, Ordering::SeqCst);
        Ok(f64::from(tasks) / ms * 1000.0)
    }

    fn tip(&self) -> String {
        self.tip.lock().expect("no thread of ours panics").clone()
    }

    fn pooled(&self, seat: u32, number: u32) -> Result<()> {
        self.in_seat(seat, number, |_| Ok(()))
    }

    fn pooled_and_checked(&self, seat: u32, number: u32) -> Result<()> {
        self.in_seat(seat, number, |merged| {
            let lane = self.seat(SLOTS);
            git(&lane, &["reset", "-q", "--hard", merged])?;
            git(&lane, &["clean", "-q", "-fd"])?;
            let status = Command::new("sh").args(["-c", "true"]).current_dir(&lane).status()?;
            ensure!(status.success(), "true is false");
            Ok(())
        })
    }

    /// A task in a standing checkout, merged without one.
    fn in_seat(&self, seat: u32, number: u32, check: impl Fn(&str) -> Result<()>) -> Result<()> {
        let seat = self.seat(seat);
        git(&seat, &["reset", "-q", "--hard", &self.tip()])?;
        self.run_agent(&seat, number)?;
        let head = git(&seat, &["rev-parse", "HEAD"])?;
        let mut tip = self.tip.lock().expect("no thread of ours panics");
        let tree = git(&self.root, &["merge-tree", "--write-tree", &tip, &head])?;
        let message = format!("Merge task {number}");
        let merged = git(&self.root, &["commit-tree", &tree, "-p", &tip, "-p", &head, "-m", &message])?;
        check(&merged)?;
        git(&self.root, &["update-ref", "refs/heads/main", &merged, &tip])?;
        *tip = merged;
        Ok(())
    }

    /// A task in a worktree of its own, merged in the checkout: what most tools do.
    fn plain(&self, _seat: u32, number: u32) -> Result<()> {
        let (branch, path) = (format!("task-{number}"), self.root.with_extension(format!("task{number}")));
        let path_text = path.to_string_lossy().into_owned();
        {
            let _one = self.tip.lock().expect("no thread of ours panics"); // git refuses two at once by a race
            git(&self.root, &["worktree", "add", "-q", "--no-checkout", "-b", &branch, &path_text, "main"])?;
        }
        git(&path, &["reset", "-q", "--hard"])?;
        self.run_agent(&path, number)?;
        let _one = self.tip.lock().expect("no thread of ours panics");
        git(&self.root, &["merge", "-q", "--no-edit", &branch])?;
        git(&self.root, &["worktree", "remove", "--force", &path_text])?;
        Ok(())
    }

    fn run_agent(&self, folder: &Path, number: u32) -> Result<()> {
        let done = Command::new(self.agent)
            .args(["edit", &self.files.to_string()])
            .current_dir(folder)
            .env("LANDFALL_TASK", format!("T{number}"))
            .env("LANDFALL_ITERATION", "1")
            .stdin(Stdio::null())
            .output()
            .context("run the agent")?;
        ensure!(done.status.success(), "the agent: {}", String::from_utf8_lossy(&done.stderr));
        ensure!(done.stdout.windows(8).any(|words| words == b"COMPLETE"), "the agent says that it is done");
        Ok(())
    }
}
