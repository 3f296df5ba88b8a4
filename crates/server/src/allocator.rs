//! The allocator of the process: it is the program's, and the server only asks it.

/// The allocator's statistics of the whole process, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllocatorStats {
    /// Allocated by the program.
    pub allocated: u64,
    /// In pages that hold allocations.
    pub active: u64,
    /// In physical memory.
    pub resident: u64,
}

/// The allocator of the process, as the server asks it.
#[derive(Clone, Copy)]
pub struct Allocator {
    /// The allocator's name, as INFO shows it.
    pub name: &'static str,
    /// The current statistics.
    pub stats: fn() -> AllocatorStats,
    /// Its own report on itself, for people.
    pub report: fn() -> String,
    /// Function that returns unused pages to the system.
    pub purge: fn(),
}
