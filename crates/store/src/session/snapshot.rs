//! All keys as they are at one instant, shown while others change them.
//!
//! A key that changes for the first time leaves its image behind (see `memory::shard`), so that nobody waits
//! and unchanged keys take no memory. Keys that are evicted or expire before they are shown are left out.

use std::collections::HashSet;
use std::sync::Arc;

use thiserror::Error;

use super::{Session, StoreError, Value};
use crate::dictionaries::set::DictionarySet;
use crate::disk::Disk;
use crate::disk::snapshot::DiskSnapshot;
use crate::entry::Entry;
use crate::memory::shard::Image;
use crate::store::Store;
use crate::tiers::unreadable;
use crate::values::Kind;
use crate::values::collection::{NodeError, NodeImage, NodeKey};
use crate::values::quicklist::node::Content;
use crate::values::quicklist::reading::Source;

/// Reason why a snapshot cannot be shown.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// All keys of a database were removed, or two databases exchanged: a new snapshot can be shown.
    #[error("a database was flushed, or two were exchanged, before all keys were shown")]
    Flushed,
    /// A list has changed that is too long to be kept as it was.
    #[error("the list {key:?} has changed, and more of it is on disk than memory may hold", key = String::from_utf8_lossy(key))]
    TooLong {
        /// The list's key.
        key: Vec<u8>,
    },
    /// A value cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All keys of a store as they were when the snapshot began. Dropping it ends the snapshot.
pub struct KeyspaceSnapshot {
    store: Arc<Store>,
    /// Sets of dictionaries that keys may need, which are kept as long as the snapshot lasts.
    dictionaries: Vec<Arc<DictionarySet>>,
}

impl Drop for KeyspaceSnapshot {
    fn drop(&mut self) {
        self.store.keyspace.end_snapshot();
    }
}

/// A key of a snapshot.
pub struct SnapshotKey<'s> {
    session: &'s mut Session,
    /// Rows that have the nodes which are only on disk.
    rows: Option<&'s DiskSnapshot<'s>>,
    value: Value,
    expiry: Option<u64>,
    nodes: Vec<NodeImage>,
}

impl Session {
    /// Begins a snapshot of all keys as they are now; `None` while there is another one.
    pub fn snapshot(&mut self) -> Option<KeyspaceSnapshot> {
        let has_begun = self.store.keyspace.begin_snapshot();
        has_begun.then(|| KeyspaceSnapshot { store: self.store.clone(), dictionaries: Vec::new() })
    }

