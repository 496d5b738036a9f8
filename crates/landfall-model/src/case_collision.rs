//! Names that are one to a file system which does not tell large letters from small ones.
//!
//! A commit can hold both; such a disk holds one of them, and git shows the other one as changed for ever. Worse, a file
//! `LANDFALL.toml` is read there as the settings.

use std::collections::HashMap;

/// Names of the root that programs look up in this spelling, and that no other spelling may take.
const SPELLED: [&str; 4] = ["landfall.toml", ".landfall", ".gitignore", ".gitattributes"];

/// A path of the work, and the one whose place it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseCollision {
    /// It is new or changed.
    pub path: String,
    /// It is in the same tree, or is a name that programs look up.
    pub other: String,
}

/// The first collision that `changed` paths bring into a tree with `all` paths, folders included. One that the base has
/// already does not count.
#[must_use]
pub fn find_case_collision<'p>(
    changed: impl IntoIterator<Item = &'p str>,
    all: impl IntoIterator<Item = &'p str>,
) -> Option<CaseCollision> {
    let mut by_folded: HashMap<String, Vec<&str>> = HashMap::new();
    for path in all {
        by_folded.entry(fold_case(path)).or_default().push(path);
    }
    let spelled = |path: &str| {
        SPELLED
            .into_iter()
            .find(|spelled| *spelled != path && fold_case(spelled) == fold_case(path))
            .map(str::to_owned)
    };
    let in_tree = |path: &str| {
        let same = by_folded.get(&fold_case(path)).into_iter().flatten();
        same.copied().find(|other| *other != path).map(str::to_owned)
    };
    // A changed path brings the folders above it.
    changed.into_iter().flat_map(with_folders).find_map(|path| {
        let other = spelled(path).or_else(|| in_tree(path))?;
        Some(CaseCollision { path: path.to_owned(), other })
    })
}

fn with_folders(path: &str) -> impl Iterator<Item = &str> {
    let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
    folders.chain([path])
}

/// As a file system compares that folds case: nearly so, which is enough to be careful.
fn fold_case(path: &str) -> String {
    path.chars().flat_map(char::to_lowercase).flat_map(char::to_uppercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(changed: &[&str], others: &[&str], expected: Option<(&str, &str)>) {
        let all = changed.iter().chain(others).copied();
        let found = find_case_collision(changed.iter().copied(), all);
        let found = found.map(|CaseCollision { path, other }| (path, other));
        let expected = expected.map(|(path, other)| (path.to_owned(), other.to_owned()));
        assert_eq!(found, expected, "{changed:?} beside {others:?}");
    }

    #[test]
    fn a_new_path_collides_with_one_that_differs_in_case_only() {
        check(&["README.md"], &["readme.md"], Some(("README.md", "readme.md")));
        check(&["a.txt"], &["b.txt", "a/A.txt"], None);
        check(&["src/Lib/x.rs"], &["src/lib", "src/lib/y.rs"], Some(("src/Lib", "src/lib")));
        check(&["STRASSE"], &["straße"], Some(("STRASSE", "straße")));
        check(&["new.txt"], &["Old.txt", "old.txt"], None);
    }

    #[test]
    fn a_folder_collides_with_a_file() {
        check(&["Build/out"], &["build"], Some(("Build", "build")));
    }

    #[test]
    fn names_that_programs_look_up_cannot_be_spelled_otherwise() {
        for path in ["LANDFALL.toml", "Landfall.TOML", ".LANDFALL/flows/a.toml", ".GitAttributes"] {
            let all = [path];
            assert!(find_case_collision(all, all).is_some(), "{path}");
        }
        check(&["landfall.toml", "docs/Landfall.toml"], &[], None);
    }
}
