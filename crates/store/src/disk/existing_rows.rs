//! Existing rows: lookup and removal inside a commit's transaction.

use super::engine::{EngineError, Read, Table, Write};
use super::lookup::{self, Match};
use super::row::{self, Body, Chunks, Damaged, Generation, Row, RowKey};
use super::state::State;
use crate::values::Kind;

/// An existing row of a key, not borrowed from the transaction.
pub(super) struct ExistingRow {
    pub(super) row_key: RowKey,
    row_bytes: usize,
    pub(super) expiry: Option<u64>,
    chunks: Option<Chunks>,
    pub(super) dictionary: Option<u32>,
    /// Whether it may belong to a collection, with nodes in rows of their own.
    pub(super) may_have_nodes: bool,
}

impl ExistingRow {
    /// Parses a row. Of a damaged one only the key is known; its chunks, if it had any, stay until the store
    /// is compacted, and its dictionary counts as needed.
    pub(super) fn parse(row_key: RowKey, bytes: &[u8]) -> ExistingRow {
        match Row::parse(row_key, bytes) {
            Ok(row) => ExistingRow::of(row_key, &row),
            Err(Damaged) => ExistingRow {
                row_key,
                row_bytes: bytes.len(),
                expiry: None,
                chunks: None,
                dictionary: None,
                may_have_nodes: false,
            },
        }
    }

    pub(super) fn of(row_key: RowKey, row: &Row<'_>) -> ExistingRow {
        let chunks = match row.body {
            Body::Chunked(chunks) => Some(chunks),
            Body::Inline(_) => None,
        };
        let Row { len: row_bytes, expiry, dictionary, kind, .. } = *row;
        let may_have_nodes = kind != Ok(Kind::String);
        ExistingRow { row_key, row_bytes, expiry, chunks, dictionary, may_have_nodes }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.row_bytes as u64 + self.chunks.as_ref().map_or(0, |chunks| chunks.len)
    }
}

/// Finds the key's row among all rows of its hash.
pub(super) fn existing_row(
    transaction: &impl Write,
    rows: &[(RowKey, &[u8])],
    key: &[u8],
) -> Result<Option<ExistingRow>, EngineError> {
    Ok(match lookup::find_among(transaction, rows, key)? {
        Match::Found(row_key, row) => Some(ExistingRow::of(row_key, &row)),
        Match::Damaged(row_key) => rows
            .iter()
            .find(|(other, _)| *other == row_key)
            .map(|(_, bytes)| ExistingRow::parse(row_key, bytes)),
        Match::Absent => None,
    })
}

/// Returns a row key of this hash that is not in use.
pub(super) fn unused_row_key(
    rows: &[(RowKey, &[u8])],
    generation: Generation,
    hash: u64,
) -> Result<RowKey, EngineError> {
    let is_free = |number: &u8| !rows.iter().any(|(row_key, _)| row_key.number() == *number);
    let number = (0..=u8::MAX).find(is_free).ok_or_else(|| {
        EngineError::Engine("256 keys have the same hash, which cannot be by chance".into())
    })?;
    Ok(RowKey::new(generation, hash, number))
}

/// Removes a row and what it refers to, except the nodes of a collection.
pub(super) fn remove_row(
    transaction: &mut impl Write,
    state: &mut State,
    old: &ExistingRow,
) -> Result<(), EngineError> {
    // First, since it may be refused.
    transaction.delete(Table::Entries, &old.row_key.0)?;
    remove_chunks(transaction, old)?;
    old.dictionary.inspect(|&number| state.release_dictionary(number));
    if let Some(at) = old.expiry {
        delete_if_possible(transaction, Table::Expiries, &old.row_key.expiry_key(at))?;
    }
    if let Some(contents) = state.of(old.row_key.generation()) {
        contents.keys = contents.keys.saturating_sub(1);
        contents.bytes = contents.bytes.saturating_sub(old.bytes());
        contents.volatile_keys = contents.volatile_keys.saturating_sub(u64::from(old.expiry.is_some()));
    }
    Ok(())
}

/// Deletes a row that cannot be found any more without the one that referred to it. Next to a damaged page,
/// with which the engine might merge its page, it stays and is lost space.
pub(super) fn delete_if_possible(
    transaction: &mut impl Write,
    table: Table,
    key: &[u8],
) -> Result<(), EngineError> {
    match transaction.delete(table, key) {
        Err(EngineError::Damaged(_)) => Ok(()),
        deleted => deleted.map(drop),
    }
}

pub(super) fn remove_chunks(transaction: &mut impl Write, old: &ExistingRow) -> Result<(), EngineError> {
    let Some(chunks) = &old.chunks else { return Ok(()) };
    for number in 0..chunks.count() {
        delete_if_possible(transaction, Table::Chunks, &row::chunk_key(chunks.id, number as u32))?;
    }
    Ok(())
}

/// Finds the next keys to expire, as long as `wanted` accepts their time. Keys found before a failure are
/// kept.
pub(super) fn expiring(
    reader: &impl Read,
    limit: usize,
    wanted: impl Fn(u64) -> bool,
    found: &mut Vec<(u64, RowKey)>,
) -> Result<(), EngineError> {
    reader.scan(Table::Expiries, &[], &mut |key, _| match row::parse_expiry_key(key) {
        Ok((at, row_key)) if wanted(at) && found.len() < limit => {
            found.push((at, row_key));
            true
        }
        Ok(_) | Err(Damaged) => false,
    })
}

/// Finds up to `limit` rows from a row key on, as long as they are `wanted`. Rows found before a failure are
/// kept.
pub(super) fn rows_from(
    reader: &impl Read,
    from: RowKey,
    limit: usize,
    wanted: impl Fn(RowKey) -> bool,
    found: &mut Vec<ExistingRow>,
) -> Result<(), EngineError> {
    reader.scan(Table::Entries, &from.0, &mut |key, bytes| match RowKey::parse(key) {
        Ok(row_key) if wanted(row_key) && found.len() < limit => {
            found.push(ExistingRow::parse(row_key, bytes));
            true
        }
        _ => false,
    })
}

/// Returns the key of a row, unless the row is damaged.
pub(super) fn key_of(reader: &impl Read, old: &ExistingRow) -> Result<Option<Vec<u8>>, EngineError> {
    let Some(bytes) = reader.get(Table::Entries, &old.row_key.0)? else { return Ok(None) };
    match Row::parse(old.row_key, bytes) {
        Ok(Row { key: Some(key), .. }) => Ok(Some(key.to_vec())),
        Ok(row) => Ok(lookup::long_key(reader, &row)?.ok()),
        Err(Damaged) => Ok(None),
    }
}

/// Returns the row key behind this one.
pub(super) fn successor(row_key: RowKey) -> RowKey {
    let mut bytes = row_key.0;
    for byte in bytes.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            break;
        }
    }
    RowKey(bytes)
}
