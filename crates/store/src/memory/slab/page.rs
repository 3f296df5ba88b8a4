//! One page: a header, and slots of one size behind it.
//!
//! Slots are handed out from the start of the page, so that memory behind the last one used was never touched, and
//! freed ones again before new ones. A page is aligned to its length, so a slot's address tells where its page is.

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use super::poison;
use super::shape::{ALIGNMENT, HEADER_BYTES, Shape};

/// A page that a class uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Page(NonNull<Header>);

#[repr(C, align(64))]
struct Header {
    sparse: AtomicBool,
    state: UnsafeCell<State>,
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES);

/// What belongs to whoever holds the lock of the page's class.
pub(super) struct State {
    /// The neighbours in the class's list of pages.
    pub(super) next: Option<Page>,
    pub(super) previous: Option<Page>,
    /// The list that the page is in, if it is in one.
    pub(super) list: Option<u8>,
    /// Slots in use.
    pub(super) used: u32,
    /// Slots that were ever in use.
    touched: u32,
    /// The slot freed last, if it is still free.
    freed: Option<NonNull<FreeSlot>>,
}

/// What stands in a free slot.
struct FreeSlot {
    next: Option<NonNull<FreeSlot>>,
}

const _: () = assert!(align_of::<FreeSlot>() <= ALIGNMENT);

impl Page {
    /// Makes an empty page.
    ///
    /// # Safety
    /// `memory` is a page's length, aligned to it, and the caller's alone. It stays mapped for ever.
    pub(super) unsafe fn new(memory: NonNull<u8>) -> Page {
        let header = memory.cast::<Header>();
        let state = State { next: None, previous: None, list: None, used: 0, touched: 0, freed: None };
        // SAFETY: the caller's memory starts with room for a header and is aligned for it.
        unsafe { header.write(Header { sparse: AtomicBool::new(false), state: UnsafeCell::new(state) }) };
        Page(header)
    }

    /// The page of a slot.
    ///
    /// # Safety
    /// `slot` is in use, in a page of this shape.
    pub(super) unsafe fn of(slot: NonNull<u8>, shape: &Shape) -> Page {
        let start = slot.as_ptr().map_addr(|address| address & !(shape.page_bytes() - 1));
        // SAFETY: pages are aligned to their length, so this is the start of the one that the slot is in, which is
        // not the null page.
        Page(unsafe { NonNull::new_unchecked(start.cast()) })
    }

    pub(super) fn memory(self) -> NonNull<u8> {
        self.0.cast()
    }

    /// Whether the page was found to be sparse. Needs no lock.
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
        let slot = match state.freed {
            Some(slot) => {
                // SAFETY: `put_slot` wrote it, and nobody uses a free slot.
                state.freed = unsafe { slot.read() }.next;
                slot.cast()
            }
            None => {
                let offset = HEADER_BYTES + state.touched as usize * shape.slot_bytes();
                state.touched += 1;
                // SAFETY: the page is not full and no slot that was touched is free: there is one behind those.
                unsafe { self.memory().add(offset) }
            }
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
        // SAFETY: a slot is aligned for it and large enough; the rest of the slot is behind it.
        let rest = unsafe {
            free.write(FreeSlot { next: state.freed });
            free.add(1).cast()
        };
        poison::forbid(rest, shape.slot_bytes() - size_of::<FreeSlot>());
        state.freed = Some(free);
        state.used -= 1;
    }

    fn header<'a>(self) -> &'a Header {
        // SAFETY: `new` wrote a header, a page stays mapped, and nothing in a header changes but through the atomic
        // and the cell.
        unsafe { self.0.as_ref() }
    }
}
