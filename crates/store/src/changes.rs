//! Who is told of changes: every change to a key passes here, under the lock of its shard.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::disk::dictionary::DictionaryRow;
use crate::disk::queue::{Change, Group, Item};
use crate::disk::row::Generation;
use crate::disk::{Disk, LoadMark};
use crate::memory::entry::EntryRef;

/// Is told that keys have changed, by whomever: written, deleted, expired, evicted, given another expiry.
///
/// It is called while the key's shard is locked, so that nobody sees the change earlier than the observer. It must be
/// quick and must not use the store.
pub trait Observer: Send + Sync {
    /// A key has changed.
    fn changed(&self, database: usize, key: &[u8]);

    /// All keys of a database have changed, or of all databases.
    fn flushed(&self, database: Option<usize>);
}

/// Where the shards report what changes. Cloning it copies a pointer.
#[derive(Clone)]
pub(crate) struct Changes(Arc<Listeners>);

struct Listeners {
    observer: Option<Arc<dyn Observer>>,
    disk: Option<Disk>,
    /// What the databases are called on disk. They change while all shards are locked.
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

    /// A key has a new entry, perhaps a tombstone, or its entry a new expiry.
    pub(crate) fn written(&self, database: usize, entry: EntryRef<'_>) {
        if let Some(observer) = &self.0.observer {
            observer.changed(database, entry.key());
        }
        if let Some(disk) = &self.0.disk {
            disk.queue().push(self.change(database, entry));
        }
    }

    /// A key has the same value as before, encoded differently: for the disk that is a change, and for nobody else.
    pub(crate) fn encoded_anew(&self, database: usize, entry: EntryRef<'_>) {
        if let Some(disk) = &self.0.disk {
            disk.queue().push(self.change(database, entry));
        }
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

    /// A dictionary is new, before any record needs it, or no record will need it any more.
    pub(crate) fn dictionary(&self, number: u32, row: Option<&DictionaryRow>) {
        if let Some(disk) = &self.0.disk {
            let row = row.map(|row| Arc::from(row.encode()));
            disk.queue().push(Item::Dictionary { number, row });
        }
    }

    /// New values are encoded with these dictionaries from now on.
    pub(crate) fn active_dictionaries(&self, numbers: impl Iterator<Item = u32>) {
        if let Some(disk) = &self.0.disk {
            disk.queue().push(Item::ActiveDictionaries(numbers.collect()));
        }
    }

    /// This is how far the store has been loaded from a file, behind all changes so far and in front of those to come.
    pub(crate) fn load_mark(&self, mark: Option<&LoadMark>) {
        if let Some(disk) = &self.0.disk {
            disk.queue().push(Item::Load(mark.map(|mark| mark.encode().into())));
        }
    }

    /// A key has gone from where it was; the disk knows already, or has never known it.
    pub(crate) fn gone(&self, database: usize, key: &[u8]) {
        if let Some(observer) = &self.0.observer {
            observer.changed(database, key);
        }
    }

    /// A database was emptied, or all of them, which on disk ends the use of all dictionaries as well. The caller has all
    /// shards.
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

    /// Two databases were exchanged. The caller has all shards.
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
