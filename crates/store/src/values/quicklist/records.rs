//! A list as what the rest of the store asks of any collection.

use std::sync::Arc;

use super::node::NodeId;
use super::{Layout, Quicklist};
use crate::entry::{Access, Entry};
use crate::values::collection::{
    Captured, Collection, CollectionTotals, Found, NodeError, NodeImage, NodeKey, Records,
};

impl Records for Quicklist {
    fn memory(&self) -> usize {
        Quicklist::memory(self)
    }

    fn totals(&self) -> CollectionTotals {
        Quicklist::totals(self)
    }

    fn dictionary_refs(&self) -> Vec<(u32, u32)> {
        Quicklist::dictionary_refs(self).collect()
    }

    fn take_untold_needs(&mut self) -> Vec<(u32, i32)> {
        Quicklist::take_untold_needs(self)
    }

    fn capture(&mut self, key: &[u8], expiry: Option<u64>, access: Access) -> Captured {
        Quicklist::capture(self, key, expiry, access)
    }

    fn shed(&mut self, need: usize) -> usize {
        Quicklist::shed(self, need)
    }

    fn relocate(&mut self) -> Vec<Entry> {
        Quicklist::relocate(self)
    }

    fn fork(
        &self,
        read: &mut dyn FnMut(NodeKey) -> Result<Entry, NodeError>,
    ) -> Result<Arc<Collection>, NodeError> {
        Quicklist::fork(self, read).map(Collection::of_list)
    }

    fn images(&self) -> Vec<NodeImage> {
        Quicklist::images(self)
    }

    fn compressed_from(
        &self,
        from: Option<NodeId>,
        count: usize,
        layout: Layout,
    ) -> (Vec<Found>, Option<NodeId>) {
        Quicklist::compressed_from(self, from, count, layout)
    }

    fn reencode(&mut self, found: &Found, compressed: Entry) -> bool {
        Quicklist::reencode(self, found, compressed)
    }
}
