//! Bytes on a wire of text: as they are when they are UTF-8, else in base64.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bytes that may or may not be text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "encoding", content = "content", rename_all = "kebab-case")]
pub enum Blob {
    /// UTF-8.
    Text(String),
    /// Anything else, in base64 with padding.
    Base64(String),
}

/// The text is not base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not base64")]
pub struct NotBase64;

impl Blob {
    /// Bytes for the wire.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Base64(encode_base64(error.as_bytes())),
        }
    }

    /// The bytes again.
    ///
    /// # Errors
    /// When the other side sent something that is not base64.
    pub fn bytes(&self) -> Result<Vec<u8>, NotBase64> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::Base64(text) => decode_base64(text).ok_or(NotBase64),
        }
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            if place <= chunk.len() {
                let six = (word >> (18 - 6 * place)) & 63;
                text.push(char::from(ALPHABET[six as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let body = text.trim_end_matches('=');
    if text.len() - body.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(body.len() / 4 * 3 + 2);
    for chunk in body.as_bytes().chunks(4) {
        let mut word = 0u32;
        for byte in chunk {
            let six = ALPHABET.iter().position(|it| it == byte)?;
            word = word << 6 | u32::try_from(six).ok()?;
        }
        word <<= 6 * (4 - chunk.len());
        let whole = word.to_be_bytes();
        bytes.extend_from_slice(&whole[1..chunk.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::Blob;

    #[test]
    fn any_bytes_come_back_as_they_were() {
        for len in 0..70usize {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 37 + 200) as u8).collect();
            assert_eq!(Blob::new(bytes.clone()).bytes(), Ok(bytes), "{len} bytes");
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_written_as_base64_with_padding() {
        assert_eq!(Blob::new(vec![0xff, 0xfe, b'a', b'b']), Blob::Base64("//5hYg==".to_owned()));
        assert_eq!(Blob::new(b"plain".to_vec()), Blob::Text("plain".to_owned()));
        assert!(Blob::Base64("a?==".to_owned()).bytes().is_err());
        assert!(Blob::Base64("abc".to_owned()).bytes().is_err());
    }
}
