//! Copies of a store that is in use, and stores that are made of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::random_bytes;
use snugly_store::{
    BackupError, BackupProgress, Choice, Condition, Config, Durability, Element, End, Expiry, MIN_MAX_DISK,
    Session, Storage, Store, check, restore, system_time,
};

const KEYS: u32 = 2_000;

fn storage(path: &Path, durability: Durability) -> Storage {
    Storage { durability, commit_interval: Duration::from_millis(10), ..Storage::new(path) }
}

fn open(storage: Storage) -> Arc<Store> {
    let mut config = Config::new(Choice::new("none", None, 64).expect("it is in every build"));
    config.shards = Some(16);
    Store::open(config, storage).expect("the store opens")
}

fn set(session: &mut Session, key: &str, value: &[u8], expiry: Expiry) {
    session.set(0, key.as_bytes(), value, expiry, Condition::Always).expect("there is room");
}

fn read(session: &mut Session, key: &str) -> Option<Vec<u8>> {
    let value = session.get(0, key.as_bytes()).expect("undamaged")?;
    let mut bytes = Vec::new();
    session.read(&value, &mut bytes).expect("what was written can be read");
    Some(bytes)
}

/// Fills a store with strings of many lengths, of which some expire, and a list.
fn fill(store: &Arc<Store>) {
    let mut session = store.session();
    for number in 0..KEYS {
        let expiry = match number % 3 {
            0 => Expiry::At(system_time() + 3_600_000),
            _ => Expiry::Never,
        };
        let len = number as usize * 7 % 5_000;
        set(&mut session, &format!("key:{number}"), &random_bytes(len, number.into()), expiry);
    }
    let elements: Vec<Vec<u8>> = (0..5_000).map(|number: u32| number.to_string().into_bytes()).collect();
    let elements = elements.iter().map(Vec::as_slice);
    session.list_write(0, b"list", elements.map(Element::of), Expiry::Never).expect("there is room");
}

fn assert_filled(store: &Arc<Store>) {
    let mut session = store.session();
    for number in 0..KEYS {
        let expected = random_bytes(number as usize * 7 % 5_000, number.into());
        assert_eq!(read(&mut session, &format!("key:{number}")), Some(expected), "{number}");
    }
    assert_eq!(session.list_len(0, b"list").expect("undamaged"), 5_000);
    session.list_pop(0, b"list", End::Right, 1, |_, _| {}).expect("undamaged");
    assert_eq!(session.list_len(0, b"list").expect("undamaged"), 4_999);
}

#[test]
fn a_backup_is_a_whole_store_with_every_change_before_it() {
    for durability in [Durability::Fsync, Durability::Batched, Durability::None] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(storage(&folder.path().join("store"), durability));
        fill(&store);
        let (copy, progress) = (folder.path().join("copy"), Arc::default());
        let report = store.backup(&copy, &progress).expect("there is room");
        assert_eq!((report.keys, report.fault_count), (u64::from(KEYS) + 1, 0), "{durability:?}");
        assert!(progress.written() > 0 && progress.written() <= progress.expected());
        set(&mut store.session(), "later", b"value", Expiry::Never);
        store.close().expect("everything can be written");
        assert_eq!(check(&copy, |_| {}).expect("it can be read"), report);
        let copied = open(storage(&copy, durability));
        assert_filled(&copied);
        assert_eq!(read(&mut copied.session(), "later"), None);
    }
}

#[test]
fn a_backup_has_one_moment_while_others_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(storage(&folder.path().join("store"), Durability::Batched));
    let mut session = store.session();
    // Both keys of a pair are always written together.
    let pair = |session: &mut Session, number: u32, turn: u32| {
        let keys = ["a", "b"].map(|half| format!("{half}:{number}"));
        session.exclusively(keys.iter().map(String::as_bytes), |session| {
            keys.iter().for_each(|key| set(session, key, &turn.to_le_bytes().repeat(100), Expiry::Never));
        });
    };
    (0..500).for_each(|number| pair(&mut session, number, 0));
    let is_done = AtomicBool::new(false);
    let copies: Vec<_> = (0..5).map(|number| folder.path().join(number.to_string())).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = store.session();
            for turn in 1.. {
                (0..500).for_each(|number| pair(&mut session, number, turn));
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for copy in &copies {
            store.backup(copy, &Arc::default()).expect("there is room");
        }
        is_done.store(true, Ordering::Relaxed);
    });
    for copy in &copies {
        let copied = open(storage(copy, Durability::Batched));
        let mut session = copied.session();
        let mut turns = BTreeMap::new();
        for number in 0..500 {
            let halves = ["a", "b"].map(|half| read(&mut session, &format!("{half}:{number}")));
            assert!(halves[0].is_some() && halves[0] == halves[1], "{number}");
            *turns.entry(halves[0].clone()).or_insert(0) += 1;
        }
        assert!(turns.len() <= 2, "pairs are written in turns: {turns:?}");
    }
}

