//! Values that are alike, and stores that learn dictionaries for them.

#![allow(dead_code, reason = "not every test file uses everything")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use snugly_store::{DictionaryStats, Durability, Session, Storage, Store, StoreMaintenance};

use super::*;

/// A small record like the others of its kind, and like no other's copy.
pub fn user(number: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(number);
    let word = |random: &mut fastrand::Rng| -> String { (0..8).map(|_| random.lowercase()).collect() };
    let (name, city) = (word(&mut random), word(&mut random));
    format!(
        r#"{{"id":{number},"name":"{name}","email":"{name}@example.com","address":{{"city":"{city}","country":"Iceland","postal_code":{}}},"preferences":{{"language":"is","newsletter":{},"theme":"dark"}},"created_at":"2024-0{}-1{}T08:00:00Z"}}"#,
        random.u32(..100_000), random.bool(), random.u32(1..9), random.u32(..9),
    )
    .into_bytes()
}

pub fn put_users(session: &mut Session, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| put(session, format!("user:{number}").as_bytes(), &user(number)));
}

pub fn assert_users(session: &mut Session, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert_eq!(read(session, format!("user:{number}").as_bytes()), Some(user(number)));
    }
}

pub fn maintained() -> (Arc<Store>, StoreMaintenance, Session) {
    let store = store_with(|_| {});
    let maintenance = store.maintenance(|| Duration::ZERO);
    let session = session_at(&store, NOW);
    (store, maintenance, session)
}

/// Does all that is to be done by this time.
pub fn maintain(maintenance: &mut StoreMaintenance, now: u64) {
    while maintenance.step(now) {}
}

pub fn active(store: &Store) -> Vec<DictionaryStats> {
    store.dictionaries().into_iter().filter(|dictionary| dictionary.active).collect()
}

pub const USERS: u64 = 20_000;

/// A store on disk; with next to no memory, every value comes from there.
pub fn open(path: &Path, max_memory: u64, durability: Durability) -> Arc<Store> {
    let mut config = config();
    config.settings.max_memory = max_memory;
    let interval = Duration::from_millis(10);
    let storage = Storage { durability, commit_interval: interval, ..Storage::new(path) };
    Store::open(config, storage).expect("the store opens")
}

pub fn close(store: Arc<Store>) {
    store.close().expect("everything can be written");
    assert_eq!(Arc::strong_count(&store), 1, "nobody is left");
}

/// Waits until everything that was written is on disk.
pub fn settle(store: &Store) {
    while store.disk_stats().expect("it is on disk").pending_bytes > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
}
