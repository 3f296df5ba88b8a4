//! One shard: its part of every database, under one lock, with its accounting and its stretch of the eviction hand.
//!
//! It knows entries by tag and key and is told the time. Which keys belong to it is the keyspace's business.

use crate::changes::Changes;
use crate::memory::allocation_size;
use crate::memory::database::Database;
use crate::memory::entry::{Access, Entry, EntryRef};
use crate::quicklist::{ListTotals, Quicklist};

pub(crate) struct Shard {
    changes: Changes,
    /// How often keys have changed: tells whether what was read from disk is still true.
    version: u64,
    /// Database 0, which is the only one for most users, costs no step through `others`.
    first: Database,
    /// The databases from 1 on that were written, in the order of their numbers, which most shards have none or one of.
    others: Vec<(usize, Database)>,
    /// Where the eviction hand stands.
    hand: Position,
    /// Entries removed because their time had come, since the start.
    pub(crate) expired: u64,
    /// Entries removed to make room, since the start.
    pub(crate) evicted: u64,
}

/// What a shard knows of a key, for reading.
pub(crate) enum Look<'a> {
    Live(EntryRef<'a>),
    /// It is still there although its time has come: the caller removes it under a lock that accounts for that.
    Expired,
    /// There is no such key, whatever the disk says.
    Deleted,
    /// It is not here. On disk, if there is one, it may be.
    Unknown,
}

/// What a shard knows of a key, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Live(usize),
    /// There is no such key: this is the place of the tombstone that says so.
    Deleted(usize),
    /// It is not here. On disk, if there is one, it may be.
    Unknown,
}

impl Presence {
    /// Where the live entry is.
    pub(crate) fn live(self) -> Option<usize> {
        match self {
            Presence::Live(index) => Some(index),
            Presence::Deleted(_) | Presence::Unknown => None,
        }
    }

    /// Where the key's entry or tombstone is.
    fn index(self) -> Option<usize> {
        match self {
            Presence::Live(index) | Presence::Deleted(index) => Some(index),
            Presence::Unknown => None,
        }
    }
}

/// A place in the order of a shard's entries.
#[derive(Clone, Copy, Default)]
pub(crate) struct Position {
    database: usize,
    tag: u16,
}

/// What one stretch of the eviction hand did.
pub(crate) struct Sweep {
    /// The entries that went, to be freed outside the lock.
    pub(crate) evicted: Vec<Entry>,
    /// Their bytes.
    pub(crate) bytes: usize,
    /// Whether the hand has left the shard.
    pub(crate) finished: bool,
}

