//! Journal records that the engine has not committed, found when a store is opened: record after record, and
//! behind damage every record that can still be found, by its number and its checksum.
//!
//! A value that a client wrote is never taken for a record: the checksum is keyed with the store's secret.

use std::fs;
use std::io;
use std::path::Path;

use tracing::{error, warn};
use xxhash_rust::xxh3::Xxh3;

use super::change::Item;
use super::journal::{HEADER_LEN, Undecodable, checksum, decode, paths};
use crate::hash::HashKey;

/// Changes that the engine has not committed, as found when the store was opened.
pub(super) struct Leftover {
    pub(super) items: Vec<Item>,
    /// Number of the last record.
    pub(super) last: u64,
    /// Number of records whose changes are lost: other records stand behind them.
    pub(super) lost: u64,
    /// Whether the bytes behind the last record begin like the next one, which was torn before it was
    /// answered, or is damaged.
    pub(super) is_cut: bool,
    /// Number of a change that this program does not know, if there is one.
    pub(super) unknown_change: Option<u8>,
}

/// Reads what the journal in a folder has behind the record `applied`, if there is a journal.
pub(super) fn leftover(folder: &Path, hash_key: HashKey, applied: u64) -> io::Result<Leftover> {
    let mut files = Vec::new();
    for path in paths(folder) {
        match fs::read(&path) {
            Ok(bytes) => files.push(bytes),
            Err(reason) if reason.kind() == io::ErrorKind::NotFound => {}
            Err(reason) => return Err(reason),
        }
    }
    // A record has at least a header and a byte, so the journal cannot have more.
    let most = files.iter().map(|bytes| (bytes.len() / (HEADER_LEN + 1)) as u64).sum::<u64>();
    let scans: Vec<Scan<'_>> = files.iter().map(|bytes| Scan::of(bytes, hash_key, applied, most)).collect();
    let mut records: Vec<&Record<'_>> = scans.iter().flat_map(|scan| &scan.records).collect();
    records.sort_unstable_by_key(|record| record.number);
    records.dedup_by_key(|record| record.number);
    let mut found =
        Leftover { items: Vec::new(), last: applied, lost: 0, is_cut: false, unknown_change: None };
    for record in records {
        found.lost += record.number - found.last - 1;
        match decode(record.payload) {
            Ok(items) => found.items.extend(items),
            Err(Undecodable::Damaged) => found.lost += 1,
            Err(Undecodable::UnknownChange(number)) => found.unknown_change = Some(number),
        }
        found.last = record.number;
    }
    found.is_cut = scans.iter().any(|scan| scan.torn == Some(found.last + 1));
    Ok(found)
}

impl Leftover {
    /// Logs the losses, and the possible ones.
    pub(super) fn log(&self, folder: &Path) {
        if self.lost > 0 {
            let records = self.lost;
            error!(records, path = %folder.display(), "damage in the journal: changes that were answered are lost");
        }
        if self.is_cut {
            warn!(
                path = %folder.display(),
                "the last record of the journal is not whole: it was being written when the server ended, and its \
                 changes were not answered; or it is damaged, and they are lost"
            );
        }
    }
}

struct Record<'a> {
    number: u64,
    payload: &'a [u8],
}

/// A header's fields, and the payload if the file is long enough.
struct Header<'a> {
    number: u64,
    checksum: u64,
    payload: Option<&'a [u8]>,
}

impl<'a> Header<'a> {
    fn at(bytes: &'a [u8], at: usize) -> Option<Header<'a>> {
        let (header, rest) = bytes.get(at..)?.split_first_chunk::<HEADER_LEN>()?;
        let word = |from: usize| u64::from_le_bytes(header[from..from + 8].try_into().expect("eight bytes"));
        let len = u32::from_le_bytes(header[..4].try_into().expect("four bytes")) as usize;
        let payload = rest.get(..len).filter(|payload| !payload.is_empty());
        Some(Header { number: word(4), checksum: word(12), payload })
    }

    /// Returns the record, if it is whole.
    fn record(&self, hash_key: HashKey) -> Option<Record<'a>> {
        let payload = self.payload?;
        (self.checksum == checksum(hash_key, self.number, payload))
            .then_some(Record { number: self.number, payload })
    }

    /// Returns the record, if it is whole and of a program whose checksums had no key.
    fn record_without_key(&self) -> Option<Record<'a>> {
        let payload = self.payload?;
        let mut checksum = Xxh3::new();
        checksum.update(&self.number.to_le_bytes());
        checksum.update(payload);
        (self.checksum == checksum.digest()).then_some(Record { number: self.number, payload })
    }
}

/// Findings in a file.
struct Scan<'a> {
    /// Records that the engine has not committed.
    records: Vec<Record<'a>>,
    /// Number of the bytes behind the last record that begin like a record but are not one.
    torn: Option<u64>,
}

impl<'a> Scan<'a> {
    /// Scans for records from the start of a file. Behind the last one are older records, up to `applied`,
    /// from before the file was restarted.
    fn of(bytes: &'a [u8], hash_key: HashKey, applied: u64, most: u64) -> Scan<'a> {
        let is_missing = |number: u64| number > applied && number - applied <= most;
        let mut scan = Scan { records: Vec::new(), torn: None };
        let mut at = 0;
        let mut follows: Option<u64> = None;
        // True until damage is met.
        let mut is_in_order = true;
        while let Some(header) = Header::at(bytes, at) {
            let is_next = follows.is_none_or(|number| header.number == number);
            let whole = header.record(hash_key).filter(|record| is_next || is_missing(record.number));
            // An unkeyed record is believed only where one must stand.
            let record = whole.or_else(|| header.record_without_key().filter(|_| is_next && is_in_order));
            let Some(record) = record else {
                is_in_order = false;
                if is_next && is_missing(header.number) {
                    scan.torn.get_or_insert(header.number);
                }
                match next_candidate(bytes, at + 1, is_missing) {
                    Some(next) => at = next,
                    None => break,
                }
                continue;
            };
            at += HEADER_LEN + record.payload.len();
            follows = Some(record.number + 1);
            scan.torn = None;
            if record.number > applied {
                scan.records.push(record);
            }
        }
        scan
    }
}

/// Returns the next offset with the number of a missing record.
fn next_candidate(bytes: &[u8], from: usize, is_missing: impl Fn(u64) -> bool) -> Option<usize> {
    const NUMBER_AT: usize = 4;
    let numbers = bytes.get(from + NUMBER_AT..)?.windows(8);
    let is_candidate =
        |number: &[u8]| is_missing(u64::from_le_bytes(number.try_into().expect("eight bytes")));
    Some(from + numbers.into_iter().position(is_candidate)?)
}
