//! Kind `command`: any program. The prompt is on its stdin, what it writes to stdout is what it says. Its stderr is
//! for people and never searched for control words.

use std::ffi::OsString;

use landfall_model::Signal;

use crate::agent::{
    Agent, AgentRequirements, AgentStream, LaunchCommand, LaunchError, LaunchProfile, LaunchRequest,
    OutputParser, ParserContext,
};
use crate::lines::LineSplitter;
use crate::nearest::nearest_word;
use crate::tags::ControlTagParser;
use crate::words::split;

/// The adapter.
pub(crate) struct CommandAgent;

const PLACEHOLDERS: [&str; 3] = ["model", "workspace", "prompt_file"];

impl Agent for CommandAgent {
    fn check_profile(&self, profile: &LaunchProfile) -> Result<(), LaunchError> {
        profile.check_env()?;
        for word in command_line(profile)? {
            for piece in split_template(&word) {
                if let TemplatePiece::Name(name) = piece {
                    check_name(profile, name)?;
                }
            }
        }
        Ok(())
    }

    fn build_launch_command(&self, brief: &LaunchRequest) -> Result<LaunchCommand, LaunchError> {
        self.check_profile(&brief.profile)?;
        let words = command_line(&brief.profile)?;
        Ok(LaunchCommand {
            argv: words.iter().map(|word| fill_template(brief, word)).collect(),
            env: brief.agent_environment(),
            stdin: Some(brief.prompt_file.clone()),
            files: Vec::new(),
        })
    }

    fn create_parser(&self, ear: &ParserContext) -> Box<dyn OutputParser + Send> {
        Box::new(CommandParser {
            lines: LineSplitter::default(),
            tags: ControlTagParser::for_program_output(&ear.nonce),
        })
    }

    fn list_requirements(&self, profile: &LaunchProfile) -> AgentRequirements {
        AgentRequirements {
            program: command_line(profile).ok().and_then(|words| words.into_iter().next()),
            version_args: &[],
            install: "install the program that `run` names, or write its full path",
            login: "log in as that program wants it",
            state: Vec::new(),
            terminal: false,
        }
    }

    fn has_closing_message(&self) -> bool {
        false // a program of a person's own says what it likes
    }
}

struct CommandParser {
    lines: LineSplitter,
    tags: ControlTagParser,
}

impl OutputParser for CommandParser {
    fn feed(&mut self, stream: AgentStream, bytes: &[u8]) -> Vec<Signal> {
        match stream {
            AgentStream::Out => {
                let lines = self.lines.feed(bytes);
                lines.into_iter().filter_map(|line| self.tags.read_signal(line)).collect()
            }
            AgentStream::Err | AgentStream::Aside => Vec::new(),
        }
    }

    fn finish(&mut self) -> Vec<Signal> {
        let last = self.lines.finish();
        last.into_iter().filter_map(|line| self.tags.read_signal(line)).collect()
    }

    fn raw_lines_unknown(&self) -> u64 {
        0 // every line is words: there is nothing to misunderstand
    }

    fn lines_cut(&self) -> u64 {
        self.lines.cut_count()
    }
}

/// The words of `run`, then the flags.
fn command_line(profile: &LaunchProfile) -> Result<Vec<String>, LaunchError> {
    let missing = || LaunchError::Missing { profile: profile.name.clone(), kind: "command", key: "run" };
    let run = profile.run.as_deref().ok_or_else(missing)?;
    let words =
        split(run).map_err(|problem| LaunchError::Words { profile: profile.name.clone(), problem })?;
    Ok(words.into_iter().chain(profile.flags.iter().cloned()).collect())
}

fn check_name(profile: &LaunchProfile, name: &str) -> Result<(), LaunchError> {
    let refuse = |problem: String| {
        Err(LaunchError::Placeholder { profile: profile.name.clone(), name: name.to_owned(), problem })
    };
    match name {
        "model" if profile.model.is_none() => refuse("has no value: the profile names no model".to_owned()),
        "prompt" => refuse("would show the prompt to everyone on the machine".to_owned()),
        known if PLACEHOLDERS.contains(&known) => Ok(()),
        // Braces are also what JSON and awk are made of, so only a likely slip is refused.
        other => match nearest_word(other, PLACEHOLDERS) {
            Some(word) => refuse(format!("is not known; did you mean `{{{word}}}`?")),
            None => Ok(()),
        },
    }
}

fn fill_template(brief: &LaunchRequest, word: &str) -> OsString {
    let mut filled = OsString::new();
    for piece in split_template(word) {
        match piece {
            TemplatePiece::Text(text) => filled.push(text),
            TemplatePiece::Name("model") => {
                filled.push(brief.profile.model.as_deref().expect("checked before"))
            }
            TemplatePiece::Name("workspace") => filled.push(&brief.workspace),
            TemplatePiece::Name("prompt_file") => filled.push(&brief.prompt_file),
            TemplatePiece::Name(other) => filled.push(format!("{{{other}}}")),
        }
    }
    filled
}

enum TemplatePiece<'a> {
    Text(&'a str),
    /// What stood between braces.
    Name(&'a str),
}

/// The word cut at `{name}`, where a name is lower-case letters and underscores.
fn split_template(word: &str) -> Vec<TemplatePiece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = word;
    let mut from = 0;
    while let Some(open) = rest[from..].find('{').map(|at| from + at) {
        let inner = &rest[open + 1..];
        let length = inner.bytes().take_while(|byte| byte.is_ascii_lowercase() || *byte == b'_').count();
        if length > 0 && inner[length..].starts_with('}') {
            pieces.push(TemplatePiece::Text(&rest[..open]));
            pieces.push(TemplatePiece::Name(&inner[..length]));
            rest = &inner[length + 1..];
            from = 0;
        } else {
            from = open + 1;
        }
    }
    pieces.push(TemplatePiece::Text(rest));
    pieces
}
