//! A slab allocator for entries, whose pages are as full as whole slots make them.
//!
//! - [`shape`]: sizes of slots, and the number of each that fit a page
//! - [`page`]: one page, cut into slots of one size
//! - [`class`]: the pages of one size, ordered by fill
//! - [`poison`]: AddressSanitizer annotations of free slots
//! - [`pool`]: unused pages, and the system memory they come from
//!
//! A general allocator cannot know that a cache's entries may be moved. This one does: its sizes are so close
//! that little of a slot is left unused, it fills the fullest pages first, and it marks the sparse ones
//! ([`Slab::mark_sparse`]), which the owner of the entries empties ([`Slab::relocate`]) so that their memory
//! goes back to the system. Each size has a lock of its own, held for some nanoseconds.
//!
//! Requests too large for a slot go to the global allocator. The module knows sizes and addresses; it must
//! not know entries, nor their holders.

mod class;
mod page;
mod poison;
mod pool;
mod shape;

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use parking_lot::Mutex;

use class::Class;
use page::Page;
use pool::Pool;
use shape::{ALIGNMENT, CLASSES, PAGE_KINDS, Shape};

/// Memory of entries, for all stores of the process together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlabStats {
    /// Bytes of all pages, those included that are kept for the next to need one. What is resident is less only by
    /// the parts of pages that were never used.
    pub page_bytes: u64,
    /// Bytes of all slots in use.
    pub slot_bytes: u64,
}

/// Length of a region of reserved address space, aligned to it, in bytes; memory follows page by page as it
/// is touched.
const REGION_BYTES: usize = 16 << 20;
/// Bytes of a page's header. Those of a region's pages are at its start, in the place of the first pages.
const HEADER_BYTES: usize = 32;

/// Tolerated loss in sparse pages before they are emptied: this many bytes, and this fraction of the pages.
pub(crate) struct Tolerance {
    pub(crate) bytes: usize,
    pub(crate) share: usize,
}

/// Slab of all entries of the process.
pub(crate) static SLAB: Slab = Slab::new();

pub(crate) struct Slab {
    classes: [Mutex<Class>; CLASSES],
    pools: [Pool; PAGE_KINDS],
}

impl Slab {
    pub(crate) const fn new() -> Slab {
        Slab {
            classes: [const { Mutex::new(Class::new()) }; CLASSES],
            pools: [const { Pool::new() }; PAGE_KINDS],
        }
    }

    /// Returns the bytes that a request of `size` bytes takes; `None` if it is too large for a slot.
    pub(crate) fn slot_size(size: usize) -> Option<usize> {
        Some(Shape::number_for(size)?.1.slot_bytes())
    }

    /// Allocates at least `size` bytes, aligned to 8, with undefined content. As for any allocation, the
    /// process ends if the system has no memory.
    pub(crate) fn allocate(&self, size: usize) -> NonNull<u8> {
        self.try_allocate(size).unwrap_or_else(|| handle_alloc_error(layout(size)))
    }

    /// Like [`Slab::allocate`]; `None` if the system has no memory.
    pub(crate) fn try_allocate(&self, size: usize) -> Option<NonNull<u8>> {
        match Shape::number_for(size) {
            Some((number, shape)) => self.take_slot(number, shape, size),
            // SAFETY: a size beyond all slots is not zero.
            None => NonNull::new(unsafe { alloc(layout(size)) }),
        }
    }

    fn take_slot(&self, number: usize, shape: &Shape, size: usize) -> Option<NonNull<u8>> {
        let mut class = self.classes[number].lock();
        if let Some(slot) = class.allocate(shape, size) {
            return Some(slot);
        }
        let memory = self.pools[shape.kind()].take(shape.page_bytes())?;
        // SAFETY: the pool gives a page of the kind, to one owner at a time.
        class.add(shape, unsafe { Page::new(memory, shape) });
        class.allocate(shape, size)
    }

