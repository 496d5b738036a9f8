//! Who we are to GitHub. The token is read when it is needed and shown nowhere.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::plain_file::{LinkPolicy, read_plain_text};

/// A token. It is printed as dots.
#[derive(Clone, PartialEq, Eq)]
pub struct GithubToken(String);

impl GithubToken {
    /// The token in a text, without the line end a file or a program puts behind it.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the token is empty".to_owned());
        }
        // In a header anything else would be another header.
        if !text.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
            return Err("the token has characters that no token has".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    pub(super) fn authorization_header(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl fmt::Debug for GithubToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Asks someone for a token, `gh auth token` for one. This crate starts no programs; whoever makes the tracker does.
pub type TokenProvider = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

/// Where tokens come from: the first that has one gives it.
#[derive(Clone, Default)]
pub struct TokenSources(Vec<(String, TokenSource)>);

#[derive(Clone)]
enum TokenSource {
    Given(String),
    File(PathBuf),
    Asked(TokenProvider),
}

/// Variables that hold a token for github.com, in the order they are looked at.
const PUBLIC: [&str; 2] = ["GH_TOKEN", "GITHUB_TOKEN"];
/// The same for other servers.
const ENTERPRISE: [&str; 2] = ["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"];

impl TokenSources {
    /// And the variables of the environment, those of github.com or of other servers.
    #[must_use]
    pub fn with_environment(mut self, is_public: bool, variable: impl Fn(&str) -> Option<String>) -> Self {
        for name in if is_public { PUBLIC } else { ENTERPRISE } {
            let value = variable(name).filter(|value| !value.trim().is_empty());
            self.0.extend(value.map(|value| (name.to_owned(), TokenSource::Given(value))));
        }
        self
    }

    /// And a file.
    #[must_use]
    pub fn with_file(mut self, path: PathBuf) -> Self {
        self.0.push((path.display().to_string(), TokenSource::File(path)));
        self
    }

    /// And someone who can be asked; `name` says who, in what a person reads.
    #[must_use]
    pub fn with_provider(mut self, name: &str, ask: TokenProvider) -> Self {
        self.0.push((name.to_owned(), TokenSource::Asked(ask)));
        self
    }

    /// The first token there is, or why there is none.
    pub(super) fn read(&self) -> Result<GithubToken, String> {
        self.first().map(|(_, token)| token)
    }

    fn first(&self) -> Result<(String, GithubToken), String> {
        let mut why = Vec::new();
        for (name, source) in &self.0 {
            let text = match source {
                TokenSource::Given(text) => Ok(text.clone()),
                TokenSource::File(path) => {
                    read_plain_text(path, LinkPolicy::Follow).map_err(|error| error.to_string())
                }
                TokenSource::Asked(ask) => ask(),
            };
            match text.and_then(|text| GithubToken::new(&text)) {
                Ok(token) => return Ok((name.clone(), token)),
                Err(error) => why.push(format!("{name}: {error}")),
            }
        }
        Err(if why.is_empty() { "no token is set".to_owned() } else { why.join("; ") })
    }

    /// Which source has a token, by its name; or why none has.
    pub fn find_source(&self) -> Result<String, String> {
        self.first().map(|(name, _)| name)
    }

    /// Where a person can put one.
    pub(super) fn token_hint(is_public: bool) -> String {
        let variable = if is_public { PUBLIC[0] } else { ENTERPRISE[0] };
        format!(
            "set {variable} to a token that may write issues, pull requests and contents, or log in with `gh auth login`"
        )
    }
}

impl fmt::Debug for TokenSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_source_that_has_a_token_gives_it() {
        let variable = |name: &str| (name == "GITHUB_TOKEN").then(|| "from-env\n".to_owned());
        let asked =
            TokenSources::default().with_provider("gh auth token", Arc::new(|| Ok("from-gh\n".to_owned())));
        assert_eq!(asked.clone().read(), GithubToken::new("from-gh"));
        assert_eq!(
            TokenSources::default().with_environment(true, variable).read(),
            GithubToken::new("from-env")
        );
        // A token of github.com is not shown to another server.
        assert_eq!(
            TokenSources::default().with_environment(false, variable).read(),
            Err("no token is set".to_owned())
        );
        let missing = TokenSources::default().with_file(PathBuf::from("/nowhere/token"));
        assert!(missing.read().unwrap_err().starts_with("/nowhere/token: "));
        // A link is followed, a pipe that nobody writes is not waited for.
        let folder = tempfile::tempdir().expect("a folder");
        let (kept, link, pipe) =
            (folder.path().join("kept"), folder.path().join("link"), folder.path().join("pipe"));
        std::fs::write(&kept, "from-file\n").expect("a file");
        std::os::unix::fs::symlink(&kept, &link).expect("a link");
        assert_eq!(TokenSources::default().with_file(link).read(), GithubToken::new("from-file"));
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
        assert!(TokenSources::default().with_file(pipe).read().unwrap_err().contains("not a regular file"));
        let broken =
            TokenSources::default().with_provider("it", Arc::new(|| Ok("a\r\nX-Evil: 1".to_owned())));
        assert_eq!(broken.read(), Err("it: the token has characters that no token has".to_owned()));
        assert_eq!(format!("{:?}", GithubToken::new("secret")), "Ok(Token(…))");
    }
}
