//! An entry's handle, in the table of a shard's database.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::{Entry, EntryRef, Header};

/// One slot of a table: an entry's handle with 16 bits of its key's hash in the pointer's unused upper bits.
pub(crate) struct Slot(NonNull<Header>);

// SAFETY: a slot owns a handle, and handles are Send.
unsafe impl Send for Slot {}

const TAG_SHIFT: u32 = 48;
const _: () = assert!(usize::BITS == 64, "slots keep a tag in the upper bits of a 64-bit pointer");

impl Slot {
    /// # Panics
    /// If the system hands out addresses over 48 bits (Linux, macOS and Windows do only when asked to).
    pub(crate) fn new(tag: u16, entry: Entry) -> Slot {
        let pointer = ManuallyDrop::new(entry).0;
        assert!(pointer.addr().get() >> TAG_SHIFT == 0, "an allocation above 48 bits of address space");
        Slot(pointer.map_addr(|address| address | (tag as usize) << TAG_SHIFT))
    }

    pub(crate) fn tag(&self) -> u16 {
        (self.0.addr().get() >> TAG_SHIFT) as u16
    }

    pub(crate) fn entry(&self) -> EntryRef<'_> {
        EntryRef(self.pointer(), PhantomData)
    }

    pub(crate) fn into_entry(self) -> Entry {
        Entry(ManuallyDrop::new(self).pointer())
    }

    fn pointer(&self) -> NonNull<Header> {
        let untagged = self.0.as_ptr().map_addr(|address| address & ((1 << TAG_SHIFT) - 1));
        // SAFETY: `new` took the pointer from an entry, and the tag did not touch its 48 bits.
        unsafe { NonNull::new_unchecked(untagged) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        drop(Entry(self.pointer()));
    }
}
