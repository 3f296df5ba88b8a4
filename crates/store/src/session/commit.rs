//! The write path: the sequence of steps in which a key changes.
//!
//! 1. The precondition is checked, before anything is encoded or evicted for the write.
//! 2. The disk, which writers wait for, and the key itself must allow a write.
//! 3. The entry is made: values are encoded without a lock.
//! 4. Room is made for it, once.
//! 5. Under the lock of the key's shard the precondition and the budgets are checked again.
//! 6. The entry takes its place, and the change is reported.
//! 7. The lock is released, and then the replaced entry is freed.
//!
//! [`Session::commit`] takes all of them. A change in place has no entry to make: [`Session::prepare`] is 1,
//! 2 and 4, a [`KeySlot`] is 5 and 6, and [`Session::finish`] is 7. Removing a key or its expiry needs no
//! room, and begins with the slot.
//!
//! It knows preconditions and reasons to refuse a write. It must not know how the written entries are made.

use std::time::Duration;

use event_listener::Listener;

use super::{Expiry, Session, StoreError, Value, bump};
use crate::changes::KeyChange;
use crate::disk::Room;
use crate::entry::{Entry, EntryRef, MAX_KEY_LEN, Metadata, Properties};
use crate::key::Key;
use crate::memory::keyspace::Locked;
use crate::memory::shard::Presence;
use crate::settings::Settings;
use crate::store::Store;
use crate::values::Kind;
use crate::values::collection::Guard;

/// Attempts at a change that others may overtake, before they are locked out.
const TRIES: usize = 4;
/// Longest wait of a writer for the disk before it checks again whether commits succeed.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// Condition on a key for a write.
#[derive(Clone, Copy)]
pub(super) enum Precondition<'v> {
    /// No condition, and the previous value is not needed.
    Nothing,
    /// The key exists or not, where that matters, and has this kind and this version if it must.
    Exists { wanted: Option<bool>, kind: Option<Kind>, version: Option<u64> },
    /// The key has the value that the caller has seen.
    Unchanged(Option<&'v Value>),
}

/// Parameters for writing an entry.
#[derive(Clone, Copy)]
pub(super) struct Write<'v> {
    pub(super) precondition: Precondition<'v>,
    pub(super) expiry: Expiry,
    /// Bytes of memory that the caller is about to free.
    pub(super) freed: usize,
}

/// Requirements of a change in place.
#[derive(Clone, Copy)]
pub(super) struct Need {
    /// Bytes that it adds.
    pub(super) bytes: usize,
    /// Whether it creates a value where there is none.
    pub(super) makes: bool,
}

impl Need {
    pub(super) const NOTHING: Need = Need { bytes: 0, makes: false };
}

/// A key under the lock of its shard, for one change, which is reported at once.
pub(super) struct KeySlot<'s, 'k> {
    store: &'s Store,
    shard: Locked<'s>,
    presence: Presence,
    key: Key<'k>,
    left: Left,
}

/// Work that a change leaves for after the lock is released.
#[derive(Default)]
#[must_use]
pub(super) struct Left {
    /// Replaced entry, to be freed.
    pub(super) replaced: Option<Entry>,
    is_changed: bool,
}

impl<'s, 'k> KeySlot<'s, 'k> {
    pub(super) fn new(
        store: &'s Store,
        (shard, presence): (Locked<'s>, Presence),
        key: Key<'k>,
    ) -> KeySlot<'s, 'k> {
        KeySlot { store, shard, presence, key, left: Left::default() }
    }

    /// Returns whether a snapshot needs to know what the key was, which only the disk may know.
    fn needs_previous(&self) -> bool {
        self.presence == Presence::Unknown && self.store.disk().is_some() && self.shard.owes_image(self.key)
    }

    /// Keeps the key's image if a snapshot needs it, before the key changes.
    fn keep_image(&mut self) {
        if self.shard.owes_image(self.key) {
            let most = self.store.settings().most_read();
            self.shard.keep_image(self.key, self.presence, &mut self.store.node_reader(most));
        }
    }

    /// Returns the live entry, if there is one.
    pub(super) fn entry(&mut self) -> Option<EntryRef<'_>> {
        self.presence.live().map(|index| self.shard.entry(self.key.database, index))
    }

