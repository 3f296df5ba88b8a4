//! The server as a replica: which primary it follows and how far it has come, and what that means for requests.
//!
//! - `skipped`: what the primary has and this server has not
//!
//! It is told by the settings whom to follow, and by the link how that goes; requests ask it whether they may run. It
//! knows no sockets, no commands and no keys, and starts nothing.

mod skipped;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use snugly_store::system_time;
use tokio::sync::Notify;

use crate::settings::{Configuration, Primary, Unsupported};
pub(crate) use skipped::Skipped;

/// A server's part as a replica.
#[derive(Default)]
pub(crate) struct Replica {
    state: Mutex<State>,
    /// Number of changes of what is to be followed.
    version: AtomicU64,
    /// Wakes the link after such a change.
    changed: Notify,
    refuses_writes: AtomicBool,
    is_loading: AtomicBool,
    /// Held while requests of the primary run.
    applying: Mutex<()>,
    /// Bytes of the primary's stream whose requests have run.
    offset: AtomicU64,
    /// Time when the primary last sent something, in Unix milliseconds.
    heard_at: AtomicU64,
    is_asked_for_offset: AtomicBool,
    has_been_alone: AtomicBool,
    skips: AtomicBool,
    pub(crate) skipped: Skipped,
    pub(crate) full_syncs: AtomicU64,
    pub(crate) resumed_links: AtomicU64,
}

#[derive(Default)]
struct State {
    followed: Option<Followed>,
    stage: Stage,
    /// Time since which the link has not been up.
    down_since: Option<Instant>,
    /// Reason why the link is not up.
    error: String,
    /// Identity of the primary's stream.
    stream: String,
    transfer: Transfer,
}

/// The server to follow, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Followed {
    pub(crate) primary: Primary,
    /// Name and password to log in with; an empty name is the user `default`.
    pub(crate) login: Option<(String, String)>,
    pub(crate) unsupported: Unsupported,
    /// Time without a byte after which the link is broken.
    pub(crate) timeout: Duration,
}

/// The state of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// There is none, and one is to be made.
    #[default]
    Waiting,
    Connecting,
    Handshake,
    /// The keys of the primary are being loaded.
    Loading,
    /// The primary's changes arrive.
    Up,
    /// It has ended for good, until something is changed.
    Stopped,
}

impl Stage {
    /// Valkey's name of it, in ROLE.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::Waiting | Stage::Stopped => "connect",
            Stage::Connecting => "connecting",
            Stage::Handshake => "handshake",
            Stage::Loading => "sync",
            Stage::Up => "connected",
        }
    }
}

/// Progress of a transfer of all keys.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Transfer {
    /// Bytes in all, if the primary has told.
    pub(crate) total: Option<u64>,
    pub(crate) read: u64,
}

/// The link as INFO and ROLE show it.
pub(crate) struct Status {
    pub(crate) primary: Primary,
    pub(crate) stage: Stage,
    pub(crate) down_since: Option<Instant>,
    pub(crate) error: String,
    pub(crate) stream: String,
    pub(crate) transfer: Transfer,
    pub(crate) offset: u64,
    /// Seconds since the primary last sent something.
    pub(crate) silent_seconds: u64,
}

impl Replica {
    /// Follows what the settings say from now on. A link to another server, or one that was made in another way, is to end.
    pub(crate) fn follow(&self, configuration: &Configuration) {
        let followed = configuration.replica_of.clone().map(|primary| Followed {
            primary,
            login: (!configuration.primary_auth.is_empty())
                .then(|| (configuration.primary_user.clone(), configuration.primary_auth.clone())),
            unsupported: configuration.replica_unsupported,
            timeout: Duration::from_secs(configuration.repl_timeout),
        });
        let mut state = self.state.lock();
        let refuses = followed.is_some() && configuration.replica_read_only;
        self.refuses_writes.store(refuses, Ordering::SeqCst);
        if state.followed == followed {
            return;
        }
        self.skips.store(configuration.replica_unsupported == Unsupported::Skip, Ordering::SeqCst);
        let is_new = state.followed.as_ref().map(|before| &before.primary)
            != followed.as_ref().map(|now| &now.primary);
        if is_new {
            self.skipped.forget();
            self.offset.store(0, Ordering::SeqCst);
        }
        if followed.is_none() {
            self.has_been_alone.store(true, Ordering::SeqCst);
        }
        state.down_since = followed.is_some().then(Instant::now);
        (state.stage, state.error) = (Stage::Waiting, String::new());
        state.followed = followed;
        self.version.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_one();
    }

    /// Wakes the link, to look at what has changed.
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Returns once there is something to look at for the link, which is the only one to wait here.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The server to follow, and the number of changes of that.
    pub(crate) fn followed(&self) -> (Option<Followed>, u64) {
        let state = self.state.lock();
        (state.followed.clone(), self.version())
    }

    /// Returns whether no server was to be followed at some time since the last call: the keys may be others since.
    pub(crate) fn take_time_alone(&self) -> bool {
        self.has_been_alone.swap(false, Ordering::SeqCst)
    }

