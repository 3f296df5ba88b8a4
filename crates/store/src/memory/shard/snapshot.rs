//! A shard's part of a snapshot: what its keys were when the snapshot began.
//!
//! A key that changes before the snapshot has shown it leaves its image behind; all others are shown as they
//! are when their shard's turn comes. What is evicted or expires in between leaves no image.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;

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

/// What a shard keeps for a snapshot that has not shown it yet.
#[derive(Default)]
pub(super) struct Awaited {
    /// Number of databases of which the snapshot has the shard's part.
    shown: usize,
    /// Images of the keys that have changed, by database and key; `None` if there was no such key.
    images: HashMap<(usize, Box<[u8]>), Option<Image>>,
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
        self.awaited.as_ref().is_some_and(|awaited| {
            key.database >= awaited.shown && !awaited.images.contains_key(&(key.database, key.bytes.into()))
        })
    }

    /// Keeps what a key is, before it changes, if a snapshot has not shown it yet. `read` reads nodes that are
    /// only on disk.
    pub(crate) fn keep_image(
        &mut self,
        key: Key<'_>,
        presence: Presence,
        read: &mut dyn FnMut(NodeKey) -> Result<Entry, NodeError>,
    ) {
        let Some(mut awaited) = self.awaited.take_if(|awaited| key.database >= awaited.shown) else { return };
        if let Place::Vacant(place) = awaited.images.entry((key.database, key.bytes.into())) {
            let image = presence.live().map(|index| Image::of(self.entry(key.database, index)));
            place.insert(image.map(|image| image.read_nodes(read)));
        }
        self.awaited = Some(awaited);
    }

    /// Returns the shard's part of a database as it was when the snapshot began, which has shown the databases
    /// before that; `None` if all keys of a database were removed or exchanged since.
    pub(crate) fn take_images(&mut self, database: usize, now: u64) -> Option<ShardImages> {
        let awaited = self.awaited.as_mut()?;
        awaited.shown = database + 1;
        let changed = awaited.images.extract_if(|(number, _), _| *number == database);
        let changed: HashMap<Box<[u8]>, Option<Image>> =
            changed.map(|((_, key), image)| (key, image)).collect();
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
