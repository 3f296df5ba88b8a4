//! A thread's access to the store: encodes before a shard is locked, decodes after it is released.
//!
//! It joins the codec to the memory tier. It knows keys, values, conditions and expiry; it must not know
//! commands or replies. This file has the session itself and its reads.
//!
//! - `commit`: the sequence of steps in which a key gets a new entry
//! - `write`: writing strings, removing keys and changing expiries
//! - `metadata`: writes with flags and versions
//! - `encoding`: encoding and decoding of values, with the current dictionaries
//! - `parts`: drafts, for values that are changed or read in parts
//! - `recompression`: encoding of values that stay, for the stage that they have come to
//! - `sampling`: samples of written and existing values, to train dictionaries from
//! - `lists`: lists, a node at a time
//! - `snapshot`: all keys as they are at one instant
//! - `copies`: copies of stored values to other keys
//! - `value`: a value as it is stored
//! - `conditions`: parameters and results of operations

mod commit;
mod copies;
mod encoding;

mod conditions;
mod lists;
mod metadata;
mod parts;
mod recompression;
mod sampling;
mod snapshot;
#[cfg(test)]
mod tests;
mod value;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use snugly_codec::{Decoder, Encoder};

use crate::clock::system_time;
use crate::dictionaries::KeyPredicate;
use crate::dictionaries::set::DictionarySet;
use crate::entry::EntryRef;
use crate::error::StoreError;
use crate::key::{Key, KeyHash};
use crate::memory::keyspace::{GrowingHold, Locked, Unknown};
use crate::memory::shard::Presence;
use crate::settings::Settings;
use crate::store::{SessionCounters, Store, Ticket};
use crate::tiers::LookupContext;
use crate::values::Kind;

pub use conditions::{Condition, ExpireConditions, ExpireOutcome, Expiry, ManyCondition, SetOutcome};
pub use copies::Usage;
pub(crate) use encoding::ReencodeOutcome;
pub use lists::{Elements, Inserted, KeptElements, ListSet, ListStats, Popped, Search};
pub use metadata::{DeleteOutcome, Kept};
pub(crate) use recompression::{Recompression, Recompressor};
pub(crate) use sampling::Shown;
use sampling::Turns;
pub use snapshot::{KeyspaceSnapshot, SnapshotError, SnapshotKey};
pub use value::{KeptValue, Value};

/// One thread's access to a [`Store`], with its own compression contexts, buffers and counters.
pub struct Session {
    store: Arc<Store>,
    encoder: Encoder,
    decoder: Decoder,
    counters: Arc<SessionCounters>,
    settings: Settings,
    settings_version: u64,
    /// Dictionaries known to this session, and the edition of the set.
    dictionaries: Arc<DictionarySet>,
    edition: u64,
    /// Keys that are not encoded with a dictionary.
    excluded: Option<KeyPredicate>,
    /// Turns for offering values and list nodes to sampling.
    values_shown: Turns,
    nodes_shown: Turns,
    /// Number of values to encode with a dictionary until one is noted.
    unnoted: u32,
    now: Option<u64>,
    random: fastrand::Rng,
    /// Whether what is read or overwritten counts as used.
    touches: bool,
    /// Whether this thread holds shards, and so must not wait for others.
    is_holding: bool,
    /// Bytes that a write may take although there is no room for them.
    allowance: u64,
    /// Whether writes are answered only when all are on disk.
    is_unanswered: bool,
    /// Number of the queue's last change after the last write.
    ticket: Option<u64>,
    current: Vec<u8>,
    edited: Vec<u8>,
    /// Whether a buffer was used since [`Session::rest`] was called the last time.
    has_worked: bool,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Keys that a session has to itself for some operations ([`Session::exclusively_growing`]).
pub struct Hold<'a>(GrowingHold<'a>);

impl Hold<'_> {
    /// Takes whatever a key needs that is not held yet. It waits for others, who do not see what was changed so far.
    pub fn take(&self, key: &[u8]) {
        if !self.0.covers(key) {
            self.0.take_all();
        }
    }

    /// Takes all keys.
    pub fn take_all(&self) {
        self.0.take_all();
    }
}

/// Number of keys from which a random one is chosen where they are on disk.
const RANDOM_SAMPLE: usize = 32;
/// Buffers that grew over this for one large value are given back.
const KEPT_BUFFER: usize = 1 << 20;

