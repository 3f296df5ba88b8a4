//! What operations are told and what they answer: conditions, expiries, outcomes.

use super::Value;

/// When a key shall expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Expiry {
    /// Never.
    #[default]
    Never,
    /// When it would have expired before the write.
    Keep,
    /// At a time in Unix milliseconds. A time that has come removes the key.
    At(u64),
}

/// What must be true of a key for [`Session::set`](crate::Session::set) to write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Condition<'a> {
    /// Nothing.
    #[default]
    Always,
    /// It does not exist.
    IfAbsent,
    /// It exists.
    IfPresent,
    /// It exists and its value is this.
    IfEqual(&'a [u8]),
}

/// What must be true of several keys for [`Session::set_many`](crate::Session::set_many) to write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ManyCondition {
    /// Nothing.
    #[default]
    Always,
    /// None of them exists.
    IfAllAbsent,
    /// All of them exist.
    IfAllPresent,
}

/// What must be true of a key's expiry for [`Session::expire`](crate::Session::expire) to change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ExpireConditions {
    /// It has none.
    pub if_none: bool,
    /// It has one.
    pub if_some: bool,
    /// The new one is later; none counts as the latest.
    pub if_later: bool,
    /// The new one is earlier; none counts as the latest.
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

/// What [`Session::expire`](crate::Session::expire) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpireOutcome {
    /// There is no such key.
    Missing,
    /// A condition did not hold.
    Refused,
    /// The expiry was changed.
    Changed,
    /// The time had come: the key is gone.
    Removed,
}

/// What [`Session::get_and_set`](crate::Session::get_and_set) did.
pub struct SetOutcome {
    /// Whether the condition held.
    pub written: bool,
    /// The value that the key had before.
    pub previous: Option<Value>,
}

/// A write that is on its way to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub(crate) u64);
