//! The queue of changes on their way to the disk.
//!
//! A change of a key is pushed here under the lock of the key's shard, so that the queue's order is the order
//! of changes. An entry in the queue is held, which keeps the memory tier from evicting it. The changes taken
//! at once become one record of the journal, or one commit where there is none, so changes pushed inside one
//! group are never torn apart; the commits behind a journal have whole records.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use event_listener::{Event, Listener as _};
use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard};

use super::change::Item;
use super::collections;
use super::{Durability, MemoryTier, PAGE_BYTES, Storage};
use crate::entry::EntryRef;

thread_local! {
    /// Number of groups that the thread is in.
    static GROUPS: Cell<u32> = const { Cell::new(0) };
}

/// A guard during which the changes that its thread pushes are one commit, and one record of the journal.
pub(crate) struct Group<'a> {
    _guard: RwLockReadGuard<'a, ()>,
}

impl Group<'_> {
    /// Returns whether the calling thread is in a group.
    pub(crate) fn is_open() -> bool {
        GROUPS.get() > 0
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        GROUPS.set(GROUPS.get() - 1);
    }
}

/// Changes for one record of the journal.
pub(super) struct Unjournaled {
    pub(super) items: Vec<Item>,
    /// Number of its last change.
    pub(super) sequence: u64,
}

/// Changes for one commit.
pub(crate) struct Batch {
    pub(crate) items: Vec<Item>,
    /// Number of its last change.
    pub(crate) sequence: u64,
    /// Number of the journal's record that has this change, if there is a journal.
    pub(crate) record: u64,
    /// Whether it is the last commit.
    pub(crate) stopping: bool,
}

#[derive(Default)]
struct Pending {
    items: Vec<Item>,
    /// Number of items, from the front, that are in the journal; the numbers of the last such change and of
    /// its record.
    journaled: usize,
    journaled_sequence: u64,
    record: u64,
    /// Numbers of the last change that the writer has, and of its record.
    taken_up_to: (u64, u64),
    /// Changes that the writer is committing.
    in_flight: Arc<Vec<Item>>,
    /// Times at which the oldest of the items was pushed, and the oldest of those being committed.
    since: Option<Instant>,
    in_flight_since: Option<Instant>,
    /// Whether the next commit starts at once.
    hurried: bool,
    stopping: bool,
    /// Whether the journal is to end once it has everything.
    journal_stopping: bool,
    /// Start of the journal's last record.
    taken: Option<Instant>,
    /// Expected number of changes in the next record, if all writers that waited for the last one write
    /// again.
    expected: usize,
    /// Time until which the next record waits for them.
    gather_until: Option<Instant>,
}

impl Pending {
    /// Returns the number of changes that are not in the journal.
    fn unjournaled(&self) -> usize {
        self.items.len() - self.journaled
    }

    /// Returns the time until which the journal's next record waits for more changes, if it does.
    fn gathering(&self) -> Option<Instant> {
        self.gather_until.filter(|_| self.unjournaled() < self.expected)
    }
}

pub(crate) struct Queue {
    pending: Mutex<Pending>,
    /// Wakes the writer.
    wake: Condvar,
    /// Wakes the journal.
    wake_journal: Condvar,
    /// Whether changes pass the journal before the writer has them.
    has_journal: bool,
    /// Held for reading while a group of changes is pushed.
    groups: RwLock<()>,
    /// Number of changes pushed.
    pushed: AtomicU64,
    /// Number of these on disk, committed or in the journal.
    committed: AtomicU64,
    /// Number of these that the engine has committed.
    in_engine: AtomicU64,
    /// Number of these in commits that failed.
    failed: AtomicU64,
    /// Notified when `committed` or `failed` has grown.
    progress: Event,
    bytes: AtomicUsize,
    /// Bytes above which writers wait.
    most_bytes: AtomicUsize,
    commit_bytes: usize,
    /// Bytes that an item counts beside its entry. Where the disk has a budget this is a page, since a commit
    /// rewrites a page for each row that it changes.
    item_bytes: usize,
    /// Most bytes that may be pending, by the disk's budget.
    disk_share: usize,
    /// Age of the oldest change at which its commit begins.
    patience: Duration,
    /// Greatest age of a change that is only in memory, at which writers wait for its commit: a kill loses no
    /// older ones.
    most_age: Duration,
    /// Time at which the oldest uncommitted change was pushed, in nanoseconds since `started`; 0 if there is
    /// none.
    oldest: AtomicU64,
    started: Instant,
    memory: Mutex<Option<Weak<dyn MemoryTier>>>,
}

