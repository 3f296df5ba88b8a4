//! The pass over all records that re-encodes those for which new values would get another dictionary.
//!
//! A pass can miss records: those renamed to a position that it has passed, or written by a session that did
//! not know of the change yet. Passes are therefore repeated, with rests between them, until one finds
//! nothing.

use std::collections::HashSet;

use tracing::{debug, warn};

use super::slice::Slice;
use crate::error::StoreError;
use crate::session::{Recompressor, ReencodeOutcome, Session};
use crate::store::Store;
use crate::values::quicklist::node::NodeId;

#[derive(Default)]
pub(super) struct Reencoder {
    /// Number of the review for which a pass was last begun.
    review: u64,
    /// Position of the pass, if it is under way.
    place: Option<ScanPosition>,
    /// Keys at that position still to be looked at, the next cursor, and the node of the last key's list to
    /// continue with.
    left: Vec<Vec<u8>>,
    cursor: u64,
    part: Option<NodeId>,
    /// Time of the last end or interruption, in Unix milliseconds, and the rest after it, in milliseconds.
    stopped_at: u64,
    rest: u64,
    /// Rest after the last pass, in milliseconds.
    last_rest: u64,
    /// Whether this pass has re-encoded anything, and whether it has missed a record that kept changing.
    has_worked: bool,
    has_missed: bool,
    /// Whether lack of memory was logged, and the missing dictionaries that were.
    has_told: bool,
    missing: HashSet<u32>,
    recompressor: Recompressor,
}

/// Position of a pass over all keys.
#[derive(Clone, Copy, Default)]
pub(super) struct ScanPosition {
    pub(super) database: usize,
    pub(super) cursor: u64,
}

impl ScanPosition {
    /// Returns the next position after a scan of this database has returned this cursor; `None` at the end.
    pub(super) fn next(self, cursor: u64, databases: usize) -> Option<ScanPosition> {
        match (cursor, self.database + 1) {
            (0, next) if next == databases => None,
            (0, next) => Some(ScanPosition { database: next, cursor: 0 }),
            (cursor, _) => Some(ScanPosition { cursor, ..self }),
        }
    }
}

/// Number of records looked at in one step.
const STEP: usize = 256;
/// Least rest between two passes, and greatest if they find nothing that they can do, in milliseconds.
const LEAST_REST: u64 = 2_000;
const MOST_REST: u64 = 15 * 60_000;
/// Rest when there is no memory, in milliseconds.
const REST_WITHOUT_ROOM: u64 = 10_000;

impl Reencoder {
    /// Looks at some records, if there is a reason; returns whether it did.
    pub(super) fn step(&mut self, store: &Store, session: &mut Session, slice: Slice<'_>, now: u64) -> bool {
        let review = store.dictionaries.reviews();
        if self.review != review {
            *self = Reencoder {
                review,
                place: Some(ScanPosition::default()),
                missing: self.missing.clone(),
                ..Reencoder::default()
            };
        }
        let Some(place) = self.place else { return false };
        if now.abs_diff(self.stopped_at) < self.rest {
            return false;
        }
        self.rest = 0;
        match self.look_from(place, session, slice) {
            Ok(()) if self.left.is_empty() => self.go_on(place, store.databases(), now),
            Ok(()) => true,
            Err(error) => {
                self.stop(&error, now);
                false
            }
        }
    }

    /// Bytes that dictionaries take for it.
    pub(super) fn table_bytes(&self) -> usize {
        self.recompressor.bytes()
    }

    /// Requests another pass over all records, unless that has just been done.
    pub(super) fn once_more(&mut self, now: u64) {
        if self.place.is_none() && now.abs_diff(self.stopped_at) >= self.rest {
            self.place = Some(ScanPosition::default());
        }
    }

    /// Looks at the next keys, or at the remaining ones. Some nodes of a long list are enough for a step.
    fn look_from(
        &mut self,
        place: ScanPosition,
        session: &mut Session,
        slice: Slice<'_>,
    ) -> Result<(), StoreError> {
        if self.left.is_empty() {
            let left = &mut self.left;
            self.cursor = session.scan(place.database, place.cursor, STEP, |key| left.push(key.to_vec()))?;
        }
        while let Some(key) = self.left.pop() {
            let looked = self.look_at(place.database, &key, session, slice);
            let is_done = looked.is_ok() && self.part.is_none();
            if !is_done {
                self.left.push(key);
            }
            if looked? || !is_done {
                break;
            }
        }
        Ok(())
    }

    /// Re-encodes a key; returns whether that is enough for a step.
    fn look_at(
        &mut self,
        database: usize,
        key: &[u8],
        session: &mut Session,
        slice: Slice<'_>,
    ) -> Result<bool, StoreError> {
        match session.reencode(database, key, &mut self.part, &mut self.recompressor) {
            Ok(ReencodeOutcome::Encoded) => {
                self.has_worked = true;
                return Ok(slice.is_over());
            }
            Ok(ReencodeOutcome::EncodedNodes) => {
                self.has_worked = true;
                return Ok(true);
            }
            Ok(ReencodeOutcome::Missing(number)) => {
                if self.missing.insert(number) {
                    warn!(
                        dictionary = number,
                        "a dictionary is missing: values that need it stay as they are"
                    );
                }
            }
            Ok(ReencodeOutcome::Missed) => self.has_missed = true,
            Ok(ReencodeOutcome::Same) => {}
            // The value stays as it is; its readers get the error.
            Err(error) if error.is_of_a_value() => {
                debug!(%error, "a value cannot be re-encoded");
                self.part = None;
            }
            Err(error) => return Err(error),
        }
        Ok(false)
    }

    fn go_on(&mut self, place: ScanPosition, databases: usize, now: u64) -> bool {
        self.place = place.next(self.cursor, databases);
        if self.place.is_none() {
            self.recompressor.clear();
            let has_worked = std::mem::take(&mut self.has_worked);
            self.last_rest = if has_worked { 0 } else { 2 * self.last_rest }.clamp(LEAST_REST, MOST_REST);
            (self.stopped_at, self.rest, self.has_told) = (now, self.last_rest, false);
            let is_repeated = std::mem::take(&mut self.has_missed) || has_worked;
            self.place = is_repeated.then(ScanPosition::default);
        }
        true
    }

    /// Stops the pass, to continue later with the same records.
    fn stop(&mut self, error: &StoreError, now: u64) {
        if !matches!(error, StoreError::OutOfMemory { .. }) {
            // The disk fails, which its writer reports.
            debug!(%error, "records are not re-encoded for now");
            return;
        }
        (self.stopped_at, self.rest) = (now, REST_WITHOUT_ROOM);
        if !std::mem::replace(&mut self.has_told, true) {
            warn!(%error, "records are not re-encoded as long as there is no room for them");
        }
    }
}
