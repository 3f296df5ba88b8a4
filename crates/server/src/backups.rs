//! The backup under way, and the result of the last one.
//!
//! It knows the store, and runs the backup on a thread of its own. It must not know who asks for one, nor where: the folder is
//! given.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use snugly_store::{BackupError, BackupProgress, CheckReport, Store, system_time};
use thiserror::Error;
use tracing::{error, info};

/// Reason why there is no backup.
#[derive(Debug, Error)]
pub(crate) enum BackupFailure {
    #[error(transparent)]
    Store(#[from] BackupError),
    #[error("there is no thread for the backup: {0}; raise the limit of processes")]
    NoThread(#[source] io::Error),
    #[error("the thread of the backup has panicked")]
    Panicked,
}

/// The backups of a server.
#[derive(Clone, Default)]
pub(crate) struct Backups(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

/// Time that a backup has to end when the server does. One that is being verified does not hear of it, and leaves a folder
/// that the next backup of its name removes.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Default)]
struct State {
    running: Option<Running>,
    last: Option<Last>,
    /// Time when the last one was made, in Unix seconds; 0 if none was.
    made_at: u64,
    failures: u64,
}

struct Running {
    folder: PathBuf,
    since: Instant,
    progress: Arc<BackupProgress>,
}

/// A backup that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Last {
    pub(crate) folder: PathBuf,
    pub(crate) duration: Duration,
    pub(crate) written_bytes: u64,
    /// Number of keys, or the reason why there is no backup.
    pub(crate) outcome: Result<u64, String>,
}

/// A backup that is being made.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    pub(crate) folder: PathBuf,
    pub(crate) duration: Duration,
    pub(crate) written_bytes: u64,
    /// 0 until it is known.
    pub(crate) expected_bytes: u64,
    /// 0 until everything is written.
    pub(crate) verified_rows: u64,
}

/// The numbers of backups at one moment.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) current: Option<Current>,
    pub(crate) last: Option<Last>,
    /// Time when the last one was made, in Unix seconds; 0 if none was.
    pub(crate) made_at: u64,
    pub(crate) failures: u64,
}

impl Backups {
    pub(crate) fn history(&self) -> History {
        let state = self.0.state.lock();
        let current = state.running.as_ref().map(|running| Current {
            folder: running.folder.clone(),
            duration: running.since.elapsed(),
            written_bytes: running.progress.written(),
            expected_bytes: running.progress.expected(),
            verified_rows: running.progress.verified(),
        });
        let State { ref last, made_at, failures, .. } = *state;
        History { current, last: last.clone(), made_at, failures }
    }

    /// Ends the backup under way soon, unless it is being verified; returns whether there is one.
    pub(crate) fn cancel(&self) -> bool {
        let state = self.0.state.lock();
        state.running.iter().for_each(|running| running.progress.cancel());
        state.running.is_some()
    }

    /// Ends the backup under way, and waits for that.
    pub(crate) fn stop(&self) {
        self.cancel();
        let mut state = self.0.state.lock();
        self.0.ended.wait_while_for(&mut state, |state| state.running.is_some(), PATIENCE);
    }

    /// Begins to write a backup into a new folder.
    ///
    /// # Errors
    /// [`BackupFailure`], if it is known before it has begun.
    pub(crate) fn begin(&self, store: &Arc<Store>, folder: &Path) -> Result<(), BackupFailure> {
        if store.durability().is_none() {
            return Err(BackupError::InMemory.into());
        }
        if folder.exists() {
            return Err(BackupError::Exists { path: folder.to_owned() }.into());
        }
        let progress = Arc::<BackupProgress>::default();
        let mut state = self.0.state.lock();
        if state.running.is_some() {
            return Err(BackupError::InProgress.into());
        }
        let (theirs, store, to, shown) = (self.clone(), store.clone(), folder.to_owned(), progress.clone());
        let write = move || {
            let made = catch_unwind(AssertUnwindSafe(|| store.backup(&to, &shown)));
            theirs.end(made.map_or(Err(BackupFailure::Panicked), |made| made.map_err(BackupFailure::from)));
        };
        let started = thread::Builder::new().name("backup".into()).spawn(write);
        started.map_err(BackupFailure::NoThread)?;
        state.running = Some(Running { folder: folder.to_owned(), since: Instant::now(), progress });
        Ok(())
    }

    fn end(&self, made: Result<CheckReport, BackupFailure>) {
        let mut state = self.0.state.lock();
        let Some(Running { folder, since, progress }) = state.running.take() else { return };
        let (duration, bytes) = (since.elapsed(), progress.written());
        match &made {
            Ok(CheckReport { keys, .. }) => {
                state.made_at = system_time() / 1_000;
                info!(folder = %folder.display(), keys, bytes, seconds = duration.as_secs_f64(), "a backup is made");
            }
            Err(BackupFailure::Store(BackupError::Cancelled)) => {
                info!(folder = %folder.display(), "the backup was cancelled")
            }
            Err(reason) => {
                state.failures += 1;
                error!(folder = %folder.display(), %reason, "there is no backup");
            }
        }
        let outcome = made.map(|report| report.keys).map_err(|reason| reason.to_string());
        state.last = Some(Last { folder, duration, written_bytes: bytes, outcome });
        self.0.ended.notify_all();
    }
}
