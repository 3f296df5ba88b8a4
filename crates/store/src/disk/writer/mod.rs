//! The single writer thread: commits the queue's changes, and with them removes expired keys, rows of flushed
//! generations, and, when the budget is used up, keys that the policy evicts.
//!
//! - [`changes`]: application of changes to rows; [`housekeeping`]: regular removals
//!
//! A commit is all or nothing. If it fails, its changes stay pending and are tried again with those that
//! follow.

mod changes;
mod housekeeping;

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use tracing::{error, info};

use super::change::Item;
use super::collections;
use super::drafts;
use super::engine::{Engine, EngineError, Read, Table, Write};
use super::existing_rows::{ExistingRow, existing_row, remove_row};
use super::leftover::Leftover;
use super::lookup;
use super::queue::Batch;
use super::row::RowKey;
use super::state::{JOURNAL_KEY, STATE_KEY, State, encode_applied};
use super::{Shared, Unwritable};
use crate::clock::system_time;
use crate::entry::Entry;
use changes::{Last, assigned, last_changes, needs_room};

/// Delay after a failure before the writer tries again.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// Attempts to commit the remaining changes when the store is closed.
const LAST_ATTEMPTS: u32 = 20;
/// Least number of bytes to remove when a commit found no space.
const SHED_BYTES: u64 = 1 << 20;
/// Time that a commit waits for readers to release pages, each time.
const READ_AFTER: Duration = Duration::from_millis(20);
const LONGEST_READ: u32 = 250;
/// Passes over all keys that find nothing to evict before the writer gives up.
const PASSES: u8 = 4;

struct Writer<'a> {
    shared: &'a Shared,
    hash_key: [u64; 2],
    /// State of the last commit.
    state: State,
    /// Position of the eviction hand.
    hand: RowKey,
    /// Passes of the hand over all rows since it last found one to evict.
    passes: u8,
    row: Vec<u8>,
    /// Generation and hash of the row that is being written or removed.
    at: Cell<Option<Unwritable>>,
}

/// Effects of a transaction besides row changes, applied after its commit.
#[derive(Default)]
struct Effects {
    /// Tombstones of keys that were deleted.
    deleted: Vec<Entry>,
    /// Tombstones of keys that were evicted.
    evicted_keys: Vec<Entry>,
    /// Row keys and keys that expired.
    expired_keys: Vec<(RowKey, Vec<u8>)>,
    expired: u64,
    evicted: u64,
    /// Rows of flushed generations that were removed.
    buried: u64,
    /// Number of the journal record up to which the changes go.
    record: u64,
    /// Whether there is more of the regular work to do.
    more: bool,
    full: bool,
}

impl Effects {
    /// Returns the number of rows removed, besides those that changes remove.
    fn removed(&self) -> u64 {
        self.expired + self.evicted + self.buried
    }
}

/// Commits until the queue is stopped.
pub(super) fn run(shared: &Shared, state: State, hash_key: [u64; 2]) {
    let mut writer = Writer::new(shared, state, hash_key);
    let mut retry = Vec::new();
    let mut attempts = 0;
    loop {
        let Batch { items, sequence, record, stopping } = shared.queue.take(retry);
        retry = match writer.commit(&items, record) {
            Ok(more) => {
                let bytes = shared.queue.committed(sequence) as u64;
                shared.status.commit_bytes.fetch_add(bytes, Ordering::Relaxed);
                writer.recovered();
                drop(items);
                if more && !stopping {
                    shared.queue.hurry();
                }
                Vec::new()
            }
            Err(failure) => {
                let is_full = matches!(failure, EngineError::NoSpace);
                if is_full && attempts < LONGEST_READ && shared.end_backup() {
                    thread::sleep(READ_AFTER);
                } else if is_full && writer.shed(&items) {
                    // There may be space now.
                } else if is_full && attempts < LONGEST_READ && writer.waits_for_readers() {
                    thread::sleep(READ_AFTER);
                } else {
                    writer.failed(&failure);
                    shared.queue.failed(sequence);
                    thread::sleep(RETRY_AFTER);
                }
                items
            }
        };
        attempts = if retry.is_empty() { 0 } else { attempts + 1 };
        if stopping && (retry.is_empty() || attempts > LAST_ATTEMPTS) {
            break;
        }
    }
    if shared.storage.durability == super::Durability::None
        && let Err(failure) = shared.engine.sync()
    {
        writer.failed(&failure);
    }
}

