//! Opening and creating a store: files that the engine would crash on or take for new are refused before it
//! maps them, and creation is atomic, so that a crash leaves no half-made store.
//!
//! A store is a folder with `data.mdb` (LMDB's file), `lock.mdb` (LMDB's table of readers), `snugly.lock`
//! (held while the store is open), and perhaps a journal (see [`super::journal`]).

use std::collections::hash_map::RandomState;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::engine::{Engine, EngineError, Read, Table, Usage, Write};
use super::lmdb::{self, Lmdb, Options};
use super::lookup;
use super::pages::audit::{Audit, Visitor};
use super::pages::meta::{self, META_LEN, Meta, newest};
use super::pages::page::Value;
use super::pages::tree::View;
use super::pages::{PageDamage, Pages};
use super::private;
use super::row::Damaged;
use super::state::{
    FORMAT_VERSION, IDENTITY_KEY, Identity, JOURNAL_KEY, NotOurs, STATE_KEY, State, parse_applied,
};
use super::{Durability, MIN_MAX_DISK, PAGE_BYTES, Storage};

pub(super) const DATA_FILE: &str = "data.mdb";
const LOCK_FILE: &str = "snugly.lock";
/// Subfolder in which a new store is made.
const NEW_FOLDER: &str = "new";
/// Address space for a store without a limit.
pub(super) const UNLIMITED_MAP: usize = 1 << 40;

/// Reason why a store could not be opened. The store is unchanged.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The system refused access.
    #[error("cannot open the store {path}: {reason}{advice}", path = path.display(), advice = advice(reason))]
    Io {
        /// The store's folder, or a file in it.
        path: PathBuf,
        /// Error of the system.
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
        /// Description of what was found.
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
        /// Length of the file in bytes.
        actual: u64,
        /// Least length that it should have, in bytes.
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
        /// Version of the store.
        found: u32,
        /// Version that this program knows.
        known: u32,
    },
    /// The journal has a change that this program does not know.
    #[error(
        "the journal of the store {path} has a change of kind {found}, which this program does not know: use the program that wrote it",
        path = path.display()
    )]
    UnknownChange {
        /// The folder.
        path: PathBuf,
        /// Number of the change.
        found: u8,
    },
    /// The store's own records do not add up.
    #[error("the store {path} is damaged: {detail}; let `snugly repair` make a store of what can be read, or move it away to begin anew", path = path.display())]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// Description of the damage.
        detail: String,
    },
    /// The budget is too small to work in.
    #[error("max-disk is {given} bytes, and a store needs at least {least}")]
    TooSmall {
        /// Budget, in bytes.
        given: u64,
        /// Least possible budget, in bytes.
        least: u64,
    },
    /// The disk has no space for the store, or an existing one cannot be opened without some.
    #[error("there is no room on the disk for the store {path}: free some, or choose another path", path = path.display())]
    NoSpace {
        /// The folder.
        path: PathBuf,
    },
    /// The budget is smaller than the existing store.
    #[error(
        "max-disk is {given} bytes, and the store {path} takes more: give at least {least}, or make its file smaller first with `snugly compact`",
        path = path.display()
    )]
    Larger {
        /// The folder.
        path: PathBuf,
        /// Budget, in bytes.
        given: u64,
        /// Least possible budget, in bytes.
        least: u64,
    },
    /// The system refused a thread.
    #[error("cannot start a thread for the store {path}: {reason}; raise the limit of processes", path = path.display())]
    NoThread {
        /// The folder.
        path: PathBuf,
        /// Error of the system.
        reason: io::Error,
    },
    /// The engine failed.
    #[error("cannot use the store {path}: {reason}; restore it from a copy, or move it away to begin anew", path = path.display())]
    Engine {
        /// The folder.
        path: PathBuf,
        /// Error of the engine.
        reason: String,
    },
}

/// Returns advice for a file that the system refuses.
fn advice(reason: &io::Error) -> &'static str {
    if is_refusal(reason) { "; a store must be writable: change that, or choose another path" } else { "" }
}

/// An open store.
pub(super) struct Opened {
    pub(super) engine: Lmdb,
    pub(super) identity: Identity,
    pub(super) state: State,
    /// Number of the journal's last committed record.
    pub(super) applied: u64,
    /// Lock that keeps other processes out.
    pub(super) lock: Lock,
}

