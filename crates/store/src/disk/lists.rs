//! Lists on disk: what of them is written, found out when their changes are taken from the queue; and the nodes that go with
//! a list.
//!
//! A list that changes a hundred times before it is written is written once. Its nodes go into the same commit as its
//! directory, and count only with it.

use std::collections::HashSet;
use std::sync::Arc;

use super::engine::{EngineError, Read, Write};
use super::lookup;
use super::old::{Old, old_row, remove_row};
use super::queue::{Change, Item};
use super::row::{self, Body, Damaged, Generation, NODES, Row};
use super::state::State;
use crate::hash::{HashKey, hash};
use crate::memory::entry::{Access, Entry, EntryRef};
use crate::quicklist::stored::{Captured, Directory, NodeKey};

/// What keeps a list and its nodes in memory until they are on disk.
#[derive(Clone)]
pub(crate) struct Held {
    _list: Entry,
    _token: Arc<()>,
}

/// Puts what is to be written for lists in the place of their changes, from one item on.
pub(super) fn capture(items: &mut Vec<Item>, from: usize) {
    let list_of =
        |item: &Item| matches!(item, Item::Change(change) if change.entry.borrow().list().is_some());
    if !items[from..].iter().any(list_of) {
        return;
    }
    let taken = items.split_off(from);
    let mut seen: HashSet<(Generation, &[u8])> = HashSet::new();
    let mut is_last: Vec<bool> = taken
        .iter()
        .rev()
        .map(|item| match item {
            Item::Change(change) => seen.insert((change.generation, change.entry.borrow().key())),
            Item::Generations { .. }
            | Item::Dictionary { .. }
            | Item::ActiveDictionaries(_)
            | Item::Load(_) => true,
        })
        .collect();
    is_last.reverse();
    for (item, is_last) in taken.iter().zip(is_last) {
        match item {
            Item::Change(change) if list_of(item) => {
                if is_last {
                    captured(change, items);
                }
            }
            item => items.push(item.clone()),
        }
    }
}

fn captured(change: &Change, items: &mut Vec<Item>) {
    let entry = change.entry.borrow();
    let Some(list) = entry.list() else { return };
    let Captured { nodes, directory, token } =
        list.lock().capture(entry.key(), change.expiry, Access::written(0));
    let node = |entry| Change { generation: NODES, entry, expiry: None, in_group: false, _holds: None };
    items.extend(nodes.into_iter().map(|entry| Item::Change(node(entry))));
    let holds = Some(Held { _list: change.entry.clone(), _token: token });
    items.push(Item::Change(Change { entry: directory, _holds: holds, ..change.clone() }));
}

/// The lists of which these changes write the directory.
pub(super) fn written<'c>(changes: impl Iterator<Item = &'c Change>, state: &mut State) -> HashSet<u64> {
    changes
        .filter(|change| change.entry.borrow().is_directory() && state.of(change.generation).is_some())
        .filter_map(|change| list_of(change.entry.borrow()))
        .collect()
}

/// Whether a change is of a node that belongs to none of these lists, and so to nobody.
pub(super) fn is_orphan(change: &Change, written: &HashSet<u64>) -> bool {
    let list = NodeKey::parse(change.entry.borrow().key()).map(|node| node.list);
    change.generation == NODES && list.is_none_or(|list| !written.contains(&list))
}

/// The list of a directory.
pub(super) fn list_of(directory: EntryRef<'_>) -> Option<u64> {
    Directory::of_record(directory.record_bytes()).map(|directory| directory.list)
}

/// The directory of a row, if it is a list's and whole.
pub(super) fn directory(reader: &impl Read, row: &Row<'_>) -> Result<Option<Directory>, EngineError> {
    if !row.is_list {
        return Ok(None);
    }
    let chunks = match &row.body {
        Body::Inline(record) => return Ok(Directory::of_record(record)),
        Body::Chunked(chunks) => chunks,
    };
    let joined = lookup::pieces(reader, chunks)?.map(|pieces| pieces.concat());
    let directory = joined.and_then(|joined| {
        let (_, record) = row::verify_chunked(row, chunks, &joined)?;
        Directory::of_record(record).ok_or(Damaged)
    });
    Ok(directory.ok())
}

/// Removes the nodes of a list whose row goes, unless a row that is written now has them.
pub(super) fn remove_nodes(
    transaction: &mut impl Write,
    state: &mut State,
    hash_key: HashKey,
    old: &Old,
    written: &HashSet<u64>,
) -> Result<(), EngineError> {
    if !old.is_list {
        return Ok(());
    }
    let bytes = transaction.get(super::engine::Table::Entries, &old.row_key.0)?;
    let directory = match bytes.map(|bytes| Row::parse(old.row_key, bytes)) {
        Some(Ok(row)) => directory(transaction, &row)?,
        Some(Err(Damaged)) | None => None,
    };
    let Some(directory) = directory.filter(|directory| !written.contains(&directory.list)) else {
        return Ok(());
    };
    for node in directory.node_keys() {
        match remove_node(transaction, state, hash_key, node) {
            // It belongs to no list any more, and is room lost.
            Err(EngineError::Damaged(_)) => {}
            removed => removed?,
        }
    }
    Ok(())
}

fn remove_node(
    transaction: &mut impl Write,
    state: &mut State,
    hash_key: HashKey,
    node: NodeKey,
) -> Result<(), EngineError> {
    let key = node.bytes();
    let rows = lookup::rows(transaction, NODES, hash(hash_key, &key))?;
    match old_row(transaction, &rows, &key)? {
        Some(old) => remove_row(transaction, state, &old),
        None => Ok(()),
    }
}
