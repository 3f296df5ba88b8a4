//! Memory by purpose: the stats of INFO and of MEMORY.
//!
//! Entries live in slabs of their own, everything else in the allocator; a stat of the process is the sum of both.

use snugly_store::{SlabStats, Store};

use crate::allocator::AllocatorStats;

/// Memory in use at one moment, in bytes.
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

    /// Memory for anything but keys and values.
    pub(crate) fn overhead(&self) -> u64 {
        self.used().saturating_sub(self.dataset)
    }

    /// Memory in use beyond that at the start.
    pub(crate) fn grown_since(&self, at_start: u64) -> u64 {
        self.used().saturating_sub(at_start)
    }

    /// Share of keys and values in the memory in use beyond that at the start.
    pub(crate) fn dataset_percentage(&self, at_start: u64) -> f64 {
        100.0 * ratio(self.dataset, self.grown_since(at_start)).min(1.0)
    }

    /// The most that was in use, if it was so much at any earlier moment.
    pub(crate) fn peak(&self, earlier: u64) -> u64 {
        earlier.max(self.used())
    }

    /// Share of the peak that is still in use.
    pub(crate) fn peak_percentage(&self, earlier: u64) -> f64 {
        100.0 * ratio(self.used(), self.peak(earlier))
    }

    /// Fragmentation of the process: physical memory for what is allocated to the program.
    pub(crate) fn fragmentation(&self) -> Cost {
        Cost { held: self.resident(), needed: self.used() }
    }

    /// Fragmentation of the allocator: pages for what it has allocated to the program.
    pub(crate) fn allocator_fragmentation(&self) -> Cost {
        Cost { held: self.allocator.active, needed: self.allocator.allocated }
    }

    /// Overhead of the allocator: physical memory for its pages in use.
    pub(crate) fn allocator_overhead(&self) -> Cost {
        Cost { held: self.allocator.resident, needed: self.allocator.active }
    }
}

/// Bytes held, and the bytes needed.
pub(crate) struct Cost {
    held: u64,
    needed: u64,
}

impl Cost {
    /// Bytes held for each that is needed; 0 if none is.
    pub(crate) fn ratio(&self) -> f64 {
        ratio(self.held, self.needed)
    }

    /// Bytes held that are not needed; negative if some that are needed are not held, but swapped out.
    pub(crate) fn bytes(&self) -> i64 {
        self.held as i64 - self.needed as i64
    }
}

/// One amount for each of another; 0 if there is nothing of the other.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
