//! Every key to a file, which takes the place of the one before when it is whole.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use snugly_protocol::rdb::{NODE_BYTES, Node, Origin, Writer};
use snugly_store::{Kind, Session, StoreError, Value, system_time};
use thiserror::Error;

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
    #[error(
        "{folder} is the folder of the store, where SAVE writes nothing: start the server with another --dir",
        folder = folder.display()
    )]
    InStore { folder: PathBuf },
    /// A value that cannot be read would be missing in the file.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keys to look for at once.
const BATCH: usize = 256;

/// Writes all live keys.
pub(super) fn write(session: &mut Session, path: &Path) -> Result<Saved, SaveError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    let result = write_new(session, &new).and_then(|saved| {
        let replace = fs::rename(&new, path).and_then(|()| sync_folder(path));
        replace.map(|()| saved).map_err(|source| SaveError::Io { path: path.to_owned(), source })
    });
    if result.is_err() {
        // The error is reported already.
        let _ = fs::remove_file(&new);
    }
    result
}

fn write_new(session: &mut Session, path: &Path) -> Result<Saved, SaveError> {
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
    for database in 0..session.store().databases() {
        saving.database(session, database)?;
    }
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
    fn database(&mut self, session: &mut Session, database: usize) -> Result<(), SaveError> {
        let stats = session.store().database_stats(database)?;
        if stats.keys == 0 {
            return Ok(());
        }
        self.writer
            .database(database as u64, stats.keys as u64, stats.volatile_keys as u64)
            .map_err(self.failed)?;
        let mut cursor = 0;
        loop {
            // A key can be shown twice at once, and not by another call.
            let mut keys = HashSet::new();
            cursor = session.scan(database, cursor, BATCH, |key| {
                keys.insert(key.to_vec());
            })?;
            keys.iter().try_for_each(|key| self.key(session, database, key))?;
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    fn key(&mut self, session: &mut Session, database: usize, key: &[u8]) -> Result<(), SaveError> {
        // The key may be gone.
        let Some(value) = session.peek(database, key)? else { return Ok(()) };
        if value.kind() == Kind::List {
            return match session.elements_of(&value) {
                Ok(Some(elements)) => {
                    let is_short = elements.node_lens().all(|len| len <= NODE_BYTES);
                    let nodes = is_short.then(|| elements.node_lens().count() as u64);
                    self.list(&value, nodes, |show| session.show_nodes(&elements, show))
                }
                Ok(None) => Ok(()),
                Err(StoreError::OutOfMemory { .. }) => self.held_list(session, database, key),
                Err(error) => Err(error.into()),
            };
        }
        self.buffer.clear();
        session.read(&value, &mut self.buffer)?;
        self.saved.strings += 1;
        self.writer.string(key, value.expiry(), &self.buffer).map_err(self.failed)
    }

    /// Writes a list of which more is on disk than memory may hold. Nobody can change it meanwhile.
    fn held_list(&mut self, session: &mut Session, database: usize, key: &[u8]) -> Result<(), SaveError> {
        session.exclusively(std::iter::once(key), |session| {
            let Some(value) = session.peek(database, key)?.filter(|value| value.kind() == Kind::List) else {
                return Ok(());
            };
            self.list(&value, None, |show| session.show_list(&value, show))
        })
    }

    /// Writes a list whose nodes can be shown again and again; it may be known how many there will be in the file.
    fn list(
        &mut self,
        list: &Value,
        nodes: Option<u64>,
        mut show_nodes: impl FnMut(&mut dyn FnMut(&[u8])) -> Result<(), StoreError>,
    ) -> Result<(), SaveError> {
        let nodes = match nodes {
            Some(nodes) => nodes,
            None => {
                let mut nodes = 0;
                show_nodes(&mut |listpack| nodes += Node::of_listpack(listpack).len() as u64)?;
                nodes
            }
        };
        self.saved.lists += 1;
        let mut outcome = self.writer.begin_list(list.key(), list.expiry(), nodes);
        show_nodes(&mut |listpack| {
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
