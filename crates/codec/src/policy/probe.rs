//! A cheap look at a value: how evenly are its bytes distributed?
//!
//! The statistic is the collision probability of a sample: the chance that two of its bytes are equal, which is
//! 1/256 for random bytes, four times that for base64 and fifteen times for JSON. It says nothing about repeated
//! sequences, so it can only ever advise to try seldom, never to stop trying.

/// Bytes are looked at in runs of a cache line, spread over the value.
const RUN: usize = 64;
const RUNS: usize = 4;
const RUNS_OF_LARGE: usize = 16;
const LARGE: usize = 16 << 10;

/// How a value's bytes are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// As evenly as random, encrypted or well compressed bytes.
    Even,
    /// Unevenly enough to gain by entropy coding alone: base64, images, packed numbers.
    Mixed,
    /// As in text.
    Skewed,
}

impl Spread {
    pub const COUNT: usize = 3;

    pub fn of(value: &[u8]) -> Spread {
        let (excess, sampled) = excess(value);
        // A sample's result scatters around 100, and more so when it is small.
        let even = 130 + 6_000 / sampled.max(1);
        match excess {
            _ if excess <= even => Spread::Even,
            _ if excess <= 800 => Spread::Mixed,
            _ => Spread::Skewed,
        }
    }
}

/// The collision probability in percent of that of random bytes, and the number of bytes sampled.
fn excess(value: &[u8]) -> (usize, usize) {
    let runs = if value.len() >= LARGE { RUNS_OF_LARGE } else { RUNS };
    let mut sample = Sample { seen: [0; 256], collisions: 0, len: 0 };
    if value.len() <= runs * RUN {
        sample.add(value);
    } else {
        let stride = (value.len() - RUN) / (runs - 1);
        for run in 0..runs {
            sample.add(&value[run * stride..][..RUN]);
        }
    }
    let pairs = sample.len * sample.len.saturating_sub(1) / 2;
    (sample.collisions * 256 * 100 / pairs.max(1), sample.len)
}

struct Sample {
    seen: [u16; 256],
    collisions: usize,
    len: usize,
}

impl Sample {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let seen = &mut self.seen[usize::from(byte)];
            self.collisions += usize::from(*seen);
            *seen += 1;
        }
        self.len += bytes.len();
    }
}
