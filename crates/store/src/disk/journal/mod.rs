//! The journal: where a write waits for the disk, its changes are appended here first, and the engine commits
//! them a little later, many at once (FORMAT.md, "Journal").
//!
//! Two files of fixed length take turns. A file is restarted when the engine has committed all its records,
//! so that nothing is ever removed and the length never changes: a sync waits for the bytes alone.
//!
//! It knows records and files. It must not know what a change means to the engine; [`changes`] encodes them.

mod changes;

use std::fs::{self, File};
use std::hash::Hasher as _;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use siphasher::sip::SipHasher13;
use tracing::warn;

use super::change::Item;
use super::drafts;
use super::engine::Engine as _;
use super::files::sync_folder;
use super::private;
use super::{Durability, Shared, Storage};
use crate::hash::HashKey;
use changes::encode;
pub(super) use changes::{Undecodable, decode};

/// Length of the header `length u32 | number u64 | checksum u64`, little-endian.
pub(super) const HEADER_LEN: usize = 20;
/// Greatest and least length of a file, in bytes.
const MOST_BYTES: u64 = 16 << 20;
const LEAST_BYTES: u64 = 256 << 10;
/// Divisor of the budget that gives the length of a file.
const BUDGET_SHARE: u64 = 32;

pub(super) struct Journal {
    /// Two files, or none if the disk had no space for them.
    files: Vec<File>,
    /// Numbers of the last record in each file.
    last: [u64; 2],
    /// Index of the file being written, and the position in it.
    active: usize,
    at: u64,
    capacity: u64,
    hash_key: HashKey,
    /// Number of the last record.
    number: u64,
    record: Vec<u8>,
}

/// Reason why a record cannot be appended.
#[derive(Debug)]
enum Refusal {
    /// The record is longer than a file, or there is no file.
    NoPlace,
    /// The other file has uncommitted records.
    Full,
    Io(io::Error),
}

/// Names of its files in the store's folder.
pub(super) const NAMES: [&str; 2] = ["journal.0", "journal.1"];

pub(super) fn paths(folder: &Path) -> [PathBuf; 2] {
    NAMES.map(|name| folder.join(name))
}

/// Returns the length of each file, in bytes; 0 where there is no journal.
fn capacity(storage: &Storage) -> u64 {
    match (storage.durability, storage.max_disk) {
        (Durability::Batched | Durability::None, _) => 0,
        (Durability::Fsync, 0) => MOST_BYTES,
        (Durability::Fsync, max_disk) => (max_disk / BUDGET_SHARE).clamp(LEAST_BYTES, MOST_BYTES),
    }
}

/// Returns the bytes of the budget that are reserved for the journal.
pub(super) fn reserved(storage: &Storage) -> u64 {
    2 * capacity(storage)
}

/// Removes a journal whose records are all committed.
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
    /// Starts a journal behind the record `applied`, up to which the engine has committed everything; `None`
    /// where there is to be none.
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

    /// Returns the bytes of the files: fewer than reserved where the disk had no space.
    pub(super) fn bytes(&self) -> u64 {
        self.files.len() as u64 * self.capacity
    }

    /// Appends the changes as one atomic record, waits until it is on disk, and returns its number. The
    /// engine has committed the records up to `applied`.
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
        write_header(self.hash_key, number, &mut self.record);
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

    /// Returns whether the other file can be restarted when the engine has committed the records up to
    /// `applied`.
    fn may_turn(&self, applied: u64) -> bool {
        self.last[1 - self.active] <= applied
    }
}

/// Opens both files, unless the disk has no space for them.
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

/// Opens a file of this length with its blocks allocated.
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

/// Writes the queue's changes to the journal until it is stopped.
pub(super) fn run(shared: &Shared, mut journal: Journal) {
    while let Some(mut unjournaled) = shared.queue.take_unjournaled() {
        drafts::encode_all(&mut unjournaled.items, *shared.compression.lock());
        let mut taken = Duration::ZERO;
        let appended = loop {
            // Changes that the engine cannot write now must not be overtaken, and answered ones must find
            // space there.
            let pending = shared.queue.bytes() as u64;
            if shared.is_failing() || shared.engine.prepare(pending).is_err() {
                break None;
            }
            let began = Instant::now();
            let appended = journal.append(&unjournaled.items, shared.applied());
            taken += began.elapsed();
            match appended {
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
            shared.status.journal_nanoseconds.fetch_add(taken.as_nanos() as u64, Ordering::Relaxed);
        } else {
            shared.queue.wait_until(|| shared.queue.is_committed(unjournaled.sequence).is_some());
        }
    }
}

/// Fills in the header in front of a record's payload.
fn write_header(hash_key: HashKey, number: u64, record: &mut [u8]) {
    let (header, payload) = record.split_at_mut(HEADER_LEN);
    header[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[4..12].copy_from_slice(&number.to_le_bytes());
    header[12..].copy_from_slice(&checksum(hash_key, number, payload).to_le_bytes());
}

/// Returns a whole record.
#[cfg(test)]
pub(super) fn record(hash_key: HashKey, number: u64, payload: &[u8]) -> Vec<u8> {
    let mut record = [&[0; HEADER_LEN], payload].concat();
    write_header(hash_key, number, &mut record);
    record
}

/// Returns SipHash-1-3 of a record with the store's key, so that written values cannot forge a record.
pub(super) fn checksum(hash_key: HashKey, number: u64, payload: &[u8]) -> u64 {
    let mut checksum = SipHasher13::new_with_keys(hash_key[0], hash_key[1]);
    checksum.write(&number.to_le_bytes());
    checksum.write(payload);
    checksum.finish()
}

#[cfg(test)]
mod tests {
    use super::super::leftover::{Leftover, leftover};
    use super::changes::tests::{encoded, put};
    use super::*;

    const KEY: HashKey = [1, 2];
    const SMALL: u64 = MIN_BUDGET / BUDGET_SHARE;
    const MIN_BUDGET: u64 = super::super::MIN_MAX_DISK;

    fn storage(folder: &Path) -> Storage {
        Storage { durability: Durability::Fsync, max_disk: MIN_BUDGET, ..Storage::new(folder) }
    }

    fn open(folder: &Path, applied: u64) -> Journal {
        Journal::open(&storage(folder), KEY, applied)
            .expect("there is room")
            .expect("writes wait for the disk")
    }

    /// Returns a put with a value of this length, different for each number.
    fn numbered(number: u64, len: usize) -> [Item; 1] {
        [put(&number.to_le_bytes(), &vec![number as u8; len], None)]
    }

    /// Returns the changes that would be applied, as bytes.
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

    /// Writes a journal of `count` records; returns its bytes, and where each record ends.
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
        // The unkeyed checksum of earlier programs, which anybody can forge.
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
}