    /// Number of changes of what is to be followed.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    pub(crate) fn is_following(&self) -> bool {
        self.state.lock().followed.is_some()
    }

    /// Returns whether clients' writes are refused.
    pub(crate) fn refuses_writes(&self) -> bool {
        self.refuses_writes.load(Ordering::Relaxed)
    }

    /// Returns whether there is only a part of the primary's keys, which nobody is to see.
    pub(crate) fn is_loading(&self) -> bool {
        self.is_loading.load(Ordering::Relaxed)
    }

    /// Notes whether there is only a part. Turns that are under way may not have seen it.
    pub(crate) fn set_loading(&self, is_loading: bool) {
        self.is_loading.store(is_loading, Ordering::SeqCst);
    }

    /// Returns whether what this server does not have is passed over.
    pub(crate) fn skips(&self) -> bool {
        self.skips.load(Ordering::Relaxed)
    }

    /// Begins to run requests of the primary, until this is dropped.
    pub(crate) fn apply(&self) -> MutexGuard<'_, ()> {
        self.applying.lock()
    }

    /// Waits until the requests of a primary that is no longer followed have run, which end with the one that is under way.
    /// The caller holds no keys.
    pub(crate) fn wait_for_requests(&self) {
        drop(self.applying.lock());
    }

    /// Notes the state of the link of this version.
    pub(crate) fn enter(&self, version: u64, stage: Stage) {
        let mut state = self.state.lock();
        if version != self.version() {
            return;
        }
        state.stage = stage;
        if stage == Stage::Up {
            state.down_since = None;
            state.error.clear();
        }
        if stage == Stage::Loading {
            state.transfer = Transfer::default();
        }
    }

    /// Notes that the link of this version has ended, or was not made.
    pub(crate) fn fail(&self, version: u64, stage: Stage, error: &str) {
        let mut state = self.state.lock();
        if version != self.version() {
            return;
        }
        state.stage = stage;
        state.down_since.get_or_insert_with(Instant::now);
        error.clone_into(&mut state.error);
    }

    pub(crate) fn set_stream(&self, stream: &str) {
        stream.clone_into(&mut self.state.lock().stream);
    }

    pub(crate) fn set_transfer(&self, transfer: Transfer) {
        self.state.lock().transfer = transfer;
    }

    pub(crate) fn set_offset(&self, offset: u64) {
        self.offset.store(offset, Ordering::Relaxed);
    }

    pub(crate) fn note_heard(&self) {
        self.heard_at.store(system_time(), Ordering::Relaxed);
    }

    /// Notes that the primary wants to know how far this server is.
    pub(crate) fn ask_for_offset(&self) {
        self.is_asked_for_offset.store(true, Ordering::Relaxed);
    }

    /// Returns whether it wants to, which it is answered.
    pub(crate) fn take_question(&self) -> bool {
        self.is_asked_for_offset.swap(false, Ordering::Relaxed)
    }

    /// The link, if a server is followed.
    pub(crate) fn status(&self) -> Option<Status> {
        let state = self.state.lock();
        let primary = state.followed.as_ref()?.primary.clone();
        let silent = system_time().saturating_sub(self.heard_at.load(Ordering::Relaxed));
        Some(Status {
            primary,
            stage: state.stage,
            down_since: state.down_since,
            error: state.error.clone(),
            stream: state.stream.clone(),
            transfer: state.transfer,
            offset: self.offset.load(Ordering::Relaxed),
            silent_seconds: silent / 1_000,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn following(host: &str) -> Configuration {
        let primary = Primary { host: host.to_owned(), port: 1 };
        Configuration { replica_of: Some(primary), ..Configuration::default() }
    }

    #[test]
    fn a_link_is_made_anew_only_if_something_about_it_has_changed() {
        let replica = Replica::default();
        replica.follow(&Configuration::default());
        assert_eq!((replica.version(), replica.refuses_writes()), (0, false));
        replica.follow(&following("a"));
        replica.follow(&Configuration { timeout: 7, ..following("a") });
        assert_eq!((replica.version(), replica.refuses_writes()), (1, true));
        replica.follow(&Configuration { replica_read_only: false, ..following("a") });
        assert_eq!((replica.version(), replica.refuses_writes()), (1, false));
        replica.follow(&Configuration { primary_auth: "secret".to_owned(), ..following("a") });
        assert_eq!(replica.version(), 2);
        replica.follow(&Configuration::default());
        assert_eq!((replica.version(), replica.refuses_writes()), (3, false));
        assert!(replica.status().is_none());
    }

    #[test]
    fn what_an_ended_link_says_is_not_taken_for_that_of_the_next() {
        let replica = Replica::default();
        replica.follow(&following("a"));
        replica.enter(1, Stage::Up);
        replica.follow(&following("b"));
        replica.fail(1, Stage::Stopped, "late");
        replica.enter(1, Stage::Up);
        let status = replica.status().expect("b is followed");
        assert_eq!((status.stage, &*status.error), (Stage::Waiting, ""));
        replica.fail(2, Stage::Waiting, "refused");
        assert_eq!(replica.status().expect("b is followed").error, "refused");
    }
}
