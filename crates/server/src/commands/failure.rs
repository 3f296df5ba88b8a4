//! Failures of commands, in Valkey's words.

use std::borrow::Cow;
use std::time::Duration;

use snugly_store::StoreError;
use tracing::error;

use super::{Delay, Wait};
use crate::scripts::Kind;

/// An error reply.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The code included.
    text: Cow<'static, [u8]>,
    /// Delay of the reply.
    delay: Duration,
    is_noted: bool,
}

#[rustfmt::skip]
impl Failure {
    pub(crate) const SYNTAX: Failure = Failure::fixed("ERR syntax error");
    pub(crate) const NOT_AN_INTEGER: Failure = Failure::fixed("ERR value is not an integer or out of range");
    pub(crate) const NOT_A_FLOAT: Failure = Failure::fixed("ERR value is not a valid float");
    pub(crate) const NAN_OR_INFINITY: Failure = Failure::fixed("ERR increment would produce NaN or Infinity");
    pub(crate) const OVERFLOW: Failure = Failure::fixed("ERR increment or decrement would overflow");
    pub(crate) const DECREMENT_OVERFLOW: Failure = Failure::fixed("ERR decrement would overflow");
    pub(crate) const INVALID_CURSOR: Failure = Failure::fixed("ERR invalid cursor");
    pub(crate) const TOO_LONG: Failure = Failure::fixed("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    pub(crate) const NO_SUCH_KEY: Failure = Failure::fixed("ERR no such key");
    pub(crate) const NO_SUCH_DATABASE: Failure = Failure::fixed("ERR DB index is out of range");
    pub(crate) const SAME_OBJECT: Failure = Failure::fixed("ERR source and destination objects are the same");
    pub(crate) const MONITORS_ONLY: Failure = Failure::fixed("ERR Replica can't interact with the keyspace");
    pub(crate) const NOT_AUTHENTICATED: Failure = Failure::fixed("NOAUTH Authentication required.");
    pub(crate) const OUT_OF_MEMORY: Failure = Failure::fixed("OOM command not allowed when used memory > 'maxmemory'.");

    pub(crate) const NO_SCRIPT: Failure = Failure::fixed("NOSCRIPT No matching script.");
    pub(crate) const READ_ONLY: Failure = Failure::fixed("READONLY You can't write against a read only replica.");
    pub(crate) const LOADING: Failure = Failure::fixed("LOADING snugly is loading the keys of its primary");

    pub(crate) const fn fixed(text: &'static str) -> Failure {
        Failure { text: Cow::Borrowed(text.as_bytes()), delay: Duration::ZERO, is_noted: false }
    }

    pub(crate) fn new(text: impl Into<Vec<u8>>) -> Failure {
        Failure { text: Cow::Owned(text.into()), delay: Duration::ZERO, is_noted: false }
    }

    /// Delays the reply by this time.
    pub(crate) fn held_back(self, delay: Duration) -> Failure {
        Failure { delay, ..self }
    }

    pub(super) fn delay(&self) -> Duration {
        self.delay
    }

    /// Returns the wait before the reply is sent, if it is held back.
    pub(crate) fn wait(&self) -> Option<Wait> {
        (!self.delay.is_zero()).then(|| Wait::Delay(Delay { length: self.delay, busy: true }))
    }

    pub(crate) fn wrong_arity(command: &str) -> Failure {
        Failure::new(format!("ERR wrong number of arguments for '{command}' command"))
    }

    pub(crate) fn subcommand_syntax(container: &str, subcommand: &[u8]) -> Failure {
        let try_help = container.to_ascii_uppercase();
        let text: [&[u8]; 5] =
            [b"ERR unknown subcommand or wrong number of arguments for '", subcommand, b"'. Try ", try_help.as_bytes(), b" HELP."];
        Failure::new(text.concat())
    }

    pub(crate) fn invalid_expire(command: &str) -> Failure {
        Failure::new(format!("ERR invalid expire time in '{command}' command"))
    }

    pub(crate) fn not_in_transaction(command: &str) -> Failure {
        Failure::new(format!("ERR Command '{command}' not allowed inside a transaction"))
    }

    pub(crate) fn not_while_subscribed(command: &str) -> Failure {
        Failure::new(format!(
            "ERR Can't execute '{command}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
        ))
    }

    pub(crate) const WRONG_TYPE: Failure =
        Failure::fixed("WRONGTYPE Operation against a key holding the wrong kind of value");

    /// A write that could not be kept, or data that could not be read: Valkey's code for trouble with the disk.
    pub(crate) fn not_on_disk(error: &StoreError) -> Failure {
        Failure::new(format!("MISCONF {error}"))
    }

    /// The refusal of other commands while a script of this kind runs for long.
    pub(crate) const fn busy(kind: Kind) -> Failure {
        Failure::fixed(match kind {
            Kind::Script => "BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            Kind::Function => "BUSY Valkey is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.",
        })
    }

    /// Returns whether the error was noted when it arose.
    pub(crate) fn is_noted(&self) -> bool {
        self.is_noted
    }

    /// Marks an error that was noted when it arose.
    pub(crate) fn noted(self) -> Failure {
        Failure { is_noted: true, ..self }
    }

    /// Returns whether a write was refused because there is no room for it.
    pub(crate) fn is_for_memory(&self) -> bool {
        self.text.starts_with(b"OOM ")
    }

    /// Returns whether a write was refused since it cannot be kept, by memory or by the disk, which may change.
    pub(super) fn is_for_room(&self) -> bool {
        self.is_for_memory() || self.text.starts_with(b"MISCONF ")
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        match error {
            StoreError::OutOfMemory { .. } => Failure::OUT_OF_MEMORY,
            StoreError::WrongType => Failure::WRONG_TYPE,
            StoreError::ValueTooLong { .. } => Failure::TOO_LONG,
            StoreError::KeyTooLong { .. } | StoreError::Damaged { .. } | StoreError::UnknownKind { .. } => {
                Failure::new(format!("ERR {error}"))
            }
            StoreError::DiskFull { .. } | StoreError::NoMemory { .. } => Failure::new(format!("OOM {error}")),
            StoreError::Disk { .. } => Failure::not_on_disk(&error),
            StoreError::Unreadable { .. } => {
                error!(%error, "a stored value is unreadable; the next write or delete of its key mends it");
                Failure::new(format!("ERR {error}"))
            }
        }
    }
}
