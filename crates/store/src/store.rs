//! The store: keyspace, settings, and the counters of every session.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, RwLock};
use snugly_codec::{Choice, CodecId, Counters, Snapshot};
use snugly_learning::{Decision, Goal};

use crate::changes::{Changes, Observer};
use crate::dictionaries::{
    ClassStats, Dictionaries, DictionaryError, DictionarySettings, DictionaryStats, Imported, KeyPredicate,
    SampleStats,
};
use crate::disk::{Disk, DiskStats, Durability, LoadMark, OpenError, Storage};
use crate::hash::HashKey;
use crate::memory::database::Database;
use crate::memory::eviction::EvictionPolicy;
use crate::memory::keyspace::{Keyspace, SHARD_BYTES};
use crate::memory::slab::{SLAB, SlabStats};
use crate::packing::{PackingCounters, PackingSettings, PackingStats};
use crate::quicklist::ListTotals;
use crate::quicklist::decoded::DecodedNodes;
use crate::quicklist::edited::EditedNodes;
use crate::session::{ListSettings, Session, StoreError, Ticket};
use crate::upkeep::DictionaryTender;

/// What is fixed for a store's life.
#[derive(Clone)]
pub struct Config {
    /// How many numbered databases there are; default 16.
    pub databases: usize,
    /// Into how many parts, each with a lock of its own, the keyspace is split: a power of two up to 2^20. By
    /// default it follows `max_memory`, so that a shard holds some hundreds to thousands of keys.
    pub shards: Option<usize>,
    /// Who is told of every change; nobody by default.
    pub observer: Option<Arc<dyn Observer>>,
    /// What can be changed later.
    pub settings: Settings,
}

/// What can be changed while the store is in use ([`Store::change_settings`]).
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How values are compressed. Changing it changes new writes only.
    pub compression: Choice,
    /// What codec and level are chosen for by class of keys, instead, once there is something to choose from. None (the
    /// default) chooses nothing.
    pub goal: Option<Goal>,
    /// Bytes that keys, values and their overhead may take in memory; 0 (the default) is no limit.
    pub max_memory: u64,
    /// What happens when a write needs more than that.
    pub eviction: EvictionPolicy,
    /// The longest key, in bytes, up to [`MAX_KEY_LEN`](crate::MAX_KEY_LEN); default 64 KiB.
    pub max_key_len: usize,
    /// The longest value, in bytes before compression; default 512 MiB.
    pub max_value_len: usize,
    /// How dictionaries are made, while a [`DictionaryTender`] does it.
    pub dictionaries: DictionarySettings,
    /// What becomes of records that nobody uses, while a [`DictionaryTender`] does it.
    pub packing: PackingSettings,
    /// How lists are laid out and compressed. Changing it changes what is written to lists from then on.
    pub lists: ListSettings,
}

/// The longest key by default, in bytes.
pub const DEFAULT_MAX_KEY_LEN: usize = 64 << 10;
/// The longest value by default, in bytes.
pub const DEFAULT_MAX_VALUE_LEN: usize = 512 << 20;
/// How many databases there are by default.
pub const DEFAULT_DATABASES: usize = 16;

impl Settings {
    /// Defaults, with values compressed as `compression` says.
    pub fn new(compression: Choice) -> Settings {
        Settings {
            compression,
            goal: None,
            max_memory: 0,
            eviction: EvictionPolicy::NoEviction,
            max_key_len: DEFAULT_MAX_KEY_LEN,
            max_value_len: DEFAULT_MAX_VALUE_LEN,
            dictionaries: DictionarySettings::default(),
            packing: PackingSettings::default(),
            lists: ListSettings::default(),
        }
    }

    /// Whether new values or nodes of lists are encoded with dictionaries: that takes zstd.
    pub fn uses_dictionaries(&self) -> bool {
        self.values_use_dictionaries() || self.lists_use_dictionaries()
    }

    pub(crate) fn values_use_dictionaries(&self) -> bool {
        self.dictionaries.enabled
            && (self.goal.is_some() || self.compression.algorithm().id() == CodecId::Zstd)
    }

    pub(crate) fn lists_use_dictionaries(&self) -> bool {
        let codec = self.lists.node_codec().map(|codec| codec.algorithm().id());
        self.dictionaries.enabled && codec == Some(CodecId::Zstd)
    }

