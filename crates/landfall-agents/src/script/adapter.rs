//! The adapter: finds the script of a task, and launches our own program to play it.

use landfall_model::Signal;

use super::note::ScriptNote;
use super::turn::Script;
use crate::agent::{
    Agent, AgentRequirements, AgentStream, LaunchCommand, LaunchError, LaunchProfile, LaunchRequest,
    OutputParser, ParserContext,
};
use crate::fence::{CodeFenceTracker, LinePosition};
use crate::lines::{LineSplitter, StreamLine};
use crate::tags::{ControlTagParser, LineKind, text_signal};

/// The adapter.
pub(crate) struct ScriptedAgent;

/// What opens a script in a task's text.
const INFO: &str = "landfall-script";

impl Agent for ScriptedAgent {
    fn check_profile(&self, profile: &LaunchProfile) -> Result<(), LaunchError> {
        profile.check_env()
    }

    fn build_launch_command(&self, brief: &LaunchRequest) -> Result<LaunchCommand, LaunchError> {
        self.check_profile(&brief.profile)?;
        let text = script_of(brief)?;
        let file = brief.attempt_dir.join("script.toml");
        let iteration = brief.iteration.to_string();
        Ok(LaunchCommand {
            argv: vec![
                brief.program.clone().into(),
                "play".into(),
                file.clone().into(),
                "--iteration".into(),
                iteration.into(),
                "--step".into(),
                brief.step.clone().into(),
                "--step-run".into(),
                brief.step_run.to_string().into(),
            ],
            env: brief.agent_environment(),
            stdin: Some(brief.prompt_file.clone()),
            files: vec![(file, text.into_bytes())],
        })
    }

    fn create_parser(&self, ear: &ParserContext) -> Box<dyn OutputParser + Send> {
        Box::new(ScriptedParser {
            lines: LineSplitter::default(),
            tags: ControlTagParser::for_program_output(&ear.nonce),
            unknown: 0,
        })
    }

    fn list_requirements(&self, _profile: &LaunchProfile) -> AgentRequirements {
        AgentRequirements {
            install: "it is part of Landfall",
            login: "it needs no account",
            ..AgentRequirements::default()
        }
    }

    fn has_closing_message(&self) -> bool {
        false
    }
}

/// The script for this task, checked: the block in its text, else the file of the profile, else the empty script.
fn script_of(brief: &LaunchRequest) -> Result<String, LaunchError> {
    let (place, lines_before, text) =
        match (find_script_block(&brief.body)?, &brief.profile.script, &brief.script_text) {
            (Some(block), _, _) => {
                ("the script in the task's body".to_owned(), block.lines_before, block.text)
            }
            (None, Some(file), Some(text)) => (format!("the script `{file}`"), 0, text.clone()),
            (None, None, Some(text)) => ("the script of the profile".to_owned(), 0, text.clone()),
            (None, Some(file), None) => {
                return Err(LaunchError::Unread { profile: brief.profile.name.clone(), file: file.clone() });
            }
            (None, None, None) => ("the empty script".to_owned(), 0, String::new()),
        };
    match Script::parse(&text) {
        Ok(_) => Ok(text),
        Err(mut problem) => {
            problem.line += lines_before;
            Err(LaunchError::Script { place, problem })
        }
    }
}

struct ScriptBlock {
    /// Lines of the body before the first of the block.
    lines_before: usize,
    text: String,
}

fn find_script_block(body: &str) -> Result<Option<ScriptBlock>, LaunchError> {
    let mut fences = CodeFenceTracker::default();
    let mut found: Option<ScriptBlock> = None;
    let mut open = false;
    for (line, number) in body.lines().zip(1..) {
        match fences.line(line) {
            LinePosition::Opens { info } if info == INFO => {
                if found.is_some() {
                    return Err(LaunchError::Block { line: number, problem: "a second script" });
                }
                found = Some(ScriptBlock { lines_before: number, text: String::new() });
                open = true;
            }
            LinePosition::Code if open => {
                let block = found.as_mut().expect("opened before");
                block.text.push_str(line);
                block.text.push('\n');
            }
            LinePosition::Closes => open = false,
            LinePosition::Opens { .. } | LinePosition::Code | LinePosition::Text => {}
        }
    }
    match found {
        Some(block) if open => Err(LaunchError::Block {
            line: block.lines_before,
            problem: "the script's block is never closed",
        }),
        found => Ok(found),
    }
}

/// Hears tags as every parser does, and notes besides.
struct ScriptedParser {
    lines: LineSplitter,
    tags: ControlTagParser,
    unknown: u64,
}

impl ScriptedParser {
    fn handle_line(&mut self, line: StreamLine) -> Option<Signal> {
        match self.tags.hear(&line) {
            LineKind::Signal(signal) => Some(signal),
            LineKind::Words if ScriptNote::is_note(&line.text) => match ScriptNote::read(&line.text) {
                Some(note) => Some(note.into_signal()),
                None => {
                    self.unknown += 1;
                    text_signal(line)
                }
            },
            LineKind::Words | LineKind::Code => text_signal(line),
        }
    }
}

impl OutputParser for ScriptedParser {
    fn feed(&mut self, stream: AgentStream, bytes: &[u8]) -> Vec<Signal> {
        match stream {
            AgentStream::Out => {
                let lines = self.lines.feed(bytes);
                lines.into_iter().filter_map(|line| self.handle_line(line)).collect()
            }
            AgentStream::Err | AgentStream::Aside => Vec::new(),
        }
    }

    fn finish(&mut self) -> Vec<Signal> {
        let last = self.lines.finish();
        last.into_iter().filter_map(|line| self.handle_line(line)).collect()
    }

    fn raw_lines_unknown(&self) -> u64 {
        self.unknown
    }

    fn lines_cut(&self) -> u64 {
        self.lines.cut_count()
    }
}
