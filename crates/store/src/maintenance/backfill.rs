//! Backfill of samples on a requested training: a bounded number of the values already in the store are
//! offered to sampling, before the classes are trained.

use tracing::debug;

use crate::dictionaries::Request;
use crate::dictionaries::lists::LISTS;
use crate::session::{Session, Shown};
use crate::store::Store;

/// Number of keys looked at in each database.
const KEYS: usize = 50_000;
/// Number of keys looked at in one step.
const STEP: usize = 256;

/// The requested training, while its backfill is not complete.
#[derive(Default)]
pub(super) struct Backfill {
    showing: Option<Showing>,
}

/// Progress of a backfill.
struct Showing {
    request: Request,
    database: usize,
    cursor: u64,
    /// Number of keys of this database looked at.
    looked_at: usize,
}

impl Backfill {
    /// Offers some more values to sampling, if a training was requested; returns whether it did. At the end,
    /// the classes are trained with the samples that there are.
    pub(super) fn step(&mut self, store: &Store, session: &mut Session) -> bool {
        if let Some(request) = store.dictionaries.take_request() {
            self.showing = Some(Showing { request, database: 0, cursor: 0, looked_at: 0 });
        }
        let Some(showing) = &mut self.showing else { return false };
        if !showing.show_some(store, session) {
            store.dictionaries.train_sampled(&showing.request);
            self.showing = None;
        }
        true
    }
}

impl Showing {
    /// Returns the parts to offer, by the pattern of the training: values, list nodes, or both.
    fn shown(&self) -> Shown {
        let about = self.request.as_ref().map(|pattern| pattern.text() == LISTS);
        Shown { values: about != Some(true), nodes: about != Some(false) }
    }

    /// Offers some values; returns whether there may be more.
    fn show_some(&mut self, store: &Store, session: &mut Session) -> bool {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let is_named = |key: &[u8]| self.request.as_ref().is_none_or(|pattern| pattern.matches(key));
        let is_about_lists = !self.shown().values;
        let wanted = |key: &[u8]| is_about_lists || is_named(key);
        let mut looked_at = 0;
        let scanned = session.scan(self.database, self.cursor, STEP, |key| {
            looked_at += 1;
            if wanted(key) {
                keys.push(key.to_vec());
            }
        });
        self.looked_at += looked_at;
        let shown = scanned.and_then(|cursor| {
            keys.iter()
                .try_for_each(|key| session.show_existing(self.database, key, self.shown()))
                .map(|()| cursor)
        });
        match shown {
            Ok(cursor) if cursor != 0 && self.looked_at < KEYS => self.cursor = cursor,
            Ok(_) => (self.database, self.cursor, self.looked_at) = (self.database + 1, 0, 0),
            // The values offered so far must suffice.
            Err(error) => {
                debug!(%error, "no more values are looked at for a training");
                return false;
            }
        }
        self.database < store.databases()
    }
}
