//! Which task needs which: drawn from left to right, and as a list.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use landfall_api::{
    EdgeKind, Graph, GraphAsked, GraphNode, Problem, Size, Status, TypedService as _, WireTaskId,
};

use super::layered::layout_graph;
use super::{PageContext, RenderedPage, parts, words};

const WIDE: f64 = 190.0;
const HIGH: f64 = 44.0;
const GAP: f64 = 64.0;
const ROW: f64 = 58.0;
const TITLE_CHARS: usize = 21;
const NODES_DEFAULT: u32 = 200; // more is not read as a picture

#[derive(Template)]
#[template(path = "graph.html")]
struct GraphPage<'a> {
    graph: &'a Graph,
    root: Option<WireTaskId>,
    depth: u32,
    done: bool,
    drawing: Drawing,
    tiers: Vec<Vec<GraphListEntry<'a>>>,
    critical: BTreeSet<WireTaskId>,
    /// Tasks that need nothing here and that nothing needs.
    alone: Vec<&'a GraphNode>,
    all: Option<String>,
}

/// A task in the list.
struct GraphListEntry<'a> {
    node: &'a GraphNode,
    needs: Vec<WireTaskId>,
    needed_by: Vec<WireTaskId>,
    parent: Option<WireTaskId>,
}

struct Drawing {
    width: String,
    height: String,
    boxes: Vec<NodeBox>,
    lines: Vec<GraphEdgePath>,
}

struct NodeBox {
    id: WireTaskId,
    title: String,
    /// All of it, for who points at it.
    full: String,
    status: Status,
    x: String,
    y: String,
    /// The outline, by its status.
    outline: String,
    critical: bool,
    unblocks: u64,
    root: bool,
}

struct GraphEdgePath {
    path: String,
    met: bool,
    critical: bool,
}

pub(super) fn draw_graph_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let root = visit.parse_query_value("root");
    let depth = visit.parse_query_value("depth").unwrap_or(0);
    let done = visit.query_value("done").is_some();
    let nodes = visit.parse_query_value("nodes").unwrap_or(NODES_DEFAULT);
    let graph = visit.graph(GraphAsked { root, depth, done, nodes })?;
    let page = build_graph_page(&graph, root, depth, done);
    RenderedPage::new("Graph", &page)
}

fn build_graph_page(graph: &Graph, root: Option<WireTaskId>, depth: u32, done: bool) -> GraphPage<'_> {
    let critical: BTreeSet<WireTaskId> = graph.critical.iter().copied().collect();
    let joined: BTreeSet<WireTaskId> =
        graph.edges.iter().filter(|it| it.kind == EdgeKind::Needs).flat_map(|it| [it.from, it.to]).collect();
    let (drawn, alone): (Vec<&GraphNode>, Vec<&GraphNode>) =
        graph.nodes.iter().partition(|node| joined.contains(&node.id) || root == Some(node.id));
    let all = (graph.left_out > 0).then(|| {
        let root = root.map(|it| it.to_string()).unwrap_or_default();
        super::build_link(
            "/graph",
            &[("root", &root), ("done", if done { "on" } else { "" }), ("nodes", "2000")],
        )
    });
    GraphPage {
        drawing: draw_graph(graph, &drawn, &critical, root),
        tiers: group_by_tier(graph, &drawn),
        graph,
        root,
        depth,
        done,
        critical,
        alone,
        all,
    }
}

fn draw_graph(
    graph: &Graph,
    nodes: &[&GraphNode],
    critical: &BTreeSet<WireTaskId>,
    root: Option<WireTaskId>,
) -> Drawing {
    let places: BTreeMap<WireTaskId, usize> =
        nodes.iter().enumerate().map(|(place, node)| (node.id, place)).collect();
    let needs: Vec<_> = graph.edges.iter().filter(|edge| edge.kind == EdgeKind::Needs).collect();
    let place = |task: WireTaskId| places.get(&task).copied().unwrap_or(usize::MAX);
    let edges: Vec<(usize, usize)> = needs.iter().map(|edge| (place(edge.from), place(edge.to))).collect();
    let found = layout_graph(nodes.len(), &edges);
    let x = |column: usize| 8.0 + (WIDE + GAP) * u32::try_from(column).map_or(0.0, f64::from);
    let y = |height: f64| 8.0 + ROW * height;
    // The critical chain is a row of tasks: an edge belongs to it when it joins two that follow each other.
    let chain: BTreeSet<(WireTaskId, WireTaskId)> =
        graph.critical.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let lines = found.edges.iter().map(|(number, path)| {
        let edge = needs[*number];
        GraphEdgePath {
            path: edge_path(path, &x, &y),
            met: edge.met,
            critical: chain.contains(&(edge.from, edge.to)),
        }
    });
    let boxes = nodes.iter().zip(&found.nodes).map(|(node, (column, height))| NodeBox {
        id: node.id,
        title: truncate_title(&words::line(&node.title)),
        full: words::line(&node.title),
        status: node.status,
        x: format_px(x(*column)),
        y: format_px(y(*height)),
        outline: box_outline(node.status),
        critical: critical.contains(&node.id),
        unblocks: node.unblocks_all,
        root: root == Some(node.id),
    });
    Drawing {
        width: format_px(x(found.columns.max(1)) - GAP + 8.0),
        height: format_px(y(found.height) - (ROW - HIGH) + 8.0),
        boxes: boxes.collect(),
        lines: lines.collect(),
    }
}

