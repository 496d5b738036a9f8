//! A hint: `verify: file_contains "README.md" "Landfall" --when="test -f README.md"`. It is read into what it means, once; what
//! cannot be read is an error that says why, and the criterion stays open.

use std::collections::BTreeSet;

use thiserror::Error;

use super::address::AddressTemplate;
use super::catalogue::{self, CATALOGUE, CommandSpec};

/// How a criterion is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyHint {
    /// What is checked.
    pub check: CriterionCheck,
    /// A command of the shell; unless it ends with 0 the check is skipped.
    pub when: Option<String>,
    /// Whether the address may be one of this machine.
    pub allow_localhost: bool,
}

/// What is checked. Each is a command of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CriterionCheck {
    /// The file is there, or is not.
    File {
        /// Which.
        path: RepoPath,
        /// Whether it is to be there.
        there: bool,
    },
    /// The folder is there, or is not.
    Dir {
        /// Which.
        path: RepoPath,
        /// Whether it is to be there.
        there: bool,
    },
    /// git knows the file.
    GitCommitted(RepoPath),
    /// The text is in the file, or is not.
    Contains {
        /// Which file.
        path: RepoPath,
        /// The text, as it is.
        text: String,
        /// Whether it is to be there.
        there: bool,
    },
    /// The text is in none of the files.
    NoneContains {
        /// Which files.
        glob: RepoPath,
        /// The text, as it is.
        text: String,
    },
    /// The pattern is found in the file.
    Grep {
        /// An extended regular expression.
        pattern: String,
        /// Which file.
        path: RepoPath,
    },
    /// The field of a JSON file has the value.
    JsonField {
        /// Which file.
        path: RepoPath,
        /// Which field, such as `.a.b`.
        field: String,
        /// Its value.
        value: String,
    },
    /// The text is below the heading, or is not.
    SectionContains {
        /// Which file.
        path: RepoPath,
        /// Part of the heading.
        heading: String,
        /// The text, as it is.
        text: String,
        /// Whether it is to be there.
        there: bool,
    },
    /// The link leads there.
    Symlink {
        /// Which link.
        path: RepoPath,
        /// Where it leads.
        target: String,
    },
    /// The command ends with 0.
    Command(String),
    /// The build ends with 0.
    BuildSuccess(String),
    /// The address answers with the code.
    HttpStatus {
        /// The address.
        url: AddressTemplate,
        /// The code.
        code: u16,
    },
    /// The page has the element.
    HtmlCheck {
        /// The address.
        url: AddressTemplate,
        /// A CSS selector.
        selector: String,
        /// How many.
        hits: MatchCount,
    },
    /// The JSON at the address has the value.
    ApiCheck {
        /// The address.
        url: AddressTemplate,
        /// Where in it.
        path: String,
        /// The value.
        value: String,
    },
    /// The header has the value.
    HttpHeader {
        /// The address.
        url: AddressTemplate,
        /// The header.
        header: String,
        /// The value.
        value: String,
    },
    /// The address leads there.
    HttpRedirect {
        /// The address.
        url: AddressTemplate,
        /// Where it leads.
        to: AddressTemplate,
        /// The code.
        code: u16,
    },
    /// The page scores at least that.
    Lighthouse {
        /// The address.
        url: AddressTemplate,
        /// What is scored.
        category: String,
        /// The least score, of 100.
        least: u8,
    },
    /// The page shows the element.
    BrowserCheck {
        /// The address.
        url: AddressTemplate,
        /// A CSS selector.
        selector: String,
        /// Text in it.
        text: Option<String>,
    },
    /// A judge sees what is described.
    BrowserScreenshot {
        /// The address.
        url: AddressTemplate,
        /// What is to be seen.
        description: String,
    },
    /// Both look the same.
    VisualDiff {
        /// What it should look like.
        reference: String,
        /// What it looks like.
        url: AddressTemplate,
        /// In windows of these sizes, as they are written.
        viewports: Option<String>,
        /// In these states, as they are written.
        states: Option<String>,
    },
    /// A judge finds what is described in what a tool answers.
    McpCall {
        /// The tool.
        tool: String,
        /// What is to be found.
        description: String,
    },
    /// The answer of the forge contains the value.
    GithubCheck {
        /// What is asked.
        query: GithubQuery,
        /// The value.
        value: String,
    },
    /// A judge in fresh context finds that it holds.
    Rubric(String),
    /// A command of the project's own.
    Custom {
        /// Its name.
        name: String,
        /// What it is given.
        given: Vec<String>,
    },
}

/// How many elements are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchCount {
    /// Any number but none.
    Some,
    /// Exactly so many.
    Count(u32),
}

