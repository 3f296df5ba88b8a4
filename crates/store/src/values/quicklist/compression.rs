//! Compression of nodes: which ones, and when.
//!
//! A node that leaves the zone of an end is encoded by the session that made it leave, after the lock is
//! released: compressed, or as it is where lists are not compressed or it does not get smaller, which still
//! takes less room than a vector that has grown. A node changed in the middle stays plain until many others
//! have been changed, in this list or another, so that successive changes of one place cost no compression.

use std::sync::Arc;

use snugly_listpack::Listpack;

use super::node::{Edited, Node, NodeId, plain_memory};
use super::{Layout, Open, Quicklist};
use crate::entry::Entry;

/// Smaller listpacks are not worth trying, in bytes (Valkey's MIN_COMPRESS_BYTES).
const MIN_BYTES: usize = 48;

/// A node that is to be compressed.
pub(crate) struct Due {
    id: NodeId,
    listpack: Arc<Listpack>,
}

impl Due {
    /// Returns the name of the node in its list.
    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    /// Returns the bytes to encode.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.listpack.as_bytes()
    }

    /// Bytes that it takes as it is.
    pub(crate) fn memory(&self) -> usize {
        plain_memory(&self.listpack)
    }
}

impl Quicklist {
    /// Returns the next node to compress.
    pub(crate) fn next_due(&mut self, layout: Layout) -> Option<Due> {
        while let Some(id) = self.due.pop() {
            if let Some(index) = self.index_of(id)
                && self.is_inside(index, layout)
                && let Some(listpack) = self.nodes[index].plain()
            {
                return Some(Due { id, listpack: listpack.clone() });
            }
        }
        None
    }

    /// Replaces a node by its compressed form, unless it has changed since it was due; `None` says that it
    /// does not become smaller.
    pub(crate) fn compress(&mut self, due: Due, compressed: Option<Entry>) {
        let Some(index) = self.index_of(due.id) else { return };
        let node = &mut self.nodes[index];
        if node.plain().is_some_and(|current| Arc::ptr_eq(current, &due.listpack)) {
            let before = node.holding();
            node.compress(compressed);
            let after = node.holding();
            self.contents.exchange(before, after);
        }
    }

    /// Returns whether a node is between the zones of both ends.
    pub(super) fn is_inside(&self, index: usize, layout: Layout) -> bool {
        index >= layout.zone() && index + layout.zone() < self.nodes.len()
    }

    fn is_compressible(&self, index: usize, layout: Layout) -> bool {
        let is_worth_it = |index: usize| {
            let node = &self.nodes[index];
            node.plain().is_some() && !node.is_incompressible() && node.raw_len() >= MIN_BYTES
        };
        self.is_inside(index, layout) && is_worth_it(index)
    }

    /// Marks nodes for compression that have left a zone because a node was added at `index`.
    pub(super) fn review_around(&mut self, index: usize, layout: Layout) {
        let behind_zone = (self.nodes.len() - 1).checked_sub(layout.zone());
        for candidate in [Some(index), Some(layout.zone()), behind_zone].into_iter().flatten() {
            if candidate < self.nodes.len() {
                self.review(candidate, layout);
            }
        }
    }

    /// Marks a node for compression if it is to be compressed.
    pub(super) fn review(&mut self, index: usize, layout: Layout) {
        if self.is_compressible(index, layout) {
            let id = self.nodes[index].id();
            // One that is named twice is compressed once.
            if self.due.last() != Some(&id) && self.nodes[index].edited() == Edited::No {
                self.due.push(id);
            }
        }
    }

    /// Notes that a node was changed in the middle: it waits to be compressed, or where lists are not compressed, it stays plain,
    /// since there is little to gain.
    pub(super) fn note_edited(&mut self, index: usize, layout: Layout) {
        if layout.depth == 0 || !self.is_compressible(index, layout) {
            return;
        }
        let node = &mut self.nodes[index];
        if node.edited() == Edited::No {
            node.set_edited(Edited::Once);
            self.newly_edited.push(node.id());
        } else {
            node.set_edited(Edited::Again);
        }
    }

    /// Notes all waiting nodes as if they were changed only now: the list has got another key.
    pub(crate) fn wait_anew(&mut self) {
        let waiting = self.nodes.iter().filter(|node| node.edited() != Edited::No);
        self.newly_edited = waiting.map(Node::id).collect();
    }

    /// Nodes that wait to be compressed since this was asked for the last time, and their bytes.
    pub(crate) fn take_newly_edited(&mut self) -> Vec<(NodeId, usize)> {
        let ids = std::mem::take(&mut self.newly_edited);
        let memory = |id| self.index_of(id).map_or(0, |index| self.nodes[index].memory());
        ids.into_iter().map(|id| (id, memory(id))).collect()
    }

    /// Marks a waiting node for compression; if it was changed again meanwhile, returns that it must wait
    /// once more, unless its memory is wanted at once.
    pub(crate) fn release_edited(&mut self, id: NodeId, at_once: bool) -> bool {
        let Some(node) = self.index_of(id).map(|index| &mut self.nodes[index]) else { return false };
        match node.edited() {
            Edited::No => false,
            Edited::Again if !at_once => {
                node.set_edited(Edited::Once);
                true
            }
            Edited::Once | Edited::Again => {
                node.set_edited(Edited::No);
                self.due.push(id);
                false
            }
        }
    }

    /// Marks all waiting nodes for compression.
    pub(super) fn release_all_edited(&mut self) {
        for node in self.nodes.iter_mut().filter(|node| node.edited() != Edited::No) {
            node.set_edited(Edited::No);
            self.due.push(node.id());
        }
    }

    /// Moves compressed nodes that stand in sparse pages to fuller ones; returns their former places.
    pub(crate) fn relocate(&mut self) -> Vec<Entry> {
        self.nodes.iter_mut().filter_map(Node::relocate).collect()
    }

    /// Makes nodes plain that have come into a zone. One that cannot be read stays as it is; its readers get
    /// the error.
    pub(super) fn keep_ends_plain(&mut self, layout: Layout, open: Open<'_>) {
        let len = self.nodes.len();
        let zone = layout.zone().min(len);
        for index in (0..zone).chain(len - zone..len) {
            // An error shows again when the node is read.
            let _ = self.decompress(index, open);
        }
    }
}