    /// What records are encoded with that nobody uses: nothing else where it is switched off, speed is the goal, or this
    /// build has no zstd of that level.
    pub(crate) fn packs_with(&self) -> Option<Choice> {
        let is_wanted = self.packing.after > 0 && self.goal != Some(Goal::Speed);
        Choice::new("zstd", Some(self.packing.level), 0).ok().filter(|_| is_wanted)
    }

    /// Whether values or nodes of lists are sampled.
    pub fn learns(&self) -> bool {
        self.learns_from_values() || self.learns_from_lists()
    }

    pub(crate) fn learns_from_values(&self) -> bool {
        self.goal.is_some() || self.values_use_dictionaries() && self.dictionaries.trains
    }

    pub(crate) fn learns_from_lists(&self) -> bool {
        self.lists_use_dictionaries() && self.dictionaries.trains
    }
}

impl Config {
    /// Defaults, with values compressed as `compression` says.
    pub fn new(compression: Choice) -> Config {
        Config {
            databases: DEFAULT_DATABASES,
            shards: None,
            observer: None,
            settings: Settings::new(compression),
        }
    }

    /// A shard for every few hundred small keys that fit the budget, of which empty shards take no large part.
    fn shards(&self) -> usize {
        const SMALLEST: u64 = 1 << 10;
        const DEFAULT: u64 = 1 << 12;
        const LARGEST: u64 = 1 << 18;
        const BYTES_EACH: u64 = 512 << 10;
        /// Empty shards take at most one of so many bytes of the budget.
        const EMPTY_SHARE: u64 = 16;
        let by_memory = match self.settings.max_memory {
            0 => DEFAULT,
            max_memory => {
                let affordable = (max_memory / (EMPTY_SHARE * SHARD_BYTES as u64)).max(1);
                let smallest = SMALLEST.min(1 << affordable.ilog2());
                (max_memory / BYTES_EACH).next_power_of_two().clamp(smallest, LARGEST)
            }
        };
        self.shards.unwrap_or(by_memory as usize)
    }
}

/// A store that any number of threads share, each through a [`Session`] of its own.
pub struct Store {
    pub(crate) keyspace: Arc<Keyspace>,
    pub(crate) changes: Changes,
    pub(crate) dictionaries: Dictionaries,
    pub(crate) packing: PackingCounters,
    pub(crate) decoded: DecodedNodes,
    pub(crate) edited: EditedNodes,
    databases: usize,
    settings: RwLock<Settings>,
    settings_version: AtomicU64,
    counters: Mutex<Vec<Arc<SessionCounters>>>,
}

/// What one session counts. Only the session writes, so there is no contention.
#[derive(Default)]
pub(crate) struct SessionCounters {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) codec: Arc<Counters>,
}

/// What all sessions counted since the store was made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Lookups for reading that found a key.
    pub hits: u64,
    /// Lookups for reading that did not.
    pub misses: u64,
    /// Operations that changed something.
    pub writes: u64,
    /// Keys removed because their time had come.
    pub expired: u64,
    /// Keys removed to make room.
    pub evicted: u64,
    /// Values and bytes through the codecs.
    pub codec: Snapshot,
}

impl Stats {
    /// What was counted since an earlier moment.
    pub fn since(&self, earlier: &Stats) -> Stats {
        Stats {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            writes: self.writes - earlier.writes,
            expired: self.expired - earlier.expired,
            evicted: self.evicted - earlier.evicted,
            codec: self.codec.since(&earlier.codec),
        }
    }
}

/// How full one database is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseStats {
    /// Keys, those included whose time has come but which nobody has met yet.
    pub keys: usize,
    /// Keys that expire.
    pub volatile_keys: usize,
}

/// What a flush removed. Dropping it frees the memory, which for many keys takes a while: an asynchronous flush drops
/// it on another thread.
pub struct Flushed {
    databases: Vec<Database>,
}

impl Flushed {
    /// How many keys it holds.
    pub fn keys(&self) -> u64 {
        self.databases.iter().map(|part| part.len() as u64).sum()
    }
}

impl Store {
    /// Makes an empty store in memory.
    ///
    /// # Panics
    /// If `config.shards` is not a power of two up to 2^20.
    pub fn new(config: Config) -> Arc<Store> {
        let random = || RandomState::new().build_hasher().finish();
        let changes = Changes::new(config.observer.clone(), None, vec![0; config.databases]);
        Store::with(config, [random(), random()], changes)
    }

