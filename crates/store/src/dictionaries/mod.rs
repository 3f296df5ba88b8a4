//! Dictionaries: learned from the values that are written, for values that are alike.
//!
//! What they are learned from and whether they are worth having is the business of `snugly_learning`.
//!
//! - [`known`]: the dictionaries that there are, by number for readers and by key for writers
//! - [`tending`]: what is done about classes in the background, a step at a time
//! - [`lists`]: the class of the nodes of lists
//! - [`exclusion`]: keys that all of this is not for; [`inventory`]: what there is, for people
//!
//! This file has what the store's sessions share. They see a [`Known`] that never changes, and fetch another when there
//! is one; so neither reading nor writing takes a lock here. Records say the number of their dictionary, which is never
//! given to another one. A version that is not used for new values any more stays as long as any record needs it: which
//! ones that are, and encoding them anew, is for others, who know the records.

mod exclusion;
mod inventory;
pub(crate) mod known;
pub(crate) mod lists;
pub(crate) mod tending;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, MutexGuard, RwLock};
use snugly_codec::{Dictionary, LoadError};
use snugly_learning::{Band, Class, Classes, Decisions, Goal, Pattern};
use thiserror::Error;

use crate::changes::Changes;
use crate::disk::{Disk, DiskError, StoredDictionaries};
use crate::store::Settings;
pub use exclusion::KeyPredicate;
pub use inventory::ClassStats;
use known::{Known, Version, drift};
use lists::LISTS;
pub(crate) use tending::Request;

/// How dictionaries are made and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DictionarySettings {
    /// Whether new values are encoded with dictionaries; default true. What is encoded with one can be read in any case.
    pub enabled: bool,
    /// Whether new ones are learned; default true.
    pub trains: bool,
    /// Bytes that samples and dictionaries may take in memory, half of it each; default 32 MiB. Dictionaries that are
    /// there stay when it becomes less, and while one takes the place of another there are both.
    pub max_memory: usize,
}

impl Default for DictionarySettings {
    fn default() -> Self {
        DictionarySettings { enabled: true, trains: true, max_memory: 32 << 20 }
    }
}

impl DictionarySettings {
    /// Whether new ones are learned, which are used.
    pub(crate) fn learns(&self) -> bool {
        self.enabled && self.trains
    }

    fn samples_limit(&self) -> usize {
        self.max_memory / 2
    }

    pub(crate) fn dictionaries_limit(&self) -> usize {
        self.max_memory / 2
    }
}

/// A dictionary of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct DictionaryStats {
    /// Its number in the store, never given to another.
    pub number: u32,
    /// The ID that proves its content.
    pub id: u32,
    /// The keys that it is for, as a glob of KEYS.
    pub pattern: Vec<u8>,
    /// The length of the shortest value that it is for, in bytes; the longest is shorter than `max_len`.
    pub min_len: usize,
    /// See `min_len`.
    pub max_len: usize,
    /// Its content, in bytes.
    pub bytes: usize,
    /// What it takes in memory, in bytes.
    pub memory: usize,
    /// How many values it was trained from and measured with; 0 if it was made elsewhere.
    pub samples: usize,
    /// Encoded bytes for each byte of a value that it was not trained on, as they were before it; unknown if it was made
    /// elsewhere.
    pub ratio_before: Option<f64>,
    /// The same with it.
    pub ratio_after: Option<f64>,
    /// The same of values that were written lately, if there were enough.
    pub ratio_now: Option<f64>,
    /// How many records need it: those on disk, or in memory where there is no disk tier.
    pub records: u64,
    /// When it was trained, in Unix milliseconds.
    pub trained_at: u64,
    /// Whether new values are encoded with it.
    pub active: bool,
}

/// What sampling holds at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleStats {
    /// Classes of values that are told apart.
    pub classes: usize,
    /// Sampled values.
    pub samples: usize,
    /// Bytes that they take.
    pub bytes: usize,
    /// Trainings since the start, and how many of them gave a dictionary that was worth it.
    pub trainings: u64,
    /// See `trainings`.
    pub adopted: u64,
}