/// Converts an error of the engine to one about the store.
pub(super) fn engine_failed(folder: &Path) -> impl Fn(EngineError) -> OpenError {
    let path = folder.to_owned();
    move |error| match error {
        EngineError::NoSpace => OpenError::NoSpace { path: path.clone() },
        EngineError::Io(reason) => failed(&path, reason),
        EngineError::Engine(reason) => OpenError::Engine { path: path.clone(), reason },
        EngineError::Damaged(damage) => damaged(&path, &damage.to_string()),
    }
}

/// Opens the store, or creates one.
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

/// A store that no server has open, read without the engine.
pub(super) struct Offline {
    pub(super) pages: Pages,
    /// Meta pages that are whole, the newest first; at least one.
    pub(super) metas: Vec<Meta>,
    /// Damage of the other meta page.
    pub(super) damage: Option<PageDamage>,
    _lock: Lock,
}

impl Offline {
    /// Returns the state of the last commit, or of the one before if the last one's meta page is damaged.
    pub(super) fn view(&self) -> View<'_> {
        View::of(&self.pages, self.metas[0])
    }
}

/// Opens an existing store for reading. It may be a read-only copy, and is not changed: a missing or
/// unreadable lock file is not needed beside the data's own lock.
pub(super) fn open_offline(folder: &Path) -> Result<Offline, OpenError> {
    let data = folder.join(DATA_FILE);
    if !data.is_file() {
        return Err(failed(&data, io::ErrorKind::NotFound.into()));
    }
    let path = folder.join(LOCK_FILE);
    let lock = File::open(&path).ok().map(|file| locked(file, folder, &path)).transpose()?;
    let file = File::open(&data).map_err(|reason| failed(&data, reason))?;
    let lock = Lock { _folder: lock, _data: locked(file, folder, &data)? };
    let pages = MetaPages::read(&data)?;
    let metas = meta::whole(&pages.first, &pages.second);
    match (pages.newest(), metas.is_empty()) {
        (Err(damage), true) => Err(damaged(folder, &damage.to_string())),
        (newest, _) => Ok(Offline { pages: map(&data, &metas)?, metas, damage: newest.err(), _lock: lock }),
    }
}

/// Opens an existing store that is whole, for [`super::compaction::compact`].
pub(super) fn open_engine(folder: &Path) -> Result<Opened, OpenError> {
    let lock = lock(folder)?;
    open_existing(folder, &Storage::new(folder), lock)
}

