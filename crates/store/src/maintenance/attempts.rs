//! Attempts at records that a pass has found: a bounded number at a time, with the tables that they need.

use std::mem;

use tracing::debug;

use super::slice::Slice;
use crate::error::StoreError;
use crate::recompression::Task;
use crate::session::{Recompression, Recompressor, Session};
use crate::store::Store;

/// The keys that a pass has found, and what is to be done with each.
#[derive(Default)]
pub(super) struct Attempts {
    found: Vec<(Vec<u8>, Task)>,
    database: usize,
    /// Keys that are in memory only until they are on disk again.
    passing: Vec<(usize, Vec<u8>)>,
    recompressor: Recompressor,
    /// Whether anything was encoded since this was asked for the last time.
    has_worked: bool,
}

/// Most values that one step tries.
const TRIED_AT_ONCE: usize = 16;
/// Most keys in memory on their way to the disk.
const MOST_PASSING: usize = 256;

impl Attempts {
    /// Takes what was found in a database.
    pub(super) fn add(&mut self, database: usize, found: Vec<(Vec<u8>, Task)>) {
        (self.database, self.found) = (database, found);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Evicts keys that were read from disk for it and are there again; returns whether there is room for more of them.
    pub(super) fn let_pass(&mut self, store: &Store, now: u64) -> bool {
        self.passing.retain(|(database, key)| !store.evict_clean(*database, key, now));
        self.passing.len() < MOST_PASSING
    }

    /// Tries some of the keys, one at least.
    pub(super) fn try_some(&mut self, session: &mut Session, slice: Slice<'_>) -> Result<(), StoreError> {
        for _ in 0..TRIED_AT_ONCE {
            let Some((key, task)) = self.found.pop() else { break };
            match session.recompress(task, self.database, &key, &mut self.recompressor) {
                Ok(Recompression::Tried { was_on_disk }) => {
                    self.has_worked = true;
                    if was_on_disk {
                        self.passing.push((self.database, key));
                    }
                }
                Ok(Recompression::Left) => {}
                // The value stays as it is; its readers get the error.
                Err(error) if error.is_of_a_value() => {
                    debug!(%error, "a value cannot be recompressed");
                }
                Err(error) => return Err(error),
            }
            if slice.is_over() {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether anything was encoded since this was asked for the last time.
    pub(super) fn has_worked(&mut self) -> bool {
        mem::take(&mut self.has_worked)
    }

    /// Bytes that the tables take.
    pub(super) fn table_bytes(&self) -> usize {
        self.recompressor.bytes()
    }

    /// Forgets what was found, and frees the tables.
    pub(super) fn end(&mut self) {
        self.found = Vec::new();
        self.recompressor.clear();
    }
}
