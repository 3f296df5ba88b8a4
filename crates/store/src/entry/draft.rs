//! Drafts: uncompressed values with spare capacity, changed in place while nobody reads them.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use snugly_codec::{MAX_HEADER, Record};

use super::{
    Access, DRAFT, EXPIRY_LEN, Entry, EntryRef, Fields, HAS_EXPIRY_FIELD, HEADER_LEN, Header, KEY_LEN_SHIFT,
    MAX_KEY_LEN, MAX_RECORD_LEN, NO_EXPIRY, overhead,
};
use crate::slab::SLAB;

/// Additional header of a draft.
#[repr(C)]
pub(super) struct Draft {
    /// Capacity of the value in its place, in bytes.
    pub(super) capacity: u32,
    number: u32,
    /// Number of queued changes that hold it and have not been taken.
    queued: AtomicU32,
}

pub(super) const DRAFT_LEN: usize = size_of::<Draft>();
const DRAFT_FIELDS: Fields = Fields { expiry: true, metadata: false };

impl Entry {
    /// Returns the bytes of a draft with this capacity, as [`crate::entry_allocation_size`] takes them.
    pub(crate) const fn draft_size(key_len: usize, capacity: usize) -> usize {
        overhead(key_len, DRAFT_FIELDS) + DRAFT_LEN + MAX_HEADER + capacity
    }

    /// Creates a draft of the value that these pieces make, with `capacity` bytes; `None` if it is too long
    /// for an entry, or the system has no memory. `number` tells it from all other drafts.
    pub(crate) fn draft(
        key: &[u8],
        pieces: &[&[u8]],
        capacity: usize,
        number: u32,
        expiry: Option<u64>,
        access: Access,
    ) -> Option<Entry> {
        let len = pieces.iter().map(|piece| piece.len()).sum();
        let capacity = capacity.max(len);
        if capacity > MAX_RECORD_LEN - MAX_HEADER || key.len() > MAX_KEY_LEN {
            return None;
        }
        let size = Entry::draft_size(key.len(), capacity);
        let base = SLAB.try_allocate(size)?;
        let header = Header {
            references: AtomicU32::new(1),
            record_len: AtomicU32::new(0),
            access: AtomicU32::new(access.0),
            key_len_and_flags: (key.len() as u32) << KEY_LEN_SHIFT | HAS_EXPIRY_FIELD | DRAFT,
        };
        // SAFETY: `base` is ours alone, aligned for Header and u64 by the slab (and so for Draft behind them), and as long
        // as all the parts together: header, expiry field, draft's field, key, record and the room behind it.
        let entry = unsafe {
            base.cast::<Header>().write(header);
            let field = base.add(HEADER_LEN).cast::<AtomicU64>();
            field.write(AtomicU64::new(expiry.unwrap_or(NO_EXPIRY)));
            let draft = Draft { capacity: capacity as u32, number, queued: AtomicU32::new(0) };
            base.add(HEADER_LEN + EXPIRY_LEN).cast::<Draft>().write(draft);
            let key_place = base.add(HEADER_LEN + EXPIRY_LEN + DRAFT_LEN);
            ptr::copy_nonoverlapping(key.as_ptr(), key_place.as_ptr(), key.len());
            Entry(base.cast())
        };
        let mut at = 0;
        for piece in pieces {
            // SAFETY: the entry is ours alone, and the pieces together are no longer than the room.
            unsafe { entry.borrow().write_value(at, piece) };
            at += piece.len();
        }
        // SAFETY: as above.
        unsafe { entry.borrow().write_value_len(len) };
        Some(entry)
    }
}

impl<'a> EntryRef<'a> {
    pub(super) fn draft_field(self) -> Option<&'a Draft> {
        let place = HEADER_LEN + EXPIRY_LEN;
        // SAFETY: the flag says that the field was written behind that of the expiry, where it is aligned.
        self.is_draft().then(|| unsafe { self.0.cast::<u8>().add(place).cast().as_ref() })
    }

    /// Returns whether it is a draft.
    pub(crate) fn is_draft(self) -> bool {
        self.form() == DRAFT
    }

    /// Returns the number of the draft, if it is one.
    pub(crate) fn draft_number(self) -> Option<u32> {
        self.draft_field().map(|draft| draft.number)
    }

    /// Returns the value of a draft; `None` if the entry is not a draft.
    pub(crate) fn value_of_draft(self) -> Option<&'a [u8]> {
        let place = self.key_place() + self.key_len() + MAX_HEADER;
        self.is_draft().then(|| self.bytes(place, self.record_len()))
    }

    /// Notes that one more queued change holds it, if it is a draft. The caller has the queue's lock.
    pub(crate) fn note_queued(self) {
        if let Some(draft) = self.draft_field() {
            draft.queued.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that all changes that hold it were taken from the queue. The caller has the queue's lock.
    pub(crate) fn note_taken(self) {
        if let Some(draft) = self.draft_field() {
            draft.queued.store(0, Ordering::Relaxed);
        }
    }

    /// Returns whether a queued change holds it that has not been taken: the draft is written as it is when
    /// that is taken.
    pub(crate) fn is_queued(self) -> bool {
        self.draft_field().is_some_and(|draft| draft.queued.load(Ordering::Relaxed) > 0)
    }

    /// Changes part of a draft in place, and fills with zeros a gap behind the old end; returns whether it
    /// did. It does not if the capacity is too small, or anybody but the table and changes in the queue have
    /// a handle.
    ///
    /// # Safety
    /// The caller has the lock of the entry's shard, and where there is a queue of changes also that, and
    /// nothing borrowed from the entry's record.
    pub(crate) unsafe fn edit(self, offset: usize, bytes: &[u8]) -> bool {
        let Some(draft) = self.draft_field() else { return false };
        let len = self.record_len();
        let Some(end) = offset.checked_add(bytes.len()).filter(|&end| end <= draft.capacity as usize) else {
            return false;
        };
        if self.holders() != draft.queued.load(Ordering::Relaxed) {
            return false;
        }
        // SAFETY: handles are made from the table's under the shard's lock, or from those in the queue under the queue's.
        // The caller has both, and there are no others: nobody reads the record now. All is within the capacity.
        unsafe {
            if offset > len {
                let gap = self.value_place().add(len);
                gap.as_ptr().write_bytes(0, offset - len);
            }
            self.write_value(offset, bytes);
            if end > len {
                self.write_value_len(end);
            }
        }
        true
    }

    /// Returns the address of a draft's value.
    fn value_place(self) -> NonNull<u8> {
        let place = self.key_place() + self.key_len() + MAX_HEADER;
        // SAFETY: so far an entry reaches that is a draft.
        unsafe { self.0.cast::<u8>().add(place) }
    }

    /// Writes part of a draft's value.
    ///
    /// # Safety
    /// Nobody else uses the entry's record, and the part ends within the capacity.
    unsafe fn write_value(self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller's promise.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.value_place().add(offset).as_ptr(), bytes.len());
        }
    }

    /// Sets the length of a draft's value, also in the header of the record, which ends where the value
    /// begins.
    ///
    /// # Safety
    /// Nobody else uses the entry's record, and `len` bytes of the value were written.
    unsafe fn write_value_len(self, len: usize) {
        let mut buffer = [0; MAX_HEADER];
        let header = Record::identity_header(len, &mut buffer);
        // SAFETY: in front of the value there is room for the longest header.
        unsafe {
            let place = self.value_place().sub(header.len());
            ptr::copy_nonoverlapping(header.as_ptr(), place.as_ptr(), header.len());
        }
        self.header().record_len.store(len as u32, Ordering::Relaxed);
    }
}
