//! Secrets: those that are known, and what looks like one. What an agent says, a check prints or a person pastes may hold some, and
//! what is written to a tracker is read by many.
//!
//! This is against accidents: whoever wants to give something away can write it in ways nobody knows.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::settings::{DeliveryMethod, Settings};
use crate::tracker::{TrackerEnv, secrets_in_files};

/// Texts that nobody is to read: what is set for agents and for whom to tell, what the files of the tracker hold, and what the
/// environment calls a key or a token.
#[must_use]
pub fn collect_secrets(settings: Option<&Settings>, around: &TrackerEnv<'_>) -> Vec<String> {
    let environment = around.environment;
    let mut found = BTreeSet::new();
    let mut note = |value: &str| found.extend(secret_texts(value, &|path| path.exists()));
    for (name, value) in environment {
        if is_secret(&name.to_string_lossy()) {
            note(&value.to_string_lossy());
        }
    }
    let Some(settings) = settings else { return found.into_iter().collect() };
    for profile in settings.agents.values() {
        profile.env.iter().filter(|(name, _)| is_secret(name)).for_each(|(_, value)| note(value));
    }
    for secret in secrets_in_files(&settings.tracker, around) {
        note(&secret);
    }
    for channel in &settings.notify {
        let (DeliveryMethod::Webhook(address)
        | DeliveryMethod::Ntfy(address)
        | DeliveryMethod::Slack(address)) = &channel.way
        else {
            continue;
        };
        if let Some(url) = &address.url {
            note(url);
        }
        for name in [&address.url_env, &address.token_env].into_iter().flatten() {
            let value = environment.iter().find(|(key, _)| key.to_str() == Some(name));
            if let Some((_, value)) = value {
                note(&value.to_string_lossy());
            }
        }
    }
    found.into_iter().collect()
}

/// What of a value nobody is to read: all of it, and each of its lines, for they are told one by one. A path tells nobody anything,
/// but many a key begins as one does: only what is there is taken for one, and what could be put beside something that is.
fn secret_texts(value: &str, is_there: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let value = value.trim();
    let path = Path::new(value);
    let in_folder = || path.parent().is_some_and(|folder| folder != Path::new("/") && is_there(folder));
    if value.is_empty() || path.is_absolute() && (is_there(path) || in_folder()) {
        return Vec::new();
    }
    let all = [value].into_iter().chain(value.lines().map(str::trim));
    // The first and the last line of a key are those of every other.
    let own = all.filter(|text| !text.is_empty() && (text.contains('\n') || !text.starts_with("-----")));
    own.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether something of this name is likely to be a secret.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    let parts: Vec<&str> = name.split('_').collect();
    [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASS",
        "AUTH",
        "CREDENTIAL",
        "CREDENTIALS",
        "COOKIE",
        "BEARER",
    ]
    .iter()
    .any(|word| parts.contains(word) || parts.iter().any(|part| part.ends_with(word) && word.len() > 4))
        || parts.iter().any(|part| part.ends_with("APIKEY"))
}

/// What stands in the place of a secret.
const HIDDEN: &str = "***";
/// Shorter ones are found in every text.
const LETTERS_MIN: usize = 8;
/// Shorter ones are found in other words, so they are looked for as whole words alone.
const LETTERS_WITHIN_MIN: usize = 12;
/// A key of another kind than a person or a program types.
const LETTERS_MAX: usize = 4_096;

/// What secrets look like that nobody has told us: tokens of forges, models and clouds, keys, and passwords in addresses. The group
/// `keep` before it stays.
const SHAPES: &[&str] = &[
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    r"\bsk-[A-Za-z0-9_-]{20,}",
    r"\b[sr]k_live_[A-Za-z0-9]{16,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bAIza[0-9A-Za-z_-]{35}",
    r"\bya29\.[0-9A-Za-z_-]{20,}",
    r"\bxox[abeprs]-[A-Za-z0-9-]{10,}",
    r"\bnpm_[A-Za-z0-9]{36}",
    r"\bhf_[A-Za-z0-9]{30,}",
    r"\bpypi-[A-Za-z0-9_-]{40,}",
    r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
    r"(?P<bearer>(?i:\bbearer )) *[A-Za-z0-9._~+/-]{20,}=*",
    r"(?P<address>\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s/@]{3,}@",
];

static SHAPE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&SHAPES.join("|")).expect("our own patterns can be read"));

/// What is put over secrets before a text is shown to others.
pub struct SecretMask {
    /// Every way to write one that is known, the longest first.
    words: Vec<String>,
    /// Those that could be a part of another word, the longest first.
    short: Vec<String>,
}

impl SecretMask {
    /// A veil over these, and over what looks like one.
    #[must_use]
    pub fn new(secrets: &[String]) -> Self {
        let fits = |it: &&String| (LETTERS_MIN..=LETTERS_MAX).contains(&it.len());
        let longest_first = |words: BTreeSet<String>| {
            let mut words: Vec<String> = words.into_iter().collect();
            words.sort_by_key(|word| std::cmp::Reverse(word.len()));
            words
        };
        let fit = || secrets.iter().filter(fits);
        let is_short = |word: &String| word.len() < LETTERS_WITHIN_MIN;
        let (short, mut words): (BTreeSet<String>, BTreeSet<String>) =
            fit().flat_map(|it| written_forms(it)).partition(is_short);
        words.extend(fit().flat_map(|it| encoded_forms(it))); // nobody writes a word like these by chance
        Self { words: longest_first(words), short: longest_first(short) }
    }

