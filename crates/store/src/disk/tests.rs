use std::fs;
use std::path::Path;

use snugly_codec::{Choice, Record};

use super::*;
use crate::entry::Properties;
use crate::hash::hash;
use crate::{Config, Expiry, Store, StoreError};
use change::{Change, Item};
use engine::Write as _;
use row::RowKey;

#[test]
fn after_a_thread_has_panicked_writes_are_refused_for_good() {
    let folder = tempfile::tempdir().expect("a folder");
    let (disk, _) = Disk::open(Storage::new(folder.path()), 1).expect("the store opens");
    disk.shared.break_down("disk-journal");
    let generations = Item::Generations { generations: Arc::from([0]), all_gone: false, in_group: false };
    disk.queue().push(generations);
    disk.queue().wait_until(|| disk.queue().bytes() == 0);
    let refusal = disk.refusal(Room::Value);
    assert!(
        matches!(&refusal, Some(Refusal::Failing(reason)) if reason.contains("disk-journal")),
        "{refusal:?}"
    );
    assert_eq!(disk.queue().is_committed(u64::MAX - 1), Some(false), "whoever waits is told");
    assert!(disk.close().is_err());
}

#[test]
fn a_dictionary_that_is_missing_though_a_row_needs_it_is_counted_as_damage() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Disk::open(Storage::new(folder.path()), 1).expect("the store opens").0;
    let disk = open();
    // Codec 3, dictionary 7, of one byte.
    let record = Record::parse(&[3, 7, 1, 0]).expect("a record");
    let entry = Entry::new(b"key", &record, Properties::plain(Access::written(0)));
    let change = Change { generation: 0, entry, expiry: None, in_group: false, _holds: None };
    disk.queue().push(Item::Change(change));
    disk.close().expect("it can be written");
    assert_eq!(disk.dictionary_uses().expect("it can be read"), BTreeMap::from([(7, 1)]));
    drop(disk);
    let disk = open();
    assert_eq!(disk.stats().damaged, 0);
    assert!(disk.dictionaries().expect("the rest can be read").rows.is_empty());
    assert_eq!(disk.stats().damaged, 1);
}

/// A kind that does not exist yet.
const LATER: u8 = 7;

/// Makes a store in which the key `key` has a value of a kind that does not exist yet.
fn store_with_a_later_kind(folder: &Path) {
    let (disk, generations) = Disk::open(Storage::new(folder), 1).expect("the store opens");
    let row_key = RowKey::new(generations[0], hash(disk.hash_key(), b"key"), 0);
    let entry = Entry::new(b"key", &Record::identity(b"value"), Properties::plain(Access::written(0)));
    let mut row = Vec::new();
    row::Layout::of_entry(entry.borrow()).encode(row_key, None, 0, &mut row);
    // Behind the checksum.
    row[8] = LATER;
    let row = row::with_checksum(row_key, &row[8..]);
    let mut state = State::new(1);
    state.contents[0].keys = 1;
    state.contents[0].bytes = row.len() as u64;
    let mut transaction = disk.shared.engine.write(row.len() as u64).expect("there is room");
    transaction.put(Table::Entries, &row_key.0, &row).expect("there is room");
    transaction.put(Table::Meta, state::STATE_KEY, &state.encode()).expect("there is room");
    transaction.commit().expect("there is room");
}

#[test]
fn a_value_of_a_later_kind_is_an_error_that_says_so_until_it_is_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    store_with_a_later_kind(folder.path());
    let report = check(folder.path(), |_| {}).expect("it can be read");
    assert_eq!((report.fault_count, report.keys), (1, 1));
    assert!(report.faults[0].contains("of kind 7, which this program does not know"), "{:?}", report.faults);

    let config = Config::new(Choice::new("none", None, 256).expect("it is always there"));
    let store = Store::open(config, Storage::new(folder.path())).expect("the rest can be used");
    let mut session = store.session();
    let error = session.get(0, b"key").err().expect("nobody knows what it is");
    assert!(matches!(error, StoreError::UnknownKind { kind: LATER, .. }));
    assert!(error.to_string().contains("of kind 7, which this program does not know"));
    assert_eq!(store.disk_stats().map(|disk| disk.damaged), Some(0), "it is no damage");
    assert!(
        session.set(0, b"other", b"value", Expiry::Never, crate::Condition::Always).expect("there is room")
    );
    let mut keys = Vec::new();
    session.scan(0, 0, 10, |key| keys.push(key.to_vec())).expect("it is there");
    keys.sort_unstable();
    assert_eq!(keys, [b"key".to_vec(), b"other".to_vec()]);
    assert!(session.delete(0, b"key").expect("it can go"));
    assert!(session.get(0, b"key").expect("it is gone").is_none());
    store.close().expect("it can be written");
    drop((session, store));
    let report = check(folder.path(), |_| {}).expect("it can be read");
    assert_eq!((report.faults, report.keys), (Vec::new(), 1));
}

#[test]
fn repair_leaves_a_value_of_a_later_kind_out_and_says_so() {
    let (folder, target) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    store_with_a_later_kind(folder.path());
    let report = repair(folder.path(), target.path(), |_| {}).expect("the rest can be read");
    assert_eq!((report.keys, report.loss_count), (0, 1));
    assert!(report.losses[0].contains("of kind 7, which this program does not know"), "{:?}", report.losses);
}

#[test]
fn a_store_whose_journal_has_a_change_of_a_later_kind_is_refused_as_it_is() {
    const LATER_CHANGE: u8 = 16;
    let folder = tempfile::tempdir().expect("a folder");
    let storage = Storage { durability: Durability::Fsync, ..Storage::new(folder.path()) };
    let (disk, _) = Disk::open(storage.clone(), 1).expect("the store opens");
    let path = &journal::paths(folder.path())[0];
    let mut bytes = fs::read(path).expect("it is there");
    let record = journal::record(disk.hash_key(), 1, &[LATER_CHANGE, 0, 0]);
    bytes[..record.len()].copy_from_slice(&record);
    drop(disk);
    fs::write(path, &bytes).expect("there is room");
    let error = Disk::open(storage, 1).err().expect("it has what this program does not know");
    assert!(matches!(error, OpenError::UnknownChange { found: LATER_CHANGE, .. }), "{error}");
    assert_eq!(fs::read(path).expect("it is there"), bytes);
    let report = check(folder.path(), |_| {}).expect("it can be read");
    assert!(report.faults[0].contains("a change of kind 16"), "{:?}", report.faults);
}
