//! Rows of one commit, whatever is committed while they are read.

use std::ops::RangeInclusive;

use super::engine::Engine;
use super::lmdb;
use super::row::{Generation, NODES};
use super::{Disk, DiskError, Shared, lookup};
use crate::entry::{Access, Entry};
use crate::hash::{HashKey, hash};
use crate::values::collection::NodeKey;

/// Rows of the last commit. Drop it soon: pages that it has cannot be reused meanwhile, and its thread can
/// read nothing else.
pub(crate) struct DiskSnapshot<'d> {
    shared: &'d Shared,
    hash_key: HashKey,
    rows: lmdb::Snapshot<'d>,
}

impl Disk {
    /// Returns what is committed now.
    pub(crate) fn snapshot(&self) -> Result<DiskSnapshot<'_>, DiskError> {
        let rows = self.shared.engine.read()?;
        Ok(DiskSnapshot { shared: &self.shared, hash_key: self.hash_key, rows })
    }
}

impl DiskSnapshot<'_> {
    /// Passes the entries of a generation with hashes in this range to `show` until it returns false, those
    /// that `wanted` accepts by key and expiry.
    ///
    /// # Errors
    /// The key whose value cannot be read, empty if it is none of these, and why.
    pub(crate) fn entries(
        &self,
        generation: Generation,
        hashes: RangeInclusive<u64>,
        wanted: impl Fn(&[u8], Option<u64>) -> bool,
        mut show: impl FnMut(Entry) -> bool,
    ) -> Result<(), (Vec<u8>, DiskError)> {
        let mut failure = None;
        let scanned =
            lookup::scan(self.shared, &self.rows, generation, *hashes.start(), |row_key, key, row| {
                if row_key.hash() > *hashes.end() {
                    return false;
                }
                if !wanted(key, row.expiry) {
                    return true;
                }
                let entry = lookup::entry(self.shared, &self.rows, (row_key, row), key, Access::written(0));
                entry.map_err(|error| failure = Some((key.to_vec(), error))).is_ok_and(&mut show)
            });
        let failure = scanned.err().map(|error| (Vec::new(), error)).or(failure);
        failure.map_or(Ok(()), |(key, error)| Err((key, self.shared.reported(error))))
    }

    /// Returns a node of a collection.
    pub(crate) fn node(&self, node: NodeKey) -> Result<Option<Entry>, DiskError> {
        let key = node.bytes();
        let hash = hash(self.hash_key, &key);
        let entry = lookup::load(self.shared, &self.rows, NODES, hash, &key, Access::written(0));
        entry.map_err(|error| self.shared.reported(error))
    }
}
