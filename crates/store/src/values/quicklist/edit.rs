//! Changes anywhere in a list.

use std::ops::Range;

use snugly_listpack::{EMPTY_LEN, Element, Listpack, Needle, View};

use super::ends::make_room;
use super::{End, Layout, NodeError, Open, Quicklist};

/// Neighbours that together fill no more than this part of a node are merged.
const THIN_SHARE: usize = 2;
/// Number of nodes in which elements are removed at once.
const MOST_CHANGED: usize = 64;

impl Quicklist {
    /// Puts an element in the place of another. The caller has seen that there is one.
    pub(crate) fn set(
        &mut self,
        place: u64,
        element: &[u8],
        layout: Layout,
        open: Open<'_>,
    ) -> Result<(), NodeError> {
        let Some((index, offset)) = self.locate(place) else { return Ok(()) };
        let old_len = self.view(index, open, |view| view.get(offset).map_or(0, |old| old.encoded_len()))?;
        let node = &self.nodes[index];
        let (rest_len, rest) = (node.raw_len() - old_len, node.len() - 1);
        if rest == 0 || !self.is_large || layout.fill.has_room(rest_len, rest, element.len()) {
            self.change(index, open, |listpack| {
                make_room(listpack, element);
                listpack.replace(offset, element);
            })?;
            self.note_edited(index, layout);
            if index == 0 || !self.merge_if_thin(index - 1, layout, open)? {
                self.merge_if_thin(index, layout, open)?;
            }
            self.keep_ends_plain(layout, open);
        } else {
            self.change(index, open, |listpack| listpack.remove(offset..offset + 1))?;
            self.insert_at(index, offset, element, layout, open)?;
        }
        self.shrunk(layout.fill);
        Ok(())
    }

    /// Puts an element in front of that at a place, or behind the last one.
    pub(crate) fn insert(
        &mut self,
        place: u64,
        element: &[u8],
        layout: Layout,
        open: Open<'_>,
    ) -> Result<(), NodeError> {
        match self.locate(place) {
            Some((index, offset)) => self.insert_at(index, offset, element, layout, open),
            None => self.push(End::Right, element, layout, open),
        }
    }

    fn insert_at(
        &mut self,
        index: usize,
        offset: usize,
        element: &[u8],
        layout: Layout,
        open: Open<'_>,
    ) -> Result<(), NodeError> {
        let has_room = |list: &Quicklist, index: usize| {
            list.nodes.get(index).is_some_and(|node| {
                !list.is_large || layout.fill.has_room(node.raw_len(), node.len(), element.len())
            })
        };
        if has_room(self, index) {
            self.change(index, open, |listpack| {
                make_room(listpack, element);
                listpack.insert(offset, element);
            })?;
            self.note_edited(index, layout);
            return Ok(());
        }
        let mut next = index + 1;
        if offset == 0 {
            next = index;
        } else if offset < self.nodes[index].len() {
            let tail = self.change(index, open, |listpack| listpack.split_off(offset))?;
            self.insert_node(next, tail);
            self.review_around(next, layout);
            self.note_edited(index, layout);
        }
        // Between two nodes now: at the end of one, at the start of the other, or in one of its own.
        if let Some(before) = next.checked_sub(1).filter(|before| has_room(self, *before)) {
            self.change(before, open, |listpack| listpack.push_back(element))?;
            self.note_edited(before, layout);
        } else if has_room(self, next) {
            self.change(next, open, |listpack| listpack.push_front(element))?;
            self.note_edited(next, layout);
        } else {
            let mut listpack = Listpack::with_capacity(EMPTY_LEN + Element::of(element).encoded_len());
            listpack.push_back(element);
            self.insert_node(next, listpack);
            self.review_around(next, layout);
        }
        self.keep_ends_plain(layout, open);
        Ok(())
    }

    /// Finds the position of the first match.
    pub(crate) fn find(&self, needle: &Needle<'_>, open: Open<'_>) -> Result<Option<u64>, NodeError> {
        let mut before = 0;
        for (index, node) in self.nodes.iter().enumerate() {
            let found = self.view(index, open, |view| view.iter().position(|element| needle.is(element)))?;
            if let Some(offset) = found {
                return Ok(Some(before + offset as u64));
            }
            before += node.len() as u64;
        }
        Ok(None)
    }

    /// Removes matches, up to `limit` of them from one end on, behind as many nodes there as `skipped` says. Each node is
    /// moved once at most, however many become empty. No more than so many nodes are changed that they can stay decoded
    /// for a moment; then it has to be called again.
    pub(crate) fn remove_matching(
        &mut self,
        needle: &Needle<'_>,
        limit: u64,
        (from, skipped): (End, usize),
        layout: Layout,
        open: Open<'_>,
    ) -> Result<Removed, NodeError> {
        let mut pass = Pass { from, looked_at: skipped, kept: skipped };
        let (mut removed, mut changed) = (0, 0);
        let mut outcome = Ok(());
        let is_done =
            |list: &Quicklist, pass: &Pass, removed| removed >= limit || pass.looked_at >= list.nodes.len();
        while outcome.is_ok() && changed < MOST_CHANGED && !is_done(self, &pass, removed) {
            let index = pass.place(self, pass.looked_at);
            let limit_here = usize::try_from(limit - removed).unwrap_or(usize::MAX);
            match self.remove_here(index, needle, limit_here, from, open) {
                Ok(0) => pass.keep(self),
                Ok(count) => {
                    removed += count as u64;
                    changed += 1;
                    outcome = self.keep_what_is_left(&mut pass, layout, open);
                }
                Err(error) => outcome = Err(error),
            }
        }
        let next = (!is_done(self, &pass, removed)).then_some(pass.kept);
        pass.close(self);
        if removed > 0 {
            self.keep_ends_plain(layout, open);
            self.shrunk(layout.fill);
        }
        outcome.map(|()| Removed { count: removed, next })
    }

