//! The keyspace of all shards: the location of keys, the accounting, and eviction.
//!
//! The upper bits of a key's keyed hash choose the shard and the next 16 its tag, so that shards in ascending
//! order, each in the order of its tags, are the whole keyspace in the order of the hash.
//!
//! - [`hold`]: holding several shards
//! - [`room`]: making room in memory by eviction; [`defragmentation`]: moving entries out of sparse pages
//! - [`snapshot`]: all keys as they are at one instant

mod defragmentation;
mod hold;
mod room;
mod snapshot;

pub(crate) use hold::GrowingHold;

use std::cell::{RefCell, RefMut};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

use crate::changes::Changes;
use crate::clock::system_time;
use crate::disk::MemoryTier;
use crate::disk::row::Generation;
use crate::entry::{Entry, EntryRef};
use crate::hash::{HashKey, hash};
use crate::key::{Key, KeyHash};
use crate::memory::shard::{Look, Presence, Shard};
use crate::values::Kind;
use crate::values::collection::CollectionTotals;

pub(crate) struct Keyspace {
    cells: Box<[Cell]>,
    shard_bits: u32,
    hash_key: HashKey,
    /// Whether there is a disk tier, which keeps what this tier evicts.
    is_cache: bool,
    changes: Changes,
    /// Held by whoever waits for a shard while it holds others.
    turn: ReentrantMutex<()>,
    used: AtomicU64,
    /// Whether expired keys stay, invisible to readers.
    keeps_expired: AtomicBool,
    /// Whether there is a snapshot that has not ended.
    has_snapshot: AtomicBool,
    hand: AtomicUsize,
    /// Next shard of the defragmentation walk; beyond the last there is no walk.
    walk: AtomicUsize,
    /// Whether writers help with the walk.
    urgent: AtomicBool,
    /// Bytes of pages allocated at which a writer checks for fragmentation again.
    look_at: AtomicU64,
}

/// A shard on cache lines of its own, so that locking it does not slow down its neighbours.
#[repr(align(64))]
struct Cell {
    shard: ReentrantMutex<RefCell<Shard>>,
    /// Expiry of the shard's next entry to expire, or `u64::MAX`; read without the lock.
    next_expiry: AtomicU64,
}

/// Bytes of a shard without entries.
pub(crate) const SHARD_BYTES: usize = size_of::<Cell>();

/// A shard locked against all other threads until this is dropped.
pub(crate) type ShardGuard<'a> = ReentrantMutexGuard<'a, RefCell<Shard>>;

/// A locked shard. Changes are accounted for when it is released.
pub(crate) struct Locked<'a> {
    shard: RefMut<'a, Shard>,
    _guard: ShardGuard<'a>,
    cell: &'a Cell,
    used: &'a AtomicU64,
    memory_before: usize,
}

impl Deref for Locked<'_> {
    type Target = Shard;
    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let memory = self.shard.memory();
        if memory != self.memory_before {
            // A wrapping addition of the difference is a subtraction where the shard has become smaller.
            self.used.fetch_add((memory as u64).wrapping_sub(self.memory_before as u64), Ordering::Relaxed);
        }
        let next = self.shard.next_expiry().unwrap_or(u64::MAX);
        if self.cell.next_expiry.load(Ordering::Relaxed) != next {
            self.cell.next_expiry.store(next, Ordering::Relaxed);
        }
    }
}

/// The memory tier does not know the key. Without a disk tier, there is no such key.
pub(crate) struct Unknown;

/// Sums over all shards.
#[derive(Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) expired: u64,
    pub(crate) evicted: u64,
}

/// Most expired entries removed under one taking of a shard's lock.
const EXPIRE_BATCH: usize = 64;
/// Approximate most entries counted under one taking of a shard's lock.
const COUNT_BATCH: usize = 256;

const CACHE_LINE: usize = 64;
/// Number of cache lines of an entry that are prefetched: header, key, and the start of most records. The
/// rest follows by itself, since processors detect sequential reads.
const PREFETCHED_LINES: usize = 4;

/// Prefetches a cache line, where the processor has an instruction for it.
#[inline]
fn prefetch_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint. It never faults, whatever the address, and changes nothing that a program can see.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

impl Keyspace {
    /// # Panics
    /// If `shards` is not a power of two from 1 to 2^20.
    pub(crate) fn new(shards: usize, hash_key: HashKey, changes: &Changes) -> Keyspace {
        assert!(shards.is_power_of_two() && shards <= 1 << 20, "shards must be a power of two up to 2^20");
        let cell = || Cell {
            shard: ReentrantMutex::new(RefCell::new(Shard::new(changes.clone()))),
            next_expiry: AtomicU64::new(u64::MAX),
        };
        Keyspace {
            cells: (0..shards).map(|_| cell()).collect(),
            shard_bits: shards.ilog2(),
            hash_key,
            is_cache: changes.disk().is_some(),
            changes: changes.clone(),
            turn: ReentrantMutex::new(()),
            used: AtomicU64::new((shards * SHARD_BYTES) as u64),
            keeps_expired: AtomicBool::new(false),
            has_snapshot: AtomicBool::new(false),
            hand: AtomicUsize::new(0),
            walk: AtomicUsize::new(usize::MAX),
            urgent: AtomicBool::new(false),
            look_at: AtomicU64::new(0),
        }
    }

