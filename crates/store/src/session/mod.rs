//! A thread's way into the store: encodes before a shard is locked, decodes after it is let go.
//!
//! It joins the codec to the memory tier. It knows keys, values, conditions and expiry; no commands, no replies. This
//! file has the session itself and its reads.
//!
//! - `write`: what changes keys
//! - `encoding`: values to records and back, with the dictionaries of the moment
//! - `packing`: values that nobody uses, at a stronger level
//! - `sampling`: values that are there already, to learn dictionaries from
//! - `lists`: lists, a node at a time
//! - `copies`: values that go to other keys as they are stored
//! - `value`: a value as it is stored
//! - `terms`, `error`: what operations are told, what they answer, and why they fail

mod copies;
mod encoding;
mod error;
mod lists;
mod packing;
mod sampling;
mod terms;
mod value;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use snugly_codec::{Decoder, Encoder};

use crate::dictionaries::KeyPredicate;
use crate::dictionaries::known::Known;
use crate::memory::entry::EntryRef;
use crate::memory::keyspace::{Locked, Place, Unknown};
use crate::memory::shard::Presence;
use crate::store::{SessionCounters, Settings, Store, system_time};
use crate::tiers::Terms;

pub use copies::Usage;
pub(crate) use encoding::Anew;
pub use error::StoreError;
pub use lists::{Elements, Inserted, ListSet, ListSettings, ListStats, Search};
pub(crate) use packing::{Packer, Packing};
pub(crate) use sampling::Shown;
use sampling::Turns;
pub use terms::{Condition, ExpireConditions, ExpireOutcome, Expiry, ManyCondition, SetOutcome, Ticket};
pub use value::{KeptValue, Value};

/// One thread's access to a [`Store`], with its own compression contexts, buffers and counters.
pub struct Session {
    store: Arc<Store>,
    encoder: Encoder,
    decoder: Decoder,
    counters: Arc<SessionCounters>,
    settings: Settings,
    settings_version: u64,
    /// The dictionaries as this session knows them, and which edition that is.
    known: Arc<Known>,
    edition: u64,
    /// Keys that are not encoded with a dictionary.
    excluded: Option<KeyPredicate>,
    /// Which values and which nodes of lists are shown to those who sample.
    values_shown: Turns,
    nodes_shown: Turns,
    /// How many values will be encoded with a dictionary until one is noted.
    unnoted: u32,
    now: Option<u64>,
    random: fastrand::Rng,
    /// Whether what is read or overwritten counts as used.
    touches: bool,
    /// Whether this thread holds shards, and so must not wait for others.
    is_holding: bool,
    /// How many changes the queue had after the last write.
    ticket: Option<u64>,
    current: Vec<u8>,
    edited: Vec<u8>,
}

/// From so many keys a random one is chosen where they are on disk.
const RANDOM_SAMPLE: usize = 32;
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
            // Whatever is newer than the edition is fetched again.
            edition: store.dictionaries.edition(),
            known: store.dictionaries.known(),
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

    /// Whether keys that are read or overwritten from now on count as used, as they do at first: it makes an eviction
    /// less likely.
    pub fn set_touches(&mut self, touches: bool) {
        self.touches = touches;
    }

    /// Looks a key up for reading: counts a hit or a miss, and makes an eviction of the key less likely.
    ///
    /// # Errors
    /// [`StoreError::WrongType`] if it is a list, [`StoreError::Unreadable`] if the key's value is damaged where it is
    /// stored.
    pub fn get(&mut self, database: usize, key: &[u8]) -> Result<Option<Value>, StoreError> {
        let value = self.touch(database, key)?;
        if value.as_ref().is_some_and(Value::is_list) { Err(StoreError::WrongType) } else { Ok(value) }
    }

    /// As [`Session::get`], whatever kind of value it is.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] if the key's value is damaged where it is stored.
    pub fn touch(&mut self, database: usize, key: &[u8]) -> Result<Option<Value>, StoreError> {
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

    /// Looks several keys up at one instant, as [`Session::touch`] does for one.
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
        self.decode(value, out).map_err(|source| StoreError::Unreadable { key: value.key().to_vec(), source })
    }

    /// Makes a value ready to be read later with [`Session::read_kept`], by any session.
    pub fn keep(&mut self, value: Value) -> KeptValue {
        let number = value.record().dictionary();
        let dictionary = number.and_then(|number| self.dictionary(number));
        KeptValue { value, dictionary }
    }

    /// As [`Session::read`], of a value that was kept.
    ///
    /// # Errors
    /// As [`Session::read`].
    pub fn read_kept(&mut self, kept: &KeptValue, out: &mut Vec<u8>) -> Result<(), StoreError> {
        let KeptValue { value, dictionary } = kept;
        let find = |_| dictionary.as_deref();
        let decoded = self.decoder.decode_with(&value.record(), &find, value.len(), out);
        decoded.map_err(|source| StoreError::Unreadable { key: value.key().to_vec(), source })
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

    /// A handle to an entry, with this use of it noted if it counts.
    fn used(&self, entry: EntryRef<'_>, now: u64) -> Value {
        self.note_use(entry, now);
        Value(entry.to_owned())
    }

    fn note_use(&self, entry: EntryRef<'_>, now: u64) {
        if self.touches {
            entry.set_access(entry.access().used(now, self.settings.eviction.frequency_cap()));
        }
    }

    fn count_lookup(&self, hit: bool) {
        let counter = if hit { &self.counters.hits } else { &self.counters.misses };
        bump(counter);
    }

    /// Follows what has changed since the last operation, as every operation does. Whoever keeps a session without using
    /// it does this now and then: it holds dictionaries that may otherwise be gone.
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

    /// The last write of this session that [`Session::take_ticket`] did not take. It stays to be taken.
    pub fn ticket(&self) -> Option<Ticket> {
        self.ticket.map(Ticket)
    }

    /// The last write of this session, to be waited for with [`Store::durable`]; `None` if there was none since the last
    /// call, or there is no disk tier.
    pub fn take_ticket(&mut self) -> Option<Ticket> {
        self.ticket.take().map(Ticket)
    }

    /// Decodes a value into a buffer, unless it is stored as it is.
    fn read_into(&mut self, value: &Value, buffer: &mut Vec<u8>) -> Result<(), StoreError> {
        buffer.clear();
        if value.record().as_identity().is_some() {
            return Ok(());
        }
        self.read(value, buffer)
    }
}

/// Adds one to a counter that only this thread writes.
fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
