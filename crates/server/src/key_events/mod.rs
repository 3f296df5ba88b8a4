//! Events of keys (`notify-keyspace-events`): messages on the channels `__keyspace@<database>__:<key>` and
//! `__keyevent@<database>__:<event>`.
//!
//! The store tells of every change under the lock of the key's shard, and it is published there, so that the events of a
//! key come in the order of its changes. What a change is called is said beforehand by whoever causes it, for its thread
//! ([`cause`]). This module knows changes, names and channels. It knows no commands, and must not use the store.

mod cause;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::Mutex;
use snugly_store::{KeyChange, Observer};

pub(crate) use cause::{Cause, Event, act, act_from, rest};

use crate::channels::Channels;
use crate::clients::ClientInfo;
use crate::event_classes::EventClasses;
use crate::subscriptions::Kind;

/// What is told of keys, and to whom.
#[derive(Default)]
pub(crate) struct KeyEvents {
    /// Bits of [`EventClasses`]; nothing is looked at for none.
    classes: AtomicU32,
    channels: Arc<Channels>,
    /// Clients for whom too much waits, which are to be disconnected.
    overfull: Mutex<Vec<Arc<ClientInfo>>>,
    has_overfull: AtomicBool,
}

impl Observer for KeyEvents {
    fn changed(&self, database: usize, key: &[u8], change: KeyChange) {
        let classes = self.classes();
        if classes == EventClasses::default() {
            return;
        }
        match change {
            KeyChange::Created | KeyChange::Written | KeyChange::Removed => {
                cause::each_event(database, key, change, |database, key, event| {
                    self.tell(classes, database, key, event);
                });
            }
            KeyChange::Expired => self.tell(classes, database, key, Event::EXPIRED),
            KeyChange::Evicted => self.tell(classes, database, key, Event::EVICTED),
            KeyChange::Lapsed => {}
        }
    }

    fn missed(&self, database: usize, key: &[u8]) {
        if self.tells(EventClasses::MISSED) {
            self.tell(self.classes(), database, key, Event::MISSED);
        }
    }

    fn flushed(&self, _database: Option<usize>) {}
}

impl KeyEvents {
    /// The channels that events are published on, among all others.
    pub(crate) fn channels(&self) -> &Arc<Channels> {
        &self.channels
    }

    pub(crate) fn set_classes(&self, classes: EventClasses) {
        self.classes.store(classes.bits(), Ordering::Relaxed);
    }

    fn classes(&self) -> EventClasses {
        EventClasses::from_bits(self.classes.load(Ordering::Relaxed))
    }

    /// Returns whether anything is told.
    pub(crate) fn is_on(&self) -> bool {
        self.classes() != EventClasses::default()
    }

    /// Returns whether events of this class are told.
    pub(crate) fn tells(&self, class: EventClasses) -> bool {
        self.classes().has(class)
    }

    /// Takes the clients that did not take their messages, and are to be disconnected.
    pub(crate) fn take_overfull(&self) -> Vec<Arc<ClientInfo>> {
        if !self.has_overfull.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut overfull = self.overfull.lock();
        self.has_overfull.store(false, Ordering::Relaxed);
        std::mem::take(&mut overfull)
    }

    fn tell(&self, classes: EventClasses, database: usize, key: &[u8], event: Event) {
        if !classes.has(event.class) {
            return;
        }
        let name = event.name.as_bytes();
        if classes.has(EventClasses::KEYSPACE) {
            self.publish(&[format!("__keyspace@{database}__:").as_bytes(), key].concat(), name);
        }
        if classes.has(EventClasses::KEYEVENT) {
            self.publish(format!("__keyevent@{database}__:{}", event.name).as_bytes(), key);
        }
    }

    fn publish(&self, channel: &[u8], text: &[u8]) {
        let delivery = self.channels.publish(Kind::Channel, channel, text);
        if !delivery.overfull.is_empty() {
            let mut overfull = self.overfull.lock();
            overfull.extend(delivery.overfull);
            self.has_overfull.store(true, Ordering::Relaxed);
        }
    }
}
