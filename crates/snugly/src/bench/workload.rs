//! The workload of a benchmark: operations on keys, and the values of these.

use std::fmt;
use std::str::FromStr;

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution as _, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use snugly_protocol::resp::encode_bulk;

use super::protocol::Keys;
use super::values::Values;

/// Generated values that a benchmark keeps ready: enough not to live in a CPU's cache, few enough to be made quickly.
const MOST_VALUES: u64 = 16_384;

/// The distribution of keys in requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Every key as often as any other.
    Uniform,
    /// Key number k with a frequency of 1 / k^theta.
    Zipf(f64),
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':').unwrap_or((text, "0.99")) {
            ("uniform", _) if text == "uniform" => Ok(Self::Uniform),
            ("zipf", theta) => match theta.parse() {
                Ok(theta) if theta > 0.0 && theta < 10.0 => Ok(Self::Zipf(theta)),
                _ => Err(format!("{theta} is no exponent between 0 and 10")),
            },
            _ => Err("expected uniform, zipf or zipf:THETA".to_owned()),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Zipf(theta) => write!(f, "zipf:{theta}"),
        }
    }
}

/// One request: a write of a key, by the key's number, or a read of it.
#[derive(Clone, Debug)]
pub struct Operation {
    pub key: u64,
    pub read: bool,
    /// Keys that are read in the same request; none of most requests, which then take no memory.
    pub more: Vec<u64>,
}

impl Operation {
    /// Number of keys.
    pub fn key_count(&self) -> usize {
        1 + self.more.len()
    }

    /// The key at a position in the request.
    #[inline]
    pub fn key(&self, position: usize) -> Option<u64> {
        match position.checked_sub(1) {
            None => Some(self.key),
            Some(index) => self.more.get(index).copied(),
        }
    }
}

/// The keys and values of a benchmark.
///
/// A key always gets the same value, so that every reply can be checked.
pub struct Dataset {
    /// Number of keys.
    pub keys: u64,
    pub protocol: Keys,
    values: Bulks,
}

/// Values as bulk strings with their header and line end, one behind the other.
pub struct Bulks {
    bytes: Vec<u8>,
    /// The start of value number i, and the end of the last one.
    offsets: Vec<usize>,
}

impl Bulks {
    /// At most so many values: all of a file, [`MOST_VALUES`] of generated ones. Later ones are these again.
    pub fn new(values: &Values, most: u64) -> Self {
        let mut found = Self { bytes: Vec::new(), offsets: vec![0] };
        for index in 0..most.min(values.count().unwrap_or(MOST_VALUES)) {
            encode_bulk(&values.get(index), &mut found.bytes);
            found.offsets.push(found.bytes.len());
        }
        found
    }

    /// Number of different values.
    pub fn count(&self) -> u64 {
        self.offsets.len() as u64 - 1
    }

    /// Average bytes of a value.
    pub fn value_bytes(&self) -> f64 {
        let total: usize = (0..self.count()).map(|number| self.value(number).len()).sum();
        total as f64 / self.count() as f64
    }

    /// The bulk string of a value by its number.
    pub fn get(&self, number: u64) -> &[u8] {
        let index = (number % self.count()) as usize;
        &self.bytes[self.offsets[index]..self.offsets[index + 1]]
    }

    pub fn value(&self, number: u64) -> &[u8] {
        let bulk = self.get(number);
        let head = bulk.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        &bulk[head..bulk.len() - 2]
    }
}

impl Dataset {
    pub fn new(keys: u64, protocol: Keys, values: &Values) -> Self {
        Self { keys, protocol, values: Bulks::new(values, keys) }
    }

    /// Average bytes of a value.
    pub fn value_bytes(&self) -> f64 {
        self.values.value_bytes()
    }

    /// The value that the key is set to.
    pub fn value(&self, key: u64) -> &[u8] {
        self.values.value(key)
    }

    /// Appends the request of `operation`.
    #[inline]
    pub fn append(&self, operation: &Operation, out: &mut Vec<u8>) {
        let &Operation { key, read, ref more } = operation;
        match read {
            true => self.protocol.append_get(key, more, out),
            false => self.protocol.append_set(key, self.values.value(key), self.values.get(key), out),
        }
    }
}

/// The next operation.
#[derive(Clone, Copy, Debug)]
pub enum Plan {
    /// Every key once, in order: to fill a server and to read everything back.
    Sweep { read: bool },
    /// Keys after a distribution, reads and writes mixed.
    Mix { distribution: Distribution, read_percent: u32, keys_per_get: usize },
}

