//! A list on disk: a directory under its key, and a record for each node under a key of its own.
//!
//! A node's record is written once: a changed node gets a new one, under a new key, and the old one goes with
//! the directory that named it. A reader of a directory therefore reads the nodes that it names, or finds
//! that one is gone. FORMAT.md has the bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use snugly_codec::Record;

use super::node::{Content, Holding, Node, NodeId};
use super::{Contents, Quicklist};
use crate::entry::{Access, Entry};
use crate::values::Kind;
use crate::values::collection::{Captured, NodeError, NodeKey};

/// Description of a node in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredNode {
    pub(crate) row: u64,
    pub(crate) len: u32,
    pub(crate) raw_len: u32,
}

/// Directory of a list: `list u64 | next row u64 | flags u8 | for each node: row, elements, bytes of the
/// listpack`, the first numbers little-endian, those of nodes varints, and each row as the difference to the
/// one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    pub(crate) list: u64,
    pub(crate) next_row: u64,
    pub(crate) is_large: bool,
    pub(crate) nodes: Vec<StoredNode>,
}

const IS_LARGE: u8 = 1;

impl Directory {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(17 + 5 * self.nodes.len());
        bytes.extend_from_slice(&self.list.to_le_bytes());
        bytes.extend_from_slice(&self.next_row.to_le_bytes());
        bytes.push(if self.is_large { IS_LARGE } else { 0 });
        let mut last = 0;
        for node in &self.nodes {
            let step = node.row.wrapping_sub(last) as i64;
            last = node.row;
            // Zigzag, so that small steps back are short as well.
            write_varint((step << 1 ^ step >> (u64::BITS - 1)) as u64, &mut bytes);
            write_varint(node.len.into(), &mut bytes);
            write_varint(node.raw_len.into(), &mut bytes);
        }
        bytes
    }

    /// Reads a directory; `None` if it is none.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Directory> {
        let (list, rest) = bytes.split_first_chunk()?;
        let (next_row, rest) = rest.split_first_chunk()?;
        let (&flags, mut rest) = rest.split_first()?;
        if flags & !IS_LARGE != 0 {
            return None;
        }
        let (mut nodes, mut row) = (Vec::new(), 0u64);
        while !rest.is_empty() {
            let step = read_varint(&mut rest)?;
            row = row.wrapping_add((step >> 1) ^ (step & 1).wrapping_neg());
            let mut number = || u32::try_from(read_varint(&mut rest)?).ok();
            let node = StoredNode { row, len: number()?, raw_len: number()? };
            if row == 0 || node.len == 0 {
                return None;
            }
            nodes.push(node);
        }
        Some(Directory {
            list: u64::from_le_bytes(*list),
            next_row: u64::from_le_bytes(*next_row),
            is_large: flags & IS_LARGE != 0,
            nodes,
        })
    }

    pub(crate) fn node_keys(&self) -> impl Iterator<Item = NodeKey> {
        self.nodes.iter().map(|node| NodeKey { owner: self.list, row: node.row })
    }
}

fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = *bytes.split_off_first()?;
        let bits = u64::from(byte & 0x7f);
        number |= bits << shift;
        // In the shortest form, and no more than 64 bits.
        if byte & 0x80 == 0 {
            return ((byte != 0 || shift == 0) && (bits << shift) >> shift == bits).then_some(number);
        }
    }
    None
}

/// Number of nodes at each end that stay in memory as long as the list does.
const KEPT_AT_ENDS: usize = 4;

/// State of a list in its disk tier.
#[derive(Default)]
pub(super) struct OnDisk {
    list: u64,
    next_row: u64,
    /// Rows that no node has any more.
    gone: Vec<u64>,
    /// Nodes that are on their way to the disk, as long as another holder has the token.
    on_their_way: Vec<(Arc<()>, Vec<NodeId>)>,
}

impl OnDisk {
    /// Applies new names of the nodes: all of them count as on their way, as long as any was.
    pub(super) fn renamed(&mut self, nodes: &VecDeque<Node>) {
        self.on_their_way.iter_mut().for_each(|(_, ids)| *ids = nodes.iter().map(Node::id).collect());
    }
}

impl Quicklist {
    /// A list as its directory has it, with no node in memory.
    pub(crate) fn of_directory(directory: &Directory) -> Quicklist {
        let mut list = Quicklist { is_large: directory.is_large, ..Quicklist::default() };
        let mut id = None;
        for stored in &directory.nodes {
            // Room for 2^39 at the end; a directory cannot have as many.
            let next = NodeId::between(id, None).unwrap_or(NodeId::lowest());
            list.nodes.push_back(Node::stored(next, stored));
            list.len += u64::from(stored.len);
            list.raw_bytes += u64::from(stored.raw_len);
            id = Some(next);
        }
        let on_disk = OnDisk { list: directory.list, next_row: directory.next_row, ..OnDisk::default() };
        list.on_disk = Some(Box::new(on_disk));
        list
    }

