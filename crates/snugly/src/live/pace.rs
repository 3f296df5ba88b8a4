//! The pace of requests to a server.

use std::time::{Duration, Instant};

use crate::interrupt::Interrupt;

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
    pub(crate) fn wait_for(&mut self, keys: u32, stop: &Interrupt) {
        stop.sleep_until(self.next);
        self.pass(keys, Instant::now());
    }

    /// Counts so many keys as passed now.
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
        let (mut pace, stop) = (Pace::new(1), Interrupt::default());
        pace.wait_for(1_000_000, &stop);
        stop.set();
        pace.wait_for(1, &stop);
        assert!(stop.is_set());
    }
}
