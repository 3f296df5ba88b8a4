//! A thread's way into the store: encodes before a shard is locked, decodes after it is let go.
//!
//! It joins the codec to the memory tier. It knows keys, values, conditions and expiry; no commands, no replies.
//!
//! - `copies`: values that go to other keys as they are stored

mod copies;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use event_listener::Listener;
use snugly_codec::{Decoder, Encoder, Record};
use thiserror::Error;

use crate::memory::entry::{self, Access, Entry, EntryRef, MAX_KEY_LEN};
use crate::memory::entry_allocation_size;
use crate::memory::keyspace::{Locked, Place, Unknown};
use crate::memory::shard::{Presence, Shard};
use crate::store::{Flushed, SessionCounters, Settings, Store, system_time};
use crate::tiers::Terms;

pub use copies::Usage;

/// Why a write or a read failed.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The memory budget is used up and the eviction policy found nothing to remove.
    #[error(
        "out of memory: {used} of {max_memory} bytes are used and the policy {policy} finds nothing to evict; raise max-memory or choose another maxmemory-policy"
    )]
    OutOfMemory {
        /// Bytes in use.
        used: u64,
        /// The budget.
        max_memory: u64,
        /// The policy's name.
        policy: &'static str,
    },
    /// The key is longer than `max_key_len`.
    #[error("the key has {len} bytes, at most {limit} are allowed (max-key-bytes)")]
    KeyTooLong {
        /// The key's length in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The value is longer than `max_value_len`.
    #[error("the value has {len} bytes, at most {limit} are allowed")]
    ValueTooLong {
        /// The value's length in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A stored record could not be decoded.
    #[error("the value of {key:?} cannot be read: {source}", key = String::from_utf8_lossy(key))]
    Unreadable {
        /// The key.
        key: Vec<u8>,
        /// What is wrong with the record.
        source: snugly_codec::DecodeError,
    },
    /// A value on disk is not what was written.
    #[error("the value of {key:?} on disk is damaged; write or delete the key to mend it", key = String::from_utf8_lossy(key))]
    Damaged {
        /// The key.
        key: Vec<u8>,
    },
    /// The disk cannot be read or written.
    #[error("{reason}")]
    Disk {
        /// What is wrong.
        reason: String,
    },
    /// The disk's budget is used up and the eviction policy found nothing to remove.
    #[error(
        "the disk tier is full: all of its {max_disk} bytes are used; raise max-disk, or choose a maxmemory-policy that evicts"
    )]
    DiskFull {
        /// The budget in bytes.
        max_disk: u64,
    },
}

/// When a key shall expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Expiry {
    /// Never.
    #[default]
    Never,
    /// When it would have expired before the write.
    Keep,
    /// At a time in Unix milliseconds. A time that has come removes the key.
    At(u64),
}

/// What must be true of a key for [`Session::set`] to write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Condition<'a> {
    /// Nothing.
    #[default]
    Always,
    /// It does not exist.
    IfAbsent,
    /// It exists.
    IfPresent,
    /// It exists and its value is this.
    IfEqual(&'a [u8]),
}

/// What must be true of several keys for [`Session::set_many`] to write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ManyCondition {
    /// Nothing.
    #[default]
    Always,
    /// None of them exists.
    IfAllAbsent,
    /// All of them exist.
    IfAllPresent,
}

/// What must be true of a key's expiry for [`Session::expire`] to change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ExpireConditions {
    /// It has none.
    pub if_none: bool,
    /// It has one.
    pub if_some: bool,
    /// The new one is later; none counts as the latest.
    pub if_later: bool,
    /// The new one is earlier; none counts as the latest.
    pub if_earlier: bool,
}

/// What [`Session::expire`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpireOutcome {
    /// There is no such key.
    Missing,
    /// A condition did not hold.
    Refused,
    /// The expiry was changed.
    Changed,
    /// The time had come: the key is gone.
    Removed,
}

