//! Nodes to records and back, and from disk.

use std::sync::Arc;

use snugly_codec::{DecodeError, Decoder, Record};
use snugly_listpack::{Listpack, View};

use super::super::{Session, StoreError};
use super::{Nodes, with_list};
use crate::dictionaries::KeyPredicate;
use crate::dictionaries::set::{DictionarySet, Version};
use crate::entry::{self, Access, Entry, EntryRef, Fields, Properties};
use crate::key::Key;
use crate::settings::Settings;
use crate::slab::entry_allocation_size;
use crate::store::Store;
use crate::values::collection::{Collection, NodeError, NodeKey};
use crate::values::quicklist::Closed;
use crate::values::quicklist::compression::Due;
use crate::values::quicklist::dirty_nodes::DirtyNode;
use crate::values::quicklist::node::{Content, NodeId};
use crate::values::quicklist::reading::{Piece, Source};

/// Most waiting nodes that are compressed when one more is to wait: where they are smaller, it takes several
/// to make room.
const MOST_COMPRESSED: usize = 8;

/// Longest listpack that is accepted, in bytes.
pub(super) const MAX_NODE_LEN: usize = u32::MAX as usize;

/// Bytes beside the record of a node in its allocation: it has no key and does not expire.
const OVERHEAD: usize = entry::overhead(0, Fields::NONE);

fn version_for<'k>(
    known: &'k DictionarySet,
    settings: &Settings,
    excluded: Option<&KeyPredicate>,
    key: &[u8],
    len: usize,
) -> Option<&'k Arc<Version>> {
    let is_used = settings.lists_use_dictionaries() && excluded.is_none_or(|excluded| !excluded(key));
    if is_used { known.active_for_node(len) } else { None }
}

