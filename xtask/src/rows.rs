//! `cargo xtask rows`: the features of the five source systems, and the test or the decision that shows each.
//!
//! `xtask/rows.toml` is the registry. A row names tests that drive the program or its HTTP server from outside, or a decision that
//! says why Landfall does something else. The page `docs/design/0011-features.md` is generated from it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::test::{cargo, run_step};
use crate::web;

/// The rows that there are. None is added or removed without a reason.
const ROWS_COUNT: usize = 241;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["check", "run"]))]
pub struct RowsArgs {
    /// Count the rows that a test or a decision shows, and list the others
    #[arg(long)]
    check: bool,
    /// Run the tests of one row
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

pub fn run(args: &RowsArgs) -> Result<()> {
    let registry = RowRegistry::read()?;
    match &args.run {
        Some(id) => registry.run_tests(id),
        None => registry.check(),
    }
}

/// `xtask/rows.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowRegistry {
    /// Decisions about rows alone, by id (`D1`). Those called `C1` to `C45` are in `docs/design/0011-rows.md`.
    decisions: BTreeMap<String, String>,
    rows: BTreeMap<String, FeatureRow>,
}

/// A feature of a source system.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FeatureRow {
    feature: String,
    verdict: RowVerdict,
    #[serde(default)]
    tests: Vec<String>,
    decision: Option<String>,
    /// What an open row lacks, or what else a reader must know.
    note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RowVerdict {
    /// It works. A row without tests was seen to work, but no test shows it from outside.
    Works,
    /// A decision says why Landfall does something else.
    Decided,
    /// Something is missing.
    Open,
}

impl RowVerdict {
    const fn word(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Decided => "decided",
            Self::Open => "open",
        }
    }
}

impl FeatureRow {
    fn is_shown(&self) -> bool {
        match self.verdict {
            RowVerdict::Works => !self.tests.is_empty(),
            RowVerdict::Decided => self.decision.is_some(),
            RowVerdict::Open => false,
        }
    }

    /// The last column of the page.
    fn evidence(&self) -> String {
        let tests = self.tests.iter().map(|test| format!("`{test}`"));
        let decision = self.decision.iter().map(|id| format!("decision {id}"));
        let shown: Vec<String> = tests.chain(decision).collect();
        match (&self.note, shown.is_empty()) {
            (None, true) => "no test from outside yet".to_owned(),
            (None, false) => shown.join(", "),
            (Some(note), true) => note.clone(),
            (Some(note), false) => format!("{}; {note}", shown.join(", ")),
        }
    }
}

