//! Which task needs which: around one task, or of all open ones.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use landfall_api::{self as api, EdgeKind, Problem};
use landfall_engine::model::{TaskId, TaskSize, TaskStatus};
use landfall_engine::store::{StoreReader, TaskRow};

use crate::project::query_context::Query;
use crate::project::{conversions, problems};

const NODES: u32 = 300;
const NODES_MAX: u32 = 2_000;
const NEEDS_MAX: u32 = 200_000; // of all open tasks; a graph of more is drawn without the rest
const REACH_MAX: usize = 10_000; // tasks counted behind one; more is as good as all
const OPEN: [TaskStatus; 7] = [
    TaskStatus::Active,
    TaskStatus::Landing,
    TaskStatus::Review,
    TaskStatus::Waiting,
    TaskStatus::Blocked,
    TaskStatus::Ready,
    TaskStatus::Draft,
];

pub(crate) fn build_graph(look: &Query<'_>, asked: &api::GraphAsked) -> Result<api::Graph, Problem> {
    let Some(reader) = look.place.open_reader()? else {
        return match asked.root {
            Some(root) => Err(problems::unknown_task(conversions::model_task(root))),
            None => Ok(api::Graph {
                seq: 0,
                nodes: Vec::new(),
                edges: Vec::new(),
                critical: Vec::new(),
                left_out: 0,
            }),
        };
    };
    let of = |error| problems::from_store_error(&error);
    let seq = reader.head().map_err(of)?.seq.0;
    let max = if asked.nodes == 0 { NODES } else { asked.nodes.min(NODES_MAX) } as usize;
    let web = DependencyGraph::read(&reader)?;
    let (rows, left_out, whole) = match asked.root {
        Some(root) => {
            let (rows, left_out) = collect_neighborhood(&reader, conversions::model_task(root), asked, max)?;
            (rows, left_out, None)
        }
        None => {
            let critical = web.critical_path(None, &reader)?;
            let (rows, left_out) = collect_open_tasks(&reader, &web, &critical, asked, max)?;
            (rows, left_out, Some(critical))
        }
    };
    let shown: BTreeMap<TaskId, TaskRow> = rows.into_iter().map(|row| (row.id, row)).collect();
    let mut edges = Vec::new();
    let ids: Vec<TaskId> = shown.keys().copied().collect();
    for (task, needs) in reader.needs_graph(&ids).map_err(of)? {
        for need in needs {
            if let Some(row) = shown.get(&need) {
                edges.push(graph_edge(need, task, EdgeKind::Needs, row.unblocks));
            }
        }
    }
    for row in shown.values() {
        if let Some(parent) = row.parent.filter(|parent| shown.contains_key(parent)) {
            edges.push(graph_edge(parent, row.id, EdgeKind::Parent, row.unblocks));
        }
    }
    edges.sort_unstable();
    let critical = match whole {
        Some(critical) => critical,
        None => web.critical_path(Some(&ids.iter().copied().collect()), &reader)?,
    };
    let tiers = assign_tiers(&ids, &edges);
    let mut nodes: Vec<api::GraphNode> = shown
        .into_values()
        .map(|row| api::GraphNode {
            id: conversions::task_id(row.id),
            status: conversions::to_api_status(row.effective_status()),
            size: row.size.map(conversions::to_api_size),
            phase: row.phase,
            priority: row.priority,
            tier: tiers.get(&row.id).copied().unwrap_or(0),
            unmet: row.unmet,
            unblocks: web.needed.get(&row.id).map_or(0, BTreeSet::len) as u64,
            unblocks_all: web.count_dependents(row.id),
            title: row.title,
        })
        .collect();
    nodes.sort_by_key(|node| (node.tier, node.id));
    let critical = critical.into_iter().map(conversions::task_id).collect();
    Ok(api::Graph { seq, nodes, edges, critical, left_out })
}

fn graph_edge(from: TaskId, to: TaskId, kind: EdgeKind, met: bool) -> api::GraphEdge {
    api::GraphEdge { from: conversions::task_id(from), to: conversions::task_id(to), kind, met }
}

/// The needs of open tasks that are not met.
struct DependencyGraph {
    needs: BTreeMap<TaskId, BTreeSet<TaskId>>,
    /// The same, the other way round.
    needed: BTreeMap<TaskId, BTreeSet<TaskId>>,
}