/// Commits the journal's uncommitted records before anything else; returns the state after that.
pub(super) fn replay(
    shared: &Shared,
    state: State,
    hash_key: [u64; 2],
    leftover: Leftover,
) -> Result<State, EngineError> {
    let mut writer = Writer::new(shared, state, hash_key);
    if leftover.last > shared.applied() {
        while let Err(failure) = writer.commit(&leftover.items, leftover.last) {
            if !(matches!(failure, EngineError::NoSpace) && writer.shed(&leftover.items)) {
                return Err(failure);
            }
        }
        shared.engine.sync()?;
        info!(changes = leftover.items.len(), "the journal's changes are taken over");
    }
    Ok(writer.state)
}

/// Reserves versions on disk for this process; returns the state with them. Without space for that only the clock
/// keeps it from giving out one again.
pub(super) fn reserve_versions(shared: &Shared, mut state: State) -> Result<State, EngineError> {
    state.next_version = shared.versions.reserved();
    let bytes = state.encode();
    let write = || {
        let mut transaction = shared.engine.write(bytes.len() as u64)?;
        transaction.put(Table::Meta, STATE_KEY, &bytes)?;
        transaction.commit()
    };
    match write() {
        Ok(()) | Err(EngineError::NoSpace) => Ok(state),
        Err(failure) => Err(failure),
    }
}

