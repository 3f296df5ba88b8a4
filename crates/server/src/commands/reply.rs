//! The result of a command's function: a reply, at once or later, or the reason that there is none.

use std::sync::Arc;
use std::time::Duration;

use super::Failure;
use crate::key_watch::Waiter;

/// A reply, or why there is none.
pub(crate) type Outcome = Result<Reply, Failure>;

/// Time at which a reply is sent.
#[must_use]
pub(crate) enum Reply {
    /// At once: it is written.
    Now,
    /// After this. Nothing of the connection runs meanwhile.
    Later(Wait),
}

/// The event to wait for.
pub(crate) enum Wait {
    /// Time, before the reply that is written is sent.
    Delay(Delay),
    /// A list, before there is a reply.
    List(ListWait),
}

/// Delay of a reply.
pub(crate) struct Delay {
    pub(crate) length: Duration,
    /// Whether it counts as time that the command took, rather than waited.
    pub(crate) busy: bool,
}

/// A wait for a list, before the command that asked for it has an answer.
pub(crate) struct ListWait {
    pub(crate) waiter: Arc<Waiter>,
    /// The longest wait.
    pub(crate) timeout: Duration,
    /// Whether the client does not want the answer.
    pub(crate) silent: bool,
}

/// The longest time that a command is busy, so that the times of commands can be summed up.
const LONGEST_BUSY: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Reply {
    /// Creates a reply of a command that is busy for this time before it is sent.
    pub(super) fn after(busy: Duration) -> Reply {
        if busy.is_zero() {
            return Reply::Now;
        }
        Reply::Later(Wait::Delay(Delay { length: busy.min(LONGEST_BUSY), busy: true }))
    }

    /// Time for which the command is busy before the reply is sent.
    pub(super) fn busy_time(&self) -> Duration {
        match self {
            Reply::Later(Wait::Delay(Delay { length, busy: true })) => *length,
            _ => Duration::ZERO,
        }
    }

    /// Returns whether the reply is written.
    pub(super) fn is_written(&self) -> bool {
        !matches!(self, Reply::Later(Wait::List(_)))
    }
}
