//! Parameters and results of operations: conditions, expiries, outcomes.

use super::Value;

/// Expiry of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Expiry {
    /// No expiry.
    #[default]
    Never,
    /// Expiry of the key before the write.
    Keep,
    /// Time in Unix milliseconds. A time in the past removes the key.
    At(u64),
}

/// Condition on a key for [`Session::set`](crate::Session::set) to write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Condition<'a> {
    /// No condition.
    #[default]
    Always,
    /// The key does not exist.
    IfAbsent,
    /// The key exists.
    IfPresent,
    /// The key exists and has this value.
    IfEqual(&'a [u8]),
    /// The key exists and has this version ([`Metadata`](crate::Metadata)).
    IfVersion(u64),
}

/// Condition on several keys for [`Session::set_many`](crate::Session::set_many) to write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ManyCondition {
    /// No condition.
    #[default]
    Always,
    /// No key exists.
    IfAllAbsent,
    /// All keys exist.
    IfAllPresent,
}

/// Conditions on a key's expiry for [`Session::expire`](crate::Session::expire) to change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ExpireConditions {
    /// The key has no expiry.
    pub if_none: bool,
    /// The key has an expiry.
    pub if_some: bool,
    /// The new expiry is later; none counts as the latest.
    pub if_later: bool,
    /// The new expiry is earlier; none counts as the latest.
    pub if_earlier: bool,
}

impl ExpireConditions {
    pub(super) fn hold(self, current: Option<u64>, expiry: Expiry) -> bool {
        let new = match expiry {
            Expiry::At(at) => at,
            Expiry::Never | Expiry::Keep => u64::MAX,
        };
        let old = current.unwrap_or(u64::MAX);
        !(self.if_none && current.is_some()
            || self.if_some && current.is_none()
            || self.if_later && new <= old
            || self.if_earlier && new >= old)
    }
}

/// Result of [`Session::expire`](crate::Session::expire).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpireOutcome {
    /// There is no such key.
    Missing,
    /// A condition did not hold.
    Refused,
    /// The expiry was changed.
    Changed,
    /// The expiry was in the past, and the key is removed.
    Removed,
}

/// Result of [`Session::get_and_set`](crate::Session::get_and_set).
pub struct SetOutcome {
    /// Whether the condition held.
    pub written: bool,
    /// Previous value of the key.
    pub previous: Option<Value>,
}
