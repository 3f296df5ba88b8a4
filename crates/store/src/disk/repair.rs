//! Repair: a new store from the readable part of a damaged one.

use std::collections::HashSet;
use std::fmt::{self, Display};
use std::fs;
use std::path::Path;

use snugly_codec::{Dictionary, LoadError};

use super::change::{Change, Item};
use super::check::check;
use super::dictionary::{self, DictionaryRow};
use super::engine::{EngineError, Table};
use super::files::{self, DATA_FILE, Offline, OpenError};
use super::leftover::leftover;
use super::lookup::{self, Match};
use super::pages::PageDamage;
use super::pages::audit::{Audit, Visitor};
use super::pages::page::Value;
use super::pages::tree::View;
use super::private;
use super::row::{self, Body, Damaged, Generation, Misread, NODES, Row, RowKey};
use super::state::{Identity, State};
use super::{Disk, Storage};
use crate::clock::system_time;
use crate::entry::{Access, Entry};
use crate::hash::{HashKey, hash};
use crate::values::collection::{Directory, NodeKey};
use crate::values::kind::UnknownKind;

/// Result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// Keys in the new store.
    pub keys: u64,
    /// Keys that the damaged store recorded, before the changes of its journal.
    pub recorded_keys: u64,
    /// Changes of the journal that were applied.
    pub journaled_changes: u64,
    /// Descriptions of the first losses, one line each.
    pub losses: Vec<String>,
    /// Number of all losses: pages, rows and lists.
    pub loss_count: u64,
}

/// Most losses that are described.
const LOSSES_TOLD: usize = 100;

impl RepairReport {
    fn lost(&mut self, what: String) {
        self.loss_count += 1;
        if self.losses.len() < LOSSES_TOLD {
            self.losses.push(what);
        }
    }
}

/// Makes a new store in the folder `target` of what can be read of the one in `source`, which is not changed.
/// A missing folder is created for the owner of `source`. `progress` receives the number of rows read.
///
/// # Errors
/// [`OpenError`] if nothing can be read, because both of the store's meta pages or states are damaged; or the
/// new store cannot be created or written. The contents of `target` are then useless.
pub fn repair(source: &Path, target: &Path, progress: impl FnMut(u64)) -> Result<RepairReport, OpenError> {
    let store = files::open_offline(source)?;
    let view = store.view();
    let (identity, state, applied) = described(source, &store)?;
    let leftover =
        leftover(source, identity.hash_key, applied).map_err(|reason| files::failed(source, reason))?;
    let mut report = RepairReport {
        recorded_keys: state.contents.iter().map(|contents| contents.keys).sum(),
        ..RepairReport::default()
    };
    store.damage.iter().for_each(|damage| report.lost(format!("{damage}; the commit before is used")));
    files::missing_tables(&view).for_each(|damage| report.lost(damage.to_string()));
    if !target.exists() {
        let made = fs::create_dir_all(target).and_then(|()| private::give(target, &source.join(DATA_FILE)));
        made.map_err(|reason| files::failed(target, reason))?;
    }
    let (disk, _) = Disk::open(Storage::new(target), state.contents.len())?;
    disk.queue().limit(0);
    let mut repair = Repair {
        view: &view,
        disk: &disk,
        hash_key: identity.hash_key,
        generations: state.contents.iter().map(|contents| contents.generation).collect(),
        dictionaries: HashSet::new(),
        report,
        progress,
        seen: 0,
        keys: 0,
    };
    repair.begin(&state);
    repair.walk();
    let unseen = repair.report.recorded_keys.saturating_sub(repair.keys);
    let mut report = repair.report;
    if unseen > 0 && report.loss_count == 0 {
        report.lost(format!("{unseen} of the keys that the store counts: nothing of them was found"));
    }
    if leftover.lost > 0 {
        report.lost(format!("{} records of the journal are damaged", leftover.lost));
    }
    if let Some(number) = leftover.unknown_change {
        report.lost(format!("changes of kind {number} in the journal, which this program does not know"));
    }
    report.journaled_changes = leftover.items.len() as u64;
    let changes = disk.queue().group();
    leftover.items.into_iter().for_each(|item| disk.queue().push(item));
    drop(changes);
    let closed = disk.close();
    drop(disk);
    closed.map_err(|error| OpenError::Engine { path: target.to_owned(), reason: error.to_string() })?;
    report.keys = check(target, |_| {})?.keys;
    Ok(report)
}

