//! Flags and versions stay beside a value as long as it is the same value, wherever it is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::support::{NOW, config, limited, put, read, session_at, store_with};
use parking_lot::Mutex;
use proptest::collection::vec;
use proptest::prelude::*;
use snugly_store::{
    Condition, DeleteOutcome, Durability, End, EvictionPolicy, ExpireConditions, Expiry, Kept, Metadata,
    Observer, Session, Storage, Store, StoreError,
};

const TEXT: &[u8] = &[b'a'; 5000];
/// Beyond the clock, by which the disk removes what has expired.
const LATER: u64 = 2 * NOW;

fn flagged(client_flags: u32) -> Kept {
    Kept { expiry: Expiry::Never, metadata: Metadata { client_flags, ..Metadata::default() } }
}

fn metadata(session: &mut Session, key: &[u8]) -> Metadata {
    session.get(0, key).expect("undamaged").expect("the key is there").metadata()
}

/// Returns the key's version, which it gets now if it had none.
fn version(session: &mut Session, key: &[u8]) -> u64 {
    let fresh = session.new_version();
    let given = session.alter(0, key, |_, kept| {
        if kept.metadata.version == 0 {
            kept.metadata.version = fresh;
        }
        kept.metadata.version
    });
    given.expect("undamaged").expect("the key is there").1
}

#[test]
fn a_value_has_the_flags_that_it_was_written_with_until_it_is_replaced() {
    let store = store_with(|_| {});
    let mut session = session_at(&store, NOW);
    for value in [&b"short"[..], TEXT] {
        session.set_with(0, b"key", value, flagged(u32::MAX), Condition::Always).unwrap();
        session.expire(0, b"key", Expiry::At(NOW + 9), ExpireConditions::default()).unwrap();
        session.expire(0, b"key", Expiry::Never, ExpireConditions::default()).unwrap();
        session.copy((0, b"key"), (0, b"copy")).unwrap();
        session.rename((0, b"key"), (0, b"renamed")).unwrap();
        assert_eq!(metadata(&mut session, b"copy").client_flags, u32::MAX);
        assert_eq!(metadata(&mut session, b"renamed").client_flags, u32::MAX);
        assert_eq!(read(&mut session, b"renamed").unwrap(), value);
        put(&mut session, b"renamed", value);
        assert_eq!(metadata(&mut session, b"renamed"), Metadata::default());
    }
}

#[test]
fn a_changed_part_leaves_the_flags_and_takes_the_version() {
    let store = store_with(|_| {});
    let mut session = session_at(&store, NOW);
    let flags = Metadata { client_flags: 5, ..Metadata::default() };
    session.set_with(0, b"key", TEXT, flagged(5), Condition::Always).unwrap();
    let before = version(&mut session, b"key");
    let replace_part = |_: Option<&[u8]>, part: &mut Vec<u8>| {
        part.push(b'x');
        Ok::<_, StoreError>((4_999, ()))
    };
    session.update_part(0, b"key", replace_part).unwrap();
    assert_eq!(metadata(&mut session, b"key"), flags);
    assert!(version(&mut session, b"key") > before);
    let replace_all = |_: Option<&[u8]>, edited: &mut Vec<u8>| {
        edited.push(b'y');
        Ok::<_, StoreError>(())
    };
    session.update(0, b"key", replace_all).unwrap();
    assert_eq!(metadata(&mut session, b"key"), flags);
}

