//! Which items the program can reach: by name, from `main` and from the items that exist for tests. Two items of one name are taken
//! for one, so what is listed is certainly not reached, and more may be.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Item, ItemKind, SourceTree};

/// Public items that `main` does not reach, as `name (place)`.
#[derive(Debug, Default)]
pub struct Unreached {
    pub by_tests: Vec<String>,
    pub by_nothing: Vec<String>,
}

/// `called_by_tests` are the names of items that count as reached.
pub fn find_unreached(tree: &SourceTree, called_by_tests: &[&str]) -> Unreached {
    let mut by_name: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
    let mut pending: Vec<&str> = called_by_tests.to_vec();
    pending.push("main");
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    for item in tree.production().flat_map(|file| &file.items) {
        by_name.entry(&item.name).or_default().push(item);
        if item.kind == ItemKind::Always {
            pending.extend(item.uses.iter().map(String::as_str));
        }
    }
    // Methods that a trait declares are called by whoever knows the trait; templates call what they name.
    pending.extend(tree.template_words.iter().map(String::as_str));
    while let Some(name) = pending.pop() {
        if reached.insert(name) {
            let items = by_name.get(name).into_iter().flatten();
            pending.extend(items.flat_map(|item| &item.uses).map(String::as_str));
        }
    }
    let mut used_by_tests: BTreeSet<&str> = BTreeSet::new();
    for file in tree.production() {
        used_by_tests.extend(file.test_uses.iter().map(String::as_str));
    }
    for file in tree.tests() {
        let names = file.items.iter().flat_map(|item| &item.uses).chain(&file.test_uses);
        used_by_tests.extend(names.map(String::as_str));
    }
    let mut unreached = Unreached::default();
    for file in tree.production() {
        let is_declared = |item: &&Item| !matches!(item.kind, ItemKind::TraitImpl | ItemKind::Always);
        for item in file.items.iter().filter(is_declared) {
            let name = item.name.as_str();
            if !item.is_public || reached.contains(name) {
                continue;
            }
            let line = format!("{name} ({})", file.place(item.line));
            match used_by_tests.contains(name) {
                true => unreached.by_tests.push(line),
                false => unreached.by_nothing.push(line),
            }
        }
    }
    unreached
}
