//! Backup: a copy of a store that is in use, as it is at one commit; and restoring one.
//!
//! The copy is of one snapshot, whose pages cannot be reused while it is written: the file may grow meanwhile by what changes.
//! Where it may not, a commit that finds no pages ends the backup instead of failing. A copy is made beside its place, verified,
//! and then moved there, so that under its name there is a whole one or none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use thiserror::Error;

use super::check::check;
use super::compaction::write_copy;
use super::engine::{Engine, Read};
use super::files::{self, DATA_FILE, OpenError};
use super::journal;
use super::shared::Shared;
use super::{CheckReport, Disk, private};

/// Reason why there is no backup, or none was restored. Nothing is left of it.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The store is in memory only.
    #[error("the store is in memory only: BGSAVE writes a file of it, which --load-rdb loads")]
    InMemory,
    /// Another backup is under way.
    #[error("another backup is being made: wait for its end, or cancel it")]
    InProgress,
    /// Something has the name.
    #[error("{path} exists: choose another name", path = path.display())]
    Exists {
        /// The place of the copy.
        path: PathBuf,
    },
    /// Changes that belong to it cannot be written to the store itself.
    #[error("the store's own changes cannot be written to disk: {reason}")]
    Failing {
        /// Error of the disk tier.
        reason: String,
    },
    /// The store needed the pages that the copy kept.
    #[error(
        "the store changed more during the backup than its disk has room for: make the backup at a quieter time, or raise max-disk"
    )]
    Outrun,
    /// Somebody ended it.
    #[error("the backup was cancelled")]
    Cancelled,
    /// A store, the copy or the one to be restored, is not whole.
    #[error("{path} is not whole: {first} (faults: {count})", path = path.display())]
    Faulty {
        /// The store.
        path: PathBuf,
        /// Number of faults.
        count: u64,
        /// Description of the first one.
        first: String,
    },
    /// The store cannot be read, or the copy cannot be written.
    #[error(transparent)]
    Store(#[from] OpenError),
}

/// Progress of a backup, for those who watch it.
#[derive(Debug, Default)]
pub struct BackupProgress {
    written: AtomicU64,
    expected: AtomicU64,
    verified: AtomicU64,
    is_cancelled: AtomicBool,
    is_outrun: AtomicBool,
}

impl BackupProgress {
    /// Bytes of rows that are written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Bytes of rows to expect, or some more; 0 until that is known.
    pub fn expected(&self) -> u64 {
        self.expected.load(Ordering::Relaxed)
    }

    /// Rows of the copy that are verified so far, once it is written.
    pub fn verified(&self) -> u64 {
        self.verified.load(Ordering::Relaxed)
    }

    /// Ends the backup soon, unless it is being verified.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Ends the backup soon, since the store needs the pages that it keeps.
    pub(super) fn give_way(&self) {
        self.is_outrun.store(true, Ordering::Relaxed);
    }

    fn end(&self) -> Option<BackupError> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Some(BackupError::Cancelled);
        }
        self.is_outrun.load(Ordering::Relaxed).then_some(BackupError::Outrun)
    }
}

impl Disk {
    /// Writes a copy of the store as it is after all changes so far into a new folder.
    ///
    /// # Errors
    /// [`BackupError`]; the store is not concerned.
    pub(crate) fn backup(
        &self,
        folder: &Path,
        progress: &Arc<BackupProgress>,
    ) -> Result<CheckReport, BackupError> {
        if folder.exists() {
            return Err(BackupError::Exists { path: folder.to_owned() });
        }
        let partial = beside(folder);
        make_folder(&partial).map_err(|reason| files::failed(&partial, reason))?;
        let made = self.copy_to(&partial, progress).and_then(|report| {
            move_to(&partial, folder).map_err(|reason| files::failed(folder, reason))?;
            Ok(report)
        });
        if made.is_err() {
            // The error is reported already.
            let _ = fs::remove_dir_all(&partial);
        }
        made
    }

    fn copy_to(&self, partial: &Path, progress: &Arc<BackupProgress>) -> Result<CheckReport, BackupError> {
        let shared = &self.shared;
        self.commit_all()?;
        let held = Held::new(shared, progress)?;
        let failed = files::engine_failed(&shared.storage.path);
        let rows = shared.engine.read().map_err(&failed)?;
        progress.expected.store(rows.usage().map_err(&failed)?.used, Ordering::Relaxed);
        let mut is_whole = false;
        files::with_new_folder(partial, |new| {
            is_whole = write_copy(rows, &shared.storage.path, new, |written| {
                progress.written.store(written, Ordering::Relaxed);
                progress.end().is_none()
            })?;
            move_data(new, partial).map_err(|reason| files::failed(partial, reason))
        })?;
        drop(held);
        if !is_whole {
            return Err(progress.end().unwrap_or(BackupError::Cancelled));
        }
        verified(partial, |seen| progress.verified.store(seen, Ordering::Relaxed))
    }

