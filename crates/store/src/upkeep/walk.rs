//! The walk over all records, to encode anew those that would be encoded with another dictionary if they were written now.
//!
//! A pass can miss records: those that were renamed to where it has been, or that a session wrote which did not know of
//! the change yet. So there are as many passes as it takes, with rests between them.

use std::collections::HashSet;

use tracing::{debug, warn};

use crate::quicklist::node::NodeId;
use crate::session::{Anew, Session, StoreError};
use crate::store::Store;

#[derive(Default)]
pub(super) struct Walk {
    /// Which of the reasons to look at all records it was last begun for.
    review: u64,
    /// Where it is, if it is under way.
    place: Option<Place>,
    /// Keys of that place that are still to be looked at, the next cursor, and where in the list of the last key it goes on.
    left: Vec<Vec<u8>>,
    cursor: u64,
    part: Option<NodeId>,
    /// When it was last at an end, or had to stop, in Unix milliseconds; and how long it rests then, in milliseconds.
    stopped_at: u64,
    rest: u64,
    /// How long it rested after the last pass.
    last_rest: u64,
    /// Whether this pass has encoded anything anew, and whether it has missed a record that was changed all the time.
    has_worked: bool,
    has_missed: bool,
    /// Whether it has been told that there is no room, and the dictionaries that were told to be missing.
    has_told: bool,
    missing: HashSet<u32>,
}

/// Where a pass over all keys goes on.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) database: usize,
    pub(super) cursor: u64,
}

impl Place {
    /// The next place, if a scan of this database has given this cursor; `None` at the end of all.
    pub(super) fn next(self, cursor: u64, databases: usize) -> Option<Place> {
        match (cursor, self.database + 1) {
            (0, next) if next == databases => None,
            (0, next) => Some(Place { database: next, cursor: 0 }),
            (cursor, _) => Some(Place { cursor, ..self }),
        }
    }
}

/// How many records a step looks at.
const STEP: usize = 256;
/// How long it rests at least between two passes, and at most if they find nothing that they can do, in milliseconds.
const LEAST_REST: u64 = 2_000;
const MOST_REST: u64 = 15 * 60_000;
/// How long it rests when there is no room, in milliseconds.
const REST_WITHOUT_ROOM: u64 = 10_000;

impl Walk {
    /// Looks at some records, if there is a reason; says whether.
    pub(super) fn step(&mut self, store: &Store, session: &mut Session, now: u64) -> bool {
        let review = store.dictionaries.reviews();
        if self.review != review {
            *self = Walk {
                review,
                place: Some(Place::default()),
                missing: self.missing.clone(),
                ..Walk::default()
            };
        }
        let Some(place) = self.place else { return false };
        if now.abs_diff(self.stopped_at) < self.rest {
            return false;
        }
        self.rest = 0;
        match self.look_from(place, session) {
            Ok(()) if self.left.is_empty() => self.go_on(place, store.databases(), now),
            Ok(()) => true,
            Err(error) => {
                self.stop(&error, now);
                false
            }
        }
    }

    /// Has all records looked at once more, unless that has just been done.
    pub(super) fn once_more(&mut self, now: u64) {
        if self.place.is_none() && now.abs_diff(self.stopped_at) >= self.rest {
            self.place = Some(Place::default());
        }
    }

    /// Looks at the next keys, or at what is left of them. Some nodes of a long list are enough for a step.
    fn look_from(&mut self, place: Place, session: &mut Session) -> Result<(), StoreError> {
        if self.left.is_empty() {
            let left = &mut self.left;
            self.cursor = session.scan(place.database, place.cursor, STEP, |key| left.push(key.to_vec()))?;
        }
        while let Some(key) = self.left.pop() {
            let looked = self.look_at(place.database, &key, session);
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

    /// Says whether that is enough for a step.
    fn look_at(&mut self, database: usize, key: &[u8], session: &mut Session) -> Result<bool, StoreError> {
        match session.encode_anew(database, key, &mut self.part) {
            Ok(Anew::Encoded) => self.has_worked = true,
            Ok(Anew::EncodedNodes) => {
                self.has_worked = true;
                return Ok(true);
            }
            Ok(Anew::Missing(number)) => {
                if self.missing.insert(number) {
                    warn!(
                        dictionary = number,
                        "a dictionary is missing: values that need it stay as they are"
                    );
                }
            }
            Ok(Anew::Missed) => self.has_missed = true,
            Ok(Anew::Same) => {}
            // The value stays as it is; whoever reads it is told.
            Err(error @ (StoreError::Unreadable { .. } | StoreError::Damaged { .. })) => {
                debug!(%error, "a value cannot be encoded anew");
                self.part = None;
            }
            Err(error) => return Err(error),
        }
        Ok(false)
    }

    fn go_on(&mut self, place: Place, databases: usize, now: u64) -> bool {
        self.place = place.next(self.cursor, databases);
        if self.place.is_none() {
            let is_in_vain = !std::mem::take(&mut self.has_worked);
            self.last_rest = if is_in_vain { 2 * self.last_rest } else { 0 }.clamp(LEAST_REST, MOST_REST);
            (self.stopped_at, self.rest, self.has_told) = (now, self.last_rest, false);
            self.place = std::mem::take(&mut self.has_missed).then(Place::default);
        }
        true
    }

    /// Goes on later with the same records.
    fn stop(&mut self, error: &StoreError, now: u64) {
        if !matches!(error, StoreError::OutOfMemory { .. }) {
            // The disk fails, which its writer tells of.
            debug!(%error, "records are not encoded anew for now");
            return;
        }
        (self.stopped_at, self.rest) = (now, REST_WITHOUT_ROOM);
        if !std::mem::replace(&mut self.has_told, true) {
            warn!(%error, "records are not encoded anew as long as there is no room for them");
        }
    }
}
