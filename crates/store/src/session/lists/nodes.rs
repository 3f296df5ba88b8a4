//! Nodes to records and back, and from disk.

use std::sync::Arc;

use snugly_codec::{DecodeError, Decoder, Record};
use snugly_listpack::{Listpack, View};

use super::super::{Session, StoreError};
use super::Nodes;
use crate::dictionaries::KeyPredicate;
use crate::dictionaries::known::{Known, Version};
use crate::memory::entry::{self, Access, Entry, EntryRef};
use crate::memory::entry_allocation_size;
use crate::memory::keyspace::Place;
use crate::quicklist::edited::EditedNode;
use crate::quicklist::node::{Content, NodeId};
use crate::quicklist::packing::Due;
use crate::quicklist::reading::{Piece, Source};
use crate::quicklist::stored::NodeKey;
use crate::quicklist::{Closed, List, NodeError};
use crate::store::{Settings, Store};

/// For a node that is to wait, at most so many others are packed that have waited: where they are smaller, it takes several
/// to make room.
const MOST_PACKED: usize = 8;

/// The longest listpack that is believed, in bytes.
const MAX_NODE_LEN: usize = u32::MAX as usize;

/// Bytes beside the record of a node in its allocation: it has no key and does not expire.
const OVERHEAD: usize = entry::overhead(0, false);

fn version_for<'k>(
    known: &'k Known,
    settings: &Settings,
    excluded: Option<&KeyPredicate>,
    key: &[u8],
    len: usize,
) -> Option<&'k Arc<Version>> {
    let is_used = settings.lists_use_dictionaries() && excluded.is_none_or(|excluded| !excluded(key));
    if is_used { known.active_for_node(len) } else { None }
}

