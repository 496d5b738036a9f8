//! What is set about the tracker, made fit to work with.

use std::path::{Path, PathBuf};

use landfall_agents::nearest_word;
use landfall_model::PathPattern;
use landfall_model::acceptance::{AcceptanceMode, WebAddress};
use landfall_trackers::github::GithubEndpoints;
use landfall_trackers::registry::{self, TRACKERS};
use landfall_trackers::tracker::RepoName;

use super::raw::RawTracker;
use super::resolve::SettingsMismatch;

/// Where issues are, and how they are taken from there to landed work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackerSettings {
    /// The name of the tracker in its registry; none if nobody wants one.
    pub kind: Option<&'static str>,
    /// The repository; without it, the one that `origin` leads to.
    pub repository: Option<RepoName>,
    /// The server; without it, the public one, or the one that `origin` leads to.
    pub base: Option<GithubEndpoints>,
    /// The file that holds the token; a full path, or one that begins with `~`.
    pub token_file: Option<PathBuf>,
    /// The file that holds the secret of a webhook; likewise.
    pub webhook_secret_file: Option<PathBuf>,
    /// The folder of issues that are files; seen from the root of the project.
    pub folder: Option<PathBuf>,
    /// The field of projects that holds a size.
    pub size_field: Option<String>,
    /// The time between two questions about changes and about the checks of a forge.
    pub poll_ms: u64,
    /// The shortest time between two changes on a forge.
    pub write_pause_ms: u64,
    /// The folder of specs, in the repository; without a slash at its end.
    pub spec_path: String,
    /// Whether even small issues land by a pull request.
    pub always_pr: bool,
    /// Whether issues are made of what agents propose.
    pub file_proposals: bool,
    /// How often an issue that does not hold is opened again.
    pub verify_iterations_max: u32,
    /// How many parts of one large issue are worked on at once.
    pub concurrent: u32,
    /// Where what landed runs.
    pub production_url: Option<WebAddress>,
    /// Where work that has not landed can be looked at.
    pub preview_url: Option<WebAddress>,
    /// Where the project runs on this machine.
    pub local_url: Option<WebAddress>,
    /// What may be changed in the checkout while issues are verified.
    pub verify_ignore: Vec<PathPattern>,
}

impl TrackerSettings {
    /// Files with something in them that is for nobody else to read.
    pub fn secret_files(&self) -> impl Iterator<Item = &Path> {
        [&self.token_file, &self.webhook_secret_file].into_iter().flatten().map(PathBuf::as_path)
    }
}

/// What `kind` says when nobody wants a tracker.
const NONE: &str = "none";

pub(super) fn resolve_tracker(raw: RawTracker) -> Result<TrackerSettings, SettingsMismatch> {
    let fault = |key: &str, what: String| SettingsMismatch::new(&["tracker", key], what);
    let kind = parse_kind(&raw.kind)?;
    let name = |text: &String| {
        RepoName::new(text)
            .map_err(|error| fault("repository", error.to_string()).with_hint("such as `owner/name`"))
    };
    let base = |text: &String| {
        GithubEndpoints::new(text)
            .map_err(|error| fault("url", error.to_string()).with_hint("such as `https://git.example.com`"))
    };
    let url = |key: &str, text: Option<String>| match text {
        Some(text) => parse_address(&text)
            .map(Some)
            .map_err(|why| fault(key, why).with_hint("such as `https://www.example.com`")),
        None => Ok(None),
    };
    for (key, file) in [("token_file", &raw.token_file), ("webhook_secret_file", &raw.webhook_secret_file)] {
        // Below the root it would be one `git add` away from everybody.
        if let Some(file) = file.as_ref().filter(|file| !(file.is_absolute() || file.starts_with("~"))) {
            let what = format!("`{key}` is `{}`, which is not a full path", file.display());
            return Err(
                fault(key, what).with_hint("such as `~/.config/landfall/token`, outside of the project")
            );
        }
    }
    if let Some(folder) = raw.folder.as_deref().filter(|folder| folder.as_os_str().is_empty()) {
        return Err(fault("folder", format!("`{}` is no folder", folder.display())).with_hint("take it out"));
    }
    Ok(TrackerSettings {
        kind,
        repository: raw.repository.as_ref().map(name).transpose()?,
        base: raw.url.as_ref().map(base).transpose()?,
        token_file: raw.token_file,
        webhook_secret_file: raw.webhook_secret_file,
        folder: raw.folder,
        size_field: Some(raw.size_field.trim().to_owned()).filter(|field| !field.is_empty()),
        poll_ms: raw.poll.0,
        write_pause_ms: raw.write_pause.0,
        spec_path: spec_path(&raw.spec_path)
            .map_err(|why| fault("spec_path", why).with_hint("such as `docs/spec`"))?,
        always_pr: raw.always_pr,
        file_proposals: raw.file_proposals,
        verify_iterations_max: raw.verify_iterations_max.0,
        concurrent: raw.concurrent.0,
        production_url: url("production_url", raw.production_url)?,
        preview_url: url("preview_url", raw.preview_url)?,
        local_url: url("local_url", raw.local_url)?,
        verify_ignore: parse_ignored_paths(&raw.verify_ignore).map_err(|why| fault("verify_ignore", why))?,
    })
}

fn parse_kind(word: &str) -> Result<Option<&'static str>, SettingsMismatch> {
    if word == NONE {
        return Ok(None);
    }
    registry::find_tracker(word).map(|entry| Some(entry.name)).map_err(|error| {
        let known: Vec<&str> = TRACKERS.iter().map(|entry| entry.name).chain([NONE]).collect();
        let hint = match nearest_word(word, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known: {}", known.join(", ")),
        };
        SettingsMismatch::new(&["tracker", "kind"], format!("`{}` is no tracker", error.given))
            .with_hint(hint)
    })
}

/// An address of the web, or what is wrong with it. The text stays unsaid: a password may be in it.
pub(super) fn parse_address(text: &str) -> Result<WebAddress, String> {
    WebAddress::new(text).map_err(|error| format!("it is not an address: {error}"))
}

/// A folder of the repository, or what is wrong with it.
pub(super) fn spec_path(text: &str) -> Result<String, String> {
    let wrong = || format!("`{}` is not a folder of the repository", text.escape_debug());
    if text.starts_with(['/', '-', '~']) || text.contains(char::is_control) || text.contains('\\') {
        return Err(wrong());
    }
    let path = PathPattern::for_file(text).map_err(|_| wrong())?;
    let inside_git = Path::new(path.as_str()).components().any(|part| part.as_os_str() == ".git");
    if inside_git { Err(wrong()) } else { Ok(path.as_str().to_owned()) }
}

/// Paths and patterns, or what is wrong with the first that is none.
pub(super) fn parse_ignored_paths(paths: &[String]) -> Result<Vec<PathPattern>, String> {
    paths.iter().map(|path| path.parse::<PathPattern>().map_err(|error| error.to_string())).collect()
}

impl TrackerSettings {
    /// What the text of an issue may set going. On a forge anybody may have written it.
    #[must_use]
    pub fn verify_mode(&self) -> AcceptanceMode {
        match self.kind.map(registry::find_tracker) {
            Some(Ok(entry)) if !entry.away => AcceptanceMode::Full,
            Some(_) | None => AcceptanceMode::Safe,
        }
    }
}
