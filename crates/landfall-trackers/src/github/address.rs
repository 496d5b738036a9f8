//! Where GitHub is, and addresses below it that nothing from outside can bend.

use std::fmt::Write as _;

use crate::tracker::{NameError, escape_beginning};

/// The two addresses of one GitHub: that of REST and that of GraphQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GithubEndpoints {
    rest: String,
    graphql: String,
}

impl GithubEndpoints {
    /// github.com.
    #[must_use]
    pub fn for_github_com() -> Self {
        Self {
            rest: "https://api.github.com".to_owned(),
            graphql: "https://api.github.com/graphql".to_owned(),
        }
    }

    /// A GitHub by its address: of github.com, of a company's own server (`https://git.example.com`), or of an API.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let wrong =
            |why| NameError { given: escape_beginning(text, 60), wanted: "the address of a GitHub", why };
        let whole = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
        let (scheme, rest) = whole.split_once("://").expect("put there");
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let path = path.trim_end_matches('/');
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        if host.is_empty() || !host.chars().all(legal) {
            return Err(wrong("there is no host in it"));
        }
        let name = host.split_once(':').map_or(host, |(name, _)| name);
        let near = matches!(name, "localhost" | "127.0.0.1") || host.starts_with("[::1]");
        match scheme {
            "https" => {}
            "http" if near => {}
            "http" => return Err(wrong("a token goes there, so it must be https")),
            _ => return Err(wrong("it must begin with https://")),
        }
        let origin = format!("{scheme}://{host}");
        match (name, path) {
            ("github.com" | "www.github.com" | "api.github.com", "") => Ok(Self::for_github_com()),
            (_, "api/v3") => {
                Ok(Self { rest: format!("{origin}/api/v3"), graphql: format!("{origin}/api/graphql") })
            }
            (_, "") if name.ends_with(".ghe.com") => {
                let api = if name.starts_with("api.") { origin } else { format!("{scheme}://api.{host}") };
                Ok(Self { graphql: format!("{api}/graphql"), rest: api })
            }
            (_, "") => {
                Ok(Self { rest: format!("{origin}/api/v3"), graphql: format!("{origin}/api/graphql") })
            }
            _ => Err(wrong("only `/api/v3` may follow the host")),
        }
    }

    /// The address of REST.
    #[must_use]
    pub fn rest_url(&self) -> &str {
        &self.rest
    }

    /// The address of GraphQL.
    #[must_use]
    pub fn graphql_url(&self) -> &str {
        &self.graphql
    }

    /// Whether it is github.com.
    #[must_use]
    pub fn is_public(&self) -> bool {
        *self == Self::for_github_com()
    }

    /// The host people know it by: the one in the addresses of its repositories.
    #[must_use]
    pub fn host_name(&self) -> &str {
        let rest = self.rest.split_once("://").map_or(self.rest.as_str(), |(_, rest)| rest);
        let host = rest.split('/').next().unwrap_or(rest);
        host.strip_prefix("api.").filter(|_| !self.rest.ends_with("/api/v3")).unwrap_or(host)
    }

    /// Whether an address the server named is below ours. The token goes nowhere else.
    #[must_use]
    pub fn contains_url(&self, url: &str) -> bool {
        url.strip_prefix(&self.rest).is_some_and(|rest| rest.starts_with(['/', '?']))
            && !url.contains("/../")
            && url.bytes().all(|byte| (0x21..0x7f).contains(&byte))
    }
}

/// A path below the address, put together from parts. Each part is one part, whatever is in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct GithubPath(String);

impl GithubPath {
    /// The path of these parts.
    pub(super) fn from_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        parts.into_iter().fold(Self::default(), Self::append_part)
    }

    /// And one part more.
    pub(super) fn append_part(mut self, part: &str) -> Self {
        self.0.push('/');
        // A server may resolve dots before it decodes.
        match part {
            "." => self.0.push_str("%2E"),
            ".." => self.0.push_str("%2E%2E"),
            _ => percent_encode(part, &mut self.0),
        }
        self
    }

    /// The whole address with a query.
    pub(super) fn to_url(&self, base: &GithubEndpoints, query: &[(&str, String)]) -> String {
        let mut url = format!("{}{}", base.rest, self.0);
        for (index, (name, value)) in query.iter().enumerate() {
            url.push(if index == 0 { '?' } else { '&' });
            percent_encode(name, &mut url);
            url.push('=');
            percent_encode(value, &mut url);
        }
        url
    }
}

