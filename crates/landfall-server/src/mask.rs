//! Secrets that the project knows are in no answer: keys that were set for agents, tokens of the server's own environment. Agents
//! print such things by accident, and their words are on pages, in streams and in files to keep.
//!
//! A secret becomes as many stars as it has letters, so places and lengths stay true. This is against accidents: an agent that
//! wants to give something away can write it in ways nobody knows.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use aho_corasick::{AhoCorasick, MatchKind};
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use landfall_api::{Blob, Response, Service};

/// How long what was known is believed: settings change.
const LOOK: Duration = Duration::from_secs(5);
/// Shorter words are found in other words.
const LETTERS_MIN: usize = 12;
/// A key of another kind than a person or a program types; it takes longer to look for than it is worth.
const LETTERS_MAX: usize = 4_096;

/// The secrets of a project, as they were known a moment ago.
#[derive(Default)]
pub(crate) struct SecretFinderCache {
    known: Mutex<Option<(Instant, Option<Arc<SecretFinder>>)>>,
}

impl SecretFinderCache {
    /// What to look for; none where there is nothing to hide.
    pub(crate) fn current_finder(&self, service: &dyn Service) -> Option<Arc<SecretFinder>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((at, mask)) if at.elapsed() < LOOK => mask.clone(),
            Some(_) | None => {
                let mask = SecretFinder::from_secrets(&service.known_secrets()).map(Arc::new);
                *known = Some((Instant::now(), mask.clone()));
                mask
            }
        }
    }
}

/// What to look for.
pub(crate) struct SecretFinder {
    words: Vec<Vec<u8>>,
    finder: AhoCorasick,
}

impl SecretFinder {
    fn from_secrets(secrets: &[String]) -> Option<Self> {
        let fits = |it: &&String| (LETTERS_MIN..=LETTERS_MAX).contains(&it.len());
        let words: BTreeSet<Vec<u8>> = secrets.iter().filter(fits).flat_map(|it| encoded_forms(it)).collect();
        if words.is_empty() {
            return None;
        }
        let words: Vec<Vec<u8>> = words.into_iter().collect();
        // Of two that begin at one place the longer is hidden.
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&words).ok()?;
        Some(Self { words, finder })
    }

    /// Stars in the place of each; none if there is nothing to hide.
    fn hide_secrets(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut hidden: Option<Vec<u8>> = None;
        for found in self.finder.find_iter(bytes) {
            hidden.get_or_insert_with(|| bytes.to_vec())[found.range()].fill(b'*');
        }
        hidden
    }

    fn hide_text(&self, text: &mut String) {
        if let Some(hidden) = self.hide_secrets(text.as_bytes()) {
            // Words are whole texts, so what is around them stays text.
            *text = String::from_utf8_lossy(&hidden).into_owned();
        }
    }

    /// The same in what is cut into pieces and coloured before it is sent.
    pub(crate) fn hide_in_response(&self, response: &mut Response) {
        let hide = |blob: &mut Blob| {
            let hidden = match &*blob {
                Blob::Text(text) => self.hide_secrets(text.as_bytes()),
                Blob::Base64(_) => blob.bytes().ok().and_then(|bytes| self.hide_secrets(&bytes)),
            };
            if let Some(hidden) = hidden {
                *blob = Blob::new(hidden);
            }
        };
        match response {
            Response::Output(page) => page.lines.iter_mut().for_each(|line| self.hide_text(&mut line.text)),
            Response::OutputBytes(part) => hide(&mut part.content),
            Response::Diff(diff) => hide(&mut diff.diff),
            _ => {} // goes out as it is, and is looked through there
        }
    }

    /// How much of the end could be the beginning of one.
    fn partial_match_length(&self, bytes: &[u8]) -> usize {
        let open = |word: &Vec<u8>| {
            let longest = (word.len() - 1).min(bytes.len());
            (1..=longest).rev().find(|many| bytes.ends_with(&word[..*many])).unwrap_or(0)
        };
        self.words.iter().map(open).max().unwrap_or(0)
    }
}

/// What `&<>"'` are called in HTML made by hand, and in that of templates.
const MARKUP: [&str; 5] = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
const TEMPLATES: [&str; 5] = ["&#38;", "&#60;", "&#62;", "&#34;", "&#39;"];

