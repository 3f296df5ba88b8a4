//! Pages that no class uses, and the system's memory that they come from.
//!
//! Address space is reserved in regions and never given back, so that it is as large as all pages ever were at once.
//! Memory is: beyond a few pages kept for the next to need one, an empty page costs nothing but its addresses, and what was
//! kept in vain for a while goes back, too.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{HEADER_BYTES, REGION_BYTES};

/// Bytes of empty pages of each length that keep their memory: one of the longest.
pub(super) const KEPT_BYTES: usize = 256 << 10;

/// Idle pages of one length.
pub(super) struct Pool {
    idle: Mutex<Idle>,
    taken_bytes: AtomicU64,
}

struct Idle {
    /// Pages with memory.
    kept: Vec<NonNull<u8>>,
    /// Pages whose memory went back to the system.
    returned: Vec<NonNull<u8>>,
    /// Least number of kept pages since the last [`Pool::trim`]: these have not been used.
    spare: usize,
    kept_bytes: usize,
}

// SAFETY: the pool owns idle pages; nothing else points into them.
unsafe impl Send for Idle {}

impl Pool {
    pub(super) const fn new() -> Pool {
        let idle = Idle { kept: Vec::new(), returned: Vec::new(), spare: 0, kept_bytes: 0 };
        Pool { idle: Mutex::new(idle), taken_bytes: AtomicU64::new(0) }
    }

    /// A page of this length in a region, with any content; `None` if the system has no memory.
    pub(super) fn take(&self, page_bytes: usize) -> Option<NonNull<u8>> {
        let page = self.idle.lock().take(page_bytes)?;
        self.taken_bytes.fetch_add(page_bytes as u64, Ordering::Relaxed);
        Some(page)
    }

    /// Takes a page back that [`Pool::take`] gave.
    pub(super) fn put(&self, page: NonNull<u8>, page_bytes: usize) {
        {
            let mut idle = self.idle.lock();
            if idle.kept_bytes + page_bytes <= KEPT_BYTES {
                idle.kept_bytes += page_bytes;
                idle.kept.push(page);
                return;
            }
        }
        system::give_back(page, page_bytes);
        self.idle.lock().returned.push(page);
    }

    /// Frees the memory of kept pages that have not been used since the last call.
    pub(super) fn trim(&self, page_bytes: usize) {
        let mut idle = self.idle.lock();
        let spare = idle.spare;
        // Pages are taken from the end.
        let pages: Vec<_> = idle.kept.drain(..spare).collect();
        idle.spare = idle.kept.len();
        idle.kept_bytes -= spare * page_bytes;
        drop(idle);
        pages.iter().for_each(|page| system::give_back(*page, page_bytes));
        self.idle.lock().returned.extend(pages);
    }

    /// Bytes of idle pages that keep their memory.
    pub(super) fn kept_bytes(&self) -> usize {
        self.idle.lock().kept_bytes
    }

    /// Bytes of pages that were taken, ever.
    pub(super) fn taken_bytes(&self) -> u64 {
        self.taken_bytes.load(Ordering::Relaxed)
    }
}

impl Idle {
    fn take(&mut self, page_bytes: usize) -> Option<NonNull<u8>> {
        if let Some(page) = self.kept.pop() {
            self.kept_bytes -= page_bytes;
            self.spare = self.spare.min(self.kept.len());
            return Some(page);
        }
        if self.returned.is_empty() {
            let region = system::reserve(REGION_BYTES)?;
            // Headers are in the place of the first pages; the others are given out from the first to the last.
            let pages = REGION_BYTES / page_bytes;
            let headers = (pages * HEADER_BYTES).div_ceil(page_bytes);
            // SAFETY: each offset is inside the region.
            let pages = (headers..pages).rev().map(|n| unsafe { region.add(n * page_bytes) });
            self.returned.extend(pages);
        }
        self.returned.pop()
    }
}

/// Memory by `mmap`.
#[cfg(unix)]
mod system {
    use std::ptr::{self, NonNull};

    /// Address space of `size` bytes, aligned to that.
    pub(super) fn reserve(size: usize) -> Option<NonNull<u8>> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the system's choice touches nothing that exists.
        let start = unsafe { libc::mmap(ptr::null_mut(), 2 * size, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start = start.cast::<u8>();
        let before = start.align_offset(size);
        // SAFETY: what is cut off at both ends is ours and not in use; `before` is less than `size`, and both
        // are multiples of the system's page size.
        unsafe {
            if before > 0 {
                libc::munmap(start.cast(), before);
            }
            libc::munmap(start.add(before + size).cast(), size - before);
            let region = start.add(before);
            // A huge page would make memory resident that nothing has touched.
            #[cfg(target_os = "linux")]
            libc::madvise(region.cast(), size, libc::MADV_NOHUGEPAGE);
            NonNull::new(region)
        }
    }

    /// Frees the memory of an idle page; its addresses stay reserved.
    pub(super) fn give_back(page: NonNull<u8>, size: usize) {
        // SAFETY: the caller owns the page, and its content does not matter any more. Should it fail, the page keeps
        // its memory.
        unsafe { libc::madvise(page.as_ptr().cast(), size, libc::MADV_DONTNEED) };
    }
}

/// Memory from the global allocator, which keeps it.
#[cfg(not(unix))]
mod system {
    use std::alloc::{Layout, alloc};
    use std::ptr::NonNull;

    pub(super) fn reserve(size: usize) -> Option<NonNull<u8>> {
        let layout = Layout::from_size_align(size, size).ok()?;
        // SAFETY: a region is not empty.
        NonNull::new(unsafe { alloc(layout) })
    }

    pub(super) fn give_back(_page: NonNull<u8>, _size: usize) {}
}
