//! One node: a listpack, plain or compressed.

use std::sync::Arc;

use snugly_codec::Record;
use snugly_listpack::Listpack;

use super::stored::StoredNode;
use crate::entry::{Access, Entry, Properties};
use crate::slab::allocation_size;

/// Name of a node in its list; in the order of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(u64);

impl NodeId {
    /// Gap between the ids of new neighbours: enough for some 24 halvings.
    const STEP: u64 = 1 << 24;
    const FIRST: NodeId = NodeId(1 << 63);

    /// One to begin with where all are named anew.
    pub(crate) fn lowest() -> NodeId {
        NodeId(1 << 62)
    }

    /// Returns the name as bytes.
    pub(crate) fn bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// One between two others, if there is any; without a neighbour, as far away as is usual.
    pub(crate) fn between(before: Option<NodeId>, after: Option<NodeId>) -> Option<NodeId> {
        match (before, after) {
            (None, None) => Some(NodeId::FIRST),
            (Some(NodeId(before)), None) => before.checked_add(NodeId::STEP).map(NodeId),
            (None, Some(NodeId(after))) => after.checked_sub(NodeId::STEP).map(NodeId),
            (Some(NodeId(before)), Some(NodeId(after))) => {
                let middle = before + (after - before) / 2;
                (middle > before).then_some(NodeId(middle))
            }
        }
    }
}

/// Content of a node, as a counted handle: it does not change, whatever becomes of the node.
#[derive(Clone)]
pub(crate) enum Content {
    Plain(Arc<Listpack>),
    /// A record of the codec, in an entry without a key.
    Compressed(Entry),
}

impl Content {
    /// Bytes of the listpack.
    pub(crate) fn raw_len(&self) -> usize {
        match self {
            Content::Plain(listpack) => listpack.as_bytes().len(),
            Content::Compressed(entry) => entry.borrow().record().map_or(0, |record| record.raw_len()),
        }
    }

    /// Returns the number of the dictionary that the record needs.
    pub(crate) fn dictionary(&self) -> Option<u32> {
        self.record()?.dictionary()
    }

    /// Converts to a record under a key.
    pub(super) fn to_record(&self, key: &[u8], access: Access) -> Entry {
        let properties = Properties::plain(access);
        match self {
            Content::Plain(listpack) => Entry::new(key, &Record::identity(listpack.as_bytes()), properties),
            Content::Compressed(entry) => entry.borrow().copy(key, properties),
        }
    }

    pub(crate) fn memory(&self) -> usize {
        match self {
            Content::Plain(listpack) => plain_memory(listpack),
            Content::Compressed(entry) => entry.borrow().allocation_size(),
        }
    }

    /// The part of its memory that each handle has.
    pub(crate) fn memory_share(&self) -> usize {
        match self {
            Content::Plain(listpack) => plain_memory(listpack).div_ceil(Arc::strong_count(listpack)),
            Content::Compressed(entry) => entry.borrow().memory_share(),
        }
    }

    /// Returns the record, if the node is compressed.
    fn record(&self) -> Option<Record<'_>> {
        let Content::Compressed(entry) = self else { return None };
        entry.borrow().record().filter(|record| record.as_identity().is_none())
    }

    fn holding(&self) -> Holding {
        let record = self.record();
        Holding {
            memory: self.memory(),
            dictionary: record.and_then(|record| record.dictionary()),
            compressed: record.map(Compressed::of).unwrap_or_default(),
        }
    }
}

/// Share of a node's content in the counts kept elsewhere.
#[derive(Clone, Copy, Default)]
pub(super) struct Holding {
    /// Bytes in memory.
    pub(super) memory: usize,
    /// Number of the dictionary that it needs.
    pub(super) dictionary: Option<u32>,
    pub(super) compressed: Compressed,
}

/// Nodes in memory that are compressed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Compressed {
    /// Number of nodes.
    pub(crate) nodes: u64,
    /// Their bytes as listpacks.
    pub(crate) raw_bytes: u64,
    /// Their bytes compressed.
    pub(crate) bytes: u64,
}

impl Compressed {
    fn of(record: Record<'_>) -> Compressed {
        Compressed { nodes: 1, raw_bytes: record.raw_len() as u64, bytes: record.payload().len() as u64 }
    }

    /// With others instead of some of them.
    pub(super) fn exchanged(self, out: Compressed, into: Compressed) -> Compressed {
        Compressed {
            nodes: self.nodes + into.nodes - out.nodes,
            raw_bytes: self.raw_bytes + into.raw_bytes - out.raw_bytes,
            bytes: self.bytes + into.bytes - out.bytes,
        }
    }
}

/// Bytes that a counted listpack takes: the counts and the vector are in an allocation of their own.
pub(super) fn plain_memory(listpack: &Listpack) -> usize {
    allocation_size(2 * size_of::<usize>() + size_of::<Listpack>()) + allocation_size(listpack.capacity())
}

