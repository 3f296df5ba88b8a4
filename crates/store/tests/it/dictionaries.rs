//! Dictionaries: learned in the background from what is written, and used where they pay.
#![cfg(feature = "zstd")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::alike::*;
use crate::support::*;
use snugly_store::{
    CheckReport, Condition, DictionaryStats, Durability, Expiry, Session, Store, StoreError,
    StoreMaintenance, check,
};

fn ratio_to_before(dictionary: &DictionaryStats) -> f64 {
    dictionary
        .ratio_after
        .zip(dictionary.ratio_before)
        .map(|(after, before)| after / before)
        .expect("it was measured")
}

#[test]
fn values_that_are_alike_get_a_dictionary_and_take_much_less() {
    let (store, mut maintenance, mut session) = maintained();
    put_users(&mut session, 0..USERS);
    let before = store.used_memory();
    maintain(&mut maintenance, NOW);

    let dictionaries = active(&store);
    let [dictionary] = &dictionaries[..] else { panic!("one class, one dictionary: {dictionaries:?}") };
    assert_eq!(dictionary.pattern, b"user:*");
    assert!(dictionary.min_len <= 256 && dictionary.max_len > 256);
    assert!(ratio_to_before(dictionary) < 0.7, "{dictionary:?}");
    assert_eq!(dictionary.records, USERS, "those that were there before are encoded with it as well");
    let after = store.used_memory() + dictionary.memory as u64;
    assert!(after * 10 < before * 8, "{after} bytes, the dictionary included, after {before}");
    assert_users(&mut session, 0..USERS);

    put_users(&mut session, USERS..USERS + 100);
    assert_eq!(active(&store)[0].records, USERS + 100);
    assert_users(&mut session, USERS..USERS + 100);
    assert_eq!(store.sample_stats().bytes, 0, "what has been learned from is not kept");
}

#[cfg(feature = "lz4")]
#[test]
fn lz4_learns_dictionaries_of_its_own_which_take_less_memory_and_are_worth_it_sooner() {
    let of = |codec: &str, users| {
        let (store, mut maintenance, mut session) = maintained();
        let choice = snugly_store::Choice::new(codec, None, 64).expect("it is built in");
        store.change_settings(|settings| settings.compression = choice);
        put_users(&mut session, 0..users);
        maintain(&mut maintenance, NOW);
        assert_users(&mut session, 0..users);
        (store, session)
    };
    let [(lz4, mut session), (zstd, _)] = ["lz4", "zstd"].map(|codec| of(codec, USERS));
    let [by_lz4, by_zstd] = [&lz4, &zstd].map(|store| active(store)[0].clone());
    assert_eq!(by_lz4.records, USERS);
    assert!(by_lz4.memory <= by_lz4.bytes + (17 << 10), "its content and one table: {by_lz4:?}");
    assert!(by_lz4.memory * 3 < by_zstd.memory, "{by_lz4:?}, {by_zstd:?}");
    let encoded = |store: &Store, codec| store.stats().codec.of(snugly_codec::Family::EncodedValues, codec);
    put_users(&mut session, 0..100);
    assert_eq!(encoded(&lz4, snugly_codec::CodecId::Lz4Dictionary), 100);
    assert_eq!(encoded(&lz4, snugly_codec::CodecId::ZstdDictionary), 0);
    let [few_lz4, few_zstd] = ["lz4", "zstd"].map(|codec| active(&of(codec, 400).0).len());
    assert_eq!((few_lz4, few_zstd), (1, 0));
}

#[cfg(feature = "lz4")]
#[test]
fn what_was_learned_for_zstd_is_used_by_lz4_for_new_values_and_older_ones_stay() {
    let (store, mut maintenance, mut session) = maintained();
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    let lz4 = snugly_store::Choice::new("lz4", None, 64).expect("it is built in");
    store.change_settings(|settings| settings.compression = lz4);
    put_users(&mut session, USERS..USERS + 100);
    maintain(&mut maintenance, NOW);
    assert_eq!(active(&store)[0].records, USERS + 100);
    assert_users(&mut session, 0..USERS + 100);
    let mut of = |number: u64| {
        let value = session.peek(0, format!("user:{number}").as_bytes()).expect("undamaged");
        value.expect("it is there").record().map(|record| record.codec())
    };
    assert_eq!(of(1), Some(snugly_codec::CodecId::ZstdDictionary));
    assert_eq!(of(USERS + 1), Some(snugly_codec::CodecId::Lz4Dictionary));
}

