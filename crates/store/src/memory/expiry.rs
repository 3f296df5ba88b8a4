//! Expiry index of a table: an array of `milliseconds << 16 | tag`, sorted.
//!
//! The tag leads back to the entries that share it, one of which expires at that time. It takes eight bytes
//! for each key that expires, the next one due is the first, and new expiries mostly go to the end.

use crate::memory::growth;

#[derive(Default)]
pub(crate) struct ExpiryIndex {
    due: Vec<u64>,
}

const TAG_BITS: u32 = u16::BITS;

/// Latest time that the index can hold, in Unix milliseconds: the year 10889.
const LATEST: u64 = (1 << (u64::BITS - TAG_BITS)) - 1;

/// Clamps a time to the latest that the index can hold.
pub(crate) fn clamp(at: u64) -> u64 {
    at.min(LATEST)
}

fn key(at: u64, tag: u16) -> u64 {
    clamp(at) << TAG_BITS | u64::from(tag)
}

impl ExpiryIndex {
    pub(crate) fn len(&self) -> usize {
        self.due.len()
    }

    /// Returns the bytes requested from the allocator.
    pub(crate) fn requested_len(&self) -> usize {
        self.due.capacity() * size_of::<u64>()
    }

    pub(crate) fn insert(&mut self, at: u64, tag: u16) {
        growth::reserve_one(&mut self.due);
        let index = self.due.partition_point(|&due| due < key(at, tag));
        self.due.insert(index, key(at, tag));
    }

    pub(crate) fn remove(&mut self, at: u64, tag: u16) {
        if let Ok(index) = self.due.binary_search(&key(at, tag)) {
            self.due.remove(index);
            growth::shrink(&mut self.due);
        }
    }

    /// Returns the time and tag of the entry that expires next.
    pub(crate) fn next(&self) -> Option<(u64, u16)> {
        self.get(0)
    }

    /// Returns the time and tag at an index.
    pub(crate) fn get(&self, index: usize) -> Option<(u64, u16)> {
        self.due.get(index).map(|&due| (due >> TAG_BITS, due as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_due_is_the_earliest_whatever_the_order_of_insertion() {
        let mut index = ExpiryIndex::default();
        for (at, tag) in [(30, 1), (10, 2), (20, 3)] {
            index.insert(at, tag);
        }
        assert_eq!(index.next(), Some((10, 2)));
        index.remove(10, 2);
        assert_eq!(index.next(), Some((20, 3)));
    }

    #[test]
    fn entries_that_share_time_and_tag_are_counted() {
        let mut index = ExpiryIndex::default();
        index.insert(5, 9);
        index.insert(5, 9);
        index.remove(5, 9);
        assert_eq!(index.len(), 1);
    }

    #[test]
    fn a_time_beyond_the_index_is_kept_as_the_latest_and_can_be_removed() {
        let mut index = ExpiryIndex::default();
        index.insert(u64::MAX - 1, 4);
        assert_eq!(index.next(), Some((LATEST, 4)));
        index.remove(u64::MAX - 1, 4);
        assert_eq!(index.len(), 0);
    }
}
