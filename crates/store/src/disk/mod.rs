//! The disk tier: every key's record in an ordered file, committed in groups by one writer thread.
//!
//! - [`engine`]: what is asked of a storage engine; [`lmdb`]: the engine that is used
//! - [`row`], [`dictionary`], [`state`]: the bytes (FORMAT.md specifies them)
//! - [`lookup`]: reading keys
//! - [`queue`]: changes on their way to the disk; [`journal`]: where they are first if writes wait for the disk
//! - [`writer`]: commits, and what is done on the way: expiry, eviction, flushed generations; [`old`]: the rows that
//!   it replaces and removes
//! - [`lists`]: what of lists is written, and the nodes that go with one
//! - [`pages`]: the engine's file, read with bounds of its own
//! - [`files`]: opening, and what is refused before the engine touches a file; [`private`]: whose the files are
//! - [`check`]: verifying and compacting a store offline; [`repair`]: a new one of what can be read of a damaged one
//! - `fuzzing`: what the fuzzer calls
//!
//! The memory tier is asked through [`MemoryTier`] only. Values are never looked into: a record moves between the tiers
//! as it is.

pub(crate) mod check;
pub(crate) mod dictionary;
pub(crate) mod engine;
mod files;
#[cfg(fuzzing)]
mod fuzzing;
mod journal;
mod leftover;
mod lists;
mod lmdb;
mod lookup;
mod old;
mod pages;
mod private;
pub(crate) mod queue;
mod repair;
pub(crate) mod row;
pub(crate) mod state;
mod writer;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tracing::{error, warn};

pub use check::{CheckReport, check, compact};
pub use files::OpenError;
#[cfg(fuzzing)]
pub use fuzzing::parse_anything;
pub(crate) use lookup::DiskError;
pub use repair::{RepairReport, repair};

use crate::EvictionPolicy;
use crate::hash::hash;
use crate::memory::entry::{Access, Entry};
use crate::store::{Settings, system_time};
use dictionary::DictionaryRow;
use engine::{Engine, EngineError, Read, Table, Usage};
use files::{Lock, Opened};
use journal::Journal;
use leftover::leftover;
use lmdb::Lmdb;
use pages::PageDamage;
use queue::Queue;
use row::{Damaged, Generation};
pub use state::LoadMark;
use state::{Contents, State};

/// The dictionaries of a store on disk.
pub(crate) struct StoredDictionaries {
    pub(crate) rows: Vec<DictionaryRow>,
    /// The numbers of those that new values are encoded with.
    pub(crate) active: BTreeSet<u32>,
    /// The number of the next one.
    pub(crate) next: u32,
}

/// What is promised of a write once it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// It is on the disk; concurrent writes share a sync.
    Fsync,
    /// It will be on the disk within the commit interval, whatever happens to the process. Where the disk is slower than
    /// the writers, they wait while a change is older than ten intervals: so much is lost at most.
    #[default]
    Batched,
    /// As `Batched`, but with the operating system. A power loss may leave a file that is refused.
    None,
}

/// Where and how a store is kept on disk.
#[derive(Clone, Debug)]
pub struct Storage {
    /// The folder; made if it does not exist.
    pub path: PathBuf,
    /// Bytes that all files may take, 0 for as many as the disk has; at least [`MIN_MAX_DISK`].
    pub max_disk: u64,
    /// When a write is answered.
    pub durability: Durability,
    /// How long a change waits before it is committed, the time of an average commit included.
    pub commit_interval: Duration,
    /// How many bytes of changes do not wait any longer.
    pub commit_bytes: usize,
}

/// The smallest budget of a file, in bytes.
pub const MIN_MAX_DISK: u64 = 16 << 20;

impl Storage {
    /// Defaults: no limit, batched, commits after 100 ms or 8 MiB.
    pub fn new(path: impl Into<PathBuf>) -> Storage {
        Storage {
            path: path.into(),
            max_disk: 0,
            durability: Durability::Batched,
            commit_interval: Duration::from_millis(100),
            commit_bytes: 8 << 20,
        }
    }

    /// What the budget leaves for the engine's file, in bytes; 0 is no limit.
    fn engine_bytes(&self) -> u64 {
        self.max_disk.saturating_sub(journal::reserved(self)) / PAGE_BYTES as u64 * PAGE_BYTES as u64
    }

