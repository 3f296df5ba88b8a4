//! Recompression: a record that has been idle for a while is re-encoded once at a stronger level.
//!
//! This module has the shared parts: the records that it applies to, the settings, and the statistics. It
//! must not know the pass over the records, which is in `maintenance`, nor the work on one of them, which is
//! in `session`; the entry and the row of a record say whether it has been tried.

use std::sync::atomic::{AtomicU64, Ordering};

use snugly_codec::{CodecId, Record};

/// Codec of records that are recompressed.
pub(crate) const CODEC: CodecId = CodecId::Zstd;

/// Statistics of recompression since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecompressionStats {
    /// Records on which a stronger level was tried.
    pub tried: u64,
    /// Records that became smaller.
    pub recompressed: u64,
    /// Bytes of memory saved, counted for records on disk as if they were in memory.
    pub saved_bytes: u64,
    /// Bytes that dictionaries take for it at this moment, while a pass has something to do.
    pub table_bytes: u64,
}

#[derive(Default)]
pub(crate) struct RecompressionCounters {
    tried: AtomicU64,
    recompressed: AtomicU64,
    saved_bytes: AtomicU64,
    table_bytes: AtomicU64,
}

impl RecompressionCounters {
    /// Counts a tried record and the bytes that it saved.
    pub(crate) fn tried(&self, saved: usize) {
        self.tried.fetch_add(1, Ordering::Relaxed);
        self.recompressed.fetch_add(u64::from(saved > 0), Ordering::Relaxed);
        self.saved_bytes.fetch_add(saved as u64, Ordering::Relaxed);
    }

    pub(crate) fn set_table_bytes(&self, bytes: usize) {
        self.table_bytes.store(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> RecompressionStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RecompressionStats {
            tried: load(&self.tried),
            recompressed: load(&self.recompressed),
            saved_bytes: load(&self.saved_bytes),
            table_bytes: load(&self.table_bytes),
        }
    }
}

/// Greatest length of a value, in bytes: a longer one alone would take longer than a step may.
const MOST_LEN: usize = 128 << 10;

/// Returns whether a stronger level may make a record that begins like this smaller.
pub(crate) fn is_recompressible(record: &[u8]) -> bool {
    Record::parse(record)
        .is_ok_and(|record| record.codec().without_dictionary() == CODEC && record.raw_len() <= MOST_LEN)
}
