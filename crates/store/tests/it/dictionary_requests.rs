//! Requests about a store's dictionaries: a training now, keys to be left alone, the classes.
#![cfg(feature = "zstd")]

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::support::*;
use snugly_store::{Choice, Session, Storage, Store, StoreMaintenance};

/// A small record like the others of its kind, and like no other's copy.
fn record(number: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(number);
    let name: String = (0..12).map(|_| random.lowercase()).collect();
    format!(
        r#"{{"id":{number},"name":"{name}","email":"{name}@example.com","country":"Iceland","roles":["reader","writer"],"preferences":{{"language":"is","newsletter":{},"theme":"dark","postal_code":{}}}}}"#,
        random.bool(),
        random.u32(..100_000),
    )
    .into_bytes()
}

fn put_records(session: &mut Session, kind: &str, numbers: Range<u64>) {
    numbers.for_each(|number| put(session, format!("{kind}:{number}").as_bytes(), &record(number)));
}

fn maintain(maintenance: &mut StoreMaintenance) {
    while maintenance.step(NOW) {}
}

fn patterns_in_use(store: &Store) -> Vec<String> {
    let text = |pattern: Vec<u8>| String::from_utf8(pattern).expect("the keys are text");
    store.dictionaries().into_iter().filter(|found| found.active).map(|found| text(found.pattern)).collect()
}

fn records_with_dictionary(store: &Store) -> u64 {
    store.dictionaries().iter().map(|dictionary| dictionary.records).sum()
}

const RECORDS: u64 = 12_000;

#[test]
fn a_quiet_store_is_trained_with_the_values_that_are_there() {
    let store = store_with(|_| {});
    let mut session = session_at(&store, NOW);
    // Before anybody samples.
    put_records(&mut session, "user", 0..RECORDS);
    let mut maintenance = store.maintenance(|| Duration::ZERO);
    maintain(&mut maintenance);
    assert_eq!(store.sample_stats().trainings, 0);
    assert_eq!(store.train_dictionaries(None), 0, "no class is known yet");
    maintain(&mut maintenance);
    assert_eq!(patterns_in_use(&store), ["user:*"]);
    assert_eq!(records_with_dictionary(&store), RECORDS);
}

#[test]
fn a_store_on_disk_is_trained_without_its_values_coming_into_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Store::open(config(), Storage::new(folder.path())).expect("it can be opened");
    let store = open();
    put_records(&mut store.session(), "user", 0..RECORDS);
    store.close().expect("the disk works");
    drop(store);

    let store = open();
    let mut maintenance = store.maintenance(|| Duration::ZERO);
    store.train_dictionaries(None);
    let mut step = 0;
    while store.sample_stats().samples < 1_000 {
        assert!(maintenance.step(NOW) && step < 100, "the values are looked at");
        step += 1;
    }
    assert!(store.used_memory() < 1 << 20, "{} bytes", store.used_memory());
    maintain(&mut maintenance);
    assert_eq!(patterns_in_use(&store), ["user:*"]);
    store.close().expect("the disk works");
}

#[test]
fn keys_that_are_excluded_are_neither_sampled_nor_encoded_with_a_dictionary() {
    let (store, mut maintenance, mut session) = maintained();
    exclude(&store, b"secret:");
    put_records(&mut session, "secret", 0..RECORDS);
    assert_eq!(store.sample_stats().samples, 0);
    store.train_dictionaries(None);
    maintain(&mut maintenance);
    assert_eq!((store.sample_stats().samples, store.classes()), (0, Vec::new()));

    put_records(&mut session, "user", 0..RECORDS);
    maintain(&mut maintenance);
    let content = store.dictionary_content(1).expect("there is one for the others");
    store.import_dictionary(&content, b"*", record(1).len()).expect("there is room");
    put_records(&mut session, "secret", 0..100);
    maintain(&mut maintenance);
    assert_eq!(records_with_dictionary(&store), RECORDS);
    assert_eq!(read(&mut session, b"secret:7"), Some(record(7)));
}

#[test]
fn what_was_sampled_or_encoded_before_its_key_was_excluded_is_so_no_more() {
    let (store, mut maintenance, mut session) = maintained();
    put_records(&mut session, "user", 0..RECORDS);
    maintain(&mut maintenance);
    put_records(&mut session_at(&store, NOW), "visitor", 0..100);
    assert_eq!((records_with_dictionary(&store), store.sample_stats().samples), (RECORDS, 100));
    exclude(&store, b"user:1");
    assert_eq!(store.sample_stats().samples, 0);
    maintain(&mut maintenance);
    let excluded = (0..RECORDS).filter(|number| number.to_string().starts_with('1')).count() as u64;
    assert_eq!(records_with_dictionary(&store), RECORDS - excluded);
    (0..RECORDS).for_each(|number| {
        assert_eq!(read(&mut session, format!("user:{number}").as_bytes()), Some(record(number)));
    });
    store.exclude_from_dictionaries(None);
    maintain(&mut maintenance);
    assert_eq!(records_with_dictionary(&store), RECORDS);
}

#[test]
fn classes_are_told_by_pattern_and_length_with_their_dictionary() {
    let (store, mut maintenance, mut session) = maintained();
    put_records(&mut session, "user", 0..RECORDS);
    maintain(&mut maintenance);
    put_records(&mut session_at(&store, NOW), "visitor", 0..10);
    let classes = store.classes();
    let [user, visitor] = &classes[..] else { panic!("two patterns, one length: {classes:?}") };
    assert_eq!((&*user.pattern, user.dictionary), (&b"user:*"[..], Some(1)));
    assert_eq!((&*visitor.pattern, visitor.dictionary), (&b"visitor:*"[..], None));
    assert!((visitor.min_len..visitor.max_len).contains(&record(1).len()));
    assert_eq!((visitor.seen, visitor.samples), (10, 10));
}

#[test]
fn a_dictionary_is_not_in_use_while_dictionaries_are_off_or_the_codec_is_not_zstd() {
    let (store, mut maintenance, mut session) = maintained();
    put_records(&mut session, "user", 0..RECORDS);
    maintain(&mut maintenance);
    store.change_settings(|settings| settings.dictionaries.enabled = false);
    assert_eq!(patterns_in_use(&store), <[&str; 0]>::default());
    store.change_settings(|settings| {
        settings.dictionaries.enabled = true;
        settings.compression = Choice::new("none", None, 256).expect("it is always there");
    });
    assert_eq!(patterns_in_use(&store), <[&str; 0]>::default());
    store.change_settings(|settings| {
        settings.compression = Choice::new("zstd", None, 256).expect("it is built in");
    });
    assert_eq!(patterns_in_use(&store), ["user:*"]);
}

fn maintained() -> (Arc<Store>, StoreMaintenance, Session) {
    let store = store_with(|_| {});
    let maintenance = store.maintenance(|| Duration::ZERO);
    let session = session_at(&store, NOW);
    (store, maintenance, session)
}

fn exclude(store: &Store, start: &'static [u8]) {
    store.exclude_from_dictionaries(Some(Arc::new(move |key: &[u8]| key.starts_with(start))));
}