    /// Rows that a transaction may remove for sure.
    fn rows_at_once(&self) -> usize {
        match self.engine_bytes() {
            0 => MOST_ROWS_AT_ONCE,
            budget => changes_at_once(reserve(budget)).min(MOST_ROWS_AT_ONCE),
        }
    }
}

/// How many bytes of a budget are kept free, so that a commit always finds pages: those that it replaces can be used
/// again only later.
fn reserve(max_disk: u64) -> u64 {
    (max_disk / 8).clamp(4 << 20, 256 << 20)
}

/// Rows removed in one commit at most, of each kind: expired, flushed, evicted.
const MOST_ROWS_AT_ONCE: usize = 4096;

/// How many changes a transaction may make for sure, out of what is kept free: each may replace as many pages.
fn changes_at_once(free: u64) -> usize {
    (free / (PAGES_A_CHANGE * PAGE_BYTES as u64)) as usize
}

const PAGE_BYTES: usize = 4096;
/// Pages that one change replaces at most, about: of the entry, of its expiry, of its first chunk, and of the list of pages
/// that can be used again.
const PAGES_A_CHANGE: u64 = 4;

/// A read that took longer had to wait for the disk.
const SLOW_READ: Duration = Duration::from_micros(150);
/// For how long reads are taken for slow after one was, in milliseconds.
const SLOW_FOR: u64 = 1000;

/// What the writer asks of the memory tier.
pub(crate) trait MemoryTier: Send + Sync {
    /// The deletion that this entry stands for is on disk: it can go, unless its key has been written since.
    fn forget(&self, tombstone: &Entry);

    /// The key's time had come, and it was removed from disk.
    fn expired(&self, generation: Generation, hash: u64, key: &[u8]);

    /// The key is about to be removed from disk to make room. Puts a tombstone in its place and gives it, unless the
    /// key has changes on their way to disk, or (where `spare_used`) is in use.
    fn give_up(&self, generation: Generation, hash: u64, key: &[u8], spare_used: bool) -> Option<Entry>;
}

/// How the disk tier is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Bytes of the journal, and of the file's pages that hold something.
    pub used_bytes: u64,
    /// Bytes of the journal, and of the file up to the last page that was ever used.
    pub file_bytes: u64,
    /// Bytes that all files may take, 0 for no limit.
    pub max_disk: u64,
    /// Commits since the start.
    pub commits: u64,
    /// Records written to the journal since the start, each with one sync.
    pub journal_records: u64,
    /// Bytes of changes that wait for a commit.
    pub pending_bytes: u64,
    /// For how long the oldest of these changes has waited.
    pub pending_age: Duration,
    /// Nanoseconds that commits took since the start.
    pub commit_nanoseconds: u64,
    /// Reads that looked on disk, since the start.
    pub reads: u64,
    /// Keys removed from disk to make room, since the start.
    pub evicted: u64,
    /// Keys removed from disk because their time had come, since the start.
    pub expired: u64,
    /// Damaged rows that were met, since the start.
    pub damaged: u64,
    /// What is wrong, while commits fail.
    pub failure: Option<String>,
}

#[derive(Default)]
struct Status {
    used: AtomicU64,
    file: AtomicU64,
    /// Bytes of the journal's files.
    journal: AtomicU64,
    commits: AtomicU64,
    journal_records: AtomicU64,
    commit_nanoseconds: AtomicU64,
    reads: AtomicU64,
    evicted: AtomicU64,
    expired: AtomicU64,
    damaged: AtomicU64,
    /// Until when reads are taken for slow, in Unix milliseconds.
    slow_until: AtomicU64,
    /// Whether the budget is used up and nothing may be evicted.
    full: AtomicBool,
    /// Whether the last commit failed.
    failing: AtomicBool,
    /// Whether a thread has panicked, after which no change is sure to reach the disk any more.
    broken: AtomicBool,
    failure: Mutex<Option<String>>,
}

/// Where a key's rows are: its generation and its hash.
pub(crate) type Unwritable = (Generation, u64);

