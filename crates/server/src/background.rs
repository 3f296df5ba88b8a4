//! Processor time of background work, by what it was spent on. It knows nobody who works.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Work of the background thread.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Studies of classes and trainings of dictionaries.
    Learning,
    /// Passes that encode older values anew.
    Encoding,
}

/// Processor time since the start.
#[derive(Default)]
pub(crate) struct Background {
    /// In nanoseconds.
    learning: AtomicU64,
    encoding: AtomicU64,
}

/// Processor time since the start, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BackgroundTime {
    pub(crate) learning: Duration,
    pub(crate) encoding: Duration,
}

impl Background {
    pub(crate) fn add(&self, work: Work, time: Duration) {
        let spent = match work {
            Work::Learning => &self.learning,
            Work::Encoding => &self.encoding,
        };
        spent.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn time(&self) -> BackgroundTime {
        let time = |spent: &AtomicU64| Duration::from_nanos(spent.load(Ordering::Relaxed));
        BackgroundTime { learning: time(&self.learning), encoding: time(&self.encoding) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_told_apart_by_work() {
        let background = Background::default();
        let milliseconds = Duration::from_millis;
        for (work, time) in [(Work::Learning, 5), (Work::Encoding, 7), (Work::Learning, 1)] {
            background.add(work, milliseconds(time));
        }
        let expected = BackgroundTime { learning: milliseconds(6), encoding: milliseconds(7) };
        assert_eq!(background.time(), expected);
    }
}
