//! `cargo xtask prose`: sentences that are too long, and words that the style of this project replaces.
//!
//! It reads the pages that are written by hand, the help texts (`docs/reference/commands.md` is generated from them), and the
//! literals of hints and errors. Pages generated from other sources are left out.
//! Markdown is read as far as prose needs it: a block is a paragraph, a list item, a heading or a table cell.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::web::root;

const SENTENCE_WORDS_MAX: usize = 25;

/// Generated from the help texts of the commands.
const HELP_PAGE: &str = "docs/reference/commands.md";

/// Takes the place of a code span: one word, whatever it contains, that may begin a sentence.
const CODE_SPAN: char = '\u{fffc}';

/// What starts a hint or an error in the sources.
const LITERAL_STARTS: [&str; 5] = [".hint(", "#[error(", "bail!(", "anyhow!(", "hint: "];

/// A point after one of these does not end a sentence.
const ABBREVIATIONS: [&str; 6] = ["e.g", "i.e", "etc", "vs", "cf", "approx"];

/// Words to replace, and what to write instead. All are lower case.
const REPLACED_WORDS: [(&str, &str); 72] = [
    ("anew", "again"),
    ("anybody", "any person, you"),
    ("are over", "ended, finished"),
    ("are said", "Landfall reports"),
    ("are told", "are notified, receive"),
    ("are wanted", "are required"),
    ("batches that are over", "history"),
    ("be said", "be reported"),
    ("be told", "be notified, receive"),
    ("became of", "result, outcome"),
    ("become of", "result, outcome"),
    ("becomes of", "result, outcome"),
    ("boxes to tick", "acceptance criteria"),
    ("bring about", "do, cause"),
    ("brings about", "does, causes"),
    ("brought about", "done, caused"),
    ("by hand next", "manually"),
    ("came to", "result"),
    ("for good", "permanently"),
    ("gave back", "returned"),
    ("give back", "return"),
    ("given back", "returned"),
    ("gives back", "returns"),
    ("go on", "continue"),
    ("goes on", "continues"),
    ("going on", "continuing"),
    ("held against", "compared with"),
    ("hold against", "compare with"),
    ("holds against", "compares with"),
    ("how it stands", "its status"),
    ("how they stand", "their status"),
    ("in line", "queued"),
    ("is looked for", "search, check for"),
    ("is nowhere", "does not exist"),
    ("is over", "ended, finished"),
    ("is owed", "needs review after landing"),
    ("is said", "Landfall reports"),
    ("is told", "is notified, receives"),
    ("is wanted", "is required"),
    ("let in", "allow, sign in"),
    ("lets in", "allows, signs in"),
    ("likewise", "also"),
    ("look at", "check, read, review"),
    ("looked at", "checked, read, reviewed"),
    ("looking at", "checking, reading, reviewing"),
    ("looks at", "checks, reads, reviews"),
    ("nobody", "no person, no user"),
    ("not over", "open"),
    ("on its way", "in progress, verifying"),
    ("on their way", "in progress, verifying"),
    ("owed a look", "needs review after landing"),
    ("papers", "documents"),
    ("so often", "this number of times"),
    ("somebody", "a person, you"),
    ("someone", "a person, you"),
    ("stands", "is, has the status"),
    ("takes the word of", "trusts, accepts"),
    ("there can be no", "is not possible"),
    ("there cannot be", "is not possible"),
    ("thereof", "of it"),
    ("took the word of", "trusted, accepted"),
    ("wanted no more", "no longer needed"),
    ("was over", "ended, finished"),
    ("was said", "was reported"),
    ("was told", "was notified, received"),
    ("went on", "continued"),
    ("what is done", "the action"),
    ("what is said", "the message"),
    ("whence", "where … comes from"),
    ("whoever", "the person who, you"),
    ("whomever", "the person whom, you"),
    ("without your leave", "without your permission"),
];

#[derive(Debug, clap::Args)]
pub struct ProseArgs {
    /// Print the number of findings per file
    #[arg(long)]
    count: bool,
    /// Check only files whose path contains one of these words
    paths: Vec<String>,
}

