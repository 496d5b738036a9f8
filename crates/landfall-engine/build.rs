//! Embeds the built-in flows and prompts: every file of the two folders, so that adding one is adding a file.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

fn main() {
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = Path::new(&here).join("../..");
    let mut out = String::new();
    embed(&mut out, "FLOWS", "Flow files by name.", &root.join("flows"), "toml");
    embed(&mut out, "PROMPTS", "Prompt templates by name.", &root.join("prompts"), "md");
    let target = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&target).join("embedded.rs"), out).expect("write the embedded files");
}

fn embed(out: &mut String, constant: &str, about: &str, folder: &Path, extension: &str) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("read `{}`: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("list the folder").path()).collect();
    files.retain(|file| file.extension() == Some(OsStr::new(extension)));
    files.sort();
    writeln!(out, "/// {about}\npub const {constant}: &[(&str, &str)] = &[").expect("write to a string");
    for file in files {
        let name = file.file_stem().and_then(OsStr::to_str).expect("built-in files have plain names");
        let text =
            fs::read_to_string(&file).unwrap_or_else(|error| panic!("read `{}`: {error}", file.display()));
        writeln!(out, "    ({name:?}, {text:?}),").expect("write to a string");
    }
    writeln!(out, "];").expect("write to a string");
}