    /// Passes the live keys of a database to `show` until it returns an error, each once. Databases are shown
    /// in ascending order.
    ///
    /// # Errors
    /// Errors of `show`, and [`SnapshotError`].
    pub fn show_snapshot<E: From<SnapshotError>>(
        &mut self,
        snapshot: &mut KeyspaceSnapshot,
        database: usize,
        mut show: impl FnMut(SnapshotKey<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_on_disk = self.store.database_stats(database).map_err(SnapshotError::from)?.keys > 0;
        for shard in 0..self.store.keyspace.shards() {
            self.follow_settings();
            snapshot.keep(&self.dictionaries);
            self.show_shard((shard, database), is_on_disk, &mut show)?;
        }
        Ok(())
    }

    /// Passes the live keys of one shard's part of a database to `show`.
    fn show_shard<E: From<SnapshotError>>(
        &mut self,
        (number, database): (usize, usize),
        is_on_disk: bool,
        show: &mut impl FnMut(SnapshotKey<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (store, now) = (self.store.clone(), self.now());
        let mut shard = store.keyspace.lock(number);
        let taken = shard.take_images(database, now).ok_or(SnapshotError::Flushed)?;
        // Other keys are what is on disk now, which may change as soon as the shard is released.
        let generation = store.changes.generation(database);
        let rows = store.disk().filter(|_| is_on_disk).map(Disk::snapshot).transpose();
        drop(shard);
        let rows = rows.map_err(|error| SnapshotError::Store(unreadable(b"", error)))?;
        if let Some(rows) = &rows {
            let in_memory = taken.images.iter().map(|image| image.entry.borrow().key());
            let known: HashSet<&[u8]> = in_memory.chain(taken.absent.iter().map(|key| &**key)).collect();
            let wanted =
                |key: &[u8], expiry: Option<u64>| expiry.is_none_or(|at| at > now) && !known.contains(key);
            let mut outcome = Ok(());
            let scanned = rows.entries(generation, store.keyspace.hashes(number), wanted, |entry| {
                outcome = self.show_image(Image::of(entry.borrow()), Some(rows), show);
                outcome.is_ok()
            });
            outcome?;
            scanned.map_err(|(key, error)| SnapshotError::Store(unreadable(&key, error)))?;
        }
        taken.images.into_iter().try_for_each(|image| self.show_image(image, rows.as_ref(), show))
    }

    fn show_image<E: From<SnapshotError>>(
        &mut self,
        image: Image,
        rows: Option<&DiskSnapshot<'_>>,
        show: &mut impl FnMut(SnapshotKey<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Image { entry, expiry, nodes } = image;
        let nodes = nodes.transpose().map_err(|error| match error {
            NodeError::NoRoom => SnapshotError::TooLong { key: entry.borrow().key().to_vec() },
            error => SnapshotError::Store(error.of(entry.borrow().key())),
        })?;
        show(SnapshotKey {
            session: self,
            rows,
            value: Value(entry),
            expiry,
            nodes: nodes.unwrap_or_default(),
        })
    }
}

impl KeyspaceSnapshot {
    /// Keeps dictionaries that images may need.
    fn keep(&mut self, dictionaries: &Arc<DictionarySet>) {
        if !self.dictionaries.last().is_some_and(|last| Arc::ptr_eq(last, dictionaries)) {
            self.dictionaries.push(dictionaries.clone());
        }
    }
}

impl SnapshotKey<'_> {
    /// Returns the key.
    pub fn key(&self) -> &[u8] {
        self.value.key()
    }

    /// Returns the kind of its value.
    pub fn kind(&self) -> Kind {
        self.value.kind()
    }

    /// Returns the expiry, in Unix milliseconds.
    pub fn expiry(&self) -> Option<u64> {
        self.expiry
    }

    /// Appends a string to `out`, decompressed.
    ///
    /// # Errors
    /// Errors of [`Session::read`].
    pub fn read(&mut self, out: &mut Vec<u8>) -> Result<(), StoreError> {
        self.session.read(&self.value, out)
    }

    /// Returns the length of each node of a list as a listpack, in bytes.
    pub fn node_lens(&self) -> impl Iterator<Item = usize> {
        self.nodes.iter().map(|node| node.raw_len)
    }

    /// Passes the nodes of a list, as the bytes of listpacks, to `show`. Those that are only on disk are read
    /// one at a time.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`], [`StoreError::Damaged`] and [`StoreError::Disk`]; some were shown then.
    pub fn show_nodes(&mut self, mut show: impl FnMut(&[u8])) -> Result<(), StoreError> {
        for node in &self.nodes {
            let content = match &node.source {
                Source::Memory(content) => Ok(content.clone()),
                Source::Disk(_, key) => self.read_node(*key).map(Content::Compressed),
            };
            let content = content.map_err(|error| error.of(self.value.key()))?;
            let shown = self.session.with_node(&content, |node| show(node.as_bytes()));
            shown.map_err(|error| NodeError::from(error).of(self.value.key()))?;
        }
        Ok(())
    }

    fn read_node(&self, key: NodeKey) -> Result<Entry, NodeError> {
        let node = self.rows.ok_or(NodeError::Damaged)?.node(key);
        node.map_err(NodeError::of_disk)?.ok_or(NodeError::Damaged)
    }
}