    /// Opens a store on disk, or makes one, with as much of it in memory as `max_memory` allows.
    ///
    /// # Errors
    /// [`OpenError`]; what is on disk is as it was.
    ///
    /// # Panics
    /// If `config.shards` is not a power of two up to 2^20.
    pub fn open(config: Config, storage: Storage) -> Result<Arc<Store>, OpenError> {
        let (disk, generations) = Disk::open(storage, config.databases)?;
        let hash_key = disk.hash_key();
        let changes = Changes::new(config.observer.clone(), Some(disk), generations);
        let store = Store::with(config, hash_key, changes);
        let keyspace: Weak<Keyspace> = Arc::downgrade(&store.keyspace);
        if let Some(disk) = store.changes.disk() {
            disk.attach(keyspace);
            disk.follow(&store.settings());
            store.dictionaries.load(disk, &store.settings()).map_err(|error| disk.unreadable(&error))?;
        }
        Ok(store)
    }

    fn with(config: Config, hash_key: HashKey, changes: Changes) -> Arc<Store> {
        Arc::new(Store {
            keyspace: Arc::new(Keyspace::new(config.shards(), hash_key, &changes)),
            changes,
            dictionaries: Dictionaries::new(&config.settings),
            packing: PackingCounters::default(),
            decoded: DecodedNodes::new(config.settings.lists.cache_bytes),
            edited: EditedNodes::default(),
            databases: config.databases,
            settings: RwLock::new(config.settings),
            settings_version: AtomicU64::new(0),
            counters: Mutex::default(),
        })
    }

    /// Writes to disk what is not there yet. The store can be read afterwards, but no write of it is kept any more.
    ///
    /// # Errors
    /// [`StoreError::Disk`] if something could not be written.
    pub fn close(&self) -> Result<(), StoreError> {
        let Some(disk) = self.disk() else { return Ok(()) };
        disk.close().map_err(|error| StoreError::Disk { reason: error.to_string() })
    }

    /// When writes are answered, if there is a disk tier.
    pub fn durability(&self) -> Option<Durability> {
        Some(self.disk()?.durability())
    }

    /// How the disk tier is doing, if there is one.
    pub fn disk_stats(&self) -> Option<DiskStats> {
        Some(self.disk()?.stats())
    }

    /// Waits until a write, and everything before it, is on disk.
    ///
    /// # Errors
    /// [`StoreError::Disk`] if a commit failed meanwhile; it is tried again, but this write has not been kept yet.
    pub async fn durable(&self, ticket: Ticket) -> Result<(), StoreError> {
        let Some(disk) = self.disk() else { return Ok(()) };
        loop {
            let progress = disk.queue().listen();
            match disk.queue().is_committed(ticket.0) {
                Some(true) => return Ok(()),
                Some(false) => {
                    let reason = disk.stats().failure.unwrap_or_default();
                    return Err(StoreError::Disk { reason });
                }
                None => progress.await,
            }
        }
    }

    /// Waits while more changes are on their way to the disk than may be; writers that cannot wait call it before.
    pub async fn ready_to_write(&self) {
        let Some(disk) = self.disk() else { return };
        while self.is_behind() {
            let progress = disk.queue().listen();
            disk.queue().hurry();
            if disk.is_behind() {
                progress.await;
            }
        }
    }

    /// How far the store had been loaded from a file when it was opened; none for a store in memory.
    ///
    /// # Errors
    /// [`StoreError::Disk`] if it cannot be read.
    pub fn load_mark(&self) -> Result<Option<LoadMark>, StoreError> {
        let Some(disk) = self.disk() else { return Ok(None) };
        disk.load_mark().map_err(|error| StoreError::Disk { reason: error.to_string() })
    }

    /// Notes on disk how far the store has been loaded from a file: what was written before is there with the mark, and
    /// nothing that is written after it is there without.
    pub fn mark_load(&self, mark: Option<&LoadMark>) {
        self.changes.load_mark(mark);
    }

    /// Whether [`Store::ready_to_write`] would wait: not while commits fail, which then is the answer of writes.
    pub fn is_behind(&self) -> bool {
        self.disk().is_some_and(Disk::is_behind)
    }

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

