//! The pass over all records that tries a stronger level on those that nobody has used for a while, once on each.
//!
//! Most of what a pass meets was tried before or is in use, and is not looked at any closer than its entry or its row.

use std::mem;

use tracing::debug;

use super::walk::Place;
use crate::session::{Packer, Packing, Session, StoreError};
use crate::store::{Settings, Store};
use crate::tiers::Cold;

#[derive(Default)]
pub(super) struct ColdPass {
    /// Where it goes on; at the start of all if it is not under way.
    place: Option<Place>,
    /// Cold keys of a database that were found and are still to be tried.
    found: Vec<Vec<u8>>,
    found_in: usize,
    /// Keys that are in memory only until they are on disk again.
    passing: Vec<(usize, Vec<u8>)>,
    packer: Packer,
    /// When the first pass was begun, in Unix milliseconds.
    since: Option<u64>,
    /// When it was last at an end or had to stop, in Unix milliseconds, and how long it rests then, in milliseconds.
    stopped_at: u64,
    rest: u64,
    /// How many records were looked at in this second of Unix time.
    second: u64,
    looked_at: usize,
}

/// How many records a step looks at.
const STEP: usize = 256;
/// So many values are tried in a step at most, or so many bytes of them.
const TRIED_AT_ONCE: usize = 16;
const TRIED_BYTES: usize = 32 << 10;
/// So many records are looked at in a second where they are read from disk.
const LOOKED_AT_A_SECOND: usize = 10_000;
/// So many keys may be in memory on their way to the disk.
const MOST_PASSING: usize = 256;
/// A pass follows another after half the time in which records become cold, but no sooner or later than this, in
/// milliseconds.
const LEAST_REST: u64 = 1_000;
const MOST_REST: u64 = 5 * 60_000;
/// How long it rests when the disk fails or is full, in milliseconds.
const REST_AFTER_FAILURE: u64 = 10_000;

impl ColdPass {
    /// Looks at some records or tries some, if it is time; says whether.
    pub(super) fn step(&mut self, store: &Store, session: &mut Session, now: u64) -> bool {
        self.passing.retain(|(database, key)| !store.let_go(*database, key, now));
        let settings = store.settings();
        if settings.packs_with().is_none() {
            self.end(store, now, 0);
            return false;
        }
        if now.abs_diff(self.stopped_at) < self.rest || self.passing.len() >= MOST_PASSING {
            return false;
        }
        let cold = self.cold(&settings, now);
        let done = match self.found.is_empty() {
            true => self.look(cold, store, session, now),
            false => self.try_some(cold, store, session).map(|()| true),
        };
        match done {
            Ok(false) => return false,
            Ok(true) if self.place.is_none() && self.found.is_empty() => {
                self.end(store, now, rest_after(cold))
            }
            Ok(true) => {}
            Err(error) => {
                // The disk fails, which its writer tells of, or is full.
                debug!(%error, "records are not packed for now");
                (self.stopped_at, self.rest) = (now, REST_AFTER_FAILURE);
                return false;
            }
        }
        true
    }

    /// What is cold now. What is only on disk is, once it could have been used for as long as that takes.
    fn cold(&mut self, settings: &Settings, now: u64) -> Cold {
        let since = *self.since.get_or_insert(now);
        let after = settings.packing.after;
        Cold { after, is_on_disk: now.abs_diff(since) >= u64::from(after) * 1000 }
    }

    /// Looks at some records; says whether it did.
    fn look(
        &mut self,
        cold: Cold,
        store: &Store,
        session: &mut Session,
        now: u64,
    ) -> Result<bool, StoreError> {
        if store.disk().is_some() && cold.is_on_disk {
            if mem::replace(&mut self.second, now / 1000) != now / 1000 {
                self.looked_at = 0;
            }
            if self.looked_at >= LOOKED_AT_A_SECOND {
                return Ok(false);
            }
            self.looked_at += STEP;
        }
        let place = self.place.unwrap_or_default();
        let found = &mut self.found;
        let cursor =
            session.scan_cold(cold, place.database, place.cursor, STEP, |key| found.push(key.to_vec()))?;
        self.found_in = place.database;
        self.place = place.next(cursor, store.databases());
        Ok(true)
    }

    /// Tries some of the keys that were found.
    fn try_some(&mut self, cold: Cold, store: &Store, session: &mut Session) -> Result<(), StoreError> {
        let mut bytes = 0;
        for _ in 0..TRIED_AT_ONCE {
            let Some(key) = self.found.pop() else { break };
            match session.pack(cold, self.found_in, &key, &mut self.packer) {
                Ok(Packing::Tried { len, was_on_disk }) => {
                    bytes += len;
                    if was_on_disk {
                        self.passing.push((self.found_in, key));
                    }
                }
                Ok(Packing::Left) => {}
                // The value stays as it is; whoever reads it is told.
                Err(error @ (StoreError::Unreadable { .. } | StoreError::Damaged { .. })) => {
                    debug!(%error, "a value cannot be packed");
                }
                Err(error) => return Err(error),
            }
            if bytes >= TRIED_BYTES {
                break;
            }
        }
        store.packing.set_table_bytes(self.packer.bytes());
        Ok(())
    }

    /// Ends the pass, and lets its tables go.
    fn end(&mut self, store: &Store, now: u64, rest: u64) {
        self.place = None;
        self.found = Vec::new();
        self.packer.clear();
        store.packing.set_table_bytes(0);
        (self.stopped_at, self.rest) = (now, rest);
    }
}

/// How long the next pass is waited for, in milliseconds.
fn rest_after(cold: Cold) -> u64 {
    (u64::from(cold.after) * 1000 / 2).clamp(LEAST_REST, MOST_REST)
}
