//! The pass over all records, in memory and on disk, that tries a stronger level on those that have been idle for a while,
//! once on each.
//!
//! Most records were tried before or are in use, and of these only the entry or the row is read.

use std::mem;

use tracing::debug;

use super::attempts::Attempts;
use super::reencoder::ScanPosition;
use super::slice::Slice;
use crate::error::StoreError;
use crate::recompression::{Cold, Task};
use crate::session::Session;
use crate::settings::Settings;
use crate::store::Store;

#[derive(Default)]
pub(super) struct ColdPass {
    /// Position of the pass; `None` if it is not under way.
    place: Option<ScanPosition>,
    attempts: Attempts,
    /// Start of the first pass, in Unix milliseconds.
    since: Option<u64>,
    /// Time of the last end or interruption, in Unix milliseconds, and the rest after it, in milliseconds.
    stopped_at: u64,
    rest: u64,
    /// Number of records looked at in this second of Unix time.
    second: u64,
    looked_at: usize,
}

/// Number of records looked at in one step.
const STEP: usize = 256;
/// Most records looked at in a second where they are read from disk.
const LOOKED_AT_A_SECOND: usize = 10_000;
/// Least and greatest rest between two passes, in milliseconds; between them it is half the time in which
/// records become cold.
const LEAST_REST: u64 = 1_000;
const MOST_REST: u64 = 5 * 60_000;
/// Rest when the disk fails or is full, in milliseconds.
const REST_AFTER_FAILURE: u64 = 10_000;

impl ColdPass {
    /// Looks at some records or tries some, if it is time; returns whether it did.
    pub(super) fn step(&mut self, store: &Store, session: &mut Session, slice: Slice<'_>, now: u64) -> bool {
        let has_room = self.attempts.let_pass(store, now);
        let settings = store.settings();
        if settings.recompresses_with().is_none() {
            self.end(now, 0);
            return false;
        }
        if now.abs_diff(self.stopped_at) < self.rest || !has_room {
            return false;
        }
        let cold = self.cold(&settings, now);
        let done = match self.attempts.is_empty() {
            true => self.look(cold, store, session, now),
            false => self.attempts.try_some(session, slice).map(|()| true),
        };
        match done {
            Ok(false) => return false,
            Ok(true) if self.place.is_none() && self.attempts.is_empty() => {
                store.recompression.passed();
                self.end(now, rest_after(cold));
            }
            Ok(true) => {}
            Err(error) => {
                // The disk is full, or fails, which its writer reports.
                debug!(%error, "records are not recompressed for now");
                (self.stopped_at, self.rest) = (now, REST_AFTER_FAILURE);
                return false;
            }
        }
        true
    }

    /// Returns the conditions for cold records. One that is only on disk is cold once it could have been idle
    /// for long enough.
    fn cold(&mut self, settings: &Settings, now: u64) -> Cold {
        let since = *self.since.get_or_insert(now);
        let after = settings.recompression.after;
        let is_on_disk = now.abs_diff(since) >= u64::from(after) * 1000;
        Cold { after, is_on_disk, of_all_codecs: settings.settles() }
    }

    /// Looks at some records; returns whether it did.
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
        let mut found = Vec::new();
        let cursor = session.scan_cold(cold, place.database, place.cursor, STEP, |key| {
            found.push((key.to_vec(), Task::Cool(cold)));
        })?;
        self.attempts.add(place.database, found);
        self.place = place.next(cursor, store.databases());
        Ok(true)
    }

    /// Bytes that dictionaries take for it.
    pub(super) fn table_bytes(&self) -> usize {
        self.attempts.table_bytes()
    }

    /// Ends the pass, and frees its tables.
    fn end(&mut self, now: u64, rest: u64) {
        self.place = None;
        self.attempts.end();
        (self.stopped_at, self.rest) = (now, rest);
    }
}

/// Returns the rest before the next pass, in milliseconds.
fn rest_after(cold: Cold) -> u64 {
    (u64::from(cold.after) * 1000 / 2).clamp(LEAST_REST, MOST_REST)
}
