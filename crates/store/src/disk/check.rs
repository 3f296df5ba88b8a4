//! Verifying a store that no server has open.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use snugly_codec::{Dictionary, LoadError};

use super::dictionary::{self, DictionaryRow};
use super::engine::{EngineError, Read, Table};
use super::files::{self, DATA_FILE, OpenError};
use super::leftover::leftover;
use super::lookup;
use super::pages::PageDamage;
use super::pages::audit::{Audit, Visitor};
use super::pages::page::Value;
use super::pages::tree::View;
use super::row::{self, Body, Damaged, Generation, Misread, NODES, Row, RowKey};
use super::state::{Contents, LoadMark, State};
use crate::hash::{HashKey, hash};
use crate::values::collection::{Directory, NodeKey};

/// Findings of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Keys whose rows and records are whole.
    pub keys: u64,
    /// Number of keys that expire.
    pub volatile_keys: u64,
    /// Bytes of their rows and chunks.
    pub bytes: u64,
    /// Rows of flushed databases that are still to be removed; not a fault.
    pub flushed_rows: u64,
    /// Changes in the journal that the next start applies; not a fault.
    pub journaled_changes: u64,
    /// Whether the last record of the journal is incomplete: torn before its changes were answered, or
    /// damaged.
    pub is_journal_cut: bool,
    /// Chunks that no row refers to: space lost until the store is compacted or the chunks' row is repaired.
    pub orphaned_chunks: u64,
    /// List nodes that no list refers to: lost space.
    pub orphaned_nodes: u64,
    /// Pages that belong to nothing: space lost until the store is compacted.
    pub lost_pages: u64,
    /// Descriptions of the first 100 faults, one line each.
    pub faults: Vec<String>,
    /// Number of all faults.
    pub fault_count: u64,
    /// Bytes of the file's pages in use.
    pub used_bytes: u64,
    /// Bytes up to the last page ever used.
    pub file_bytes: u64,
}

/// Most faults that are described.
const FAULTS_TOLD: usize = 100;

impl CheckReport {
    fn fault(&mut self, what: String) {
        self.fault_count += 1;
        if self.faults.len() < FAULTS_TOLD {
            self.faults.push(what);
        }
    }
}

/// Verifies every page and every row of a store, and that rows, chunks, expiries and accounting agree.
/// Changes nothing, and can read a read-only copy. `progress` receives the number of rows checked.
///
/// # Errors
/// [`OpenError`] if the store cannot be opened or read.
pub fn check(path: &Path, progress: impl FnMut(u64)) -> Result<CheckReport, OpenError> {
    let store = files::open_offline(path)?;
    let readable = read_through(&path.join(DATA_FILE));
    readable.map_err(|reason| files::failed(path, reason))?;
    let view = store.view();
    let mut report = CheckReport::default();
    if let Some(damage) = &store.damage {
        report.fault(damage.to_string());
    }
    if view.meta().file_bytes() > fs::metadata(path.join(DATA_FILE)).map_or(0, |data| data.len()) {
        report.fault("the data file ends before its last page".to_owned());
    }
    let (identity, state, applied) = match files::described(path, &view) {
        Err(OpenError::Damaged { detail, .. }) => {
            report.fault(detail);
            pages(&view, &mut report);
            return Ok(report);
        }
        described => described?,
    };
    files::missing_tables(&view).for_each(|damage| report.fault(damage.to_string()));
    let leftover =
        leftover(path, identity.hash_key, applied).map_err(|reason| files::failed(path, reason))?;
    let mut checker = Checker {
        report,
        contents: BTreeMap::new(),
        dead: state.dead.iter().copied().collect(),
        hash_key: identity.hash_key,
        chunks_in_use: HashSet::new(),
        nodes_in_use: HashSet::new(),
        nodes: HashSet::new(),
        expiring: 0,
        expiries: 0,
        dictionary_uses: BTreeMap::new(),
        dictionaries: HashSet::new(),
        progress,
        seen: 0,
    };
    for contents in &state.contents {
        let generation = contents.generation;
        checker.contents.insert(generation, Contents { generation, ..Contents::default() });
    }
    if leftover.lost > 0 {
        checker
            .report
            .fault(format!("{} records of the journal are damaged: their changes are lost", leftover.lost));
    }
    if let Some(number) = leftover.unknown_change {
        let what = format!("the journal has a change of kind {number}, which this program does not know");
        checker.report.fault(what);
    }
    match lookup::load_mark(&view) {
        Ok(Ok(Some(LoadMark { source, is_done: false, .. }))) => {
            checker.report.fault(format!("the load of {source} did not end: the store has a part of it"));
        }
        Ok(Ok(_)) => {}
        Ok(Err(Damaged)) => checker.report.fault("the mark of a load is damaged".to_owned()),
        Err(error) => checker.report.fault(error.to_string()),
    }
    checker.pages(&view);
    checker.nodes();
    checker.expiries();
    checker.dictionaries(&state);
    for recorded in &state.contents {
        let counted = checker.contents[&recorded.generation];
        if counted != *recorded {
            checker.report.fault(format!(
                "the accounting of generation {} says {} keys ({} expiring, {} bytes), and there are {} ({}, {})",
                recorded.generation,
                recorded.keys,
                recorded.volatile_keys,
                recorded.bytes,
                counted.keys,
                counted.volatile_keys,
                counted.bytes
            ));
        }
    }
    let usage = view.usage().unwrap_or_default();
    Ok(CheckReport {
        journaled_changes: leftover.items.len() as u64,
        is_journal_cut: leftover.is_cut,
        used_bytes: usage.used,
        file_bytes: usage.file,
        ..checker.report
    })
}