    /// The text without them.
    #[must_use]
    pub fn mask_text(&self, text: &str) -> String {
        self.mask_text_except(text, "")
    }

    /// The same; what only looks like a secret, or is so short that it may be a word, and stands in `there` already stays, because
    /// others wrote it.
    #[must_use]
    pub fn mask_text_except(&self, text: &str, there: &str) -> String {
        let mut veiled = text.to_owned();
        for word in &self.words {
            if veiled.contains(word.as_str()) {
                veiled = veiled.replace(word.as_str(), HIDDEN);
            }
        }
        for word in &self.short {
            if without_word(there, word).is_none()
                && let Some(rest) = without_word(&veiled, word)
            {
                veiled = rest;
            }
        }
        let hide = |found: &Captures<'_>| {
            let all = found.get(0).map_or("", |all| all.as_str());
            if !there.is_empty() && there.contains(all) {
                return all.to_owned();
            }
            let address = found.name("address").map(|it| format!("{}{HIDDEN}@", it.as_str()));
            let bearer = || found.name("bearer").map(|it| format!("{}{HIDDEN}", it.as_str()));
            address.or_else(bearer).unwrap_or_else(|| HIDDEN.to_owned())
        };
        SHAPE.replace_all(&veiled, hide).into_owned()
    }

    /// Whether there is something in a text that nobody is to read.
    #[must_use]
    pub fn contains_secret(&self, text: &str) -> bool {
        self.mask_text(text) != text
    }

    /// The same of a name. People and settings give names, and a short one may be an ordinary word there.
    #[must_use]
    pub fn is_secret_name(&self, name: &str) -> bool {
        self.words.iter().any(|word| name.contains(word.as_str())) || SHAPE.is_match(name)
    }
}

/// The text without a word that stands there by itself; none where it does not.
fn without_word(text: &str, word: &str) -> Option<String> {
    let joined = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let (mut rest, mut from) = (String::new(), 0);
    for (at, _) in text.match_indices(word) {
        let end = at + word.len();
        if joined(text[..at].chars().next_back()) || joined(text[end..].chars().next()) {
            continue;
        }
        rest.push_str(&text[from..at]);
        rest.push_str(HIDDEN);
        from = end;
    }
    (from > 0).then(|| rest + &text[from..])
}

/// How programs write a text that can still be read: as it is, in JSON and in an address.
fn written_forms(secret: &str) -> Vec<String> {
    let quoted = serde_json::to_string(secret).unwrap_or_default(); // text always can be written
    let json = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let percent = |byte: &u8| {
        if plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") }
    };
    let percent: String = secret.as_bytes().iter().map(percent).collect();
    vec![secret.to_owned(), json, percent]
}

