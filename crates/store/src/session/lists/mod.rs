//! Lists: readers take handles of nodes and decode them without a lock; writers change a list under its lock,
//! and compress nodes afterwards.
//!
//! - `read`: reading, `change`: changing, `nodes`: encoding and decoding of nodes
//! - `reencode`: re-encoding of nodes with another dictionary

mod change;
mod nodes;
mod read;
mod reencode;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use snugly_codec::Dictionary;

use crate::memory::shard::Shard;
use crate::values::quicklist::node::Content;
use crate::values::quicklist::{End, Quicklist};

/// Changes the list in a place of a shard; `None` if there is none.
fn with_list<R>(
    shard: &mut Shard,
    database: usize,
    index: usize,
    change: impl FnOnce(&mut Quicklist) -> R,
) -> Option<R> {
    shard.with_collection(database, index, |collection| collection.list().map(change)).flatten()
}

/// Statistics of a list's storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListStats {
    /// Number of elements.
    pub elements: u64,
    /// Whether Valkey would call it a quicklist, and not a listpack.
    pub is_large: bool,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of compressed nodes.
    pub compressed_nodes: usize,
    /// Codec of the first compressed node.
    pub codec: Option<&'static str>,
    /// Number of compressed nodes that need a dictionary.
    pub dictionary_nodes: usize,
    /// Number of the dictionary that most of these need.
    pub dictionary: Option<u32>,
    /// Bytes of all nodes, uncompressed.
    pub raw_bytes: u64,
    /// Bytes of all nodes as they are stored.
    pub stored_bytes: u64,
    /// Bytes that the list takes in memory, those of its key not included.
    pub memory: usize,
}

impl ListStats {
    pub(super) fn of(list: &Quicklist) -> ListStats {
        let compressed = list.compressed();
        ListStats {
            elements: list.len(),
            is_large: list.is_large(),
            nodes: list.node_count(),
            compressed_nodes: compressed.nodes as usize,
            codec: list.records().next().map(|record| record.codec().name()),
            dictionary_nodes: list.records().filter(|record| record.dictionary().is_some()).count(),
            dictionary: list.dictionary_refs().max_by_key(|(_, nodes)| *nodes).map(|(number, _)| number),
            raw_bytes: list.raw_bytes(),
            stored_bytes: list.raw_bytes() - compressed.raw_bytes + compressed.bytes,
            memory: list.memory(),
        }
    }
}

/// Elements of a list as they were when they were asked for, still as they are stored. [`Session::show`] shows them.
///
/// [`Session::show`]: crate::Session::show
pub struct Elements {
    key: Box<[u8]>,
    pieces: Nodes,
    order: Order,
}

/// Elements that can be read however long they are kept, whatever becomes of the list and of its dictionaries: what waits
/// to be sent. [`Session::next_elements`] shows them.
///
/// [`Session::next_elements`]: crate::Session::next_elements
pub struct KeptElements {
    key: Box<[u8]>,
    /// Pieces still to be shown.
    pieces: VecDeque<(Content, Range<usize>)>,
    order: Order,
    /// Dictionaries of the nodes, by number.
    dictionaries: BTreeMap<u32, Arc<Dictionary>>,
}

impl KeptElements {
    /// Bytes that the nodes take which are still to be shown, as they are stored; of nodes that others hold, too, a part.
    pub fn memory_share(&self) -> usize {
        self.pieces.iter().map(|(content, _)| content.memory_share()).sum()
    }
}

/// Nodes in the order in which they are shown, and which of their elements.
type Nodes = Vec<(Content, Range<usize>)>;

/// Direction in which the elements of a node are shown.
#[derive(Clone, Copy)]
enum Order {
    Forwards,
    Backwards,
}

impl Order {
    /// Returns the order from this end of a list to the other.
    fn from(end: End) -> Order {
        match end {
            End::Left => Order::Forwards,
            End::Right => Order::Backwards,
        }
    }
}

impl Elements {
    /// Returns the number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|(_, elements)| elements.len()).sum()
    }

    /// Returns the length of each node as a listpack, in bytes.
    pub fn node_lens(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().map(|(content, _)| content.raw_len())
    }
}

/// Outcome of taking elements from an end.
pub enum Popped {
    /// There is no such list.
    NoList,
    /// The elements were shown.
    Shown,
    /// The elements are too long to be shown at once, so they are returned, the outermost first.
    Given(Elements),
}

/// Result of replacing an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListSet {
    /// There is no such list.
    NoList,
    /// The list has no such element.
    OutOfRange,
    /// The element was replaced.
    Replaced,
}

/// Result of inserting an element beside another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// There is no such list.
    NoList,
    /// The list does not have the pivot.
    NoPivot,
    /// The element was inserted; the list has this many elements now.
    Of(u64),
}

/// Parameters of a search for an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// Rank of the first match to return: 1 is the first, -1 the last, from where it goes to the front. Not
    /// 0.
    pub rank: i64,
    /// Number of matches wanted; 0 is all.
    pub count: u64,
    /// Number of elements looked at; 0 is all.
    pub max_len: u64,
}

impl Search {
    /// Returns the number of elements looked at in a list of this length.
    fn looked_at(self, len: u64) -> u64 {
        if self.max_len == 0 { len } else { self.max_len.min(len) }
    }
}
