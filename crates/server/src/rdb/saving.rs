//! Every key to a file, which takes the place of the one before when it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use snugly_protocol::rdb::{NODE_BYTES, Node, Origin, Writer};
use snugly_store::{KeyspaceSnapshot, Kind, Session, SnapshotError, SnapshotKey, StoreError, system_time};
use thiserror::Error;

use crate::dump_folder::InStore;
use crate::info::REDIS_VERSION;

/// The result of a save.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Saved {
    pub(super) strings: u64,
    pub(super) lists: u64,
    pub(super) bytes: u64,
}

/// Reason why a file was not written.
#[derive(Debug, Error)]
pub(crate) enum SaveError {
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    InStore(#[from] InStore),
    #[error("only a part of the keys is there until all keys of the primary are loaded")]
    Partial,
    #[error("Background save already in progress")]
    InProgress,
    /// A value that cannot be read would be missing in the file.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// Attempts to save all keys of one instant, while databases are flushed or exchanged.
const TRIES: usize = 10;

/// Writes all live keys as they are at one instant, which is that of the call unless a database is flushed meanwhile.
/// `is_partial` tells whether there is only a part of the keys, which is not written.
pub(super) fn write(
    session: &mut Session,
    path: &Path,
    is_partial: impl Fn() -> bool,
) -> Result<Saved, SaveError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    let is_flushed =
        |result: &Result<_, _>| matches!(result, Err(SaveError::Snapshot(SnapshotError::Flushed)));
    let mut attempts = (0..TRIES).map(|_| write_new(session, &new, &is_partial));
    let result = attempts.find(|result| !is_flushed(result)).unwrap_or(Err(SnapshotError::Flushed.into()));
    let result = result.and_then(|saved| {
        let replace = fs::rename(&new, path).and_then(|()| sync_folder(path));
        replace.map(|()| saved).map_err(|source| SaveError::Io { path: path.to_owned(), source })
    });
    if result.is_err() {
        // The error is reported already.
        let _ = fs::remove_file(&new);
    }
    result
}

fn write_new(session: &mut Session, path: &Path, is_partial: &impl Fn() -> bool) -> Result<Saved, SaveError> {
    let failed = |source| SaveError::Io { path: path.to_owned(), source };
    let origin = Origin {
        redis_version: REDIS_VERSION,
        created_at: system_time() / 1_000,
        used_memory: session.store().used_memory(),
        is_aof_base: false,
    };
    // Values are nobody else's business, whatever the umask allows.
    let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let file = BufWriter::new(opened.map_err(failed)?);
    let mut saving = Saving {
        writer: Writer::new(file, &origin).map_err(failed)?,
        saved: Saved::default(),
        failed: &failed,
        buffer: Vec::new(),
    };
    let mut snapshot = session.snapshot().ok_or(SaveError::InProgress)?;
    // Behind the snapshot: if keys go for a load that begins later, it is void.
    if is_partial() {
        return Err(SaveError::Partial);
    }
    for database in 0..session.store().databases() {
        saving.database(session, &mut snapshot, database)?;
    }
    drop(snapshot);
    let Saving { writer, saved, .. } = saving;
    let bytes = writer.written();
    let file = writer.finish().map_err(failed)?;
    let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    Ok(Saved { bytes, ..saved })
}

struct Saving<'f, W> {
    writer: Writer<W>,
    saved: Saved,
    failed: &'f dyn Fn(io::Error) -> SaveError,
    buffer: Vec<u8>,
}

impl<W: Write> Saving<'_, W> {
    fn database(
        &mut self,
        session: &mut Session,
        snapshot: &mut KeyspaceSnapshot,
        database: usize,
    ) -> Result<(), SaveError> {
        let stats = session.store().database_stats(database)?;
        let mut is_begun = false;
        session.show_snapshot(snapshot, database, |key| {
            if !is_begun {
                let (keys, volatile_keys) = (stats.keys as u64, stats.volatile_keys as u64);
                self.writer.database(database as u64, keys, volatile_keys).map_err(self.failed)?;
                is_begun = true;
            }
            self.key(key)
        })
    }

    fn key(&mut self, mut key: SnapshotKey<'_>) -> Result<(), SaveError> {
        match key.kind() {
            Kind::String => {
                self.buffer.clear();
                key.read(&mut self.buffer)?;
                self.saved.strings += 1;
                self.writer.string(key.key(), key.expiry(), &self.buffer).map_err(self.failed)
            }
            Kind::List => self.list(key),
        }
    }

    fn list(&mut self, mut list: SnapshotKey<'_>) -> Result<(), SaveError> {
        let nodes = if list.node_lens().all(|len| len <= NODE_BYTES) {
            list.node_lens().count() as u64
        } else {
            let mut nodes = 0;
            list.show_nodes(|listpack| nodes += Node::of_listpack(listpack).len() as u64)?;
            nodes
        };
        self.saved.lists += 1;
        let mut outcome = self.writer.begin_list(list.key(), list.expiry(), nodes);
        list.show_nodes(|listpack| {
            for node in Node::of_listpack(listpack) {
                if outcome.is_ok() {
                    outcome = self.writer.node(&node);
                }
            }
        })?;
        outcome.map_err(self.failed)
    }
}

/// Makes it certain that a file that was renamed has its new name after a crash as well.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use snugly_store::{Choice, Condition, Config, Expiry, Store};

    use super::*;

    #[test]
    fn a_part_of_the_keys_is_not_written_in_the_place_of_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("dump.rdb");
        let store = Store::new(Config::new(Choice::new("none", None, 256).expect("it is in every build")));
        let mut session = store.session();
        session.set(0, b"key", b"value", Expiry::Never, Condition::Always).expect("there is room");
        let saved = write(&mut session, &path, || false).expect("there is room");
        assert_eq!(saved.strings, 1);
        let before = fs::read(&path).expect("it is there");
        let refused = write(&mut session, &path, || true);
        assert!(matches!(refused, Err(SaveError::Partial)), "{refused:?}");
        assert_eq!(fs::read(&path).expect("it is there"), before);
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1, "nothing else is left");
    }
}