/// How programs write bytes: in hexadecimal digits and in base 64.
fn encoded_forms(secret: &str) -> Vec<String> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut ways = vec![hex.to_uppercase(), hex];
    for letters in [BASE64, BASE64_URL] {
        ways.extend((0..3).map(|before| encode_base64_at(letters, before, secret.as_bytes())));
    }
    ways
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The letters that depend on the secret alone when so many bytes stand before it.
fn encode_base64_at(letters: &[u8; 64], before: usize, secret: &[u8]) -> String {
    let bytes: Vec<u8> = std::iter::repeat_n(0, before).chain(secret.iter().copied()).collect();
    let letter = |at: usize| {
        let bit = at * 6;
        let two = u16::from(bytes[bit / 8]) << 8 | u16::from(bytes.get(bit / 8 + 1).copied().unwrap_or(0));
        char::from(letters[usize::from(two >> (10 - bit % 8)) & 63])
    };
    ((before * 8).div_ceil(6)..bytes.len() * 8 / 6).map(letter).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One of each shape. Made up, and put together here so that nobody who looks for leaks finds one in this file.
    pub(crate) fn sample_secrets() -> Vec<String> {
        let letters = "Zk7Qw3Rt9Yp2Lm5Nx8Vb4Hc6Jd1Gf0AsEuTiOoPa";
        let upper = letters.to_uppercase();
        let of = |front: &str, many: usize| format!("{front}{}", &letters[..many]);
        vec![
            of("ghp_", 36),
            of("gho_", 36),
            of("ghs_", 36),
            of("github_pat_", 40),
            of("glpat-", 20),
            of("sk-ant-api03-", 40),
            of("sk-proj-", 40),
            of("sk_live_", 24),
            format!("AKIA{}", &upper[..16]),
            of("AIza", 35),
            of("ya29.", 30),
            of("xoxb-123456789012-", 24),
            of("npm_", 36),
            of("hf_", 34),
            of("pypi-", 40),
            format!("{}.{}.{}", of("eyJ", 20), of("eyJ", 20), of("", 20)),
            format!("-----BEGIN RSA PRIVATE KEY-----\n{letters}\n-----END RSA PRIVATE KEY-----"),
            format!("-----BEGIN PRIVATE KEY-----\n{letters}"),
        ]
    }

    #[test]
    fn what_looks_like_a_secret_is_hidden_and_what_is_around_it_stays() {
        let veil = SecretMask::new(&[]);
        for secret in sample_secrets() {
            let open = secret.starts_with("-----BEGIN PRIVATE"); // its end is missing: so is all that follows
            let veiled = veil.mask_text(&format!("before {secret} after"));
            assert_eq!(veiled, if open { "before ***" } else { "before *** after" }, "{secret}");
            assert!(veil.contains_secret(&secret));
        }
        let letters = "Zk7Qw3Rt9Yp2Lm5Nx8Vb4Hc6";
        let bearer = format!("Authorization: Bearer {letters}");
        assert_eq!(veil.mask_text(&bearer), "Authorization: Bearer ***");
        assert_eq!(
            veil.mask_text("clone https://me:hunter22@example.org/a.git now"),
            "clone https://me:***@example.org/a.git now"
        );
    }

    #[test]
    fn what_only_reminds_of_one_stays() {
        let veil = SecretMask::new(&["short".to_owned()]);
        for text in [
            "the task-list-of-the-night-that-is-long",
            "a token such as ghp_… or sk-… is no secret",
            "see https://example.org:8080/a@b and http://localhost:3000/",
            "commit 4f5e6d7c8b9a0f1e2d3c4b5a69788f7e6d5c4b3a, blake3:16ab",
            "short words, an AKIA and a bearer of news",
            "landfall/issue-7 at 12:30:15, user@example.org",
        ] {
            assert_eq!(veil.mask_text(text), text);
        }
    }

    #[test]
    fn a_known_secret_is_hidden_however_it_is_written() {
        let secret = "Zk7+/\"<&>'canary-of-ours";
        let veil = SecretMask::new(&[secret.to_owned()]);
        for way in written_forms(secret).into_iter().chain(encoded_forms(secret)) {
            assert_eq!(veil.mask_text(&format!("a {way} b")), "a *** b", "{way}");
        }
        assert_eq!(veil.mask_text("canary-of-ours"), "canary-of-ours");
    }

    #[test]
    fn what_others_wrote_before_stays_unless_it_is_known() {
        let (shape, known) = (sample_secrets().remove(0), "canary-of-ours-17");
        let veil = SecretMask::new(&[known.to_owned()]);
        let there = format!("an example: {shape}, {known}");
        assert_eq!(veil.mask_text_except(&there, &there), format!("an example: {shape}, ***"));
    }

    #[test]
    fn a_short_secret_is_hidden_where_it_stands_by_itself() {
        let veil = SecretMask::new(&["hunter22".to_owned(), "postgres".to_owned(), "short17".to_owned()]);
        for text in ["hunter22", "as \"hunter22\".", "PASSWORD=hunter22\n", "_hunter22_ and hunter22"] {
            assert_eq!(veil.mask_text(text), text.replace("hunter22", HIDDEN));
        }
        assert_eq!(
            veil.mask_text("base64: eCBodW50ZXIyMiB4 is x hunter22 x"),
            "base64: eCB***iB4 is x *** x"
        );
        for text in ["xhunter22", "hunter221", "postgresql", "short17"] {
            assert_eq!(veil.mask_text(text), text, "it is another word, or too short");
        }
        assert!(!veil.is_secret_name("landfall/postgres") && veil.contains_secret("landfall/postgres"));
        // A word that others wrote before is theirs.
        assert_eq!(veil.mask_text_except("postgres: done", "postgres: open"), "postgres: done");
        assert_eq!(veil.mask_text_except("postgres: done", "postgresql: open"), "***: done");
    }

    #[test]
    fn a_value_is_a_secret_whatever_it_begins_with_and_so_is_each_of_its_lines() {
        let of = |value: &str| secret_texts(value, &|path| path.starts_with("/run/secrets"));
        let key = "/Zk7Qw3Rt9Yp/2Lm5Nx8Vb4Hc6";
        assert_eq!(of(&format!(" {key}\n")), [key]);
        assert_eq!(of("correct horse battery"), ["correct horse battery"]);
        assert_eq!(
            of("first line of it\r\n\n second"),
            ["first line of it", "first line of it\r\n\n second", "second"]
        );
        let pem = "-----BEGIN KEY-----\nZk7Qw3Rt9Yp2Lm5Nx8Vb4Hc6\n-----END KEY-----";
        assert_eq!(of(pem), [pem, "Zk7Qw3Rt9Yp2Lm5Nx8Vb4Hc6"]);
        for nothing in ["", " \n", "/run/secrets", "/run/secrets/token", "/run/secrets/to-come/token"] {
            assert_eq!(of(nothing), [""; 0], "{nothing:?}");
        }
        assert_eq!(of("/token-of-ours"), ["/token-of-ours"], "everything is in the root");
    }
}
