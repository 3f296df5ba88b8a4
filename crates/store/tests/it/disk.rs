//! Persistence of the disk tier through restarts, with memory for all of it or for almost nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::random_bytes;
use proptest::prelude::*;
use snugly_store::{
    Choice, Condition, Config, Durability, EvictionPolicy, ExpireConditions, Expiry, ManyCondition,
    OpenError, Session, Storage, Store, StoreError, check, compact, system_time,
};

const CODEC: &str = if cfg!(feature = "lz4") { "lz4" } else { "none" };
/// Time that background work may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn config(max_memory: u64) -> Config {
    let mut config = Config::new(Choice::new(CODEC, None, 64).expect("the codec is in this build"));
    config.settings.max_memory = max_memory;
    config.shards = Some(16);
    config
}

fn storage(path: &Path) -> Storage {
    Storage { durability: Durability::None, commit_interval: Duration::from_millis(10), ..Storage::new(path) }
}

fn open(path: &Path, max_memory: u64) -> Arc<Store> {
    Store::open(config(max_memory), storage(path)).expect("the store opens")
}

fn reopen(store: Arc<Store>, path: &Path, max_memory: u64) -> Arc<Store> {
    close(store);
    open(path, max_memory)
}

fn close(store: Arc<Store>) {
    store.close().expect("everything can be written");
    assert_eq!(Arc::strong_count(&store), 1, "no session is left");
}

fn set(session: &mut Session, key: &[u8], value: &[u8]) {
    session.set(0, key, value, Expiry::Never, Condition::Always).expect("there is room");
}

fn read(session: &mut Session, key: &[u8]) -> Option<Vec<u8>> {
    let value = session.get(0, key).expect("undamaged")?;
    let mut bytes = Vec::new();
    session.read(&value, &mut bytes).expect("what was written can be read");
    Some(bytes)
}

fn keys(session: &mut Session, database: usize) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut cursor = 0;
    loop {
        cursor = session.scan(database, cursor, 7, |key| keys.push(key.to_vec())).expect("readable");
        if cursor == 0 {
            break;
        }
    }
    keys.sort();
    let shown = keys.len();
    keys.dedup();
    assert_eq!(keys.len(), shown, "a key was shown twice although nothing changed");
    keys
}

/// Waits until this is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn verify(path: &Path) -> snugly_store::CheckReport {
    let report = check(path, |_| {}).expect("the store can be checked");
    assert_eq!(report.faults, Vec::<String>::new());
    report
}

/// Lengths around every limit of the format: inline, one chunk, several, and long keys.
fn values() -> Vec<(Vec<u8>, Vec<u8>)> {
    let lengths = [0, 1, 100, 1_900, 1_990, 2_100, 4_079, 4_080, 4_081, 8_160, 50_000, 1_000_000];
    let by_length =
        lengths.iter().map(|&len| (format!("key:{len}").into_bytes(), random_bytes(len, len as u64)));
    let long_keys = [511, 512, 513, 5_000, 60_000].map(|len| (random_bytes(len, 7), b"value".repeat(len)));
    by_length.chain(long_keys).chain([(b"".to_vec(), b"<p>text</p>".repeat(300))]).collect()
}

#[test]
fn values_of_all_lengths_come_back_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 0);
    let mut session = store.session();
    for (key, value) in values() {
        set(&mut session, &key, &value);
    }
    drop(session);
    let store = reopen(store, folder.path(), 0);
    let mut session = store.session();
    assert_eq!(store.database_stats(0).expect("readable").keys, values().len());
    for (key, value) in values() {
        assert_eq!(read(&mut session, &key), Some(value), "{} bytes of key", key.len());
    }
    drop(session);
    close(store);
    assert_eq!(verify(folder.path()).keys, values().len() as u64);
}

