//! Pushing and popping.

use snugly_listpack::{Element, Listpack};

use super::{End, Layout, NodeError, Open, Quicklist};
use crate::slab::allocation_size;

impl Quicklist {
    /// Adds an element at an end.
    pub(crate) fn push(
        &mut self,
        end: End,
        element: &[u8],
        layout: Layout,
        open: Open<'_>,
    ) -> Result<(), NodeError> {
        let has_room = self.end_node(end).is_some_and(|index| {
            let node = &self.nodes[index];
            !self.is_large || layout.fill.has_room(node.raw_len(), node.len(), element.len())
        });
        let Some(index) = self.end_node(end).filter(|_| has_room) else {
            let mut listpack =
                Listpack::with_capacity(snugly_listpack::EMPTY_LEN + Element::of(element).encoded_len());
            listpack.push_back(element);
            let index = if end == End::Left { 0 } else { self.nodes.len() };
            self.insert_node(index, listpack);
            self.review_around(index, layout);
            return Ok(());
        };
        self.change(index, open, |listpack| {
            make_room(listpack, element);
            match end {
                End::Left => listpack.push_front(element),
                End::Right => listpack.push_back(element),
            }
        })
    }

    /// Adds the elements of another list at an end, in their order and in its nodes.
    pub(crate) fn join(&mut self, end: End, mut other: Quicklist, layout: Layout) {
        let added = other.nodes.len();
        let start = if end == End::Left { 0 } else { self.nodes.len() };
        for (offset, mut node) in std::mem::take(&mut other.nodes).into_iter().enumerate() {
            node.set_id(self.id_between(start + offset));
            self.adopt(start + offset, node);
        }
        // Nodes that were at an end of either list may be compressed now.
        let around =
            start.saturating_sub(layout.zone())..(start + added + layout.zone()).min(self.nodes.len());
        around.for_each(|index| self.review(index, layout));
    }

    /// Takes at most `count` elements from an end, the outermost first.
    pub(crate) fn pop(
        &mut self,
        end: End,
        count: u64,
        layout: Layout,
        open: Open<'_>,
        mut show: impl FnMut(Element<'_>),
    ) -> Result<(), NodeError> {
        let mut left = count.min(self.len) as usize;
        while left > 0
            && let Some(index) = self.end_node(end)
        {
            let here = self.nodes[index].len();
            let taken = left.min(here);
            self.view(index, open, |view| match end {
                End::Left => view.iter().take(taken).for_each(&mut show),
                End::Right => view.iter().rev().take(taken).for_each(&mut show),
            })?;
            self.drop_from(index, end, taken, open)?;
            left -= taken;
        }
        self.keep_ends_plain(layout, open);
        self.shrunk(layout.fill);
        Ok(())
    }

    /// Removes elements at one side of a node, and the node with its last element.
    pub(super) fn drop_from(
        &mut self,
        index: usize,
        end: End,
        count: usize,
        open: Open<'_>,
    ) -> Result<(), NodeError> {
        let here = self.nodes[index].len();
        if count >= here {
            self.remove_node(index);
            return Ok(());
        }
        self.change(index, open, |listpack| match end {
            End::Left => listpack.remove(0..count),
            End::Right => listpack.remove(here - count..here),
        })
    }

    fn end_node(&self, end: End) -> Option<usize> {
        match end {
            End::Left if self.nodes.is_empty() => None,
            End::Left => Some(0),
            End::Right => self.nodes.len().checked_sub(1),
        }
    }
}

/// Reserves what the allocator gives anyway, so that it is asked once for several elements.
pub(super) fn make_room(listpack: &mut Listpack, element: &[u8]) {
    let need = listpack.as_bytes().len() + Element::of(element).encoded_len();
    if need > listpack.capacity() {
        listpack.reserve_exact(allocation_size(need));
    }
}
