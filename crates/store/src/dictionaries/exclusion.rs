//! Exclusion of keys: their values are never sampled nor encoded with a dictionary, so no fragment of them
//! ends up in one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Dictionaries;

/// Predicate that selects keys by their bytes.
pub type KeyPredicate = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

impl Dictionaries {
    /// Excludes the values of these keys from now on. All samples are forgotten, since their keys are not
    /// kept with them, and a dictionary in training is discarded.
    pub(crate) fn exclude(&self, excluded: Option<KeyPredicate>) {
        let mut known = self.set.write();
        *self.excluded.write() = excluded;
        let untrained = known.without_training();
        self.watched.flushes.store(untrained.flushes(), Ordering::Release);
        self.publish(&mut known, untrained);
        let active = known.active().to_vec();
        drop(known);
        let mut sampled = self.sampled();
        active.iter().for_each(|version| sampled.classes.settle(version.pattern.text(), version.band));
        drop(sampled);
        self.review();
    }

    /// Returns the predicate for the excluded keys.
    pub(crate) fn excluded(&self) -> Option<KeyPredicate> {
        self.excluded.read().clone()
    }

    pub(super) fn is_excluded(&self, key: &[u8]) -> bool {
        self.excluded.read().as_ref().is_some_and(|excluded| excluded(key))
    }
}