#[test]
fn overwriting_and_deleting_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 0);
    let mut session = store.session();
    for round in 0..3u64 {
        for number in 0..50u32 {
            let len = (number as usize * 397 + round as usize * 1_000) % 9_000;
            set(&mut session, &number.to_be_bytes(), &random_bytes(len, round));
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    for number in 0..50u32 {
        assert!(session.delete(0, &number.to_be_bytes()).expect("readable"));
        assert!(!session.delete(0, &number.to_be_bytes()).expect("readable"));
    }
    drop(session);
    let store = reopen(store, folder.path(), 0);
    assert_eq!(store.database_stats(0).expect("readable").keys, 0);
    close(store);
    let report = verify(folder.path());
    assert_eq!((report.keys, report.bytes, report.orphaned_chunks), (0, 0, 0));
}

#[test]
fn expiry_is_by_the_wall_clock_through_restarts() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 0);
    let mut session = store.session();
    let now = system_time();
    let (soon, late) = (now + 200, now + 3_600_000);
    let mut set = |key: &[u8], at| {
        session.set(0, key, b"value", Expiry::At(at), Condition::Always).expect("there is room");
    };
    set(b"persisted", late);
    set(b"soon", soon);
    set(b"late", late);
    session.expire(0, b"persisted", Expiry::Never, ExpireConditions::default()).expect("readable");
    drop(session);
    close(store);
    std::thread::sleep(Duration::from_millis((soon + 1).saturating_sub(system_time())));
    let store = open(folder.path(), 0);
    let mut session = store.session();
    assert_eq!(read(&mut session, b"soon"), None);
    let kept = session.peek(0, b"late").expect("undamaged").expect("it is not due");
    assert_eq!(kept.expiry(), Some(late));
    assert_eq!(session.peek(0, b"persisted").expect("undamaged").expect("there").expiry(), None);
    drop((session, kept));
    until("what has expired goes in the background", || {
        let stats = store.database_stats(0).expect("readable");
        (stats.keys, stats.volatile_keys) == (2, 1)
    });
    close(store);
    verify(folder.path());
}

#[test]
fn flushed_and_swapped_databases_stay_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 0);
    let mut session = store.session();
    for database in 0..4 {
        for number in 0..100u32 {
            let value = [database as u8; 3_000];
            session
                .set(database, &number.to_be_bytes(), &value, Expiry::Never, Condition::Always)
                .expect("there is room");
        }
    }
    drop(store.flush(Some(1)));
    store.swap(2, 3);
    session.set(1, b"after", b"the flush", Expiry::Never, Condition::Always).expect("there is room");
    drop(session);
    let store = reopen(store, folder.path(), 0);
    let mut session = store.session();
    assert_eq!(keys(&mut session, 1), [b"after"]);
    for (database, content) in [(0, 0), (2, 3), (3, 2)] {
        let value = session.get(database, &5u32.to_be_bytes()).expect("undamaged").expect("there");
        let mut bytes = Vec::new();
        session.read(&value, &mut bytes).expect("readable");
        assert_eq!(bytes, [content; 3_000], "database {database}");
        assert_eq!(store.database_stats(database).expect("readable").keys, 100);
    }
    drop(session);
    let (mut store, deadline) = (store, Instant::now() + PATIENCE);
    loop {
        std::thread::sleep(Duration::from_millis(300));
        close(store);
        let report = verify(folder.path());
        assert_eq!(report.keys, 301);
        if report.flushed_rows == 0 {
            break;
        }
        assert!(Instant::now() < deadline, "what was flushed is removed in the background");
        store = open(folder.path(), 0);
    }
}

#[test]
fn more_than_memory_holds_is_there_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 1 << 20);
    let mut session = store.session();
    for number in 0..5_000u32 {
        set(&mut session, &number.to_be_bytes(), &random_bytes(1_000, number.into()));
    }
    assert_eq!(store.database_stats(0).expect("readable").keys, 5_000);
    assert_eq!(keys(&mut session, 0).len(), 5_000);
    for number in (0..5_000u32).rev() {
        assert_eq!(read(&mut session, &number.to_be_bytes()), Some(random_bytes(1_000, number.into())));
    }
    assert!(store.used_memory() < 3 << 20, "{} bytes are used", store.used_memory());
    assert!(session.random(0).expect("readable").is_some());
    drop(session);
    close(store);
    verify(folder.path());
}

