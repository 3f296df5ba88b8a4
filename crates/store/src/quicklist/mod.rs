//! A list as a sequence of nodes, of which those in the middle are compressed (Valkey's quicklist).
//!
//! - [`fill`]: how large a node may be; [`node`]: one node, plain or packed
//! - [`ends`]: pushing and popping; [`edit`]: changes anywhere; [`reading`]: what a reader takes with it
//! - [`packing`]: which nodes are compressed, and when; [`decoded`]: those that are kept decoded;
//!   [`edited`]: those that are not packed yet since they may change again
//! - [`anew`]: packed nodes that are encoded anew; [`needs`]: the dictionaries that they need
//! - [`stored`]: what a list is on disk
//! - [`List`]: a list that a key has, behind a lock of its own
//!
//! A node is a listpack. Those at the ends, as many as the depth says, are plain, so that pushes and pops find them so;
//! the others are packed: records of the codec, compressed or not. Whoever reads takes counted handles of the nodes and decodes them when the
//! lock is let go; nobody gives up the packed form for it. A plain node that somebody has taken along is copied when it
//! changes, so what a reader has does not.
//!
//! The module knows elements and nodes. It does not know keys, commands, nor how a record is decoded, which it is told.

pub(crate) mod anew;
pub(crate) mod decoded;
mod edit;
pub(crate) mod edited;
mod ends;
pub(crate) mod fill;
mod needs;
pub(crate) mod node;
pub(crate) mod packing;
pub(crate) mod reading;
pub(crate) mod stored;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use snugly_codec::{DecodeError, Record};
use snugly_listpack::{EMPTY_LEN, Listpack, View};
use thiserror::Error;

use crate::memory::allocation_size;
use crate::memory::entry::EntryRef;
pub use fill::Fill;
use needs::Needs;
use node::{Compressed, Content, Holding, Node, NodeId};
use stored::{NodeKey, OnDisk};

/// One end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// In front of the first element.
    Left,
    /// Behind the last one.
    Right,
}

impl End {
    /// The other end.
    pub fn opposite(self) -> End {
        match self {
            End::Left => End::Right,
            End::Right => End::Left,
        }
    }
}

/// How the nodes of a list are laid out, as of this change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) fill: Fill,
    /// How many nodes at each end are not compressed; 0 is all of them.
    pub(crate) depth: usize,
}

impl Layout {
    /// How many nodes at each end are plain.
    fn zone(self) -> usize {
        self.depth.max(1)
    }
}

/// A node that is not plain.
pub(crate) enum Closed<'n> {
    /// It is packed.
    Packed(EntryRef<'n>),
    /// It is only on disk.
    Stored(NodeKey),
}

