//! A cheap look at a value: how evenly are its bytes distributed?
//!
//! The statistic is the collision probability of a sample: the chance that two of its bytes are equal, which
//! is 1/256 for random bytes, four times that for base64 and fifteen times for JSON. It says nothing about
//! repeated sequences, so it can only ever advise to try seldom, never to stop trying.

/// Bytes are looked at in short runs, spread over the value: 128 bytes of them, or 256 where the value is
/// long. At 128 random bytes stay clear of the limit by four standard deviations, and base64 by six.
const RUN: usize = 16;
const RUNS: usize = 8;
const RUNS_OF_LONG: usize = 16;
const LONG: usize = 4 << 10;

/// Distribution of a value's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// As evenly as random, encrypted or well compressed bytes.
    Even,
    /// Unevenly enough to gain by entropy coding alone: base64, packed numbers.
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
    let runs = if value.len() >= LONG { RUNS_OF_LONG } else { RUNS };
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes from `symbols` values, as even as a good generator makes them.
    fn bytes(symbols: u64, len: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % symbols) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn random_bytes_of_any_length_look_even_and_base64_does_not() {
        for len in [128, 200, 256, 1_000, 4_096, 65_536, 262_144] {
            let seen =
                |symbols| (0..200).map(|seed| Spread::of(&bytes(symbols, len, seed))).collect::<Vec<_>>();
            let even = seen(256).iter().filter(|&&spread| spread == Spread::Even).count();
            assert!(even >= 198, "{even} of 200 random values of {len} bytes look even");
            assert!(seen(64).iter().all(|&spread| spread != Spread::Even), "{len} bytes of base64 look even");
            assert!(seen(16).iter().all(|&spread| spread == Spread::Skewed), "{len} bytes of hexadecimal");
        }
    }

    #[test]
    fn json_looks_skewed() {
        let json =
            br#"{"id":4711,"name":"amber basin","price":12.95,"tags":["cedar","delta"],"active":true},"#
                .repeat(50);
        for len in [64, 100, 300, 900, 4_000] {
            assert_eq!(Spread::of(&json[..len]), Spread::Skewed, "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn any_value_can_be_looked_at(value in proptest::collection::vec(any::<u8>(), 0..10_000)) {
            Spread::of(&value);
        }
    }
}
