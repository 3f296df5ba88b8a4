//! Kinds of values, and their interface to the rest of the store.
//!
//! - [`kind`]: the kinds, and their numbers on disk
//! - [`collection`]: values that are made of records, of any kind
//! - [`quicklist`]: lists, in compressed nodes
//!
//! A string is one record, which the entry of its key has. A value of any other kind is a collection: nodes,
//! each a record of its own, which change in place and go to disk, and leave memory, one by one. Code for all
//! kinds uses [`Kind`] and [`Records`](collection::Records); only commands of a kind ask for that kind.
//!
//! The module knows entries. It must not know tables, shards, sessions, nor how rows are written.

pub(crate) mod collection;
pub(crate) mod kind;
pub(crate) mod quicklist;

pub use kind::Kind;
