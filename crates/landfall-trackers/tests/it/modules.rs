//! Module folders, from outside: formats by fixtures, folders on a real disk with real processes.

mod edits;
mod folders;
mod formats;
mod papers;
mod processes;
mod projection;

use std::fs;
use std::path::{Path, PathBuf};

use landfall_model::Timestamp;
use landfall_trackers::modules::folder::ModuleKind;
use landfall_trackers::modules::{MetadataFormat, ModuleLocation};

/// 2026-03-10T12:00:00Z.
pub(crate) const NOW: Timestamp = Timestamp(1_773_144_000_000);

pub(crate) fn fixtures(folder: &str) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/modules").join(folder);
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(&dir)
        .expect("the fixtures are there")
        .map(|entry| {
            let entry = entry.expect("the folder can be read");
            let name = entry.file_name().into_string().expect("names are plain");
            (format!("{folder}/{name}"), fs::read(entry.path()).expect("a fixture can be read"))
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no fixtures in {folder}");
    files
}

pub(crate) fn fixture(path: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/modules").join(path);
    fs::read_to_string(&file).expect("the fixture is there")
}

pub(crate) const FORMS: [(&str, MetadataFormat); 3] = [
    ("index-md", MetadataFormat::IndexMd),
    ("index-json", MetadataFormat::IndexJson),
    ("status-json", MetadataFormat::StatusJson),
];

/// A project with one module whose metadata has these bytes.
pub(crate) fn module(project: &Path, form: MetadataFormat, metadata: &[u8]) -> ModuleLocation {
    let (path, sort) = match form {
        MetadataFormat::IndexMd => ("TASK/m", ModuleKind::Task),
        MetadataFormat::IndexJson => ("AiTasks/m", ModuleKind::AiTasks),
        MetadataFormat::StatusJson => (".worktrees/task-m/.working", ModuleKind::Notebook),
    };
    fs::create_dir_all(project.join(path)).expect("a scratch folder can be made");
    fs::write(project.join(path).join(form.file_name()), metadata).expect("a scratch file can be written");
    ModuleLocation { root: project.to_owned(), path: PathBuf::from(path), name: "m".to_owned(), sort }
}
