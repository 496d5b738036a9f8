//! `.target.md`: what is wanted. Its structure is a person's: what is recognised is read, the rest is left alone.
//!
//! Notebooks give it more shape: one line per objective, requirements with numbers that count through the whole file,
//! stages, refinements. Every edit here touches only the lines it is about.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::text::{format_cell, is_rule, parse_heading, split_cells};

/// How much a requirement weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModuleWeight {
    /// Without it the objective is missed.
    Critical,
    /// It should be there.
    Important,
    /// It would be good.
    Optional,
}

impl ModuleWeight {
    /// Every one, heaviest first.
    pub const ALL: [Self; 3] = [Self::Critical, Self::Important, Self::Optional];

    /// The word in files.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Important => "important",
            Self::Optional => "optional",
        }
    }

    /// What it counts in convergence.
    #[must_use]
    pub fn numeric_weight(self) -> u32 {
        match self {
            Self::Critical => 3,
            Self::Important => 2,
            Self::Optional => 1,
        }
    }
}

impl fmt::Display for ModuleWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.wire_name())
    }
}

/// Not a weight.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a weight; known: critical (3), important (2), optional (1)")]
pub struct UnknownWeight(pub String);

impl FromStr for ModuleWeight {
    type Err = UnknownWeight;

    /// Reads the word, the number, or both: `critical`, `3`, `critical (3)`.
    fn from_str(text: &str) -> Result<Self, UnknownWeight> {
        let word = text.trim().trim_matches(['*', '`']).to_ascii_lowercase();
        let of = |weight: &Self| {
            let (word_of, points) = (weight.wire_name(), weight.numeric_weight());
            word == word_of || word == points.to_string() || word == format!("{word_of} ({points})")
        };
        Self::ALL.into_iter().find(of).ok_or_else(|| UnknownWeight(super::problem::shorten_text(text)))
    }
}

/// How far an objective is agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AgreementState {
    /// Just said.
    #[default]
    None,
    /// A person confirmed it.
    Confirmed,
    /// And it was taken over into the baseline.
    Processed,
}

impl AgreementState {
    fn suffix_text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Confirmed => " [CONFIRMED]",
            Self::Processed => " [PROCESSED]",
        }
    }
}

/// How far an objective is split into requirements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequirementDetail {
    /// Nothing said.
    #[default]
    None,
    /// `(pending detail)`.
    Pending,
    /// `(R: 3)`: into so many.
    Requirements(u32),
}

/// One line of the overall objective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleTargetItem {
    /// What is wanted.
    pub text: String,
    /// How far it is split.
    pub detail: RequirementDetail,
    /// How far it is agreed on.
    pub mark: AgreementState,
}

impl ModuleTargetItem {
    fn read(text: &str) -> Self {
        let mut item = Self {
            text: text.trim().to_owned(),
            detail: RequirementDetail::None,
            mark: AgreementState::None,
        };
        loop {
            let text = item.text.trim_end().to_owned();
            let cut = |tail: &str| text.strip_suffix(tail).map(|rest| rest.trim_end().to_owned());
            if let Some(rest) = cut("[CONFIRMED]") {
                (item.text, item.mark) = (rest, AgreementState::Confirmed);
            } else if let Some(rest) = cut("[PROCESSED]") {
                (item.text, item.mark) = (rest, AgreementState::Processed);
            } else if let Some(rest) = cut("(pending detail)") {
                (item.text, item.detail) = (rest, RequirementDetail::Pending);
            } else if let Some((rest, number)) = requirements_of(&text) {
                (item.text, item.detail) = (rest, RequirementDetail::Requirements(number));
            } else {
                item.text = text;
                return item;
            }
        }
    }

    fn to_line(&self) -> String {
        let detail = match self.detail {
            RequirementDetail::None => String::new(),
            RequirementDetail::Pending => " (pending detail)".to_owned(),
            RequirementDetail::Requirements(many) => format!(" (R: {many})"),
        };
        format!("- {}{detail}{}", self.text, self.mark.suffix_text())
    }
}

fn requirements_of(text: &str) -> Option<(String, u32)> {
    let inside = text.strip_suffix(')')?;
    let (rest, number) = inside.rsplit_once("(R:")?;
    Some((rest.trim_end().to_owned(), number.trim().parse().ok()?))
}