/// Interval at which the writer looks for work that it is not notified of: expired keys, flushed generations.
const TICK: Duration = Duration::from_millis(100);
/// Commits' worth of pending changes at which writers wait,
const COMMITS_AHEAD: usize = 4;
/// or divisor of the memory limit for the same, but not below this many bytes.
const MEMORY_SHARE: u64 = 4;
const LEAST_BYTES: usize = 256 << 10;
/// Divisor of the disk's reserve that gives the most bytes that may be pending.
pub(super) const RESERVE_SHARE: u64 = 8;
/// Bytes counted for a collection until its changes are captured, a node; and for a draft, most of which is
/// on disk already.
const EDITED_BYTES: usize = 8 << 10;
/// Factor by which a commit may come later when its changes are in the journal, so that more of them share a
/// page.
const COMMIT_LATER: u32 = 5;
/// Divisor of the greatest age that gives the grace of a write begun in time.
const GRACE_SHARE: u32 = 10;
/// Divisor of the last record's duration for which the journal's next record waits for writers that were just
/// answered. Without it two halves of the writers would take turns, each paying for a sync of its own.
const GATHER_SHARE: u32 = 4;

impl Queue {
    pub(crate) fn new(storage: &Storage) -> Queue {
        let budget = storage.engine_bytes();
        Queue {
            pending: Mutex::default(),
            wake: Condvar::new(),
            wake_journal: Condvar::new(),
            has_journal: storage.durability == Durability::Fsync,
            groups: RwLock::new(()),
            pushed: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            in_engine: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            progress: Event::new(),
            bytes: AtomicUsize::new(0),
            most_bytes: AtomicUsize::new(storage.commit_bytes),
            commit_bytes: storage.commit_bytes,
            item_bytes: if budget == 0 { size_of::<Item>() } else { PAGE_BYTES },
            disk_share: match budget {
                0 => usize::MAX,
                budget => (super::reserve(budget) / RESERVE_SHARE) as usize,
            },
            patience: match storage.durability {
                Durability::Fsync => storage.commit_interval * COMMIT_LATER,
                // The other half of the interval is for the commit itself.
                Durability::Batched | Durability::None => storage.commit_interval / 2,
            },
            most_age: match storage.durability {
                Durability::Fsync => Duration::MAX,
                Durability::Batched | Durability::None => storage.commit_interval,
            },
            oldest: AtomicU64::new(0),
            started: Instant::now(),
            memory: Mutex::new(None),
        }
    }

    pub(super) fn attach(&self, memory: Weak<dyn MemoryTier>) {
        *self.memory.lock() = Some(memory);
    }

    pub(super) fn memory(&self) -> Option<Arc<dyn MemoryTier>> {
        self.memory.lock().as_ref()?.upgrade()
    }

    /// Limits the changes that cannot leave memory to a part of what memory may hold (0 is no limit).
    pub(super) fn limit(&self, max_memory: u64) {
        let by_memory = match max_memory {
            0 => usize::MAX,
            max_memory => ((max_memory / MEMORY_SHARE) as usize).max(LEAST_BYTES),
        };
        let most = self.commit_bytes.saturating_mul(COMMITS_AHEAD).min(by_memory).min(self.disk_share);
        self.most_bytes.store(most, Ordering::Relaxed);
    }

    /// Returns the bytes of changes at which a commit starts at once.
    fn enough_bytes(&self) -> usize {
        self.commit_bytes.min(self.most_bytes.load(Ordering::Relaxed) / 2)
    }

    /// Pushes a change. The caller holds the lock of the key's shard.
    pub(crate) fn push(&self, item: Item) {
        let size = self.weight(&item);
        let bytes = self.bytes.fetch_add(size, Ordering::Relaxed) + size;
        let mut pending = self.pending.lock();
        if let Item::Change(change) = &item {
            change.entry.borrow().note_queued();
        }
        pending.items.push(item);
        self.pushed.fetch_add(1, Ordering::Release);
        let unjournaled = pending.unjournaled();
        if self.has_journal && (unjournaled == 1 || unjournaled == pending.expected) {
            self.wake_journal.notify_one();
        }
        if pending.since.is_none() {
            pending.since = Some(Instant::now());
            self.note_oldest(&pending);
            self.wake.notify_one();
        } else if bytes >= self.enough_bytes() {
            self.wake.notify_one();
        }
    }

