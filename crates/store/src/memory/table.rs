//! The entries of one database in one shard, in the order of their keys' hashes.
//!
//! An array of 8-byte slots sorted by tag (the 16 bits of the hash after those that chose the shard). Hashes are
//! uniform, so interpolation finds a key's place within a few slots, and a shard is small (a few thousand keys), so
//! an insertion moves at most some kilobytes. In return the array is dense (about 9 bytes a key), iteration follows
//! the hash (what SCAN's cursor and the eviction hand stand on, whatever is inserted or removed meanwhile), and
//! growth never rehashes.
//!
//! It knows tags and keys; not shards, expiry or policies.

use crate::entry::{Entry, EntryRef, Slot};
use crate::memory::growth;

#[derive(Default)]
pub(crate) struct Table {
    slots: Vec<Slot>,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the bytes requested from the allocator for the slots.
    pub(crate) fn requested_len(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    pub(crate) fn find(&self, tag: u16, key: &[u8]) -> Option<usize> {
        let start = self.lower_bound(tag);
        self.slots[start..]
            .iter()
            .take_while(|slot| slot.tag() == tag)
            .position(|slot| slot.entry().key() == key)
            .map(|offset| start + offset)
    }

    /// Returns the slot where the search for a tag starts, to prefetch it.
    pub(crate) fn first_guess(&self, tag: u16) -> Option<*const Slot> {
        self.slots.get(self.guess(tag)).map(std::ptr::from_ref)
    }

    /// Returns the first entry with this tag or a higher one, to prefetch it.
    pub(crate) fn candidate(&self, tag: u16) -> Option<EntryRef<'_>> {
        self.slots.get(self.lower_bound(tag)).map(Slot::entry)
    }

    fn guess(&self, tag: u16) -> usize {
        (tag as usize * self.slots.len()) >> u16::BITS
    }

    pub(crate) fn entry(&self, index: usize) -> EntryRef<'_> {
        self.slots[index].entry()
    }

    pub(crate) fn tag(&self, index: usize) -> u16 {
        self.slots[index].tag()
    }

    /// Inserts an entry whose key is not in the table.
    pub(crate) fn insert(&mut self, tag: u16, entry: Entry) {
        growth::reserve_one(&mut self.slots);
        let index = self.lower_bound(tag);
        self.slots.insert(index, Slot::new(tag, entry));
    }

    /// Puts `entry` in the place of another of the same key and returns that one.
    pub(crate) fn replace(&mut self, index: usize, entry: Entry) -> Entry {
        let slot = Slot::new(self.slots[index].tag(), entry);
        std::mem::replace(&mut self.slots[index], slot).into_entry()
    }

    pub(crate) fn remove(&mut self, index: usize) -> Entry {
        let entry = self.slots.remove(index).into_entry();
        growth::shrink(&mut self.slots);
        entry
    }

    /// Returns the index of the first slot whose tag is `tag` or more; `len` if there is none.
    pub(crate) fn lower_bound(&self, tag: u16) -> usize {
        let slots = &self.slots[..];
        let guess = self.guess(tag);
        // Double the step from the guess until the bound lies between, then bisect.
        let mut step = 4;
        if slots.get(guess).is_some_and(|slot| slot.tag() < tag) {
            let mut low = guess;
            while slots.get(low + step).is_some_and(|slot| slot.tag() < tag) {
                low += step;
                step *= 2;
            }
            let high = (low + step).min(slots.len());
            low + slots[low..high].partition_point(|slot| slot.tag() < tag)
        } else {
            let mut high = guess;
            while high >= step && slots[high - step].tag() >= tag {
                high -= step;
                step *= 2;
            }
            let low = high.saturating_sub(step);
            low + slots[low..high].partition_point(|slot| slot.tag() < tag)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use snugly_codec::Record;

    use super::*;
    use crate::entry::{Access, Properties};

    fn entry(key: &[u8]) -> Entry {
        Entry::new(key, &Record::identity(b"value"), Properties::plain(Access::written(0)))
    }

    #[test]
    fn keys_with_the_same_tag_are_told_apart() {
        let mut table = Table::default();
        table.insert(7, entry(b"a"));
        table.insert(7, entry(b"b"));
        let b = table.find(7, b"b").expect("b was inserted");
        assert_eq!(table.entry(b).key(), b"b");
        assert!(table.find(7, b"c").is_none());
        assert!(table.find(8, b"a").is_none());
    }

    #[test]
    fn a_table_gives_memory_back_when_it_empties() {
        let mut table = Table::default();
        for tag in 0..1000 {
            table.insert(tag, entry(&tag.to_be_bytes()));
        }
        let full = table.requested_len();
        while table.len() > 0 {
            table.remove(table.len() - 1);
        }
        assert!(table.requested_len() < full / 10);
    }

    proptest! {
        #[test]
        fn the_lower_bound_is_that_of_a_linear_search(tags in prop::collection::vec(any::<u16>(), 0..300), tag: u16) {
            let mut table = Table::default();
            for tag in &tags {
                table.insert(*tag, entry(&tag.to_be_bytes()));
            }
            prop_assert!(table.slots.is_sorted_by_key(Slot::tag));
            let linear = table.slots.iter().position(|slot| slot.tag() >= tag).unwrap_or(table.len());
            prop_assert_eq!(table.lower_bound(tag), linear);
        }
    }
}