    /// Puts an entry in the key's place.
    pub(super) fn put(&mut self, entry: Entry) {
        self.keep_image();
        self.left.replaced = self.shard.put(self.key, self.presence, entry);
        self.left.is_changed = true;
    }

    /// Removes the live entry, or ensures that there is no such key.
    pub(super) fn remove(&mut self) {
        self.keep_image();
        match self.presence.live() {
            Some(index) => {
                let removed = self.shard.remove(self.key.database, index, KeyChange::Removed);
                self.left.replaced = Some(removed);
            }
            None => self.shard.bury(self.key, KeyChange::Removed),
        }
        self.left.is_changed = true;
    }

    /// Like [`KeySlot::remove`], for a key whose expiry is in the past.
    pub(super) fn expire_at_once(&mut self) {
        self.keep_image();
        match self.presence.live() {
            Some(index) => self.left.replaced = Some(self.shard.expire_at_once(self.key.database, index)),
            None => self.shard.bury(self.key, KeyChange::Lapsed),
        }
        self.left.is_changed = true;
    }

    /// Changes the expiry of the live entry.
    pub(super) fn set_expiry(&mut self, expiry: Option<u64>) {
        if let Some(index) = self.presence.live() {
            self.keep_image();
            self.shard.set_expiry(self.key.database, index, expiry);
            self.left.is_changed = true;
        }
    }

    /// Changes the metadata of the live entry, which to clients is no change of the key.
    pub(super) fn set_metadata(&mut self, metadata: Metadata) {
        if let Some(index) = self.presence.live() {
            let entry = self.shard.entry(self.key.database, index);
            let copy = entry.copy(entry.key(), Properties { metadata, ..entry.properties() });
            self.left.replaced = self.shard.reencoded(self.key, self.presence, copy);
            self.left.is_changed = true;
        }
    }

    /// Changes part of a draft if possible; returns whether it did. It is not where a snapshot has the draft.
    pub(super) fn edit(&mut self, offset: usize, bytes: &[u8]) -> bool {
        self.keep_image();
        let is_edited = self
            .presence
            .live()
            .is_some_and(|index| self.shard.edit(self.key.database, index, offset, bytes));
        self.left.is_changed |= is_edited;
        is_edited
    }

    /// Changes a collection, which is not reported before [`KeySlot::changed`]; `None` if there is none.
    pub(super) fn with_collection<R>(&mut self, change: impl FnOnce(&mut Guard<'_>) -> R) -> Option<R> {
        let index = self.presence.live()?;
        self.keep_image();
        self.shard.with_collection(self.key.database, index, change)
    }

    /// Reports a changed collection.
    pub(super) fn changed(&mut self) {
        if let Some(index) = self.presence.live() {
            self.shard.collection_changed(self.key.database, index);
            self.left.is_changed = true;
        }
    }

    /// Releases the lock.
    pub(super) fn leave(self) -> Left {
        self.left
    }
}

/// Result of a write.
pub(super) struct Committed {
    /// Whether the precondition held, and the entry is in its place.
    pub(super) is_written: bool,
    /// Previous value of the key, if the precondition asks for it.
    pub(super) previous: Option<Value>,
}

impl Precondition<'_> {
    /// Requires a string of this version.
    pub(super) fn version(version: u64) -> Precondition<'static> {
        Precondition::Exists { wanted: Some(true), kind: Some(Kind::String), version: Some(version) }
    }

    /// Returns whether the precondition holds for a key's entry.
    ///
    /// # Errors
    /// [`StoreError::WrongType`] if it must be of another kind.
    pub(super) fn holds(self, current: Option<EntryRef<'_>>) -> Result<bool, StoreError> {
        Ok(match self {
            Precondition::Nothing => true,
            Precondition::Exists { kind: Some(kind), .. }
                if current.is_some_and(|current| current.kind() != kind) =>
            {
                return Err(StoreError::WrongType);
            }
            Precondition::Exists { wanted, version, .. } => {
                let has_version = |version| {
                    version != 0 && current.is_some_and(|entry| entry.metadata().version == version)
                };
                wanted.is_none_or(|wanted| wanted == current.is_some()) && version.is_none_or(has_version)
            }
            Precondition::Unchanged(before) => match (current, before) {
                (Some(current), Some(before)) => before.0.same(current),
                (None, None) => true,
                _ => false,
            },
        })
    }

    fn asks_for_previous(self) -> bool {
        matches!(self, Precondition::Exists { .. })
    }
}

