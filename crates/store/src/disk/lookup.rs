//! Reading keys from a snapshot: nothing of a row is trusted before its checksum has been verified.

use std::collections::HashMap;

use thiserror::Error;
use xxhash_rust::xxh3::Xxh3;

use super::Shared;
use super::change::Item;
use super::engine::{Engine, EngineError, Read, Table};
use super::row::{self, Body, Chunks, Damaged, Generation, Misread, Row, RowKey};
use super::state::{Contents, LOAD_KEY, LoadMark, STATE_KEY, State};
use crate::entry::{Access, Entry, Stage};
use crate::hash::hash;
use crate::recompression::Cold;
use crate::values::Kind;
use crate::values::kind::UnknownKind;

/// Failure to read from disk, or to write to it.
#[derive(Debug, Error)]
pub(crate) enum DiskError {
    /// The key's row or record is not what was written.
    #[error("its value on disk is damaged (the checksum does not match); write or delete the key to mend it")]
    Damaged,
    /// Another program has written the row.
    #[error("the key has {0}")]
    UnknownKind(UnknownKind),
    /// The engine failed.
    #[error("the disk cannot be read: {0}")]
    Engine(#[from] EngineError),
    /// Changes could not be committed.
    #[error("changes could not be written to disk: {0}")]
    Unwritten(String),
}

/// Length in bytes from which a record is fetched from the disk as a whole before it is read.
const FETCHED_AHEAD: u64 = 16 << 10;

/// Returns the rows of one hash, oldest number first; more than one only where hashes collide.
pub(crate) fn rows(
    reader: &impl Read,
    generation: Generation,
    hash: u64,
) -> Result<Vec<(RowKey, &[u8])>, EngineError> {
    let first = RowKey::new(generation, hash, 0);
    let mut found = Vec::new();
    reader.scan(Table::Entries, &first.0, &mut |key, bytes| match RowKey::parse(key) {
        Ok(key) if key.generation() == generation && key.hash() == hash => {
            found.push((key, bytes));
            true
        }
        _ => false,
    })?;
    Ok(found)
}

/// Match between a row and the key that is looked for.
pub(crate) enum Match<'t> {
    Found(RowKey, Row<'t>),
    /// Damaged row that may be the key's own, or another's with the same hash.
    Damaged(RowKey),
    Absent,
}

/// Finds the key's row among those of its hash.
pub(crate) fn find<'t>(
    reader: &'t impl Read,
    generation: Generation,
    hash: u64,
    key: &[u8],
) -> Result<Match<'t>, EngineError> {
    find_among(reader, &rows(reader, generation, hash)?, key)
}

/// Finds the key's row among `rows`, which are all of its hash.
pub(crate) fn find_among<'t>(
    reader: &impl Read,
    rows: &[(RowKey, &'t [u8])],
    key: &[u8],
) -> Result<Match<'t>, EngineError> {
    let mut damaged = None;
    for &(row_key, bytes) in rows {
        match Row::parse(row_key, bytes) {
            Ok(row) => match is_of(reader, &row, key)? {
                Ok(true) => return Ok(Match::Found(row_key, row)),
                Ok(false) => {}
                Err(Damaged) => damaged = Some(row_key),
            },
            Err(Damaged) => damaged = Some(row_key),
        }
    }
    Ok(damaged.map_or(Match::Absent, Match::Damaged))
}

/// Returns whether the row belongs to this key.
fn is_of(reader: &impl Read, row: &Row<'_>, key: &[u8]) -> Result<Result<bool, Damaged>, EngineError> {
    if row.key_len != key.len() {
        return Ok(Ok(false));
    }
    match (row.key, &row.body) {
        (Some(stored), _) => Ok(Ok(stored == key)),
        (None, Body::Chunked(chunks)) => {
            let joined = pieces(reader, chunks)?.map(|pieces| pieces.concat());
            Ok(joined.and_then(|joined| Ok(row::verify_chunked(row, chunks, &joined)?.0 == Some(key))))
        }
        (None, Body::Inline(_)) => Ok(Err(Damaged)),
    }
}

