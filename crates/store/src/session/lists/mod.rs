//! Lists: whoever reads takes handles of nodes and decodes them without a lock; whoever changes one does so under it, and
//! packs what is to be packed afterwards.
//!
//! - `read`: looking, `change`: changing, `nodes`: nodes to records and back
//! - `anew`: nodes that are to have another dictionary

mod anew;
mod change;
mod nodes;
mod read;

use std::ops::Range;

use snugly_codec::Choice;

use crate::quicklist::node::Content;
use crate::quicklist::{Fill, Layout, Quicklist};

/// How lists are laid out and compressed.
#[derive(Clone, Copy, Debug)]
pub struct ListSettings {
    /// How large a node may be; by default 8 KiB.
    pub max_listpack_size: Fill,
    /// How many nodes at each end are not compressed; by default 1. With 0, none is.
    pub compress_depth: usize,
    /// How the others are compressed; by default lz4, or lzf where that is not built in. None does not compress them.
    pub compress_codec: Option<Choice>,
    /// How many bytes decoded nodes may take that are kept for those who read them again, and again as many those that wait
    /// to be packed since they were changed; by default 4 MiB.
    pub cache_bytes: u64,
}

impl Default for ListSettings {
    fn default() -> ListSettings {
        ListSettings {
            max_listpack_size: Fill::DEFAULT,
            compress_depth: 1,
            compress_codec: Some(Choice::new("lz4", None, 0).unwrap_or(Choice::lzf(0))),
            cache_bytes: 4 << 20,
        }
    }
}

impl ListSettings {
    /// How nodes between the ends are compressed, if they are.
    pub(crate) fn node_codec(&self) -> Option<Choice> {
        self.compress_codec.filter(|_| self.compress_depth > 0)
    }

    pub(super) fn layout(&self) -> Layout {
        let depth = if self.compress_codec.is_some() { self.compress_depth } else { 0 };
        Layout { fill: self.max_listpack_size, depth }
    }
}

/// How a list is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListStats {
    /// How many elements there are.
    pub elements: u64,
    /// Whether Valkey would call it a quicklist, and not a listpack.
    pub is_large: bool,
    /// How many nodes there are.
    pub nodes: usize,
    /// How many of them are compressed.
    pub compressed_nodes: usize,
    /// The codec of the first of these.
    pub codec: Option<&'static str>,
    /// How many of the compressed nodes need a dictionary.
    pub dictionary_nodes: usize,
    /// The number of the one that the most of them need.
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
            dictionary: list.needs().max_by_key(|(_, nodes)| *nodes).map(|(number, _)| number),
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
}

/// Nodes, and which of their elements.
type Nodes = Vec<(Content, Range<usize>)>;

impl Elements {
    /// How many there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|(_, elements)| elements.len()).sum()
    }

    /// How many bytes each of the nodes has as a listpack.
    pub fn node_lens(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().map(|(content, _)| content.raw_len())
    }
}

/// What came of replacing an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListSet {
    /// There is no such list.
    NoList,
    /// It has no such element.
    OutOfRange,
    /// It was replaced.
    Replaced,
}

/// What came of inserting an element beside another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// There is no such list.
    NoList,
    /// It does not have the other one.
    NoPivot,
    /// It was inserted; the list has so many elements now.
    Of(u64),
}

/// Where an element is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// From which match on: 1 is the first, -1 the last, from where it goes to the front. Not 0.
    pub rank: i64,
    /// How many matches are wanted; 0 is all.
    pub count: u64,
    /// How many elements are looked at; 0 is all.
    pub max_len: u64,
}

impl Search {
    /// How many elements of a list of this length are looked at.
    fn looked_at(self, len: u64) -> u64 {
        if self.max_len == 0 { len } else { self.max_len.min(len) }
    }
}
