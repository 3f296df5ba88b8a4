//! A random sample of the values of one class, in bounded memory.

use std::collections::HashMap;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

/// One value.
#[derive(Clone)]
pub struct Sample {
    /// Hash of its key: a value replaces no other of the same key, and is on one side of the split for good.
    key_hash: u64,
    /// The length of its key, in bytes.
    pub key_len: usize,
    /// The value.
    pub value: Arc<[u8]>,
}

/// Number of samples for each one that is not trained on, but measured with.
const HELD_OUT: u64 = 4;
/// Bytes that a sample takes beside its value.
const OVERHEAD: usize = size_of::<Sample>() + 32;

impl Sample {
    /// The value of a key.
    pub fn new(key: &[u8], value: &[u8]) -> Sample {
        Offered::of_key(key, value).kept()
    }

    /// Returns whether it is for measuring.
    pub fn is_held_out(&self) -> bool {
        self.key_hash.is_multiple_of(HELD_OUT)
    }

    fn bytes(&self) -> usize {
        self.value.len() + OVERHEAD
    }
}

/// A value that may become a sample.
#[derive(Clone, Copy)]
pub(crate) struct Offered<'v> {
    key_hash: u64,
    key_len: usize,
    pub(crate) value: &'v [u8],
}

impl<'v> Offered<'v> {
    /// The value of a key.
    pub(crate) fn of_key(key: &[u8], value: &'v [u8]) -> Offered<'v> {
        Offered { key_hash: xxh3_64(key), key_len: key.len(), value }
    }

    /// One that is kept without a key, and told apart by a name.
    pub(crate) fn named(name: &[u8], value: &'v [u8]) -> Offered<'v> {
        Offered { key_len: 0, ..Offered::of_key(name, value) }
    }

    fn kept(self) -> Sample {
        Sample { key_hash: self.key_hash, key_len: self.key_len, value: self.value.into() }
    }
}

/// A reservoir (Vitter 1985, algorithm R): each value seen since it was made is in it with the same chance.
pub(crate) struct Reservoir {
    samples: Vec<Sample>,
    /// The places of the samples of keys, by their hashes.
    places: HashMap<u64, usize>,
    bytes: usize,
    /// Values of keys that were not in it, and of those that were.
    seen: u64,
    repeated: u64,
    /// Whether a value found no room.
    has_overflown: bool,
}

/// Values of known keys for each sample after which there are hardly any other keys,
const REPEATED: u64 = 4;
/// and their least number.
const LEAST_REPEATED: u64 = 1_000;

impl Reservoir {
    pub(crate) fn new() -> Reservoir {
        Reservoir {
            samples: Vec::new(),
            places: HashMap::new(),
            bytes: 0,
            seen: 0,
            repeated: 0,
            has_overflown: false,
        }
    }

    /// Offers a value, for a reservoir of at most `limit` bytes. It takes the place of an older one of the same key.
    pub(crate) fn offer(&mut self, offered: Offered<'_>, limit: usize, random: &mut fastrand::Rng) {
        let need = offered.value.len() + OVERHEAD;
        if let Some(&place) = self.places.get(&offered.key_hash) {
            self.repeated += 1;
            self.remove(place);
        } else {
            self.seen += 1;
            if self.bytes + need > limit {
                self.has_overflown = true;
                let place = random.u64(..self.seen) as usize;
                if place >= self.samples.len() {
                    return;
                }
                self.remove(place);
            }
        }
        while self.bytes + need > limit && !self.samples.is_empty() {
            self.remove(random.usize(..self.samples.len()));
        }
        if self.bytes + need <= limit {
            self.bytes += need;
            self.places.insert(offered.key_hash, self.samples.len());
            self.samples.push(offered.kept());
        }
    }

    fn remove(&mut self, place: usize) {
        let sample = self.samples.swap_remove(place);
        self.bytes -= sample.bytes();
        self.places.remove(&sample.key_hash);
        if let Some(moved) = self.samples.get(place) {
            self.places.insert(moved.key_hash, place);
        }
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Returns whether more samples only take the place of others.
    pub(crate) fn is_full(&self) -> bool {
        self.has_overflown || self.repeated >= LEAST_REPEATED.max(REPEATED * self.samples.len() as u64)
    }

    /// Bytes that the samples take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservoir_keeps_to_its_limit_and_every_value_has_the_same_chance() {
        const LIMIT: usize = 100 * (1_000 + OVERHEAD);
        let mut random = fastrand::Rng::with_seed(7);
        let mut early = 0;
        for _ in 0..50 {
            let mut reservoir = Reservoir::new();
            for number in 0..1_000u32 {
                let mut value = vec![0; 500 + (number % 1_001) as usize];
                value[..4].copy_from_slice(&number.to_le_bytes());
                reservoir.offer(Offered::of_key(&number.to_le_bytes(), &value), LIMIT, &mut random);
                assert!(reservoir.bytes() <= LIMIT);
            }
            let number =
                |sample: &Sample| u32::from_le_bytes(*sample.value.first_chunk().expect("four bytes"));
            early += reservoir.samples().iter().filter(|sample| number(sample) < 500).count();
            assert!(reservoir.samples().len() > 80);
        }
        assert!((2_000..3_000).contains(&early), "{early} of about 5,000 are of the first half");
    }

    #[test]
    fn a_key_has_one_sample_and_that_is_its_latest_value() {
        let (mut reservoir, mut random) = (Reservoir::new(), fastrand::Rng::with_seed(7));
        let mut offer = |number| reservoir.offer(Offered::of_key(b"key", &[number]), 10_000, &mut random);
        (0..10u8).for_each(&mut offer);
        assert_eq!(*reservoir.samples()[0].value, [9]);
        assert_eq!((reservoir.samples().len(), reservoir.bytes()), (1, 1 + OVERHEAD));
    }

    #[test]
    fn a_reservoir_is_full_when_no_other_keys_come() {
        let (mut reservoir, mut random) = (Reservoir::new(), fastrand::Rng::with_seed(7));
        for number in 0..2_000u32 {
            assert_eq!(reservoir.is_full(), number >= 1_100);
            let offered = Offered::of_key(&(number % 100u32).to_le_bytes(), b"value");
            reservoir.offer(offered, 1 << 20, &mut random);
        }
        assert_eq!(reservoir.samples().len(), 100);
    }
}
