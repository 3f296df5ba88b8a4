//! The store: keyspace, settings, and the counters of every session. It must not know how a session does its
//! work.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use snugly_codec::{Choice, Counters, Snapshot};
use snugly_learning::Decision;

use crate::changes::{Changes, Observer};
use crate::clock::system_time;
use crate::dictionaries::lists::LISTS;
use crate::dictionaries::{
    ClassStats, Dictionaries, DictionaryError, DictionaryStats, Imported, KeyPredicate, SampleStats,
};
use crate::disk::{
    BackupError, BackupProgress, CheckReport, Disk, DiskStats, Durability, LoadMark, OpenError, Storage,
};
use crate::drafts::{DraftStats, Drafts};
use crate::error::StoreError;
use crate::hash::HashKey;
use crate::memory::database::Database;
use crate::memory::keyspace::{Keyspace, SHARD_BYTES};
use crate::recompression::{RecompressionCounters, RecompressionStats};
use crate::settings::Settings;
use crate::slab::{SLAB, SlabStats};
use crate::values::Kind;
use crate::values::collection::CollectionTotals;
use crate::values::quicklist::dirty_nodes::DirtyNodes;
use crate::values::quicklist::node_cache::NodeCache;
use crate::versions::Versions;

/// Parameters that are fixed for a store's life.
#[derive(Clone)]
pub struct Config {
    /// Number of databases; default 16.
    pub databases: usize,
    /// Number of parts, each with a lock of its own, into which the keyspace is split: a power of two up to
    /// 2^20. By default it follows `max_memory`, so that a shard holds some hundreds to thousands of keys.
    pub shards: Option<usize>,
    /// Observer of every change; none by default.
    pub observer: Option<Arc<dyn Observer>>,
    /// Settings that can be changed later.
    pub settings: Settings,
}

/// Default number of databases.
pub const DEFAULT_DATABASES: usize = 16;

impl Config {
    /// Creates a default configuration with this compression.
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
        /// Divisor of the budget that gives the most bytes of empty shards.
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

/// A store that any number of threads share, each through a [`Session`](crate::Session) of its own.
pub struct Store {
    pub(crate) keyspace: Arc<Keyspace>,
    pub(crate) changes: Changes,
    pub(crate) dictionaries: Dictionaries,
    pub(crate) recompression: RecompressionCounters,
    pub(crate) node_cache: NodeCache,
    pub(crate) dirty_nodes: DirtyNodes,
    pub(crate) drafts: Drafts,
    pub(crate) versions: Arc<Versions>,
    databases: usize,
    settings: RwLock<Settings>,
    settings_version: AtomicU64,
    pub(crate) counters: Mutex<Vec<Arc<SessionCounters>>>,
}

/// Counters of one session. Only the session writes, so there is no contention.
#[derive(Default)]
pub(crate) struct SessionCounters {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) writes: AtomicU64,
    /// Bytes of the buffers that the session keeps.
    pub(crate) buffer_bytes: AtomicU64,
    pub(crate) codec: Arc<Counters>,
}

/// Sums of all sessions' counters since the store was opened.
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
    /// Returns the difference to earlier counters.
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

/// A write that is on its way to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub(crate) u64);

/// Size of one database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseStats {
    /// Keys, those included whose time has come but which nobody has met yet.
    pub keys: usize,
    /// Keys that expire.
    pub volatile_keys: usize,
}

/// Data removed by a flush. Dropping it frees the memory, which for many keys takes a while: an asynchronous
/// flush drops it on another thread.
pub struct Flushed {
    databases: Vec<Database>,
}

