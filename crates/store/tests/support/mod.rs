//! Shared parts of the store's tests: stores of a few shards, and a clock that the test sets.

#![allow(dead_code, reason = "not every test file uses everything")]

pub mod alike;
#[cfg(feature = "zstd")]
pub mod events;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use snugly_store::{Choice, Condition, Config, EvictionPolicy, Expiry, Observer, Session, Store};

pub const NOW: u64 = 1_700_000_000_000;

pub fn config() -> Config {
    let codec = if cfg!(feature = "zstd") { "zstd" } else { "none" };
    let mut config = Config::new(Choice::new(codec, None, 64).expect("a codec of this build"));
    config.shards = Some(4);
    config
}

pub fn store_with(change: impl FnOnce(&mut Config)) -> Arc<Store> {
    let mut config = config();
    change(&mut config);
    Store::new(config)
}

pub fn limited(max_memory: u64, eviction: EvictionPolicy) -> Arc<Store> {
    store_with(|config| {
        config.settings.max_memory = max_memory;
        config.settings.eviction = eviction;
    })
}

pub fn session_at(store: &Arc<Store>, now: u64) -> Session {
    let mut session = store.session();
    session.set_now(Some(now));
    session
}

pub fn put(session: &mut Session, key: &[u8], value: &[u8]) {
    session.set(0, key, value, Expiry::Never, Condition::Always).expect("there is room");
}

pub fn read(session: &mut Session, key: &[u8]) -> Option<Vec<u8>> {
    let value = session.get(0, key).expect("undamaged")?;
    let mut bytes = Vec::new();
    session.read(&value, &mut bytes).expect("what was written can be read");
    Some(bytes)
}

pub fn random_bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

/// An observer that counts the changes that it is told of.
#[derive(Default)]
pub struct Changes(AtomicU64);

impl Changes {
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Observer for Changes {
    fn changed(&self, _: usize, _: &[u8], _: snugly_store::KeyChange) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn flushed(&self, _: Option<usize>) {}
}
