//! A list as a sequence of nodes, of which those in the middle are compressed (Valkey's quicklist).
//!
//! - [`fill`]: the greatest size of a node; [`node`]: one node, plain or compressed
//! - [`ends`]: pushing and popping; [`edit`]: changes anywhere; [`reading`]: snapshots for readers
//! - [`compression`]: which nodes are compressed, and when; [`node_cache`]: decoded nodes; [`dirty_nodes`]:
//!   nodes that are not compressed yet since they may change again
//! - [`reencode`]: re-encoding of compressed nodes; [`dictionary_refs`]: the dictionaries that they need
//! - [`stored`]: the form on disk
//! - [`records`]: the interface of a collection
//!
//! A node is a listpack. Those at the ends, as many as the depth says, are plain, so that pushes and pops
//! find them so; the others are records of the codec, compressed or not. Readers take counted handles of the
//! nodes and decode them when the lock is released, and the compressed form is kept. A plain node that a
//! reader holds is copied when it changes, so the reader's does not.
//!
//! The module knows elements and nodes. It must not know keys, commands, nor how a record is decoded, for
//! which it is given a function.

pub(crate) mod compression;
mod dictionary_refs;
pub(crate) mod dirty_nodes;
mod edit;
mod ends;
pub(crate) mod fill;
pub(crate) mod node;
pub(crate) mod node_cache;
pub(crate) mod reading;
mod records;
pub(crate) mod reencode;
pub(crate) mod stored;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use snugly_codec::Record;
use snugly_listpack::{EMPTY_LEN, Listpack, View};

use crate::entry::EntryRef;
use crate::slab::allocation_size;
use crate::values::collection::{Collection, CollectionTotals, NodeError, NodeKey};
use dictionary_refs::NodeDictionaryRefs;
pub use fill::Fill;
use node::{Compressed, Content, Holding, Node, NodeId};
use stored::OnDisk;

/// One end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// In front of the first element.
    Left,
    /// Behind the last one.
    Right,
}

impl End {
    /// Returns the other end.
    pub fn opposite(self) -> End {
        match self {
            End::Left => End::Right,
            End::Right => End::Left,
        }
    }
}

/// Layout of a list's nodes, as of this change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) fill: Fill,
    /// Number of nodes at each end that are not compressed; 0 is all of them.
    pub(crate) depth: usize,
}

impl Layout {
    /// Returns the number of plain nodes at each end.
    fn zone(self) -> usize {
        self.depth.max(1)
    }
}

/// A node that is not plain.
pub(crate) enum Closed<'n> {
    /// A compressed node.
    Compressed(EntryRef<'n>),
    /// A node that is only on disk.
    Stored(NodeKey),
}

/// Makes a plain node of one that is not.
pub(crate) type Open<'o> = &'o mut dyn FnMut(Closed<'_>) -> Result<Listpack, NodeError>;

/// Sums over the contents of a list's nodes.
#[derive(Default)]
struct Contents {
    /// Bytes that they take in memory.
    bytes: usize,
    /// Sums over compressed nodes.
    compressed: Compressed,
    /// Dictionaries that the nodes need.
    dictionary_refs: NodeDictionaryRefs,
}

impl Contents {
    /// A node's content is another one than before, or came, or is there no more.
    fn exchange(&mut self, before: Holding, after: Holding) {
        self.bytes = self.bytes + after.memory - before.memory;
        self.compressed = self.compressed.exchanged(before.compressed, after.compressed);
        self.dictionary_refs.moved(before.dictionary, after.dictionary);
    }
}

/// Elements of a list, in nodes.
#[derive(Default)]
pub(crate) struct Quicklist {
    nodes: VecDeque<Node>,
    /// Number of elements.
    len: u64,
    /// Bytes of all nodes as listpacks.
    raw_bytes: u64,
    contents: Contents,
    /// Whether it has more than what one small listpack holds, or has had until it became much less. Clients are told, and
    /// nothing else depends on it.
    is_large: bool,
    /// Nodes that are to be compressed now.
    due: Vec<NodeId>,
    /// Nodes that wait to be compressed from this change on.
    newly_edited: Vec<NodeId>,
    /// Form on disk, once it is on its way there.
    on_disk: Option<Box<OnDisk>>,
}

impl Quicklist {
    /// Returns the number of elements.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether Valkey would have made a quicklist of it, rather than one listpack.
    pub(crate) fn is_large(&self) -> bool {
        self.is_large
    }

    /// Returns the number of nodes.
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the sums over compressed nodes in memory.
    pub(crate) fn compressed(&self) -> Compressed {
        self.contents.compressed
    }

    /// Bytes of all nodes as listpacks.
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    /// Returns the records of compressed nodes.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.nodes.iter().filter_map(Node::record)
    }

    /// Bytes that the list takes in memory.
    pub(crate) fn memory(&self) -> usize {
        // A counted lock around it, in an allocation of its own.
        let around = size_of::<Collection>() + 2 * size_of::<usize>();
        allocation_size(around)
            + allocation_size(self.nodes.capacity() * size_of::<Node>())
            + allocation_size(self.due.capacity() * size_of::<NodeId>())
            + self.contents.dictionary_refs.memory()
            + self.contents.bytes
    }

    /// Returns the dictionaries that nodes in memory need, by number, with the number of these nodes.
    pub(crate) fn dictionary_refs(&self) -> impl Iterator<Item = (u32, u32)> {
        self.contents.dictionary_refs.iter()
    }

    /// Takes the changes of these numbers since the last call, for the shard's counts.
    pub(crate) fn take_untold_needs(&mut self) -> Vec<(u32, i32)> {
        self.contents.dictionary_refs.take_untold()
    }

    /// Returns the sums for this list alone.
    pub(crate) fn totals(&self) -> CollectionTotals {
        CollectionTotals {
            values: 1,
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

    /// Merges the list into one listpack if it is at most half of the greatest size.
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
        self.decompress(index, open)?;
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
    fn decompress(&mut self, index: usize, open: Open<'_>) -> Result<(), NodeError> {
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

    /// Returns the listpack of a node that is not plain. One from disk may differ from what the directory
    /// says.
    fn opened(&self, index: usize, open: Open<'_>) -> Result<Listpack, NodeError> {
        let (listpack, node) = (open(self.closed(index)?)?, &self.nodes[index]);
        let is_it = listpack.as_bytes().len() == node.raw_len() && listpack.len() == node.len();
        if is_it { Ok(listpack) } else { Err(NodeError::Damaged) }
    }

    /// A node that is not plain.
    fn closed(&self, index: usize) -> Result<Closed<'_>, NodeError> {
        match self.nodes[index].content() {
            Some(Content::Compressed(entry)) => Ok(Closed::Compressed(entry.borrow())),
            _ => self.key_of(index).map(Closed::Stored).ok_or(NodeError::Damaged),
        }
    }

    /// Puts a node in front of that at `index`, or behind the last one.
    fn insert_node(&mut self, index: usize, listpack: Listpack) {
        let id = self.id_between(index);
        self.adopt(index, Node::new(id, listpack));
    }

    /// Puts a node that has its name already there.
    fn adopt(&mut self, index: usize, node: Node) {
        self.contents.exchange(Holding::default(), node.holding());
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

    /// Renumbers the nodes with gaps between the ids.
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

    /// Returns the node that has an element, and the element's index in it.
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
