//! Events in memcached's protocols, by the names that memcached's own statistics have for them.

use super::Counter;

/// Events of one thread.
#[derive(Default)]
pub(crate) struct MemcachedCounters {
    /// Requests of all kinds; each key of a line of keys is one.
    pub(crate) requests: Counter,
    events: [Counter; EVENTS.len()],
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum MemcachedEvent {
    Get,
    Set,
    Flush,
    Touch,
    Meta,
    GetHit,
    GetMiss,
    GetList,
    DeleteMiss,
    DeleteHit,
    IncrMiss,
    IncrHit,
    DecrMiss,
    DecrHit,
    CasMiss,
    CasHit,
    CasBadValue,
    TouchHit,
    TouchMiss,
    StoreTooLarge,
    StoreNoMemory,
    Login,
    LoginError,
}

/// The names of the events, in their order.
pub(crate) const EVENTS: [&str; 23] = [
    "cmd_get",
    "cmd_set",
    "cmd_flush",
    "cmd_touch",
    "cmd_meta",
    "get_hits",
    "get_misses",
    // Of keys that hold a list, which these protocols cannot see; memcached has no lists.
    "get_lists",
    "delete_misses",
    "delete_hits",
    "incr_misses",
    "incr_hits",
    "decr_misses",
    "decr_hits",
    "cas_misses",
    "cas_hits",
    "cas_badval",
    "touch_hits",
    "touch_misses",
    "store_too_large",
    "store_no_memory",
    "auth_cmds",
    "auth_errors",
];

const _: () = assert!(MemcachedEvent::LoginError as usize + 1 == EVENTS.len(), "each event has a name");

impl MemcachedCounters {
    /// Counts an event.
    pub(crate) fn count(&self, event: MemcachedEvent) {
        self.events[event as usize].add(1);
    }

    /// The counts, in the order of the events.
    pub(crate) fn counts(&self) -> [u64; EVENTS.len()] {
        std::array::from_fn(|place| self.events[place].get())
    }

    pub(super) fn reset(&self) {
        self.requests.reset();
        self.events.iter().for_each(Counter::reset);
    }
}
