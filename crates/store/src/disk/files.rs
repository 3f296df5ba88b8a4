//! Opening a store: what is refused before the engine maps a file, because the engine would die of it or take it for
//! new, and making a new one so that a crash leaves none that is half made.
//!
//! A store is a folder with `data.mdb` (LMDB's file), `lock.mdb` (LMDB's table of readers), `snugly.lock` (held while
//! the store is open), and perhaps a journal (see [`super::journal`]).

use std::collections::hash_map::RandomState;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::engine::{Engine, EngineError, Read, Table, Usage, Write};
use super::lmdb::{self, Lmdb, Options};
use super::lookup;
use super::private;
use super::row::Damaged;
use super::state::{
    FORMAT_VERSION, IDENTITY_KEY, Identity, JOURNAL_KEY, NotOurs, STATE_KEY, State, parse_applied,
};
use super::{Durability, MIN_MAX_DISK, PAGE_BYTES, Storage};

pub(super) const DATA_FILE: &str = "data.mdb";
const LOCK_FILE: &str = "snugly.lock";
/// The folder in which a new store is made.
const NEW_FOLDER: &str = "new";
/// Address space for a store without a limit.
const UNLIMITED_MAP: usize = 1 << 40;

/// Why a store could not be opened. It is as it was.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The system refused something.
    #[error("cannot open the store {path}: {reason}{advice}", path = path.display(), advice = advice(reason))]
    Io {
        /// The store's folder, or a file in it.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// The path is a file.
    #[error("{path} is a file, and a store is a folder: choose another path", path = path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// The folder holds something else.
    #[error("{path} holds files and is no store of snugly: choose an empty folder", path = path.display())]
    NotAStore {
        /// The folder.
        path: PathBuf,
    },
    /// Another process has it open.
    #[error("the store {path} is open in another process: stop that one, or choose another path", path = path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The data file is empty.
    #[error("{path} is empty: it was truncated; restore it from a copy, or move it away to begin anew", path = path.display())]
    Empty {
        /// The data file.
        path: PathBuf,
    },
    /// The data file is not LMDB's.
    #[error("{path} is no store of snugly: {detail}", path = path.display())]
    Foreign {
        /// The data file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The data file ends too early.
    #[error(
        "{path} is truncated: it has {actual} bytes and should have {expected}; restore it from a copy, or move it away to begin anew",
        path = path.display()
    )]
    Truncated {
        /// The data file.
        path: PathBuf,
        /// Its length in bytes.
        actual: u64,
        /// The least that it should have.
        expected: u64,
    },
    /// Another version of the format.
    #[error(
        "the store {path} has format version {found}, and this program knows version {known}: use the program that wrote it",
        path = path.display()
    )]
    Version {
        /// The folder.
        path: PathBuf,
        /// The store's version.
        found: u32,
        /// This program's version.
        known: u32,
    },
    /// The store's own records do not add up.
    #[error("the store {path} is damaged: {detail}; see what `snugly check` says, or move it away to begin anew", path = path.display())]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// The budget is too small to work in.
    #[error("max-disk is {given} bytes, and a store needs at least {least}")]
    TooSmall {
        /// The budget in bytes.
        given: u64,
        /// The least in bytes.
        least: u64,
    },
    /// The disk has no room for the store, or what is there cannot be opened without some.
    #[error("there is no room on the disk for the store {path}: free some, or choose another path", path = path.display())]
    NoSpace {
        /// The folder.
        path: PathBuf,
    },
    /// The budget is smaller than what is there.
    #[error(
        "max-disk is {given} bytes, and the store {path} takes more: give at least {least}, or make its file smaller first with `snugly compact`",
        path = path.display()
    )]
    Larger {
        /// The folder.
        path: PathBuf,
        /// The budget in bytes.
        given: u64,
        /// The least in bytes.
        least: u64,
    },
    /// The system refused a thread.
    #[error("cannot start a thread for the store {path}: {reason}; raise the limit of processes", path = path.display())]
    NoThread {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// The engine failed.
    #[error("cannot use the store {path}: {reason}; restore it from a copy, or move it away to begin anew", path = path.display())]
    Engine {
        /// The folder.
        path: PathBuf,
        /// What the engine said.
        reason: String,
    },
}

/// What to do when the system refuses a file.
fn advice(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "; a store must be writable: change that, or choose another path"
        }
        _ => "",
    }
}

