//! The chain: each event's hash covers the event and the hash before it, so no event can be lost, changed or
//! moved without the ones after it showing it.

use std::fmt;

use crate::Seq;
use crate::format::RawRow;

/// A link of the chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Before the first event.
    pub const NONE: Self = Self([0; 32]);

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

/// Computes links. It keeps its buffer: a journal has millions of them.
#[derive(Default)]
pub(crate) struct HashChain {
    buffer: Vec<u8>,
}

impl HashChain {
    pub fn link_row(&mut self, before: &Hash, raw: RawRow<'_>) -> Hash {
        let RawRow { seq: Seq(seq), at_ms, task, kind, body } = raw;
        let buffer = &mut self.buffer;
        buffer.clear();
        buffer.extend_from_slice(&before.0);
        buffer.extend_from_slice(&seq.to_le_bytes());
        buffer.extend_from_slice(&at_ms.to_le_bytes());
        buffer.extend_from_slice(&task.map_or(-1, i64::from).to_le_bytes());
        // The length keeps kind and body apart, whatever they hold.
        buffer.extend_from_slice(&(kind.len() as u64).to_le_bytes());
        buffer.extend_from_slice(kind.as_bytes());
        buffer.extend_from_slice(body.as_bytes());
        Hash(*blake3::hash(buffer).as_bytes())
    }
}
