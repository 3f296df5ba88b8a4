//! What clients keep beside a value.

/// Flags and version of a value, as the clients of memcached use them (protocol.txt). The default has no
/// field in an entry and none on disk, so that whoever does without pays nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Metadata {
    /// Number of this state of the key, which no other state of the key ever has; 0 until one is asked for.
    pub version: u64,
    /// Bits that clients give and get back. They say nothing to the server.
    pub client_flags: u32,
    /// Whether the value is out of date, and kept until a client has renewed it.
    pub is_stale: bool,
    /// Whether a client was told to renew the value.
    pub is_claimed: bool,
}

impl Metadata {
    /// Returns whether there is nothing to keep.
    pub(crate) fn is_default(&self) -> bool {
        *self == Metadata::default()
    }

    /// Returns what a value keeps that was changed in part, or copied to another key: its flags.
    pub(crate) fn of_another_state(self) -> Metadata {
        Metadata { client_flags: self.client_flags, ..Metadata::default() }
    }
}
