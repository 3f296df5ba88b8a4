//! The allocator of the whole program: jemalloc, whose size classes the store's accounting follows.

use snugly_server::AllocatorStats;
use tikv_jemalloc_ctl::{epoch, stats};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What jemalloc counts at this moment; zeros if it was built without statistics.
pub(crate) fn allocator_stats() -> AllocatorStats {
    let read = || -> Result<AllocatorStats, tikv_jemalloc_ctl::Error> {
        epoch::advance()?;
        Ok(AllocatorStats {
            allocated: stats::allocated::read()? as u64,
            active: stats::active::read()? as u64,
            resident: stats::resident::read()? as u64,
        })
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::alloc::{GlobalAlloc, Layout};

    #[test]
    fn the_stores_sizes_are_those_of_the_allocator() {
        for size in (1..20_000).chain((5..24).map(|power| 3 << power)) {
            let layout = Layout::from_size_align(size, 8).unwrap();
            // SAFETY: the layout has a size above zero, and what was allocated with it is freed with it.
            let real = unsafe {
                let pointer = super::ALLOCATOR.alloc(layout);
                let real = tikv_jemallocator::usable_size(pointer);
                super::ALLOCATOR.dealloc(pointer, layout);
                real
            };
            assert_eq!(snugly_store::allocation_size(size), real, "for {size} bytes");
        }
    }
}
