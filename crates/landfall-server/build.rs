//! Puts the scripts and the style sheets of the pages into one file each, compressed, with a hash of what is in it. A page then
//! asks for two files, and a browser keeps them for as long as they are the same.
//!
//! The scripts are modules for people and for the type checker. Here each becomes a function, so that names of one do not clash
//! with those of another; what it exports is handed to those after it. Lines that are comments are left out.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

const SHEETS: [&str; 3] = ["style.css", "task.css", "more.css"];

/// Scripts that are no modules, first of all the one that must run before anything is drawn.
const PLAIN: [&str; 3] = ["theme.js", "htmx.js", "idiomorph.js"];

/// Modules, each after those that it imports.
const MODULES: [&str; 15] = [
    "times.js",
    "toasts.js",
    "theme-switch.js",
    "confirm.js",
    "morph.js",
    "add-task.js",
    "palette.js",
    "keys.js",
    "events.js",
    "notify.js",
    "log.js",
    "diff.js",
    "backlog.js",
    "title.js",
    "landfall.js",
];

fn main() {
    println!("cargo::rerun-if-changed=assets");
    let assets = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("assets");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let read = |name: &str| {
        let path = assets.join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()))
    };
    check_complete(&assets);

    let icon = data_url(&read("icon.svg"));
    let sheet: String = SHEETS.iter().map(|name| without_css_comments(&read(name))).collect();
    write(&out, "app.css", "STYLE", &sheet.replace("/assets/icon.svg", &icon));

    let mut script = String::new();
    for name in PLAIN {
        script.push_str(&read(name));
        script.push_str("\n;\n");
    }
    script.push_str("document.addEventListener(\"DOMContentLoaded\", () => {\n\"use strict\";\n");
    // Who is not signed in has nothing to follow.
    script.push_str("if (document.body.classList.contains(\"bare\")) return;\n");
    let mut before = BTreeSet::new();
    for name in MODULES {
        script.push_str(&function_of(name, &read(name), &before));
        before.insert(name);
    }
    script.push_str("});\n");
    write(&out, "app.js", "SCRIPT", &script);
}

/// Every script and sheet of the folder is in one of the lists.
fn check_complete(assets: &Path) {
    let listed: BTreeSet<&str> = SHEETS.into_iter().chain(PLAIN).chain(MODULES).collect();
    for entry in fs::read_dir(assets).expect("the folder of the assets is there") {
        let name = entry.expect("it can be read").file_name().into_string().expect("names are plain");
        let is_code = name.ends_with(".js") || name.ends_with(".css");
        assert!(!is_code || listed.contains(name.as_str()), "assets/{name} is in no list of build.rs");
    }
}

/// A module as a function that gives back what it exports.
fn function_of(name: &str, text: &str, before: &BTreeSet<&str>) -> String {
    let constant = |file: &str| format!("m_{}", file.trim_end_matches(".js").replace('-', "_"));
    let mut body = String::new();
    let mut exports: Vec<&str> = Vec::new();
    let mut is_comment = false;
    for line in text.lines() {
        let trimmed = line.trim_start();
        if is_comment || trimmed.starts_with("/**") {
            let end = trimmed.split_once("*/");
            is_comment = end.is_none();
            // A type may stand before code.
            if end.is_none_or(|(_, code)| code.trim().is_empty()) {
                continue;
            }
        }
        if trimmed.is_empty() || trimmed.starts_with("//") || line.starts_with("export {}") {
            continue;
        }
        if let Some(import) = line.strip_prefix("import ") {
            let (names, file) = match import.split_once(" from ") {
                Some((names, file)) => (Some(names), file),
                None => (None, import),
            };
            let file = file.trim_matches(['"', ';', '.', '/']).to_owned()
                + if file.contains(".js") { "" } else { ".js" };
            assert!(
                before.contains(file.as_str()),
                "{name} imports {file}, which comes after it in build.rs"
            );
            if let Some(names) = names {
                body.push_str(&format!("const {names} = {};\n", constant(&file)));
            }
            continue;
        }
        let line = match line.strip_prefix("export ") {
            Some(item) => {
                let mut words = item.split([' ', '(', '=']).filter(|word| !word.is_empty());
                let name = words.find(|word| !["async", "function", "const", "class"].contains(word));
                exports.extend(name);
                item
            }
            None => line,
        };
        body.push_str(line);
        body.push('\n');
    }
    format!("const {} = (() => {{\n{body}return {{ {} }};\n}})();\n", constant(name), exports.join(", "))
}

fn without_css_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        kept.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    let lines = kept.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// A picture within a sheet.
fn data_url(svg: &str) -> String {
    let mut url = String::from("data:image/svg+xml,");
    for byte in svg.trim().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b' ' | b'=' | b':' | b'/' | b'.' | b'-' | b',' => {
                url.push(char::from(byte));
            }
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

/// Writes a file, the same compressed, and says by the environment how it is called.
fn write(out: &Path, name: &str, variable: &str, text: &str) {
    let put = |name: &str, bytes: &[u8]| {
        let path = out.join(name);
        fs::write(&path, bytes).unwrap_or_else(|error| panic!("write {}: {error}", path.display()));
    };
    put(name, text.as_bytes());
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(text.as_bytes()).expect("memory can be written to");
    put(&format!("{name}.gz"), &packed.finish().expect("memory can be written to"));
    let hash = blake3::hash(text.as_bytes()).to_hex();
    let (stem, kind) = name.split_once('.').expect("it has an ending");
    println!("cargo::rustc-env=LANDFALL_{variable}={stem}-{}.{kind}", &hash[..12]);
}