/// A store that is open.
pub(super) struct Opened {
    pub(super) engine: Lmdb,
    pub(super) identity: Identity,
    pub(super) state: State,
    /// The last record of the journal that is committed.
    pub(super) applied: u64,
    /// Keeps other processes out.
    pub(super) lock: Lock,
}

/// Makes an error about a store of one from its engine.
pub(super) fn engine_failed(folder: &Path) -> impl Fn(EngineError) -> OpenError {
    let path = folder.to_owned();
    move |error| match error {
        EngineError::NoSpace => OpenError::NoSpace { path: path.clone() },
        EngineError::Io(reason) => failed(&path, reason),
        EngineError::Engine(reason) => OpenError::Engine { path: path.clone(), reason },
    }
}

/// Opens the store, or makes one where there is none.
pub(super) fn open(storage: &Storage, databases: usize) -> Result<Opened, OpenError> {
    if storage.max_disk != 0 && storage.max_disk < MIN_MAX_DISK {
        return Err(OpenError::TooSmall { given: storage.max_disk, least: MIN_MAX_DISK });
    }
    let folder = &storage.path;
    if folder.is_file() {
        return Err(OpenError::NotAFolder { path: folder.clone() });
    }
    let is_new = is_vacant(folder)?;
    if is_new {
        fs::create_dir_all(folder).map_err(|reason| failed(folder, reason))?;
    }
    let lock = lock(folder)?;
    if is_new && !folder.join(DATA_FILE).exists() {
        create(folder, databases)?;
    }
    upgrade(folder, open_existing(folder, storage, lock)?)
}

/// Opens a store that must be there, for [`super::check`].
pub(super) fn open_offline(folder: &Path) -> Result<Opened, OpenError> {
    let data = folder.join(DATA_FILE);
    if !data.is_file() {
        return Err(failed(&data, io::ErrorKind::NotFound.into()));
    }
    let lock = lock(folder)?;
    open_existing(folder, &Storage::new(folder), lock)
}

/// Brings a store of the version before to this one, of which it has nothing yet.
fn upgrade(folder: &Path, opened: Opened) -> Result<Opened, OpenError> {
    if opened.identity.version == FORMAT_VERSION {
        return Ok(opened);
    }
    let identity = Identity { version: FORMAT_VERSION, ..opened.identity };
    let write = || {
        let mut transaction = opened.engine.write(0)?;
        transaction.put(Table::Meta, IDENTITY_KEY, &identity.encode())?;
        transaction.commit()
    };
    write().map_err(engine_failed(folder))?;
    Ok(Opened { identity, ..opened })
}

/// Whether there is nothing in the folder, or only what an earlier attempt to make a store left.
fn is_vacant(folder: &Path) -> Result<bool, OpenError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(reason) if reason.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(reason) => return Err(failed(folder, reason)),
    };
    let mut is_empty = true;
    for entry in entries {
        let name = entry.map_err(|reason| failed(folder, reason))?.file_name();
        if name == DATA_FILE {
            return Ok(false);
        }
        is_empty &= name == LOCK_FILE || name == NEW_FOLDER || name == lmdb::LOCK_FILE;
    }
    if is_empty { Ok(true) } else { Err(OpenError::NotAStore { path: folder.to_owned() }) }
}

/// What keeps other processes from a store: its lock file, and the data itself, since a lock file may be removed.
pub(super) struct Lock {
    _folder: File,
    _data: File,
}

fn lock(folder: &Path) -> Result<File, OpenError> {
    let path = folder.join(LOCK_FILE);
    let file = private::open(folder, LOCK_FILE).map_err(|reason| failed(&path, reason))?;
    locked(file, folder, &path)
}

fn locked(file: File, folder: &Path, path: &Path) -> Result<File, OpenError> {
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: folder.to_owned() }),
        Err(TryLockError::Error(reason)) => Err(failed(path, reason)),
    }
}

/// Makes a store beside its place and moves it there, so that it is whole or not there.
fn create(folder: &Path, databases: usize) -> Result<(), OpenError> {
    let new = folder.join(NEW_FOLDER);
    match fs::remove_dir_all(&new) {
        Err(reason) if reason.kind() != io::ErrorKind::NotFound => return Err(failed(&new, reason)),
        _ => fs::create_dir(&new).map_err(|reason| failed(folder, reason))?,
    }
    let made = create_in(folder, &new, databases);
    let removed = fs::remove_dir_all(&new).map_err(|reason| failed(&new, reason));
    made.and(removed)
}

