//! One shard's part of one database: its entries, and statistics of them.
//!
//! It knows entries by tag and key; it must not know shards, locks, the disk or policies.

use crate::dictionary_refs::DictionaryRefs;
use crate::entry::{Entry, EntryRef};
use crate::memory::expiry::{self, ExpiryIndex};
use crate::memory::table::Table;
use crate::slab::allocation_size;
use crate::values::Kind;
use crate::values::collection::{CollectionTotals, Guard, TotalsByKind};

/// A shard's part of one database.
#[derive(Default)]
pub(crate) struct Database {
    pub(super) table: Table,
    pub(super) expiries: ExpiryIndex,
    entry_bytes: usize,
    /// Bytes of keys and values as clients gave them, of collections the keys alone.
    given_bytes: usize,
    pub(super) collections: TotalsByKind,
    pub(super) dictionaries: DictionaryRefs,
}

impl Database {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of entries that expire.
    pub(crate) fn volatile_len(&self) -> usize {
        self.expiries.len()
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the entries from a tag on, in order.
    pub(crate) fn entries_from(&self, tag: u16) -> impl Iterator<Item = (u16, EntryRef<'_>)> {
        (self.table.lower_bound(tag)..self.table.len())
            .map(|index| (self.table.tag(index), self.table.entry(index)))
    }

    /// Puts an entry at `index` if its key has one, or by `tag` if its key is new.
    pub(super) fn put(&mut self, tag: u16, index: Option<usize>, entry: Entry) -> Option<Entry> {
        match index {
            Some(index) => Some(self.replace(index, entry)),
            None => {
                self.enter(tag, entry.borrow());
                self.table.insert(tag, entry);
                None
            }
        }
    }

    pub(super) fn replace(&mut self, index: usize, entry: Entry) -> Entry {
        let tag = self.table.tag(index);
        self.enter(tag, entry.borrow());
        let before = self.table.replace(index, entry);
        self.leave(tag, before.borrow());
        before
    }

    pub(super) fn remove(&mut self, index: usize) -> Entry {
        let tag = self.table.tag(index);
        let entry = self.table.remove(index);
        self.leave(tag, entry.borrow());
        entry
    }

    pub(super) fn set_expiry(&mut self, index: usize, expiry: Option<u64>) {
        let tag = self.table.tag(index);
        let entry = self.table.entry(index);
        let before = entry.expiry();
        match entry.set_expiry(expiry) {
            Ok(()) => self.move_expiry(tag, before, expiry),
            Err(copy) => {
                self.put(tag, Some(index), copy);
            }
        }
    }

    /// Changes a collection, and updates its accounting; `None` if the entry is not a collection.
    pub(super) fn with_collection<R>(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut Guard<'_>) -> R,
    ) -> Option<R> {
        let collection = self.table.entry(index).collection()?;
        let kind = collection.kind();
        let mut collection = collection.lock();
        let before = collection.totals();
        let result = change(&mut collection);
        for (number, growth) in collection.take_untold_needs() {
            match growth > 0 {
                true => self.dictionaries.add(number, growth.unsigned_abs()),
                false => self.dictionaries.remove(number, growth.unsigned_abs()),
            }
        }
        let after = collection.totals();
        self.entry_bytes = self.entry_bytes + after.memory as usize - before.memory as usize;
        self.collections.exchange(kind, before, after);
        Some(result)
    }

    /// Returns the bytes of keys and values as clients gave them, those of nodes included.
    pub(super) fn given(&self) -> u64 {
        let nodes: u64 = Kind::ALL.into_iter().map(|kind| self.collections.of(kind).raw_bytes).sum();
        self.given_bytes as u64 + nodes
    }

    pub(super) fn memory(&self) -> usize {
        self.entry_bytes
            + allocation_size(self.table.requested_len())
            + allocation_size(self.expiries.requested_len())
            + allocation_size(self.dictionaries.requested_len())
    }

    /// Returns the index of the entry that expires at this time, among those with this tag.
    pub(super) fn find_by_expiry(&self, at: u64, tag: u16) -> Option<usize> {
        let first = self.table.lower_bound(tag);
        let found = (first..self.table.len())
            .take_while(|&index| self.table.tag(index) == tag)
            .find(|&index| self.table.entry(index).expiry().map(expiry::clamp) == Some(at));
        debug_assert!(found.is_some(), "the expiry index names an entry that does not exist");
        found
    }

    fn enter(&mut self, tag: u16, entry: EntryRef<'_>) {
        self.entry_bytes += entry.allocation_size();
        self.given_bytes += entry.given_len();
        if let Some(collection) = entry.collection() {
            let (kind, collection) = (collection.kind(), collection.lock());
            self.collections.exchange(kind, CollectionTotals::default(), collection.totals());
            collection
                .dictionary_refs()
                .into_iter()
                .for_each(|(number, nodes)| self.dictionaries.add(number, nodes));
        }
        entry.dictionary().inspect(|&number| self.dictionaries.add(number, 1));
        self.move_expiry(tag, None, entry.expiry());
    }

    fn leave(&mut self, tag: u16, entry: EntryRef<'_>) {
        self.entry_bytes -= entry.allocation_size();
        self.given_bytes -= entry.given_len();
        if let Some(collection) = entry.collection() {
            let (kind, collection) = (collection.kind(), collection.lock());
            self.collections.exchange(kind, collection.totals(), CollectionTotals::default());
            collection
                .dictionary_refs()
                .into_iter()
                .for_each(|(number, nodes)| self.dictionaries.remove(number, nodes));
        }
        entry.dictionary().inspect(|&number| self.dictionaries.remove(number, 1));
        self.move_expiry(tag, entry.expiry(), None);
    }

    fn move_expiry(&mut self, tag: u16, before: Option<u64>, after: Option<u64>) {
        if before != after {
            before.inspect(|&at| self.expiries.remove(at, tag));
            after.inspect(|&at| self.expiries.insert(at, tag));
        }
    }
}