/// What one stretch of the walk against fragmentation did.
pub(crate) struct Defragmentation {
    /// How many entries were looked at.
    pub(crate) seen: usize,
    /// Where to go on, if the shard has more.
    pub(crate) rest: Option<Position>,
    /// The entries' former places, to be freed outside the lock.
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
            expired: 0,
            evicted: 0,
        }
    }

    /// How often keys have changed.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    fn is_cache(&self) -> bool {
        self.changes.disk().is_some()
    }

    /// Puts an entry in its key's place, or where `tag` says if its key is new; gives what was there.
    pub(crate) fn put(
        &mut self,
        database: usize,
        tag: u16,
        presence: Presence,
        entry: Entry,
    ) -> Option<Entry> {
        self.version += 1;
        self.changes.written(database, entry.borrow());
        let before = self.database(database).put(tag, presence.index(), entry)?;
        (!before.borrow().is_tombstone()).then_some(before)
    }

    /// Puts an entry as it is on disk in the place of a key that is not here.
    pub(crate) fn promote(&mut self, database: usize, tag: u16, entry: Entry) {
        self.database(database).put(tag, None, entry);
    }

    /// Puts an entry in the place of another that has the same value, encoded differently: to clients, no key has changed.
    /// Gives the other, if it was here.
    pub(crate) fn encoded_anew(
        &mut self,
        database: usize,
        tag: u16,
        presence: Presence,
        entry: Entry,
    ) -> Option<Entry> {
        self.version += 1;
        self.changes.encoded_anew(database, entry.borrow());
        self.database(database).put(tag, presence.index(), entry)
    }

    /// Removes an entry that is on disk as well and unused, as its access says; says whether there is nothing left to be
    /// removed. While it is on its way to the disk, or somebody reads it, there is.
    pub(crate) fn let_go(
        &mut self,
        database: usize,
        tag: u16,
        key: &[u8],
        is_unused: impl Fn(Access) -> bool,
    ) -> bool {
        let Some(part) = self.existing_database_mut(database) else { return true };
        let Some(index) = part.table.find(tag, key) else { return true };
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

    /// Removes a live entry.
    pub(crate) fn remove(&mut self, database: usize, index: usize) -> Entry {
        self.version += 1;
        if self.is_cache() {
            let tombstone = Entry::tombstone(self.entry(database, index).key());
            self.changes.written(database, tombstone.borrow());
            return self.database(database).replace(index, tombstone);
        }
        let entry = self.database(database).remove(index);
        self.changes.gone(database, entry.borrow().key());
        entry
    }

    /// Removes a live entry that was given a time that has come.
    pub(crate) fn expire_at_once(&mut self, database: usize, index: usize) -> Entry {
        self.expired += 1;
        self.remove(database, index)
    }

    /// Makes certain that there is no such key, whatever the disk says; the caller knows that there is no live entry.
    pub(crate) fn bury(&mut self, database: usize, tag: u16, key: &[u8]) {
        if self.is_cache() {
            self.version += 1;
            let tombstone = Entry::tombstone(key);
            self.changes.written(database, tombstone.borrow());
            let part = self.database(database);
            let index = part.table.find(tag, key);
            part.put(tag, index, tombstone);
        }
    }

    /// Whether the memory tier knows of a key, or of its absence.
    pub(crate) fn knows(&self, database: usize, tag: u16, key: &[u8]) -> bool {
        self.existing_database(database).is_some_and(|part| part.table.find(tag, key).is_some())
    }

    /// Removes an entry whose time has come. On disk it has come as well, unless the entry is not there yet.
    fn expire(&mut self, database: usize, index: usize) -> Entry {
        let is_on_its_way = self.is_cache() && self.entry(database, index).is_held();
        if is_on_its_way {
            self.expired += 1;
            return self.remove(database, index);
        }
        self.expired += u64::from(!self.is_cache());
        let entry = self.database(database).remove(index);
        self.changes.gone(database, entry.borrow().key());
        entry
    }

    pub(crate) fn set_expiry(&mut self, database: usize, index: usize, expiry: Option<u64>) {
        self.version += 1;
        self.database(database).set_expiry(index, expiry);
        if let Some(part) = self.existing_database(database) {
            self.changes.written(database, part.table.entry(index));
        }
    }

    /// Changes a list, which is no change of its key yet (see [`Shard::list_changed`]); `None` if the entry is none.
    pub(crate) fn with_list<R>(
        &mut self,
        database: usize,
        index: usize,
        change: impl FnOnce(&mut Quicklist) -> R,
    ) -> Option<R> {
        self.database(database).with_list(index, change)
    }

    /// Tells of a list of which nodes were encoded anew: to clients, no key has changed.
    pub(crate) fn list_encoded_anew(&mut self, database: usize, index: usize) {
        self.version += 1;
        if let Some(part) = self.existing_database(database) {
            self.changes.encoded_anew(database, part.table.entry(index));
        }
    }

    /// Tells of a list that was changed.
    pub(crate) fn list_changed(&mut self, database: usize, index: usize) {
        self.version += 1;
        if let Some(part) = self.existing_database(database) {
            self.changes.written(database, part.table.entry(index));
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

    /// Tells of a key whose time had come on disk, unless it is in memory too, where it is told of when it goes.
    pub(crate) fn expired_on_disk(&self, database: usize, tag: u16, key: &[u8]) {
        let part = self.existing_database(database);
        if part.is_none_or(|part| part.table.find(tag, key).is_none()) {
            self.changes.gone(database, key);
        }
    }

    /// Puts a tombstone in the place of a key that is about to be removed from disk, and gives it; `None` if the key is
    /// to stay there.
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
        self.changes.gone(database, key);
        Some(tombstone)
    }

    /// The shard's part of a database, made when it is first needed.
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

    /// Gives back the memory of a database that has no entry any more.
    fn drop_empty(&mut self, number: usize) {
        if let Ok(place) = self.place_of(number)
            && self.others[place].1.len() == 0
        {
            self.others.remove(place);
            self.others.shrink_to_fit();
        }
    }

    /// Where in `others` a database is, or where it belongs.
    fn place_of(&self, number: usize) -> Result<usize, usize> {
        self.others.binary_search_by_key(&number, |(other, _)| *other)
    }

    /// The shard's part of a database, if it was ever written.
    pub(crate) fn existing_database(&self, number: usize) -> Option<&Database> {
        match number {
            0 => Some(&self.first),
            _ => self.place_of(number).ok().map(|place| &self.others[place].1),
        }
    }

    /// The entry at an index that [`Shard::find`] gave.
    pub(crate) fn entry(&mut self, database: usize, index: usize) -> EntryRef<'_> {
        self.database(database).table.entry(index)
    }

    fn existing_database_mut(&mut self, number: usize) -> Option<&mut Database> {
        match number {
            0 => Some(&mut self.first),
            _ => self.place_of(number).ok().map(|place| &mut self.others[place].1),
        }
    }

    /// The databases that were written, by number.
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

    /// Takes one database, or all of them, out of the shard; whoever does it tells of the change.
    pub(crate) fn take(&mut self, database: Option<usize>) -> Vec<Database> {
        self.version += 1;
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

    /// Exchanges two databases; whoever does it tells of the change.
    pub(crate) fn swap(&mut self, first: usize, second: usize) {
        self.version += 1;
        let mut taken = std::mem::take(self.database(first));
        std::mem::swap(&mut taken, self.database(second));
        *self.database(first) = taken;
    }

    /// How many records need each dictionary, a database at a time.
    pub(crate) fn dictionary_uses(&self) -> impl Iterator<Item = (u32, u32)> {
        self.databases().flat_map(|(_, part)| part.dictionaries.iter())
    }

    /// What the lists take.
    pub(crate) fn list_totals(&self) -> ListTotals {
        self.databases().fold(ListTotals::default(), |totals, (_, part)| totals.plus(part.lists))
    }

    /// Bytes that entries, tables and indexes take in the allocator.
    pub(crate) fn memory(&self) -> usize {
        allocation_size(self.others.capacity() * size_of::<(usize, Database)>())
            + self.databases().map(|(_, part)| part.memory()).sum::<usize>()
    }

    /// What is known of a key, for reading.
    pub(crate) fn look(&self, database: usize, tag: u16, key: &[u8], now: u64) -> Look<'_> {
        let found =
            self.existing_database(database).and_then(|part| Some((part, part.table.find(tag, key)?)));
        let Some((part, index)) = found else { return Look::Unknown };
        match part.table.entry(index) {
            entry if entry.is_tombstone() => Look::Deleted,
            entry if entry.is_expired(now) => Look::Expired,
            entry => Look::Live(entry),
        }
    }

    /// What is known of a key, and where. An entry whose time has come is removed.
    pub(crate) fn locate(&mut self, database: usize, tag: u16, key: &[u8], now: u64) -> Presence {
        let find = |shard: &Shard| shard.existing_database(database)?.table.find(tag, key);
        let Some(index) = find(self) else { return Presence::Unknown };
        let entry = self.entry(database, index);
        if entry.is_tombstone() {
            return Presence::Deleted(index);
        }
        if !entry.is_expired(now) {
            return Presence::Live(index);
        }
        self.expire(database, index);
        find(self).map_or(Presence::Unknown, Presence::Deleted)
    }

    /// When the next entry expires, in Unix milliseconds.
    pub(crate) fn next_expiry(&self) -> Option<u64> {
        self.databases().filter_map(|(_, part)| part.expiries.next()).map(|(at, _)| at).min()
    }

    /// Removes up to `limit` entries whose time has come.
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
        Some(self.remove(database, index))
    }

    /// Removes an entry that the number chooses, or one that expires.
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
        Some(self.remove(database, place))
    }

    /// Moves the hand on until `need` bytes are free or it has left the shard (see [`crate::EvictionPolicy`]).
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
                        // Also of a list that is in use or on its way to the disk, most nodes are neither.
                        let rest = need - sweep.bytes;
                        sweep.bytes += part.with_list(index, |list| list.shed(rest)).unwrap_or_default();
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
                            self.changes.gone(number, entry.key());
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

    /// Moves entries that stand in sparse pages, from a place on, until about `limit` were looked at.
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
                result.moved.extend(part.with_list(index, Quicklist::relocate).unwrap_or_default());
            }
        }
        result
    }
}
