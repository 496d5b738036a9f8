//! `.hooks.md`: a shell command for each status, under `## on_<status>`.

use std::collections::BTreeMap;

use super::problem::{ModuleFormatError, ModuleLineProblem};
use super::record::ModuleStatus;
use super::text::parse_heading;

/// The commands of a file, by the status they are run on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModuleHooks {
    /// The command of each status.
    pub commands: BTreeMap<String, String>,
    /// Sections that are not understood.
    pub warnings: Vec<ModuleFormatError>,
}

impl ModuleHooks {
    /// Reads the file; `file` is its name in messages.
    #[must_use]
    pub fn read(file: &str, text: &str) -> Self {
        let mut hooks = Self::default();
        let mut open: Option<String> = None;
        let mut fenced = false;
        for (line, content) in (1..).zip(text.lines()) {
            if content.trim_start().starts_with("```") {
                fenced = !fenced;
                continue;
            }
            // Inside a block of code `#` begins a comment of the shell.
            if !fenced && let Some((_, title)) = parse_heading(content) {
                open = None;
                let Some(word) = title.strip_prefix("on_") else { continue };
                match word.parse::<ModuleStatus>() {
                    Ok(status) => open = Some(status.wire_name().to_owned()),
                    Err(_) => {
                        let message = format!("`{}` is not a status", super::problem::shorten_text(word));
                        hooks.warnings.push(
                            ModuleLineProblem::new(line, message)
                                .with_known(ModuleStatus::list_known())
                                .in_file(file),
                        );
                    }
                }
                continue;
            }
            let command = if fenced { content } else { content.trim().trim_matches('`') };
            if let Some(status) = &open
                && !command.trim().is_empty()
            {
                let all = hooks.commands.entry(status.clone()).or_default();
                if !all.is_empty() {
                    all.push('\n');
                }
                all.push_str(command);
            }
        }
        hooks
    }
}
