//! The LMDB engine, through heed. It knows transactions, pages and the length of the file, and not what rows
//! mean.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, EnvFlags, EnvOpenOptions, MdbError, PutFlags, RoTxn, RwTxn, WithoutTls};

use super::engine::{Engine, EngineError, Read, Table, Usage, Write};
use super::pages::meta::{META_LEN, Meta, Tree, newest};
use super::pages::tree::{Merged, View};
use super::pages::{PageDamage, Pages};

/// Read transactions at a time.
const MAX_READERS: u32 = 1024;
/// Number of meta pages in front of everything.
const META_PAGES: u64 = 2;

type Rows = heed::Database<'static, Bytes, Bytes>;

/// Bytes that a file extends beyond what a transaction is expected to write. Half of them are for
/// transactions that free space.
const FILE_MARGIN: u64 = 4 << 20;
/// Error code that LMDB also returns when the disk has space for only part of a write.
const EIO: i32 = 5;
/// LMDB's table of readers, mapped for writing: 64 bytes each, and a header.
pub(super) const LOCK_FILE: &str = "lock.mdb";
const LOCK_BYTES: u64 = MAX_READERS as u64 * 64 + 4096;

pub(crate) struct Lmdb {
    tables: [Rows; Table::ALL.len()],
    page_bytes: u64,
    map_bytes: u64,
    file: fs::File,
    pages: Pages,
    env: heed::Env<WithoutTls>,
}

/// Options for opening an environment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Greatest length of the file, in bytes.
    pub(crate) map_bytes: usize,
    /// Whether a commit waits until the disk has it.
    pub(crate) sync: bool,
}

impl Lmdb {
    /// Opens the environment in a folder, or makes one.
    ///
    /// # Safety
    /// As for any memory map: nobody may change or truncate the file while it is open. The caller holds the store's
    /// lock, and has checked that the file is whole.
    pub(crate) unsafe fn open(folder: &Path, options: Options) -> Result<Lmdb, EngineError> {
        // Writing to a mapped page for which the disk has no space ends the process with a bus error.
        let lock =
            fs::File::options().create(true).truncate(false).write(true).open(folder.join(LOCK_FILE))?;
        reserve(&lock, 0, LOCK_BYTES)?;
        // A thread that has ended gives back a place of its own that may be gone: LMDB does not wait for it when it closes.
        let mut builder = EnvOpenOptions::new().read_txn_without_tls();
        builder.map_size(options.map_bytes).max_readers(MAX_READERS).max_dbs(Table::ALL.len() as u32);
        let mut flags = EnvFlags::NO_READ_AHEAD;
        if !options.sync {
            flags |= EnvFlags::NO_SYNC;
        }
        // SAFETY: of the flags, NO_SYNC risks the file after a power loss, which `--durability none` says;
        // NO_READ_AHEAD is a hint. The rest is the caller's promise.
        let env = unsafe { builder.flags(flags).open(folder) }.map_err(error)?;
        let transaction = env.write_txn().map_err(error)?;
        let tables = env
            .create_databases_and_commit(transaction, |opener, transaction| {
                let mut create =
                    |table: Table| opener.create_database::<Bytes, Bytes>(transaction, Some(table.name()));
                let [meta, entries, chunks, expiries, dictionaries] = Table::ALL;
                let tables = [
                    create(meta)?,
                    create(entries)?,
                    create(chunks)?,
                    create(expiries)?,
                    create(dictionaries)?,
                ];
                Ok(CommitOrAbort::<_, ()>::Commit(tables))
            })
            .map_err(error)?
            .unwrap_commit();
        let snapshot = env.read_txn().map_err(error)?;
        let page_bytes = u64::from(tables[0].stat(&snapshot).map_err(error)?.page_size);
        drop(snapshot);
        let file = env.try_clone_inner_file().map_err(error)?;
        let pages = map(&file, options.map_bytes)?;
        Ok(Lmdb { tables, page_bytes, map_bytes: options.map_bytes as u64, file, pages, env })
    }

