//! An embedded cache store that keeps every value compressed.
//!
//! ```
//! use snugly_store::{Choice, Condition, Config, Expiry, Store};
//!
//! let compression = Choice::new("none", None, 256)?;
//! let store = Store::new(Config::new(compression));
//! let mut session = store.session(); // one for each thread
//!
//! session.set(0, b"user:1", b"{\"name\": \"Ada\"}", Expiry::Never, Condition::Always)?;
//!
//! let value = session.get(0, b"user:1")?.expect("it was just written");
//! let mut bytes = Vec::new();
//! session.read(&value, &mut bytes)?;
//! assert_eq!(bytes, b"{\"name\": \"Ada\"}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Store`] is shared; each thread works through a [`Session`] of its own, which encodes before a shard is
//! locked and decodes after it is released. Keys expire lazily and by [`Store::expire_due`]; when
//! `max_memory` is reached, keys are evicted by an [`EvictionPolicy`]. In memory there is no background
//! thread: the embedding program calls `expire_due` and [`Store::defragment`] now and then, and runs a
//! [`StoreMaintenance`] for dictionaries that similar values share.
//!
//! [`Store::open`] keeps everything on disk as well, where one thread commits in groups: a write is on disk
//! when [`Store::durable`] says so, and at the latest after [`Storage::commit_interval`]. Memory then holds
//! the values in use.
//!
//! - `session`: a thread's operations; `store`: state that sessions share; `tiers`: lookups across memory and
//!   disk
//! - `memory`: entries in shards; `disk`: rows in a file
//! - `dictionaries`: dictionaries for values that are alike; `maintenance`: background training, re-encoding
//!   and recompression
//! - `recompression`: stages of records, and what is to be done with a record that has come to the next one
//! - `values`: kinds of values, and collections: lists, in compressed nodes
//! - `changes`: notification of changes; `versions`: numbers for states of keys
//!
//! The crate knows keys, databases, expiry, eviction and budgets. It must not know commands, protocols or
//! sockets.

mod changes;
mod clock;
mod dictionaries;
mod dictionary_refs;
mod disk;
mod drafts;
mod entry;
mod error;
mod eviction;
mod hash;
mod key;
mod maintenance;
mod memory;
mod recompression;
mod session;
mod settings;
mod slab;
mod store;
mod tiers;
mod values;
mod versions;

pub use changes::{KeyChange, Observer};
pub use clock::system_time;
pub use dictionaries::{ClassStats, DictionaryError, DictionaryStats, KeyPredicate, SampleStats};
#[cfg(fuzzing)]
pub use disk::parse_anything;
pub use disk::{
    BackupError, BackupProgress, CheckReport, DiskStats, Durability, LoadMark, MIN_MAX_DISK, OpenError,
    RepairReport, Storage, check, compact, repair, restore,
};
pub use drafts::DraftStats;
pub use entry::{MAX_KEY_LEN, Metadata, Stage};
pub use error::StoreError;
pub use eviction::EvictionPolicy;
pub use maintenance::StoreMaintenance;
pub use recompression::RecompressionStats;
pub use session::{
    Condition, DeleteOutcome, Elements, ExpireConditions, ExpireOutcome, Expiry, Hold, Inserted, Kept,
    KeptElements, KeptValue, KeyspaceSnapshot, ListSet, ListStats, ManyCondition, Popped, Search, Session,
    SetOutcome, SnapshotError, SnapshotKey, Usage, Value,
};
pub use settings::{
    DEFAULT_MAX_KEY_LEN, DEFAULT_MAX_VALUE_LEN, DictionarySettings, ListSettings, RecompressionSettings,
    Settings,
};
pub use slab::{SlabStats, allocation_size, entry_allocation_size};
pub use snugly_codec::{Choice, Counters, Record, Snapshot};
pub use snugly_learning::{Band, Decision, Goal, Measured, ReadRate};
pub use snugly_listpack::Element;
pub use store::{Config, DEFAULT_DATABASES, DatabaseStats, Flushed, Stats, Store, Ticket};
pub use values::Kind;
pub use values::collection::CollectionTotals;
pub use values::quicklist::{End, Fill};
