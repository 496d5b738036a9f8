//! Checks that ask an address of the web. The host is looked up once, what it leads to is checked, and exactly that is connected to:
//! a name cannot lead somewhere else the second time.

use std::net::IpAddr;
use std::time::Duration;

use landfall_model::acceptance::{MatchCount, WebAddress, is_loopback, is_private};
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use super::files::{check_json_value, shorten_to_line};
use super::html;
use super::{CheckEvidence, fail_with_evidence, pass_or_fail, uncertain_because};

/// What may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReachableHosts {
    /// Whatever the machine can reach: the project allows it.
    Anything,
    /// What everybody can reach.
    Public,
    /// That, and this machine.
    PublicAndHere,
}

impl ReachableHosts {
    fn may_reach(self, address: IpAddr) -> bool {
        match self {
            Self::Anything => true,
            Self::Public => !is_private(address),
            Self::PublicAndHere => !is_private(address) || is_loopback(address),
        }
    }
}

const CONNECT: Duration = Duration::from_secs(5);
const TOTAL: Duration = Duration::from_secs(10);
const BODY_BYTES_MAX: u64 = 4 << 20;
const REFUSED: &str = "it leads to a private address";

#[derive(Debug)]
struct GuardedResolver {
    inner: DefaultResolver,
    reachable: ReachableHosts,
}

impl Resolver for GuardedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.inner.resolve(uri, config, timeout)?;
        // One private address among several is refused, too: which of them is taken is up to chance.
        if found.iter().all(|address| self.reachable.may_reach(address.ip())) {
            Ok(found)
        } else {
            Err(ureq::Error::Io(std::io::Error::new(std::io::ErrorKind::PermissionDenied, REFUSED)))
        }
    }
}

/// What an address answered.
#[derive(Debug)]
pub(super) struct WebResponse {
    status: u16,
    headers: ureq::http::HeaderMap,
    body: WebPageBody,
}

#[derive(Debug)]
enum WebPageBody {
    NotRead,
    Text(String),
}

/// Whether the body is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyOption {
    Head,
    Body,
}

/// Asks an address. An error is what is seen instead of an answer.
pub(super) fn fetch_address(
    address: &WebAddress,
    reachable: ReachableHosts,
    want: BodyOption,
) -> Result<WebResponse, CheckEvidence> {
    let config = ureq::config::Config::builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None) // it would look names up itself
        .timeout_resolve(Some(CONNECT))
        .timeout_connect(Some(CONNECT))
        .timeout_global(Some(TOTAL))
        .user_agent(concat!("landfall/", env!("CARGO_PKG_VERSION")))
        .build();
    let resolver = GuardedResolver { inner: DefaultResolver::default(), reachable };
    let agent = ureq::Agent::with_parts(config, DefaultConnector::default(), resolver);
    let mut response = agent.get(address.as_str()).call().map_err(|error| no_answer(&error))?;
    let body = match want {
        BodyOption::Head => WebPageBody::NotRead,
        BodyOption::Body => {
            let read = response.body_mut().with_config().limit(BODY_BYTES_MAX).read_to_vec();
            let bytes = read.map_err(|error| no_answer(&error))?;
            WebPageBody::Text(String::from_utf8_lossy(&bytes).into_owned())
        }
    };
    let (parts, _) = response.into_parts();
    Ok(WebResponse { status: parts.status.as_u16(), headers: parts.headers, body })
}

fn no_answer(error: &ureq::Error) -> CheckEvidence {
    match error {
        ureq::Error::Io(io) if io.to_string() == REFUSED => {
            uncertain_because(format!("{REFUSED}, and only public ones are asked in safe mode"))
        }
        // Somebody is there and says no: that is an answer.
        ureq::Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => {
            fail_with_evidence("the connection is refused: nothing listens there".to_owned())
        }
        ureq::Error::ConnectionFailed => uncertain_because("it cannot be connected to".to_owned()),
        other => uncertain_because(format!("no answer: {other}")),
    }
}

impl WebResponse {
    fn body_text(&self) -> &str {
        match &self.body {
            WebPageBody::NotRead => "",
            WebPageBody::Text(text) => text,
        }
    }