impl DependencyGraph {
    fn read(reader: &StoreReader) -> Result<Self, Problem> {
        let mut web = Self { needs: BTreeMap::new(), needed: BTreeMap::new() };
        for (task, need, met) in
            reader.open_needs(NEEDS_MAX).map_err(|error| problems::from_store_error(&error))?
        {
            if !met {
                web.needs.entry(task).or_default().insert(need);
                web.needed.entry(need).or_default().insert(task);
            }
        }
        Ok(web)
    }

    /// How many open tasks are behind this one in the end.
    fn count_dependents(&self, task: TaskId) -> u64 {
        let mut seen = BTreeSet::from([task]);
        let mut open = vec![task];
        while let Some(task) = open.pop() {
            for next in self.needed.get(&task).into_iter().flatten() {
                if seen.len() <= REACH_MAX && seen.insert(*next) {
                    open.push(*next);
                }
            }
        }
        seen.len() as u64 - 1
    }

    /// The longest chain by size, of these tasks or of all.
    fn critical_path(
        &self,
        only: Option<&BTreeSet<TaskId>>,
        reader: &StoreReader,
    ) -> Result<Vec<TaskId>, Problem> {
        let within = |task: &TaskId| only.is_none_or(|only| only.contains(task));
        let tasks: BTreeSet<TaskId> =
            self.needs.keys().chain(self.needed.keys()).copied().filter(|task| within(task)).collect();
        let listed: Vec<TaskId> = tasks.iter().copied().collect();
        let sizes = reader.sizes(&listed).map_err(|error| problems::from_store_error(&error))?;
        let needs = |task: &TaskId| self.needs.get(task).into_iter().flatten().filter(|need| within(need));
        let mut left: BTreeMap<TaskId, usize> =
            tasks.iter().map(|task| (*task, needs(task).count())).collect();
        let mut open: VecDeque<TaskId> =
            left.iter().filter(|(_, many)| **many == 0).map(|(task, _)| *task).collect();
        let mut best: BTreeMap<TaskId, (u64, Option<TaskId>)> = BTreeMap::new();
        while let Some(task) = open.pop_front() {
            let before = needs(&task).filter_map(|need| Some((best.get(need)?.0, *need))).max();
            let own = sizes.get(&task).map_or(0, |size| size_weight(*size));
            best.insert(task, (own + before.map_or(0, |(sum, _)| sum), before.map(|(_, need)| need)));
            for next in self.needed.get(&task).into_iter().flatten().filter(|next| within(next)) {
                if let Some(many) = left.get_mut(next) {
                    *many = many.saturating_sub(1);
                    if *many == 0 {
                        open.push_back(*next);
                    }
                }
            }
        }
        let mut at = best
            .iter()
            .max_by_key(|(task, (sum, _))| (*sum, std::cmp::Reverse(**task)))
            .map(|(task, _)| *task);
        let mut path = Vec::new();
        while let Some(task) = at {
            path.push(task);
            at = best.get(&task).and_then(|(_, before)| *before);
        }
        path.reverse();
        Ok(path)
    }
}

/// How much work a size stands for; one that nobody sized is taken for the middle.
fn size_weight(size: Option<TaskSize>) -> u64 {
    match size {
        Some(TaskSize::XS) => 1,
        Some(TaskSize::S) => 2,
        Some(TaskSize::M) | None => 4,
        Some(TaskSize::L) => 8,
        Some(TaskSize::XL) => 16,
    }
}

/// What is around a task, nearest first.
fn collect_neighborhood(
    reader: &StoreReader,
    root: TaskId,
    asked: &api::GraphAsked,
    max: usize,
) -> Result<(Vec<TaskRow>, u64), Problem> {
    let of = |error| problems::from_store_error(&error);
    let first = reader.row(root).map_err(of)?.ok_or_else(|| problems::unknown_task(root))?;
    let depth = if asked.depth == 0 { u32::MAX } else { asked.depth };
    let mut seen = BTreeSet::from([root]);
    let mut open = VecDeque::from([(first, 0)]);
    let (mut rows, mut left_out) = (Vec::new(), 0);
    while let Some((row, away)) = open.pop_front() {
        if away < depth && seen.len() <= REACH_MAX {
            let mut near = reader.dependents(row.id).map_err(of)?;
            near.extend(reader.needs_graph(&[row.id]).map_err(of)?.into_values().flatten());
            near.extend(reader.parts(row.id).map_err(of)?);
            near.extend(row.parent);
            near.retain(|id| seen.insert(*id));
            for next in reader.read_rows(&near).map_err(of)? {
                let over = matches!(next.status, TaskStatus::Done | TaskStatus::Cancelled);
                if asked.done || !over {
                    open.push_back((next, away + 1));
                }
            }
        }
        if rows.len() < max {
            rows.push(row);
        } else {
            left_out += 1;
        }
    }
    Ok((rows, left_out))
}