impl Flushed {
    /// Returns the number of keys removed.
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
        Store::with(config, [random(), random()], changes, Arc::new(Versions::from(1)))
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
        let (hash_key, versions) = (disk.hash_key(), disk.versions());
        let changes = Changes::new(config.observer.clone(), Some(disk), generations);
        let store = Store::with(config, hash_key, changes, versions);
        let keyspace: Weak<Keyspace> = Arc::downgrade(&store.keyspace);
        if let Some(disk) = store.changes.disk() {
            // Before the writer makes room by the policy.
            disk.follow(&store.settings());
            disk.attach(keyspace);
            store.dictionaries.load(disk, &store.settings()).map_err(|error| disk.unreadable(&error))?;
        }
        Ok(store)
    }

    fn with(config: Config, hash_key: HashKey, changes: Changes, versions: Arc<Versions>) -> Arc<Store> {
        Arc::new(Store {
            keyspace: Arc::new(Keyspace::new(config.shards(), hash_key, &changes)),
            changes,
            dictionaries: Dictionaries::new(&config.settings),
            recompression: RecompressionCounters::default(),
            node_cache: NodeCache::new(config.settings.lists.cache_bytes),
            dirty_nodes: DirtyNodes::default(),
            drafts: Drafts::default(),
            versions,
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

    /// Returns the guarantee for answered writes, if there is a disk tier.
    pub fn durability(&self) -> Option<Durability> {
        Some(self.disk()?.durability())
    }

    /// Returns statistics of drafts: values kept uncompressed, since they are changed or read in parts.
    pub fn draft_stats(&self) -> DraftStats {
        self.drafts.stats()
    }

    /// Returns statistics of the disk tier, if there is one.
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

    /// Writes a copy of a store on disk, as it is after all changes so far, into a folder that does not exist; verifies it, and
    /// returns what it has. The store goes on meanwhile. It takes a thread of its own.
    ///
    /// # Errors
    /// [`BackupError`]; nothing is left of the copy, and the store is not concerned.
    pub fn backup(&self, folder: &Path, progress: &Arc<BackupProgress>) -> Result<CheckReport, BackupError> {
        self.disk().ok_or(BackupError::InMemory)?.backup(folder, progress)
    }

    /// Returns the progress of loading from a file when the store was opened; `None` for a store in memory.
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

    /// Returns whether [`Store::ready_to_write`] would wait: not while commits fail, which then is the answer
    /// of writes.
    pub fn is_behind(&self) -> bool {
        self.disk().is_some_and(Disk::is_behind)
    }

    /// Returns all dictionaries.
    pub fn dictionaries(&self) -> Vec<DictionaryStats> {
        let records: BTreeMap<u32, u64> = match self.disk() {
            // A disk that cannot be read is reported where it is read for data.
            Some(disk) => disk.dictionary_uses().unwrap_or_default(),
            None => self.keyspace.dictionary_uses(),
        };
        let settings = self.settings();
        let mut stats =
            self.dictionaries.set().stats(|number| records.get(&number).copied().unwrap_or_default());
        let is_used = |dictionary: &DictionaryStats| settings.uses_dictionary_for(&dictionary.pattern);
        stats.iter_mut().for_each(|dictionary| dictionary.active &= is_used(dictionary));
        stats
    }

    /// Returns the content of a dictionary in the format of zstd's tools.
    pub fn dictionary_content(&self, number: u32) -> Option<Vec<u8>> {
        Some(self.dictionaries.set().version(number)?.dictionary().bytes().to_vec())
    }

    /// Requests training from some of the existing values: of classes with this pattern as it was learned, or
    /// of all. A dictionary is used only if it is worth it. Returns the number of classes that this concerns
    /// so far; nothing happens if none has the pattern. That of lists, `*lists*`, counts where dictionaries
    /// are trained for them, even if no node was seen since. A [`StoreMaintenance`](crate::StoreMaintenance) does the work.
    pub fn train_dictionaries(&self, pattern: Option<&[u8]>) -> usize {
        self.dictionaries.train_now(pattern, pattern == Some(LISTS) && self.settings().learns_from_lists())
    }

    /// Keeps values out of dictionaries from now on: those of these keys are not sampled nor encoded with one, and those
    /// that are already are re-encoded. What was sampled so far is forgotten; a dictionary that is there stays, see
    /// [`Store::forget_dictionary`].
    pub fn exclude_from_dictionaries(&self, excluded: Option<KeyPredicate>) {
        self.dictionaries.exclude(excluded);
    }

    /// Stops encoding new and re-encoded values with a dictionary. It is dropped when no value needs it,
    /// which is the work of a [`StoreMaintenance`](crate::StoreMaintenance).
    ///
    /// # Errors
    /// [`DictionaryError::Unknown`].
    pub fn forget_dictionary(&self, number: u32) -> Result<(), DictionaryError> {
        self.dictionaries.forget(number, &self.changes)
    }

    /// Uses a dictionary that was made elsewhere, for keys of this pattern and values of about `len` bytes;
    /// returns its number. What it is worth is not asked at first, but what can be learned from the values
    /// here is compared with it.
    ///
    /// A pattern has 1 to 256 bytes. It is a glob in which `*` ends a segment of the key (at `:`, `/`, `|`,
    /// `#` or the end), and is the only special character; at the end of the pattern it stands for all that
    /// follows. `*lists*` stands for the nodes of lists, of any length.
    ///
    /// # Errors
    /// [`DictionaryError`] if it is none, there is no room for it, the pattern is not as above, or values of
    /// this length have none.
    pub fn import_dictionary(
        &self,
        content: &[u8],
        pattern: &[u8],
        len: usize,
    ) -> Result<u32, DictionaryError> {
        let imported = Imported { content, pattern, len };
        self.dictionaries.import(&imported, &self.settings(), system_time(), &self.changes)
    }

    /// Returns the decision for each class, the most precise pattern first.
    pub fn decisions(&self) -> Vec<Arc<Decision>> {
        self.dictionaries.set().decisions().iter().cloned().collect()
    }

    /// Returns the decision for a value of `len` bytes.
    pub fn decision_for(&self, key: &[u8], len: usize) -> Option<Arc<Decision>> {
        self.dictionaries.set().decision_for(key, len).cloned()
    }

    /// Returns the classes that are told apart at this moment, by pattern and length.
    pub fn classes(&self) -> Vec<ClassStats> {
        self.dictionaries.class_stats()
    }

    /// Returns statistics of the samples for training.
    pub fn sample_stats(&self) -> SampleStats {
        self.dictionaries.sample_stats()
    }

    /// Returns statistics of recompression.
    pub fn recompression_stats(&self) -> RecompressionStats {
        self.recompression.stats()
    }

    /// Returns the number of databases.
    pub fn databases(&self) -> usize {
        self.databases
    }

    /// Returns the settings in force.
    pub fn settings(&self) -> Settings {
        *self.settings.read()
    }

    /// Changes settings; every session follows with its next operation. A lower `max_memory` is enforced at once.
    pub fn change_settings(self: &Arc<Store>, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings.write());
        self.settings_version.fetch_add(1, Ordering::Release);
        let settings = self.settings();
        self.dictionaries.follow(&settings);
        self.node_cache.limit(settings.lists.cache_bytes);
        if let Some(disk) = self.disk() {
            disk.follow(&settings);
        }
        if settings.max_memory > 0 {
            // Keys that cannot be evicted stay, and writes are refused for them.
            let _ = self.uncounted_session().make_room(0);
        }
    }

    pub(crate) fn settings_version(&self) -> u64 {
        self.settings_version.load(Ordering::Acquire)
    }

    /// Sums over the values of a kind that are in memory and made of records, which every change keeps up to date.
    pub fn collection_totals(&self, kind: Kind) -> CollectionTotals {
        self.keyspace.collection_totals(kind)
    }

    /// Bytes of list nodes that are kept decoded (see [`ListSettings::cache_bytes`](crate::ListSettings::cache_bytes)), beside what is used.
    pub fn decoded_node_bytes(&self) -> u64 {
        self.node_cache.bytes()
    }

    /// Forgets the list nodes that are kept decoded.
    pub fn forget_decoded_nodes(&self) {
        self.node_cache.clear();
    }

    /// Bytes of the buffers that sessions keep for their next values, until they
    /// [rest](crate::Session::rest).
    pub fn buffer_bytes(&self) -> u64 {
        self.counters.lock().iter().map(|counters| counters.buffer_bytes.load(Ordering::Relaxed)).sum()
    }

    /// Bytes that keys, values and their overhead take in memory, as the allocator counts them.
    pub fn used_memory(&self) -> u64 {
        self.keyspace.used()
    }

    /// Bytes of the keys and values in memory as they were given, for which [`used_memory`](Store::used_memory) is used.
    pub fn given_memory(&self) -> u64 {
        self.keyspace.given()
    }

    /// Returns the size of a database in memory.
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

    /// Removes keys that expired by `now` (Unix milliseconds), about `limit` at most; returns the number
    /// removed. Reads never see an expired key; this frees the memory of those that are not read.
    pub fn expire_due(&self, now: u64, limit: usize) -> usize {
        self.keyspace.expire_due(now, limit)
    }

    /// Sets whether expired keys stay in memory, as long as they are not written: they are counted, and reads
    /// find nothing.
    pub fn keep_expired(&self, keep: bool) {
        self.keyspace.keep_expired(keep);
    }

    /// Visits about `limit` keys and moves those in sparse pages to fuller ones, so that pages become empty
    /// and go back to the system; returns the number visited, which is 0 if memory is not fragmented. Writers
    /// under a memory limit do the same while they make memory more fragmented; this is for what deletes and
    /// expiry leave behind.
    pub fn defragment(&self, limit: usize) -> usize {
        self.keyspace.defragment(limit)
    }

    /// Returns the memory that the entries of all stores of the process take.
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
        self.drafts.swapped(first, second);
        self.dirty_nodes.swapped(first, second);
        self.changes.swapped(first, second);
    }
}