    pub(crate) fn hash(&self, key: &[u8]) -> KeyHash {
        let hash = hash(self.hash_key, key);
        let position = self.position(hash);
        KeyHash { shard: (position >> u16::BITS) as usize, tag: position as u16, hash }
    }

    /// Returns a key as it is looked up.
    pub(crate) fn key<'k>(&self, database: usize, bytes: &'k [u8]) -> Key<'k> {
        Key { database, bytes, hash: self.hash(bytes) }
    }

    /// Returns the upper bits of a hash: shard and tag, which order keys and SCAN's cursors.
    pub(crate) fn position(&self, hash: u64) -> u64 {
        hash >> self.spare_bits()
    }

    /// Returns the least hash of a position.
    pub(crate) fn first_hash(&self, position: u64) -> u64 {
        position << self.spare_bits()
    }

    fn spare_bits(&self) -> u32 {
        u64::BITS - u16::BITS - self.shard_bits
    }

    pub(crate) fn lock(&self, shard: usize) -> Locked<'_> {
        let cell = &self.cells[shard];
        self.locked(cell, cell.shard.lock())
    }

    /// Like [`Keyspace::lock`], unless another thread has the shard: a holder of shards must not wait for
    /// more.
    fn try_lock(&self, shard: usize) -> Option<Locked<'_>> {
        let cell = &self.cells[shard];
        Some(self.locked(cell, cell.shard.try_lock()?))
    }

    fn locked<'a>(&'a self, cell: &'a Cell, guard: ShardGuard<'a>) -> Locked<'a> {
        // SAFETY: the lock is held for as long as the guard lives, which is moved into the same value as this
        // reference and dropped after it; the RefCell keeps one thread from borrowing twice.
        let shared: &'a RefCell<Shard> = unsafe { &*cell.shard.data_ptr() };
        let shard = shared.borrow_mut();
        Locked { memory_before: shard.memory(), shard, _guard: guard, cell, used: &self.used }
    }

    /// Like [`Keyspace::hold`], for one key, unless another thread has its shard.
    pub(crate) fn try_hold(&self, key: KeyHash) -> Option<ShardGuard<'_>> {
        self.cells[key.shard].shard.try_lock()
    }

    /// Reads a live entry without changing anything but its access time: no accounting is needed, unless it
    /// has expired and is removed. `Err` says that the memory tier does not know the key.
    pub(crate) fn read<R>(
        &self,
        key: Key<'_>,
        now: u64,
        show: impl FnOnce(EntryRef<'_>) -> R,
    ) -> Result<Option<R>, Unknown> {
        {
            let guard = self.cells[key.shard()].shard.lock();
            let shard = guard.borrow();
            match shard.look(key, now) {
                Look::Live(entry) => return Ok(Some(show(entry))),
                Look::Deleted => return Ok(None),
                Look::Unknown => return Err(Unknown),
                Look::Expired if self.keeps_expired.load(Ordering::Relaxed) => return Ok(None),
                Look::Expired => {}
            }
        }
        match self.lock(key.shard()).locate(key, now) {
            Presence::Unknown => Err(Unknown),
            Presence::Deleted(_) => Ok(None),
            // Another thread has just written it: to this one it was absent.
            Presence::Live(_) => Ok(None),
        }
    }

    /// Prefetches the memory of lookups: all cells first, then all slots, then all entries, so that the waits
    /// for memory overlap.
    pub(crate) fn prefetch(&self, keys: &[KeyHash], database: usize) {
        for key in keys {
            prefetch_line(std::ptr::from_ref(&self.cells[key.shard]).cast());
        }
        for key in keys {
            let guard = self.cells[key.shard].shard.lock();
            let shard = guard.borrow();
            let guess = shard.existing_database(database).and_then(|part| part.table().first_guess(key.tag));
            if let Some(slot) = guess {
                prefetch_line(slot.cast());
            }
        }
        for key in keys {
            let guard = self.cells[key.shard].shard.lock();
            let shard = guard.borrow();
            let candidate =
                shard.existing_database(database).and_then(|part| part.table().candidate(key.tag));
            if let Some(entry) = candidate {
                (0..PREFETCHED_LINES)
                    .for_each(|line| prefetch_line(entry.address().wrapping_add(line * CACHE_LINE)));
            }
        }
    }

    pub(crate) fn lock_each(&self) -> impl Iterator<Item = Locked<'_>> {
        (0..self.cells.len()).map(|shard| self.lock(shard))
    }

    /// Returns the bytes that all shards take in the allocator.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn totals(&self) -> Totals {
        self.lock_each().fold(Totals::default(), |totals, shard| Totals {
            expired: totals.expired + shard.expired,
            evicted: totals.evicted + shard.evicted,
        })
    }

    /// Returns the bytes of keys and values in memory as clients gave them.
    pub(crate) fn given(&self) -> u64 {
        self.lock_each().map(|shard| shard.given()).sum()
    }

    /// Returns the sums over the collections of a kind that are in memory.
    pub(crate) fn collection_totals(&self, kind: Kind) -> CollectionTotals {
        let totals = self.lock_each().map(|shard| shard.collection_totals(kind));
        totals.fold(CollectionTotals::default(), CollectionTotals::plus)
    }

    /// Returns the number of records that need each dictionary.
    pub(crate) fn dictionary_uses(&self) -> BTreeMap<u32, u64> {
        let mut uses = BTreeMap::new();
        for shard in self.lock_each() {
            for (number, count) in shard.dictionary_uses() {
                *uses.entry(number).or_default() += u64::from(count);
            }
        }
        uses
    }

    /// Counts the keys that satisfy the predicate among about `sample` keys of a database, and the keys
    /// looked at: they are in the order of their hashes, and so as good as chosen at random.
    pub(crate) fn count_some(
        &self,
        database: usize,
        sample: u64,
        wanted: impl Fn(&[u8], usize) -> bool,
    ) -> (u64, u64) {
        let (mut found, mut looked_at, mut cursor) = (0, 0, 0);
        loop {
            cursor = self.scan(database, cursor, COUNT_BATCH, |_, entry| {
                if !entry.is_tombstone() {
                    looked_at += 1;
                    let len = entry.record().map_or(0, |record| record.raw_len());
                    found += u64::from(wanted(entry.key(), len));
                }
            });
            if cursor == 0 || looked_at >= sample {
                return (found, looked_at);
            }
        }
    }

    /// Returns the bytes taken without entries.
    fn empty_size(&self) -> u64 {
        (self.cells.len() * SHARD_BYTES) as u64
    }

    /// Sets whether expired keys stay.
    pub(crate) fn keep_expired(&self, keep: bool) {
        self.keeps_expired.store(keep, Ordering::Relaxed);
    }

    /// Removes expired entries, at most about `limit` of them; returns the number removed.
    pub(crate) fn expire_due(&self, now: u64, limit: usize) -> usize {
        if self.keeps_expired.load(Ordering::Relaxed) {
            return 0;
        }
        let mut gone = 0;
        for (number, cell) in self.cells.iter().enumerate() {
            while gone < limit && cell.next_expiry.load(Ordering::Relaxed) <= now {
                let expired = self.lock(number).expire_due(now, EXPIRE_BATCH);
                gone += expired.len();
            }
        }
        gone
    }

    /// Shows the entries of a database from `cursor` on, about `count` of them, those included that are
    /// tombstones or whose time has come; returns the next cursor, 0 at the end. Whatever is there from the
    /// first call to the last is shown at least once.
    pub(crate) fn scan(
        &self,
        database: usize,
        cursor: u64,
        count: usize,
        mut show: impl FnMut(u64, EntryRef<'_>),
    ) -> u64 {
        let mut shown = 0;
        let mut tag = cursor as u16;
        for shard in (cursor >> u16::BITS) as usize..self.cells.len() {
            let locked = self.lock(shard);
            let position = |tag: u16| (shard as u64) << u16::BITS | u64::from(tag);
            let mut last = None;
            for (tag, entry) in
                locked.existing_database(database).into_iter().flat_map(|part| part.entries_from(tag))
            {
                if shown >= count && last != Some(tag) {
                    return position(tag);
                }
                last = Some(tag);
                shown += 1;
                show(position(tag), entry);
            }
            tag = 0;
        }
        0
    }

    /// Some live entry of a database; any of them with about the same chance.
    pub(crate) fn random_entry(
        &self,
        database: usize,
        now: u64,
        mut random: impl FnMut() -> u64,
    ) -> Option<Entry> {
        let start = random() as usize;
        for step in 0..self.cells.len() {
            let locked = self.lock(start.wrapping_add(step) % self.cells.len());
            let Some(part) = locked.existing_database(database) else { continue };
            let live: Vec<_> = part.entries_from(0).filter(|(_, entry)| !entry.is_expired(now)).collect();
            if let Some(index) = (random() as usize).checked_rem(live.len()) {
                return Some(live[index].1.to_owned());
            }
        }
        None
    }
}

impl MemoryTier for Keyspace {
    fn forget(&self, tombstone: &Entry) {
        let key = self.hash(tombstone.borrow().key());
        self.lock(key.shard).forget(key.tag, tombstone);
    }

    fn expired(&self, generation: Generation, hash: u64, key: &[u8]) {
        let position = self.position(hash);
        let mut shard = self.lock((position >> u16::BITS) as usize);
        // The database is looked up under the lock, since a flush has all locks.
        if let Some(database) = self.changes.database(generation) {
            shard.expired_on_disk(database, position as u16, key, system_time());
        }
    }

    fn give_up(&self, generation: Generation, hash: u64, key: &[u8], spare_used: bool) -> Option<Entry> {
        let position = self.position(hash);
        let mut shard = self.lock((position >> u16::BITS) as usize);
        let database = self.changes.database(generation)?;
        shard.give_up(database, position as u16, key, spare_used)
    }
}
