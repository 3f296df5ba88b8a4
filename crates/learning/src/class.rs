//! One class of values: what is sampled of it, and when it is studied.

use crate::band::Band;
use crate::samples::{Reservoir, Sample};

/// Bytes and samples that a class needs for its first training, which is to be early.
pub(crate) const FIRST_BYTES: usize = 64 << 10;
const FIRST_SAMPLES: usize = 128;
/// Samples that it needs for a look at the best encoding without a dictionary.
pub(crate) const LOOK_SAMPLES: usize = 64;
/// Samples that it needs if there is no room for more, or a training was requested.
const LEAST_SAMPLES: usize = 32;
/// A class that has fewer makes room for another when there are too many.
const FEW_SAMPLES: usize = 8;
/// Growth factor of the values seen after which a class that was not worth a dictionary is sampled again,
pub(crate) const RETRY_AT: u64 = 4;
/// and at least so often.
pub(crate) const LEAST_RETRY: u64 = 10_000;
/// Value of `retrain_at` for a class that was never trained.
pub(crate) const NEVER_TRAINED: u64 = u64::MAX - 1;

/// Values of one pattern and band.
pub struct Class {
    /// The pattern of its keys.
    pub pattern: Box<[u8]>,
    /// The length of its values.
    pub band: Band,
    /// Approximate number of values seen, as far as offers tell.
    pub seen: u64,
    /// The same at the last tidying.
    pub(crate) seen_before: u64,
    /// Number of values seen at which it is trained again.
    pub(crate) retrain_at: u64,
    pub(crate) progress: Progress,
}

/// The state of a class.
pub(crate) enum Progress {
    /// Sampling, with the time to study the samples.
    Sampling { samples: Reservoir, due: Due },
    /// Settled by a study at this time (Unix milliseconds).
    Settled { since: u64 },
}

/// Time to study a class that is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Due at the least number of samples, since it was requested.
    Now,
    /// As soon as there are a few, and without a training.
    Look,
    /// Due at this many bytes of samples.
    Bytes(usize),
    /// Due when there is no room for more samples.
    Full,
}

/// A class that has enough samples to be studied.
pub struct Ready {
    /// See [`Class`].
    pub pattern: Box<[u8]>,
    /// See [`Class`].
    pub band: Band,
    /// See [`Class`].
    pub seen: u64,
    /// The samples of the class.
    pub samples: Vec<Sample>,
    /// Whether they are enough to train a dictionary.
    pub trains: bool,
    pub(crate) due: Due,
    /// Whether there is no room for more of them.
    pub(crate) is_full: bool,
}

impl Progress {
    pub(crate) fn anew(due: Due) -> Progress {
        Progress::Sampling { samples: Reservoir::new(), due }
    }
}

impl Class {
    pub(crate) fn new(pattern: &[u8], band: Band, progress: Progress) -> Class {
        Class { pattern: pattern.into(), band, seen: 0, seen_before: 0, retrain_at: NEVER_TRAINED, progress }
    }

    /// Returns the number of values seen at which it is trained again after a useless study.
    pub(crate) fn later(&self) -> u64 {
        self.seen.max(LEAST_RETRY).saturating_mul(RETRY_AT)
    }

    fn reservoir(&self) -> Option<&Reservoir> {
        match &self.progress {
            Progress::Sampling { samples, .. } => Some(samples),
            Progress::Settled { .. } => None,
        }
    }

    /// Returns whether its values are those of no key, if values of different size are told apart.
    pub(crate) fn is_apart(&self, by_size: bool) -> bool {
        by_size && self.band == Band::ANY
    }

    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.reservoir().map_or(0, |samples| samples.samples().len())
    }

    /// Bytes that they take.
    pub fn sampled_bytes(&self) -> usize {
        self.reservoir().map_or(0, Reservoir::bytes)
    }

    pub(crate) fn is_due(&self, wanted: Due) -> bool {
        matches!(self.progress, Progress::Sampling { due, .. } if due == wanted)
    }

    /// Returns whether hardly anything is known of it.
    pub(crate) fn is_obscure(&self) -> bool {
        self.retrain_at == NEVER_TRAINED && self.reservoir().is_some() && self.samples() < FEW_SAMPLES
    }

    pub(crate) fn is_ready(&self) -> bool {
        let Progress::Sampling { samples, due } = &self.progress else { return false };
        let count = samples.samples().len();
        let is_enough = match *due {
            Due::Now => true,
            Due::Look => count >= LOOK_SAMPLES,
            Due::Bytes(least) => samples.bytes() >= least && count >= FIRST_SAMPLES,
            Due::Full => false,
        };
        (is_enough || samples.is_full()) && count >= LEAST_SAMPLES
    }

    pub(crate) fn ready(&self) -> Option<Ready> {
        let Progress::Sampling { samples, due } = &self.progress else { return None };
        Some(Ready {
            pattern: self.pattern.clone(),
            band: self.band,
            seen: self.seen,
            samples: samples.samples().to_vec(),
            trains: *due != Due::Look,
            due: *due,
            is_full: samples.is_full(),
        })
    }
}