fn create_in(folder: &Path, new: &Path, databases: usize) -> Result<(), OpenError> {
    let random = || RandomState::new().build_hasher().finish();
    let identity = Identity { version: FORMAT_VERSION, hash_key: [random(), random()] };
    let options = Options { map_bytes: MIN_MAX_DISK as usize, sync: true };
    // SAFETY: the folder has just been made, under the store's lock.
    let engine = unsafe { Lmdb::open(new, options) }.map_err(engine_failed(folder))?;
    let (identity, state) = (identity.encode(), State::new(databases).encode());
    let write = || {
        let mut transaction = engine.write((identity.len() + state.len()) as u64)?;
        transaction.put(Table::Meta, IDENTITY_KEY, &identity)?;
        transaction.put(Table::Meta, STATE_KEY, &state)?;
        transaction.commit()
    };
    let written = write().map_err(engine_failed(folder));
    engine.close();
    written?;
    let data = folder.join(DATA_FILE);
    fs::rename(new.join(DATA_FILE), &data).map_err(|reason| failed(&data, reason))?;
    sync_folder(folder).map_err(|reason| failed(folder, reason))
}

/// Makes a rename in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn open_existing(folder: &Path, storage: &Storage, lock: File) -> Result<Opened, OpenError> {
    let data = folder.join(DATA_FILE);
    let file = File::open(&data).map_err(|reason| failed(&data, reason))?;
    let lock = Lock { _folder: lock, _data: locked(file, folder, &data)? };
    let least = verify_file(&data)?;
    let budget = storage.engine_bytes();
    let map_bytes = match budget {
        0 => UNLIMITED_MAP,
        bytes => usize::try_from(bytes.max(least)).unwrap_or(UNLIMITED_MAP),
    };
    let options = Options { map_bytes, sync: storage.durability != Durability::None };
    // SAFETY: the file has been checked, and the lock keeps other processes of ours from it.
    let mut engine = unsafe { Lmdb::open(folder, options) }.map_err(engine_failed(folder))?;
    if budget > 0 {
        let usage = engine.read().and_then(|snapshot| snapshot.usage()).map_err(engine_failed(folder))?;
        fit(storage, usage)?;
        engine.grow(usage.used + slack(storage)).map_err(engine_failed(folder))?;
    }
    private::restrict(folder, lmdb::LOCK_FILE).map_err(|reason| failed(folder, reason))?;
    let damaged = |detail: &str| OpenError::Damaged { path: folder.to_owned(), detail: detail.into() };
    let snapshot = engine.read().map_err(engine_failed(folder))?;
    let identity = snapshot.get(Table::Meta, IDENTITY_KEY).map_err(engine_failed(folder))?;
    let identity = match identity.map(Identity::parse) {
        Some(Ok(identity)) => identity,
        Some(Err(NotOurs::Version(found))) => {
            return Err(OpenError::Version { path: folder.to_owned(), found, known: FORMAT_VERSION });
        }
        Some(Err(NotOurs::Damaged)) => return Err(damaged("its identity cannot be read")),
        None => {
            return Err(OpenError::Foreign {
                path: data,
                detail: "it is an LMDB file of something else".into(),
            });
        }
    };
    let state = lookup::state(&snapshot).map_err(engine_failed(folder))?;
    let state = state.map_err(|Damaged| damaged("its state cannot be read"))?;
    let applied = snapshot.get(Table::Meta, JOURNAL_KEY).map_err(engine_failed(folder))?;
    let applied = applied.map_or(Ok(0), parse_applied);
    let applied = applied.map_err(|Damaged| damaged("its place in the journal cannot be read"))?;
    drop(snapshot);
    Ok(Opened { engine, identity, state, applied, lock })
}

/// Bytes that the engine's file may take beyond its budget, in a store that was filled under a larger one: without free
/// pages, nothing could be removed from it.
fn slack(storage: &Storage) -> u64 {
    super::reserve(storage.max_disk) / 2 / PAGE_BYTES as u64 * PAGE_BYTES as u64
}

