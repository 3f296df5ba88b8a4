//! A change on its way to the disk.

use std::sync::Arc;

use super::collections::Pinned;
use super::row::Generation;
use crate::entry::Entry;

/// A queued change.
#[derive(Clone)]
pub(crate) enum Item {
    Change(Change),
    /// Generations of the databases from here on, by database number.
    Generations {
        generations: Arc<[Generation]>,
        /// Whether all data goes with it, so that no dictionary is used for new values any more.
        all_gone: bool,
        /// Whether it must reach the disk together with other changes.
        in_group: bool,
    },
    /// New row of a dictionary, in front of every change that needs it; `None` removes it.
    Dictionary {
        number: u32,
        row: Option<Arc<[u8]>>,
    },
    /// Dictionaries that new values are encoded with from here on.
    ActiveDictionaries(Arc<[u32]>),
    /// Row with the progress of loading from a file; `None` removes it.
    Load(Option<Arc<[u8]>>),
}

/// A new entry of a key; a tombstone deletes it.
#[derive(Clone)]
pub(crate) struct Change {
    pub(crate) generation: Generation,
    pub(crate) entry: Entry,
    /// Expiry of the entry at that time, since it can be changed in place.
    pub(crate) expiry: Option<u64>,
    /// Whether it must reach the disk together with other changes.
    pub(crate) in_group: bool,
    /// Memory, besides the entry, that must stay until the change is on disk.
    pub(crate) _holds: Option<Pinned>,
}
