//! The disk tier: every key's record in an ordered file, committed in groups by one writer thread.
//!
//! - [`engine`]: the interface of a storage engine; [`lmdb`]: the engine in use
//! - [`row`], [`dictionary`], [`state`]: the bytes (FORMAT.md specifies them)
//! - [`lookup`]: reading keys; [`snapshot`]: rows of one commit
//! - [`change`]: one change; [`queue`]: changes on their way to the disk; [`journal`]: the log that holds
//!   them first where writes wait for the disk; `leftover`: its uncommitted records, found at the start
//! - [`writer`]: commits, and with them expiry, eviction and removal of flushed generations;
//!   [`existing_rows`]: the rows that it replaces and removes
//! - [`collections`]: the nodes and directories of collections that are written and removed
//! - [`drafts`]: compression of values that are changed in place
//! - [`pages`]: the engine's file, read with bounds of its own
//! - [`storage`]: the folder of a store, and its budget; [`shared`]: state that the tier's threads share with
//!   callers
//! - [`files`]: opening, and what is refused before the engine touches a file; [`private`]: ownership of the
//!   files
//! - [`check`]: verifying a store offline; [`compaction`]: rewriting it without gaps; [`repair`]: a new store
//!   from the readable part of a damaged one; [`backup`]: a copy of a store in use
//! - `fuzzing`: entry points of the fuzzer
//!
//! It knows the memory tier as a [`MemoryTier`] only, and must not look into values: a record moves between
//! the tiers as it is.

mod backup;
pub(crate) mod change;
pub(crate) mod check;
mod collections;
mod compaction;
pub(crate) mod dictionary;
mod drafts;
pub(crate) mod engine;
mod existing_rows;
mod files;
#[cfg(any(fuzzing, test))]
mod fuzzing;
mod journal;
mod leftover;
mod lmdb;
mod lookup;
mod pages;
mod private;
pub(crate) mod queue;
mod repair;
pub(crate) mod row;
mod shared;
pub(crate) mod snapshot;
pub(crate) mod state;
mod storage;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tracing::{error, warn};

pub use backup::{BackupError, BackupProgress, restore};
pub use check::{CheckReport, check};
pub use compaction::compact;
pub use files::OpenError;
#[cfg(fuzzing)]
pub use fuzzing::parse_anything;
pub(crate) use lookup::DiskError;
pub use repair::{RepairReport, repair};
pub use storage::{Durability, MIN_MAX_DISK, Storage};

use crate::clock::system_time;
use crate::entry::{Access, Entry};
use crate::eviction::EvictionPolicy;
use crate::recompression::Cold;
use crate::settings::Settings;
use crate::versions::Versions;
use dictionary::DictionaryRow;
use engine::{Engine, EngineError, Read, Table};
use files::Opened;
use journal::Journal;
use leftover::leftover;
use queue::Queue;
use row::{Damaged, Generation};
use shared::{Shared, Status, Unwritable};
pub use state::LoadMark;
use state::{Contents, State};
use storage::{PAGE_BYTES, changes_at_once, reserve};

/// The dictionaries of a store on disk.
pub(crate) struct StoredDictionaries {
    pub(crate) rows: Vec<DictionaryRow>,
    /// Numbers of the active dictionaries.
    pub(crate) active: BTreeSet<u32>,
    /// Next number.
    pub(crate) next: u32,
}

/// Duration from which a read must have waited for the disk.
const SLOW_READ: Duration = Duration::from_micros(150);
/// Milliseconds for which reads are considered slow after a slow one.
const SLOW_FOR: u64 = 1000;

/// Interface of the memory tier for the writer.
pub(crate) trait MemoryTier: Send + Sync {
    /// Reports that the deletion of this tombstone is on disk: it can go, unless its key has been written
    /// since.
    fn forget(&self, tombstone: &Entry);

    /// Reports that an expired key was removed from disk.
    fn expired(&self, generation: Generation, hash: u64, key: &[u8]);

