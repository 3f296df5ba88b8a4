//! Dictionaries, trained from the values that are written, for values that are alike.
//!
//! It knows which dictionaries a store has, and which new values are encoded with. It must not know how one
//! is trained or whether it is worth having, which is the business of `snugly_learning`, nor which records
//! need one.
//!
//! - [`set`]: the dictionaries of a store, by number for readers and by key for writers
//! - [`training`]: background work on classes, a step at a time
//! - [`lists`]: the class of list nodes
//! - [`exclusion`]: keys that are neither sampled nor encoded with dictionaries; [`inventory`]: statistics of
//!   classes
//!
//! This file has what the store's sessions share: an immutable [`DictionarySet`], of which they fetch the
//! next one when it is published, so neither reading nor writing takes a lock here. Records name their
//! dictionary by number, and a number is never reused. A version that is not used for new values any more
//! stays as long as any record needs it; the owners of the records find out which versions these are, and
//! re-encode them.

mod exclusion;
mod inventory;
pub(crate) mod lists;
pub(crate) mod set;
pub(crate) mod training;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, MutexGuard, RwLock};
use snugly_codec::{Dictionary, LoadError};
use snugly_learning::{Band, Class, Classes, Decisions, Goal, Pattern};
use thiserror::Error;

use crate::changes::Changes;
use crate::disk::{Disk, DiskError, StoredDictionaries};
use crate::settings::{DictionarySettings, Settings};
pub use exclusion::KeyPredicate;
pub use inventory::ClassStats;
use lists::LISTS;
use set::{DictionarySet, Version, drift};
pub(crate) use training::Request;

/// A dictionary of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct DictionaryStats {
    /// Number of the dictionary in the store, never reused.
    pub number: u32,
    /// ID that proves its content.
    pub id: u32,
    /// Pattern of the keys that it is for, as a glob of KEYS.
    pub pattern: Vec<u8>,
    /// Length of the shortest value that it is for, in bytes; the longest is shorter than `max_len`.
    pub min_len: usize,
    /// Upper bound of the length, exclusive; see `min_len`.
    pub max_len: usize,
    /// Bytes of its content.
    pub bytes: usize,
    /// Bytes that it takes in memory.
    pub memory: usize,
    /// Number of values that it was trained from and measured with; 0 if it was imported.
    pub samples: usize,
    /// Encoded bytes for each byte of a value that it was not trained on, without the dictionary; `None` if
    /// it was imported.
    pub ratio_before: Option<f64>,
    /// Encoded bytes for each byte of the same values, with the dictionary.
    pub ratio_after: Option<f64>,
    /// Encoded bytes for each byte of recently written values, if there were enough.
    pub ratio_now: Option<f64>,
    /// Number of records that need it: those on disk, or in memory where there is no disk tier.
    pub records: u64,
    /// Time of the training, in Unix milliseconds.
    pub trained_at: u64,
    /// Whether new values are encoded with it.
    pub active: bool,
}

/// Statistics of sampling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleStats {
    /// Number of classes of values that are told apart.
    pub classes: usize,
    /// Number of samples.
    pub samples: usize,
    /// Bytes of the samples.
    pub bytes: usize,
    /// Trainings since the start.
    pub trainings: u64,
    /// Trainings since the start whose dictionary was worth adopting.
    pub adopted: u64,
}

/// Reason why a dictionary cannot be forgotten or imported.
#[derive(Debug, Error)]
pub enum DictionaryError {
    /// No dictionary has this number.
    #[error("there is no dictionary {number}")]
    Unknown {
        /// The number.
        number: u32,
    },
    /// The bytes are not a usable dictionary.
    #[error(transparent)]
    Unusable(#[from] LoadError),
    /// No values of this length are encoded with dictionaries.
    #[error("no dictionary is used for values of {len} bytes: choose a length from 32 to 32767")]
    NoSuchLength {
        /// The length.
        len: usize,
    },
    /// Keys cannot be told apart by this pattern.
    #[error(
        "the pattern cannot be used: write 1 to {MAX_PATTERN_LEN} bytes, in which `*` is the end of a segment of the key (in front of `:`, `/`, `|` or `#`, or at the end) and `?`, `[` and `\\` do not occur"
    )]
    UnusablePattern,
    /// The dictionary takes more memory than is left of [`DictionarySettings::max_memory`].
    #[error(
        "the dictionary takes {needed} bytes in memory, and {left} are left for dictionaries: raise dictionary-memory, or forget another"
    )]
    NoRoom {
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
}

