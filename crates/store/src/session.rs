//! A thread's way into the store: encodes before a shard is locked, decodes after it is let go.
//!
//! It joins the codec to the memory tier. It knows keys, values, conditions and expiry; no commands, no replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use snugly_codec::{Decoder, Encoder, Record};
use thiserror::Error;

use crate::memory::entry::{self, Access, Entry, EntryRef, MAX_KEY_LEN};
use crate::memory::entry_allocation_size;
use crate::memory::keyspace::Place;
use crate::memory::shard::Shard;
use crate::store::{SessionCounters, Settings, Store, system_time};

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
    current: Vec<u8>,
    edited: Vec<u8>,
}

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
        let keyspace = &self.store.keyspace;
        let now = self.now();
        let value = keyspace.read(keyspace.place(key), database, key, now, |entry| self.used(entry, now));
        self.count_lookup(value.is_some());
        Ok(value)
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
        let keyspace = &self.store.keyspace;
        let places: Vec<Place> = keys.clone().map(|key| keyspace.place(key)).collect();
        let mut shards = keyspace.lock_all(places.iter().copied());
        let values: Vec<_> = keys
            .zip(&places)
            .map(|(key, place)| self.look_up(shards.shard(place.shard), database, *place, key))
            .collect();
        drop(shards);
        values.iter().for_each(|value| self.count_lookup(value.is_some()));
        Ok(values)
    }

    /// Looks a key up without counting it as a use.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn peek(&mut self, database: usize, key: &[u8]) -> Result<Option<Value>, StoreError> {
        let keyspace = &self.store.keyspace;
        Ok(keyspace.read(keyspace.place(key), database, key, self.now(), |entry| Value(entry.to_owned())))
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
        Ok(self.get_and_set(database, key, value, expiry, condition)?.written)
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
            let roomy = self.make_room(&entry);
            let mut shard = self.store.keyspace.lock(place.shard);
            let index = shard.find(database, place.tag, key, now);
            let current = index.map(|index| shard.entry(database, index).to_owned());
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
                self.admit(roomy, &entry, current.as_ref())?;
                put(&mut shard, database, place, index, entry, expiry, now);
            }
            drop(shard);
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
        let now = self.now();
        if !self.has_room_for(need) {
            return Err(self.out_of_memory());
        }
        let mut shards = self.store.keyspace.lock_all(entries.iter().map(|(place, _)| *place));
        let mut exists = |place: Place, entry: &Entry| {
            let shard = shards.shard(place.shard);
            shard.find(database, place.tag, entry.borrow().key(), now).is_some()
        };
        let holds = match condition {
            ManyCondition::Always => true,
            ManyCondition::IfAllAbsent => !entries.iter().any(|(place, entry)| exists(*place, entry)),
            ManyCondition::IfAllPresent => entries.iter().all(|(place, entry)| exists(*place, entry)),
        };
        if !holds {
            return Ok(false);
        }
        let mut replaced = Vec::new();
        for (place, entry) in entries {
            let shard = shards.shard(place.shard);
            let index = shard.find(database, place.tag, entry.borrow().key(), now);
            replaced.extend(put(shard, database, place, index, entry, expiry, now));
        }
        drop(shards);
        Ok(true)
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
    /// As [`Session::get`]; then the key is removed as well.
    pub fn remove(&mut self, database: usize, key: &[u8]) -> Result<Option<Value>, StoreError> {
        let place = self.store.keyspace.place(key);
        let mut shard = self.store.keyspace.lock(place.shard);
        let index = shard.find(database, place.tag, key, self.now());
        Ok(index.map(|index| Value(shard.remove(database, index))))
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
        let place = self.store.keyspace.place(key);
        let mut shard = self.store.keyspace.lock(place.shard);
        let value = self.look_up(&mut shard, database, place, key);
        if value.is_some() {
            self.change_expiry(&mut shard, database, place, key, expiry);
        }
        drop(shard);
        self.count_lookup(value.is_some());
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
        let mut shard = self.store.keyspace.lock(place.shard);
        let Some(index) = shard.find(database, place.tag, key, self.now()) else {
            return Ok(ExpireOutcome::Missing);
        };
        let current = shard.entry(database, index).expiry();
        if !conditions.hold(current, expiry) {
            return Ok(ExpireOutcome::Refused);
        }
        Ok(self.change_expiry(&mut shard, database, place, key, expiry))
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
        mut show: impl FnMut(&[u8]),
    ) -> Result<u64, StoreError> {
        Ok(self.store.keyspace.scan(database, cursor, count, self.now(), |entry| show(entry.key())))
    }

    /// Some key's value; any of them with about the same chance.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn random(&mut self, database: usize) -> Result<Option<Value>, StoreError> {
        let now = self.now();
        Ok(self.store.keyspace.random_entry(database, now, || self.random.u64(..)).map(Value))
    }

    /// Runs several operations on these keys as one: nobody sees the keys in between, and nobody else changes them. On
    /// disk they are one commit. Operations on other keys are allowed, and then not isolated.
    pub fn exclusively<'k, R>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        operations: impl FnOnce(&mut Session) -> R,
    ) -> R {
        let store = self.store.clone();
        let _held = store.keyspace.hold(keys.map(|key| store.keyspace.place(key)));
        self.holding(operations)
    }

    /// As [`Session::exclusively`], for operations whose keys are not known beforehand: nobody else can do anything.
    pub fn all_exclusively<R>(&mut self, operations: impl FnOnce(&mut Session) -> R) -> R {
        let store = self.store.clone();
        let _held = store.keyspace.hold_all();
        self.holding(operations)
    }

    fn holding<R>(&mut self, operations: impl FnOnce(&mut Session) -> R) -> R {
        let outer = std::mem::replace(&mut self.is_holding, true);
        let result = operations(self);
        self.is_holding = outer;
        result
    }

    fn look_up(&self, shard: &mut Shard, database: usize, place: Place, key: &[u8]) -> Option<Value> {
        let now = self.now();
        let index = shard.find(database, place.tag, key, now)?;
        Some(self.used(shard.entry(database, index), now))
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
        let limit = self.settings.max_key_len.min(MAX_KEY_LEN);
        if key.len() > limit {
            return Err(StoreError::KeyTooLong { len: key.len(), limit });
        }
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

    fn follow_settings(&mut self) {
        let version = self.store.settings_version();
        if version != self.settings_version {
            self.settings = self.store.settings();
            self.settings_version = version;
        }
    }

    fn make_room(&mut self, entry: &Entry) -> bool {
        self.has_room_for(entry.borrow().allocation_size() as u64)
    }

    fn has_room_for(&mut self, need: u64) -> bool {
        let Settings { max_memory, eviction, .. } = self.settings;
        max_memory == 0
            || self
                .store
                .keyspace
                .make_room(eviction, max_memory, need, self.is_holding, || self.random.u64(..))
    }

    /// Without room, only a write that does not make its key larger is let in, and none once the budget is exceeded.
    fn admit(&self, roomy: bool, entry: &Entry, current: Option<&Entry>) -> Result<(), StoreError> {
        let size = |entry: &Entry| entry.borrow().allocation_size();
        let not_larger = || current.is_some_and(|current| size(entry) <= size(current));
        if roomy || self.store.used_memory() <= self.settings.max_memory && not_larger() {
            return Ok(());
        }
        Err(self.out_of_memory())
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
        let roomy = self.make_room(&entry);
        let place = self.store.keyspace.place(key);
        let mut shard = self.store.keyspace.lock(place.shard);
        let index = shard.find(database, place.tag, key, now);
        let current = index.map(|index| shard.entry(database, index).to_owned());
        let unchanged = match (&current, before) {
            (Some(current), Some(before)) => current.same(before.0.borrow()),
            (None, None) => true,
            _ => false,
        };
        if unchanged {
            self.admit(roomy, &entry, current.as_ref())?;
            put(&mut shard, database, place, index, entry, Expiry::Keep, now);
        }
        Ok(unchanged)
    }

    fn change_expiry(
        &self,
        shard: &mut Shard,
        database: usize,
        place: Place,
        key: &[u8],
        expiry: Expiry,
    ) -> ExpireOutcome {
        let Some(index) = shard.find(database, place.tag, key, self.now()) else {
            return ExpireOutcome::Missing;
        };
        match expiry {
            Expiry::Keep => {}
            Expiry::Never => shard.set_expiry(database, index, None),
            Expiry::At(at) if at <= self.now() => {
                shard.remove(database, index);
                return ExpireOutcome::Removed;
            }
            Expiry::At(at) => shard.set_expiry(database, index, Some(at)),
        }
        ExpireOutcome::Changed
    }
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
    index: Option<usize>,
    entry: Entry,
    expiry: Expiry,
    now: u64,
) -> Option<Entry> {
    let at = match expiry {
        Expiry::At(at) if at <= now => return index.map(|index| shard.remove(database, index)),
        Expiry::At(at) => Some(at),
        Expiry::Never => None,
        Expiry::Keep => index.and_then(|index| shard.entry(database, index).expiry()),
    };
    if let Some(index) = index {
        // An overwritten key keeps the credit that its uses have earned.
        let frequency = shard.entry(database, index).access().frequency();
        entry.borrow().set_access(entry.borrow().access().with_frequency(frequency));
    }
    let entry = match entry.borrow().set_expiry(at) {
        Ok(()) => entry,
        Err(copy) => copy,
    };
    shard.put(database, place.tag, index, entry)
}

/// Adds one to a counter that only this thread writes.
fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