/// What [`Session::get_and_set`] did.
pub struct SetOutcome {
    /// Whether the condition held.
    pub written: bool,
    /// The value that the key had before.
    pub previous: Option<Value>,
}

/// A value as it is stored. Holding it costs no copy, and it does not change, whatever happens to its key.
#[derive(Clone)]
pub struct Value(Entry);

impl Value {
    /// The length in bytes, before compression. Nothing is decoded for it.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.record().raw_len()
    }

    /// How it is stored.
    pub fn record(&self) -> Record<'_> {
        Record::parse(self.0.borrow().record_bytes())
            .expect("the memory tier holds records that were parsed before")
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        self.0.borrow().key()
    }

    /// When it expires, in Unix milliseconds.
    pub fn expiry(&self) -> Option<u64> {
        self.0.borrow().expiry()
    }

    /// Bytes that it takes in memory: key, record and overhead, as the allocator counts them.
    pub fn memory(&self) -> usize {
        self.0.borrow().allocation_size()
    }

    /// Seconds since it was last used.
    pub fn idle_seconds(&self, now: u64) -> u32 {
        self.0.borrow().access().idle_seconds(now)
    }

    /// How often it was used lately, up to a small cap that depends on the eviction policy.
    pub fn frequency(&self) -> u8 {
        self.0.borrow().access().frequency()
    }
}

/// One thread's access to a [`Store`], with its own compression contexts, buffers and counters.
pub struct Session {
    store: Arc<Store>,
    encoder: Encoder,
    decoder: Decoder,
    counters: Arc<SessionCounters>,
    settings: Settings,
    settings_version: u64,
    now: Option<u64>,
    random: fastrand::Rng,
    /// Whether this thread holds shards, and so must not wait for others.
    is_holding: bool,
    /// How many changes the queue had after the last write.
    ticket: Option<u64>,
    current: Vec<u8>,
    edited: Vec<u8>,
}

/// A write that is on its way to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub(crate) u64);

/// From so many keys a random one is chosen where they are on disk.
const RANDOM_SAMPLE: usize = 32;
/// How long a writer waits for the disk before it looks again whether that works.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// Buffers that grew over this for one large value are given back.
const KEPT_BUFFER: usize = 1 << 20;

impl Session {
    /// How many keys [`Session::prefetch`] takes at once.
    pub const PREFETCHED: usize = 16;

    pub(crate) fn new(store: Arc<Store>, counters: Arc<SessionCounters>) -> Session {
        Session {
            encoder: Encoder::new(counters.codec.clone()),
            decoder: Decoder::new(counters.codec.clone()),
            settings: store.settings(),
            settings_version: store.settings_version(),
            store,
            counters,
            now: None,
            random: fastrand::Rng::new(),
            is_holding: false,
            ticket: None,
            current: Vec::new(),
            edited: Vec::new(),
        }
    }

    /// The store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The time that operations go by, in Unix milliseconds.
    pub fn now(&self) -> u64 {
        self.now.unwrap_or_else(system_time)
    }

    /// Fixes the time for the operations to come (a server reads its clock once for a batch of requests), or with
    /// `None` follows the wall clock again.
    pub fn set_now(&mut self, now: Option<u64>) {
        self.now = now;
    }

    /// Looks a key up for reading: counts a hit or a miss, and makes an eviction of the key less likely.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] if the key's value is damaged where it is stored.
    pub fn get(&mut self, database: usize, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.follow_settings();
        let now = self.now();
        let value = self.look(database, key, |session, entry| session.used(entry, now))?;
        self.count_lookup(value.is_some());
        Ok(value)
    }

