//! `landfall graph`: which task needs which, as a tree of text.

use std::collections::{BTreeMap, BTreeSet};

use landfall_api::{EdgeKind, Graph, GraphAsked, GraphNode, TypedService, WireTaskId};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Show which tasks need which, as a tree
#[derive(clap::Args)]
pub struct Args {
    /// Only tasks connected with this one
    task: Option<WireTaskId>,

    /// Maximum distance from it; 0 means no limit
    #[arg(long, default_value_t = 0, hide_default_value = true, requires = "task")]
    depth: u32,

    /// Include finished tasks
    #[arg(long)]
    done: bool,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let Args { task, depth, done } = args;
    let found = context.open_service()?.graph(GraphAsked { root: task, depth, done, nodes: 0 })?;
    context.print_answer(&found, render_graph)?;
    Ok(CliExit::Ok)
}

fn render_graph(found: &Graph) -> String {
    if found.nodes.is_empty() {
        return "no task is open\n".to_owned();
    }
    let nodes: BTreeMap<WireTaskId, &GraphNode> = found.nodes.iter().map(|node| (node.id, node)).collect();
    let mut below: BTreeMap<WireTaskId, Vec<WireTaskId>> = BTreeMap::new();
    let mut needs: BTreeSet<WireTaskId> = BTreeSet::new();
    for edge in found.edges.iter().filter(|edge| edge.kind == EdgeKind::Needs && !edge.met) {
        below.entry(edge.from).or_default().push(edge.to);
        needs.insert(edge.to);
    }
    let mut tree =
        TaskTreePrinter { nodes: &nodes, below: &below, seen: BTreeSet::new(), text: String::new() };
    for root in nodes.keys().filter(|id| !needs.contains(id)) {
        tree.draw_task(*root, &mut Vec::new());
    }
    let mut text = tree.text;
    if found.critical.len() > 1 {
        let path: Vec<String> = found.critical.iter().map(ToString::to_string).collect();
        text.push_str(&format!("critical path: {}\n", path.join(" → ")));
    }
    if found.left_out > 0 {
        text.push_str(&format!("{} more tasks are not shown\n", found.left_out));
    }
    text
}

struct TaskTreePrinter<'a> {
    nodes: &'a BTreeMap<WireTaskId, &'a GraphNode>,
    below: &'a BTreeMap<WireTaskId, Vec<WireTaskId>>,
    seen: BTreeSet<WireTaskId>,
    text: String,
}

impl TaskTreePrinter<'_> {
    /// Draws a task and what waits for it. `lasts` says for each task above whether it is the last of its own.
    fn draw_task(&mut self, id: WireTaskId, lasts: &mut Vec<bool>) {
        let Some(node) = self.nodes.get(&id) else { return };
        for (place, last) in lasts.iter().enumerate() {
            self.text.push_str(match (place + 1 == lasts.len(), last) {
                (true, true) => "└─ ",
                (true, false) => "├─ ",
                (false, true) => "   ",
                (false, false) => "│  ",
            });
        }
        let again = !self.seen.insert(id);
        let unblocks = match node.unblocks_all {
            0 => String::new(),
            many => format!("  (unblocks {many})"),
        };
        let mark = if again { "  ↑ above" } else { &unblocks };
        self.text.push_str(&format!("{id} {} {}{mark}\n", node.status, escape_line(&node.title)));
        if again {
            return;
        }
        let below = self.below.get(&id).map(Vec::as_slice).unwrap_or_default();
        for (place, next) in below.iter().enumerate() {
            lasts.push(place + 1 == below.len());
            self.draw_task(*next, lasts);
            lasts.pop();
        }
    }
}
