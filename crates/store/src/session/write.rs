//! Writing strings, and removing keys or letting them expire. How a write goes is for `commit` to know.

use super::commit::{Committed, KeySlot, Precondition, Write};
use super::{
    Condition, ExpireConditions, ExpireOutcome, Expiry, KEPT_BUFFER, Kept, ManyCondition, Session,
    SetOutcome, StoreError, Value,
};
use crate::disk::Room;
use crate::entry::{Access, Entry, EntryRef, Properties};
use crate::key::Key;
use crate::store::Flushed;
use crate::values::Kind;

/// Values from this length on are asked memory for before they are made, in bytes.
const LARGE: usize = 1 << 20;

/// Refuses a large value that the system has no memory for, before entry and record of it are made, which must succeed.
fn must_be_allocatable(len: usize) -> Result<(), StoreError> {
    let has_room = len < LARGE || Vec::<u8>::new().try_reserve_exact(len).is_ok();
    if has_room { Ok(()) } else { Err(StoreError::NoMemory { len }) }
}

impl Session {
    /// Writes a value, if the condition holds; returns whether it did.
    ///
    /// # Errors
    /// [`StoreError::KeyTooLong`], [`StoreError::ValueTooLong`] and [`StoreError::OutOfMemory`]; the key is
    /// as before.
    pub fn set(
        &mut self,
        database: usize,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
        condition: Condition<'_>,
    ) -> Result<bool, StoreError> {
        Ok(self.set_if(self.key(database, key), value, Kept::until(expiry), condition, None)?.written)
    }

    /// Like [`Session::set`], and returns the previous value, which [`Session::set`] does not have to know.
    ///
    /// # Errors
    /// Errors of [`Session::set`], and [`StoreError::WrongType`] if the previous value is not a string.
    pub fn get_and_set(
        &mut self,
        database: usize,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
        condition: Condition<'_>,
    ) -> Result<SetOutcome, StoreError> {
        self.set_if(self.key(database, key), value, Kept::until(expiry), condition, Some(Kind::String))
    }

    /// Writes a value, if the condition holds and an existing one is of this kind.
    pub(super) fn set_if(
        &mut self,
        key: Key<'_>,
        value: &[u8],
        kept: Kept,
        condition: Condition<'_>,
        kind: Option<Kind>,
    ) -> Result<SetOutcome, StoreError> {
        let exists = |wanted| Precondition::Exists { wanted, kind, version: None };
        let precondition = match (condition, kind, kept.expiry) {
            (Condition::Always, None, Expiry::Never | Expiry::At(_)) => Precondition::Nothing,
            (Condition::Always, ..) => exists(None),
            (Condition::IfAbsent, ..) => exists(Some(false)),
            (Condition::IfPresent, ..) => exists(Some(true)),
            (Condition::IfVersion(version), ..) => Precondition::version(version),
            (Condition::IfEqual(expected), ..) => return self.set_if_equal(key, value, kept, expected),
        };
        let Committed { is_written, previous } = self.write_value(key, value, kept, precondition)?;
        Ok(SetOutcome { written: is_written, previous })
    }

    /// A comparison decodes, so it happens before the lock; the write then stands only if the key is unchanged.
    fn set_if_equal(
        &mut self,
        key: Key<'_>,
        value: &[u8],
        kept: Kept,
        expected: &[u8],
    ) -> Result<SetOutcome, StoreError> {
        loop {
            let previous = match self.peek_at(key)? {
                Some(current) if self.equals(&current, expected)? => Some(current),
                previous => return Ok(SetOutcome { written: false, previous }),
            };
            let unchanged = Precondition::Unchanged(previous.as_ref());
            if self.write_value(key, value, kept, unchanged)?.is_written {
                return Ok(SetOutcome { written: true, previous });
            }
        }
    }

    /// Writes a value, encoded, if the precondition holds.
    pub(super) fn write_value(
        &mut self,
        key: Key<'_>,
        value: &[u8],
        kept: Kept,
        precondition: Precondition<'_>,
    ) -> Result<Committed, StoreError> {
        let write = Write { precondition, expiry: kept.expiry, freed: 0 };
        self.commit(key, write, |session| session.make_entry(key.bytes, value, kept))
    }

