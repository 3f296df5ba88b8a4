//! An estimate of the time spent, from a sample: reading the clock each time would cost more than small
//! values do.

use std::time::{Duration, Instant};

use crate::codecs::CodecId;
use crate::counters::{Counters, Family};

/// One in this many operations is timed and stands for all of them. A prime, so that attempts that recur, as one in 16
/// or 64 values that hardly ever shrink, are timed as often as what is between them.
const SAMPLED: u32 = 61;

/// Times one operation in 61, and never the first, which makes the contexts. For one thread.
#[derive(Debug)]
pub struct Stopwatch {
    until_sample: u32,
}

/// A started measurement, or none if the operation is not in the sample.
#[derive(Clone, Copy, Debug)]
pub struct Started(Option<Instant>);

/// An ended measurement, or none: what one thread has measured another can count.
#[derive(Clone, Copy, Debug)]
pub struct Ended(Option<Duration>);

impl Stopwatch {
    /// A stopwatch whose first sample is some operations away.
    pub fn new() -> Stopwatch {
        // Not the first operation, which makes the contexts.
        Stopwatch { until_sample: SAMPLED / 2 }
    }

    /// Starts measuring the operation, if it is in the sample.
    #[inline]
    pub fn start(&mut self) -> Started {
        self.until_sample -= 1;
        if self.until_sample > 0 {
            return Started(None);
        }
        self.until_sample = SAMPLED;
        Started(Some(Instant::now()))
    }
}

impl Default for Stopwatch {
    fn default() -> Self {
        Stopwatch::new()
    }
}

impl Started {
    /// The same measurement, started now: for an operation that is done later than it was begun.
    #[must_use]
    pub fn again(self) -> Started {
        Started(self.0.map(|_| Instant::now()))
    }

    /// Ends the measurement.
    #[inline]
    #[must_use]
    pub fn ended(self) -> Ended {
        Ended(self.0.map(|start| start.elapsed()))
    }

    /// Counts the time since the start for all the operations that this one stands for.
    #[inline]
    pub fn stop(self, counters: &Counters, family: Family) {
        self.ended().count(counters, family);
    }
}

impl Ended {
    /// Counts the time for all the operations that this one stands for.
    #[inline]
    pub fn count(self, counters: &Counters, family: Family) {
        if let Some(elapsed) = self.0 {
            counters.add(family, CodecId::Identity, elapsed.as_nanos() as u64 * u64::from(SAMPLED));
        }
    }
}
