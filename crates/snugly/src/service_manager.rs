//! News for a service manager in systemd's protocol (sd_notify): that the server is ready, reads its settings again,
//! ends, and is alive.
//!
//! Nothing is told where no manager asks, which is where NOTIFY_SOCKET is missing. It knows the protocol's words and must
//! not know why something happens.

use std::io;
use std::sync::Arc;
use std::thread;

use sd_notify::NotifyState;
use snugly_server::Server;
use tracing::warn;

/// Tells that clients are served, and where.
pub(crate) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Tells that settings are read again, and once `reload` has done that, that the server is ready.
pub(crate) fn during_reload(reload: impl FnOnce()) {
    match NotifyState::monotonic_usec_now() {
        // The time tells managers which reload is meant.
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => warn!("the service manager cannot be told of a reload: {error}"),
    }
    reload();
    tell(&[NotifyState::Ready]);
}

/// Tells that the server ends, which may take a while.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(states) {
        warn!("the service manager cannot be told that the server is {states:?}: {error}");
    }
}

/// Tells a manager that wants to know (WatchdogSec) that the server is alive, twice in its interval, as long as the regular
/// work goes on: it takes the locks that every command takes.
///
/// # Errors
/// The system refuses a thread.
pub(crate) fn keep_watch(server: &Arc<Server>) -> io::Result<()> {
    let Some(interval) = sd_notify::watchdog_enabled() else { return Ok(()) };
    let server = server.clone();
    let watch = move || {
        let pause = interval / 2;
        loop {
            if server.is_stopping() || server.work_age().is_none_or(|age| age < pause) {
                tell(&[NotifyState::Watchdog]);
            }
            thread::sleep(pause);
        }
    };
    thread::Builder::new().name("watchdog".into()).spawn(watch).map(drop)
}
