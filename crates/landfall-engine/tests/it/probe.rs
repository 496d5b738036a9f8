//! The sitter of the integration tests.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    match words.as_slice() {
        [_, word, dir] if word == "sit" => {
            ExitCode::from(landfall_engine::host::sitter::run_sitter(Path::new(dir)))
        }
        _ => ExitCode::from(2),
    }
}
