//! Counters of connections: how many came, and why the server ended some.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counted since the start or the last CONFIG RESETSTAT.
#[derive(Default)]
pub(crate) struct Counted<N> {
    pub(crate) accepted: N,
    /// Refused because there were `max-clients`.
    pub(crate) refused: N,
    /// Closed because a command of theirs panicked.
    pub(crate) broken: N,
    /// Closed because client and server did not agree on TLS.
    pub(crate) refused_handshakes: N,
    /// Requests whose user may not run the command, touch a key, use a channel, or touch a database.
    pub(crate) denied_commands: N,
    pub(crate) denied_keys: N,
    pub(crate) denied_channels: N,
    pub(crate) denied_databases: N,
    /// Wrong passwords.
    pub(crate) failed_logins: N,
    /// Closed because they sent more than `client-query-buffer-limit`.
    pub(crate) over_input_limit: N,
    /// Closed because they did not take their replies or messages.
    pub(crate) over_output_limit: N,
    /// Closed because all together held more than `maxmemory-clients`.
    pub(crate) evicted: N,
}

pub(crate) type ConnectionCounters = Counted<AtomicU64>;
pub(crate) type ConnectionTotals = Counted<u64>;

impl ConnectionCounters {
    pub(crate) fn totals(&self) -> ConnectionTotals {
        self.each(|counter| counter.load(Ordering::Relaxed))
    }

    pub(crate) fn reset(&self) {
        self.each(|counter| counter.store(0, Ordering::Relaxed));
    }

    fn each<N>(&self, show: impl Fn(&AtomicU64) -> N) -> Counted<N> {
        Counted {
            accepted: show(&self.accepted),
            refused: show(&self.refused),
            broken: show(&self.broken),
            refused_handshakes: show(&self.refused_handshakes),
            denied_commands: show(&self.denied_commands),
            denied_keys: show(&self.denied_keys),
            denied_channels: show(&self.denied_channels),
            denied_databases: show(&self.denied_databases),
            failed_logins: show(&self.failed_logins),
            over_input_limit: show(&self.over_input_limit),
            over_output_limit: show(&self.over_output_limit),
            evicted: show(&self.evicted),
        }
    }
}

/// Counts one more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