#[test]
fn keys_of_another_kind_or_size_have_nothing_to_do_with_it() {
    let (store, mut maintenance, mut session) = maintained();
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    let records = active(&store)[0].records;
    put(&mut session, b"other:1", &user(1));
    put(&mut session, b"user:1:avatar", &random_bytes(20_000, 1));
    assert_eq!(active(&store)[0].records, records);
}

#[test]
fn what_has_nothing_in_common_gets_none() {
    let (store, mut maintenance, mut session) = maintained();
    for number in 0..5_000u64 {
        put(&mut session, format!("image:{number}").as_bytes(), &random_bytes(400, number));
    }
    maintain(&mut maintenance, NOW);
    assert!(store.dictionaries().is_empty());
    let stats = store.sample_stats();
    assert!(stats.trainings > 0 && stats.adopted == 0, "{stats:?}");
}

#[test]
fn a_dictionary_that_would_take_more_than_it_saves_is_not_used() {
    let (store, mut maintenance, mut session) = maintained();
    put_users(&mut session, 0..400);
    maintain(&mut maintenance, NOW);
    assert!(store.sample_stats().trainings > 0);
    assert!(store.dictionaries().is_empty(), "{:?}", store.dictionaries());
}

#[test]
fn nothing_is_sampled_while_nobody_tends_or_it_is_switched_off() {
    let (store, maintenance, mut session) = maintained();
    drop(maintenance);
    put_users(&mut session, 0..5_000);
    assert_eq!(store.sample_stats().samples, 0);
    let (store, mut maintenance, mut session) = maintained();
    store.change_settings(|settings| settings.dictionaries.enabled = false);
    put_users(&mut session, 0..5_000);
    maintain(&mut maintenance, NOW);
    assert_eq!((store.sample_stats().samples, store.dictionaries().len()), (0, 0));
}

#[test]
fn samples_and_dictionaries_keep_to_their_memory() {
    let (store, mut maintenance, mut session) = maintained();
    store.change_settings(|settings| settings.dictionaries.max_memory = 1 << 20);
    for kind in ["user", "account", "visitor", "member", "customer", "patient"] {
        for number in 0..5_000 {
            put(&mut session, format!("{kind}:{number}").as_bytes(), &user(number));
            assert!(store.sample_stats().bytes <= 512 << 10);
        }
        maintain(&mut maintenance, NOW);
    }
    let memory: usize = store.dictionaries().iter().map(|dictionary| dictionary.memory).sum();
    assert!((1..=512 << 10).contains(&memory), "{memory}");
    let named = |kind: &str| active(&store).iter().any(|dictionary| dictionary.pattern == kind.as_bytes());
    assert!(named("user:*") && !named("patient:*"), "there is no room for all of them");
}

#[test]
fn when_values_change_the_old_dictionary_goes_once_no_record_needs_it() {
    let (store, mut maintenance, mut session) = maintained();
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    let first = active(&store)[0].clone();

    // The same keys with values of another kind, which the dictionary knows nothing of.
    let other = |number: u64| {
        let value = String::from_utf8(user(number)).expect("it is text");
        value
            .replace(|c: char| c.is_ascii_lowercase(), "")
            .bytes()
            .rev()
            .chain(user(number).iter().map(|byte| byte ^ 0x15))
            .collect::<Vec<u8>>()
    };
    let in_band = |value: &[u8]| (first.min_len..first.max_len).contains(&value.len());
    assert!(in_band(&other(1)));
    let mut now = NOW;
    for _ in 0..3 {
        for number in 0..USERS {
            put(&mut session, format!("user:{number}").as_bytes(), &other(number));
        }
        now += 1_000;
        maintain(&mut maintenance, now);
    }
    let second = active(&store)[0].clone();
    assert!(second.number > first.number, "{:?}", store.dictionaries());
    assert!(ratio_to_before(&second) < 0.9);
    assert_eq!(second.records, USERS);
    for _ in 0..8 {
        now += 1_000;
        session.get(0, b"user:1").expect("undamaged");
        maintain(&mut maintenance, now);
    }
    assert_eq!(store.dictionaries().len(), 1, "nobody needs the first any more");
    for number in 0..USERS {
        assert_eq!(read(&mut session, format!("user:{number}").as_bytes()), Some(other(number)));
    }
}

