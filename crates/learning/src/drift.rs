//! Whether values of a class still take what was expected of them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Sizes of values as they are encoded, noted by any number of threads.
#[derive(Debug)]
pub struct Drift {
    values: AtomicU64,
    raw: AtomicU64,
    encoded: AtomicU64,
    /// Encoded bytes for each byte of a value, as the bits of an f64: expected, and of the last values that were looked at
    /// together. NaN while there are none.
    expected: AtomicU64,
    latest: AtomicU64,
}

/// Number of noted values that are evaluated together.
const WINDOW: u64 = 256;
/// Growth beyond the expected size at which a class has changed.
const MOST: f64 = 1.15;

impl Drift {
    /// `expected` is what values took for each byte when they were measured. Without it, the first values are what later
    /// ones are compared with.
    pub fn new(expected: Option<f64>) -> Drift {
        Drift {
            values: AtomicU64::new(0),
            raw: AtomicU64::new(0),
            encoded: AtomicU64::new(0),
            expected: AtomicU64::new(expected.unwrap_or(f64::NAN).to_bits()),
            latest: AtomicU64::new(f64::NAN.to_bits()),
        }
    }

    /// Notes a value and what it was encoded to, in bytes.
    pub fn note(&self, raw: usize, encoded: usize) {
        for (counter, amount) in [(&self.values, 1), (&self.raw, raw as u64), (&self.encoded, encoded as u64)]
        {
            counter.fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// Number of values noted since the last evaluation: another number says that there were some.
    pub fn noted(&self) -> u64 {
        self.values.load(Ordering::Relaxed)
    }

    /// Encoded bytes for each byte of the values that were last looked at together.
    pub fn latest(&self) -> Option<f64> {
        Some(f64::from_bits(self.latest.load(Ordering::Relaxed))).filter(|ratio| !ratio.is_nan())
    }

    /// Looks at the values that were noted since the last time, if they are enough; returns whether they take
    /// more than expected. Their size is then the expectation from now on. For one thread at a time.
    pub fn has_drifted(&self) -> bool {
        if self.noted() < WINDOW {
            return false;
        }
        let [_, raw, encoded] =
            [&self.values, &self.raw, &self.encoded].map(|counter| counter.swap(0, Ordering::Relaxed));
        let ratio = encoded as f64 / raw.max(1) as f64;
        self.latest.store(ratio.to_bits(), Ordering::Relaxed);
        let expected = f64::from_bits(self.expected.load(Ordering::Relaxed));
        let has_drifted = ratio > expected * MOST;
        if has_drifted || expected.is_nan() {
            self.expected.store(ratio.to_bits(), Ordering::Relaxed);
        }
        has_drifted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_at(drift: &Drift, encoded: usize) -> bool {
        (0..WINDOW).for_each(|_| drift.note(1_000, encoded));
        drift.has_drifted()
    }

    #[test]
    fn values_drift_when_they_take_a_good_deal_more_than_expected() {
        let drift = Drift::new(Some(0.3));
        assert_eq!((drift.has_drifted(), drift.latest()), (false, None), "there are too few");
        assert!(!looked_at(&drift, 340) && !looked_at(&drift, 100));
        assert!(looked_at(&drift, 350));
        assert_eq!(drift.latest(), Some(0.35));
        assert!(!looked_at(&drift, 350), "that is known by now");
    }

    #[test]
    fn without_an_expectation_the_first_values_make_one() {
        let drift = Drift::new(None);
        assert!(!looked_at(&drift, 500) && !looked_at(&drift, 570));
        assert!(looked_at(&drift, 580));
    }
}