#[test]
fn the_file_stays_inside_its_budget_and_the_policy_decides_who_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let budget = 16 << 20;
    let limited = Storage { max_disk: budget, ..storage(folder.path()) };
    let mut config = config(1 << 20);
    config.settings.eviction = EvictionPolicy::AllKeysLru;
    let store = Store::open(config, limited).expect("the store opens");
    let mut session = store.session();
    for number in 0..40_000u32 {
        set(&mut session, &number.to_be_bytes(), &random_bytes(500 + number as usize % 3_000, number.into()));
    }
    drop(session);
    store.close().expect("everything can be written");
    let stats = store.disk_stats().expect("there is a disk tier");
    assert!(stats.evicted > 10_000, "{stats:?}");
    assert!(stats.used_bytes <= budget && stats.used_bytes > budget / 2, "{stats:?}");
    drop(store);
    let report = verify(folder.path());
    assert!(report.keys > 1_000, "{report:?}");
    assert!(fs::metadata(folder.path().join("data.mdb")).expect("the file").len() <= budget);
}

#[test]
fn a_full_disk_without_a_policy_refuses_writes_and_takes_deletes() {
    let folder = tempfile::tempdir().expect("a folder");
    let limited = Storage { max_disk: 16 << 20, ..storage(folder.path()) };
    let store = Store::open(config(0), limited).expect("the store opens");
    let mut session = store.session();
    let mut written = 0u32;
    let refusal = loop {
        let value = random_bytes(20_000, written.into());
        match session.set(0, &written.to_be_bytes(), &value, Expiry::Never, Condition::Always) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 5_000, "nothing was refused");
    };
    assert!(matches!(refusal, StoreError::DiskFull { max_disk } if max_disk == 16 << 20), "{refusal}");
    for number in 0..written / 2 {
        assert!(session.delete(0, &number.to_be_bytes()).expect("readable"));
    }
    until("there is room again, and it may be written", || {
        session.set(0, b"again", b"room", Expiry::Never, Condition::Always).is_ok()
    });
    drop(session);
    close(store);
    assert_eq!(verify(folder.path()).keys, u64::from(written - written / 2) + 1);
}

#[test]
fn a_flipped_bit_is_an_error_for_its_key_until_that_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 0);
    let mut session = store.session();
    let inline = b"inline:".repeat(20);
    let chunked: Vec<u8> = random_bytes(20_000, 1);
    session.set(0, b"a", &inline, Expiry::Never, Condition::Always).expect("there is room");
    session.set(0, b"b", &chunked, Expiry::Never, Condition::Always).expect("there is room");
    session.set(0, b"c", b"whole", Expiry::Never, Condition::Always).expect("there is room");
    drop(session);
    close(store);
    let path = folder.path().join("data.mdb");
    let mut file = fs::read(&path).expect("the file");
    for part in [&inline[20..60], &chunked[10_000..10_040]] {
        let places: Vec<usize> =
            file.windows(part.len()).enumerate().filter(|(_, w)| *w == part).map(|(at, _)| at).collect();
        assert!(!places.is_empty() || CODEC == "lz4", "the value is in the file");
        places.iter().for_each(|at| file[at + 3] ^= 0x10);
    }
    // Compressed values are found by their key, which is in the row.
    fs::write(&path, &file).expect("the file can be written");
    let store = open(folder.path(), 0);
    let mut session = store.session();
    assert!(matches!(session.get(0, b"b"), Err(StoreError::Damaged { key }) if key == b"b"));
    assert!(matches!(session.get(0, b"b"), Err(StoreError::Damaged { .. })));
    assert_eq!(read(&mut session, b"c"), Some(b"whole".to_vec()));
    assert!(store.disk_stats().expect("a disk tier").damaged >= 2);
    set(&mut session, b"b", b"mended");
    assert_eq!(read(&mut session, b"b"), Some(b"mended".to_vec()));
    drop(session);
    let store = reopen(store, folder.path(), 0);
    let mut session = store.session();
    assert_eq!(read(&mut session, b"b"), Some(b"mended".to_vec()));
    drop(session);
    close(store);
}

