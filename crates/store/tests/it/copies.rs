//! Values go to other keys and databases as they are stored, with their expiry and within the budget.

use std::sync::Arc;

use crate::support::{NOW, limited, put, read, session_at, store_with};
use parking_lot::Mutex;
use snugly_store::{Condition, EvictionPolicy, Expiry, Observer, Session, StoreError, Usage, Value};

const TEXT: &[u8] = &[b'a'; 5000];

#[test]
fn a_copy_is_stored_as_its_original_and_outlives_it() {
    let store = store_with(|_| {});
    let mut session = session_at(&store, NOW);
    session.set(0, b"a", TEXT, Expiry::At(NOW + 10), Condition::Always).unwrap();
    assert!(session.copy((0, b"a"), (3, b"copy")).unwrap());
    let encoded = store.stats().codec;
    let original = session.remove(0, b"a").unwrap().unwrap();
    let copy = session.peek(3, b"copy").unwrap().unwrap();
    let payload = |value: &Value| value.record().map(|record| record.payload().to_vec());
    assert_eq!(payload(&copy), payload(&original));
    assert_eq!(copy.expiry(), Some(NOW + 10));
    assert_eq!(store.stats().codec, encoded, "nothing was encoded or decoded for it");
    session.set_now(Some(NOW + 10));
    assert!(session.peek(3, b"copy").unwrap().is_none());
}

#[test]
fn what_does_not_exist_is_neither_copied_nor_renamed() {
    let store = store_with(|_| {});
    let mut session = session_at(&store, NOW);
    put(&mut session, b"target", b"stays");
    session.set(0, b"expired", TEXT, Expiry::At(NOW + 10), Condition::Always).unwrap();
    session.set_now(Some(NOW + 10));
    for key in [&b"missing"[..], b"expired"] {
        assert!(!session.copy((0, key), (0, b"target")).unwrap());
        assert!(!session.rename((0, key), (0, b"target")).unwrap());
    }
    assert_eq!(read(&mut session, b"target").unwrap(), b"stays");
}

#[test]
fn a_key_renamed_to_itself_is_as_before() {
    let store = store_with(|_| {});
    let mut session = session_at(&store, NOW);
    put(&mut session, b"a", TEXT);
    assert!(session.rename((0, b"a"), (0, b"a")).unwrap());
    assert!(session.copy((0, b"a"), (0, b"a")).unwrap());
    assert_eq!(read(&mut session, b"a").unwrap(), TEXT);
    assert!(session.rename((0, b"a"), (1, b"a")).unwrap());
    assert_eq!(read(&mut session, b"a"), None);
}

#[test]
fn a_name_that_is_too_long_changes_nothing() {
    let store = store_with(|config| config.settings.max_key_len = 10);
    let mut session = session_at(&store, NOW);
    put(&mut session, b"a", TEXT);
    let long: (usize, &[u8]) = (0, &[b'k'; 11]);
    let is_refused = |result| matches!(result, Err(StoreError::KeyTooLong { len: 11, limit: 10 }));
    assert!(is_refused(session.copy((0, b"a"), long)));
    assert!(is_refused(session.rename((0, b"a"), long)));
    assert_eq!(read(&mut session, b"a").unwrap(), TEXT);
}

