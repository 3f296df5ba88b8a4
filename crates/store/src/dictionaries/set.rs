//! An immutable set of a store's dictionaries: by number for readers, by key and length for writers.

use std::collections::BTreeSet;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use snugly_codec::{Dictionary, LoadError};
use snugly_learning::{Band, Decision, Decisions, Drift, Pattern};

use super::{DictionaryStats, lists};
use crate::disk::dictionary::DictionaryRow;
use crate::settings::Settings;

/// One dictionary of a store.
pub(crate) struct Version {
    /// Number, given on publication; 0 until then.
    pub(super) number: u32,
    pub(super) dictionary: Arc<Dictionary>,
    pub(super) pattern: Pattern,
    pub(super) band: Band,
    /// Number of values that it was trained from; 0 if it was imported.
    pub(super) samples: usize,
    pub(super) ratio_before: Option<f64>,
    pub(super) ratio_after: Option<f64>,
    /// Time of the training, in Unix milliseconds.
    pub(super) trained_at: u64,
    /// Drift of the values encoded with it, on cache lines of its own since every encoder reads the fields
    /// beside it.
    pub(super) live: CachePadded<Drift>,
}

/// References to an inactive version that only the set holds.
const ONLY_KNOWN: usize = 1;

/// Creates a drift watch from the ratio that was measured.
pub(super) fn drift(expected: Option<f64>) -> CachePadded<Drift> {
    CachePadded::new(Drift::new(expected))
}

impl Version {
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn dictionary(&self) -> &Arc<Dictionary> {
        &self.dictionary
    }

    /// Returns the row that is stored on disk.
    pub(super) fn row(&self) -> DictionaryRow {
        DictionaryRow {
            number: self.number,
            min_len: self.band.start() as u32,
            trained_at: self.trained_at,
            samples: self.samples as u32,
            ratio_before: self.ratio_before,
            ratio_after: self.ratio_after,
            pattern: self.pattern.text().to_vec(),
            content: self.dictionary.bytes().to_vec(),
        }
    }

    /// Creates the version that was stored as this row.
    ///
    /// # Errors
    /// [`LoadError`] if the content is not a dictionary, or this build has no use for one.
    pub(super) fn of_row(row: DictionaryRow, settings: &Settings) -> Result<Version, LoadError> {
        let dictionary = Arc::new(Dictionary::load(row.content)?);
        // Prepared before the first writer needs it.
        dictionary.memory_for(lists::choice(&row.pattern, settings));
        Ok(Version {
            number: row.number,
            dictionary,
            pattern: Pattern::parse(&row.pattern),
            band: lists::band_of(&row.pattern, row.min_len as usize).unwrap_or_default(),
            samples: row.samples as usize,
            ratio_before: row.ratio_before,
            ratio_after: row.ratio_after,
            trained_at: row.trained_at,
            live: drift(row.ratio_after),
        })
    }

    /// Returns the bytes that it takes in memory.
    pub(super) fn memory(&self) -> usize {
        self.dictionary.memory_taken()
    }

    /// Returns whether it was imported.
    pub(crate) fn is_imported(&self) -> bool {
        self.samples == 0
    }

    /// Returns the number of values noted since the last look at the drift; a changed number means that there
    /// were some.
    pub(crate) fn noted(&self) -> u64 {
        self.live.noted()
    }

    /// Notes the result of encoding a value with it.
    pub(crate) fn note(&self, raw: usize, encoded: usize) {
        self.live.note(raw, encoded);
    }

    /// Returns whether it is for this class.
    pub(super) fn is_for(&self, pattern: &[u8], band: Band) -> bool {
        self.band == band && self.pattern.text() == pattern
    }
}

/// The dictionaries at one moment.
#[derive(Default)]
pub(crate) struct DictionarySet {
    /// All versions, by number.
    versions: Vec<Arc<Version>>,
    /// Versions that new values are encoded with, the most precise pattern first.
    active: Vec<Arc<Version>>,
    /// Decisions for classes, where there is a goal.
    decisions: Decisions,
    /// Highest number ever given.
    last: u32,
    /// Number of times that samples became useless: all data was deleted, or keys were excluded.
    flushes: u64,
}

impl DictionarySet {
    /// Returns the version that a record names.
    pub(crate) fn version(&self, number: u32) -> Option<&Arc<Version>> {
        let place = self.versions.binary_search_by_key(&number, |version| version.number).ok()?;
        Some(&self.versions[place])
    }

    /// Returns the version for a new value.
    pub(crate) fn active_for(&self, key: &[u8], len: usize) -> Option<&Arc<Version>> {
        if self.active.is_empty() {
            return None;
        }
        let band = Band::of(len)?;
        self.active.iter().find(|version| version.band == band && version.pattern.matches(key))
    }

    /// Returns the decision for a new value.
    pub(crate) fn decision_for(&self, key: &[u8], len: usize) -> Option<&Arc<Decision>> {
        self.decisions.find(key, len)
    }

