//! The storage settings of a store: its folder, its durability, and the limits that follow from its budget.

use std::path::PathBuf;
use std::time::Duration;

use super::journal;

/// Guarantee for a write once it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// The write is on the disk; concurrent writes share a sync.
    Fsync,
    /// The write will be on the disk within the commit interval. Where the disk is slower than that, writers
    /// wait while the oldest change is older than the interval, so that a kill loses what was written within
    /// one interval at most.
    #[default]
    Batched,
    /// Like `Batched`, but with the operating system only. A power loss may leave a file that is refused.
    None,
}

/// Settings of a store on disk.
#[derive(Clone, Debug)]
pub struct Storage {
    /// Folder of the store; created if it does not exist.
    pub path: PathBuf,
    /// Bytes that all files may take, 0 for no limit but the disk's; at least [`MIN_MAX_DISK`].
    pub max_disk: u64,
    /// Guarantee for an answered write.
    pub durability: Durability,
    /// Time until a change is committed, the duration of an average commit included.
    pub commit_interval: Duration,
    /// Bytes of changes at which a commit starts at once.
    pub commit_bytes: usize,
}

/// Smallest budget of a file, in bytes.
pub const MIN_MAX_DISK: u64 = 16 << 20;

/// Most rows of each kind (expired, flushed, evicted) that one commit removes.
const MOST_ROWS_AT_ONCE: usize = 4096;
pub(super) const PAGE_BYTES: usize = 4096;
/// Approximate number of pages that one change replaces at most: of the entry, of its expiry, of its first
/// chunk, and of the list of free pages.
const PAGES_A_CHANGE: u64 = 4;

impl Storage {
    /// Creates settings with the defaults: no limit, batched, commits after 100 ms or 8 MiB.
    pub fn new(path: impl Into<PathBuf>) -> Storage {
        Storage {
            path: path.into(),
            max_disk: 0,
            durability: Durability::Batched,
            commit_interval: Duration::from_millis(100),
            commit_bytes: 8 << 20,
        }
    }

    /// Returns the bytes of the budget for the engine's file; 0 is no limit.
    pub(super) fn engine_bytes(&self) -> u64 {
        self.max_disk.saturating_sub(journal::reserved(self)) / PAGE_BYTES as u64 * PAGE_BYTES as u64
    }

    /// Returns the number of rows that a transaction can certainly remove.
    pub(super) fn rows_at_once(&self) -> usize {
        match self.engine_bytes() {
            0 => MOST_ROWS_AT_ONCE,
            budget => changes_at_once(reserve(budget)).min(MOST_ROWS_AT_ONCE),
        }
    }
}

/// Returns the bytes of a budget that are kept free, so that a commit always finds pages: those that it
/// replaces can be reused only later.
pub(super) fn reserve(max_disk: u64) -> u64 {
    (max_disk / 8).clamp(4 << 20, 256 << 20)
}

/// Returns the number of changes that a transaction can certainly make with `free` bytes in reserve, of which
/// each may replace several pages.
pub(super) fn changes_at_once(free: u64) -> usize {
    (free / (PAGES_A_CHANGE * PAGE_BYTES as u64)) as usize
}
