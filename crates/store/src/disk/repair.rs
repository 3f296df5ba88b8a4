//! Making a new store of what can be read of a damaged one.

use std::collections::HashSet;
use std::fmt::{self, Display};
use std::path::Path;

use snugly_codec::{Dictionary, LoadError, Record};

use super::check::check;
use super::dictionary::{self, DictionaryRow};
use super::engine::{EngineError, Table};
use super::files::{self, Offline, OpenError};
use super::leftover::leftover;
use super::lookup::{self, Match};
use super::pages::PageDamage;
use super::pages::audit::{Audit, Visitor};
use super::pages::page::Value;
use super::pages::tree::View;
use super::queue::{Change, Item};
use super::row::{self, Body, Damaged, Generation, NODES, Row, RowKey};
use super::state::{Identity, State};
use super::{Disk, Storage};
use crate::hash::{HashKey, hash};
use crate::memory::entry::{Access, Entry};
use crate::quicklist::stored::{Directory, NodeKey};
use crate::store::system_time;

/// What became of a damaged store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// Keys that are in the new store.
    pub keys: u64,
    /// Keys that the damaged store says it had, before what its journal adds.
    pub recorded_keys: u64,
    /// Changes of the journal that were taken over.
    pub journaled_changes: u64,
    /// What was lost, one line each, the first ones only.
    pub losses: Vec<String>,
    /// How many losses there are: pages, rows and lists.
    pub loss_count: u64,
}

/// How many losses are told one by one.
const LOSSES_TOLD: usize = 100;

impl RepairReport {
    fn lost(&mut self, what: String) {
        self.loss_count += 1;
        if self.losses.len() < LOSSES_TOLD {
            self.losses.push(what);
        }
    }
}

/// Makes a new store in the folder `target` of what can be read of the one in `source`, which stays as it is. `progress` is
/// told the number of rows that were looked at.
///
/// # Errors
/// [`OpenError`] if nothing can be read, because both states that the store says of itself are damaged; or the new store
/// cannot be made or written. What is in `target` is then of no use.
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
    };
    repair.begin(&state);
    repair.walk();
    let mut report = repair.report;
    if leftover.lost > 0 {
        report.lost(format!("{} records of the journal are damaged", leftover.lost));
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

/// What the store says of itself, as of the last commit of which that can be read.
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
    /// Those of databases; rows of others were flushed.
    generations: HashSet<Generation>,
    /// The numbers of those that are whole.
    dictionaries: HashSet<u32>,
    report: RepairReport,
    progress: P,
    seen: u64,
}

/// Why a row is not in the new store.
enum Loss {
    /// A checksum does not match, or something is missing.
    Damaged,
    Page(String),
    /// It needs a dictionary that is damaged or missing.
    Dictionary(u32),
    /// A node of a list is damaged or missing.
    Node,
}

impl From<Damaged> for Loss {
    fn from(_: Damaged) -> Loss {
        Loss::Damaged
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
        }
    }
}

impl<P: FnMut(u64)> Repair<'_, '_, P> {
    /// What holds for all rows: which database has which generation, and the dictionaries.
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

    /// Hands a change to the new store, as fast as that takes them.
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
        // Nodes come with their lists.
        if !self.generations.contains(&row_key.generation()) {
            return;
        }
        match Row::parse(row_key, bytes) {
            Err(Damaged) => self.report.lost(format!("the row with the hash {:016x}", row_key.hash())),
            Ok(row) => {
                let name = row.key.map(|key| key.escape_ascii().to_string());
                if let Err(loss) = self.keep(row_key, &row) {
                    let name = name.unwrap_or_else(|| format!("with the hash {:016x}", row_key.hash()));
                    self.report.lost(format!("the key {name}: {loss}"));
                }
            }
        }
    }

    /// Hands a row on, and if it is a list's, all its nodes with it.
    fn keep(&self, row_key: RowKey, row: &Row<'_>) -> Result<(), Loss> {
        let (key, record) = self.content(row)?;
        let access = Access::written(system_time());
        let change = |generation, entry, expiry| {
            Item::Change(Change { generation, entry, expiry, in_group: true, _holds: None })
        };
        if !row.is_list {
            let entry = Entry::of_pieces(&key, &[&record], row.expiry, access, row.is_packed);
            self.push(change(row_key.generation(), entry.ok_or(Loss::Damaged)?, row.expiry));
            return Ok(());
        }
        let directory = Directory::of_record(&record).ok_or(Loss::Damaged)?;
        let mut items = Vec::new();
        for node in directory.node_keys() {
            items.push(change(NODES, self.node(node)?, None));
        }
        let record = Record::parse(&record).map_err(|_| Loss::Damaged)?;
        let entry = Entry::directory(&key, &record, row.expiry, access);
        items.push(change(row_key.generation(), entry, row.expiry));
        self.disk.queue().wait_until(|| !self.disk.is_behind());
        let _together = self.disk.queue().group();
        items.into_iter().for_each(|item| self.disk.queue().push(item));
        Ok(())
    }

    fn node(&self, node: NodeKey) -> Result<Entry, Loss> {
        let key = node.bytes();
        match lookup::find(self.view, NODES, hash(self.hash_key, &key), &key) {
            Ok(Match::Found(_, row)) => {
                let (key, record) = self.content(&row)?;
                let access = Access::written(system_time());
                Entry::of_pieces(&key, &[&record], None, access, row.is_packed).ok_or(Loss::Node)
            }
            Ok(Match::Damaged(_) | Match::Absent) | Err(_) => Err(Loss::Node),
        }
    }

    /// The key and the record of a row.
    fn content(&self, row: &Row<'_>) -> Result<(Vec<u8>, Vec<u8>), Loss> {
        let (key, record) = match &row.body {
            Body::Inline(record) => (row.key.map(<[u8]>::to_vec), record.to_vec()),
            Body::Chunked(chunks) => {
                let joined = lookup::pieces(self.view, chunks)??.concat();
                let (key, record) = row::verify_chunked(row, chunks, &joined)?;
                (row.key.or(key).map(<[u8]>::to_vec), record.to_vec())
            }
        };
        row::verify_record(&record)?;
        match row.dictionary {
            Some(number) if !self.dictionaries.contains(&number) => Err(Loss::Dictionary(number)),
            _ => Ok((key.ok_or(Loss::Damaged)?, record)),
        }
    }
}

/// The rows of a table, as they are walked.
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
