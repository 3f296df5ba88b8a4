//! A random sample of the values of one class, in bounded memory.

use std::collections::HashSet;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

/// One value.
#[derive(Clone)]
pub(super) struct Sample {
    /// Of its key: a value takes the place of no other of the same key, and is on one side of the split for good.
    key_hash: u64,
    pub(super) key_len: usize,
    pub(super) value: Arc<[u8]>,
}

/// One of so many samples is not trained on, but measured with.
const HELD_OUT: u64 = 4;
/// What a sample takes beside its value, in bytes.
const OVERHEAD: usize = size_of::<Sample>() + 32;

impl Sample {
    /// Whether it is for measuring.
    pub(super) fn is_held_out(&self) -> bool {
        self.key_hash.is_multiple_of(HELD_OUT)
    }

    fn bytes(&self) -> usize {
        self.value.len() + OVERHEAD
    }
}

/// A reservoir (Vitter 1985, algorithm R): each value seen since it was made is in it with the same chance.
pub(super) struct Reservoir {
    samples: Vec<Sample>,
    keys: HashSet<u64>,
    bytes: usize,
    seen: u64,
    /// Whether a value found no room.
    full: bool,
}

impl Reservoir {
    pub(super) fn new() -> Reservoir {
        Reservoir { samples: Vec::new(), keys: HashSet::new(), bytes: 0, seen: 0, full: false }
    }

    /// Offers a value, for a reservoir of at most `limit` bytes.
    pub(super) fn offer(&mut self, key: &[u8], value: &[u8], limit: usize, random: &mut fastrand::Rng) {
        let key_hash = xxh3_64(key);
        if self.keys.contains(&key_hash) {
            return;
        }
        self.seen += 1;
        let need = value.len() + OVERHEAD;
        if self.bytes + need > limit {
            self.full = true;
            let place = random.u64(..self.seen) as usize;
            if place >= self.samples.len() {
                return;
            }
            self.remove(place);
            while self.bytes + need > limit && !self.samples.is_empty() {
                self.remove(random.usize(..self.samples.len()));
            }
        }
        if self.bytes + need <= limit {
            self.bytes += need;
            self.keys.insert(key_hash);
            self.samples.push(Sample { key_hash, key_len: key.len(), value: value.into() });
        }
    }

    fn remove(&mut self, place: usize) {
        let sample = self.samples.swap_remove(place);
        self.bytes -= sample.bytes();
        self.keys.remove(&sample.key_hash);
    }

    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Whether more samples only take the place of others.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Bytes that the samples take.
    pub(super) fn bytes(&self) -> usize {
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
                reservoir.offer(&number.to_le_bytes(), &value, LIMIT, &mut random);
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
    fn a_key_has_one_sample() {
        let (mut reservoir, mut random) = (Reservoir::new(), fastrand::Rng::with_seed(7));
        (0..10).for_each(|_| reservoir.offer(b"key", b"value", 10_000, &mut random));
        assert_eq!(reservoir.samples().len(), 1);
    }
}
