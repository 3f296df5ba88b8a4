//! Measurements of methods on samples, in bytes and in time, and their worth.

use std::time::Duration;

use snugly_codec::Choice;

use crate::goal::Goal;

/// The measurement of a method on samples.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Codec and level.
    pub choice: Choice,
    /// The ID of the dictionary.
    pub dictionary: Option<u32>,
    /// Number of values measured, and their bytes.
    pub values: usize,
    /// See `values`.
    pub raw: usize,
    /// Bytes of what they are encoded to.
    pub encoded: usize,
    /// Bytes that they take as they are.
    pub plain: usize,
    /// Bytes that they take encoded.
    pub stored: usize,
    /// Time that all of them take to encode; nothing if they are left alone. Without a goal it is measured once, and
    /// decoding not at all.
    pub encode: Duration,
    /// And to decode.
    pub decode: Duration,
    /// Bytes that the dictionary takes where the values are kept.
    pub memory: usize,
}

impl Measured {
    /// Encoded bytes for each byte of a value.
    pub fn ratio(&self) -> f64 {
        self.encoded as f64 / self.raw.max(1) as f64
    }

    /// Bytes of `population` values, the dictionary included.
    pub fn stored(&self, population: u64) -> u64 {
        let values = u128::from(population) * self.stored as u128 / self.values.max(1) as u128;
        values as u64 + self.memory as u64
    }

    /// Processor time of a value that is written once and read so often.
    pub fn time(&self, reads: f64) -> Duration {
        (self.encode + self.decode.mul_f64(reads)) / self.values.max(1) as u32
    }

    /// Processor time of reading a value.
    pub fn decode_each(&self) -> Duration {
        self.decode / self.values.max(1) as u32
    }

    /// Bytes saved for a value on average, without the dictionary's part.
    pub fn saved_each(&self) -> f64 {
        (self.plain as f64 - self.stored as f64) / self.values.max(1) as f64
    }

    /// The worth of a value that is encoded so, in nanoseconds: the saving at the goal's price, less the time.
    pub fn worth(&self, goal: Goal, population: u64, reads: f64) -> f64 {
        let saved = self.saved_each() - self.memory as f64 / population.max(1) as f64;
        saved * goal.price() - self.time(reads).as_nanos() as f64
    }
}