    fn remove_here(
        &mut self,
        index: usize,
        needle: &Needle<'_>,
        limit: usize,
        from: End,
        open: Open<'_>,
    ) -> Result<usize, NodeError> {
        let is_there = |view: View<'_>| view.iter().any(|element| needle.is(element));
        if !self.view(index, open, is_there)? {
            return Ok(0);
        }
        self.change(index, open, |listpack| listpack.remove_matching(needle, limit, from == End::Right))
    }

    /// Goes on behind a node of which elements were removed.
    fn keep_what_is_left(
        &mut self,
        pass: &mut Pass,
        layout: Layout,
        open: Open<'_>,
    ) -> Result<(), NodeError> {
        if self.nodes[pass.place(self, pass.looked_at)].len() == 0 {
            pass.looked_at += 1;
            return Ok(());
        }
        pass.keep(self);
        let Some(before) = pass.kept.checked_sub(2).map(|kept| pass.place(self, kept)) else { return Ok(()) };
        let index = pass.place(self, pass.kept - 1);
        if self.is_thin_pair(before, index, layout) {
            // The gap, if there is one, is between them no more.
            self.merge(before, index, open)?;
            pass.kept -= 1;
        }
        let last = pass.place(self, pass.kept - 1);
        self.note_edited(last, layout);
        Ok(())
    }

    /// Removes all elements but those of a range. Nodes that go are not read.
    pub(crate) fn trim(&mut self, kept: Range<u64>, layout: Layout, open: Open<'_>) -> Result<(), NodeError> {
        let behind = self.len - kept.end.min(self.len);
        self.drop_elements(End::Left, kept.start, open)?;
        self.drop_elements(End::Right, behind, open)?;
        self.keep_ends_plain(layout, open);
        self.shrunk(layout.fill);
        Ok(())
    }

    fn drop_elements(&mut self, end: End, count: u64, open: Open<'_>) -> Result<(), NodeError> {
        let mut left = count.min(self.len);
        while left > 0 {
            let index = if end == End::Left { 0 } else { self.nodes.len() - 1 };
            let taken = left.min(self.nodes[index].len() as u64);
            self.drop_from(index, end, taken as usize, open)?;
            left -= taken;
        }
        Ok(())
    }

    /// Merges a node with the next one if both are thin; returns whether it did.
    fn merge_if_thin(&mut self, index: usize, layout: Layout, open: Open<'_>) -> Result<bool, NodeError> {
        if !self.is_thin_pair(index, index + 1, layout) {
            return Ok(false);
        }
        self.merge(index, index + 1, open)?;
        self.remove_node(index + 1);
        self.note_edited(index, layout);
        Ok(true)
    }

    fn is_thin_pair(&self, one: usize, other: usize, layout: Layout) -> bool {
        let (Some(one), Some(other)) = (self.nodes.get(one), self.nodes.get(other)) else { return false };
        let bytes = one.raw_len() + other.raw_len();
        bytes <= layout.fill.max_bytes() / THIN_SHARE && layout.fill.holds(bytes, one.len() + other.len())
    }

    /// Moves the elements of another node, which is then empty, to this one.
    fn merge(&mut self, index: usize, other: usize, open: Open<'_>) -> Result<(), NodeError> {
        self.decompress(index, open)?;
        let moved = self.change(other, open, std::mem::take)?;
        self.change(index, open, |listpack| {
            if other > index {
                listpack.append(moved.view());
            } else {
                let rest = std::mem::replace(listpack, moved);
                listpack.append(rest.view());
            }
        })
    }
}

/// Elements that were removed.
pub(crate) struct Removed {
    /// Number of elements.
    pub(crate) count: u64,
    /// Number of nodes to skip where there may be more.
    pub(crate) next: Option<usize>,
}

/// A pass over the nodes from one end on, which leaves out those that have become empty.
struct Pass {
    from: End,
    /// Number of nodes looked at, and number of these that stay: they are at the end from which the pass
    /// goes, and the empty ones behind them.
    looked_at: usize,
    kept: usize,
}

impl Pass {
    /// Returns the index of a node that is counted from the start of the pass.
    fn place(&self, list: &Quicklist, number: usize) -> usize {
        match self.from {
            End::Left => number,
            End::Right => list.nodes.len() - 1 - number,
        }
    }

    /// Keeps the next node.
    fn keep(&mut self, list: &mut Quicklist) {
        if self.kept < self.looked_at {
            list.nodes.swap(self.place(list, self.kept), self.place(list, self.looked_at));
        }
        self.looked_at += 1;
        self.kept += 1;
    }

    /// Removes the empty nodes.
    fn close(&self, list: &mut Quicklist) {
        let gap = match self.from {
            End::Left => self.kept..self.looked_at,
            End::Right => list.nodes.len() - self.looked_at..list.nodes.len() - self.kept,
        };
        list.remove_nodes(gap);
    }
}
