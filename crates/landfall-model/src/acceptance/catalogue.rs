//! The verify commands there are: what each takes, whether it has to be allowed, and what becomes of it where nothing may be run.

/// A verify command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandSpec {
    /// Its name.
    pub name: &'static str,
    /// What it takes, in order.
    pub takes: &'static [&'static str],
    /// How many of those at the end may be left out.
    pub optional: usize,
    /// Whether someone has to allow it.
    pub permission: Permission,
    /// What becomes of it in safe mode.
    pub in_safe_mode: SafeModeRule,
    /// How long it may take.
    pub limit_ms: u64,
    /// When it passes.
    pub passes: &'static str,
}

/// Whether a command may simply be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// It only looks.
    Allow,
    /// Whoever set up the project has to have said yes.
    Ask,
}

/// What becomes of a command in safe mode, where the text of an issue runs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SafeModeRule {
    /// It runs as ever.
    Runs,
    /// It runs if its address is a public one.
    PublicOnly,
    /// It runs if it only reads.
    ReadOnly,
    /// A check of the forge that runs the same command answers for it; without one it stays open.
    FromChecks,
    /// It stays open.
    Open,
}

const SECOND: u64 = 1_000;

macro_rules! command {
    ($name:literal [$($takes:literal),*] $(- $optional:literal)?, $permission:ident, $safe:ident, $limit:expr, $passes:literal) => {
        CommandSpec {
            name: $name,
            takes: &[$($takes),*],
            optional: 0 $(+ $optional)?,
            permission: Permission::$permission,
            in_safe_mode: SafeModeRule::$safe,
            limit_ms: $limit,
            passes: $passes,
        }
    };
}

/// All of them, in alphabetical order.
pub const CATALOGUE: &[CommandSpec] = &[
    command!("api_check" ["url", "path", "value"], Ask, PublicOnly, 10 * SECOND, "the value of the JSON at the address is this"),
    command!("browser_check" ["url", "selector", "text"] - 1, Ask, Open, 60 * SECOND, "the page shows the element, with the text"),
    command!("browser_screenshot" ["url", "description"], Ask, Open, 60 * SECOND, "a judge sees what is described"),
    command!("build_success"["command"], Ask, Open, 120 * SECOND, "the command ends with 0"),
    command!("command"["command"], Ask, FromChecks, 60 * SECOND, "the command ends with 0"),
    command!("dir_exists"["path"], Allow, Runs, 10 * SECOND, "the folder is there"),
    command!("dir_not_exists"["path"], Allow, Runs, 10 * SECOND, "the folder is not there"),
    command!("file_contains" ["path", "text"], Allow, Runs, 10 * SECOND, "the text is in the file"),
    command!("file_exists"["path"], Allow, Runs, 10 * SECOND, "the file is there"),
    command!("file_not_contains" ["path", "text"], Allow, Runs, 10 * SECOND, "the text is not in the file"),
    command!("file_not_exists"["path"], Allow, Runs, 10 * SECOND, "the file is not there"),
    command!("files_not_contain" ["glob", "text"], Allow, Runs, 30 * SECOND, "the text is in none of the files"),
    command!("git_committed"["path"], Allow, Runs, 10 * SECOND, "git knows the file"),
    command!("github_check" ["query", "value"], Ask, ReadOnly, 30 * SECOND, "the answer contains the value"),
    command!("grep" ["pattern", "path"], Allow, Runs, 30 * SECOND, "the pattern is found in the file"),
    command!("html_check" ["url", "selector", "hits"], Ask, PublicOnly, 10 * SECOND, "the page has the element, or so many of it"),
    command!("http_header" ["url", "header", "value"], Ask, PublicOnly, 10 * SECOND, "the header has the value"),
    command!("http_redirect" ["url", "to", "code"], Ask, PublicOnly, 10 * SECOND, "the address leads there, with the code"),
    command!("http_status" ["url", "code"], Ask, PublicOnly, 10 * SECOND, "the address answers with the code"),
    command!("json_field" ["path", "field", "value"], Allow, Runs, 10 * SECOND, "the field has the value"),
    command!("lighthouse_check" ["url", "category", "least"], Ask, Open, 120 * SECOND, "the page scores at least that"),
    command!("mcp_call" ["tool", "description"], Ask, Open, 60 * SECOND, "a judge finds what is described in the answer"),
    command!("rubric"["text"], Allow, Runs, 300 * SECOND, "a judge in fresh context finds that it holds"),
    command!("section_contains" ["path", "heading", "text"], Allow, Runs, 10 * SECOND, "the text is below the heading"),
    command!("section_not_contains" ["path", "heading", "text"], Allow, Runs, 10 * SECOND, "the text is not below the heading"),
    command!("symlink" ["path", "target"], Allow, Runs, 10 * SECOND, "the link leads there"),
    command!("visual_diff" ["reference", "url"], Ask, Open, 120 * SECOND, "both look the same"),
];

/// The command of this name.
pub(super) fn find_command(name: &str) -> Option<&'static CommandSpec> {
    CATALOGUE.iter().find(|command| command.name == name)
}
