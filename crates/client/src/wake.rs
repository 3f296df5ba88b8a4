//! When to tell the keeper of a client's dictionaries that they are used.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Interval at which it is told while dictionaries are used, in milliseconds: it may have ended unnoticed.
const EVERY: u64 = 1000;

/// Limits how often that is told: at most once a second, and at once after [`reset`](WakeTimer::reset).
#[derive(Debug)]
pub struct WakeTimer {
    made: Instant,
    /// Time from which it is told next, in milliseconds since `made`.
    from: AtomicU64,
}

impl WakeTimer {
    /// Creates a timer that is due.
    #[allow(clippy::new_without_default, reason = "the clock is read")]
    pub fn new() -> WakeTimer {
        WakeTimer { made: Instant::now(), from: AtomicU64::new(0) }
    }

    /// Returns whether it is time, to one of the threads that ask.
    pub fn is_due(&self) -> bool {
        let now = self.made.elapsed().as_millis() as u64;
        let next = |from| (now >= from).then_some(now + EVERY);
        self.from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    /// Makes it due at the next use.
    pub fn reset(&self) {
        self.from.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_once_and_again_after_a_reset() {
        let timer = WakeTimer::new();
        assert!(timer.is_due());
        assert!(!timer.is_due());
        timer.reset();
        assert!(timer.is_due());
    }
}