/// A path in the repository: never outside it, never an option.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepoPath(String);

impl RepoPath {
    /// The path, if it stays inside.
    pub fn new(text: &str) -> Result<Self, HintError> {
        let wrong = |why: &str| Err(HintError::Path(shorten_for_message(text), why.to_owned()));
        let text = text.strip_prefix("./").unwrap_or(text);
        if text.is_empty() || text.len() > 1_000 {
            return wrong("it is empty or too long");
        }
        if text.chars().any(char::is_control) {
            return wrong("it has control characters");
        }
        if text.starts_with(['/', '-', '~', ':', '\\']) {
            return wrong("it does not begin inside the repository");
        }
        if text
            .split(['/', '\\'])
            .any(|part| matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git"))
        {
            // A folder may be written with a slash at its end.
            let folder = text.strip_suffix('/').unwrap_or_default();
            if folder.is_empty() || Self::new(folder).is_err() {
                return wrong("a part of it is empty, leads out, or is git's own");
            }
            return Ok(Self(folder.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a forge is asked, as words of its command line client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GithubQuery {
    /// The words behind `gh`.
    pub words: Vec<String>,
    /// Whether it is known only to read. Anything else may do anything.
    pub only_reads: bool,
}

/// Why a hint cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HintError {
    /// There is nothing in it.
    #[error("no command is named")]
    Empty,
    /// No such command.
    #[error("unknown verify command `{name}`{}", nearest.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default())]
    Unknown {
        /// What was named.
        name: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
    },
    /// Too few or too many words.
    #[error("`{name}` takes {takes}; {given} were given")]
    Count {
        /// The command.
        name: &'static str,
        /// What it takes.
        takes: String,
        /// How many there were.
        given: usize,
    },
    /// The quotes do not match up.
    #[error("{0}")]
    Syntax(&'static str),
    /// A word that is not what it should be.
    #[error("`{0}` is not {1}")]
    Word(String, &'static str),
    /// An option the command does not have.
    #[error("unknown option `{0}`")]
    Option(String),
    /// A path that is none.
    #[error("the path `{0}` is refused: {1}")]
    Path(String, String),
    /// An address that is none.
    #[error("the address is refused: {0}")]
    Address(String),
    /// Two hints for one criterion.
    #[error("there is more than one verify command")]
    Twice,
}

fn shorten_for_message(text: &str) -> String {
    text.chars().take(60).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A word of a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HintWord {
    Plain(String),
    Quoted(String),
    /// `--name` or `--name="value"`.
    Option(String, Option<String>),
}

impl VerifyHint {
    /// Reads what stands behind `verify:`.
    pub fn parse(text: &str, customs: &BTreeSet<String>) -> Result<Self, HintError> {
        let mut words = split_words(text)?.into_iter();
        let name = match words.next() {
            Some(HintWord::Plain(name)) => name,
            Some(HintWord::Quoted(_) | HintWord::Option(..)) => {
                return Err(HintError::Syntax("a command begins with its name"));
            }
            None => return Err(HintError::Empty),
        };
        let mut given = Vec::new();
        let mut options = HintOptions::default();
        for word in words {
            match word {
                HintWord::Plain(text) | HintWord::Quoted(text) => given.push(text),
                HintWord::Option(name, value) => options.take(name, value)?,
            }
        }
        let check = match catalogue::find_command(&name) {
            // Ours go before those of a project with the same name.
            Some(spec) => build(spec, given, &mut options)?,
            None if customs.contains(&name) => CriterionCheck::Custom { name, given },
            None => {
                let nearest =
                    CATALOGUE.iter().map(|spec| spec.name).min_by_key(|known| edit_distance(known, &name));
                let nearest = nearest.filter(|known| edit_distance(known, &name) <= 3);
                return Err(HintError::Unknown { name: shorten_for_message(&name), nearest });
            }
        };
        if let Some((name, _)) = options.others.first() {
            return Err(HintError::Option(shorten_for_message(&format!("--{name}"))));
        }
        Ok(Self { check, when: options.when, allow_localhost: options.allow_localhost })
    }

    /// The command of the catalogue; none for one of the project's own.
    #[must_use]
    pub fn command_spec(&self) -> Option<&'static CommandSpec> {
        catalogue::find_command(self.check.name())
    }

    /// The address it looks at, if it looks at one.
    #[must_use]
    pub fn address_template(&self) -> Option<&AddressTemplate> {
        match &self.check {
            CriterionCheck::HttpStatus { url, .. }
            | CriterionCheck::HtmlCheck { url, .. }
            | CriterionCheck::ApiCheck { url, .. }
            | CriterionCheck::HttpHeader { url, .. }
            | CriterionCheck::HttpRedirect { url, .. }
            | CriterionCheck::Lighthouse { url, .. }
            | CriterionCheck::BrowserCheck { url, .. }
            | CriterionCheck::BrowserScreenshot { url, .. }
            | CriterionCheck::VisualDiff { url, .. } => Some(url),
            CriterionCheck::File { .. }
            | CriterionCheck::Dir { .. }
            | CriterionCheck::GitCommitted(_)
            | CriterionCheck::Contains { .. }
            | CriterionCheck::NoneContains { .. }
            | CriterionCheck::Grep { .. }
            | CriterionCheck::JsonField { .. }
            | CriterionCheck::SectionContains { .. }
            | CriterionCheck::Symlink { .. }
            | CriterionCheck::Command(_)
            | CriterionCheck::BuildSuccess(_)
            | CriterionCheck::McpCall { .. }
            | CriterionCheck::GithubCheck { .. }
            | CriterionCheck::Rubric(_)
            | CriterionCheck::Custom { .. } => None,
        }
    }
}

impl CriterionCheck {
    /// The name of its command.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::File { there: true, .. } => "file_exists",
            Self::File { there: false, .. } => "file_not_exists",
            Self::Dir { there: true, .. } => "dir_exists",
            Self::Dir { there: false, .. } => "dir_not_exists",
            Self::GitCommitted(_) => "git_committed",
            Self::Contains { there: true, .. } => "file_contains",
            Self::Contains { there: false, .. } => "file_not_contains",
            Self::NoneContains { .. } => "files_not_contain",
            Self::Grep { .. } => "grep",
            Self::JsonField { .. } => "json_field",
            Self::SectionContains { there: true, .. } => "section_contains",
            Self::SectionContains { there: false, .. } => "section_not_contains",
            Self::Symlink { .. } => "symlink",
            Self::Command(_) => "command",
            Self::BuildSuccess(_) => "build_success",
            Self::HttpStatus { .. } => "http_status",
            Self::HtmlCheck { .. } => "html_check",
            Self::ApiCheck { .. } => "api_check",
            Self::HttpHeader { .. } => "http_header",
            Self::HttpRedirect { .. } => "http_redirect",
            Self::Lighthouse { .. } => "lighthouse_check",
            Self::BrowserCheck { .. } => "browser_check",
            Self::BrowserScreenshot { .. } => "browser_screenshot",
            Self::VisualDiff { .. } => "visual_diff",
            Self::McpCall { .. } => "mcp_call",
            Self::GithubCheck { .. } => "github_check",
            Self::Rubric(_) => "rubric",
            Self::Custom { name, .. } => name,
        }
    }
}

#[derive(Default)]
struct HintOptions {
    when: Option<String>,
    allow_localhost: bool,
    others: Vec<(String, Option<String>)>,
}

impl HintOptions {
    fn take(&mut self, name: String, value: Option<String>) -> Result<(), HintError> {
        match (name.as_str(), value) {
            ("when", Some(value)) if self.when.is_none() && !value.trim().is_empty() => {
                self.when = Some(value)
            }
            ("when", _) => return Err(HintError::Syntax("`--when` takes one command in quotes")),
            ("allow-localhost", None) => self.allow_localhost = true,
            (_, value) => self.others.push((name, value)),
        }
        Ok(())
    }

    /// An option of one command alone.
    fn take_option(&mut self, name: &str) -> Option<(String, Option<String>)> {
        let index = self.others.iter().position(|(it, _)| it == name)?;
        Some(self.others.remove(index))
    }
}

fn build(
    spec: &'static CommandSpec,
    mut given: Vec<String>,
    options: &mut HintOptions,
) -> Result<CriterionCheck, HintError> {
    // `--exists` and `--count=2` say how many, in quotes or without.
    if spec.name == "html_check" {
        for name in ["exists", "count"] {
            if let Some((name, value)) = options.take_option(name) {
                given.push(value.map_or(format!("--{name}"), |value| format!("--{name}={value}")));
            }
        }
    }
    let least = spec.takes.len() - spec.optional;
    if !(least..=spec.takes.len()).contains(&given.len()) {
        let takes = spec.takes.iter().map(|it| format!("\"{it}\"")).collect::<Vec<_>>().join(" ");
        return Err(HintError::Count { name: spec.name, takes, given: given.len() });
    }
    let mut given = given.into_iter();
    let mut next = || given.next().unwrap_or_default();
    let code = |text: String| {
        let code = text.parse::<u16>().ok().filter(|code| (100..600).contains(code));
        code.ok_or_else(|| HintError::Word(shorten_for_message(&text), "a status from 100 to 599"))
    };
    let filled = |text: String| {
        if text.trim().is_empty() {
            Err(HintError::Word(shorten_for_message(&text), "something to look for"))
        } else {
            Ok(text)
        }
    };
    Ok(match spec.name {
        "file_exists" | "file_not_exists" => {
            CriterionCheck::File { path: RepoPath::new(&next())?, there: spec.name == "file_exists" }
        }
        "dir_exists" | "dir_not_exists" => {
            CriterionCheck::Dir { path: RepoPath::new(&next())?, there: spec.name == "dir_exists" }
        }
        "git_committed" => CriterionCheck::GitCommitted(RepoPath::new(&next())?),
        "file_contains" | "file_not_contains" => CriterionCheck::Contains {
            path: RepoPath::new(&next())?,
            text: filled(next())?,
            there: spec.name == "file_contains",
        },
        "files_not_contain" => {
            CriterionCheck::NoneContains { glob: RepoPath::new(&next())?, text: filled(next())? }
        }
        "grep" => CriterionCheck::Grep { pattern: filled(next())?, path: RepoPath::new(&next())? },
        "json_field" => {
            let path = RepoPath::new(&next())?;
            let field = next();
            if !field.starts_with('.') {
                return Err(HintError::Word(shorten_for_message(&field), "a field such as `.a.b`"));
            }
            CriterionCheck::JsonField { path, field, value: next() }
        }
        "section_contains" | "section_not_contains" => CriterionCheck::SectionContains {
            path: RepoPath::new(&next())?,
            heading: filled(next())?,
            text: filled(next())?,
            there: spec.name == "section_contains",
        },
        "symlink" => CriterionCheck::Symlink { path: RepoPath::new(&next())?, target: filled(next())? },
        "command" => CriterionCheck::Command(filled(next())?),
        "build_success" => CriterionCheck::BuildSuccess(filled(next())?),
        "http_status" => {
            CriterionCheck::HttpStatus { url: AddressTemplate::parse(&next())?, code: code(next())? }
        }
        "html_check" => CriterionCheck::HtmlCheck {
            url: AddressTemplate::parse(&next())?,
            selector: filled(next())?,
            hits: parse_match_count(&next())?,
        },
        "api_check" => CriterionCheck::ApiCheck {
            url: AddressTemplate::parse(&next())?,
            path: filled(next())?,
            value: next(),
        },
        "http_header" => {
            let (url, header) = (AddressTemplate::parse(&next())?, next());
            let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            if header.is_empty() || !header.bytes().all(legal) {
                return Err(HintError::Word(shorten_for_message(&header), "the name of a header"));
            }
            CriterionCheck::HttpHeader { url, header, value: next() }
        }
        "http_redirect" => CriterionCheck::HttpRedirect {
            url: AddressTemplate::parse(&next())?,
            to: AddressTemplate::parse(&next())?,
            code: code(next())?,
        },
        "lighthouse_check" => {
            let (url, category, least) = (AddressTemplate::parse(&next())?, filled(next())?, next());
            let score = least.parse::<u8>().ok().filter(|score| *score <= 100);
            let score =
                score.ok_or_else(|| HintError::Word(shorten_for_message(&least), "a score from 0 to 100"))?;
            CriterionCheck::Lighthouse { url, category, least: score }
        }
        "browser_check" => {
            let (url, selector) = (AddressTemplate::parse(&next())?, filled(next())?);
            CriterionCheck::BrowserCheck { url, selector, text: Some(next()).filter(|text| !text.is_empty()) }
        }
        "browser_screenshot" => CriterionCheck::BrowserScreenshot {
            url: AddressTemplate::parse(&next())?,
            description: filled(next())?,
        },
        "visual_diff" => CriterionCheck::VisualDiff {
            reference: filled(next())?,
            url: AddressTemplate::parse(&next())?,
            viewports: options.take_option("viewports").and_then(|(_, value)| value),
            states: options.take_option("states").and_then(|(_, value)| value),
        },
        "mcp_call" => CriterionCheck::McpCall { tool: filled(next())?, description: filled(next())? },
        "github_check" => {
            CriterionCheck::GithubCheck { query: github_query(&next())?, value: filled(next())? }
        }
        "rubric" => CriterionCheck::Rubric(filled(next())?),
        _ => unreachable!("every command of the catalogue is built; a test walks it"),
    })
}

fn parse_match_count(text: &str) -> Result<MatchCount, HintError> {
    let count = text.strip_prefix("--count=").map(|count| count.trim_matches('"').parse::<u32>());
    match (text, count) {
        ("--exists", _) => Ok(MatchCount::Some),
        (_, Some(Ok(count))) => Ok(MatchCount::Count(count)),
        (_, Some(Err(_)) | None) => {
            Err(HintError::Word(shorten_for_message(text), "`--exists` or `--count=N`"))
        }
    }
}

/// Options of `gh` that change what is shown and nothing else. Those with a word behind them take it along.
const SHOWING: &[(&str, bool)] = &[
    ("--json", true),
    ("--jq", true),
    ("-q", true),
    ("--repo", true),
    ("-R", true),
    ("--branch", true),
    ("--limit", true),
    ("--workflow", true),
    ("--comments", false),
    ("--paginate", false),
    ("--required", false),
];

fn github_query(text: &str) -> Result<GithubQuery, HintError> {
    let words = shell_words(text)?;
    let Some(("gh", words)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) else {
        return Err(HintError::Word(shorten_for_message(text), "a command that begins with `gh`"));
    };
    let mut plain = Vec::new();
    let mut shows = true;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if !word.starts_with('-') {
            plain.push(word.as_str());
            continue;
        }
        let (name, value) =
            word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        match SHOWING.iter().find(|(known, _)| *known == name) {
            Some((_, true)) if value.is_none() => {
                let _ = rest.next(); // its word
            }
            Some((_, true)) => {}
            Some((_, false)) if value.is_none() => {}
            // Anything else may make it write: `-X DELETE`, `-f a=b`, `--web`, `-qX`.
            Some(_) | None => shows = false,
        }
    }
    let reads = matches!(
        plain[..],
        ["issue" | "pr", "view", ..] | ["pr", "checks", ..] | ["run", "list" | "view", ..]
    ) || matches!(plain[..], ["api", path] if path != "graphql" && path != "/graphql");
    Ok(GithubQuery { words: words.to_vec(), only_reads: reads && shows })
}

/// Words as a shell would part them, without anything else a shell would do.
fn shell_words(text: &str) -> Result<Vec<String>, HintError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '|' | '&' | ';' | '<' | '>' | '$' | '`' | '\\' | '(' | ')' | '*' | '\0') => {
                return Err(HintError::Syntax("a query is one command, without anything of a shell in it"));
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(HintError::Syntax("a quote is not closed"));
    }
    words.extend(word);
    Ok(words)
}

/// The words of a hint. In quotes everything is itself, except that `\"` is a quote.
fn split_words(text: &str) -> Result<Vec<HintWord>, HintError> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('"') {
            let (quoted, after) = parse_quoted(after)?;
            words.push(HintWord::Quoted(quoted));
            rest = after;
        } else if let Some(after) = rest.strip_prefix("--") {
            let end = after.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(after.len());
            let (name, after) = after.split_at(end);
            match after.strip_prefix("=\"") {
                Some(after) => {
                    let (value, after) = parse_quoted(after)?;
                    words.push(HintWord::Option(name.to_owned(), Some(value)));
                    rest = after;
                }
                None => {
                    let value = after.strip_prefix('=');
                    let end = value.map(|value| value.find(char::is_whitespace).unwrap_or(value.len()));
                    let value = value.zip(end).map(|(value, end)| value[..end].to_owned());
                    rest = &after[value.as_ref().map_or(0, |value| value.len() + 1)..];
                    words.push(HintWord::Option(name.to_owned(), value));
                }
            }
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len());
            words.push(HintWord::Plain(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        // Words stand apart.
        if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
            return Err(HintError::Syntax("a space is missing between two words"));
        }
        rest = rest.trim_start();
    }
    Ok(words)
}

/// What stands until the quote that ends it, and what comes behind it.
fn parse_quoted(text: &str) -> Result<(String, &str), HintError> {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' if chars.peek().is_some_and(|(_, next)| *next == '"') => {
                value.push('"');
                chars.next();
            }
            _ => value.push(c),
        }
    }
    Err(HintError::Syntax("a quote is not closed"))
}

/// How many letters lie between two words.
fn edit_distance(one: &str, two: &str) -> usize {
    let two: Vec<char> = two.chars().take(40).collect();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (index, a) in one.chars().enumerate() {
        let mut before = row[0];
        row[0] = index + 1;
        for (column, b) in two.iter().enumerate() {
            let changed = before + usize::from(a != *b);
            before = row[column + 1];
            row[column + 1] = changed.min(before + 1).min(row[column] + 1);
        }
    }
    row[two.len()]
}