/// Returns the contents of the chunks as slices of the snapshot, of which only the length has been verified.
pub(crate) fn pieces<'t>(
    reader: &'t impl Read,
    chunks: &Chunks,
) -> Result<Result<Vec<&'t [u8]>, Damaged>, EngineError> {
    let count = chunks.count();
    let mut pieces = Vec::new();
    let mut len = 0;
    reader.scan(Table::Chunks, &row::chunk_key(chunks.id, 0), &mut |key, bytes| {
        let is_next = key == row::chunk_key(chunks.id, pieces.len() as u32);
        if is_next && (pieces.len() as u64) < count {
            len += bytes.len() as u64;
            pieces.push(bytes);
        }
        is_next && (pieces.len() as u64) < count
    })?;
    Ok(if len == chunks.len { Ok(pieces) } else { Err(Damaged) })
}

/// Loads the entry of a key, if the snapshot has one.
pub(crate) fn load(
    shared: &Shared,
    reader: &impl Read,
    generation: Generation,
    hash: u64,
    key: &[u8],
    access: Access,
) -> Result<Option<Entry>, DiskError> {
    let (row_key, row) = match find(reader, generation, hash, key)? {
        Match::Found(row_key, row) => (row_key, row),
        Match::Absent => return Ok(None),
        Match::Damaged(row_key) => {
            shared.report_damage(row_key, key);
            return Err(DiskError::Damaged);
        }
    };
    entry(shared, reader, (row_key, &row), key, access).map(Some)
}

