//! One shard: its part of every database, under one lock, with its accounting and its stretch of the eviction hand.
//!
//! It knows entries by tag and key and is told the time. Which keys belong to it is the keyspace's business.

use crate::memory::allocation_size;
use crate::memory::entry::{Entry, EntryRef};
use crate::memory::expiry::{self, ExpiryIndex};
use crate::memory::table::Table;

#[derive(Default)]
pub(crate) struct Shard {
    databases: Vec<Database>,
    hand: Hand,
    /// Entries removed because their time had come, since the start.
    pub(crate) expired: u64,
    /// Entries removed to make room, since the start.
    pub(crate) evicted: u64,
}

/// Where the eviction hand stands inside the shard.
#[derive(Default)]
struct Hand {
    database: usize,
    tag: u16,
}

/// A shard's part of one database.
#[derive(Default)]
pub(crate) struct Database {
    table: Table,
    expiries: ExpiryIndex,
    entry_bytes: usize,
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

impl Shard {
    /// The shard's part of a database, made when it is first needed.
    pub(crate) fn database(&mut self, number: usize) -> &mut Database {
        if self.databases.len() <= number {
            self.databases.reserve_exact(number + 1 - self.databases.len());
            self.databases.resize_with(number + 1, Database::default);
        }
        &mut self.databases[number]
    }

    /// The shard's part of a database, if it was ever written.
    pub(crate) fn existing_database(&self, number: usize) -> Option<&Database> {
        self.databases.get(number)
    }

    /// Takes one database, or all of them, out of the shard.
    pub(crate) fn take(&mut self, database: Option<usize>) -> Vec<Database> {
        match database {
            Some(number) => self.databases.get_mut(number).map(std::mem::take).into_iter().collect(),
            None => std::mem::take(&mut self.databases),
        }
    }

    /// Bytes that entries, tables and indexes take in the allocator.
    pub(crate) fn memory(&self) -> usize {
        allocation_size(self.databases.capacity() * size_of::<Database>())
            + self.databases.iter().map(Database::memory).sum::<usize>()
    }

    /// Where a live entry is. One whose time has come is removed.
    pub(crate) fn find(&mut self, database: usize, tag: u16, key: &[u8], now: u64) -> Option<usize> {
        let part = self.databases.get_mut(database)?;
        let index = part.table.find(tag, key)?;
        if part.table.entry(index).is_expired(now) {
            part.remove(index);
            self.expired += 1;
            return None;
        }
        Some(index)
    }

    /// When the next entry expires, in Unix milliseconds.
    pub(crate) fn next_expiry(&self) -> Option<u64> {
        self.databases.iter().filter_map(|part| part.expiries.next()).map(|(at, _)| at).min()
    }

    /// Removes up to `limit` entries whose time has come.
    pub(crate) fn expire_due(&mut self, now: u64, limit: usize) -> Vec<Entry> {
        let mut gone = Vec::new();
        for part in &mut self.databases {
            while gone.len() < limit
                && let Some((at, tag)) = part.expiries.next()
                && at <= now
            {
                gone.extend(part.remove_by_expiry(at, tag));
            }
        }
        self.expired += gone.len() as u64;
        gone
    }

    /// Removes the entry that expires next.
    pub(crate) fn evict_next_to_expire(&mut self) -> Option<Entry> {
        let (_, number) = self
            .databases
            .iter()
            .enumerate()
            .filter_map(|(number, part)| part.expiries.next().map(|(at, _)| (at, number)))
            .min()?;
        let (at, tag) = self.databases[number].expiries.next()?;
        self.evicted += 1;
        self.databases[number].remove_by_expiry(at, tag)
    }

    /// Removes an entry that the number chooses, or one that expires.
    pub(crate) fn evict_random(&mut self, volatile_only: bool, random: u64) -> Option<Entry> {
        let candidates = |part: &Database| if volatile_only { part.expiries.len() } else { part.table.len() };
        let total: usize = self.databases.iter().map(candidates).sum();
        let mut place = random.checked_rem(total as u64)? as usize;
        for part in &mut self.databases {
            let here = candidates(part);
            if place >= here {
                place -= here;
                continue;
            }
            self.evicted += 1;
            return if volatile_only {
                let (at, tag) = part.expiries.get(place)?;
                part.remove_by_expiry(at, tag)
            } else {
                Some(part.remove(place))
            };
        }
        None
    }

