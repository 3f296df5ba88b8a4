//! Clients that wait for keys, in the order in which they came, and the keys that have changed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use indexmap::IndexSet;
use parking_lot::{Mutex, MutexGuard};

use super::sharded::Sharded;
use super::waiter::{Answer, Ended, Ending, Waiter};
use crate::clients::State;

/// A database and a key.
pub(crate) type DbKey = (usize, Box<[u8]>);

type Waiters = HashMap<Box<[u8]>, Vec<Arc<Waiter>>>;

#[derive(Default)]
pub(super) struct Waiting {
    /// By the key's name, whatever its database.
    keys: Sharded<Waiters>,
    /// By the client's number.
    clients: Mutex<BTreeMap<u64, Arc<Waiter>>>,
    count: AtomicUsize,
    /// Keys with waiting clients that have changed, each once, in the order in which they did.
    ready: Mutex<IndexSet<DbKey>>,
    has_ready: AtomicBool,
    serving: Mutex<()>,
}

impl Waiting {
    pub(super) fn add(&self, waiter: &Arc<Waiter>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        waiter.client.states.set(State::BLOCKED);
        self.clients.lock().insert(waiter.client.id, waiter.clone());
        for key in waiter.wanted.keys() {
            let mut keys = self.keys.of(key);
            let waiters = keys.entry(key.into()).or_default();
            if !waiters.iter().any(|other| Arc::ptr_eq(other, waiter)) {
                waiters.push(waiter.clone());
            }
        }
    }

    /// Forgets a wait that is over; nothing happens if that was done before.
    pub(super) fn remove(&self, waiter: &Arc<Waiter>) {
        let mut clients = self.clients.lock();
        let id = waiter.client.id;
        if !clients.get(&id).is_some_and(|current| Arc::ptr_eq(current, waiter)) {
            return;
        }
        clients.remove(&id);
        waiter.client.states.clear(State::BLOCKED);
        drop(clients);
        for key in waiter.wanted.keys() {
            let mut keys = self.keys.of(key);
            if let Some(waiters) = keys.get_mut(key) {
                waiters.retain(|other| !Arc::ptr_eq(other, waiter));
                if waiters.is_empty() {
                    keys.remove(key);
                }
            }
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn changed(&self, database: usize, key: &[u8]) {
        if self.count() == 0 {
            return;
        }
        let keys = self.keys.of(key);
        if keys.get(key).into_iter().flatten().any(|waiter| waiter.database == database) {
            self.note_ready((database, key.into()));
        }
    }

    /// All keys of a database may be others.
    pub(super) fn flushed(&self, database: Option<usize>) {
        if self.count() == 0 {
            return;
        }
        for keys in self.keys.each() {
            for (key, waiters) in &*keys {
                let databases = waiters.iter().map(|waiter| waiter.database);
                for number in databases.filter(|number| database.is_none_or(|flushed| flushed == *number)) {
                    self.note_ready((number, key.clone()));
                }
            }
        }
    }

    fn note_ready(&self, place: DbKey) {
        self.ready.lock().insert(place);
        self.has_ready.store(true, Ordering::Release);
    }

    pub(super) fn has_ready(&self) -> bool {
        self.has_ready.load(Ordering::Acquire)
    }

    pub(super) fn take_ready(&self) -> IndexSet<DbKey> {
        let mut ready = self.ready.lock();
        self.has_ready.store(false, Ordering::Release);
        std::mem::take(&mut *ready)
    }

    /// Keeps other threads from serving.
    pub(super) fn serve_alone(&self) -> MutexGuard<'_, ()> {
        self.serving.lock()
    }

    /// Clients that wait for a key, in the order in which they came.
    pub(super) fn of(&self, (database, key): &DbKey) -> Vec<Arc<Waiter>> {
        let keys = self.keys.of(key);
        let waiters = keys.get(key).into_iter().flatten();
        waiters.filter(|waiter| waiter.database == *database).cloned().collect()
    }

    pub(super) fn finish(&self, waiter: &Arc<Waiter>, answer: Option<Answer>) {
        if waiter.finish(answer) {
            self.remove(waiter);
        }
    }

    pub(super) fn end(&self, waiter: &Arc<Waiter>, ending: Ending) {
        if waiter.end(ending) != Ended::Soon {
            self.remove(waiter);
        }
    }

    /// Ends a client's wait; returns whether it waits.
    pub(super) fn unblock(&self, client: u64, ending: Ending) -> bool {
        let waiter = self.clients.lock().get(&client).cloned();
        if let Some(waiter) = &waiter {
            self.end(waiter, ending);
        }
        waiter.is_some()
    }

    /// Ends the waits of all clients.
    pub(super) fn end_all(&self, ending: Ending) {
        let waiters: Vec<_> = self.clients.lock().values().cloned().collect();
        waiters.iter().for_each(|waiter| self.end(waiter, ending));
    }

    /// Number of clients that wait.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the number of keys with waiting clients.
    pub(super) fn keys(&self) -> usize {
        self.keys.each().map(|keys| keys.len()).sum()
    }
}
