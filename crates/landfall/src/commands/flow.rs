//! `landfall project flow`: the flows there are, drawn and checked.

use std::path::PathBuf;

use landfall_api::{FlowCheck, FlowChecked, FlowForm, FlowList, FlowOrigin, FlowShow, Nothing, TypedService};
use landfall_text::control_chars::{escape_block, escape_line};

use super::words;
use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::say::{print_data, print_json};
use crate::table::Table;

/// List flows, show one or check a flow file
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: FlowSubcommand,
}

#[derive(clap::Subcommand)]
enum FlowSubcommand {
    /// List flows
    List,
    /// Show a flow as a drawing
    Show {
        /// Flow
        name: String,
        /// As a Mermaid diagram
        #[arg(long, conflicts_with = "source")]
        mermaid: bool,
        /// As its source file
        #[arg(long)]
        source: bool,
    },
    /// Check a flow
    Check {
        /// Flow file, the name of a flow, or `-` for stdin
        #[arg(value_name = "FILE|FLOW")]
        file: PathBuf,
    },
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    match args.action {
        FlowSubcommand::List => {
            let flows = context.open_service()?.flow_list(Nothing {})?;
            context.print_answer(&flows, render_flows)?;
            Ok(CliExit::Ok)
        }
        FlowSubcommand::Show { name, mermaid, source } => {
            let form = match (mermaid, source) {
                (true, _) => FlowForm::Mermaid,
                (_, true) => FlowForm::Source,
                (false, false) => FlowForm::Text,
            };
            let drawing = context.open_service()?.flow_show(FlowShow { name, form })?;
            context.print_answer(&drawing, |drawing| {
                let text = escape_block(&drawing.text);
                format!("{}\n", text.trim_end())
            })?;
            Ok(CliExit::Ok)
        }
        FlowSubcommand::Check { file } => {
            let name = file.display().to_string();
            // A file in the way wins: its path can be written in another way, the name of a flow cannot.
            let is_name = !name.contains(['/', '.']) && name != "-" && !context.path(&file).exists();
            let text = match is_name {
                true => {
                    context
                        .open_service()?
                        .flow_show(FlowShow { name: name.clone(), form: FlowForm::Source })?
                        .text
                }
                false => words::read_text(context, &file)?,
            };
            let checked = context.open_service()?.flow_check(FlowCheck { name, text })?;
            if context.json {
                print_json(&checked)?
            } else {
                print_data(&render_flow_problems(&checked))?
            }
            Ok(if checked.problems.is_empty() { CliExit::Ok } else { CliExit::Settings })
        }
    }
}

fn render_flows(list: &FlowList) -> String {
    let mut table = Table::new(&["FLOW", "FROM", "STEPS", "FOR"]);
    for flow in &list.flows {
        let from = match flow.origin {
            FlowOrigin::BuiltIn => "built in",
            FlowOrigin::Project => "project",
        };
        let name = if flow.default { format!("{} (default)", flow.name) } else { flow.name.clone() };
        let about = match &flow.not_yet {
            Some(reason) => format!("{} ({reason})", flow.about),
            None => flow.about.clone(),
        };
        table.add_row([&name, from, &flow.steps.len().to_string(), &about]);
    }
    table.to_text()
}

fn render_flow_problems(checked: &FlowChecked) -> String {
    let name = escape_line(&checked.name);
    if checked.problems.is_empty() {
        return format!("{name}: all is well\n");
    }
    let mut text = String::new();
    for problem in &checked.problems {
        let line = problem.line.map(|line| format!("{line}:")).unwrap_or_default();
        text += &format!("{name}:{line} {}\n", escape_line(&problem.message));
        if let Some(hint) = &problem.hint {
            text += &format!("    hint: {}\n", escape_line(hint));
        }
    }
    text
}
