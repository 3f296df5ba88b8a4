//! The thread that follows another server, a primary, as its replica: how people move in from Valkey or Redis.
//!
//! - `handshake`: what is said before keys are sent: requests and replies, and no sockets
//! - `incoming`: the bytes of a primary: lines, the transfer of all keys, and the stream behind it
//! - `wire`: the connection, waited for no longer than there is a reason to
//! - `snapshot`: the transfer of all keys to the store, of which no client sees a part
//! - `link`: one link from its beginning to its end
//!
//! It knows the order of things and what to do when one fails. Requests in the stream are run by `dialects`, as those of
//! clients are; what the rest of the server may know of it is in `replica`. It knows no command and no format of a value.

mod handshake;
mod incoming;
mod link;
mod snapshot;
mod wire;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::timeout;
use tracing::{error, warn};

use crate::counters::count;
use crate::dialects::stats_of_primaries;
use crate::replica::{Followed, Stage};
use crate::state::Server;
use link::{Link, LinkError, Position};

/// Time before the first attempt to make a link that has ended anew, and the longest time before a later one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Interval at which a thread that waits sees that the server ends.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Follows what the server is to follow, until it ends.
pub(crate) fn run(server: &Arc<Server>, runtime: &Runtime) {
    let stats = stats_of_primaries(server);
    let mut position = None;
    let mut attempts = Attempts::new();
    while !server.is_stopping() {
        let (followed, version) = server.replica().followed();
        if server.replica().take_time_alone() {
            position = None;
        }
        let Some(followed) = followed else {
            give_up_part(server);
            wait(server, runtime, version, LOOK_EVERY);
            continue;
        };
        let before = position.as_ref().map(Position::offset);
        let link = Link { server, runtime, stats: &stats, followed: &followed, version };
        let ended = catch_unwind(AssertUnwindSafe(|| link.follow(&mut position)));
        let error = ended.unwrap_or_else(|_| {
            count(&server.connections.broken);
            position = None;
            LinkError::Broken("a request of it panicked here, which is a bug".to_owned())
        });
        if server.replica().version() != version {
            attempts = Attempts::new();
            continue;
        }
        if server.is_stopping() {
            break;
        }
        if position.as_ref().map(Position::offset) != before {
            attempts = Attempts::new();
        }
        attempts.note(server, &followed, version, &error);
        if let LinkError::Unsupported(_) = error {
            while !wait(server, runtime, version, LOOK_EVERY) && !server.is_stopping() {}
        } else {
            wait(server, runtime, version, attempts.pause());
        }
    }
}

/// Attempts to make a link since one has got somewhere.
struct Attempts {
    pause: Duration,
    /// Reason of the last failure, which was told.
    told: String,
}

impl Attempts {
    fn new() -> Attempts {
        Attempts { pause: FIRST_PAUSE, told: String::new() }
    }

    /// Tells why a link has ended, unless that is known.
    fn note(&mut self, server: &Server, followed: &Followed, version: u64, error: &LinkError) {
        let is_for_good = matches!(error, LinkError::Unsupported(_));
        let reason = error.to_string();
        server.replica().fail(version, if is_for_good { Stage::Stopped } else { Stage::Waiting }, &reason);
        if reason == self.told {
            return;
        }
        self.told.clone_from(&reason);
        let primary = &followed.primary;
        match is_for_good {
            true => {
                error!(%primary, reason, "the primary is followed no more: say REPLICAOF NO ONE, or set replica-unsupported to skip")
            }
            false => warn!(%primary, reason, "there is no link to the primary: it is tried again"),
        }
    }

    /// The time before the next one, which is longer each time.
    fn pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

/// Empties a store that has a part of a primary's keys that is not followed any more, so that clients may use it.
fn give_up_part(server: &Server) {
    if !server.replica().is_loading() {
        return;
    }
    server.freeing.free(server.store().flush(None));
    server.store().mark_load(None);
    server.replica().set_loading(false);
    warn!(
        "the keys of the primary were not there yet when it was to be followed no more: the server is empty"
    );
}

/// Waits so long, unless something else is to be followed before; returns whether so.
fn wait(server: &Server, runtime: &Runtime, version: u64, length: Duration) -> bool {
    let replica = server.replica();
    if replica.version() == version {
        // A wake without a change is one to look whether the server ends.
        let _ = runtime.block_on(async { timeout(length, replica.changed()).await });
    }
    replica.version() != version
}