/// A store's dictionaries, and the samples that they are trained from.
pub(crate) struct Dictionaries {
    set: RwLock<Arc<DictionarySet>>,
    sampled: Mutex<Sampled>,
    /// State that every operation reads, on a cache line that no other write invalidates.
    watched: CachePadded<Watched>,
    /// Counter of the reasons to look at all existing records again.
    reviews: AtomicU64,
    /// Predicate for keys that are never sampled nor encoded with a dictionary.
    excluded: RwLock<Option<KeyPredicate>>,
    /// Training that was requested.
    request: Mutex<Option<Request>>,
    trainings: AtomicU64,
    adopted: AtomicU64,
}

struct Watched {
    /// Counter of the changes of the published set.
    edition: AtomicU64,
    /// Whether maintenance runs; without it nothing is sampled.
    is_maintained: AtomicBool,
    /// Number of times that all data was deleted.
    flushes: AtomicU64,
}

struct Sampled {
    classes: Classes,
    /// Value of [`Watched::flushes`] when the samples were taken.
    flushes: u64,
    /// Goal that decisions are made for.
    goal: Option<Goal>,
}

/// Longest accepted pattern, in bytes.
const MAX_PATTERN_LEN: usize = 256;
/// Writes between two looks at sampling while nothing is sampled.
const ASK_AGAIN: u32 = 1024;

impl Dictionaries {
    pub(crate) fn new(settings: &Settings) -> Dictionaries {
        let limit = settings.dictionaries.samples_limit();
        let mut classes = Classes::new(limit, settings.goal.is_some(), fastrand::u64(..));
        classes.follow(limit, settings.goal.is_some(), settings.dictionaries.learns());
        Dictionaries {
            set: RwLock::default(),
            sampled: Mutex::new(Sampled { classes, flushes: 0, goal: settings.goal }),
            watched: CachePadded::new(Watched {
                edition: AtomicU64::new(0),
                is_maintained: AtomicBool::new(false),
                flushes: AtomicU64::new(0),
            }),
            reviews: AtomicU64::new(0),
            excluded: RwLock::default(),
            request: Mutex::default(),
            trainings: AtomicU64::new(0),
            adopted: AtomicU64::new(0),
        }
    }

    /// Applies changed settings. Another goal resets all decisions.
    pub(crate) fn follow(&self, settings: &Settings) {
        let mut sampled = self.sampled();
        let trains = settings.dictionaries.learns();
        sampled.classes.follow(settings.dictionaries.samples_limit(), settings.goal.is_some(), trains);
        if !settings.learns() {
            sampled.classes.clear();
        }
        sampled.classes.retain(|class| settings.learns_for(&class.pattern));
        if sampled.goal != settings.goal {
            sampled.goal = settings.goal;
            sampled.classes.look_at_all();
            drop(sampled);
            let mut known = self.set.write();
            let undecided = known.with_decisions(Decisions::default());
            self.publish(&mut known, undecided);
        }
    }

    /// Returns whether maintenance runs.
    pub(crate) fn is_maintained(&self) -> bool {
        self.watched.is_maintained.load(Ordering::Relaxed)
    }

    pub(crate) fn set_maintained(&self, is_maintained: bool) {
        self.watched.is_maintained.store(is_maintained, Ordering::Relaxed);
    }

    /// Returns the number of the latest edition of [`Dictionaries::known`].
    pub(crate) fn edition(&self) -> u64 {
        self.watched.edition.load(Ordering::Acquire)
    }

    pub(crate) fn set(&self) -> Arc<DictionarySet> {
        self.set.read().clone()
    }