    /// Shows a live entry, wherever it is.
    fn look<R>(
        &self,
        database: usize,
        key: &[u8],
        show: impl Fn(&Session, EntryRef<'_>) -> R,
    ) -> Result<Option<R>, StoreError> {
        let keyspace = &self.store.keyspace;
        let place = keyspace.place(key);
        match keyspace.read(place, database, key, self.now(), |entry| show(self, entry)) {
            Ok(shown) => return Ok(shown),
            Err(Unknown) if self.store.disk().is_none() => return Ok(None),
            Err(Unknown) => {}
        }
        let (mut shard, presence) = self.resolve(database, place, key)?;
        Ok(presence.live().map(|index| show(self, shard.entry(database, index))))
    }

    fn resolve(
        &self,
        database: usize,
        place: Place,
        key: &[u8],
    ) -> Result<(Locked<'_>, Presence), StoreError> {
        let terms = Terms { settings: self.settings, now: self.now(), holding: self.is_holding };
        self.store.resolve(database, place, key, terms)
    }

    /// Tells that these keys will be looked up soon, so that the waits for memory of up to
    /// [`PREFETCHED`](Self::PREFETCHED) of them overlap.
    pub fn prefetch<'k>(&self, database: usize, keys: impl Iterator<Item = &'k [u8]>) {
        let mut places = [Place::default(); Self::PREFETCHED];
        let mut len = 0;
        for (place, key) in places.iter_mut().zip(keys) {
            *place = self.store.keyspace.place(key);
            len += 1;
        }
        self.store.keyspace.prefetch(&places[..len], database);
    }