    /// Moves the hand on until `need` bytes are free or it has left the shard (see [`crate::EvictionPolicy`]).
    pub(crate) fn sweep(&mut self, volatile_only: bool, need: usize) -> Sweep {
        let mut sweep = Sweep { evicted: Vec::new(), bytes: 0, finished: false };
        while let Some(part) = self.databases.get_mut(self.hand.database) {
            if !(volatile_only && part.expiries.len() == 0) {
                let mut index = part.table.lower_bound(self.hand.tag);
                while index < part.table.len() {
                    if sweep.bytes >= need {
                        self.hand.tag = part.table.tag(index);
                        self.evicted += sweep.evicted.len() as u64;
                        return sweep;
                    }
                    let entry = part.table.entry(index);
                    let frequency = entry.access().frequency();
                    if volatile_only && entry.expiry().is_none() {
                        index += 1;
                    } else if frequency > 0 {
                        entry.set_access(entry.access().with_frequency(frequency / 2));
                        index += 1;
                    } else {
                        sweep.bytes += allocation_size(entry.requested_len());
                        sweep.evicted.push(part.remove(index));
                    }
                }
            }
            self.hand = Hand { database: self.hand.database + 1, tag: 0 };
        }
        self.hand = Hand::default();
        self.evicted += sweep.evicted.len() as u64;
        sweep.finished = true;
        sweep
    }
}

impl Database {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// How many of the entries expire.
    pub(crate) fn volatile_len(&self) -> usize {
        self.expiries.len()
    }

    pub(crate) fn entry(&self, index: usize) -> EntryRef<'_> {
        self.table.entry(index)
    }

    /// The entries from a tag on, in order.
    pub(crate) fn entries_from(&self, tag: u16) -> impl Iterator<Item = (u16, EntryRef<'_>)> {
        (self.table.lower_bound(tag)..self.table.len())
            .map(|index| (self.table.tag(index), self.table.entry(index)))
    }

    /// Puts an entry in the place `index` of its key, or where `tag` says if its key is new.
    pub(crate) fn put(&mut self, tag: u16, index: Option<usize>, entry: Entry) -> Option<Entry> {
        self.enter(tag, entry.borrow());
        match index {
            Some(index) => {
                let old = self.table.replace(index, entry);
                self.leave(tag, old.borrow());
                Some(old)
            }
            None => {
                self.table.insert(tag, entry);
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, index: usize) -> Entry {
        let tag = self.table.tag(index);
        let entry = self.table.remove(index);
        self.leave(tag, entry.borrow());
        entry
    }

    pub(crate) fn set_expiry(&mut self, index: usize, expiry: Option<u64>) {
        let tag = self.table.tag(index);
        let entry = self.table.entry(index);
        let before = entry.expiry();
        match entry.set_expiry(expiry) {
            Ok(()) => self.move_expiry(tag, before, expiry),
            Err(copy) => {
                self.put(tag, Some(index), copy);
            }
        }
    }

    fn memory(&self) -> usize {
        self.entry_bytes
            + allocation_size(self.table.requested_len())
            + allocation_size(self.expiries.requested_len())
    }

    fn remove_by_expiry(&mut self, at: u64, tag: u16) -> Option<Entry> {
        let first = self.table.lower_bound(tag);
        let index = (first..self.table.len())
            .take_while(|&index| self.table.tag(index) == tag)
            .find(|&index| self.table.entry(index).expiry().map(expiry::clamp) == Some(at));
        match index {
            Some(index) => Some(self.remove(index)),
            None => {
                debug_assert!(false, "the expiry index names an entry that does not exist");
                self.expiries.remove(at, tag);
                None
            }
        }
    }

    fn enter(&mut self, tag: u16, entry: EntryRef<'_>) {
        self.entry_bytes += allocation_size(entry.requested_len());
        self.move_expiry(tag, None, entry.expiry());
    }

    fn leave(&mut self, tag: u16, entry: EntryRef<'_>) {
        self.entry_bytes -= allocation_size(entry.requested_len());
        self.move_expiry(tag, entry.expiry(), None);
    }

    fn move_expiry(&mut self, tag: u16, before: Option<u64>, after: Option<u64>) {
        if before != after {
            before.inspect(|&at| self.expiries.remove(at, tag));
            after.inspect(|&at| self.expiries.insert(at, tag));
        }
    }
}
