//! Compaction: rewriting a store's file in the order of keys, so that its pages are full and none is free; and the copy that
//! it is made of, which a backup is, too.

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
pub fn compact(path: &Path, mut progress: impl FnMut(u64)) -> Result<(u64, u64), OpenError> {
    refuse_damage(path)?;
    let Opened { engine, lock, .. } = files::open_engine(path)?;
    let data = path.join(DATA_FILE);
    let failed = |reason: io::Error| files::failed(path, reason);
    let before = allocated(&data).map_err(failed)?;
    let replaced = files::with_new_folder(path, |new| {
        let written = engine.read().map_err(files::engine_failed(path)).and_then(|rows| {
            write_copy(rows, path, new, |written| {
                progress(written);
                true
            })
        });
        engine.close();
        written?;
        let copy = new.join(DATA_FILE);
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

/// Writes all rows of the store in `source` to a new one in an empty folder, durably. `progress` receives the bytes written
/// so far, and returns whether to go on; returns whether everything is written.
///
/// # Errors
/// [`OpenError`] if rows cannot be read or the copy cannot be written.
pub(super) fn write_copy(
    rows: impl Read,
    source: &Path,
    folder: &Path,
    progress: impl FnMut(u64) -> bool,
) -> Result<bool, OpenError> {
    let failed = files::engine_failed(folder);
    let options = Options { map_bytes: UNLIMITED_MAP, sync: false };
    // SAFETY: the folder has just been made, and nobody else knows of it.
    let copy = unsafe { Lmdb::open(folder, options) }.map_err(&failed)?;
    let written = append_all(&rows, files::engine_failed(source), &copy, &failed, progress);
    // The pages that the rows are on can be reused from now on.
    drop(rows);
    let written = written.and_then(|is_whole| copy.sync().map(|()| is_whole).map_err(&failed));
    copy.close();
    let is_whole = written?;
    files::trim(&folder.join(DATA_FILE))?;
    Ok(is_whole)
}

/// Appends all rows to empty tables, while `progress` returns true; returns whether they are all there.
fn append_all(
    rows: &impl Read,
    unread: impl Fn(EngineError) -> OpenError,
    copy: &Lmdb,
    unwritten: impl Fn(EngineError) -> OpenError,
    mut progress: impl FnMut(u64) -> bool,
) -> Result<bool, OpenError> {
    let mut written = 0;
    for table in Table::ALL {
        let mut from = Some(Vec::new());
        while let Some(first) = from.take() {
            let mut transaction = copy.write(BATCH_BYTES).map_err(&unwritten)?;
            let (mut bytes, mut outcome) = (0, Ok(()));
            let scanned = rows.scan(table, &first, &mut |key, value| {
                if bytes >= BATCH_BYTES {
                    from = Some(key.to_vec());
                    return false;
                }
                bytes += (key.len() + value.len()) as u64;
                outcome = transaction.append(table, key, value);
                outcome.is_ok()
            });
            outcome.map_err(&unwritten)?;
            scanned.map_err(&unread)?;
            transaction.commit().map_err(&unwritten)?;
            written += bytes;
            if !progress(written) {
                return Ok(false);
            }
        }
    }
    Ok(true)
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
