//! Values that are changed or read in parts stay as they are for that long, within bounds, and nobody notices but those who
//! count time and bytes.
#![cfg(feature = "lz4")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{NOW, put, random_bytes, read};
use proptest::collection::vec;
use proptest::prelude::*;
use snugly_store::{
    Choice, Condition, Config, DraftStats, Durability, Expiry, Session, Storage, Store, StoreError,
    StoreMaintenance, Value, check, system_time,
};

/// Time at which a draft that was used at NOW is not left as it is any more.
const LATER: u64 = NOW + 11_000;

fn config() -> Config {
    let mut config = Config::new(Choice::new("lz4", None, 64).expect("it is built in"));
    config.shards = Some(16);
    config
}

fn opened(path: &Path, max_memory: u64, durability: Durability) -> Arc<Store> {
    let mut config = config();
    config.settings.max_memory = max_memory;
    let commit_interval = Duration::from_millis(5);
    let storage = Storage { durability, commit_interval, ..Storage::new(path) };
    Store::open(config, storage).expect("the store opens")
}

fn maintain(store: &Arc<Store>) -> StoreMaintenance {
    store.maintenance(|| Duration::ZERO)
}

fn maintained(max_memory: u64) -> (Arc<Store>, StoreMaintenance, Session) {
    let mut config = config();
    config.settings.max_memory = max_memory;
    let store = Store::new(config);
    let (maintenance, mut session) = (maintain(&store), store.session());
    session.set_now(Some(NOW));
    (store, maintenance, session)
}

fn edit(session: &mut Session, key: &[u8], offset: usize, part: &[u8]) -> Result<(), StoreError> {
    session.update_part(0, key, |_, target| {
        target.extend_from_slice(part);
        Ok((offset, ()))
    })
}

fn append(session: &mut Session, key: &[u8], more: &[u8]) {
    let appended = session.update_part(0, key, |current, part| {
        part.extend_from_slice(more);
        Ok::<_, StoreError>((current.map_or(0, <[u8]>::len), ()))
    });
    appended.expect("there is room");
}

/// Applies the change of [`edit`] to a plain value.
fn edited(value: &mut Vec<u8>, offset: usize, part: &[u8]) {
    let end = offset + part.len();
    value.resize(value.len().max(end), 0);
    value[offset..end].copy_from_slice(part);
}

fn drafts(store: &Store) -> usize {
    store.draft_stats().values
}

#[test]
fn a_value_that_was_changed_in_part_is_plain_until_it_is_left_alone() {
    let (store, mut maintenance, mut session) = maintained(0);
    let mut expected = vec![7; 100_000];
    put(&mut session, b"key", &expected);
    let compressed = store.used_memory();
    edit(&mut session, b"key", 50_000, b"part").expect("there is room");
    edited(&mut expected, 50_000, b"part");
    assert_eq!(drafts(&store), 1);
    assert!(store.used_memory() > 100_000);
    let identity =
        |session: &mut Session| session.peek(0, b"key").expect("readable").map(|value| value.identity());
    let first = identity(&mut session);
    edit(&mut session, b"key", 99_998, b"end").expect("there is room");
    edited(&mut expected, 99_998, b"end");
    assert!(identity(&mut session) != first, "it has grown beyond its place");
    let second = identity(&mut session);
    for number in 0..1_000 {
        append(&mut session, b"key", &[number as u8]);
        expected.push(number as u8);
    }
    assert_eq!(identity(&mut session), second, "it was changed where it is");
    maintenance.step(NOW + 5_000);
    assert_eq!(drafts(&store), 1, "it was used a moment ago");
    maintenance.step(LATER);
    assert_eq!(store.draft_stats(), DraftStats::default());
    assert!(store.used_memory() < compressed + 2_000);
    assert!(read(&mut session, b"key").expect("it is there") == expected);
}

#[test]
fn a_value_that_is_held_does_not_change() {
    let (_store, _maintenance, mut session) = maintained(0);
    put(&mut session, b"key", &[7; 10_000]);
    edit(&mut session, b"key", 0, b"first").expect("there is room");
    let held = session.peek(0, b"key").expect("readable").expect("it is there");
    edit(&mut session, b"key", 0, b"other").expect("there is room");
    assert!(held.plain().expect("it is plain").starts_with(b"first"));
    assert!(read(&mut session, b"key").expect("it is there").starts_with(b"other"));
}

#[test]
fn a_large_value_that_is_read_in_parts_is_decoded_once() {
    let (store, mut maintenance, mut session) = maintained(0);
    let expected = vec![7; 100_000];
    put(&mut session, b"key", &expected);
    let mut shown = || {
        let value = session.get(0, b"key").expect("readable").expect("it is there");
        session.as_draft(0, value).expect("readable")
    };
    assert!(shown().plain().expect("it is plain") == expected);
    assert_eq!(shown().identity(), shown().identity());
    assert_eq!(drafts(&store), 1);
    maintenance.step(LATER);
    assert_eq!(drafts(&store), 0);
    assert!(read(&mut session, b"key").expect("it is there") == expected);
}