    /// Raises the greatest length of the file to this, in bytes.
    pub(super) fn grow(&mut self, map_bytes: u64) -> Result<(), EngineError> {
        if map_bytes > self.map_bytes {
            // SAFETY: every transaction borrows the engine, so none is active while it is borrowed for this.
            unsafe { self.env.resize(map_bytes as usize) }.map_err(error)?;
            self.pages = map(&self.file, map_bytes as usize)?;
            self.map_bytes = map_bytes;
        }
        Ok(())
    }

    /// Truncates the file to its greatest length, in case its budget was larger.
    pub(super) fn trim(&self) -> Result<(), EngineError> {
        if self.file.metadata()?.len() > self.map_bytes {
            self.file.set_len(self.map_bytes)?;
        }
        Ok(())
    }

    /// Allocates disk blocks as far as the next commit can write, so that a full disk is met before the
    /// commit and not in its middle, and transactions that free space find some. LMDB does not write pages
    /// that it allocated and freed at once, so a file may end before its last page; one that always extends
    /// further can be told from a truncated one.
    fn extend_file(&self, bytes: u64) -> Result<(), EngineError> {
        let end = (self.env.info().last_page_number as u64 + 1) * self.page_bytes;
        let wanted = |margin: u64| (end + 2 * bytes + margin).min(self.map_bytes);
        if self.file.metadata()?.len() < wanted(FILE_MARGIN / 2) {
            reserve(&self.file, end, wanted(FILE_MARGIN))?;
        }
        Ok(())
    }

    /// Returns whether the file has enough pages without growing; removals need only those set apart for
    /// them.
    fn has_pages_for(&self, bytes: u64) -> Result<bool, EngineError> {
        let used = Engine::read(self)?.usage()?.used;
        Ok(bytes == 0 || self.file.metadata()?.len() >= used + 2 * bytes + FILE_MARGIN / 2)
    }

    /// Returns whether the file cannot grow.
    fn disk_is_full(&self) -> bool {
        let grow = || {
            let end = self.file.metadata()?.len();
            reserve(&self.file, end, end + self.page_bytes)
        };
        matches!(grow(), Err(EngineError::NoSpace))
    }

    /// Closes the environment when the last transaction has ended.
    pub(crate) fn close(self) {
        self.env.prepare_for_closing().wait();
    }
}

/// A snapshot of the last commit, read without LMDB's code.
pub(crate) struct Snapshot<'a> {
    view: View<'a>,
    /// Transaction that keeps LMDB from reusing the pages of the view.
    _transaction: RoTxn<'a, WithoutTls>,
}

/// A transaction, in which LMDB reads no page of the file that has not been verified.
pub(crate) struct Transaction<'a> {
    lmdb: &'a Lmdb,
    /// State at its beginning, and the tables in that.
    base: View<'a>,
    trees: [Tree; Table::ALL.len()],
    merged: Merged,
    transaction: RwTxn<'a>,
}

const NO_META: PageDamage = PageDamage { page: 0, what: "no meta page is of the last commit" };
/// Attempts to take a snapshot while others commit.
const MOST_ATTEMPTS: u32 = 1000;

impl Engine for Lmdb {
    type Snapshot<'a> = Snapshot<'a>;
    type Transaction<'a> = Transaction<'a>;

