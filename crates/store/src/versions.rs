//! Numbers for states of keys, by which a client tells whether a value is still the one that it has seen.
//!
//! No number is given twice, not even by the next process after a kill: each process begins above all that the
//! one before it had reserved on disk, and above the clock. Without a disk the clock alone must do, since
//! nothing else is left of an earlier process. The numbers of a process rise by one each time, more slowly than
//! nanoseconds pass.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::system_time;

/// The versions that a process gives out.
pub(crate) struct Versions(AtomicU64);

impl Versions {
    /// Versions reserved on disk with every commit: more than can be given out until the next one.
    const RESERVED: u64 = 1 << 32;

    /// Begins at `next`, or at the clock if that is later.
    pub(crate) fn from(next: u64) -> Versions {
        Versions::from_clock(next, system_time())
    }

    fn from_clock(next: u64, now_ms: u64) -> Versions {
        Versions(AtomicU64::new(next.max(now_ms.saturating_mul(1_000_000)).max(1)))
    }

    /// Returns a version that no key had before; never 0.
    pub(crate) fn give(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the version at which the next process begins, once this number is on disk.
    pub(crate) fn reserved(&self) -> u64 {
        self.0.load(Ordering::Relaxed).saturating_add(Versions::RESERVED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_version_is_given_twice_not_even_after_a_kill_with_the_clock_set_back() {
        let before = Versions::from_clock(1, 1_000);
        let given: Vec<u64> = (0..3).map(|_| before.give()).collect();
        assert_eq!(given, [1_000_000_000, 1_000_000_001, 1_000_000_002]);
        let reserved = before.reserved();
        let last = before.give();
        assert!(Versions::from_clock(reserved, 500).give() > last);
        let later = Versions::from_clock(reserved, 10_000_000);
        assert_eq!(later.give(), 10_000_000_000_000, "a copy of an older store repeats none either");
    }

    #[test]
    fn zero_is_never_given() {
        assert_eq!(Versions::from_clock(0, 0).give(), 1);
    }
}