/// Refuses a budget that what is there does not fit. What fits once does so for good, for with the slack the file
/// becomes no longer than is taken here.
fn fit(storage: &Storage, usage: Usage) -> Result<(), OpenError> {
    let fits = |storage: &Storage| {
        usage.used <= storage.engine_bytes() && usage.file <= storage.engine_bytes() + slack(storage)
    };
    if fits(storage) {
        return Ok(());
    }
    let (mut low, mut high) = (storage.max_disk, storage.max_disk.max(usage.file).saturating_mul(2));
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        match fits(&Storage { max_disk: middle, ..storage.clone() }) {
            true => high = middle,
            false => low = middle,
        }
    }
    Err(OpenError::Larger { path: storage.path.clone(), given: storage.max_disk, least: high })
}

/// Checks LMDB's two meta pages with plain reads (struct MDB_meta in LMDB's mdb.c), and gives the length that the file
/// must have. LMDB itself would take an empty file for new, and die of a bus error when it reads past a file's end.
fn verify_file(path: &Path) -> Result<u64, OpenError> {
    const HEADER: usize = 16;
    const META: usize = 8 + 16 + 2 * 48 + 16;
    const MAGIC: u32 = 0xBEEF_C0DE;
    const VERSION: u32 = 1;
    let mut file = File::open(path).map_err(|reason| failed(path, reason))?;
    let actual = file.metadata().map_err(|reason| failed(path, reason))?.len();
    if actual == 0 {
        return Err(OpenError::Empty { path: path.to_owned() });
    }
    let foreign = |detail: &str| OpenError::Foreign { path: path.to_owned(), detail: detail.into() };
    let truncated = |expected| OpenError::Truncated { path: path.to_owned(), actual, expected };
    let mut first = [0; HEADER + META];
    file.read_exact(&mut first).map_err(|_| foreign("it is too short"))?;
    let number = |page: &[u8], offset: usize| {
        u64::from_le_bytes(page[HEADER + offset..][..8].try_into().expect("eight bytes"))
    };
    let verify_meta = |page: &[u8]| {
        let versions = number(page, 0);
        if versions as u32 != MAGIC {
            return Err(foreign("it does not begin as an LMDB file does"));
        }
        if (versions >> 32) as u32 != VERSION {
            return Err(foreign("it is LMDB's in another version of its format"));
        }
        Ok(())
    };
    verify_meta(&first)?;
    let page_bytes = number(&first, 24) & u64::from(u32::MAX);
    if !(512..=65536).contains(&page_bytes) || !page_bytes.is_power_of_two() {
        return Err(foreign("its page size makes no sense"));
    }
    if actual < 2 * page_bytes {
        return Err(truncated(2 * page_bytes));
    }
    let mut second = [0; HEADER + META];
    file.seek(io::SeekFrom::Start(page_bytes))
        .and_then(|_| file.read_exact(&mut second))
        .map_err(|reason| failed(path, reason))?;
    verify_meta(&second)?;
    // The last page and the transaction number are the last fields. The newer meta page is the one in force.
    let newer = if number(&first, META - 8) >= number(&second, META - 8) { &first } else { &second };
    let expected = number(newer, META - 16).saturating_add(1).saturating_mul(page_bytes);
    if actual < expected {
        return Err(truncated(expected));
    }
    Ok(expected)
}

pub(super) fn failed(path: &Path, reason: io::Error) -> OpenError {
    match reason.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            OpenError::NoSpace { path: path.to_owned() }
        }
        _ => OpenError::Io { path: path.to_owned(), reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(folder: &Path) -> u32 {
        let Opened { engine, identity, .. } = open_offline(folder).expect("the store opens");
        engine.close();
        identity.version
    }

    #[test]
    fn a_store_of_the_version_before_becomes_one_of_this_when_it_is_opened_for_writing() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::new(folder.path());
        let Opened { engine, identity, .. } = open(&storage, 1).expect("a store is made");
        assert_eq!(identity.version, FORMAT_VERSION);
        let before = Identity { version: FORMAT_VERSION - 1, ..identity };
        let mut transaction = engine.write(0).expect("there is room");
        transaction.put(Table::Meta, IDENTITY_KEY, &before.encode()).expect("there is room");
        transaction.commit().expect("there is room");
        engine.close();
        assert_eq!(version(folder.path()), FORMAT_VERSION - 1, "looking changes nothing");
        open(&storage, 1).expect("the store opens").engine.close();
        assert_eq!(version(folder.path()), FORMAT_VERSION);
    }
}