    /// Announces that a key is about to be evicted from disk. Puts a tombstone in its place and returns it,
    /// unless the key has changes on their way to disk, or (where `spare_used`) is in use.
    fn give_up(&self, generation: Generation, hash: u64, key: &[u8], spare_used: bool) -> Option<Entry>;
}

/// Statistics of the disk tier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Bytes of the journal, and of the file's pages in use.
    pub used_bytes: u64,
    /// Bytes of the journal, and of the file up to the last page ever used.
    pub file_bytes: u64,
    /// Bytes that all files may take, 0 for no limit.
    pub max_disk: u64,
    /// Commits since the start.
    pub commits: u64,
    /// Bytes of the changes in these commits, counted as `pending_bytes`.
    pub commit_bytes: u64,
    /// Attempts to commit that failed since the start.
    pub failed_commits: u64,
    /// Records written to the journal since the start, each with one sync.
    pub journal_records: u64,
    /// Nanoseconds that writing these took.
    pub journal_nanoseconds: u64,
    /// Bytes of changes that wait for a commit.
    pub pending_bytes: u64,
    /// Age of the oldest of these changes.
    pub pending_age: Duration,
    /// Nanoseconds that commits took since the start.
    pub commit_nanoseconds: u64,
    /// Reads from disk since the start.
    pub reads: u64,
    /// Keys evicted from disk since the start.
    pub evicted: u64,
    /// Expired keys removed from disk since the start.
    pub expired: u64,
    /// Damaged rows met since the start.
    pub damaged: u64,
    /// Cause of the failure, while commits fail.
    pub failure: Option<String>,
}

