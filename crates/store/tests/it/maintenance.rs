//! Background maintenance of dictionaries: whatever happens meanwhile, records come to have the dictionary
//! that is for them, and unneeded ones go.
#![cfg(feature = "zstd")]

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::alike::*;
use crate::support::*;
use snugly_store::{Durability, EvictionPolicy, Expiry, ManyCondition, Session, Store, StoreMaintenance};

/// A store with users that have a dictionary, of this number.
fn with_users() -> (Arc<Store>, StoreMaintenance, Session, u32) {
    let (store, mut maintenance, mut session) = maintained();
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    let number = active(&store)[0].number;
    session.follow();
    (store, maintenance, session, number)
}

/// Advances time by seconds, at the start of which no work is left.
fn tend_seconds(maintenance: &mut StoreMaintenance, seconds: std::ops::RangeInclusive<u64>) {
    seconds.for_each(|second| maintain(maintenance, NOW + second * 1_000));
}

/// A dictionary for users that was made by another store.
fn content() -> Vec<u8> {
    let (store, _, _, number) = with_users();
    store.dictionary_content(number).expect("it is there")
}

#[test]
fn a_walk_that_a_restart_has_cut_off_is_begun_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 0, Durability::Batched);
    let (mut maintenance, mut session) = (store.maintenance(|| Duration::ZERO), session_at(&store, NOW));
    put_users(&mut session, 0..USERS);
    settle(&store);
    maintain(&mut maintenance, NOW);
    store.forget_dictionary(active(&store)[0].number).expect("it is there");
    drop((session, maintenance));
    close(store);

    let store = open(folder.path(), 0, Durability::Batched);
    assert_eq!(store.dictionaries()[0].records, USERS);
    let (mut maintenance, mut session) = (store.maintenance(|| Duration::ZERO), session_at(&store, NOW));
    for second in 1..=20 {
        session.follow();
        maintain(&mut maintenance, NOW + second * 1_000);
        settle(&store);
    }
    assert!(store.dictionaries().is_empty(), "{:?}", store.dictionaries());
    assert_users(&mut session, 0..USERS);
}

#[test]
fn a_record_that_is_renamed_to_where_the_walk_has_been_is_found_by_the_next() {
    let (store, mut maintenance, mut session, number) = with_users();
    store.forget_dictionary(number).expect("it is there");
    while store.dictionaries()[0].records > USERS / 2 {
        assert!(maintenance.step(NOW + 1_000));
    }
    let needs_it = |session: &mut Session, user: u64| {
        let value = session.peek(0, format!("user:{user}").as_bytes()).expect("undamaged");
        value.is_some_and(|value| value.record().expect("a string has a record").dictionary().is_some())
    };
    let ahead = (0..USERS).find(|&user| needs_it(&mut session, user)).expect("half of them are ahead");
    let mut behind = Vec::new();
    session.scan(0, 0, 1, |key| behind = key.to_vec()).expect("there are keys");
    session.rename((0, format!("user:{ahead}").as_bytes()), (0, &behind)).expect("there is room");
    tend_seconds(&mut maintenance, 1..=1);
    assert_eq!(store.dictionaries()[0].records, 1);
    session.follow();
    tend_seconds(&mut maintenance, 2..=20);
    assert!(store.dictionaries().is_empty(), "{:?}", store.dictionaries());
    assert_eq!(read(&mut session, &behind), Some(user(ahead)));
}

#[test]
fn what_is_only_on_disk_is_reencoded_while_others_write_beside_it() {
    let (content, folder) = (content(), tempfile::tempdir().expect("a folder"));
    let store = open(folder.path(), 0, Durability::None);
    put_users(&mut session_at(&store, NOW), 0..USERS);
    close(store);

    let store = open(folder.path(), 0, Durability::None);
    let mut maintenance = store.maintenance(|| Duration::ZERO);
    store.import_dictionary(&content, b"user:*", 300).expect("it is whole");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = session_at(&store, NOW);
            while !stop.load(Ordering::Relaxed) {
                (0..100).for_each(|number: u32| put(&mut session, &number.to_be_bytes(), b"value"));
            }
        });
        maintain(&mut maintenance, NOW);
        stop.store(true, Ordering::Relaxed);
    });
    settle(&store);
    assert_eq!(active(&store)[0].records, USERS);
    assert_users(&mut session_at(&store, NOW), 0..USERS);
}

