//! The tracker of a project, opened in one place: from settings, the repository and the environment. What it is asked
//! is for others to say.

mod clean;
pub mod nudges;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use landfall_host::clock::{Clock as _, SystemClock};
use landfall_host::git::{self, Git, Repo};
use landfall_host::user_file::{USER_FILE_BYTES_MAX, read_user_text};
use landfall_model::Timestamp;
use landfall_trackers::github::{GithubEndpoints, GithubRetryPolicy, TokenSources};
use landfall_trackers::registry::{self, TrackerEntry, TrackerSetup};
use landfall_trackers::tracker::{
    RepoName, Tracker, TrackerClock, TrackerError, TrackerResult, WaitEnd, escape_beginning,
};

use clean::MaskedTracker;

use crate::confine::expand_home;
use crate::folder::StateFolder;
use crate::interrupt::Interrupt;
use crate::notify::proxy_address;
use crate::secrets::{self, SecretMask};
use crate::settings::{Settings, TrackerSettings};

/// What a tracker is opened in.
#[derive(Debug, Clone, Copy)]
pub struct TrackerEnv<'a> {
    /// The root of the project.
    pub root: &'a Path,
    /// Where its state is.
    pub folder: &'a StateFolder,
    /// The environment.
    pub environment: &'a [(OsString, OsString)],
    /// Who signs what is written to files.
    pub author: &'a str,
}

/// What can be said about a tracker without asking it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackerDescription {
    /// What settings call it.
    pub kind: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Where it is: a folder, or a repository and its host.
    pub place: String,
    /// Where its token comes from, or why there is none; none if it needs no token.
    pub token: Option<Result<String, String>>,
}

/// The machine's time. Its waits end when the run is interrupted.
#[derive(Debug, Clone, Default)]
pub struct WallClock {
    interrupt: Arc<Interrupt>,
}

impl TrackerClock for WallClock {
    fn now(&self) -> Timestamp {
        Timestamp(SystemClock.now_ms())
    }

    fn wait(&self, ms: u64) -> WaitEnd {
        match self.interrupt.wait(Duration::from_millis(ms)) {
            true => WaitEnd::Stopped,
            false => WaitEnd::Elapsed,
        }
    }
}

/// Opens the tracker. Nobody is asked anything yet. Keep it: what it knows of the tracker's limits is in it. Whatever is written to it
/// goes without the secrets that are known, and without what looks like one.
///
/// # Errors
/// Why there is none.
pub fn open_tracker(settings: &Settings, around: &TrackerEnv<'_>) -> TrackerResult<Box<dyn Tracker>> {
    open_interruptible_tracker(settings, around, Arc::default())
}

/// The same, for a run that may be interrupted: then it waits for no limit of the tracker any more.
pub(crate) fn open_interruptible_tracker(
    settings: &Settings,
    around: &TrackerEnv<'_>,
    interrupt: Arc<Interrupt>,
) -> TrackerResult<Box<dyn Tracker>> {
    let mut found = find_tracker(&settings.tracker, around)?;
    found.setup.clock = Arc::new(WallClock { interrupt });
    let entry = found.entry;
    let veil = SecretMask::new(&secrets::collect_secrets(Some(settings), around));
    Ok(Box::new(MaskedTracker::new(entry.create_tracker(found.setup)?, veil)))
}

/// What can be said about the tracker without asking it; none if nobody wants one.
///
/// # Errors
/// Why it cannot be opened.
pub fn describe_tracker(
    settings: &TrackerSettings,
    around: &TrackerEnv<'_>,
) -> TrackerResult<Option<TrackerDescription>> {
    if settings.kind.is_none() {
        return Ok(None);
    }
    let TrackerCandidate { entry, setup, host } = find_tracker(settings, around)?;
    let place = match (&setup.repository, host) {
        (Some(repository), Some(host)) => format!("{repository} on {host}"),
        (Some(_), None) | (None, _) => setup.folder.display().to_string(),
    };
    let token = entry.away.then(|| setup.token.find_source());
    Ok(Some(TrackerDescription { kind: entry.name, about: entry.about, place, token }))
}