/// A store's disk tier.
pub(crate) struct Disk {
    shared: Arc<Shared>,
    hash_key: [u64; 2],
    journal: Mutex<Option<JoinHandle<()>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Disk {
    /// Opens or creates a store; returns the generations of its databases.
    pub(crate) fn open(storage: Storage, databases: usize) -> Result<(Disk, Vec<Generation>), OpenError> {
        let Opened { engine, identity, mut state, applied, lock } = files::open(&storage, databases)?;
        state.extend_to(databases);
        let refused = |reason| files::failed(&storage.path, reason);
        let no_thread = |reason| OpenError::NoThread { path: storage.path.clone(), reason };
        let hash_key = identity.hash_key;
        let leftover = leftover(&storage.path, hash_key, applied).map_err(refused)?;
        if let Some(found) = leftover.unknown_change {
            return Err(OpenError::UnknownChange { path: storage.path, found });
        }
        leftover.log(&storage.path);
        let shared = Arc::new(Shared {
            engine,
            queue: Queue::new(&storage),
            applied: AtomicU64::new(applied),
            storage: storage.clone(),
            versions: Arc::new(Versions::from(state.next_version)),
            status: Status::default(),
            reported: Mutex::default(),
            reported_pages: Mutex::default(),
            unwritable: RwLock::default(),
            is_damaged: AtomicBool::new(false),
            eviction: Mutex::default(),
            compression: Mutex::default(),
            backup: Mutex::default(),
            _lock: lock,
        });
        let state = writer::replay(&shared, state, hash_key, leftover)
            .and_then(|state| writer::reserve_versions(&shared, state))
            .map_err(files::engine_failed(&storage.path))?;
        let usage = shared.engine.read().and_then(|snapshot| snapshot.usage());
        let usage = usage.map_err(files::engine_failed(&storage.path))?;
        files::fit(&storage, usage)?;
        shared.engine.trim().map_err(files::engine_failed(&storage.path))?;
        shared.note_usage(usage);
        shared.status.unsettled.store(shared.excess(usage.used) > 0, Ordering::Relaxed);
        let journal = Journal::open(&storage, hash_key, shared.applied()).map_err(refused)?;
        shared.status.journal.store(journal.as_ref().map_or(0, Journal::bytes), Ordering::Relaxed);
        let generations = state.contents.iter().map(|contents| contents.generation).collect();
        let disk =
            Disk { shared: shared.clone(), hash_key, journal: Mutex::default(), writer: Mutex::default() };
        let theirs = shared.clone();
        let writer = start(&shared, "disk-writer", move || writer::run(&theirs, state, hash_key));
        *disk.writer.lock() = Some(writer.map_err(no_thread)?);
        if let Some(journal) = journal {
            let theirs = shared.clone();
            let journal = start(&shared, "disk-journal", move || journal::run(&theirs, journal));
            *disk.journal.lock() = Some(journal.map_err(no_thread)?);
        }
        Ok((disk, generations))
    }

    /// Connects the writer to the memory tier.
    pub(crate) fn attach(&self, memory: Weak<dyn MemoryTier>) {
        self.shared.queue.attach(memory);
    }

    pub(crate) fn hash_key(&self) -> [u64; 2] {
        self.hash_key
    }

    /// Returns the versions that the store gives out.
    pub(crate) fn versions(&self) -> Arc<Versions> {
        self.shared.versions.clone()
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.shared.queue
    }

    pub(crate) fn durability(&self) -> Durability {
        self.shared.storage.durability
    }

    /// Applies changed settings.
    pub(crate) fn follow(&self, settings: &Settings) {
        *self.shared.eviction.lock() = settings.eviction;
        *self.shared.compression.lock() = Some(settings.compression);
        self.shared.queue.limit(settings.max_memory);
    }

    /// Loads a key's entry from disk.
    pub(crate) fn load(
        &self,
        generation: Generation,
        hash: u64,
        key: &[u8],
        access: Access,
    ) -> Result<Option<Entry>, DiskError> {
        self.shared.status.reads.fetch_add(1, Ordering::Relaxed);
        let started = Instant::now();
        let snapshot = self.shared.engine.read()?;
        let entry = lookup::load(&self.shared, &snapshot, generation, hash, key, access);
        if started.elapsed() > SLOW_READ {
            self.shared.status.slow_until.store(system_time() + SLOW_FOR, Ordering::Relaxed);
        }
        entry.map_err(|error| self.shared.reported(error))
    }

    /// Returns whether a recent read had to wait for the disk.
    pub(crate) fn is_slow(&self) -> bool {
        let until = self.shared.status.slow_until.load(Ordering::Relaxed);
        until != 0 && until > system_time()
    }

    /// Passes the keys of a generation, from a hash on, with their hashes and expiries to `show`, until it
    /// returns false.
    pub(crate) fn scan(
        &self,
        generation: Generation,
        from: u64,
        mut show: impl FnMut(u64, &[u8], Option<u64>) -> bool,
    ) -> Result<(), DiskError> {
        let snapshot = self.shared.engine.read()?;
        lookup::scan(&self.shared, &snapshot, generation, from, |row_key, key, row| {
            show(row_key.hash(), key, row.expiry)
        })
    }

    /// Like [`Disk::scan`], and passes for each key whether its record is cold if nobody uses it.
    pub(crate) fn scan_for_cold(
        &self,
        cold: Cold,
        generation: Generation,
        from: u64,
        mut show: impl FnMut(u64, &[u8], Option<u64>, bool) -> bool,
    ) -> Result<(), DiskError> {
        let snapshot = self.shared.engine.read()?;
        let mut failure = None;
        lookup::scan(&self.shared, &snapshot, generation, from, |row_key, key, row| {
            match lookup::is_cold(&snapshot, cold, row) {
                Ok(is_cold) => show(row_key.hash(), key, row.expiry, is_cold),
                Err(error) => {
                    failure = Some(error);
                    false
                }
            }
        })?;
        failure.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Loads the dictionaries that are on disk. A damaged or missing one is logged and left out: records that
    /// need it cannot be read.
    pub(crate) fn dictionaries(&self) -> Result<StoredDictionaries, DiskError> {
        let snapshot = self.shared.engine.read()?;
        let State { dictionary_uses, active_dictionaries, next_dictionary, .. } =
            lookup::state(&snapshot)?.map_err(|Damaged| DiskError::Damaged)?;
        let mut expected: BTreeSet<u32> =
            dictionary_uses.into_keys().chain(active_dictionaries.clone()).collect();
        let (mut rows, mut damaged) = (Vec::new(), Vec::new());
        snapshot.scan(Table::Dictionaries, &[], &mut |key, bytes| {
            let number = dictionary::parse_key(key);
            if let Ok(number) = number {
                expected.remove(&number);
            }
            match number.and_then(|number| DictionaryRow::parse(number, bytes)) {
                Ok(row) => rows.push(row),
                Err(Damaged) => damaged.push(key.to_vec()),
            }
            true
        })?;
        for key in damaged {
            let name = dictionary::parse_key(&key);
            let name = name.map_or_else(|_| key.escape_ascii().to_string(), |number| number.to_string());
            self.dictionary_is_unusable(&name, "its checksum does not match");
        }
        for number in expected {
            self.dictionary_is_unusable(&number.to_string(), "it is missing");
        }
        Ok(StoredDictionaries { rows, active: active_dictionaries, next: next_dictionary })
    }

    /// Reads the progress of loading from a file, as of the last commit.
    pub(crate) fn load_mark(&self) -> Result<Option<LoadMark>, DiskError> {
        lookup::load_mark(&self.shared.engine.read()?)?.map_err(|Damaged| DiskError::Damaged)
    }

    /// Converts an error of reading to one of opening the store.
    pub(crate) fn unreadable(&self, error: &DiskError) -> OpenError {
        OpenError::Damaged { path: self.shared.storage.path.clone(), detail: error.to_string() }
    }

    /// Counts and logs a dictionary that cannot be used.
    pub(crate) fn dictionary_is_unusable(&self, name: &str, reason: &str) {
        self.shared.status.damaged.fetch_add(1, Ordering::Relaxed);
        error!(dictionary = name, reason, "a dictionary is damaged: the values that need it cannot be read");
    }

    /// Counts the rows that need each dictionary.
    pub(crate) fn dictionary_uses(&self) -> Result<BTreeMap<u32, u64>, DiskError> {
        let state = lookup::state(&self.shared.engine.read()?)?.map_err(|Damaged| DiskError::Damaged)?;
        Ok(state.dictionary_uses)
    }

    /// Returns the contents of a generation, with pending changes counted in.
    pub(crate) fn contents(&self, generation: Generation) -> Result<Contents, DiskError> {
        let pending = self.shared.queue.pending();
        lookup::contents(&self.shared, &self.shared.engine.read()?, self.hash_key, generation, &pending)
    }

    /// Returns whether writers should wait for a commit before they begin; not where commits fail, since that
    /// may last.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_crowded() || self.queue().is_late() && !self.shared.is_failing()
    }

    /// Returns whether writers should wait although they have begun.
    pub(crate) fn is_far_behind(&self) -> bool {
        self.is_crowded() || self.queue().is_overdue() && !self.shared.is_failing()
    }

    /// Returns whether writers should wait however young their changes are.
    pub(crate) fn is_crowded(&self) -> bool {
        (self.queue().is_full() || self.shared.is_unsettled()) && !self.shared.is_failing()
    }

    /// Returns whether there is space for a transaction of this many changes.
    pub(crate) fn takes_at_once(&self, changes: usize) -> bool {
        changes <= 1 || self.free().is_none_or(|free| changes <= changes_at_once(free))
    }

    /// Returns whether there is space for a value of this many bytes, once the policy has evicted.
    pub(crate) fn takes(&self, bytes: usize) -> bool {
        let Some(free) = self.free() else { return true };
        let budget = self.shared.storage.engine_bytes();
        // Smaller values fit the reserve.
        if (bytes as u64) <= reserve(budget) / queue::RESERVE_SHARE {
            return true;
        }
        let available = match *self.shared.eviction.lock() {
            EvictionPolicy::NoEviction => free,
            _ => budget,
        };
        bytes as u64 + reserve(budget) <= available
    }

    /// Returns the bytes left of the budget, if there is one.
    fn free(&self) -> Option<u64> {
        let taken = self.shared.status.used.load(Ordering::Relaxed) + self.queue().bytes() as u64;
        let budget = self.shared.storage.engine_bytes();
        (budget > 0).then(|| budget.saturating_sub(taken))
    }

    /// Returns whether a key's rows are on damaged pages, so that it cannot be written. Checked once damage
    /// has been met anywhere.
    pub(crate) fn is_unwritable(&self, generation: Generation, hash: u64) -> bool {
        let shared = &self.shared;
        if !shared.is_damaged.load(Ordering::Relaxed) {
            return false;
        }
        let is_damaged =
            |snapshot| matches!(lookup::rows(&snapshot, generation, hash), Err(EngineError::Damaged(_)));
        shared.is_unwritable((generation, hash)) || shared.engine.read().is_ok_and(is_damaged)
    }

    /// Returns the reason why writes must be refused, if they must.
    pub(crate) fn refusal(&self, room: Room) -> Option<Refusal> {
        let has_room = match room {
            Room::Value => false,
            Room::Little => {
                let half = reserve(self.shared.storage.engine_bytes()) / 2;
                self.free().is_none_or(|free| free >= half)
            }
        };
        if self.shared.status.full.load(Ordering::Relaxed) && !has_room {
            return Some(Refusal::Full);
        }
        self.shared.is_failing().then(|| Refusal::Failing(self.failure().unwrap_or_default()))
    }

    fn failure(&self) -> Option<String> {
        self.shared.status.failure.lock().clone()
    }

    pub(crate) fn stats(&self) -> DiskStats {
        let status = &self.shared.status;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DiskStats {
            used_bytes: load(&status.used) + load(&status.journal),
            file_bytes: load(&status.file) + load(&status.journal),
            max_disk: self.shared.storage.max_disk,
            commits: load(&status.commits),
            commit_bytes: load(&status.commit_bytes),
            failed_commits: load(&status.failed_commits),
            journal_records: load(&status.journal_records),
            journal_nanoseconds: load(&status.journal_nanoseconds),
            pending_bytes: self.shared.queue.bytes() as u64,
            pending_age: self.shared.queue.oldest_age().unwrap_or_default(),
            commit_nanoseconds: load(&status.commit_nanoseconds),
            reads: load(&status.reads),
            evicted: load(&status.evicted),
            expired: load(&status.expired),
            damaged: load(&status.damaged),
            failure: self.failure(),
        }
    }

    /// Commits what is pending and ends the writer; returns what could not be written.
    pub(crate) fn close(&self) -> Result<(), DiskError> {
        self.shared.queue.stop_journal();
        let join = |thread: &Mutex<Option<JoinHandle<()>>>| {
            // The reason of a panicked thread is in what is returned below.
            let _ = thread.lock().take().map(JoinHandle::join);
        };
        join(&self.journal);
        self.shared.queue.stop();
        join(&self.writer);
        match self.failure() {
            Some(failure) => Err(DiskError::Unwritten(failure)),
            None => Ok(()),
        }
    }
}

/// Starts a thread of the disk tier. If it panics, writes are refused from then on, since they would never be
/// committed.
fn start(
    shared: &Arc<Shared>,
    name: &'static str,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let shared = shared.clone();
    let guarded = move || {
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            shared.break_down(name);
        }
    };
    thread::Builder::new().name(name.into()).spawn(guarded)
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            warn!(%error, "the store was closed with changes that are not on disk");
        }
    }
}

/// Space that a write needs of a full disk. Removing a key needs none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Space for a value.
    Value,
    /// Space for an expiry, or for a list that becomes shorter: half of the reserve is for that.
    Little,
}

/// Reason why a write is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The budget is used up, and the policy finds nothing to evict.
    Full,
    /// Commits fail, with this cause.
    Failing(String),
}
