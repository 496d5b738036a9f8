//! The program the tests run: the bridges as `landfall` has them, and small agents to drive with them.

mod tiny_acp;
mod tiny_cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["bridge", name] => landfall_bridge::run_bridge(name).map_or(ExitCode::from(2), ExitCode::from),
        ["mcp", "--agent"] => ExitCode::from(landfall_bridge::mcp::serve_signal_tools()),
        ["attach", folder] => attach(folder),
        ["acp", ways @ ..] => tiny_acp::main(ways),
        ["cli", ways @ ..] => tiny_cli::main(ways),
        _ => ExitCode::from(2),
    }
}

/// Attaches to the terminal in this folder, as `landfall task attach` does.
fn attach(folder: &str) -> ExitCode {
    let terminal = landfall_agents::tmux::AttachTarget {
        folder: folder.into(),
        socket: landfall_agents::tmux::SOCKET.to_owned(),
        name: "landfall-T7".to_owned(),
    };
    let error = landfall_bridge::attach::attach_to_terminal(&terminal, false);
    eprintln!("{error}");
    ExitCode::from(9)
}