#[test]
fn each_unusable_store_is_refused_by_its_own_error_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    close(open(path, 0));
    let data = path.join("data.mdb");
    let whole = fs::read(&data).expect("the file");
    let try_with = |bytes: &[u8]| {
        fs::write(&data, bytes).expect("the file can be written");
        let error = Store::open(config(0), storage(path)).err().expect("it must be refused");
        assert_eq!(fs::read(&data).expect("the file"), bytes, "the file was changed");
        error
    };
    assert!(matches!(try_with(b""), OpenError::Empty { .. }));
    assert!(matches!(try_with(&random_bytes(100_000, 1)), OpenError::Foreign { .. }));
    assert!(matches!(try_with(b"short"), OpenError::Foreign { .. }));
    assert!(matches!(try_with(&whole[..8_192]), OpenError::Truncated { .. }));
    let magic = b"snugly-store";
    let mut newer = whole.clone();
    for at in 0..newer.len() - magic.len() {
        if newer[at..].starts_with(magic) {
            newer[at + magic.len()] = 99;
        }
    }
    let error = try_with(&newer);
    assert!(matches!(error, OpenError::Version { found: 99, known: 5, .. }), "{error}");
    fs::write(&data, &whole).expect("the file can be written");
    let store = open(path, 0);
    assert!(matches!(Store::open(config(0), storage(path)), Err(OpenError::InUse { .. })));
    close(store);

    let other = tempfile::tempdir().expect("a folder");
    fs::write(other.path().join("photo.jpg"), b"x").expect("a file");
    assert!(matches!(Store::open(config(0), storage(other.path())), Err(OpenError::NotAStore { .. })));
    let file = other.path().join("photo.jpg");
    assert!(matches!(Store::open(config(0), storage(&file)), Err(OpenError::NotAFolder { .. })));
}

#[test]
fn compacting_gives_room_back_and_keeps_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 0);
    let mut session = store.session();
    for number in 0..2_000u32 {
        set(&mut session, &number.to_be_bytes(), &random_bytes(5_000, number.into()));
    }
    std::thread::sleep(Duration::from_millis(50));
    for number in 100..2_000u32 {
        session.delete(0, &number.to_be_bytes()).expect("readable");
    }
    drop(session);
    close(store);
    let (before, after) = compact(folder.path(), |_| {}).expect("it can be compacted");
    assert!(after < before / 5, "{before} bytes became {after}");
    assert_eq!(verify(folder.path()).keys, 100);
    let store = open(folder.path(), 0);
    let mut session = store.session();
    assert_eq!(read(&mut session, &7u32.to_be_bytes()), Some(random_bytes(5_000, 7)));
    drop(session);
    close(store);
}

#[test]
fn compacted_pages_are_full_whatever_the_order_of_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 0);
    let mut session = store.session();
    for number in 0..5_000u32 {
        set(&mut session, &number.to_be_bytes(), &random_bytes(350, number.into()));
    }
    drop(session);
    close(store);
    fs::create_dir(folder.path().join("new")).expect("the rest of an interrupted compaction");
    fs::write(folder.path().join("new/data.mdb"), b"x").expect("a file");
    let mut written = 0;
    compact(folder.path(), |bytes| written = bytes).expect("it can be compacted");
    let report = verify(folder.path());
    assert_eq!((report.keys, report.lost_pages), (5_000, 0));
    assert!(written > report.bytes);
    // Ten rows fill a page but for some 4 %, and the engine adds 6 % to a row.
    assert!(report.file_bytes < report.bytes * 115 / 100, "{report:?}");
    let store = open(folder.path(), 0);
    let mut session = store.session();
    for number in 0..5_000u32 {
        assert_eq!(read(&mut session, &number.to_be_bytes()), Some(random_bytes(350, number.into())));
    }
    drop(session);
    close(store);
}

