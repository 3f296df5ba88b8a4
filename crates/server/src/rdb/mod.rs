//! RDB files, by which people move in and out: what SAVE and BGSAVE write, and what a server loads when it starts.
//!
//! - `saving`: every key to a file; `loading`: a file to keys
//! - `keeping`: what is read, from a file or a primary, to keys
//!
//! It joins the format, which the protocol crate knows, to the store. It does not know commands.

mod keeping;
mod loading;
mod saving;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use snugly_store::Session;
use tracing::{error, info};

pub use keeping::KeepError;
pub(crate) use keeping::{LeftOut, Rules, keep_all};
pub use loading::LoadError;
pub(crate) use loading::{has_part, load, mark_of_replica, refuse_part};
use saving::{SaveError, Saved};

use crate::dump_folder::dump_folder;
use crate::state::Server;

/// The folder and name of the files.
fn path(server: &Server) -> Result<PathBuf, SaveError> {
    Ok(dump_folder(server)?.join(&server.configuration().dbfilename))
}

/// Writes all keys as they are at this instant, while everybody else waits.
///
/// # Errors
/// [`SaveError`]; the file is as it was before.
pub(crate) fn save(server: &Server, session: &mut Session) -> Result<(), SaveError> {
    let path = path(server)?;
    let write = |session: &mut Session| saving::write(session, &path, || server.replica().is_loading());
    let (writes, saved) = session.all_exclusively(|session| (session.store().stats().writes, write(session)));
    note(server, &path, saved?, writes);
    Ok(())
}

/// Writes all keys in the background as they are at one instant; returns whether it has begun, which it does
/// not while one is under way.
///
/// # Errors
/// Errors of [`save`], if it is known before it has begun.
pub(crate) fn save_in_background(server: &Arc<Server>) -> Result<bool, SaveError> {
    let path = path(server)?;
    if !server.saves().begin() {
        return Ok(false);
    }
    let theirs = server.clone();
    let writing = move || {
        let writes = theirs.store().stats().writes;
        let is_partial = || theirs.replica().is_loading();
        let write = || saving::write(&mut theirs.store().session(), &path, is_partial);
        let written = catch_unwind(AssertUnwindSafe(write));
        theirs.saves().end(matches!(written, Ok(Ok(_))));
        match written {
            Ok(Ok(saved)) => note(&theirs, &path, saved, writes),
            Ok(Err(error)) => error!(path = %path.display(), %error, "BGSAVE has not written the file"),
            Err(_) => error!(path = %path.display(), "BGSAVE has panicked, and has not written the file"),
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
