//! Flow files: the built-in ones, a project's own, and how they are read.
//!
//! A flow is checked when it is loaded. What is wrong with it is said with the file, the line and a hint; whether the
//! graph makes sense is for the model to say ([`Flow::find_problems`]).

mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use landfall_model::Flow;

pub use read::parse_flow;

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

pub(crate) use embedded::PROMPTS;

/// Files larger than this are not flows.
const FILE_BYTES_MAX: u64 = 1024 * 1024; // the built-in ones are a few kilobytes

/// Something wrong with a flow file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowError {
    /// The file.
    pub file: String,
    /// The line, from 1, if it is about one.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for FlowError {}

/// All flows of a project.
#[derive(Debug, Clone, Default)]
pub struct FlowCatalogue {
    /// Those that can be followed, by name.
    pub flows: BTreeMap<String, Arc<Flow>>,
    /// What they were read from, by name. Broken ones are here too.
    pub sources: BTreeMap<String, String>,
    /// What is wrong with the others. A broken file hides the built-in flow of its name: falling back to another flow
    /// than the one that was written would be a surprise.
    pub errors: Vec<FlowError>,
}

/// The built-in flow files by name.
#[must_use]
pub fn built_in() -> BTreeMap<String, String> {
    embedded::FLOWS.iter().map(|&(name, source)| (name.to_owned(), source.to_owned())).collect()
}

/// The built-in flows, and those of a project's own folder, which win by name. A folder that is not there is empty.
#[must_use]
pub fn load_flows(project_override_dir: Option<&Path>) -> FlowCatalogue {
    let mut loaded = FlowCatalogue::default();
    for (name, source) in built_in() {
        loaded.add_flow(&format!("flows/{name}.toml"), name, source);
    }
    let Some(folder) = project_override_dir else { return loaded };
    let shown = |path: &Path| path.display().to_string();
    let files = match files_in(folder, "toml") {
        Ok(files) => files,
        Err(error) => {
            loaded.errors.push(read_error(shown(folder), &error));
            return loaded;
        }
    };
    for (name, file) in files {
        loaded.remove_flow(&name);
        match read_bounded(&file, FILE_BYTES_MAX) {
            Ok(source) => loaded.add_flow(&shown(&file), name, source),
            Err(error) => loaded.errors.push(read_error(shown(&file), &error)),
        }
    }
    loaded
}

impl FlowCatalogue {
    fn add_flow(&mut self, file: &str, name: String, source: String) {
        match parse_flow(&source, file) {
            Ok(flow) => {
                self.flows.insert(name.clone(), Arc::new(flow)); // a built-in one of that name gives way
            }
            Err(errors) => self.errors.extend(errors),
        }
        self.sources.insert(name, source);
    }

    fn remove_flow(&mut self, name: &str) {
        self.flows.remove(name);
        self.sources.remove(name);
    }
}

fn read_error(file: String, error: &io::Error) -> FlowError {
    FlowError { file, line: None, message: format!("read it: {error}"), hint: None }
}

/// The files of a folder with this extension, by stem, in order. None when the folder is not there.
pub(crate) fn files_in(folder: &Path, extension: &str) -> io::Result<BTreeMap<String, PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let mut files = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension)
            && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
        {
            files.insert(name.to_owned(), path);
        }
    }
    Ok(files)
}

/// The text of a file that is not larger than it can sensibly be.
pub(crate) fn read_bounded(file: &Path, bytes_max: u64) -> io::Result<String> {
    landfall_host::user_file::read_user_text(file, bytes_max)
}
