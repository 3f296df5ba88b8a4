//! Compaction: rewriting a store's file in the order of keys, so that its pages are full and none is free.

use std::fs;
use std::io;
use std::path::Path;

use super::check::refuse_damage;
use super::engine::{Engine, EngineError, Read, Table, Write};
use super::files::{self, DATA_FILE, OpenError, Opened, UNLIMITED_MAP};
use super::lmdb::{Lmdb, Options};
use super::private;

/// Bytes of the rows in one transaction, whose pages are in memory until it commits.
const BATCH_BYTES: u64 = 8 << 20;

/// Rewrites a store without gaps; returns the file's length in bytes before and after. `progress` receives
/// the bytes of the rows that are written.
///
/// # Errors
/// [`OpenError`] if the store cannot be opened or is damaged, or there is no space for the copy; the store is
/// then unchanged.
pub fn compact(path: &Path, progress: impl FnMut(u64)) -> Result<(u64, u64), OpenError> {
    refuse_damage(path)?;
    let Opened { engine, lock, .. } = files::open_engine(path)?;
    let data = path.join(DATA_FILE);
    let failed = |reason: io::Error| files::failed(path, reason);
    let before = allocated(&data).map_err(failed)?;
    let replaced = files::with_new_folder(path, |new| {
        let written = write_copy(&engine, new, progress).map_err(files::engine_failed(path));
        engine.close();
        written?;
        let copy = new.join(DATA_FILE);
        files::trim(&copy)?;
        let replace = || {
            private::give(&copy, &data)?;
            private::restrict(new, DATA_FILE)?;
            fs::rename(&copy, &data)?;
            files::sync_folder(path)
        };
        replace().map_err(failed)
    });
    drop(lock);
    replaced?;
    Ok((before, allocated(&data).map_err(failed)?))
}

/// Writes all rows of a store to a new one in an empty folder.
fn write_copy(store: &Lmdb, folder: &Path, progress: impl FnMut(u64)) -> Result<(), EngineError> {
    let options = Options { map_bytes: UNLIMITED_MAP, sync: false };
    // SAFETY: the folder has just been made, under the store's lock.
    let copy = unsafe { Lmdb::open(folder, options) }?;
    let written = append_all(&store.read()?, &copy, progress).and_then(|()| copy.sync());
    copy.close();
    written
}

/// Appends all rows to empty tables.
fn append_all(rows: &impl Read, copy: &Lmdb, mut progress: impl FnMut(u64)) -> Result<(), EngineError> {
    let mut written = 0;
    for table in Table::ALL {
        let mut from = Some(Vec::new());
        while let Some(first) = from.take() {
            let mut transaction = copy.write(BATCH_BYTES)?;
            let (mut bytes, mut outcome) = (0, Ok(()));
            rows.scan(table, &first, &mut |key, value| {
                if bytes >= BATCH_BYTES {
                    from = Some(key.to_vec());
                    return false;
                }
                bytes += (key.len() + value.len()) as u64;
                outcome = transaction.append(table, key, value);
                outcome.is_ok()
            })?;
            outcome?;
            transaction.commit()?;
            written += bytes;
            progress(written);
        }
    }
    Ok(())
}

/// Returns the bytes allocated to a file on the disk.
fn allocated(path: &Path) -> io::Result<u64> {
    let metadata = fs::metadata(path)?;
    #[cfg(unix)]
    let bytes = std::os::unix::fs::MetadataExt::blocks(&metadata) * 512;
    #[cfg(not(unix))]
    let bytes = metadata.len();
    Ok(bytes)
}
