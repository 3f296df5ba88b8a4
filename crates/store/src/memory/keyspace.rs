//! All shards: where a key lives, what everything weighs, and who goes when it is too much.
//!
//! The upper bits of a key's keyed hash choose the shard and the next 16 its tag, so that shards in ascending order,
//! each in the order of its tags, are the whole keyspace in the order of the hash.

use std::cell::{RefCell, RefMut};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{ReentrantMutex, ReentrantMutexGuard};
use snugly_codec::Record;

use crate::changes::Changes;
use crate::disk::MemoryTier;
use crate::disk::row::Generation;
use crate::hash::{HashKey, hash};
use crate::memory::entry::{Entry, EntryRef};
use crate::memory::eviction::{EvictionPolicy, Victim};
use crate::memory::shard::{Look, Position, Presence, Shard};
use crate::memory::slab::SLAB;
use crate::quicklist::ListTotals;

pub(crate) struct Keyspace {
    cells: Box<[Cell]>,
    shard_bits: u32,
    hash_key: HashKey,
    /// Whether there is a disk tier, which has what this tier forgets.
    is_cache: bool,
    changes: Changes,
    used: AtomicU64,
    /// Whether keys whose time has come stay, absent to whoever reads them.
    keeps_expired: AtomicBool,
    hand: AtomicUsize,
    /// The next shard of the walk that moves entries out of sparse pages; beyond the last there is no walk.
    walk: AtomicUsize,
    /// Whether writers help with the walk.
    urgent: AtomicBool,
    /// How many bytes of pages will have been taken when a writer looks again whether memory is fragmented.
    look_at: AtomicU64,
}

/// On cache lines of its own, so that locking a shard does not slow down its neighbours.
#[repr(align(64))]
struct Cell {
    shard: ReentrantMutex<RefCell<Shard>>,
    /// When the shard's next entry expires, or `u64::MAX`; read without the lock.
    next_expiry: AtomicU64,
}

/// Bytes that a shard takes while there is no entry in it.
pub(crate) const SHARD_BYTES: usize = size_of::<Cell>();

/// Where a key lives.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    pub(crate) shard: usize,
    pub(crate) tag: u16,
    pub(crate) hash: u64,
}

/// A shard that nobody but the holder's thread can lock, until this is dropped.
pub(crate) type Held<'a> = ReentrantMutexGuard<'a, RefCell<Shard>>;

/// A locked shard. What changes meanwhile is accounted for when it is let go.
pub(crate) struct Locked<'a> {
    shard: RefMut<'a, Shard>,
    _guard: Held<'a>,
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

/// In ascending order.
fn distinct_shards(places: impl Iterator<Item = Place>) -> Vec<usize> {
    let mut shards: Vec<usize> = places.map(|place| place.shard).collect();
    shards.sort_unstable();
    shards.dedup();
    shards
}

/// The memory tier does not know a key. Without a disk tier, there is no such key.
pub(crate) struct Unknown;

/// What the shards hold together.
#[derive(Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) expired: u64,
    pub(crate) evicted: u64,
}

/// At most this many due entries leave under one taking of a shard's lock.
const EXPIRE_BATCH: usize = 64;
/// At most about this many entries are looked at under one taking of a shard's lock, to move those in sparse pages.
const DEFRAGMENT_BATCH: usize = 64;
/// At most about this many entries are counted under one taking of a shard's lock.
const COUNT_BATCH: usize = 256;
/// Bytes of pages taken between two looks of writers whether memory is fragmented.
const LOOK_EVERY: u64 = 1 << 20;
/// When one of so many pages could be empty, entries are moved in the background,
const TOLERATED: usize = 64;
/// and when it is one of so many, by those who write as well.
const URGENT: usize = 16;
/// An urgent walk is over when one of so many bytes in memory has been written: each writer helps as much.
const WALK_PACE: u64 = 50;
/// How many shards that give nothing up a write passes over, where there is a disk tier.
const IDLE_SHARDS_OF_A_CACHE: usize = 64;
/// Shards whose next expiry is compared before one of their entries is taken for the next to expire of all.
const NEXT_TO_EXPIRE_SAMPLE: usize = 256;

const CACHE_LINE: usize = 64;
/// How much of an entry is fetched ahead: header, key, and the start of most records. The rest follows by itself, for
/// processors see that memory is read in order.
const PREFETCHED_LINES: usize = 4;

