//! One shard's part of one database: its entries, and what is counted of them.
//!
//! It knows entries by tag and key; not shards, locks, the disk or policies.

use crate::memory::allocation_size;
use crate::memory::entry::{Entry, EntryRef};
use crate::memory::expiry::{self, ExpiryIndex};
use crate::memory::table::Table;
use crate::memory::uses::Uses;
use crate::quicklist::{ListTotals, Quicklist};

/// A shard's part of one database.
#[derive(Default)]
pub(crate) struct Database {
    pub(super) table: Table,
    pub(super) expiries: ExpiryIndex,
    entry_bytes: usize,
    pub(super) lists: ListTotals,
    pub(super) dictionaries: Uses,
}

impl Database {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// How many of the entries expire.
    pub(crate) fn volatile_len(&self) -> usize {
        self.expiries.len()
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// The entries from a tag on, in order.
    pub(crate) fn entries_from(&self, tag: u16) -> impl Iterator<Item = (u16, EntryRef<'_>)> {
        (self.table.lower_bound(tag)..self.table.len())
            .map(|index| (self.table.tag(index), self.table.entry(index)))
    }

    /// Puts an entry in the place `index` of its key, or where `tag` says if its key is new.
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

    pub(super) fn with_list<R>(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut Quicklist) -> R,
    ) -> Option<R> {
        let mut list = self.table.entry(index).list()?.lock();
        let before = list.totals();
        let result = change(&mut list);
        for (number, growth) in list.take_untold_needs() {
            match growth > 0 {
                true => self.dictionaries.add(number, growth.unsigned_abs()),
                false => self.dictionaries.remove(number, growth.unsigned_abs()),
            }
        }
        let after = list.totals();
        self.entry_bytes = self.entry_bytes + after.memory as usize - before.memory as usize;
        self.lists = self.lists.minus(before).plus(after);
        Some(result)
    }

    pub(super) fn memory(&self) -> usize {
        self.entry_bytes
            + allocation_size(self.table.requested_len())
            + allocation_size(self.expiries.requested_len())
            + allocation_size(self.dictionaries.requested_len())
    }

    /// The entry that expires then, among those with this tag.
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
        if let Some(list) = entry.list() {
            let list = list.lock();
            self.lists = self.lists.plus(list.totals());
            list.needs().for_each(|(number, nodes)| self.dictionaries.add(number, nodes));
        }
        entry.dictionary().inspect(|&number| self.dictionaries.add(number, 1));
        self.move_expiry(tag, None, entry.expiry());
    }

    fn leave(&mut self, tag: u16, entry: EntryRef<'_>) {
        self.entry_bytes -= entry.allocation_size();
        if let Some(list) = entry.list() {
            let list = list.lock();
            self.lists = self.lists.minus(list.totals());
            list.needs().for_each(|(number, nodes)| self.dictionaries.remove(number, nodes));
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
