//! Lists that have a plain node in the middle because it was changed: so many at most, whatever lists there are.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// More lists than these do not keep such a node plain: half a megabyte with nodes as they are by default.
const MOST: usize = 64;

/// The lists of a store that have one, by database and key, the longest ago first.
#[derive(Default)]
pub(crate) struct EditedLists(Mutex<VecDeque<(usize, Box<[u8]>)>>);

impl EditedLists {
    /// Notes a list that has one now; gives the one whose turn has come to have it packed.
    pub(crate) fn note(&self, database: usize, key: &[u8]) -> Option<(usize, Box<[u8]>)> {
        let mut lists = self.0.lock();
        lists.push_back((database, key.into()));
        if lists.len() > MOST { lists.pop_front() } else { None }
    }
}
