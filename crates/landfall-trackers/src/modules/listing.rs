//! The listing at the root of all modules: `.index.json`, a list of `{module, title}`, or `.index.md`, a table.

use serde_json::{Value, json};

use super::document::without_place;
use super::problem::{ModuleFormatError, ModuleLineProblem, shorten_text};
use super::text::{format_cell, is_rule, parse_heading, split_cells};

/// A module in the listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingEntry {
    /// Its folder.
    pub module: String,
    /// What people call it.
    pub title: String,
}

/// The listing, with the text it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    text: String,
    json: bool,
    /// The modules, in the order of the file.
    pub modules: Vec<ListingEntry>,
}

impl Listing {
    /// Reads `.index.json`; an empty text is an empty listing.
    ///
    /// # Errors
    /// When it is no JSON, or an item does not say its module.
    pub fn read_json(file: &str, text: &str) -> Result<Self, ModuleFormatError> {
        let fail = |bad: ModuleLineProblem| bad.in_file(file);
        if text.trim().is_empty() {
            return Ok(Self { text: "[]\n".to_owned(), json: true, modules: Vec::new() });
        }
        let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
            fail(ModuleLineProblem::new(
                error.line().max(1),
                format!("this is no JSON: {}", without_place(&error)),
            ))
        })?;
        // Some write the list below a key.
        let items = match &value {
            Value::Array(items) => items,
            Value::Object(map) => match map.get("modules").or_else(|| map.get("tasks")) {
                Some(Value::Array(items)) => items,
                Some(_) | None => {
                    return Err(fail(
                        ModuleLineProblem::new(1, "there is no list of modules")
                            .with_known("a list of {module, title}"),
                    ));
                }
            },
            _ => {
                return Err(fail(
                    ModuleLineProblem::new(1, "this is no list").with_known("a list of {module, title}"),
                ));
            }
        };
        let mut modules = Vec::new();
        for (place, item) in items.iter().enumerate() {
            let word = |names: &[&str]| names.iter().find_map(|name| item.get(*name)).and_then(Value::as_str);
            let module =
                item.as_str().or_else(|| word(&["module", "name", "notebook"])).ok_or_else(|| {
                    fail(
                        ModuleLineProblem::new(1, format!("item {} does not say its `module`", place + 1))
                            .with_known("{module, title}"),
                    )
                })?;
            modules.push(ListingEntry {
                module: module.to_owned(),
                title: word(&["title"]).unwrap_or_default().to_owned(),
            });
        }
        Ok(Self { text: text.to_owned(), json: true, modules })
    }

    /// Reads `.index.md`: rows of a table, or list items `- [title](module/)`, or `- module: title`.
    #[must_use]
    pub fn read_md(text: &str) -> Self {
        let mut modules: Vec<ListingEntry> = Vec::new();
        let mut after_rule = false;
        for line in text.lines() {
            let row = split_cells(line);
            let listed = match &row {
                Some(cells) if is_rule(cells) => {
                    after_rule = true;
                    continue;
                }
                Some(cells) if after_rule => cells.first().map(|module| ListingEntry {
                    module: module.trim_matches('`').to_owned(),
                    title: cells.get(1).cloned().unwrap_or_default(),
                }),
                Some(_) => None,
                None if parse_heading(line).is_some() => None,
                None => parse_item(line),
            };
            after_rule &= row.is_some();
            modules.extend(listed.filter(|it| super::text::is_name(&it.module)));
        }
        Self { text: text.to_owned(), json: false, modules }
    }

    /// The file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same with one more module at its end; unchanged when it is there. What stands there already is not touched.
    #[must_use]
    pub fn with_module(&self, listed: &ListingEntry) -> Self {
        if self.modules.iter().any(|it| it.module == listed.module) {
            return self.clone();
        }
        let mut modules = self.modules.clone();
        modules.push(listed.clone());
        let text = if self.json { self.json_with(listed) } else { self.md_with(listed) };
        Self { text, json: self.json, modules }
    }

    fn json_with(&self, listed: &ListingEntry) -> String {
        let new = json!({"module": listed.module, "title": listed.title}).to_string();
        let mut whole: Value =
            serde_json::from_str(self.text.trim_start_matches('\u{feff}')).unwrap_or(json!([]));
        if let Value::Object(map) = &mut whole {
            let key = if map.contains_key("modules") { "modules" } else { "tasks" };
            if let Some(Value::Array(items)) = map.get_mut(key) {
                items.push(json!({"module": listed.module, "title": listed.title}));
            }
            return serde_json::to_string_pretty(&whole).expect("a JSON value can be written") + "\n";
        }
        // The list is the whole file: its end is the last bracket.
        let close = self.text.rfind(']').expect("a listing that was read has a list");
        let before = self.text[..close].trim_end();
        let comma = if before.ends_with('[') { "" } else { "," };
        format!("{before}{comma}\n  {new}\n{}", &self.text[close..])
    }

    fn md_with(&self, listed: &ListingEntry) -> String {
        let row = format!("| {} | {} |", listed.module, format_cell(&listed.title));
        let mut lines: Vec<String> = self.text.lines().map(str::to_owned).collect();
        let rule = lines.iter().position(|line| split_cells(line).is_some_and(|cells| is_rule(&cells)));
        match rule {
            Some(rule) => {
                let columns = split_cells(&lines[rule]).map_or(2, |cells| cells.len());
                let row = row + &" |".repeat(columns.saturating_sub(2));
                let rows = lines[rule..].iter().take_while(|line| split_cells(line).is_some()).count();
                lines.insert(rule + rows, row);
            }
            None => {
                if lines.last().is_some_and(|line| !line.trim().is_empty()) {
                    lines.push(String::new());
                }
                lines.extend(["| Module | Title |".to_owned(), "|---|---|".to_owned(), row]);
            }
        }
        lines.join("\n") + "\n"
    }
}

fn parse_item(line: &str) -> Option<ListingEntry> {
    let rest = line.trim_start().strip_prefix("- ").or_else(|| line.trim_start().strip_prefix("* "))?.trim();
    if let Some((title, link)) = rest.strip_prefix('[').and_then(|rest| rest.split_once("](")) {
        let module = link.split([')', '/']).find(|part| !part.is_empty() && *part != ".")?;
        return Some(ListingEntry { module: module.to_owned(), title: title.to_owned() });
    }
    let (module, title) = rest.split_once(':').unwrap_or((rest, ""));
    Some(ListingEntry {
        module: shorten_text(module.trim().trim_matches(['`', '*'])),
        title: title.trim().to_owned(),
    })
}