/// Something that can be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleRequirement {
    /// Its number through the whole file.
    pub r: u32,
    /// What must hold.
    pub text: String,
    /// How one sees that it does.
    pub criteria: String,
    /// How much it weighs.
    pub weight: ModuleWeight,
    /// The objective it belongs to: the heading above its table.
    pub item: String,
}

impl ModuleRequirement {
    fn to_table_row(&self) -> String {
        format!(
            "| R{} | {} | {} | {} |",
            self.r,
            format_cell(&self.text),
            format_cell(&self.criteria),
            self.weight
        )
    }
}

/// Whether a stage is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageMark {
    /// Nothing said.
    Planned,
    /// `[ACTIVE]`.
    Active,
    /// `[COMPLETE]`.
    Complete,
}

/// A stage with its own part of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetStage {
    /// Its number, from 1.
    pub number: u32,
    /// What it is about.
    pub name: String,
    /// Whether it is under way.
    pub mark: StageMark,
    /// Everything below its heading, as it stands there.
    pub body: String,
}

/// What is wanted, with the text it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleTarget {
    text: String,
    /// The lines of the objective.
    pub items: Vec<ModuleTargetItem>,
    /// What was not recognised as a line of it: prose below its heading.
    pub objective: String,
    /// What can be checked.
    pub requirements: Vec<ModuleRequirement>,
    /// Requirements of a file without numbers: plain list items.
    pub plain_requirements: Vec<String>,
    /// What must not be broken on the way.
    pub constraints: Vec<String>,
    /// Parts of the way.
    pub stages: Vec<TargetStage>,
    /// What was added later, as it stands there.
    pub refinements: Vec<String>,
    /// Rows that look like requirements and are not, with why: nothing is dropped in silence.
    pub warnings: Vec<(usize, String)>,
    sections: Vec<TargetSection>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TargetSection {
    kind: TargetSectionKind,
    /// Its lines, the heading included.
    lines: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetSectionKind {
    Objective,
    Requirements,
    Constraints,
    Stage,
    Refinements,
    Other,
}

const TABLE_HEAD: &str = "| # | Requirement | Acceptance Criteria | Weight |";
const TABLE_RULE: &str = "|---|---|---|---|";

impl ModuleTarget {
    /// Reads a file. There is no file that cannot be read.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut target = Self {
            text: text.to_owned(),
            items: Vec::new(),
            objective: String::new(),
            requirements: Vec::new(),
            plain_requirements: Vec::new(),
            constraints: Vec::new(),
            stages: Vec::new(),
            refinements: Vec::new(),
            warnings: Vec::new(),
            sections: parse_sections(text),
        };
        let lines: Vec<&str> = text.lines().collect();
        for section in target.sections.clone() {
            let body = &lines[(section.lines.start + 1).min(section.lines.end)..section.lines.end];
            match section.kind {
                TargetSectionKind::Objective => target.read_objective(body),
                TargetSectionKind::Requirements => target.read_requirements(section.lines.start + 1, body),
                TargetSectionKind::Constraints => target
                    .constraints
                    .extend(body.iter().filter_map(|line| top_bullet(line)).map(str::to_owned)),
                TargetSectionKind::Stage => {
                    let (_, title) =
                        parse_heading(lines[section.lines.start]).expect("a section begins with its heading");
                    let (number, name, mark) = stage_title(title).expect("its kind was read from it");
                    target.stages.push(TargetStage { number, name, mark, body: body.join("\n") });
                }
                TargetSectionKind::Refinements => target
                    .refinements
                    .extend(body.iter().filter_map(|line| bullet_text(line)).map(str::to_owned)),
                TargetSectionKind::Other => {}
            }
        }
        target
    }

    /// A new file.
    #[must_use]
    pub fn new(
        title: &str,
        items: &[ModuleTargetItem],
        requirements: &[ModuleRequirement],
        constraints: &[String],
    ) -> Self {
        let text = format!("# {title}\n\n## Overall Objective\n\n## Requirements\n\n## Constraints\n");
        Self::read(&text).with_items(items).with_requirements(requirements).with_constraints(constraints)
    }

    /// The file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a person said what is wanted. Headings, comments, empty tables and the words of the template do not count.
    #[must_use]
    pub fn is_substantive(&self) -> bool {
        let text = super::text::strip_markup(&self.text);
        let mut lines = text.lines().peekable();
        let mut after_rule = false;
        lines.any(|line| {
            let content = line.trim();
            let row = split_cells(content);
            let substantive = match (parse_heading(content), &row) {
                (Some(_), _) => false,
                (None, Some(cells)) if is_rule(cells) => {
                    after_rule = true;
                    return false;
                }
                (None, Some(cells)) => after_rule && cells.iter().skip(1).any(|cell| is_said(cell)),
                (None, None) => is_said(bullet_text(content).unwrap_or(content)),
            };
            after_rule &= row.is_some();
            substantive
        })
    }

    fn read_objective(&mut self, body: &[&str]) {
        let mut prose = Vec::new();
        for line in body {
            match top_bullet(line) {
                Some(text) => self.items.push(ModuleTargetItem::read(text)),
                None => prose.push(*line),
            }
        }
        self.objective = prose.join("\n").trim().to_owned();
    }

    fn read_requirements(&mut self, first: usize, body: &[&str]) {
        let mut item = String::new();
        for (number, line) in (first + 1..).zip(body) {
            if let Some((_, title)) = parse_heading(line) {
                item = title.to_owned();
            } else if let Some(cells) = split_cells(line) {
                match parse_row(&cells, &item) {
                    Some(Ok(requirement)) => self.requirements.push(requirement),
                    Some(Err(why)) => self.warnings.push((number, why)),
                    None => {}
                }
            } else if let Some(text) = bullet_text(line) {
                let ticks = ["[ ] ", "[x] ", "[X] "];
                let text = ticks.iter().find_map(|tick| text.strip_prefix(tick)).unwrap_or(text);
                self.plain_requirements.push(text.trim().to_owned());
            }
        }
    }

    /// The same with these objectives; other lines of that part stay.
    #[must_use]
    pub fn with_items(&self, items: &[ModuleTargetItem]) -> Self {
        if items == self.items {
            return self.clone();
        }
        let changed = |target: &Self, items: &[ModuleTargetItem]| {
            let read = |line: &str| top_bullet(line).map(ModuleTargetItem::read);
            target.with_list(
                (TargetSectionKind::Objective, "## Overall Objective"),
                items,
                read,
                ModuleTargetItem::to_line,
            )
        };
        let edited = changed(self, items);
        // When the order is another, nothing can stay where it is.
        if edited.items == items { edited } else { changed(&changed(self, &[]), items) }
    }

    /// The same with these constraints.
    #[must_use]
    pub fn with_constraints(&self, constraints: &[String]) -> Self {
        if constraints == self.constraints {
            return self.clone();
        }
        let read = |line: &str| top_bullet(line).map(str::to_owned);
        self.with_list((TargetSectionKind::Constraints, "## Constraints"), constraints, read, |text| {
            format!("- {text}")
        })
    }

    /// The same with these requirements, matched by their number. Rows that stay as they were are not touched.
    #[must_use]
    pub fn with_requirements(&self, requirements: &[ModuleRequirement]) -> Self {
        if requirements == self.requirements {
            return self.clone();
        }
        let mut lines = self.owned_lines();
        let range = match self.section_lines(TargetSectionKind::Requirements) {
            Some(range) => range,
            None => {
                if lines.last().is_some_and(|line| !line.trim().is_empty()) {
                    lines.push(String::new());
                }
                lines.push("## Requirements".to_owned());
                lines.len() - 1..lines.len()
            }
        };
        let mut section: Vec<String> = lines[range.clone()].to_vec();
        let mut written: Vec<u32> = Vec::new();
        let mut item = String::new();
        section.retain_mut(|line| {
            if let Some((level, title)) = parse_heading(line) {
                item = if level > 2 { title.to_owned() } else { String::new() };
                return true;
            }
            let Some(Ok(old)) = split_cells(line).and_then(|cells| parse_row(&cells, &item)) else {
                return true;
            };
            match requirements.iter().find(|it| it.r == old.r && it.item == old.item) {
                Some(new) => {
                    written.push(new.r);
                    if *new != old {
                        *line = new.to_table_row();
                    }
                    true
                }
                None => false,
            }
        });
        for requirement in requirements.iter().filter(|it| !written.contains(&it.r)) {
            insert_row(&mut section, requirement);
        }
        lines.splice(range, section);
        self.with_lines(lines)
    }

    /// Changes a list in one section. Lines that stay as they were are not touched, nor is what is not of the list; `read`
    /// gives the item of a line that is.
    fn with_list<T: PartialEq>(
        &self,
        (kind, title): (TargetSectionKind, &str),
        new: &[T],
        read: impl Fn(&str) -> Option<T>,
        shown: impl Fn(&T) -> String,
    ) -> Self {
        let mut lines = self.owned_lines();
        let Some(range) = self.section_lines(kind) else {
            if lines.last().is_some_and(|line| !line.trim().is_empty()) {
                lines.push(String::new());
            }
            lines.extend([title.to_owned(), String::new()]);
            lines.extend(new.iter().map(shown));
            return self.with_lines(lines);
        };
        let section = &lines[range.clone()];
        let old: Vec<(usize, T)> =
            section.iter().enumerate().skip(1).filter_map(|(at, line)| Some((at, read(line)?))).collect();
        // Items that are in both lists keep their line. The others change in place, vanish, or come at the end.
        let mut open: Vec<&T> = new.iter().collect();
        let mut change: Vec<usize> = Vec::new();
        for (at, item) in &old {
            match open.iter().position(|it| *it == item) {
                Some(place) => {
                    open.remove(place);
                }
                None => change.push(*at),
            }
        }
        let mut open = open.into_iter();
        let mut out: Vec<String> = Vec::new();
        let last = old.last().map(|(at, _)| *at);
        // What is indented below the last item belongs to it.
        let last = last.map(|at| {
            let inner = section[at + 1..].iter().take_while(|line| line.starts_with([' ', '\t'])).count();
            at + inner
        });
        for (at, line) in section.iter().enumerate() {
            match change.contains(&at) {
                false => out.push(line.clone()),
                true => out.extend(open.next().map(&shown)),
            }
            if last == Some(at) {
                out.extend(open.by_ref().map(&shown));
            }
        }
        let rest: Vec<String> = open.map(&shown).collect();
        if !rest.is_empty() {
            if out.get(1).is_none_or(|line| !line.trim().is_empty()) {
                out.insert(1, String::new());
            }
            let followed = out.get(2).is_some_and(|line| !line.trim().is_empty()) || range.end < lines.len();
            out.splice(2..2, rest.into_iter().chain(followed.then(String::new)));
        }
        lines.splice(range, out);
        self.with_lines(lines)
    }

    fn section_lines(&self, kind: TargetSectionKind) -> Option<Range<usize>> {
        self.sections.iter().find(|section| section.kind == kind).map(|section| section.lines.clone())
    }

    fn owned_lines(&self) -> Vec<String> {
        self.text.lines().map(str::to_owned).collect()
    }

    fn with_lines(&self, lines: Vec<String>) -> Self {
        let end = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        Self::read(&(lines.join(end) + end))
    }
}

