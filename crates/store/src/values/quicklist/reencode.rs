//! Re-encoding of compressed nodes: to readers of the list, nothing changes.

use super::node::{Content, NodeId};
use super::{Layout, Quicklist};
use crate::entry::Entry;
use crate::values::collection::{Found, FoundIn};

impl Quicklist {
    /// Returns the compressed nodes among the next ones, from a node on or from the first, and the position
    /// to continue from, if there are more.
    pub(crate) fn compressed_from(
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
                Some(Content::Compressed(entry)) => FoundIn::Memory(entry.clone()),
                None => FoundIn::Disk(self.key_of(index)?),
            };
            Some(Found { id: node.id(), place, is_inside: self.is_inside(index, layout) })
        };
        ((start..end).filter_map(found).collect(), self.nodes.get(end).map(|node| node.id()))
    }

    /// Replaces a node's record by one of the same elements, unless the node has changed since it was found;
    /// returns whether it did.
    pub(crate) fn reencode(&mut self, found: &Found, compressed: Entry) -> bool {
        let Some(index) = self.index_of(found.id) else { return false };
        let is_it = match (&found.place, self.nodes[index].content()) {
            (FoundIn::Memory(old), Some(Content::Compressed(current))) => old.same(current.borrow()),
            (FoundIn::Disk(key), Some(Content::Compressed(_)) | None) => self.key_of(index) == Some(*key),
            (_, Some(Content::Plain(_))) | (FoundIn::Memory(_), None) => false,
        };
        if is_it {
            let node = &mut self.nodes[index];
            let before = node.holding();
            node.keep(Content::Compressed(compressed));
            let (after, row) = (node.holding(), node.forget_row());
            self.contents.exchange(before, after);
            self.note_gone(row);
        }
        is_it
    }
}
