//! Writing: values are encoded before a shard is locked, and conditions are checked under the lock.

use std::time::Duration;

use event_listener::Listener;

use super::{
    Condition, ExpireConditions, ExpireOutcome, Expiry, KEPT_BUFFER, ManyCondition, Session, SetOutcome,
    StoreError, Value, bump,
};
use crate::memory::entry::{Access, Entry, MAX_KEY_LEN};
use crate::memory::keyspace::Place;
use crate::memory::shard::{Presence, Shard};
use crate::store::{Flushed, Settings};

/// How often a change is tried that others may come before, until they are made to wait.
const TRIES: usize = 4;
/// How long a writer waits for the disk before it looks again whether that works.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

impl Session {
    /// Writes a value, if the condition holds; says whether it did.
    ///
    /// # Errors
    /// [`StoreError::KeyTooLong`], [`StoreError::ValueTooLong`] and [`StoreError::OutOfMemory`]; the key is as before.
    pub fn set(
        &mut self,
        database: usize,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
        condition: Condition<'_>,
    ) -> Result<bool, StoreError> {
        if condition != Condition::Always || expiry == Expiry::Keep {
            return Ok(self.set_if(database, key, value, expiry, condition, false)?.written);
        }
        self.refuse_if_unwritable(database, key)?;
        let entry = self.make_entry(key, value, expiry)?;
        let roomy = self.make_room(&entry)?;
        let now = self.now();
        let place = self.store.keyspace.place(key);
        let mut shard = self.store.keyspace.lock(place.shard);
        let presence = shard.locate(database, place.tag, key, now);
        let size = presence.live().map(|index| shard.entry(database, index).allocation_size());
        self.admit(roomy, &entry, size)?;
        let before = self.put(&mut shard, database, place, presence, entry, expiry);
        drop(shard);
        drop(before);
        self.wrote();
        Ok(true)
    }

    /// As [`Session::set`], and gives what the key was before. [`Session::set`] does not have to know it.
    ///
    /// # Errors
    /// As [`Session::set`], and [`StoreError::WrongType`] if it was a list.
    pub fn get_and_set(
        &mut self,
        database: usize,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
        condition: Condition<'_>,
    ) -> Result<SetOutcome, StoreError> {
        self.set_if(database, key, value, expiry, condition, true)
    }

    /// `is_string` says that it must be a string if there is one.
    fn set_if(
        &mut self,
        database: usize,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
        condition: Condition<'_>,
        is_string: bool,
    ) -> Result<SetOutcome, StoreError> {
        let place = self.store.keyspace.place(key);
        if let Some(refused) = self.refused(database, key, condition, is_string)? {
            return Ok(refused);
        }
        loop {
            // A comparison decodes, so it happens before the lock; the write then stands only if the key is unchanged.
            let compared = match condition {
                Condition::IfEqual(expected) => match self.peek(database, key)? {
                    Some(current) if self.equals(&current, expected)? => Some(current),
                    previous => return Ok(SetOutcome { written: false, previous }),
                },
                _ => None,
            };
            let entry = self.make_entry(key, value, expiry)?;
            let roomy = self.make_room(&entry)?;
            let (mut shard, presence) = self.resolve(database, place, key)?;
            let current = presence.live().map(|index| shard.entry(database, index).to_owned());
            if is_string && current.as_ref().is_some_and(|current| current.borrow().list().is_some()) {
                return Err(StoreError::WrongType);
            }
            if let Some(compared) = compared
                && !current.as_ref().is_some_and(|current| current.same(compared.0.borrow()))
            {
                continue;
            }
            let allowed = match condition {
                Condition::Always | Condition::IfEqual(_) => true,
                Condition::IfAbsent => current.is_none(),
                Condition::IfPresent => current.is_some(),
            };
            if allowed {
                let size = current.as_ref().map(|current| current.borrow().allocation_size());
                self.admit(roomy, &entry, size)?;
                self.put(&mut shard, database, place, presence, entry, expiry);
            }
            drop(shard);
            if allowed {
                self.wrote();
            }
            return Ok(SetOutcome { written: allowed, previous: current.map(Value) });
        }
    }