/// Why a dictionary cannot be forgotten or imported.
#[derive(Debug, Error)]
pub enum DictionaryError {
    /// There is none with this number.
    #[error("there is no dictionary {number}")]
    Unknown {
        /// The number.
        number: u32,
    },
    /// The bytes are no dictionary that can be used.
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
    /// It takes more than is left of [`DictionarySettings::max_memory`].
    #[error(
        "the dictionary takes {needed} bytes in memory, and {left} are left for dictionaries: raise dictionary-memory, or forget another"
    )]
    NoRoom {
        /// What it takes, in bytes.
        needed: usize,
        /// What is left, in bytes.
        left: usize,
    },
}

/// A store's dictionaries, and what they are learned from.
pub(crate) struct Dictionaries {
    known: RwLock<Arc<Known>>,
    sampled: Mutex<Sampled>,
    /// What every operation looks at: on a cache line that nothing else makes others wait for.
    watched: CachePadded<Watched>,
    /// Grows whenever records that are there are to be looked at anew.
    reviews: AtomicU64,
    /// Keys that are never sampled nor encoded with a dictionary.
    excluded: RwLock<Option<KeyPredicate>>,
    /// The training that somebody has asked for.
    request: Mutex<Option<Request>>,
    trainings: AtomicU64,
    adopted: AtomicU64,
}

struct Watched {
    /// Grows with each change of what is known.
    edition: AtomicU64,
    /// Whether somebody tends them; without, there is nothing to sample for.
    is_tended: AtomicBool,
    /// How often all data was deleted.
    flushes: AtomicU64,
}

struct Sampled {
    classes: Classes,
    /// How often all data had been deleted when the samples were taken.
    flushes: u64,
    /// What is decided for.
    goal: Option<Goal>,
}

/// The longest pattern that is accepted, in bytes.
const MAX_PATTERN_LEN: usize = 256;
/// How many writes pass before one asks again, while nothing is sampled.
const ASK_AGAIN: u32 = 1024;

impl Dictionaries {
    pub(crate) fn new(settings: &Settings) -> Dictionaries {
        let limit = settings.dictionaries.samples_limit();
        let mut classes = Classes::new(limit, settings.goal.is_some(), fastrand::u64(..));
        classes.follow(limit, settings.goal.is_some(), settings.dictionaries.learns());
        Dictionaries {
            known: RwLock::default(),
            sampled: Mutex::new(Sampled { classes, flushes: 0, goal: settings.goal }),
            watched: CachePadded::new(Watched {
                edition: AtomicU64::new(0),
                is_tended: AtomicBool::new(false),
                flushes: AtomicU64::new(0),
            }),
            reviews: AtomicU64::new(0),
            excluded: RwLock::default(),
            request: Mutex::default(),
            trainings: AtomicU64::new(0),
            adopted: AtomicU64::new(0),
        }
    }