#[test]
fn a_record_that_is_reencoded_keeps_its_expiry_and_nobody_is_told() {
    struct Count(std::sync::atomic::AtomicU64);
    impl snugly_store::Observer for Count {
        fn changed(&self, _: usize, _: &[u8], _: snugly_store::KeyChange) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        fn flushed(&self, _: Option<usize>) {}
    }
    let observer = Arc::new(Count(Default::default()));
    let theirs = observer.clone();
    let store = store_with(|config| config.observer = Some(theirs));
    let mut maintenance = store.maintenance(|| Duration::ZERO);
    let mut session = session_at(&store, NOW);
    put_users(&mut session, 0..USERS);
    let key = b"user:7";
    session.set(0, key, &user(7), Expiry::At(NOW + 60_000), Condition::Always).expect("there is room");
    let changes = observer.0.load(std::sync::atomic::Ordering::Relaxed);
    maintain(&mut maintenance, NOW);
    let value = session.peek(0, key).expect("undamaged").expect("it has not expired");
    assert!(value.record().expect("a string has a record").dictionary().is_some());
    assert_eq!(value.expiry(), Some(NOW + 60_000));
    assert_eq!(observer.0.load(std::sync::atomic::Ordering::Relaxed), changes);
}

#[test]
fn deleting_everything_forgets_the_dictionaries_too() {
    let (store, mut maintenance, mut session) = maintained();
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    put_users(&mut session, 0..10);
    let value = session.get(0, b"user:1").expect("undamaged").expect("it is there");
    drop(session.flush(None));
    assert_eq!((active(&store).len(), store.sample_stats().samples), (0, 0));
    assert_eq!(store.dictionaries()[0].records, 0);
    let mut bytes = Vec::new();
    session.read(&value, &mut bytes).expect("who has a value can read it");
    assert_eq!(bytes, user(1));
    drop(value);
    session.get(0, b"user:1").expect("undamaged");
    (1..=8).for_each(|second| maintain(&mut maintenance, NOW + second * 1_000));
    assert!(store.dictionaries().is_empty());
}

#[test]
fn a_dictionary_can_be_forgotten_and_what_needs_it_is_reencoded_first() {
    let (store, mut maintenance, mut session) = maintained();
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    let number = active(&store)[0].number;
    store.forget_dictionary(number).expect("it is there");
    assert_eq!(store.dictionaries()[0].records, USERS, "it is still needed");
    assert_users(&mut session, 0..100);
    (1..=8).for_each(|second| {
        session.get(0, b"user:1").expect("undamaged");
        maintain(&mut maintenance, NOW + second * 1_000);
    });
    assert!(store.dictionaries().is_empty(), "{:?}", store.dictionaries());
    assert_users(&mut session, 0..USERS);
    let error = store.forget_dictionary(number).expect_err("it is gone");
    assert_eq!(error.to_string(), format!("there is no dictionary {number}"));
}

#[test]
fn a_dictionary_of_one_store_can_be_used_in_another() {
    let (store, mut maintenance, mut session) = maintained();
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    let content = store.dictionary_content(active(&store)[0].number).expect("it is there");

    let (other, mut maintenance, mut session) = maintained();
    let number = other.import_dictionary(&content, b"user:*", 300).expect("it is whole");
    put_users(&mut session, 0..100);
    assert_eq!((active(&other)[0].number, active(&other)[0].records), (number, 100));
    assert_users(&mut session, 0..100);
    put(&mut session, b"visitor:1", &user(1));
    maintain(&mut maintenance, NOW);
    assert_eq!(active(&other)[0].records, 100);
    assert_eq!(other.dictionary_content(number), Some(content.clone()));

    for (content, len, words) in [
        (&content[..content.len() - 1], 300, "the dictionary says that its ID is"),
        (b"no dictionary", 300, "not a zstd dictionary"),
        (&content[..], 31, "no dictionary is used for values of 31 bytes"),
    ] {
        let error = other.import_dictionary(content, b"*", len).expect_err("it is refused").to_string();
        assert!(error.starts_with(words), "{error}");
    }
    other.change_settings(|settings| settings.dictionaries.max_memory = 1 << 10);
    let error = other.import_dictionary(&content, b"*", 300).expect_err("it is refused").to_string();
    assert!(error.contains("and 0 are left for dictionaries: raise dictionary-memory"), "{error}");
}

