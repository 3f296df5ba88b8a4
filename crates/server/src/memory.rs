//! What memory is used for: the figures of INFO and of MEMORY.
//!
//! Entries live in slabs of their own, everything else in the allocator; a figure of the process is the sum of both.

use snugly_store::{SlabStats, Store};

use crate::server::AllocatorStats;

/// What was in use at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) allocator: AllocatorStats,
    pub(crate) slabs: SlabStats,
    /// Keys, values, and what is needed to find them.
    pub(crate) dataset: u64,
}

impl Memory {
    pub(crate) fn now(allocator: AllocatorStats, store: &Store) -> Memory {
        Memory { allocator, slabs: Store::slab_stats(), dataset: store.used_memory() }
    }

    /// Given to the program.
    pub(crate) fn used(&self) -> u64 {
        self.allocator.allocated + self.slabs.slot_bytes
    }

    /// In physical memory.
    pub(crate) fn resident(&self) -> u64 {
        self.allocator.resident + self.slabs.page_bytes
    }

    /// What is used for anything but keys and values.
    pub(crate) fn overhead(&self) -> u64 {
        self.used().saturating_sub(self.dataset)
    }
}

/// One amount for each of another; 0 if there is nothing of the other.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