#[test]
fn a_draft_that_gets_a_version_is_no_draft_any_more() {
    let store = store_with(|_| {});
    // Without it there are no drafts.
    let mut maintenance = store.maintenance(|| Duration::ZERO);
    let mut session = session_at(&store, NOW);
    let append = |session: &mut Session| {
        session.update_part(0, b"key", |current, part| {
            part.extend_from_slice(TEXT);
            Ok::<_, StoreError>((current.map_or(0, <[u8]>::len), ()))
        })
    };
    (0..3).for_each(|_| append(&mut session).unwrap());
    assert_eq!(store.draft_stats().values, 1);
    let seen = version(&mut session, b"key");
    assert_eq!(metadata(&mut session, b"key").version, seen);
    append(&mut session).unwrap();
    assert_eq!(metadata(&mut session, b"key").version, 0);
    assert_eq!(read(&mut session, b"key").unwrap(), TEXT.repeat(4));
    while maintenance.step(NOW) {}
    assert_eq!(store.draft_stats().values, 0);
}

#[test]
fn only_the_version_that_was_seen_is_replaced_or_deleted() {
    let store = store_with(|_| {});
    let mut session = session_at(&store, NOW);
    put(&mut session, b"key", b"1");
    let seen = version(&mut session, b"key");
    assert_eq!(version(&mut session, b"key"), seen, "looking changes nothing");
    let mut replace = |version| {
        let outcome =
            session.set_with(0, b"key", b"2", Kept::until(Expiry::Never), Condition::IfVersion(version));
        outcome.unwrap().written
    };
    assert!(!replace(seen + 1) && !replace(0) && replace(seen) && !replace(seen) && !replace(0));
    let seen = version(&mut session, b"key");
    assert_eq!(session.delete_version(0, b"key", seen - 1).unwrap(), DeleteOutcome::Refused);
    assert_eq!(session.delete_version(0, b"key", seen).unwrap(), DeleteOutcome::Removed);
    assert_eq!(session.delete_version(0, b"key", seen).unwrap(), DeleteOutcome::Missing);
    let missing =
        session.set_with(0, b"key", b"2", Kept::until(Expiry::Never), Condition::IfVersion(seen)).unwrap();
    assert!(!missing.written && missing.previous.is_none());
}

#[test]
fn a_change_of_metadata_decodes_nothing_and_is_no_change_to_those_who_watch() {
    #[derive(Default)]
    struct Count(Mutex<usize>);
    impl Observer for Count {
        fn changed(&self, _: usize, _: &[u8], _: snugly_store::KeyChange) {
            *self.0.lock() += 1;
        }
        fn flushed(&self, _: Option<usize>) {}
    }
    let count = Arc::<Count>::default();
    let store = store_with(|config| config.observer = Some(count.clone()));
    let mut session = session_at(&store, NOW);
    put(&mut session, b"key", TEXT);
    let (codec, memory) = (store.stats().codec, store.used_memory());
    session.alter(0, b"key", |_, kept| kept.metadata.is_stale = true).unwrap();
    version(&mut session, b"key");
    assert_eq!(*count.0.lock(), 1);
    session.alter(0, b"key", |_, kept| kept.expiry = Expiry::At(NOW + 1)).unwrap();
    assert_eq!(*count.0.lock(), 2);
    assert_eq!(store.stats().codec, codec);
    assert!(store.used_memory() > memory, "who asks for a version pays for it");
    session.alter(0, b"key", |_, kept| kept.expiry = Expiry::At(NOW)).unwrap();
    assert!(session.get(0, b"key").unwrap().is_none());
}

#[test]
fn what_is_no_string_has_no_metadata() {
    let store = store_with(|_| {});
    let mut session = session_at(&store, NOW);
    session.list_push(0, b"list", End::Right, [&b"element"[..]].into_iter(), false).unwrap();
    let kept = Kept::until(Expiry::Never);
    let is_refused = |outcome: Result<_, StoreError>| matches!(outcome, Err(StoreError::WrongType));
    assert!(is_refused(session.alter(0, b"list", |_, _| ()).map(drop)));
    assert!(is_refused(session.delete_version(0, b"list", 1).map(drop)));
    assert!(is_refused(session.set_with(0, b"list", b"", kept, Condition::IfPresent).map(drop)));
    assert!(is_refused(session.set_with(0, b"list", b"", kept, Condition::IfVersion(1)).map(drop)));
    assert!(!session.set_with(0, b"list", b"", kept, Condition::IfAbsent).unwrap().written);
    assert!(session.set_with(0, b"list", b"", kept, Condition::Always).unwrap().written);
}