    /// Waits until the engine has all changes so far.
    fn commit_all(&self) -> Result<(), BackupError> {
        let queue = self.queue();
        let last = queue.pushed();
        queue.wait_until(|| queue.is_in_engine(last) || self.shared.is_failing());
        match queue.is_in_engine(last) {
            true => Ok(()),
            false => Err(BackupError::Failing { reason: self.failure().unwrap_or_default() }),
        }
    }
}

/// The mark of a backup that keeps pages of the store.
struct Held<'s>(&'s Shared);

impl Held<'_> {
    fn new<'s>(shared: &'s Shared, progress: &Arc<BackupProgress>) -> Result<Held<'s>, BackupError> {
        let mut backup = shared.backup.lock();
        if backup.is_some() {
            return Err(BackupError::InProgress);
        }
        *backup = Some(progress.clone());
        Ok(Held(shared))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        *self.0.backup.lock() = None;
    }
}

/// Makes a store in a folder, which must be empty or not exist, of a backup; returns what the backup has. `progress` receives
/// the number of rows verified.
///
/// # Errors
/// [`BackupError`] if the backup is not whole, or the store cannot be written; the backup is not changed.
pub fn restore(backup: &Path, folder: &Path, progress: impl FnMut(u64)) -> Result<CheckReport, BackupError> {
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(BackupError::Exists { path: folder.to_owned() });
    }
    let report = verified(backup, progress)?;
    let partial = beside(folder);
    let copied = make_folder(&partial).and_then(|()| {
        // A store that was stopped and copied is as good as a backup, and may have a journal.
        let journal = journal::NAMES.into_iter().filter(|name| backup.join(name).exists());
        for name in journal.chain([DATA_FILE]) {
            fs::copy(backup.join(name), partial.join(name))?;
            fs::File::open(partial.join(name))?.sync_all()?;
            private::restrict(&partial, name)?;
        }
        move_to(&partial, folder)
    });
    if copied.is_err() {
        // The error is reported.
        let _ = fs::remove_dir_all(&partial);
    }
    copied.map_err(|reason| files::failed(folder, reason))?;
    Ok(report)
}

/// Verifies a store that must have no fault.
fn verified(path: &Path, progress: impl FnMut(u64)) -> Result<CheckReport, BackupError> {
    let report = check(path, progress)?;
    match report.faults.first() {
        None => Ok(report),
        Some(first) => Err(BackupError::Faulty {
            path: path.to_owned(),
            count: report.fault_count,
            first: first.clone(),
        }),
    }
}

/// The folder in which a store is made that is moved to this place when it is whole.
fn beside(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    folder.with_file_name(name)
}

/// Makes a folder for its owner alone, in the place of what an earlier attempt has left. Values are nobody else's business.
fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(reason) if reason.kind() != io::ErrorKind::NotFound => return Err(reason),
        _ => {}
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    private::give(folder, parent(folder))
}

/// Moves the data file of a new store to where the store is.
fn move_data(new: &Path, folder: &Path) -> io::Result<()> {
    private::restrict(new, DATA_FILE)?;
    fs::rename(new.join(DATA_FILE), folder.join(DATA_FILE))?;
    files::sync_folder(folder)
}

/// Moves a folder to its place, durably.
fn move_to(partial: &Path, folder: &Path) -> io::Result<()> {
    files::sync_folder(partial)?;
    fs::rename(partial, folder)?;
    files::sync_folder(parent(folder))
}

fn parent(folder: &Path) -> &Path {
    folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use snugly_codec::Record;

    use super::super::change::{Change, Item};
    use super::super::{MIN_MAX_DISK, Storage};
    use super::*;
    use crate::entry::{Access, Entry, Properties};

    #[test]
    fn a_commit_that_finds_no_pages_ends_the_backup_and_does_not_fail() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage { max_disk: MIN_MAX_DISK, ..Storage::new(folder.path()) };
        let (disk, _) = Disk::open(storage, 1).expect("the store opens");
        let write_all = || {
            for key in 0..100_u8 {
                let record = Record::identity(&[0x5a; 20_000]);
                let entry = Entry::new(&[key], &record, Properties::plain(Access::written(0)));
                let change = Change { generation: 0, entry, expiry: None, in_group: false, _holds: None };
                disk.queue().push(Item::Change(change));
            }
        };
        let progress = Arc::default();
        let held = Held::new(&disk.shared, &progress).expect("it is the first");
        let rows = disk.shared.engine.read().expect("it can be read");
        // Each time takes 2 MB of pages, of which none can be reused.
        while progress.end().is_none() {
            write_all();
            while !disk.queue().is_in_engine(disk.queue().pushed()) && progress.end().is_none() {
                disk.queue().hurry();
                thread::sleep(Duration::from_millis(1));
            }
        }
        assert!(matches!(progress.end(), Some(BackupError::Outrun)));
        drop((rows, held));
        disk.commit_all().expect("its pages can be reused");
        let stats = disk.stats();
        assert_eq!((stats.failed_commits, stats.evicted, stats.failure), (0, 0, None));
    }
}
