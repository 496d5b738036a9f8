//! Columns of text: numbers end in line, statuses have the colour of their meaning, and wide cells give way when the terminal
//! is narrow.

use console::measure_text_width;
use landfall_text::control_chars::escape_line;

use crate::say::shorten_to_columns;
use crate::tone::{self, TextTone, paint_text};

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
    pub fn add_row<const N: usize>(&mut self, cells: [&str; N]) {
        self.add_row_slice(&cells);
    }

    /// The same for a table whose number of columns is known only when it runs.
    pub fn add_row_slice(&mut self, cells: &[&str]) {
        debug_assert_eq!(cells.len(), self.heading.len(), "a cell for each column");
        self.rows.push(
            cells
                .iter()
                .map(|cell| shorten_to_columns(&escape_line(cell), CELL_COLUMNS_MAX).into_owned())
                .collect(),
        );
    }

    /// As lines for stdout.
    pub fn to_text(&self) -> String {
        self.to_text_within(tone::terminal_columns())
    }

    fn to_text_within(&self, columns: Option<usize>) -> String {
        let rows = || std::iter::once(&self.heading).chain(&self.rows);
        let mut widths: Vec<usize> = vec![0; self.heading.len()];
        for row in rows() {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(measure_text_width(cell));
            }
        }
        let last = widths.len() - 1;
        if let Some(columns) = columns {
            fit_widths(&mut widths, columns);
        }
        let right: Vec<bool> = (0..widths.len()).map(|place| place < last && self.is_number(place)).collect();
        let mut text = String::new();
        for (number, row) in rows().enumerate() {
            let mut line = String::new();
            for (place, cell) in row.iter().enumerate() {
                let limited = columns.is_some() || place < last;
                let cell = if limited { shorten_to_columns(cell, widths[place]) } else { cell.into() };
                let room = " ".repeat(widths[place].saturating_sub(measure_text_width(&cell)));
                let shown = if number == 0 {
                    paint_text(TextTone::Dim, &cell)
                } else {
                    self.paint_cell(place, &cell)
                };
                match right[place] {
                    true => line += &(room + &shown),
                    false if place == last => line += &shown,
                    false => line += &(shown + &room),
                }
                if place < last {
                    line += "  ";
                }
            }
            text += line.trim_end_matches(' ');
            text.push('\n');
        }
        text
    }

    /// Whether all that is in a column are numbers, which are compared more easily by their ends.
    fn is_number(&self, column: usize) -> bool {
        let mut cells =
            self.rows.iter().map(|row| row[column].as_str()).filter(|cell| !cell.is_empty()).peekable();
        self.heading[column] != "COMMIT" && cells.peek().is_some() && cells.all(is_number)
    }

    /// A cell in the colour of what it says, in columns that say how something stands.
    fn paint_cell(&self, column: usize, cell: &str) -> String {
        let tone = match self.heading[column].as_str() {
            "STATUS" | "STATE" | "OUTCOME" | "RESULT" | "DOING" => TextTone::for_word(cell),
            _ => None,
        };
        tone.map_or_else(|| cell.to_owned(), |tone| paint_text(tone, cell))
    }
}

/// Takes columns from the last cell first, then from the widest ones, until a row fits.
fn fit_widths(widths: &mut [usize], columns: usize) {
    const CELL_MIN: usize = 8; // narrower than that nothing can be read
    let gaps = 2 * (widths.len() - 1);
    let mut over = (widths.iter().sum::<usize>() + gaps).saturating_sub(columns);
    let last = widths.len() - 1;
    let taken = over.min(widths[last].saturating_sub(CELL_MIN * 2));
    widths[last] -= taken;
    over -= taken;
    while over > 0 {
        let Some(widest) = widths.iter_mut().max().filter(|width| **width > CELL_MIN) else { return };
        *widest -= 1;
        over -= 1;
    }
}

/// `7`, `2/50`, `$0.21`, `41 %`, `12.3k`, `3m 5s`.
fn is_number(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit() || c == '$')
        && cell.chars().all(|c| c.is_ascii_digit() || "$.,/% kMGTBsmhd".contains(c))
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn numbers_end_in_line_and_wide_cells_give_way() {
        let mut table = Table::new(&["TASK", "TIME", "COMMIT", "DETAIL", "TITLE"]);
        table.add_row([
            "T1",
            "5.0s",
            "3019840127",
            "a long detail of what it waits for",
            "a long title of it all",
        ]);
        table.add_row(["T10", "3m 05s", "", "", "short"]);
        let text = table.to_text_within(Some(60));
        assert!(text.lines().all(|line| console::measure_text_width(line) <= 60), "{text}");
        assert_eq!(
            table.to_text_within(Some(60)),
            "TASK    TIME  COMMIT      DETAIL            TITLE\n\
             T1      5.0s  3019840127  a long detail o…  a long title of…\n\
             T10   3m 05s                                short\n"
        );
    }

    #[test]
    fn the_last_column_gives_way_and_wide_letters_are_counted() {
        let mut table = Table::new(&["TASK", "STATUS", "TITLE"]);
        table.add_row(["T1", "ready", "a title that is too long for it"]);
        table.add_row(["T10", "waiting", "日本\u{1b}[2J"]);
        table.add_row(["T11", "", ""]);
        assert_eq!(
            table.to_text_within(Some(24)),
            "TASK  STATUS   TITLE\nT1    ready    a title …\nT10   waiting  日本\\u{1…\nT11\n"
        );
        assert!(table.to_text_within(None).contains("a title that is too long for it"));
    }
}
