//! The one snapshot that there is at a time: its beginning, at one instant for all shards, and its end.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use super::Keyspace;

impl Keyspace {
    /// Begins a snapshot of all keys as they are now; returns whether it did, which it does not while there is
    /// another one.
    pub(crate) fn begin_snapshot(&self) -> bool {
        let has_begun = !self.has_snapshot.swap(true, Ordering::AcqRel);
        if has_begun {
            let mut shards: Vec<_> = self.lock_each().collect();
            shards.iter_mut().for_each(|shard| shard.begin_snapshot());
        }
        has_begun
    }

    /// Ends the snapshot.
    pub(crate) fn end_snapshot(&self) {
        self.lock_each().for_each(|mut shard| shard.end_snapshot());
        self.has_snapshot.store(false, Ordering::Release);
    }

    /// Returns the number of shards.
    pub(crate) fn shards(&self) -> usize {
        self.cells.len()
    }

    /// Returns the hashes of keys in a shard.
    pub(crate) fn hashes(&self, shard: usize) -> RangeInclusive<u64> {
        let first = self.first_hash((shard as u64) << u16::BITS);
        first..=first + (u64::MAX >> self.shard_bits)
    }
}

#[cfg(test)]
mod tests {
    use crate::changes::Changes;

    use super::*;

    #[test]
    fn the_hashes_of_all_shards_are_all_hashes() {
        for shards in [1, 2, 64] {
            let keyspace = Keyspace::new(shards, [1, 2], &Changes::new(None, None, vec![0]));
            let mut next = Some(0);
            for shard in 0..keyspace.shards() {
                let hashes = keyspace.hashes(shard);
                assert_eq!(Some(*hashes.start()), next);
                next = hashes.end().checked_add(1);
            }
            assert_eq!(next, None);
        }
    }
}