fn percent_encode(text: &str, to: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            to.push(char::from(byte));
        } else {
            write!(to, "%{byte:02X}").expect("a string takes everything");
        }
    }
}

/// The address of the next page, as a `Link` header names it.
pub(super) fn next_page(link: &str) -> Option<&str> {
    let mut rest = link;
    loop {
        let (_, after) = rest.split_once('<')?;
        let (url, after) = after.split_once('>')?;
        let (params, next) =
            after.split_once('<').map_or((after, ""), |(params, _)| (params, &after[params.len()..]));
        let is_next = params.split([';', ',']).any(|param| {
            let param = param.trim();
            param.eq_ignore_ascii_case("rel=\"next\"") || param.eq_ignore_ascii_case("rel=next")
        });
        if is_next {
            return Some(url);
        }
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_found_by_any_of_its_addresses() {
        let rest = |text: &str| GithubEndpoints::new(text).map(|base| base.rest).map_err(|error| error.why);
        let public = Ok("https://api.github.com".to_owned());
        assert_eq!(rest("github.com"), public);
        assert_eq!(rest("https://api.github.com/"), public);
        assert_eq!(rest("git.example.com"), Ok("https://git.example.com/api/v3".to_owned()));
        assert_eq!(
            rest("https://git.example.com:8443/api/v3/"),
            Ok("https://git.example.com:8443/api/v3".to_owned())
        );
        assert_eq!(rest("https://acme.ghe.com"), Ok("https://api.acme.ghe.com".to_owned()));
        assert_eq!(rest("http://127.0.0.1:80"), Ok("http://127.0.0.1:80/api/v3".to_owned()));
        assert_eq!(
            GithubEndpoints::new("git.example.com").expect("one").graphql,
            "https://git.example.com/api/graphql"
        );
        for wrong in [
            "http://git.example.com",
            "ftp://x",
            "https://",
            "https://a@b",
            "https://a/b",
            "https://a b",
            "https://127.0.0.1.evil@x",
        ] {
            assert!(rest(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_server_has_the_host_that_people_know() {
        let host = |text: &str| GithubEndpoints::new(text).expect("an address").host_name().to_owned();
        assert_eq!(host("https://api.github.com"), "github.com");
        assert_eq!(host("acme.ghe.com"), "acme.ghe.com");
        assert_eq!(host("https://git.example.com:8443/api/v3"), "git.example.com:8443");
        assert_eq!(host("https://api.example.com"), "api.example.com");
        assert!(GithubEndpoints::new("github.com").expect("one").is_public());
        assert!(!GithubEndpoints::new("git.example.com").expect("one").is_public());
    }

    #[test]
    fn a_token_goes_to_no_other_server() {
        let base = GithubEndpoints::for_github_com();
        assert!(base.contains_url("https://api.github.com/repositories/1/issues?page=2"));
        for wrong in [
            "https://api.github.com.evil.example/x",
            "https://api.github.com@evil.example/x",
            "http://api.github.com/x",
            "https://api.github.com/../x",
            "https://api.github.com/a b",
            "/x",
        ] {
            assert!(!base.contains_url(wrong), "{wrong}");
        }
    }

    #[test]
    fn parts_stay_parts() {
        let path = GithubPath::from_parts(["repos", "a/b", "..", "x?y#z", "ü %"]);
        assert_eq!(
            path.to_url(&GithubEndpoints::for_github_com(), &[("q", "a&b=c".to_owned())]),
            "https://api.github.com/repos/a%2Fb/%2E%2E/x%3Fy%23z/%C3%BC%20%25?q=a%26b%3Dc"
        );
    }

    #[test]
    fn the_next_page_is_the_one_called_next() {
        let link = "<https://h/x?page=1,2>; rel=\"prev\", <https://h/x?page=3>; rel=\"next\", <https://h/x?page=9>; rel=\"last\"";
        assert_eq!(next_page(link), Some("https://h/x?page=3"));
        assert_eq!(next_page("<https://h/next>; rel=\"last\""), None);
        assert_eq!(next_page("nonsense < > <"), None);
        assert_eq!(next_page(""), None);
    }
}