    fn header_value(&self, name: &str) -> Option<String> {
        let values: Vec<String> = self
            .headers
            .get_all(name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
            .collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}

pub(super) fn check_status(answered: &WebResponse, code: u16) -> CheckEvidence {
    pass_or_fail(answered.status == code, format!("it answers {}", answered.status))
}

pub(super) fn check_header(answered: &WebResponse, name: &str, value: &str) -> CheckEvidence {
    match answered.header_value(name) {
        None => fail_with_evidence(format!("there is no header `{name}`")),
        Some(found) => pass_or_fail(found.contains(value), format!("`{name}: {}`", shorten_to_line(&found))),
    }
}

pub(super) fn check_redirect(
    answered: &WebResponse,
    from: &WebAddress,
    to: &WebAddress,
    code: u16,
) -> CheckEvidence {
    let Some(location) = answered.header_value("location") else {
        return fail_with_evidence(format!("it answers {} and leads nowhere", answered.status));
    };
    let bare = |text: &str| text.trim_end_matches('/').to_owned();
    let same = bare(&resolve_location(from, &location)) == bare(to.as_str());
    pass_or_fail(
        same && answered.status == code,
        format!("{} to `{}`", answered.status, shorten_to_line(&location)),
    )
}

/// Where a `Location` leads, seen from the address that said it.
fn resolve_location(from: &WebAddress, location: &str) -> String {
    if location.contains("://") {
        return location.to_owned();
    }
    let text = from.as_str();
    let (scheme, rest) = text.split_once("://").unwrap_or(("https", text));
    if let Some(host) = location.strip_prefix("//") {
        return format!("{scheme}://{host}");
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if location.starts_with('/') {
        return format!("{scheme}://{authority}{location}");
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{scheme}://{authority}{folder}/{location}")
}

pub(super) fn check_api_value(answered: &WebResponse, path: &str, value: &str) -> CheckEvidence {
    if !(200..300).contains(&answered.status) {
        return fail_with_evidence(format!("it answers {}", answered.status));
    }
    check_json_value(answered.body_text(), path, value, "the answer")
}

pub(super) fn check_page_elements(answered: &WebResponse, selector: &str, hits: MatchCount) -> CheckEvidence {
    let selector = match html::Selector::parse(selector) {
        Ok(selector) => selector,
        Err(why) => return uncertain_because(why),
    };
    if !(200..300).contains(&answered.status) {
        return fail_with_evidence(format!("it answers {}", answered.status));
    }
    let count = match html::HtmlDocument::parse(answered.body_text()) {
        Ok(page) => page.select_elements(&selector).len(),
        Err(why) => return uncertain_because(why),
    };
    let holds = match hits {
        MatchCount::Some => count > 0,
        MatchCount::Count(wanted) => usize::try_from(wanted).is_ok_and(|wanted| wanted == count),
    };
    pass_or_fail(holds, format!("{count} on the page"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use landfall_model::acceptance::{VerifyResult, WebAddress};

    use super::{BodyOption, ReachableHosts, fetch_address, resolve_location};

    /// Looked up, not by their names: whatever leads here is found out before anything is connected to.
    #[test]
    fn a_name_that_leads_to_this_machine_is_refused_where_only_public_ones_may_be_asked() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let hosts =
            ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "[::1]"];
        for host in hosts {
            let address = WebAddress::new(&format!("http://{host}:{port}/")).expect("an address");
            let refused =
                fetch_address(&address, ReachableHosts::Public, BodyOption::Head).expect_err("it is refused");
            assert_eq!(refused.result, VerifyResult::Uncertain, "{host}");
            // `0x7f.1` is an address to some systems and no name to others.
            let private = refused.evidence.contains("private address");
            assert!(private || refused.evidence.contains("no answer"), "{host}: {}", refused.evidence);
        }
        listener.set_nonblocking(true).expect("it can");
        assert!(listener.accept().is_err(), "nobody ever knocked");
        listener.set_nonblocking(false).expect("it can");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody");
            let _ = stream.read(&mut [0; 1024]); // whatever is asked
            stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").expect("it is read");
        });
        let here = WebAddress::new(&format!("http://localhost:{port}/")).expect("an address");
        let answered = fetch_address(&here, ReachableHosts::PublicAndHere, BodyOption::Head).expect("it may");
        assert_eq!(answered.status, 204);
        server.join().expect("it answered");
        let other = WebAddress::new("http://10.255.255.1/").expect("an address");
        assert!(fetch_address(&other, ReachableHosts::PublicAndHere, BodyOption::Head).is_err());
    }

    #[test]
    fn a_location_is_read_from_where_it_was_said() {
        let from = WebAddress::new("https://h.example:8443/a/b?c").expect("an address");
        for (location, whole) in [
            ("https://x.example/", "https://x.example/"),
            ("//y.example/z", "https://y.example/z"),
            ("/d", "https://h.example:8443/d"),
            ("e", "https://h.example:8443/a/e"),
        ] {
            assert_eq!(resolve_location(&from, location), whole);
        }
    }
}