#[test]
fn encoding_anew_keeps_to_the_memory_that_there_may_be() {
    let (store, mut maintenance, mut session, number) = with_users();
    let most = store.used_memory() + 100_000;
    store.change_settings(|settings| {
        settings.max_memory = most;
        settings.eviction = EvictionPolicy::NoEviction;
    });
    store.forget_dictionary(number).expect("it is there");
    for second in 1..=60 {
        session.follow();
        maintain(&mut maintenance, NOW + second * 1_000);
        assert!(store.used_memory() <= most);
    }
    let left = store.dictionaries()[0].records;
    assert!((1..USERS).contains(&left), "there was room for some of them: {left}");
    assert_users(&mut session, 0..USERS);
    store.change_settings(|settings| settings.max_memory = 0);
    session.follow();
    tend_seconds(&mut maintenance, 61..=100);
    assert!(store.dictionaries().is_empty(), "{:?}", store.dictionaries());
    assert_users(&mut session, 0..USERS);
}

#[test]
fn a_dictionary_stays_until_all_that_is_written_at_once_is_there() {
    let (store, maintenance, mut session, number) = with_users();
    let users: Vec<(String, Vec<u8>)> =
        (0..3).map(|number| (format!("user:new:{number}"), user(number))).collect();
    for key in 0..USERS {
        session.delete(0, format!("user:{key}").as_bytes()).expect("undamaged");
    }
    let (now, maintenance) = (Cell::new(NOW), RefCell::new(maintenance));
    let pairs = users.iter().enumerate().map(|(place, (key, value))| {
        if place == 1 {
            store.forget_dictionary(number).expect("it is there");
        }
        for _ in 0..10 {
            now.set(now.get() + 1_000);
            maintain(&mut maintenance.borrow_mut(), now.get());
        }
        (key.as_bytes(), &value[..])
    });
    let written = session.set_many(0, pairs, Expiry::Never, ManyCondition::Always);
    assert!(written.expect("there is room"));
    for (key, value) in &users {
        assert_eq!(read(&mut session, key.as_bytes()).as_ref(), Some(value));
    }
}

#[test]
fn a_session_that_nobody_uses_holds_nothing_up_if_it_follows() {
    let (store, mut maintenance, mut session, number) = with_users();
    store.forget_dictionary(number).expect("it is there");
    tend_seconds(&mut maintenance, 1..=20);
    assert_eq!(store.dictionaries().len(), 1, "the session could still use it");
    session.follow();
    tend_seconds(&mut maintenance, 21..=40);
    assert!(store.dictionaries().is_empty());
}

#[test]
fn a_clock_that_jumps_drops_nothing_early() {
    let (store, mut maintenance, mut session, number) = with_users();
    store.forget_dictionary(number).expect("it is there");
    session.follow();
    tend_seconds(&mut maintenance, 1..=2);
    tend_seconds(&mut maintenance, 4_000..=4_000);
    assert_eq!(store.dictionaries().len(), 1);
    tend_seconds(&mut maintenance, 4_001..=4_010);
    assert!(store.dictionaries().is_empty());
}

#[test]
fn what_is_reencoded_says_nothing_about_what_is_written() {
    let (store, mut maintenance, mut session, _) = with_users();
    tend_seconds(&mut maintenance, 1..=2);
    assert_eq!(active(&store)[0].ratio_now, None);
    put_users(&mut session, 0..USERS);
    tend_seconds(&mut maintenance, 3..=3);
    assert!(active(&store)[0].ratio_now.is_some());
}

#[test]
fn values_of_each_kind_are_noted_even_if_they_are_written_in_turns() {
    let (content, (store, mut maintenance, mut session)) = (content(), maintained());
    for pattern in [&b"user:*"[..], b"visitor:*"] {
        store.import_dictionary(&content, pattern, 300).expect("it is whole");
    }
    for number in 0..10_000 {
        put(&mut session, format!("user:{number}").as_bytes(), &user(number));
        put(&mut session, format!("visitor:{number}").as_bytes(), &user(number));
    }
    maintenance.step(NOW);
    let noted = store.dictionaries().iter().filter(|dictionary| dictionary.ratio_now.is_some()).count();
    assert_eq!(noted, 2);
}

