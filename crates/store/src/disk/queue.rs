//! Changes on their way to the disk.
//!
//! Whoever changes a key pushes it here under the lock of the key's shard, so that the queue's order is the order of
//! changes. An entry in the queue is held, which keeps the memory tier from evicting it. One drain of the queue becomes
//! one commit, so changes that were pushed inside one group are never torn apart.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use event_listener::Event;
use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard};

use super::row::Generation;
use super::{Durability, MemoryTier, Storage};
use crate::memory::entry::Entry;

/// One change.
#[derive(Clone)]
pub(crate) enum Item {
    Change(Change),
    /// What the databases are called from here on, by their numbers.
    Generations {
        generations: Arc<[Generation]>,
        /// Whether changes must reach the disk with it.
        in_group: bool,
    },
}

/// A key has a new entry, or none if that is a tombstone.
#[derive(Clone)]
pub(crate) struct Change {
    pub(crate) generation: Generation,
    pub(crate) entry: Entry,
    /// The entry's expiry at the time: it can be changed in place.
    pub(crate) expiry: Option<u64>,
    /// Whether other changes must reach the disk with it.
    pub(crate) in_group: bool,
}

thread_local! {
    /// How many groups the thread is in.
    static GROUPS: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, what its thread pushes is one commit.
pub(crate) struct Group<'a> {
    _guard: RwLockReadGuard<'a, ()>,
}

impl Group<'_> {
    /// Whether the calling thread is in a group.
    pub(crate) fn is_open() -> bool {
        GROUPS.get() > 0
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        GROUPS.set(GROUPS.get() - 1);
    }
}

/// What one commit is made of.
pub(crate) struct Batch {
    pub(crate) items: Vec<Item>,
    /// The number of the last change in it.
    pub(crate) sequence: u64,
    /// Whether it is the last.
    pub(crate) stopping: bool,
}

#[derive(Default)]
struct Pending {
    items: Vec<Item>,
    /// What the writer is committing.
    in_flight: Arc<Vec<Item>>,
    /// When the oldest of the items was pushed.
    since: Option<Instant>,
    /// Whether the next commit is not to wait for its time.
    hurried: bool,
    stopping: bool,
    /// When the last commit began.
    taken: Option<Instant>,
    /// How many changes the next commit has if all who waited for the last one write again.
    expected: usize,
    /// Until when the next commit waits for them.
    gather_until: Option<Instant>,
}

impl Pending {
    /// Until when the next commit waits for more changes, if it does.
    fn gathering(&self) -> Option<Instant> {
        self.gather_until.filter(|_| self.items.len() < self.expected)
    }

    /// Ends a commit and gives what it had.
    fn finish(&mut self, gathers: bool) -> Arc<Vec<Item>> {
        let done = std::mem::take(&mut self.in_flight);
        if let Some(taken) = self.taken.filter(|_| gathers) {
            self.expected = done.len() + self.items.len();
            self.gather_until = Some(Instant::now() + taken.elapsed() / GATHER_SHARE);
        }
        done
    }
}

pub(crate) struct Queue {
    pending: Mutex<Pending>,
    /// Tells the writer that there is something to do.
    wake: Condvar,
    /// Held for reading while a group of changes is pushed.
    groups: RwLock<()>,
    /// How many changes were pushed.
    pushed: AtomicU64,
    /// How many of them are committed.
    committed: AtomicU64,
    /// How many were in commits that failed.
    failed: AtomicU64,
    /// Tells whoever waits that `committed` or `failed` has grown.
    progress: Event,
    bytes: AtomicUsize,
    /// Writers wait above so many bytes.
    most_bytes: AtomicUsize,
    commit_bytes: usize,
    /// What an item counts beside its entry, in bytes. Where the disk has a budget this is a page, for a commit writes a
    /// page anew for each row that it changes.
    item_bytes: usize,
    /// How many bytes may be on their way by the disk's budget.
    disk_share: usize,
    /// How long the oldest change waits before its commit begins.
    patience: Duration,
    memory: Mutex<Option<Weak<dyn MemoryTier>>>,
}