#[test]
fn drafts_take_only_a_part_of_the_memory() {
    let (store, _maintenance, mut session) = maintained(8 << 20);
    for number in 0..100u8 {
        put(&mut session, &[number], &[7; 100_000]);
        edit(&mut session, &[number], 5, b"part").expect("there is room");
    }
    let DraftStats { values, bytes } = store.draft_stats();
    assert!((5..=10).contains(&values) && bytes <= 1 << 20, "{values} of {bytes} bytes");
    for number in 0..100u8 {
        assert!(
            read(&mut session, &[number]).expect("it is there").starts_with(b"\x07\x07\x07\x07\x07part\x07")
        );
    }
}

#[test]
fn drafts_that_are_gone_are_listed_no_more() {
    let (store, mut maintenance, mut session) = maintained(0);
    for number in 0..10u8 {
        put(&mut session, &[number], &[7; 10_000]);
        edit(&mut session, &[number], 5, b"part").expect("there is room");
    }
    session.swap(0, 1);
    session.rename((1, &[0]), (1, &[20])).expect("there is room");
    session.delete(1, &[1]).expect("readable");
    session.set(1, &[2], b"other", Expiry::Never, Condition::Always).expect("there is room");
    session.set(1, &[3], &[7; 10_000], Expiry::At(NOW + 1), Condition::Always).expect("there is room");
    maintenance.step(NOW + 2_000);
    assert_eq!(drafts(&store), 6);
    session.flush(None);
    maintenance.step(NOW + 4_000);
    assert_eq!(drafts(&store), 0);
}

#[test]
fn without_upkeep_there_are_no_drafts() {
    let store = Store::new(config());
    let mut session = store.session();
    put(&mut session, b"key", &[7; 10_000]);
    edit(&mut session, b"key", 0, b"part").expect("there is room");
    assert_eq!(drafts(&store), 0);
}

#[test]
fn a_value_that_would_become_too_long_stays_as_it_is() {
    let (store, _maintenance, mut session) = maintained(0);
    store.change_settings(|settings| settings.max_value_len = 20_000);
    put(&mut session, b"key", &[7; 10_000]);
    edit(&mut session, b"key", 0, b"part").expect("there is room");
    let refused = edit(&mut session, b"key", 19_999, b"part");
    assert!(matches!(refused, Err(StoreError::ValueTooLong { .. })), "{refused:?}");
    assert_eq!(read(&mut session, b"key").expect("it is there").len(), 10_000);
}