    /// Copies the list as a new one, which is not on disk yet.
    ///
    /// # Errors
    /// [`NodeError`] if a node that is only on disk cannot be read.
    pub(crate) fn fork(
        &self,
        read: &mut dyn FnMut(NodeKey) -> Result<Entry, NodeError>,
    ) -> Result<Quicklist, NodeError> {
        let mut copy = Quicklist {
            nodes: self.nodes.clone(),
            len: self.len,
            raw_bytes: self.raw_bytes,
            contents: Contents::default(),
            is_large: self.is_large,
            due: self.due.clone(),
            newly_edited: Vec::new(),
            on_disk: None,
        };
        for index in 0..copy.nodes.len() {
            if copy.nodes[index].content().is_none()
                && let Some(key) = self.key_of(index)
            {
                copy.nodes[index].keep(Content::Compressed(read(key)?));
            }
            copy.nodes[index].forget_row();
            let holding = copy.nodes[index].holding();
            copy.contents.exchange(Holding::default(), holding);
        }
        // The holder of the copy counts all of it.
        copy.take_untold_needs();
        Ok(copy)
    }

    /// Returns the key of a node on disk, if its current content is there.
    pub(super) fn key_of(&self, index: usize) -> Option<NodeKey> {
        let row = self.nodes[index].row();
        let list = self.on_disk.as_ref()?.list;
        (row != 0).then_some(NodeKey { owner: list, row })
    }

    /// A node that was on disk is no more, or has changed.
    pub(super) fn note_gone(&mut self, row: u64) {
        if let Some(on_disk) = &mut self.on_disk
            && row != 0
        {
            on_disk.gone.push(row);
        }
    }

    /// Captures what is to be written since the last time, which is then on its way to the disk.
    pub(crate) fn capture(&mut self, key: &[u8], expiry: Option<u64>, access: Access) -> Captured {
        let on_disk = self.on_disk.get_or_insert_with(|| {
            Box::new(OnDisk { list: fastrand::u64(..), next_row: 1, ..OnDisk::default() })
        });
        let list = on_disk.list;
        let node_key = |row| NodeKey { owner: list, row }.bytes();
        let mut entries: Vec<Entry> =
            on_disk.gone.drain(..).map(|row| Entry::tombstone(&node_key(row))).collect();
        let mut new = Vec::new();
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for node in &mut self.nodes {
            if node.row() == 0
                && let Some(content) = node.content()
            {
                let row = on_disk.next_row;
                on_disk.next_row += 1;
                entries.push(content.to_record(&node_key(row), access));
                node.set_row(row);
                new.push(node.id());
            }
            nodes.push(StoredNode {
                row: node.row(),
                len: node.len() as u32,
                raw_len: node.raw_len() as u32,
            });
        }
        let token = Arc::new(());
        on_disk.on_their_way.retain(|(token, _)| Arc::strong_count(token) > 1);
        on_disk.on_their_way.push((token.clone(), new));
        let directory = Directory { list, next_row: on_disk.next_row, is_large: self.is_large, nodes };
        let directory =
            Entry::directory(Kind::List, key, &Record::identity(&directory.encode()), expiry, access);
        Captured { nodes: entries, directory, token }
    }

    /// Evicts the contents of nodes between the ends that are on disk and idle, until `need` bytes are free;
    /// returns the bytes freed.
    pub(crate) fn shed(&mut self, need: usize) -> usize {
        let Some(on_disk) = &mut self.on_disk else { return 0 };
        on_disk.on_their_way.retain(|(token, _)| Arc::strong_count(token) > 1);
        let is_on_its_way =
            |id: NodeId| on_disk.on_their_way.iter().any(|(_, ids)| ids.binary_search(&id).is_ok());
        let inside = KEPT_AT_ENDS..self.nodes.len().saturating_sub(KEPT_AT_ENDS);
        let mut freed = 0;
        for index in inside {
            let node = &mut self.nodes[index];
            if freed >= need {
                break;
            }
            if node.row() != 0 && node.content().is_some() && !is_on_its_way(node.id()) && node.has_cooled() {
                let held = node.holding();
                node.drop_content();
                freed += held.memory;
                self.contents.exchange(held, Holding::default());
            }
        }
        freed
    }

    /// Takes the content of a node into memory that was read from disk, if the node is still that.
    pub(crate) fn keep(&mut self, id: NodeId, key: NodeKey, content: Content) {
        let Some(index) = self.index_of(id).filter(|index| self.key_of(*index) == Some(key)) else { return };
        let node = &mut self.nodes[index];
        if node.content().is_none() {
            node.keep(content);
            let holding = node.holding();
            self.contents.exchange(Holding::default(), holding);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn directory() -> impl Strategy<Value = Directory> {
        let node = (1..u64::MAX, 1..u32::MAX, any::<u32>()).prop_map(|(row, len, raw_len)| StoredNode {
            row,
            len,
            raw_len,
        });
        let nodes = prop::collection::vec(node, 0..50);
        (any::<u64>(), any::<u64>(), any::<bool>(), nodes)
            .prop_map(|(list, next_row, is_large, nodes)| Directory { list, next_row, is_large, nodes })
    }

    proptest! {
        #[test]
        fn a_directory_is_parsed_as_it_was_encoded(directory in directory()) {
            prop_assert_eq!(Directory::parse(&directory.encode()), Some(directory));
        }

        #[test]
        fn any_bytes_can_be_parsed(bytes: Vec<u8>) {
            if let Some(directory) = Directory::parse(&bytes) {
                prop_assert_eq!(directory.encode(), bytes);
            }
        }
    }
}