    /// Lets the store learn dictionaries and what to choose for a [`Settings::goal`], and pack what nobody uses
    /// ([`Settings::packing`]), as long as the tender is asked to step on. `clock` gives the processor time of the thread that asks.
    pub fn tend_dictionaries(
        self: &Arc<Store>,
        clock: impl Fn() -> Duration + Send + 'static,
    ) -> DictionaryTender {
        DictionaryTender::new(self, Box::new(clock))
    }

    /// The dictionaries that there are.
    pub fn dictionaries(&self) -> Vec<DictionaryStats> {
        let records: BTreeMap<u32, u64> = match self.disk() {
            // A disk that cannot be read is reported where it is read for data.
            Some(disk) => disk.dictionary_uses().unwrap_or_default(),
            None => self.keyspace.dictionary_uses(),
        };
        let settings = self.settings();
        let mut stats =
            self.dictionaries.known().stats(|number| records.get(&number).copied().unwrap_or_default());
        let is_used = |dictionary: &DictionaryStats| settings.uses_dictionary_for(&dictionary.pattern);
        stats.iter_mut().for_each(|dictionary| dictionary.active &= is_used(dictionary));
        stats
    }

    /// The content of a dictionary, as zstd's tools know it.
    pub fn dictionary_content(&self, number: u32) -> Option<Vec<u8>> {
        Some(self.dictionaries.known().version(number)?.dictionary().bytes().to_vec())
    }

    /// Has dictionaries trained with some of the values that are there: for classes of this pattern as it was learned, or
    /// for all. Whether they are used is up to their worth. Says how many classes that concerns as yet; nothing happens
    /// if none has the pattern. It is for a [`DictionaryTender`] to do.
    pub fn train_dictionaries(&self, pattern: Option<&[u8]>) -> usize {
        self.dictionaries.train_now(pattern)
    }

    /// Keeps values out of dictionaries from now on: those of these keys are not sampled nor encoded with one, and those
    /// that are already are encoded anew. What was sampled so far is forgotten; a dictionary that is there stays, see
    /// [`Store::forget_dictionary`].
    pub fn exclude_from_dictionaries(&self, excluded: Option<KeyPredicate>) {
        self.dictionaries.exclude(excluded);
    }

    /// Has no new value encoded with a dictionary, and those that are encoded anew. It goes when no value needs it, which
    /// is for a [`DictionaryTender`] to do.
    ///
    /// # Errors
    /// [`DictionaryError::Unknown`].
    pub fn forget_dictionary(&self, number: u32) -> Result<(), DictionaryError> {
        self.dictionaries.forget(number, &self.changes)
    }

    /// Uses a dictionary that was made elsewhere, for keys of this pattern and values of about `len` bytes; gives its number.
    /// What it is worth is not asked at first, but what can be learned from the values here is compared with it.
    ///
    /// A pattern has 1 to 256 bytes. It is a glob in which `*` ends a segment of the key (at `:`, `/`, `|`, `#` or the end),
    /// and is the only special character; at the end of the pattern it stands for all that follows. `*lists*` stands for the
    /// nodes of lists, of any length.
    ///
    /// # Errors
    /// [`DictionaryError`] if it is none, there is no room for it, the pattern is not as above, or values of this length
    /// have none.
    pub fn import_dictionary(
        &self,
        content: &[u8],
        pattern: &[u8],
        len: usize,
    ) -> Result<u32, DictionaryError> {
        let imported = Imported { content, pattern, len };
        self.dictionaries.import(&imported, &self.settings(), system_time(), &self.changes)
    }

    /// What is chosen for each class, the most precise pattern first.
    pub fn decisions(&self) -> Vec<Arc<Decision>> {
        self.dictionaries.known().decisions().iter().cloned().collect()
    }

    /// What is chosen for a value of `len` bytes.
    pub fn decision_for(&self, key: &[u8], len: usize) -> Option<Arc<Decision>> {
        self.dictionaries.known().decision_for(key, len).cloned()
    }

    /// The classes that are told apart at this moment, by pattern and length.
    pub fn classes(&self) -> Vec<ClassStats> {
        self.dictionaries.class_stats()
    }

    /// What dictionaries are learned from.
    pub fn sample_stats(&self) -> SampleStats {
        self.dictionaries.sample_stats()
    }

    /// What became of records that nobody uses.
    pub fn packing_stats(&self) -> PackingStats {
        self.packing.stats()
    }

    /// How many databases there are.
    pub fn databases(&self) -> usize {
        self.databases
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        *self.settings.read()
    }