pub fn run(args: &ProseArgs) -> Result<()> {
    let root = root()?;
    let mut findings_count = 0;
    for path in list_checked_files(&root)? {
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        if !args.paths.is_empty() && !args.paths.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let findings = check_file(&name, &path)?;
        findings_count += findings.len();
        match args.count {
            true if findings.is_empty() => {}
            true => println!("{:>5} {name}", findings.len()),
            false => findings.iter().for_each(|found| println!("{name}:{}: {}", found.line, found.problem)),
        }
    }
    match findings_count {
        0 => Ok(()),
        _ => bail!("{findings_count} findings"),
    }
}

/// The findings of one file. Its name, seen from the root, says how to read it.
fn check_file(name: &str, path: &Path) -> Result<Vec<ProseFinding>> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let blocks = match name {
        HELP_PAGE => split_help(&text),
        _ if name.ends_with(".rs") => split_literals(&text),
        _ => split_markdown(&text),
    };
    Ok(blocks.iter().flat_map(TextBlock::find_problems).collect())
}

fn list_checked_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].iter().map(|name| root.join(name)).collect();
    for folder in ["docs/guide", "docs/reference"] {
        let mut pages = list_files(&root.join(folder), "md")?;
        pages.retain(|path| path.ends_with(HELP_PAGE) || !is_generated(path));
        files.append(&mut pages);
    }
    let mut sources = list_files(&root.join("crates"), "rs")?;
    sources.retain(|path| path.components().any(|part| part.as_os_str() == "src"));
    files.append(&mut sources);
    Ok(files)
}

/// The page says in its first lines how to write it again.
fn is_generated(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().take(5).any(|line| line.starts_with("<!--") && line.contains("LANDFALL_BLESS"))
}

/// Files with this extension in `folder` and the folders below it, sorted.
fn list_files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[derive(Debug, PartialEq, Eq)]
struct ProseFinding {
    line: usize,
    problem: String,
}

/// Text that no sentence continues beyond. Each character has the number of its line.
#[derive(Debug, Default)]
struct TextBlock {
    chars: Vec<(char, usize)>,
}

impl TextBlock {
    fn push_line(&mut self, text: &str, line: usize) {
        self.chars.extend(text.trim().chars().chain([' ']).map(|char| (char, line)));
    }

    fn find_problems(&self) -> Vec<ProseFinding> {
        let prose = remove_markup(&self.chars);
        let mut findings = find_replaced_words(&prose);
        for sentence in split_sentences(&prose) {
            let words = count_words(sentence);
            if words > SENTENCE_WORDS_MAX {
                let text: String = sentence.iter().map(|(char, _)| *char).collect();
                let text = text.replace(CODE_SPAN, "`…`");
                let line = sentence[0].1;
                findings.push(ProseFinding { line, problem: format!("{words} words: {}", text.trim()) });
            }
        }
        findings.sort_by_key(|found| found.line);
        findings
    }
}

/// Leaves out fences, comments and tables' rules, and splits the rest.
fn split_markdown(text: &str) -> Vec<TextBlock> {
    let mut blocks = Vec::new();
    let mut block = TextBlock::default();
    let mut fence: Option<String> = None;
    let mut in_comment = false;
    let mut in_list = false;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let trimmed = line.trim_start().trim_start_matches("> ").trim_start();
        if let Some(open) = &fence {
            if trimmed.starts_with(open.as_str()) && trimmed.trim_matches('`').trim().is_empty() {
                fence = None;
            }
            continue;
        }
        if in_comment || trimmed.starts_with("<!--") {
            in_comment = !line.contains("-->");
            continue;
        }
        let ticks = trimmed.chars().take_while(|char| *char == '`').count();
        // A tab stop of spaces after an empty line is code, except in a list, where it continues the item.
        let is_code = line.starts_with("    ") && block.chars.is_empty() && !in_list;
        let marker = list_marker_length(trimmed);
        let ends_block =
            trimmed.is_empty() || ticks >= 3 || trimmed.starts_with(['#', '|']) || is_code || marker > 0;
        if ends_block && !block.chars.is_empty() {
            blocks.push(std::mem::take(&mut block));
        }
        in_list &= trimmed.is_empty() || line.starts_with(' ') || marker > 0 || !block.chars.is_empty();
        if ticks >= 3 {
            fence = Some("`".repeat(ticks));
        } else if trimmed.starts_with('#') {
            in_list = false;
            block.push_line(trimmed.trim_start_matches('#'), number);
            blocks.push(std::mem::take(&mut block));
        } else if trimmed.starts_with('|') {
            blocks.extend(split_cells(trimmed, number));
        } else if !is_code && !trimmed.is_empty() {
            in_list = marker > 0 || (in_list && line.starts_with(' '));
            block.push_line(&trimmed[marker..], number);
        }
    }
    blocks.push(block);
    blocks
}