    /// Changes part of a draft in place if possible, which is no new change while the last one has not been
    /// taken; returns whether it did. The caller holds the lock of the key's shard.
    pub(crate) fn edit(&self, entry: EntryRef<'_>, offset: usize, bytes: &[u8]) -> bool {
        let _pending = self.pending.lock();
        // SAFETY: this is the queue's lock, and the caller has the shard's.
        unsafe { entry.edit(offset, bytes) }
    }

    fn weight(&self, item: &Item) -> usize {
        self.item_bytes
            + match item {
                Item::Change(change) if change.entry.borrow().is_edited_in_place() => EDITED_BYTES,
                Item::Change(change) => change.entry.borrow().allocation_size(),
                Item::Dictionary { row, .. } => row.as_ref().map_or(0, |row| row.len()),
                Item::Generations { .. } | Item::ActiveDictionaries(_) | Item::Load(_) => 0,
            }
    }

    /// Begins a group: what is pushed until the guard is dropped is one commit.
    pub(crate) fn group(&self) -> Group<'_> {
        GROUPS.set(GROUPS.get() + 1);
        Group { _guard: self.groups.read_recursive() }
    }

    /// Returns the number of the last change: once as many are committed, it is on disk.
    pub(crate) fn pushed(&self) -> u64 {
        self.pushed.load(Ordering::Acquire)
    }

    /// Returns true if this many changes are on disk, false if a commit with some of them failed, and `None` as
    /// long as neither is certain.
    pub(crate) fn is_committed(&self, sequence: u64) -> Option<bool> {
        if self.committed.load(Ordering::Acquire) >= sequence {
            return Some(true);
        }
        (self.failed.load(Ordering::Acquire) >= sequence).then_some(false)
    }

    /// Returns whether the engine has committed this many changes: the journal alone is not enough.
    pub(super) fn is_in_engine(&self, sequence: u64) -> bool {
        self.in_engine.load(Ordering::Acquire) >= sequence
    }

    /// Returns a listener for the next progress.
    pub(crate) fn listen(&self) -> event_listener::EventListener {
        self.progress.listen()
    }

    /// Returns whether the limit of pending changes is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() >= self.most_bytes.load(Ordering::Relaxed)
    }

    /// Returns whether changes that are only in memory are too old.
    pub(crate) fn is_late(&self) -> bool {
        self.is_older_than(self.most_age)
    }

    /// Like [`Queue::is_late`], for a writer in the middle of a request, which would keep its thread from
    /// serving others: it began in time, and has some grace.
    pub(crate) fn is_overdue(&self) -> bool {
        self.is_older_than(self.most_age.saturating_add(self.most_age / GRACE_SHARE))
    }

    fn is_older_than(&self, most: Duration) -> bool {
        // Reading the clock takes longer than all the rest.
        most < Duration::MAX && self.oldest_age().is_some_and(|age| age > most)
    }

    /// Returns the age of the oldest uncommitted change.
    pub(crate) fn oldest_age(&self) -> Option<Duration> {
        let pushed = self.oldest.load(Ordering::Relaxed);
        (pushed > 0).then(|| self.started.elapsed().saturating_sub(Duration::from_nanos(pushed)))
    }

    fn note_oldest(&self, pending: &Pending) {
        let oldest = pending.in_flight_since.or(pending.since);
        let pushed = oldest.map_or(0, |at| (at - self.started).as_nanos().max(1) as u64);
        self.oldest.store(pushed, Ordering::Relaxed);
    }

    /// Returns the bytes of uncommitted changes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns all uncommitted changes, in order.
    pub(crate) fn pending(&self) -> Vec<Item> {
        let pending = self.pending.lock();
        pending.in_flight.iter().chain(&pending.items).cloned().collect()
    }

    /// Makes the writer commit at once.
    pub(crate) fn hurry(&self) {
        self.pending.lock().hurried = true;
        self.wake.notify_one();
    }

    /// Waits until the condition holds, which is checked after each commit and each failure.
    pub(super) fn wait_until(&self, mut is_so: impl FnMut() -> bool) {
        loop {
            // Before the check, so that no notification is missed in between.
            let progress = self.listen();
            if is_so() {
                return;
            }
            self.hurry();
            progress.wait();
        }
    }

    /// Waits for changes that are not in the journal, and returns them; `None` when the journal is to end.
    pub(super) fn take_unjournaled(&self) -> Option<Unjournaled> {
        let mut pending = self.pending.lock();
        loop {
            let until = pending.gathering().filter(|until| *until > Instant::now());
            match (pending.unjournaled(), until) {
                (0, _) if pending.journal_stopping => return None,
                (0, _) => self.wake_journal.wait(&mut pending),
                (_, Some(until)) if !pending.journal_stopping => {
                    self.wake_journal.wait_until(&mut pending, until);
                }
                _ => break,
            }
        }
        drop(pending);
        let _no_group = self.groups.write();
        let mut pending = self.pending.lock();
        pending.taken = Some(Instant::now());
        let from = pending.journaled;
        note_taken(&pending.items[from..]);
        self.capture_collections(&mut pending.items, from);
        Some(Unjournaled { items: pending.items[pending.journaled..].to_vec(), sequence: self.pushed() })
    }

    /// Captures the collections' changes. No group is open, so that what belongs together is written
    /// together.
    fn capture_collections(&self, items: &mut Vec<Item>, from: usize) {
        let bytes = |items: &[Item]| items[from..].iter().map(|item| self.weight(item)).sum::<usize>();
        let before = bytes(items);
        collections::capture(items, from);
        let after = bytes(items);
        self.bytes.fetch_add(after, Ordering::Relaxed);
        self.bytes.fetch_sub(before, Ordering::Relaxed);
    }

    /// Passes these changes on to the writer: they are in this record of the journal, or in none behind it
    /// and not durable.
    pub(super) fn journaled(&self, done: &Unjournaled, record: u64, is_durable: bool) {
        let mut pending = self.pending.lock();
        pending.journaled += done.items.len();
        (pending.journaled_sequence, pending.record) = (done.sequence, record);
        if let Some(taken) = pending.taken {
            pending.expected = done.items.len() + pending.unjournaled();
            pending.gather_until = Some(Instant::now() + taken.elapsed() / GATHER_SHARE);
        }
        drop(pending);
        if is_durable {
            self.committed.fetch_max(done.sequence, Ordering::Release);
            self.progress.notify(usize::MAX);
        }
    }

    pub(super) fn stop_journal(&self) {
        self.pending.lock().journal_stopping = true;
        self.wake_journal.notify_one();
    }

    pub(super) fn stop(&self) {
        self.pending.lock().stopping = true;
        self.wake.notify_one();
    }

    /// Waits for the next commit's time and returns the changes, behind those whose commit failed; or for the
    /// tick, and returns the latter alone.
    pub(super) fn take(&self, retry: Vec<Item>) -> Batch {
        let mut pending = self.pending.lock();
        let tick = Instant::now() + TICK;
        let is_time = loop {
            let now = Instant::now();
            let due = pending.since.map(|since| since + self.patience);
            let is_large = self.bytes() >= self.enough_bytes() && self.ready(&pending) > 0;
            let is_due = due.is_some_and(|due| now >= due);
            if pending.stopping || pending.hurried || is_large || is_due {
                break true;
            }
            if now >= tick {
                break false;
            }
            self.wake.wait_until(&mut pending, due.map_or(tick, |due| due.min(tick)));
        };
        drop(pending);
        // Changes that have passed the journal are in no open group.
        let _no_group = (!self.has_journal).then(|| self.groups.write());
        let mut pending = self.pending.lock();
        let mut items = retry;
        if is_time {
            if !self.has_journal {
                note_taken(&pending.items);
                self.capture_collections(&mut pending.items, 0);
            }
            let ready = self.ready(&pending);
            items.extend(pending.items.drain(..ready));
            pending.journaled = 0;
            pending.in_flight_since = pending.in_flight_since.or(pending.since);
            pending.since = (!pending.items.is_empty()).then(Instant::now);
            pending.hurried = false;
            let sequence = if self.has_journal { pending.journaled_sequence } else { self.pushed() };
            pending.taken_up_to = (sequence, pending.record);
        }
        pending.in_flight = Arc::new(items.clone());
        let (sequence, record) = pending.taken_up_to;
        Batch { items, sequence, record, stopping: pending.stopping }
    }

    /// Returns the number of changes that the writer may have.
    fn ready(&self, pending: &Pending) -> usize {
        if self.has_journal { pending.journaled } else { pending.items.len() }
    }

    /// Marks the changes up to this number as committed by the engine; returns their bytes.
    pub(super) fn committed(&self, sequence: u64) -> usize {
        let mut pending = self.pending.lock();
        let done = std::mem::take(&mut pending.in_flight);
        pending.in_flight_since = None;
        self.note_oldest(&pending);
        drop(pending);
        let bytes: usize = done.iter().map(|item| self.weight(item)).sum();
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.in_engine.fetch_max(sequence, Ordering::Release);
        self.committed.fetch_max(sequence, Ordering::Release);
        self.progress.notify(usize::MAX);
        bytes
    }

    /// Notes that the commit of the changes up to this number failed; they stay pending.
    pub(super) fn failed(&self, sequence: u64) {
        self.failed.fetch_max(sequence, Ordering::Release);
        self.progress.notify(usize::MAX);
    }
}

