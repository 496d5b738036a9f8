//! What must hold for every reader of foreign task lists. The replay test of `landfall-api` takes in this file as it
//! stands.

use std::collections::{BTreeMap, BTreeSet};

use landfall_api::import::{Format, ImportPlan, guess_format, read, resolve_import};
use landfall_api::taskfile::TaskFileSource;
use landfall_api::{NewTask, TaskRef, WireTaskId};

/// Reads an input as every format, and looks at what would be added.
pub fn lists(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let file = TaskFileSource { name: "list", text: &text };
    drop(guess_format(&file)); // an answer either way
    for format in Format::ALL {
        let Ok(list) = read(&file, format, None) else { continue };
        let items = list.items.len();
        let Ok(ImportPlan { tasks, there, .. }) = resolve_import(list.clone(), &BTreeMap::new(), false)
        else {
            continue;
        };
        assert_eq!((tasks.len(), there.len()), (items, 0), "every item is a task");
        let sources: BTreeSet<&str> = tasks.iter().map(|task| task.source.as_str()).collect();
        assert_eq!(sources.len(), items, "every item can be told from the others");
        for task in &tasks {
            assert!(!task.title.trim().is_empty() && !task.title.contains('\n'), "{:?}", task.title);
            assert!(task.source.starts_with(&format!("import:{format}:")), "{}", task.source);
        }
        in_some_order(&tasks);
        let known = (1..).map(WireTaskId).zip(&tasks).map(|(id, task)| (task.source.clone(), id)).collect();
        let again = resolve_import(list, &known, false).expect("it was good before");
        assert_eq!((again.tasks.len(), again.there.len()), (0, items), "nothing is added twice");
    }
}

/// Every reference is within the batch, nothing is a part of itself, and all can be done in some order.
fn in_some_order(tasks: &[NewTask]) {
    let place = |it: &TaskRef| match it {
        TaskRef::Batch(place) => *place as usize - 1,
        TaskRef::Task(id) => panic!("{id} is not in the file"),
    };
    let needs: Vec<Vec<usize>> = tasks.iter().map(|task| task.needs.iter().map(place).collect()).collect();
    let parts: Vec<Vec<usize>> = tasks.iter().map(|task| task.parent.iter().map(place).collect()).collect();
    for edges in [needs, parts] {
        let mut left: Vec<usize> = edges.iter().map(Vec::len).collect();
        let mut waits: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
        for (from, to) in edges.iter().enumerate().flat_map(|(from, to)| to.iter().map(move |to| (from, *to)))
        {
            waits[to].push(from);
        }
        let mut open: Vec<usize> = (0..tasks.len()).filter(|at| left[*at] == 0).collect();
        let mut done = 0;
        while let Some(at) = open.pop() {
            done += 1;
            for next in &waits[at] {
                left[*next] -= 1;
                if left[*next] == 0 {
                    open.push(*next);
                }
            }
        }
        assert_eq!(done, tasks.len(), "some go in a circle");
    }
}
