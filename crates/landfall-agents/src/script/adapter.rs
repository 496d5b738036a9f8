//! The adapter: finds the script of a task, and launches our own program to play it.

use landfall_model::Signal;

use super::note::Note;
use super::turn::Script;
use crate::agent::{Agent, Brief, Ear, Launch, LaunchError, Needs, Parse, Profile, Stream};
use crate::fence::{Fences, Place};
use crate::lines::{Line, Lines};
use crate::tags::{Heard, Tags, text};

/// The adapter.
pub(crate) struct Scripted;

/// What opens a script in a task's text.
const INFO: &str = "landfall-script";

impl Agent for Scripted {
    fn check(&self, profile: &Profile) -> Result<(), LaunchError> {
        profile.check_env()
    }

    fn launch(&self, brief: &Brief) -> Result<Launch, LaunchError> {
        self.check(&brief.profile)?;
        let text = script_of(brief)?;
        let file = brief.attempt_dir.join("script.toml");
        let iteration = brief.iteration.to_string();
        Ok(Launch {
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
            env: brief.env(),
            stdin: Some(brief.prompt_file.clone()),
            files: vec![(file, text.into_bytes())],
        })
    }

    fn parser(&self, ear: &Ear) -> Box<dyn Parse + Send> {
        Box::new(ScriptedParser { lines: Lines::default(), tags: Tags::of_a_program(&ear.nonce), unknown: 0 })
    }

    fn needs(&self, _profile: &Profile) -> Needs {
        Needs { install: "it is part of Landfall", login: "it needs no account", ..Needs::default() }
    }

    fn closes(&self) -> bool {
        false
    }
}

/// The script for this task, checked: the block in its text, else the file of the profile, else the empty script.
fn script_of(brief: &Brief) -> Result<String, LaunchError> {
    let (place, lines_before, text) = match (block(&brief.body)?, &brief.profile.script, &brief.script_text) {
        (Some(block), _, _) => ("the script in the task's body".to_owned(), block.lines_before, block.text),
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

struct Block {
    /// Lines of the body before the first of the block.
    lines_before: usize,
    text: String,
}

fn block(body: &str) -> Result<Option<Block>, LaunchError> {
    let mut fences = Fences::default();
    let mut found: Option<Block> = None;
    let mut open = false;
    for (line, number) in body.lines().zip(1..) {
        match fences.line(line) {
            Place::Opens { info } if info == INFO => {
                if found.is_some() {
                    return Err(LaunchError::Block { line: number, problem: "a second script" });
                }
                found = Some(Block { lines_before: number, text: String::new() });
                open = true;
            }
            Place::Code if open => {
                let block = found.as_mut().expect("opened before");
                block.text.push_str(line);
                block.text.push('\n');
            }
            Place::Closes => open = false,
            Place::Opens { .. } | Place::Code | Place::Text => {}
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
    lines: Lines,
    tags: Tags,
    unknown: u64,
}

impl ScriptedParser {
    fn line(&mut self, line: Line) -> Option<Signal> {
        match self.tags.hear(&line) {
            Heard::Signal(signal) => Some(signal),
            Heard::Words if Note::meant(&line.text) => match Note::read(&line.text) {
                Some(note) => Some(note.signal()),
                None => {
                    self.unknown += 1;
                    text(line)
                }
            },
            Heard::Words | Heard::Code => text(line),
        }
    }
}

impl Parse for ScriptedParser {
    fn feed(&mut self, stream: Stream, bytes: &[u8]) -> Vec<Signal> {
        match stream {
            Stream::Out => {
                let lines = self.lines.feed(bytes);
                lines.into_iter().filter_map(|line| self.line(line)).collect()
            }
            Stream::Err | Stream::Aside => Vec::new(),
        }
    }

    fn finish(&mut self) -> Vec<Signal> {
        let last = self.lines.finish();
        last.into_iter().filter_map(|line| self.line(line)).collect()
    }

    fn raw_lines_unknown(&self) -> u64 {
        self.unknown
    }

    fn lines_cut(&self) -> u64 {
        self.lines.cut()
    }
}
