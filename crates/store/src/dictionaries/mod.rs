//! Dictionaries: learned from the values that are written, for values that are alike.
//!
//! What they are learned from and whether they are worth having is the business of `snugly_learning`.
//!
//! - [`known`]: the dictionaries that there are, by number for readers and by key for writers
//! - [`tending`]: what is done in the background, step by step
//!
//! This file has what the store's sessions share. They see a [`Known`] that never changes, and fetch another when there
//! is one; so neither reading nor writing takes a lock here. Records say the number of their dictionary, which is never
//! given to another one. A version that is not used for new values any more stays as long as any record needs it.

pub(crate) mod known;
mod tending;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use snugly_codec::{Dictionary, LoadError};
use snugly_learning::{Band, Class, Classes, Pattern};
use thiserror::Error;

use crate::changes::Changes;
use crate::disk::{Disk, DiskError};
use crate::store::{Settings, system_time};
use known::{Known, Live, Version};
pub use tending::DictionaryTender;

/// How dictionaries are made and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DictionarySettings {
    /// Whether values are sampled and new ones encoded with dictionaries; default true. What is encoded with one can be
    /// read in any case.
    pub enabled: bool,
    /// Bytes that samples and dictionaries may take in memory, half of it each; default 32 MiB.
    pub max_memory: usize,
}

impl Default for DictionarySettings {
    fn default() -> Self {
        DictionarySettings { enabled: true, max_memory: 32 << 20 }
    }
}

impl DictionarySettings {
    fn samples_limit(&self) -> usize {
        self.max_memory / 2
    }

    fn dictionaries_limit(&self) -> usize {
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
    /// How many values it was trained from and measured with.
    pub samples: usize,
    /// Encoded bytes for each byte of a value that it was not trained on, as they were before it.
    pub ratio_before: f64,
    /// The same with it.
    pub ratio_after: f64,
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
    /// Grows with each change of what is known.
    edition: AtomicU64,
    classes: Mutex<Classes>,
    /// Whether somebody tends them; without, there is nothing to sample for.
    is_tended: AtomicBool,
    trainings: AtomicU64,
    adopted: AtomicU64,
}

/// How many writes pass before one asks again, while nothing is sampled.
const ASK_AGAIN: u32 = 1024;

impl Dictionaries {
    pub(crate) fn new(settings: DictionarySettings) -> Dictionaries {
        Dictionaries {
            known: RwLock::default(),
            edition: AtomicU64::new(0),
            classes: Mutex::new(Classes::new(settings.samples_limit(), false, fastrand::u64(..))),
            is_tended: AtomicBool::new(false),
            trainings: AtomicU64::new(0),
            adopted: AtomicU64::new(0),
        }
    }

    /// Follows settings that have changed.
    pub(crate) fn follow(&self, settings: DictionarySettings) {
        let mut classes = self.classes.lock();
        classes.follow(settings.samples_limit(), false);
        if !settings.enabled {
            classes.clear();
        }
    }

    /// Which [`Dictionaries::known`] is the latest.
    pub(crate) fn edition(&self) -> u64 {
        self.edition.load(Ordering::Acquire)
    }

    pub(crate) fn known(&self) -> Arc<Known> {
        self.known.read().clone()
    }

    fn change(&self, change: impl FnOnce(&Known) -> Known) {
        let mut known = self.known.write();
        *known = Arc::new(change(&known));
        self.edition.fetch_add(1, Ordering::Release);
    }

    /// Shows a written value, which stands for so many, to those who sample; says how many of the next need not be
    /// shown. Never waits.
    pub(crate) fn offer(&self, key: &[u8], value: &[u8], stands_for: u64) -> u32 {
        if !self.is_tended.load(Ordering::Relaxed) {
            return ASK_AGAIN;
        }
        self.classes.try_lock().map_or(0, |mut classes| classes.offer(key, value, stands_for))
    }

