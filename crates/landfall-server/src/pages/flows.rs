//! The flows there are, and one of them drawn.

use askama::Template;
use landfall_api::{FlowForm, FlowLine, FlowOrigin, FlowShow, Nothing, Problem, TypedService as _};

use super::layered::layout_graph;
use super::{PageContext, RenderedPage, words};

#[derive(Template)]
#[template(path = "flows.html")]
struct FlowsPage {
    flows: Vec<FlowLine>,
}

pub(super) fn draw_flows_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    RenderedPage::new("Flows", &FlowsPage { flows: visit.flow_list(Nothing {})?.flows })
}

#[derive(Template)]
#[template(path = "flow.html")]
struct FlowPage {
    name: String,
    text: String,
    source: String,
    picture: FlowPicture,
}

pub(super) fn draw_flow_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let name: String = visit.path_value("name")?;
    let show = |form: FlowForm| visit.flow_show(FlowShow { name: name.clone(), form }).map(|it| it.text);
    let text = show(FlowForm::Text)?;
    let source = show(FlowForm::Source)?;
    let title = format!("Flow {}", words::line(&name));
    RenderedPage::new(
        title,
        &FlowPage { picture: draw_flow_picture(&parse_flow_steps(&text)), name, text, source },
    )
}

/// A step as its drawing in text tells it.
#[derive(Debug, PartialEq)]
struct FlowStepView {
    name: String,
    kind: String,
    entry: bool,
    /// What it may come to, and where that leads.
    on: Vec<(String, String)>,
}

/// The steps that a drawing in text tells of. What it does not tell is left out of the picture; the text stands below it.
fn parse_flow_steps(text: &str) -> Vec<FlowStepView> {
    let mut steps: Vec<FlowStepView> = Vec::new();
    for line in text.lines() {
        if let Some((name, rest)) = line.strip_prefix("● ").and_then(|it| it.split_once("  [")) {
            let kind = rest.split([',', ']']).next().unwrap_or_default();
            steps.push(FlowStepView {
                name: name.to_owned(),
                kind: kind.to_owned(),
                entry: rest.contains("◀ entry"),
                on: Vec::new(),
            });
        } else if let Some(step) = steps.last_mut()
            && let Some((result, target)) = line.trim_start_matches(['├', '└', '─', ' ']).split_once(" → ")
        {
            let target = target.split(" (").next().unwrap_or_default();
            step.on.push((result.to_owned(), target.to_owned()));
        }
    }
    steps
}

struct FlowPicture {
    width: u32,
    height: u32,
    boxes: Vec<StepBox>,
    lines: Vec<String>,
}

struct StepBox {
    x: u32,
    y: u32,
    name: String,
    kind: String,
    entry: bool,
    end: bool,
    /// Where it goes back to, in words.
    back: String,
}

const WIDE: u32 = 150;
const GAP: u32 = 56;
const ROW: u32 = 74;

/// Steps from left to right. What leads back to an earlier step is a word in the box: arrows back would cover the rest.
fn draw_flow_picture(steps: &[FlowStepView]) -> FlowPicture {
    let ends: Vec<&str> = ["end", "stop"]
        .into_iter()
        .filter(|end| steps.iter().any(|step| step.on.iter().any(|(_, to)| to == end)))
        .collect();
    let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).chain(ends.iter().copied()).collect();
    let place = |name: &str| names.iter().position(|it| *it == name);
    let mut edges: Vec<(usize, usize)> = Vec::new();
    let mut back: Vec<Vec<String>> = vec![Vec::new(); names.len()];
    for (from, step) in steps.iter().enumerate() {
        for (result, target) in &step.on {
            match place(target) {
                Some(to) if edges.contains(&(from, to)) => {} // one arrow for several results
                Some(to) if to > from => edges.push((from, to)),
                Some(to) if to == from => back[from].push(format!("↺ {result}")),
                Some(_) => back[from].push(format!("↶ {target}: {result}")),
                None => {}
            }
        }
    }
    let found = layout_graph(names.len(), &edges);
    let x = |column: usize| 8 + u32::try_from(column).unwrap_or(0) * (WIDE + GAP);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a flow has a few steps")]
    let y = |height: f64| 8 + (height.clamp(0.0, 1000.0) * f64::from(ROW)) as u32;
    let boxes = names.iter().zip(&found.nodes).enumerate().map(|(number, (name, (column, height)))| {
        let step = steps.get(number);
        StepBox {
            x: x(*column),
            y: y(*height),
            name: words::line(name),
            kind: step.map(|it| words::line(&it.kind)).unwrap_or_default(),
            entry: step.is_some_and(|it| it.entry),
            end: step.is_none(),
            back: words::line(&back[number].join(", ")),
        }
    });
    let lines = found.edges.iter().map(|(_, path)| {
        let mut line = String::new();
        for (at, pair) in path.windows(2).enumerate() {
            let (left, right) = (x(pair[0].0) + WIDE, x(pair[1].0));
            let (from, to) = (y(pair[0].1) + 22, y(pair[1].1) + 22);
            let half = (left + right) / 2;
            line += &if at == 0 { format!("M{left} {from}") } else { format!("H{left}") };
            line += &format!("C{half} {from} {half} {to} {right} {to}");
        }
        line
    });
    FlowPicture {
        width: x(found.columns.max(1)) - GAP + 8,
        height: y(found.height) + 8,
        boxes: boxes.collect(),
        lines: lines.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWN: &str = "loop: one agent\n\n● build  [agent, phase build] ◀ entry\n  ├─ done → verify\n  └─ blocked → stop\n\n● verify  [verify, phase check]\n  ├─ pass → land\n  └─ fail → build (at most 3×)\n\n● land  [land, phase land]\n  └─ landed → end\n";

    #[test]
    fn a_drawing_in_text_becomes_a_picture() {
        let steps = parse_flow_steps(DRAWN);
        assert_eq!(steps.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["build", "verify", "land"]);
        assert!(steps[0].entry && steps[1].on[1] == ("fail".to_owned(), "build".to_owned()));
        let picture = draw_flow_picture(&steps);
        assert_eq!((picture.boxes.len(), picture.lines.len()), (5, 4));
        assert_eq!(picture.boxes[1].back, "↶ build: fail");
    }

    #[test]
    fn words_from_outside_stay_words() {
        let hostile = DRAWN.replace("build", "<b>x</b>");
        let flow = FlowPage {
            picture: draw_flow_picture(&parse_flow_steps(&hostile)),
            name: "<b>".to_owned(),
            text: hostile,
            source: "<b>".to_owned(),
        };
        let html = flow.render().expect("drawn");
        assert!(!html.contains("<b>") && !html.contains("style="), "{html}");
        assert_eq!(draw_flow_picture(&parse_flow_steps("nothing that is known")).boxes.len(), 0);
    }
}
