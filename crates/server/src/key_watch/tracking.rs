//! Client-side caching (CLIENT TRACKING): which clients keep copies of which keys, and telling them of changes.
//!
//! A client is told of a key that it has read, once and at once, or of all keys that start with its prefixes, those of
//! a turn together. The key's name counts, whatever its database. The memory of keys is bounded: beyond it, clients are
//! told of some key as if it had changed.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use indexmap::IndexMap;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use snugly_protocol::resp::{Protocol, ReplyBuffer};

use super::sharded::Sharded;
use crate::clients::{ClientInfo, State};

/// The channel for clients that speak RESP2, and let messages be redirected to another connection.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// Most keys forgotten when one more than the limit is remembered.
const FORGOTTEN_AT_ONCE: usize = 100;
/// Bytes that the keys may take on the average.
pub(crate) const BYTES_PER_KEY: usize = 512;
/// Approximate bytes of a key beside its name and its clients' numbers.
const OVERHEAD: usize = 64;

thread_local! {
    /// The client whose requests the thread runs.
    static ACTOR: Cell<u64> = const { Cell::new(0) };
}

/// Sets the client whose requests this thread runs from now on, so that it need not hear of its own changes.
pub(crate) fn act_for(client: &ClientInfo) {
    ACTOR.set(client.id);
}

#[derive(Default)]
pub(super) struct Tracking {
    members: RwLock<Members>,
    /// Number of changes to keys with any client's prefix,
    changes: AtomicU64,
    /// and how many of these changes everybody has been told.
    told: AtomicU64,
    telling: Mutex<()>,
    /// The numbers of the clients that have read a key, in order.
    keys: Sharded<IndexMap<Box<[u8]>, Vec<u64>>>,
    clients: AtomicUsize,
    /// Totals of `keys`.
    key_count: AtomicUsize,
    item_count: AtomicUsize,
    bytes: AtomicUsize,
    /// The most keys; 0 is no limit.
    max_keys: AtomicUsize,
}

#[derive(Default)]
struct Members {
    clients: FxHashMap<u64, Member>,
    prefixes: BTreeMap<Box<[u8]>, Prefix>,
}

/// A prefix of the keys that clients want to hear of.
#[derive(Default)]
struct Prefix {
    /// Their numbers.
    clients: BTreeSet<u64>,
    /// The keys that have changed since they were last told, and who did it last.
    changed: Mutex<BTreeMap<Box<[u8]>, u64>>,
}

struct Member {
    client: Arc<ClientInfo>,
    /// The client that gets its messages.
    redirect: Option<Weak<ClientInfo>>,
}

/// The tracking options of a client.
#[derive(Default)]
pub(crate) struct TrackingMode {
    /// Modes among [`State::TRACKING_MODES`].
    pub(crate) modes: State,
    /// The client that gets its messages.
    pub(crate) redirect: Option<Arc<ClientInfo>>,
    /// Prefixes of the keys that it wants to hear of, without having read them.
    pub(crate) prefixes: Vec<Box<[u8]>>,
}

/// The numbers of tracking in INFO.
pub(crate) struct TrackingStats {
    pub(crate) clients: usize,
    pub(crate) keys: usize,
    /// Pairs of a key and a client.
    pub(crate) items: usize,
    pub(crate) prefixes: usize,
}

