//! All pages of one size of slots, in lists by how full they are.
//!
//! A new slot comes from the fullest page that has one, so that sparse pages get a chance to become empty. Pages
//! marked as sparse come last; full pages are in no list.

use std::ptr::NonNull;

use super::page::{Page, State};
use super::shape::Shape;

/// Lists of pages that are neither full nor marked, each for an equal part of how full a page can be.
const BINS: usize = 16;
/// Number of the list of marked pages; the bins follow.
const SPARSE: u8 = 0;
const LISTS: usize = 1 + BINS;

/// The pages of one size. Page states are reached only through a class, so that borrowing it borrows them.
pub(super) struct Class {
    lists: [Option<Page>; LISTS],
    /// Bitmap in which bit `n` says that list `n` has pages.
    filled: u32,
    pages: usize,
    used: usize,
}

// SAFETY: a class owns its pages; what can be reached past it are their marks, which are atomic.
unsafe impl Send for Class {}

impl Class {
    pub(super) const fn new() -> Class {
        Class { lists: [None; LISTS], filled: 0, pages: 0, used: 0 }
    }

    pub(super) fn pages(&self) -> usize {
        self.pages
    }

    pub(super) fn used_slots(&self) -> usize {
        self.used
    }

    /// Returns the number of pages that would be empty if all slots in use stood closely.
    pub(super) fn spare_pages(&self, shape: &Shape) -> usize {
        self.pages - self.used.div_ceil(shape.slots())
    }

    /// A slot for `size` bytes from the fullest page that has one.
    pub(super) fn allocate(&mut self, shape: &Shape, size: usize) -> Option<NonNull<u8>> {
        let page = self.lists[self.filled.checked_ilog2()? as usize]?;
        // SAFETY: a page in a list is one of this class, and not full.
        let slot = unsafe { page.take_slot(shape, size) };
        self.used += 1;
        self.settle(shape, page);
        Some(slot)
    }

    /// Like [`Class::allocate`], but never from a page marked as sparse.
    pub(super) fn allocate_outside_sparse(&mut self, shape: &Shape, size: usize) -> Option<NonNull<u8>> {
        let only_sparse = self.filled >> (SPARSE + 1) == 0;
        if only_sparse { None } else { self.allocate(shape, size) }
    }

    /// Takes in an empty page.
    pub(super) fn add(&mut self, shape: &Shape, page: Page) {
        self.pages += 1;
        self.settle(shape, page);
    }

    /// Frees a slot; returns the page's memory if this was its last, which is then no longer the class's.
    ///
    /// # Safety
    /// `slot` came from this class, which is of this shape, and nobody uses it any more.
    pub(super) unsafe fn free(&mut self, shape: &Shape, slot: NonNull<u8>) -> Option<NonNull<u8>> {
        // SAFETY: the caller's promise.
        let page = unsafe { Page::of(slot, shape) };
        // SAFETY: the caller's promise.
        unsafe { page.put_slot(shape, slot) };
        self.used -= 1;
        if self.state(page).used > 0 {
            self.settle(shape, page);
            return None;
        }
        self.enlist(page, None);
        self.pages -= 1;
        Some(page.memory(shape))
    }

    /// Marks as many of the sparsest pages as could be empty, so few that what is in them fits the others. Earlier
    /// marks are forgotten.
    pub(super) fn mark_sparse(&mut self, shape: &Shape) {
        while let Some(page) = self.lists[SPARSE as usize] {
            page.set_sparse(false);
            self.settle(shape, page);
        }
        for _ in 0..self.spare_pages(shape) {
            let bins = self.filled >> (SPARSE + 1) << (SPARSE + 1);
            let Some(page) = self.lists.get(bins.trailing_zeros() as usize).copied().flatten() else {
                return;
            };
            page.set_sparse(true);
            self.settle(shape, page);
        }
    }

    /// Puts a page into the list where it belongs after a change.
    fn settle(&mut self, shape: &Shape, page: Page) {
        let used = usize::from(self.state(page).used);
        let list = if used == shape.slots() {
            // An empty page is not sparse any more.
            page.set_sparse(false);
            None
        } else if page.is_sparse() {
            Some(SPARSE)
        } else {
            Some(SPARSE + 1 + (used * BINS / shape.slots()) as u8)
        };
        if list != self.state(page).list {
            self.enlist(page, list);
        }
    }

    /// Takes a page out of the list it is in, if it is in one, and puts it into another.
    fn enlist(&mut self, page: Page, list: Option<u8>) {
        let State { next, previous, list: old, .. } = *self.state(page);
        if let Some(old) = old {
            match previous {
                Some(previous) => self.state(previous).next = next,
                None => self.set_first(old, next),
            }
            if let Some(next) = next {
                self.state(next).previous = previous;
            }
        }
        let first = list.and_then(|list| self.lists[list as usize]);
        if let Some(first) = first {
            self.state(first).previous = Some(page);
        }
        let state = self.state(page);
        (state.previous, state.next, state.list) = (None, first, list);
        if let Some(list) = list {
            self.set_first(list, Some(page));
        }
    }

    fn set_first(&mut self, list: u8, page: Option<Page>) {
        self.lists[list as usize] = page;
        let bit = 1 << list;
        self.filled = if page.is_some() { self.filled | bit } else { self.filled & !bit };
    }

    /// Returns the state of one of the class's pages.
    fn state(&mut self, page: Page) -> &mut State {
        // SAFETY: the class is borrowed for as long, and it is the only way to its pages' states.
        unsafe { page.state() }
    }
}