impl Store {
    /// A session for the calling thread.
    pub fn session(self: &Arc<Store>) -> Session {
        let counters = Arc::<SessionCounters>::default();
        self.counters.lock().push(counters.clone());
        Session::new(self.clone(), counters)
    }

    /// A session whose work is not counted in [`Store::stats`].
    pub(crate) fn uncounted_session(self: &Arc<Store>) -> Session {
        Session::new(self.clone(), Arc::default())
    }
}

impl Session {
    /// Number of keys that [`Session::prefetch`] takes at once.
    pub const PREFETCHED: usize = 16;

    pub(crate) fn new(store: Arc<Store>, counters: Arc<SessionCounters>) -> Session {
        Session {
            encoder: Encoder::new(counters.codec.clone()),
            decoder: Decoder::new(counters.codec.clone()),
            settings: store.settings(),
            settings_version: store.settings_version(),
            // A newer edition is fetched again.
            edition: store.dictionaries.edition(),
            dictionaries: store.dictionaries.set(),
            excluded: store.dictionaries.excluded(),
            values_shown: Turns::default(),
            nodes_shown: Turns::default(),
            unnoted: 0,
            store,
            counters,
            now: None,
            random: fastrand::Rng::new(),
            touches: true,
            is_holding: false,
            allowance: 0,
            is_unanswered: false,
            ticket: None,
            current: Vec::new(),
            edited: Vec::new(),
            has_worked: false,
        }
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Gives back the buffers that are kept for the next values.
    pub fn give_back(&mut self) {
        self.encoder.give_back();
        (self.current, self.edited) = (Vec::new(), Vec::new());
        self.counters.buffer_bytes.store(0, Ordering::Relaxed);
    }

    /// Gives the buffers back if none was used since the last call, and returns whether so: for a thread that has nothing
    /// to do.
    pub fn rest(&mut self) -> bool {
        let is_idle = !std::mem::take(&mut self.has_worked);
        if is_idle {
            self.give_back();
        }
        is_idle
    }

    /// Notes that buffers were used, and what is kept of them.
    fn note_buffers(&mut self) {
        let bytes = self.encoder.kept_bytes() + self.current.capacity() + self.edited.capacity();
        self.counters.buffer_bytes.store(bytes as u64, Ordering::Relaxed);
        self.has_worked = true;
    }

    /// Returns the time that operations use, in Unix milliseconds.
    pub fn now(&self) -> u64 {
        self.now.unwrap_or_else(system_time)
    }

    /// Fixes the time for the operations to come (a server reads its clock once for a batch of requests), or with
    /// `None` follows the wall clock again.
    pub fn set_now(&mut self, now: Option<u64>) {
        self.now = now;
    }

    /// Returns whether keys that are read or overwritten from now on count as used, as they do at first: it
    /// makes an eviction less likely.
    pub fn set_touches(&mut self, touches: bool) {
        self.touches = touches;
    }

    /// Makes room in memory for so many bytes, as a write that takes them would.
    ///
    /// # Errors
    /// [`StoreError::OutOfMemory`] if nothing may be evicted for them.
    pub fn make_room(&mut self, bytes: usize) -> Result<(), StoreError> {
        self.follow_settings();
        if self.has_room_for(bytes as u64)? { Ok(()) } else { Err(self.out_of_memory()) }
    }

    /// Allows each write from now on to take so many bytes although there is no room for them; at first it is none. It is
    /// for writes that belong together, for which room was made before the first: the last of them is not to fail for
    /// the bytes that an entry takes besides.
    pub fn set_allowance(&mut self, bytes: usize) {
        self.allowance = bytes as u64;
    }

    /// Bytes that each write may take although there is no room for them.
    pub fn allowance(&self) -> usize {
        self.allowance as usize
    }

    /// Makes writes wait for the disk only while too many are on their way there, not while one is too old:
    /// for callers that answer no write before all are on disk.
    pub fn answer_nobody(&mut self) {
        self.is_unanswered = true;
    }

    /// Looks a key up for reading: counts a hit or a miss, and makes an eviction of the key less likely.
    ///
    /// # Errors
    /// [`StoreError::WrongType`] if it is no string, [`StoreError::Unreadable`] if the key's value is damaged where it is
    /// stored.
    pub fn get(&mut self, database: usize, key: &[u8]) -> Result<Option<Value>, StoreError> {
        match self.touch(database, key)? {
            Some(value) if value.kind() != Kind::String => Err(StoreError::WrongType),
            value => Ok(value),
        }
    }

    /// Like [`Session::get`], for any kind of value.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] if the key's value is damaged where it is stored.
    pub fn touch(&mut self, database: usize, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.follow_settings();
        let now = self.now();
        let value = self.look(self.key(database, key), |session, entry| session.used(entry, now))?;
        self.count_lookup(database, key, value.is_some());
        Ok(value)
    }

    /// Shows a live entry, wherever it is.
    fn look<R>(
        &self,
        key: Key<'_>,
        show: impl Fn(&Session, EntryRef<'_>) -> R,
    ) -> Result<Option<R>, StoreError> {
        match self.store.keyspace.read(key, self.now(), |entry| show(self, entry)) {
            Ok(shown) => return Ok(shown),
            Err(Unknown) if self.store.disk().is_none() => return Ok(None),
            Err(Unknown) => {}
        }
        let (mut shard, presence) = self.resolve(key)?;
        Ok(presence.live().map(|index| show(self, shard.entry(key.database, index))))
    }

    /// A key as it is looked up, hashed once.
    fn key<'k>(&self, database: usize, bytes: &'k [u8]) -> Key<'k> {
        self.store.keyspace.key(database, bytes)
    }

