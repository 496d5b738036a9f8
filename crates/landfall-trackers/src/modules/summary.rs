//! `.summary.md`: where a module stands, for whoever comes back to it. Written over each time; a header for recovery first.

use super::record::{ModulePhase, ModuleRecord};

/// The most lines a summary has; it is read again and again.
pub const LINES_MAX: usize = 200;

/// The first lines of a summary: enough to go on after everything else was forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SummaryHeader {
    /// The status, as it was written.
    pub status: String,
    /// The phase.
    pub phase: String,
    /// What comes next.
    pub next: String,
    /// How far it is.
    pub progress: String,
    /// The branch of the work.
    pub branch: String,
}

impl SummaryHeader {
    /// The header for a module; `next` is the step that follows, `steps` how many the plan has.
    #[must_use]
    pub fn for_module(module: &ModuleRecord, next: &str, steps: Option<u32>) -> Self {
        let done = module.completed_steps;
        let progress = match (steps, &module.stage) {
            (Some(steps), Some(stage)) => format!("step {done} of {steps}, stage {}", stage.current),
            (Some(steps), None) => format!("step {done} of {steps}"),
            (None, Some(stage)) => format!("{done} steps done, stage {}", stage.current),
            (None, None) => format!("{done} steps done"),
        };
        let phase = if module.phase == ModulePhase::None { "-" } else { module.phase.wire_name() };
        Self {
            status: module.status.wire_name().to_owned(),
            phase: phase.to_owned(),
            next: next.to_owned(),
            progress,
            branch: module.branch.clone(),
        }
    }

    /// Reads the header of a summary; none when it has none.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut header = Self::default();
        let mut found = false;
        const HEADER_LINES_MAX: usize = 12; // it stands at the top, or not at all
        for part in text
            .lines()
            .take(HEADER_LINES_MAX)
            .flat_map(|line| line.trim_start_matches(['>', ' ']).split('|'))
        {
            let Some((label, value)) = part.split_once(':') else { continue };
            let value = value.trim().trim_matches(['*', '`']).trim().to_owned();
            let place = match label.trim().trim_matches('*').trim().to_ascii_lowercase().as_str() {
                "status" => &mut header.status,
                "phase" => &mut header.phase,
                "next" => &mut header.next,
                "progress" => &mut header.progress,
                "branch" => &mut header.branch,
                _ => continue,
            };
            *place = value;
            found = true;
        }
        found.then_some(header)
    }

    fn to_text(&self) -> String {
        let Self { status, phase, next, progress, branch } = self;
        format!(
            "> **Status**: {status} | **Phase**: {phase} | **Next**: {next} | **Progress**: {progress} | **Branch**: {branch}\n"
        )
    }
}

/// What is told below the header; empty parts are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SummarySections {
    /// What the plan is, in short.
    pub plan: String,
    /// What is there now.
    pub state: String,
    /// What was decided, and why.
    pub decisions: Vec<String>,
    /// What is known to be wrong.
    pub issues: Vec<String>,
    /// What was learnt.
    pub lessons: Vec<String>,
}

/// A summary.
#[must_use]
pub fn write(title: &str, header: &SummaryHeader, layers: &SummarySections) -> String {
    let list = |items: &[String]| items.iter().map(|item| format!("- {}\n", item.trim())).collect::<String>();
    let mut out = format!("{}\n# {title}\n", header.to_text());
    for (name, body) in [
        ("Plan Overview", layers.plan.clone()),
        ("Current State", layers.state.clone()),
        ("Key Decisions", list(&layers.decisions)),
        ("Known Issues", list(&layers.issues)),
        ("Lessons Learned", list(&layers.lessons)),
    ] {
        if !body.trim().is_empty() {
            out.push_str(&format!("\n## {name}\n\n{}\n", body.trim()));
        }
    }
    let lines: Vec<&str> = out.lines().collect();
    match lines.len() > LINES_MAX {
        true => lines[..LINES_MAX - 1].join("\n") + "\n…\n",
        false => out,
    }
}