    /// Looks several keys up at one instant, as [`Session::get`] does for one.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn get_many<'k>(
        &mut self,
        database: usize,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
    ) -> Result<Vec<Option<Value>>, StoreError> {
        self.follow_settings();
        if self.store.disk().is_some() {
            // Fetched before the shards are held.
            for key in keys.clone() {
                self.peek(database, key)?;
            }
        }
        let store = self.store.clone();
        let held = store.keyspace.hold(keys.clone().map(|key| store.keyspace.place(key)));
        let values: Result<Vec<_>, _> = self.holding(|session| {
            let now = session.now();
            keys.map(|key| session.look(database, key, |session, entry| session.used(entry, now))).collect()
        });
        drop(held);
        let values = values?;
        values.iter().for_each(|value| self.count_lookup(value.is_some()));
        Ok(values)
    }

    /// Looks a key up without counting it as a use.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn peek(&mut self, database: usize, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.look(database, key, |_, entry| Value(entry.to_owned()))
    }

    /// Appends a value to `out`, decompressed.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] if its codec is not in this build or the record is damaged; `out` is as before.
    pub fn read(&mut self, value: &Value, out: &mut Vec<u8>) -> Result<(), StoreError> {
        self.decoder
            .decode(&value.record(), value.len(), out)
            .map_err(|source| StoreError::Unreadable { key: value.key().to_vec(), source })
    }

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
            return Ok(self.get_and_set(database, key, value, expiry, condition)?.written);
        }
        let entry = self.make_entry(key, value, expiry)?;
        let roomy = self.make_room(&entry)?;
        let now = self.now();
        let place = self.store.keyspace.place(key);
        let mut shard = self.store.keyspace.lock(place.shard);
        let presence = shard.locate(database, place.tag, key, now);
        let size = presence.live().map(|index| shard.entry(database, index).allocation_size());
        self.admit(roomy, &entry, size)?;
        let before = put(&mut shard, database, place, presence, entry, expiry, now);
        drop(shard);
        drop(before);
        self.wrote();
        Ok(true)
    }

    /// As [`Session::set`], and gives what the key was before. [`Session::set`] does not have to know it.
    ///
    /// # Errors
    /// As [`Session::set`].
    pub fn get_and_set(
        &mut self,
        database: usize,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
        condition: Condition<'_>,
    ) -> Result<SetOutcome, StoreError> {
        let place = self.store.keyspace.place(key);
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
            let now = self.now();
            let roomy = self.make_room(&entry)?;
            let (mut shard, presence) = self.resolve(database, place, key)?;
            let current = presence.live().map(|index| shard.entry(database, index).to_owned());
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
                put(&mut shard, database, place, presence, entry, expiry, now);
            }
            drop(shard);
            if allowed {
                self.wrote();
            }
            return Ok(SetOutcome { written: allowed, previous: current.map(Value) });
        }
    }

    /// Writes several values at one instant, if the condition holds; says whether it did. A key that is named twice
    /// keeps its last value.
    ///
    /// # Errors
    /// As [`Session::set`]; then none is written.
    pub fn set_many<'p>(
        &mut self,
        database: usize,
        pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>,
        expiry: Expiry,
        condition: ManyCondition,
    ) -> Result<bool, StoreError> {
        let mut entries = Vec::new();
        let mut need = 0;
        for (key, value) in pairs {
            let entry = self.make_entry(key, value, expiry)?;
            need += entry.borrow().allocation_size() as u64;
            entries.push((self.store.keyspace.place(key), entry));
        }
        if !self.has_room_for(need)? {
            return Err(self.out_of_memory());
        }
        self.refuse_if_disk_does()?;
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
        let expected = match condition {
            ManyCondition::Always => None,
            ManyCondition::IfAllAbsent => Some(false),
            ManyCondition::IfAllPresent => Some(true),
        };
        if let Some(expected) = expected {
            for (_, entry) in &entries {
                if self.peek(database, entry.borrow().key())?.is_some() != expected {
                    return Ok((false, Vec::new()));
                }
            }
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
            replaced.extend(put(&mut shard, database, place, presence, entry, expiry, now));
        }
        Ok((true, replaced))
    }

    /// Changes a value by what it was: `edit` sees the current value, if there is one, and fills the new one. It runs
    /// again if the key changes meanwhile. The expiry stays.
    ///
    /// # Errors
    /// Those of `edit`, and as [`Session::set`]; the key is then as before.
    pub fn update<R, E: From<StoreError>>(
        &mut self,
        database: usize,
        key: &[u8],
        mut edit: impl FnMut(Option<&[u8]>, &mut Vec<u8>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut current = std::mem::take(&mut self.current);
        let mut edited = std::mem::take(&mut self.edited);
        let result = loop {
            let before = self.peek(database, key)?;
            edited.clear();
            let outcome = match &before {
                Some(value) => self
                    .read_into(value, &mut current)
                    .map_err(E::from)
                    .and_then(|()| edit(Some(value.record().as_identity().unwrap_or(&current)), &mut edited)),
                None => edit(None, &mut edited),
            };
            match outcome {
                Ok(result) => match self.replace(database, key, before.as_ref(), &edited) {
                    Ok(true) => break Ok(result),
                    Ok(false) => {}
                    Err(error) => break Err(error.into()),
                },
                Err(error) => break Err(error),
            }
        };
        current.clear();
        current.shrink_to(KEPT_BUFFER);
        edited.shrink_to(KEPT_BUFFER);
        (self.current, self.edited) = (current, edited);
        result
    }

    /// Removes a key and gives what it was.
    ///
    /// # Errors
    /// As [`Session::get`]; a damaged value is removed all the same.
    pub fn remove(&mut self, database: usize, key: &[u8]) -> Result<Option<Value>, StoreError> {
        let place = self.store.keyspace.place(key);
        let removed = self
            .resolve(database, place, key)
            .map(|(mut shard, presence)| presence.live().map(|index| Value(shard.remove(database, index))));
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
        let now = self.now();
        let place = self.store.keyspace.place(key);
        let (mut shard, presence) = self.resolve(database, place, key)?;
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

    /// Shows keys from `cursor` on, about `count` of them, with their values as stored; gives the next cursor, 0 at
    /// the end. A key that is there from the first call to the last is shown at least once.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn scan(
        &mut self,
        database: usize,
        cursor: u64,
        count: usize,
        show: impl FnMut(&[u8]),
    ) -> Result<u64, StoreError> {
        self.store.scan(database, cursor, count, self.now(), show)
    }

    /// Some key's value; any of them with about the same chance.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn random(&mut self, database: usize) -> Result<Option<Value>, StoreError> {
        let now = self.now();
        if self.store.disk().is_none() {
            return Ok(self.store.keyspace.random_entry(database, now, || self.random.u64(..)).map(Value));
        }
        // Some keys from a random place on, or from the start if there is none behind it.
        let mut cursor = self.store.keyspace.position(self.random.u64(..));
        loop {
            let is_first = cursor == 0;
            let mut keys = Vec::new();
            cursor = self.store.scan(database, cursor, RANDOM_SAMPLE, now, |key| keys.push(key.to_vec()))?;
            self.random.shuffle(&mut keys);
            for key in keys {
                if let Some(value) = self.peek(database, &key)? {
                    return Ok(Some(value));
                }
            }
            if is_first && cursor == 0 {
                return Ok(None);
            }
        }
    }

    /// Runs several operations on these keys as one: nobody sees the keys in between, and nobody else changes them. On
    /// disk they are one commit. Operations on other keys are allowed, and then not isolated.
    pub fn exclusively<'k, R>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        operations: impl FnOnce(&mut Session) -> R,
    ) -> R {
        let store = self.store.clone();
        let _group = store.disk().map(|disk| disk.queue().group());
        let _held = store.keyspace.hold(keys.map(|key| store.keyspace.place(key)));
        self.holding(operations)
    }

    /// As [`Session::exclusively`], for operations whose keys are not known beforehand: nobody else can do anything.
    pub fn all_exclusively<R>(&mut self, operations: impl FnOnce(&mut Session) -> R) -> R {
        let store = self.store.clone();
        let _group = store.disk().map(|disk| disk.queue().group());
        let _held = store.keyspace.hold_all();
        self.holding(operations)
    }

    fn holding<R>(&mut self, operations: impl FnOnce(&mut Session) -> R) -> R {
        let outer = std::mem::replace(&mut self.is_holding, true);
        let result = operations(self);
        self.is_holding = outer;
        result
    }

    /// A handle to an entry, with this use of it noted.
    fn used(&self, entry: EntryRef<'_>, now: u64) -> Value {
        entry.set_access(entry.access().used(now, self.settings.eviction.frequency_cap()));
        Value(entry.to_owned())
    }

    fn count_lookup(&self, hit: bool) {
        let counter = if hit { &self.counters.hits } else { &self.counters.misses };
        bump(counter);
    }

    fn make_entry(&mut self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<Entry, StoreError> {
        self.follow_settings();
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
        let overhead = entry::overhead(key.len(), at.is_some());
        let record = self.encoder.encode(self.settings.compression, value, overhead, entry_allocation_size);
        Ok(Entry::new(key, &record, at, access))
    }

    fn check_key(&self, key: &[u8]) -> Result<(), StoreError> {
        let limit = self.settings.max_key_len.min(MAX_KEY_LEN);
        if key.len() > limit {
            return Err(StoreError::KeyTooLong { len: key.len(), limit });
        }
        Ok(())
    }

    fn follow_settings(&mut self) {
        let version = self.store.settings_version();
        if version != self.settings_version {
            self.settings = self.store.settings();
            self.settings_version = version;
        }
    }

    fn make_room(&mut self, entry: &Entry) -> Result<bool, StoreError> {
        self.has_room_for(entry.borrow().allocation_size() as u64)
    }

    fn has_room_for(&mut self, need: u64) -> Result<bool, StoreError> {
        let Settings { max_memory, eviction, .. } = self.settings;
        let random = || self.random.u64(..);
        let roomy = max_memory == 0
            || self.store.keyspace.make_room(eviction, max_memory, need, self.is_holding, random);
        // What is on its way to the disk cannot leave memory yet; how much that can be is bounded by the queue.
        Ok(roomy || self.store.disk().is_some())
    }

    /// Without room, only a write that does not make its key larger is let in, and none once the budget is exceeded.
    fn admit(&self, roomy: bool, entry: &Entry, current_size: Option<usize>) -> Result<(), StoreError> {
        self.refuse_if_disk_does()?;
        let not_larger = || current_size.is_some_and(|size| entry.borrow().allocation_size() <= size);
        if roomy || self.store.used_memory() <= self.settings.max_memory && not_larger() {
            return Ok(());
        }
        Err(self.out_of_memory())
    }

    fn refuse_if_disk_does(&self) -> Result<(), StoreError> {
        self.store.disk_refusal().map_or(Ok(()), Err)
    }

    /// Waits while more changes are on their way to the disk than may be.
    fn wait_for_the_disk(&self) -> Result<(), StoreError> {
        let Some(disk) = self.store.disk() else { return Ok(()) };
        while disk.queue().is_full() && !self.is_holding {
            self.refuse_if_disk_does()?;
            let listener = disk.queue().listen();
            disk.queue().hurry();
            if disk.queue().is_full() {
                listener.wait_timeout(LONGEST_WAIT);
            }
        }
        Ok(())
    }

    /// Notes that something was written, to be waited for.
    fn wrote(&mut self) {
        if let Some(disk) = self.store.disk() {
            self.ticket = Some(disk.queue().pushed());
        }
    }

    /// Empties one database, or all of them, as [`Store::flush`] does.
    pub fn flush(&mut self, database: Option<usize>) -> Flushed {
        let flushed = self.store.flush(database);
        self.wrote();
        flushed
    }

    /// Exchanges two databases, as [`Store::swap`] does.
    pub fn swap(&mut self, first: usize, second: usize) {
        self.store.swap(first, second);
        self.wrote();
    }

    /// The last write of this session, to be waited for with [`Store::durable`]; `None` if there was none since the last
    /// call, or there is no disk tier.
    pub fn take_ticket(&mut self) -> Option<Ticket> {
        self.ticket.take().map(Ticket)
    }

    fn out_of_memory(&self) -> StoreError {
        StoreError::OutOfMemory {
            used: self.store.used_memory(),
            max_memory: self.settings.max_memory,
            policy: self.settings.eviction.name(),
        }
    }

    fn equals(&mut self, value: &Value, expected: &[u8]) -> Result<bool, StoreError> {
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

    /// Decodes a value into a buffer, unless it is stored as it is.
    fn read_into(&mut self, value: &Value, buffer: &mut Vec<u8>) -> Result<(), StoreError> {
        buffer.clear();
        if value.record().as_identity().is_some() {
            return Ok(());
        }
        self.read(value, buffer)
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
        let now = self.now();
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
            put(&mut shard, database, place, presence, entry, Expiry::Keep, now);
        }
        drop(shard);
        if unchanged {
            self.wrote();
        }
        Ok(unchanged)
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
        Expiry::Never => shard.set_expiry(database, index, None),
        Expiry::At(at) if at <= now => {
            shard.remove(database, index);
            return ExpireOutcome::Removed;
        }
        Expiry::At(at) => shard.set_expiry(database, index, Some(at)),
    }
    ExpireOutcome::Changed
}

