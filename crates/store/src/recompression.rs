//! Recompression: a record that stays is encoded once more, and again where nobody uses it.
//!
//! This module has the shared parts: what is to be done with a record by what can be seen of it, and the statistics. It must
//! not know the passes over the records, which are in `maintenance`, nor the work on one of them, which is in `session`; the
//! entry and the row of a record say which [`Stage`] it has come to.

use std::sync::atomic::{AtomicU64, Ordering};

use snugly_codec::{CodecId, Record};
use snugly_learning::ReadRate;

use crate::entry::{EntryRef, Stage};

/// Codec of values that nobody uses; others take less time to read.
pub(crate) const CODEC: CodecId = CodecId::Zstd;

/// Work of recompression on a record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// Encode a value that has stayed, and is read so often.
    Settle(ReadRate),
    /// Encode a value that is read often with what takes less time to read.
    Promote(ReadRate),
    /// Encode a value that nobody uses.
    Cool(Cold),
}

impl Task {
    /// Returns the stage of a record on which this was done.
    pub(crate) fn stage(self) -> Stage {
        match self {
            Task::Settle(_) | Task::Promote(_) => Stage::Settled,
            Task::Cool(_) => Stage::Cold,
        }
    }

    /// Returns what is to be done with a record in memory that stays, and notes that it was visited: it has stayed if it was
    /// there at the last visit. What was stored as it is when it was written could not be compressed.
    pub(crate) fn of_visit(entry: EntryRef<'_>) -> Option<Task> {
        let (stage, record) = (entry.stage(), no_longer_than(MOST_SETTLED, entry.record_bytes()?)?);
        let is_plain = record.codec() == CodecId::Identity;
        if is_plain && stage != Stage::Settled {
            return None;
        }
        let (access, rate) = (entry.access(), entry.access().rate());
        entry.set_access(access.visited());
        match (stage, rate) {
            (Stage::Written, rate) => access.was_visited().then_some(Task::Settle(rate)),
            // It was kept as it is for readers who are gone.
            (_, ReadRate::Unread | ReadRate::Seldom) => is_plain.then_some(Task::Settle(rate)),
            (_, ReadRate::Often) => is_of_codec(&record).then_some(Task::Promote(rate)),
            (_, ReadRate::Constantly) => (!is_plain).then_some(Task::Promote(rate)),
        }
    }
}

/// Conditions for cold records: idle for this many seconds, and their encoding still to be tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cold {
    pub(crate) after: u32,
    /// Whether keys that are only on disk are among them.
    pub(crate) is_on_disk: bool,
    /// Whether records of all codecs are, and not only those of [`CODEC`].
    pub(crate) of_all_codecs: bool,
}

impl Cold {
    /// Idle time assumed for a key that was only on disk, in seconds, since the true one is not known.
    pub(crate) const LONG_AGO: u64 = 24 * 60 * 60;

    /// Returns whether this entry is one. What comes from disk has not been used for long.
    pub(crate) fn has(self, entry: EntryRef<'_>, now: u64) -> bool {
        u64::from(entry.access().idle_seconds(now)) >= u64::from(self.after).min(Cold::LONG_AGO)
            && entry.record_bytes().is_some_and(|record| self.has_record(entry.stage(), record))
    }

    /// Returns whether a record of this stage that begins like this is one if nobody uses it.
    pub(crate) fn has_record(self, stage: Stage, record: &[u8]) -> bool {
        let Some(record) = no_longer_than(MOST_COLD, record) else { return false };
        match stage {
            Stage::Cold => false,
            _ if is_of_codec(&record) => true,
            Stage::Settled => self.of_all_codecs,
            Stage::Written => self.of_all_codecs && record.codec() != CodecId::Identity,
        }
    }
}

/// Greatest lengths of values that settle and that become cold, in bytes: a longer one alone would take longer than a step
/// may, and the codec of cold records is the slower one.
const MOST_SETTLED: usize = 1 << 20;
const MOST_COLD: usize = 128 << 10;

/// Returns a record that begins like this, if its value is no longer than so many bytes.
fn no_longer_than(most: usize, record: &[u8]) -> Option<Record<'_>> {
    Record::parse(record).ok().filter(|record| record.raw_len() <= most)
}

fn is_of_codec(record: &Record<'_>) -> bool {
    record.codec().without_dictionary() == CODEC
}

/// Statistics of recompression since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecompressionStats {
    /// Records that were encoded anew, whatever came of it.
    pub tried: u64,
    /// Bytes of their values.
    pub tried_bytes: u64,
    /// Records that became smaller.
    pub recompressed: u64,
    /// Bytes of memory saved, counted for records on disk as if they were in memory.
    pub saved_bytes: u64,
    /// Records that were encoded with what takes less time to read.
    pub promoted: u64,
    /// Bytes of memory that these take more than before.
    pub promoted_bytes: u64,
    /// Passes that have come to their end.
    pub passes: u64,
    /// Records and list nodes that were encoded anew because another dictionary is used for them.
    pub reencoded: u64,
    /// Bytes that dictionaries take for it at this moment, while a pass has something to do.
    pub table_bytes: u64,
}

#[derive(Default)]
pub(crate) struct RecompressionCounters {
    tried: AtomicU64,
    tried_bytes: AtomicU64,
    recompressed: AtomicU64,
    saved_bytes: AtomicU64,
    promoted: AtomicU64,
    promoted_bytes: AtomicU64,
    passes: AtomicU64,
    reencoded: AtomicU64,
    table_bytes: AtomicU64,
}

impl RecompressionCounters {
    /// Counts a record that was encoded anew: the length of its value, the bytes that its entry took and takes, and
    /// whether it takes less time to read.
    pub(crate) fn tried(&self, len: usize, had: usize, has: usize, is_promoted: bool) {
        let add = |counter: &AtomicU64, number: usize| counter.fetch_add(number as u64, Ordering::Relaxed);
        add(&self.tried, 1);
        add(&self.tried_bytes, len);
        add(&self.recompressed, usize::from(has < had));
        add(&self.saved_bytes, had.saturating_sub(has));
        add(&self.promoted, usize::from(is_promoted));
        add(&self.promoted_bytes, has.saturating_sub(had));
    }

    /// Counts a pass that has come to its end.
    pub(crate) fn passed(&self) {
        self.passes.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts what got another dictionary.
    pub(crate) fn reencoded(&self, records: usize) {
        self.reencoded.fetch_add(records as u64, Ordering::Relaxed);
    }

    pub(crate) fn set_table_bytes(&self, bytes: usize) {
        self.table_bytes.store(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> RecompressionStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RecompressionStats {
            tried: load(&self.tried),
            tried_bytes: load(&self.tried_bytes),
            recompressed: load(&self.recompressed),
            saved_bytes: load(&self.saved_bytes),
            promoted: load(&self.promoted),
            promoted_bytes: load(&self.promoted_bytes),
            passes: load(&self.passes),
            reencoded: load(&self.reencoded),
            table_bytes: load(&self.table_bytes),
        }
    }
}
