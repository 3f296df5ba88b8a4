//! Values that are made of records: what memory, disk, sessions and maintenance ask of one, whatever kind it is.
//!
//! A kind implements [`Records`], and has a row in each of [`Collection`], [`Guard`] and [`Directory`].

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use snugly_codec::{DecodeError, Record};
use thiserror::Error;

use super::kind::Kind;
use super::quicklist::node::{Content, NodeId};
use super::quicklist::reading::Source;
use super::quicklist::{Layout, Quicklist, stored};
use crate::entry::{Access, Entry};

/// Value that is made of records, each a node of it.
pub(crate) trait Records {
    /// Bytes that it takes in memory beside the entry of its key.
    fn memory(&self) -> usize;

    /// Sums over its nodes.
    fn totals(&self) -> CollectionTotals;

    /// Returns the dictionaries that nodes in memory need, by number, with the number of these nodes.
    fn dictionary_refs(&self) -> Vec<(u32, u32)>;

    /// Takes the changes of these numbers since the last call, for the shard's counts.
    fn take_untold_needs(&mut self) -> Vec<(u32, i32)>;

    /// Changes to be written to disk since the last time. They are on their way there then.
    fn capture(&mut self, key: &[u8], expiry: Option<u64>, access: Access) -> Captured;

    /// Evicts nodes that are on disk and idle, until `need` bytes are free; returns the bytes freed.
    fn shed(&mut self, need: usize) -> usize;

    /// Moves nodes that stand in sparse pages to fuller ones; returns their former places.
    fn relocate(&mut self) -> Vec<Entry>;

    /// Makes another value of the same nodes, on disk not yet.
    ///
    /// # Errors
    /// [`NodeError`] if a node that is only on disk cannot be read.
    fn fork(
        &self,
        read: &mut dyn FnMut(NodeKey) -> Result<Entry, NodeError>,
    ) -> Result<Arc<Collection>, NodeError>;

    /// Returns its nodes as they are now, in order.
    fn images(&self) -> Vec<NodeImage>;

    /// Returns the compressed nodes among the next ones, from a node on or from the first, and the position
    /// to continue from, if there are more.
    fn compressed_from(
        &self,
        from: Option<NodeId>,
        count: usize,
        layout: Layout,
    ) -> (Vec<Found>, Option<NodeId>);

    /// Replaces a node's record by one of the same content, unless the node has changed since it was found;
    /// returns whether it did.
    fn reencode(&mut self, found: &Found, compressed: Entry) -> bool;
}

/// Collection of one key. Its lock is taken while that of the key's shard is held, and never the other way round.
pub(crate) enum Collection {
    List(Mutex<Quicklist>),
}

/// Locked collection.
pub(crate) enum Guard<'a> {
    List(MutexGuard<'a, Quicklist>),
}

impl Collection {
    pub(crate) fn of_list(list: Quicklist) -> Arc<Collection> {
        Arc::new(Collection::List(Mutex::new(list)))
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Collection::List(_) => Kind::List,
        }
    }

    pub(crate) fn lock(&self) -> Guard<'_> {
        match self {
            Collection::List(list) => Guard::List(list.lock()),
        }
    }

    /// Locks and returns the list, if it is one.
    pub(crate) fn list(&self) -> Option<MutexGuard<'_, Quicklist>> {
        match self {
            Collection::List(list) => Some(list.lock()),
        }
    }
}

impl Guard<'_> {
    /// Returns the list, if it is one.
    pub(crate) fn list(&mut self) -> Option<&mut Quicklist> {
        match self {
            Guard::List(list) => Some(list),
        }
    }
}

impl Deref for Guard<'_> {
    type Target = dyn Records;
    fn deref(&self) -> &(dyn Records + 'static) {
        match self {
            Guard::List(list) => &**list,
        }
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut (dyn Records + 'static) {
        match self {
            Guard::List(list) => &mut **list,
        }
    }
}

/// Directory of a collection: it stands for the value on disk, and names its nodes.
pub(crate) enum Directory {
    List(stored::Directory),
}

/// Error of a record that cannot be a value of its kind on disk.
#[derive(Debug)]
pub(crate) struct Malformed;

impl Kind {
    /// Reads what a value of this kind has on disk in the place of its record: a directory, or nothing but the record.
    pub(crate) fn directory(self, record: &[u8]) -> Result<Option<Directory>, Malformed> {
        let record = Record::parse(record).map_err(|_| Malformed)?;
        match self {
            Kind::String => Ok(None),
            Kind::List => {
                let directory = record.as_identity().and_then(stored::Directory::parse);
                directory.map(|directory| Some(Directory::List(directory))).ok_or(Malformed)
            }
        }
    }
}

impl Directory {
    /// Returns the number of the collection, which is unique.
    pub(crate) fn owner(&self) -> u64 {
        match self {
            Directory::List(directory) => directory.list,
        }
    }

    /// Keys of its nodes.
    pub(crate) fn node_keys(&self) -> Vec<NodeKey> {
        match self {
            Directory::List(directory) => directory.node_keys().collect(),
        }
    }

    /// Creates the collection, with no node in memory.
    pub(crate) fn collection(&self) -> Arc<Collection> {
        match self {
            Directory::List(directory) => Collection::of_list(Quicklist::of_directory(directory)),
        }
    }
}

