//! Ctrl-C that ends a job early and keeps what it has found. Knows no job.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use signal_hook::consts::SIGINT;

/// Longest time until a stop is noticed.
const NAP: Duration = Duration::from_millis(50);

/// Whether somebody wants to stop. A second Ctrl-C ends the program at once.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// One that Ctrl-C sets.
    pub(crate) fn on_interrupt() -> Result<Interrupt> {
        const INTERRUPTED: i32 = 130; // as shells have it: 128 and the signal's number
        let stop = Interrupt::default();
        signal_hook::flag::register_conditional_shutdown(SIGINT, INTERRUPTED, stop.0.clone())
            .and_then(|_| signal_hook::flag::register(SIGINT, stop.0.clone()))
            .context("cannot watch for Ctrl-C")?;
        Ok(stop)
    }

    /// Whether it is time to stop.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Says that it is time to stop.
    #[cfg(test)]
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
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