/// How programs write a text, ours among them.
fn encoded_forms(secret: &str) -> Vec<Vec<u8>> {
    let json = |text: &str| {
        let quoted = serde_json::to_string(text).unwrap_or_default(); // text always can be written
        quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
    };
    let entities = |names: [&str; 5], text: &str| {
        let mut escaped = String::new();
        for char in text.chars() {
            match ['&', '<', '>', '"', '\''].iter().position(|it| *it == char) {
                Some(at) => escaped.push_str(names[at]),
                None => escaped.push(char),
            }
        }
        escaped
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let percent = |all: bool| -> String {
        let one = |byte: &u8| {
            if !all && plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") }
        };
        secret.as_bytes().iter().map(one).collect()
    };
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let once = json(secret);
    let mut ways = vec![
        secret.to_owned(),
        json(&once),
        entities(MARKUP, secret),
        entities(MARKUP, &once),
        entities(TEMPLATES, secret),
        entities(TEMPLATES, &once),
        once,
        percent(true).to_lowercase(),
        percent(true),
        percent(false),
        hex.to_uppercase(),
        hex,
    ];
    for letters in [BASE64, BASE64_URL] {
        ways.extend((0..3).map(|before| base64_core(letters, before, secret.as_bytes())));
    }
    ways.into_iter().map(String::into_bytes).filter(|it| it.len() >= LETTERS_MIN).collect()
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The letters that depend on the secret alone when so many bytes stand before it.
fn base64_core(letters: &[u8; 64], before: usize, secret: &[u8]) -> String {
    let bytes: Vec<u8> = std::iter::repeat_n(0, before).chain(secret.iter().copied()).collect();
    let letter = |at: usize| {
        let bit = at * 6;
        let two = u16::from(bytes[bit / 8]) << 8 | u16::from(bytes.get(bit / 8 + 1).copied().unwrap_or(0));
        char::from(letters[usize::from(two >> (10 - bit % 8)) & 63])
    };
    ((before * 8).div_ceil(6)..bytes.len() * 8 / 6).map(letter).collect()
}

/// A body that goes out with its secrets hidden, wherever the pieces it comes in are cut.
pub(crate) struct MaskedBody {
    body: Body,
    mask: Arc<SecretFinder>,
    /// What may be the beginning of a secret.
    held: Vec<u8>,
}

impl MaskedBody {
    pub(crate) fn new(body: Body, mask: Arc<SecretFinder>) -> Self {
        Self { body, mask, held: Vec::new() }
    }
}

impl HttpBody for MaskedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None if self.held.is_empty() => return Poll::Ready(None),
                None => {
                    let rest = std::mem::take(&mut self.held);
                    return Poll::Ready(Some(Ok(Frame::data(rest.into()))));
                }
            };
            let new = match frame.into_data() {
                Ok(new) => new,
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            };
            let mut bytes = new;
            if !self.held.is_empty() {
                let mut both = std::mem::take(&mut self.held);
                both.extend_from_slice(&bytes);
                bytes = both.into();
            }
            if let Some(hidden) = self.mask.hide_secrets(&bytes) {
                bytes = hidden.into();
            }
            let open = if self.body.is_end_stream() { 0 } else { self.mask.partial_match_length(&bytes) };
            self.held = bytes.split_off(bytes.len() - open).to_vec();
            if !bytes.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let held = self.held.len() as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + held);
        }
        hint.set_lower(hint.lower() + held);
        hint
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::BodyExt as _;

    use super::*;

    const SECRET: &str = "sk-Zk7+/\"<&>'\\canary";

    fn mask() -> Arc<SecretFinder> {
        Arc::new(
            SecretFinder::from_secrets(&[SECRET.to_owned(), "short".to_owned()]).expect("something to hide"),
        )
    }

    #[test]
    fn every_way_to_write_it_is_hidden_and_nothing_else() {
        for way in encoded_forms(SECRET) {
            let text = [b"before ".as_slice(), &way, b" after, short"].concat();
            let hidden = mask().hide_secrets(&text).expect("it is there");
            assert_eq!(hidden.len(), text.len());
            let stars = "*".repeat(way.len());
            assert_eq!(String::from_utf8_lossy(&hidden), format!("before {stars} after, short"));
        }
        assert_eq!(mask().hide_secrets(b"sk-Zk7+/ and canary"), None);
        assert!(SecretFinder::from_secrets(&["short".to_owned()]).is_none());
    }

    #[test]
    fn base64_is_known_wherever_it_begins() {
        assert_eq!(base64_core(BASE64, 0, b"Man is distinguished"), "TWFuIGlzIGRpc3Rpbmd1aXNoZW");
        assert!("eHlNYW4gaXMgZGlzdA".contains(&base64_core(BASE64, 2, b"Man is dist")), "xyMan is dist");
    }

    #[tokio::test]
    async fn it_is_hidden_wherever_its_pieces_are_cut() {
        let text = format!("sk-Z sk-{SECRET}{SECRET} end sk-Zk");
        let expected = format!("sk-Z sk-{} end sk-Zk", "*".repeat(SECRET.len() * 2));
        for size in 1..text.len() {
            let pieces: Vec<Result<Bytes, std::convert::Infallible>> =
                text.as_bytes().chunks(size).map(|it| Ok(Bytes::copy_from_slice(it))).collect();
            let body = MaskedBody::new(Body::from_stream(stream::iter(pieces)), mask());
            let whole = body.collect().await.expect("a body").to_bytes();
            assert_eq!(String::from_utf8_lossy(&whole), expected, "in pieces of {size}");
        }
        let body = MaskedBody::new(Body::from(text.clone()), mask());
        assert_eq!(body.size_hint().exact(), Some(text.len() as u64));
        assert_eq!(body.collect().await.expect("a body").to_bytes(), expected);
    }
}
