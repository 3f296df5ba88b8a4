//! Lookups and iteration over both tiers: a key that memory does not know is fetched from disk.
//!
//! The memory tier is authoritative where it knows a key: it has the newest entry, or a tombstone. Where it
//! does not, all changes of the key are on disk.

use std::collections::HashSet;

use crate::disk::row::NODES;
use crate::disk::{Disk, DiskError, Refusal, Room};
use crate::entry::{Access, Entry, EntryRef};
use crate::error::StoreError;
use crate::key::Key;
use crate::memory::keyspace::Locked;
use crate::memory::shard::{Look, Presence};
use crate::recompression::{Cold, Task};
use crate::settings::Settings;
use crate::store::{DatabaseStats, Store};
use crate::values::collection::{NodeError, NodeKey};
use crate::values::kind::UnknownKind;

/// Times that a key is looked for on disk while others change its shard, before they are kept out of it: a large value
/// takes longer to read than a busy shard stays as it is.
const TRIES: usize = 3;

/// Under what terms a thread looks a key up.
#[derive(Clone, Copy)]
pub(crate) struct LookupContext {
    pub(crate) settings: Settings,
    /// In Unix milliseconds.
    pub(crate) now: u64,
    /// Whether the thread holds shards, and so must not wait for others.
    pub(crate) holding: bool,
}

impl Store {
    pub(crate) fn disk(&self) -> Option<&Disk> {
        self.changes.disk()
    }

    /// Locks a key's shard once the memory tier knows the key, or its absence from disk is certain.
    pub(crate) fn resolve(
        &self,
        key: Key<'_>,
        terms: LookupContext,
    ) -> Result<(Locked<'_>, Presence), StoreError> {
        let mut absent_at = None;
        let mut held = None;
        let mut tries = 0;
        loop {
            let mut shard = self.keyspace.lock(key.shard());
            let presence = shard.locate(key, terms.now);
            let Some(disk) = self.disk() else { return Ok((shard, presence)) };
            let seen = (shard.version(), self.changes.generation(key.database));
            if presence != Presence::Unknown || absent_at == Some(seen) {
                return Ok((shard, presence));
            }
            drop(shard);
            if tries == TRIES && held.is_none() {
                held = Some(self.keyspace.hold(std::iter::once(key.hash)));
                continue;
            }
            tries += 1;
            let loaded = disk.load(seen.1, key.hash.hash, key.bytes, Access::written(terms.now));
            match loaded.map_err(|error| unreadable(key.bytes, error))? {
                Some(entry) if !entry.borrow().is_expired(terms.now) => {
                    let version = held.is_none().then_some(seen.0);
                    let holding = terms.holding || held.is_some();
                    self.promote(key, entry, version, LookupContext { holding, ..terms });
                }
                _ => absent_at = Some(seen),
            }
        }
    }

    /// Takes an entry from disk into memory as it is, unless its shard has changed since it was looked for: from
    /// `version`, if others could change it.
    fn promote(&self, key: Key<'_>, entry: Entry, version: Option<u64>, terms: LookupContext) {
        let Settings { max_memory, eviction, .. } = terms.settings;
        if max_memory > 0 {
            let need = entry.borrow().allocation_size() as u64;
            self.keyspace.make_room(eviction, max_memory, need, terms.holding, || 0);
        }
        let mut shard = self.keyspace.lock(key.shard());
        if version.is_none_or(|version| shard.version() == version)
            && shard.locate(key, terms.now) == Presence::Unknown
        {
            shard.promote(key, entry);
        }
    }

    /// A live key's entry, wherever it is and without taking it into memory, and the version of its shard at that time.
    pub(crate) fn find(&self, key: Key<'_>, now: u64) -> Result<Option<(Entry, u64)>, StoreError> {
        let shard = self.keyspace.lock(key.shard());
        let (version, generation) = (shard.version(), self.changes.generation(key.database));
        match (shard.look(key, now), self.disk()) {
            (Look::Live(entry), _) => Ok(Some((entry.to_owned(), version))),
            (Look::Unknown, Some(disk)) => {
                drop(shard);
                let loaded =
                    disk.load(generation, key.hash.hash, key.bytes, Access::idle(now, Cold::LONG_AGO));
                let entry = loaded.map_err(|error| unreadable(key.bytes, error))?;
                Ok(entry.filter(|entry| !entry.borrow().is_expired(now)).map(|entry| (entry, version)))
            }
            (Look::Unknown | Look::Deleted | Look::Expired, _) => Ok(None),
        }
    }

