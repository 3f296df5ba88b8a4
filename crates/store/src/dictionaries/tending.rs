//! What is done for dictionaries in the background: training, dropping what no record needs any more, and encoding
//! records anew with the dictionary that is for them now.
//!
//! It is done in steps that whoever embeds the store asks for, at the time and the pace that suit it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use snugly_learning::{Band, Footprint, Method, Pattern, Terms, study, with_dictionary};
use tracing::{debug, info, warn};

use super::known::{Live, Version};
use crate::disk::Disk;
use crate::memory::{entry, entry_allocation_size};
use crate::session::{Session, StoreError};
use crate::store::{Settings, Store};

/// Tends the dictionaries of a store, which samples values while this lives. One a store is enough.
pub struct DictionaryTender {
    store: Arc<Store>,
    session: Session,
    /// Which dictionaries the last walk over the records was for, or is.
    edition: u64,
    /// Where the walk is.
    walk: Option<Walk>,
    /// When it was last looked what is no longer used, in Unix milliseconds.
    looked_at: u64,
    /// Since when versions have had no record, in Unix milliseconds.
    unused_since: HashMap<u32, u64>,
}

#[derive(Clone, Copy, Default)]
struct Walk {
    database: usize,
    cursor: u64,
}

/// What a record takes in memory.
const FOOTPRINT: Footprint =
    Footprint { overhead: |key_len| entry::overhead(key_len, false), allocation: entry_allocation_size };
/// How often it is looked what is no longer used, in milliseconds.
const LOOK_EVERY: u64 = 1_000;
/// A version goes when no record has needed it for so long, in milliseconds.
const UNUSED_FOR: u64 = 5_000;
/// How many records a step of the walk looks at.
const WALK_STEP: usize = 256;
/// So many keys tell how many values of a class there are.
const POPULATION_SAMPLE: u64 = 10_000;
/// Who holds a version that nobody uses: the list of known ones, once.
const ONLY_KNOWN: usize = 1;

impl DictionaryTender {
    /// Starts sampling.
    pub(crate) fn new(store: &Arc<Store>) -> DictionaryTender {
        store.dictionaries.is_tended.store(true, Ordering::Relaxed);
        DictionaryTender {
            store: store.clone(),
            session: store.uncounted_session(),
            edition: store.dictionaries.edition(),
            walk: None,
            looked_at: 0,
            unused_since: HashMap::new(),
        }
    }

    /// Does the next thing that is to be done at this time (Unix milliseconds), which takes some milliseconds, or for a
    /// training up to about a second; says whether there was anything. If not, the next one is due in about a second.
    pub fn step(&mut self, now: u64) -> bool {
        self.session.set_now(Some(now));
        self.session.follow();
        let settings = self.store.settings();
        let has_trained = settings.dictionaries.enabled && self.train(settings, now);
        if !has_trained && now.abs_diff(self.looked_at) >= LOOK_EVERY {
            self.looked_at = now;
            self.watch_for_drift();
            self.drop_unused(now);
        }
        has_trained || self.walk_on()
    }

    /// Trains a class that has enough samples.
    fn train(&mut self, settings: Settings, now: u64) -> bool {
        let dictionaries = &self.store.dictionaries;
        let Some(ready) = dictionaries.classes.lock().ready() else { return false };
        let known = dictionaries.known();
        let current = known.active_of(&ready.pattern, ready.band);
        let pattern = Pattern::parse(&ready.pattern);
        let choice = settings.compression;
        let choice = if current.is_some() { with_dictionary(choice) } else { choice };
        let terms = Terms {
            current: Method { choice, dictionary: current.map(|version| version.dictionary().clone()) },
            dictionary: None,
            goal: None,
            trains: true,
            population: self.population(|key, len| Band::of(len) == Some(ready.band) && pattern.matches(key)),
            reads: 1.0,
            room: settings.dictionaries.dictionaries_limit().saturating_sub(known.memory()),
            footprint: FOOTPRINT,
        };
        let study = study(&ready.samples, &terms, &|| Duration::ZERO);
        dictionaries.trainings.fetch_add(1, Ordering::Relaxed);
        let found = study.new_dictionary.as_ref();
        dictionaries.classes.lock().studied(&ready, found.is_some(), now);
        let Some(dictionary) = found else { return true };
        let (bytes, before, after) = (dictionary.bytes().len(), study.before().ratio(), study.best().ratio());
        let version = Version {
            number: 0,
            dictionary: dictionary.clone(),
            pattern,
            band: ready.band,
            memory: study.best().memory,
            samples: ready.samples.len(),
            ratio_before: before,
            ratio_after: after,
            trained_at: now,
            live: Live::new(after),
        };
        if dictionaries.adopt(version, known.flushes(), &self.store.changes) {
            let pattern = ready.pattern.escape_ascii();
            info!(%pattern, bytes, before, after, "a dictionary is used from now on");
        }
        true
    }

