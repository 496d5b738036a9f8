//! Flows: how a task is done, as a graph of steps. A flow is data; loading checks it, running follows it.

mod draw;

pub use draw::{draw_as_mermaid, draw_as_text};
pub use landfall_facts::flow::{
    EdgeTarget, Flow, FlowDefect, FlowEdge, FlowStep, StepKind, TrackerOperation,
};