    pub(crate) fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// Returns the set with other decisions.
    pub(super) fn with_decisions(&self, decisions: Decisions) -> DictionarySet {
        DictionarySet { decisions, ..self.copy() }
    }

    fn copy(&self) -> DictionarySet {
        let (versions, active) = (self.versions.clone(), self.active.clone());
        DictionarySet { versions, active, decisions: self.decisions.clone(), ..*self }
    }

    pub(crate) fn versions(&self) -> &[Arc<Version>] {
        &self.versions
    }

    pub(crate) fn active(&self) -> &[Arc<Version>] {
        &self.active
    }

    /// Returns whether new values are encoded with this version.
    pub(crate) fn is_active(&self, number: u32) -> bool {
        self.active.iter().any(|version| version.number == number)
    }

    /// Returns the inactive versions that only this set holds, so that no writer can still encode with them.
    pub(crate) fn unheld(&self) -> Vec<u32> {
        let is_unheld = |version: &&Arc<Version>| {
            !self.is_active(version.number) && Arc::strong_count(version) == ONLY_KNOWN
        };
        self.versions.iter().filter(is_unheld).map(|version| version.number).collect()
    }

    /// Returns the bytes left for a new version if all versions may take `limit` bytes. A version for this
    /// class replaces the active one, which does not count: it goes once its records are re-encoded.
    pub(super) fn room(&self, limit: usize, pattern: &[u8], band: Band) -> usize {
        let all: usize = self.versions.iter().map(|version| version.memory()).sum();
        let replaced = self.active_of(pattern, band).map_or(0, |version| version.memory());
        limit.saturating_sub(all - replaced)
    }

    /// Creates the set of a store's versions from disk, sorted by number, with the active ones and the next
    /// number.
    pub(super) fn kept(versions: Vec<Arc<Version>>, active: &BTreeSet<u32>, next: u32) -> DictionarySet {
        let is_active = |version: &&Arc<Version>| active.contains(&version.number);
        let mut active: Vec<_> = versions.iter().filter(is_active).cloned().collect();
        active.sort_by_key(|version| std::cmp::Reverse(version.pattern.precision()));
        DictionarySet { versions, active, last: next.saturating_sub(1), ..DictionarySet::default() }
    }

    /// Returns the active version of a class.
    pub(super) fn active_of(&self, pattern: &[u8], band: Band) -> Option<&Arc<Version>> {
        self.active.iter().find(|version| version.is_for(pattern, band))
    }

    /// Returns the number of the next version.
    pub(super) fn next(&self) -> u32 {
        self.last + 1
    }

    /// Returns the set with one more version, which has the next number and replaces the active one of its
    /// class.
    pub(super) fn with(&self, version: Arc<Version>) -> DictionarySet {
        let last = version.number;
        let mut active: Vec<_> = self
            .active
            .iter()
            .filter(|other| !other.is_for(version.pattern.text(), version.band))
            .cloned()
            .collect();
        active.push(version.clone());
        active.sort_by_key(|version| std::cmp::Reverse(version.pattern.precision()));
        let versions = self.versions.iter().cloned().chain([version]).collect();
        DictionarySet { versions, active, last, ..self.copy() }
    }

    /// Returns the set with one version made inactive.
    pub(super) fn with_inactive(&self, number: u32) -> DictionarySet {
        let active = self.active.iter().filter(|version| version.number != number).cloned().collect();
        DictionarySet { active, ..self.copy() }
    }

    /// Returns the set after all data was deleted: no version is active.
    pub(super) fn flushed(&self) -> DictionarySet {
        let (active, decisions) = (Vec::new(), Decisions::default());
        DictionarySet { active, decisions, flushes: self.flushes + 1, ..self.copy() }
    }

    /// Returns the same set, in which a training that runs at this moment is useless.
    pub(super) fn without_training(&self) -> DictionarySet {
        DictionarySet { flushes: self.flushes + 1, ..self.copy() }
    }

    pub(super) fn flushes(&self) -> u64 {
        self.flushes
    }

    pub(super) fn without(&self, numbers: &[u32]) -> DictionarySet {
        let without = |versions: &[Arc<Version>]| {
            versions.iter().filter(|version| !numbers.contains(&version.number)).cloned().collect()
        };
        DictionarySet { versions: without(&self.versions), active: without(&self.active), ..self.copy() }
    }

    /// Returns the statistics of every version, with the number of records that need it.
    pub(crate) fn stats(&self, records: impl Fn(u32) -> u64) -> Vec<DictionaryStats> {
        let stats = |version: &Arc<Version>| DictionaryStats {
            number: version.number,
            id: version.dictionary.id(),
            pattern: version.pattern.text().to_vec(),
            min_len: version.band.start(),
            max_len: version.band.end(),
            bytes: version.dictionary.bytes().len(),
            memory: version.memory(),
            samples: version.samples,
            ratio_before: version.ratio_before,
            ratio_after: version.ratio_after,
            ratio_now: version.live.latest(),
            records: records(version.number),
            trained_at: version.trained_at,
            active: self.is_active(version.number),
        };
        self.versions.iter().map(stats).collect()
    }
}