/// Reads the store's identity and state, as of the last commit of which they can be read.
fn described(source: &Path, store: &Offline) -> Result<(Identity, State, u64), OpenError> {
    let mut failure = None;
    for meta in &store.metas {
        match files::described(source, &View::of(&store.pages, *meta)) {
            Ok(described) => return Ok(described),
            Err(error) => drop(failure.get_or_insert(error)),
        }
    }
    let path = source.to_owned();
    Err(failure.unwrap_or(OpenError::Damaged { path, detail: "it says nothing of itself".to_owned() }))
}

struct Repair<'r, 'a, P> {
    view: &'r View<'a>,
    disk: &'r Disk,
    hash_key: HashKey,
    /// Generations of databases; rows of others were flushed.
    generations: HashSet<Generation>,
    /// Numbers of the dictionaries that are whole.
    dictionaries: HashSet<u32>,
    report: RepairReport,
    progress: P,
    seen: u64,
    /// Number of rows of databases that are whole themselves.
    keys: u64,
}

/// Reason why a row is not in the new store.
enum Loss {
    /// A checksum does not match, or something is missing.
    Damaged,
    Page(String),
    /// A dictionary that it needs is damaged or missing.
    Dictionary(u32),
    /// A node of a list is damaged or missing.
    Node,
    UnknownKind(UnknownKind),
}

impl From<Damaged> for Loss {
    fn from(_: Damaged) -> Loss {
        Loss::Damaged
    }
}

impl From<UnknownKind> for Loss {
    fn from(unknown: UnknownKind) -> Loss {
        Loss::UnknownKind(unknown)
    }
}

impl From<Misread> for Loss {
    fn from(misread: Misread) -> Loss {
        match misread {
            Misread::Damaged => Loss::Damaged,
            Misread::UnknownKind(unknown) => unknown.into(),
        }
    }
}

impl From<EngineError> for Loss {
    fn from(error: EngineError) -> Loss {
        match error {
            EngineError::Damaged(damage) => Loss::Page(damage.to_string()),
            other => Loss::Page(other.to_string()),
        }
    }
}

impl Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Damaged => f.write_str("its checksum does not match, or a part of it is missing"),
            Loss::Page(damage) => f.write_str(damage),
            Loss::Dictionary(number) => write!(f, "the dictionary {number}, which it needs, is damaged"),
            Loss::Node => f.write_str("some of its elements are damaged"),
            Loss::UnknownKind(unknown) => write!(f, "it has {unknown}"),
        }
    }
}

impl<P: FnMut(u64)> Repair<'_, '_, P> {
    /// Writes what holds for all rows: the databases' generations, and the dictionaries.
    fn begin(&mut self, state: &State) {
        let generations = state.contents.iter().map(|contents| contents.generation).collect();
        self.push(Item::Generations { generations, all_gone: false, in_group: false });
        self.walk_table(Table::Dictionaries);
        let active = state.active_dictionaries.iter().copied();
        let active = active.filter(|number| self.dictionaries.contains(number)).collect();
        self.push(Item::ActiveDictionaries(active));
    }

    fn walk(&mut self) {
        self.walk_table(Table::Entries);
    }

    fn walk_table(&mut self, table: Table) {
        let view = self.view;
        match view.table(table.name()) {
            Ok(tree) => Audit::new(view).walk(&tree, &mut Rows { repair: self, table }),
            Err(damage) => self.report.lost(format!("the table of {}: {damage}", table.name())),
        }
    }

    /// Pushes a change to the new store, as fast as that takes them.
    fn push(&self, item: Item) {
        let queue = self.disk.queue();
        queue.wait_until(|| !self.disk.is_behind());
        queue.push(item);
    }

    fn dictionary(&mut self, key: &[u8], bytes: &[u8]) {
        let row = dictionary::parse_key(key).and_then(|number| DictionaryRow::parse(number, bytes));
        match row.map(|row| (row.number, Dictionary::load(row.content))) {
            Ok((number, Ok(_) | Err(LoadError::NotBuiltIn))) => {
                self.dictionaries.insert(number);
                self.push(Item::Dictionary { number, row: Some(bytes.into()) });
            }
            _ => self.report.lost(format!("the dictionary {}", key.escape_ascii())),
        }
    }

