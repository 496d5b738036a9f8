//! A flow as a picture: text for a terminal, Mermaid for a page.

use crate::flow::{EdgeTarget, Flow, FlowEdge};

/// The flow as text, a step a paragraph.
#[must_use]
pub fn draw_as_text(flow: &Flow) -> String {
    let mut out = format!("{}: {}\n", flow.name, flow.about);
    for step in &flow.steps {
        let entry = if step.name == flow.entry { " ◀ entry" } else { "" };
        let (name, kind, phase) = (&step.name, step.kind.word(), &step.phase);
        out.push_str(&format!("\n● {name}  [{kind}, phase {phase}]{entry}\n"));
        for (at, edge) in step.on.iter().enumerate() {
            let branch = if at + 1 == step.on.len() { "└─" } else { "├─" };
            out.push_str(&format!(
                "  {branch} {} → {}{}\n",
                edge.result.word(),
                format_target(edge),
                format_bound(edge)
            ));
        }
    }
    for (phase, step) in &flow.entries {
        out.push_str(&format!("\nentry for phase {phase}: {step}"));
    }
    if !flow.entries.is_empty() {
        out.push('\n');
    }
    out
}

/// The flow as a Mermaid chart.
#[must_use]
pub fn draw_as_mermaid(flow: &Flow) -> String {
    let mut out = String::from("flowchart TD\n");
    let number = |name: &crate::StepName| flow.steps.iter().position(|step| step.name == *name).unwrap_or(0);
    for (at, step) in flow.steps.iter().enumerate() {
        out.push_str(&format!("  s{at}[\"{} ({})\"]\n", step.name, step.kind.word()));
    }
    out.push_str(&format!("  start((start)) --> s{}\n", number(&flow.entry)));
    for (at, step) in flow.steps.iter().enumerate() {
        for edge in &step.on {
            let to = match &edge.to {
                EdgeTarget::Step(name) => format!("s{}", number(name)),
                EdgeTarget::End => "finish((end))".to_owned(),
                EdgeTarget::Stop => "halt((stop))".to_owned(),
            };
            out.push_str(&format!("  s{at} -->|\"{}{}\"| {to}\n", edge.result.word(), format_bound(edge)));
        }
    }
    out
}

fn format_target(edge: &FlowEdge) -> String {
    match &edge.to {
        EdgeTarget::Step(name) => name.to_string(),
        EdgeTarget::End => "end".to_owned(),
        EdgeTarget::Stop => "stop".to_owned(),
    }
}

fn format_bound(edge: &FlowEdge) -> String {
    edge.max.map(|max| format!(" (at most {max}×)")).unwrap_or_default()
}