/// Notes that these drafts may not be changed in place from now on.
fn note_taken(items: &[Item]) {
    for item in items {
        if let Item::Change(change) = item {
            change.entry.borrow().note_taken();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue {
        Queue::new(&Storage { durability: Durability::Fsync, ..Storage::new("unused") })
    }

    fn push(queue: &Queue, changes: usize) {
        let item = Item::Generations { generations: Arc::from([0]), all_gone: false, in_group: false };
        (0..changes).for_each(|_| queue.push(item.clone()));
    }

    fn record(queue: &Queue, changes: usize) -> Unjournaled {
        let unjournaled = queue.take_unjournaled().expect("it is not stopped");
        assert_eq!(unjournaled.items.len(), changes);
        unjournaled
    }

    /// Returns a record of two changes, while two others are pushed.
    fn two_records(queue: &Queue) {
        push(queue, 2);
        let first = record(queue, 2);
        push(queue, 2);
        queue.journaled(&first, 1, true);
    }

    fn is_gathering(queue: &Queue) -> bool {
        queue.pending.lock().gathering().is_some()
    }

    #[test]
    fn a_record_gathers_until_those_who_were_answered_have_written_again() {
        let queue = queue();
        assert!(!is_gathering(&queue), "the first change waits for nobody");
        two_records(&queue);
        assert!(is_gathering(&queue));
        push(&queue, 1);
        assert!(is_gathering(&queue));
        push(&queue, 1);
        assert!(!is_gathering(&queue));
    }

    #[test]
    fn what_was_expected_and_did_not_come_is_not_waited_for_twice() {
        let queue = queue();
        two_records(&queue);
        let second = record(&queue, 2);
        queue.journaled(&second, 2, true);
        push(&queue, 2);
        assert!(!is_gathering(&queue));
    }

    #[test]
    fn writers_wait_while_a_change_is_too_old_and_only_in_memory() {
        let commit_interval = Duration::from_millis(1);
        let late = |durability| {
            let queue = Queue::new(&Storage { durability, commit_interval, ..Storage::new("unused") });
            push(&queue, 1);
            std::thread::sleep(commit_interval * 2);
            (queue.is_late(), queue)
        };
        assert!(!late(Durability::Fsync).0, "it is in the journal");
        let (is_late, queue) = late(Durability::Batched);
        assert!(is_late);
        let batch = queue.take(Vec::new());
        push(&queue, 1);
        assert!(queue.is_late(), "it is not committed yet");
        let first = queue.oldest.load(Ordering::Relaxed);
        queue.committed(batch.sequence);
        assert!(queue.oldest.load(Ordering::Relaxed) > first, "the age is that of the second one");
        let batch = queue.take(Vec::new());
        queue.committed(batch.sequence);
        assert_eq!(queue.oldest_age(), None);
    }

    #[test]
    fn progress_that_is_made_just_after_it_was_looked_for_is_not_missed() {
        let queue = queue();
        let mut looks = 0;
        queue.wait_until(|| {
            looks += 1;
            if looks == 1 {
                queue.committed(1);
            }
            looks == 2
        });
        assert_eq!(looks, 2);
    }

    #[test]
    fn the_writer_has_what_has_passed_the_journal_and_a_change_is_answered_from_then_on() {
        let queue = queue();
        two_records(&queue);
        assert_eq!((queue.is_committed(2), queue.is_committed(3)), (Some(true), None));
        queue.hurry();
        let batch = queue.take(Vec::new());
        assert_eq!((batch.items.len(), batch.sequence, batch.record), (2, 2, 1));
        let second = record(&queue, 2);
        queue.journaled(&second, 1, false);
        assert_eq!(queue.is_committed(3), None, "it is in no record");
        queue.committed(batch.sequence);
        queue.hurry();
        let batch = queue.take(Vec::new());
        assert_eq!((batch.items.len(), batch.sequence, batch.record), (2, 4, 1));
        queue.committed(batch.sequence);
        assert_eq!(queue.is_committed(4), Some(true));
        assert_eq!(queue.bytes(), 0);
    }
}
