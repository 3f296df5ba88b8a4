//! A key as the store looks it up: its database, its bytes, and its hash.
//!
//! An operation makes it once, so that no key is hashed twice. It knows shards by number, and must not know
//! their contents.

/// The keyed hash of a key, which determines its shard and tag.
#[derive(Clone, Copy, Default)]
pub(crate) struct KeyHash {
    pub(crate) shard: usize,
    pub(crate) tag: u16,
    pub(crate) hash: u64,
}

/// A key of a database.
#[derive(Clone, Copy)]
pub(crate) struct Key<'k> {
    pub(crate) database: usize,
    pub(crate) bytes: &'k [u8],
    pub(crate) hash: KeyHash,
}

impl Key<'_> {
    /// Returns the number of its shard.
    pub(crate) fn shard(self) -> usize {
        self.hash.shard
    }

    /// Returns its tag, the position in the order of the shard's keys.
    pub(crate) fn tag(self) -> u16 {
        self.hash.tag
    }
}