    /// Locks a key's shard once it is certain what the key is.
    fn resolve(&self, key: Key<'_>) -> Result<(Locked<'_>, Presence), StoreError> {
        self.store.resolve(key, self.lookup_context())
    }

    fn lookup_context(&self) -> LookupContext {
        LookupContext { settings: self.settings, now: self.now(), holding: self.is_holding }
    }

    /// Announces that these keys will be looked up soon, so that the waits for memory of up to
    /// [`PREFETCHED`](Self::PREFETCHED) of them overlap.
    pub fn prefetch<'k>(&self, database: usize, keys: impl Iterator<Item = &'k [u8]>) {
        let mut hashes = [KeyHash::default(); Self::PREFETCHED];
        let mut len = 0;
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = self.store.keyspace.hash(key);
            len += 1;
        }
        self.store.keyspace.prefetch(&hashes[..len], database);
    }

    /// Looks several keys up at one instant, as [`Session::touch`] does for one.
    ///
    /// # Errors
    /// Errors of [`Session::get`].
    pub fn get_many<'k>(
        &mut self,
        database: usize,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<Vec<Option<Value>>, StoreError> {
        self.follow_settings();
        let keys: Vec<Key<'_>> = keys.map(|key| self.key(database, key)).collect();
        if self.store.disk().is_some() {
            // Fetched before the shards are held.
            for key in &keys {
                self.peek_at(*key)?;
            }
        }
        let store = self.store.clone();
        let held = store.keyspace.hold(keys.iter().map(|key| key.hash));
        let values: Result<Vec<_>, _> = self.holding(|session| {
            let now = session.now();
            keys.iter().map(|key| session.look(*key, |session, entry| session.used(entry, now))).collect()
        });
        drop(held);
        let values = values?;
        let found = keys.iter().zip(&values);
        found.for_each(|(key, value)| self.count_lookup(database, key.bytes, value.is_some()));
        Ok(values)
    }

    /// Looks a key up without counting it as a use.
    ///
    /// # Errors
    /// Errors of [`Session::get`].
    pub fn peek(&mut self, database: usize, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.peek_at(self.key(database, key))
    }

    fn peek_at(&self, key: Key<'_>) -> Result<Option<Value>, StoreError> {
        self.look(key, |_, entry| Value(entry.to_owned()))
    }

    /// Appends a value to `out`, decompressed.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] if its codec is not in this build or the record is damaged, [`StoreError::WrongType`]
    /// if it is no string; `out` is as before.
    pub fn read(&mut self, value: &Value, out: &mut Vec<u8>) -> Result<(), StoreError> {
        let record = value.record().ok_or(StoreError::WrongType)?;
        self.decode(&record, out)
            .map_err(|source| StoreError::Unreadable { key: value.key().to_vec(), source })
    }

    /// Makes a value ready to be read later with [`Session::read_kept`], by any session.
    pub fn keep(&mut self, value: Value) -> KeptValue {
        let number = value.record().and_then(|record| record.dictionary());
        let dictionary = number.and_then(|number| self.dictionary(number));
        KeptValue { value, dictionary }
    }

    /// Like [`Session::read`], for a kept value.
    ///
    /// # Errors
    /// Errors of [`Session::read`].
    pub fn read_kept(&mut self, kept: &KeptValue, out: &mut Vec<u8>) -> Result<(), StoreError> {
        let KeptValue { value, dictionary } = kept;
        let find = |_| dictionary.as_deref();
        let record = value.record().ok_or(StoreError::WrongType)?;
        let decoded = self.decoder.decode_with(&record, &find, record.raw_len(), out);
        decoded.map_err(|source| StoreError::Unreadable { key: value.key().to_vec(), source })
    }

    /// Shows keys from `cursor` on, about `count` of them, with their values as stored; returns the next
    /// cursor, 0 at the end. A key that is there from the first call to the last is shown at least once.
    ///
    /// # Errors
    /// Errors of [`Session::get`].
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
    /// Errors of [`Session::get`].
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
        self.holding_keys(keys.map(|key| store.keyspace.hash(key)), operations)
    }

    /// Like [`Session::exclusively`], for keys that are hashed already.
    fn holding_keys<R>(
        &mut self,
        keys: impl Iterator<Item = KeyHash>,
        operations: impl FnOnce(&mut Session) -> R,
    ) -> R {
        let store = self.store.clone();
        let _group = store.disk().map(|disk| disk.queue().group());
        let _held = store.keyspace.hold(keys);
        self.holding(operations)
    }

    /// Like [`Session::exclusively`], for operations whose keys are not known beforehand: all other sessions
    /// wait.
    pub fn all_exclusively<R>(&mut self, operations: impl FnOnce(&mut Session) -> R) -> R {
        let store = self.store.clone();
        let _group = store.disk().map(|disk| disk.queue().group());
        let _held = store.keyspace.hold_all();
        self.holding(operations)
    }

    /// Like [`Session::exclusively`], for operations that may turn out to need other keys than these: they ask for them
    /// through the [`Hold`] before they touch them. One thread at a time runs such operations; others go on with other
    /// keys.
    pub fn exclusively_growing<'k, R>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        operations: impl FnOnce(&mut Session, &Hold<'_>) -> R,
    ) -> R {
        let store = self.store.clone();
        let _group = store.disk().map(|disk| disk.queue().group());
        let hold = Hold(store.keyspace.hold_and_grow(keys.map(|key| store.keyspace.hash(key))));
        let result = self.holding(|session| operations(session, &hold));
        drop(hold);
        result
    }

    fn holding<R>(&mut self, operations: impl FnOnce(&mut Session) -> R) -> R {
        let outer = std::mem::replace(&mut self.is_holding, true);
        let result = operations(self);
        self.is_holding = outer;
        result
    }

    /// A handle to an entry, with this use of it noted if it counts.
    fn used(&self, entry: EntryRef<'_>, now: u64) -> Value {
        self.note_use(entry, now);
        Value(entry.to_owned())
    }

    fn note_use(&self, entry: EntryRef<'_>, now: u64) {
        if self.touches {
            let cap = self.settings.eviction.frequency_cap();
            entry.set_access(entry.access().used(now, cap, || fastrand::u32(..)));
        }
    }

    fn count_lookup(&self, database: usize, key: &[u8], hit: bool) {
        let counter = if hit { &self.counters.hits } else { &self.counters.misses };
        bump(counter);
        if !hit {
            self.store.changes.missed(database, key);
        }
    }

    /// Fetches changed settings and dictionaries, as every operation does. The owner of an idle session calls
    /// it now and then, since the session holds dictionaries that may otherwise be dropped.
    pub fn follow(&mut self) {
        self.follow_settings();
    }

    fn follow_settings(&mut self) {
        let version = self.store.settings_version();
        if version != self.settings_version {
            self.settings = self.store.settings();
            self.settings_version = version;
        }
        self.follow_dictionaries();
    }

    /// Returns the ticket of this session's last write that [`Session::take_ticket`] did not take, without
    /// taking it.
    pub fn ticket(&self) -> Option<Ticket> {
        self.ticket.map(Ticket)
    }

    /// Takes the ticket of this session's last write, to be waited for with [`Store::durable`]; `None` if
    /// there was none since the last call, or there is no disk tier.
    pub fn take_ticket(&mut self) -> Option<Ticket> {
        self.ticket.take().map(Ticket)
    }

    /// Decodes a value into a buffer, unless it is stored as it is.
    fn read_into(&mut self, value: &Value, buffer: &mut Vec<u8>) -> Result<(), StoreError> {
        buffer.clear();
        if value.plain().is_some() {
            return Ok(());
        }
        self.read(value, buffer)
    }
}

/// Adds one to a counter that only this thread writes.
fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