/// The length of `- ` or `1. ` at the beginning of a list item, or 0.
fn list_marker_length(line: &str) -> usize {
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let rest = &line[digits..];
    let is_bullet = digits == 0 && ["- ", "* ", "+ "].iter().any(|bullet| rest.starts_with(bullet));
    let is_number = (1..=3).contains(&digits) && [". ", ") "].iter().any(|end| rest.starts_with(end));
    if is_bullet || is_number { digits + 2 } else { 0 }
}

fn split_cells(row: &str, line: usize) -> Vec<TextBlock> {
    let mut cells = vec![String::new()];
    let mut in_code = false;
    let mut before = ' ';
    for char in row.chars() {
        in_code ^= char == '`';
        match char {
            '|' if !in_code && before != '\\' => cells.push(String::new()),
            _ => cells.last_mut().expect("it begins with one").push(char),
        }
        before = char;
    }
    let to_block = |cell: String| {
        let mut block = TextBlock::default();
        block.push_line(&cell, line);
        block
    };
    cells.into_iter().map(to_block).collect()
}

/// The page of help texts: paragraphs within fences, without usage lines, option names, columns and examples.
fn split_help(page: &str) -> Vec<TextBlock> {
    let mut blocks = Vec::new();
    let mut block = TextBlock::default();
    let mut in_fence = false;
    let mut in_examples = false;
    for (index, line) in page.lines().enumerate() {
        let trimmed = line.trim();
        if line.starts_with("```") {
            in_fence = !in_fence;
            in_examples = false;
        }
        in_examples |= line.starts_with("Example");
        let has_columns = trimmed.contains("  ");
        let is_name = trimmed.starts_with('-') && !trimmed.starts_with("- ");
        let is_prose = in_fence && !in_examples && !has_columns && !is_name && !trimmed.ends_with(':');
        let is_text = is_prose && !line.starts_with("```") && !trimmed.starts_with("Usage:");
        let marker = list_marker_length(trimmed);
        if (!is_text || trimmed.is_empty() || marker > 0) && !block.chars.is_empty() {
            blocks.push(std::mem::take(&mut block));
        }
        if is_text && !trimmed.is_empty() {
            block.push_line(&trimmed[marker..], index + 1);
        }
    }
    blocks.push(block);
    blocks
}

/// String literals that directly follow one of [`LITERAL_STARTS`], or a `format!(` after it.
fn split_literals(source: &str) -> Vec<TextBlock> {
    let mut blocks = Vec::new();
    for start in LITERAL_STARTS {
        for (at, _) in source.match_indices(start) {
            let mut rest = source[at + start.len()..].trim_start();
            for wrapper in ["Some(", "format!("] {
                rest = rest.strip_prefix(wrapper).unwrap_or(rest).trim_start();
            }
            let Some(literal) = rest.strip_prefix('"') else { continue };
            let line = source[..source.len() - literal.len()].matches('\n').count() + 1;
            blocks.push(read_literal(literal, line));
        }
    }
    blocks
}

/// Reads up to the closing quote. A placeholder is a word.
fn read_literal(literal: &str, first_line: usize) -> TextBlock {
    let mut chars = Vec::new();
    let mut line = first_line;
    let mut rest = literal.chars().peekable();
    while let Some(char) = rest.next() {
        match char {
            '"' => break,
            '\\' => match rest.next() {
                Some('\n') => {
                    line += 1;
                    while let Some(space) = rest.next_if(|char| char.is_whitespace()) {
                        line += usize::from(space == '\n');
                    }
                }
                Some('n') => chars.push(('.', line)),
                Some(escaped) => chars.push((escaped, line)),
                None => break,
            },
            '{' => {
                if rest.by_ref().any(|char| char == '}') {
                    chars.push((CODE_SPAN, line));
                }
            }
            '\n' => {
                line += 1;
                chars.push((' ', line));
            }
            _ => chars.push((char, line)),
        }
    }
    TextBlock { chars }
}

