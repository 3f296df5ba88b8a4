//! Packing: a record that nobody has used for a while is encoded anew at a stronger level, once.
//!
//! This is what all who take part know of it: which records it is for, the settings, and what came of it. The pass over
//! the records is in `upkeep`, the work on one of them in `session`, and whether one has been tried is said by its entry
//! and its row.

use std::sync::atomic::{AtomicU64, Ordering};

use snugly_codec::{CodecId, Record};

/// When records are packed, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackingSettings {
    /// For how long nobody must have read or written a key, in seconds; default 600, 0 is never.
    pub after: u32,
    /// The level of zstd; default 15.
    pub level: i32,
}

impl Default for PackingSettings {
    fn default() -> Self {
        PackingSettings { after: 600, level: 15 }
    }
}

/// What came of packing since the store was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackingStats {
    /// Records that it was tried on.
    pub tried: u64,
    /// Those of them that became smaller.
    pub packed: u64,
    /// By how many bytes of memory, or of what they would take there.
    pub saved_bytes: u64,
    /// Bytes that dictionaries take at this moment for it, while a pass has something to do.
    pub table_bytes: u64,
}

#[derive(Default)]
pub(crate) struct PackingCounters {
    tried: AtomicU64,
    packed: AtomicU64,
    saved_bytes: AtomicU64,
    table_bytes: AtomicU64,
}

impl PackingCounters {
    /// One record was tried, and takes so many bytes less.
    pub(crate) fn tried(&self, saved: usize) {
        self.tried.fetch_add(1, Ordering::Relaxed);
        self.packed.fetch_add(u64::from(saved > 0), Ordering::Relaxed);
        self.saved_bytes.fetch_add(saved as u64, Ordering::Relaxed);
    }

    pub(crate) fn set_table_bytes(&self, bytes: usize) {
        self.table_bytes.store(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> PackingStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PackingStats {
            tried: load(&self.tried),
            packed: load(&self.packed),
            saved_bytes: load(&self.saved_bytes),
            table_bytes: load(&self.table_bytes),
        }
    }
}

/// Longer values are left alone, in bytes: one alone would take longer than a step may.
const MOST_LEN: usize = 128 << 10;

/// Whether a record that begins so is one that a stronger level may make smaller.
pub(crate) fn is_packable(record: &[u8]) -> bool {
    Record::parse(record).is_ok_and(|record| {
        matches!(record.codec(), CodecId::Zstd | CodecId::ZstdDictionary) && record.raw_len() <= MOST_LEN
    })
}