#[test]
fn a_training_can_be_asked_for_before_it_is_due() {
    let (store, mut maintenance, mut session) = maintained();
    put_users(&mut session, 0..160);
    maintain(&mut maintenance, NOW);
    assert_eq!(store.sample_stats().trainings, 0);
    assert_eq!(store.train_dictionaries(Some(b"visitor:*")), 0);
    maintain(&mut maintenance, NOW);
    assert_eq!(store.sample_stats().trainings, 0);
    assert_eq!(store.train_dictionaries(Some(b"user:*")), 1);
    maintain(&mut maintenance, NOW);
    assert_eq!(store.sample_stats().trainings, 1, "{:?}", store.sample_stats());
}

#[test]
fn copies_count_and_what_is_evicted_or_deleted_does_not() {
    let (store, mut maintenance, mut session) = maintained();
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    let records = || active(&store)[0].records;
    session.copy((0, b"user:1"), (3, b"copy")).expect("there is room");
    assert_eq!(records(), USERS + 1);
    session.rename((0, b"user:2"), (0, b"renamed")).expect("there is room");
    session.delete(0, b"user:3").expect("undamaged");
    put(&mut session, b"user:4", b"short");
    assert_eq!(records(), USERS - 1);
    store.swap(0, 3);
    drop(store.flush(Some(0)));
    assert_eq!(records(), USERS - 2);
}

#[test]
fn threads_write_and_read_while_dictionaries_come_and_go() {
    let (store, mut maintenance, _) = maintained();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3u64)
            .map(|thread| {
                let store = &store;
                scope.spawn(move || {
                    let mut session = store.session();
                    for round in 0..4 {
                        let numbers = (0..4_000).map(|number| 10 * number + thread);
                        for number in numbers.clone() {
                            put(&mut session, format!("user:{number}").as_bytes(), &user(number + round));
                        }
                        for number in numbers {
                            let key = format!("user:{number}");
                            assert_eq!(read(&mut session, key.as_bytes()), Some(user(number + round)));
                        }
                    }
                })
            })
            .collect();
        let (store, stop, maintenance) = (&store, &stop, &mut maintenance);
        scope.spawn(move || {
            let mut now = snugly_store::system_time();
            let mut trainings = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                now += 1_000;
                maintain(maintenance, now);
                let seen = store.sample_stats().trainings;
                if seen > trainings {
                    trainings = seen;
                    // Trained dictionaries go, and are trained again.
                    for enabled in [false, true] {
                        store.change_settings(|settings| settings.dictionaries.enabled = enabled);
                        now += 1_000;
                        maintain(maintenance, now);
                    }
                }
            }
        });
        for thread in threads {
            thread.join().expect("it reads what it has written");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(store.sample_stats().trainings > 0);
}

fn verify(path: &Path) -> CheckReport {
    check(path, |_| {}).expect("the store can be checked")
}

/// Advances time until there are this many dictionaries; the rows of flushed data go in the background.
fn tend_until(store: &Store, maintenance: &mut StoreMaintenance, session: &mut Session, count: usize) {
    let mut now = NOW;
    while store.dictionaries().len() != count {
        assert!(now < NOW + 12_000_000, "{:?}", store.dictionaries());
        now += 1_000;
        session.get(0, b"user:1").expect("undamaged");
        maintain(maintenance, now);
        settle(store);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn dictionaries_survive_a_restart_with_what_is_known_of_them() {
    for (max_memory, durability) in [(1, Durability::None), (0, Durability::Batched), (0, Durability::Fsync)]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path(), max_memory, durability);
        let (mut maintenance, mut session) = (store.maintenance(|| Duration::ZERO), session_at(&store, NOW));
        put_users(&mut session, 0..USERS);
        settle(&store);
        maintain(&mut maintenance, NOW);
        settle(&store);
        let before = store.dictionaries();
        assert_eq!(active(&store)[0].records, USERS, "{before:?}");
        assert_users(&mut session, 0..USERS);
        drop((session, maintenance));
        close(store);
        assert_eq!(verify(folder.path()).faults, Vec::<String>::new());

        let store = open(folder.path(), max_memory, durability);
        assert_eq!(store.dictionaries(), before);
        let (mut maintenance, mut session) = (store.maintenance(|| Duration::ZERO), session_at(&store, NOW));
        assert_users(&mut session, 0..USERS);
        put_users(&mut session, USERS..USERS + 2_000);
        maintain(&mut maintenance, NOW);
        settle(&store);
        assert_eq!(store.sample_stats().samples, 0, "the class has its dictionary");
        assert_eq!(active(&store)[0].records, USERS + 2_000);
        drop((session, maintenance));
        close(store);
    }
}