/// The open tasks: the critical path first, then what is under way, then what holds most others up, then the line.
fn collect_open_tasks(
    reader: &StoreReader,
    web: &DependencyGraph,
    critical: &[TaskId],
    asked: &api::GraphAsked,
    max: usize,
) -> Result<(Vec<TaskRow>, u64), Problem> {
    let of = |error| problems::from_store_error(&error);
    let limit = u32::try_from(max).unwrap_or(NODES_MAX);
    let mut rows: BTreeMap<TaskId, TaskRow> = BTreeMap::new();
    let take = |rows: &mut BTreeMap<TaskId, TaskRow>, found: Vec<TaskRow>| {
        for row in found {
            if rows.len() < max || rows.contains_key(&row.id) {
                rows.insert(row.id, row);
            }
        }
    };
    let counts = reader.counts().map_err(of)?;
    let mut total: u64 = OPEN.iter().map(|status| counts.count_of(*status)).sum::<u64>() + counts.dependency;
    take(&mut rows, reader.read_rows(critical).map_err(of)?);
    for status in &OPEN[..5] {
        take(&mut rows, reader.list_by_status(*status, limit).map_err(of)?);
    }
    let mut holders: Vec<(&TaskId, usize)> = web.needed.iter().map(|(task, by)| (task, by.len())).collect();
    holders.sort_by_key(|(task, many)| (std::cmp::Reverse(*many), **task));
    for (task, _) in holders.into_iter().take(max) {
        let by = web.needed.get(task).into_iter().flatten().copied();
        let near: Vec<TaskId> = std::iter::once(*task).chain(by).take(max).collect();
        if rows.len() >= max {
            break;
        }
        take(&mut rows, reader.read_rows(&near).map_err(of)?);
    }
    take(&mut rows, reader.next(limit).map_err(of)?);
    take(&mut rows, reader.held(limit).map_err(of)?);
    take(&mut rows, reader.list_by_status(TaskStatus::Draft, limit).map_err(of)?);
    if asked.done {
        for status in [TaskStatus::Done, TaskStatus::Failed, TaskStatus::Timeout, TaskStatus::Cancelled] {
            total += counts.count_of(status);
            take(&mut rows, reader.list_by_status(status, limit).map_err(of)?);
        }
    } else {
        // What gave up and is needed all the same holds others up: it is there, though it is not open.
        let over = |row: &&TaskRow| {
            matches!(row.status, TaskStatus::Failed | TaskStatus::Timeout | TaskStatus::Cancelled)
        };
        total += rows.values().filter(over).count() as u64;
    }
    let left_out = total.saturating_sub(rows.len() as u64);
    Ok((rows.into_values().collect(), left_out))
}

/// How many layers of needs are below each.
fn assign_tiers(ids: &[TaskId], edges: &[api::GraphEdge]) -> BTreeMap<TaskId, u32> {
    let mut tiers: BTreeMap<TaskId, u32> = ids.iter().map(|id| (*id, 0)).collect();
    let mut left: BTreeMap<TaskId, usize> = ids.iter().map(|id| (*id, 0)).collect();
    let mut after: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
    for edge in edges.iter().filter(|edge| edge.kind == EdgeKind::Needs) {
        let (from, to) = (conversions::model_task(edge.from), conversions::model_task(edge.to));
        after.entry(from).or_default().push(to);
        *left.entry(to).or_default() += 1;
    }
    let mut open: VecDeque<TaskId> = left.iter().filter(|(_, many)| **many == 0).map(|(id, _)| *id).collect();
    while let Some(id) = open.pop_front() {
        let below = tiers.get(&id).copied().unwrap_or(0);
        for next in after.get(&id).into_iter().flatten() {
            let tier = tiers.entry(*next).or_default();
            *tier = (*tier).max(below + 1);
            let many = left.entry(*next).or_default();
            *many = many.saturating_sub(1);
            if *many == 0 {
                open.push_back(*next);
            }
        }
    }
    tiers
}
