//! Notification of changes: every change to a key passes here, under the lock of its shard, on its way to the
//! disk tier and to the observer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::disk::change::{Change, Item};
use crate::disk::dictionary::DictionaryRow;
use crate::disk::queue::Group;
use crate::disk::row::Generation;
use crate::disk::{Disk, LoadMark};
use crate::entry::EntryRef;

/// What has become of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// It was not in memory, and has a value now. Only where everything is in memory that says that there was none.
    Created,
    /// Its value is another one, or its expiry.
    Written,
    /// It was removed.
    Removed,
    /// Its time has come, and it has gone.
    Expired,
    /// Its time has come, and nobody sees it any more. That it has gone is told when the disk has removed it, if it was
    /// there.
    Lapsed,
    /// It was removed for want of room.
    Evicted,
}

/// Receives every change of a key: written, deleted, expired, evicted, or given another expiry.
///
/// Called while the key's shard is locked, so that no reader sees the change before the observer does. It
/// must be quick and must not use the store.
pub trait Observer: Send + Sync {
    /// A key has changed.
    fn changed(&self, database: usize, key: &[u8], change: KeyChange);

    /// A key was looked up for reading, and there is none. No shard is held for it.
    fn missed(&self, _database: usize, _key: &[u8]) {}

    /// All keys of a database have changed, or of all databases.
    fn flushed(&self, database: Option<usize>);
}

/// The listeners that shards report changes to. Cloning copies a pointer.
#[derive(Clone)]
pub(crate) struct Changes(Arc<Listeners>);

struct Listeners {
    observer: Option<Arc<dyn Observer>>,
    disk: Option<Disk>,
    /// The databases' generations on disk. They change while all shards are locked.
    generations: Box<[AtomicU32]>,
}

impl Changes {
    pub(crate) fn new(
        observer: Option<Arc<dyn Observer>>,
        disk: Option<Disk>,
        generations: Vec<Generation>,
    ) -> Changes {
        let generations = generations.into_iter().map(AtomicU32::new).collect();
        Changes(Arc::new(Listeners { observer, disk, generations }))
    }

    pub(crate) fn disk(&self) -> Option<&Disk> {
        self.0.disk.as_ref()
    }

    pub(crate) fn generation(&self, database: usize) -> Generation {
        self.0.generations.get(database).map_or(Generation::MAX, |number| number.load(Ordering::Relaxed))
    }

    /// The database of a generation, unless it was flushed.
    pub(crate) fn database(&self, generation: Generation) -> Option<usize> {
        self.0.generations.iter().position(|number| number.load(Ordering::Relaxed) == generation)
    }

    /// Reports a new entry of a key, perhaps a tombstone, or a new expiry of its entry.
    pub(crate) fn written(&self, database: usize, entry: EntryRef<'_>, change: KeyChange) {
        if let Some(observer) = &self.0.observer {
            observer.changed(database, entry.key(), change);
        }
        if let Some(disk) = &self.0.disk {
            disk.queue().push(self.change(database, entry));
        }
    }

    /// Reports that a key's unchanged value was re-encoded, which is a change for the disk only.
    pub(crate) fn reencoded(&self, database: usize, entry: EntryRef<'_>) {
        if let Some(disk) = &self.0.disk {
            disk.queue().push(self.change(database, entry));
        }
    }

    /// Changes part of a draft in place if possible (see [`EntryRef::edit`]); returns whether it did. The
    /// caller holds the lock of the key's shard, and nothing borrowed from the draft's value.
    pub(crate) fn edit(&self, database: usize, entry: EntryRef<'_>, offset: usize, bytes: &[u8]) -> bool {
        let is_edited = match &self.0.disk {
            Some(disk) => disk.queue().edit(entry, offset, bytes),
            // SAFETY: the caller has the lock of the shard, and there is no queue.
            None => unsafe { entry.edit(offset, bytes) },
        };
        if !is_edited {
            return false;
        }
        if let Some(observer) = &self.0.observer {
            observer.changed(database, entry.key(), KeyChange::Written);
        }
        // A change that already waits for the disk is written as the draft is then.
        if let Some(disk) = self.0.disk.as_ref().filter(|_| !entry.is_queued()) {
            disk.queue().push(self.change(database, entry));
        }
        true
    }

    fn change(&self, database: usize, entry: EntryRef<'_>) -> Item {
        Item::Change(Change {
            generation: self.generation(database),
            entry: entry.to_owned(),
            expiry: entry.expiry(),
            in_group: Group::is_open(),
            _holds: None,
        })
    }

    /// Reports a new dictionary, before any record needs it, or with `None` one that no record will need any
    /// more.
    pub(crate) fn dictionary(&self, number: u32, row: Option<&DictionaryRow>) {
        if let Some(disk) = &self.0.disk {
            let row = row.map(|row| Arc::from(row.encode()));
            disk.queue().push(Item::Dictionary { number, row });
        }
    }

    /// Reports the dictionaries that new values are encoded with from now on.
    pub(crate) fn active_dictionaries(&self, numbers: impl Iterator<Item = u32>) {
        if let Some(disk) = &self.0.disk {
            disk.queue().push(Item::ActiveDictionaries(numbers.collect()));
        }
    }

    /// Reports the progress of loading from a file, between all changes so far and those to come.
    pub(crate) fn load_mark(&self, mark: Option<&LoadMark>) {
        if let Some(disk) = &self.0.disk {
            disk.queue().push(Item::Load(mark.map(|mark| mark.encode().into())));
        }
    }

    /// Reports that a key has gone from its database; the disk knows already, or has never known it.
    pub(crate) fn gone(&self, database: usize, key: &[u8], change: KeyChange) {
        if let Some(observer) = &self.0.observer {
            observer.changed(database, key, change);
        }
    }

    /// Reports that a key was looked up in vain.
    pub(crate) fn missed(&self, database: usize, key: &[u8]) {
        if let Some(observer) = &self.0.observer {
            observer.missed(database, key);
        }
    }

    /// Reports that one database was emptied, or all of them, which on disk ends the use of all dictionaries
    /// as well. The caller has all shards.
    pub(crate) fn flushed(&self, database: Option<usize>) {
        if let Some(observer) = &self.0.observer {
            observer.flushed(database);
        }
        let mut next = self.load().iter().max().map_or(0, |highest| highest + 1);
        for (number, generation) in self.0.generations.iter().enumerate() {
            if database.is_none_or(|database| database == number) {
                generation.store(next, Ordering::Relaxed);
                next += 1;
            }
        }
        self.renamed(database.is_none());
    }

    /// Reports that two databases were exchanged. The caller has all shards.
    pub(crate) fn swapped(&self, first: usize, second: usize) {
        if let Some(observer) = &self.0.observer {
            observer.flushed(Some(first));
            observer.flushed(Some(second));
        }
        if let (Some(a), Some(b)) = (self.0.generations.get(first), self.0.generations.get(second)) {
            let before = a.swap(b.load(Ordering::Relaxed), Ordering::Relaxed);
            b.store(before, Ordering::Relaxed);
        }
        self.renamed(false);
    }

    fn load(&self) -> Arc<[Generation]> {
        self.0.generations.iter().map(|number| number.load(Ordering::Relaxed)).collect()
    }

    fn renamed(&self, all_gone: bool) {
        if let Some(disk) = &self.0.disk {
            let generations = self.load();
            disk.queue().push(Item::Generations { generations, all_gone, in_group: Group::is_open() });
        }
    }
}