/// Makes a plain node of one that is not.
pub(crate) type Open<'o> = &'o mut dyn FnMut(Closed<'_>) -> Result<Listpack, NodeError>;

/// Why a node cannot be read.
#[derive(Debug, Error)]
pub(crate) enum NodeError {
    #[error(transparent)]
    Undecodable(#[from] DecodeError),
    /// On disk it is not there, or not what was written.
    #[error("a node is damaged on disk")]
    Damaged,
    #[error("{0}")]
    Disk(String),
}

/// The list of one key. Its lock is taken while that of the key's shard is held, and never the other way round.
pub(crate) struct List {
    quicklist: Mutex<Quicklist>,
}

impl List {
    pub(crate) fn new(quicklist: Quicklist) -> Arc<List> {
        Arc::new(List { quicklist: Mutex::new(quicklist) })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Quicklist> {
        self.quicklist.lock()
    }

    /// Bytes that it takes beside the entry of its key.
    pub(crate) fn memory(&self) -> usize {
        self.lock().memory()
    }
}

/// What several lists take together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListTotals {
    /// How many lists there are.
    pub lists: u64,
    /// How many elements they have.
    pub elements: u64,
    /// How many nodes they have.
    pub nodes: u64,
    /// How many of them have others on both sides, and so may be compressed.
    pub inner_nodes: u64,
    /// Bytes of all nodes, uncompressed.
    pub raw_bytes: u64,
    /// How many nodes in memory are compressed.
    pub compressed_nodes: u64,
    /// Bytes of these, uncompressed.
    pub compressed_raw_bytes: u64,
    /// Bytes of these, compressed.
    pub compressed_bytes: u64,
    /// Bytes that the lists take in memory, those of their keys not included.
    pub memory: u64,
}

impl ListTotals {
    fn combine(self, other: ListTotals, combine: fn(u64, u64) -> u64) -> ListTotals {
        ListTotals {
            lists: combine(self.lists, other.lists),
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

    pub(crate) fn plus(self, other: ListTotals) -> ListTotals {
        self.combine(other, u64::wrapping_add)
    }

    pub(crate) fn minus(self, other: ListTotals) -> ListTotals {
        self.combine(other, u64::wrapping_sub)
    }
}

/// What the contents of a list's nodes are together.
#[derive(Default)]
struct Contents {
    /// Bytes that they take in memory.
    bytes: usize,
    /// Those that are compressed.
    compressed: Compressed,
    /// The dictionaries that they need.
    needs: Needs,
}

impl Contents {
    /// A node's content is another one than before, or came, or is there no more.
    fn exchange(&mut self, before: Holding, after: Holding) {
        self.bytes = self.bytes + after.memory - before.memory;
        self.compressed = self.compressed.exchanged(before.compressed, after.compressed);
        self.needs.moved(before.dictionary, after.dictionary);
    }
}

/// The elements of a list, in nodes.
#[derive(Default)]
pub(crate) struct Quicklist {
    nodes: VecDeque<Node>,
    /// How many elements there are.
    len: u64,
    /// Bytes of all nodes as listpacks.
    raw_bytes: u64,
    contents: Contents,
    /// Whether it has more than what one small listpack holds, or has had until it became much less. Clients are told, and
    /// nothing else depends on it.
    is_large: bool,
    /// Nodes that are to be packed now.
    due: Vec<NodeId>,
    /// Nodes that wait to be packed from this change on.
    newly_edited: Vec<NodeId>,
    /// What is known of it on disk, once it is on its way there.
    on_disk: Option<Box<OnDisk>>,
}

impl Quicklist {
    /// How many elements there are.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether Valkey would have made a quicklist of it, rather than one listpack.
    pub(crate) fn is_large(&self) -> bool {
        self.is_large
    }

    /// How many nodes there are.
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Those in memory that are compressed.
    pub(crate) fn compressed(&self) -> Compressed {
        self.contents.compressed
    }

    /// Bytes of all nodes as listpacks.
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    /// The records of those that are compressed.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.nodes.iter().filter_map(Node::record)
    }

    /// Bytes that the list takes in memory.
    pub(crate) fn memory(&self) -> usize {
        // A counted lock around it, in an allocation of its own.
        let around = size_of::<List>() + 2 * size_of::<usize>();
        allocation_size(around)
            + allocation_size(self.nodes.capacity() * size_of::<Node>())
            + allocation_size(self.due.capacity() * size_of::<NodeId>())
            + self.contents.needs.memory()
            + self.contents.bytes
    }

    /// The dictionaries that nodes in memory need, by number, and how many nodes that are.
    pub(crate) fn needs(&self) -> impl Iterator<Item = (u32, u32)> {
        self.contents.needs.iter()
    }

    /// By how much these numbers have grown since the shard was told the last time.
    pub(crate) fn take_untold_needs(&mut self) -> Vec<(u32, i32)> {
        self.contents.needs.take_untold()
    }

    /// What this one takes.
    pub(crate) fn totals(&self) -> ListTotals {
        ListTotals {
            lists: 1,
            elements: self.len,
            nodes: self.nodes.len() as u64,
            inner_nodes: self.nodes.len().saturating_sub(2) as u64,
            raw_bytes: self.raw_bytes,
            compressed_nodes: self.contents.compressed.nodes,
            compressed_raw_bytes: self.contents.compressed.raw_bytes,
            compressed_bytes: self.contents.compressed.bytes,
            memory: self.memory() as u64,
        }
    }

    /// Becomes what Valkey calls a quicklist if so much more does not fit one listpack, whether or not it is added then.
    pub(crate) fn expect(&mut self, more_bytes: usize, more_elements: usize, fill: Fill) {
        // A list that is yet to get its first element has an empty listpack there.
        let bytes = (self.raw_bytes as usize).max(EMPTY_LEN) + more_bytes;
        self.is_large |= !fill.holds(bytes, self.len as usize + more_elements);
    }

    /// Is one listpack again if it is at most half of what one may be.
    pub(crate) fn shrunk(&mut self, fill: Fill) {
        if self.nodes.len() <= 1 {
            self.is_large &= !fill.holds_twice(self.raw_bytes as usize, self.len as usize);
        }
    }

    /// Changes a node as a listpack; it counts as changed from then on.
    fn change<R>(
        &mut self,
        index: usize,
        open: Open<'_>,
        change: impl FnOnce(&mut Listpack) -> R,
    ) -> Result<R, NodeError> {
        self.unpack(index, open)?;
        let node = &mut self.nodes[index];
        let before = (node.memory(), node.len() as u64, node.raw_len() as u64);
        let result = node.change(change);
        self.contents.bytes = self.contents.bytes + node.memory() - before.0;
        self.len = self.len + node.len() as u64 - before.1;
        self.raw_bytes = self.raw_bytes + node.raw_len() as u64 - before.2;
        let row = node.forget_row();
        self.note_gone(row);
        Ok(result)
    }

    /// Makes a node plain.
    fn unpack(&mut self, index: usize, open: Open<'_>) -> Result<(), NodeError> {
        if self.nodes[index].plain().is_some() {
            return Ok(());
        }
        let listpack = Arc::new(self.opened(index, open)?);
        let node = &mut self.nodes[index];
        let before = node.holding();
        node.keep(Content::Plain(listpack));
        let after = node.holding();
        self.contents.exchange(before, after);
        Ok(())
    }

    /// Shows the elements of a node.
    fn view<R>(
        &self,
        index: usize,
        open: Open<'_>,
        show: impl FnOnce(View<'_>) -> R,
    ) -> Result<R, NodeError> {
        match self.nodes[index].plain() {
            Some(listpack) => Ok(show(listpack.view())),
            None => Ok(show(self.opened(index, open)?.view())),
        }
    }

    /// The listpack of a node that is not plain. What is on disk may not be what the directory says.
    fn opened(&self, index: usize, open: Open<'_>) -> Result<Listpack, NodeError> {
        let (listpack, node) = (open(self.closed(index)?)?, &self.nodes[index]);
        let is_it = listpack.as_bytes().len() == node.raw_len() && listpack.len() == node.len();
        if is_it { Ok(listpack) } else { Err(NodeError::Damaged) }
    }

    /// A node that is not plain.
    fn closed(&self, index: usize) -> Result<Closed<'_>, NodeError> {
        match self.nodes[index].content() {
            Some(Content::Packed(entry)) => Ok(Closed::Packed(entry.borrow())),
            _ => self.key_of(index).map(Closed::Stored).ok_or(NodeError::Damaged),
        }
    }

    /// Puts a node in front of that at `index`, or behind the last one.
    fn insert_node(&mut self, index: usize, listpack: Listpack) {
        let id = self.id_between(index);
        let node = Node::new(id, listpack);
        self.contents.bytes += node.memory();
        self.len += node.len() as u64;
        self.raw_bytes += node.raw_len() as u64;
        if self.nodes.len() == self.nodes.capacity() {
            // By a quarter, where the deque would double.
            self.nodes.reserve_exact(self.nodes.len() / 4 + 1);
        }
        self.nodes.insert(index, node);
    }

    fn remove_node(&mut self, index: usize) {
        self.remove_nodes(index..index + 1);
    }

    fn remove_nodes(&mut self, range: Range<usize>) {
        let mut gone = Vec::new();
        for node in self.nodes.drain(range) {
            let held = node.holding();
            self.contents.exchange(held, Holding::default());
            self.len -= node.len() as u64;
            self.raw_bytes -= node.raw_len() as u64;
            gone.extend((node.row() != 0).then_some(node.row()));
        }
        gone.into_iter().for_each(|row| self.note_gone(row));
        if self.nodes.len() < self.nodes.capacity() / 4 {
            self.nodes.shrink_to(self.nodes.len() * 2);
        }
    }

    fn id_between(&mut self, index: usize) -> NodeId {
        let before = index.checked_sub(1).and_then(|before| self.nodes.get(before)).map(Node::id);
        let after = self.nodes.get(index).map(Node::id);
        NodeId::between(before, after).unwrap_or_else(|| {
            self.renumber();
            self.id_between(index)
        })
    }

    /// Gives the nodes ids with room between them.
    fn renumber(&mut self) {
        let mut last = None;
        let mut first = true;
        for node in &mut self.nodes {
            let id = if first {
                NodeId::lowest()
            } else {
                NodeId::between(last, None).unwrap_or(NodeId::lowest())
            };
            node.set_id(id);
            (last, first) = (Some(id), false);
        }
        (self.due, self.newly_edited) = (Vec::new(), Vec::new());
        self.release_all_edited();
        if let Some(on_disk) = &mut self.on_disk {
            on_disk.renamed(&self.nodes);
        }
    }

    fn index_of(&self, id: NodeId) -> Option<usize> {
        self.nodes.binary_search_by_key(&id, Node::id).ok()
    }

    /// The node that has an element, and where in it that is.
    fn locate(&self, index: u64) -> Option<(usize, usize)> {
        if index >= self.len {
            return None;
        }
        if index < self.len / 2 {
            let mut left = index;
            for (number, node) in self.nodes.iter().enumerate() {
                if left < node.len() as u64 {
                    return Some((number, left as usize));
                }
                left -= node.len() as u64;
            }
        } else {
            let mut left = self.len - index;
            for (number, node) in self.nodes.iter().enumerate().rev() {
                if left <= node.len() as u64 {
                    return Some((number, node.len() - left as usize));
                }
                left -= node.len() as u64;
            }
        }
        None
    }
}
