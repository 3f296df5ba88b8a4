//! A value as it is stored, and its properties that need no decoding.

use std::sync::Arc;

use snugly_codec::{Dictionary, Record};

use super::StoreError;
use super::lists::ListStats;
use crate::entry::{Entry, Metadata, Stage};
use crate::values::Kind;

/// A value as it is stored. Holding it costs no copy, and it does not change, whatever happens to its key.
#[derive(Clone)]
pub struct Value(pub(super) Entry);

/// A value that can be read however long it is kept, whatever becomes of its key and of its dictionary: what waits to
/// be sent.
pub struct KeptValue {
    pub(super) value: Value,
    pub(super) dictionary: Option<Arc<Dictionary>>,
}

impl KeptValue {
    /// Returns the value itself.
    pub fn value(&self) -> &Value {
        &self.value
    }
}

impl Value {
    /// A number that no other value has as long as this one is held.
    pub fn identity(&self) -> usize {
        self.0.identity()
    }

    /// Length of a string in bytes, before compression; 0 of any other kind. Nothing is decoded for it.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.record().map_or(0, |record| record.raw_len())
    }

    /// Returns the kind of value.
    pub fn kind(&self) -> Kind {
        self.0.borrow().kind()
    }

    /// Fails unless it is of a kind.
    ///
    /// # Errors
    /// [`StoreError::WrongType`].
    pub fn expect_kind(&self, kind: Kind) -> Result<(), StoreError> {
        if self.kind() == kind { Ok(()) } else { Err(StoreError::WrongType) }
    }

    /// Returns statistics of a list's storage; `None` for any other kind.
    pub fn list(&self) -> Option<ListStats> {
        self.0.borrow().collection()?.list().map(|list| ListStats::of(&list))
    }

    /// Returns the record of a string; `None` for any other kind.
    pub fn record(&self) -> Option<Record<'_>> {
        self.0.borrow().record()
    }

    /// Returns the bytes of a string that is stored as it is; `None` for a compressed one, and for any other
    /// kind.
    pub fn plain(&self) -> Option<&[u8]> {
        self.record()?.as_identity()
    }

    /// Returns the key.
    pub fn key(&self) -> &[u8] {
        self.0.borrow().key()
    }

    /// Returns the expiry, in Unix milliseconds.
    pub fn expiry(&self) -> Option<u64> {
        self.0.borrow().expiry()
    }

    /// Returns what clients keep beside it.
    pub fn metadata(&self) -> Metadata {
        self.0.borrow().metadata()
    }

    /// Bytes that it takes in memory: key, record and overhead, as the allocator counts them.
    pub fn memory(&self) -> usize {
        self.0.borrow().allocation_size()
    }

    /// The part of these bytes that is this handle's: all who hold the value have all of it together, so that one who holds it a
    /// thousand times does not count it a thousand times.
    pub fn memory_share(&self) -> usize {
        self.0.borrow().memory_share()
    }

    /// Returns how far recompression has come with it.
    pub fn stage(&self) -> Stage {
        self.0.borrow().stage()
    }

    /// Seconds since it was last used.
    pub fn idle_seconds(&self, now: u64) -> u32 {
        self.0.borrow().access().idle_seconds(now)
    }

    /// Returns whether the value was read since it was written; false for one that has been on disk alone since.
    pub fn was_read(&self) -> bool {
        self.0.borrow().access().was_used()
    }

    /// Returns the frequency of recent use, up to a small cap that depends on the eviction policy.
    pub fn frequency(&self) -> u8 {
        self.0.borrow().access().frequency()
    }
}
