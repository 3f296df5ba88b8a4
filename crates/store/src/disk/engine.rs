//! The storage engine interface of the disk tier: ordered tables of byte strings, snapshots, and atomic
//! commits.
//!
//! Everything above it (rows, chunks, generations, accounting) is written against these traits, so that
//! another engine could replace LMDB.

use std::io;

use thiserror::Error;

use super::pages::PageDamage;

/// Tables of a store, specified in FORMAT.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// Identity and state of the store.
    Meta,
    /// One row per key.
    Entries,
    /// Chunks of records that are too long for a row.
    Chunks,
    /// Expiries of keys, in order.
    Expiries,
    /// Dictionaries that records are encoded with.
    Dictionaries,
}

impl Table {
    pub(crate) const ALL: [Table; 5] =
        [Table::Meta, Table::Entries, Table::Chunks, Table::Expiries, Table::Dictionaries];

    /// Tables that every store has since its first commit, in every version of the format.
    pub(crate) const OF_EVERY_STORE: [Table; 4] =
        [Table::Meta, Table::Entries, Table::Chunks, Table::Expiries];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Table::Meta => "meta",
            Table::Entries => "entries",
            Table::Chunks => "chunks",
            Table::Expiries => "expiries",
            Table::Dictionaries => "dictionaries",
        }
    }
}

/// Failure of the engine.
#[derive(Debug, Error)]
pub(crate) enum EngineError {
    /// The file system or the file's budget has no room.
    #[error("there is no room left on the disk or in max-disk")]
    NoSpace,
    /// The system failed to read or write.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A page of the file is not what was written.
    #[error("{0}; stop the server and let `snugly repair` make a store of what can be read")]
    Damaged(#[from] PageDamage),
    /// The engine was misused, or found damage that was not noticed before.
    #[error("the storage engine failed: {0}")]
    Engine(String),
}

/// Space that the file takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Bytes of pages in use.
    pub(crate) used: u64,
    /// Bytes up to the last page ever used: an upper bound of the file's length.
    pub(crate) file: u64,
}

/// Read access to one state of all tables.
pub(crate) trait Read {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<&[u8]>, EngineError>;

    /// Passes rows to `show` in the order of their keys, from `from` on, until it returns false.
    fn scan<'t>(
        &'t self,
        table: Table,
        from: &[u8],
        show: &mut dyn FnMut(&'t [u8], &'t [u8]) -> bool,
    ) -> Result<(), EngineError>;

    fn usage(&self) -> Result<Usage, EngineError>;
}

/// Changes that become visible and durable together.
pub(crate) trait Write: Read {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), EngineError>;

    /// Like [`Write::put`], for a key behind all others of the table.
    fn append(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), EngineError>;

    /// Deletes a row; returns whether it existed.
    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool, EngineError>;

    /// Makes the changes visible to new snapshots, and as durable as the engine was opened to be. Without it
    /// they are discarded.
    fn commit(self) -> Result<(), EngineError>;
}

/// A storage engine. One thread at a time writes; any number read meanwhile.
pub(crate) trait Engine: Send + Sync + 'static {
    type Snapshot<'a>: Read;
    type Transaction<'a>: Write;

    /// Returns a snapshot of what is committed. Drop it soon: its pages cannot be reused meanwhile.
    fn read(&self) -> Result<Self::Snapshot<'_>, EngineError>;

    /// Reserves disk space for a transaction that will write about this many bytes.
    fn prepare(&self, bytes: u64) -> Result<(), EngineError>;

    /// Begins a transaction that will write about this many bytes; with 0 it only removes, which is possible
    /// on a full disk.
    fn write(&self, bytes: u64) -> Result<Self::Transaction<'_>, EngineError>;

    /// Advises the system to fetch these bytes of a snapshot together, as they are read next.
    fn will_need(&self, bytes: &[u8]);

    /// Makes all commits durable.
    fn sync(&self) -> Result<(), EngineError>;
}
