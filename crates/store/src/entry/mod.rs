//! A key and its record in one allocation.
//!
//! An entry is the unit of storage of the memory tier: a 16-byte header, optional fields, the key in clear
//! text and the record (see `snugly_codec::Record`). It is reference-counted, so that a reader takes a handle
//! under the shard's lock and decodes after it. It must not know tables, databases or policies.
//!
//! ```text
//! offset 0            4            8          12                   16
//!        references   record_len   access     key_len<<8 | flags   [expiry u64]  [metadata | draft]  key …  record …
//! ```
//!
//! Everything but `references`, `access` and `expiry` is written once, before the entry is shared. The entry
//! of a collection has, in the place of the record, a counted pointer to it, behind which it has a lock of
//! its own.
//!
//! - [`draft`]: values that are changed in place; [`access`]: access statistics; [`metadata`]: what clients keep
//!   beside a value; [`slot`]: a handle in a table; [`stage`]: how far recompression has come with a record

mod access;
mod draft;
mod metadata;
mod slot;
mod stage;

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use snugly_codec::{CodecId, MAX_HEADER, Record};

use crate::slab::SLAB;
use crate::slab::entry_allocation_size;
use crate::values::Kind;
use crate::values::collection::Collection;
pub(crate) use access::Access;
use draft::DRAFT_LEN;
pub use metadata::Metadata;
pub(crate) use slot::Slot;
pub use stage::Stage;

#[repr(C, align(8))]
struct Header {
    references: AtomicU32,
    /// Length of the record; of a draft, the length of the value, which changes.
    record_len: AtomicU32,
    access: AtomicU32,
    key_len_and_flags: u32,
}

const HEADER_LEN: usize = size_of::<Header>();
const EXPIRY_LEN: usize = size_of::<u64>();
const METADATA_LEN: usize = size_of::<Metadata>();
const HAS_EXPIRY_FIELD: u32 = 1;
const HAS_METADATA: u32 = 2;
/// Bits that tell the stage of a record, or what stands in its place.
const FORM: u32 = 4 | 8 | 16;
/// Forms of records, by the number of their stage.
const RECORDS: [u32; Stage::ALL.len()] = [0, 4 | 8, 4];
/// Form of an entry that stands for the absence of its key.
const TOMBSTONE: u32 = 8;
/// Form of a collection: the record is a pointer from `Arc::into_raw`. An entry of a collection's kind in another
/// form is on its way to the disk or from there, and its record is the directory.
const COLLECTION: u32 = 16;
/// Form of a draft, which always has the expiry field and never metadata.
const DRAFT: u32 = 8 | 16;
/// First bit of the number of the value's kind.
const KIND_SHIFT: u32 = 5;
const KEY_LEN_SHIFT: u32 = 8;
const _: () = assert!(Kind::ALL.len() <= 1 << (KEY_LEN_SHIFT - KIND_SHIFT), "kinds have three bits");

const fn flags_of(kind: Kind) -> u32 {
    (kind.number() as u32) << KIND_SHIFT
}

/// Longest key of an entry, in bytes.
pub const MAX_KEY_LEN: usize = (1 << (32 - KEY_LEN_SHIFT)) - 1;
/// Longest record of an entry, in bytes.
pub(crate) const MAX_RECORD_LEN: usize = u32::MAX as usize;

/// Record size in bytes from which entries always have the expiry field, so that EXPIRE never copies a long
/// one.
const ALWAYS_EXPIRY_FIELD_FROM: usize = 4096;
const NO_EXPIRY: u64 = u64::MAX;

const POINTER_LEN: usize = size_of::<*const Collection>();

/// Optional fields of an entry.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fields {
    pub(crate) expiry: bool,
    pub(crate) metadata: bool,
}

impl Fields {
    pub(crate) const NONE: Fields = Fields { expiry: false, metadata: false };

    const fn len(self) -> usize {
        (if self.expiry { EXPIRY_LEN } else { 0 }) + if self.metadata { METADATA_LEN } else { 0 }
    }
}

