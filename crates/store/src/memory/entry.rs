//! One key and its record in one allocation.
//!
//! An entry is what the memory tier stores: a 16-byte header, an optional expiry, the key in clear text and the
//! record (see `snugly_codec::Record`). It is reference-counted, so that a reader takes a handle under the shard's
//! lock and decodes after it. It knows nothing of tables, databases or policies.
//!
//! ```text
//! offset 0            4            8          12                   16
//!        references   record_len   access     key_len<<8 | flags   [expiry u64]  key …  record …
//! ```
//!
//! Everything but `references`, `access` and `expiry` is written once, before the entry is shared. The entry of a list has,
//! in the place of the record, a counted pointer to the list, which has a lock of its own.

use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use snugly_codec::{CodecId, Record};

use crate::memory::entry_allocation_size;
use crate::memory::slab::SLAB;
use crate::quicklist::List;

#[repr(C, align(8))]
struct Header {
    references: AtomicU32,
    record_len: u32,
    access: AtomicU32,
    key_len_and_flags: u32,
}

const HEADER_LEN: usize = size_of::<Header>();
const EXPIRY_LEN: usize = size_of::<u64>();
const HAS_EXPIRY_FIELD: u32 = 1;
const IS_TOMBSTONE: u32 = 2;
/// A stronger level has been tried on the record; what it is now is the smaller of both.
const IS_PACKED: u32 = 4;
/// It is a list: where a record would be is what `Arc::into_raw` gave.
const IS_LIST: u32 = 8;
/// Its record is the directory of a list, as it is on disk; such an entry is only on its way there.
const IS_DIRECTORY: u32 = 16;
const KEY_LEN_SHIFT: u32 = 8;

/// The longest key an entry can hold, in bytes.
pub const MAX_KEY_LEN: usize = (1 << (32 - KEY_LEN_SHIFT)) - 1;
/// The longest record an entry can hold, in bytes.
pub(crate) const MAX_RECORD_LEN: usize = u32::MAX as usize;

/// Records from this size on always carry the expiry field, so that EXPIRE never copies a long one.
const ALWAYS_EXPIRY_FIELD_FROM: usize = 4096;
const NO_EXPIRY: u64 = u64::MAX;
/// Codec 0, and a length of 0.
const EMPTY_RECORD: [u8; 2] = [CodecId::Identity as u8, 0];

const LIST_POINTER_LEN: usize = size_of::<*const List>();

/// Bytes that stand beside the record in an entry's allocation.
pub(crate) const fn overhead(key_len: usize, has_expiry: bool) -> usize {
    HEADER_LEN + if has_expiry { EXPIRY_LEN } else { 0 } + key_len
}

/// A counted handle to an entry. Cloning it copies a pointer.
pub(crate) struct Entry(NonNull<Header>);

// SAFETY: the key and record are immutable once the entry is shared, and the other fields are atomics.
unsafe impl Send for Entry {}
// SAFETY: as for Send.
unsafe impl Sync for Entry {}

/// A borrowed entry: all that can be read of it.
#[derive(Clone, Copy)]
pub(crate) struct EntryRef<'a>(NonNull<Header>, PhantomData<&'a Entry>);

impl Entry {
    /// Copies `key` and `record` into a new allocation. `expiry` is in Unix milliseconds.
    ///
    /// # Panics
    /// If key or record are longer than [`MAX_KEY_LEN`] and [`MAX_RECORD_LEN`]; the session checks both first.
    pub(crate) fn new(key: &[u8], record: &Record<'_>, expiry: Option<u64>, access: Access) -> Entry {
        Entry::build(key, record.encoded_len(), expiry, access, 0, |target| record.write_to(target))
    }

    /// As [`Entry::new`], of a record that a stronger level has been tried on.
    pub(crate) fn packed(key: &[u8], record: &Record<'_>, expiry: Option<u64>, access: Access) -> Entry {
        let write = |target: &mut [MaybeUninit<u8>]| record.write_to(target);
        Entry::build(key, record.encoded_len(), expiry, access, IS_PACKED, write)
    }

    /// As [`Entry::new`], or [`Entry::packed`], of a record that lies in pieces; `None` if it is too long for an entry.
    pub(crate) fn of_pieces(
        key: &[u8],
        pieces: &[&[u8]],
        expiry: Option<u64>,
        access: Access,
        is_packed: bool,
    ) -> Option<Entry> {
        let record_len = pieces.iter().map(|piece| piece.len()).sum();
        if record_len > MAX_RECORD_LEN || key.len() > MAX_KEY_LEN {
            return None;
        }
        let flags = if is_packed { IS_PACKED } else { 0 };
        Some(Entry::build(key, record_len, expiry, access, flags, |mut target| {
            for piece in pieces {
                let (head, rest) = target.split_at_mut(piece.len());
                head.write_copy_of_slice(piece);
                target = rest;
            }
        }))
    }