    /// Follows settings that have changed. For another goal everything is decided anew.
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
            let mut known = self.known.write();
            let undecided = known.with_decisions(Decisions::default());
            self.publish(&mut known, undecided);
        }
    }

    /// Says whether somebody tends them.
    pub(crate) fn set_tended(&self, is_tended: bool) {
        self.watched.is_tended.store(is_tended, Ordering::Relaxed);
    }

    /// Which [`Dictionaries::known`] is the latest.
    pub(crate) fn edition(&self) -> u64 {
        self.watched.edition.load(Ordering::Acquire)
    }

    pub(crate) fn known(&self) -> Arc<Known> {
        self.known.read().clone()
    }

    /// How often there was reason to look at all records anew.
    pub(crate) fn reviews(&self) -> u64 {
        self.reviews.load(Ordering::Acquire)
    }

    /// What is sampled. Never of data that was deleted with everything: whoever comes first after that clears it.
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

    /// Lets the samples go if their data is gone, unless they are in use: then whoever uses them next does it.
    pub(crate) fn tidy(&self) {
        if let Some(mut sampled) = self.sampled.try_lock() {
            self.clear_deleted(&mut sampled);
        }
    }

    /// Puts what is known by now in the place of what was, for all sessions to follow.
    fn publish(&self, place: &mut Arc<Known>, known: Known) {
        *place = Arc::new(known);
        self.watched.edition.fetch_add(1, Ordering::Release);
    }

    fn review(&self) {
        self.reviews.fetch_add(1, Ordering::Release);
    }

    /// Shows a written value, which stands for so many, to those who sample; says how many of the next need not be
    /// shown. Never waits.
    pub(crate) fn offer(&self, key: &[u8], value: &[u8], stands_for: u64) -> u32 {
        self.show(key, |classes| classes.offer(key, value, stands_for))
    }

    fn show(&self, key: &[u8], offer: impl FnOnce(&mut Classes) -> u32) -> u32 {
        if !self.watched.is_tended.load(Ordering::Relaxed) {
            return ASK_AGAIN;
        }
        let Some(mut sampled) = self.sampled.try_lock() else { return 0 };
        self.clear_deleted(&mut sampled);
        if self.is_excluded(key) { 0 } else { offer(&mut sampled.classes) }
    }

    /// Knows the dictionaries that a store on disk has.
    ///
    /// # Errors
    /// [`DiskError`] if they cannot be read. One that cannot be used is left out, and told of.
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
        // What was made elsewhere is still to be compared with what can be learned here.
        let is_settled = |version: &&Arc<Version>| active.contains(&version.number) && !version.is_imported();
        for version in versions.iter().filter(is_settled) {
            sampled.classes.settle(version.pattern.text(), version.band);
        }
        drop(sampled);
        if !versions.is_empty() {
            // A walk over the records may have been cut off.
            self.review();
        }
        self.publish(&mut self.known.write(), Known::kept(versions, &active, next));
        Ok(())
    }

    /// Uses no dictionary for new values any more: all data is gone, of which `tell` tells others at the same instant. The
    /// samples go with [`Dictionaries::tidy`].
    pub(crate) fn flushed(&self, tell: impl FnOnce()) {
        let mut known = self.known.write();
        tell();
        let flushed = known.flushed();
        self.watched.flushes.store(flushed.flushes(), Ordering::Release);
        self.publish(&mut known, flushed);
    }

    /// Has no new value encoded with this version, and those that are encoded anew.
    ///
    /// # Errors
    /// [`DictionaryError::Unknown`].
    pub(crate) fn forget(&self, number: u32, changes: &Changes) -> Result<(), DictionaryError> {
        let mut known = self.known.write();
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

    /// Uses a dictionary that was made elsewhere, for keys of this pattern and values of about this length.
    ///
    /// # Errors
    /// [`DictionaryError`], except that it is unknown.
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
        dictionary.memory(lists::level(pattern, settings));
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
        let number = self.use_version(&mut self.known.write(), version, settings.dictionaries, changes)?;
        // What can be learned here is compared with it.
        self.sampled().classes.resample(pattern, band);
        Ok(number)
    }

    /// Uses a new version, in the place of the one that its class has had; gives its number.
    ///
    /// # Errors
    /// [`DictionaryError::NoRoom`].
    fn use_version(
        &self,
        known: &mut Arc<Known>,
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
        // On its way to the disk before anybody can write a record that needs it.
        changes.dictionary(number, Some(&version.row()));
        let with = known.with(version);
        changes.active_dictionaries(with.active().iter().map(|version| version.number));
        self.publish(known, with);
        self.review();
        Ok(number)
    }

    /// Forgets versions that no record needs.
    pub(crate) fn drop_versions(&self, numbers: &[u32], changes: &Changes) {
        let mut known = self.known.write();
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

    /// Whether values of this length are of any class.
    pub(crate) fn wants(len: usize) -> bool {
        Band::of(len).is_some()
    }
}

/// A dictionary that was made elsewhere, and what it is for.
pub(crate) struct Imported<'a> {
    pub(crate) content: &'a [u8],
    pub(crate) pattern: &'a [u8],
    /// The length of a value that it is for, in bytes.
    pub(crate) len: usize,
}

/// Whether a pattern means the same here as for those who write globs, or stands for lists.
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
