//! The eviction policies, by Valkey's names.
//!
//! One hand moves over the entries in the order of their hashes, as in CLOCK: an entry that was used since the hand
//! last passed gives up part of its frequency and stays, any other goes. New entries start with no credit, which is
//! the quick demotion that SIEVE (Zhang et al., NSDI '24) and S3-FIFO (Yang et al., SOSP '23) show to matter for
//! caches; the small capped counter that the hand spends is that of S3-FIFO's main queue. There is no queue to keep,
//! so a read writes at most one word of its own entry, and an entry costs no links.

use crate::entry::Access;

/// A rule for evicting entries when memory is full (`maxmemory-policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EvictionPolicy {
    /// No entry: writes that need memory fail.
    #[default]
    NoEviction,
    /// Any entry not used recently.
    AllKeysLru,
    /// Any entry not used often.
    AllKeysLfu,
    /// Any entry.
    AllKeysRandom,
    /// An entry that expires and was not used recently.
    VolatileLru,
    /// An entry that expires and was not used often.
    VolatileLfu,
    /// Any entry that expires.
    VolatileRandom,
    /// The entry that expires next.
    VolatileTtl,
}

/// Method by which a policy finds its victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    None,
    /// The hand, over entries whose frequency counts up to `cap`.
    Hand {
        cap: u8,
    },
    Random,
    NextToExpire,
}

impl Victim {
    /// Returns the hand instead of a method that spares keys or chooses them by their expiry.
    pub(crate) fn or_recency(self) -> Victim {
        match self {
            Victim::Hand { .. } => self,
            Victim::None | Victim::Random | Victim::NextToExpire => RECENCY,
        }
    }
}

struct Row {
    policy: EvictionPolicy,
    name: &'static str,
    victim: Victim,
    volatile_only: bool,
}

const RECENCY: Victim = Victim::Hand { cap: 1 };
const FREQUENCY: Victim = Victim::Hand { cap: Access::MAX_FREQUENCY };

#[rustfmt::skip]
const POLICIES: [Row; 8] = [
    Row { policy: EvictionPolicy::NoEviction,     name: "noeviction",      victim: Victim::None,         volatile_only: false },
    Row { policy: EvictionPolicy::AllKeysLru,     name: "allkeys-lru",     victim: RECENCY,              volatile_only: false },
    Row { policy: EvictionPolicy::AllKeysLfu,     name: "allkeys-lfu",     victim: FREQUENCY,            volatile_only: false },
    Row { policy: EvictionPolicy::AllKeysRandom,  name: "allkeys-random",  victim: Victim::Random,       volatile_only: false },
    Row { policy: EvictionPolicy::VolatileLru,    name: "volatile-lru",    victim: RECENCY,              volatile_only: true },
    Row { policy: EvictionPolicy::VolatileLfu,    name: "volatile-lfu",    victim: FREQUENCY,            volatile_only: true },
    Row { policy: EvictionPolicy::VolatileRandom, name: "volatile-random", victim: Victim::Random,       volatile_only: true },
    Row { policy: EvictionPolicy::VolatileTtl,    name: "volatile-ttl",    victim: Victim::NextToExpire, volatile_only: true },
];

impl EvictionPolicy {
    /// Returns every policy's name, in the order of `maxmemory-policy`'s documentation.
    pub fn names() -> impl Iterator<Item = &'static str> {
        POLICIES.iter().map(|row| row.name)
    }

    /// Returns the policy of a name, in any case.
    pub fn from_name(name: &str) -> Option<EvictionPolicy> {
        POLICIES.iter().find(|row| row.name.eq_ignore_ascii_case(name)).map(|row| row.policy)
    }

    /// Returns the policy's name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns whether `OBJECT FREQ` (rather than `OBJECT IDLETIME`) means something under this policy.
    pub fn counts_frequency(self) -> bool {
        self.victim() == FREQUENCY
    }

    pub(crate) fn victim(self) -> Victim {
        self.row().victim
    }

    pub(crate) fn volatile_only(self) -> bool {
        self.row().volatile_only
    }

    /// Returns the greatest frequency that an entry counts.
    pub(crate) fn frequency_cap(self) -> u8 {
        match self.victim() {
            Victim::Hand { cap } => cap,
            _ => 1,
        }
    }

    fn row(self) -> &'static Row {
        &POLICIES[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_found_by_its_own_name_and_row() {
        for name in EvictionPolicy::names() {
            let policy = EvictionPolicy::from_name(name).expect("a listed name is a policy");
            assert_eq!(policy.name(), name);
        }
        assert_eq!(EvictionPolicy::from_name("ALLKEYS-LRU"), Some(EvictionPolicy::AllKeysLru));
        assert_eq!(EvictionPolicy::from_name("lru"), None);
    }
}
