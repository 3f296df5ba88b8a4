//! Values that are changed or read in parts: those that are long enough become drafts, which stay as they are until nobody
//! has used them for a while.

use super::commit::{Precondition, Write};
use super::encoding::as_used;
use super::{Expiry, KEPT_BUFFER, Kept, Session, StoreError, Value};
use crate::drafts::{self, LEAST_EDITED, LEAST_READ};
use crate::entry::{Access, Entry, Metadata};
use crate::key::Key;
use crate::memory::shard::Presence;
use crate::slab::entry_allocation_size;
use crate::values::Kind;

/// Stands between the end of a value and a part that begins behind it.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A value with one part of it written anew.
struct Edited<'a> {
    before: &'a [u8],
    offset: usize,
    part: &'a [u8],
}

impl<'a> Edited<'a> {
    fn len(&self) -> usize {
        self.before.len().max(self.offset.saturating_add(self.part.len()))
    }

    /// Returns the pieces that it is made of.
    fn pieces(&self) -> Vec<&'a [u8]> {
        let (before, offset) = (self.before, self.offset);
        let gap = offset.saturating_sub(before.len());
        let (whole, rest) = (gap / ZEROS.len(), gap % ZEROS.len());
        let zeros = std::iter::repeat_n(&ZEROS[..], whole).chain([&ZEROS[..rest]]);
        let behind = before.get(offset + self.part.len()..).unwrap_or_default();
        let head = std::iter::once(&before[..offset.min(before.len())]);
        head.chain(zeros).chain([self.part, behind]).collect()
    }
}

/// Returns whether clients keep something beside the value, which drafts have no place for.
fn has_metadata(value: &Value) -> bool {
    value.metadata() != Metadata::default()
}

/// These pieces, `len` bytes together, as one.
fn joined(pieces: &[&[u8]], len: usize) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| StoreError::NoMemory { len })?;
    pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
    Ok(bytes)
}

impl Session {
    /// Changes a part of a value by what the value was: `edit` sees the current value, if there is one, fills the new part
    /// and gives its offset. The value becomes longer if the part goes beyond its end, with zeros in front of a part that
    /// begins behind it. `edit` must not use the store, and runs again if the key changes meanwhile. The expiry stays.
    ///
    /// # Errors
    /// Those of `edit`, and as [`Session::set`]; the key is then as before.
    pub fn update_part<R, E: From<StoreError>>(
        &mut self,
        database: usize,
        key: &[u8],
        mut edit: impl FnMut(Option<&[u8]>, &mut Vec<u8>) -> Result<(usize, R), E>,
    ) -> Result<R, E> {
        self.follow_settings();
        let key = self.key(database, key);
        let mut part = std::mem::take(&mut self.edited);
        let outcome = match self.edit_draft(key, &mut part, &mut edit) {
            Ok(None) => self.persistently(key, |session| session.try_update_part(key, &mut part, &mut edit)),
            outcome => outcome.map(|result| result.expect("it is not none")),
        };
        part.shrink_to(KEPT_BUFFER);
        self.edited = part;
        self.note_buffers();
        outcome
    }