impl Tracking {
    /// Begins, or changes how the client is told. It keeps the prefixes that it has.
    pub(super) fn enable(&self, client: &Arc<ClientInfo>, mode: TrackingMode) {
        let mut members = self.members.write();
        for prefix in mode.prefixes {
            members.prefixes.entry(prefix).or_default().clients.insert(client.id);
        }
        client.redirect.store(mode.redirect.as_ref().map_or(0, |target| target.id), Ordering::Relaxed);
        client.states.clear(State::TRACKING_MODES);
        client.states.set(State::TRACKING.and(mode.modes));
        let redirect = mode.redirect.as_ref().map(Arc::downgrade);
        let member = Member { client: client.clone(), redirect };
        if members.clients.insert(client.id, member).is_none() {
            self.clients.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn disable(&self, client: &ClientInfo) {
        let mut members = self.members.write();
        if members.clients.remove(&client.id).is_none() {
            return;
        }
        members.prefixes.retain(|_, prefix| {
            prefix.clients.remove(&client.id);
            !prefix.clients.is_empty()
        });
        client.states.clear(State::TRACKING.and(State::TRACKING_MODES).and(State::CACHING));
        self.clients.fetch_sub(1, Ordering::Relaxed);
        if members.clients.is_empty() {
            // Before a new client may come, whose keys must not be lost.
            self.clear();
        }
    }

    /// The prefixes of a client, in order.
    pub(super) fn prefixes(&self, client: &ClientInfo) -> Vec<Box<[u8]>> {
        let members = self.members.read();
        let own = members.prefixes.iter().filter(|(_, prefix)| prefix.clients.contains(&client.id));
        own.map(|(text, _)| text.clone()).collect()
    }

    /// Notes that a client is about to read a key. A change that comes before it has read is told as well.
    pub(super) fn remember(&self, client: &ClientInfo, key: &[u8]) {
        let mut keys = self.keys.of(key);
        let index = keys.get_index_of(key).unwrap_or_else(|| {
            self.key_count.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(OVERHEAD + key.len(), Ordering::Relaxed);
            keys.insert_full(key.into(), Vec::new()).0
        });
        let clients = &mut keys[index];
        if clients.len() == clients.capacity() {
            // Closed clients make room, so that short-lived ones do not pile up.
            let members = self.members.read();
            let before = clients.len();
            clients.retain(|id| members.clients.contains_key(id));
            self.count_items_gone(before - clients.len());
        }
        if let Err(place) = clients.binary_search(&client.id) {
            clients.insert(place, client.id);
            self.item_count.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(size_of::<u64>(), Ordering::Relaxed);
        }
        drop(keys);
        self.make_room();
    }

    fn count_items_gone(&self, items: usize) {
        self.item_count.fetch_sub(items, Ordering::Relaxed);
        self.bytes.fetch_sub(items * size_of::<u64>(), Ordering::Relaxed);
    }

    fn count_key_gone(&self, key: &[u8], clients: &[u64]) {
        self.key_count.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(OVERHEAD + key.len(), Ordering::Relaxed);
        self.count_items_gone(clients.len());
    }

    pub(super) fn changed(&self, key: &[u8]) {
        if self.clients.load(Ordering::Relaxed) == 0 {
            return;
        }
        let readers = self.keys.of(key).swap_remove(key);
        if let Some(readers) = readers {
            self.count_key_gone(key, &readers);
            self.tell_readers(key, &readers);
        }
        let members = self.members.read();
        for (_, prefix) in members.prefixes.iter().filter(|(text, _)| key.starts_with(text)) {
            prefix.changed.lock().insert(key.into(), ACTOR.get());
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Notifies clients of changed keys with their prefixes. If another thread is just doing that, waits for
    /// it.
    pub(super) fn broadcast(&self) {
        if self.is_told() {
            return;
        }
        let _telling = self.telling.lock();
        let changes = self.changes.load(Ordering::Acquire);
        self.tell_of_prefixes();
        self.told.store(changes, Ordering::Release);
    }

    fn is_told(&self) -> bool {
        self.told.load(Ordering::Acquire) == self.changes.load(Ordering::Relaxed)
    }

    fn tell_of_prefixes(&self) {
        let members = self.members.read();
        for prefix in members.prefixes.values() {
            let changed = std::mem::take(&mut *prefix.changed.lock());
            for member in prefix.clients.iter().filter_map(|id| members.clients.get(id)) {
                let wanted = changed.iter().filter(|(_, actor)| member.wants_changes_of(**actor));
                let keys: Vec<&[u8]> = wanted.map(|(key, _)| &**key).collect();
                if !keys.is_empty() {
                    member.tell(Some(&keys));
                }
            }
        }
    }

    fn tell_readers(&self, key: &[u8], readers: &[u64]) {
        let members = self.members.read();
        for id in readers {
            if let Some(member) = members.clients.get(id)
                && !member.client.states.has(State::BROADCASTING)
                && member.wants_changes_of(ACTOR.get())
            {
                member.tell(Some(&[key]));
            }
        }
    }

    /// Notifies every client that all keys may have changed.
    pub(super) fn flushed(&self) {
        if self.clients.load(Ordering::Relaxed) == 0 {
            return;
        }
        self.clear();
        self.members.read().clients.values().for_each(|member| member.tell(None));
    }

    fn clear(&self) {
        for mut keys in self.keys.each() {
            for (key, clients) in keys.drain(..) {
                self.count_key_gone(&key, &clients);
            }
        }
    }

    /// Sets how many keys may be remembered; those that are too many go at once.
    pub(super) fn limit_keys(&self, max_keys: usize) {
        self.max_keys.store(max_keys, Ordering::Relaxed);
        while self.is_over_limit() && self.forget_one() {}
    }

    fn is_over_limit(&self) -> bool {
        let max_keys = self.max_keys.load(Ordering::Relaxed);
        max_keys > 0
            && (self.key_count.load(Ordering::Relaxed) > max_keys
                || self.bytes.load(Ordering::Relaxed) > max_keys.saturating_mul(BYTES_PER_KEY))
    }

    /// Forgets some keys, any of them, if they are too many, and tells their readers.
    fn make_room(&self) {
        for _ in 0..FORGOTTEN_AT_ONCE {
            if !self.is_over_limit() || !self.forget_one() {
                return;
            }
        }
    }

    /// Forgets some key, and tells its readers; false if there is none.
    fn forget_one(&self) -> bool {
        let mut parts = self.keys.each_from(fastrand::usize(..));
        let forgotten = parts.find_map(|mut keys| {
            let index = fastrand::usize(..).checked_rem(keys.len())?;
            keys.swap_remove_index(index)
        });
        let Some((key, readers)) = forgotten else { return false };
        self.count_key_gone(&key, &readers);
        self.tell_readers(&key, &readers);
        true
    }

    pub(super) fn stats(&self) -> TrackingStats {
        TrackingStats {
            clients: self.clients.load(Ordering::Relaxed),
            keys: self.key_count.load(Ordering::Relaxed),
            items: self.item_count.load(Ordering::Relaxed),
            prefixes: self.members.read().prefixes.len(),
        }
    }
}

impl Member {
    fn wants_changes_of(&self, actor: u64) -> bool {
        !(self.client.states.has(State::NO_LOOP) && self.client.id == actor)
    }

    /// Notifies the client that these keys have changed, or with `None` that any may have.
    fn tell(&self, keys: Option<&[&[u8]]>) {
        let target = match &self.redirect {
            None => self.client.clone(),
            Some(redirect) => match redirect.upgrade() {
                Some(target) => target,
                None => return self.tell_that_nobody_listens(),
            },
        };
        let protocol = target.protocol();
        let mut message = ReplyBuffer::new(protocol);
        if protocol == Protocol::Resp3 {
            message.push(2);
            message.bulk(b"invalidate");
        } else if self.redirect.is_some() && target.states.has(State::SUBSCRIBED) {
            message.array(3);
            message.bulk(b"message");
            message.bulk(CHANNEL);
        } else {
            return;
        }
        match keys {
            Some(keys) => {
                message.array(keys.len());
                keys.iter().for_each(|key| message.bulk(key));
            }
            None => message.null(),
        }
        target.tell(message.as_bytes());
    }

    fn tell_that_nobody_listens(&self) {
        self.client.states.set(State::BROKEN_REDIRECT);
        if self.client.protocol() == Protocol::Resp3 {
            let mut message = ReplyBuffer::new(Protocol::Resp3);
            message.push(2);
            message.bulk(b"tracking-redir-broken");
            message.integer(self.client.redirect.load(Ordering::Relaxed) as i64);
            self.client.tell(message.as_bytes());
        }
    }
}
