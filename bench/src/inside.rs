//! What is measured inside the process: B4, B5, the replay of B6, and B11. Crates of ours bring an example each that
//! prints lines of JSON; here they become rows.

use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::lab::{Lab, git, repository};
use super::table::{Amount, Row, Target};
use super::times::{ms, p50};

/// B4: one grant, as the backlog grows: as it is, and with profiles, accounts, areas and files that have limits.
pub fn plan(lab: &Lab) -> Result<Vec<Row>> {
    let lines = lab.example("landfall-model", "bench_plan", &[])?;
    let mut rows = Vec::new();
    for (kind, what) in [("B4", "one grant"), ("B4 shared", "one grant among limits and overlaps")] {
        let of_kind: Vec<&Value> = named(&lines, kind).collect();
        let cost = |line: &Value| anyhow::Ok(Amount { value: number(line, "median_ns")? / 1e3, unit: "µs" });
        for line in &of_kind {
            rows.push(Row {
                id: "B4",
                what: format!("{what}, {} tasks", number(line, "tasks")?),
                floor: None,
                product: cost(line)?,
                target: Target::Max(5.0),
                note: String::new(),
            });
        }
        let ends = of_kind.first().zip(of_kind.last());
        let (least, most) = ends.context("bench_plan measured no grant")?;
        rows.push(Row {
            id: "B4",
            what: format!("{what}, the largest backlog against the smallest"),
            floor: Some(cost(least)?),
            product: cost(most)?,
            target: Target::RatioMax(2.0),
            note: String::new(),
        });
    }
    Ok(rows)
}

/// B5: many producers, one journal.
pub fn journal(lab: &Lab) -> Result<Vec<Row>> {
    let lines = lab.store_figures()?;
    let line = named(lines, "group commit").next().context("bench_store measured no group commit")?;
    Ok(vec![Row {
        id: "B5",
        what: format!("journal, {} producers", number(line, "producers")?),
        floor: Some(Amount { value: number(line, "raw_per_s")?, unit: "events/s" }),
        product: Amount { value: number(line, "ours_per_s")?, unit: "events/s" },
        target: Target::RatioMin(0.5),
        note:
            "floor: group commit of an event and a row, FULL; the product also chains hashes and folds tables"
                .to_owned(),
    }])
}

/// The replay of B6.
pub fn replay(lab: &Lab) -> Result<Vec<Row>> {
    let lines = lab.store_figures()?;
    let line = named(lines, "replay").last().context("bench_store measured no replay")?;
    Ok(vec![Row {
        id: "B6",
        what: format!("replay of {} events", number(line, "events")?),
        floor: Some(Amount { value: number(line, "floor_ms")?, unit: "ms" }),
        product: Amount { value: number(line, "ours_ms")?, unit: "ms" },
        target: Target::RatioMax(4.0),
        note: format!(
            "floor: the same events decoded from memory, without file, chain or checks; with every task folded {} ms",
            number(line, "with_apply_ms")?
        ),
    }])
}

fn named<'l>(lines: &'l [Value], name: &'l str) -> impl Iterator<Item = &'l Value> {
    lines.iter().filter(move |line| line["bench"] == name)
}

fn number(line: &Value, key: &str) -> Result<f64> {
    line[key].as_f64().with_context(|| format!("`{key}` in {line}"))
}

/// B11: what the queue itself costs per landing, against the three git commands that it is made of.
pub fn landing(lab: &Lab) -> Result<Vec<Row>> {
    let landings = lab.pick(100, 30);
    let dir = lab.folder()?;
    // The same history for both: a line of candidates, each made from the first commit and changing its own file.
    let root = dir.path().join("project");
    repository(&root, 100, "")?;
    let base = git(&root, &["rev-parse", "main"])?;
    for number in 0..landings {
        git(&root, &["checkout", "-q", "-B", &format!("candidate-{number}"), &base])?;
        std::fs::write(root.join(format!("src/d0/f{number}.txt")), format!("landed {number}\n"))?;
        git(&root, &["commit", "-q", "-a", "-m", "Change a file"])?;
    }
    git(&root, &["checkout", "-q", "main"])?;
    let floor_root = dir.path().join("floor");
    git(dir.path(), &["clone", "-q", "--bare", &root.to_string_lossy(), &floor_root.to_string_lossy()])?;

    // Half of the floor before, half after: the machine may not be as quiet all the time.
    let mut floor = Vec::new();
    let tip = plain_landings(&floor_root, base.clone(), 0..landings / 2, &mut floor)?;
    let state = dir.path().join("state");
    let lines = lab.example(
        "landfall-host",
        "bench_landing",
        &[&root.to_string_lossy(), &state.to_string_lossy(), &landings.to_string()],
    )?;
    let line = named(&lines, "landing").next().context("bench_landing measured nothing")?;
    plain_landings(&floor_root, tip, landings / 2..landings, &mut floor)?;
    Ok(vec![Row {
        id: "B11",
        what: "one landing, nothing to verify".to_owned(),
        floor: Some(Amount { value: p50(floor), unit: "ms" }),
        product: Amount { value: number(line, "p50_ms")?, unit: "ms" },
        target: Target::RatioMax(2.0),
        note: "floor: merge-tree, commit-tree, update-ref; the product also looks at the person's branch, pins, syncs, \
               and recomputes the landed tree before and after"
            .to_owned(),
    }])
}

/// Lands candidates on `tip` and gives the new one.
fn plain_landings(store: &Path, tip: String, which: Range<u32>, took: &mut Vec<f64>) -> Result<String> {
    let mut tip = tip;
    for number in which {
        let head = git(store, &["rev-parse", &format!("candidate-{number}")])?;
        let began = Instant::now();
        let tree = git(store, &["merge-tree", "--write-tree", &tip, &head])?;
        let merged = git(store, &["commit-tree", &tree, "-p", &tip, "-p", &head, "-m", "Land it"])?;
        git(store, &["update-ref", "refs/heads/main", &merged, &tip])?;
        took.push(ms(began.elapsed()));
        tip = merged;
    }
    Ok(tip)
}
