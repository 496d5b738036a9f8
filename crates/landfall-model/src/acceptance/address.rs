//! Addresses in hints: where `{{base_url}}` leads, and which are none of an issue's business.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

use super::hint::HintError;

/// An address that may begin with `{{base_url}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressTemplate(String);

/// A whole address of the web, without a name or password in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAddress {
    text: String,
    host: String,
}

const BASE: &str = "{{base_url}}";
/// What browsers and servers take without a murmur.
const ADDRESS_BYTES_MAX: usize = 2_000;

impl AddressTemplate {
    /// The template, if it is an address once the base is known.
    pub fn parse(text: &str) -> Result<Self, HintError> {
        let probe = text.replace(BASE, "https://base.example");
        if text.matches(BASE).count() > 1 || (text.contains(BASE) && !text.starts_with(BASE)) {
            return Err(HintError::Address(format!("`{BASE}` stands once, at the beginning")));
        }
        // Anything else would make another host of it, or another port.
        if text.strip_prefix(BASE).is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#']))
        {
            return Err(HintError::Address(format!("a path follows `{BASE}`")));
        }
        WebAddress::new(&probe)?;
        Ok(Self(text.to_owned()))
    }

    /// The address, with this base; none if it needs one and there is none.
    #[must_use]
    pub fn resolve(&self, base: Option<&WebAddress>) -> Option<WebAddress> {
        match self.0.strip_prefix(BASE) {
            None => WebAddress::new(&self.0).ok(),
            Some(rest) => WebAddress::new(&format!("{}{rest}", base?.text.trim_end_matches('/'))).ok(),
        }
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl WebAddress {
    /// The address, if it is one of the web.
    pub fn new(text: &str) -> Result<Self, HintError> {
        let wrong = |why: &str| Err(HintError::Address(why.to_owned()));
        if text.len() > ADDRESS_BYTES_MAX {
            return wrong("it is too long");
        }
        if text.bytes().any(|byte| {
            !(0x21..0x7f).contains(&byte)
                || matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
        }) {
            return wrong("it has characters that no address has");
        }
        let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
            return wrong("it does not begin with http:// or https://");
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return wrong("it has a name or a password in it");
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => {
                let Some((host, port)) = inner.split_once(']') else { return wrong("its host is not ended") };
                if host.parse::<Ipv6Addr>().is_err() {
                    return wrong("its host is no address");
                }
                (host, port.strip_prefix(':'))
            }
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let named = |host: &str| {
            host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
        };
        if host.is_empty() || (!authority.starts_with('[') && !named(host)) {
            return wrong("it has no host");
        }
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return wrong("its port is no number");
        }
        Ok(Self { text: text.to_owned(), host: host.to_ascii_lowercase() })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host, without its port.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether the host is this machine, by its name alone.
    #[must_use]
    pub fn is_localhost(&self) -> bool {
        let host = self.host.trim_end_matches('.');
        let named = host == "localhost" || host.ends_with(".localhost");
        named || host.parse::<IpAddr>().is_ok_and(is_loopback)
    }

    /// Whether the host is a private one by its name alone. A name that leads to a private address is found out when it
    /// is looked up: see [`is_private`].
    #[must_use]
    pub fn is_private_by_name(&self) -> bool {
        let host = self.host.trim_end_matches('.');
        let last = host.rsplit('.').next().unwrap_or_default();
        let inner = matches!(last, "localhost" | "local" | "internal" | "lan" | "home" | "corp" | "intranet");
        // A single word is looked up in the network we are in; a bare number or 0x… is an address in disguise.
        let number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
        match host.parse::<IpAddr>() {
            Ok(address) => is_private(address),
            Err(_) => inner || number || !host.contains('.'),
        }
    }
}

impl fmt::Display for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether an address is this machine's own, in whichever way it is written.
#[must_use]
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Whether an address is of this machine, of a network of its own, or of none: not the public's.
#[must_use]
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => is_private_v4(four),
        IpAddr::V6(six) => is_private_v6(six),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b)) // shared by a provider's customers
        || (a == 198 && (18..20).contains(&b)) // for benchmarks
        || (a == 192 && b == 0 && c == 0)
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    // Several ways to write an IPv4 address as an IPv6 one.
    let four = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_private_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => four(high, low),
        [0x2002, high, low, ..] => four(high, low),
        // Of what is left only this is the public's.
        [first, second, ..] => !(0x2000..=0x3fff).contains(&first) || (first == 0x2001 && second == 0xdb8),
    }
}
