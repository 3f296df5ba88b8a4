//! A value as it is stored: what can be told of it without decoding it.

use std::sync::Arc;

use snugly_codec::{Dictionary, Record};

use super::lists::ListStats;
use crate::memory::entry::Entry;

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
    /// The value itself.
    pub fn value(&self) -> &Value {
        &self.value
    }
}

impl Value {
    /// A number that no other value has as long as this one is held.
    pub fn identity(&self) -> usize {
        self.0.identity()
    }

    /// The length in bytes, before compression. Nothing is decoded for it.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.record().raw_len()
    }

    /// Whether it is a list. Its length as a value is then 0, and its record that of no bytes.
    pub fn is_list(&self) -> bool {
        self.0.borrow().list().is_some()
    }

    /// How a list is stored, if it is one.
    pub fn list(&self) -> Option<ListStats> {
        self.0.borrow().list().map(|list| ListStats::of(&list.lock()))
    }

    /// How it is stored.
    pub fn record(&self) -> Record<'_> {
        Record::parse(self.0.borrow().record_bytes())
            .expect("the memory tier holds records that were parsed before")
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        self.0.borrow().key()
    }

    /// When it expires, in Unix milliseconds.
    pub fn expiry(&self) -> Option<u64> {
        self.0.borrow().expiry()
    }

    /// Bytes that it takes in memory: key, record and overhead, as the allocator counts them.
    pub fn memory(&self) -> usize {
        self.0.borrow().allocation_size()
    }

    /// Seconds since it was last used.
    pub fn idle_seconds(&self, now: u64) -> u32 {
        self.0.borrow().access().idle_seconds(now)
    }

    /// How often it was used lately, up to a small cap that depends on the eviction policy.
    pub fn frequency(&self) -> u8 {
        self.0.borrow().access().frequency()
    }
}
