//! What was measured, as a table for people and as lines of JSON for programs.

use serde_json::json;

/// A number with its unit.
#[derive(Clone, Copy)]
pub struct Amount {
    pub value: f64,
    pub unit: &'static str,
}

/// What a row is held to.
#[derive(Clone, Copy)]
pub enum Target {
    /// Product over floor, at most.
    RatioMax(f64),
    /// Product over floor, at least.
    RatioMin(f64),
    /// The product alone, at most.
    Max(f64),
    /// The product alone, at least.
    Min(f64),
    /// Nothing: it explains another row.
    None,
}

/// One thing that was measured.
pub struct Row {
    pub id: &'static str,
    pub what: String,
    pub floor: Option<Amount>,
    pub product: Amount,
    pub target: Target,
    /// How the floor was got, or what else one must know to read the numbers.
    pub note: String,
}

impl Row {
    /// Product over floor.
    pub fn ratio(&self) -> Option<f64> {
        self.floor.filter(|floor| floor.value > 0.0).map(|floor| self.product.value / floor.value)
    }

    /// Whether the target was reached; none without a target.
    pub fn reached(&self) -> Option<bool> {
        match self.target {
            Target::RatioMax(most) => self.ratio().map(|ratio| ratio <= most),
            Target::RatioMin(least) => self.ratio().map(|ratio| ratio >= least),
            Target::Max(most) => Some(self.product.value <= most),
            Target::Min(least) => Some(self.product.value >= least),
            Target::None => None,
        }
    }

    fn target_words(&self) -> String {
        match self.target {
            Target::RatioMax(most) => format!("≤ {most}×"),
            Target::RatioMin(least) => format!("≥ {least}×"),
            Target::Max(value) => format!("≤ {}", Amount { value, ..self.product }.words()),
            Target::Min(value) => format!("≥ {}", Amount { value, ..self.product }.words()),
            Target::None => "–".to_owned(),
        }
    }

    /// One line of JSON.
    pub fn json(&self) -> String {
        json!({
            "id": self.id,
            "what": self.what,
            "unit": self.product.unit,
            "floor": self.floor.map(|floor| floor.value),
            "product": self.product.value,
            "ratio": self.ratio(),
            "target": self.target_words(),
            "reached": self.reached(),
            "note": self.note,
        })
        .to_string()
    }

    fn cells(&self) -> [String; 7] {
        let reached = match self.reached() {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "–",
        };
        [
            self.id.to_owned(),
            self.what.clone(),
            self.floor.map_or_else(|| "–".to_owned(), Amount::words),
            self.product.words(),
            self.ratio().map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}×")),
            self.target_words(),
            reached.to_owned(),
        ]
    }
}

impl Amount {
    pub fn words(self) -> String {
        let Self { value, unit } = self;
        match value {
            _ if value == 0.0 => format!("0 {unit}"),
            _ if value.abs() >= 100.0 => format!("{value:.0} {unit}"),
            _ if value.abs() >= 10.0 => format!("{value:.1} {unit}"),
            _ => format!("{value:.2} {unit}"),
        }
    }
}

/// The table, and the notes below it.
pub fn text(rows: &[Row]) -> String {
    let head = ["#", "what", "floor", "product", "ratio", "target", "reached"].map(str::to_owned);
    let lines: Vec<[String; 7]> = std::iter::once(head).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate() {
        let cells: Vec<String> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
        if number == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            out.push_str(&format!("|-{}-|\n", rules.join("-|-")));
        }
    }
    let notes: Vec<&Row> = rows.iter().filter(|row| !row.note.is_empty()).collect();
    if !notes.is_empty() {
        out.push('\n');
    }
    for row in notes {
        out.push_str(&format!("- {} {}: {}\n", row.id, row.what, row.note));
    }
    out
}
