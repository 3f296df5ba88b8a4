//! Application of changes to rows: each key's last change puts or removes its row, and all that belongs to
//! it.

use std::collections::HashSet;

use snugly_codec::Record;

use super::super::change::{Change, Item};
use super::super::collections;
use super::super::dictionary;
use super::super::drafts;
use super::super::engine::{EngineError, Table, Write};
use super::super::existing_rows::{
    ExistingRow, delete_if_possible, existing_row, remove_chunks, unused_row_key,
};
use super::super::lookup;
use super::super::row::{self, Generation, Layout, NODES, RowKey};
use super::super::state::{LOAD_KEY, State};
use super::{Effects, Writer};
use crate::entry::{Access, Entry, Properties};
use crate::hash::hash;

impl Writer<'_> {
    pub(super) fn apply(
        &mut self,
        transaction: &mut impl Write,
        state: &mut State,
        items: &[Item],
        effects: &mut Effects,
    ) -> Result<(), EngineError> {
        if let Some(generations) = assigned(items) {
            state.assign(generations);
        }
        // In front of the rows that need a dictionary, and of a change that ends the use of one.
        for item in items {
            match item {
                Item::Dictionary { number, row: Some(row) } => {
                    transaction.put(Table::Dictionaries, &dictionary::key(*number), row)?;
                    state.next_dictionary = state.next_dictionary.max(number.saturating_add(1));
                }
                Item::ActiveDictionaries(active) => {
                    state.active_dictionaries = active.iter().copied().collect();
                }
                Item::Generations { all_gone: true, .. } => state.active_dictionaries.clear(),
                Item::Load(Some(row)) => transaction.put(Table::Meta, LOAD_KEY, row)?,
                Item::Load(None) => drop(transaction.delete(Table::Meta, LOAD_KEY)?),
                Item::Generations { .. } | Item::Dictionary { row: None, .. } | Item::Change(_) => {}
            }
        }
        let changes = last_changes(items, self.hash_key);
        let written = collections::written(changes.iter().map(|last| last.change), state);
        for Last { hash, change, .. } in changes {
            if self.shared.is_unwritable((change.generation, hash)) {
                continue;
            }
            if change.generation == NODES {
                if !collections::is_orphan(change, &written) {
                    self.write(transaction, state, hash, change, &written)?;
                }
                continue;
            }
            if change.entry.borrow().is_tombstone() {
                effects.deleted.push(change.entry.clone());
            }
            self.write(transaction, state, hash, change, &written)?;
        }
        for item in items {
            if let Item::Dictionary { number, row: None } = item
                && !state.dictionary_uses.contains_key(number)
            {
                transaction.delete(Table::Dictionaries, &dictionary::key(*number))?;
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        transaction: &mut impl Write,
        state: &mut State,
        hash: u64,
        change: &Change,
        written: &HashSet<u64>,
    ) -> Result<(), EngineError> {
        self.at.set(Some((change.generation, hash)));
        let entry = change.entry.borrow();
        let rows = lookup::rows(transaction, change.generation, hash)?;
        let old = existing_row(transaction, &rows, entry.key())?;
        // An entry that was flushed after its change leaves the earlier row, which is removed here all the
        // same: if it is of a collection that was renamed, its nodes are another key's now.
        if entry.is_tombstone() || !state.has(change.generation) {
            let Some(old) = old else { return Ok(()) };
            return match self.remove(transaction, state, &old, written) {
                Err(EngineError::Damaged(damage)) => {
                    self.shared.report_page(&damage);
                    self.expire_at_once(transaction, old.row_key, entry.key())
                }
                removed => removed,
            };
        }
        let row_key = match &old {
            Some(old) => old.row_key,
            None => unused_row_key(&rows, change.generation, hash)?,
        };
        if let Some(old) = &old {
            collections::remove_nodes(transaction, state, self.hash_key, old, written)?;
            remove_chunks(transaction, old)?;
        }
        let encoded = drafts::encoded(entry, *self.shared.compression.lock());
        let entry = encoded.as_ref().map_or(entry, Entry::borrow);
        let layout = Layout::of_entry(entry);
        let chunk_id = state.next_chunk;
        let mut bytes = 0;
        layout.for_each_chunk(|number, chunk| {
            bytes += chunk.len() as u64;
            transaction.append(Table::Chunks, &row::chunk_key(chunk_id, number), chunk)
        })?;
        if bytes > 0 {
            state.next_chunk += 1;
        }
        self.row.clear();
        layout.encode(row_key, change.expiry, chunk_id, &mut self.row);
        transaction.put(Table::Entries, &row_key.0, &self.row)?;
        layout.dictionary().inspect(|&number| state.use_dictionary(number));
        old.as_ref().and_then(|old| old.dictionary).inspect(|&number| state.release_dictionary(number));
        bytes += self.row.len() as u64;
        let old_expiry = old.as_ref().and_then(|old| old.expiry);
        if old_expiry != change.expiry {
            if let Some(at) = old_expiry {
                delete_if_possible(transaction, Table::Expiries, &row_key.expiry_key(at))?;
            }
            if let Some(at) = change.expiry {
                transaction.put(Table::Expiries, &row_key.expiry_key(at), &[])?;
            }
        }
        if let Some(contents) = state.of(change.generation) {
            contents.keys += u64::from(old.is_none());
            contents.bytes =
                (contents.bytes + bytes).saturating_sub(old.as_ref().map_or(0, ExistingRow::bytes));
            contents.volatile_keys = (contents.volatile_keys + u64::from(change.expiry.is_some()))
                .saturating_sub(u64::from(old_expiry.is_some()));
        }
        Ok(())
    }

    /// Puts an expired value in the place of a row that cannot be removed, since its page is next to a
    /// damaged one.
    fn expire_at_once(
        &mut self,
        transaction: &mut impl Write,
        row_key: RowKey,
        key: &[u8],
    ) -> Result<(), EngineError> {
        const LONG_AGO: Option<u64> = Some(1);
        let entry =
            Entry::new(key, &Record::identity(b""), Properties::expiring(LONG_AGO, Access::written(0)));
        self.row.clear();
        Layout::of_entry(entry.borrow()).encode(row_key, LONG_AGO, 0, &mut self.row);
        transaction.put(Table::Entries, &row_key.0, &self.row)
    }
}

/// Returns the generations of the databases after these items, if they change.
pub(super) fn assigned(items: &[Item]) -> Option<&[Generation]> {
    items.iter().rev().find_map(|item| match item {
        Item::Generations { generations, .. } => Some(&**generations),
        Item::Change(_) | Item::Dictionary { .. } | Item::ActiveDictionaries(_) | Item::Load(_) => None,
    })
}

/// Returns whether anything is put on the disk, and not only removed.
pub(super) fn needs_room(items: &[Item]) -> bool {
    let assigned = assigned(items);
    let is_flushed = |change: &Change| assigned.is_some_and(|known| !known.contains(&change.generation));
    items.iter().any(|item| match item {
        Item::Change(change) => !change.entry.borrow().is_tombstone() && !is_flushed(change),
        Item::Dictionary { row, .. } => row.is_some(),
        Item::Generations { .. } | Item::ActiveDictionaries(_) | Item::Load(_) => false,
    })
}

/// Last change of a key among the items of a commit.
pub(super) struct Last<'i> {
    pub(super) hash: u64,
    pub(super) change: &'i Change,
    /// Whether other changes must reach the disk together with it, or with one of the key's earlier ones.
    pub(super) in_group: bool,
}

