//! Health: whether the process is alive, and whether it can serve.
//!
//! A thread that ends takes the process with it (`threads`), so an answer alone says that all are there. What is left to
//! find out is whether the regular work goes on, which waits for every lock that clients wait for.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::StatusCode;

use crate::state::Server;

/// Time without regular work, done ten times a second, after which the server counts as stuck. A command that holds the
/// whole key space for seconds is no reason to restart a server.
const STUCK_AFTER: Duration = Duration::from_secs(30);

/// A reason not to be well: whether it holds, and what is told of it. Everybody may read it, so it names nothing of the
/// machine.
type Reason = (fn(&Server) -> bool, &'static str);

const STOPPING: Reason = (|server| server.stopping.load(Ordering::Relaxed), "stopping");
const STUCK: Reason = (
    // A server that stops does no regular work any more.
    |server| !server.stopping.load(Ordering::SeqCst) && is_overdue(server.work_age()),
    "stuck: the regular work has not run for 30 seconds; restart the server",
);
const UNWRITABLE: Reason = (
    |server| server.store().disk_stats().is_some_and(|disk| disk.failure.is_some()),
    "writes are refused: the disk cannot be written; the log says why",
);

/// Whether the server has not begun to stop.
pub(super) fn health(server: &Server) -> (StatusCode, String) {
    verdict(server, &[STOPPING])
}

/// Whether the process is alive and its threads run.
pub(super) fn alive(server: &Server) -> (StatusCode, String) {
    verdict(server, &[STUCK])
}

/// Whether the server can serve reads and writes.
pub(super) fn ready(server: &Server) -> (StatusCode, String) {
    verdict(server, &[STOPPING, STUCK, UNWRITABLE])
}

fn verdict(server: &Server, reasons: &[Reason]) -> (StatusCode, String) {
    match reasons.iter().find(|(holds, _)| holds(server)) {
        Some((_, told)) => (StatusCode::SERVICE_UNAVAILABLE, (*told).to_owned()),
        None => (StatusCode::OK, "ok".to_owned()),
    }
}

/// Returns whether regular work that was done so long ago, if it was, should have been done again.
fn is_overdue(age: Option<Duration>) -> bool {
    age.is_some_and(|age| age > STUCK_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_stuck_once_its_regular_work_is_long_overdue() {
        let seconds = Duration::from_secs;
        let ages = [None, Some(seconds(0)), Some(seconds(30)), Some(seconds(31))];
        assert_eq!(ages.map(is_overdue), [false, false, false, true]);
    }
}
