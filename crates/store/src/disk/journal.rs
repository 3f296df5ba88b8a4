//! The journal: where a write waits for the disk, its changes are there first, one after the other, and the engine takes
//! them over a little later, many at once (FORMAT.md, "Journal").
//!
//! Two files of a fixed length take turns. A file is begun anew when the engine has committed all that is in it, so that
//! nothing is ever removed and the length never changes: a sync has to wait for the bytes alone.

use std::fs::{self, File};
use std::hash::Hasher as _;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use siphasher::sip::SipHasher13;
use snugly_codec::Record as StoredRecord;
use tracing::warn;

use super::engine::Engine as _;
use super::files::sync_folder;
use super::private;
use super::queue::{Change, Item};
use super::row::{Damaged, verify_record};
use super::{Durability, Shared, Storage};
use crate::hash::HashKey;
use crate::memory::entry::{Access, Entry, MAX_KEY_LEN};
use crate::quicklist::stored::Directory;
use crate::store::system_time;

/// `length u32 | number u64 | checksum u64`, little-endian.
pub(super) const HEADER_LEN: usize = 20;
/// How long a file is at most and at least, in bytes.
const MOST_BYTES: u64 = 16 << 20;
const LEAST_BYTES: u64 = 256 << 10;
/// One of so many bytes of the budget is for a file.
const BUDGET_SHARE: u64 = 32;

const PUT: u8 = 0;
const PUT_EXPIRING: u8 = 1;
const DELETE: u8 = 2;
const GENERATIONS: u8 = 3;
const PUT_DICTIONARY: u8 = 4;
const DELETE_DICTIONARY: u8 = 5;
const ALL_GONE: u8 = 6;
const ACTIVE_DICTIONARIES: u8 = 7;
const PUT_PACKED: u8 = 8;
const PUT_PACKED_EXPIRING: u8 = 9;
const PUT_LIST: u8 = 10;
const PUT_LIST_EXPIRING: u8 = 11;
const LOAD: u8 = 12;

pub(super) struct Journal {
    /// Two, or none if the disk had no room for them.
    files: Vec<File>,
    /// The numbers of the last records in the files.
    last: [u64; 2],
    /// Which file is being written, and where in it.
    active: usize,
    at: u64,
    capacity: u64,
    hash_key: HashKey,
    /// The last record's number.
    number: u64,
    record: Vec<u8>,
}

/// Why a record cannot be appended.
#[derive(Debug)]
enum Refusal {
    /// It is longer than a file, or there is none.
    NoPlace,
    /// The other file has records that the engine has not committed.
    Full,
    Io(io::Error),
}

pub(super) fn paths(folder: &Path) -> [PathBuf; 2] {
    ["journal.0", "journal.1"].map(|name| folder.join(name))
}

/// How long each file is, in bytes; 0 where there is no journal.
fn capacity(storage: &Storage) -> u64 {
    match (storage.durability, storage.max_disk) {
        (Durability::Batched | Durability::None, _) => 0,
        (Durability::Fsync, 0) => MOST_BYTES,
        (Durability::Fsync, max_disk) => (max_disk / BUDGET_SHARE).clamp(LEAST_BYTES, MOST_BYTES),
    }
}

/// How many bytes of the budget are left to the journal.
pub(super) fn reserved(storage: &Storage) -> u64 {
    2 * capacity(storage)
}

/// Removes a journal whose records the engine has.
fn remove(folder: &Path) -> io::Result<()> {
    for path in paths(folder) {
        match fs::remove_file(path) {
            Err(reason) if reason.kind() != io::ErrorKind::NotFound => return Err(reason),
            _ => {}
        }
    }
    Ok(())
}

impl Journal {
    /// Begins a journal behind the record `applied`, up to which the engine has everything; `None` where there is to be
    /// none.
    pub(super) fn open(storage: &Storage, hash_key: HashKey, applied: u64) -> io::Result<Option<Journal>> {
        let capacity = capacity(storage);
        if capacity == 0 {
            remove(&storage.path)?;
            return Ok(None);
        }
        let (files, capacity) = match files_of(&storage.path, capacity)? {
            Some(files) => (files, capacity),
            None => (files_of(&storage.path, LEAST_BYTES)?.unwrap_or_default(), LEAST_BYTES),
        };
        if files.is_empty() {
            warn!(path = %storage.path.display(), "the disk has no room for a journal: writes will be slow");
        }
        let last = [applied; 2];
        Ok(Some(Journal {
            files,
            last,
            active: 0,
            at: 0,
            capacity,
            hash_key,
            number: applied,
            record: Vec::new(),
        }))
    }

