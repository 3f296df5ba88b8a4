//! Where values live: an embedded cache store that keeps every value compressed.
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
//! A [`Store`] is shared; each thread works through a [`Session`] of its own, which encodes before a shard is locked
//! and decodes after it is let go. Keys expire lazily and by [`Store::expire_due`]; when `max_memory` is reached, keys
//! are evicted by an [`EvictionPolicy`]. In memory there is no background thread: whoever embeds the store calls
//! `expire_due` and [`Store::defragment`] now and then, and a [`DictionaryTender`] if values that are alike shall share
//! dictionaries.
//!
//! [`Store::open`] keeps everything on disk as well, where one thread commits in groups: a write is on disk when
//! [`Store::durable`] says so, and at the latest after [`Storage::commit_interval`]. Memory then holds what is used.
//!
//! - `session`: a thread's way in; `store`: what sessions share; `tiers`: where memory and disk meet
//! - `memory`: entries in shards; `disk`: rows in a file
//! - `dictionaries`: what values that are alike have in common; `upkeep`: what is done for them in the background
//! - `packing`: records that nobody uses, at a stronger level
//! - `quicklist`: lists, in compressed nodes
//! - `changes`: who is told of them
//!
//! The crate knows keys, databases, expiry, eviction and budgets. It does not know commands, protocols or sockets.

mod changes;
mod dictionaries;
mod disk;
mod hash;
mod memory;
mod packing;
mod quicklist;
mod session;
mod store;
mod tiers;
mod upkeep;

pub use changes::Observer;
pub use dictionaries::{
    ClassStats, DictionaryError, DictionarySettings, DictionaryStats, KeyPredicate, SampleStats,
};
#[cfg(fuzzing)]
pub use disk::parse_anything;
pub use disk::{
    CheckReport, DiskStats, Durability, LoadMark, MIN_MAX_DISK, OpenError, RepairReport, Storage, check,
    compact, repair,
};
pub use memory::entry::MAX_KEY_LEN;
pub use memory::eviction::EvictionPolicy;
pub use memory::slab::SlabStats;
pub use memory::{allocation_size, entry_allocation_size};
pub use packing::{PackingSettings, PackingStats};
pub use quicklist::{End, Fill, ListTotals};
pub use session::{
    Condition, Elements, ExpireConditions, ExpireOutcome, Expiry, Inserted, KeptValue, ListSet, ListSettings,
    ListStats, ManyCondition, Search, Session, SetOutcome, StoreError, Ticket, Usage, Value,
};
pub use snugly_codec::{Choice, Counters, Record, Snapshot};
pub use snugly_learning::{Band, Decision, Goal, Measured};
pub use snugly_listpack::Element;
pub use store::{
    Config, DEFAULT_DATABASES, DEFAULT_MAX_KEY_LEN, DEFAULT_MAX_VALUE_LEN, DatabaseStats, Flushed, Settings,
    Stats, Store, system_time,
};
pub use upkeep::DictionaryTender;
