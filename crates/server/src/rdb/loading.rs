//! A file to keys.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use snugly_protocol::rdb::Reader;
use snugly_store::{LoadMark, Store, StoreError};
use thiserror::Error;
use tracing::{info, warn};

use super::keeping::{KeepError, LeftOut, Rules, keep_all};

/// Reason why a file was not loaded, or not to its end.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file cannot be opened.
    #[error("cannot open {path}: {reason}", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// Something in the file cannot be read or kept.
    #[error("{path}: {reason}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: KeepError,
    },
    /// The store has only a part of another file.
    #[error(
        "the store has only a part of {source_file}, whose load was broken off: start with --load-rdb {source_file} to have all of it, or take another --storage folder"
    )]
    Unfinished {
        /// The other file.
        source_file: String,
    },
    /// The store has only a part of the keys of a primary.
    #[error(
        "the store has only a part of the keys of {primary}, which it was following: start with --replica-of to have all of them, or take another --storage folder"
    )]
    UnfinishedReplica {
        /// The primary.
        primary: String,
    },
    /// The server was told to stop.
    #[error("the load of {path} was ended, and the store is as empty as before", path = path.display())]
    Stopped {
        /// The file.
        path: PathBuf,
    },
    /// The store does not say how far it was loaded.
    #[error("cannot read from the store how far it has been loaded: {0}")]
    Mark(StoreError),
    /// The store has keys already.
    #[error("the store has keys already, and {path} is loaded into an empty one only: leave --load-rdb out, or take another --storage folder", path = path.display())]
    NotEmpty {
        /// The file.
        path: PathBuf,
    },
}

/// Refuses a store that has only a part of a file, where none is to be loaded.
pub(crate) fn refuse_part(store: &Store) -> Result<(), LoadError> {
    match store.load_mark().map_err(LoadError::Mark)? {
        Some(mark) if mark.fingerprint == REPLICA => {
            Err(LoadError::UnfinishedReplica { primary: mark.source })
        }
        Some(LoadMark { source, is_done: false, .. }) => Err(LoadError::Unfinished { source_file: source }),
        _ => Ok(()),
    }
}

/// Returns whether a store has only a part of a file or of a primary's keys, where a primary is to be followed: nobody is to
/// see it before those are all there.
pub(crate) fn has_part(store: &Store) -> Result<bool, LoadError> {
    match store.load_mark().map_err(LoadError::Mark)? {
        Some(LoadMark { source, is_done: false, .. }) => {
            info!(source, "a load was broken off: clients wait for the keys of the primary");
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// The mark of a store that has a part of a primary's keys.
pub(crate) fn mark_of_replica(primary: String) -> LoadMark {
    LoadMark { source: primary, fingerprint: REPLICA, is_done: false }
}

/// Loads a file into an empty store, all of it or nothing, until `stopping` is set. A load that was broken off begins anew,
/// and a store that has all of this file is left as it is.
///
/// # Errors
/// [`LoadError`]; the store is then empty, or as it was if it had keys.
pub(crate) fn load(
    store: &Arc<Store>,
    path: &Path,
    max_value_len: usize,
    stopping: &AtomicBool,
) -> Result<(), LoadError> {
    let opened = File::open(path).and_then(|mut file| Ok((fingerprint(&mut file)?, file)));
    let (fingerprint, file) = opened.map_err(|reason| LoadError::Open { path: path.to_owned(), reason })?;
    let is_empty = (0..store.databases())
        .all(|database| store.database_stats(database).is_ok_and(|stats| stats.keys == 0));
    match store.load_mark().map_err(LoadError::Mark)? {
        Some(mark) if mark.is_done && mark.fingerprint == fingerprint && fingerprint != UNKNOWN => {
            info!(path = %path.display(), "already loaded");
            return Ok(());
        }
        Some(LoadMark { source, is_done: false, .. }) => {
            warn!(source, "a load was broken off: it begins anew");
            drop(store.flush(None));
        }
        _ if !is_empty => return Err(LoadError::NotEmpty { path: path.to_owned() }),
        _ => {}
    }
    let mark = LoadMark { source: path.display().to_string(), fingerprint, is_done: false };
    store.mark_load(Some(&mark));
    let loaded = load_all(store, path, file, max_value_len, stopping);
    match &loaded {
        Ok(()) => store.mark_load(Some(&LoadMark { is_done: true, ..mark })),
        Err(_) => {
            drop(store.flush(None));
            store.mark_load(None);
        }
    }
    loaded
}

/// Returns bytes that tell a file's content from that of others: its length, and its last bytes, which are
/// the checksum of all others (unless its writer was told to leave that out).
fn fingerprint(file: &mut File) -> io::Result<[u8; 16]> {
    let mut fingerprint = UNKNOWN;
    let (len, checksum) = fingerprint.split_at_mut(8);
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.len() >= checksum.len() as u64 {
        len.copy_from_slice(&metadata.len().to_le_bytes());
        file.seek(SeekFrom::End(-(checksum.len() as i64)))?;
        file.read_exact(checksum)?;
        file.rewind()?;
    }
    Ok(fingerprint)
}

/// The fingerprint of what has none, such as a pipe.
const UNKNOWN: [u8; 16] = [0; 16];
/// The fingerprint in the place of a file's where there is a primary instead.
const REPLICA: [u8; 16] = *b"keys of primary\0";

/// Keeps what is in the file; says how far it is, and in the end what was loaded and what was left out.
fn load_all(
    store: &Arc<Store>,
    path: &Path,
    file: File,
    max_value_len: usize,
    stopping: &AtomicBool,
) -> Result<(), LoadError> {
    let len = file.metadata().map_or(0, |metadata| metadata.len());
    let failed = |reason| LoadError::Content { path: path.to_owned(), reason };
    let mut reader = Reader::new(file, max_value_len).map_err(|error| failed(error.into()))?;
    info!(path = %path.display(), bytes = len, version = reader.version(), "loading keys");
    let mut rules = FileRules { len, stopping };
    match keep_all(store, &mut reader, &mut rules) {
        Err(KeepError::Stopped) => Err(LoadError::Stopped { path: path.to_owned() }),
        outcome => outcome.map_err(failed),
    }
}

/// The rules of a file: keys of other types are left out, and whatever else cannot be kept ends the load.
struct FileRules<'a> {
    len: u64,
    stopping: &'a AtomicBool,
}

impl Rules for FileRules<'_> {
    fn goes_on(&mut self, _read: u64) -> bool {
        !self.stopping.load(Ordering::Relaxed)
    }

    fn total(&self) -> Option<u64> {
        Some(self.len)
    }

    fn leave_out(&mut self, why: LeftOut) -> bool {
        why == LeftOut::Type
    }
}