    /// How many bytes the files take: less than is left to them where the disk had no room.
    pub(super) fn bytes(&self) -> u64 {
        self.files.len() as u64 * self.capacity
    }

    /// Appends the changes as one record, of which all or nothing survives, and waits until the disk has it; gives its
    /// number. The engine has committed the records up to `applied`.
    fn append(&mut self, items: &[Item], applied: u64) -> Result<u64, Refusal> {
        if self.files.is_empty() {
            return Err(Refusal::NoPlace);
        }
        self.record.clear();
        self.record.resize(HEADER_LEN, 0);
        items.iter().for_each(|item| encode(item, &mut self.record));
        let number = self.number + 1;
        let len = self.record.len() as u64;
        if len > self.capacity {
            return Err(Refusal::NoPlace);
        }
        let (header, payload) = self.record.split_at_mut(HEADER_LEN);
        header[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        header[4..12].copy_from_slice(&number.to_le_bytes());
        header[12..].copy_from_slice(&checksum(self.hash_key, number, payload).to_le_bytes());
        let (active, at) = match self.at + len <= self.capacity {
            true => (self.active, self.at),
            false if self.may_turn(applied) => (1 - self.active, 0),
            false => return Err(Refusal::Full),
        };
        write_at(&self.files[active], at, &self.record).map_err(Refusal::Io)?;
        self.files[active].sync_data().map_err(Refusal::Io)?;
        (self.active, self.at, self.number) = (active, at + len, number);
        self.last[active] = number;
        Ok(number)
    }

    /// Whether the other file can be begun anew where the engine has committed the records up to `applied`.
    fn may_turn(&self, applied: u64) -> bool {
        self.last[1 - self.active] <= applied
    }
}

/// Both files, unless the disk has no room for them.
fn files_of(folder: &Path, capacity: u64) -> io::Result<Option<Vec<File>>> {
    let files = match paths(folder).iter().map(|path| file_of(path, capacity)).collect() {
        Ok(files) => Some(files),
        Err(reason) if reason.kind() == io::ErrorKind::StorageFull => {
            remove(folder)?;
            None
        }
        Err(reason) => return Err(reason),
    };
    sync_folder(folder)?;
    Ok(files)
}

/// A file of this length, whose blocks the disk has set apart.
fn file_of(path: &Path, capacity: u64) -> io::Result<File> {
    let (folder, name) = (path.parent(), path.file_name().and_then(|name| name.to_str()));
    let file = private::open(folder.unwrap_or(Path::new("")), name.unwrap_or_default())?;
    let len = file.metadata()?.len();
    if len != capacity {
        file.set_len(capacity)?;
        let zeros = vec![0; 64 << 10];
        for at in (len.min(capacity)..capacity).step_by(zeros.len()) {
            write_at(&file, at, &zeros[..zeros.len().min((capacity - at) as usize)])?;
        }
        file.sync_all()?;
    }
    Ok(file)
}

fn write_at(mut file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

/// Writes what the queue holds into the journal until it is stopped.
pub(super) fn run(shared: &Shared, mut journal: Journal) {
    while let Some(unjournaled) = shared.queue.take_unjournaled() {
        let appended = loop {
            // What the engine cannot write now must not be overtaken, and what is answered must find room there.
            let pending = shared.queue.bytes() as u64;
            if shared.is_failing() || shared.engine.prepare(pending).is_err() {
                break None;
            }
            match journal.append(&unjournaled.items, shared.applied()) {
                Ok(number) => break Some(number),
                Err(Refusal::Full) => {
                    shared.queue.wait_until(|| shared.is_failing() || journal.may_turn(shared.applied()));
                }
                Err(Refusal::NoPlace) => break None,
                Err(Refusal::Io(reason)) => {
                    warn!(%reason, "the journal cannot be written; changes wait for the engine");
                    break None;
                }
            }
        };
        shared.queue.journaled(&unjournaled, journal.number, appended.is_some());
        if appended.is_some() {
            shared.status.journal_records.fetch_add(1, Ordering::Relaxed);
        } else {
            shared.queue.wait_until(|| shared.queue.is_committed(unjournaled.sequence).is_some());
        }
    }
}

/// SipHash-1-3 of a record, with the store's key: nobody who writes values can make what is taken for a record.
pub(super) fn checksum(hash_key: HashKey, number: u64, payload: &[u8]) -> u64 {
    let mut checksum = SipHasher13::new_with_keys(hash_key[0], hash_key[1]);
    checksum.write(&number.to_le_bytes());
    checksum.write(payload);
    checksum.finish()
}

fn encode(item: &Item, out: &mut Vec<u8>) {
    let part = |out: &mut Vec<u8>, bytes: &[u8]| {
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    };
    let numbers = |out: &mut Vec<u8>, numbers: &[u32]| {
        out.extend_from_slice(&(numbers.len() as u32).to_le_bytes());
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    };
    match item {
        Item::Change(Change { generation, entry, expiry, .. }) => {
            let entry = entry.borrow();
            let kind = match expiry {
                _ if entry.is_tombstone() => DELETE,
                None if entry.is_directory() => PUT_LIST,
                Some(_) if entry.is_directory() => PUT_LIST_EXPIRING,
                None if entry.is_packed() => PUT_PACKED,
                None => PUT,
                Some(_) if entry.is_packed() => PUT_PACKED_EXPIRING,
                Some(_) => PUT_EXPIRING,
            };
            out.push(kind);
            out.extend_from_slice(&generation.to_le_bytes());
            part(out, entry.key());
            if kind != DELETE {
                part(out, entry.record_bytes());
            }
            if let Some(at) = expiry.filter(|_| kind != DELETE) {
                out.extend_from_slice(&at.to_le_bytes());
            }
        }
        Item::Dictionary { number, row } => {
            out.push(if row.is_some() { PUT_DICTIONARY } else { DELETE_DICTIONARY });
            out.extend_from_slice(&number.to_le_bytes());
            row.as_ref().inspect(|row| part(out, row));
        }
        Item::Generations { generations, all_gone, .. } => {
            out.push(if *all_gone { ALL_GONE } else { GENERATIONS });
            numbers(out, generations);
        }
        Item::ActiveDictionaries(active) => {
            out.push(ACTIVE_DICTIONARIES);
            numbers(out, active);
        }
        Item::Load(row) => {
            out.push(LOAD);
            part(out, row.as_deref().unwrap_or_default());
        }
    }
}

/// The changes of a record.
pub(super) fn decode(payload: &[u8]) -> Result<Vec<Item>, Damaged> {
    let access = Access::written(system_time());
    let mut reader = Reader(payload);
    let mut items = Vec::new();
    while !reader.0.is_empty() {
        let [kind] = reader.take()?;
        if let GENERATIONS | ALL_GONE | ACTIVE_DICTIONARIES = kind {
            let count = u32::from_le_bytes(reader.take()?);
            let numbers: Result<Arc<[u32]>, Damaged> =
                (0..count).map(|_| reader.take().map(u32::from_le_bytes)).collect();
            let numbers = numbers?;
            items.push(match kind {
                ACTIVE_DICTIONARIES => Item::ActiveDictionaries(numbers),
                _ => Item::Generations { generations: numbers, all_gone: kind == ALL_GONE, in_group: false },
            });
            continue;
        }
        if let PUT_DICTIONARY | DELETE_DICTIONARY = kind {
            let number = u32::from_le_bytes(reader.take()?);
            let row = if kind == PUT_DICTIONARY { Some(reader.part()?.into()) } else { None };
            items.push(Item::Dictionary { number, row });
            continue;
        }
        if kind == LOAD {
            let row = reader.part()?;
            items.push(Item::Load((!row.is_empty()).then(|| row.into())));
            continue;
        }
        let generation = u32::from_le_bytes(reader.take()?);
        let key = reader.part()?;
        let (entry, expiry) = match kind {
            DELETE if key.len() <= MAX_KEY_LEN => (Entry::tombstone(key), None),
            PUT_LIST | PUT_LIST_EXPIRING => {
                let record = reader.part()?;
                let expiry = match kind {
                    PUT_LIST => None,
                    _ => Some(u64::from_le_bytes(reader.take()?)),
                };
                Directory::of_record(record).ok_or(Damaged)?;
                let record = StoredRecord::parse(record).map_err(|_| Damaged)?;
                if key.len() > MAX_KEY_LEN {
                    return Err(Damaged);
                }
                (Entry::directory(key, &record, expiry, access), expiry)
            }
            PUT | PUT_EXPIRING | PUT_PACKED | PUT_PACKED_EXPIRING => {
                let record = reader.part()?;
                verify_record(record)?;
                let expiry = match kind {
                    PUT | PUT_PACKED => None,
                    _ => Some(u64::from_le_bytes(reader.take()?)),
                };
                let is_packed = matches!(kind, PUT_PACKED | PUT_PACKED_EXPIRING);
                (Entry::of_pieces(key, &[record], expiry, access, is_packed).ok_or(Damaged)?, expiry)
            }
            _ => return Err(Damaged),
        };
        items.push(Item::Change(Change { generation, entry, expiry, in_group: false, _holds: None }));
    }
    Ok(items)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*first)
    }