/// Where new rows of an objective go: below its last row, or into a table of its own.
fn insert_row(section: &mut Vec<String>, requirement: &ModuleRequirement) {
    let mut item = String::new();
    let (mut group_end, mut table_end) = (None, None);
    for (place, line) in section.iter().enumerate() {
        if let Some((level, title)) = parse_heading(line) {
            item = if level > 2 { title.to_owned() } else { String::new() };
        }
        if item == requirement.item {
            if !line.trim().is_empty() {
                group_end = Some(place + 1);
            }
            if split_cells(line).is_some() {
                table_end = Some(place + 1);
            }
        }
    }
    if let Some(at) = table_end {
        section.insert(at, requirement.to_table_row());
        return;
    }
    let mut new = vec![String::new()];
    if group_end.is_none() {
        new.extend([format!("### {}", requirement.item), String::new()]);
    }
    new.extend([TABLE_HEAD.to_owned(), TABLE_RULE.to_owned(), requirement.to_table_row()]);
    let end = section.iter().rposition(|line| !line.trim().is_empty()).map_or(section.len(), |last| last + 1);
    let at = group_end.unwrap_or(end);
    if section.get(at).is_none_or(|line| !line.trim().is_empty()) && at < section.len() {
        new.push(String::new());
    }
    section.splice(at..at, new);
    if section.last().is_some_and(|line| !line.trim().is_empty()) {
        section.push(String::new());
    }
}