    /// Knows the dictionaries that a store on disk has.
    ///
    /// # Errors
    /// [`DiskError`] if they cannot be read. One that cannot be used is left out, and told of.
    pub(crate) fn load(&self, disk: &Disk, level: i32) -> Result<(), DiskError> {
        let (rows, next) = disk.dictionaries()?;
        let mut versions = Vec::new();
        let mut classes = self.classes.lock();
        for row in rows {
            let (number, active) = (row.number, row.active);
            match Version::of_row(row, level) {
                Ok(version) => {
                    if active {
                        classes.settle(version.pattern.text(), version.band);
                    }
                    versions.push((Arc::new(version), active));
                }
                Err(error) => disk.dictionary_is_unusable(&number.to_string(), &error.to_string()),
            }
        }
        self.change(|_| Known::kept(versions, next));
        Ok(())
    }

    /// Uses no dictionary for new values any more, and forgets all samples: the data is gone.
    pub(crate) fn flushed(&self, changes: &Changes) {
        self.classes.lock().clear();
        self.change(|known| {
            known
                .active()
                .iter()
                .for_each(|version| changes.dictionary(version.number, Some(&version.row(false))));
            known.flushed()
        });
    }

    /// Uses a new version, in the place of the one that its class has had, unless what it was learned from was deleted
    /// meanwhile; says whether.
    fn adopt(&self, version: Version, flushes: u64, changes: &Changes) -> bool {
        let mut known = self.known.write();
        if known.flushes() != flushes {
            return false;
        }
        self.use_version(&mut known, version, changes);
        self.adopted.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Has classes trained soon, those whose pattern is this if one is named; says how many there are.
    pub(crate) fn train_now(&self, pattern: Option<&[u8]>) -> usize {
        self.classes.lock().train_now(|other| pattern.is_none_or(|pattern| pattern == other))
    }

    /// Has no new value encoded with this version, and those that are encoded anew.
    pub(crate) fn forget(&self, number: u32, changes: &Changes) -> Result<(), DictionaryError> {
        let version = self.known().version(number).cloned().ok_or(DictionaryError::Unknown { number })?;
        self.classes.lock().bereave(version.pattern.text(), version.band);
        self.change(|known| {
            changes.dictionary(number, Some(&version.row(false)));
            known.with_inactive(number)
        });
        Ok(())
    }

    /// Uses a dictionary that was made elsewhere, for keys of this pattern and values of about this length.
    pub(crate) fn import(
        &self,
        content: &[u8],
        pattern: &[u8],
        len: usize,
        settings: &Settings,
        changes: &Changes,
    ) -> Result<u32, DictionaryError> {
        let band = Band::of(len).ok_or(DictionaryError::NoSuchLength { len })?;
        let dictionary = Arc::new(Dictionary::load(content)?);
        let needed = dictionary.memory(settings.compression.level());
        let known = self.known();
        let left = settings.dictionaries.dictionaries_limit().saturating_sub(known.memory());
        if needed > left {
            return Err(DictionaryError::NoRoom { needed, left });
        }
        self.classes.lock().settle(pattern, band);
        let version = Version {
            number: 0,
            dictionary,
            pattern: Pattern::parse(pattern),
            band,
            memory: needed,
            samples: 0,
            ratio_before: 1.0,
            ratio_after: 1.0,
            trained_at: system_time(),
            live: Live::new(1.0),
        };
        let mut known = self.known.write();
        Ok(self.use_version(&mut known, version, changes))
    }

    /// Uses a new version, in the place of the one that its class has had; gives its number.
    fn use_version(&self, known: &mut Arc<Known>, version: Version, changes: &Changes) -> u32 {
        let version = Arc::new(Version { number: known.next(), ..version });
        let number = version.number;
        // On its way to the disk before anybody can write a record that needs it.
        changes.dictionary(number, Some(&version.row(true)));
        if let Some(before) = known.active_of(version.pattern.text(), version.band) {
            changes.dictionary(before.number, Some(&before.row(false)));
        }
        *known = Arc::new(known.with(version));
        self.edition.fetch_add(1, Ordering::Release);
        number
    }

    /// Forgets versions that no record needs.
    fn drop_versions(&self, numbers: &[u32], changes: &Changes) {
        self.change(|known| {
            numbers.iter().for_each(|number| changes.dictionary(*number, None));
            known.without(numbers)
        });
    }

    pub(crate) fn sample_stats(&self) -> SampleStats {
        let classes = self.classes.lock();
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
