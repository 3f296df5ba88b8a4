//! Publish and subscribe: who listens to which channels and patterns, and handing messages to them.
//!
//! - `audience`: the listeners of one name
//! - `message`: the bytes of a message
//!
//! It knows names, clients and their outboxes. It knows no command, no permission and no socket. While nobody listens, a
//! message costs one look at a number. No lock is held for longer than bytes take to be copied: a client that does not
//! take its messages holds up nobody.

mod audience;
mod message;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use indexmap::IndexMap;
use parking_lot::RwLock;

use audience::Audience;
use message::Message;

use crate::clients::{ClientInfo, State};
use crate::subscriptions::Kind;

type Audiences = IndexMap<Arc<[u8]>, Arc<Audience>>;

/// Everything that clients listen to.
#[derive(Default)]
pub(crate) struct Channels {
    /// Number of names that anybody listens to.
    count: AtomicUsize,
    /// By their kind.
    audiences: [RwLock<Audiences>; Kind::ALL.len()],
    /// Bytes of output that may wait for a listener; 0 is no limit.
    most_waiting: AtomicUsize,
}

/// The outcome of publishing a message.
#[derive(Default)]
pub(crate) struct Delivery {
    /// Number of times that it was handed to a listener: once for its channel, and once for each pattern.
    pub(crate) receivers: usize,
    /// Clients for whom as much waits as may. They get no messages any more, and are to be disconnected.
    pub(crate) overfull: Vec<Arc<ClientInfo>>,
}

impl Channels {
    /// Sets how many bytes of output may wait for a listener; 0 is no limit.
    pub(crate) fn limit_output(&self, bytes: usize) {
        self.most_waiting.store(bytes, Ordering::Relaxed);
    }

    /// Adds a client to the listeners of a name, if it is not among them.
    pub(crate) fn enter(&self, client: &Arc<ClientInfo>, kind: Kind, name: &[u8]) {
        let mut own = client.subscriptions.lock();
        if own.of(kind).contains(name) {
            return;
        }
        let audience = loop {
            let audience = self.audience(kind, name);
            if audience.enter(client) {
                break audience;
            }
            self.forget(&audience);
        };
        own.add(kind, audience.name.clone());
        client.states.set(State::SUBSCRIBED);
    }

    /// Removes a client from the listeners of a name, if it is among them: it hears nothing more from then on.
    pub(crate) fn leave(&self, client: &ClientInfo, kind: Kind, name: &[u8]) {
        let mut own = client.subscriptions.lock();
        if own.remove(kind, name) {
            self.remove(client, kind, name);
            client.states.switch(State::SUBSCRIBED, !own.is_empty());
        }
    }

    /// Removes a client from the listeners of everything.
    pub(crate) fn leave_all(&self, client: &ClientInfo) {
        let own = std::mem::take(&mut *client.subscriptions.lock());
        for kind in Kind::ALL {
            own.of(kind).iter().for_each(|name| self.remove(client, kind, name));
        }
        client.states.clear(State::SUBSCRIBED);
    }

    /// Hands a message to everybody who listens to a channel, and if it is no shard channel to those whose patterns its name
    /// matches.
    pub(crate) fn publish(&self, kind: Kind, channel: &[u8], text: &[u8]) -> Delivery {
        let mut delivery = Delivery::default();
        if self.count.load(Ordering::Acquire) == 0 {
            return delivery;
        }
        let most = match self.most_waiting.load(Ordering::Relaxed) {
            0 => usize::MAX,
            most => most,
        };
        if let Some(audience) = self.find(kind, channel) {
            let word: &[u8] = if kind == Kind::ShardChannel { b"smessage" } else { b"message" };
            audience.tell(&Message::new(&[word, channel, text]), most, &mut delivery);
        }
        if kind == Kind::Channel {
            for audience in self.matching(channel) {
                let parts: [&[u8]; 4] = [b"pmessage", &audience.name, channel, text];
                audience.tell(&Message::new(&parts), most, &mut delivery);
            }
        }
        delivery
    }

    /// Number of names of a kind that anybody listens to.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.audiences[kind as usize].read().len()
    }

    /// Shows the names of a kind that anybody listens to.
    pub(crate) fn each_name(&self, kind: Kind, mut show: impl FnMut(&[u8])) {
        self.audiences[kind as usize].read().keys().for_each(|name| show(name));
    }

    /// Number of clients that listen to a name.
    pub(crate) fn listeners(&self, kind: Kind, name: &[u8]) -> usize {
        self.find(kind, name).map_or(0, |audience| audience.len())
    }

    fn find(&self, kind: Kind, name: &[u8]) -> Option<Arc<Audience>> {
        self.audiences[kind as usize].read().get(name).cloned()
    }

    /// The audiences of patterns that a channel matches.
    fn matching(&self, channel: &[u8]) -> Vec<Arc<Audience>> {
        let patterns = self.audiences[Kind::Pattern as usize].read();
        patterns.values().filter(|audience| audience.matches(channel)).cloned().collect()
    }

    /// The audience of a name, a new one if there is none.
    fn audience(&self, kind: Kind, name: &[u8]) -> Arc<Audience> {
        let mut audiences = self.audiences[kind as usize].write();
        if let Some(audience) = audiences.get(name) {
            return audience.clone();
        }
        let audience = Arc::new(Audience::new(kind, name));
        audiences.insert(audience.name.clone(), audience.clone());
        self.count.fetch_add(1, Ordering::Release);
        audience
    }

    fn remove(&self, client: &ClientInfo, kind: Kind, name: &[u8]) {
        if let Some(audience) = self.find(kind, name)
            && audience.leave(client)
        {
            self.forget(&audience);
        }
    }

    /// Forgets an audience that has ended, unless somebody else has.
    fn forget(&self, ended: &Arc<Audience>) {
        let mut audiences = self.audiences[ended.kind as usize].write();
        if audiences.get(&ended.name).is_some_and(|audience| Arc::ptr_eq(audience, ended)) {
            audiences.swap_remove(&ended.name);
            self.count.fetch_sub(1, Ordering::Release);
        }
    }
}
