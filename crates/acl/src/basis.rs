//! The basis that users are made from before any rule: the commands that rules are about, and the channels that are free to
//! all.

use crate::commands::Commands;

/// The basis of users and their rules.
#[derive(Clone, Copy)]
pub struct Basis<'a> {
    /// The commands that rules are about.
    pub commands: &'a Commands,
    /// Whether a set of permissions allows all channels until a rule says otherwise (`acl-pubsub-default`).
    pub all_channels: bool,
}