    /// The entry of a list.
    pub(crate) fn list(key: &[u8], list: Arc<List>, expiry: Option<u64>, access: Access) -> Entry {
        Entry::build(key, LIST_POINTER_LEN, expiry, access, IS_LIST, |target| {
            let place = target.as_mut_ptr().cast::<*const List>();
            // SAFETY: `target` is ours alone and as long as a pointer; it need not be aligned for one.
            unsafe { place.write_unaligned(Arc::into_raw(list)) }
        })
    }

    /// What is written to disk for a list's key.
    pub(crate) fn directory(key: &[u8], record: &Record<'_>, expiry: Option<u64>, access: Access) -> Entry {
        let write = |target: &mut [MaybeUninit<u8>]| record.write_to(target);
        Entry::build(key, record.encoded_len(), expiry, access, IS_DIRECTORY, write)
    }

    /// Says that there is no such key, whatever the disk says.
    pub(crate) fn tombstone(key: &[u8]) -> Entry {
        Entry::build(key, 0, None, Access::written(0), IS_TOMBSTONE, |_| {})
    }

    fn build(
        key: &[u8],
        record_len: usize,
        expiry: Option<u64>,
        access: Access,
        flags: u32,
        write_record: impl FnOnce(&mut [MaybeUninit<u8>]),
    ) -> Entry {
        assert!(
            key.len() <= MAX_KEY_LEN && record_len <= MAX_RECORD_LEN,
            "key or record too long for an entry"
        );
        let has_expiry_field = expiry.is_some() || record_len >= ALWAYS_EXPIRY_FIELD_FROM;
        let size = overhead(key.len(), has_expiry_field) + record_len;
        let base = SLAB.allocate(size);
        let flags = flags | if has_expiry_field { HAS_EXPIRY_FIELD } else { 0 };
        let header = Header {
            references: AtomicU32::new(1),
            record_len: record_len as u32,
            access: AtomicU32::new(access.0),
            key_len_and_flags: (key.len() as u32) << KEY_LEN_SHIFT | flags,
        };
        let key_offset = overhead(0, has_expiry_field);
        // SAFETY: `base` is ours alone, aligned for Header and u64 by the slab, and as long as all the parts
        // together: header, expiry field (where there is one), key, record. `write_record` fills all of its slice:
        // a record has exactly `encoded_len` bytes.
        unsafe {
            base.cast::<Header>().write(header);
            if has_expiry_field {
                let field = base.add(HEADER_LEN).cast::<AtomicU64>();
                field.write(AtomicU64::new(expiry.unwrap_or(NO_EXPIRY)));
            }
            ptr::copy_nonoverlapping(key.as_ptr(), base.add(key_offset).as_ptr(), key.len());
            let record = base.add(key_offset + key.len()).cast::<MaybeUninit<u8>>();
            write_record(std::slice::from_raw_parts_mut(record.as_ptr(), record_len));
        }
        Entry(base.cast())
    }

    pub(crate) fn borrow(&self) -> EntryRef<'_> {
        EntryRef(self.0, PhantomData)
    }

    /// Whether both handles are of the same entry. An entry that somebody holds is never freed, so this tells
    /// whether a key has changed since the handle was taken.
    pub(crate) fn same(&self, other: EntryRef<'_>) -> bool {
        self.0 == other.0
    }

    /// A number that no other entry has as long as somebody holds this one.
    pub(crate) fn identity(&self) -> usize {
        self.0.addr().get()
    }
}

impl Clone for Entry {
    fn clone(&self) -> Entry {
        self.borrow().to_owned()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let entry = self.borrow();
        if entry.header().references.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        // Acquire pairs with the Release above: whatever other holders did happens before the memory goes.
        entry.header().references.load(Ordering::Acquire);
        let size = entry.size();
        if let Some(list) = entry.list_pointer() {
            // SAFETY: the entry owned the count that `into_raw` gave up, and goes.
            drop(unsafe { Arc::from_raw(list) });
        }
        // SAFETY: this was the last handle, and the size is the one that the entry was made with.
        unsafe { SLAB.free(self.0.cast(), size) }
    }
}

