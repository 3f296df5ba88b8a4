//! Snapshots of nodes that a reader keeps when the lock is released.

use std::ops::Range;

use super::node::{Content, NodeId};
use super::{End, Quicklist};
use crate::values::collection::{NodeImage, NodeKey};

/// Some elements of one node.
pub(crate) struct Piece {
    pub(crate) source: Source,
    /// Range of the elements in the node.
    pub(crate) elements: Range<usize>,
}

/// Source of the elements.
pub(crate) enum Source {
    Memory(Content),
    /// Name of the node, and its key on disk.
    Disk(NodeId, NodeKey),
}

impl Quicklist {
    fn source(&self, index: usize) -> Option<Source> {
        let content = self.nodes[index].content().cloned();
        let id = self.nodes[index].id();
        content.map(Source::Memory).or_else(|| self.key_of(index).map(|key| Source::Disk(id, key)))
    }

    /// Returns its nodes as they are now.
    pub(crate) fn images(&self) -> Vec<NodeImage> {
        let image = |index| {
            self.source(index).map(|source| NodeImage { source, raw_len: self.nodes[index].raw_len() })
        };
        (0..self.nodes.len()).filter_map(image).collect()
    }

    /// A place as clients give it: negative counts from the end. `None` is outside.
    pub(crate) fn place(&self, index: i64) -> Option<u64> {
        let place = if index < 0 { (self.len as i64).checked_add(index)? } else { index };
        u64::try_from(place).ok().filter(|place| *place < self.len)
    }

    /// A range as clients give it, both ends included.
    pub(crate) fn range(&self, start: i64, stop: i64) -> Range<u64> {
        let len = self.len as i64;
        let from_end = |index: i64| if index < 0 { len.saturating_add(index) } else { index };
        let (start, stop) = (from_end(start).max(0), from_end(stop).min(len - 1));
        if start > stop { 0..0 } else { start as u64..stop as u64 + 1 }
    }

    /// Returns the bytes, before compression, of the nodes that hold this many elements at an end.
    pub(crate) fn raw_bytes_at(&self, end: End, count: u64) -> u64 {
        let (mut bytes, mut elements) = (0, 0);
        for at in 0..self.nodes.len() {
            if elements >= count {
                break;
            }
            let index = if end == End::Left { at } else { self.nodes.len() - 1 - at };
            elements += self.nodes[index].len() as u64;
            bytes += self.nodes[index].raw_len() as u64;
        }
        bytes
    }

    /// One element.
    pub(crate) fn piece_at(&self, place: u64) -> Option<Piece> {
        let (index, offset) = self.locate(place)?;
        Some(Piece { source: self.source(index)?, elements: offset..offset + 1 })
    }

    /// Returns the pieces that have the elements of a range.
    pub(crate) fn pieces(&self, range: Range<u64>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let Some((first, mut skip)) = self.locate(range.start) else { return pieces };
        let mut left = (range.end.min(self.len).saturating_sub(range.start)) as usize;
        for index in first..self.nodes.len() {
            if left == 0 {
                break;
            }
            let taken = left.min(self.nodes[index].len() - skip);
            let elements = skip..skip + taken;
            pieces.extend(self.source(index).map(|source| Piece { source, elements }));
            left -= taken;
            skip = 0;
        }
        pieces
    }
}
