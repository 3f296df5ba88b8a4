//! Keys whose values dictionaries have nothing to do with, because no fragment of them may end up in one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Dictionaries;

/// Which keys these are.
pub type KeyPredicate = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

impl Dictionaries {
    /// Leaves the values of these keys alone from now on. All samples are forgotten, since nobody knows any more which
    /// are of such a key, and a dictionary that is in training is thrown away.
    pub(crate) fn exclude(&self, excluded: Option<KeyPredicate>) {
        let mut known = self.known.write();
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

    /// Whose values these are.
    pub(crate) fn excluded(&self) -> Option<KeyPredicate> {
        self.excluded.read().clone()
    }

    pub(super) fn is_excluded(&self, key: &[u8]) -> bool {
        self.excluded.read().as_ref().is_some_and(|excluded| excluded(key))
    }
}