#[derive(Clone, Debug)]
enum Operation {
    Set { key: u8, len: u16, ttl: Option<u32>, condition: u8 },
    SetMany { keys: Vec<u8>, len: u16, condition: u8 },
    Append { key: u8, len: u16 },
    Remove { key: u8 },
    Copy { from: u8, to: u8 },
    Rename { from: u8, to: u8 },
    Expire { key: u8, ttl: i32 },
    Flush,
    Pass,
    Restart,
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = || 0..20u8;
    let len = || prop_oneof![0..100u16, 1_900..2_100u16, 4_000..9_000u16];
    prop_oneof![
        8 => (key(), len(), proptest::option::of(1_000..100_000u32), 0..3u8)
            .prop_map(|(key, len, ttl, condition)| Operation::Set { key, len, ttl, condition }),
        2 => (proptest::collection::vec(key(), 1..5), len(), 0..3u8)
            .prop_map(|(keys, len, condition)| Operation::SetMany { keys, len, condition }),
        2 => (key(), len()).prop_map(|(key, len)| Operation::Append { key, len }),
        4 => key().prop_map(|key| Operation::Remove { key }),
        1 => (key(), key()).prop_map(|(from, to)| Operation::Copy { from, to }),
        2 => (key(), key()).prop_map(|(from, to)| Operation::Rename { from, to }),
        2 => (key(), -1_000..100_000i32).prop_map(|(key, ttl)| Operation::Expire { key, ttl }),
        1 => Just(Operation::Flush),
        3 => Just(Operation::Pass),
        2 => Just(Operation::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_store_with_little_memory_does_what_a_map_does(operations in proptest::collection::vec(operation(), 1..60)) {
        let folder = tempfile::tempdir().expect("a folder");
        // Less than the shards themselves take: whatever may leave memory leaves it.
        let mut store = open(folder.path(), 1);
        let mut session = store.session();
        let mut model: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
        for (step, operation) in operations.iter().enumerate() {
            let value = |len: u16| random_bytes(len.into(), step as u64);
            match operation.clone() {
                Operation::Set { key, len, ttl, condition } => {
                    let (condition, allowed) = match condition {
                        0 => (Condition::Always, true),
                        1 => (Condition::IfAbsent, !model.contains_key(&key)),
                        _ => (Condition::IfPresent, model.contains_key(&key)),
                    };
                    let expiry = ttl.map_or(Expiry::Never, |ttl| Expiry::At(system_time() + 3_600_000 + u64::from(ttl)));
                    let written = session.set(0, &[key], &value(len), expiry, condition).expect("there is room");
                    prop_assert_eq!(written, allowed);
                    if written {
                        model.insert(key, value(len));
                    }
                }
                Operation::SetMany { keys, len, condition } => {
                    let (condition, allowed) = match condition {
                        0 => (ManyCondition::Always, true),
                        1 => (ManyCondition::IfAllAbsent, keys.iter().all(|key| !model.contains_key(key))),
                        _ => (ManyCondition::IfAllPresent, keys.iter().all(|key| model.contains_key(key))),
                    };
                    let value = value(len);
                    let pairs = keys.iter().map(|key| (std::slice::from_ref(key), &value[..]));
                    let written = session.set_many(0, pairs, Expiry::Never, condition).expect("there is room");
                    prop_assert_eq!(written, allowed);
                    if written {
                        keys.iter().for_each(|key| drop(model.insert(*key, value.clone())));
                    }
                }
                Operation::Append { key, len } => {
                    let more = value(len);
                    let append = |current: Option<&[u8]>, edited: &mut Vec<u8>| {
                        edited.extend_from_slice(current.unwrap_or_default());
                        edited.extend_from_slice(&more);
                        Ok::<_, StoreError>(())
                    };
                    session.update(0, &[key], append).expect("there is room");
                    model.entry(key).or_default().extend_from_slice(&more);
                }
                Operation::Remove { key } => {
                    let removed = session.delete(0, &[key]).expect("readable");
                    prop_assert_eq!(removed, model.remove(&key).is_some());
                }
                Operation::Copy { from, to } => {
                    let copied = session.copy((0, &[from]), (0, &[to])).expect("there is room");
                    prop_assert_eq!(copied, model.contains_key(&from));
                    if let Some(value) = model.get(&from).cloned() {
                        model.insert(to, value);
                    }
                }
                Operation::Rename { from, to } => {
                    let renamed = session.rename((0, &[from]), (0, &[to])).expect("there is room");
                    prop_assert_eq!(renamed, model.contains_key(&from));
                    if let Some(value) = model.remove(&from) {
                        model.insert(to, value);
                    }
                }
                Operation::Expire { key, ttl } => {
                    let at = system_time().saturating_add_signed(i64::from(ttl) + if ttl > 0 { 3_600_000 } else { 0 });
                    session.expire(0, &[key], Expiry::At(at), ExpireConditions::default()).expect("readable");
                    if ttl <= 0 {
                        model.remove(&key);
                    }
                }
                Operation::Flush => {
                    drop(store.flush(Some(0)));
                    model.clear();
                }
                Operation::Pass => std::thread::sleep(Duration::from_millis(12)),
                Operation::Restart => {
                    drop(session);
                    store = reopen(store, folder.path(), 1);
                    session = store.session();
                }
            }
            prop_assert_eq!(store.database_stats(0).expect("readable").keys, model.len());
            let expected: Vec<Vec<u8>> = model.keys().map(|key| vec![*key]).collect();
            prop_assert_eq!(keys(&mut session, 0), expected);
        }
        for key in 0..20u8 {
            prop_assert_eq!(read(&mut session, &[key]), model.get(&key).cloned());
        }
        drop(session);
        close(store);
        prop_assert_eq!(verify(folder.path()).keys, model.len() as u64);
    }
}

/// Moves one unit between two of ten accounts, as one step.
fn transfer(session: &mut Session, from: u8, to: u8) {
    let accounts = [[from], [to]];
    session.exclusively(accounts.iter().map(|key| &key[..]), |session| {
        let balances = accounts.map(|key| balance(session, key[0]));
        if from != to && balances[0] > 0 {
            set(session, &[from], (balances[0] - 1).to_string().as_bytes());
            set(session, &[to], (balances[1] + 1).to_string().as_bytes());
        }
    });
}

fn balance(session: &mut Session, account: u8) -> u64 {
    let text = read(session, &[account]).expect("the account exists");
    String::from_utf8(text).expect("a number").parse().expect("a number")
}

#[test]
fn transfers_between_threads_conserve_the_sum_with_values_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 1);
    let mut session = store.session();
    (0..10u8).for_each(|account| set(&mut session, &[account], b"100"));
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let mut session = store.session();
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..500 {
                    transfer(&mut session, random.u8(0..10), random.u8(0..10));
                }
            });
        }
    });
    drop(session);
    let store = reopen(store, folder.path(), 1);
    let mut session = store.session();
    assert_eq!((0..10).map(|account| balance(&mut session, account)).sum::<u64>(), 1_000);
    drop(session);
    close(store);
}