    /// Returns the number of times that there was reason to look at all records again.
    pub(crate) fn reviews(&self) -> u64 {
        self.reviews.load(Ordering::Acquire)
    }

    /// Locks the samples, and first clears those of data that was deleted with everything.
    fn sampled(&self) -> MutexGuard<'_, Sampled> {
        let mut sampled = self.sampled.lock();
        self.clear_deleted(&mut sampled);
        sampled
    }

    fn clear_deleted(&self, sampled: &mut Sampled) {
        let flushes = self.watched.flushes.load(Ordering::Acquire);
        if sampled.flushes != flushes {
            sampled.classes.clear();
            sampled.flushes = flushes;
        }
    }

    /// Clears the samples if their data is gone. If they are in use, their next user clears them.
    pub(crate) fn tidy(&self) {
        if let Some(mut sampled) = self.sampled.try_lock() {
            self.clear_deleted(&mut sampled);
        }
    }

    /// Publishes a new set in the place of the old one.
    fn publish(&self, place: &mut Arc<DictionarySet>, known: DictionarySet) {
        *place = Arc::new(known);
        self.watched.edition.fetch_add(1, Ordering::Release);
    }

    fn review(&self) {
        self.reviews.fetch_add(1, Ordering::Release);
    }

    /// Offers a written value, which stands for `stands_for` values, to sampling; returns the number of
    /// following values that need not be offered. Never waits.
    pub(crate) fn offer(&self, key: &[u8], value: &[u8], stands_for: u64) -> u32 {
        self.show(key, |classes| classes.offer(key, value, stands_for))
    }

    fn show(&self, key: &[u8], offer: impl FnOnce(&mut Classes) -> u32) -> u32 {
        if !self.watched.is_maintained.load(Ordering::Relaxed) {
            return ASK_AGAIN;
        }
        let Some(mut sampled) = self.sampled.try_lock() else { return 0 };
        self.clear_deleted(&mut sampled);
        if self.is_excluded(key) { 0 } else { offer(&mut sampled.classes) }
    }

    /// Loads the dictionaries of a store on disk.
    ///
    /// # Errors
    /// [`DiskError`] if they cannot be read. An unusable one is left out and logged.
    pub(crate) fn load(&self, disk: &Disk, settings: &Settings) -> Result<(), DiskError> {
        let StoredDictionaries { rows, active, next } = disk.dictionaries()?;
        let mut versions = Vec::new();
        for row in rows {
            let number = row.number;
            match Version::of_row(row, settings) {
                Ok(version) => versions.push(Arc::new(version)),
                Err(error) => disk.dictionary_is_unusable(&number.to_string(), &error.to_string()),
            }
        }
        let mut sampled = self.sampled();
        // An imported dictionary is still to be compared with what can be trained here.
        let is_settled = |version: &&Arc<Version>| active.contains(&version.number) && !version.is_imported();
        for version in versions.iter().filter(is_settled) {
            sampled.classes.settle(version.pattern.text(), version.band);
        }
        drop(sampled);
        if !versions.is_empty() {
            // A backfill of the records may have been cut off.
            self.review();
        }
        self.publish(&mut self.set.write(), DictionarySet::kept(versions, &active, next));
        Ok(())
    }

    /// Stops using dictionaries for new values after all data was deleted; `tell` reports that at the same
    /// instant. The samples go with [`Dictionaries::tidy`].
    pub(crate) fn flushed(&self, tell: impl FnOnce()) {
        let mut known = self.set.write();
        tell();
        let flushed = known.flushed();
        self.watched.flushes.store(flushed.flushes(), Ordering::Release);
        self.publish(&mut known, flushed);
    }

    /// Stops encoding new and re-encoded values with this version.
    ///
    /// # Errors
    /// [`DictionaryError::Unknown`].
    pub(crate) fn forget(&self, number: u32, changes: &Changes) -> Result<(), DictionaryError> {
        let mut known = self.set.write();
        let version = known.version(number).cloned().ok_or(DictionaryError::Unknown { number })?;
        let was_active = known.is_active(number);
        if was_active {
            let inactive = known.with_inactive(number);
            changes.active_dictionaries(inactive.active().iter().map(|version| version.number));
            self.publish(&mut known, inactive);
        }
        drop(known);
        if was_active {
            self.sampled().classes.bereave(version.pattern.text(), version.band);
        }
        self.review();
        Ok(())
    }

    /// Imports a dictionary for keys of this pattern and values of about this length.
    ///
    /// # Errors
    /// [`DictionaryError`] other than [`DictionaryError::Unknown`].
    pub(crate) fn import(
        &self,
        imported: &Imported<'_>,
        settings: &Settings,
        now: u64,
        changes: &Changes,
    ) -> Result<u32, DictionaryError> {
        let Imported { content, pattern, len } = *imported;
        let band = lists::band_of(pattern, len).ok_or(DictionaryError::NoSuchLength { len })?;
        if !is_usable(pattern) {
            return Err(DictionaryError::UnusablePattern);
        }
        let dictionary = Arc::new(Dictionary::load(content)?);
        dictionary.memory_for(lists::choice(pattern, settings));
        let version = Version {
            number: 0,
            dictionary,
            pattern: Pattern::parse(pattern),
            band,
            samples: 0,
            ratio_before: None,
            ratio_after: None,
            trained_at: now,
            live: drift(None),
        };
        let number = self.use_version(&mut self.set.write(), version, settings.dictionaries, changes)?;
        // Sampling again lets what can be trained here be compared with it.
        self.sampled().classes.resample(pattern, band);
        Ok(number)
    }

    /// Activates a new version in the place of the active one of its class; returns its number.
    ///
    /// # Errors
    /// [`DictionaryError::NoRoom`].
    fn use_version(
        &self,
        known: &mut Arc<DictionarySet>,
        version: Version,
        settings: DictionarySettings,
        changes: &Changes,
    ) -> Result<u32, DictionaryError> {
        let needed = version.memory();
        let left = known.room(settings.dictionaries_limit(), version.pattern.text(), version.band);
        if needed > left {
            return Err(DictionaryError::NoRoom { needed, left });
        }
        let version = Arc::new(Version { number: known.next(), ..version });
        let number = version.number;
        // Queued for the disk before any record can need it.
        changes.dictionary(number, Some(&version.row()));
        let with = known.with(version);
        changes.active_dictionaries(with.active().iter().map(|version| version.number));
        self.publish(known, with);
        self.review();
        Ok(number)
    }

    /// Forgets versions that no record needs.
    pub(crate) fn drop_versions(&self, numbers: &[u32], changes: &Changes) {
        let mut known = self.set.write();
        numbers.iter().for_each(|number| changes.dictionary(*number, None));
        let without = known.without(numbers);
        self.publish(&mut known, without);
    }

    pub(crate) fn sample_stats(&self) -> SampleStats {
        let sampled = self.sampled();
        let classes = &sampled.classes;
        SampleStats {
            classes: classes.classes().len(),
            samples: classes.classes().iter().map(Class::samples).sum(),
            bytes: classes.bytes(),
            trainings: self.trainings.load(Ordering::Relaxed),
            adopted: self.adopted.load(Ordering::Relaxed),
        }
    }

    /// Returns whether values of this length belong to any class.
    pub(crate) fn wants(len: usize) -> bool {
        Band::of(len).is_some()
    }
}

/// A dictionary to import, and the values that it is for.
pub(crate) struct Imported<'a> {
    pub(crate) content: &'a [u8],
    pub(crate) pattern: &'a [u8],
    /// Length of a value that it is for, in bytes.
    pub(crate) len: usize,
}

/// Returns whether a pattern means the same here as in a glob of KEYS, or stands for lists.
fn is_usable(pattern: &[u8]) -> bool {
    if pattern == LISTS {
        return true;
    }
    let ends_segment = |at: usize| pattern.get(at + 1).is_none_or(|next| b":/|#".contains(next));
    (1..=MAX_PATTERN_LEN).contains(&pattern.len())
        && pattern.iter().enumerate().all(|(at, byte)| match byte {
            b'*' => ends_segment(at),
            b'?' | b'[' | b'\\' => false,
            _ => true,
        })
}
