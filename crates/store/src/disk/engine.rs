//! What the disk tier asks of a storage engine: ordered tables of byte strings, snapshots, and atomic commits.
//!
//! Everything that makes a store of it (rows, chunks, generations, accounting) is written against this trait, so that
//! another engine could take LMDB's place.

use std::io;

use thiserror::Error;

use super::pages::PageDamage;

/// The tables of a store. FORMAT.md says what is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// Identity and state of the store.
    Meta,
    /// One row a key.
    Entries,
    /// Records that are too long for a row.
    Chunks,
    /// When keys expire, in order.
    Expiries,
    /// What records are encoded with.
    Dictionaries,
}

impl Table {
    pub(crate) const ALL: [Table; 5] =
        [Table::Meta, Table::Entries, Table::Chunks, Table::Expiries, Table::Dictionaries];

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

/// Why the engine could not do what it was asked.
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
    /// The engine was used wrongly, or has found damage that was not noticed before.
    #[error("the storage engine failed: {0}")]
    Engine(String),
}

/// What the file takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// In pages that hold something.
    pub(crate) used: u64,
    /// Up to the last page that was ever used: what the file can be at most by now.
    pub(crate) file: u64,
}

/// Reading from one state of all tables.
pub(crate) trait Read {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<&[u8]>, EngineError>;

    /// Shows rows in the order of their keys, from `from` on, until `show` says false.
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

    /// As [`Write::put`], of a key behind all others of the table.
    fn append(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), EngineError>;

    /// Says whether there was such a row.
    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool, EngineError>;

    /// Makes the changes visible to new snapshots, and as durable as the engine was opened to be. Without it they are
    /// forgotten.
    fn commit(self) -> Result<(), EngineError>;
}

/// A storage engine. One thread at a time writes; any number read meanwhile.
pub(crate) trait Engine: Send + Sync + 'static {
    type Snapshot<'a>: Read;
    type Transaction<'a>: Write;

    /// A snapshot of what is committed, to be dropped soon: pages that it sees cannot be used again.
    fn read(&self) -> Result<Self::Snapshot<'_>, EngineError>;

    /// Takes room on the disk for a transaction that will write about so many bytes, so that it finds some.
    fn prepare(&self, bytes: u64) -> Result<(), EngineError>;

    /// A transaction that will write about so many bytes, or none and only remove, which is possible on a full disk.
    fn write(&self, bytes: u64) -> Result<Self::Transaction<'_>, EngineError>;

    /// Tells the system that these bytes of a snapshot will be read now, so that it fetches them together.
    fn will_need(&self, bytes: &[u8]);

    /// Makes everything that was committed durable.
    fn sync(&self) -> Result<(), EngineError>;
}