/// Replaces code spans, leaves out tags, images and the targets of links, and joins spaces.
fn remove_markup(chars: &[(char, usize)]) -> Vec<(char, usize)> {
    let mut prose: Vec<(char, usize)> = Vec::new();
    let find = |from: usize, wanted: char| (from..chars.len()).find(|index| chars[*index].0 == wanted);
    let mut at = 0;
    while let Some(&(char, line)) = chars.get(at) {
        let next = chars.get(at + 1).map(|(char, _)| *char);
        match (char, next) {
            ('`', _) => {
                let ticks = chars[at..].iter().take_while(|(char, _)| *char == '`').count();
                let is_end =
                    |index: &usize| chars[*index..*index + ticks].iter().all(|(char, _)| *char == '`');
                let last = chars.len().saturating_sub(ticks);
                let end = (at + ticks..=last).find(is_end);
                prose.push((CODE_SPAN, line));
                at = end.unwrap_or(at) + ticks;
                continue;
            }
            ('!', Some('[')) | (']', Some('(')) => {
                if let Some(end) = find(at, ')') {
                    at = end + 1;
                    continue;
                }
            }
            ('<', Some(first)) if first.is_ascii_alphabetic() || first == '/' || first == '!' => {
                if let Some(end) = find(at, '>') {
                    at = end + 1;
                    continue;
                }
            }
            ('[' | ']' | '*' | '\\', _) => {}
            _ if char.is_whitespace() => {
                if prose.last().is_some_and(|(last, _)| *last != ' ') {
                    prose.push((' ', line));
                }
            }
            _ => prose.push((char, line)),
        }
        at += 1;
    }
    prose
}

fn split_sentences(prose: &[(char, usize)]) -> Vec<&[(char, usize)]> {
    let mut sentences = Vec::new();
    let mut begin = 0;
    for (index, (char, _)) in prose.iter().enumerate() {
        if index >= begin && matches!(char, '.' | '!' | '?' | '。') && ends_sentence(prose, begin, index) {
            sentences.push(&prose[begin..=index]);
            begin = index + 1;
            while prose.get(begin).is_some_and(|(char, _)| *char == ' ' || is_closing(*char)) {
                begin += 1;
            }
        }
    }
    if begin < prose.len() {
        sentences.push(&prose[begin..]);
    }
    sentences
}

const fn is_closing(char: char) -> bool {
    matches!(char, ')' | '"' | '\'' | '”' | '’' | '»')
}

/// Whether the mark at `index` ends the sentence that starts at `begin`: the next word starts one, and it is no abbreviation.
fn ends_sentence(prose: &[(char, usize)], begin: usize, index: usize) -> bool {
    let char_at = |index: usize| prose.get(index).map(|(char, _)| *char);
    if char_at(index) == Some('。') {
        return true;
    }
    let word: String = prose[begin..index].iter().map(|(char, _)| *char).collect();
    let word = word.rsplit([' ', '(']).next().unwrap_or_default().to_lowercase();
    if char_at(index) == Some('.') && ABBREVIATIONS.contains(&&*word) {
        return false;
    }
    let mut next = index + 1;
    while char_at(next).is_some_and(is_closing) {
        next += 1;
    }
    match char_at(next) {
        None => true,
        Some(' ') => {
            while char_at(next).is_some_and(|char| matches!(char, ' ' | '(' | '"' | '\'' | '“' | '«')) {
                next += 1;
            }
            char_at(next).is_none_or(|char| !char.is_lowercase())
        }
        Some(_) => false,
    }
}

fn count_words(sentence: &[(char, usize)]) -> usize {
    let is_word =
        |word: &&[(char, usize)]| word.iter().any(|(char, _)| char.is_alphanumeric() || *char == CODE_SPAN);
    sentence.split(|(char, _)| *char == ' ').filter(is_word).count()
}