#[test]
fn on_disk_too_the_old_dictionary_goes_once_no_record_needs_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 1, Durability::None);
    let (mut maintenance, mut session) = (store.maintenance(|| Duration::ZERO), session_at(&store, NOW));
    put_users(&mut session, 0..USERS);
    settle(&store);
    maintain(&mut maintenance, NOW);
    settle(&store);
    let first = active(&store)[0].number;
    drop(session.flush(None));
    assert!(active(&store).is_empty());
    put_users(&mut session, 0..USERS);
    settle(&store);
    maintain(&mut maintenance, NOW + 1_000);
    assert_eq!(
        store.dictionaries().len(),
        2,
        "the first one's rows are not all gone, or it is not long enough"
    );
    tend_until(&store, &mut maintenance, &mut session, 1);
    let dictionaries = store.dictionaries();
    assert_eq!(dictionaries.len(), 1, "{dictionaries:?}");
    assert!(dictionaries[0].number > first);
    assert_eq!(dictionaries[0].records, USERS);
    assert_users(&mut session, 0..USERS);
    drop((session, maintenance));
    close(store);
    assert_eq!(verify(folder.path()).faults, Vec::<String>::new());
}

#[test]
fn after_everything_was_deleted_a_restart_brings_no_dictionary_back_into_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 0, Durability::Batched);
    let (mut maintenance, mut session) = (store.maintenance(|| Duration::ZERO), session_at(&store, NOW));
    put_users(&mut session, 0..USERS);
    settle(&store);
    maintain(&mut maintenance, NOW);
    drop(session.flush(None));
    drop((session, maintenance));
    close(store);
    let store = open(folder.path(), 0, Durability::Batched);
    assert!(active(&store).is_empty());
    let (mut maintenance, mut session) = (store.maintenance(|| Duration::ZERO), session_at(&store, NOW));
    tend_until(&store, &mut maintenance, &mut session, 0);
    settle(&store);
    drop((session, maintenance));
    close(store);
    let store = open(folder.path(), 0, Durability::Batched);
    assert!(store.dictionaries().is_empty());
}

#[test]
fn a_damaged_dictionary_is_an_error_for_what_needs_it_and_never_wrong_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 0, Durability::Batched);
    let (mut maintenance, mut session) = (store.maintenance(|| Duration::ZERO), session_at(&store, NOW));
    put_users(&mut session, 0..USERS);
    put(&mut session, b"plain", b"value");
    settle(&store);
    maintain(&mut maintenance, NOW);
    settle(&store);
    let content = store.dictionary_content(active(&store)[0].number).expect("it is there");
    drop((session, maintenance));
    close(store);

    let path = folder.path().join("data.mdb");
    let mut bytes = fs::read(&path).expect("it can be read");
    let part = &content[1_000..1_032];
    let places: Vec<usize> = (0..bytes.len() - 32).filter(|&at| &bytes[at..at + 32] == part).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| bytes[at] ^= 1);
    fs::write(&path, bytes).expect("it can be written");
    assert!(verify(folder.path()).fault_count > 1);

    let store = open(folder.path(), 0, Durability::Batched);
    assert_eq!(store.disk_stats().expect("it is on disk").damaged, 1);
    let (mut maintenance, mut session) = (store.maintenance(|| Duration::ZERO), session_at(&store, NOW));
    let value = session.get(0, b"user:7").expect("the row is whole").expect("it is there");
    assert_eq!(value.len(), user(7).len());
    let error = session.read(&value, &mut Vec::new()).expect_err("what it needs is gone");
    assert!(matches!(error, StoreError::Unreadable { .. }), "{error}");
    assert_eq!(read(&mut session, b"plain"), Some(b"value".to_vec()));
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    settle(&store);
    let next = active(&store)[0].clone();
    assert!(next.number > 1, "the number of the lost one is not given again");
    assert_eq!(next.records, USERS);
    assert_users(&mut session, 0..USERS);
}