impl RowRegistry {
    fn read() -> Result<Self> {
        let path = root().join("xtask/rows.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("parse {}", path.display()))
    }

    fn shown_count(&self) -> usize {
        self.rows.values().filter(|row| row.is_shown()).count()
    }

    /// What is wrong with the registry itself: tests and decisions that do not exist, verdicts without evidence.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.rows.len() != ROWS_COUNT {
            faults.push(format!("{} rows, expected {ROWS_COUNT}", self.rows.len()));
        }
        let decided = fs::read_to_string(root().join("docs/design/0011-rows.md")).unwrap_or_default(); // none is known then
        for (id, row) in &self.rows {
            for test in &row.tests {
                if let Err(error) = TestAddress::find(test) {
                    faults.push(format!("{id}: {error}"));
                }
            }
            if let Some(decision) = &row.decision
                && !self.decisions.contains_key(decision)
                && !decided.contains(&format!("\n| {decision} | "))
            {
                faults.push(format!("{id}: there is no decision {decision}"));
            }
            match row.verdict {
                RowVerdict::Decided if row.decision.is_none() => {
                    faults.push(format!("{id}: decided, but names no decision"));
                }
                RowVerdict::Open if row.note.is_none() => {
                    faults.push(format!("{id}: open, but has no note that says what is missing"));
                }
                RowVerdict::Works | RowVerdict::Decided | RowVerdict::Open => {}
            }
        }
        faults
    }

    fn check(&self) -> Result<()> {
        for (id, row) in self.rows.iter().filter(|(_, row)| !row.is_shown()) {
            println!("{id}  {}: {} ({})", row.verdict.word(), row.feature, row.evidence());
        }
        println!("{}/{ROWS_COUNT}", self.shown_count());
        let mut faults = self.faults();
        if fs::read_to_string(page_path()).unwrap_or_default() != self.page() {
            faults.push(format!("{} is out of date: {BLESS}", page_path().display()));
        }
        if faults.is_empty() {
            return Ok(());
        }
        bail!("xtask/rows.toml has {} faults:\n  {}", faults.len(), faults.join("\n  "))
    }

    fn run_tests(&self, id: &str) -> Result<()> {
        let row =
            self.rows.get(id).with_context(|| format!("there is no row `{id}`; ids look like `V1-01`"))?;
        if row.tests.is_empty() {
            bail!("{id} has no test ({}: {})", row.verdict.word(), row.evidence());
        }
        for test in &row.tests {
            let address = TestAddress::find(test)?;
            if address.package == BROWSER {
                web::run_alone(&[address.name])?;
                continue;
            }
            let filter = format!("test(/^{}::{}(::|$)/)", address.module, address.name);
            let mut nextest = cargo(&["nextest", "run", "--profile", "xtask", "--package", &address.package]);
            nextest.args(["--test", &address.target, "-E", &filter]);
            run_step(test, nextest)?;
        }
        Ok(())
    }

    /// The page for readers.
    fn page(&self) -> String {
        let mut page = format!(
            "# 0011: Features of the source systems\n\n\
             Generated from `xtask/rows.toml`; `LANDFALL_BLESS=1 cargo test -p xtask rows` writes it again. Do not edit it.\n\n\
             Landfall takes the place of five systems. This table lists their features. A feature counts as shown if a test\n\
             drives the program or its server from outside and checks the feature, or if a decision says why Landfall does\n\
             something else. `cargo xtask rows --check` lists the others, and `cargo xtask rows --run ID` runs the tests of a row.\n\n\
             Shown: {} of {ROWS_COUNT}.\n\n\
             | Row | Feature | Verdict | Shown by, or what is missing |\n|---|---|---|---|\n",
            self.shown_count()
        );
        for (id, row) in &self.rows {
            let line = format!("| {id} | {} | {} | {} |", row.feature, row.verdict.word(), row.evidence());
            let _ = writeln!(page, "{line}"); // a String takes everything
        }
        page.push_str("\n## Decisions\n\nC1 to C45 are in [0011-rows.md](0011-rows.md).\n\n");
        for (id, text) in &self.decisions {
            let _ = writeln!(page, "- {id}: {text}"); // as above
        }
        page
    }
}

/// What the first part of an address is called for the tests in a browser.
const BROWSER: &str = "browser";

/// Where a test is: `landfall::it::by_hand::name`, or `browser::story::title`.
#[derive(Debug)]
struct TestAddress {
    package: String,
    target: String,
    module: String,
    name: String,
}

impl TestAddress {
    /// The address, if its source declares the test.
    fn find(text: &str) -> Result<Self> {
        let parts: Vec<&str> = text.split("::").collect();
        let (address, path, declared) = match parts[..] {
            [BROWSER, module, title] => {
                let path = root().join("browser/tests").join(format!("{module}.spec.ts"));
                (Self::new(BROWSER, "", module, title), path, format!("test(\"{title}\""))
            }
            [package, target, module, name] => {
                let folder = root().join("crates").join(package).join("tests").join(target);
                let path = folder.join(format!("{module}.rs"));
                (Self::new(package, target, module, name), path, format!("fn {name}("))
            }
            _ => bail!(
                "`{text}` is no test: expected `package::target::module::name` or `browser::file::title`"
            ),
        };
        let source =
            fs::read_to_string(&path).with_context(|| format!("`{text}`: read {}", path.display()))?;
        if !source.contains(&declared) {
            bail!("there is no test `{text}`: `{declared}` is not in {}", path.display());
        }
        Ok(address)
    }

    fn new(package: &str, target: &str, module: &str, name: &str) -> Self {
        let [package, target, module, name] = [package, target, module, name].map(str::to_owned);
        Self { package, target, module, name }
    }
}

/// How the page is written again.
const BLESS: &str = "run `LANDFALL_BLESS=1 cargo test -p xtask rows`";

fn page_path() -> PathBuf {
    root().join("docs/design/0011-features.md")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_tests_and_decisions_that_exist() {
        let faults = RowRegistry::read().expect("the registry").faults();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn the_page_of_features_is_up_to_date() {
        let page = RowRegistry::read().expect("the registry").page();
        if std::env::var_os("LANDFALL_BLESS").is_some() {
            fs::write(page_path(), &page).expect("write the page");
        }
        assert!(fs::read_to_string(page_path()).is_ok_and(|written| written == page), "out of date: {BLESS}");
    }

    #[test]
    fn a_test_that_does_not_exist_is_a_fault() {
        for wrong in
            ["landfall::it::rows::nowhere", "landfall::it::nowhere::name", "browser::story::none", "rows"]
        {
            assert!(TestAddress::find(wrong).is_err(), "{wrong}");
        }
    }
}
