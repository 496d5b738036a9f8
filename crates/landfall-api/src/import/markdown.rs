//! A Markdown checklist. `- [ ]` is a task, what is indented below it belongs to it, an item inside an item is a part of
//! it, and the nearest heading above gives a tag.
//!
//! The first heading of level one is the title of the document and gives none. Nothing in a code block is an item.

use std::collections::{BTreeMap, BTreeSet};

use super::{ImportContent, ImportItem, ImportLink, ImportPlace, ImportProblem, words};
use crate::NewTask;

/// Whether there is a check box in it.
pub(super) fn is_checklist(text: &str) -> bool {
    let mut fence = FenceState::default();
    text.lines().any(|line| !fence.takes_line(line) && matches!(CheckboxItem::parse_line(line), Ok(Some(_))))
}

pub(super) fn read(file: &str, text: &str) -> Result<ImportContent, ImportProblem> {
    let mut page = MarkdownImport::new(file);
    for (number, line) in (1..).zip(text.lines()) {
        page.read_line(number, line)?;
    }
    page.close_all();
    if page.seen == 0 {
        return Err(ImportProblem::new(ImportPlace::Whole, "there is no item with a check box")
            .with_hint("tasks are written `- [ ] …`"));
    }
    let mut reading = page.reading;
    // Items are known when they end, and inner ones end first.
    reading.items.sort_by_key(|item| match item.place {
        ImportPlace::Line(line) => line,
        ImportPlace::Whole | ImportPlace::Path(_) | ImportPlace::LinePath(..) => 0,
    });
    Ok(reading)
}

/// What the box of an item says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CheckboxState {
    Open,
    Done,
    Dropped,
}

/// The beginning of an item with a box.
struct CheckboxItem<'a> {
    indent: usize,
    /// Where its text begins: what is indented as far belongs to it.
    inside: usize,
    tick: CheckboxState,
    title: &'a str,
}

impl<'a> CheckboxItem<'a> {
    /// The item that begins on this line; an error names a mark that nobody can read.
    fn parse_line(line: &'a str) -> Result<Option<Self>, char> {
        let (column, text) = split_indent(line);
        let Some(bullet) = bullet_length(text) else { return Ok(None) };
        let (gap, rest) = split_indent(&text[bullet..]);
        let mut chars = rest.chars();
        let (Some('['), Some(mark), Some(']')) = (chars.next(), chars.next(), chars.next()) else {
            return Ok(None);
        };
        let rest = chars.as_str();
        if !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
            return Ok(None); // a link
        }
        let tick = match mark {
            ' ' | '/' | '~' => CheckboxState::Open,
            'x' | 'X' | '✓' | '✔' => CheckboxState::Done,
            '-' => CheckboxState::Dropped,
            other if other.is_alphanumeric() => return Ok(None), // `[1] …` is a reference
            other => return Err(other),
        };
        Ok(Some(Self { indent: column, inside: column + bullet + gap, tick, title: rest.trim() }))
    }
}

/// How long the mark of a list item is.
fn bullet_length(text: &str) -> Option<usize> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let long = match text.chars().next() {
        Some('-' | '*' | '+') => 1,
        Some(_) if (1..=9).contains(&digits) && text[digits..].starts_with(['.', ')']) => digits + 1,
        Some(_) | None => return None,
    };
    text[long..].starts_with([' ', '\t']).then_some(long)
}

/// How far a line is indented, in columns, and the rest of it.
fn split_indent(line: &str) -> (usize, &str) {
    let mut columns = 0;
    for (at, c) in line.char_indices() {
        match c {
            ' ' => columns += 1,
            '\t' => columns += 4 - columns % 4,
            _ => return (columns, &line[at..]),
        }
    }
    (columns, "")
}

/// Whether we are in a block of code.
#[derive(Default)]
struct FenceState(Option<String>);

impl FenceState {
    /// Whether the line is in a block of code, or begins or ends one.
    fn takes_line(&mut self, line: &str) -> bool {
        let text = line.trim();
        match &self.0 {
            Some(open) => {
                let closes = text.starts_with(open.as_str()) && text.chars().all(|c| open.starts_with(c));
                if closes {
                    self.0 = None;
                }
                true
            }
            None => {
                let fence = ['`', '~'].into_iter().find_map(|mark| {
                    let long = text.len() - text.trim_start_matches(mark).len();
                    (long >= 3).then(|| mark.to_string().repeat(long))
                });
                self.0 = fence;
                self.0.is_some()
            }
        }
    }
}

/// An item that is being read.
struct OpenChecklistItem<'a> {
    line: usize,
    indent: usize,
    inside: usize,
    tick: CheckboxState,
    id: String,
    title: String,
    body: Vec<(usize, &'a str)>,
    tag: Option<String>,
}

struct MarkdownImport<'a> {
    file: String,
    heading: Option<String>,
    titled: bool,
    open: Vec<OpenChecklistItem<'a>>,
    fence: FenceState,
    blank: bool,
    seen: usize,
    ids: BTreeMap<String, u32>,
    taken: BTreeSet<String>,
    reading: ImportContent,
}

impl<'a> MarkdownImport<'a> {
    fn new(file: &str) -> Self {
        // A file that moves to another folder is still the same list.
        let file = file.rsplit('/').next().unwrap_or(file);
        Self {
            file: words::shorten_for_message(file),
            heading: None,
            titled: false,
            open: Vec::new(),
            fence: FenceState::default(),
            blank: false,
            seen: 0,
            ids: BTreeMap::new(),
            taken: BTreeSet::new(),
            reading: ImportContent::default(),
        }
    }