#[test]
fn a_version_that_memory_has_no_room_for_is_refused_and_the_value_stays() {
    let store = limited(1 << 20, EvictionPolicy::NoEviction);
    let mut session = session_at(&store, NOW);
    let mut keys = 0u32;
    while session.set(0, &keys.to_be_bytes(), b"a value", Expiry::Never, Condition::Always).is_ok() {
        keys += 1;
    }
    let version = session.new_version();
    let mut give = |key: u32| session.alter(0, &key.to_be_bytes(), |_, kept| kept.metadata.version = version);
    let refused = (0..keys).find_map(|key| give(key).err());
    assert!(matches!(refused, Some(StoreError::OutOfMemory { .. })), "{refused:?}");
    assert!(store.used_memory() <= 1 << 20);
    assert_eq!(read(&mut session, &(keys - 1).to_be_bytes()).unwrap(), b"a value");
}

/// A value as a client of the model sees it.
#[derive(Clone, Debug, PartialEq)]
struct Item {
    value: Vec<u8>,
    expiry: Option<u64>,
    metadata: Metadata,
}

#[derive(Clone, Debug)]
enum Operation {
    Set { key: u8, len: usize, flags: u32, ttl: Option<u16> },
    Look { key: u8 },
    Compare { key: u8, is_current: bool, len: usize },
    Mark { key: u8, is_stale: bool, is_claimed: bool },
    Touch { key: u8, ttl: u16 },
    Append { key: u8, len: usize },
    Copy { from: u8, to: u8 },
    Restart,
}

fn operation() -> impl Strategy<Value = Operation> {
    let (key, len) = (0..4u8, || prop_oneof![0..50usize, 1_900..2_100usize, 4_000..4_200usize, Just(20_000)]);
    let flags = prop_oneof![Just(0), any::<u32>()];
    prop_oneof![
        3 => (key.clone(), len(), flags, any::<Option<u16>>())
            .prop_map(|(key, len, flags, ttl)| Operation::Set { key, len, flags, ttl }),
        2 => key.clone().prop_map(|key| Operation::Look { key }),
        2 => (key.clone(), any::<bool>(), len())
            .prop_map(|(key, is_current, len)| Operation::Compare { key, is_current, len }),
        1 => (key.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(key, is_stale, is_claimed)| Operation::Mark { key, is_stale, is_claimed }),
        1 => (key.clone(), any::<u16>()).prop_map(|(key, ttl)| Operation::Touch { key, ttl }),
        1 => (key.clone(), len()).prop_map(|(key, len)| Operation::Append { key, len }),
        1 => (key.clone(), key).prop_map(|(from, to)| Operation::Copy { from, to }),
        1 => Just(Operation::Restart),
    ]
}

#[derive(Default)]
struct Model {
    items: BTreeMap<u8, Item>,
    given: BTreeSet<u64>,
    written: u8,
}

impl Model {
    fn value(&mut self, len: usize) -> Vec<u8> {
        self.written = self.written.wrapping_add(1);
        vec![self.written; len]
    }