/// Reads a file to its end with plain reads, so that an unreadable sector is an error: in a memory map it
/// would end the process.
fn read_through(path: &Path) -> io::Result<()> {
    let mut file = fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Walks all pages of a store whose rows cannot be read.
fn pages(view: &View<'_>, report: &mut CheckReport) {
    let mut audit = Audit::new(view);
    let mut visitor = PageFaults(report);
    audit.walk(&view.meta().main, &mut visitor);
    audit.walk_free_pages(&mut visitor);
    for table in Table::ALL {
        match view.table(table.name()) {
            Ok(tree) => audit.walk(&tree, &mut visitor),
            Err(damage) => visitor.damage(damage),
        }
    }
}

struct PageFaults<'r>(&'r mut CheckReport);

impl Visitor<'_> for PageFaults<'_> {
    fn row(&mut self, _: &[u8], _: Value<'_>) {}

    fn damage(&mut self, damage: PageDamage) {
        self.0.fault(damage.to_string());
    }
}

/// Visitor of the rows of a table.
struct Rows<'c, 'a, P> {
    checker: &'c mut Checker<P>,
    view: &'c View<'a>,
    table: Table,
}

impl<'a, P: FnMut(u64)> Visitor<'a> for Rows<'_, 'a, P> {
    fn row(&mut self, key: &'a [u8], value: Value<'a>) {
        let Value::Inline(bytes) = value else { return };
        match self.table {
            Table::Meta => {}
            Table::Entries => self.checker.entry(self.view, key, bytes),
            Table::Chunks => self.checker.chunk(key),
            Table::Expiries => self.checker.expiries += 1,
            Table::Dictionaries => self.checker.dictionary(key, bytes),
        }
    }

    fn damage(&mut self, damage: PageDamage) {
        self.checker.report.fault(damage.to_string());
    }
}

struct Checker<P> {
    report: CheckReport,
    contents: BTreeMap<Generation, Contents>,
    dead: HashSet<Generation>,
    hash_key: HashKey,
    chunks_in_use: HashSet<u64>,
    /// Nodes that directories name, and nodes that exist.
    nodes_in_use: HashSet<NodeKey>,
    nodes: HashSet<NodeKey>,
    /// Rows with an expiry, dead generations included, and rows of the table of expiries.
    expiring: u64,
    expiries: u64,
    dictionary_uses: BTreeMap<u32, u64>,
    /// Numbers of the dictionaries that are whole.
    dictionaries: HashSet<u32>,
    progress: P,
    seen: u64,
}

impl<P: FnMut(u64)> Checker<P> {
    /// Walks all pages, and checks every row on the way.
    fn pages(&mut self, view: &View<'_>) {
        let mut audit = Audit::new(view);
        audit.walk(&view.meta().main, &mut PageFaults(&mut self.report));
        audit.walk_free_pages(&mut PageFaults(&mut self.report));
        for table in Table::ALL {
            match view.table(table.name()) {
                Ok(tree) => audit.walk(&tree, &mut Rows { checker: self, view, table }),
                Err(damage) => self.report.fault(damage.to_string()),
            }
        }
        self.report.lost_pages = audit.lost_pages();
    }

    fn entry(&mut self, reader: &impl Read, key: &[u8], bytes: &[u8]) {
        self.seen += 1;
        (self.progress)(self.seen);
        if let Err(error) = self.row(reader, key, bytes) {
            self.report.fault(error.to_string());
        }
    }

