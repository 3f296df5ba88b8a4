//! An estimate of the time spent, from a sample: reading the clock each time would cost more than small values do.

use std::time::Instant;

/// One in this many operations is timed and stands for all of them.
const SAMPLED: u32 = 64;

pub(crate) struct Stopwatch {
    until_sample: u32,
}

/// A started measurement, or none if the operation is not in the sample.
pub(crate) struct Started(Option<Instant>);

impl Stopwatch {
    pub fn new() -> Stopwatch {
        // Not the first operation, which makes the contexts.
        Stopwatch { until_sample: SAMPLED / 2 }
    }

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

impl Started {
    /// The nanoseconds to count: those of the operation times the operations that it stands for, or 0.
    #[inline]
    pub fn elapsed(self) -> u64 {
        self.0.map_or(0, |start| start.elapsed().as_nanos() as u64 * u64::from(SAMPLED))
    }
}