/// Asks the processor to fetch a cache line, where it can be asked.
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
            used: AtomicU64::new((shards * SHARD_BYTES) as u64),
            keeps_expired: AtomicBool::new(false),
            hand: AtomicUsize::new(0),
            walk: AtomicUsize::new(usize::MAX),
            urgent: AtomicBool::new(false),
            look_at: AtomicU64::new(0),
        }
    }

    pub(crate) fn place(&self, key: &[u8]) -> Place {
        let hash = hash(self.hash_key, key);
        let position = self.position(hash);
        Place { shard: (position >> u16::BITS) as usize, tag: position as u16, hash }
    }

    /// The upper bits of a hash: shard and tag, in which keys are ordered and SCAN's cursors count.
    pub(crate) fn position(&self, hash: u64) -> u64 {
        hash >> self.spare_bits()
    }

    /// The least hash of a position.
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

    /// As [`Keyspace::lock`], unless another thread has the shard: whoever holds shards must not wait for more.
    fn try_lock(&self, shard: usize) -> Option<Locked<'_>> {
        let cell = &self.cells[shard];
        Some(self.locked(cell, cell.shard.try_lock()?))
    }

    fn locked<'a>(&'a self, cell: &'a Cell, guard: Held<'a>) -> Locked<'a> {
        // SAFETY: the lock is held for as long as the guard lives, which is moved into the same value as this
        // reference and dropped after it; the RefCell keeps one thread from borrowing twice.
        let shared: &'a RefCell<Shard> = unsafe { &*cell.shard.data_ptr() };
        let shard = shared.borrow_mut();
        Locked { memory_before: shard.memory(), shard, _guard: guard, cell, used: &self.used }
    }

    /// Keeps the shards of these places from all other threads, in ascending order (so that two holders never wait for
    /// each other). The holder can lock them as ever, and must not wait for others.
    pub(crate) fn hold(&self, places: impl Iterator<Item = Place>) -> Vec<Held<'_>> {
        distinct_shards(places).into_iter().map(|shard| self.cells[shard].shard.lock()).collect()
    }

    /// As [`Keyspace::hold`], all shards.
    pub(crate) fn hold_all(&self) -> Vec<Held<'_>> {
        self.cells.iter().map(|cell| cell.shard.lock()).collect()
    }

    /// Shows a live entry without changing anything but its access time: no accounting is needed, unless its time has
    /// come and it goes. `Err` says that the memory tier does not know the key.
    pub(crate) fn read<R>(
        &self,
        place: Place,
        database: usize,
        key: &[u8],
        now: u64,
        show: impl FnOnce(EntryRef<'_>) -> R,
    ) -> Result<Option<R>, Unknown> {
        {
            let guard = self.cells[place.shard].shard.lock();
            let shard = guard.borrow();
            match shard.look(database, place.tag, key, now) {
                Look::Live(entry) => return Ok(Some(show(entry))),
                Look::Deleted => return Ok(None),
                Look::Unknown => return Err(Unknown),
                Look::Expired if self.keeps_expired.load(Ordering::Relaxed) => return Ok(None),
                Look::Expired => {}
            }
        }
        match self.lock(place.shard).locate(database, place.tag, key, now) {
            Presence::Unknown => Err(Unknown),
            Presence::Deleted(_) => Ok(None),
            // Another thread has just written it: to this one it was absent.
            Presence::Live(_) => Ok(None),
        }
    }

    /// Brings what lookups will touch into the processor's cache: all cells first, then all slots, then all entries, so
    /// that the waits for memory overlap.
    pub(crate) fn prefetch(&self, places: &[Place], database: usize) {
        for place in places {
            prefetch_line(std::ptr::from_ref(&self.cells[place.shard]).cast());
        }
        for place in places {
            let guard = self.cells[place.shard].shard.lock();
            let shard = guard.borrow();
            let guess =
                shard.existing_database(database).and_then(|part| part.table().first_guess(place.tag));
            if let Some(slot) = guess {
                prefetch_line(slot.cast());
            }
        }
        for place in places {
            let guard = self.cells[place.shard].shard.lock();
            let shard = guard.borrow();
            let candidate =
                shard.existing_database(database).and_then(|part| part.table().candidate(place.tag));
            if let Some(entry) = candidate {
                (0..PREFETCHED_LINES)
                    .for_each(|line| prefetch_line(entry.address().wrapping_add(line * CACHE_LINE)));
            }
        }
    }

    pub(crate) fn lock_each(&self) -> impl Iterator<Item = Locked<'_>> {
        (0..self.cells.len()).map(|shard| self.lock(shard))
    }

    /// Bytes that all shards take in the allocator.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn totals(&self) -> Totals {
        self.lock_each().fold(Totals::default(), |totals, shard| Totals {
            expired: totals.expired + shard.expired,
            evicted: totals.evicted + shard.evicted,
        })
    }

    /// What the lists in memory take.
    pub(crate) fn list_totals(&self) -> ListTotals {
        self.lock_each().fold(ListTotals::default(), |totals, shard| totals.plus(shard.list_totals()))
    }

    /// How many records need each dictionary.
    pub(crate) fn dictionary_uses(&self) -> BTreeMap<u32, u64> {
        let mut uses = BTreeMap::new();
        for shard in self.lock_each() {
            for (number, count) in shard.dictionary_uses() {
                *uses.entry(number).or_default() += u64::from(count);
            }
        }
        uses
    }

    /// How many keys are wanted, by key and length of the value, among about `sample` keys of a database, and how many were
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
                    let len = Record::parse(entry.record_bytes()).map_or(0, |record| record.raw_len());
                    found += u64::from(wanted(entry.key(), len));
                }
            });
            if cursor == 0 || looked_at >= sample {
                return (found, looked_at);
            }
        }
    }

    /// Bytes that are taken while there is no entry.
    fn empty_size(&self) -> u64 {
        (self.cells.len() * SHARD_BYTES) as u64
    }

    /// Says whether keys whose time has come stay from now on.
    pub(crate) fn keep_expired(&self, keep: bool) {
        self.keeps_expired.store(keep, Ordering::Relaxed);
    }

    /// Removes entries whose time has come, at most about `limit` of them; says how many went.
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

    /// Makes room for `need` more bytes under `budget`; false if the policy finds nothing more to remove. A thread that
    /// holds shards passes over those that others have.
    pub(crate) fn make_room(
        &self,
        policy: EvictionPolicy,
        budget: u64,
        need: u64,
        holding: bool,
        random: impl FnMut() -> u64,
    ) -> bool {
        if !self.is_cache && need > 0 && self.empty_size() + need > budget {
            // Nobody goes for a value that does not fit even alone.
            return false;
        }
        let seize = |shard| if holding { self.try_lock(shard) } else { Some(self.lock(shard)) };
        if !holding {
            self.limit_fragmentation(need);
        }
        let over = || (self.used() + need).saturating_sub(budget) as usize;
        let (volatile_only, victim) = match self.is_cache {
            // Nothing is lost by leaving memory: what was used longest ago goes, whatever may go from the disk.
            true => (false, policy.victim().or_recency()),
            false => (policy.volatile_only(), policy.victim()),
        };
        match victim {
            Victim::None => over() == 0,
            Victim::Hand { cap } => self.sweep(volatile_only, cap, over, seize),
            Victim::Random => self.evict_random(volatile_only, over, seize, random),
            Victim::NextToExpire => self.evict_next_to_expire(over, seize, random),
        }
    }

    fn sweep<'a>(
        &'a self,
        volatile_only: bool,
        cap: u8,
        over: impl Fn() -> usize,
        seize: impl Fn(usize) -> Option<Locked<'a>>,
    ) -> bool {
        // Each round takes at least half of every frequency, so after these rounds nothing is left that could stay.
        let rounds = 2 + cap.checked_ilog2().unwrap_or(0) as usize + 1;
        let patience = match self.is_cache {
            // What is on its way to the disk must stay. The next write goes on where this one gives up.
            true => self.cells.len().min(IDLE_SHARDS_OF_A_CACHE),
            false => rounds * self.cells.len(),
        };
        let mut idle_shards = 0;
        loop {
            // Read once: another thread may fill what this one has freed, which is that thread's to make up for.
            let need = over();
            if need == 0 {
                return true;
            }
            if idle_shards == patience {
                return false;
            }
            let shard = self.hand.load(Ordering::Relaxed) % self.cells.len();
            let sweep = seize(shard).map(|mut shard| shard.sweep(volatile_only, need));
            if sweep.as_ref().is_none_or(|sweep| sweep.finished) {
                let next = (shard + 1) % self.cells.len();
                // Another thread may have moved the hand on already.
                let _ = self.hand.compare_exchange(shard, next, Ordering::Relaxed, Ordering::Relaxed);
            }
            idle_shards =
                if sweep.is_none_or(|sweep| sweep.evicted.is_empty()) { idle_shards + 1 } else { 0 };
        }
    }

    fn evict_random<'a>(
        &'a self,
        volatile_only: bool,
        over: impl Fn() -> usize,
        seize: impl Fn(usize) -> Option<Locked<'a>>,
        mut random: impl FnMut() -> u64,
    ) -> bool {
        while over() > 0 {
            let start = random() as usize % self.cells.len();
            let victim = (0..self.cells.len()).find_map(|step| {
                seize((start + step) % self.cells.len())?.evict_random(volatile_only, random())
            });
            if victim.is_none() {
                return false;
            }
        }
        true
    }

    fn evict_next_to_expire<'a>(
        &'a self,
        over: impl Fn() -> usize,
        seize: impl Fn(usize) -> Option<Locked<'a>>,
        mut random: impl FnMut() -> u64,
    ) -> bool {
        while over() > 0 {
            let start = random() as usize;
            let mut candidates: Vec<_> = (0..self.cells.len())
                .map(|step| (start.wrapping_add(step)) % self.cells.len())
                .map(|shard| (self.cells[shard].next_expiry.load(Ordering::Relaxed), shard))
                .filter(|(at, _)| *at != u64::MAX)
                .take(NEXT_TO_EXPIRE_SAMPLE)
                .collect();
            candidates.sort_unstable();
            let victim = candidates.into_iter().find_map(|(_, shard)| seize(shard)?.evict_next_to_expire());
            if victim.is_none() {
                return false;
            }
        }
        true
    }

    /// Looks at about `limit` entries and moves those in sparse pages to fuller ones; says at how many it looked: none
    /// if memory is not fragmented.
    pub(crate) fn defragment(&self, limit: usize) -> usize {
        if !self.is_walking() && SLAB.mark_sparse(TOLERATED) {
            self.start_walk(false);
        }
        let mut seen = 0;
        while seen < limit
            && let Some(shard) = self.claim_shard()
        {
            seen += self.defragment_shard(shard);
        }
        seen
    }

    /// What a writer of `need` bytes does so that pages do not become much more than what stands in them. Counting
    /// pages instead of entries against the budget would not do: evicting entries empties hardly a page.
    fn limit_fragmentation(&self, need: u64) {
        let helps = || self.urgent.load(Ordering::Relaxed) && self.is_walking();
        let taken = SLAB.taken_bytes();
        let look_at = self.look_at.load(Ordering::Relaxed);
        if taken >= look_at && !helps() {
            let (next, order) = (taken + LOOK_EVERY, Ordering::Relaxed);
            let is_first = self.look_at.compare_exchange(look_at, next, order, order).is_ok();
            if is_first && SLAB.mark_sparse(URGENT) {
                self.start_walk(true);
            }
        }
        if helps() {
            let share = need * WALK_PACE * self.cells.len() as u64 / self.used().max(1);
            for shard in (0..=share).map_while(|_| self.claim_shard()) {
                self.defragment_shard(shard);
            }
        }
    }

    fn is_walking(&self) -> bool {
        self.walk.load(Ordering::Relaxed) < self.cells.len()
    }

    fn start_walk(&self, urgent: bool) {
        self.urgent.store(urgent, Ordering::Relaxed);
        self.walk.store(0, Ordering::Relaxed);
    }

    /// The next shard of the walk, for one thread.
    fn claim_shard(&self) -> Option<usize> {
        let next = |shard| (shard < self.cells.len()).then(|| shard + 1);
        self.walk.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()
    }

    /// Says at how many entries it looked, an empty shard being as good as one.
    fn defragment_shard(&self, shard: usize) -> usize {
        let mut seen = 0;
        let mut position = Some(Position::default());
        while let Some(from) = position {
            let stretch = self.lock(shard).defragment(from, DEFRAGMENT_BATCH);
            seen += stretch.seen;
            position = stretch.rest;
        }
        seen.max(1)
    }

    /// Shows the entries of a database from `cursor` on, about `count` of them, those included that are tombstones or
    /// whose time has come; gives the next cursor, 0 at the end. Whatever is there from the first call to the last is
    /// shown at least once.
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
        let place = self.place(tombstone.borrow().key());
        self.lock(place.shard).forget(place.tag, tombstone);
    }

    fn expired(&self, generation: Generation, hash: u64, key: &[u8]) {
        let position = self.position(hash);
        let shard = self.lock((position >> u16::BITS) as usize);
        // The database is looked up under the lock, since a flush has all locks.
        if let Some(database) = self.changes.database(generation) {
            shard.expired_on_disk(database, position as u16, key);
        }
    }

    fn give_up(&self, generation: Generation, hash: u64, key: &[u8], spare_used: bool) -> Option<Entry> {
        let position = self.position(hash);
        let mut shard = self.lock((position >> u16::BITS) as usize);
        let database = self.changes.database(generation)?;
        shard.give_up(database, position as u16, key, spare_used)
    }
}