    /// What became of a write that depends on whether its key is there, if it is refused for that: found out before the
    /// value is encoded and before anything is evicted for it. The condition is looked at again under the lock.
    fn refused(
        &mut self,
        database: usize,
        key: &[u8],
        condition: Condition<'_>,
        is_string: bool,
    ) -> Result<Option<SetOutcome>, StoreError> {
        let expected = match condition {
            Condition::Always | Condition::IfEqual(_) => return Ok(None),
            Condition::IfAbsent => false,
            Condition::IfPresent => true,
        };
        self.follow_settings();
        let previous = self.peek(database, key)?;
        if is_string && previous.as_ref().is_some_and(Value::is_list) {
            return Err(StoreError::WrongType);
        }
        Ok((previous.is_some() != expected).then_some(SetOutcome { written: false, previous }))
    }

    /// Writes several values at one instant, if the condition holds; says whether it did. A key that is named twice
    /// keeps its last value.
    ///
    /// # Errors
    /// As [`Session::set`]; then none is written.
    pub fn set_many<'p>(
        &mut self,
        database: usize,
        pairs: impl Iterator<Item = (&'p [u8], &'p [u8])> + Clone,
        expiry: Expiry,
        condition: ManyCondition,
    ) -> Result<bool, StoreError> {
        let mut entries = Vec::new();
        let mut need = 0;
        // Once for all: a dictionary is kept as long as somebody has the list with which it is used.
        self.follow_settings();
        // Before anything is encoded, and evicted for it.
        if !self.holds(database, pairs.clone().map(|(key, _)| key), condition)? {
            return Ok(false);
        }
        for (key, value) in pairs {
            self.refuse_if_unwritable(database, key)?;
            let entry = self.make_entry_as_known(key, value, expiry)?;
            need += entry.borrow().allocation_size() as u64;
            entries.push((self.store.keyspace.place(key), entry));
        }
        if !self.has_room_for(need)? {
            return Err(self.out_of_memory());
        }
        self.refuse_if_disk_does()?;
        self.refuse_if_too_large(need as usize)?;
        if condition != ManyCondition::Always && self.store.disk().is_some() {
            // Fetched before the shards are held.
            for (_, entry) in &entries {
                self.peek(database, entry.borrow().key())?;
            }
        }
        let store = self.store.clone();
        let _group = store.disk().map(|disk| disk.queue().group());
        let held = store.keyspace.hold(entries.iter().map(|(place, _)| *place));
        let (written, replaced) =
            self.holding(|session| session.put_many(database, entries, expiry, condition))?;
        drop(held);
        drop(replaced);
        if written {
            self.wrote();
        }
        Ok(written)
    }

    /// Gives what was replaced, to be freed when the shards are let go.
    fn put_many(
        &mut self,
        database: usize,
        entries: Vec<(Place, Entry)>,
        expiry: Expiry,
        condition: ManyCondition,
    ) -> Result<(bool, Vec<Entry>), StoreError> {
        if !self.holds(database, entries.iter().map(|(_, entry)| entry.borrow().key()), condition)? {
            return Ok((false, Vec::new()));
        }
        let now = self.now();
        let mut replaced = Vec::new();
        for (place, entry) in entries {
            let (mut shard, presence) = match expiry {
                Expiry::Keep => self.resolve(database, place, entry.borrow().key())?,
                Expiry::Never | Expiry::At(_) => {
                    let mut shard = self.store.keyspace.lock(place.shard);
                    let presence = shard.locate(database, place.tag, entry.borrow().key(), now);
                    (shard, presence)
                }
            };
            replaced.extend(self.put(&mut shard, database, place, presence, entry, expiry));
        }
        Ok((true, replaced))
    }

    /// Whether the condition holds for the keys at this moment.
    fn holds<'k>(
        &mut self,
        database: usize,
        keys: impl Iterator<Item = &'k [u8]>,
        condition: ManyCondition,
    ) -> Result<bool, StoreError> {
        let expected = match condition {
            ManyCondition::Always => return Ok(true),
            ManyCondition::IfAllAbsent => false,
            ManyCondition::IfAllPresent => true,
        };
        for key in keys {
            if self.peek(database, key)?.is_some() != expected {
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
        let mut buffers = (std::mem::take(&mut self.current), std::mem::take(&mut self.edited));
        let mut outcome = Ok(None);
        for _ in 0..TRIES {
            outcome = self.try_update(database, key, &mut buffers, &mut edit);
            if !matches!(outcome, Ok(None)) {
                break;
            }
        }
        if matches!(outcome, Ok(None)) {
            let store = self.store.clone();
            let _held = store.keyspace.hold(std::iter::once(store.keyspace.place(key)));
            outcome = self.holding(|session| session.try_update(database, key, &mut buffers, &mut edit));
        }
        let (mut current, mut edited) = buffers;
        current.clear();
        current.shrink_to(KEPT_BUFFER);
        edited.shrink_to(KEPT_BUFFER);
        (self.current, self.edited) = (current, edited);
        outcome.map(|result| result.expect("nobody else changes a key that is held"))
    }

    /// Changes a value by what it was, unless the key changes meanwhile; then nothing.
    fn try_update<R, E: From<StoreError>>(
        &mut self,
        database: usize,
        key: &[u8],
        (current, edited): &mut (Vec<u8>, Vec<u8>),
        edit: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let before = self.peek(database, key)?;
        edited.clear();
        let result = match &before {
            Some(value) if value.is_list() => return Err(StoreError::WrongType.into()),
            Some(value) => {
                self.read_into(value, current)?;
                edit(Some(value.record().as_identity().unwrap_or(current)), edited)?
            }
            None => edit(None, edited)?,
        };
        let is_written = self.replace(database, key, before.as_ref(), edited)?;
        Ok(is_written.then_some(result))
    }

    /// Removes a string and gives what it was.
    ///
    /// # Errors
    /// As [`Session::get`]; a damaged value is removed all the same.
    pub fn take(&mut self, database: usize, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.remove_if(
            database,
            key,
            |value| if value.is_list() { Err(StoreError::WrongType) } else { Ok(()) },
        )
    }

    /// Removes a key and gives what it was, whatever kind of value that is.
    ///
    /// # Errors
    /// As [`Session::touch`]; a damaged value is removed all the same.
    pub fn remove(&mut self, database: usize, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.remove_if(database, key, |_| Ok(()))
    }

    fn remove_if(
        &mut self,
        database: usize,
        key: &[u8],
        check: impl FnOnce(&Value) -> Result<(), StoreError>,
    ) -> Result<Option<Value>, StoreError> {
        self.wait_for_the_disk()?;
        let place = self.store.keyspace.place(key);
        let removed = self.resolve(database, place, key).and_then(|(mut shard, presence)| {
            let Some(index) = presence.live() else { return Ok(None) };
            check(&Value(shard.entry(database, index).to_owned()))?;
            Ok(Some(Value(shard.remove(database, index))))
        });
        match &removed {
            Ok(Some(_)) => self.wrote(),
            Err(StoreError::Damaged { .. }) => {
                self.store.keyspace.lock(place.shard).bury(database, place.tag, key);
                self.wrote();
            }
            Ok(None) | Err(_) => {}
        }
        removed
    }

    /// Removes a key, whatever state its value is in; says whether there was one.
    ///
    /// # Errors
    /// [`StoreError::Disk`] if the disk cannot be read.
    pub fn delete(&mut self, database: usize, key: &[u8]) -> Result<bool, StoreError> {
        match self.remove(database, key) {
            Ok(removed) => Ok(removed.is_some()),
            Err(StoreError::Damaged { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Looks a key up for reading and changes its expiry at the same instant.
    ///
    /// # Errors
    /// As [`Session::get`].
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
        let place = self.store.keyspace.place(key);
        let (mut shard, presence) = self.resolve(database, place, key)?;
        if presence.live().is_some_and(|index| shard.entry(database, index).list().is_some()) {
            return Err(StoreError::WrongType);
        }
        let value = presence.live().map(|index| {
            let value = self.used(shard.entry(database, index), now);
            change_expiry(&mut shard, database, index, expiry, now);
            value
        });
        drop(shard);
        self.count_lookup(value.is_some());
        if value.is_some() && expiry != Expiry::Keep {
            self.wrote();
        }
        Ok(value)
    }

    /// Changes when a key expires, if the conditions hold.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn expire(
        &mut self,
        database: usize,
        key: &[u8],
        expiry: Expiry,
        conditions: ExpireConditions,
    ) -> Result<ExpireOutcome, StoreError> {
        self.wait_for_the_disk()?;
        let place = self.store.keyspace.place(key);
        let (mut shard, presence) = self.resolve(database, place, key)?;
        let Some(index) = presence.live() else { return Ok(ExpireOutcome::Missing) };
        let current = shard.entry(database, index).expiry();
        if !conditions.hold(current, expiry) {
            return Ok(ExpireOutcome::Refused);
        }
        let outcome = change_expiry(&mut shard, database, index, expiry, self.now());
        drop(shard);
        self.wrote();
        Ok(outcome)
    }

    fn make_entry(&mut self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<Entry, StoreError> {
        self.follow_settings();
        self.make_entry_as_known(key, value, expiry)
    }

    /// With the settings and dictionaries that this session knows of.
    fn make_entry_as_known(&mut self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<Entry, StoreError> {
        self.wait_for_the_disk()?;
        self.check_key(key)?;
        let limit = self.settings.max_value_len;
        if value.len() > limit {
            return Err(StoreError::ValueTooLong { len: value.len(), limit });
        }
        let at = match expiry {
            Expiry::At(at) => Some(at),
            Expiry::Never | Expiry::Keep => None,
        };
        let access = Access::written(self.now());
        self.show_sample(key, value);
        Ok(self.encode(key, value, at, access))
    }

    pub(super) fn check_key(&self, key: &[u8]) -> Result<(), StoreError> {
        let limit = self.settings.max_key_len.min(MAX_KEY_LEN);
        if key.len() > limit {
            return Err(StoreError::KeyTooLong { len: key.len(), limit });
        }
        Ok(())
    }

    pub(super) fn make_room(&mut self, entry: &Entry) -> Result<bool, StoreError> {
        self.has_room_for(entry.borrow().allocation_size() as u64)
    }

    pub(super) fn has_room_for(&mut self, need: u64) -> Result<bool, StoreError> {
        let Settings { max_memory, eviction, .. } = self.settings;
        let random = || self.random.u64(..);
        let roomy = max_memory == 0
            || self.store.keyspace.make_room(eviction, max_memory, need, self.is_holding, random);
        // What is on its way to the disk cannot leave memory yet; how much that can be is bounded by the queue.
        Ok(roomy || self.store.disk().is_some())
    }

    /// Without room, only a write that does not make its key larger is let in, and none once the budget is exceeded.
    pub(super) fn admit(
        &self,
        roomy: bool,
        entry: &Entry,
        current_size: Option<usize>,
    ) -> Result<(), StoreError> {
        self.refuse_if_disk_does()?;
        self.refuse_if_too_large(entry.borrow().allocation_size())?;
        let not_larger = || current_size.is_some_and(|size| entry.borrow().allocation_size() <= size);
        if roomy || self.store.used_memory() <= self.settings.max_memory && not_larger() {
            return Ok(());
        }
        Err(self.out_of_memory())
    }

    /// Refuses a key whose rows on disk are damaged so that they cannot be replaced.
    fn refuse_if_unwritable(&self, database: usize, key: &[u8]) -> Result<(), StoreError> {
        if self.store.is_unwritable(database, key) {
            let reason =
                "the key's place on disk is on a damaged page; stop the server and run snugly repair";
            return Err(StoreError::Disk { reason: reason.to_owned() });
        }
        Ok(())
    }

    pub(super) fn refuse_if_disk_does(&self) -> Result<(), StoreError> {
        self.store.disk_refusal().map_or(Ok(()), Err)
    }

    /// Refuses a value, or several that are written together, for which the budget of the disk has no room.
    fn refuse_if_too_large(&self, bytes: usize) -> Result<(), StoreError> {
        match self.store.disk() {
            Some(disk) if !disk.takes(bytes) => Err(self.store.disk_full()),
            _ => Ok(()),
        }
    }

    /// Refuses so many changes at one instant if the budget of the disk has no room for them; for whoever is about to
    /// make them ([`Session::exclusively`]), since what was answered is kept.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`].
    pub fn check_at_once(&self, changes: usize) -> Result<(), StoreError> {
        match self.store.disk() {
            Some(disk) if !disk.takes_at_once(changes) => Err(self.store.disk_full()),
            _ => Ok(()),
        }
    }

    /// Waits while more changes are on their way to the disk than may be. Where commits fail, that is an error: nobody
    /// knows for how long.
    pub(super) fn wait_for_the_disk(&self) -> Result<(), StoreError> {
        let Some(disk) = self.store.disk() else { return Ok(()) };
        while disk.is_behind() && !self.is_holding {
            let listener = disk.queue().listen();
            disk.queue().hurry();
            if disk.is_behind() {
                listener.wait_timeout(LONGEST_WAIT);
            }
        }
        if disk.queue().is_full() && !disk.is_behind() { self.refuse_if_disk_does() } else { Ok(()) }
    }

    /// Notes that something was written, to be waited for.
    pub(super) fn wrote(&mut self) {
        bump(&self.counters.writes);
        if let Some(disk) = self.store.disk() {
            self.ticket = Some(disk.queue().pushed());
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

    pub(super) fn out_of_memory(&self) -> StoreError {
        StoreError::OutOfMemory {
            used: self.store.used_memory(),
            max_memory: self.settings.max_memory,
            policy: self.settings.eviction.name(),
        }
    }

    fn equals(&mut self, value: &Value, expected: &[u8]) -> Result<bool, StoreError> {
        if value.is_list() {
            return Err(StoreError::WrongType);
        }
        if value.len() != expected.len() {
            return Ok(false);
        }
        let mut current = std::mem::take(&mut self.current);
        let result = self.read_into(value, &mut current);
        let equal = value.record().as_identity().unwrap_or(&current) == expected;
        current.clear();
        current.shrink_to(KEPT_BUFFER);
        self.current = current;
        result.map(|()| equal)
    }

    /// Writes a value if the key is still what it was; keeps the expiry.
    fn replace(
        &mut self,
        database: usize,
        key: &[u8],
        before: Option<&Value>,
        value: &[u8],
    ) -> Result<bool, StoreError> {
        let entry = self.make_entry(key, value, Expiry::Keep)?;
        let roomy = self.make_room(&entry)?;
        let place = self.store.keyspace.place(key);
        let (mut shard, presence) = self.resolve(database, place, key)?;
        let current = presence.live().map(|index| shard.entry(database, index).to_owned());
        let unchanged = match (&current, before) {
            (Some(current), Some(before)) => current.same(before.0.borrow()),
            (None, None) => true,
            _ => false,
        };
        if unchanged {
            let size = current.as_ref().map(|current| current.borrow().allocation_size());
            self.admit(roomy, &entry, size)?;
            self.put(&mut shard, database, place, presence, entry, Expiry::Keep);
        }
        drop(shard);
        if unchanged {
            self.wrote();
        }
        Ok(unchanged)
    }

    /// Puts an entry in its key's place and gives what was there, for the caller to free outside the lock.
    pub(super) fn put(
        &self,
        shard: &mut Shard,
        database: usize,
        place: Place,
        presence: Presence,
        entry: Entry,
        expiry: Expiry,
    ) -> Option<Entry> {
        let live = presence.live();
        let at = match expiry {
            Expiry::At(at) if at <= self.now() => {
                return match live {
                    Some(index) => Some(shard.expire_at_once(database, index)),
                    None => {
                        shard.bury(database, place.tag, entry.borrow().key());
                        None
                    }
                };
            }
            Expiry::At(at) => Some(at),
            Expiry::Never => None,
            Expiry::Keep => live.and_then(|index| shard.entry(database, index).expiry()),
        };
        if let Some(index) = live {
            // An overwritten key keeps the credit that its uses have earned.
            let (before, written) = (shard.entry(database, index).access(), entry.borrow().access());
            entry.borrow().set_access(match self.touches {
                true => written.with_frequency(before.frequency()),
                false => before,
            });
        }
        let entry = match entry.borrow().set_expiry(at) {
            Ok(()) => entry,
            Err(copy) => copy,
        };
        shard.put(database, place.tag, presence, entry)
    }
}

/// Changes a live entry's expiry; one in the past removes it.
fn change_expiry(
    shard: &mut Shard,
    database: usize,
    index: usize,
    expiry: Expiry,
    now: u64,
) -> ExpireOutcome {
    match expiry {
        Expiry::Keep => {}
        // Nothing changes, so nobody is told.
        Expiry::Never if shard.entry(database, index).expiry().is_none() => {}
        Expiry::Never => shard.set_expiry(database, index, None),
        Expiry::At(at) if at <= now => {
            shard.expire_at_once(database, index);
            return ExpireOutcome::Removed;
        }
        Expiry::At(at) => shard.set_expiry(database, index, Some(at)),
    }
    ExpireOutcome::Changed
}
