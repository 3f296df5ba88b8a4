//! One shard: its part of every database, under one lock, with its accounting and its part of the eviction
//! hand's way.
//!
//! It knows entries by tag and key and is told the time. It must not know which keys belong to it, which is
//! the keyspace's business.
//!
//! - [`snapshot`]: what keys were when a snapshot began

mod snapshot;

use crate::changes::{Changes, KeyChange};
use crate::entry::{Access, Entry, EntryRef};
use crate::key::Key;
use crate::memory::database::Database;
use crate::slab::allocation_size;
use crate::values::Kind;
use crate::values::collection::{CollectionTotals, Guard};
use snapshot::Awaited;
pub(crate) use snapshot::Image;

pub(crate) struct Shard {
    changes: Changes,
    /// Number of changes of its keys, which tells whether what was read from disk is still current.
    version: u64,
    /// Database 0, which is the only one for most users, and costs no search in `others`.
    first: Database,
    /// Other databases that were written, sorted by number; most shards have none or one.
    others: Vec<(usize, Database)>,
    /// Position of the eviction hand.
    hand: Position,
    /// Images for a snapshot that has not shown the shard yet.
    awaited: Option<Box<Awaited>>,
    /// Entries that expired since the start.
    pub(crate) expired: u64,
    /// Entries evicted since the start.
    pub(crate) evicted: u64,
}

/// State of a key in a shard, for reading.
pub(crate) enum Look<'a> {
    Live(EntryRef<'a>),
    /// The entry is expired but present: the caller removes it under a lock that does the accounting.
    Expired,
    /// A tombstone says that there is no such key, whatever the disk says.
    Deleted,
    /// The key is not in memory, but may be on disk, if there is one.
    Unknown,
}

/// State and index of a key in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Live(usize),
    /// Index of a tombstone, which says that there is no such key.
    Deleted(usize),
    /// The key is not in memory, but may be on disk, if there is one.
    Unknown,
}

impl Presence {
    /// Returns the index of the live entry.
    pub(crate) fn live(self) -> Option<usize> {
        match self {
            Presence::Live(index) => Some(index),
            Presence::Deleted(_) | Presence::Unknown => None,
        }
    }

    /// Returns the index of the key's entry or tombstone.
    fn index(self) -> Option<usize> {
        match self {
            Presence::Live(index) | Presence::Deleted(index) => Some(index),
            Presence::Unknown => None,
        }
    }
}

/// Position in the order of a shard's entries.
#[derive(Clone, Copy, Default)]
pub(crate) struct Position {
    database: usize,
    tag: u16,
}

/// Result of one sweep of the eviction hand.
pub(crate) struct Sweep {
    /// Evicted entries, to be freed outside the lock.
    pub(crate) evicted: Vec<Entry>,
    /// Bytes of these entries.
    pub(crate) bytes: usize,
    /// Whether the hand has left the shard.
    pub(crate) finished: bool,
}

/// Result of one stretch of the defragmentation walk.
pub(crate) struct Defragmentation {
    /// Number of entries visited.
    pub(crate) seen: usize,
    /// Position to continue from, if the shard has more.
    pub(crate) rest: Option<Position>,
    /// Old copies of the moved entries, to be freed outside the lock.
    pub(crate) moved: Vec<Entry>,
}

impl Shard {
    pub(crate) fn new(changes: Changes) -> Shard {
        Shard {
            changes,
            version: 0,
            first: Database::default(),
            others: Vec::new(),
            hand: Position::default(),
            awaited: None,
            expired: 0,
            evicted: 0,
        }
    }