#[test]
fn what_was_imported_is_compared_with_what_can_be_learned() {
    let (good, (store, mut maintenance, mut session)) = (content(), maintained());
    let number = store.import_dictionary(&good, b"*", 300).expect("it is whole");
    assert_eq!((active(&store)[0].ratio_before, active(&store)[0].ratio_after), (None, None));
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    assert!(store.sample_stats().trainings > 0);
    let numbers: Vec<u32> = active(&store).iter().map(|dictionary| dictionary.number).collect();
    assert_eq!(numbers, [number], "another for these keys would hardly be better");

    let (other, mut maintenance, mut session) = maintained();
    for number in 0..USERS {
        let value = user(number).iter().map(|byte| byte ^ 0x15).collect::<Vec<u8>>();
        put(&mut session, format!("user:{number}").as_bytes(), &value);
    }
    maintain(&mut maintenance, NOW);
    let bad = other.dictionary_content(active(&other)[0].number).expect("it is there");
    let (store, mut maintenance, mut session) = maintained();
    let number = store.import_dictionary(&bad, b"user:*", 300).expect("it is whole");
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    assert!(active(&store)[0].number > number, "{:?}", active(&store));
    assert_eq!(active(&store)[0].records, USERS);
}

#[test]
fn a_dictionary_fits_in_the_place_of_another_and_not_beside_two() {
    let (content, (store, mut maintenance, mut session)) = (content(), maintained());
    let import = || store.import_dictionary(&content, b"user:*", 300).map_err(|error| error.to_string());
    import().expect("it is whole");
    let memory = active(&store)[0].memory;
    store.change_settings(|settings| settings.dictionaries.max_memory = 2 * (memory + memory / 2));
    import().expect("it takes the place of the first");
    let error = import().expect_err("the first is not gone yet");
    assert!(error.contains("are left for dictionaries"), "{error}");
    session.follow();
    tend_seconds(&mut maintenance, 1..=10);
    import().expect("the first is gone");
    put_users(&mut session, 0..10);
    assert_users(&mut session, 0..10);
}

#[test]
fn globs_that_mean_something_else_here_are_refused() {
    let (content, (store, _, _)) = (content(), maintained());
    let long = [b'x'; 257];
    for pattern in [&b""[..], b"user:?", b"user:[ab]*", b"us*er:*", b"*r:1", b"user\\*", b"**", &long] {
        let error = store.import_dictionary(&content, pattern, 300).expect_err("it is refused").to_string();
        assert!(error.starts_with("the pattern cannot be used: write 1 to 256 bytes"), "{error}");
    }
    for pattern in [&b"*"[..], b"user*", b"user:*:profile", b"u*/*|x#*", b"config", &long[1..]] {
        store.import_dictionary(&content, pattern, 300).expect("it is usable");
    }
}

#[test]
fn a_class_that_has_died_has_no_dictionary_some_minutes_later() {
    let (store, mut maintenance, mut session, _) = with_users();
    let imported = store.import_dictionary(&content(), b"visitor:*", 300).expect("it is whole");
    for number in 0..USERS {
        session.delete(0, format!("user:{number}").as_bytes()).expect("undamaged");
    }
    let mut minutes = |minutes: std::ops::RangeInclusive<u64>| {
        for minute in minutes {
            session.follow();
            maintain(&mut maintenance, NOW + minute * 60_000);
        }
    };
    minutes(1..=9);
    assert_eq!(active(&store).len(), 2);
    minutes(10..=20);
    let numbers: Vec<u32> = store.dictionaries().iter().map(|dictionary| dictionary.number).collect();
    assert_eq!(numbers, [imported], "what was imported waits for its values");
}

#[test]
fn what_is_written_in_a_transaction_is_sampled_as_well() {
    let (store, _maintenance, mut session) = maintained();
    session.all_exclusively(|session| put_users(session, 0..100));
    assert_eq!(store.sample_stats().samples, 100);
}

#[test]
fn trainings_and_the_walk_take_turns() {
    let (store, mut maintenance, mut session) = maintained();
    for kind in ["user", "visitor", "member"] {
        for number in 0..USERS {
            put(&mut session, format!("{kind}:{number}").as_bytes(), &user(number));
        }
    }
    let mut step = || {
        assert!(maintenance.step(NOW));
        store.sample_stats().trainings
    };
    assert_eq!((step(), step()), (1, 1));
    assert!(active(&store)[0].records > 0);
    assert_eq!((step(), step()), (2, 2));
}
