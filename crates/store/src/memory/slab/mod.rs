//! The place where entries live: a slab allocator whose pages are as full as whole slots make them.
//!
//! - [`shape`]: which sizes of slots there are, and how many of each fit a page
//! - [`page`]: one page, cut into slots of one size
//! - [`class`]: the pages of one size, ordered by how full they are
//! - [`poison`]: says to AddressSanitizer which slots are free
//! - [`pool`]: pages that no class uses, and the system's memory they come from
//!
//! A general allocator cannot know that a cache's entries may be moved. This one does: its sizes are so close that
//! little of a slot is left unused, it fills the fullest pages first, and it names the sparse ones
//! ([`Slab::mark_sparse`]), which whoever owns the entries empties ([`Slab::relocate`]) so that their memory goes back
//! to the system. Each size has a lock of its own, held for some nanoseconds.
//!
//! Requests too large for a slot go to the global allocator. The module knows sizes and addresses; it does not know what
//! an entry is, nor who holds it.

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

/// What entries take in memory, all stores of the process together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlabStats {
    /// Bytes of all pages, those included that are kept for the next to need one. What is resident is less only by
    /// the parts of pages that were never used.
    pub page_bytes: u64,
    /// Bytes of all slots in use.
    pub slot_bytes: u64,
}

/// Address space is reserved in regions of so many bytes, aligned to it; memory follows page by page as it is touched.
const REGION_BYTES: usize = 16 << 20;
/// Bytes of a page's header. Those of a region's pages are at its start, in the place of the first page.
const HEADER_BYTES: usize = 64;

/// Fewer bytes of pages than these are not worth emptying; to fuzzing, any is.
const TOLERATED_BYTES: usize = if cfg!(fuzzing) { 0 } else { 2 << 20 };

/// The slab of all entries of the process.
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

    /// The bytes that a request of `size` bytes takes; `None` if it is too large for a slot.
    pub(crate) fn slot_size(size: usize) -> Option<usize> {
        Some(Shape::number_for(size)?.1.slot_bytes())
    }

    /// At least `size` bytes, aligned to 8, whose content is undefined. As for any allocation, the process ends if
    /// the system has no memory.
    pub(crate) fn allocate(&self, size: usize) -> NonNull<u8> {
        let slot = match Shape::number_for(size) {
            Some((number, shape)) => self.take_slot(number, shape, size),
            // SAFETY: a size beyond all slots is not zero.
            None => NonNull::new(unsafe { alloc(layout(size)) }),
        };
        slot.unwrap_or_else(|| handle_alloc_error(layout(size)))
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

    /// Marks the sparsest pages of each size, as many as could be empty if all slots stood closely, and forgets earlier
    /// marks; unless those are less than one of `tolerated` pages. Says whether it did.
    pub(crate) fn mark_sparse(&self, tolerated: usize) -> bool {
        let (page_bytes, spare_bytes) = self.classes().fold((0, 0), |(pages, spare), (shape, class)| {
            let class = class.lock();
            (
                pages + class.pages() * shape.page_bytes(),
                spare + class.spare_pages(shape) * shape.page_bytes(),
            )
        });
        if spare_bytes < TOLERATED_BYTES.max(page_bytes / tolerated) {
            return false;
        }
        self.classes().for_each(|(shape, class)| class.lock().mark_sparse(shape));
        true
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

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, ALIGNMENT).expect("no caller asks for half the address space")
}

#[cfg(test)]
mod tests;