    fn read_line(&mut self, number: usize, line: &'a str) -> Result<(), ImportProblem> {
        if self.fence.0.is_some() || line.trim().is_empty() {
            let inside = self.fence.0.is_some();
            self.fence.takes_line(line);
            self.blank = !inside;
            self.append_to_open_item(line);
            return Ok(());
        }
        let (column, text) = split_indent(line);
        let mark = CheckboxItem::parse_line(line).map_err(|mark| {
            ImportProblem::new(ImportPlace::Line(number), format!("nobody can tell what `[{mark}]` means"))
                .with_hint("`[ ]`, `[/]` and `[~]` are open, `[x]` is done, `[-]` is dropped")
        })?;
        let was_blank = std::mem::take(&mut self.blank);
        if let Some(mark) = mark {
            self.close(|open| mark.indent <= open.indent);
            self.begin_item(number, &mark)?;
            return Ok(());
        }
        if let Some(heading) = parse_heading(text).filter(|_| column < 4) {
            self.close_all();
            self.enter_heading(heading);
            return Ok(());
        }
        // Less indented and after a gap, it is a text of its own; right below, it goes on.
        if was_blank || bullet_length(text).is_some() {
            self.close(|open| column < open.inside && column <= open.indent);
        }
        self.fence.takes_line(line);
        self.append_to_open_item(line);
        Ok(())
    }

    fn enter_heading(&mut self, (level, text): (usize, &str)) {
        if level == 1 && !std::mem::replace(&mut self.titled, true) {
            self.heading = None;
            return;
        }
        self.heading = words::to_slug(text, 64);
    }

    fn begin_item(&mut self, number: usize, mark: &CheckboxItem<'a>) -> Result<(), ImportProblem> {
        let title = words::one_line(mark.title);
        if title.is_empty() {
            return Err(ImportProblem::new(ImportPlace::Line(number), "the item is empty")
                .with_hint("say in one line what is wanted"));
        }
        self.seen += 1;
        let own = format!("{}-{:04x}", words::to_slug(&title, 60).unwrap_or_default(), fold_to_u16(&title));
        let within = match self.open.last() {
            Some(above) => above.id.clone(),
            None => format!("{}#{}", self.file, self.heading.as_deref().unwrap_or_default()),
        };
        let mut id = format!("{within}/{own}");
        if id.len() > ID_BYTES_MAX {
            id = format!("{}#{:016x}", self.file, hash_fnv1a(&id));
        }
        let times = self.ids.entry(id.clone()).or_default();
        *times += 1;
        if *times > 1 {
            id = format!("{id}-{times}");
        }
        if !self.taken.insert(id.clone()) {
            return Err(ImportProblem::new(
                ImportPlace::Line(number),
                "this item cannot be told from another",
            )
            .with_hint("give it a title of its own"));
        }
        self.open.push(OpenChecklistItem {
            line: number,
            indent: mark.indent,
            inside: mark.inside,
            tick: mark.tick,
            id,
            title,
            body: Vec::new(),
            tag: self.heading.clone(),
        });
        Ok(())
    }

    fn append_to_open_item(&mut self, line: &'a str) {
        if let Some(open) = self.open.last_mut() {
            open.body.push((open.inside, line));
        }
    }

    fn close(&mut self, ends: impl Fn(&OpenChecklistItem<'a>) -> bool) {
        while self.open.last().is_some_and(&ends) {
            self.end_item();
        }
    }

    fn close_all(&mut self) {
        while !self.open.is_empty() {
            self.end_item();
        }
    }

    fn end_item(&mut self) {
        let Some(OpenChecklistItem { line, tick, id, title, body, tag, .. }) = self.open.pop() else {
            return;
        };
        match tick {
            CheckboxState::Open => {}
            CheckboxState::Done | CheckboxState::Dropped => {
                let what =
                    if tick == CheckboxState::Done { "item that is ticked" } else { "item that is dropped" };
                self.reading.left_out.add(what);
                self.reading.over.insert(id);
                return;
            }
        }
        let place = ImportPlace::Line(line);
        let parent = self.open.last().map(|open| ImportLink { to: open.id.clone(), place: place.clone() });
        let task =
            NewTask { title, body: join_body(&body), tags: tag.into_iter().collect(), ..NewTask::default() };
        self.reading.items.push(ImportItem { id, place, task, needs: Vec::new(), parent });
    }
}

const ID_BYTES_MAX: usize = 300; // deeper and longer items are known by a number

/// The level and the text of a heading.
fn parse_heading(text: &str) -> Option<(usize, &str)> {
    let level = text.len() - text.trim_start_matches('#').len();
    let rest = &text[level..];
    let named = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    named.then(|| (level, rest.trim().trim_end_matches('#').trim_end()))
}

/// The lines of a body, without the indentation they have in common with their item.
fn join_body(lines: &[(usize, &str)]) -> String {
    let mut text = String::new();
    for (inside, line) in lines {
        let (columns, rest) = split_indent(line);
        text.push_str(&" ".repeat(columns.saturating_sub(*inside)));
        text.push_str(rest.trim_end());
        text.push('\n');
    }
    text.trim_matches('\n').to_owned()
}

/// A small number made of a text: it tells titles apart that have the same letters.
fn fold_to_u16(text: &str) -> u16 {
    let wide = hash_fnv1a(text);
    u16::try_from((wide ^ wide >> 16 ^ wide >> 32 ^ wide >> 48) & 0xffff).expect("sixteen bits")
}

fn hash_fnv1a(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
