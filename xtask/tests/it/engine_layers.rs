//! The modules that carry out orders import only downwards. Rust compiles a cycle of modules, so a test has to find it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The modules that carry out orders, lowest first. Each may import those before it, also by way of other modules.
const LAYERS: [&str; 7] = ["land", "gate", "queue", "publish", "follow", "launch", "perform"];

/// Modules and the modules that they import.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository").to_owned()
}

/// Every Rust file below `folder`, by its path from there.
fn files_below(folder: &Path, at: &Path, files: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(at).expect("the sources are there") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            files_below(folder, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(folder).expect("below the folder").to_string_lossy().into_owned();
            files.insert(name, std::fs::read_to_string(&path).expect("Rust is UTF-8"));
        }
    }
}

/// The text without comments and without tests at its end.
fn code_of(text: &str) -> String {
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let code = lines.map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

/// The first names behind each `prefix`: one, or those of a list in braces.
fn names_behind(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        // `super::` within `super::super::`, or at the end of another word.
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == ':') {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let name = |text: &str| {
            text.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect::<String>()
        };
        let Some(list) = rest.strip_prefix('{') else {
            names.insert(name(rest));
            continue;
        };
        let (mut depth, mut part) = (1, String::new());
        for char in list.chars() {
            match char {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => {
                    names.insert(name(part.trim_start()));
                    part.clear();
                    continue;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
            part.push(char);
        }
        names.insert(name(part.trim_start()));
    }
    names
}

/// What the root of a crate declares in other modules: `pub use launch::check_terminal` leads to `launch`.
fn reexports(root_file: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for import in code_of(root_file).split(';').filter_map(|part| part.trim().strip_prefix("pub use ")) {
        if let Some((module, names)) = import.split_once("::") {
            let names = names.trim_matches(|char| matches!(char, '{' | '}'));
            found.extend(names.split(',').map(|name| (name.trim().to_owned(), module.to_owned())));
        }
    }
    found
}

/// The imports between the modules at the root of a crate; files below a module are part of it.
fn imports(files: &BTreeMap<String, String>) -> Imports {
    let reexports = reexports(&files["lib.rs"]);
    let mut imports = Imports::new();
    for (path, text) in files.iter().filter(|(path, _)| *path != "lib.rs" && !path.ends_with("tests.rs")) {
        let stem = path.trim_end_matches(".rs").trim_end_matches("/mod");
        let module = stem.split('/').next().expect("a path has a first part");
        let up = "super::".repeat(stem.split('/').count());
        let code = code_of(text);
        let names = names_behind(&code, "crate::").into_iter().chain(names_behind(&code, &up));
        let names = names.map(|name| reexports.get(&name).cloned().unwrap_or(name));
        imports.entry(module.to_owned()).or_default().extend(names.filter(|name| name != module));
    }
    let modules: BTreeSet<String> = imports.keys().cloned().collect();
    imports.values_mut().for_each(|names| names.retain(|name| modules.contains(name)));
    imports
}

/// All modules that a module imports, directly or by way of others.
fn reachable(imports: &Imports, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for name in &imports[module] {
            if found.insert(name.clone()) {
                open.push(name);
            }
        }
    }
    found
}

/// The strongly connected components of more than one module: each of them reaches all of them.
fn cycles(imports: &Imports) -> BTreeSet<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<String>> =
        imports.keys().map(|module| (module, reachable(imports, module))).collect();
    let component = |module: &String| -> BTreeSet<String> {
        let others = reached[module].iter().filter(|other| reached[*other].contains(module));
        others.chain([module]).cloned().collect()
    };
    imports.keys().map(component).filter(|component| component.len() > 1).collect()
}

/// What is wrong with the imports of a crate.
fn problems(imports: &Imports) -> Vec<String> {
    let is_layer = |module: &String| LAYERS.contains(&module.as_str());
    let mut problems = Vec::new();
    for cycle in cycles(imports) {
        if cycle.iter().filter(|module| is_layer(module)).count() > 1 {
            problems.push(format!("these modules import each other: {cycle:?}"));
        }
    }
    for (place, layer) in LAYERS.iter().enumerate() {
        let reached = reachable(imports, layer);
        for above in LAYERS[place + 1..].iter().filter(|above| reached.contains(**above)) {
            problems.push(format!("`{layer}` imports `{above}`, which is above it"));
        }
    }
    // What a worker on another host needs must not lead to what only an engine has.
    for module in ["host_context", "follow", "launch", "workspace", "papers", "module", "confine", "ports"] {
        if imports[module].contains("engine_context") {
            problems.push(format!("`{module}` imports `engine_context`, which only an engine has"));
        }
    }
    problems
}

fn engine_imports() -> Imports {
    let folder = root().join("crates/landfall-engine/src");
    let mut files = BTreeMap::new();
    files_below(&folder, &folder, &mut files);
    imports(&files)
}

#[test]
fn modules_of_the_engine_import_only_downwards() {
    let imports = engine_imports();
    assert!(LAYERS.iter().all(|layer| imports.contains_key(*layer)), "a layer is gone: say so in this test");
    assert_eq!(problems(&imports), Vec::<String>::new());
}

#[test]
fn an_import_upwards_is_found() {
    for import in ["crate::launch::begin", "crate::{gate, launch}", "super::launch", "crate::Begun"] {
        let file = |text: &str| format!("{text}\n#[cfg(test)]\nmod tests {{ use crate::perform; }}\n");
        let mut files: BTreeMap<String, String> =
            LAYERS.iter().map(|layer| (format!("{layer}.rs"), file(""))).collect();
        for module in ["host_context", "workspace", "papers", "module", "confine", "ports"] {
            files.insert(format!("{module}.rs"), file("// use crate::perform;"));
        }
        files.insert("lib.rs".to_owned(), "pub use launch::{Begun, Ended};\n".to_owned());
        assert_eq!(problems(&imports(&files)), Vec::<String>::new());
        // By way of a module that is in no layer, and of a file below one that is.
        files.insert("helper.rs".to_owned(), file(&format!("use {import};")));
        files.insert("land/follow_base.rs".to_owned(), file("use crate::helper;"));
        files.insert("launch.rs".to_owned(), file("use crate::land;"));
        let problems = problems(&imports(&files));
        assert!(problems.contains(&"`land` imports `launch`, which is above it".to_owned()), "{problems:?}");
        assert!(problems.iter().any(|problem| problem.starts_with("these modules import each other")));
    }
}
