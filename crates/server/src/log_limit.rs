//! Log lines that clients can cause at will: one of a kind a minute, which tells how many there would have been.

use std::sync::atomic::{AtomicU64, Ordering};

/// The least time between two lines, in milliseconds.
const INTERVAL: u64 = 60_000;

/// Events of one kind.
#[derive(Default)]
pub(crate) struct LogLimit {
    /// Time when the last line was written, as Unix time in milliseconds.
    last: AtomicU64,
    /// Events since then.
    untold: AtomicU64,
}

impl LogLimit {
    /// Counts an event. If it is time for a line, gives how many events it stands for.
    pub(crate) fn note(&self, now: u64) -> Option<u64> {
        self.untold.fetch_add(1, Ordering::Relaxed);
        let last = self.last.load(Ordering::Relaxed);
        let is_due = last == 0 || now >= last + INTERVAL;
        let is_first = || self.last.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        (is_due && is_first()).then(|| self.untold.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_minute_stands_for_all_events_since_the_one_before() {
        let limit = LogLimit::default();
        assert_eq!(limit.note(1_000), Some(1));
        assert_eq!([limit.note(1_001), limit.note(60_999)], [None, None]);
        assert_eq!(limit.note(61_000), Some(3));
    }
}
