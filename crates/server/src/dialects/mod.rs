//! The protocols that clients speak: each finds requests in bytes, runs the operations that they ask for, and writes the
//! replies. Everything else about a connection is for `snugly_net`.
//!
//! - `resp`: the protocol of Redis and Valkey
//! - `memcached`: the protocols of memcached: text, meta and binary
//! - `primary`: the stream of the primary that the server follows, which is RESP without replies
//! - `later`: what has to be waited for before replies are sent, or more requests run
//! - `service`: the connections of one thread, whatever each speaks

mod later;
mod memcached;
mod primary;
mod resp;
mod service;

pub(crate) use later::{Later, Unsent};
pub(crate) use primary::{PrimaryStream, Ran, Settled, stats as stats_of_primaries};
pub(crate) use service::{Dialects, denied, too_many_clients};

use crate::commands::Wait;

/// The outcome of a stretch of input.
struct Progress {
    /// Bytes whose requests were run.
    taken: usize,
    /// Reason why no more requests were run.
    stop: Stop,
}

/// Reason why no more requests are run yet.
enum Stop {
    /// More input: the rest holds no complete request, or none is to be run any more.
    Read,
    /// Replies are long enough to be sent.
    Send,
    /// These keys of the client's database are not in memory. They are fetched by a thread that can wait.
    Fetch(Vec<Vec<u8>>),
    /// The next request writes, and the disk has to catch up with the changes that wait for it.
    CatchUp,
    /// The next request waits for the end of a pause.
    EndPause,
    /// The reply to the last request waits.
    Reply(Wait),
}
