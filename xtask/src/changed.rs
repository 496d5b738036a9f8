//! The tests that a change touches, as nextest filter expressions.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// One filter for each test module that was changed or added since `base`.
pub fn test_filters(base: &str) -> Result<BTreeSet<String>> {
    let changed = git_lines(&["diff", "--name-only", "--diff-filter=d", base])?;
    let added = git_lines(&["ls-files", "--others", "--exclude-standard"])?;
    Ok(changed.iter().chain(&added).filter_map(|path| module_filter(path)).collect())
}

fn git_lines(args: &[&str]) -> Result<Vec<String>> {
    let output = Command::new("git").args(args).output().context("start git")?;
    if !output.status.success() {
        bail!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// `crates/landfall/tests/it/killed.rs` is the module `killed` of the test binary `it` of `landfall`.
fn module_filter(path: &str) -> Option<String> {
    let (package, rest) = path.strip_prefix("crates/")?.split_once("/tests/")?;
    let (binary, file) = rest.split_once('/')?;
    let module = file.strip_suffix(".rs")?.split('/').next()?;
    let tests = format!("package({package}) & binary({binary})");
    Some(match module {
        "main" | "support" => format!("({tests})"), // every test of the binary uses it
        module => format!("({tests} & test(/^{module}::/))"),
    })
}

#[cfg(test)]
mod tests {
    use super::module_filter;

    #[test]
    fn a_test_file_selects_its_module_and_shared_code_selects_the_binary() {
        let filter = |path| module_filter(path).unwrap_or_default();
        assert_eq!(
            filter("crates/landfall/tests/it/killed.rs"),
            "(package(landfall) & binary(it) & test(/^killed::/))"
        );
        assert_eq!(
            filter("crates/landfall-trackers/tests/it/modules/edits.rs"),
            "(package(landfall-trackers) & binary(it) & test(/^modules::/))"
        );
        assert_eq!(filter("crates/landfall/tests/it/support.rs"), "(package(landfall) & binary(it))");
        assert_eq!(filter("crates/landfall/src/main.rs"), "");
    }
}
