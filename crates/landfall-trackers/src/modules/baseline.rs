//! `.convergence-baseline.md`: the requirements that stages are measured against.

use super::problem::{ModuleFormatError, ModuleLineProblem};
use super::target::ModuleWeight;
use super::text::{format_cell, is_rule, split_cells};

/// The most requirements a baseline holds; more cannot be judged one by one.
pub const ROWS_MAX: usize = 30;

/// A requirement to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineRow {
    /// Its number.
    pub r: u32,
    /// What must hold.
    pub text: String,
    /// How much it weighs.
    pub weight: ModuleWeight,
    /// The objective it comes from.
    pub source: String,
}

/// What stages are measured against.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Baseline {
    /// What it was made from.
    pub generated_from: String,
    /// When it last changed.
    pub updated: String,
    /// The requirements, in order.
    pub rows: Vec<BaselineRow>,
}

impl Baseline {
    /// Reads the file; `file` is its name in messages.
    ///
    /// # Errors
    /// A row that is not understood, a number that is there twice, more rows than are allowed, or none.
    pub fn read(file: &str, text: &str) -> Result<Self, ModuleFormatError> {
        Self::parse_text(text).map_err(|bad| bad.in_file(file))
    }

    fn parse_text(text: &str) -> Result<Self, ModuleLineProblem> {
        let mut baseline = Self::default();
        for (line, content) in (1..).zip(text.lines()) {
            if let Some(value) = labelled_value(content, "generated from") {
                baseline.generated_from = value;
            } else if let Some(value) = labelled_value(content, "updated") {
                baseline.updated = value;
            } else if let Some(cells) = split_cells(content) {
                let is_head = cells.first().is_some_and(|cell| cell == "#");
                if !is_head && !is_rule(&cells) {
                    let row = parse_row(line, &cells)?;
                    if baseline.rows.iter().any(|it| it.r == row.r) {
                        return Err(ModuleLineProblem::new(line, format!("R{} is there twice", row.r))
                            .with_hint("number them through"));
                    }
                    baseline.rows.push(row);
                }
            }
        }
        match baseline.rows.len() {
            0 => Err(ModuleLineProblem::new(1, "the baseline has no requirements")
                .with_hint("a row is `| R1 | what must hold | critical | where it comes from |`")),
            many if many > ROWS_MAX => Err(ModuleLineProblem::new(
                1,
                format!("{many} requirements; at most {ROWS_MAX} can be measured"),
            )
            .with_hint("bring small ones together")),
            _ => Ok(baseline),
        }
    }

    /// The file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = format!(
            "# Convergence Baseline\n\n*Generated from*: {}\n*Updated*: {}\n\n| # | Requirement | Weight | Source |\n|---|---|---|---|\n",
            self.generated_from, self.updated
        );
        for row in &self.rows {
            out.push_str(&format!(
                "| R{} | {} | {} | {} |\n",
                row.r,
                format_cell(&row.text),
                row.weight,
                format_cell(&row.source)
            ));
        }
        out
    }
}

fn parse_row(line: usize, cells: &[String]) -> Result<BaselineRow, ModuleLineProblem> {
    let [number, text, weight, source] = cells else {
        return Err(ModuleLineProblem::new(line, format!("the row has {} cells, not 4", cells.len()))
            .with_known("#, Requirement, Weight, Source"));
    };
    let r = number.strip_prefix(['R', 'r']).unwrap_or(number).parse().map_err(|_| {
        ModuleLineProblem::new(
            line,
            format!("`{}` is no number of a requirement", super::problem::shorten_text(number)),
        )
        .with_known("R1, R2, …")
    })?;
    let weight = weight
        .parse()
        .map_err(|error: super::target::UnknownWeight| ModuleLineProblem::new(line, error.to_string()))?;
    Ok(BaselineRow { r, text: text.clone(), weight, source: source.clone() })
}

/// The value of `*Label*: value`, however it is emphasised.
fn labelled_value(line: &str, label: &str) -> Option<String> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim().trim_start_matches(['-', '>', ' ']).trim_matches('*').trim_matches('_');
    name.eq_ignore_ascii_case(label).then(|| value.trim().trim_matches('*').trim().to_owned())
}