    /// A collection's node as it is on disk, if it is there.
    pub(crate) fn load_node(&self, node: NodeKey) -> Result<Option<Entry>, NodeError> {
        let Some(disk) = self.disk() else { return Ok(None) };
        let key = node.bytes();
        let loaded = disk.load(NODES, self.keyspace.hash(&key).hash, &key, Access::written(0));
        loaded.map_err(NodeError::of_disk)
    }

    /// Reads nodes of one collection from disk, at most so many bytes together.
    pub(crate) fn node_reader(&self, most: u64) -> impl FnMut(NodeKey) -> Result<Entry, NodeError> {
        let mut bytes = 0;
        move |node| {
            let node = self.load_node(node)?.ok_or(NodeError::Damaged)?;
            bytes += node.borrow().allocation_size() as u64;
            if bytes > most { Err(NodeError::NoRoom) } else { Ok(node) }
        }
    }

    /// Returns whether looking a key up needs no disk.
    pub fn is_in_memory(&self, database: usize, key: &[u8]) -> bool {
        if self.disk().is_none() {
            return true;
        }
        let key = self.keyspace.key(database, key);
        self.keyspace.lock(key.shard()).knows(key)
    }

    /// Returns whether reads from disk have taken so long lately that a thread that serves others should not
    /// wait for them: what the system has in memory is read in microseconds.
    pub fn reads_are_slow(&self) -> bool {
        self.disk().is_some_and(Disk::is_slow)
    }

    /// Fetches a key from disk into memory, if it is there: for a thread that can wait, before one looks the key up that
    /// should not.
    pub fn fetch(&self, database: usize, key: &[u8], now: u64) {
        let terms = LookupContext { settings: self.settings(), now, holding: false };
        // An error shows again when the key is looked up.
        let _ = self.resolve(self.keyspace.key(database, key), terms);
    }

    /// Evicts an entry that was read from disk without being wanted, unless it was used since; returns
    /// whether that is done, which it is not while the entry is on its way to the disk.
    pub(crate) fn evict_clean(&self, database: usize, key: &[u8], now: u64) -> bool {
        let key = self.keyspace.key(database, key);
        let is_unused = |access: Access| u64::from(access.idle_seconds(now)) >= Cold::LONG_AGO;
        self.keyspace.lock(key.shard()).evict_clean(key, is_unused)
    }

    /// Shows live keys of both tiers from `cursor` on, about `count`; returns the next cursor.
    pub(crate) fn scan(
        &self,
        database: usize,
        cursor: u64,
        count: usize,
        now: u64,
        show: impl FnMut(&[u8]),
    ) -> Result<u64, StoreError> {
        self.scan_for(None, database, cursor, count, now, show)
    }

