//! A flow as a picture: text for a terminal, Mermaid for a page.

use crate::flow::{Edge, Flow, Target};

/// The flow as text, a step a paragraph.
#[must_use]
pub fn text(flow: &Flow) -> String {
    let mut out = format!("{}: {}\n", flow.name, flow.about);
    for step in &flow.steps {
        let entry = if step.name == flow.entry { " ◀ entry" } else { "" };
        let (name, kind, phase) = (&step.name, step.kind.word(), &step.phase);
        out.push_str(&format!("\n● {name}  [{kind}, phase {phase}]{entry}\n"));
        for (at, edge) in step.on.iter().enumerate() {
            let branch = if at + 1 == step.on.len() { "└─" } else { "├─" };
            out.push_str(&format!("  {branch} {} → {}{}\n", edge.result.word(), target(edge), bound(edge)));
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
pub fn mermaid(flow: &Flow) -> String {
    let mut out = String::from("flowchart TD\n");
    let number = |name: &crate::StepName| flow.steps.iter().position(|step| step.name == *name).unwrap_or(0);
    for (at, step) in flow.steps.iter().enumerate() {
        out.push_str(&format!("  s{at}[\"{} ({})\"]\n", step.name, step.kind.word()));
    }
    out.push_str(&format!("  start((start)) --> s{}\n", number(&flow.entry)));
    for (at, step) in flow.steps.iter().enumerate() {
        for edge in &step.on {
            let to = match &edge.to {
                Target::Step(name) => format!("s{}", number(name)),
                Target::End => "finish((end))".to_owned(),
                Target::Stop => "halt((stop))".to_owned(),
            };
            out.push_str(&format!("  s{at} -->|\"{}{}\"| {to}\n", edge.result.word(), bound(edge)));
        }
    }
    out
}

fn target(edge: &Edge) -> String {
    match &edge.to {
        Target::Step(name) => name.to_string(),
        Target::End => "end".to_owned(),
        Target::Stop => "stop".to_owned(),
    }
}

fn bound(edge: &Edge) -> String {
    edge.max.map(|max| format!(" (at most {max}×)")).unwrap_or_default()
}