    fn entry(&mut self, key: &[u8], bytes: &[u8]) {
        self.seen += 1;
        (self.progress)(self.seen);
        let Ok(row_key) = RowKey::parse(key) else {
            self.report.lost(format!("a row with the key {}, which is none", key.escape_ascii()));
            return;
        };
        match Row::parse(row_key, bytes) {
            // Also for a row that seems to be of no database, since its key can be what is damaged.
            Err(Damaged) => self.report.lost(format!("the row with the hash {:016x}", row_key.hash())),
            // Nodes come with their lists; other rows were flushed.
            Ok(_) if !self.generations.contains(&row_key.generation()) => {}
            Ok(row) => {
                self.keys += 1;
                let name = row.key.map(|key| key.escape_ascii().to_string());
                if let Err(loss) = self.keep(row_key, &row) {
                    let name = name.unwrap_or_else(|| format!("with the hash {:016x}", row_key.hash()));
                    self.report.lost(format!("the key {name}: {loss}"));
                }
            }
        }
    }

    /// Copies a row, and if it is a collection's, all its nodes with it.
    fn keep(&self, row_key: RowKey, row: &Row<'_>) -> Result<(), Loss> {
        let Content { entry, directory } = self.content(row)?;
        let change = |generation, entry, expiry| {
            Item::Change(Change { generation, entry, expiry, in_group: true, _holds: None })
        };
        let Some(directory) = directory else {
            self.push(change(row_key.generation(), entry, row.expiry));
            return Ok(());
        };
        let mut items = Vec::new();
        for node in directory.node_keys() {
            items.push(change(NODES, self.node(node)?, None));
        }
        items.push(change(row_key.generation(), entry, row.expiry));
        self.disk.queue().wait_until(|| !self.disk.is_behind());
        let _together = self.disk.queue().group();
        items.into_iter().for_each(|item| self.disk.queue().push(item));
        Ok(())
    }

    fn node(&self, node: NodeKey) -> Result<Entry, Loss> {
        let key = node.bytes();
        match lookup::find(self.view, NODES, hash(self.hash_key, &key), &key) {
            Ok(Match::Found(_, row)) => Ok(self.content(&row)?.entry),
            Ok(Match::Damaged(_) | Match::Absent) | Err(_) => Err(Loss::Node),
        }
    }

    fn content(&self, row: &Row<'_>) -> Result<Content, Loss> {
        let (key, record) = match &row.body {
            Body::Inline(record) => (row.key.map(<[u8]>::to_vec), record.to_vec()),
            Body::Chunked(chunks) => {
                let joined = lookup::pieces(self.view, chunks)??.concat();
                let (key, record) = row::verify_chunked(row, chunks, &joined)?;
                (row.key.or(key).map(<[u8]>::to_vec), record.to_vec())
            }
        };
        let (key, directory) = (key.ok_or(Damaged)?, row.directory(&record)?);
        if let Some(number) = row.dictionary.filter(|number| !self.dictionaries.contains(number)) {
            return Err(Loss::Dictionary(number));
        }
        let properties = row.properties(Access::written(system_time()));
        let entry = Entry::of_pieces(row.kind?, &key, &[&record], properties, row.stage);
        Ok(Content { entry: entry.ok_or(Damaged)?, directory })
    }
}

/// Contents of a row.
struct Content {
    /// Entry, as it is written to disk.
    entry: Entry,
    /// Directory, if it is a collection's.
    directory: Option<Directory>,
}

/// Visitor of the rows of a table.
struct Rows<'p, 'r, 'a, P> {
    repair: &'p mut Repair<'r, 'a, P>,
    table: Table,
}

impl<'a, P: FnMut(u64)> Visitor<'a> for Rows<'_, '_, 'a, P> {
    fn row(&mut self, key: &'a [u8], value: Value<'a>) {
        let Value::Inline(bytes) = value else { return };
        match self.table {
            Table::Entries => self.repair.entry(key, bytes),
            Table::Dictionaries => self.repair.dictionary(key, bytes),
            // These follow from entries.
            Table::Meta | Table::Chunks | Table::Expiries => {}
        }
    }

    fn damage(&mut self, damage: PageDamage) {
        self.repair.report.lost(damage.to_string());
    }
}