/// Draws operations for one thread of several.
pub struct Draw {
    plan: Plan,
    keys: u64,
    zipf: Option<Zipf<f64>>,
    random: Xoshiro256PlusPlus,
    next: u64,
    step: u64,
}

impl Draw {
    /// The operations of thread `thread` of `threads`: of a sweep every `threads`th key.
    pub fn new(plan: Plan, keys: u64, seed: u64, thread: u64, threads: u64) -> Self {
        let zipf = match plan {
            Plan::Mix { distribution: Distribution::Zipf(theta), .. } => {
                Some(Zipf::new(keys as f64, theta).expect("the exponent and the number of keys are positive"))
            }
            _ => None,
        };
        let random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(thread << 32));
        Self { plan, keys, zipf, random, next: thread, step: threads }
    }

    #[inline]
    pub fn next(&mut self) -> Operation {
        match self.plan {
            Plan::Sweep { read } => {
                let key = self.next % self.keys;
                self.next += self.step;
                Operation { key, read, more: Vec::new() }
            }
            Plan::Mix { read_percent, keys_per_get, .. } => {
                let key = self.any_key();
                let read = read_percent == 100 || self.random.random_range(0..100) < read_percent;
                let more = if read { keys_per_get - 1 } else { 0 };
                Operation { key, read, more: (0..more).map(|_| self.any_key()).collect() }
            }
        }
    }

    #[inline]
    fn any_key(&mut self) -> u64 {
        match &self.zipf {
            Some(zipf) => zipf.sample(&mut self.random) as u64 - 1,
            None => self.random.random_range(0..self.keys),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::Scheme;
    use super::*;
    use crate::corpus::{Corpus, Kind};

    fn counts(distribution: Distribution, keys: u64) -> Vec<u32> {
        let mut draw =
            Draw::new(Plan::Mix { distribution, read_percent: 30, keys_per_get: 1 }, keys, 7, 0, 1);
        let mut counts = vec![0; keys as usize];
        let mut reads = 0;
        for _ in 0..100_000 {
            let operation = draw.next();
            counts[operation.key as usize] += 1;
            reads += u32::from(operation.read);
        }
        assert!((29_000..31_000).contains(&reads), "{reads} reads");
        counts
    }

    #[test]
    fn uniform_keys_are_all_as_frequent() {
        let counts = counts(Distribution::Uniform, 100);
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }

    #[test]
    fn zipf_keys_fall_off_as_the_law_says() {
        let counts = counts(Distribution::Zipf(1.0), 100);
        let harmonic: f64 = (1..=100).map(|rank| 1.0 / f64::from(rank)).sum();
        for rank in [1, 2, 10] {
            let expected = 100_000.0 / harmonic / f64::from(rank);
            let ratio = f64::from(counts[rank as usize - 1]) / expected;
            assert!((0.9..1.1).contains(&ratio), "rank {rank}: {ratio}");
        }
    }

    #[test]
    fn a_sweep_visits_every_key_once_whatever_the_threads() {
        let mut keys: Vec<u64> = (0..3)
            .flat_map(|thread| {
                let mut draw = Draw::new(Plan::Sweep { read: true }, 10, 0, thread, 3);
                let share = 10 / 3 + u64::from(thread < 10 % 3);
                (0..share).map(move |_| draw.next().key).collect::<Vec<_>>()
            })
            .collect();
        keys.sort_unstable();
        assert_eq!(keys, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn a_read_asks_for_as_many_keys_as_it_should_and_a_write_for_one() {
        let plan = Plan::Mix { distribution: Distribution::Uniform, read_percent: 50, keys_per_get: 3 };
        let mut draw = Draw::new(plan, 10, 1, 0, 1);
        for _ in 0..100 {
            let operation = draw.next();
            assert_eq!(operation.key_count(), if operation.read { 3 } else { 1 });
            assert!(operation.more.iter().all(|&key| key < 10));
        }
    }

    #[test]
    fn a_key_always_has_the_same_value() {
        let corpus = Corpus::new(Kind::Random, 50, 1);
        let keys = Keys::new(Scheme::Resp, "k:").unwrap();
        let dataset = Dataset::new(1000, keys, &Values::Generated(corpus));
        assert_eq!((dataset.value_bytes(), dataset.value(987)), (50.0, &corpus.value(987)[..]));
    }
}