    /// Bytes behind their length.
    fn part(&mut self) -> Result<&'a [u8], Damaged> {
        let len = u32::from_le_bytes(self.take()?) as usize;
        let (part, rest) = self.0.split_at_checked(len).ok_or(Damaged)?;
        self.0 = rest;
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::leftover::{Leftover, leftover};
    use super::*;

    const KEY: HashKey = [1, 2];
    const SMALL: u64 = MIN_BUDGET / BUDGET_SHARE;
    const MIN_BUDGET: u64 = super::super::MIN_MAX_DISK;

    fn put(key: &[u8], value: &[u8], expiry: Option<u64>) -> Item {
        put_as(key, value, expiry, false)
    }

    fn put_as(key: &[u8], value: &[u8], expiry: Option<u64>, is_packed: bool) -> Item {
        let make = if is_packed { Entry::packed } else { Entry::new };
        let entry = make(key, &StoredRecord::identity(value), expiry, Access::written(0));
        Item::Change(Change { generation: 1, entry, expiry, in_group: false, _holds: None })
    }

    fn delete(key: &[u8]) -> Item {
        Item::Change(Change {
            generation: 1,
            entry: Entry::tombstone(key),
            expiry: None,
            in_group: false,
            _holds: None,
        })
    }

    fn encoded(items: &[Item]) -> Vec<u8> {
        let mut bytes = Vec::new();
        items.iter().for_each(|item| encode(item, &mut bytes));
        bytes
    }