    /// Changes settings; every session follows with its next operation. A lower `max_memory` is enforced at once.
    pub fn change_settings(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings.write());
        self.settings_version.fetch_add(1, Ordering::Release);
        let settings = self.settings();
        self.dictionaries.follow(&settings);
        self.decoded.limit(settings.lists.cache_bytes);
        if let Some(disk) = self.disk() {
            disk.follow(&settings);
        }
        if settings.max_memory > 0 {
            let mut random = fastrand::Rng::new();
            self.keyspace.make_room(settings.eviction, settings.max_memory, 0, false, || random.u64(..));
        }
    }

    pub(crate) fn settings_version(&self) -> u64 {
        self.settings_version.load(Ordering::Acquire)
    }

    /// What the lists that are in memory take: sums that every change keeps up to date.
    pub fn list_totals(&self) -> ListTotals {
        self.keyspace.list_totals()
    }

    /// Bytes of list nodes that are kept decoded (see [`ListSettings::cache_bytes`]), beside what is used.
    pub fn decoded_node_bytes(&self) -> u64 {
        self.decoded.bytes()
    }

    /// Bytes that keys, values and their overhead take in memory, as the allocator counts them.
    pub fn used_memory(&self) -> u64 {
        self.keyspace.used()
    }

    /// How full a database is in memory.
    pub(crate) fn memory_stats(&self, database: usize) -> DatabaseStats {
        self.keyspace.lock_each().fold(DatabaseStats::default(), |stats, shard| {
            let part = shard.existing_database(database);
            DatabaseStats {
                keys: stats.keys + part.map_or(0, Database::len),
                volatile_keys: stats.volatile_keys + part.map_or(0, Database::volatile_len),
            }
        })
    }

    /// Sums what all sessions counted.
    pub fn stats(&self) -> Stats {
        let totals = self.keyspace.totals();
        let disk = self.disk_stats().unwrap_or_default();
        let mut stats = Stats {
            expired: totals.expired + disk.expired,
            evicted: totals.evicted + disk.evicted,
            ..Stats::default()
        };
        for counters in self.counters.lock().iter() {
            stats.hits += counters.hits.load(Ordering::Relaxed);
            stats.misses += counters.misses.load(Ordering::Relaxed);
            stats.writes += counters.writes.load(Ordering::Relaxed);
            stats.codec += &counters.codec.snapshot();
        }
        stats
    }

    /// Removes keys whose time has come by `now` (Unix milliseconds), about `limit` at most; says how many went.
    /// Reads never see such a key; this gives the memory back of those that nobody reads.
    pub fn expire_due(&self, now: u64, limit: usize) -> usize {
        self.keyspace.expire_due(now, limit)
    }

    /// Says whether keys whose time has come stay in memory from now on, as long as nobody writes them: they are counted,
    /// and whoever reads them finds nothing.
    pub fn keep_expired(&self, keep: bool) {
        self.keyspace.keep_expired(keep);
    }

    /// Looks at about `limit` keys and moves those that stand in sparse pages to fuller ones, so that pages become empty
    /// and go back to the system; says at how many it looked, which is none if memory is not fragmented. Writers under a memory limit do the same while they make memory more fragmented; this is
    /// for what deletes and expiry leave behind.
    pub fn defragment(&self, limit: usize) -> usize {
        self.keyspace.defragment(limit)
    }

    /// What the entries of all stores of the process take in memory.
    pub fn slab_stats() -> SlabStats {
        SLAB.stats()
    }

    /// Empties one database, or all of them, at one instant for every reader.
    pub fn flush(&self, database: Option<usize>) -> Flushed {
        let mut shards: Vec<_> = self.keyspace.lock_each().collect();
        match database {
            Some(_) => self.changes.flushed(database),
            None => self.dictionaries.flushed(|| self.changes.flushed(None)),
        }
        let databases = shards.iter_mut().flat_map(|shard| shard.take(database)).collect();
        drop(shards);
        self.dictionaries.tidy();
        Flushed { databases }
    }

    /// Exchanges two databases at one instant for every reader.
    pub fn swap(&self, first: usize, second: usize) {
        if first == second {
            return;
        }
        let mut shards: Vec<_> = self.keyspace.lock_each().collect();
        shards.iter_mut().for_each(|shard| shard.swap(first, second));
        self.changes.swapped(first, second);
    }
}

/// The wall clock, in Unix milliseconds.
pub fn system_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
