//! Collections on disk: the nodes and directories to write, determined when changes are taken from the queue,
//! and the nodes to remove with a row.
//!
//! A collection that changes a hundred times before it is written is written once. Its nodes go into the same
//! commit as its directory, and count only with it.

use std::collections::HashSet;
use std::sync::Arc;

use super::change::{Change, Item};
use super::engine::{EngineError, Read, Table, Write};
use super::existing_rows::{ExistingRow, existing_row, remove_row};
use super::lookup;
use super::row::{self, Body, Damaged, Generation, NODES, Row};
use super::state::State;
use crate::entry::{Access, Entry};
use crate::hash::{HashKey, hash};
use crate::values::collection::{Captured, Directory, NodeKey};

/// Keeps a collection and its nodes in memory until they are on disk.
#[derive(Clone)]
pub(crate) struct Pinned {
    _collection: Entry,
    _token: Arc<()>,
}

/// Replaces the changes of collections, from item `from` on, by the nodes and directories to write.
pub(super) fn capture(items: &mut Vec<Item>, from: usize) {
    let is_collection =
        |item: &Item| matches!(item, Item::Change(change) if change.entry.borrow().collection().is_some());
    if !items[from..].iter().any(is_collection) {
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
            Item::Change(change) if is_collection(item) => {
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
    let Some(collection) = entry.collection() else { return };
    let Captured { nodes, directory, token } =
        collection.lock().capture(entry.key(), change.expiry, Access::written(0));
    let node = |entry| Change { generation: NODES, entry, expiry: None, in_group: false, _holds: None };
    items.extend(nodes.into_iter().map(|entry| Item::Change(node(entry))));
    let holds = Some(Pinned { _collection: change.entry.clone(), _token: token });
    items.push(Item::Change(Change { entry: directory, _holds: holds, ..change.clone() }));
}

/// Returns the numbers of the collections whose directory is among these changes.
pub(super) fn written<'c>(changes: impl Iterator<Item = &'c Change>, state: &State) -> HashSet<u64> {
    let owner = |change: &Change| {
        let entry = change.entry.borrow();
        let directory = entry.record_bytes().map(|record| entry.kind().directory(record));
        directory?.ok().flatten().map(|directory| directory.owner())
    };
    changes.filter(|change| state.has(change.generation)).filter_map(owner).collect()
}

/// Returns whether a change is of a node that belongs to none of these collections.
pub(super) fn is_orphan(change: &Change, written: &HashSet<u64>) -> bool {
    let owner = NodeKey::parse(change.entry.borrow().key()).map(|node| node.owner);
    change.generation == NODES && owner.is_none_or(|owner| !written.contains(&owner))
}

/// Returns the directory of a row, if it has one and is whole.
fn directory(reader: &impl Read, row: &Row<'_>) -> Result<Option<Directory>, EngineError> {
    let chunks = match &row.body {
        Body::Inline(record) => return Ok(row.directory(record).ok().flatten()),
        Body::Chunked(chunks) => chunks,
    };
    let joined = lookup::pieces(reader, chunks)?.map(|pieces| pieces.concat());
    Ok(joined.ok().and_then(|joined| {
        let (_, record) = row::verify_chunked(row, chunks, &joined).ok()?;
        row.directory(record).ok().flatten()
    }))
}

/// Removes the nodes of a collection whose row is removed, unless a row that is written now has them.
pub(super) fn remove_nodes(
    transaction: &mut impl Write,
    state: &mut State,
    hash_key: HashKey,
    old: &ExistingRow,
    written: &HashSet<u64>,
) -> Result<(), EngineError> {
    if !old.may_have_nodes {
        return Ok(());
    }
    let bytes = transaction.get(Table::Entries, &old.row_key.0)?;
    let directory = match bytes.map(|bytes| Row::parse(old.row_key, bytes)) {
        Some(Ok(row)) => directory(transaction, &row)?,
        Some(Err(Damaged)) | None => None,
    };
    let Some(directory) = directory.filter(|directory| !written.contains(&directory.owner())) else {
        return Ok(());
    };
    for node in directory.node_keys() {
        match remove_node(transaction, state, hash_key, node) {
            // The node belongs to nothing any more, and is lost space.
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
    match existing_row(transaction, &rows, &key)? {
        Some(old) => remove_row(transaction, state, &old),
        None => Ok(()),
    }
}