impl<'a> EntryRef<'a> {
    fn header(self) -> &'a Header {
        // SAFETY: a handle that lives for 'a keeps the entry, which starts with a header.
        unsafe { self.0.as_ref() }
    }

    fn bytes(self, offset: usize, len: usize) -> &'a [u8] {
        // SAFETY: callers stay inside the allocation (its size is made of the same lengths), whose key and record
        // were written before the entry was shared and never change.
        unsafe { std::slice::from_raw_parts(self.0.cast::<u8>().add(offset).as_ptr(), len) }
    }

    fn has_expiry_field(self) -> bool {
        self.header().key_len_and_flags & HAS_EXPIRY_FIELD != 0
    }

    /// Whether it stands for the absence of its key.
    pub(crate) fn is_tombstone(self) -> bool {
        self.header().key_len_and_flags & IS_TOMBSTONE != 0
    }

    /// Whether its record is the directory of a list.
    pub(crate) fn is_directory(self) -> bool {
        self.header().key_len_and_flags & IS_DIRECTORY != 0
    }

    /// Whether a stronger level has been tried on its record.
    pub(crate) fn is_packed(self) -> bool {
        self.header().key_len_and_flags & IS_PACKED != 0
    }

    fn list_pointer(self) -> Option<*const List> {
        let is_list = self.header().key_len_and_flags & IS_LIST != 0;
        let place = overhead(self.key_len(), self.has_expiry_field());
        // SAFETY: the flag says that a pointer was written there, perhaps not aligned, before the entry was shared.
        is_list.then(|| unsafe { self.0.cast::<u8>().add(place).cast::<*const List>().read_unaligned() })
    }

    /// The list, if it is one.
    pub(crate) fn list(self) -> Option<&'a List> {
        // SAFETY: the entry owns a count of the list, and a handle that lives for 'a keeps the entry.
        self.list_pointer().map(|list| unsafe { &*list })
    }

    /// A handle of the list, if it is one.
    pub(crate) fn list_handle(self) -> Option<Arc<List>> {
        self.list_pointer().map(|list| {
            // SAFETY: as in `list`, and the pointer came from `into_raw`; the count that this handle drops is added first.
            unsafe {
                Arc::increment_strong_count(list);
                Arc::from_raw(list)
            }
        })
    }

    /// The same record or list, for another key or with another expiry.
    pub(crate) fn copy(self, key: &[u8], expiry: Option<u64>, access: Access) -> Entry {
        self.copy_with(key, expiry, access, self.header().key_len_and_flags & IS_PACKED)
    }

    /// The same, as one that a stronger level has been tried on.
    pub(crate) fn copy_as_packed(self) -> Entry {
        self.copy_with(self.key(), self.expiry(), self.access(), IS_PACKED)
    }

    fn copy_with(self, key: &[u8], expiry: Option<u64>, access: Access, flags: u32) -> Entry {
        if let Some(list) = self.list_handle() {
            return Entry::list(key, list, expiry, access);
        }
        let record = self.record_bytes();
        Entry::build(key, record.len(), expiry, access, flags, |target| {
            target.write_copy_of_slice(record);
        })
    }

    /// Whether anybody but the table holds it: a reader, or the queue of changes that are not yet on disk. The caller
    /// has the lock of the entry's shard, without which no more handles can be made.
    pub(crate) fn is_held(self) -> bool {
        // Acquire pairs with the Release of a handle that was dropped.
        self.header().references.load(Ordering::Acquire) != 1
    }

    fn expiry_field(self) -> Option<&'a AtomicU64> {
        // SAFETY: the flag says that the field was written behind the header, where it is aligned for u64.
        self.has_expiry_field().then(|| unsafe { self.0.cast::<u8>().add(HEADER_LEN).cast().as_ref() })
    }

    fn key_len(self) -> usize {
        (self.header().key_len_and_flags >> KEY_LEN_SHIFT) as usize
    }

    fn size(self) -> usize {
        overhead(self.key_len(), self.has_expiry_field()) + self.header().record_len as usize
    }

    pub(crate) fn key(self) -> &'a [u8] {
        self.bytes(overhead(0, self.has_expiry_field()), self.key_len())
    }

    /// The record; that of an empty value, if it is a list.
    pub(crate) fn record_bytes(self) -> &'a [u8] {
        if self.list_pointer().is_some() {
            return &EMPTY_RECORD;
        }
        self.bytes(overhead(self.key_len(), self.has_expiry_field()), self.header().record_len as usize)
    }

    /// The number of the dictionary that the record needs.
    pub(crate) fn dictionary(self) -> Option<u32> {
        let record = self.record_bytes();
        if record.first() != Some(&(CodecId::ZstdDictionary as u8)) {
            return None;
        }
        Record::parse(record).ok()?.dictionary()
    }

    /// Where the entry starts.
    pub(crate) fn address(self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// Bytes that the entry takes in memory, those of its list included.
    pub(crate) fn allocation_size(self) -> usize {
        entry_allocation_size(self.size()) + self.list().map_or(0, List::memory)
    }

    /// When the entry expires, in Unix milliseconds.
    pub(crate) fn expiry(self) -> Option<u64> {
        self.expiry_field().map(|field| field.load(Ordering::Relaxed)).filter(|&at| at != NO_EXPIRY)
    }

    pub(crate) fn is_expired(self, now: u64) -> bool {
        self.expiry().is_some_and(|at| at <= now)
    }

    /// Changes the expiry in place; `Err` gives a copy of the entry for the caller to put in its place, if this one
    /// has no room for an expiry.
    pub(crate) fn set_expiry(self, expiry: Option<u64>) -> Result<(), Entry> {
        match self.expiry_field() {
            Some(field) => field.store(expiry.unwrap_or(NO_EXPIRY), Ordering::Relaxed),
            None if expiry.is_none() => {}
            None => return Err(self.copy(self.key(), expiry, self.access())),
        }
        Ok(())
    }

    /// A copy in a denser place, if the entry stands in a sparse one and only the table holds it. The caller has the
    /// lock of the entry's shard and puts the copy in its place.
    pub(crate) fn relocate(self) -> Option<Entry> {
        if self.is_held() {
            return None;
        }
        let size = self.size();
        // SAFETY: the entry was allocated with this size, and 'a keeps it.
        let base = unsafe { SLAB.relocate(self.0.cast(), size) }?;
        // SAFETY: both places have room for the entry. The one reference is the table's, and another can only be made
        // from it under the shard's lock, which the caller has: nobody changes the entry while it is copied, and in
        // the copy the count of one is right as well.
        unsafe { ptr::copy_nonoverlapping(self.0.cast::<u8>().as_ptr(), base.as_ptr(), size) };
        if let Some(list) = self.list_pointer() {
            // SAFETY: the pointer came from `into_raw`, and this entry still owns the count that the copy now owns, too.
            unsafe { Arc::increment_strong_count(list) };
        }
        Some(Entry(base.cast()))
    }

    pub(crate) fn access(self) -> Access {
        Access(self.header().access.load(Ordering::Relaxed))
    }

    /// Writes only what changes: a hot entry's cache line stays shared between the cores that read it.
    pub(crate) fn set_access(self, access: Access) {
        if self.access() != access {
            self.header().access.store(access.0, Ordering::Relaxed);
        }
    }

    pub(crate) fn to_owned(self) -> Entry {
        // A handle is only ever made from another, so this needs no ordering; and as in `std::sync::Arc`, a program
        // that leaks two billion handles must not wrap the count.
        if self.header().references.fetch_add(1, Ordering::Relaxed) > u32::MAX / 2 {
            std::process::abort();
        }
        Entry(self.0)
    }
}