    fn row(&mut self, reader: &impl Read, key: &[u8], bytes: &[u8]) -> Result<(), EngineError> {
        let Ok(row_key) = RowKey::parse(key) else {
            self.report.fault(format!("a row has the key {}, which is none", key.escape_ascii()));
            return Ok(());
        };
        let name = format!("generation {} hash {:016x}", row_key.generation(), row_key.hash());
        let Ok(row) = Row::parse(row_key, bytes) else {
            self.report.fault(format!("the row of {name} is damaged"));
            return Ok(());
        };
        let mut len = bytes.len() as u64;
        let mut long_key = None;
        let directory = match &row.body {
            Body::Inline(record) => row.directory(record),
            Body::Chunked(chunks) => {
                self.chunks_in_use.insert(chunks.id);
                len += chunks.len;
                let joined = lookup::pieces(reader, chunks)?.map(|pieces| pieces.concat());
                joined.map_err(Misread::from).and_then(|joined| {
                    let (key, record) = row::verify_chunked(&row, chunks, &joined)?;
                    long_key = key.map(<[u8]>::to_vec);
                    row.directory(record)
                })
            }
        };
        match directory {
            Ok(directory) => {
                self.nodes_in_use.extend(directory.as_ref().map(Directory::node_keys).unwrap_or_default());
            }
            Err(Misread::UnknownKind(unknown)) => self.report.fault(format!("{name} has {unknown}")),
            Err(Misread::Damaged) => {
                self.report.fault(format!("the record of {name} is damaged"));
                return Ok(());
            }
        }
        let key = row.key.or(long_key.as_deref()).unwrap_or_default();
        if hash(self.hash_key, key) != row_key.hash() {
            self.report.fault(format!("the row of {name} is in the place of another key"));
        }
        row.dictionary.inspect(|&number| *self.dictionary_uses.entry(number).or_default() += 1);
        if let Some(at) = row.expiry {
            self.expiring += 1;
            if reader.get(Table::Expiries, &row_key.expiry_key(at))?.is_none() {
                self.report.fault(format!("{name} expires, and no expiry says so"));
            }
        }
        if row_key.generation() == NODES {
            match NodeKey::parse(key) {
                Some(node) => drop(self.nodes.insert(node)),
                None => self.report.fault(format!("{name} is no node of a list")),
            }
        } else if self.dead.contains(&row_key.generation()) {
            self.report.flushed_rows += 1;
        } else if let Some(contents) = self.contents.get_mut(&row_key.generation()) {
            contents.keys += 1;
            contents.volatile_keys += u64::from(row.expiry.is_some());
            contents.bytes += len;
            self.report.keys += 1;
            self.report.volatile_keys += u64::from(row.expiry.is_some());
            self.report.bytes += len;
        } else {
            self.report.fault(format!("{name} belongs to no database"));
        }
        Ok(())
    }

    /// Compares nodes with directories: a missing node is a fault of its list, one that no list has is lost
    /// space.
    fn nodes(&mut self) {
        let missing = self.nodes_in_use.difference(&self.nodes).count();
        if missing > 0 {
            self.report.fault(format!("{missing} nodes of lists are missing"));
        }
        self.report.orphaned_nodes = self.nodes.difference(&self.nodes_in_use).count() as u64;
    }

    fn chunk(&mut self, key: &[u8]) {
        let is_used = row::chunk_id(key).is_some_and(|id| self.chunks_in_use.contains(&id));
        self.report.orphaned_chunks += u64::from(!is_used);
    }

    fn dictionary(&mut self, key: &[u8], bytes: &[u8]) {
        let row = dictionary::parse_key(key).and_then(|number| DictionaryRow::parse(number, bytes));
        match row.map(|row| (row.number, Dictionary::load(row.content))) {
            // A build without zstd can only tell that the row is whole.
            Ok((number, Ok(_) | Err(LoadError::NotBuiltIn))) => drop(self.dictionaries.insert(number)),
            _ => self.report.fault(format!("the dictionary {} is damaged", key.escape_ascii())),
        }
    }

    fn dictionaries(&mut self, state: &State) {
        for (number, rows) in &self.dictionary_uses {
            if !self.dictionaries.contains(number) {
                self.report.fault(format!("{rows} values need the dictionary {number}, which is not there"));
            }
            let recorded = state.dictionary_uses.get(number).copied().unwrap_or_default();
            if recorded < *rows {
                self.report.fault(format!(
                    "{rows} values need the dictionary {number}, and {recorded} are recorded"
                ));
            }
        }
    }

    fn expiries(&mut self) {
        let (recorded, expiring) = (self.expiries, self.expiring);
        if recorded != expiring {
            self.report.fault(format!("{recorded} expiries are recorded, and {expiring} keys expire"));
        }
    }
}

/// Refuses a store with damaged pages, which might crash the engine.
pub(super) fn refuse_damage(path: &Path) -> Result<(), OpenError> {
    let store = files::open_offline(path)?;
    let mut report = CheckReport::default();
    if let Some(damage) = &store.damage {
        report.fault(damage.to_string());
    }
    pages(&store.view(), &mut report);
    match report.faults.into_iter().next() {
        Some(detail) => Err(OpenError::Damaged { path: path.to_owned(), detail }),
        None => Ok(()),
    }
}