fn find_replaced_words(prose: &[(char, usize)]) -> Vec<ProseFinding> {
    let lower: Vec<char> = prose.iter().map(|(char, _)| char.to_ascii_lowercase()).collect();
    let is_part = |index: usize| {
        lower.get(index).is_some_and(|char| char.is_alphanumeric() || matches!(char, '-' | '_'))
    };
    let mut findings = Vec::new();
    for (phrase, instead) in REPLACED_WORDS {
        let wanted: Vec<char> = phrase.chars().collect();
        for (at, window) in lower.windows(wanted.len()).enumerate() {
            let is_inside = at.checked_sub(1).is_some_and(is_part) || is_part(at + wanted.len());
            if window == wanted && !is_inside {
                let problem = format!("\"{phrase}\": write \"{instead}\"");
                findings.push(ProseFinding { line: prose[at].1, problem });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str) -> Vec<String> {
        let chars: Vec<(char, usize)> = text.chars().map(|char| (char, 1)).collect();
        let prose = remove_markup(&chars);
        let to_text = |found: &[(char, usize)]| found.iter().map(|(char, _)| *char).collect();
        split_sentences(&prose).into_iter().map(to_text).collect()
    }

    fn problems(blocks: &[TextBlock]) -> Vec<(usize, String)> {
        let found = blocks.iter().flat_map(TextBlock::find_problems);
        found.map(|found| (found.line, found.problem.chars().take(10).collect())).collect()
    }

    const LONG: &str = "a b c d e f g h i j k l m n o p q r s t u v w x y z";

    #[test]
    fn a_mark_before_a_new_beginning_ends_a_sentence() {
        assert_eq!(sentences("One is it. Two! Is it three?"), ["One is it.", "Two!", "Is it three?"]);
        assert_eq!(
            sentences("(Not the first.) `x` is next. 3 left"),
            ["(Not the first.", "\u{fffc} is next.", "3 left"]
        );
    }

    #[test]
    fn versions_abbreviations_and_file_names_end_no_sentence() {
        let whole = "See e.g. Landfall 1.2.3 and landfall.toml, i.e. the settings";
        assert_eq!(sentences(whole), [whole]);
    }

    #[test]
    fn a_code_span_is_one_word_and_a_link_is_its_text() {
        let chars: Vec<(char, usize)> =
            "Type `a b. C` in [the page](x y.md) <b>now</b>".chars().map(|char| (char, 1)).collect();
        let prose = remove_markup(&chars);
        assert_eq!(prose.iter().map(|(char, _)| *char).collect::<String>(), "Type \u{fffc} in the page now");
        assert_eq!(count_words(&prose), 6);
    }

    #[test]
    fn items_cells_headings_and_fences_are_blocks() {
        let half = &LONG[..30];
        let text = format!(
            "# {half}\n{half}\n- {half}\n  end\n- {half}\n| {half} | {half} |\n\n```\n{LONG}\n```\n\n    {LONG}\n"
        );
        assert_eq!(problems(&split_markdown(&text)), []);
        let text = format!("x\n\n- {half}\n  {half}\n\n| y | {LONG} |\n");
        assert_eq!(
            problems(&split_markdown(&text)),
            [(3, "30 words: ".to_owned()), (6, "26 words: ".to_owned())]
        );
    }

    #[test]
    fn a_replaced_word_is_found_across_lines_but_not_in_code() {
        let text = "It goes\non. `nobody` is a-whoever.\nWhoever asks\n";
        assert_eq!(
            problems(&split_markdown(text)),
            [(1, "\"goes on\":".to_owned()), (3, "\"whoever\":".to_owned())]
        );
    }

    #[test]
    fn literals_of_hints_and_errors_are_read_with_their_line() {
        let source = format!(
            "fn x() {{\n  bail!(\n    \"{LONG} {{name}}\"\n  );\n  .hint(format!(\"nobody \\\n a\"))\n}}\n"
        );
        assert_eq!(
            problems(&split_literals(&source)),
            [(5, "\"nobody\": ".to_owned()), (3, "27 words: ".to_owned())]
        );
    }

    #[test]
    fn help_is_read_without_its_options_and_examples() {
        let page = format!(
            "```text\n{LONG}\n\nUsage: {LONG}\n\nOptions:\n      --x <X>\n          Whoever it is\n\nExample:\n  {LONG}\n```\n"
        );
        assert_eq!(
            problems(&split_help(&page)),
            [(2, "26 words: ".to_owned()), (8, "\"whoever\":".to_owned())]
        );
    }

    #[test]
    fn readme_guide_and_reference_have_no_findings() {
        let root = root().expect("the root");
        let mut findings = Vec::new();
        for path in list_checked_files(&root).expect("the files") {
            let name = path.strip_prefix(&root).expect("below the root").display().to_string();
            // Help, hints, errors and names of the code change together with the code.
            if name.ends_with(".md") && name != HELP_PAGE && name != "ARCHITECTURE.md" {
                let found = check_file(&name, &path).expect("readable");
                findings
                    .extend(found.iter().map(|found| format!("{name}:{}: {}", found.line, found.problem)));
            }
        }
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