/// How often the writer looks for work that nobody told it of: keys whose time has come, flushed generations.
const TICK: Duration = Duration::from_millis(100);
/// Writers wait when so many commits' worth of changes is pending,
const COMMITS_AHEAD: usize = 4;
/// or one of so many bytes that memory may hold, but not for less than this.
const MEMORY_SHARE: u64 = 4;
const LEAST_BYTES: usize = 256 << 10;
/// One of so many bytes that are kept free on disk may be on its way there.
const RESERVE_SHARE: u64 = 4;
const PAGE_BYTES: usize = 4096;
/// Where every write waits for its commit, the next one waits a little for those who have just been answered: one of so
/// many parts of what the last commit took. Otherwise two halves of the writers would take turns, each paying for a
/// commit of its own.
const GATHER_SHARE: u32 = 4;

impl Queue {
    pub(crate) fn new(storage: &Storage) -> Queue {
        let patience = match storage.durability {
            Durability::Fsync => Duration::ZERO,
            // The other half of the interval is for the commit itself.
            Durability::Batched | Durability::None => storage.commit_interval / 2,
        };
        Queue {
            pending: Mutex::default(),
            wake: Condvar::new(),
            groups: RwLock::new(()),
            pushed: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            progress: Event::new(),
            bytes: AtomicUsize::new(0),
            most_bytes: AtomicUsize::new(storage.commit_bytes),
            commit_bytes: storage.commit_bytes,
            item_bytes: if storage.max_disk == 0 { size_of::<Item>() } else { PAGE_BYTES },
            disk_share: match storage.max_disk {
                0 => usize::MAX,
                max_disk => (super::reserve(max_disk) / RESERVE_SHARE) as usize,
            },
            patience,
            memory: Mutex::new(None),
        }
    }

    pub(super) fn attach(&self, memory: Weak<dyn MemoryTier>) {
        *self.memory.lock() = Some(memory);
    }

    pub(super) fn memory(&self) -> Option<Arc<dyn MemoryTier>> {
        self.memory.lock().as_ref()?.upgrade()
    }

    /// Keeps what cannot leave memory to a part of what memory may hold (0 is no limit).
    pub(super) fn limit(&self, max_memory: u64) {
        let by_memory = match max_memory {
            0 => usize::MAX,
            max_memory => ((max_memory / MEMORY_SHARE) as usize).max(LEAST_BYTES),
        };
        let most = self.commit_bytes.saturating_mul(COMMITS_AHEAD).min(by_memory).min(self.disk_share);
        self.most_bytes.store(most, Ordering::Relaxed);
    }

    /// How many bytes of changes do not wait any longer.
    fn enough_bytes(&self) -> usize {
        self.commit_bytes.min(self.most_bytes.load(Ordering::Relaxed) / 2)
    }

    /// Adds a change. The caller has the lock of the key's shard.
    pub(crate) fn push(&self, item: Item) {
        let size = self.weight(&item);
        let bytes = self.bytes.fetch_add(size, Ordering::Relaxed) + size;
        let mut pending = self.pending.lock();
        pending.items.push(item);
        self.pushed.fetch_add(1, Ordering::Release);
        if pending.since.is_none() {
            pending.since = Some(Instant::now());
            self.wake.notify_one();
        } else if bytes >= self.enough_bytes() || pending.items.len() == pending.expected {
            self.wake.notify_one();
        }
    }

    fn weight(&self, item: &Item) -> usize {
        self.item_bytes
            + match item {
                Item::Change(change) => change.entry.borrow().allocation_size(),
                Item::Generations { .. } => 0,
            }
    }