fn record_of(packed: EntryRef<'_>) -> Record<'_> {
    Record::parse(packed.record_bytes()).expect("a node holds a record that was parsed before")
}

/// Makes a listpack of a packed node.
pub(super) fn unpack(
    decoder: &mut Decoder,
    known: &Known,
    store: &Store,
    packed: EntryRef<'_>,
) -> Result<Listpack, DecodeError> {
    let record = record_of(packed);
    let is_unknown = |number: &u32| known.version(*number).is_none();
    // Somebody else may have packed it with a dictionary that has come since.
    let newer = record.dictionary().filter(is_unknown).map(|_| store.dictionaries.known());
    let known = newer.as_deref().unwrap_or(known);
    let find = |number| known.version(number).map(|version| &**version.dictionary());
    let mut bytes = Vec::new();
    decoder.decode_with(&record, &find, MAX_NODE_LEN, &mut bytes)?;
    Ok(Listpack::of_known(bytes))
}

/// Makes a listpack of any node, which may take reading it from disk.
pub(super) fn open(
    decoder: &mut Decoder,
    known: &Known,
    store: &Store,
    node: Closed<'_>,
) -> Result<Listpack, NodeError> {
    match node {
        Closed::Packed(entry) => Ok(unpack(decoder, known, store, entry)?),
        Closed::Stored(key) => {
            let entry = store.load_node(key)?.ok_or(NodeError::Damaged)?;
            let listpack = unpack(decoder, known, store, entry.borrow())?;
            View::parse(listpack.as_bytes()).map_err(|_| NodeError::Damaged)?;
            Ok(listpack)
        }
    }
}

impl NodeError {
    /// Of this key's list.
    pub(in crate::session) fn of(self, key: &[u8]) -> StoreError {
        match self {
            NodeError::Undecodable(source) => StoreError::Unreadable { key: key.to_vec(), source },
            NodeError::Damaged => StoreError::Damaged { key: key.to_vec() },
            NodeError::Disk(reason) => StoreError::Disk { reason },
        }
    }
}

impl Session {
    /// Shows the elements of a node, which is decoded unless somebody has done that lately.
    pub(super) fn with_node<R>(
        &mut self,
        content: &Content,
        show: impl FnOnce(View<'_>) -> R,
    ) -> Result<R, DecodeError> {
        match content {
            Content::Plain(listpack) => Ok(show(listpack.view())),
            Content::Packed(packed) => {
                self.note_use(packed.borrow(), self.now());
                if let Some(bytes) = record_of(packed.borrow()).as_identity() {
                    return Ok(show(View::of_known(bytes)));
                }
                if let Some(decoded) = self.store.decoded.get(packed) {
                    return Ok(show(decoded.listpack.view()));
                }
                let listpack = self.unpacked(packed)?;
                let result = show(listpack.view());
                self.store.decoded.keep(packed, listpack);
                Ok(result)
            }
        }
    }

    pub(in crate::session) fn unpacked(&mut self, packed: &Entry) -> Result<Listpack, DecodeError> {
        unpack(&mut self.decoder, &self.known, &self.store, packed.borrow())
    }

    /// Reads the nodes from disk that are not in memory, and takes them there if the database of their key is given. `None`
    /// says that the list has changed meanwhile: then it is to be looked at again.
    pub(super) fn fetch(
        &mut self,
        database: Option<usize>,
        key: &[u8],
        pieces: Vec<Piece>,
    ) -> Result<Option<Nodes>, NodeError> {
        let mut fetched = Vec::with_capacity(pieces.len());
        for Piece { source, elements } in pieces {
            let Some(content) = self.fetch_node(database, key, source)? else { return Ok(None) };
            fetched.push((content, elements));
        }
        Ok(Some(fetched))
    }

    /// As [`Session::fetch`], one node.
    pub(super) fn fetch_node(
        &mut self,
        database: Option<usize>,
        key: &[u8],
        source: Source,
    ) -> Result<Option<Content>, NodeError> {
        let (id, node) = match source {
            Source::Memory(content) => return Ok(Some(content)),
            Source::Disk(id, node) => (id, node),
        };
        let content = self.store.load_node(node)?.map(Content::Packed);
        if let Some((content, database)) = content.as_ref().zip(database) {
            self.keep_node(database, key, (id, node), content.clone());
        }
        Ok(content)
    }

    /// Takes a node into memory that was read from disk, if there is room for it.
    fn keep_node(&mut self, database: usize, key: &[u8], (id, node): (NodeId, NodeKey), content: Content) {
        let store = self.store.clone();
        let max_memory = self.settings.max_memory;
        if max_memory > 0 {
            let policy = self.settings.eviction;
            let random = || self.random.u64(..);
            store.keyspace.make_room(policy, max_memory, content.memory() as u64, self.is_holding, random);
        }
        let place = store.keyspace.place(key);
        let mut shard = store.keyspace.lock(place.shard);
        if let Some(index) = shard.locate(database, place.tag, key, self.now()).live() {
            shard.with_list(database, index, |list| list.keep(id, node, content));
        }
    }

    /// Packs the nodes that are to be packed, if the list is still that of the key.
    pub(super) fn pack_nodes(
        &mut self,
        database: usize,
        place: Place,
        key: &[u8],
        list: &Arc<List>,
        first: Due,
    ) {
        let layout = self.settings.lists.layout();
        let mut next = Some(first);
        while let Some(due) = next.take() {
            let packed = self.packed(key, &due);
            let store = self.store.clone();
            let mut shard = store.keyspace.lock(place.shard);
            let presence = shard.locate(database, place.tag, key, self.now());
            if let Some(index) = presence.live()
                && shard.entry(database, index).list().is_some_and(|current| std::ptr::eq(current, &**list))
            {
                let packed = shard.with_list(database, index, |list| {
                    list.pack(due, packed);
                    list.next_due(layout)
                });
                next = packed.flatten();
            }
        }
    }

    /// Lets nodes that were changed wait to be packed, and packs those that have waited for the longest time, where all of them
    /// have become too many.
    pub(super) fn let_wait(
        &mut self,
        database: usize,
        key: &[u8],
        list: &Arc<List>,
        edited: Vec<(NodeId, usize)>,
    ) {
        let packed = edited.len() * MOST_PACKED;
        for (id, bytes) in edited {
            let (key, list) = (key.into(), Arc::downgrade(list));
            self.store.edited.note(EditedNode { database, key, list, id, bytes });
        }
        for _ in 0..packed {
            let limit = self.settings.lists.cache_bytes;
            let Some(node) = self.store.edited.next_above(limit) else { break };
            self.pack_edited(node);
        }
    }

    /// Packs a node that has waited for it, unless it was changed again.
    fn pack_edited(&mut self, node: EditedNode) {
        let Some(list) = node.list.upgrade() else { return };
        let store = self.store.clone();
        let place = store.keyspace.place(&node.key);
        let mut shard = store.keyspace.lock(place.shard);
        let presence = shard.locate(node.database, place.tag, &node.key, self.now());
        let is_there = |&index: &usize| {
            shard.entry(node.database, index).list().is_some_and(|current| std::ptr::eq(current, &*list))
        };
        let Some(index) = presence.live().filter(is_there) else {
            // Another key's by now: it is packed when that changes.
            list.lock().release_all_edited();
            return;
        };
        let layout = self.settings.lists.layout();
        let released = shard.with_list(node.database, index, |list| {
            let waits = list.release_edited(node.id);
            (waits, list.next_due(layout))
        });
        drop(shard);
        match released {
            Some((true, _)) => store.edited.note(node),
            Some((false, Some(due))) => self.pack_nodes(node.database, place, &node.key, &list, due),
            _ => {}
        }
    }

    /// What a node is packed to; `None` if that takes no less room.
    fn packed(&mut self, key: &[u8], due: &Due) -> Option<Entry> {
        self.show_node(key, due);
        let access = Access::written(self.now());
        let record = self.encode_node(key, due.bytes(), true);
        let takes_less = entry_allocation_size(OVERHEAD + record.encoded_len()) < due.memory();
        takes_less.then(|| Entry::new(b"", &record, None, access))
    }

    /// Encodes a node of the list of a key, with the dictionary that is for it if there is one. `is_new` says whether it tells
    /// something about the nodes that are packed.
    pub(super) fn encode_node<'a>(&'a mut self, key: &[u8], node: &'a [u8], is_new: bool) -> Record<'a> {
        let Some(choice) = self.settings.lists.node_codec() else { return Record::identity(node) };
        let version = version_for(&self.known, &self.settings, self.excluded.as_ref(), key, node.len());
        let dictionary = version.map(|version| (version.number(), &**version.dictionary()));
        let record = self.encoder.encode_with(choice, dictionary, node, OVERHEAD, entry_allocation_size);
        if is_new {
            version.inspect(|version| version.note(node.len(), record.payload().len()));
        }
        record
    }

    /// The dictionary for a node of so many bytes, if there is one.
    pub(super) fn node_version(&self, key: &[u8], len: usize) -> Option<&Arc<Version>> {
        version_for(&self.known, &self.settings, self.excluded.as_ref(), key, len)
    }
}