/// Returns the bytes beside the record in an entry's allocation.
pub(crate) const fn overhead(key_len: usize, fields: Fields) -> usize {
    HEADER_LEN + fields.len() + key_len
}

/// What belongs to an entry beside key and value.
#[derive(Clone, Copy)]
pub(crate) struct Properties {
    /// Expiry, in Unix milliseconds.
    pub(crate) expiry: Option<u64>,
    pub(crate) access: Access,
    pub(crate) metadata: Metadata,
}

impl Properties {
    /// Returns those of a value with neither expiry nor metadata.
    pub(crate) fn plain(access: Access) -> Properties {
        Properties::expiring(None, access)
    }

    /// Returns those of a value without metadata.
    pub(crate) fn expiring(expiry: Option<u64>, access: Access) -> Properties {
        Properties { expiry, access, metadata: Metadata::default() }
    }

    /// Returns the fields that a short entry has for them.
    pub(crate) fn fields(&self) -> Fields {
        Fields { expiry: self.expiry.is_some(), metadata: !self.metadata.is_default() }
    }
}

/// A counted handle to an entry. Cloning it copies a pointer.
pub(crate) struct Entry(NonNull<Header>);

// SAFETY: the key and record are immutable while several handles are shared (see `EntryRef::edit` for the record of a
// draft), and the other fields are atomics.
unsafe impl Send for Entry {}
// SAFETY: as for Send.
unsafe impl Sync for Entry {}

/// A borrowed entry, with all that can be read of it.
#[derive(Clone, Copy)]
pub(crate) struct EntryRef<'a>(NonNull<Header>, PhantomData<&'a Entry>);

impl Entry {
    /// Copies `key` and `record` into a new allocation.
    ///
    /// # Panics
    /// If key or record are longer than [`MAX_KEY_LEN`] and [`MAX_RECORD_LEN`]; the session checks both first.
    pub(crate) fn new(key: &[u8], record: &Record<'_>, properties: Properties) -> Entry {
        Entry::build(key, record.encoded_len(), properties, 0, |target| record.write_to(target))
    }

    /// Like [`Entry::new`], for a record that recompression has brought to this stage.
    pub(crate) fn at_stage(stage: Stage, key: &[u8], record: &Record<'_>, properties: Properties) -> Entry {
        let write = |target: &mut [MaybeUninit<u8>]| record.write_to(target);
        Entry::build(key, record.encoded_len(), properties, RECORDS[stage as usize], write)
    }

    /// Creates an entry from the pieces that a value of this kind has on disk: a record of any stage, or a
    /// directory. `None` if it is too long for an entry.
    pub(crate) fn of_pieces(
        kind: Kind,
        key: &[u8],
        pieces: &[&[u8]],
        properties: Properties,
        stage: Stage,
    ) -> Option<Entry> {
        let record_len = pieces.iter().map(|piece| piece.len()).sum();
        if record_len > MAX_RECORD_LEN || key.len() > MAX_KEY_LEN {
            return None;
        }
        let flags = flags_of(kind) | RECORDS[stage as usize];
        Some(Entry::build(key, record_len, properties, flags, |mut target| {
            for piece in pieces {
                let (head, rest) = target.split_at_mut(piece.len());
                head.write_copy_of_slice(piece);
                target = rest;
            }
        }))
    }

    /// Creates the entry of a collection.
    pub(crate) fn of_collection(
        key: &[u8],
        collection: Arc<Collection>,
        expiry: Option<u64>,
        access: Access,
    ) -> Entry {
        let flags = COLLECTION | flags_of(collection.kind());
        Entry::build(key, POINTER_LEN, Properties::expiring(expiry, access), flags, |target| {
            let place = target.as_mut_ptr().cast::<*const Collection>();
            // SAFETY: `target` is ours alone and as long as a pointer; it need not be aligned for one.
            unsafe { place.write_unaligned(Arc::into_raw(collection)) }
        })
    }

    /// Creates the entry that is written to disk for the key of a collection of this kind.
    pub(crate) fn directory(
        kind: Kind,
        key: &[u8],
        record: &Record<'_>,
        expiry: Option<u64>,
        access: Access,
    ) -> Entry {
        let write = |target: &mut [MaybeUninit<u8>]| record.write_to(target);
        let properties = Properties::expiring(expiry, access);
        Entry::build(key, record.encoded_len(), properties, flags_of(kind), write)
    }