/// When an entry was last used, and how often: 8 bits of frequency above 24 bits of seconds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access(u32);

const SECONDS_BITS: u32 = 24;
const SECONDS_MASK: u32 = (1 << SECONDS_BITS) - 1;

impl Access {
    /// An entry that has just been written and not yet been read.
    pub(crate) fn written(now_ms: u64) -> Access {
        Access((now_ms / 1000) as u32 & SECONDS_MASK)
    }

    /// Last used so many seconds ago.
    pub(crate) fn idle(now_ms: u64, seconds: u64) -> Access {
        Access((now_ms / 1000).wrapping_sub(seconds) as u32 & SECONDS_MASK)
    }

    /// One more use, counted up to `cap`.
    pub(crate) fn used(self, now_ms: u64, cap: u8) -> Access {
        let frequency = self.frequency().saturating_add(1).min(cap);
        Access::written(now_ms).with_frequency(frequency)
    }

    /// How often the entry was used since the eviction hand passed it, up to the policy's cap.
    pub(crate) fn frequency(self) -> u8 {
        (self.0 >> SECONDS_BITS) as u8
    }

    pub(crate) fn with_frequency(self, frequency: u8) -> Access {
        Access(self.0 & SECONDS_MASK | u32::from(frequency) << SECONDS_BITS)
    }

    /// Seconds since the last use; exact up to 194 days, where 24 bits of seconds wrap.
    pub(crate) fn idle_seconds(self, now_ms: u64) -> u32 {
        ((now_ms / 1000) as u32).wrapping_sub(self.0) & SECONDS_MASK
    }
}

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
