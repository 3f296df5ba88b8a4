//! How fast a server is asked, and when to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use signal_hook::consts::SIGINT;

/// How long a stop goes unnoticed at most.
const NAP: Duration = Duration::from_millis(50);

/// Whether somebody wants to stop. A second Ctrl-C ends the program at once.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// One that Ctrl-C sets.
    pub(crate) fn on_interrupt() -> Result<Stop> {
        const INTERRUPTED: i32 = 130; // as shells have it: 128 and the signal's number
        let stop = Stop::default();
        signal_hook::flag::register_conditional_shutdown(SIGINT, INTERRUPTED, stop.0.clone())
            .and_then(|_| signal_hook::flag::register(SIGINT, stop.0.clone()))
            .context("cannot watch for Ctrl-C")?;
        Ok(stop)
    }

    /// Whether it is time to stop.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps, but not longer than until somebody wants to stop.
    pub(crate) fn sleep_until(&self, moment: Instant) {
        while !self.is_set() {
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            sleep(left.min(NAP));
        }
    }
}

/// Lets so many keys pass a second and no more, also after a pause.
pub(crate) struct Pace {
    each: Duration,
    next: Instant,
}

impl Pace {
    /// `rate` keys a second.
    pub(crate) fn new(rate: u32) -> Pace {
        Pace { each: Duration::from_secs(1) / rate.max(1), next: Instant::now() }
    }

    /// Waits until it is the turn of so many keys.
    pub(crate) fn wait_for(&mut self, keys: u32, stop: &Stop) {
        stop.sleep_until(self.next);
        self.pass(keys, Instant::now());
    }

    /// So many keys pass now.
    fn pass(&mut self, keys: u32, now: Instant) {
        self.next = self.next.max(now) + self.each * keys;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_wait_for_those_before_them_and_a_pause_is_not_made_up_for() {
        let mut pace = Pace::new(1000);
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        pace.pass(30, now);
        pace.pass(30, now);
        assert_eq!(pace.next, now + Duration::from_millis(60));
        pace.pass(30, now + second);
        assert_eq!(pace.next, now + second + Duration::from_millis(30));
    }

    #[test]
    fn nobody_waits_after_a_stop() {
        let (mut pace, stop) = (Pace::new(1), Stop::default());
        pace.wait_for(1_000_000, &stop);
        stop.0.store(true, Ordering::Relaxed);
        pace.wait_for(1, &stop);
        assert!(stop.is_set());
    }
}