/// What the writer shares with everybody.
pub(crate) struct Shared {
    engine: Lmdb,
    storage: Storage,
    queue: Queue,
    /// The last record of the journal that the engine has.
    applied: AtomicU64,
    status: Status,
    /// Damaged rows that were reported already, and damaged pages.
    reported: Mutex<HashSet<row::RowKey>>,
    reported_pages: Mutex<HashSet<u64>>,
    /// Keys whose rows are on damaged pages, which nothing can be written to.
    unwritable: RwLock<HashSet<Unwritable>>,
    /// Whether a damaged page has been met.
    is_damaged: AtomicBool,
    /// By which rule keys go when the budget is used up; changes with the settings.
    eviction: Mutex<EvictionPolicy>,
    _lock: Lock,
}

/// A store's disk tier.
pub(crate) struct Disk {
    shared: Arc<Shared>,
    hash_key: [u64; 2],
    journal: Mutex<Option<JoinHandle<()>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Disk {
    /// Opens a store or makes one; gives what its databases are called on disk.
    pub(crate) fn open(storage: Storage, databases: usize) -> Result<(Disk, Vec<Generation>), OpenError> {
        let Opened { engine, identity, mut state, applied, lock } = files::open(&storage, databases)?;
        state.extend_to(databases);
        let refused = |reason| files::failed(&storage.path, reason);
        let no_thread = |reason| OpenError::NoThread { path: storage.path.clone(), reason };
        let hash_key = identity.hash_key;
        let leftover = leftover(&storage.path, hash_key, applied).map_err(refused)?;
        leftover.log(&storage.path);
        let usage = engine.read().and_then(|snapshot| snapshot.usage());
        let usage = usage.map_err(files::engine_failed(&storage.path))?;
        let shared = Arc::new(Shared {
            engine,
            queue: Queue::new(&storage),
            applied: AtomicU64::new(applied),
            storage: storage.clone(),
            status: Status::default(),
            reported: Mutex::default(),
            reported_pages: Mutex::default(),
            unwritable: RwLock::default(),
            is_damaged: AtomicBool::new(false),
            eviction: Mutex::default(),
            _lock: lock,
        });
        shared.note_usage(usage);
        let state = writer::replay(&shared, state, hash_key, leftover)
            .map_err(files::engine_failed(&storage.path))?;
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

    /// Whom the writer asks of the memory tier from now on.
    pub(crate) fn attach(&self, memory: Weak<dyn MemoryTier>) {
        self.shared.queue.attach(memory);
    }

    pub(crate) fn hash_key(&self) -> [u64; 2] {
        self.hash_key
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.shared.queue
    }

    pub(crate) fn durability(&self) -> Durability {
        self.shared.storage.durability
    }

    /// Follows settings that have changed.
    pub(crate) fn follow(&self, settings: &Settings) {
        *self.shared.eviction.lock() = settings.eviction;
        self.shared.queue.limit(settings.max_memory);
    }

    /// A key's entry as it is on disk.
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
        if let Err(DiskError::Engine(EngineError::Damaged(damage))) = &entry {
            self.shared.report_page(damage);
        }
        if started.elapsed() > SLOW_READ {
            self.shared.status.slow_until.store(system_time() + SLOW_FOR, Ordering::Relaxed);
        }
        entry
    }

    /// Whether a read lately had to wait for the disk.
    pub(crate) fn is_slow(&self) -> bool {
        let until = self.shared.status.slow_until.load(Ordering::Relaxed);
        until != 0 && until > system_time()
    }

    /// Shows the keys of a generation from a hash on, with their hashes and expiries, until `show` says false.
    pub(crate) fn scan(
        &self,
        generation: Generation,
        from: u64,
        mut show: impl FnMut(u64, &[u8], Option<u64>) -> bool,
    ) -> Result<(), DiskError> {
        let snapshot = self.shared.engine.read()?;
        lookup::scan(&self.shared, &snapshot, generation, from, |hash, key, row| show(hash, key, row.expiry))
    }

    /// As [`Disk::scan`], and says of each key whether a stronger level is still to be tried on its record.
    pub(crate) fn scan_packable(
        &self,
        generation: Generation,
        from: u64,
        mut show: impl FnMut(u64, &[u8], Option<u64>, bool) -> bool,
    ) -> Result<(), DiskError> {
        let snapshot = self.shared.engine.read()?;
        let mut failure = None;
        lookup::scan(&self.shared, &snapshot, generation, from, |hash, key, row| match lookup::is_packable(
            &snapshot, row,
        ) {
            Ok(is_packable) => show(hash, key, row.expiry, is_packable),
            Err(error) => {
                failure = Some(error);
                false
            }
        })?;
        failure.map_or(Ok(()), |error| Err(error.into()))
    }

    /// The dictionaries that are on disk. One that is damaged or missing is told of and left out: what needs it cannot be
    /// read.
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

    /// How far the store has been loaded from a file, as of the last commit.
    pub(crate) fn load_mark(&self) -> Result<Option<LoadMark>, DiskError> {
        lookup::load_mark(&self.shared.engine.read()?)?.map_err(|Damaged| DiskError::Damaged)
    }

    /// Makes an error about the opening of a store of one about reading it.
    pub(crate) fn unreadable(&self, error: &DiskError) -> OpenError {
        OpenError::Damaged { path: self.shared.storage.path.clone(), detail: error.to_string() }
    }

    /// Counts a dictionary that cannot be used, and tells of it.
    pub(crate) fn dictionary_is_unusable(&self, name: &str, reason: &str) {
        self.shared.status.damaged.fetch_add(1, Ordering::Relaxed);
        error!(dictionary = name, reason, "a dictionary is damaged: the values that need it cannot be read");
    }

    /// How many rows need each dictionary.
    pub(crate) fn dictionary_uses(&self) -> Result<BTreeMap<u32, u64>, DiskError> {
        let state = lookup::state(&self.shared.engine.read()?)?.map_err(|Damaged| DiskError::Damaged)?;
        Ok(state.dictionary_uses)
    }

    /// What a generation holds, with the changes that are on their way counted in.
    pub(crate) fn contents(&self, generation: Generation) -> Result<Contents, DiskError> {
        let pending = self.shared.queue.pending();
        lookup::contents(&self.shared, &self.shared.engine.read()?, self.hash_key, generation, &pending)
    }

    /// Whether writers should wait for a commit: not where commits fail, for that may last.
    pub(crate) fn is_behind(&self) -> bool {
        (self.queue().is_full() || self.queue().is_late()) && !self.shared.is_failing()
    }

    /// Whether there is room for a transaction of so many changes.
    pub(crate) fn takes_at_once(&self, changes: usize) -> bool {
        changes <= 1 || self.free().is_none_or(|free| changes <= changes_at_once(free))
    }

    /// Whether there is room for a value of so many bytes, once the policy has made some.
    pub(crate) fn takes(&self, bytes: usize) -> bool {
        let Some(free) = self.free() else { return true };
        let budget = self.shared.storage.engine_bytes();
        // Smaller ones fit what is kept free.
        if (bytes as u64) <= reserve(budget) / queue::RESERVE_SHARE {
            return true;
        }
        let available = match *self.shared.eviction.lock() {
            EvictionPolicy::NoEviction => free,
            _ => budget,
        };
        bytes as u64 + reserve(budget) <= available
    }

    /// What is left of the budget, in bytes, if there is one.
    fn free(&self) -> Option<u64> {
        let taken = self.shared.status.used.load(Ordering::Relaxed) + self.queue().bytes() as u64;
        let budget = self.shared.storage.engine_bytes();
        (budget > 0).then(|| budget.saturating_sub(taken))
    }

    /// Whether a key's rows are on damaged pages, so that nothing can be written to it. That is looked at once damage has
    /// been met anywhere.
    pub(crate) fn is_unwritable(&self, generation: Generation, key: &[u8]) -> bool {
        let shared = &self.shared;
        if !shared.is_damaged.load(Ordering::Relaxed) {
            return false;
        }
        let hash = hash(self.hash_key, key);
        let is_damaged =
            |snapshot| matches!(lookup::rows(&snapshot, generation, hash), Err(EngineError::Damaged(_)));
        shared.is_unwritable((generation, hash)) || shared.engine.read().is_ok_and(is_damaged)
    }

    /// Why writes that need room must be refused, if they must.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        let status = &self.shared.status;
        if status.full.load(Ordering::Relaxed) {
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
            journal_records: load(&status.journal_records),
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

    /// Commits what is pending and ends the writer; says what could not be written.
    pub(crate) fn close(&self) -> Result<(), DiskError> {
        self.shared.queue.stop_journal();
        let join = |thread: &Mutex<Option<JoinHandle<()>>>| {
            // A thread that has panicked has said why in what is returned below.
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

/// Starts a thread of the disk tier. If it panics, writes are refused from then on: nobody would commit them.
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

/// Why a write is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The budget is used up, and the policy finds nothing to evict.
    Full,
    /// Commits fail, for this reason.
    Failing(String),
}

impl Shared {
    fn applied(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    /// Refuses all writes from now on, and tells those that wait that theirs are not on disk.
    fn break_down(&self, thread: &str) {
        *self.status.failure.lock() =
            Some(format!("the thread {thread} has panicked; start the server again"));
        self.status.broken.store(true, Ordering::Relaxed);
        self.queue.failed(u64::MAX);
    }

    fn is_failing(&self) -> bool {
        self.status.failing.load(Ordering::Relaxed) || self.status.broken.load(Ordering::Relaxed)
    }

    fn note_usage(&self, usage: Usage) {
        self.status.used.store(usage.used, Ordering::Relaxed);
        self.status.file.store(usage.file, Ordering::Relaxed);
    }

    fn is_unwritable(&self, at: Unwritable) -> bool {
        self.is_damaged.load(Ordering::Relaxed) && self.unwritable.read().contains(&at)
    }

    /// Notes that a key's rows cannot be written; says whether that is new.
    fn set_aside(&self, at: Unwritable, damage: &PageDamage) -> bool {
        self.report_page(damage);
        self.unwritable.write().insert(at)
    }

    /// Counts a damaged page when it is met for the first time, and tells of it.
    fn report_page(&self, damage: &PageDamage) {
        self.is_damaged.store(true, Ordering::Relaxed);
        if self.reported_pages.lock().insert(damage.page) {
            self.status.damaged.fetch_add(1, Ordering::Relaxed);
            error!(
                path = %self.storage.path.display(),
                %damage,
                "what is on this page can be neither read nor written: stop the server and run snugly repair"
            );
        }
    }

    /// Counts a damaged row, and tells of it once.
    fn report_damage(&self, row_key: row::RowKey, key: &[u8]) {
        const REMEMBERED: usize = 10_000;
        self.status.damaged.fetch_add(1, Ordering::Relaxed);
        let mut reported = self.reported.lock();
        if reported.len() < REMEMBERED && reported.insert(row_key) {
            warn!(
                key = %key.escape_ascii(),
                "a value on disk is damaged: its checksum does not match; writing or deleting the key mends it"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use snugly_codec::Record;

    use super::*;
    use queue::{Change, Item};

    #[test]
    fn after_a_thread_has_panicked_writes_are_refused_for_good() {
        let folder = tempfile::tempdir().expect("a folder");
        let (disk, _) = Disk::open(Storage::new(folder.path()), 1).expect("the store opens");
        disk.shared.break_down("disk-journal");
        let generations = Item::Generations { generations: Arc::from([0]), all_gone: false, in_group: false };
        disk.queue().push(generations);
        disk.queue().wait_until(|| disk.queue().bytes() == 0);
        let refusal = disk.refusal();
        assert!(
            matches!(&refusal, Some(Refusal::Failing(reason)) if reason.contains("disk-journal")),
            "{refusal:?}"
        );
        assert_eq!(disk.queue().is_committed(u64::MAX - 1), Some(false), "whoever waits is told");
        assert!(disk.close().is_err());
    }

    #[test]
    fn a_dictionary_that_is_missing_though_a_row_needs_it_is_counted_as_damage() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || Disk::open(Storage::new(folder.path()), 1).expect("the store opens").0;
        let disk = open();
        // Codec 3, dictionary 7, of one byte.
        let record = Record::parse(&[3, 7, 1, 0]).expect("a record");
        let entry = Entry::new(b"key", &record, None, Access::written(0));
        let change = Change { generation: 0, entry, expiry: None, in_group: false, _holds: None };
        disk.queue().push(Item::Change(change));
        disk.close().expect("it can be written");
        assert_eq!(disk.dictionary_uses().expect("it can be read"), BTreeMap::from([(7, 1)]));
        drop(disk);
        let disk = open();
        assert_eq!(disk.stats().damaged, 0);
        assert!(disk.dictionaries().expect("the rest can be read").rows.is_empty());
        assert_eq!(disk.stats().damaged, 1);
    }
}