/// Writes until memory is full; returns how many keys there are.
fn fill(session: &mut Session) -> u32 {
    let mut value = vec![0; 4000];
    let mut random = fastrand::Rng::with_seed(1);
    let mut number = 0u32;
    loop {
        random.fill(&mut value);
        match session.set(0, &number.to_be_bytes(), &value, Expiry::Never, Condition::Always) {
            Ok(_) => number += 1,
            Err(StoreError::OutOfMemory { .. }) => return number,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn in_a_full_memory_keys_are_renamed_but_not_copied() {
    let store = limited(1 << 20, EvictionPolicy::NoEviction);
    let mut session = session_at(&store, NOW);
    let keys = fill(&mut session);
    let used = store.used_memory();
    let first = (0, &0u32.to_be_bytes()[..]);
    assert!(matches!(session.copy(first, (0, b"copy")), Err(StoreError::OutOfMemory { .. })));
    assert!(session.rename(first, (0, b"name")).unwrap());
    // The tables of two shards may have grown and shrunk by some slots.
    assert!(store.used_memory().abs_diff(used) < 1_000, "{used} became {}", store.used_memory());
    assert_eq!(store.database_stats(0).unwrap().keys, keys as usize);
    let long = (0, &[b'k'; 60_000][..]);
    assert!(matches!(session.rename((0, b"name"), long), Err(StoreError::OutOfMemory { .. })));
    assert!(session.peek(0, b"name").unwrap().is_some());
}

#[test]
fn a_copy_makes_room_for_itself() {
    let store = limited(1 << 20, EvictionPolicy::AllKeysRandom);
    let mut session = session_at(&store, NOW);
    let mut value = [0; 400];
    fastrand::Rng::with_seed(2).fill(&mut value);
    for number in 0..20_000u32 {
        // The original may be among those that go.
        put(&mut session, b"a", &value);
        assert!(session.copy((0, b"a"), (1, &number.to_be_bytes())).unwrap());
    }
    assert!(store.used_memory() <= (1 << 20) + (16 << 10), "{}", store.used_memory());
    assert!(store.stats().evicted > 0);
}

#[derive(Default)]
struct Seen(Mutex<Vec<(usize, Vec<u8>)>>);

impl Observer for Seen {
    fn changed(&self, database: usize, key: &[u8], _: snugly_store::KeyChange) {
        self.0.lock().push((database, key.to_vec()));
    }

    fn flushed(&self, _database: Option<usize>) {}
}

#[test]
fn observers_see_both_keys_of_a_rename_and_one_of_a_copy() {
    let seen = Arc::new(Seen::default());
    let observer = seen.clone();
    let store = store_with(move |config| config.observer = Some(observer));
    let mut session = session_at(&store, NOW);
    put(&mut session, b"a", TEXT);
    seen.0.lock().clear();
    session.copy((0, b"a"), (1, b"b")).unwrap();
    assert_eq!(std::mem::take(&mut *seen.0.lock()), [(1, b"b".to_vec())]);
    session.rename((0, b"a"), (0, b"c")).unwrap();
    assert_eq!(std::mem::take(&mut *seen.0.lock()), [(0, b"c".to_vec()), (0, b"a".to_vec())]);
}

#[test]
fn a_key_looks_as_if_it_had_been_used_as_it_is_told() {
    let store = limited(1 << 20, EvictionPolicy::AllKeysLfu);
    let mut session = session_at(&store, NOW);
    put(&mut session, b"a", TEXT);
    session.set_usage(0, b"a", Usage::IdleSeconds(1000)).unwrap();
    session.set_usage(0, b"a", Usage::Frequency(3)).unwrap();
    session.set_usage(0, b"missing", Usage::Frequency(3)).unwrap();
    let value = session.peek(0, b"a").unwrap().unwrap();
    assert_eq!((value.idle_seconds(NOW), value.frequency()), (1000, 3));
    session.set_usage(0, b"a", Usage::Frequency(200)).unwrap();
    assert_eq!(session.peek(0, b"a").unwrap().unwrap().frequency(), 7, "the cap of LFU");
}

#[test]
fn what_is_written_with_an_expiry_that_has_come_is_not_there_not_even_for_who_counts() {
    let store = store_with(|_| {});
    let mut session = session_at(&store, NOW);
    for at in [NOW - 1, NOW] {
        put(&mut session, b"key", b"before");
        session.set(0, b"key", TEXT, Expiry::At(at), Condition::Always).expect("there is room");
        assert_eq!(store.database_stats(0).expect("in memory").keys, 0, "{at}");
    }
    session.set(0, b"key", TEXT, Expiry::At(NOW + 1), Condition::Always).expect("there is room");
    assert_eq!(store.database_stats(0).expect("in memory").keys, 1);
}