    /// Changes a draft in place; `None` if the key is not a draft, or is being read, or has too little
    /// capacity.
    fn edit_draft<R, E: From<StoreError>>(
        &mut self,
        key: Key<'_>,
        part: &mut Vec<u8>,
        edit: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>) -> Result<(usize, R), E>,
    ) -> Result<Option<R>, E> {
        if self.store.drafts.is_empty() {
            return Ok(None);
        }
        self.wait_for_the_disk()?;
        let now = self.now();
        let mut place = self.enter_in_memory(key);
        let Some(entry) = place.entry().filter(|entry| entry.is_draft()) else { return Ok(None) };
        self.refuse_if_disk_does()?;
        self.note_use(entry, now);
        part.clear();
        let value = Value(entry.to_owned());
        let (offset, result) = edit(value.plain(), part)?;
        drop(value);
        let is_edited =
            offset.saturating_add(part.len()) <= self.settings.max_value_len && place.edit(offset, part);
        let left = place.leave();
        self.finish(left);
        Ok(is_edited.then_some(result))
    }

    /// Changes a part of a value, unless the key changes meanwhile; then nothing.
    fn try_update_part<R, E: From<StoreError>>(
        &mut self,
        key: Key<'_>,
        part: &mut Vec<u8>,
        edit: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>) -> Result<(usize, R), E>,
    ) -> Result<Option<R>, E> {
        let before = self.peek_at(key)?;
        before.as_ref().map_or(Ok(()), |value| value.expect_kind(Kind::String))?;
        let mut current = std::mem::take(&mut self.current);
        let outcome = self.try_to_edit(key, before.as_ref(), &mut current, part, edit);
        current.clear();
        current.shrink_to(KEPT_BUFFER);
        self.current = current;
        outcome
    }

    fn try_to_edit<R, E: From<StoreError>>(
        &mut self,
        key: Key<'_>,
        before: Option<&Value>,
        current: &mut Vec<u8>,
        part: &mut Vec<u8>,
        edit: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>) -> Result<(usize, R), E>,
    ) -> Result<Option<R>, E> {
        if let Some(value) = before {
            self.read_into(value, current)?;
        }
        let bytes = before.map(|value| value.plain().unwrap_or(current));
        part.clear();
        let (offset, result) = edit(bytes, part)?;
        let edited = Edited { before: bytes.unwrap_or_default(), offset, part };
        let (len, limit) = (edited.len(), self.settings.max_value_len);
        if len > limit {
            return Err(StoreError::ValueTooLong { len, limit }.into());
        }
        self.check_transient(len - edited.before.len())?;
        let pieces = edited.pieces();
        let precondition = Precondition::Unchanged(before);
        let write = Write { precondition, expiry: Expiry::Keep, freed: 0 };
        let committed =
            self.commit(key, write, |session| match session.draft_of(key, before, &edited, &pieces) {
                Some(draft) => Ok(draft),
                None => session.make_entry(key.bytes, &joined(&pieces, len)?, Kept::of_changed(before)),
            })?;
        Ok(committed.is_written.then_some(result))
    }

    /// A draft of what a value has become; `None` if it is not to be one, or there is no room for it.
    fn draft_of(
        &mut self,
        key: Key<'_>,
        before: Option<&Value>,
        edited: &Edited<'_>,
        pieces: &[&[u8]],
    ) -> Option<Entry> {
        let len = edited.len();
        if len < LEAST_EDITED || before.is_some_and(has_metadata) {
            return None;
        }
        let has_grown = before.is_some() && len > edited.before.len();
        let capacity = if has_grown { drafts::roomy(len) } else { len };
        let capacity = capacity.min(self.settings.max_value_len);
        self.open_draft(key, before, pieces, capacity)
    }

    /// Lists a draft and makes it; `None` if there is no room for it.
    fn open_draft(
        &mut self,
        key: Key<'_>,
        before: Option<&Value>,
        pieces: &[&[u8]],
        capacity: usize,
    ) -> Option<Entry> {
        let store = self.store.clone();
        let size = entry_allocation_size(Entry::draft_size(key.bytes.len(), capacity));
        // Without maintenance it would stay a draft for ever.
        if !store.dictionaries.is_maintained() || store.disk().is_some_and(|disk| !disk.takes(size)) {
            return None;
        }
        let max_memory = self.settings.max_memory;
        let listed = before.and_then(|value| value.0.borrow().draft_number());
        let listed = listed.filter(|&number| store.drafts.resize(number, size, max_memory));
        let number = listed.or_else(|| store.drafts.open(key.database, key.bytes, size, max_memory))?;
        let expiry = before.and_then(Value::expiry);
        let access = before.map_or(Access::written(self.now()), |value| value.0.borrow().access());
        let is_roomy = self.has_room_for(size as u64).unwrap_or(false);
        let draft =
            is_roomy.then(|| Entry::draft(key.bytes, pieces, capacity, number, expiry, access)).flatten();
        if draft.is_none() {
            store.drafts.close(number);
        }
        draft
    }

    /// Returns the value as a draft, if it is long enough and there is room for that: for callers that read a
    /// part of it, and probably another one soon. Otherwise the value as it is.
    ///
    /// # Errors
    /// Errors of [`Session::read`].
    pub fn as_draft(&mut self, database: usize, value: Value) -> Result<Value, StoreError> {
        if value.len() < LEAST_READ || value.plain().is_some() || has_metadata(&value) {
            return Ok(value);
        }
        let mut bytes = Vec::new();
        self.read(&value, &mut bytes)?;
        let key = self.key(database, value.key());
        let draft = self.open_draft(key, Some(&value), &[&bytes], bytes.len());
        let Some(draft) = draft else { return Ok(value) };
        let read = Value(draft.clone());
        if !self.exchange(key, &value, draft)
            && let Some(number) = read.0.borrow().draft_number()
        {
            self.store.drafts.close(number);
        }
        Ok(read)
    }

    /// Replaces a value that nobody else holds by an entry with the same value, encoded differently; returns
    /// whether it could.
    fn exchange(&self, key: Key<'_>, value: &Value, entry: Entry) -> bool {
        /// Number of handles of the caller.
        const OWN: u32 = 1;
        let mut shard = self.store.keyspace.lock(key.shard());
        let presence = shard.locate(key, self.now());
        let Presence::Live(index) = presence else { return false };
        let current = shard.entry(key.database, index);
        if !value.0.same(current) {
            return false;
        }
        let entry = as_used(entry, current);
        let exchanged = shard.exchange(key.database, index, OWN, entry);
        drop(shard);
        exchanged.is_ok()
    }

    /// Encodes drafts that nobody has used for a while, and takes those off the list that are gone.
    pub(crate) fn close_drafts(&mut self) {
        let store = self.store.clone();
        for draft in store.drafts.listed() {
            let key = store.keyspace.key(draft.database, &draft.key);
            let mut shard = store.keyspace.lock(key.shard());
            let entry = match shard.locate(key, self.now()) {
                Presence::Live(index) => Some(shard.entry(draft.database, index)),
                Presence::Deleted(_) | Presence::Unknown => None,
            };
            let entry = entry.filter(|entry| entry.draft_number() == Some(draft.number));
            let is_in_use = entry.is_some_and(|entry| {
                entry.is_held() || entry.access().idle_seconds(self.now()) < drafts::IDLE_SECONDS
            });
            let value = entry.filter(|_| !is_in_use).map(|entry| Value(entry.to_owned()));
            drop(shard);
            let is_over = match value {
                Some(value) => self.close_draft(key, &value),
                None => !is_in_use,
            };
            if is_over {
                store.drafts.close(draft.number);
            }
        }
    }

    /// Encodes a draft as a new value would be; returns whether it could.
    fn close_draft(&mut self, key: Key<'_>, value: &Value) -> bool {
        let Some(bytes) = value.plain() else { return false };
        let entry = self.encode_again(value.key(), bytes, value.0.borrow().properties());
        self.exchange(key, value, entry)
    }
}