    /// Like [`Store::scan`], and shows only keys that satisfy the filter, if there is one. Only entries and
    /// rows are read for it, and where a record is not in its row, its start.
    pub(crate) fn scan_for(
        &self,
        wanted: Option<Cold>,
        database: usize,
        cursor: u64,
        count: usize,
        now: u64,
        mut show: impl FnMut(&[u8]),
    ) -> Result<u64, StoreError> {
        let is_wanted = |entry: EntryRef<'_>| {
            !entry.is_tombstone() && !entry.is_expired(now) && wanted.is_none_or(|cold| cold.has(entry, now))
        };
        let reads_disk = wanted.is_none_or(|cold| cold.is_on_disk);
        let Some(disk) = self.disk().filter(|_| reads_disk) else {
            return Ok(self.keyspace.scan(database, cursor, count, |_, entry| {
                if is_wanted(entry) {
                    show(entry.key());
                }
            }));
        };
        // Memory first: what leaves it meanwhile is on disk by then.
        let mut known = Vec::new();
        let generation = self.changes.generation(database);
        let mut next = self.keyspace.scan(database, cursor, count, |position, entry| {
            known.push((position, entry.key().to_vec(), is_wanted(entry)));
        });
        let end = |next: u64| if next == 0 { u64::MAX } else { next };
        let mut found: Vec<(u64, Vec<u8>, bool)> = Vec::new();
        let from = self.keyspace.first_hash(cursor);
        let mut find = |hash, key: &[u8], expiry: Option<u64>, is_wanted| {
            let position = self.keyspace.position(hash);
            let is_enough = found.len() >= count && found.last().is_some_and(|(last, ..)| *last != position);
            if position >= end(next) || is_enough {
                next = end(next).min(position);
                return false;
            }
            found.push((position, key.to_vec(), is_wanted && expiry.is_none_or(|at| at > now)));
            true
        };
        let scanned = match wanted {
            None => disk.scan(generation, from, |hash, key, expiry| find(hash, key, expiry, true)),
            Some(cold) => disk.scan_for_cold(cold, generation, from, find),
        };
        scanned.map_err(|error| StoreError::Disk { reason: error.to_string() })?;
        let masked: HashSet<&[u8]> = known.iter().map(|(_, key, _)| &key[..]).collect();
        let on_disk = found.iter().filter(|(_, key, _)| !masked.contains(&key[..]));
        known
            .iter()
            .filter(|(position, ..)| *position < end(next))
            .chain(on_disk)
            .filter(|(.., is_wanted)| *is_wanted)
            .for_each(|(_, key, _)| show(key));
        Ok(if next == u64::MAX { 0 } else { next })
    }

    /// Visits live keys in memory from `cursor` on, about `count`, and shows those that recompression has work for, as far
    /// as values that stay are concerned; returns the next cursor.
    pub(crate) fn visit(
        &self,
        database: usize,
        cursor: u64,
        count: usize,
        now: u64,
        mut show: impl FnMut(&[u8], Task),
    ) -> u64 {
        self.keyspace.scan(database, cursor, count, |_, entry| {
            let is_live = !entry.is_tombstone() && !entry.is_expired(now);
            if let Some(task) = is_live.then(|| Task::of_visit(entry)).flatten() {
                show(entry.key(), task);
            }
        })
    }

    /// Returns the size of a database.
    ///
    /// # Errors
    /// [`StoreError::Disk`] if the disk cannot be read.
    pub fn database_stats(&self, database: usize) -> Result<DatabaseStats, StoreError> {
        let Some(disk) = self.disk() else { return Ok(self.memory_stats(database)) };
        let contents = disk
            .contents(self.changes.generation(database))
            .map_err(|error| StoreError::Disk { reason: error.to_string() })?;
        Ok(DatabaseStats { keys: contents.keys as usize, volatile_keys: contents.volatile_keys as usize })
    }

    pub(crate) fn disk_full(&self) -> StoreError {
        StoreError::DiskFull { max_disk: self.disk_stats().unwrap_or_default().max_disk }
    }

    /// Returns whether the disk cannot take what is written to a key, since its rows there are damaged.
    pub(crate) fn is_unwritable(&self, key: Key<'_>) -> bool {
        self.disk()
            .is_some_and(|disk| disk.is_unwritable(self.changes.generation(key.database), key.hash.hash))
    }

    /// Returns the reason to refuse a write that needs this room on disk.
    pub(crate) fn disk_refusal(&self, room: Room) -> Option<StoreError> {
        Some(match self.disk()?.refusal(room)? {
            Refusal::Full => self.disk_full(),
            Refusal::Failing(reason) => StoreError::Disk { reason },
        })
    }
}

impl NodeError {
    pub(crate) fn of_disk(error: DiskError) -> NodeError {
        match error {
            DiskError::Damaged => NodeError::Damaged,
            error => NodeError::Disk(error.to_string()),
        }
    }
}

pub(crate) fn unreadable(key: &[u8], error: DiskError) -> StoreError {
    match error {
        DiskError::Damaged => StoreError::Damaged { key: key.to_vec() },
        DiskError::UnknownKind(UnknownKind(kind)) => StoreError::UnknownKind { key: key.to_vec(), kind },
        other => StoreError::Disk { reason: other.to_string() },
    }
}