#[test]
fn threads_that_append_and_read_lose_nothing_and_tear_nothing() {
    const THREADS: u8 = 3;
    const APPENDS: usize = 3_000;
    let (store, _maintenance, mut session) = maintained(0);
    put(&mut session, b"log", &[0; 5_000]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut session = store.session();
            let mut len = 0;
            while !done.load(Ordering::Relaxed) {
                let log = read(&mut session, b"log").expect("it is there");
                assert!(log.len() >= len, "it has become shorter");
                assert!(log[5_000..].chunks(10).all(|part| part.iter().all(|byte| *byte == part[0])));
                len = log.len();
            }
        });
        let writers: Vec<_> = (1..=THREADS)
            .map(|number| {
                let store = &store;
                scope.spawn(move || {
                    let mut session = store.session();
                    (0..APPENDS).for_each(|_| append(&mut session, b"log", &[number; 10]));
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
        done.store(true, Ordering::Relaxed);
        reader.join().expect("it does not panic");
    });
    let log = read(&mut session, b"log").expect("it is there");
    for number in 1..=THREADS {
        assert_eq!(log.chunks(10).filter(|part| **part == [number; 10]).count(), APPENDS);
    }
}

#[test]
fn on_disk_a_draft_is_compressed_and_whole_whenever_it_is_written() {
    for durability in [Durability::Batched, Durability::Fsync] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = opened(folder.path(), 0, durability);
        let (maintenance, mut session) = (maintain(&store), store.session());
        let mut expected = vec![7; 1_000_000];
        put(&mut session, b"key", &expected);
        for number in 0..2_000 {
            let offset = number * 499;
            edit(&mut session, b"key", offset, b"part").expect("there is room");
            edited(&mut expected, offset, b"part");
            if number % 100 == 0 {
                std::thread::sleep(Duration::from_millis(3));
            }
        }
        assert_eq!(drafts(&store), 1);
        store.close().expect("it can be written");
        drop((maintenance, session, store));
        let report = check(folder.path(), |_| {}).expect("it can be read");
        assert_eq!(report.faults, Vec::<String>::new());
        let store = opened(folder.path(), 0, durability);
        let mut session = store.session();
        assert!(read(&mut session, b"key").expect("it is there") == expected, "{durability:?}");
        let value = session.peek(0, b"key").expect("readable").expect("it is there");
        assert!(value.memory() < 100_000, "it is not compressed");
        store.close().expect("it can be written");
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Edit { key: u8, offset: u16, part: Vec<u8> },
    Append { key: u8, part: Vec<u8> },
    ReadPart { key: u8 },
    Hold { key: u8 },
    LetGo,
    Set { key: u8, len: u16 },
    Remove { key: u8 },
    Copy { from: u8, to: u8 },
    Rename { from: u8, to: u8 },
    Expire { key: u8 },
    Tend { later: bool },
    Restart,
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = || 0..4u8;
    let part = || prop_oneof![vec(any::<u8>(), 0..20), vec(any::<u8>(), 3_000..6_000)];
    prop_oneof![
        8 => (key(), 0..20_000u16, part()).prop_map(|(key, offset, part)| Operation::Edit { key, offset, part }),
        4 => (key(), part()).prop_map(|(key, part)| Operation::Append { key, part }),
        2 => key().prop_map(|key| Operation::ReadPart { key }),
        2 => key().prop_map(|key| Operation::Hold { key }),
        1 => Just(Operation::LetGo),
        2 => (key(), prop_oneof![0..10_000u16, Just(u16::MAX)]).prop_map(|(key, len)| Operation::Set { key, len }),
        1 => key().prop_map(|key| Operation::Remove { key }),
        1 => (key(), key()).prop_map(|(from, to)| Operation::Copy { from, to }),
        1 => (key(), key()).prop_map(|(from, to)| Operation::Rename { from, to }),
        1 => key().prop_map(|key| Operation::Expire { key }),
        1 => any::<bool>().prop_map(|later| Operation::Tend { later }),
        1 => Just(Operation::Restart),
    ]
}

/// Does the operations on a store and on a map, and compares both after each.
fn compare(
    operations: &[Operation],
    open: impl Fn() -> Arc<Store>,
    restarts: bool,
) -> Result<(), TestCaseError> {
    let mut store = open();
    let (mut maintenance, mut session) = (maintain(&store), store.session());
    let mut model: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    let mut held: Vec<(Value, Vec<u8>)> = Vec::new();
    let mut now = system_time();
    let room = "there is room";
    for (step, operation) in operations.iter().cloned().enumerate() {
        match operation {
            Operation::Edit { key, offset, part } => {
                edit(&mut session, &[key], offset.into(), &part).expect(room);
                edited(model.entry(key).or_default(), offset.into(), &part);
            }
            Operation::Append { key, part } => {
                append(&mut session, &[key], &part);
                model.entry(key).or_default().extend_from_slice(&part);
            }
            Operation::ReadPart { key } => {
                if let Some(value) = session.get(0, &[key]).expect("readable") {
                    let shown = session.as_draft(0, value).expect("readable");
                    prop_assert_eq!(shown.len(), model[&key].len());
                }
            }
            Operation::Hold { key } => {
                let value = session.peek(0, &[key]).expect("readable");
                held.extend(value.map(|value| (value, model[&key].clone())));
            }
            Operation::LetGo => held.clear(),
            Operation::Set { key, len } => {
                let value = match step % 2 {
                    0 => vec![step as u8; len.into()],
                    _ => random_bytes(len.into(), step as u64),
                };
                put(&mut session, &[key], &value);
                model.insert(key, value);
            }
            Operation::Remove { key } => {
                let is_there = session.delete(0, &[key]).expect("readable");
                prop_assert_eq!(is_there, model.remove(&key).is_some());
            }
            Operation::Copy { from, to } => {
                if session.copy((0, &[from]), (0, &[to])).expect(room) {
                    model.insert(to, model[&from].clone());
                }
            }
            Operation::Rename { from, to } => {
                if session.rename((0, &[from]), (0, &[to])).expect(room) {
                    let value = model.remove(&from).expect("it was there");
                    model.insert(to, value);
                }
            }
            Operation::Expire { key } => {
                let at = Expiry::At(system_time() + 100_000_000);
                session.expire(0, &[key], at, Default::default()).expect("readable");
            }
            Operation::Tend { later } => {
                now += if later { 11_000 } else { 1_000 };
                maintenance.step(now);
            }
            Operation::Restart if restarts => {
                held.clear();
                store.close().expect("it can be written");
                drop((maintenance, session, store));
                store = open();
                (maintenance, session) = (maintain(&store), store.session());
            }
            Operation::Restart => {}
        }
        for key in 0..4u8 {
            prop_assert!(read(&mut session, &[key]).as_ref() == model.get(&key), "{key} after {step}");
        }
        for (value, expected) in &held {
            let mut bytes = Vec::new();
            session.read(value, &mut bytes).expect("readable");
            prop_assert!(&bytes == expected, "a held value has changed in {step}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn values_in_memory_become_what_they_would_in_a_map(operations in vec(operation(), 1..60)) {
        compare(&operations, || Store::new(config()), false)?;
    }

    #[test]
    fn values_on_disk_become_what_they_would_in_a_map(operations in vec(operation(), 1..60), is_fsync: bool, is_small: bool) {
        let folder = tempfile::tempdir().expect("a folder");
        let durability = if is_fsync { Durability::Fsync } else { Durability::Batched };
        // The smaller one has room for a few drafts, and none for most values.
        let max_memory = if is_small { 1 << 20 } else { 0 };
        compare(&operations, || opened(folder.path(), max_memory, durability), true)?;
    }
}