    fn storage(folder: &Path) -> Storage {
        Storage { durability: Durability::Fsync, max_disk: MIN_BUDGET, ..Storage::new(folder) }
    }

    fn open(folder: &Path, applied: u64) -> Journal {
        Journal::open(&storage(folder), KEY, applied)
            .expect("there is room")
            .expect("writes wait for the disk")
    }

    /// Puts a value of this length, different for each number.
    fn numbered(number: u64, len: usize) -> [Item; 1] {
        [put(&number.to_le_bytes(), &vec![number as u8; len], None)]
    }

    /// What would be taken over, as bytes.
    fn found(folder: &Path, applied: u64) -> (Vec<u8>, u64) {
        let leftover = leftover(folder, KEY, applied).expect("the files can be read");
        (encoded(&leftover.items), leftover.last)
    }

    fn expected(numbers: impl Iterator<Item = u64>, len: usize) -> Vec<u8> {
        numbers.flat_map(|number| encoded(&numbered(number, len))).collect()
    }

    #[test]
    fn what_was_appended_is_found_behind_what_the_engine_has() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(found(folder.path(), 0), (Vec::new(), 0), "without a journal there is nothing");
        let mut journal = open(folder.path(), 0);
        for number in 1..=5 {
            assert_eq!(journal.append(&numbered(number, 100), 0).expect("there is room"), number);
        }
        assert_eq!(found(folder.path(), 0), (expected(1..=5, 100), 5));
        assert_eq!(found(folder.path(), 3), (expected(4..=5, 100), 5));
        let mut journal = open(folder.path(), 5);
        assert_eq!(found(folder.path(), 5), (Vec::new(), 5));
        assert_eq!(journal.append(&numbered(6, 10), 5).expect("there is room"), 6);
        assert_eq!(found(folder.path(), 5), (expected(6..=6, 10), 6), "what is behind it is older");
    }

    #[test]
    fn the_files_take_turns_and_none_is_begun_anew_before_the_engine_has_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = open(folder.path(), 0);
        let (len, mut applied) = (SMALL as usize / 3, 0);
        for number in 1..=20 {
            match journal.append(&numbered(number, len), applied) {
                Ok(_) => {}
                Err(Refusal::Full) => {
                    assert_eq!(
                        found(folder.path(), applied),
                        (expected(applied + 1..=number - 1, len), number - 1)
                    );
                    applied = number - 1;
                    journal.append(&numbered(number, len), applied).expect("the other file is free");
                }
                Err(refusal) => panic!("{refusal:?}"),
            }
        }
        assert!(applied > 10);
        assert_eq!(found(folder.path(), applied), (expected(applied + 1..=20, len), 20));
        let sizes = paths(folder.path()).map(|path| fs::metadata(path).expect("it is there").len());
        assert_eq!(sizes, [SMALL; 2]);
        assert_eq!(journal.bytes(), 2 * SMALL);
    }

    #[test]
    fn a_record_longer_than_a_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let refusal = open(folder.path(), 0).append(&numbered(1, SMALL as usize), 0);
        assert!(matches!(refusal, Err(Refusal::NoPlace)));
    }

    #[test]
    fn a_torn_record_is_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = open(folder.path(), 0);
        let mut ends = vec![0];
        for number in 1..=4 {
            journal.append(&numbered(number, 50), 0).expect("there is room");
            ends.push(journal.at as usize);
        }
        let [path, _] = paths(folder.path());
        let whole = fs::read(&path).expect("it can be read");
        for at in ends[3]..ends[4] {
            let mut torn = whole.clone();
            torn[at..].fill(0xee);
            fs::write(&path, &torn).expect("it can be written");
            assert_eq!(found(folder.path(), 0), (expected(1..=3, 50), 3));
        }
    }

    /// A journal of so many records, as bytes, and where each of them ends.
    fn written(folder: &Path, count: u64) -> (Vec<u8>, Vec<usize>) {
        let mut journal = open(folder, 0);
        let ends = (1..=count).map(|number| {
            journal.append(&numbered(number, 50), 0).expect("there is room");
            journal.at as usize
        });
        let ends = ends.collect();
        (fs::read(&paths(folder)[0]).expect("it can be read"), ends)
    }

    fn found_in(folder: &Path, bytes: &[u8]) -> Leftover {
        fs::write(&paths(folder)[0], bytes).expect("it can be written");
        leftover(folder, KEY, 0).expect("the files can be read")
    }

    #[test]
    fn damage_anywhere_takes_one_record_and_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let (whole, ends) = written(folder.path(), 5);
        for at in 0..ends[4] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            let leftover = found_in(folder.path(), &damaged);
            let hit = 1 + ends.iter().filter(|end| **end <= at).count() as u64;
            let others = (1..=5).filter(|number| *number != hit);
            assert_eq!(encoded(&leftover.items), expected(others, 50), "byte {at}");
            assert_eq!(leftover.lost, u64::from(hit < 5), "byte {at}");
            let names_number = (ends[3] + 4..ends[3] + 12).contains(&at);
            assert!(leftover.is_cut == (hit == 5) || names_number, "byte {at}");
        }
    }

    #[test]
    fn damaged_neighbours_are_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let (whole, ends) = written(folder.path(), 6);
        let mut damaged = whole.clone();
        damaged[ends[0]..ends[2]].fill(0xee);
        let leftover = found_in(folder.path(), &damaged);
        let kept = [expected(1..=1, 50), expected(4..=6, 50)].concat();
        assert_eq!((encoded(&leftover.items), leftover.lost), (kept, 2));
    }

    #[test]
    fn a_value_that_looks_like_a_record_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let payload = encoded(&numbered(7, 10));
        let mut forged = Vec::new();
        forged.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        forged.extend_from_slice(&2u64.to_le_bytes());
        // The checksum of earlier programs, which anybody can make.
        let unkeyed = xxhash_rust::xxh3::xxh3_64(&[&2u64.to_le_bytes()[..], &payload].concat());
        forged.extend_from_slice(&unkeyed.to_le_bytes());
        forged.extend_from_slice(&payload);
        let mut journal = open(folder.path(), 0);
        journal.append(&[put(b"key", &forged, None)], 0).expect("there is room");
        let mut damaged = fs::read(&paths(folder.path())[0]).expect("it can be read");
        damaged[HEADER_LEN] ^= 1;
        let leftover = found_in(folder.path(), &damaged);
        assert_eq!((leftover.items.len(), leftover.is_cut), (0, true));
    }

    #[test]
    fn records_of_earlier_programs_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut bytes, ends) = written(folder.path(), 3);
        for (number, start) in (1u64..).zip([0, ends[0], ends[1]]) {
            let payload = bytes[start + HEADER_LEN..ends[number as usize - 1]].to_vec();
            let unkeyed = xxhash_rust::xxh3::xxh3_64(&[&number.to_le_bytes()[..], &payload].concat());
            bytes[start + 12..start + HEADER_LEN].copy_from_slice(&unkeyed.to_le_bytes());
        }
        let leftover = found_in(folder.path(), &bytes);
        assert_eq!((encoded(&leftover.items), leftover.lost), (expected(1..=3, 50), 0));
    }

    #[test]
    fn where_writes_do_not_wait_for_the_disk_the_journal_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        drop(open(folder.path(), 0));
        let batched = Storage { durability: Durability::Batched, ..storage(folder.path()) };
        assert!(Journal::open(&batched, KEY, 0).expect("it can be removed").is_none());
        assert!(paths(folder.path()).iter().all(|path| !path.exists()));
        assert_eq!((reserved(&batched), reserved(&storage(folder.path()))), (0, 2 * SMALL));
    }

    /// Key, value and expiry of what is put, and whether it is packed; without a value it is deleted.
    type Given = (Vec<u8>, Option<Vec<u8>>, Option<u64>, bool);

    fn given() -> impl Strategy<Value = Given> {
        let bytes = |most| prop::collection::vec(any::<u8>(), 0..most);
        (bytes(50), prop::option::of(bytes(5_000)), any::<Option<u64>>(), any::<bool>())
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            changes in prop::collection::vec(given(), 0..10),
            generations in prop::collection::vec(any::<u32>(), 1..20),
            all_gone: bool,
            active in prop::collection::vec(any::<u32>(), 0..20),
            dictionary in (any::<u32>(), prop::option::of(prop::collection::vec(any::<u8>(), 0..100))),
        ) {
            let mut items =
                vec![Item::Generations { generations: generations.into(), all_gone, in_group: false }];
            items.push(Item::ActiveDictionaries(active.into()));
            items.push(Item::Dictionary { number: dictionary.0, row: dictionary.1.map(Arc::from) });
            items.extend(changes.iter().map(|(key, value, at, is_packed)| match value {
                Some(value) => put_as(key, value, *at, *is_packed),
                None => delete(key),
            }));
            let bytes = encoded(&items);
            let decoded = decode(&bytes).expect("it was encoded");
            prop_assert_eq!(decoded.len(), items.len());
            prop_assert_eq!(encoded(&decoded), bytes);
            for (item, given) in decoded[3..].iter().zip(&changes) {
                let Item::Change(change) = item else { panic!("{} is no change", given.0.escape_ascii()) };
                prop_assert_eq!(change.entry.borrow().is_packed(), given.1.is_some() && given.3);
            }
        }

        #[test]
        fn any_bytes_can_be_decoded(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(items) = decode(&bytes) {
                prop_assert_eq!(encoded(&items), bytes);
            }
        }
    }
}
