//! One page: slots of one size.
//!
//! Slots are handed out from the start of the page, so that memory behind the last one used was never touched, and
//! freed ones again before new ones. Headers stand side by side at the start of the region that the pages are in: at the
//! start of each page they would all compete for the same few lines of a cache. A slot's address tells its region and
//! the number of its page there.

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use super::poison;
use super::shape::{ALIGNMENT, LARGEST_PAGE, Shape};
use super::{HEADER_BYTES, REGION_BYTES};

/// A page that a class uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Page(NonNull<Header>);

#[repr(C, align(32))]
struct Header {
    sparse: AtomicBool,
    state: UnsafeCell<State>,
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES);

/// State of a page that the lock of its class protects.
pub(super) struct State {
    /// Neighbours in the class's list of pages.
    pub(super) next: Option<Page>,
    pub(super) previous: Option<Page>,
    /// Slots in use.
    pub(super) used: u16,
    /// Slots that were ever in use.
    touched: u16,
    /// Slot freed last, if it is still free.
    freed: Place,
    /// Number of the list that the page is in, if it is in one.
    pub(super) list: Option<u8>,
}

/// Place of a free slot: its offset in the page by [`ALIGNMENT`], or [`NOWHERE`].
type Place = u16;
const NOWHERE: Place = Place::MAX;
const _: () = assert!(LARGEST_PAGE / ALIGNMENT <= NOWHERE as usize);

/// Contents of a free slot: the place of the next one.
struct FreeSlot {
    next: Place,
}

const _: () = assert!(align_of::<FreeSlot>() <= ALIGNMENT);

impl Page {
    /// Makes an empty page.
    ///
    /// # Safety
    /// `memory` is a page of this shape in a region (see [`super::pool`]), and the caller's alone.
    pub(super) unsafe fn new(memory: NonNull<u8>, shape: &Shape) -> Page {
        let state = State { next: None, previous: None, used: 0, touched: 0, freed: NOWHERE, list: None };
        // SAFETY: the caller's promise; the page has a header's place to itself.
        unsafe {
            let page = Page::of(memory, shape);
            page.0.write(Header { sparse: AtomicBool::new(false), state: UnsafeCell::new(state) });
            page
        }
    }

    /// Returns the page of a slot.
    ///
    /// # Safety
    /// `slot` is in a page of this shape in a region.
    pub(super) unsafe fn of(slot: NonNull<u8>, shape: &Shape) -> Page {
        let header = slot.as_ptr().map_addr(|address| {
            let number = address % REGION_BYTES / shape.page_bytes();
            address - address % REGION_BYTES + number * HEADER_BYTES
        });
        // SAFETY: regions are aligned to their length, so this is inside the slot's, which is not at the null page.
        Page(unsafe { NonNull::new_unchecked(header.cast()) })
    }

    /// Returns the start of the page's slots.
    pub(super) fn memory(self, shape: &Shape) -> NonNull<u8> {
        let start = self.0.as_ptr().cast::<u8>().map_addr(|header| {
            let (region, offset) = (header - header % REGION_BYTES, header % REGION_BYTES);
            region + offset / HEADER_BYTES * shape.page_bytes()
        });
        // SAFETY: it is in the header's region, which is not at the null page.
        unsafe { NonNull::new_unchecked(start) }
    }

    /// Returns whether the page was found to be sparse. Needs no lock.
    pub(super) fn is_sparse(self) -> bool {
        self.header().sparse.load(Ordering::Relaxed)
    }

    pub(super) fn set_sparse(self, sparse: bool) {
        self.header().sparse.store(sparse, Ordering::Relaxed);
    }

    /// # Safety
    /// The caller holds the lock of the page's class for 'a, and no other reference to the state.
    pub(super) unsafe fn state<'a>(self) -> &'a mut State {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.header().state.get() }
    }

    /// Takes a slot for `size` bytes.
    ///
    /// # Safety
    /// As for [`Page::state`]; the page is of this shape and not full.
    pub(super) unsafe fn take_slot(self, shape: &Shape, size: usize) -> NonNull<u8> {
        // SAFETY: the caller's promise.
        let state = unsafe { self.state() };
        let slot = if state.freed == NOWHERE {
            let offset = usize::from(state.touched) * shape.slot_bytes();
            state.touched += 1;
            // SAFETY: the page is not full and no slot that was touched is free: there is one behind those.
            unsafe { self.memory(shape).add(offset) }
        } else {
            // SAFETY: `put_slot` noted the place of a slot of this page,
            let slot = unsafe { self.memory(shape).add(usize::from(state.freed) * ALIGNMENT) };
            // SAFETY: and wrote to it; nobody uses a free slot.
            state.freed = unsafe { slot.cast::<FreeSlot>().read() }.next;
            slot
        };
        state.used += 1;
        poison::allow(slot, size);
        slot
    }

    /// Puts a slot back.
    ///
    /// # Safety
    /// As for [`Page::state`]; the slot was taken from this page, and nobody uses it any more.
    pub(super) unsafe fn put_slot(self, shape: &Shape, slot: NonNull<u8>) {
        // SAFETY: the caller's promise.
        let state = unsafe { self.state() };
        let free = slot.cast::<FreeSlot>();
        poison::allow(slot, size_of::<FreeSlot>());
        // SAFETY: a slot is aligned for it and large enough; the rest of the slot is behind it.
        let rest = unsafe {
            free.write(FreeSlot { next: state.freed });
            free.add(1).cast()
        };
        poison::forbid(rest, shape.slot_bytes() - size_of::<FreeSlot>());
        // The slot is in the page, whose length a place covers.
        state.freed = ((slot.addr().get() - self.memory(shape).addr().get()) / ALIGNMENT) as Place;
        state.used -= 1;
    }

    fn header<'a>(self) -> &'a Header {
        // SAFETY: `new` wrote a header, regions stay mapped, and nothing in a header changes but through the atomic
        // and the cell.
        unsafe { self.0.as_ref() }
    }
}
