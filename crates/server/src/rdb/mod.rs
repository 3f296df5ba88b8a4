//! RDB files, by which people move in and out: what SAVE and BGSAVE write, and what a server loads when it starts.
//!
//! - `saving`: every key to a file; `loading`: a file to keys
//! - [`Saves`]: which of them is under way, and how the last one ended
//!
//! It joins the format, which the protocol crate knows, to the store. It does not know commands.

mod loading;
mod saving;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use parking_lot::Mutex;
use snugly_store::system_time;
use tracing::{error, info};

pub use loading::LoadError;
pub(crate) use loading::{load, refuse_part};
use saving::{SaveError, Saved};

use crate::server::Server;

/// The saves of a server.
#[derive(Default)]
pub(crate) struct Saves(Mutex<State>);

#[derive(Default)]
struct State {
    /// When the one in the background began.
    running: Option<Instant>,
    history: History,
}

/// What INFO tells of saves.
#[derive(Clone, Copy, Default)]
pub(crate) struct History {
    /// When the last file was written, in Unix seconds; 0 if none was.
    pub(crate) last_at: u64,
    /// How many were written.
    pub(crate) count: u64,
    /// Whether the last one in the background failed.
    pub(crate) has_failed: bool,
    /// How many seconds the last one in the background took, if there was one.
    pub(crate) last_seconds: Option<u64>,
    /// For how many seconds the one in the background has been under way.
    pub(crate) running_seconds: Option<u64>,
    /// Writes that the store had counted when the last one that was written began.
    pub(crate) writes_before: u64,
}

impl Saves {
    pub(crate) fn history(&self) -> History {
        let state = self.0.lock();
        History { running_seconds: state.running.map(|since| since.elapsed().as_secs()), ..state.history }
    }

    /// Begins one in the background, unless one is under way.
    fn begin(&self) -> bool {
        let mut state = self.0.lock();
        let is_first = state.running.is_none();
        state.running.get_or_insert_with(Instant::now);
        is_first
    }

    fn end(&self, is_written: bool) {
        let mut state = self.0.lock();
        state.history.last_seconds = state.running.take().map(|since| since.elapsed().as_secs());
        state.history.has_failed = !is_written;
    }

    fn written(&self, writes_before: u64) {
        let history = &mut self.0.lock().history;
        history.writes_before = writes_before;
        (history.last_at, history.count) = (system_time() / 1_000, history.count + 1);
    }
}

/// Where files are written.
///
/// # Errors
/// If that is the store's own folder, where a file could take the place of the store's.
fn path(server: &Server) -> Result<PathBuf, SaveError> {
    let configuration = server.configuration();
    let folder = Path::new(&configuration.dir);
    if let Some(storage) = configuration.disk()
        && is_within(folder, &storage.path)
    {
        return Err(SaveError::InStore { folder: folder.to_owned() });
    }
    Ok(folder.join(&configuration.dbfilename))
}

/// Whether a folder is another one or lies in it, whatever they are called.
fn is_within(folder: &Path, other: &Path) -> bool {
    match (folder.canonicalize(), other.canonicalize()) {
        (Ok(folder), Ok(other)) => folder.starts_with(other),
        _ => false,
    }
}

/// Writes all keys as they are at this instant, while everybody else waits.
///
/// # Errors
/// [`SaveError`]; the file is as it was before.
pub(crate) fn save(server: &Server, session: &mut snugly_store::Session) -> Result<(), SaveError> {
    let path = path(server)?;
    let (writes, saved) =
        session.all_exclusively(|session| (session.store().stats().writes, saving::write(session, &path)));
    note(server, &path, saved?, writes);
    Ok(())
}

/// Writes all keys in the background, each as it is when its turn comes; says whether it has begun, which it does not
/// while one is under way.
///
/// # Errors
/// As [`save`], if it is known before it has begun.
pub(crate) fn save_in_background(server: &Arc<Server>) -> Result<bool, SaveError> {
    let path = path(server)?;
    if !server.saves().begin() {
        return Ok(false);
    }
    let theirs = server.clone();
    let writing = move || {
        let writes = theirs.store().stats().writes;
        let written = saving::write(&mut theirs.store().session(), &path);
        theirs.saves().end(written.is_ok());
        match written {
            Ok(saved) => note(&theirs, &path, saved, writes),
            Err(error) => error!(path = %path.display(), %error, "BGSAVE has not written the file"),
        }
    };
    match thread::Builder::new().name("bgsave".into()).spawn(writing) {
        Ok(_) => Ok(true),
        Err(error) => {
            error!(%error, "BGSAVE has no thread");
            server.saves().end(false);
            Ok(true)
        }
    }
}

fn note(server: &Server, path: &Path, saved: Saved, writes_before: u64) {
    server.saves().written(writes_before);
    let Saved { strings, lists, bytes } = saved;
    info!(path = %path.display(), strings, lists, bytes, "all keys are saved");
}