    /// Writes several values at one instant, if the condition holds; returns whether it did. A key that is
    /// named twice keeps its last value.
    ///
    /// # Errors
    /// Errors of [`Session::set`]; then none is written.
    pub fn set_many<'p>(
        &mut self,
        database: usize,
        pairs: impl Iterator<Item = (&'p [u8], &'p [u8])> + Clone,
        expiry: Expiry,
        condition: ManyCondition,
    ) -> Result<bool, StoreError> {
        // Once for all values: a dictionary is kept as long as the set that has it is held.
        self.follow_settings();
        let keys: Vec<Key<'_>> = pairs.clone().map(|(key, _)| self.key(database, key)).collect();
        // Before anything is encoded, and evicted for it.
        if !self.holds(&keys, condition)? {
            return Ok(false);
        }
        let mut entries = Vec::with_capacity(keys.len());
        let mut need = 0;
        for (key, (_, value)) in keys.into_iter().zip(pairs) {
            self.begin(key)?;
            let entry = self.make_entry(key.bytes, value, Kept::until(expiry))?;
            need += entry.borrow().allocation_size() as u64;
            entries.push((key, entry));
        }
        if !self.has_room_for(need)? {
            return Err(self.out_of_memory());
        }
        self.refuse_if_disk_does()?;
        self.refuse_if_too_large(need as usize)?;
        if condition != ManyCondition::Always && self.store.disk().is_some() {
            // Fetched before the shards are held.
            for (key, _) in &entries {
                self.peek_at(*key)?;
            }
        }
        let store = self.store.clone();
        let _group = store.disk().map(|disk| disk.queue().group());
        let held = store.keyspace.hold(entries.iter().map(|(key, _)| key.hash));
        let (written, replaced) = self.holding(|session| session.put_many(entries, expiry, condition))?;
        drop(held);
        drop(replaced);
        if written {
            self.wrote();
        }
        Ok(written)
    }

    /// Writes the entries; returns the replaced ones, to be freed when the shards are released.
    fn put_many(
        &mut self,
        entries: Vec<(Key<'_>, Entry)>,
        expiry: Expiry,
        condition: ManyCondition,
    ) -> Result<(bool, Vec<Entry>), StoreError> {
        let keys: Vec<Key<'_>> = entries.iter().map(|(key, _)| *key).collect();
        if !self.holds(&keys, condition)? {
            return Ok((false, Vec::new()));
        }
        let mut replaced = Vec::new();
        for (key, entry) in entries {
            let mut place = self.enter(key, Precondition::Nothing, expiry)?;
            self.put(&mut place, entry, expiry);
            replaced.extend(place.leave().replaced);
        }
        Ok((true, replaced))
    }

    /// Returns whether the condition holds for the keys at this moment.
    fn holds(&mut self, keys: &[Key<'_>], condition: ManyCondition) -> Result<bool, StoreError> {
        let expected = match condition {
            ManyCondition::Always => return Ok(true),
            ManyCondition::IfAllAbsent => false,
            ManyCondition::IfAllPresent => true,
        };
        for key in keys {
            if self.peek_at(*key)?.is_some() != expected {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Changes a value by what it was: `edit` sees the current value, if there is one, and fills the new one. It runs
    /// again if the key changes meanwhile, but only a few times: then the key is held. The expiry stays.
    ///
    /// # Errors
    /// Those of `edit`, and as [`Session::set`]; the key is then as before.
    pub fn update<R, E: From<StoreError>>(
        &mut self,
        database: usize,
        key: &[u8],
        mut edit: impl FnMut(Option<&[u8]>, &mut Vec<u8>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.update_with(database, key, |current, edited| {
            let result = edit(current.map(|(_, bytes)| bytes), edited)?;
            Ok((Kept::of_changed(current.map(|(value, _)| value)), result))
        })
    }

    /// Removes a string and returns its value.
    ///
    /// # Errors
    /// Errors of [`Session::get`]; a damaged value is removed all the same.
    pub fn take(&mut self, database: usize, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.remove_if(self.key(database, key), Some(Kind::String))
    }

    /// Removes a key and returns its value, of any kind.
    ///
    /// # Errors
    /// Errors of [`Session::touch`]; a damaged value is removed all the same.
    pub fn remove(&mut self, database: usize, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.remove_if(self.key(database, key), None)
    }

    /// Removes a key, if an existing value is of this kind.
    fn remove_if(&mut self, key: Key<'_>, kind: Option<Kind>) -> Result<Option<Value>, StoreError> {
        self.wait_for_the_disk()?;
        let (removed, left) = match self.enter_anywhere(key) {
            Ok(mut place) => {
                let Some(current) = place.entry() else { return Ok(None) };
                if kind.is_some_and(|kind| current.kind() != kind) {
                    return Err(StoreError::WrongType);
                }
                place.remove();
                let mut left = place.leave();
                (Ok(left.replaced.take().map(Value)), left)
            }
            Err(error @ (StoreError::Damaged { .. } | StoreError::UnknownKind { .. })) => {
                let mut place = self.enter_in_memory(key);
                place.remove();
                (Err(error), place.leave())
            }
            Err(error) => return Err(error),
        };
        self.finish(left);
        removed
    }

    /// Removes a key, whatever state its value is in; returns whether there was one.
    ///
    /// # Errors
    /// [`StoreError::Disk`] if the disk cannot be read.
    pub fn delete(&mut self, database: usize, key: &[u8]) -> Result<bool, StoreError> {
        match self.remove(database, key) {
            Ok(removed) => Ok(removed.is_some()),
            Err(StoreError::Damaged { .. } | StoreError::UnknownKind { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Looks a key up for reading and changes its expiry at the same instant.
    ///
    /// # Errors
    /// Errors of [`Session::get`].
    pub fn get_and_expire(
        &mut self,
        database: usize,
        key: &[u8],
        expiry: Expiry,
    ) -> Result<Option<Value>, StoreError> {
        self.follow_settings();
        if expiry != Expiry::Keep {
            self.wait_for_the_disk()?;
        }
        let now = self.now();
        let mut place = self.enter_anywhere(self.key(database, key))?;
        let Some(current) = place.entry() else {
            self.count_lookup(database, key, false);
            return Ok(None);
        };
        if current.kind() != Kind::String {
            return Err(StoreError::WrongType);
        }
        self.refuse_expiry(current.expiry(), expiry, now)?;
        let value = self.used(current, now);
        change_expiry(&mut place, expiry, now);
        let left = place.leave();
        self.finish(left);
        self.count_lookup(database, key, true);
        Ok(Some(value))
    }

    /// Changes when a key expires, if the conditions hold.
    ///
    /// # Errors
    /// Errors of [`Session::get`].
    pub fn expire(
        &mut self,
        database: usize,
        key: &[u8],
        expiry: Expiry,
        conditions: ExpireConditions,
    ) -> Result<ExpireOutcome, StoreError> {
        self.wait_for_the_disk()?;
        let mut place = self.enter_anywhere(self.key(database, key))?;
        let Some(current) = place.entry().map(EntryRef::expiry) else { return Ok(ExpireOutcome::Missing) };
        if !conditions.hold(current, expiry) {
            return Ok(ExpireOutcome::Refused);
        }
        self.refuse_expiry(current, expiry, self.now())?;
        let outcome = change_expiry(&mut place, expiry, self.now());
        let left = place.leave();
        self.finish(left);
        Ok(outcome)
    }

    /// Encodes a value with the settings and dictionaries that this session knows of.
    pub(super) fn make_entry(&mut self, key: &[u8], value: &[u8], kept: Kept) -> Result<Entry, StoreError> {
        let limit = self.settings.max_value_len;
        if value.len() > limit {
            return Err(StoreError::ValueTooLong { len: value.len(), limit });
        }
        must_be_allocatable(value.len())?;
        let expiry = match kept.expiry {
            Expiry::At(at) => Some(at),
            Expiry::Never | Expiry::Keep => None,
        };
        let properties = Properties { expiry, access: Access::written(self.now()), metadata: kept.metadata };
        self.show_sample(key, value);
        Ok(self.encode(key, value, properties))
    }

    /// Refuses to give an expiry to an entry that has none, for which the disk has no room.
    pub(super) fn refuse_expiry(
        &self,
        current: Option<u64>,
        expiry: Expiry,
        now: u64,
    ) -> Result<(), StoreError> {
        match (current, expiry) {
            (None, Expiry::At(at)) if at > now => self.refuse_if_disk_lacks(Room::Little),
            _ => Ok(()),
        }
    }

    /// Empties one database, or all of them, as [`Store::flush`](crate::Store::flush) does.
    pub fn flush(&mut self, database: Option<usize>) -> Flushed {
        let flushed = self.store.flush(database);
        self.wrote();
        flushed
    }

    /// Exchanges two databases, as [`Store::swap`](crate::Store::swap) does.
    pub fn swap(&mut self, first: usize, second: usize) {
        self.store.swap(first, second);
        self.wrote();
    }

    fn equals(&mut self, value: &Value, expected: &[u8]) -> Result<bool, StoreError> {
        value.expect_kind(Kind::String)?;
        if value.len() != expected.len() {
            return Ok(false);
        }
        let mut current = std::mem::take(&mut self.current);
        let result = self.read_into(value, &mut current);
        let equal = value.plain().unwrap_or(&current) == expected;
        current.clear();
        current.shrink_to(KEPT_BUFFER);
        self.current = current;
        self.note_buffers();
        result.map(|()| equal)
    }
}

/// Changes a live entry's expiry; one in the past removes it.
pub(super) fn change_expiry(place: &mut KeySlot<'_, '_>, expiry: Expiry, now: u64) -> ExpireOutcome {
    match expiry {
        Expiry::Keep => {}
        // Nothing changes, so nothing is reported.
        Expiry::Never if place.entry().and_then(EntryRef::expiry).is_none() => {}
        Expiry::Never => place.set_expiry(None),
        Expiry::At(at) if at <= now => {
            place.expire_at_once();
            return ExpireOutcome::Removed;
        }
        Expiry::At(at) => place.set_expiry(Some(at)),
    }
    ExpireOutcome::Changed
}