    fn read(&self) -> Result<Snapshot<'_>, EngineError> {
        for _ in 0..MOST_ATTEMPTS {
            let transaction = self.env.read_txn().map_err(error)?;
            if let Some(view) = View::of_transaction(&self.pages, transaction.id() as u64) {
                return Ok(Snapshot { view, _transaction: transaction });
            }
        }
        Err(NO_META.into())
    }

    fn prepare(&self, bytes: u64) -> Result<(), EngineError> {
        match self.extend_file(bytes) {
            Err(EngineError::NoSpace) if self.has_pages_for(bytes)? => Ok(()),
            outcome => outcome,
        }
    }

    fn write(&self, bytes: u64) -> Result<Transaction<'_>, EngineError> {
        self.prepare(bytes)?;
        let transaction = self.env.write_txn().map_err(error)?;
        let base = View::of_transaction(&self.pages, transaction.id() as u64 - 1).ok_or(NO_META)?;
        let mut trees = [base.meta().main; Table::ALL.len()];
        for table in Table::ALL {
            trees[table as usize] = base.table(table.name())?;
        }
        Ok(Transaction { lmdb: self, base, trees, merged: Merged::default(), transaction })
    }

    fn will_need(&self, bytes: &[u8]) {
        #[cfg(unix)]
        {
            let page = self.page_bytes as usize;
            let start = bytes.as_ptr().addr() / page * page;
            let len = bytes.as_ptr().addr() + bytes.len() - start;
            // SAFETY: a hint about pages of a mapping that the snapshot keeps; it changes nothing.
            unsafe {
                libc::madvise(bytes.as_ptr().with_addr(start).cast_mut().cast(), len, libc::MADV_WILLNEED)
            };
        }
        #[cfg(not(unix))]
        let _ = bytes;
    }

    fn sync(&self) -> Result<(), EngineError> {
        self.env.force_sync().map_err(error)
    }
}

impl Read for View<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<&[u8]>, EngineError> {
        Ok(View::get(self, &self.table(table.name())?, key)?)
    }

    fn scan<'t>(
        &'t self,
        table: Table,
        from: &[u8],
        show: &mut dyn FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<(), EngineError> {
        Ok(View::scan(self, &self.table(table.name())?, from, show)?)
    }

    fn usage(&self) -> Result<Usage, EngineError> {
        let mut pages = META_PAGES;
        for table in Table::ALL {
            pages += self.table(table.name())?.pages();
        }
        let meta = self.meta();
        Ok(Usage { used: pages * meta.page_bytes as u64, file: meta.file_bytes() })
    }
}

impl Read for Snapshot<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<&[u8]>, EngineError> {
        Read::get(&self.view, table, key)
    }

    fn scan<'t>(
        &'t self,
        table: Table,
        from: &[u8],
        show: &mut dyn FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<(), EngineError> {
        Read::scan(&self.view, table, from, show)
    }

    fn usage(&self) -> Result<Usage, EngineError> {
        self.view.usage()
    }
}

impl Transaction<'_> {
    fn rows(&self, table: Table) -> &Rows {
        &self.lmdb.tables[table as usize]
    }

    /// Verifies the pages that LMDB is about to read.
    fn verify_way(&self, table: Table, key: &[u8]) -> Result<(), EngineError> {
        Ok(self.base.verify_way(&self.trees[table as usize], key)?)
    }
}

impl Read for Transaction<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<&[u8]>, EngineError> {
        self.base.get(&self.trees[table as usize], key)?;
        self.rows(table).get(&self.transaction, key).map_err(error)
    }

    fn scan<'t>(
        &'t self,
        table: Table,
        from: &[u8],
        show: &mut dyn FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<(), EngineError> {
        // LMDB has no empty keys.
        let start = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
        let range = (start, Bound::Unbounded);
        let tree = &self.trees[table as usize];
        // LMDB continues in the next leaf behind the last row of one. That row is still there unless rows
        // were removed from its leaf, for which the next one has been verified.
        let mut last = self.base.last_key(tree, from)?;
        if last.is_some_and(|last| last < from) {
            self.base.verify_next(tree, from)?;
        }
        for row in self.rows(table).range(&self.transaction, &range).map_err(error)? {
            let (key, value) = row.map_err(error)?;
            if last.is_some_and(|last| last < key) {
                last = self.base.last_key(tree, key)?;
            }
            if !show(key, value) {
                break;
            }
            if last.is_some_and(|last| last <= key) {
                self.base.verify_next(tree, key)?;
            }
        }
        Ok(())
    }

    fn usage(&self) -> Result<Usage, EngineError> {
        let mut pages = META_PAGES;
        for table in Table::ALL {
            let stat = self.rows(table).stat(&self.transaction).map_err(error)?;
            pages += (stat.branch_pages + stat.leaf_pages + stat.overflow_pages) as u64;
        }
        let file = (self.lmdb.env.info().last_page_number as u64 + 1) * self.lmdb.page_bytes;
        Ok(Usage { used: pages * self.lmdb.page_bytes, file })
    }
}

