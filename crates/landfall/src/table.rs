//! Columns of text. The last one gives way when the terminal is narrow.

use std::io::IsTerminal;

use crate::say::{clean, shorten};

/// Where nobody says how wide it is, a cell ends here: a title of 10 kB is no title any more.
const CELL_COLUMNS_MAX: usize = 200;

/// Rows under a heading.
pub struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these columns.
    pub fn new(heading: &[&str]) -> Self {
        Self { heading: heading.iter().map(|cell| (*cell).to_owned()).collect(), rows: Vec::new() }
    }

    /// One more row. Cells are cleaned here.
    pub fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.row_of(&cells);
    }

    /// The same for a table whose number of columns is known only when it runs.
    pub fn row_of(&mut self, cells: &[&str]) {
        debug_assert_eq!(cells.len(), self.heading.len(), "a cell for each column");
        self.rows
            .push(cells.iter().map(|cell| shorten(&clean(cell), CELL_COLUMNS_MAX).into_owned()).collect());
    }

    /// As lines for stdout.
    pub fn text(&self) -> String {
        let columns = std::io::stdout().is_terminal().then(|| usize::from(console::Term::stdout().size().1));
        self.text_within(columns)
    }

    fn text_within(&self, columns: Option<usize>) -> String {
        let mut widths: Vec<usize> =
            self.heading.iter().map(|cell| console::measure_text_width(cell)).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(console::measure_text_width(cell));
            }
        }
        let last = widths.len() - 1;
        let before: usize = widths[..last].iter().map(|width| width + 2).sum();
        if let Some(columns) = columns {
            widths[last] = columns.saturating_sub(before).max(8); // narrower than that nothing can be read
        }
        let mut text = String::new();
        for row in std::iter::once(&self.heading).chain(&self.rows) {
            for (place, cell) in row.iter().enumerate() {
                if place == last {
                    text.push_str(&shorten(cell, widths[last]));
                } else {
                    text.push_str(cell);
                    text.push_str(&" ".repeat(widths[place] + 2 - console::measure_text_width(cell)));
                }
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn the_last_column_gives_way_and_wide_letters_are_counted() {
        let mut table = Table::new(&["TASK", "STATUS", "TITLE"]);
        table.row(["T1", "ready", "a title that is too long for it"]);
        table.row(["T10", "waiting", "日本\u{1b}[2J"]);
        table.row(["T11", "", ""]);
        assert_eq!(
            table.text_within(Some(24)),
            "TASK  STATUS   TITLE\nT1    ready    a title …\nT10   waiting  日本\\u{1…\nT11\n"
        );
        assert!(table.text_within(None).contains("a title that is too long for it"));
    }
}
