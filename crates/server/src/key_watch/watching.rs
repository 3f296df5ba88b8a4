//! Watched keys (WATCH) and their clients.

use std::collections::HashMap;
use std::sync::Arc;

use super::sharded::Sharded;
use crate::clients::{ClientInfo, State};

/// A key that a client watches.
pub(crate) struct Watched {
    pub(crate) database: usize,
    pub(crate) key: Box<[u8]>,
    /// Whether the key existed when the client began to watch it.
    pub(crate) existed: bool,
}

#[derive(Default)]
pub(crate) struct Watching {
    /// By the key's name, whatever its database.
    keys: Sharded<HashMap<Box<[u8]>, Vec<Watcher>>>,
}

struct Watcher {
    client: Arc<ClientInfo>,
    database: usize,
    existed: bool,
}

impl Watcher {
    fn is(&self, client: &Arc<ClientInfo>, key: &Watched) -> bool {
        self.database == key.database && Arc::ptr_eq(&self.client, client)
    }
}

impl Watching {
    /// Adds a watched key; returns whether the client did not watch it before.
    pub(crate) fn add(&self, client: &Arc<ClientInfo>, key: &Watched) -> bool {
        let mut keys = self.keys.of(&key.key);
        let watchers = keys.entry(key.key.clone()).or_default();
        if watchers.iter().any(|watcher| watcher.is(client, key)) {
            return false;
        }
        let client = client.clone();
        watchers.push(Watcher { client, database: key.database, existed: key.existed });
        true
    }

    pub(crate) fn remove(&self, client: &Arc<ClientInfo>, key: &Watched) {
        let mut keys = self.keys.of(&key.key);
        if let Some(watchers) = keys.get_mut(&key.key) {
            watchers.retain(|watcher| !watcher.is(client, key));
            if watchers.is_empty() {
                keys.remove(&key.key);
            }
        }
    }

    pub(crate) fn changed(&self, database: usize, key: &[u8]) {
        let keys = self.keys.of(key);
        let watchers = keys.get(key).into_iter().flatten();
        for watcher in watchers.filter(|watcher| watcher.database == database) {
            watcher.client.states.set(State::DIRTY);
        }
    }

    /// A flush changes the keys that exist: those that did when they began to be watched, or the client is marked
    /// already. After a swap of databases, EXEC sees by itself that a key has come into being.
    pub(crate) fn flushed(&self, database: Option<usize>) {
        for keys in self.keys.each() {
            let watchers = keys.values().flatten().filter(|watcher| watcher.existed);
            for watcher in watchers.filter(|watcher| database.is_none_or(|number| number == watcher.database))
            {
                watcher.client.states.set(State::DIRTY);
            }
        }
    }

    /// Number of watched keys; a key of several databases counts for each.
    pub(crate) fn keys(&self) -> usize {
        let databases = |watchers: &Vec<Watcher>| {
            let mut numbers: Vec<_> = watchers.iter().map(|watcher| watcher.database).collect();
            numbers.sort_unstable();
            numbers.dedup();
            numbers.len()
        };
        self.keys.each().map(|keys| keys.values().map(databases).sum::<usize>()).sum()
    }
}
