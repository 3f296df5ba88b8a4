//! The pass over all records in memory that encodes those which have stayed for a while with what suits how often they are
//! read, and what is read often again with what takes less time to read.
//!
//! It counts reads from one pass to the next, and a value that was written since the last one is left for the next. It must
//! not know what suits which value.

use tracing::debug;

use super::attempts::Attempts;
use super::reencoder::ScanPosition;
use super::slice::Slice;
use crate::session::Session;
use crate::store::Store;

#[derive(Default)]
pub(super) struct SettlingPass {
    /// Position of the pass; `None` if it is not under way.
    place: Option<ScanPosition>,
    attempts: Attempts,
    /// Time of the last end or interruption, in Unix milliseconds, and the rest after it, in milliseconds.
    stopped_at: u64,
    rest: u64,
}

/// Number of records looked at in one step.
const STEP: usize = 256;
/// Least and greatest rest between two passes, in milliseconds: a pass that finds nothing to do makes it longer.
const LEAST_REST: u64 = 5_000;
const MOST_REST: u64 = 20_000;
/// Rest when the disk fails or is full, in milliseconds.
const REST_AFTER_FAILURE: u64 = 10_000;

impl SettlingPass {
    /// Looks at some records or encodes some, if it is time; returns whether it did.
    pub(super) fn step(&mut self, store: &Store, session: &mut Session, slice: Slice<'_>, now: u64) -> bool {
        let has_room = self.attempts.let_pass(store, now);
        if !store.settings().settles() {
            self.end(now, 0);
            return false;
        }
        if now.abs_diff(self.stopped_at) < self.rest || !has_room {
            return false;
        }
        if self.attempts.is_empty() {
            self.look(store, now);
        } else if let Err(error) = self.attempts.try_some(session, slice) {
            // The disk is full, or fails, which its writer reports.
            debug!(%error, "records that stay are not encoded anew for now");
            (self.stopped_at, self.rest) = (now, REST_AFTER_FAILURE);
            return false;
        }
        if self.place.is_none() && self.attempts.is_empty() {
            store.recompression.passed();
            let rest = if self.attempts.has_worked() { LEAST_REST } else { 2 * self.rest };
            self.end(now, rest.clamp(LEAST_REST, MOST_REST));
        }
        true
    }

    /// Bytes that dictionaries take for it.
    pub(super) fn table_bytes(&self) -> usize {
        self.attempts.table_bytes()
    }

    fn look(&mut self, store: &Store, now: u64) {
        let place = self.place.unwrap_or_default();
        let mut found = Vec::new();
        let cursor = store
            .visit(place.database, place.cursor, STEP, now, |key, task| found.push((key.to_vec(), task)));
        self.attempts.add(place.database, found);
        self.place = place.next(cursor, store.databases());
    }

    fn end(&mut self, now: u64, rest: u64) {
        self.place = None;
        self.attempts.end();
        (self.stopped_at, self.rest) = (now, rest);
    }
}