/// A line through its places: from the right side of a box to the left side of the next, level where it passes between.
fn edge_path(path: &[(usize, f64)], x: &impl Fn(usize) -> f64, y: &impl Fn(f64) -> f64) -> String {
    let middle = |height: f64| y(height) + HIGH / 2.0;
    let mut line = String::new();
    for (at, pair) in path.windows(2).enumerate() {
        let ((column, from), (next, to)) = (pair[0], pair[1]);
        let (left, right) = (x(column) + WIDE, x(next));
        if at == 0 {
            line = format!("M{} {}", format_px(left), format_px(middle(from)));
        } else {
            line += &format!("H{}", format_px(left)); // past the column in which it only passes
        }
        let half = format_px((left + right) / 2.0);
        line += &format!(
            "C{half} {} {half} {} {} {}",
            format_px(middle(from)),
            format_px(middle(to)),
            format_px(right),
            format_px(middle(to))
        );
    }
    line
}

/// The outline of a box: its shape tells the status as well as its colour does.
fn box_outline(status: Status) -> String {
    let (w, h) = (WIDE, HIGH);
    let cut = |inset: f64| {
        format!("M{inset} 0H{}L{w} {}L{} {h}H{inset}L0 {}Z", w - inset, h / 2.0, w - inset, h / 2.0)
    };
    match status {
        // Round: over.
        Status::Done => format!("M22 0H{}A22 22 0 0 1 {} {h}H22A22 22 0 0 1 22 0Z", w - 22.0, w - 22.0),
        // Pointed: a person is to act.
        Status::Review | Status::Blocked => cut(14.0),
        // Corners cut off: it went wrong.
        Status::Failed | Status::Timeout | Status::Cancelled => {
            format!("M10 0H{}L{w} 10V{}L{} {h}H10L0 {}V10Z", w - 10.0, h - 10.0, w - 10.0, h - 10.0)
        }
        Status::Draft | Status::Ready | Status::Waiting | Status::Active | Status::Landing => {
            format!(
                "M4 0H{}A4 4 0 0 1 {w} 4V{}A4 4 0 0 1 {} {h}H4A4 4 0 0 1 0 {}V4A4 4 0 0 1 4 0Z",
                w - 4.0,
                h - 4.0,
                w - 4.0,
                h - 4.0
            )
        }
    }
}

fn group_by_tier<'a>(graph: &Graph, nodes: &[&'a GraphNode]) -> Vec<Vec<GraphListEntry<'a>>> {
    let mut tiers: BTreeMap<u32, Vec<GraphListEntry<'a>>> = BTreeMap::new();
    for node in nodes {
        let of = |kind: EdgeKind| graph.edges.iter().filter(move |edge| edge.kind == kind);
        tiers.entry(node.tier).or_default().push(GraphListEntry {
            node,
            needs: of(EdgeKind::Needs).filter(|it| it.to == node.id && !it.met).map(|it| it.from).collect(),
            needed_by: of(EdgeKind::Needs).filter(|it| it.from == node.id).map(|it| it.to).collect(),
            parent: of(EdgeKind::Parent).find(|it| it.to == node.id).map(|it| it.from),
        });
    }
    tiers.into_values().collect()
}

fn format_px(value: f64) -> String {
    format!("{value:.1}")
}

fn truncate_title(text: &str) -> String {
    match text.chars().count() > TITLE_CHARS {
        true => text.chars().take(TITLE_CHARS - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// A size, where it is known.
fn size_word(size: Option<Size>) -> &'static str {
    size.map_or("", Size::word)
}

#[cfg(test)]
mod tests {
    use landfall_api::GraphEdge;

    use super::*;

    fn node(id: u32, status: Status, title: &str) -> GraphNode {
        GraphNode {
            id: WireTaskId(id),
            title: title.to_owned(),
            status,
            size: Some(Size::M),
            phase: None,
            priority: 5,
            tier: id - 1,
            unmet: 0,
            unblocks: 1,
            unblocks_all: 2,
        }
    }

    fn edge(from: u32, to: u32, kind: EdgeKind) -> GraphEdge {
        GraphEdge { from: WireTaskId(from), to: WireTaskId(to), kind, met: false }
    }

    #[test]
    fn a_graph_is_drawn_and_listed_and_words_stay_words() {
        let hostile = "</title><script>alert(1)</script> and a long title";
        let mut nodes: Vec<GraphNode> =
            Status::ALL.iter().zip(1..).map(|(status, id)| node(id, *status, hostile)).collect();
        nodes.push(node(50, Status::Ready, "alone"));
        let graph = Graph {
            seq: 1,
            edges: (1..11)
                .map(|id| edge(id, id + 1, EdgeKind::Needs))
                .chain([
                    edge(1, 4, EdgeKind::Needs),
                    edge(1, 2, EdgeKind::Parent),
                    edge(1, 99, EdgeKind::Needs),
                ])
                .collect(),
            critical: vec![WireTaskId(1), WireTaskId(2)],
            left_out: 7,
            nodes,
        };
        let page = build_graph_page(&graph, None, 0, false);
        assert_eq!((page.drawing.boxes.len(), page.drawing.lines.len()), (11, 11));
        assert_eq!(page.drawing.lines.iter().filter(|it| it.critical).count(), 1);
        assert_eq!(page.alone.len(), 1);
        let html = page.render().expect("drawn");
        assert!(!html.contains("<script") && !html.contains("style="), "{html}");
        assert!(html.contains("7 more"), "{html}");
    }

    #[test]
    fn an_empty_graph_says_what_to_do() {
        let graph = Graph { seq: 0, nodes: Vec::new(), edges: Vec::new(), critical: Vec::new(), left_out: 0 };
        assert!(
            build_graph_page(&graph, None, 0, false).render().expect("drawn").contains("class=\"empty\"")
        );
    }
}