/// A row of a requirement table; none for other rows, an error for a row with a number that is not understood.
fn parse_row(cells: &[String], item: &str) -> Option<Result<ModuleRequirement, String>> {
    let [number, rest @ ..] = cells else { return None };
    let r = number.trim_matches(['*', '`']).strip_prefix(['R', 'r'])?.trim_start_matches('#').parse().ok()?;
    let [text, criteria, weight] = rest else {
        return Some(Err(format!(
            "R{r} has {} cells, not 4: #, Requirement, Acceptance Criteria, Weight",
            cells.len()
        )));
    };
    Some(match weight.parse() {
        Ok(weight) => Ok(ModuleRequirement {
            r,
            text: text.clone(),
            criteria: criteria.clone(),
            weight,
            item: item.to_owned(),
        }),
        Err(error) => Err(format!("R{r}: {error}")),
    })
}

/// The text of a list item.
fn bullet_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)
}

/// The text of a list item that is not inside another.
fn top_bullet(line: &str) -> Option<&str> {
    if line.starts_with([' ', '\t']) { None } else { bullet_text(line) }
}

fn is_said(text: &str) -> bool {
    const NOTHING: [&str; 8] = ["", "-", "tbd", "todo", "…", "...", "n/a", "none"];
    let word = text.trim().trim_end_matches('.').to_ascii_lowercase();
    let placeholder = text.trim().starts_with('<') && text.trim().ends_with('>');
    !placeholder && !NOTHING.contains(&word.as_str()) && text.chars().any(char::is_alphanumeric)
}

