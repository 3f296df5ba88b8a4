//! The memory tier: entries in shards, found by hash, evicted and expired.
//!
//! - [`table`]: the entries of a shard's database, in hash order
//! - [`expiry`]: the index of their expiries
//! - [`growth`]: the sizes of the tier's arrays
//! - [`database`]: a shard's part of one database, with its accounting
//! - [`shard`]: databases under one lock, and the eviction hand over them
//! - [`keyspace`]: all shards, the memory budget and the background work on them
//!
//! It holds records and must not look at a payload; encoding and decoding happen outside its locks, in the
//! session.

pub(crate) mod database;
pub(crate) mod expiry;
pub(crate) mod growth;
pub(crate) mod keyspace;
pub(crate) mod shard;
pub(crate) mod table;