#[test]
fn a_large_value_is_read_from_disk_while_others_write_beside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let one_shard = || Config { shards: Some(1), ..config(0) };
    let open = || Store::open(one_shard(), storage(folder.path())).expect("the store opens");
    let value = random_bytes(30_000_000, 1);
    let store = open();
    set(&mut store.session(), b"large", &value);
    close(store);

    let store = open();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let deadline = Instant::now() + PATIENCE;
            let mut session = store.session();
            while !done.load(Ordering::Relaxed) && Instant::now() < deadline {
                set(&mut session, b"small", b"changes all the time");
            }
            done.load(Ordering::Relaxed)
        });
        assert!(read(&mut store.session(), b"large") == Some(value));
        done.store(true, Ordering::Relaxed);
        assert!(writer.join().expect("writing does not panic"), "the value was read only once nobody wrote");
    });
    close(store);
}

#[cfg(unix)]
#[test]
fn all_files_are_for_their_owner_only_whoever_makes_them() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let folder = tempfile::tempdir().expect("a folder");
    let modes = || {
        let files = fs::read_dir(folder.path()).expect("the store's files");
        let files = files.map(|file| file.expect("a file"));
        let mode = |file: &fs::DirEntry| file.metadata().expect("its mode").mode() & 0o777;
        files.map(|file| (mode(&file), file.file_name())).collect::<Vec<_>>()
    };
    let fsync = Storage { durability: Durability::Fsync, ..Storage::new(folder.path()) };
    let store = Store::open(config(0), fsync).expect("the store opens");
    let written = store.session().set(0, b"key", b"value", Expiry::Never, Condition::Always);
    assert!(written.expect("there is room"));
    assert!(modes().len() > 2, "data, lock and journal");
    assert!(modes().iter().all(|(mode, _)| *mode == 0o600), "{:?}", modes());
    close(store);
    for file in fs::read_dir(folder.path()).expect("the store's files") {
        let path = file.expect("a file").path();
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("it is ours");
    }
    compact(folder.path(), |_| {}).expect("it is rewritten");
    assert_eq!(fs::metadata(folder.path().join("data.mdb")).expect("the data").mode() & 0o777, 0o600);
}

#[test]
fn a_store_whose_lock_file_was_removed_is_still_in_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 0);
    fs::remove_file(folder.path().join("snugly.lock")).expect("it is there");
    let second = Store::open(config(0), storage(folder.path()));
    assert!(matches!(second.map(|_| ()), Err(OpenError::InUse { .. })));
    let store = reopen(store, folder.path(), 0);
    close(store);
}