fn is_refusal(reason: &io::Error) -> bool {
    matches!(reason.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

/// Upgrades a store from the previous version, of which it has nothing yet.
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

/// Returns whether the folder is empty, or has only the remains of an earlier attempt to create a store.
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

/// Lock against other processes: on the lock file, and on the data itself, since a lock file may be removed.
pub(super) struct Lock {
    /// `None` where a store is only read and its lock file is missing or unreadable.
    _folder: Option<File>,
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

/// Creates a store beside its place and moves it there, so that it is whole or absent.
fn create(folder: &Path, databases: usize) -> Result<(), OpenError> {
    with_new_folder(folder, |new| create_in(folder, new, databases))
}

/// Makes a file in an empty folder inside that of a store, which is removed in the end.
pub(super) fn with_new_folder(
    folder: &Path,
    make: impl FnOnce(&Path) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let new = folder.join(NEW_FOLDER);
    match fs::remove_dir_all(&new) {
        Err(reason) if reason.kind() != io::ErrorKind::NotFound => return Err(failed(&new, reason)),
        _ => fs::create_dir(&new).map_err(|reason| failed(folder, reason))?,
    }
    let made = make(&new);
    let removed = fs::remove_dir_all(&new).map_err(|reason| failed(&new, reason));
    made.and(removed)
}

/// Ends a data file that nobody has open behind its last page.
pub(super) fn trim(data: &Path) -> Result<(), OpenError> {
    let len = verify_file(data)?.file_bytes();
    let set = || {
        let file = File::options().write(true).open(data)?;
        file.set_len(len)?;
        file.sync_all()
    };
    set().map_err(|reason| failed(data, reason))
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
    private::give(&data, folder).map_err(|reason| failed(&data, reason))?;
    sync_folder(folder).map_err(|reason| failed(folder, reason))
}

/// Makes a rename in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn open_existing(folder: &Path, storage: &Storage, lock: File) -> Result<Opened, OpenError> {
    let data = folder.join(DATA_FILE);
    let file = File::open(&data).map_err(|reason| failed(&data, reason))?;
    let lock = Lock { _folder: Some(lock), _data: locked(file, folder, &data)? };
    let least = verify_file(&data)?.file_bytes();
    verify_core(&data)?;
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
        // The journal's changes are applied even if the store is refused afterwards.
        engine.grow(usage.used + slack(storage)).map_err(engine_failed(folder))?;
    }
    private::restrict(folder, lmdb::LOCK_FILE).map_err(|reason| failed(folder, reason))?;
    let snapshot = engine.read().map_err(engine_failed(folder))?;
    let (identity, state, applied) = described(folder, &snapshot)?;
    drop(snapshot);
    Ok(Opened { engine, identity, state, applied, lock })
}

/// Reads a store's identity, its state, and the number of the journal's last committed record.
pub(super) fn described(folder: &Path, reader: &impl Read) -> Result<(Identity, State, u64), OpenError> {
    let damaged = |detail: &str| damaged(folder, detail);
    let identity = reader.get(Table::Meta, IDENTITY_KEY).map_err(engine_failed(folder))?;
    let identity = match identity.map(Identity::parse) {
        Some(Ok(identity)) => identity,
        Some(Err(NotOurs::Version(found))) => {
            return Err(OpenError::Version { path: folder.to_owned(), found, known: FORMAT_VERSION });
        }
        Some(Err(NotOurs::Damaged)) => return Err(damaged("its identity cannot be read")),
        None => {
            return Err(OpenError::Foreign {
                path: folder.join(DATA_FILE),
                detail: "it is an LMDB file of something else".into(),
            });
        }
    };
    let state = lookup::state(reader).map_err(engine_failed(folder))?;
    let state = state.map_err(|Damaged| damaged("its state cannot be read"))?;
    let applied = reader.get(Table::Meta, JOURNAL_KEY).map_err(engine_failed(folder))?;
    let applied = applied.map_or(Ok(0), parse_applied);
    let applied = applied.map_err(|Damaged| damaged("its place in the journal cannot be read"))?;
    Ok((identity, state, applied))
}

/// Returns the bytes that the engine's file may take beyond its budget, in a store filled under a larger one:
/// without free pages nothing could be removed from it.
fn slack(storage: &Storage) -> u64 {
    super::reserve(storage.max_disk) / 2 / PAGE_BYTES as u64 * PAGE_BYTES as u64
}

/// Refuses a budget that is too small for the existing data and the changes of the journal. A budget that
/// fits keeps fitting: with the slack the file grows no longer than is counted here, and values that would
/// need more are refused.
pub(super) fn fit(storage: &Storage, usage: Usage) -> Result<(), OpenError> {
    let fits = |storage: &Storage| {
        storage.max_disk == 0
            || usage.used <= storage.engine_bytes() && usage.file <= storage.engine_bytes() + slack(storage)
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

/// Beginnings of LMDB's two meta pages, and the length of their file.
struct MetaPages {
    first: [u8; META_LEN],
    second: [u8; META_LEN],
    file_bytes: u64,
}

impl MetaPages {
    /// Reads the meta pages with plain reads: LMDB itself would take an empty file for new.
    fn read(path: &Path) -> Result<MetaPages, OpenError> {
        let refused = |reason| failed(path, reason);
        let mut file = File::open(path).map_err(refused)?;
        let file_bytes = file.metadata().map_err(refused)?.len();
        if file_bytes == 0 {
            return Err(OpenError::Empty { path: path.to_owned() });
        }
        let foreign = |detail: &str| OpenError::Foreign { path: path.to_owned(), detail: detail.into() };
        let mut pages = MetaPages { first: [0; META_LEN], second: [0; META_LEN], file_bytes };
        file.read_exact(&mut pages.first).map_err(|_| foreign("it is too short"))?;
        // A damaged first page that does not tell its length most likely has the usual one.
        let page_bytes = Meta::parse(0, &pages.first).map_or(PAGE_BYTES, |meta| meta.page_bytes) as u64;
        if file_bytes < 2 * page_bytes {
            return Err(match meta::foreign(&pages.first) {
                Some(detail) => foreign(detail),
                None => OpenError::Truncated {
                    path: path.to_owned(),
                    actual: file_bytes,
                    expected: 2 * page_bytes,
                },
            });
        }
        file.seek(io::SeekFrom::Start(page_bytes))
            .and_then(|_| file.read_exact(&mut pages.second))
            .map_err(refused)?;
        match (meta::foreign(&pages.first), meta::foreign(&pages.second)) {
            (Some(detail), Some(_)) => Err(foreign(detail)),
            _ => Ok(pages),
        }
    }

    fn newest(&self) -> Result<Meta, PageDamage> {
        newest(&self.first, &self.second)
    }
}

/// Refuses a file that would crash LMDB: with a damaged meta page, or truncated before its last page. Returns
/// the meta page in force.
fn verify_file(path: &Path) -> Result<Meta, OpenError> {
    let folder = path.parent().unwrap_or(path);
    let pages = MetaPages::read(path)?;
    let meta = pages.newest().map_err(|damage| damaged(folder, &damage.to_string()))?;
    match (pages.file_bytes, meta.file_bytes()) {
        (actual, expected) if actual < expected => {
            Err(OpenError::Truncated { path: path.to_owned(), actual, expected })
        }
        _ => Ok(meta),
    }
}

/// Walks the trees that LMDB reads when it opens a file or allocates pages: that of the tables, and that of
/// the free pages. The time does not depend on how much is stored.
fn verify_core(path: &Path) -> Result<(), OpenError> {
    let folder = path.parent().unwrap_or(path);
    let damaged = |damage: PageDamage| damaged(folder, &damage.to_string());
    let meta = verify_file(path)?;
    let pages = map(path, &[meta])?;
    let view = View::of(&pages, meta);
    // Before LMDB creates tables that it does not find.
    described(folder, &view)?;
    missing_tables(&view).next().map_or(Ok(()), |damage| Err(damaged(damage)))?;
    let mut audit = Audit::new(&view);
    let mut first = FirstDamage(None);
    audit.walk(&view.meta().main, &mut first);
    audit.walk_free_pages(&mut first);
    first.0.map_or(Ok(()), |damage| Err(damaged(damage)))
}

/// Returns damage for each missing table that every store has: the page of their names is damaged.
pub(super) fn missing_tables(view: &View<'_>) -> impl Iterator<Item = PageDamage> {
    let what = |table| match table {
        Table::Meta => "the table of the store's identity is missing",
        Table::Entries => "the table of all rows is missing",
        Table::Chunks => "the table of long values is missing",
        Table::Expiries => "the table of expiries is missing",
        Table::Dictionaries => "the table of dictionaries is missing",
    };
    let page = view.meta().main.root.unwrap_or_default();
    Table::OF_EVERY_STORE.into_iter().filter_map(move |table| match view.existing_table(table.name()) {
        Ok(Some(_)) => None,
        Ok(None) => Some(PageDamage { page, what: what(table) }),
        Err(damage) => Some(damage),
    })
}

/// Maps a store's file for reading; the caller has its lock.
fn map(path: &Path, metas: &[Meta]) -> Result<Pages, OpenError> {
    let open = || {
        let file = File::open(path)?;
        let len = file.metadata()?.len() as usize;
        // SAFETY: the store's lock keeps writers from the file, which has all that is mapped.
        unsafe { Pages::map(&file, len, metas) }
    };
    open().map_err(|reason| failed(path, reason))
}

struct FirstDamage(Option<PageDamage>);

impl Visitor<'_> for FirstDamage {
    fn row(&mut self, _: &[u8], _: Value<'_>) {}

    fn damage(&mut self, damage: PageDamage) {
        self.0.get_or_insert(damage);
    }
}

fn damaged(folder: &Path, detail: &str) -> OpenError {
    OpenError::Damaged { path: folder.to_owned(), detail: detail.into() }
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
        let store = open_offline(folder).expect("the store opens");
        described(folder, &store.view()).expect("it is whole").0.version
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