    /// Returns the number of changes of its keys.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    fn is_cache(&self) -> bool {
        self.changes.disk().is_some()
    }

    /// Puts an entry in its key's place, or by its tag if its key is new; returns the previous entry.
    pub(crate) fn put(&mut self, key: Key<'_>, presence: Presence, entry: Entry) -> Option<Entry> {
        self.version += 1;
        let change = if presence.live().is_some() { KeyChange::Written } else { KeyChange::Created };
        self.changes.written(key.database, entry.borrow(), change);
        let before = self.database(key.database).put(key.tag(), presence.index(), entry)?;
        (!before.borrow().is_tombstone()).then_some(before)
    }

    /// Adds an entry as it is on disk for a key that is not in memory.
    pub(crate) fn promote(&mut self, key: Key<'_>, entry: Entry) {
        self.database(key.database).put(key.tag(), None, entry);
    }

    /// Replaces an entry by one that has the same value, encoded differently: to clients, no key has changed.
    /// Returns the old entry, if it was in memory.
    pub(crate) fn reencoded(&mut self, key: Key<'_>, presence: Presence, entry: Entry) -> Option<Entry> {
        self.version += 1;
        self.changes.reencoded(key.database, entry.borrow());
        self.database(key.database).put(key.tag(), presence.index(), entry)
    }

    /// Replaces an entry by one that has the same value, encoded differently, if only `holders` handles and
    /// the table hold it, so that it is on disk if there is one; returns the old entry, or as the error the
    /// new one. Nothing is reported.
    pub(crate) fn exchange(
        &mut self,
        database: usize,
        index: usize,
        holders: u32,
        entry: Entry,
    ) -> Result<Entry, Entry> {
        if self.entry(database, index).holders() != holders {
            return Err(entry);
        }
        self.version += 1;
        Ok(self.database(database).replace(index, entry))
    }

    /// Changes part of a draft in place if possible; returns whether it did.
    pub(crate) fn edit(&mut self, database: usize, index: usize, offset: usize, bytes: &[u8]) -> bool {
        let changes = self.changes.clone();
        let is_edited = changes.edit(database, self.entry(database, index), offset, bytes);
        self.version += u64::from(is_edited);
        is_edited
    }

    /// Evicts an entry that is on disk as well and that `is_unused` accepts; returns whether there is nothing
    /// left to evict. An entry on its way to the disk, or held by a reader, stays.
    pub(crate) fn evict_clean(&mut self, key: Key<'_>, is_unused: impl Fn(Access) -> bool) -> bool {
        let Some(part) = self.existing_database_mut(key.database) else { return true };
        let Some(index) = part.table.find(key.tag(), key.bytes) else { return true };
        let entry = part.table.entry(index);
        if entry.is_tombstone() || !is_unused(entry.access()) {
            return true;
        }
        let is_held = entry.is_held();
        if !is_held {
            part.remove(index);
        }
        !is_held
    }

    /// Removes a live entry, for the reason that the change names.
    pub(crate) fn remove(&mut self, database: usize, index: usize, change: KeyChange) -> Entry {
        self.version += 1;
        if self.is_cache() {
            let tombstone = Entry::tombstone(self.entry(database, index).key());
            self.changes.written(database, tombstone.borrow(), change);
            return self.database(database).replace(index, tombstone);
        }
        let entry = self.database(database).remove(index);
        self.changes.gone(database, entry.borrow().key(), change);
        entry
    }

    /// Removes a live entry that was given an expiry in the past.
    pub(crate) fn expire_at_once(&mut self, database: usize, index: usize) -> Entry {
        self.expired += 1;
        self.remove(database, index, KeyChange::Expired)
    }

    /// Puts a tombstone where needed, so that there is no such key, whatever the disk says; the caller knows
    /// that there is no live entry.
    pub(crate) fn bury(&mut self, key: Key<'_>, change: KeyChange) {
        if self.is_cache() {
            self.version += 1;
            let tombstone = Entry::tombstone(key.bytes);
            self.changes.written(key.database, tombstone.borrow(), change);
            let part = self.database(key.database);
            let index = part.table.find(key.tag(), key.bytes);
            part.put(key.tag(), index, tombstone);
        }
    }

    /// Returns whether the memory tier knows a key, or its absence.
    pub(crate) fn knows(&self, key: Key<'_>) -> bool {
        self.find(key).is_some()
    }

    /// Finds the shard's part of a key's database, and the index of the key's entry or tombstone.
    fn find(&self, key: Key<'_>) -> Option<(&Database, usize)> {
        let part = self.existing_database(key.database)?;
        Some((part, part.table.find(key.tag(), key.bytes)?))
    }

    /// Removes an expired entry. It expires on disk as well, unless it is not there yet.
    fn expire(&mut self, database: usize, index: usize) -> Entry {
        let is_on_its_way = self.is_cache() && self.entry(database, index).is_held();
        if is_on_its_way {
            self.expired += 1;
            return self.remove(database, index, KeyChange::Expired);
        }
        self.expired += u64::from(!self.is_cache());
        let change = if self.is_cache() { KeyChange::Lapsed } else { KeyChange::Expired };
        let entry = self.database(database).remove(index);
        self.changes.gone(database, entry.borrow().key(), change);
        entry
    }

    pub(crate) fn set_expiry(&mut self, database: usize, index: usize, expiry: Option<u64>) {
        self.version += 1;
        self.database(database).set_expiry(index, expiry);
        if let Some(part) = self.existing_database(database) {
            self.changes.written(database, part.table.entry(index), KeyChange::Written);
        }
    }

    /// Changes a collection, which is not reported as a change of its key yet (see
    /// [`Shard::collection_changed`]); `None` if the entry is not a collection.
    pub(crate) fn with_collection<R>(
        &mut self,
        database: usize,
        index: usize,
        change: impl FnOnce(&mut Guard<'_>) -> R,
    ) -> Option<R> {
        self.database(database).with_collection(index, change)
    }

    /// Reports a collection of which nodes were re-encoded: to clients, no key has changed.
    pub(crate) fn nodes_reencoded(&mut self, database: usize, index: usize) {
        self.version += 1;
        if let Some(part) = self.existing_database(database) {
            self.changes.reencoded(database, part.table.entry(index));
        }
    }

    /// Reports a changed collection.
    pub(crate) fn collection_changed(&mut self, database: usize, index: usize) {
        self.version += 1;
        if let Some(part) = self.existing_database(database) {
            self.changes.written(database, part.table.entry(index), KeyChange::Written);
        }
    }

    /// Removes a tombstone, unless its key has been written since.
    pub(crate) fn forget(&mut self, tag: u16, tombstone: &Entry) {
        let key = tombstone.borrow().key();
        for (_, part) in self.databases_mut() {
            if let Some(index) = part.table.find(tag, key)
                && tombstone.same(part.table.entry(index))
            {
                part.remove(index);
                return;
            }
        }
    }

    /// Reports a key that expired on disk, and removes what memory has of it, if that has expired as well.
    pub(crate) fn expired_on_disk(&mut self, database: usize, tag: u16, key: &[u8], now: u64) {
        let part = self.existing_database(database);
        if let Some(index) = part.and_then(|part| part.table.find(tag, key)) {
            let entry = self.entry(database, index);
            if entry.is_tombstone() || !entry.is_expired(now) {
                return;
            }
            if entry.is_held() {
                // It may be on its way to the disk, from where the tombstone removes it unseen.
                self.remove(database, index, KeyChange::Expired);
                return;
            }
            self.database(database).remove(index);
        }
        self.changes.gone(database, key, KeyChange::Expired);
    }

    /// Puts a tombstone in the place of a key that is about to be evicted from disk, and returns it; `None`
    /// if the key must stay there.
    pub(crate) fn give_up(
        &mut self,
        database: usize,
        tag: u16,
        key: &[u8],
        spare_used: bool,
    ) -> Option<Entry> {
        let part = self.database(database);
        let index = part.table.find(tag, key);
        if let Some(entry) = index.map(|index| part.table.entry(index)) {
            let frequency = entry.access().frequency();
            if entry.is_held() || entry.is_tombstone() {
                return None;
            }
            if spare_used && frequency > 0 {
                entry.set_access(entry.access().with_frequency(frequency / 2));
                return None;
            }
        }
        let tombstone = Entry::tombstone(key);
        self.version += 1;
        self.database(database).put(tag, index, tombstone.borrow().to_owned());
        self.changes.gone(database, key, KeyChange::Evicted);
        Some(tombstone)
    }

    /// Returns the shard's part of a database, created when it is first needed.
    fn database(&mut self, number: usize) -> &mut Database {
        if number == 0 {
            return &mut self.first;
        }
        let place = self.place_of(number).unwrap_or_else(|place| {
            self.others.reserve_exact(1);
            self.others.insert(place, (number, Database::default()));
            place
        });
        &mut self.others[place].1
    }

    /// Frees the memory of a database without entries.
    fn drop_empty(&mut self, number: usize) {
        if let Ok(place) = self.place_of(number)
            && self.others[place].1.len() == 0
        {
            self.others.remove(place);
            self.others.shrink_to_fit();
        }
    }

    /// Returns the index of a database in `others`, or the index to insert it at.
    fn place_of(&self, number: usize) -> Result<usize, usize> {
        self.others.binary_search_by_key(&number, |(other, _)| *other)
    }

    /// Returns the shard's part of a database, if it was ever written.
    pub(crate) fn existing_database(&self, number: usize) -> Option<&Database> {
        match number {
            0 => Some(&self.first),
            _ => self.place_of(number).ok().map(|place| &self.others[place].1),
        }
    }

    /// Returns the entry at an index from [`Shard::find`].
    pub(crate) fn entry(&mut self, database: usize, index: usize) -> EntryRef<'_> {
        self.database(database).table.entry(index)
    }

    fn existing_database_mut(&mut self, number: usize) -> Option<&mut Database> {
        match number {
            0 => Some(&mut self.first),
            _ => self.place_of(number).ok().map(|place| &mut self.others[place].1),
        }
    }

    /// Returns the databases that were written, by number.
    fn databases(&self) -> impl Iterator<Item = (usize, &Database)> {
        std::iter::once((0, &self.first)).chain(self.others.iter().map(|(number, part)| (*number, part)))
    }

    fn first_database_from(&self, number: usize) -> Option<usize> {
        self.databases().map(|(existing, _)| existing).find(|existing| *existing >= number)
    }

    fn databases_mut(&mut self) -> impl Iterator<Item = (usize, &mut Database)> {
        let others = self.others.iter_mut().map(|(number, part)| (*number, part));
        std::iter::once((0, &mut self.first)).chain(others)
    }

    /// Takes one database, or all of them, out of the shard, which voids a snapshot; the caller reports the
    /// change.
    pub(crate) fn take(&mut self, database: Option<usize>) -> Vec<Database> {
        self.version += 1;
        self.awaited = None;
        match database {
            Some(0) => vec![std::mem::take(&mut self.first)],
            Some(number) => {
                let place = self.place_of(number).ok();
                place.map(|place| self.others.remove(place).1).into_iter().collect()
            }
            None => {
                let others = std::mem::take(&mut self.others).into_iter().map(|(_, part)| part);
                others.chain([std::mem::take(&mut self.first)]).collect()
            }
        }
    }

    /// Exchanges two databases, which voids a snapshot; the caller reports the change.
    pub(crate) fn swap(&mut self, first: usize, second: usize) {
        self.version += 1;
        self.awaited = None;
        let mut taken = std::mem::take(self.database(first));
        std::mem::swap(&mut taken, self.database(second));
        *self.database(first) = taken;
    }

    /// Returns the number of records that need each dictionary, a database at a time.
    pub(crate) fn dictionary_uses(&self) -> impl Iterator<Item = (u32, u32)> {
        self.databases().flat_map(|(_, part)| part.dictionaries.iter())
    }

    /// Returns the sums over the collections of a kind.
    pub(crate) fn collection_totals(&self, kind: Kind) -> CollectionTotals {
        let totals = self.databases().map(|(_, part)| part.collections.of(kind));
        totals.fold(CollectionTotals::default(), CollectionTotals::plus)
    }

    /// Returns the bytes of keys and values as clients gave them.
    pub(crate) fn given(&self) -> u64 {
        self.databases().map(|(_, part)| part.given()).sum()
    }

    /// Returns the bytes that entries, tables and indexes take in the allocator.
    pub(crate) fn memory(&self) -> usize {
        allocation_size(self.others.capacity() * size_of::<(usize, Database)>())
            + self.databases().map(|(_, part)| part.memory()).sum::<usize>()
    }

    /// Looks up a key for reading.
    pub(crate) fn look(&self, key: Key<'_>, now: u64) -> Look<'_> {
        let Some((part, index)) = self.find(key) else { return Look::Unknown };
        match part.table.entry(index) {
            entry if entry.is_tombstone() => Look::Deleted,
            entry if entry.is_expired(now) => Look::Expired,
            entry => Look::Live(entry),
        }
    }

    /// Looks up a key and its index. An expired entry is removed.
    pub(crate) fn locate(&mut self, key: Key<'_>, now: u64) -> Presence {
        let Some((part, index)) = self.find(key) else { return Presence::Unknown };
        let entry = part.table.entry(index);
        if entry.is_tombstone() {
            return Presence::Deleted(index);
        }
        if !entry.is_expired(now) {
            return Presence::Live(index);
        }
        self.expire(key.database, index);
        self.find(key).map_or(Presence::Unknown, |(_, index)| Presence::Deleted(index))
    }

    /// Returns the expiry of the next entry to expire, in Unix milliseconds.
    pub(crate) fn next_expiry(&self) -> Option<u64> {
        self.databases().filter_map(|(_, part)| part.expiries.next()).map(|(at, _)| at).min()
    }

    /// Removes up to `limit` expired entries.
    pub(crate) fn expire_due(&mut self, now: u64, limit: usize) -> Vec<Entry> {
        let mut gone = Vec::new();
        for place in 0..=self.others.len() {
            let database = place.checked_sub(1).map_or(0, |other| self.others[other].0);
            while gone.len() < limit
                && let Some((at, tag)) = self.database(database).expiries.next()
                && at <= now
            {
                match self.database(database).find_by_expiry(at, tag) {
                    Some(index) => gone.push(self.expire(database, index)),
                    None => self.database(database).expiries.remove(at, tag),
                }
            }
        }
        gone
    }

    /// Removes the entry that expires next.
    pub(crate) fn evict_next_to_expire(&mut self) -> Option<Entry> {
        let next = |(number, part): (usize, &Database)| Some((part.expiries.next()?, number));
        let ((at, tag), database) = self.databases().filter_map(next).min()?;
        self.evict_by_expiry(database, at, tag)
    }

    fn evict_by_expiry(&mut self, database: usize, at: u64, tag: u16) -> Option<Entry> {
        let index = self.database(database).find_by_expiry(at, tag)?;
        self.evicted += 1;
        Some(self.remove(database, index, KeyChange::Evicted))
    }

    /// Removes an entry chosen by the number `random`, or only one that expires.
    pub(crate) fn evict_random(&mut self, volatile_only: bool, random: u64) -> Option<Entry> {
        let candidates = |part: &Database| if volatile_only { part.expiries.len() } else { part.table.len() };
        let total: usize = self.databases().map(|(_, part)| candidates(part)).sum();
        let mut place = random.checked_rem(total as u64)? as usize;
        let (database, _) = self.databases().find(|(_, part)| {
            let here = candidates(part);
            let found = place < here;
            place -= if found { 0 } else { here };
            found
        })?;
        if volatile_only {
            let (at, tag) = self.database(database).expiries.get(place)?;
            return self.evict_by_expiry(database, at, tag);
        }
        self.evicted += 1;
        Some(self.remove(database, place, KeyChange::Evicted))
    }

    /// Moves the hand until `need` bytes are free or it has left the shard (see [`crate::EvictionPolicy`]).
    pub(crate) fn sweep(&mut self, volatile_only: bool, need: usize) -> Sweep {
        let mut sweep = Sweep { evicted: Vec::new(), bytes: 0, finished: false };
        let is_cache = self.is_cache();
        while let Some(number) = self.first_database_from(self.hand.database) {
            if number > self.hand.database {
                self.hand = Position { database: number, tag: 0 };
            }
            let part = match self.place_of(number) {
                Ok(place) => &mut self.others[place].1,
                Err(_) => &mut self.first,
            };
            if !(volatile_only && part.expiries.len() == 0) {
                let mut index = part.table.lower_bound(self.hand.tag);
                while index < part.table.len() {
                    if sweep.bytes >= need {
                        self.hand.tag = part.table.tag(index);
                        self.evicted += if is_cache { 0 } else { sweep.evicted.len() as u64 };
                        return sweep;
                    }
                    if is_cache {
                        // Most nodes of a collection are idle and on disk even if the collection is in use or
                        // on its way there.
                        let rest = need - sweep.bytes;
                        let shed = part.with_collection(index, |collection| collection.shed(rest));
                        sweep.bytes += shed.unwrap_or_default();
                    }
                    let entry = part.table.entry(index);
                    let frequency = entry.access().frequency();
                    let must_stay = is_cache && (entry.is_held() || entry.is_tombstone());
                    if must_stay || volatile_only && entry.expiry().is_none() {
                        index += 1;
                    } else if frequency > 0 {
                        entry.set_access(entry.access().with_frequency(frequency / 2));
                        index += 1;
                    } else {
                        sweep.bytes += entry.allocation_size();
                        if !is_cache {
                            self.changes.gone(number, entry.key(), KeyChange::Evicted);
                        }
                        sweep.evicted.push(part.remove(index));
                    }
                }
            }
            self.drop_empty(number);
            self.hand = Position { database: number + 1, tag: 0 };
        }
        self.hand = Position::default();
        self.evicted += if is_cache { 0 } else { sweep.evicted.len() as u64 };
        sweep.finished = true;
        sweep
    }

    /// Moves entries out of sparse pages, from a position on, until about `limit` were visited.
    pub(crate) fn defragment(&mut self, from: Position, limit: usize) -> Defragmentation {
        let mut result = Defragmentation { seen: 0, rest: None, moved: Vec::new() };
        for (number, part) in self.databases_mut().skip_while(|(number, _)| *number < from.database) {
            let start = if number == from.database { from.tag } else { 0 };
            for index in part.table.lower_bound(start)..part.table.len() {
                let tag = part.table.tag(index);
                // Never between entries of one tag: the next stretch starts at a tag's first.
                if result.seen >= limit && (index == 0 || part.table.tag(index - 1) != tag) {
                    result.rest = Some(Position { database: number, tag });
                    return result;
                }
                result.seen += 1;
                if let Some(copy) = part.table.entry(index).relocate() {
                    result.moved.push(part.table.replace(index, copy));
                }
                let moved = part.with_collection(index, |collection| collection.relocate());
                result.moved.extend(moved.unwrap_or_default());
            }
        }
        result
    }
}