    /// Creates a tombstone, which says that there is no such key, whatever the disk says.
    pub(crate) fn tombstone(key: &[u8]) -> Entry {
        Entry::build(key, 0, Properties::plain(Access::written(0)), TOMBSTONE, |_| {})
    }

    fn build(
        key: &[u8],
        record_len: usize,
        properties: Properties,
        flags: u32,
        write_record: impl FnOnce(&mut [MaybeUninit<u8>]),
    ) -> Entry {
        assert!(
            key.len() <= MAX_KEY_LEN && record_len <= MAX_RECORD_LEN,
            "key or record too long for an entry"
        );
        let Properties { expiry, access, metadata } = properties;
        let mut fields = properties.fields();
        fields.expiry |= record_len >= ALWAYS_EXPIRY_FIELD_FROM;
        let size = overhead(key.len(), fields) + record_len;
        let base = SLAB.allocate(size);
        let flag = |flag: u32, is_set: bool| if is_set { flag } else { 0 };
        let flags = flags | flag(HAS_EXPIRY_FIELD, fields.expiry) | flag(HAS_METADATA, fields.metadata);
        let header = Header {
            references: AtomicU32::new(1),
            record_len: AtomicU32::new(record_len as u32),
            access: AtomicU32::new(access.0),
            key_len_and_flags: (key.len() as u32) << KEY_LEN_SHIFT | flags,
        };
        let key_offset = overhead(0, fields);
        // SAFETY: `base` is ours alone, aligned for Header, u64 and Metadata by the slab, and as long as all the parts
        // together: header, the fields that there are, each as long as its alignment or a multiple of it, key, record.
        // `write_record` fills all of its slice: a record has exactly `encoded_len` bytes.
        unsafe {
            base.cast::<Header>().write(header);
            if fields.expiry {
                let field = base.add(HEADER_LEN).cast::<AtomicU64>();
                field.write(AtomicU64::new(expiry.unwrap_or(NO_EXPIRY)));
            }
            if fields.metadata {
                base.add(key_offset - METADATA_LEN).cast::<Metadata>().write(metadata);
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

    /// Returns whether both handles are of the same entry. A held entry is never freed, so this tells whether
    /// a key has changed since the handle was taken.
    pub(crate) fn same(&self, other: EntryRef<'_>) -> bool {
        self.0 == other.0
    }

    /// Returns a number that no other entry has as long as this one is held.
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
        if let Some(collection) = entry.pointer() {
            // SAFETY: the entry owned the count that `into_raw` gave up, and goes.
            drop(unsafe { Arc::from_raw(collection) });
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
        // were written before the entry was shared and do not change while anybody but the table has a handle.
        unsafe { std::slice::from_raw_parts(self.0.cast::<u8>().add(offset).as_ptr(), len) }
    }

    fn has(self, flag: u32) -> bool {
        self.header().key_len_and_flags & flag != 0
    }

    fn form(self) -> u32 {
        self.header().key_len_and_flags & FORM
    }

    /// Returns the optional fields that it has.
    fn fields(self) -> Fields {
        Fields { expiry: self.has(HAS_EXPIRY_FIELD), metadata: self.has(HAS_METADATA) }
    }

    /// Returns whether it changes in place: a collection or a draft.
    pub(crate) fn is_edited_in_place(self) -> bool {
        matches!(self.form(), COLLECTION | DRAFT)
    }

    /// Returns the kind of its value.
    pub(crate) fn kind(self) -> Kind {
        let number =
            self.header().key_len_and_flags >> KIND_SHIFT & ((1 << (KEY_LEN_SHIFT - KIND_SHIFT)) - 1);
        Kind::ALL[number as usize]
    }

    /// Returns whether it stands for the absence of its key.
    pub(crate) fn is_tombstone(self) -> bool {
        self.form() == TOMBSTONE
    }

    /// Returns the stage of its record, the first if it has none.
    pub(crate) fn stage(self) -> Stage {
        let place = RECORDS.iter().position(|form| *form == self.form());
        place.map_or(Stage::Written, |place| Stage::ALL[place])
    }

    fn pointer(self) -> Option<*const Collection> {
        let is_collection = self.form() == COLLECTION;
        let place = overhead(self.key_len(), self.fields());
        // SAFETY: the flag says that a pointer was written there, perhaps not aligned, before the entry was shared.
        let read = || unsafe { self.0.cast::<u8>().add(place).cast::<*const Collection>().read_unaligned() };
        is_collection.then(read)
    }

    /// Returns the collection, if it is one.
    pub(crate) fn collection(self) -> Option<&'a Collection> {
        // SAFETY: the entry owns a count of the collection, and a handle that lives for 'a keeps the entry.
        self.pointer().map(|collection| unsafe { &*collection })
    }

    /// Returns a handle of the collection, if it is one.
    pub(crate) fn collection_handle(self) -> Option<Arc<Collection>> {
        self.pointer().map(|collection| {
            // SAFETY: as in `collection`, and the pointer came from `into_raw`; the count that this handle drops is added
            // first.
            unsafe {
                Arc::increment_strong_count(collection);
                Arc::from_raw(collection)
            }
        })
    }

    /// Copies the record, or the handle of the collection, for another key or with other properties.
    pub(crate) fn copy(self, key: &[u8], properties: Properties) -> Entry {
        self.copy_with(key, properties, self.stage())
    }

    /// Copies the entry, whose record is as it was but at another stage.
    pub(crate) fn copy_at_stage(self, stage: Stage) -> Entry {
        self.copy_with(self.key(), self.properties(), stage)
    }

    fn copy_with(self, key: &[u8], properties: Properties, stage: Stage) -> Entry {
        if let Some(collection) = self.collection_handle() {
            return Entry::of_collection(key, collection, properties.expiry, properties.access);
        }
        let record = self.record_bytes().unwrap_or_default();
        Entry::build(key, record.len(), properties, RECORDS[stage as usize], |target| {
            target.write_copy_of_slice(record);
        })
    }

    /// Returns whether anybody but the table holds it: a reader, or the queue of changes that are not yet on
    /// disk. The caller has the lock of the entry's shard, without which no more handles can be made.
    pub(crate) fn is_held(self) -> bool {
        self.holders() != 0
    }

    /// Returns the number of handles besides the table's. The caller has the lock of the entry's shard.
    pub(crate) fn holders(self) -> u32 {
        // Acquire pairs with the Release of a handle that was dropped.
        self.header().references.load(Ordering::Acquire) - 1
    }

    /// Returns the part of its memory that each handle has, the table's included: all of them together have all of it.
    pub(crate) fn memory_share(self) -> usize {
        self.allocation_size().div_ceil(self.header().references.load(Ordering::Relaxed).max(1) as usize)
    }

    fn expiry_field(self) -> Option<&'a AtomicU64> {
        // SAFETY: the flag says that the field was written behind the header, where it is aligned for u64.
        self.has(HAS_EXPIRY_FIELD).then(|| unsafe { self.0.cast::<u8>().add(HEADER_LEN).cast().as_ref() })
    }

    /// Returns the metadata.
    pub(crate) fn metadata(self) -> Metadata {
        let place = overhead(0, self.fields()) - METADATA_LEN;
        // SAFETY: the flag says that the field was written behind that of the expiry, where it is aligned, before the
        // entry was shared.
        let read = || unsafe { self.0.cast::<u8>().add(place).cast::<Metadata>().read() };
        if self.has(HAS_METADATA) { read() } else { Metadata::default() }
    }

    /// Returns what belongs to it beside key and value.
    pub(crate) fn properties(self) -> Properties {
        Properties { expiry: self.expiry(), access: self.access(), metadata: self.metadata() }
    }

    fn key_len(self) -> usize {
        (self.header().key_len_and_flags >> KEY_LEN_SHIFT) as usize
    }

    /// Returns the length in the header, see there.
    fn record_len(self) -> usize {
        self.header().record_len.load(Ordering::Relaxed) as usize
    }

    /// Returns the offset of the key.
    fn key_place(self) -> usize {
        overhead(0, self.fields()) + if self.is_draft() { DRAFT_LEN } else { 0 }
    }

    /// Returns the number of bytes behind the key.
    fn room(self) -> usize {
        self.draft_field().map_or(self.record_len(), |draft| MAX_HEADER + draft.capacity as usize)
    }

    fn size(self) -> usize {
        self.key_place() + self.key_len() + self.room()
    }

    pub(crate) fn key(self) -> &'a [u8] {
        self.bytes(self.key_place(), self.key_len())
    }