    /// Frees what [`Slab::allocate`] gave, from any thread.
    ///
    /// # Safety
    /// `slot` came from this slab for the same `size`, and nobody uses it any more.
    pub(crate) unsafe fn free(&self, slot: NonNull<u8>, size: usize) {
        let Some((number, shape)) = Shape::number_for(size) else {
            // SAFETY: the caller's promise; so large a request went to the global allocator.
            return unsafe { dealloc(slot.as_ptr(), layout(size)) };
        };
        // SAFETY: the caller's promise.
        let emptied = unsafe { self.classes[number].lock().free(shape, slot) };
        if let Some(page) = emptied {
            self.pools[shape.kind()].put(page, shape.page_bytes());
        }
    }

    /// A slot of the same size in a fuller page, if `slot` is in one that [`Slab::mark_sparse`] has marked. It never
    /// takes a new page.
    ///
    /// # Safety
    /// `slot` came from this slab for the same `size`, and nobody frees it meanwhile.
    pub(crate) unsafe fn relocate(&self, slot: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let (number, shape) = Shape::number_for(size)?;
        // SAFETY: the slot is in use, so its page is; the mark can be read without the lock.
        if !unsafe { Page::of(slot, shape) }.is_sparse() {
            return None;
        }
        self.classes[number].lock().allocate_outside_sparse(shape, size)
    }

    /// Marks the sparsest pages of each size, as many as could be empty if all slots stood closely, and
    /// clears earlier marks; unless the loss is tolerated. Returns whether it did.
    pub(crate) fn mark_sparse(&self, tolerance: &Tolerance) -> bool {
        let (page_bytes, spare_bytes) = self.classes().fold((0, 0), |(pages, spare), (shape, class)| {
            let class = class.lock();
            (
                pages + class.pages() * shape.page_bytes(),
                spare + class.spare_pages(shape) * shape.page_bytes(),
            )
        });
        if spare_bytes < tolerance.bytes.max(page_bytes / tolerance.share) {
            return false;
        }
        self.classes().for_each(|(shape, class)| class.lock().mark_sparse(shape));
        true
    }

    /// Frees the memory of empty pages that have not been used since the last call.
    pub(crate) fn trim(&self) {
        for (kind, pool) in self.pools.iter().enumerate() {
            pool.trim(shape::page_bytes(kind));
        }
    }

    /// Bytes of pages that were ever taken into use: memory can have become fragmented only since this has grown.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.pools.iter().map(Pool::taken_bytes).sum()
    }

    pub(crate) fn stats(&self) -> SlabStats {
        let kept = self.pools.iter().map(Pool::kept_bytes).sum::<usize>();
        let stats = SlabStats { page_bytes: kept as u64, slot_bytes: 0 };
        self.classes().fold(stats, |stats, (shape, class)| {
            let class = class.lock();
            SlabStats {
                page_bytes: stats.page_bytes + (class.pages() * shape.page_bytes()) as u64,
                slot_bytes: stats.slot_bytes + (class.used_slots() * shape.slot_bytes()) as u64,
            }
        })
    }

    fn classes(&self) -> impl Iterator<Item = (&'static Shape, &Mutex<Class>)> {
        Shape::all().iter().zip(&self.classes)
    }
}

/// Bytes that an entry of `size` bytes (16 of header, 8 if it expires or is long, key, record) takes in memory.
///
/// ```
/// assert_eq!(snugly_store::entry_allocation_size(100), 104);
/// assert_eq!(snugly_store::entry_allocation_size(900), 904);
/// ```
pub fn entry_allocation_size(size: usize) -> usize {
    Slab::slot_size(size).unwrap_or_else(|| allocation_size(size))
}

/// Returns the bytes that a request of `size` bytes takes from jemalloc, which has tables and the longest
/// entries: its size classes are 8, every 16 up to 128, and then four to each doubling (jemalloc manual,
/// "Size classes"). Other allocators are close to it.
///
/// ```
/// assert_eq!(snugly_store::allocation_size(100), 112);
/// assert_eq!(snugly_store::allocation_size(900), 1024);
/// ```
pub fn allocation_size(size: usize) -> usize {
    if size <= 8 {
        return if size == 0 { 0 } else { 8 };
    }
    let spacing = if size <= 128 { 16 } else { 1 << ((size - 1).ilog2() - 2) };
    size.next_multiple_of(spacing)
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, ALIGNMENT).expect("no caller asks for half the address space")
}

#[cfg(test)]
mod tests;