    /// What is pushed until the guard is dropped is one commit.
    pub(crate) fn group(&self) -> Group<'_> {
        GROUPS.set(GROUPS.get() + 1);
        Group { _guard: self.groups.read_recursive() }
    }

    /// The number of the last change: once as many are committed, it is on disk.
    pub(crate) fn pushed(&self) -> u64 {
        self.pushed.load(Ordering::Acquire)
    }

    /// Whether so many changes are on disk; an error if a commit that had some of them failed.
    pub(crate) fn is_committed(&self, sequence: u64) -> Option<bool> {
        if self.committed.load(Ordering::Acquire) >= sequence {
            return Some(true);
        }
        (self.failed.load(Ordering::Acquire) >= sequence).then_some(false)
    }

    /// Tells of the next progress.
    pub(crate) fn listen(&self) -> event_listener::EventListener {
        self.progress.listen()
    }

    /// Whether writers should wait for a commit.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() >= self.most_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of changes that are not committed.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// All changes that are not committed, in order.
    pub(crate) fn pending(&self) -> Vec<Item> {
        let pending = self.pending.lock();
        pending.in_flight.iter().chain(&pending.items).cloned().collect()
    }

    /// Makes the writer commit now what there is.
    pub(crate) fn hurry(&self) {
        self.pending.lock().hurried = true;
        self.wake.notify_one();
    }

    pub(super) fn stop(&self) {
        self.pending.lock().stopping = true;
        self.wake.notify_one();
    }

    /// Waits for the next commit's time, or for the tick; gives the changes, behind those that could not be committed
    /// before.
    pub(super) fn take(&self, retry: Vec<Item>) -> Batch {
        let mut pending = self.pending.lock();
        let tick = Instant::now() + TICK;
        loop {
            let now = Instant::now();
            let due = pending.since.map_or(tick, |since| (since + self.patience).min(tick));
            let due = pending.gathering().map_or(due, |until| due.max(until));
            let is_large = self.bytes() >= self.enough_bytes() && !pending.items.is_empty();
            if pending.stopping || pending.hurried || is_large || now >= due {
                break;
            }
            self.wake.wait_until(&mut pending, due);
        }
        drop(pending);
        let _no_group = self.groups.write();
        let mut pending = self.pending.lock();
        let mut items = retry;
        items.append(&mut pending.items);
        (pending.since, pending.hurried, pending.taken) = (None, false, Some(Instant::now()));
        pending.in_flight = Arc::new(items.clone());
        Batch { items, sequence: self.pushed(), stopping: pending.stopping }
    }

    /// The changes up to this number are on disk.
    pub(super) fn committed(&self, sequence: u64) {
        let done = self.pending.lock().finish(self.patience.is_zero());
        let bytes: usize = done.iter().map(|item| self.weight(item)).sum();
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.committed.store(sequence, Ordering::Release);
        self.progress.notify(usize::MAX);
    }

    /// The commit of the changes up to this number failed; they stay pending.
    pub(super) fn failed(&self, sequence: u64) {
        self.failed.store(sequence, Ordering::Release);
        self.progress.notify(usize::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(durability: Durability) -> Queue {
        Queue::new(&Storage { durability, ..Storage::new("unused") })
    }

    fn push(queue: &Queue, changes: usize) {
        (0..changes)
            .for_each(|_| queue.push(Item::Generations { generations: Arc::from([0]), in_group: false }));
    }

    /// A commit of two changes, while two others are pushed.
    fn commit(queue: &Queue) {
        push(queue, 2);
        queue.hurry();
        let batch = queue.take(Vec::new());
        assert_eq!(batch.items.len(), 2);
        push(queue, 2);
        queue.committed(batch.sequence);
    }

    fn is_gathering(queue: &Queue) -> bool {
        queue.pending.lock().gathering().is_some()
    }

    #[test]
    fn with_fsync_a_commit_gathers_until_those_who_were_answered_have_written_again() {
        let queue = queue(Durability::Fsync);
        assert!(!is_gathering(&queue), "the first change waits for nobody");
        commit(&queue);
        assert!(is_gathering(&queue));
        push(&queue, 1);
        assert!(is_gathering(&queue));
        push(&queue, 1);
        assert!(!is_gathering(&queue));
    }

    #[test]
    fn what_was_expected_and_did_not_come_is_not_waited_for_twice() {
        let queue = queue(Durability::Fsync);
        commit(&queue);
        let batch = queue.take(Vec::new());
        assert_eq!(batch.items.len(), 2, "nobody wrote again, and the commit came all the same");
        queue.committed(batch.sequence);
        push(&queue, 2);
        assert!(!is_gathering(&queue));
    }

    #[test]
    fn where_nobody_waits_for_a_commit_it_waits_for_nobody() {
        for durability in [Durability::Batched, Durability::None] {
            let queue = queue(durability);
            commit(&queue);
            assert!(!is_gathering(&queue));
        }
    }
}