/// Makes the entry of a key whose row was found.
pub(crate) fn entry(
    shared: &Shared,
    reader: &impl Read,
    (row_key, row): (RowKey, &Row<'_>),
    key: &[u8],
    access: Access,
) -> Result<Entry, DiskError> {
    let entry = match &row.body {
        Body::Inline(record) => entry_of(key, &[record], row, access),
        Body::Chunked(chunks) => match pieces(reader, chunks)? {
            Ok(pieces) => {
                if chunks.len >= FETCHED_AHEAD {
                    fetch(&shared.engine, &pieces);
                }
                entry_of_chunks(key, row, chunks, &pieces, access)
            }
            Err(Damaged) => Err(Misread::Damaged),
        },
    };
    entry.map_err(|misread| match misread {
        Misread::UnknownKind(unknown) => DiskError::UnknownKind(unknown),
        Misread::Damaged => {
            shared.report_damage(row_key, key);
            DiskError::Damaged
        }
    })
}

/// Requests all pieces at once, adjacent ones together.
fn fetch(engine: &impl Engine, pieces: &[&[u8]]) {
    let is_near = |a: &&[u8], b: &&[u8]| {
        let end = a.as_ptr().addr() + a.len();
        b.as_ptr().addr().checked_sub(end).is_some_and(|gap| gap < row::CHUNK_BYTES)
    };
    for run in pieces.chunk_by(is_near) {
        run.iter().for_each(|piece| engine.will_need(piece));
    }
}

fn entry_of_chunks(
    key: &[u8],
    row: &Row<'_>,
    chunks: &Chunks,
    pieces: &[&[u8]],
    access: Access,
) -> Result<Entry, Misread> {
    if row.key.is_none() {
        let joined = pieces.concat();
        let (_, record) = row::verify_chunked(row, chunks, &joined)?;
        return entry_of(key, &[record], row, access);
    }
    let mut checksum = Xxh3::new();
    pieces.iter().for_each(|piece| checksum.update(piece));
    if checksum.digest() != chunks.checksum {
        return Err(Misread::Damaged);
    }
    entry_of(key, pieces, row, access)
}

fn entry_of(key: &[u8], pieces: &[&[u8]], row: &Row<'_>, access: Access) -> Result<Entry, Misread> {
    let properties = row.properties(access);
    let entry = Entry::of_pieces(row.kind?, key, pieces, properties, row.stage).ok_or(Damaged)?;
    Ok(match row.directory(entry.borrow().record_bytes().unwrap_or_default())? {
        Some(directory) => Entry::of_collection(key, directory.collection(), row.expiry, access),
        None => entry,
    })
}

/// Passes the keys of a generation, from a hash on, with their rows to `show`, until it returns false. A
/// damaged row, whose key is unknown, is counted and skipped.
pub(crate) fn scan(
    shared: &Shared,
    reader: &impl Read,
    generation: Generation,
    from: u64,
    mut show: impl FnMut(RowKey, &[u8], &Row<'_>) -> bool,
) -> Result<(), DiskError> {
    let mut failure = None;
    reader.scan(Table::Entries, &RowKey::new(generation, from, 0).0, &mut |key, bytes| {
        let Ok(row_key) = RowKey::parse(key) else { return true };
        if row_key.generation() != generation {
            return false;
        }
        match Row::parse(row_key, bytes) {
            Ok(row @ Row { key: Some(key), .. }) => show(row_key, key, &row),
            Ok(row) => match long_key(reader, &row) {
                Ok(Ok(key)) => show(row_key, &key, &row),
                Ok(Err(Damaged)) => {
                    shared.report_damage(row_key, b"?");
                    true
                }
                Err(error) => {
                    failure = Some(error);
                    false
                }
            },
            Err(Damaged) => {
                shared.report_damage(row_key, b"?");
                true
            }
        }
    })?;
    failure.map_or(Ok(()), |error| Err(error.into()))
}

/// Returns whether a row's record is cold if nobody uses it. A record behind a key in chunks counts as tried.
pub(crate) fn is_cold(reader: &impl Read, cold: Cold, row: &Row<'_>) -> Result<bool, EngineError> {
    if row.stage == Stage::Cold || row.key.is_none() || row.kind != Ok(Kind::String) {
        return Ok(false);
    }
    match &row.body {
        Body::Inline(record) => Ok(cold.has_record(row.stage, record)),
        Body::Chunked(chunks) => {
            let start = reader.get(Table::Chunks, &row::chunk_key(chunks.id, 0))?;
            Ok(start.is_some_and(|start| cold.has_record(row.stage, start)))
        }
    }
}

/// Reads the key of a row that keeps it in chunks.
pub(crate) fn long_key(reader: &impl Read, row: &Row<'_>) -> Result<Result<Vec<u8>, Damaged>, EngineError> {
    let Body::Chunked(chunks) = &row.body else { return Ok(Err(Damaged)) };
    let joined = match pieces(reader, chunks)? {
        Ok(pieces) => pieces.concat(),
        Err(Damaged) => return Ok(Err(Damaged)),
    };
    Ok(row::verify_chunked(row, chunks, &joined).and_then(|(key, _)| key.map(<[u8]>::to_vec).ok_or(Damaged)))
}

/// Reads the state of the snapshot's last commit.
pub(crate) fn state(reader: &impl Read) -> Result<Result<State, Damaged>, EngineError> {
    Ok(reader.get(Table::Meta, STATE_KEY)?.ok_or(Damaged).and_then(State::parse))
}

/// Reads the progress of loading from a file, if there was any.
pub(crate) fn load_mark(reader: &impl Read) -> Result<Result<Option<LoadMark>, Damaged>, EngineError> {
    Ok(reader.get(Table::Meta, LOAD_KEY)?.map(LoadMark::parse).transpose())
}

/// Returns the contents of a generation after the `pending` changes.
pub(crate) fn contents(
    shared: &Shared,
    reader: &impl Read,
    hash_key: [u64; 2],
    generation: Generation,
    pending: &[Item],
) -> Result<Contents, DiskError> {
    let mut state = state(reader)?.map_err(|Damaged| DiskError::Damaged)?;
    let mut contents =
        state.of(generation).copied().unwrap_or(Contents { generation, ..Contents::default() });
    let mut last = HashMap::new();
    for item in pending {
        if let Item::Change(change) = item
            && change.generation == generation
        {
            last.insert(change.entry.borrow().key(), change);
        }
    }
    for (key, change) in last {
        let (existed, expired) = match find(reader, generation, hash(hash_key, key), key)? {
            Match::Found(_, row) => (true, row.expiry.is_some()),
            Match::Damaged(row_key) => {
                shared.report_damage(row_key, key);
                (true, false)
            }
            Match::Absent => (false, false),
        };
        let exists = !change.entry.borrow().is_tombstone();
        let adjust = |count: u64, before: bool, after: bool| {
            (count + u64::from(after)).saturating_sub(u64::from(before))
        };
        contents.keys = adjust(contents.keys, existed, exists);
        contents.volatile_keys =
            adjust(contents.volatile_keys, existed && expired, exists && change.expiry.is_some());
    }
    Ok(contents)
}
