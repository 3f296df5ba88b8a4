//! The clients that listen to one name.

use std::sync::Arc;

use indexmap::IndexMap;
use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;
use snugly_glob::Pattern;

use super::Delivery;
use super::message::Message;
use crate::clients::ClientInfo;
use crate::subscriptions::Kind;

/// The listeners of a channel or a pattern.
pub(super) struct Audience {
    pub(super) name: Arc<[u8]>,
    pub(super) kind: Kind,
    /// The channels that it is about, if it is a pattern's.
    pattern: Option<Pattern>,
    listeners: Mutex<Listeners>,
}

#[derive(Default)]
struct Listeners {
    /// By their numbers.
    clients: IndexMap<u64, Arc<ClientInfo>, FxBuildHasher>,
    /// Whether the last one has left: nobody enters any more, since it is about to be forgotten.
    has_ended: bool,
}

impl Audience {
    pub(super) fn new(kind: Kind, name: &[u8]) -> Audience {
        let pattern = (kind == Kind::Pattern).then(|| Pattern::new(name, false));
        Audience { name: name.into(), kind, pattern, listeners: Mutex::default() }
    }

    /// Returns whether it is about this channel, if it is a pattern's.
    pub(super) fn matches(&self, channel: &[u8]) -> bool {
        self.pattern.as_ref().is_some_and(|pattern| pattern.matches(channel))
    }

    pub(super) fn len(&self) -> usize {
        self.listeners.lock().clients.len()
    }

    /// Adds a listener; returns false if the audience has ended.
    pub(super) fn enter(&self, client: &Arc<ClientInfo>) -> bool {
        let mut listeners = self.listeners.lock();
        if !listeners.has_ended {
            listeners.clients.insert(client.id, client.clone());
        }
        !listeners.has_ended
    }

    /// Removes a listener, who hears nothing more from then on; returns whether it was the last.
    pub(super) fn leave(&self, client: &ClientInfo) -> bool {
        let mut listeners = self.listeners.lock();
        listeners.clients.swap_remove(&client.id);
        listeners.has_ended = listeners.clients.is_empty();
        listeners.has_ended
    }

    /// Hands a message to every listener for whom fewer than `most` bytes wait.
    pub(super) fn tell(&self, message: &Message<'_>, most: usize, delivery: &mut Delivery) {
        // Held until all have it, which waits for no client, so that they get the messages of several publishers in the
        // same order, and none after they have left.
        let listeners = self.listeners.lock();
        delivery.receivers += listeners.clients.len();
        for client in listeners.clients.values() {
            if client.tell_within(message.framed(client.protocol()), most).is_err() {
                delivery.overfull.push(client.clone());
            }
        }
    }
}
