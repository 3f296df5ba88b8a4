//! One node: a listpack, plain or packed.

use std::sync::Arc;

use snugly_codec::DecodeError;
use snugly_listpack::{Listpack, View};

use super::Open;
use crate::memory::allocation_size;
use crate::memory::entry::Entry;

/// The name of a node in its list; in the order of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(u64);

impl NodeId {
    /// Between neighbours that are new there is room for so many others: some 24 times as many as are halved.
    const STEP: u64 = 1 << 24;
    const FIRST: NodeId = NodeId(1 << 63);

    /// One to begin with where all are named anew.
    pub(crate) fn lowest() -> NodeId {
        NodeId(1 << 62)
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

/// What a node holds, as a counted handle: it does not change, whatever becomes of the node.
#[derive(Clone)]
pub(crate) enum Content {
    Plain(Arc<Listpack>),
    /// A record of the codec, in an entry without a key.
    Packed(Entry),
}

impl Content {
    /// Whether both are handles of the same.
    pub(crate) fn same(&self, other: &Content) -> bool {
        match (self, other) {
            (Content::Plain(one), Content::Plain(other)) => Arc::ptr_eq(one, other),
            (Content::Packed(one), Content::Packed(other)) => one.same(other.borrow()),
            (Content::Plain(_), Content::Packed(_)) | (Content::Packed(_), Content::Plain(_)) => false,
        }
    }

    fn memory(&self) -> usize {
        match self {
            // The counts and the vector are in an allocation of their own.
            Content::Plain(listpack) => {
                allocation_size(2 * size_of::<usize>() + size_of::<Listpack>())
                    + allocation_size(listpack.capacity())
            }
            Content::Packed(entry) => entry.borrow().allocation_size(),
        }
    }
}

/// One node of a list.
#[derive(Clone)]
pub(crate) struct Node {
    id: NodeId,
    content: Content,
    /// How many elements there are.
    len: u32,
    /// Bytes of the listpack.
    raw_len: u32,
    /// Whether it was found out that packing does not make it smaller. It is forgotten when the node changes.
    is_incompressible: bool,
}

/// More of its room than this part is left unused by no node for long.
const SPARE_SHARE: usize = 4;

impl Node {
    pub(crate) fn new(id: NodeId, mut listpack: Listpack) -> Node {
        listpack.shrink_to_fit();
        let (len, raw_len) = (listpack.len() as u32, listpack.as_bytes().len() as u32);
        Node { id, content: Content::Plain(Arc::new(listpack)), len, raw_len, is_incompressible: false }
    }

    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    pub(super) fn set_id(&mut self, id: NodeId) {
        self.id = id;
    }

    /// How many elements there are.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Bytes of the listpack.
    pub(crate) fn raw_len(&self) -> usize {
        self.raw_len as usize
    }

    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    pub(crate) fn is_packed(&self) -> bool {
        matches!(self.content, Content::Packed(_))
    }

    pub(crate) fn is_incompressible(&self) -> bool {
        self.is_incompressible
    }

    /// Bytes that the content takes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.content.memory()
    }

    /// The plain listpack, if it is plain.
    pub(super) fn plain(&self) -> Option<&Arc<Listpack>> {
        match &self.content {
            Content::Plain(listpack) => Some(listpack),
            Content::Packed(_) => None,
        }
    }

    /// Shows the elements.
    pub(super) fn view<R>(&self, open: Open<'_>, show: impl FnOnce(View<'_>) -> R) -> Result<R, DecodeError> {
        match &self.content {
            Content::Plain(listpack) => Ok(show(listpack.view())),
            Content::Packed(entry) => Ok(show(open(entry.borrow())?.view())),
        }
    }

    /// Makes it plain.
    pub(super) fn unpack(&mut self, open: Open<'_>) -> Result<(), DecodeError> {
        if let Content::Packed(entry) = &self.content {
            self.content = Content::Plain(Arc::new(open(entry.borrow())?));
        }
        Ok(())
    }

    pub(super) fn pack(&mut self, packed: Option<Entry>) {
        match packed {
            Some(entry) => self.content = Content::Packed(entry),
            None => self.is_incompressible = true,
        }
    }

    pub(super) fn change<R>(
        &mut self,
        open: Open<'_>,
        change: impl FnOnce(&mut Listpack) -> R,
    ) -> Result<R, DecodeError> {
        self.unpack(open)?;
        let Content::Plain(listpack) = &mut self.content else { unreachable!("it was just unpacked") };
        let listpack = Arc::make_mut(listpack);
        let result = change(listpack);
        let used = listpack.as_bytes().len();
        if listpack.capacity() - used > used / SPARE_SHARE && allocation_size(used) < listpack.capacity() {
            listpack.shrink_to_fit();
        }
        (self.len, self.raw_len, self.is_incompressible) = (listpack.len() as u32, used as u32, false);
        Ok(result)
    }
}