    /// Returns the record, unless it is a collection in memory, which has one for each of its nodes.
    pub(crate) fn record_bytes(self) -> Option<&'a [u8]> {
        if self.pointer().is_some() {
            return None;
        }
        let place = self.key_place() + self.key_len();
        let len = self.record_len();
        if self.is_draft() {
            // The record's header ends at the value.
            let header_len = Record::identity_header(len, &mut [0; MAX_HEADER]).len();
            return Some(self.bytes(place + MAX_HEADER - header_len, header_len + len));
        }
        Some(self.bytes(place, len))
    }

    /// Parses the record; `None` for a collection, and for bytes that are not a record.
    pub(crate) fn record(self) -> Option<Record<'a>> {
        Record::parse(self.record_bytes()?).ok()
    }

    /// Returns the bytes of key and value as clients gave them; of a draft as many as it has room for, and of a collection, which
    /// has an account of its own, those of the key. It is the same as long as the entry lives.
    pub(crate) fn given_len(self) -> usize {
        if self.is_tombstone() {
            return 0;
        }
        let value = match self.draft_field() {
            Some(draft) => draft.capacity as usize,
            None => self.record().map_or(0, |record| record.raw_len()),
        };
        self.key().len() + value
    }

    /// Returns the number of the dictionary that the record needs.
    pub(crate) fn dictionary(self) -> Option<u32> {
        let record = self.record_bytes()?;
        let codec = CodecId::from_number(*record.first()?)?;
        if !codec.needs_dictionary() {
            return None;
        }
        Record::parse(record).ok()?.dictionary()
    }

    /// Returns the address of the entry.
    pub(crate) fn address(self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// Returns the bytes that the entry takes in memory, those of its collection included.
    pub(crate) fn allocation_size(self) -> usize {
        let collection = self.collection().map_or(0, |collection| collection.lock().memory());
        entry_allocation_size(self.size()) + collection
    }

    /// Returns the expiry, in Unix milliseconds.
    pub(crate) fn expiry(self) -> Option<u64> {
        self.expiry_field().map(|field| field.load(Ordering::Relaxed)).filter(|&at| at != NO_EXPIRY)
    }

    pub(crate) fn is_expired(self, now: u64) -> bool {
        self.expiry().is_some_and(|at| at <= now)
    }

    /// Changes the expiry in place; `Err` is a copy of the entry for the caller to put in its place, if this
    /// one has no expiry field.
    pub(crate) fn set_expiry(self, expiry: Option<u64>) -> Result<(), Entry> {
        match self.expiry_field() {
            Some(field) => field.store(expiry.unwrap_or(NO_EXPIRY), Ordering::Relaxed),
            None if expiry.is_none() => {}
            None => return Err(self.copy(self.key(), Properties { expiry, ..self.properties() })),
        }
        Ok(())
    }

    /// Copies the entry to a denser page, if it is in a sparse one and only the table holds it. The caller
    /// has the lock of the entry's shard and puts the copy in its place.
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
        if let Some(collection) = self.pointer() {
            // SAFETY: the pointer came from `into_raw`, and this entry still owns the count that the copy now owns, too.
            unsafe { Arc::increment_strong_count(collection) };
        }
        Some(Entry(base.cast()))
    }

    pub(crate) fn access(self) -> Access {
        Access(self.header().access.load(Ordering::Relaxed))
    }

    /// Sets the access statistics, and writes only if they change: a hot entry's cache line stays shared
    /// between the cores that read it.
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
