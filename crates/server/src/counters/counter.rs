//! Numbers that one thread counts up, without waiting for others, and that any thread may read and start anew.
//!
//! Starting anew changes nothing that the counting thread writes: how much there was is noted beside it, and left out
//! from then on.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread counts up.
#[derive(Default)]
pub(crate) struct Counter {
    counted: AtomicU64,
    /// The count when the counter was last reset.
    before: AtomicU64,
}

impl Counter {
    /// Adds to the counter. Only one thread may do so.
    pub(crate) fn add(&self, amount: u64) {
        self.counted.store(self.counted.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    /// The count since the start or the last reset.
    pub(crate) fn get(&self) -> u64 {
        // In this order, so that no less is counted than was before.
        let before = self.before.load(Ordering::Acquire);
        self.counted.load(Ordering::Relaxed).wrapping_sub(before)
    }

    /// Starts anew from 0.
    pub(crate) fn reset(&self) {
        self.before.store(self.counted.load(Ordering::Relaxed), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_was_counted_before_a_start_anew_stays_forgotten_while_another_thread_counts() {
        const ADDED: u64 = 200_000;
        let (counter, added) = (Counter::default(), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..=ADDED {
                    counter.add(1);
                    added.store(number, Ordering::Release);
                }
            });
            loop {
                let earlier = added.load(Ordering::Acquire);
                counter.reset();
                assert!(counter.get() <= ADDED - earlier);
                if earlier == ADDED {
                    break;
                }
            }
        });
        assert_eq!(counter.get(), 0);
        counter.add(5);
        assert_eq!(counter.get(), 5);
    }
}