    fn apply(&mut self, session: &mut Session, operation: Operation) {
        match operation {
            Operation::Set { key, len, flags, ttl } => {
                let value = self.value(len);
                let expiry = ttl.map(|ttl| LATER + u64::from(ttl));
                let kept = Kept { expiry: expiry.map_or(Expiry::Never, Expiry::At), ..flagged(flags) };
                session.set_with(0, &[key], &value, kept, Condition::Always).expect("there is room");
                self.items.insert(key, Item { value, expiry, metadata: kept.metadata });
            }
            Operation::Look { key } => {
                let Some(item) = self.items.get_mut(&key) else { return };
                let had = std::mem::replace(&mut item.metadata.version, version(session, &[key]));
                assert!(item.metadata.version == had || had == 0 && self.given.insert(item.metadata.version));
            }
            Operation::Compare { key, is_current, len } => {
                let value = self.value(len);
                let current = self.items.get(&key).map_or(0, |item| item.metadata.version);
                let compared = if is_current { current } else { current.wrapping_sub(1) };
                let fresh = session.new_version();
                assert!(self.given.insert(fresh));
                let metadata = Metadata { version: fresh, ..Metadata::default() };
                let kept = Kept { expiry: Expiry::Keep, metadata };
                let outcome = session.set_with(0, &[key], &value, kept, Condition::IfVersion(compared));
                let outcome = outcome.expect("there is room");
                assert_eq!(outcome.written, is_current && current != 0);
                assert_eq!(outcome.previous.is_some(), self.items.contains_key(&key));
                if let Some(item) = self.items.get_mut(&key).filter(|_| outcome.written) {
                    *item = Item { value, expiry: item.expiry, metadata };
                }
            }
            Operation::Mark { key, is_stale, is_claimed } => {
                let mark = |metadata: &mut Metadata| {
                    (metadata.is_stale, metadata.is_claimed) = (is_stale, is_claimed);
                };
                session.alter(0, &[key], |_, kept| mark(&mut kept.metadata)).expect("undamaged");
                self.items.entry(key).and_modify(|item| mark(&mut item.metadata));
            }
            Operation::Touch { key, ttl } => {
                let at = LATER + u64::from(ttl);
                session.alter(0, &[key], |_, kept| kept.expiry = Expiry::At(at)).expect("undamaged");
                self.items.entry(key).and_modify(|item| item.expiry = Some(at));
            }
            Operation::Append { key, len } => {
                let more = self.value(len);
                let append = |current: Option<&[u8]>, part: &mut Vec<u8>| {
                    part.extend_from_slice(&more);
                    Ok::<_, StoreError>((current.map_or(0, <[u8]>::len), ()))
                };
                session.update_part(0, &[key], append).expect("there is room");
                let new = Item { value: Vec::new(), expiry: None, metadata: Metadata::default() };
                let item = self.items.entry(key).or_insert(new);
                item.value.extend_from_slice(&more);
                item.metadata = Metadata { client_flags: item.metadata.client_flags, ..Metadata::default() };
            }
            Operation::Copy { from, to } => {
                session.copy((0, &[from]), (0, &[to])).expect("there is room");
                if let Some(mut item) = self.items.get(&from).cloned() {
                    item.metadata =
                        Metadata { client_flags: item.metadata.client_flags, ..Metadata::default() };
                    self.items.insert(to, item);
                }
            }
            Operation::Restart => unreachable!("it is done to the store"),
        }
    }

    fn check(&self, session: &mut Session) {
        for key in 0..4 {
            let found = session.get(0, &[key]).expect("undamaged").map(|found| {
                let mut value = Vec::new();
                session.read(&found, &mut value).expect("what was written can be read");
                Item { value, expiry: found.expiry(), metadata: found.metadata() }
            });
            assert_eq!(found.as_ref(), self.items.get(&key), "key {key}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn values_come_back_with_what_was_kept_beside_them(operations in vec(operation(), 1..40), durability in 0..3usize) {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let durability = [Durability::None, Durability::Batched, Durability::Fsync][durability];
        let open = || {
            let storage = Storage { durability, ..Storage::new(folder.path()) };
            Store::open(config(), storage).expect("the store opens")
        };
        let mut store = open();
        let mut session = session_at(&store, NOW);
        let mut model = Model::default();
        for operation in operations {
            if let Operation::Restart = operation {
                drop(session);
                store.close().expect("everything is written");
                drop(store);
                store = open();
                session = session_at(&store, NOW);
            } else {
                model.apply(&mut session, operation);
            }
            model.check(&mut session);
        }
    }
}
