//! A file to keys.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use snugly_protocol::rdb::{Content, Entry, Event, FileError, Node, Reader, Value};
use snugly_store::{Condition, Expiry, LoadMark, Session, Store, StoreError};
use thiserror::Error;
use tracing::{info, warn};

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
    /// The file is not a readable RDB file, or is damaged.
    #[error("{path}: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: FileError,
    },
    /// A key of the file cannot be kept.
    #[error("{path}: the key {key:?} cannot be kept: {reason}", path = path.display(), key = String::from_utf8_lossy(key))]
    Store {
        /// The file.
        path: PathBuf,
        /// The key.
        key: Vec<u8>,
        /// Error of the store.
        reason: StoreError,
    },
    /// The file has more databases than the store.
    #[error("{path} has keys in database {database}, and there are {databases} databases: start with --databases {wanted}", path = path.display(), wanted = database + 1)]
    Database {
        /// The file.
        path: PathBuf,
        /// The number of its database.
        database: u64,
        /// Number of databases.
        databases: usize,
    },
    /// The store has only a part of another file.
    #[error(
        "the store has only a part of {source_file}, whose load was broken off: start with --load-rdb {source_file} to have all of it, or take another --storage folder"
    )]
    Unfinished {
        /// The other file.
        source_file: String,
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

/// Interval of reports on a load's progress.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// The contents of a file.
#[derive(Default)]
struct Found {
    strings: u64,
    lists: u64,
    expired: u64,
    /// Keys of other types.
    skipped: BTreeMap<&'static str, u64>,
}

/// Refuses a store that has only a part of a file, where none is to be loaded.
pub(crate) fn refuse_part(store: &Store) -> Result<(), LoadError> {
    match store.load_mark().map_err(LoadError::Mark)? {
        Some(LoadMark { source, is_done: false, .. }) => Err(LoadError::Unfinished { source_file: source }),
        _ => Ok(()),
    }
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

/// Keeps what is in the file; says how far it is, and in the end what was loaded and what was left out.
fn load_all(
    store: &Arc<Store>,
    path: &Path,
    file: File,
    max_value_len: usize,
    stopping: &AtomicBool,
) -> Result<(), LoadError> {
    let len = file.metadata().map_or(0, |metadata| metadata.len());
    let failed = |reason| LoadError::File { path: path.to_owned(), reason };
    let mut reader = Reader::new(file, max_value_len).map_err(failed)?;
    let (started, mut told) = (Instant::now(), Instant::now());
    let (mut session, mut found, mut database) = (store.session(), Found::default(), 0);
    session.answer_nobody();
    info!(path = %path.display(), bytes = len, version = reader.version(), "loading keys");
    if reader.is_newer() {
        warn!(
            version = reader.version(),
            "the file is of a newer version than is known here: it is loaded if nothing in it is unknown"
        );
    }
    while let Some(event) = reader.next() {
        if stopping.load(Ordering::Relaxed) {
            return Err(LoadError::Stopped { path: path.to_owned() });
        }
        match event.map_err(failed)? {
            Event::Database(number) => {
                let databases = store.databases();
                database =
                    usize::try_from(number).ok().filter(|number| *number < databases).ok_or_else(|| {
                        LoadError::Database { path: path.to_owned(), database: number, databases }
                    })?;
            }
            Event::Entry(entry) => {
                found.keep(&mut session, database, &entry).map_err(|reason| LoadError::Store {
                    path: path.to_owned(),
                    key: entry.key.clone(),
                    reason,
                })?;
            }
            Event::Ignored(what) => warn!(what, "there is no place for this here: it is left out"),
            Event::Aux { .. } | Event::Sizes { .. } => {}
        }
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            let percent = reader.offset() * 100 / len.max(1);
            info!(percent, keys = found.strings + found.lists, "loading keys");
        }
    }
    let Found { strings, lists, expired, skipped } = found;
    let seconds = started.elapsed().as_secs_f64();
    info!(strings, lists, expired, seconds, "keys are loaded");
    for (kind, keys) in skipped {
        warn!(kind, keys, "snugly keeps strings and lists: keys of this type are left out");
    }
    Ok(())
}

impl Found {
    fn keep(&mut self, session: &mut Session, database: usize, entry: &Entry) -> Result<(), StoreError> {
        let value = match &entry.content {
            Content::Value(value) => value,
            Content::Skipped(kind) => {
                *self.skipped.entry(kind).or_default() += 1;
                return Ok(());
            }
        };
        if entry.expiry.is_some_and(|at| at <= session.now()) {
            self.expired += 1;
            return Ok(());
        }
        let expiry = entry.expiry.map_or(Expiry::Never, Expiry::At);
        match value {
            Value::String(bytes) => {
                self.strings += 1;
                session.set(database, &entry.key, bytes, expiry, Condition::Always).map(drop)
            }
            Value::List(nodes) => {
                self.lists += 1;
                session.list_write(database, &entry.key, nodes.iter().flat_map(Node::elements), expiry)
            }
        }
    }
}