#[test]
fn a_restored_store_is_what_was_backed_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(storage(&folder.path().join("store"), Durability::Fsync));
    fill(&store);
    let (copy, restored) = (folder.path().join("copy"), folder.path().join("restored"));
    let report = store.backup(&copy, &Arc::default()).expect("there is room");
    assert_eq!(restore(&copy, &restored, |_| {}).expect("there is room"), report);
    assert_filled(&open(storage(&restored, Durability::Fsync)));
    let again = restore(&copy, &restored, |_| {});
    assert!(matches!(again, Err(BackupError::Exists { .. })), "{again:?}");
    assert_eq!(check(&copy, |_| {}).expect("it can be read"), report, "the backup is as it was");
}

#[test]
fn a_store_that_was_stopped_is_restored_with_its_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, restored) = (folder.path().join("store"), folder.path().join("restored"));
    let store = open(storage(&path, Durability::Fsync));
    fill(&store);
    store.close().expect("everything can be written");
    drop(store);
    restore(&path, &restored, |_| {}).expect("there is room");
    assert_filled(&open(storage(&restored, Durability::Fsync)));
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(storage(&folder.path().join("store"), Durability::Batched));
    fill(&store);
    let (copy, restored) = (folder.path().join("copy"), folder.path().join("restored"));
    store.backup(&copy, &Arc::default()).expect("there is room");
    let data = copy.join("data.mdb");
    let mut bytes = fs::read(&data).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 5_000].fill(0x5a);
    fs::write(&data, bytes).expect("writable");
    let refused = restore(&copy, &restored, |_| {});
    assert!(matches!(refused, Err(BackupError::Faulty { .. })), "{refused:?}");
    assert!(!restored.exists());
}

#[test]
fn nothing_is_left_of_a_backup_that_was_cancelled() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(storage(&folder.path().join("store"), Durability::Batched));
    fill(&store);
    let progress = Arc::<BackupProgress>::default();
    progress.cancel();
    let ended = store.backup(&folder.path().join("copy"), &progress);
    assert!(matches!(ended, Err(BackupError::Cancelled)), "{ended:?}");
    let left: Vec<_> = fs::read_dir(folder.path()).expect("readable").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    store.backup(&folder.path().join("copy"), &Arc::default()).expect("another one can be made");
}

#[test]
fn nothing_is_overwritten_and_one_in_memory_has_no_backup() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(storage(&folder.path().join("store"), Durability::Batched));
    fs::create_dir(folder.path().join("copy")).expect("writable");
    let refused = store.backup(&folder.path().join("copy"), &Arc::default());
    assert!(matches!(refused, Err(BackupError::Exists { .. })), "{refused:?}");
    let memory = Store::new(Config::new(Choice::new("none", None, 64).expect("it is in every build")));
    let refused = memory.backup(&folder.path().join("other"), &Arc::default());
    assert!(matches!(refused, Err(BackupError::InMemory)), "{refused:?}");
}

#[test]
fn writes_go_on_in_a_full_budget_while_backups_are_made_or_give_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let most =
        Storage { max_disk: MIN_MAX_DISK, ..storage(&folder.path().join("store"), Durability::Batched) };
    let store = open(most);
    let mut session = store.session();
    let is_done = AtomicBool::new(false);
    // As much as leaves the reserve free, written over and over.
    let value = random_bytes(1_000, 1);
    let write = |session: &mut Session, number: u32| {
        set(session, &format!("key:{number}"), &value, Expiry::Never);
    };
    (0..6_000).for_each(|number| write(&mut session, number));
    let (mut made, mut outrun) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = store.session();
            while !is_done.load(Ordering::Relaxed) {
                (0..6_000).for_each(|number| write(&mut session, number));
            }
        });
        for number in 0..10 {
            match store.backup(&folder.path().join(number.to_string()), &Arc::default()) {
                Ok(report) => {
                    assert_eq!(report.keys, 6_000);
                    made += 1;
                }
                Err(BackupError::Outrun) => outrun += 1,
                Err(error) => panic!("{error}"),
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(made + outrun, 10);
    let stats = store.disk_stats().expect("there is a disk");
    assert_eq!((stats.failed_commits, stats.evicted), (0, 0));
}
