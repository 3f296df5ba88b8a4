//! Drafts: values that are repeatedly changed or read in parts, and meanwhile stay uncompressed, instead of
//! being decoded and encoded each time.
//!
//! This list of them bounds their number and size. It knows keys and sizes; it must not know a draft's
//! layout, which is the business of `entry`, nor when one begins and ends, which sessions and maintenance
//! decide.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Length in bytes from which changed values become drafts; shorter ones are decoded and encoded in a few
/// microseconds.
pub(crate) const LEAST_EDITED: usize = 4 << 10;
/// Length in bytes from which values that are only read in parts become drafts.
pub(crate) const LEAST_READ: usize = 64 << 10;
/// Seconds after its last use for which a draft is kept.
pub(crate) const IDLE_SECONDS: u32 = 10;

/// Most drafts at once.
const MOST: usize = 4096;
/// Divisor of `max_memory` that gives the most bytes of drafts; without that limit, the most bytes.
const MEMORY_SHARE: u64 = 8;
const UNLIMITED: u64 = 1 << 30;

/// Statistics of drafts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DraftStats {
    /// Number of drafts.
    pub values: usize,
    /// Bytes that they take.
    pub bytes: usize,
}

/// A listed draft.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) number: u32,
    pub(crate) database: usize,
    pub(crate) key: Box<[u8]>,
    bytes: usize,
}

/// The drafts of a store. Some may have been deleted or overwritten since the last look.
#[derive(Default)]
pub(crate) struct Drafts {
    list: Mutex<List>,
    /// Number of drafts, readable without the lock.
    count: AtomicUsize,
}

#[derive(Default)]
struct List {
    by_number: HashMap<u32, Draft>,
    bytes: usize,
    last_number: u32,
}

impl Drafts {
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Lists a draft of this many bytes, and returns its number; `None` if there are too many by
    /// `max_memory`.
    pub(crate) fn open(&self, database: usize, key: &[u8], bytes: usize, max_memory: u64) -> Option<u32> {
        let mut list = self.list.lock();
        if list.by_number.len() >= MOST || (list.bytes + bytes) as u64 > limit(max_memory) {
            return None;
        }
        let next = |number: &u32| number.wrapping_add(1);
        let number = std::iter::successors(Some(next(&list.last_number)), |number| Some(next(number)))
            .find(|number| !list.by_number.contains_key(number))?;
        list.by_number.insert(number, Draft { number, database, key: key.into(), bytes });
        list.bytes += bytes;
        list.last_number = number;
        self.count.store(list.by_number.len(), Ordering::Relaxed);
        Some(number)
    }

    /// Updates the size of a draft, unless that is too much by `max_memory`; returns whether it did.
    pub(crate) fn resize(&self, number: u32, bytes: usize, max_memory: u64) -> bool {
        let mut list = self.list.lock();
        let Some(draft) = list.by_number.get(&number) else { return false };
        let total = list.bytes - draft.bytes + bytes;
        if total as u64 > limit(max_memory) {
            return false;
        }
        list.bytes = total;
        list.by_number.entry(number).and_modify(|draft| draft.bytes = bytes);
        true
    }

    /// Removes a draft from the list.
    pub(crate) fn close(&self, number: u32) {
        let mut list = self.list.lock();
        let bytes = list.by_number.remove(&number).map_or(0, |draft| draft.bytes);
        list.bytes -= bytes;
        self.count.store(list.by_number.len(), Ordering::Relaxed);
    }

    /// Applies an exchange of two databases.
    pub(crate) fn swapped(&self, first: usize, second: usize) {
        for draft in self.list.lock().by_number.values_mut() {
            draft.database = match draft.database {
                database if database == first => second,
                database if database == second => first,
                database => database,
            };
        }
    }

    /// Returns all listed drafts.
    pub(crate) fn listed(&self) -> Vec<Draft> {
        self.list.lock().by_number.values().cloned().collect()
    }

    pub(crate) fn stats(&self) -> DraftStats {
        let list = self.list.lock();
        DraftStats { values: list.by_number.len(), bytes: list.bytes }
    }
}

/// Returns the bytes that all drafts together may take.
fn limit(max_memory: u64) -> u64 {
    if max_memory == 0 { UNLIMITED } else { max_memory / MEMORY_SHARE }
}

/// Returns the capacity for a value that has grown to `len` bytes, and will probably grow again.
pub(crate) fn roomy(len: usize) -> usize {
    const MOST_SPARE: usize = 1 << 20;
    len + len.min(MOST_SPARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_take_no_more_than_their_share_of_the_memory() {
        let drafts = Drafts::default();
        let first = drafts.open(0, b"one", 600, 8_000).expect("there is room");
        assert_eq!(drafts.open(0, b"two", 600, 8_000), None);
        assert!(!drafts.resize(first, 1_001, 8_000));
        assert!(drafts.resize(first, 400, 8_000));
        let second = drafts.open(0, b"two", 600, 8_000).expect("there is room");
        assert_eq!(drafts.stats(), DraftStats { values: 2, bytes: 1_000 });
        drafts.close(first);
        drafts.close(first);
        assert_eq!(drafts.stats(), DraftStats { values: 1, bytes: 600 });
        assert!(!drafts.resize(first, 1, 0), "it is not listed any more");
        drafts.close(second);
        assert!(drafts.is_empty());
    }

    #[test]
    fn there_are_only_so_many_drafts() {
        let drafts = Drafts::default();
        let opened = (0..2 * MOST).filter(|_| drafts.open(0, b"key", 1, 0).is_some()).count();
        assert_eq!(opened, MOST);
    }

    #[test]
    fn drafts_go_with_their_databases() {
        let drafts = Drafts::default();
        drafts.open(1, b"one", 1, 0).expect("there is room");
        drafts.open(2, b"two", 1, 0).expect("there is room");
        drafts.swapped(1, 3);
        let mut listed: Vec<_> =
            drafts.listed().into_iter().map(|draft| (draft.database, draft.key)).collect();
        listed.sort_unstable();
        assert_eq!(listed, [(2, b"two"[..].into()), (3, b"one"[..].into())]);
    }
}
