//! What one client listens to: channels, patterns of channels, and shard channels.
//!
//! It knows names. It knows no client, and nothing of what is published.

use std::sync::Arc;

use indexmap::IndexSet;

/// Kind of a name that a client may listen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A channel, by its name.
    Channel,
    /// All channels whose names match a pattern.
    Pattern,
    /// A channel of the cluster's shard, which has names and listeners apart from those of other channels.
    ShardChannel,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Channel, Kind::Pattern, Kind::ShardChannel];
}

/// Bytes that a name takes beside its own, here and among its listeners, if nobody else listens to it.
const OVERHEAD: usize = 256;

/// The names that a client listens to, in the order in which it began to.
#[derive(Default)]
pub(crate) struct Subscriptions {
    names: [IndexSet<Arc<[u8]>>; Kind::ALL.len()],
    name_bytes: usize,
}

impl Subscriptions {
    pub(crate) fn of(&self, kind: Kind) -> &IndexSet<Arc<[u8]>> {
        &self.names[kind as usize]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.iter().all(IndexSet::is_empty)
    }

    /// Bytes of memory that they take, or somewhat more.
    pub(crate) fn memory(&self) -> usize {
        self.name_bytes + OVERHEAD * self.names.iter().map(IndexSet::len).sum::<usize>()
    }

    /// Number of names that count together: channels and patterns, or shard channels.
    pub(crate) fn counted_with(&self, kind: Kind) -> usize {
        match kind {
            Kind::Channel | Kind::Pattern => self.of(Kind::Channel).len() + self.of(Kind::Pattern).len(),
            Kind::ShardChannel => self.of(kind).len(),
        }
    }

    /// Adds a name that is not there yet.
    pub(crate) fn add(&mut self, kind: Kind, name: Arc<[u8]>) {
        self.name_bytes += name.len();
        self.names[kind as usize].insert(name);
    }

    /// Removes a name; returns whether it was there.
    pub(crate) fn remove(&mut self, kind: Kind, name: &[u8]) -> bool {
        // The last name takes its place, so that it does not take longer the more there are.
        let was_there = self.names[kind as usize].swap_remove(name);
        self.name_bytes -= if was_there { name.len() } else { 0 };
        was_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_and_patterns_count_together_and_shard_channels_alone() {
        let mut subscriptions = Subscriptions::default();
        assert!(subscriptions.is_empty());
        for (kind, name) in [(Kind::Channel, "a"), (Kind::Pattern, "a"), (Kind::ShardChannel, "a")] {
            subscriptions.add(kind, name.as_bytes().into());
        }
        subscriptions.add(Kind::Channel, b"b"[..].into());
        assert_eq!(Kind::ALL.map(|kind| subscriptions.counted_with(kind)), [3, 3, 1]);
        assert!(subscriptions.remove(Kind::Pattern, b"a"));
        assert!(!subscriptions.remove(Kind::Pattern, b"a"));
        assert_eq!(Kind::ALL.map(|kind| subscriptions.counted_with(kind)), [2, 2, 1]);
    }

    #[test]
    fn their_memory_is_that_of_the_names_that_are_there() {
        let mut subscriptions = Subscriptions::default();
        subscriptions.add(Kind::Channel, [b'a'; 1_000][..].into());
        subscriptions.add(Kind::Pattern, [b'b'; 500][..].into());
        assert_eq!(subscriptions.memory(), 1_500 + 2 * OVERHEAD);
        assert!(!subscriptions.remove(Kind::Pattern, &[b'a'; 1_000]));
        assert!(subscriptions.remove(Kind::Channel, &[b'a'; 1_000]));
        assert_eq!(subscriptions.memory(), 500 + OVERHEAD);
    }
}