pub(super) fn record_of(compressed: EntryRef<'_>) -> Record<'_> {
    compressed.record().expect("a node holds a record that was parsed before")
}

/// Makes a listpack of a compressed node.
pub(super) fn decompress(
    decoder: &mut Decoder,
    known: &DictionarySet,
    store: &Store,
    compressed: EntryRef<'_>,
) -> Result<Listpack, DecodeError> {
    let record = record_of(compressed);
    let is_unknown = |number: &u32| known.version(*number).is_none();
    // Another session may have compressed it with a newer dictionary.
    let newer = record.dictionary().filter(is_unknown).map(|_| store.dictionaries.set());
    let known = newer.as_deref().unwrap_or(known);
    let find = |number| known.version(number).map(|version| &**version.dictionary());
    let mut bytes = Vec::new();
    decoder.decode_with(&record, &find, MAX_NODE_LEN, &mut bytes)?;
    Ok(Listpack::of_known(bytes))
}

/// Makes a listpack of any node, which may take reading it from disk.
pub(super) fn open(
    decoder: &mut Decoder,
    known: &DictionarySet,
    store: &Store,
    node: Closed<'_>,
) -> Result<Listpack, NodeError> {
    match node {
        Closed::Compressed(entry) => Ok(decompress(decoder, known, store, entry)?),
        Closed::Stored(key) => {
            let entry = store.load_node(key)?.ok_or(NodeError::Damaged)?;
            let listpack = decompress(decoder, known, store, entry.borrow())?;
            View::parse(listpack.as_bytes()).map_err(|_| NodeError::Damaged)?;
            Ok(listpack)
        }
    }
}

/// Returns whether an entry is that of a collection.
fn is_of(entry: EntryRef<'_>, collection: &Collection) -> bool {
    entry.collection().is_some_and(|current| std::ptr::eq(current, collection))
}

impl NodeError {
    /// Converts to the error of this key's value.
    pub(in crate::session) fn of(self, key: &[u8]) -> StoreError {
        match self {
            NodeError::Undecodable(source) => StoreError::Unreadable { key: key.to_vec(), source },
            NodeError::Damaged => StoreError::Damaged { key: key.to_vec() },
            NodeError::Disk(reason) => StoreError::Disk { reason },
            error @ NodeError::NoRoom => StoreError::Disk { reason: error.to_string() },
        }
    }
}

impl Session {
    /// Passes the elements of a node to `show`; the node is decoded unless it is in the cache.
    pub(in crate::session) fn with_node<R>(
        &mut self,
        content: &Content,
        show: impl FnOnce(View<'_>) -> R,
    ) -> Result<R, DecodeError> {
        match content {
            Content::Plain(listpack) => Ok(show(listpack.view())),
            Content::Compressed(compressed) => {
                self.note_use(compressed.borrow(), self.now());
                if let Some(bytes) = record_of(compressed.borrow()).as_identity() {
                    return Ok(show(View::of_known(bytes)));
                }
                if let Some(decoded) = self.store.node_cache.get(compressed) {
                    return Ok(show(decoded.listpack.view()));
                }
                let listpack = self.decompressed(compressed)?;
                let result = show(listpack.view());
                self.store.node_cache.keep(compressed, listpack);
                Ok(result)
            }
        }
    }

    /// Converts the error of a node to that of this key's value.
    pub(in crate::session) fn node_error(&self, error: NodeError, key: &[u8]) -> StoreError {
        match error {
            NodeError::NoRoom => self.out_of_memory(),
            error => error.of(key),
        }
    }

    pub(in crate::session) fn decompressed(&mut self, compressed: &Entry) -> Result<Listpack, DecodeError> {
        decompress(&mut self.decoder, &self.dictionaries, &self.store, compressed.borrow())
    }

    /// Reads the nodes from disk that are not in memory, and adds them to memory if their key is given.
    /// `None` says that the list has changed meanwhile, and must be looked up again. No more is read than
    /// memory may hold.
    pub(super) fn fetch(
        &mut self,
        key: Option<Key<'_>>,
        pieces: Vec<Piece>,
    ) -> Result<Option<Nodes>, NodeError> {
        let most = self.settings.most_read();
        let mut read_bytes = 0;
        let mut fetched = Vec::with_capacity(pieces.len());
        for Piece { source, elements } in pieces {
            let is_on_disk = matches!(source, Source::Disk(..));
            let Some(content) = self.fetch_node(key, source)? else { return Ok(None) };
            read_bytes += if is_on_disk { content.memory() as u64 } else { 0 };
            if read_bytes > most {
                return Err(NodeError::NoRoom);
            }
            fetched.push((content, elements));
        }
        Ok(Some(fetched))
    }

    /// Like [`Session::fetch`], for one node.
    pub(super) fn fetch_node(
        &mut self,
        key: Option<Key<'_>>,
        source: Source,
    ) -> Result<Option<Content>, NodeError> {
        let (id, node) = match source {
            Source::Memory(content) => return Ok(Some(content)),
            Source::Disk(id, node) => (id, node),
        };
        let content = self.store.load_node(node)?.map(Content::Compressed);
        if let Some((content, key)) = content.as_ref().zip(key) {
            self.keep_node(key, (id, node), content.clone());
        }
        Ok(content)
    }

    /// Takes a node into memory that was read from disk, if there is room for it.
    fn keep_node(&mut self, key: Key<'_>, (id, node): (NodeId, NodeKey), content: Content) {
        let store = self.store.clone();
        let max_memory = self.settings.max_memory;
        if max_memory > 0 {
            self.compress_for_room(content.memory() as u64);
            let policy = self.settings.eviction;
            let random = || self.random.u64(..);
            store.keyspace.make_room(policy, max_memory, content.memory() as u64, self.is_holding, random);
        }
        let mut shard = store.keyspace.lock(key.shard());
        if let Some(index) = shard.locate(key, self.now()).live() {
            with_list(&mut shard, key.database, index, |list| list.keep(id, node, content));
        }
    }

    /// Compresses the nodes that are to be compressed, if the list is still that of the key.
    pub(super) fn compress_nodes(&mut self, key: Key<'_>, list: &Arc<Collection>, mut next: Option<Due>) {
        let layout = self.settings.lists.layout();
        while let Some(due) = next.take() {
            let compressed = self.compressed(key.bytes, &due);
            let store = self.store.clone();
            let mut shard = store.keyspace.lock(key.shard());
            let presence = shard.locate(key, self.now());
            if let Some(index) = presence.live()
                && is_of(shard.entry(key.database, index), list)
            {
                let compressed = with_list(&mut shard, key.database, index, |list| {
                    list.compress(due, compressed);
                    list.next_due(layout)
                });
                next = compressed.flatten();
            }
        }
    }

    /// Queues changed nodes for compression, and compresses those that have waited for the longest time,
    /// where the queue has become too long.
    pub(super) fn let_wait(&mut self, key: Key<'_>, list: &Arc<Collection>, edited: Vec<(NodeId, usize)>) {
        let compressed = edited.len() * MOST_COMPRESSED;
        for (id, bytes) in edited {
            let (database, key, list) = (key.database, key.bytes.into(), Arc::downgrade(list));
            self.store.dirty_nodes.note(DirtyNode { database, key, list, id, bytes });
        }
        for _ in 0..compressed {
            let limit = self.settings.lists.cache_bytes;
            let Some(node) = self.store.dirty_nodes.next_above(limit) else { break };
            self.compress_dirty(node, false);
        }
    }

    /// Queues the waiting nodes of a list that has got this key.
    pub(in crate::session) fn wait_under(&mut self, key: Key<'_>, list: &Arc<Collection>) {
        let store = self.store.clone();
        let mut shard = store.keyspace.lock(key.shard());
        let presence = shard.locate(key, self.now());
        let is_there = |&index: &usize| is_of(shard.entry(key.database, index), list);
        let Some(index) = presence.live().filter(is_there) else { return };
        let edited = with_list(&mut shard, key.database, index, |list| {
            list.wait_anew();
            list.take_newly_edited()
        });
        drop(shard);
        self.let_wait(key, list, edited.unwrap_or_default());
    }

    /// Compresses changed nodes until `need` more bytes fit into memory: they would have become smaller anyway, so they go
    /// before any key does.
    pub(in crate::session) fn compress_for_room(&mut self, need: u64) {
        let (store, max_memory) = (self.store.clone(), self.settings.max_memory);
        if max_memory == 0 {
            return;
        }
        for _ in 0..store.dirty_nodes.count() {
            if store.used_memory().saturating_add(need) <= max_memory {
                break;
            }
            let Some(node) = store.dirty_nodes.next_above(0) else { break };
            self.compress_dirty(node, true);
        }
    }

    /// Compresses a node that has waited for it, unless it was changed again and its memory is not wanted at once.
    fn compress_dirty(&mut self, node: DirtyNode, at_once: bool) {
        let Some(list) = node.list.upgrade() else { return };
        let store = self.store.clone();
        let key = store.keyspace.key(node.database, &node.key);
        // A thread that holds shards must not wait for others.
        let held = self.is_holding.then(|| store.keyspace.try_hold(key.hash));
        if matches!(held, Some(None)) {
            return store.dirty_nodes.note(node);
        }
        let mut shard = store.keyspace.lock(key.shard());
        let presence = shard.locate(key, self.now());
        let is_there = |&index: &usize| is_of(shard.entry(node.database, index), &list);
        // Under another key, its nodes wait anew.
        let Some(index) = presence.live().filter(is_there) else { return };
        let layout = self.settings.lists.layout();
        let released = with_list(&mut shard, node.database, index, |list| {
            let waits = list.release_edited(node.id, at_once);
            (waits, list.next_due(layout))
        });
        drop(shard);
        match released {
            Some((true, _)) => store.dirty_nodes.note(node),
            Some((false, due)) => self.compress_nodes(key, &list, due),
            None => {}
        }
    }

    /// Compresses a node; `None` if that takes no less room.
    pub(super) fn compressed(&mut self, key: &[u8], due: &Due) -> Option<Entry> {
        self.show_node(key, due);
        let access = Access::written(self.now());
        let record = self.encode_node(key, due.bytes(), true);
        let takes_less = entry_allocation_size(OVERHEAD + record.encoded_len()) < due.memory();
        let entry = takes_less.then(|| Entry::new(b"", &record, Properties::plain(access)));
        self.note_buffers();
        entry
    }

    /// Encodes a node of a key's list, with the dictionary for it if there is one. `is_new` says whether it
    /// counts for the statistics of compressed nodes.
    pub(super) fn encode_node<'a>(&'a mut self, key: &[u8], node: &'a [u8], is_new: bool) -> Record<'a> {
        let Some(choice) = self.settings.lists.node_codec() else { return Record::identity(node) };
        let version =
            version_for(&self.dictionaries, &self.settings, self.excluded.as_ref(), key, node.len());
        let dictionary = version.map(|version| (version.number(), &**version.dictionary()));
        let record = self.encoder.encode_with(choice, dictionary, node, OVERHEAD, entry_allocation_size);
        if is_new {
            version.inspect(|version| version.note(node.len(), record.payload().len()));
        }
        record
    }

    /// Returns the dictionary for a node of this many bytes, if there is one.
    pub(super) fn node_version(&self, key: &[u8], len: usize) -> Option<&Arc<Version>> {
        version_for(&self.dictionaries, &self.settings, self.excluded.as_ref(), key, len)
    }
}