fn stage_title(title: &str) -> Option<(u32, String, StageMark)> {
    let rest = title.strip_prefix("Stage ").or_else(|| title.strip_prefix("stage "))?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest[..digits].parse().ok()?;
    let name = rest[digits..].trim_start_matches([':', '-', '—', ' ']).trim();
    let (name, mark) = match (name.strip_suffix("[ACTIVE]"), name.strip_suffix("[COMPLETE]")) {
        (Some(name), _) => (name, StageMark::Active),
        (None, Some(name)) => (name, StageMark::Complete),
        (None, None) => (name, StageMark::Planned),
    };
    Some((number, name.trim().to_owned(), mark))
}

/// The parts under headings of the first two levels. What stands in a block of code is no heading.
fn parse_sections(text: &str) -> Vec<TargetSection> {
    let mut sections: Vec<TargetSection> = Vec::new();
    let mut code: Option<&str> = None;
    let mut many = 0;
    for (place, line) in text.lines().enumerate() {
        many = place + 1;
        let trimmed = line.trim_start();
        match code {
            Some(mark) if trimmed.starts_with(mark) => code = None,
            Some(_) => {}
            None => code = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark)),
        }
        if code.is_some() {
            continue;
        }
        if let Some((level @ 1..=2, title)) = parse_heading(line) {
            if let Some(last) = sections.last_mut() {
                last.lines.end = place;
            }
            let kind = if level == 1 { TargetSectionKind::Other } else { kind(title) };
            // A second `## Requirements` is somebody's own structure.
            let kind = match kind {
                TargetSectionKind::Stage => kind,
                kind if sections.iter().any(|section| section.kind == kind) => TargetSectionKind::Other,
                kind => kind,
            };
            sections.push(TargetSection { kind, lines: place..place + 1 });
        }
    }
    if let Some(last) = sections.last_mut() {
        last.lines.end = many;
    }
    sections
}

fn kind(title: &str) -> TargetSectionKind {
    if stage_title(title).is_some() {
        return TargetSectionKind::Stage;
    }
    let title = title.split('[').next().unwrap_or_default().trim().trim_end_matches(':').to_ascii_lowercase();
    match title.as_str() {
        "objective" | "objectives" | "overall objective" | "overall objectives" | "goal" => {
            TargetSectionKind::Objective
        }
        "requirements" => TargetSectionKind::Requirements,
        "constraints" => TargetSectionKind::Constraints,
        "refinements" => TargetSectionKind::Refinements,
        _ => TargetSectionKind::Other,
    }
}