impl Writer<'_> {
    fn new(shared: &Shared, state: State, hash_key: [u64; 2]) -> Writer<'_> {
        Writer {
            shared,
            hash_key,
            state,
            hand: RowKey::new(0, 0, 0),
            passes: 0,
            row: Vec::new(),
            at: Cell::new(None),
        }
    }

    fn recovered(&self) {
        let was_failing = self.shared.status.failing.swap(false, Ordering::Relaxed);
        if was_failing && !self.shared.status.broken.load(Ordering::Relaxed) {
            *self.shared.status.failure.lock() = None;
            info!("changes are written to disk again");
        }
    }

    /// Returns whether the pending changes fit the pages that only readers keep, which began before the pages
    /// were freed.
    fn waits_for_readers(&self) -> bool {
        let usage = self.shared.engine.read().and_then(|snapshot| snapshot.usage());
        usage.is_ok_and(|usage| usage.used + 2 * self.shared.queue.bytes() as u64 + SHED_BYTES < usage.file)
    }

    fn failed(&self, failure: &EngineError) {
        if self.shared.status.broken.load(Ordering::Relaxed) {
            return;
        }
        self.shared.status.failed_commits.fetch_add(1, Ordering::Relaxed);
        *self.shared.status.failure.lock() = Some(failure.to_string());
        if !self.shared.status.failing.swap(true, Ordering::Relaxed) {
            error!(path = %self.shared.storage.path.display(), %failure, "changes cannot be written to disk; trying again");
        }
    }

    /// Commits the changes, which go up to this record of the journal, and some of the regular work; returns
    /// whether there is more of that. Keys whose rows are on damaged pages are left out.
    fn commit(&mut self, items: &[Item], record: u64) -> Result<bool, EngineError> {
        loop {
            match self.commit_writable(items, record) {
                Err(failure) if self.sets_aside(&failure) => {}
                outcome => return outcome,
            }
        }
    }

    /// Returns whether a commit failed because of one key's rows, which the next attempt then leaves out.
    fn sets_aside(&self, failure: &EngineError) -> bool {
        match (failure, self.at.take()) {
            (EngineError::Damaged(damage), Some(at)) => self.shared.set_aside(at, damage),
            _ => false,
        }
    }

    fn commit_writable(&mut self, items: &[Item], record: u64) -> Result<bool, EngineError> {
        self.at.set(None);
        let started = Instant::now();
        let now = system_time();
        let mut state = self.state.clone();
        let mut effects = Effects { record, ..Effects::default() };
        let most = self.shared.storage.rows_at_once();
        if items.is_empty() && record <= self.shared.applied() && !self.has_work(now)? {
            return Ok(false);
        }
        let mut attempt = || {
            let bytes = if needs_room(items) {
                self.shared.queue.bytes() + drafts::uncounted_bytes(items)
            } else {
                0
            };
            let mut transaction = self.shared.engine.write(bytes as u64)?;
            self.apply(&mut transaction, &mut state, items, &mut effects)?;
            self.expire(&mut transaction, &mut state, now, most, &mut effects)?;
            self.bury(&mut transaction, &mut state, &HashSet::new(), most, &mut effects)?;
            self.make_room(&mut transaction, &mut state, 0, most, &mut effects)?;
            self.finish(transaction, state.clone(), &effects)
        };
        if let Err(failure) = attempt() {
            // Keys to be evicted are still on disk.
            self.forget(&effects.evicted_keys);
            return Err(failure);
        }
        let nanoseconds = started.elapsed().as_nanos() as u64;
        self.shared.status.commit_nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        self.forget(&effects.deleted);
        Ok(effects.more)
    }

    /// Frees space when a commit found none: deletes keys that are to be deleted or flushed anyway, and those
    /// that the policy evicts, as many at once as fit. Changes pushed in a group stay whole, for the commit
    /// that is tried again. Returns whether anything was removed.
    fn shed(&mut self, items: &[Item]) -> bool {
        let mut most = self.shared.storage.rows_at_once();
        loop {
            match self.shed_some(items, most) {
                // The visited keys are in use: continue with the next ones, or with those that a later pass
                // does not spare.
                Ok(0) if (1..=PASSES).contains(&self.passes) => {}
                Ok(removed) => return removed > 0,
                Err(EngineError::NoSpace) if most > 1 => most /= 4,
                Err(failure) if self.sets_aside(&failure) => {}
                Err(_) => return false,
            }
        }
    }

    /// Removes at most this many rows of each kind; returns the number removed.
    fn shed_some(&mut self, items: &[Item], most: usize) -> Result<u64, EngineError> {
        let mut state = self.state.clone();
        let mut effects = Effects::default();
        let mut attempt = || {
            let mut transaction = self.shared.engine.write(0)?;
            let is_grouped = |item: &Item| matches!(item, Item::Generations { in_group: true, .. });
            if let Some(generations) = assigned(items)
                && !items.iter().any(is_grouped)
            {
                state.assign(generations);
                if items.iter().any(|item| matches!(item, Item::Generations { all_gone: true, .. })) {
                    state.active_dictionaries.clear();
                }
            }
            let mut deleted = 0;
            let changes = last_changes(items, self.hash_key);
            let written = collections::written(changes.iter().map(|last| last.change), &state);
            for Last { hash, change, in_group } in changes {
                let entry = change.entry.borrow();
                let is_writable = !self.shared.is_unwritable((change.generation, hash));
                if !entry.is_tombstone() || in_group || !is_writable {
                    continue;
                }
                self.at.set(Some((change.generation, hash)));
                if deleted == most {
                    break;
                }
                let rows = lookup::rows(&transaction, change.generation, hash)?;
                if let Some(old) = existing_row(&transaction, &rows, entry.key())? {
                    self.remove(&mut transaction, &mut state, &old, &HashSet::new())?;
                    deleted += 1;
                }
            }
            self.expire(&mut transaction, &mut state, system_time(), most, &mut effects)?;
            self.bury(&mut transaction, &mut state, &written, most, &mut effects)?;
            self.make_room(&mut transaction, &mut state, SHED_BYTES, most, &mut effects)?;
            let removed = deleted as u64 + effects.removed();
            if removed > 0 {
                self.finish(transaction, state.clone(), &effects)?;
            }
            Ok(removed)
        };
        // After a failure the keys to be evicted are still on disk.
        attempt().inspect_err(|_| self.forget(&effects.evicted_keys))
    }

    /// Commits a transaction and its changes of the state.
    fn finish(
        &mut self,
        mut transaction: impl Write,
        mut state: State,
        effects: &Effects,
    ) -> Result<(), EngineError> {
        state.next_version = self.shared.versions.reserved();
        transaction.put(Table::Meta, STATE_KEY, &state.encode())?;
        let applied = effects.record.max(self.shared.applied());
        if applied > self.shared.applied() {
            transaction.put(Table::Meta, JOURNAL_KEY, &encode_applied(applied))?;
        }
        let usage = transaction.usage()?;
        transaction.commit()?;
        self.state = state;
        self.shared.applied.store(applied, Ordering::Release);
        self.shared.note_usage(usage);
        let status = &self.shared.status;
        status.full.store(effects.full, Ordering::Relaxed);
        status.expired.fetch_add(effects.expired, Ordering::Relaxed);
        status.evicted.fetch_add(effects.evicted, Ordering::Relaxed);
        status.commits.fetch_add(1, Ordering::Relaxed);
        self.forget(&effects.evicted_keys);
        if let Some(memory) = self.shared.queue.memory() {
            if effects.full || self.shared.excess(usage.used) == 0 {
                status.unsettled.store(false, Ordering::Relaxed);
            }
            for (row_key, key) in &effects.expired_keys {
                memory.expired(row_key.generation(), row_key.hash(), key);
            }
        }
        Ok(())
    }

    fn forget(&self, tombstones: &[Entry]) {
        if let Some(memory) = self.shared.queue.memory() {
            tombstones.iter().for_each(|tombstone| memory.forget(tombstone));
        }
    }

    /// Removes a row and all that belongs to it, except the nodes of collections that are written in this
    /// commit.
    fn remove(
        &self,
        transaction: &mut impl Write,
        state: &mut State,
        old: &ExistingRow,
        written: &HashSet<u64>,
    ) -> Result<(), EngineError> {
        self.at.set(Some(old.row_key.place()));
        collections::remove_nodes(transaction, state, self.hash_key, old, written)?;
        remove_row(transaction, state, old)
    }
}

