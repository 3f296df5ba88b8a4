//! A flush of memcached's that is to happen later, at most one.

use std::sync::atomic::{AtomicU64, Ordering};

/// Marks that there is none.
const NONE: u64 = u64::MAX;

pub(crate) struct DelayedFlush(AtomicU64);

impl Default for DelayedFlush {
    fn default() -> DelayedFlush {
        DelayedFlush(AtomicU64::new(NONE))
    }
}

impl DelayedFlush {
    /// Sets the time, in Unix milliseconds, in the place of an earlier one.
    pub(crate) fn at(&self, time: u64) {
        self.0.store(time, Ordering::Relaxed);
    }

    pub(crate) fn cancel(&self) {
        self.0.store(NONE, Ordering::Relaxed);
    }

    /// Returns whether the time has come, once.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        let time = self.0.load(Ordering::Relaxed);
        time <= now && self.0.compare_exchange(time, NONE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_once_from_its_time_on() {
        let flush = DelayedFlush::default();
        assert!(!flush.is_due(u64::MAX - 1));
        flush.at(5);
        assert!(!flush.is_due(4));
        assert!(flush.is_due(5));
        assert!(!flush.is_due(6));
    }

    #[test]
    fn the_last_one_counts() {
        let flush = DelayedFlush::default();
        flush.at(5);
        flush.at(7);
        assert!(!flush.is_due(6));
        flush.cancel();
        assert!(!flush.is_due(8));
    }
}