impl ExpireConditions {
    fn hold(self, current: Option<u64>, expiry: Expiry) -> bool {
        let new = match expiry {
            Expiry::At(at) => at,
            Expiry::Never | Expiry::Keep => u64::MAX,
        };
        let old = current.unwrap_or(u64::MAX);
        !(self.if_none && current.is_some()
            || self.if_some && current.is_none()
            || self.if_later && new <= old
            || self.if_earlier && new >= old)
    }
}

/// Puts an entry in its key's place and gives what was there, for the caller to free outside the lock.
fn put(
    shard: &mut Shard,
    database: usize,
    place: Place,
    presence: Presence,
    entry: Entry,
    expiry: Expiry,
    now: u64,
) -> Option<Entry> {
    let live = presence.live();
    let at = match expiry {
        Expiry::At(at) if at <= now => {
            return match live {
                Some(index) => Some(shard.remove(database, index)),
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
        let frequency = shard.entry(database, index).access().frequency();
        entry.borrow().set_access(entry.borrow().access().with_frequency(frequency));
    }
    let entry = match entry.borrow().set_expiry(at) {
        Ok(()) => entry,
        Err(copy) => copy,
    };
    shard.put(database, place.tag, presence, entry)
}

/// Adds one to a counter that only this thread writes.
fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
