//! The one thread that writes: commits what the queue holds, and on the way removes keys whose time has come, rows of
//! flushed generations, and, when the budget is used up, keys that the policy gives up.
//!
//! A commit is all or nothing. If it fails, its changes stay pending and are tried again with those that follow.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use snugly_codec::Record;
use tracing::{error, info};

use super::dictionary;
use super::engine::{Engine, EngineError, Read, Table, Write};
use super::leftover::Leftover;
use super::lists;
use super::lookup;
use super::old::{
    Old, delete_if_possible, expiring, key_of, old_row, remove_chunks, remove_row, rows_from, successor,
    unused_row_key,
};
use super::queue::{Batch, Change, Item};
use super::row::{self, Generation, Layout, NODES, RowKey};
use super::state::{JOURNAL_KEY, LOAD_KEY, STATE_KEY, State, encode_applied};
use super::{Shared, Unwritable};
use crate::EvictionPolicy;
use crate::hash::hash;
use crate::memory::entry::{Access, Entry};
use crate::store::system_time;

/// Rows that the eviction hand looks at in one commit at most.
const LOOKED_AT: usize = 64 << 10;
/// Bytes removed to make room in one commit at most.
const EVICTED_BYTES_AT_ONCE: u64 = 32 << 20;
/// How long the writer waits after a failure before it tries again.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// How often the changes that are left are tried again when the store is closed.
const LAST_ATTEMPTS: u32 = 20;
/// How much is removed at least when a commit found no room, in bytes.
const SHED_BYTES: u64 = 1 << 20;
/// How long a commit waits for readers to let go of pages, and how often.
const READ_AFTER: Duration = Duration::from_millis(20);
const LONGEST_READ: u32 = 250;
/// Times that all keys are looked at for what can go, before there is nothing.
const PASSES: u8 = 4;

struct Writer<'a> {
    shared: &'a Shared,
    hash_key: [u64; 2],
    /// As the last commit left it.
    state: State,
    /// Where the eviction hand stands.
    hand: RowKey,
    /// Whether the hand has passed all rows since it last found one to evict.
    passes: u8,
    row: Vec<u8>,
    /// The row that is being written or removed.
    at: Cell<Option<Unwritable>>,
}

/// What a transaction does beside changing rows, for when it has been committed.
#[derive(Default)]
struct Effects {
    /// Tombstones of keys that were deleted.
    deleted: Vec<Entry>,
    /// Tombstones of keys that were evicted.
    evicted_keys: Vec<Entry>,
    /// Where the keys were whose time had come.
    expired_keys: Vec<(RowKey, Vec<u8>)>,
    expired: u64,
    evicted: u64,
    /// Rows of flushed generations that went.
    buried: u64,
    /// The record of the journal up to which the changes go.
    record: u64,
    /// Whether there is more of the regular work to do.
    more: bool,
    full: bool,
}

