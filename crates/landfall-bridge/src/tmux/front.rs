//! Who has the keyboard.

use std::fs;

use landfall_agents::PROGRAM_PARTS;

/// What reads what is typed into a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ForegroundProgram {
    /// The agent.
    Agent,
    /// Another program, by its name: one that the agent has started and waits for.
    Other(String),
}

/// Looks at the foreground of the terminal that `pane` leads.
pub(super) fn foreground_program(pane: i32, argv: &[String]) -> ForegroundProgram {
    let Some(leader) = ForegroundProcess::read_process(pane) else {
        return ForegroundProgram::Other("nobody".to_owned());
    };
    let program =
        argv.first().map(|program| program.rsplit('/').next().unwrap_or(program)).unwrap_or_default();
    let mut parts = vec![leader.name.clone(), truncate_process_name(program)];
    parts.extend(PROGRAM_PARTS.map(str::to_owned));
    let terminal = fs::read_link(format!("/proc/{pane}/fd/0")).ok();
    let Ok(entries) = fs::read_dir("/proc") else { return ForegroundProgram::Other("unknown".to_owned()) };
    let mut anyone = false;
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Some(process) = ForegroundProcess::read_process(pid) else { continue };
        if process.terminal != leader.terminal || process.group != leader.foreground {
            continue;
        }
        anyone = true;
        // What does not read from the terminal is not in front, whatever group it is in.
        let reads = fs::read_link(format!("/proc/{pid}/fd/0")).ok();
        let in_front = reads.is_none() || reads == terminal;
        if in_front && !parts.contains(&process.name) {
            return ForegroundProgram::Other(process.name);
        }
    }
    if anyone { ForegroundProgram::Agent } else { ForegroundProgram::Other("nobody".to_owned()) }
}

/// As the kernel cuts names.
fn truncate_process_name(name: &str) -> String {
    name.chars().take(15).collect()
}

struct ForegroundProcess {
    name: String,
    group: i32,
    terminal: i32,
    /// The group in the foreground of its terminal.
    foreground: i32,
}

impl ForegroundProcess {
    fn read_process(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may hold anything, a bracket too.
        let (head, rest) = stat.rsplit_once(") ")?;
        let (_, name) = head.split_once('(')?;
        let fields: Vec<&str> = rest.split(' ').collect();
        if fields.first() == Some(&"Z") {
            return None;
        }
        let number = |at: usize| fields.get(at).and_then(|field| field.parse().ok());
        Some(Self { name: name.to_owned(), group: number(2)?, terminal: number(4)?, foreground: number(5)? })
    }
}
