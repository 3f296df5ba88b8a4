//! Numbers that are counted up: what connections, commands and threads have done. They know nobody who counts or reads.
//!
//! - `counter`: a number that one thread counts up
//! - `connections`: what happened to connections
//! - `memcached`: events in memcached's protocols
//! - `worker`: what the threads that serve connections have done

mod connections;
mod counter;
mod memcached;
mod worker;

pub(crate) use connections::{ConnectionCounters, ConnectionTotals, count};
pub(crate) use counter::Counter;
pub(crate) use memcached::{EVENTS, MemcachedCounters, MemcachedEvent};
pub(crate) use worker::{CommandStats, WorkerStats, command_names, errors, family_latencies, latencies};