/// Key of a node's record on disk: `owner u64 | row u64`, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeKey {
    /// Number of the collection.
    pub(crate) owner: u64,
    pub(crate) row: u64,
}

impl NodeKey {
    pub(crate) const LEN: usize = 16;

    pub(crate) fn bytes(self) -> [u8; NodeKey::LEN] {
        (u128::from(self.owner) << u64::BITS | u128::from(self.row)).to_be_bytes()
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<NodeKey> {
        let both = u128::from_be_bytes(bytes.try_into().ok()?);
        Some(NodeKey { owner: (both >> u64::BITS) as u64, row: both as u64 })
    }
}

/// Changes of a collection that are to be written to disk.
pub(crate) struct Captured {
    /// Nodes that are new, as records under their keys, and tombstones of those that are gone.
    pub(crate) nodes: Vec<Entry>,
    /// Directory, under the collection's key.
    pub(crate) directory: Entry,
    /// To be dropped when all of that is committed.
    pub(crate) token: Arc<()>,
}

/// Compressed node as it was found.
pub(crate) struct Found {
    /// Name of the node in its collection.
    pub(crate) id: NodeId,
    pub(crate) place: FoundIn,
    /// Whether it is where nodes are compressed.
    pub(crate) is_inside: bool,
}

/// Place of a node's record.
pub(crate) enum FoundIn {
    Memory(Entry),
    Disk(NodeKey),
}

/// A node at one instant, whatever becomes of it.
pub(crate) struct NodeImage {
    pub(crate) source: Source,
    /// Bytes of the node, uncompressed.
    pub(crate) raw_len: usize,
}

impl NodeImage {
    /// Reads the node if it is only on disk.
    ///
    /// # Errors
    /// Errors of `read`.
    pub(crate) fn in_memory(
        self,
        read: &mut dyn FnMut(NodeKey) -> Result<Entry, NodeError>,
    ) -> Result<NodeImage, NodeError> {
        let content = match self.source {
            Source::Memory(content) => content,
            Source::Disk(_, key) => Content::Compressed(read(key)?),
        };
        Ok(NodeImage { source: Source::Memory(content), ..self })
    }
}

/// Reason why a node cannot be read.
#[derive(Debug, Error)]
pub(crate) enum NodeError {
    #[error(transparent)]
    Undecodable(#[from] DecodeError),
    /// On disk it is not there, or not what was written.
    #[error("a node is damaged on disk")]
    Damaged,
    #[error("{0}")]
    Disk(String),
    /// All nodes together, of a value that is to be in memory as a whole, take more than there may be.
    #[error("there is no room for the list in memory")]
    NoRoom,
}

/// Sums over several collections of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectionTotals {
    /// Number of values.
    pub values: u64,
    /// Number of their elements.
    pub elements: u64,
    /// Number of their nodes.
    pub nodes: u64,
    /// Number of nodes with others on both sides, which may be compressed.
    pub inner_nodes: u64,
    /// Bytes of all nodes, uncompressed.
    pub raw_bytes: u64,
    /// Number of compressed nodes in memory.
    pub compressed_nodes: u64,
    /// Bytes of these, uncompressed.
    pub compressed_raw_bytes: u64,
    /// Bytes of these, compressed.
    pub compressed_bytes: u64,
    /// Bytes that the values take in memory, those of their keys not included.
    pub memory: u64,
}

impl CollectionTotals {
    fn combine(self, other: CollectionTotals, combine: fn(u64, u64) -> u64) -> CollectionTotals {
        CollectionTotals {
            values: combine(self.values, other.values),
            elements: combine(self.elements, other.elements),
            nodes: combine(self.nodes, other.nodes),
            inner_nodes: combine(self.inner_nodes, other.inner_nodes),
            raw_bytes: combine(self.raw_bytes, other.raw_bytes),
            compressed_nodes: combine(self.compressed_nodes, other.compressed_nodes),
            compressed_raw_bytes: combine(self.compressed_raw_bytes, other.compressed_raw_bytes),
            compressed_bytes: combine(self.compressed_bytes, other.compressed_bytes),
            memory: combine(self.memory, other.memory),
        }
    }

    pub(crate) fn plus(self, other: CollectionTotals) -> CollectionTotals {
        self.combine(other, u64::wrapping_add)
    }

    pub(crate) fn minus(self, other: CollectionTotals) -> CollectionTotals {
        self.combine(other, u64::wrapping_sub)
    }
}

/// Sums by kind of collection.
#[derive(Clone, Copy, Default)]
pub(crate) struct TotalsByKind {
    lists: CollectionTotals,
}

impl TotalsByKind {
    /// Sums of a kind; none of strings, which are no collections.
    pub(crate) fn of(&self, kind: Kind) -> CollectionTotals {
        match kind {
            Kind::String => CollectionTotals::default(),
            Kind::List => self.lists,
        }
    }

    /// A value of this kind came, went or changed.
    pub(crate) fn exchange(&mut self, kind: Kind, before: CollectionTotals, after: CollectionTotals) {
        match kind {
            Kind::String => {}
            Kind::List => self.lists = self.lists.minus(before).plus(after),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_node_key_is_parsed_as_it_was_written(owner: u64, row: u64) {
            let key = NodeKey { owner, row };
            prop_assert_eq!(NodeKey::parse(&key.bytes()), Some(key));
        }
    }
}
