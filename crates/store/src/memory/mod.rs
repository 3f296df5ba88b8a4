//! The memory tier: entries in shards, found by hash, evicted and expired.
//!
//! - [`entry`]: a key and its record in one allocation
//! - [`slab`]: where entries are allocated, and how to keep that dense
//! - [`table`]: the entries of a shard's database, in hash order
//! - [`expiry`]: which of them expire when
//! - [`database`]: a shard's part of one database, with its accounting
//! - [`shard`]: databases under one lock, and the eviction hand over them
//! - [`uses`]: how many of them need each dictionary
//! - [`eviction`]: the policies, and who goes first
//! - [`keyspace`]: all shards, the memory budget and the background work on them
//!
//! It holds records and never looks at a payload; encoding and decoding happen outside its locks, in the session.

pub(crate) mod database;
pub(crate) mod entry;
pub(crate) mod eviction;
pub(crate) mod expiry;
pub(crate) mod growth;
pub(crate) mod keyspace;
pub(crate) mod shard;
pub(crate) mod slab;
pub(crate) mod table;
pub(crate) mod uses;

use slab::Slab;

/// Bytes that an entry of `size` bytes (16 of header, 8 if it expires or is long, key, record) takes in memory.
///
/// ```
/// assert_eq!(snugly_store::entry_allocation_size(100), 104);
/// assert_eq!(snugly_store::entry_allocation_size(900), 904);
/// ```
pub fn entry_allocation_size(size: usize) -> usize {
    Slab::slot_size(size).unwrap_or_else(|| allocation_size(size))
}

/// What a request of `size` bytes takes from jemalloc, where tables and the longest entries are: its size classes are 8,
/// every 16 up to 128, and then four to each doubling (jemalloc manual, "Size classes"). Other allocators are close
/// to it.
///
/// ```
/// assert_eq!(snugly_store::allocation_size(100), 112);
/// assert_eq!(snugly_store::allocation_size(900), 1024);
/// ```
pub fn allocation_size(size: usize) -> usize {
    if size <= 8 {
        return if size == 0 { 0 } else { 8 };
    }
    let spacing = if size <= 128 { 16 } else { 1 << ((size - 1).ilog2() - 2) };
    size.next_multiple_of(spacing)
}