impl Effects {
    /// Rows that went, beside those that changes remove.
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
                shared.queue.committed(sequence);
                writer.recovered();
                drop(items);
                if more && !stopping {
                    shared.queue.hurry();
                }
                Vec::new()
            }
            Err(failure) => {
                let is_full = matches!(failure, EngineError::NoSpace);
                if is_full && writer.shed(&items) {
                    // There may be room now.
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

/// Commits what the journal has and the engine is missing, before anything else; gives the state after that.
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

    /// Whether there is room for what waits in pages that nobody needs but those who began to read before they were freed.
    fn waits_for_readers(&self) -> bool {
        let usage = self.shared.engine.read().and_then(|snapshot| snapshot.usage());
        usage.is_ok_and(|usage| usage.used + 2 * self.shared.queue.bytes() as u64 + SHED_BYTES < usage.file)
    }

    fn failed(&self, failure: &EngineError) {
        if self.shared.status.broken.load(Ordering::Relaxed) {
            return;
        }
        *self.shared.status.failure.lock() = Some(failure.to_string());
        if !self.shared.status.failing.swap(true, Ordering::Relaxed) {
            error!(path = %self.shared.storage.path.display(), %failure, "changes cannot be written to disk; trying again");
        }
    }

    /// Commits the changes, which go up to this record of the journal, and some of the regular work; says whether there
    /// is more of that. Keys whose rows are on damaged pages are left out.
    fn commit(&mut self, items: &[Item], record: u64) -> Result<bool, EngineError> {
        loop {
            match self.commit_writable(items, record) {
                Err(failure) if self.sets_aside(&failure) => {}
                outcome => return outcome,
            }
        }
    }

    /// Whether a commit failed because of one key's rows, which the next attempt then leaves out.
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
            let bytes = if needs_room(items) { self.shared.queue.bytes() } else { 0 };
            let mut transaction = self.shared.engine.write(bytes as u64)?;
            self.apply(&mut transaction, &mut state, items, &mut effects)?;
            self.expire(&mut transaction, &mut state, now, most, &mut effects)?;
            self.bury(&mut transaction, &mut state, &HashSet::new(), most, &mut effects)?;
            self.make_room(&mut transaction, &mut state, 0, most, &mut effects)?;
            self.finish(transaction, state.clone(), &effects)
        };
        if let Err(failure) = attempt() {
            // What was to be evicted is still on disk.
            self.forget(&effects.evicted_keys);
            return Err(failure);
        }
        let nanoseconds = started.elapsed().as_nanos() as u64;
        self.shared.status.commit_nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        self.forget(&effects.deleted);
        Ok(effects.more)
    }

    /// Makes room where a commit found none: deletes what is to be deleted or flushed anyway, and what the policy gives
    /// up, as much at once as fits. What was pushed in a group stays whole, for the commit that is tried again. Says
    /// whether anything went.
    fn shed(&mut self, items: &[Item]) -> bool {
        let mut most = self.shared.storage.rows_at_once();
        loop {
            match self.shed_some(items, most) {
                // Those that were looked at are in use: the next ones, or what a later pass does not spare.
                Ok(0) if (1..=PASSES).contains(&self.passes) => {}
                Ok(removed) => return removed > 0,
                Err(EngineError::NoSpace) if most > 1 => most /= 4,
                Err(failure) if self.sets_aside(&failure) => {}
                Err(_) => return false,
            }
        }
    }

    /// Removes so many rows at most of each kind; says how many went.
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
            let lists = lists::written(changes.iter().map(|(_, change)| *change), &mut state);
            for (hash, change) in changes {
                let entry = change.entry.borrow();
                let is_writable = !self.shared.is_unwritable((change.generation, hash));
                if !entry.is_tombstone() || change.in_group || !is_writable {
                    continue;
                }
                self.at.set(Some((change.generation, hash)));
                if deleted == most {
                    break;
                }
                let rows = lookup::rows(&transaction, change.generation, hash)?;
                if let Some(old) = old_row(&transaction, &rows, entry.key())? {
                    self.remove(&mut transaction, &mut state, &old, &HashSet::new())?;
                    deleted += 1;
                }
            }
            self.expire(&mut transaction, &mut state, system_time(), most, &mut effects)?;
            self.bury(&mut transaction, &mut state, &lists, most, &mut effects)?;
            self.make_room(&mut transaction, &mut state, SHED_BYTES, most, &mut effects)?;
            let removed = deleted as u64 + effects.removed();
            if removed > 0 {
                self.finish(transaction, state.clone(), &effects)?;
            }
            Ok(removed)
        };
        // What was to be evicted is still on disk if that failed.
        attempt().inspect_err(|_| self.forget(&effects.evicted_keys))
    }

    /// Commits a transaction and what it did to the state.
    fn finish(
        &mut self,
        mut transaction: impl Write,
        state: State,
        effects: &Effects,
    ) -> Result<(), EngineError> {
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

    /// Whether there is anything to do without changes.
    fn has_work(&self, now: u64) -> Result<bool, EngineError> {
        let snapshot = self.shared.engine.read()?;
        let mut is_due = false;
        let scanned = snapshot.scan(Table::Expiries, &[], &mut |key, _| {
            let due = row::parse_expiry_key(key).ok().filter(|(at, _)| *at <= now);
            is_due = due.is_some_and(|(_, row_key)| !self.shared.is_unwritable(row_key.place()));
            due.is_some() && !is_due
        });
        self.passed_over(scanned)?;
        Ok(is_due || !self.state.dead.is_empty() || self.excess(snapshot.usage()?.used) > 0)
    }

    /// Bytes over what the budget allows.
    fn excess(&self, used: u64) -> u64 {
        match self.shared.storage.engine_bytes() {
            0 => 0,
            budget => used.saturating_sub(budget - super::reserve(budget)),
        }
    }

    fn apply(
        &mut self,
        transaction: &mut impl Write,
        state: &mut State,
        items: &[Item],
        effects: &mut Effects,
    ) -> Result<(), EngineError> {
        if let Some(generations) = assigned(items) {
            state.assign(generations);
        }
        // Before the rows that need one, and in front of what ends the use of one.
        for item in items {
            match item {
                Item::Dictionary { number, row: Some(row) } => {
                    transaction.put(Table::Dictionaries, &dictionary::key(*number), row)?;
                    state.next_dictionary = state.next_dictionary.max(number.saturating_add(1));
                }
                Item::ActiveDictionaries(active) => {
                    state.active_dictionaries = active.iter().copied().collect();
                }
                Item::Generations { all_gone: true, .. } => state.active_dictionaries.clear(),
                Item::Load(Some(row)) => transaction.put(Table::Meta, LOAD_KEY, row)?,
                Item::Load(None) => drop(transaction.delete(Table::Meta, LOAD_KEY)?),
                Item::Generations { .. } | Item::Dictionary { row: None, .. } | Item::Change(_) => {}
            }
        }
        let changes = last_changes(items, self.hash_key);
        let lists = lists::written(changes.iter().map(|(_, change)| *change), state);
        for (hash, change) in changes {
            if self.shared.is_unwritable((change.generation, hash)) {
                continue;
            }
            if change.generation == NODES {
                if !lists::is_orphan(change, &lists) {
                    self.write(transaction, state, hash, change, &lists)?;
                }
                continue;
            }
            let is_tombstone = change.entry.borrow().is_tombstone();
            if is_tombstone {
                effects.deleted.push(change.entry.clone());
            }
            // A generation that is no database's any more was flushed after the change. What was renamed before leaves it all
            // the same: its list has nodes that are another key's now.
            if is_tombstone || state.of(change.generation).is_some() {
                self.write(transaction, state, hash, change, &lists)?;
            }
        }
        for item in items {
            if let Item::Dictionary { number, row: None } = item
                && !state.dictionary_uses.contains_key(number)
            {
                transaction.delete(Table::Dictionaries, &dictionary::key(*number))?;
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        transaction: &mut impl Write,
        state: &mut State,
        hash: u64,
        change: &Change,
        lists: &HashSet<u64>,
    ) -> Result<(), EngineError> {
        self.at.set(Some((change.generation, hash)));
        let entry = change.entry.borrow();
        let rows = lookup::rows(transaction, change.generation, hash)?;
        let old = old_row(transaction, &rows, entry.key())?;
        if entry.is_tombstone() {
            let Some(old) = old else { return Ok(()) };
            return match self.remove(transaction, state, &old, lists) {
                Err(EngineError::Damaged(damage)) => {
                    self.shared.report_page(&damage);
                    self.expire_at_once(transaction, old.row_key, entry.key())
                }
                removed => removed,
            };
        }
        let row_key = match &old {
            Some(old) => old.row_key,
            None => unused_row_key(&rows, change.generation, hash)?,
        };
        if let Some(old) = &old {
            lists::remove_nodes(transaction, state, self.hash_key, old, lists)?;
            remove_chunks(transaction, old)?;
        }
        let layout = Layout::of_entry(entry);
        let chunk_id = state.next_chunk;
        let mut bytes = 0;
        layout.for_each_chunk(|number, chunk| {
            bytes += chunk.len() as u64;
            transaction.append(Table::Chunks, &row::chunk_key(chunk_id, number), chunk)
        })?;
        if bytes > 0 {
            state.next_chunk += 1;
        }
        self.row.clear();
        layout.encode(row_key, change.expiry, None, chunk_id, &mut self.row);
        transaction.put(Table::Entries, &row_key.0, &self.row)?;
        layout.dictionary().inspect(|&number| state.use_dictionary(number));
        old.as_ref().and_then(|old| old.dictionary).inspect(|&number| state.release_dictionary(number));
        bytes += self.row.len() as u64;
        let old_expiry = old.as_ref().and_then(|old| old.expiry);
        if old_expiry != change.expiry {
            if let Some(at) = old_expiry {
                delete_if_possible(transaction, Table::Expiries, &row_key.expiry_key(at))?;
            }
            if let Some(at) = change.expiry {
                transaction.put(Table::Expiries, &row_key.expiry_key(at), &[])?;
            }
        }
        if let Some(contents) = state.of(change.generation) {
            contents.keys += u64::from(old.is_none());
            contents.bytes = (contents.bytes + bytes).saturating_sub(old.as_ref().map_or(0, Old::bytes));
            contents.volatile_keys = (contents.volatile_keys + u64::from(change.expiry.is_some()))
                .saturating_sub(u64::from(old_expiry.is_some()));
        }
        Ok(())
    }

    /// Puts a value whose time has come in the place of a row that cannot be removed, since its page is next to a damaged one.
    fn expire_at_once(
        &mut self,
        transaction: &mut impl Write,
        row_key: RowKey,
        key: &[u8],
    ) -> Result<(), EngineError> {
        const LONG_AGO: Option<u64> = Some(1);
        let entry = Entry::new(key, &Record::identity(b""), LONG_AGO, Access::written(0));
        self.row.clear();
        Layout::of_entry(entry.borrow()).encode(row_key, LONG_AGO, None, 0, &mut self.row);
        transaction.put(Table::Entries, &row_key.0, &self.row)
    }

    /// Removes keys whose time has come.
    fn expire(
        &self,
        transaction: &mut impl Write,
        state: &mut State,
        now: u64,
        most: usize,
        effects: &mut Effects,
    ) -> Result<(), EngineError> {
        let mut due = Vec::new();
        self.passed_over(expiring(transaction, most, |at| at <= now, &mut due))?;
        due.retain(|(_, row_key)| !self.shared.is_unwritable(row_key.place()));
        effects.more |= due.len() == most;
        for (at, row_key) in due {
            self.at.set(Some(row_key.place()));
            let bytes = transaction.get(Table::Entries, &row_key.0)?;
            match bytes.map(|bytes| Old::parse(row_key, bytes)) {
                Some(old) if old.expiry == Some(at) => {
                    effects.expired_keys.extend(key_of(transaction, &old)?.map(|key| (row_key, key)));
                    self.remove(transaction, state, &old, &HashSet::new())?;
                    effects.expired += 1;
                }
                // Left behind by a row that was damaged when it was replaced.
                _ => delete_if_possible(transaction, Table::Expiries, &row_key.expiry_key(at))?,
            }
        }
        Ok(())
    }

    /// Removes rows of generations that were flushed, but not the nodes of lists that other keys are still to get.
    fn bury(
        &self,
        transaction: &mut impl Write,
        state: &mut State,
        lists: &HashSet<u64>,
        most: usize,
        effects: &mut Effects,
    ) -> Result<(), EngineError> {
        let Some(&generation) = state.dead.first() else { return Ok(()) };
        let mut rows = Vec::new();
        let is_of_it = |row_key: RowKey| row_key.generation() == generation;
        let found = rows_from(transaction, RowKey::new(generation, 0, 0), most, is_of_it, &mut rows);
        let is_whole = self.passed_over(found)?;
        let is_last = rows.len() < most && is_whole;
        rows.retain(|old| !self.shared.is_unwritable(old.row_key.place()));
        if is_last {
            state.dead.remove(0);
        }
        effects.more |= !state.dead.is_empty() && !rows.is_empty();
        effects.buried += rows.len() as u64;
        rows.iter().try_for_each(|old| self.remove(transaction, state, old, lists))
    }

    /// Removes keys by the policy while the budget is exceeded.
    fn make_room(
        &mut self,
        transaction: &mut impl Write,
        state: &mut State,
        least: u64,
        most: usize,
        effects: &mut Effects,
    ) -> Result<(), EngineError> {
        let excess = self.excess(transaction.usage()?.used);
        let target = excess.max(least).min(EVICTED_BYTES_AT_ONCE);
        if target == 0 {
            return Ok(());
        }
        let policy = *self.shared.eviction.lock();
        let Some(memory) = self.shared.queue.memory() else { return Ok(()) };
        if policy == EvictionPolicy::NoEviction {
            effects.full = excess > 0 && state.dead.is_empty();
            return Ok(());
        }
        let candidates = match policy.volatile_only() {
            true => self.next_to_expire(transaction)?,
            false => self.next_of_the_hand(transaction)?,
        };
        // The first passes spare what is used often.
        let spare_used = self.passes < 2;
        let mut freed = 0;
        for old in candidates {
            if freed >= target || effects.evicted as usize >= most {
                break;
            }
            if !policy.volatile_only() {
                self.hand = successor(old.row_key);
            }
            if self.shared.is_unwritable(old.row_key.place()) {
                continue;
            }
            self.at.set(Some(old.row_key.place()));
            let Some(key) = key_of(transaction, &old)? else { continue };
            let generation = old.row_key.generation();
            if let Some(tombstone) = memory.give_up(generation, old.row_key.hash(), &key, spare_used) {
                freed += old.bytes();
                effects.evicted += 1;
                effects.evicted_keys.push(tombstone);
                self.remove(transaction, state, &old, &HashSet::new())?;
            }
        }
        if effects.evicted > 0 {
            self.passes = 0;
        } else {
            self.passes = self.passes.saturating_add(1);
        }
        let is_stuck = self.passes > PASSES && state.dead.is_empty();
        effects.full = excess > 0 && is_stuck;
        effects.more = !is_stuck;
        Ok(())
    }

    /// Removes a row and all that belongs to it, but not the nodes of lists that are written in this commit.
    fn remove(
        &self,
        transaction: &mut impl Write,
        state: &mut State,
        old: &Old,
        lists: &HashSet<u64>,
    ) -> Result<(), EngineError> {
        self.at.set(Some(old.row_key.place()));
        lists::remove_nodes(transaction, state, self.hash_key, old, lists)?;
        remove_row(transaction, state, old)
    }

    /// Takes what was found in front of a damaged page for all that there is to do; says whether it is all.
    fn passed_over(&self, found: Result<(), EngineError>) -> Result<bool, EngineError> {
        match found {
            Err(EngineError::Damaged(damage)) => {
                self.shared.report_page(&damage);
                Ok(false)
            }
            found => found.map(|()| true),
        }
    }

    fn next_of_the_hand(&mut self, transaction: &impl Write) -> Result<Vec<Old>, EngineError> {
        let is_key = |row_key: RowKey| row_key.generation() != NODES;
        let mut rows = Vec::new();
        self.passed_over(rows_from(transaction, self.hand, LOOKED_AT, is_key, &mut rows))?;
        if rows.len() < LOOKED_AT {
            self.hand = RowKey::new(0, 0, 0);
        }
        Ok(rows)
    }

    fn next_to_expire(&self, transaction: &impl Write) -> Result<Vec<Old>, EngineError> {
        let (mut found, mut due) = (Vec::new(), Vec::new());
        self.passed_over(expiring(transaction, LOOKED_AT, |_| true, &mut due))?;
        for (_, row_key) in due {
            self.at.set(Some(row_key.place()));
            found
                .extend(transaction.get(Table::Entries, &row_key.0)?.map(|bytes| Old::parse(row_key, bytes)));
        }
        Ok(found)
    }
}

/// What the databases are called after these items, if that changes.
fn assigned(items: &[Item]) -> Option<&[Generation]> {
    items.iter().rev().find_map(|item| match item {
        Item::Generations { generations, .. } => Some(&**generations),
        Item::Change(_) | Item::Dictionary { .. } | Item::ActiveDictionaries(_) | Item::Load(_) => None,
    })
}

/// Whether anything is put on the disk, and not only removed.
fn needs_room(items: &[Item]) -> bool {
    let assigned = assigned(items);
    let is_flushed = |change: &Change| assigned.is_some_and(|known| !known.contains(&change.generation));
    items.iter().any(|item| match item {
        Item::Change(change) => !change.entry.borrow().is_tombstone() && !is_flushed(change),
        Item::Dictionary { row, .. } => row.is_some(),
        Item::Generations { .. } | Item::ActiveDictionaries(_) | Item::Load(_) => false,
    })
}

/// The last change of each key, in the order of the rows.
fn last_changes(items: &[Item], hash_key: [u64; 2]) -> Vec<(u64, &Change)> {
    let mut changes: Vec<(u64, usize, &Change)> = items
        .iter()
        .enumerate()
        .filter_map(|(number, item)| match item {
            Item::Change(change) => Some((hash(hash_key, change.entry.borrow().key()), number, change)),
            Item::Generations { .. }
            | Item::Dictionary { .. }
            | Item::ActiveDictionaries(_)
            | Item::Load(_) => None,
        })
        .collect();
    // The latest first among those of one key.
    changes.sort_unstable_by(|(hash, number, change), (other_hash, other_number, other)| {
        let key = |change: &Change| (change.generation, *hash);
        let other_key = |change: &Change| (change.generation, *other_hash);
        key(change)
            .cmp(&other_key(other))
            .then_with(|| change.entry.borrow().key().cmp(other.entry.borrow().key()))
            .then(other_number.cmp(number))
    });
    changes.dedup_by(|(_, _, later), (_, _, first)| {
        later.generation == first.generation && later.entry.borrow().key() == first.entry.borrow().key()
    });
    changes.into_iter().map(|(hash, _, change)| (hash, change)).collect()
}
