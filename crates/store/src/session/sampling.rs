//! Values and nodes of lists for those who learn dictionaries: as they are written, and those that are in the store already.

use super::{Session, StoreError, Value};
use crate::dictionaries::Dictionaries;
use crate::dictionaries::lists::BAND;
use crate::values::collection::{Collection, FoundIn};
use crate::values::quicklist::compression::Due;

/// Most existing nodes of a collection that are offered.
const NODES: usize = 256;

/// Turns that decide which of consecutive values are offered to sampling.
#[derive(Default)]
pub(super) struct Turns {
    /// Number of values still to be skipped, and number skipped since one was offered.
    unshown: u32,
    skipped: u64,
}

impl Turns {
    /// Returns the number of values that the next one stands for, if it is its turn.
    fn next(&mut self) -> Option<u64> {
        self.skipped += 1;
        match self.unshown.checked_sub(1) {
            Some(unshown) => {
                self.unshown = unshown;
                None
            }
            None => Some(std::mem::take(&mut self.skipped)),
        }
    }

    /// Skips the next values.
    fn skip(&mut self, unshown: u32) {
        self.unshown = unshown;
    }
}

/// Parts of an existing value to offer.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) values: bool,
    pub(crate) nodes: bool,
}

impl Session {
    /// Offers a value that is about to be written to sampling, unless that has enough.
    pub(super) fn show_sample(&mut self, key: &[u8], value: &[u8]) {
        if !self.settings.learns_from_values() || !Dictionaries::wants(value.len()) {
            return;
        }
        if let Some(stands_for) = self.values_shown.next() {
            self.values_shown.skip(self.store.dictionaries.offer(key, value, stands_for));
        }
    }

    /// Like [`Session::show_sample`], for a list node that is about to be compressed.
    pub(super) fn show_node(&mut self, key: &[u8], due: &Due) {
        if !self.settings.learns_from_lists() || !BAND.contains(due.bytes().len()) {
            return;
        }
        if let Some(stands_for) = self.nodes_shown.next() {
            let name = due.id().bytes();
            self.nodes_shown.skip(self.store.dictionaries.offer_node(key, &name, due.bytes(), stands_for));
        }
    }

    /// Offers the existing value of a key to sampling. To everybody else nothing changes, and the key is not
    /// taken into memory if it is only on disk. Of a collection, nodes in memory are offered, as long as more
    /// are wanted.
    ///
    /// # Errors
    /// Errors of the disk if it cannot be read. A value that cannot be read is skipped.
    pub(crate) fn show_existing(
        &mut self,
        database: usize,
        key: &[u8],
        shown: Shown,
    ) -> Result<(), StoreError> {
        let value = match self.store.find(self.key(database, key), self.now()) {
            Ok(Some((entry, _))) => Value(entry),
            Ok(None) => return Ok(()),
            Err(error) if error.is_of_a_value() => return Ok(()),
            Err(error) => return Err(error),
        };
        if let Some(collection) = value.0.borrow().collection() {
            if shown.nodes && self.settings.learns_from_lists() {
                self.show_nodes_of(key, collection);
            }
            return Ok(());
        }
        if !shown.values || !self.settings.learns_from_values() || !Dictionaries::wants(value.len()) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        if self.read(&value, &mut bytes).is_ok() {
            self.store.dictionaries.offer(key, &bytes, 1);
        }
        Ok(())
    }

    fn show_nodes_of(&mut self, key: &[u8], collection: &Collection) {
        let (nodes, _) = collection.lock().compressed_from(None, NODES, self.settings.lists.layout());
        for node in nodes {
            let FoundIn::Memory(compressed) = &node.place else { continue };
            let Ok(listpack) = self.decompressed(compressed) else { continue };
            if self.store.dictionaries.offer_node(key, &node.id.bytes(), listpack.as_bytes(), 1) > 0 {
                return;
            }
        }
    }
}