#[cfg(test)]
mod tests {
    use snugly_codec::Record;

    use super::super::change::Change;
    use super::super::{Disk, Storage};
    use super::*;
    use crate::entry::{Access, Properties};
    use crate::hash::hash;

    #[test]
    fn room_is_not_made_by_half_of_what_belongs_together() {
        let folder = tempfile::tempdir().expect("a folder");
        let (disk, _) = Disk::open(Storage::new(folder.path()), 1).expect("the store opens");
        let change = |entry, in_group| {
            Item::Change(Change { generation: 0, entry, expiry: None, in_group, _holds: None })
        };
        let put = |key: &[u8], in_group| {
            change(
                Entry::new(key, &Record::identity(b"value"), Properties::plain(Access::written(0))),
                in_group,
            )
        };
        let gone = |key: &[u8], in_group| change(Entry::tombstone(key), in_group);
        for key in [&b"moved"[..], b"deleted"] {
            disk.queue().push(put(key, false));
        }
        disk.queue().wait_until(|| disk.queue().bytes() == 0);
        let snapshot = disk.shared.engine.read().expect("it can be read");
        let state = lookup::state(&snapshot).expect("it can be read").expect("it is whole");
        drop(snapshot);
        let mut writer = Writer::new(&disk.shared, state, disk.hash_key);
        let rename = [put(b"new name", true), gone(b"moved", true)];
        let later = [put(b"moved", false), gone(b"moved", false), gone(b"deleted", false)];
        let items: Vec<Item> = rename.into_iter().chain(later).collect();
        assert_eq!(writer.shed_some(&items, 100).expect("there is room"), 1);
        let is_there = |key: &[u8]| {
            let found = disk.load(0, hash(disk.hash_key, key), key, Access::written(0));
            found.expect("it can be read").is_some()
        };
        assert!(is_there(b"moved"), "it is nowhere else yet");
        assert!(!is_there(b"deleted"));
    }
}
