//! B11: what one landing costs when nothing has to be verified: the calls that the engine makes for it, in their order.
//! Prints a line of JSON.
//!
//! `bench_landing <repository> <state folder> <landings>`; the repository has branches `candidate-0` and so on.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use landfall_host::git::{
    BranchName, CompareAndSwap, Git, LandingClaim, MergeResult, Oid, RefName, Repo, Signature, Store,
};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [repository, state, landings, ..] = args.as_slice() else {
        return Err("bench_landing <repository> <state folder> <landings>".into());
    };
    let git = Git::find_installed()?;
    let repo = Repo::discover(&git, Path::new(repository))?;
    let store = Store::open(&git, &Path::new(state).join("store.git"), &repo)?;
    let main = BranchName::new("main")?;
    let base = store.import_branch(&repo, &main)?;
    store.set_base(&base, None)?;

    let (mut took, mut processes) = (Vec::new(), 0);
    for number in 0..landings.parse::<u32>()? {
        let head = store.import_branch(&repo, &BranchName::new(&format!("candidate-{number}"))?)?;
        let (began, spawned) = (Instant::now(), git.spawned_count());
        land(&store, &repo, &main, number, &head)?;
        took.push(began.elapsed().as_secs_f64() * 1e3);
        processes += git.spawned_count() - spawned;
    }
    took.sort_by(f64::total_cmp);
    let p50 = took.get(took.len() / 2).ok_or("no landing")?;
    println!(r#"{{"bench":"landing","landings":{landings},"p50_ms":{p50:.3},"processes":{processes}}}"#);
    Ok(())
}

fn land(
    store: &Store,
    repo: &Repo,
    branch: &BranchName,
    number: u32,
    head: &Oid,
) -> Result<(), Box<dyn Error>> {
    // The candidate: as a check makes it.
    store.import_branch(repo, branch)?;
    let base = store.read_base()?.ok_or("no base")?;
    let MergeResult::Clean { tree } = store.merge_commits(&base, head)? else {
        return Err("a conflict".into());
    };
    if tree == store.tree_of(&base)? {
        return Err("nothing changed".into());
    }
    let by = Signature::for_engine(0);
    let merged = store.create_commit(&tree, &[base.clone(), head.clone()], "Land it\n", &by, &by)?;
    // The landing: the person's branch is looked at again, the tree is computed again, the base moves, and it is
    // computed once more.
    store.import_branch(repo, branch)?;
    if store.read_base()?.as_ref() != Some(&base) {
        return Err("somebody else moved the base".into());
    }
    let claim = LandingClaim {
        landed: merged.clone(),
        base_before: base.clone(),
        candidate_heads: vec![head.clone()],
        tree,
    };
    store.check_landing(&claim)?;
    store.pin_commit(&RefName::new(&format!("refs/landfall/landed/t{number}/1"))?, &merged)?;
    if store.set_base(&merged, Some(&base))? != CompareAndSwap::Moved {
        return Err("somebody else moved the base".into());
    }
    store.check_landing(&claim)?;
    Ok(())
}
