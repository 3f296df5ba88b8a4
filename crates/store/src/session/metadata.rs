//! Writes with what clients keep beside a value: flags and versions, as those of memcached use them.
//!
//! A value gets a version when one is asked for ([`Session::alter`] gives it), so that others pay nothing for
//! it. A write that names none takes the version away; the flags of a value stay when a part of it is changed,
//! and go when it is replaced.

use super::commit::Precondition;
use super::write::change_expiry;
use super::{Condition, Expiry, KEPT_BUFFER, Session, SetOutcome, StoreError, Value};
use crate::disk::Room;
use crate::entry::Metadata;
use crate::eviction::EvictionPolicy;
use crate::key::Key;
use crate::settings::Settings;
use crate::values::Kind;

/// What a change leaves beside a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Expiry of the key.
    pub expiry: Expiry,
    /// Flags, version and marks.
    pub metadata: Metadata,
}

impl Kept {
    /// Keeps an expiry, and nothing else.
    pub fn until(expiry: Expiry) -> Kept {
        Kept { expiry, metadata: Metadata::default() }
    }

    /// Keeps what a value keeps of which a part is changed: its expiry and its flags.
    pub(super) fn of_changed(before: Option<&Value>) -> Kept {
        let metadata = before.map_or(Metadata::default(), |value| value.metadata().of_another_state());
        Kept { expiry: Expiry::Keep, metadata }
    }
}

/// Result of [`Session::delete_version`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// There is no such key.
    Missing,
    /// The key has another version.
    Refused,
    /// The key is removed.
    Removed,
}

impl Session {
    /// Returns a version that no value had before.
    pub fn new_version(&self) -> u64 {
        self.store.versions.give()
    }

    /// Like [`Session::set`], with metadata for the value, and returns the previous value where the condition needs it.
    ///
    /// # Errors
    /// Errors of [`Session::set`], and [`StoreError::WrongType`] if the condition is on an existing value and that is
    /// not a string.
    pub fn set_with(
        &mut self,
        database: usize,
        key: &[u8],
        value: &[u8],
        kept: Kept,
        condition: Condition<'_>,
    ) -> Result<SetOutcome, StoreError> {
        let kind = match condition {
            Condition::Always | Condition::IfAbsent => None,
            Condition::IfPresent | Condition::IfEqual(_) | Condition::IfVersion(_) => Some(Kind::String),
        };
        self.set_if(self.key(database, key), value, kept, condition, kind)
    }

    /// Looks a string up for reading, and changes its expiry and metadata at the same instant: `alter` sees the
    /// value and what is kept beside it. Nothing is decoded, and to those who watch the key only another expiry is
    /// a change.
    ///
    /// # Errors
    /// Errors of [`Session::get`], and reasons to refuse a write.
    pub fn alter<R>(
        &mut self,
        database: usize,
        key: &[u8],
        alter: impl FnOnce(&Value, &mut Kept) -> R,
    ) -> Result<Option<(Value, R)>, StoreError> {
        self.follow_settings();
        self.wait_for_the_disk()?;
        let now = self.now();
        let mut place = self.enter_anywhere(self.key(database, key))?;
        let Some(current) = place.entry() else {
            self.count_lookup(database, key, false);
            return Ok(None);
        };
        if current.kind() != Kind::String {
            return Err(StoreError::WrongType);
        }
        let value = self.used(current, now);
        let before = Kept { expiry: Expiry::Keep, metadata: value.metadata() };
        let mut kept = before;
        let result = alter(&value, &mut kept);
        if kept != before {
            self.refuse_if_disk_lacks(Room::Little)?;
            self.refuse_growth(before.metadata, kept.metadata)?;
            if kept.metadata != before.metadata {
                place.set_metadata(kept.metadata);
            }
            self.refuse_expiry(value.expiry(), kept.expiry, now)?;
            change_expiry(&mut place, kept.expiry, now);
        }
        let left = place.leave();
        self.finish(left);
        self.count_lookup(database, key, true);
        Ok(Some((value, result)))
    }

    /// Refuses metadata for a value that has none, if memory is full and nothing is evicted for it.
    fn refuse_growth(&self, before: Metadata, after: Metadata) -> Result<(), StoreError> {
        let Settings { max_memory, eviction, .. } = self.settings;
        let grows = before == Metadata::default() && after != before;
        let is_bounded =
            max_memory > 0 && eviction == EvictionPolicy::NoEviction && self.store.disk().is_none();
        let is_full = || self.store.used_memory() + size_of::<Metadata>() as u64 > max_memory;
        if grows && is_bounded && is_full() { Err(self.out_of_memory()) } else { Ok(()) }
    }

    /// Changes a string by what it was and by what is kept beside it: `edit` sees the current value and its bytes, if
    /// there is one, fills the new bytes, and says what is kept beside them. It runs again if the key changes
    /// meanwhile, but only a few times: then the key is held.
    ///
    /// # Errors
    /// Those of `edit`, and as [`Session::set`]; the key is then as before.
    pub fn update_with<R, E: From<StoreError>>(
        &mut self,
        database: usize,
        key: &[u8],
        mut edit: impl FnMut(Option<(&Value, &[u8])>, &mut Vec<u8>) -> Result<(Kept, R), E>,
    ) -> Result<R, E> {
        let mut buffers = (std::mem::take(&mut self.current), std::mem::take(&mut self.edited));
        let key = self.key(database, key);
        let outcome = self.persistently(key, |session| session.try_update(key, &mut buffers, &mut edit));
        let (mut current, mut edited) = buffers;
        current.clear();
        current.shrink_to(KEPT_BUFFER);
        edited.shrink_to(KEPT_BUFFER);
        (self.current, self.edited) = (current, edited);
        self.note_buffers();
        outcome
    }

    /// Changes a value by what it was, unless the key changes meanwhile; then nothing.
    fn try_update<R, E: From<StoreError>>(
        &mut self,
        key: Key<'_>,
        (current, edited): &mut (Vec<u8>, Vec<u8>),
        edit: &mut impl FnMut(Option<(&Value, &[u8])>, &mut Vec<u8>) -> Result<(Kept, R), E>,
    ) -> Result<Option<R>, E> {
        let before = self.peek_at(key)?;
        edited.clear();
        let (kept, result) = match &before {
            Some(value) => {
                value.expect_kind(Kind::String)?;
                self.read_into(value, current)?;
                edit(Some((value, value.plain().unwrap_or(current))), edited)?
            }
            None => edit(None, edited)?,
        };
        let unchanged = Precondition::Unchanged(before.as_ref());
        let is_written = self.write_value(key, edited, kept, unchanged)?.is_written;
        Ok(is_written.then_some(result))
    }

    /// Removes a string, if it has this version.
    ///
    /// # Errors
    /// Errors of [`Session::get`].
    pub fn delete_version(
        &mut self,
        database: usize,
        key: &[u8],
        version: u64,
    ) -> Result<DeleteOutcome, StoreError> {
        self.wait_for_the_disk()?;
        let mut place = self.enter_anywhere(self.key(database, key))?;
        let Some(current) = place.entry() else { return Ok(DeleteOutcome::Missing) };
        if !Precondition::version(version).holds(Some(current))? {
            return Ok(DeleteOutcome::Refused);
        }
        place.remove();
        let left = place.leave();
        self.finish(left);
        Ok(DeleteOutcome::Removed)
    }
}
