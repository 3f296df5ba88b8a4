//! State that the threads of the disk tier share with callers: the engine, the queue, counters, and the
//! damage that was met.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use snugly_codec::Choice;
use tracing::{error, warn};

use super::backup::BackupProgress;
use super::engine::{EngineError, Usage};
use super::files::Lock;
use super::lmdb::Lmdb;
use super::lookup::DiskError;
use super::pages::PageDamage;
use super::queue::Queue;
use super::row::{self, Generation};
use super::storage::{Storage, reserve};
use crate::eviction::EvictionPolicy;
use crate::versions::Versions;

#[derive(Default)]
pub(super) struct Status {
    pub(super) used: AtomicU64,
    pub(super) file: AtomicU64,
    /// Bytes of the journal's files.
    pub(super) journal: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) commit_bytes: AtomicU64,
    pub(super) failed_commits: AtomicU64,
    pub(super) journal_records: AtomicU64,
    pub(super) journal_nanoseconds: AtomicU64,
    pub(super) commit_nanoseconds: AtomicU64,
    pub(super) reads: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) expired: AtomicU64,
    pub(super) damaged: AtomicU64,
    /// Time until which reads are considered slow, in Unix milliseconds.
    pub(super) slow_until: AtomicU64,
    /// Whether the budget is used up and nothing may be evicted.
    pub(super) full: AtomicBool,
    /// Whether more was used at the start than leaves the reserve free, and no commit has made room or found none yet.
    pub(super) unsettled: AtomicBool,
    /// Whether the last commit failed.
    pub(super) failing: AtomicBool,
    /// Whether a thread has panicked, after which no change is sure to reach the disk any more.
    pub(super) broken: AtomicBool,
    pub(super) failure: Mutex<Option<String>>,
}

/// Generation and hash of a key, which locate its rows.
pub(crate) type Unwritable = (Generation, u64);

/// State that the writer shares with everybody.
pub(crate) struct Shared {
    pub(super) engine: Lmdb,
    pub(super) storage: Storage,
    pub(super) queue: Queue,
    /// Number of the last journal record that the engine has committed.
    pub(super) applied: AtomicU64,
    pub(super) versions: Arc<Versions>,
    pub(super) status: Status,
    /// Damaged rows and pages that were reported already.
    pub(super) reported: Mutex<HashSet<row::RowKey>>,
    pub(super) reported_pages: Mutex<HashSet<u64>>,
    /// Keys that cannot be written, because their rows are on damaged pages.
    pub(super) unwritable: RwLock<HashSet<Unwritable>>,
    /// Whether a damaged page has been met.
    pub(super) is_damaged: AtomicBool,
    /// Eviction policy for a full budget; changes with the settings.
    pub(super) eviction: Mutex<EvictionPolicy>,
    /// Codec choice for values, once it is known.
    pub(super) compression: Mutex<Option<Choice>>,
    /// Backup that keeps pages of the file.
    pub(super) backup: Mutex<Option<Arc<BackupProgress>>>,
    pub(super) _lock: Lock,
}

impl Shared {
    pub(super) fn applied(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    /// Refuses all writes from now on, and fails those that wait.
    pub(super) fn break_down(&self, thread: &str) {
        *self.status.failure.lock() =
            Some(format!("the thread {thread} has panicked; start the server again"));
        self.status.broken.store(true, Ordering::Relaxed);
        self.queue.failed(u64::MAX);
    }

    /// Ends a backup that keeps pages which a commit needs; returns whether there is one.
    pub(super) fn end_backup(&self) -> bool {
        let backup = self.backup.lock();
        backup.iter().for_each(|progress| progress.give_way());
        backup.is_some()
    }

    pub(super) fn is_unsettled(&self) -> bool {
        self.status.unsettled.load(Ordering::Relaxed)
    }

    /// Returns the bytes over the budget.
    pub(super) fn excess(&self, used: u64) -> u64 {
        match self.storage.engine_bytes() {
            0 => 0,
            budget => used.saturating_sub(budget - reserve(budget)),
        }
    }

    pub(super) fn is_failing(&self) -> bool {
        self.status.failing.load(Ordering::Relaxed) || self.status.broken.load(Ordering::Relaxed)
    }

    pub(super) fn note_usage(&self, usage: Usage) {
        self.status.used.store(usage.used, Ordering::Relaxed);
        self.status.file.store(usage.file, Ordering::Relaxed);
    }

    pub(super) fn is_unwritable(&self, at: Unwritable) -> bool {
        self.is_damaged.load(Ordering::Relaxed) && self.unwritable.read().contains(&at)
    }

    /// Marks a key's rows as unwritable; returns whether that is new.
    pub(super) fn set_aside(&self, at: Unwritable, damage: &PageDamage) -> bool {
        self.report_page(damage);
        self.unwritable.write().insert(at)
    }

    /// Reports the damaged page that an error is about, if it is, and returns the error.
    pub(super) fn reported(&self, error: DiskError) -> DiskError {
        if let DiskError::Engine(EngineError::Damaged(damage)) = &error {
            self.report_page(damage);
        }
        error
    }

    /// Counts and logs a damaged page when it is met for the first time.
    pub(super) fn report_page(&self, damage: &PageDamage) {
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

    /// Counts and logs a damaged row once.
    pub(super) fn report_damage(&self, row_key: row::RowKey, key: &[u8]) {
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