impl Session {
    /// Writes the entry that `build` makes, if the precondition holds.
    ///
    /// # Errors
    /// Errors of `build`, and reasons to refuse the write; the key is then unchanged.
    pub(super) fn commit<E: From<StoreError>>(
        &mut self,
        key: Key<'_>,
        write: Write<'_>,
        build: impl FnOnce(&mut Session) -> Result<Entry, E>,
    ) -> Result<Committed, E> {
        let Write { precondition, expiry, freed } = write;
        self.follow_settings();
        if let Precondition::Exists { wanted: Some(_), .. } = precondition {
            let previous = self.peek_at(key)?;
            if !precondition.holds(previous.as_ref().map(|value| value.0.borrow()))? {
                return Ok(Committed { is_written: false, previous });
            }
        }
        self.begin(key)?;
        let entry = build(self)?;
        let need = entry.borrow().allocation_size().saturating_sub(freed);
        let roomy = need == 0 || self.has_room_for(need as u64)?;
        let mut place = self.enter(key, precondition, expiry)?;
        let current = place.entry();
        let size = current.map(EntryRef::allocation_size);
        let is_written = precondition.holds(current)?;
        let previous = current.filter(|_| precondition.asks_for_previous());
        let previous = previous.map(|current| Value(current.to_owned()));
        if !is_written {
            return Ok(Committed { is_written, previous });
        }
        self.admit(roomy, &entry, size)?;
        self.put(&mut place, entry, expiry);
        let left = place.leave();
        self.finish(left);
        Ok(Committed { is_written, previous })
    }

    /// Begins a write before its value is encoded: waits for the disk, and refuses a key that cannot be
    /// written.
    pub(super) fn begin(&self, key: Key<'_>) -> Result<(), StoreError> {
        self.wait_for_the_disk()?;
        let limit = self.settings.max_key_len.min(MAX_KEY_LEN);
        if key.bytes.len() > limit {
            return Err(StoreError::KeyTooLong { len: key.bytes.len(), limit });
        }
        if self.store.is_unwritable(key) {
            let reason =
                "the key's place on disk is on a damaged page; stop the server and run snugly repair";
            return Err(StoreError::Disk { reason: reason.to_owned() });
        }
        Ok(())
    }

    /// Prepares a change in place before the lock is taken; returns whether there may be something to change.
    pub(super) fn prepare(&mut self, key: Key<'_>, need: Need) -> Result<bool, StoreError> {
        self.follow_settings();
        self.begin(key)?;
        if need.bytes == 0 {
            self.refuse_if_disk_lacks(Room::Little)?;
            return Ok(true);
        }
        // Nothing is evicted for a value that does not exist.
        if !need.makes && self.peek_at(key)?.is_none() {
            return Ok(false);
        }
        if !self.has_room_for(need.bytes as u64)? {
            return Err(self.out_of_memory());
        }
        self.refuse_if_disk_does()?;
        Ok(true)
    }

