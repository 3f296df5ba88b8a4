//! Values and nodes of lists for those who learn dictionaries: as they are written, and those that are in the store already.

use super::{Session, StoreError, Value};
use crate::dictionaries::Dictionaries;
use crate::dictionaries::lists::BAND;
use crate::quicklist::List;
use crate::quicklist::anew::FoundIn;
use crate::quicklist::packing::Due;

/// How many nodes of a list are shown at most, of those that are there already.
const NODES: usize = 256;

/// Whose turn it is to be shown, of values that are written one after the other.
#[derive(Default)]
pub(super) struct Turns {
    /// How many are not shown, and how many were not since one was.
    unshown: u32,
    skipped: u64,
}

impl Turns {
    /// If it is the next one's turn, for how many it stands.
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

    /// So many need not be shown.
    fn skip(&mut self, unshown: u32) {
        self.unshown = unshown;
    }
}

/// What is shown of what is in the store already.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) values: bool,
    pub(crate) lists: bool,
}

impl Session {
    /// Lets those who learn dictionaries see a value that is about to be written, unless they have enough.
    pub(super) fn show_sample(&mut self, key: &[u8], value: &[u8]) {
        if !self.settings.learns_from_values() || !Dictionaries::wants(value.len()) {
            return;
        }
        if let Some(stands_for) = self.values_shown.next() {
            self.values_shown.skip(self.store.dictionaries.offer(key, value, stands_for));
        }
    }

    /// As [`Session::show_sample`], a node of a list that is about to be packed.
    pub(super) fn show_node(&mut self, key: &[u8], due: &Due) {
        if !self.settings.learns_from_lists() || !BAND.contains(due.bytes().len()) {
            return;
        }
        if let Some(stands_for) = self.nodes_shown.next() {
            let name = due.id().bytes();
            self.nodes_shown.skip(self.store.dictionaries.offer_node(key, &name, due.bytes(), stands_for));
        }
    }

    /// Lets those who learn dictionaries see what a key has. To everybody else nothing changes, and the key is not taken
    /// into memory if it is only on disk. Of a list, nodes are shown that are in memory, as long as more are wanted.
    ///
    /// # Errors
    /// What the disk says if it cannot be read. A value that is damaged is passed over.
    pub(crate) fn show_existing(
        &mut self,
        database: usize,
        key: &[u8],
        shown: Shown,
    ) -> Result<(), StoreError> {
        let place = self.store.keyspace.place(key);
        let value = match self.store.find(database, place, key, self.now()) {
            Ok(Some((entry, _))) => Value(entry),
            Ok(None) | Err(StoreError::Damaged { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        if let Some(list) = value.0.borrow().list() {
            if shown.lists && self.settings.learns_from_lists() {
                self.show_nodes_of(key, list);
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

    fn show_nodes_of(&mut self, key: &[u8], list: &List) {
        let (nodes, _) = list.lock().packed_from(None, NODES, self.settings.lists.layout());
        for node in nodes {
            let FoundIn::Memory(packed) = &node.place else { continue };
            let Ok(listpack) = self.unpacked(packed) else { continue };
            if self.store.dictionaries.offer_node(key, &node.id().bytes(), listpack.as_bytes(), 1) > 0 {
                return;
            }
        }
    }
}
