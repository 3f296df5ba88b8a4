//! The store as the server uses it: in memory, on disk, and after damage.

mod back_pressure;
mod backup;
mod choosing;
mod copies;
mod damage;
mod dictionaries;
mod dictionary_requests;
mod disk;
mod drafts;
mod eviction;
mod list_dictionaries;
mod list_memory;
mod lists;
mod lists_on_disk;
mod maintenance;
mod metadata;
mod model;
mod observer;
mod recompression;
mod scan;
mod settling;
mod snapshot;
mod threads;

#[path = "../support/mod.rs"]
mod support;
