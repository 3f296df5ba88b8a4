//! A service manager that speaks systemd's protocols: news for it (sd_notify), that the server is ready, reads its settings
//! again, ends, and is alive; and sockets that it has opened (sd_listen_fds).
//!
//! Nothing is told where no manager asks, which is where NOTIFY_SOCKET is missing. It knows the protocol's words and must
//! not know why something happens.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result};
use sd_notify::NotifyState;
use snugly_server::{PassedSocket, Purpose, Server};
use tracing::warn;

/// Purposes of sockets by their names (FileDescriptorName). A socket without one has that of its unit, or none.
const PURPOSES: [(&str, Purpose); 7] = [
    ("resp", Purpose::Resp),
    ("snugly.socket", Purpose::Resp),
    ("unknown", Purpose::Resp),
    ("tls", Purpose::Tls),
    ("memcached", Purpose::Memcached),
    ("memcached-tls", Purpose::MemcachedTls),
    ("admin", Purpose::Admin),
];

/// Takes the sockets that the manager has opened. It is called once, before other files are opened.
///
/// # Errors
/// A socket is none to listen on, or is called something that is not known.
pub(crate) fn passed_sockets() -> Result<Vec<PassedSocket>> {
    let passed =
        sd_notify::listen_fds_with_names().context("cannot take the sockets of the service manager")?;
    passed
        .map(|(file, name)| {
            let purpose = PURPOSES.iter().find(|row| row.0 == name).with_context(|| {
                format!(
                    "the service manager passes a socket called {name:?}: give it one of these names with FileDescriptorName: \
                     resp, tls, memcached, memcached-tls, admin"
                )
            })?;
            // SAFETY: the manager has passed it to this process (LISTEN_PID), and nothing else here takes it.
            let socket = unsafe { OwnedFd::from_raw_fd(file) };
            let listening = snugly_server::adopt(socket)
                .with_context(|| format!("cannot listen on the socket {name:?} of the service manager"))?;
            Ok(PassedSocket { purpose: purpose.1, listening })
        })
        .collect()
}

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
