//! The dictionaries that a store has at one moment: by number for those who read, by key and length for those who write.

use std::collections::BTreeSet;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use snugly_codec::{Dictionary, LoadError};
use snugly_learning::{Band, Decision, Decisions, Drift, Pattern};

use super::{DictionaryStats, lists};
use crate::disk::dictionary::DictionaryRow;
use crate::store::Settings;

/// One dictionary of a store.
pub(crate) struct Version {
    /// Given when it becomes known; 0 until then.
    pub(super) number: u32,
    pub(super) dictionary: Arc<Dictionary>,
    pub(super) pattern: Pattern,
    pub(super) band: Band,
    /// How many it was trained from; none if it was made elsewhere.
    pub(super) samples: usize,
    pub(super) ratio_before: Option<f64>,
    pub(super) ratio_after: Option<f64>,
    /// In Unix milliseconds.
    pub(super) trained_at: u64,
    /// On cache lines of its own: what every encoder reads stands beside it.
    pub(super) live: CachePadded<Drift>,
}

/// How many references a list has to each of its inactive versions.
const ONLY_KNOWN: usize = 1;

/// Watches values of which so much was measured.
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

    /// What is kept of it on disk.
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

    /// The version of which this was kept.
    ///
    /// # Errors
    /// [`LoadError`] if the content is no dictionary, or this build has no use for one.
    pub(super) fn of_row(row: DictionaryRow, settings: &Settings) -> Result<Version, LoadError> {
        let dictionary = Arc::new(Dictionary::load(row.content)?);
        // Made ready before the first writer needs it.
        dictionary.memory(lists::level(&row.pattern, settings));
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

    /// Bytes that it takes in memory.
    pub(super) fn memory(&self) -> usize {
        self.dictionary.memory_taken()
    }

    /// Whether it was made elsewhere.
    pub(crate) fn is_imported(&self) -> bool {
        self.samples == 0
    }

    /// How many values were noted since they were last looked at together: another number means that there were some.
    pub(crate) fn noted(&self) -> u64 {
        self.live.noted()
    }

    /// Notes what came of a value that was offered to it.
    pub(crate) fn note(&self, raw: usize, encoded: usize) {
        self.live.note(raw, encoded);
    }

    /// Whether it is for this class.
    pub(super) fn is_for(&self, pattern: &[u8], band: Band) -> bool {
        self.band == band && self.pattern.text() == pattern
    }
}

/// The dictionaries of one moment.
#[derive(Default)]
pub(crate) struct Known {
    /// By number.
    versions: Vec<Arc<Version>>,
    /// Those that new values are encoded with, the most precise pattern first.
    active: Vec<Arc<Version>>,
    /// What else is decided for classes, where that is done for a goal.
    decisions: Decisions,
    /// The highest number that was ever given.
    last: u32,
    /// How often what was learned from became of no use: all data was deleted, or keys were excluded.
    flushes: u64,
}

impl Known {
    /// The version that a record names.
    pub(crate) fn version(&self, number: u32) -> Option<&Arc<Version>> {
        let place = self.versions.binary_search_by_key(&number, |version| version.number).ok()?;
        Some(&self.versions[place])
    }

    /// The version for a new value.
    pub(crate) fn active_for(&self, key: &[u8], len: usize) -> Option<&Arc<Version>> {
        if self.active.is_empty() {
            return None;
        }
        let band = Band::of(len)?;
        self.active.iter().find(|version| version.band == band && version.pattern.matches(key))
    }

    /// What is decided for a new value.
    pub(crate) fn decision_for(&self, key: &[u8], len: usize) -> Option<&Arc<Decision>> {
        self.decisions.find(key, len)
    }

    pub(crate) fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// With other decisions.
    pub(super) fn with_decisions(&self, decisions: Decisions) -> Known {
        Known { decisions, ..self.copy() }
    }

    fn copy(&self) -> Known {
        let (versions, active) = (self.versions.clone(), self.active.clone());
        Known { versions, active, decisions: self.decisions.clone(), ..*self }
    }

    pub(crate) fn versions(&self) -> &[Arc<Version>] {
        &self.versions
    }

    pub(crate) fn active(&self) -> &[Arc<Version>] {
        &self.active
    }

    /// Whether new values are encoded with it.
    pub(crate) fn is_active(&self, number: u32) -> bool {
        self.active.iter().any(|version| version.number == number)
    }

    /// The inactive versions that nobody holds who may still encode with them: only this list has them.
    pub(crate) fn unheld(&self) -> Vec<u32> {
        let is_unheld = |version: &&Arc<Version>| {
            !self.is_active(version.number) && Arc::strong_count(version) == ONLY_KNOWN
        };
        self.versions.iter().filter(is_unheld).map(|version| version.number).collect()
    }

    /// Bytes that may be taken in memory beside these versions, if all may take so many. One for this class takes the place
    /// of another, which does not count: it goes once the records are encoded anew.
    pub(super) fn room(&self, limit: usize, pattern: &[u8], band: Band) -> usize {
        let all: usize = self.versions.iter().map(|version| version.memory()).sum();
        let replaced = self.active_of(pattern, band).map_or(0, |version| version.memory());
        limit.saturating_sub(all - replaced)
    }

    /// Those that a store has kept, by number, and which of them are active. The next number is known, too.
    pub(super) fn kept(versions: Vec<Arc<Version>>, active: &BTreeSet<u32>, next: u32) -> Known {
        let is_active = |version: &&Arc<Version>| active.contains(&version.number);
        let mut active: Vec<_> = versions.iter().filter(is_active).cloned().collect();
        active.sort_by_key(|version| std::cmp::Reverse(version.pattern.precision()));
        Known { versions, active, last: next.saturating_sub(1), ..Known::default() }
    }

    /// The active version of a class.
    pub(super) fn active_of(&self, pattern: &[u8], band: Band) -> Option<&Arc<Version>> {
        self.active.iter().find(|version| version.is_for(pattern, band))
    }

    /// The number of the next version.
    pub(super) fn next(&self) -> u32 {
        self.last + 1
    }

    /// With a version more, which has the next number and takes the place of the active one of its class.
    pub(super) fn with(&self, version: Arc<Version>) -> Known {
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
        Known { versions, active, last, ..self.copy() }
    }

    /// Without one of the active versions.
    pub(super) fn with_inactive(&self, number: u32) -> Known {
        let active = self.active.iter().filter(|version| version.number != number).cloned().collect();
        Known { active, ..self.copy() }
    }

    /// After all data was deleted: no new value is encoded with what was learned from it.
    pub(super) fn flushed(&self) -> Known {
        let (active, decisions) = (Vec::new(), Decisions::default());
        Known { active, decisions, flushes: self.flushes + 1, ..self.copy() }
    }

    /// The same, but what is learned at this moment is of no use any more.
    pub(super) fn without_training(&self) -> Known {
        Known { flushes: self.flushes + 1, ..self.copy() }
    }

    pub(super) fn flushes(&self) -> u64 {
        self.flushes
    }

    pub(super) fn without(&self, numbers: &[u32]) -> Known {
        let without = |versions: &[Arc<Version>]| {
            versions.iter().filter(|version| !numbers.contains(&version.number)).cloned().collect()
        };
        Known { versions: without(&self.versions), active: without(&self.active), ..self.copy() }
    }

    /// Every version, with the number of records that need it.
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