impl Write for Transaction<'_> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        self.verify_way(table, key)?;
        self.lmdb.tables[table as usize].put(&mut self.transaction, key, value).map_err(error)
    }

    fn append(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        self.verify_way(table, key)?;
        let rows = self.lmdb.tables[table as usize];
        rows.put_with_flags(&mut self.transaction, PutFlags::APPEND, key, value).map_err(error)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool, EngineError> {
        let (rows, tree) = (self.lmdb.tables[table as usize], self.trees[table as usize]);
        self.base.verify_removal(&tree, key, &mut self.merged)?;
        let pages = |transaction: &RwTxn<'_>| {
            let stat = rows.stat(transaction).map_err(error)?;
            Ok::<_, EngineError>((stat.depth, stat.branch_pages + stat.leaf_pages))
        };
        let before = pages(&self.transaction)?;
        let is_deleted = rows.delete(&mut self.transaction, key).map_err(error)?;
        if pages(&self.transaction)? != before {
            self.base.note_merger(&tree, key, &mut self.merged)?;
        }
        Ok(is_deleted)
    }

    fn commit(self) -> Result<(), EngineError> {
        let lmdb = self.lmdb;
        self.transaction.commit().map_err(|failure| match error(failure) {
            EngineError::Io(reason) if reason.raw_os_error() == Some(EIO) && lmdb.disk_is_full() => {
                EngineError::NoSpace
            }
            failure => failure,
        })
    }
}

/// Maps the file of an open environment.
fn map(file: &fs::File, map_bytes: usize) -> Result<Pages, EngineError> {
    let mut file = file.try_clone()?;
    let mut page = |at: u64| -> io::Result<[u8; META_LEN]> {
        let mut bytes = [0; META_LEN];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    };
    let first = page(0)?;
    let second = page(Meta::parse(0, &first)?.page_bytes as u64)?;
    let meta = newest(&first, &second)?;
    // SAFETY: the environment has the same map, with the same promise of its opener, and no page is read but those of a
    // transaction, which the file has and which LMDB does not write while it lasts.
    Ok(unsafe { Pages::map(&file, map_bytes, &[meta]) }?)
}

/// Allocates disk blocks for a part of a file, which grows to include it. Where the file system cannot
/// allocate, the file only grows.
fn reserve(file: &fs::File, from: u64, to: u64) -> Result<(), EngineError> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        // SAFETY: the descriptor is the file's, which is open; no memory is touched.
        let code = unsafe {
            libc::posix_fallocate(file.as_raw_fd(), from as libc::off_t, (to - from) as libc::off_t)
        };
        match code {
            0 => return Ok(()),
            libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL => {}
            code => return Err(no_space(io::Error::from_raw_os_error(code))),
        }
    }
    file.set_len(to.max(file.metadata()?.len())).map_err(no_space)
}

fn no_space(error: io::Error) -> EngineError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => EngineError::NoSpace,
        _ => EngineError::Io(error),
    }
}

fn error(error: heed::Error) -> EngineError {
    match error {
        heed::Error::Mdb(MdbError::MapFull | MdbError::TxnFull) => EngineError::NoSpace,
        heed::Error::Io(error) => no_space(error),
        other => EngineError::Engine(other.to_string()),
    }
}