/// One node of a list.
#[derive(Clone)]
pub(crate) struct Node {
    id: NodeId,
    /// Row of its current content on disk; 0 if it has none.
    row: u64,
    /// Nothing, if it is only on disk.
    content: Option<Content>,
    /// Number of elements.
    len: u32,
    /// Bytes of the listpack.
    raw_len: u32,
    /// Whether it was found out that compression does not make it smaller. It is forgotten when the node changes.
    is_incompressible: bool,
    /// Whether it waits to be compressed since it was changed in the middle.
    edited: Edited,
}

/// Whether a node waits to be compressed since it was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edited {
    No,
    Once,
    /// The node was changed again while it waited.
    Again,
}

/// More of its room than this part is left unused by no node for long.
const SPARE_SHARE: usize = 4;

impl Node {
    pub(crate) fn new(id: NodeId, mut listpack: Listpack) -> Node {
        listpack.shrink_to_fit();
        let (len, raw_len) = (listpack.len() as u32, listpack.as_bytes().len() as u32);
        let content = Some(Content::Plain(Arc::new(listpack)));
        Node { id, row: 0, content, len, raw_len, is_incompressible: false, edited: Edited::No }
    }

    /// One that is only on disk.
    pub(super) fn stored(id: NodeId, stored: &StoredNode) -> Node {
        let StoredNode { row, len, raw_len } = *stored;
        Node { id, row, content: None, len, raw_len, is_incompressible: false, edited: Edited::No }
    }

    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    pub(super) fn set_id(&mut self, id: NodeId) {
        self.id = id;
    }

    /// Returns the number of elements.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Bytes of the listpack.
    pub(crate) fn raw_len(&self) -> usize {
        self.raw_len as usize
    }

    pub(crate) fn content(&self) -> Option<&Content> {
        self.content.as_ref()
    }

    pub(crate) fn row(&self) -> u64 {
        self.row
    }

    pub(super) fn set_row(&mut self, row: u64) {
        self.row = row;
    }

    /// Marks that the current content is not on disk; returns the old row.
    pub(super) fn forget_row(&mut self) -> u64 {
        std::mem::take(&mut self.row)
    }

    pub(super) fn edited(&self) -> Edited {
        self.edited
    }

    pub(super) fn set_edited(&mut self, edited: Edited) {
        self.edited = edited;
    }

    pub(super) fn keep(&mut self, content: Content) {
        self.content = Some(content);
    }

    pub(super) fn drop_content(&mut self) {
        self.content = None;
    }

    /// Returns whether nobody has read it since this was asked for the last time but a few. What is plain
    /// counts as read long ago.
    pub(super) fn has_cooled(&self) -> bool {
        let Some(Content::Compressed(entry)) = &self.content else { return true };
        let frequency = entry.borrow().access().frequency();
        entry.borrow().set_access(entry.borrow().access().with_frequency(frequency / 2));
        frequency == 0
    }

    pub(crate) fn is_incompressible(&self) -> bool {
        self.is_incompressible
    }

    /// Bytes that the content takes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.content.as_ref().map_or(0, Content::memory)
    }

    pub(super) fn holding(&self) -> Holding {
        self.content.as_ref().map(Content::holding).unwrap_or_default()
    }

    /// Returns the record, if the node is compressed.
    pub(crate) fn record(&self) -> Option<Record<'_>> {
        self.content.as_ref().and_then(Content::record)
    }

    /// Returns the listpack, if the node is plain.
    pub(super) fn plain(&self) -> Option<&Arc<Listpack>> {
        match &self.content {
            Some(Content::Plain(listpack)) => Some(listpack),
            Some(Content::Compressed(_)) | None => None,
        }
    }

    pub(super) fn compress(&mut self, compressed: Option<Entry>) {
        match compressed {
            Some(entry) => self.content = Some(Content::Compressed(entry)),
            None => self.is_incompressible = true,
        }
    }

    /// Moves the compressed form, if it stands in a sparse page and nobody else holds it; returns its former
    /// place.
    pub(super) fn relocate(&mut self) -> Option<Entry> {
        let Some(Content::Compressed(entry)) = &mut self.content else { return None };
        let copy = entry.borrow().relocate()?;
        Some(std::mem::replace(entry, copy))
    }

    /// Changes the listpack of a node that is plain.
    pub(super) fn change<R>(&mut self, change: impl FnOnce(&mut Listpack) -> R) -> R {
        let Some(Content::Plain(listpack)) = &mut self.content else {
            unreachable!("it was made plain before")
        };
        let listpack = Arc::make_mut(listpack);
        let result = change(listpack);
        let used = listpack.as_bytes().len();
        if listpack.capacity() - used > used / SPARE_SHARE && allocation_size(used) < listpack.capacity() {
            listpack.shrink_to_fit();
        }
        (self.len, self.raw_len, self.is_incompressible) = (listpack.len() as u32, used as u32, false);
        result
    }
}