    /// Locks a key's shard. The disk is read only if the precondition, the expiry or a snapshot needs the
    /// previous state.
    pub(super) fn enter<'k>(
        &self,
        key: Key<'k>,
        precondition: Precondition<'_>,
        expiry: Expiry,
    ) -> Result<KeySlot<'_, 'k>, StoreError> {
        match (precondition, expiry) {
            (Precondition::Nothing, Expiry::Never | Expiry::At(_)) => self.enter_blindly(key),
            _ => self.enter_anywhere(key),
        }
    }

    /// Locks a key's shard for a change that does not need the previous state.
    pub(super) fn enter_blindly<'k>(&self, key: Key<'k>) -> Result<KeySlot<'_, 'k>, StoreError> {
        let place = self.enter_in_memory(key);
        if !place.needs_previous() {
            return Ok(place);
        }
        drop(place);
        match self.enter_anywhere(key) {
            // Being overwritten mends a value that cannot be read.
            Err(error) if error.is_of_a_value() => Ok(self.enter_in_memory(key)),
            entered => entered,
        }
    }

    /// Locks a key's shard once its state is certain.
    pub(super) fn enter_anywhere<'k>(&self, key: Key<'k>) -> Result<KeySlot<'_, 'k>, StoreError> {
        Ok(KeySlot::new(&self.store, self.resolve(key)?, key))
    }

    /// Locks a key's shard, whatever the key is on disk.
    pub(super) fn enter_in_memory<'k>(&self, key: Key<'k>) -> KeySlot<'_, 'k> {
        let mut shard = self.store.keyspace.lock(key.shard());
        let presence = shard.locate(key, self.now());
        KeySlot::new(&self.store, (shard, presence), key)
    }

    /// Frees what a change has replaced, after the lock is released, and notes whether something was written.
    pub(super) fn finish(&mut self, left: Left) {
        let Left { replaced, is_changed } = left;
        drop(replaced);
        if is_changed {
            self.wrote();
        }
    }

    /// Puts an entry in its key's place.
    pub(super) fn put(&self, place: &mut KeySlot<'_, '_>, entry: Entry, expiry: Expiry) {
        let current = place.entry();
        let at = match expiry {
            Expiry::At(at) if at <= self.now() => return place.expire_at_once(),
            Expiry::At(at) => Some(at),
            Expiry::Never => None,
            Expiry::Keep => current.and_then(EntryRef::expiry),
        };
        if let Some(current) = current {
            // An overwritten key keeps the credit that its uses have earned.
            let (before, written) = (current.access(), entry.borrow().access());
            entry.borrow().set_access(match self.touches {
                true => written.with_frequency(before.frequency()),
                false => before,
            });
        }
        let entry = match entry.borrow().set_expiry(at) {
            Ok(()) => entry,
            Err(copy) => copy,
        };
        place.put(entry);
    }

    /// Tries a change that others may overtake until it succeeds; after a few attempts, with the key held.
    pub(super) fn persistently<R, E>(
        &mut self,
        key: Key<'_>,
        mut attempt: impl FnMut(&mut Session) -> Result<Option<R>, E>,
    ) -> Result<R, E> {
        for _ in 0..TRIES {
            if let Some(result) = attempt(self)? {
                return Ok(result);
            }
        }
        let store = self.store.clone();
        let _held = store.keyspace.hold(std::iter::once(key.hash));
        let outcome = self.holding(attempt);
        outcome.map(|result| result.expect("nobody else changes a key that is held"))
    }

    /// Evicts to make room for `need` bytes; returns whether there is room for them.
    pub(super) fn has_room_for(&mut self, need: u64) -> Result<bool, StoreError> {
        self.compress_for_room(need);
        let Settings { max_memory, eviction, .. } = self.settings;
        let random = || self.random.u64(..);
        let roomy = max_memory == 0
            || self.store.keyspace.make_room(eviction, max_memory, need, self.is_holding, random);
        // Changes on their way to the disk cannot leave memory yet; the queue bounds them.
        Ok(roomy || need <= self.allowance || self.store.disk().is_some())
    }

    /// Admits, when there is no room, only a write that does not make its key larger, and none once the
    /// budget is exceeded.
    fn admit(&self, roomy: bool, entry: &Entry, current_size: Option<usize>) -> Result<(), StoreError> {
        self.refuse_if_disk_does()?;
        self.refuse_if_too_large(entry.borrow().allocation_size())?;
        let not_larger = || current_size.is_some_and(|size| entry.borrow().allocation_size() <= size);
        if roomy || self.store.used_memory() <= self.settings.max_memory && not_larger() {
            return Ok(());
        }
        Err(self.out_of_memory())
    }

    /// Refuses to hold so many bytes for a moment if memory could not have them even without any key: for what takes much
    /// before it is known what it is compressed, and evicts nothing.
    ///
    /// # Errors
    /// [`StoreError::OutOfMemory`].
    pub fn check_transient(&self, bytes: usize) -> Result<(), StoreError> {
        if bytes > self.most_transient() { Err(self.out_of_memory()) } else { Ok(()) }
    }

    /// Returns the most bytes that [`Session::check_transient`] accepts.
    pub fn most_transient(&self) -> usize {
        let most = match self.settings.max_memory {
            0 => u64::MAX,
            // Memory is a cache then, however small.
            _ if self.store.disk().is_some() => self.settings.most_read(),
            max_memory => max_memory,
        };
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    pub(super) fn out_of_memory(&self) -> StoreError {
        StoreError::OutOfMemory {
            used: self.store.used_memory(),
            max_memory: self.settings.max_memory,
            policy: self.settings.eviction.name(),
        }
    }

    pub(super) fn refuse_if_disk_does(&self) -> Result<(), StoreError> {
        self.refuse_if_disk_lacks(Room::Value)
    }

    pub(super) fn refuse_if_disk_lacks(&self, room: Room) -> Result<(), StoreError> {
        self.store.disk_refusal(room).map_or(Ok(()), Err)
    }

    /// Refuses a value, or several that are written together, for which the disk's budget has no space.
    pub(super) fn refuse_if_too_large(&self, bytes: usize) -> Result<(), StoreError> {
        match self.store.disk() {
            Some(disk) if !disk.takes(bytes) => Err(self.store.disk_full()),
            _ => Ok(()),
        }
    }

    /// Refuses this many changes at one instant if the disk's budget has no space for them; for callers about
    /// to make them ([`Session::exclusively`]), since what was answered is kept.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`].
    pub fn check_at_once(&self, changes: usize) -> Result<(), StoreError> {
        match self.store.disk() {
            Some(disk) if !disk.takes_at_once(changes) => Err(self.store.disk_full()),
            _ => Ok(()),
        }
    }

    /// Waits while too many changes are on their way to the disk. Where commits fail, that is an error, since
    /// the wait might never end.
    pub(super) fn wait_for_the_disk(&self) -> Result<(), StoreError> {
        let Some(disk) = self.store.disk() else { return Ok(()) };
        let is_behind = || if self.is_unanswered { disk.is_crowded() } else { disk.is_far_behind() };
        while is_behind() && !self.is_holding {
            let listener = disk.queue().listen();
            disk.queue().hurry();
            if is_behind() {
                listener.wait_timeout(LONGEST_WAIT);
            }
        }
        if disk.queue().is_full() && !is_behind() { self.refuse_if_disk_does() } else { Ok(()) }
    }

    /// Notes that something was written, to be waited for.
    pub(super) fn wrote(&mut self) {
        bump(&self.counters.writes);
        if let Some(disk) = self.store.disk() {
            self.ticket = Some(disk.queue().pushed());
        }
    }
}