/// Returns the last change of each key, in the order of the rows.
pub(super) fn last_changes(items: &[Item], hash_key: [u64; 2]) -> Vec<Last<'_>> {
    let mut changes: Vec<(usize, Last<'_>)> = items
        .iter()
        .enumerate()
        .filter_map(|(number, item)| match item {
            Item::Change(change) => {
                let hash = hash(hash_key, change.entry.borrow().key());
                Some((number, Last { hash, change, in_group: change.in_group }))
            }
            Item::Generations { .. }
            | Item::Dictionary { .. }
            | Item::ActiveDictionaries(_)
            | Item::Load(_) => None,
        })
        .collect();
    // The latest first among those of one key.
    changes.sort_unstable_by(|(number, last), (other_number, other)| {
        let place = |last: &Last<'_>| (last.change.generation, last.hash);
        place(last)
            .cmp(&place(other))
            .then_with(|| last.change.entry.borrow().key().cmp(other.change.entry.borrow().key()))
            .then(other_number.cmp(number))
    });
    changes.dedup_by(|(_, earlier), (_, last)| {
        let is_same = earlier.change.generation == last.change.generation
            && earlier.change.entry.borrow().key() == last.change.entry.borrow().key();
        last.in_group |= is_same && earlier.in_group;
        is_same
    });
    changes.into_iter().map(|(_, last)| last).collect()
}
