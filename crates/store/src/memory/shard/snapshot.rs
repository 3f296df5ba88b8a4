//! A shard's part of a snapshot: what its keys were when the snapshot began.
//!
//! A key that changes before the snapshot has shown it leaves its image behind; all others are shown as they
//! are when their shard's turn comes. Keys that are evicted or expire in between leave no image.

use std::collections::{BTreeMap, HashMap};

use super::{Presence, Shard};
use crate::entry::{Entry, EntryRef};
use crate::key::Key;
use crate::values::collection::{NodeError, NodeImage, NodeKey};

/// A key's value at one instant.
pub(crate) struct Image {
    pub(crate) entry: Entry,
    /// Expiry at that time, since it can be changed in place.
    pub(crate) expiry: Option<u64>,
    /// Nodes of a collection, which is changed in place.
    pub(crate) nodes: Option<Result<Vec<NodeImage>, NodeError>>,
}

impl Image {
    pub(crate) fn of(entry: EntryRef<'_>) -> Image {
        let nodes = entry.collection().map(|collection| Ok(collection.lock().images()));
        Image { entry: entry.to_owned(), expiry: entry.expiry(), nodes }
    }

    /// Reads the nodes that are only on disk, which are gone from there once the collection has changed.
    fn read_nodes(mut self, read: &mut dyn FnMut(NodeKey) -> Result<Entry, NodeError>) -> Image {
        self.nodes = self.nodes.map(|nodes| {
            let in_memory = |node: NodeImage| node.in_memory(read);
            nodes.and_then(|nodes| nodes.into_iter().map(in_memory).collect())
        });
        self
    }
}

/// Images of keys that have changed; `None` if there was no such key.
type Images = HashMap<Box<[u8]>, Option<Image>>;

/// State of a shard that a snapshot has not shown yet.
#[derive(Default)]
pub(super) struct Awaited {
    /// Number of databases of which the snapshot has the shard's part.
    shown: usize,
    /// Images by database.
    images: BTreeMap<usize, Images>,
}

impl Awaited {
    fn owes(&self, key: Key<'_>) -> bool {
        let has_image = |images: &Images| images.contains_key(key.bytes);
        key.database >= self.shown && !self.images.get(&key.database).is_some_and(has_image)
    }
}

/// A shard's part of one database in a snapshot.
#[derive(Default)]
pub(crate) struct ShardImages {
    pub(crate) images: Vec<Image>,
    /// Keys that did not exist then, whatever the disk says.
    pub(crate) absent: Vec<Box<[u8]>>,
}

impl Shard {
    /// Begins a snapshot.
    pub(crate) fn begin_snapshot(&mut self) {
        self.awaited = Some(Box::default());
    }

    /// Ends the snapshot, whether or not it has shown the shard.
    pub(crate) fn end_snapshot(&mut self) {
        self.awaited = None;
    }

    /// Returns whether a key that changes now must leave an image behind.
    pub(crate) fn owes_image(&self, key: Key<'_>) -> bool {
        self.awaited.as_ref().is_some_and(|awaited| awaited.owes(key))
    }

    /// Keeps the image that a key owes before it changes. `read` reads nodes that are only on disk.
    pub(crate) fn keep_image(
        &mut self,
        key: Key<'_>,
        presence: Presence,
        read: &mut dyn FnMut(NodeKey) -> Result<Entry, NodeError>,
    ) {
        let image = presence.live().map(|index| Image::of(self.entry(key.database, index)).read_nodes(read));
        if let Some(awaited) = &mut self.awaited {
            awaited.images.entry(key.database).or_default().insert(key.bytes.into(), image);
        }
    }

    /// Returns the shard's part of a database as it was when the snapshot began, which has shown the databases
    /// before that; `None` if all keys of a database were removed or exchanged since.
    pub(crate) fn take_images(&mut self, database: usize, now: u64) -> Option<ShardImages> {
        let awaited = self.awaited.as_mut()?;
        awaited.shown = database + 1;
        let changed = awaited.images.remove(&database).unwrap_or_default();
        let mut taken = ShardImages::default();
        for (_, entry) in self.existing_database(database).into_iter().flat_map(|part| part.entries_from(0)) {
            if changed.contains_key(entry.key()) {
                continue;
            }
            match entry.is_tombstone() || entry.is_expired(now) {
                true => taken.absent.push(entry.key().into()),
                false => taken.images.push(Image::of(entry)),
            }
        }
        for (key, image) in changed {
            match image.filter(|image| image.expiry.is_none_or(|at| at > now)) {
                Some(image) => taken.images.push(image),
                None => taken.absent.push(key),
            }
        }
        Some(taken)
    }
}
