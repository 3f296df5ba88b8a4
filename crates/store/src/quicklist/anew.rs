//! Packed nodes that are encoded anew: to whoever reads the list, nothing changes.

use super::node::{Content, NodeId};
use super::stored::NodeKey;
use super::{Layout, Quicklist};
use crate::memory::entry::Entry;

/// A packed node as it was found.
pub(crate) struct Found {
    id: NodeId,
    pub(crate) place: FoundIn,
    /// Whether it is between the zones of both ends, where nodes are compressed.
    pub(crate) is_inside: bool,
}

/// Where its record is.
pub(crate) enum FoundIn {
    Memory(Entry),
    Disk(NodeKey),
}

impl Found {
    /// The name of the node in its list.
    pub(crate) fn id(&self) -> NodeId {
        self.id
    }
}

impl Quicklist {
    /// The packed nodes among the next so many, from a node on or from the first; and where to go on, if there are more.
    pub(crate) fn packed_from(
        &self,
        from: Option<NodeId>,
        count: usize,
        layout: Layout,
    ) -> (Vec<Found>, Option<NodeId>) {
        let start = from.map_or(0, |from| self.nodes.partition_point(|node| node.id() < from));
        let end = self.nodes.len().min(start.saturating_add(count));
        let found = |index: usize| {
            let node = &self.nodes[index];
            let place = match node.content() {
                Some(Content::Plain(_)) => return None,
                Some(Content::Packed(entry)) => FoundIn::Memory(entry.clone()),
                None => FoundIn::Disk(self.key_of(index)?),
            };
            Some(Found { id: node.id(), place, is_inside: self.is_inside(index, layout) })
        };
        ((start..end).filter_map(found).collect(), self.nodes.get(end).map(|node| node.id()))
    }

    /// Puts a record of the same elements in the place of that of a node, unless the node has changed since it was found;
    /// says whether it did.
    pub(crate) fn encode_anew(&mut self, found: &Found, packed: Entry) -> bool {
        let Some(index) = self.index_of(found.id) else { return false };
        let is_it = match (&found.place, self.nodes[index].content()) {
            (FoundIn::Memory(old), Some(Content::Packed(current))) => old.same(current.borrow()),
            (FoundIn::Disk(key), Some(Content::Packed(_)) | None) => self.key_of(index) == Some(*key),
            (_, Some(Content::Plain(_))) | (FoundIn::Memory(_), None) => false,
        };
        if is_it {
            let node = &mut self.nodes[index];
            let before = node.holding();
            node.keep(Content::Packed(packed));
            let (after, row) = (node.holding(), node.forget_row());
            self.contents.exchange(before, after);
            self.note_gone(row);
        }
        is_it
    }
}