    /// About how many of the store's keys are wanted, by key and length of the value.
    fn population(&self, wanted: impl Fn(&[u8], usize) -> bool) -> u64 {
        let (found, looked_at) = self.store.keyspace.count_some(POPULATION_SAMPLE, wanted);
        // A disk that cannot be read is reported where it is read for data.
        let keys = |database| self.store.database_stats(database).unwrap_or_default().keys as u64;
        let all: u64 = (0..self.store.databases()).map(keys).sum();
        (u128::from(all) * u128::from(found) / u128::from(looked_at.max(1))) as u64
    }

    /// Has classes sampled anew whose values have become different.
    fn watch_for_drift(&self) {
        let dictionaries = &self.store.dictionaries;
        for version in dictionaries.known().active() {
            if version.live.has_drifted() {
                dictionaries.classes.lock().resample(version.pattern.text(), version.band);
            }
        }
    }

    /// Drops versions that new values are not encoded with and that no record has needed for a while.
    fn drop_unused(&mut self, now: u64) {
        let dictionaries = &self.store.dictionaries;
        let known = dictionaries.known();
        // Before the records are counted: whoever may still write a record of a version holds it.
        let is_free = |version: &&Arc<Version>| {
            !known.is_active(version.number) && Arc::strong_count(version) == ONLY_KNOWN
        };
        let free: Vec<u32> = known.versions().iter().filter(is_free).map(|version| version.number).collect();
        if free.is_empty() {
            return self.unused_since.clear();
        }
        let in_memory = self.store.keyspace.dictionary_uses();
        let Ok(on_disk) = self.store.disk().map(Disk::dictionary_uses).transpose() else {
            return self.unused_since.clear();
        };
        let on_disk = on_disk.unwrap_or_default();
        self.unused_since.retain(|number, _| free.contains(number));
        for number in free {
            if in_memory.contains_key(&number) || on_disk.contains_key(&number) {
                self.unused_since.remove(&number);
            } else {
                self.unused_since.entry(number).or_insert(now);
            }
        }
        let gone: Vec<u32> = self
            .unused_since
            .iter()
            .filter(|(_, since)| now.saturating_sub(**since) >= UNUSED_FOR)
            .map(|(number, _)| *number)
            .collect();
        drop(known);
        if !gone.is_empty() {
            self.unused_since.retain(|number, _| !gone.contains(number));
            let is_new = self.edition == dictionaries.edition();
            dictionaries.drop_versions(&gone, &self.store.changes);
            // What is gone is no record's: that is no reason for another walk.
            if is_new {
                self.edition = dictionaries.edition();
            }
        }
    }

    /// Encodes some records anew, if the dictionaries have changed since all of them were looked at.
    fn walk_on(&mut self) -> bool {
        let edition = self.store.dictionaries.edition();
        if self.edition != edition {
            self.edition = edition;
            self.walk = Some(Walk::default());
        }
        let Some(walk) = self.walk else { return false };
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let scanned = self.session.scan(walk.database, walk.cursor, WALK_STEP, |key| keys.push(key.to_vec()));
        let result = scanned.and_then(|cursor| {
            keys.iter().try_for_each(|key| self.encode_anew(walk.database, key)).map(|()| cursor)
        });
        let cursor = match result {
            Ok(cursor) => cursor,
            Err(error) => {
                // The disk fails, which its writer tells of. The same keys are tried again at the next step.
                debug!(%error, "records are not encoded anew for now");
                return false;
            }
        };
        self.walk = match (cursor, walk.database + 1) {
            (0, next) if next == self.store.databases() => None,
            (0, next) => Some(Walk { database: next, cursor: 0 }),
            (cursor, _) => Some(Walk { cursor, ..walk }),
        };
        true
    }
}

impl DictionaryTender {
    fn encode_anew(&mut self, database: usize, key: &[u8]) -> Result<(), StoreError> {
        match self.session.encode_anew(database, key) {
            // The value stays as it is, and is told of again when somebody reads it.
            Err(error @ (StoreError::Unreadable { .. } | StoreError::Damaged { .. })) => {
                warn!(%error, "a value cannot be encoded anew");
                Ok(())
            }
            result => result,
        }
    }
}

impl Drop for DictionaryTender {
    fn drop(&mut self) {
        self.store.dictionaries.is_tended.store(false, Ordering::Relaxed);
    }
}