/// What stands in the files with secrets: texts that nobody is to read.
#[must_use]
pub fn secrets_in_files(settings: &TrackerSettings, around: &TrackerEnv<'_>) -> Vec<String> {
    let read = |file| read_user_text(&at_home(around, file)?, USER_FILE_BYTES_MAX).ok();
    let texts = settings.secret_files().filter_map(read).map(|text| text.trim().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

/// A tracker that could be opened.
struct TrackerCandidate {
    entry: &'static TrackerEntry,
    setup: TrackerSetup,
    /// The host it is on, if it is on one.
    host: Option<String>,
}

fn find_tracker(settings: &TrackerSettings, around: &TrackerEnv<'_>) -> TrackerResult<TrackerCandidate> {
    let Some(name) = settings.kind else {
        return Err(refused_error("no tracker is wanted: `tracker.kind` in landfall.toml is `none`"));
    };
    let entry = registry::find_tracker(name).map_err(|error| refused_error(error.to_string()))?;
    let (repository, base) = match entry.away {
        true => {
            let (repository, base) = find_repository(settings, around)?;
            (Some(repository), Some(base))
        }
        false => (None, None),
    };
    let token = match &base {
        Some(base) => find_token_sources(settings, around, base)?,
        None => TokenSources::default(),
    };
    let folder = settings.folder.as_deref().map(|folder| expand_path(around, folder)).transpose()?;
    let setup = TrackerSetup {
        folder: folder.unwrap_or_else(|| around.folder.issues_path()),
        author: around.author.to_owned(),
        repository,
        proxy: base
            .as_ref()
            .and_then(|base| proxy_address(&|name| env_variable(around, name), base.rest_url())),
        token,
        size_field: settings.size_field.clone(),
        patience: GithubRetryPolicy { write_gap_ms: settings.write_pause_ms, ..GithubRetryPolicy::default() },
        clock: Arc::new(WallClock::default()),
        base: base.clone(),
    };
    Ok(TrackerCandidate { entry, setup, host: base.map(|base| base.host_name().to_owned()) })
}

/// The repository and its server: as settings say, else as `origin` does.
fn find_repository(
    settings: &TrackerSettings,
    around: &TrackerEnv<'_>,
) -> TrackerResult<(RepoName, GithubEndpoints)> {
    if let Some(repository) = &settings.repository {
        return Ok((
            repository.clone(),
            settings.base.clone().unwrap_or_else(GithubEndpoints::for_github_com),
        ));
    }
    let set = "set `tracker.repository = \"owner/name\"` in landfall.toml";
    let failed = |why: String| refused_error(format!("{why}; {set}"));
    let git = Git::find_installed().map_err(|error| failed(error.full_message()))?;
    let repo = Repo::discover(&git, around.root).map_err(|error| failed(error.to_string()))?;
    let url = repo.remote_url(ORIGIN).map_err(|error| failed(error.full_message()))?;
    let url =
        url.ok_or_else(|| failed(format!("there is no remote `{ORIGIN}` to find the repository by")))?;
    // The address may hold a password, so it is not repeated.
    let (host, repository) = RepoName::from_remote_url(&url)
        .ok_or_else(|| failed(format!("the remote `{ORIGIN}` does not say which repository it is")))?;
    match &settings.base {
        Some(base) if without_port(base.host_name()) != host => Err(failed(format!(
            "the remote `{ORIGIN}` is on {}, and `tracker.url` is {}",
            escape_beginning(&host, 60),
            base.host_name()
        ))),
        Some(base) => Ok((repository, base.clone())),
        None => Ok((repository, GithubEndpoints::new(&host).map_err(|error| failed(error.to_string()))?)),
    }
}

const ORIGIN: &str = "origin";

fn without_port(host: &str) -> &str {
    host.split_once(':').map_or(host, |(host, _)| host)
}

/// How it is known that a token belongs to the server it would be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenHost {
    /// It is github.com, and the token is one for github.com.
    Public,
    /// The person has trusted `tracker.url`, which names the server.
    TrustedUrl,
    /// The person's environment names the server, by `GH_HOST`.
    Named,
    /// Only the address of `origin` names it: whoever the repository was cloned from.
    OriginOnly,
}

fn token_host(has_url: bool, base: &GithubEndpoints, named: Option<&str>) -> TokenHost {
    let is_named = named.is_some_and(|named| named.eq_ignore_ascii_case(base.host_name()));
    match (base.is_public(), has_url, is_named) {
        (true, _, _) => TokenHost::Public,
        (false, true, _) => TokenHost::TrustedUrl,
        (false, false, true) => TokenHost::Named,
        (false, false, false) => TokenHost::OriginOnly,
    }
}

/// Where a token may come from: a file that settings name, the environment, the forge's own tool. A token goes only to the host
/// it belongs to. `gh` knows by itself which of its tokens is for which host.
fn find_token_sources(
    settings: &TrackerSettings,
    around: &TrackerEnv<'_>,
    base: &GithubEndpoints,
) -> TrackerResult<TokenSources> {
    let mut sources = TokenSources::default();
    let belongs = match token_host(settings.base.is_some(), base, env_variable(around, "GH_HOST").as_deref())
    {
        TokenHost::Public | TokenHost::TrustedUrl | TokenHost::Named => true,
        TokenHost::OriginOnly => false,
    };
    if let (false, Some(file)) = (belongs, &settings.token_file) {
        return Err(refused_error(format!(
            "nothing says that the token in `{}` belongs to {}, where the remote `{ORIGIN}` is; set \
             `tracker.url = \"https://{}\"` in landfall.toml and type `landfall trust`",
            file.display(),
            escape_beginning(base.host_name(), 60),
            escape_beginning(base.host_name(), 60)
        )));
    }
    if let Some(file) = &settings.token_file {
        let path = at_home(around, file).ok_or_else(|| {
            refused_error(format!("`tracker.token_file` is {}, and there is no home folder", file.display()))
        })?;
        sources = sources.with_file(path);
    }
    let host = base.host_name().to_owned();
    let sources = match belongs {
        true => sources.with_environment(base.is_public(), |name| env_variable(around, name)),
        false => sources,
    };
    Ok(sources.with_provider(
        "gh auth token",
        Arc::new(move || git::read_login_token(&host).map_err(|error| error.to_string())),
    ))
}

fn env_variable(around: &TrackerEnv<'_>, name: &str) -> Option<String> {
    let found = around.environment.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
}

fn at_home(around: &TrackerEnv<'_>, path: &Path) -> Option<PathBuf> {
    let home = around.environment.iter().find(|(key, _)| key == OsStr::new("HOME"));
    expand_home(home.map(|(_, home)| Path::new(home)), path.to_str()?)
}

/// A path that may begin with `~`, seen from the root of the project. A link of the repository must not lead out of it: the
/// person has trusted the path in the settings, not where somebody else makes it lead.
fn expand_path(around: &TrackerEnv<'_>, path: &Path) -> TrackerResult<PathBuf> {
    let own = match at_home(around, path) {
        Some(outside) => return Ok(outside),
        None => around.root.join(path),
    };
    let real = |path: &Path| path.ancestors().find_map(|above| above.canonicalize().ok());
    let is_inside = real(&own).zip(real(around.root)).is_some_and(|(own, root)| own.starts_with(root));
    let names_outside = path.components().any(|part| part == std::path::Component::ParentDir);
    match is_inside || names_outside {
        true => Ok(own),
        false => Err(refused_error(format!(
            "`tracker.folder` is {}, and a link leads from there out of the project; set the full path of the folder",
            path.display()
        ))),
    }
}

fn refused_error(why: impl Into<String>) -> TrackerError {
    TrackerError::Refused { what: "open the tracker".to_owned(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use landfall_host::git::{BranchName, Signature};

    use super::*;

    struct Ground {
        folder: tempfile::TempDir,
        state: StateFolder,
        environment: Vec<(OsString, OsString)>,
    }

    impl Ground {
        fn new(environment: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let git = Git::find_installed().expect("git is there");
            let branch = BranchName::new("main").expect("a name");
            Repo::create(&git, folder.path(), &branch, "first", &Signature::for_engine(0))
                .expect("a repository");
            let state = StateFolder::at_root(folder.path().join("state"));
            // `gh` must not be found: whoever runs the tests may be logged in.
            let environment = environment.iter().map(|(key, value)| (key.into(), value.into())).collect();
            Self { folder, state, environment }
        }

        fn set_origin(&self, url: &str) {
            let config = self.folder.path().join(".git/config");
            let text = std::fs::read_to_string(&config).expect("it has one");
            std::fs::write(&config, format!("{text}[remote \"origin\"]\n\turl = {url}\n")).expect("written");
        }

        fn tracker_env(&self) -> TrackerEnv<'_> {
            TrackerEnv {
                root: self.folder.path(),
                folder: &self.state,
                environment: &self.environment,
                author: "a person",
            }
        }
    }

    fn parse_tracker_settings(text: &str) -> TrackerSettings {
        Settings::parse(text, "landfall.toml").unwrap_or_else(|problem| panic!("{problem}")).tracker
    }

    #[test]
    fn a_wait_for_the_tracker_ends_with_the_run() {
        let interrupt = Arc::new(Interrupt::default());
        let clock = WallClock { interrupt: Arc::clone(&interrupt) };
        assert_eq!(clock.wait(1), WaitEnd::Elapsed);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| clock.wait(600_000));
            interrupt.set();
            assert_eq!(waits.join().expect("it returns"), WaitEnd::Stopped);
        });
        assert_eq!(clock.wait(600_000), WaitEnd::Stopped, "nothing is waited for any more");
    }

    #[test]
    fn issues_are_files_beside_the_state_unless_settings_say_otherwise() {
        let ground = Ground::new(&[("HOME", "/home/p")]);
        let place = |text: &str| {
            let standing = describe_tracker(&parse_tracker_settings(text), &ground.tracker_env())
                .expect("it opens")
                .expect("there is one");
            assert_eq!(standing.token, None, "files need no token");
            standing.place
        };
        assert_eq!(place(""), ground.state.issues_path().display().to_string());
        let inside = ground.folder.path().join(".landfall/issues").display().to_string();
        assert_eq!(place("[tracker]\nfolder = \".landfall/issues\"\n"), inside);
        assert_eq!(place("[tracker]\nfolder = \"~/issues\"\n"), "/home/p/issues");
        assert_eq!(
            describe_tracker(&parse_tracker_settings("[tracker]\nkind = \"none\"\n"), &ground.tracker_env()),
            Ok(None)
        );
        let nobody = Settings::parse("[tracker]\nkind = \"none\"\n", "landfall.toml").expect("settings");
        let none = open_tracker(&nobody, &ground.tracker_env()).map(drop);
        assert!(none.expect_err("there is none").to_string().contains("`tracker.kind`"));
    }

    #[test]
    fn the_repository_is_the_one_that_origin_leads_to() {
        let ground = Ground::new(&[("GITHUB_TOKEN", "t"), ("GH_ENTERPRISE_TOKEN", "e")]);
        let look = |text: &str| {
            describe_tracker(
                &parse_tracker_settings(&format!("[tracker]\nkind = \"github\"\n{text}")),
                &ground.tracker_env(),
            )
        };
        let why = look("").expect_err("there is no remote").to_string();
        assert!(why.contains("no remote `origin`") && why.contains("tracker.repository"), "{why}");
        let named = look("repository = \"a/b\"\n").expect("it is named").expect("there is one");
        assert_eq!(
            (named.place.as_str(), named.token),
            ("a/b on github.com", Some(Ok("GITHUB_TOKEN".to_owned())))
        );
        ground.set_origin("git@git.example.com:team/app.git");
        let found = look("").expect("it is found").expect("there is one");
        assert_eq!(found.place, "team/app on git.example.com");
        let none =
            found.token.expect("it needs one").expect_err("nothing says that a token is for this host");
        assert!(!none.contains("GH_ENTERPRISE_TOKEN") && !none.contains("GITHUB_TOKEN"), "{none}");
        let url = look("url = \"https://git.example.com\"\n").expect("it is found").expect("there is one");
        assert_eq!(
            url.token,
            Some(Ok("GH_ENTERPRISE_TOKEN".to_owned())),
            "a token of github.com is not shown to another server"
        );
        let other = look("url = \"https://other.example.com\"\n").expect_err("another host").to_string();
        assert!(other.contains("is on git.example.com, and `tracker.url` is other.example.com"), "{other}");
    }

    #[test]
    fn a_token_goes_only_to_the_host_it_belongs_to() {
        let check = |has_url: bool, host: &str, named: Option<&str>, expected: TokenHost| {
            let base = GithubEndpoints::new(host).expect("an address");
            assert_eq!(token_host(has_url, &base, named), expected, "{host} {named:?}");
        };
        check(false, "github.com", None, TokenHost::Public);
        check(true, "https://api.github.com", None, TokenHost::Public);
        check(true, "git.example.com", None, TokenHost::TrustedUrl);
        check(false, "git.example.com", Some("GIT.example.com"), TokenHost::Named);
        check(false, "git.example.com", Some("other.example.com"), TokenHost::OriginOnly);
        check(false, "git.example.com", None, TokenHost::OriginOnly);
        check(false, "github.com.evil.example", None, TokenHost::OriginOnly);
        // A clone of a stranger's server, whose settings name a file.
        let ground = Ground::new(&[("HOME", "/home/p"), ("GH_ENTERPRISE_TOKEN", "e")]);
        ground.set_origin("https://evil.example/team/app.git");
        let text = "[tracker]\nkind = \"github\"\ntoken_file = \"~/.netrc\"\n";
        let why = describe_tracker(&parse_tracker_settings(text), &ground.tracker_env())
            .expect_err("it is not sent there")
            .to_string();
        assert!(why.contains("evil.example") && why.contains("landfall trust"), "{why}");
        // Only by TLS, this machine aside.
        assert!(Settings::parse("[tracker]\nurl = \"http://git.example.com\"\n", "landfall.toml").is_err());
        assert!(Settings::parse("[tracker]\nurl = \"http://127.0.0.1:1\"\n", "landfall.toml").is_ok());
        let named = Ground::new(&[("GH_HOST", "git.example.com"), ("GH_ENTERPRISE_TOKEN", "e")]);
        named.set_origin("https://git.example.com/team/app.git");
        let found =
            describe_tracker(&parse_tracker_settings("[tracker]\nkind = \"github\"\n"), &named.tracker_env())
                .expect("it opens");
        assert_eq!(found.expect("there is one").token, Some(Ok("GH_ENTERPRISE_TOKEN".to_owned())));
    }

    #[test]
    fn a_remote_that_says_nothing_is_not_repeated() {
        let ground = Ground::new(&[]);
        ground.set_origin("https://person:secret@example/x");
        let why = describe_tracker(
            &parse_tracker_settings("[tracker]\nkind = \"github\"\n"),
            &ground.tracker_env(),
        )
        .expect_err("no repository");
        assert!(!why.to_string().contains("secret"), "{why}");
    }

    #[test]
    fn a_file_that_settings_name_gives_the_token_first() {
        let ground = Ground::new(&[("GITHUB_TOKEN", "t")]);
        let file = ground.folder.path().join("token");
        std::fs::write(&file, "from-file\n").expect("written");
        let text = format!("[tracker]\nkind = \"github\"\nrepository = \"a/b\"\ntoken_file = {file:?}\n");
        let settings = parse_tracker_settings(&text);
        let token = describe_tracker(&settings, &ground.tracker_env())
            .expect("it opens")
            .expect("there is one")
            .token;
        assert_eq!(token, Some(Ok(file.display().to_string())));
        assert_eq!(secrets_in_files(&settings, &ground.tracker_env()), ["from-file"]);
    }
}
