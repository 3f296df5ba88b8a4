//! The allocator of the whole program: jemalloc, whose size classes the store's accounting follows.

use std::ptr;

use snugly_server::{Allocator, AllocatorStats};
use tikv_jemalloc_ctl::{epoch, stats, stats_print};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// jemalloc, as the server asks it.
pub(crate) const JEMALLOC: Allocator =
    Allocator { name: "jemalloc", stats: allocator_stats, report: allocator_report, purge: purge_allocator };

/// Current statistics of jemalloc; zeros if it was built without statistics.
fn allocator_stats() -> AllocatorStats {
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

/// jemalloc's report on itself.
fn allocator_report() -> String {
    let mut report = Vec::new();
    match stats_print::stats_print(&mut report, stats_print::Options::default()) {
        Ok(()) => String::from_utf8_lossy(&report).into_owned(),
        Err(error) => format!("jemalloc gives no report: {error}"),
    }
}

/// Gives the unused pages of all arenas back to the system.
pub(crate) fn purge_allocator() {
    /// `MALLCTL_ARENAS_ALL` is 4096.
    const PURGE: &std::ffi::CStr = c"arena.4096.purge";
    // SAFETY: the name ends with a zero, and this control neither reads nor writes anything of ours.
    let error = unsafe {
        tikv_jemalloc_sys::mallctl(PURGE.as_ptr(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), 0)
    };
    if error != 0 {
        tracing::warn!(error, "jemalloc does not give pages back");
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::{GlobalAlloc, Layout};

    #[test]
    fn the_allocator_counts_reports_and_purges() {
        let allocator = super::JEMALLOC;
        assert!((allocator.stats)().allocated > 0);
        assert!((allocator.report)().contains("jemalloc"));
        (allocator.purge)();
    }

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
