//! Records that nobody uses are re-encoded at a stronger level, once, and nobody notices but those who count bytes.
#![cfg(feature = "zstd")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::alike::*;
use crate::support::*;
use snugly_store::{
    Choice, Condition, Durability, EvictionPolicy, ExpireConditions, Expiry, Goal, Metadata, Session, Store,
    StoreMaintenance,
};

/// After so long a record is cold, in seconds.
const COLD_AFTER: u64 = 600;
/// Time at which values written at first have become cold.
const COLD: u64 = NOW + 2 * COLD_AFTER * 1_000;
/// The next time that a pass is due and what was used before has become cold.
const LATER: u64 = COLD + 2 * COLD_AFTER * 1_000;
const FEW: u64 = 600;

/// A text of words that others have, too, in an order of its own.
fn page(number: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(number);
    let words: Vec<String> = (0..60)
        .map(|_| {
            let mut word = fastrand::Rng::with_seed(random.u64(..200));
            (0..word.usize(3..9)).map(|_| word.lowercase()).collect()
        })
        .collect();
    format!("<p>{}</p>", words.join(" ")).into_bytes()
}

/// A store with users that have a dictionary.
fn with_users() -> (Arc<Store>, StoreMaintenance, Session) {
    let (store, mut maintenance, mut session) = maintained();
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    assert_eq!(active(&store)[0].records, USERS);
    (store, maintenance, session)
}

/// A store with some users and no dictionaries.
fn with_few_users() -> (Arc<Store>, StoreMaintenance, Session) {
    let (store, mut maintenance, mut session) = maintained();
    store.change_settings(|settings| settings.dictionaries.enabled = false);
    put_users(&mut session, 0..FEW);
    maintain(&mut maintenance, NOW);
    (store, maintenance, session)
}

#[test]
fn a_recompressed_value_keeps_its_flags_and_its_version() {
    let (store, mut maintenance, mut session) = with_few_users();
    let metadata = Metadata { client_flags: 7, version: session.new_version(), ..Metadata::default() };
    let key = |user: u64| format!("user:{user}").into_bytes();
    for user in 0..FEW {
        session
            .alter(0, &key(user), |_, kept| kept.metadata = metadata)
            .expect("undamaged")
            .expect("it is there");
    }
    maintain(&mut maintenance, COLD);
    assert_eq!(tried(&store), FEW);
    for user in 0..FEW {
        let value = session.peek(0, &key(user)).expect("undamaged").expect("it is there");
        assert_eq!(value.metadata(), metadata);
    }
}

fn tried(store: &Store) -> u64 {
    store.recompression_stats().tried
}

/// Does all that is to be done for a store on disk by this time.
fn tend_on_disk(store: &Store, maintenance: &mut StoreMaintenance, now: u64) {
    for second in 0..FEW / 100 {
        maintain(maintenance, now + second * 1_000);
        settle(store);
    }
}

/// A store on disk that holds some users without dictionaries.
fn open_without_dictionaries(path: &Path, durability: Durability) -> (Arc<Store>, StoreMaintenance) {
    let store = open(path, 0, durability);
    store.change_settings(|settings| settings.dictionaries.enabled = false);
    let maintenance = store.maintenance(|| Duration::ZERO);
    (store, maintenance)
}

#[test]
fn what_nobody_uses_becomes_smaller_and_reads_back() {
    let (store, mut maintenance, mut session) = maintained();
    let key = |number: u64| format!("page:{number}");
    (0..USERS).for_each(|number| put(&mut session, key(number).as_bytes(), &page(number)));
    maintain(&mut maintenance, NOW);
    let (before, dictionary) = (store.used_memory(), active(&store)[0].memory);
    maintain(&mut maintenance, NOW + (COLD_AFTER - 1) * 1_000);
    assert_eq!((tried(&store), store.used_memory()), (0, before));
    maintain(&mut maintenance, COLD);
    let stats = store.recompression_stats();
    assert_eq!(stats.tried, USERS);
    assert!(stats.recompressed > USERS / 4, "{stats:?}");
    assert_eq!(before - store.used_memory(), stats.saved_bytes);
    assert_eq!((stats.table_bytes, active(&store)[0].memory), (0, dictionary), "its tables are gone");
    assert_eq!(active(&store)[0].records, USERS);
    (0..USERS).for_each(|number| assert_eq!(read(&mut session, key(number).as_bytes()), Some(page(number))));
}

#[test]
fn what_has_no_dictionary_becomes_smaller_too() {
    let (store, mut maintenance, mut session) = with_few_users();
    let before = store.used_memory();
    maintain(&mut maintenance, COLD);
    let stats = store.recompression_stats();
    assert_eq!((stats.tried, before - store.used_memory()), (FEW, stats.saved_bytes));
    assert!(stats.recompressed > 0, "{stats:?}");
    assert_users(&mut session, 0..FEW);
}

#[test]
fn what_is_in_use_stays_as_it_is() {
    let (store, mut maintenance, mut session) = with_few_users();
    session.set_now(Some(COLD - 1_000));
    assert_users(&mut session, 0..100);
    put_users(&mut session, 100..150);
    maintain(&mut maintenance, COLD);
    assert_eq!(tried(&store), FEW - 150);
    maintain(&mut maintenance, LATER);
    assert_eq!(tried(&store), FEW);
}

#[test]
fn nothing_is_tried_twice_unless_it_is_written_again() {
    let (store, mut maintenance, mut session) = with_few_users();
    for now in [COLD, LATER] {
        maintain(&mut maintenance, now);
        assert_eq!(tried(&store), FEW, "also what did not become smaller");
    }
    session.set_now(Some(LATER));
    put_users(&mut session, 0..10);
    maintain(&mut maintenance, LATER + 2 * COLD_AFTER * 1_000);
    assert_eq!(tried(&store), FEW + 10);
}

#[test]
fn copies_and_changes_of_the_expiry_are_not_tried_again() {
    let (store, mut maintenance, mut session) = with_few_users();
    maintain(&mut maintenance, COLD);
    for number in 0..FEW / 3 {
        let key = format!("user:{number}");
        session.copy((0, key.as_bytes()), (1, b"copy")).expect("there is room");
        session.rename((1, b"copy"), (2, key.as_bytes())).expect("there is room");
        let expiry = Expiry::At(LATER + 100_000_000);
        session.expire(0, key.as_bytes(), expiry, ExpireConditions::default()).expect("undamaged");
    }
    maintain(&mut maintenance, LATER);
    assert_eq!(tried(&store), FEW);
}

#[test]
fn to_everybody_else_nothing_changes() {
    let changes = Arc::new(Changes::default());
    let observer = changes.clone();
    let store = store_with(|config| config.observer = Some(observer));
    let mut maintenance = store.maintenance(|| Duration::ZERO);
    let mut session = session_at(&store, NOW);
    put_users(&mut session, 0..FEW);
    session.expire(0, b"user:1", Expiry::At(LATER), ExpireConditions::default()).expect("undamaged");
    let seen = |session: &mut Session| -> Vec<_> {
        let look = |number| {
            let key = format!("user:{number}");
            let value = session.peek(0, key.as_bytes()).expect("undamaged").expect("it is there");
            (value.idle_seconds(COLD), value.frequency(), value.expiry(), value.len())
        };
        (0..FEW).map(look).collect()
    };
    let before = (seen(&mut session), changes.count(), store.stats().hits);
    maintain(&mut maintenance, COLD);
    assert_eq!(tried(&store), FEW);
    assert_eq!((seen(&mut session), changes.count(), store.stats().hits), before);
}

#[test]
fn only_zstd_is_recompressed_and_not_where_speed_is_the_goal() {
    let (store, mut maintenance, mut session) = with_few_users();
    let image = random_bytes(500, 1);
    put(&mut session, b"image", &image);
    store.change_settings(|settings| settings.compression = Choice::none());
    session.follow();
    put(&mut session, b"plain", &user(1));
    for change in
        [(|settings| settings.goal = Some(Goal::Speed)) as fn(&mut snugly_store::Settings), |settings| {
            (settings.goal, settings.recompression.after) = (None, 0)
        }]
    {
        store.change_settings(change);
        maintain(&mut maintenance, COLD);
        assert_eq!(tried(&store), 0);
    }
    store.change_settings(|settings| settings.recompression.after = 60);
    maintain(&mut maintenance, LATER);
    assert_eq!(tried(&store), FEW);
    assert_eq!(read(&mut session, b"image"), Some(image));
}

#[test]
fn where_values_are_written_as_strongly_there_is_nothing_to_do() {
    let (store, mut maintenance, _) = with_few_users();
    store.change_settings(|settings| {
        settings.compression = Choice::new("zstd", Some(19), 64).expect("it is built in");
    });
    maintain(&mut maintenance, COLD);
    assert_eq!(tried(&store), 0);
}

#[test]
fn what_needs_a_dictionary_that_is_forgotten_is_reencoded_and_recompressed_again() {
    let (store, mut maintenance, mut session) = with_users();
    let number = active(&store)[0].number;
    maintain(&mut maintenance, COLD);
    store.change_settings(|settings| settings.dictionaries.enabled = false);
    store.forget_dictionary(number).expect("it is there");
    for second in 1..=20 {
        session.follow();
        maintain(&mut maintenance, COLD + second * 1_000);
    }
    assert!(store.dictionaries().is_empty(), "{:?}", store.dictionaries());
    let before = tried(&store);
    maintain(&mut maintenance, LATER);
    assert_eq!(tried(&store), before + USERS, "they are cold as before");
    assert_users(&mut session, 0..USERS);
}

#[test]
fn what_was_tried_is_known_after_a_restart_and_when_it_is_read_from_disk() {
    for durability in [Durability::Batched, Durability::Fsync] {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, mut maintenance) = open_without_dictionaries(folder.path(), durability);
        let mut session = session_at(&store, NOW);
        put_users(&mut session, 0..FEW);
        // In chunks.
        let long: Vec<u8> = (0..100).flat_map(user).collect();
        put(&mut session, b"long", &long);
        settle(&store);
        tend_on_disk(&store, &mut maintenance, NOW);
        tend_on_disk(&store, &mut maintenance, COLD);
        assert_eq!(tried(&store), FEW + 1);
        drop((session, maintenance));
        close(store);

        let (store, mut maintenance) = open_without_dictionaries(folder.path(), durability);
        let mut session = session_at(&store, NOW);
        tend_on_disk(&store, &mut maintenance, NOW);
        tend_on_disk(&store, &mut maintenance, COLD);
        assert_users(&mut session, 0..FEW);
        assert_eq!(read(&mut session, b"long"), Some(long));
        tend_on_disk(&store, &mut maintenance, LATER);
        assert_eq!(tried(&store), 0);
        drop((session, maintenance));
        close(store);
    }
}

#[test]
fn what_is_only_on_disk_becomes_smaller_there_and_does_not_stay_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, maintenance) = open_without_dictionaries(folder.path(), Durability::Batched);
    put_users(&mut session_at(&store, NOW), 0..FEW);
    drop(maintenance);
    close(store);

    let (store, mut maintenance) = open_without_dictionaries(folder.path(), Durability::Batched);
    let before = store.used_memory();
    tend_on_disk(&store, &mut maintenance, NOW);
    assert_eq!(tried(&store), 0, "as long as it is not known whether anybody wants them");
    tend_on_disk(&store, &mut maintenance, NOW + COLD_AFTER * 1_000);
    assert_eq!(tried(&store), FEW);
    assert!(store.recompression_stats().recompressed > 0);
    maintain(&mut maintenance, COLD);
    let left = store.used_memory() - before;
    assert!(left < 20_000, "{left} bytes are left of some hundred thousand");
    assert!(!store.is_in_memory(0, b"user:1"));
    let mut session = session_at(&store, COLD);
    assert_users(&mut session, 0..FEW);
    drop((session, maintenance));
    close(store);
}

#[test]
fn what_is_read_meanwhile_stays_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, maintenance) = open_without_dictionaries(folder.path(), Durability::Batched);
    put_users(&mut session_at(&store, NOW), 0..10);
    drop(maintenance);
    close(store);

    let (store, mut maintenance) = open_without_dictionaries(folder.path(), Durability::Batched);
    maintain(&mut maintenance, NOW);
    while tried(&store) < 10 {
        maintenance.step(NOW + COLD_AFTER * 1_000);
    }
    assert_users(&mut session_at(&store, NOW + COLD_AFTER * 1_000), 0..10);
    settle(&store);
    maintain(&mut maintenance, COLD);
    assert!((0..10).all(|number| store.is_in_memory(0, format!("user:{number}").as_bytes())));
    drop(maintenance);
    close(store);
}

#[test]
fn memory_that_is_full_stays_within_its_budget() {
    let store = limited(200_000, EvictionPolicy::AllKeysLru);
    store.change_settings(|settings| settings.dictionaries.enabled = false);
    let (mut maintenance, mut session) = (store.maintenance(|| Duration::ZERO), session_at(&store, NOW));
    put_users(&mut session, 0..5_000);
    maintain(&mut maintenance, COLD);
    assert!(tried(&store) > 0 && store.used_memory() <= 200_000);
    let left: Vec<u64> = (0..5_000)
        .filter(|number| session.peek(0, format!("user:{number}").as_bytes()).is_ok_and(|v| v.is_some()))
        .collect();
    assert_eq!(left.len() as u64, tried(&store));
    left.iter().for_each(|&number| assert_users(&mut session, number..number + 1));

    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path(), 200_000, Durability::Batched);
    let (mut maintenance, mut session) = (store.maintenance(|| Duration::ZERO), session_at(&store, NOW));
    put_users(&mut session, 0..5_000);
    settle(&store);
    maintain(&mut maintenance, NOW);
    for second in 0..60 {
        maintain(&mut maintenance, COLD + second * 1_000);
        settle(&store);
    }
    assert_eq!(tried(&store), 5_000);
    assert_users(&mut session, 0..5_000);
    drop((session, maintenance));
    close(store);
}

#[test]
fn whoever_writes_and_reads_meanwhile_finds_what_was_written_last() {
    let folder = tempfile::tempdir().expect("a folder");
    for store in [store_with(|_| {}), open(folder.path(), 100_000, Durability::Batched)] {
        let mut maintenance = store.maintenance(|| Duration::ZERO);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (store, stop) = (&store, &stop);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(thread);
                    let mut written = [None; 50];
                    let mut now = NOW;
                    while !stop.load(Ordering::Relaxed) {
                        let mut session = session_at(store, now);
                        for _ in 0..100 {
                            let place = random.usize(..written.len());
                            let key = format!("user:{thread}:{place}");
                            match random.u8(..8) {
                                0 => {
                                    let number = random.u64(..1_000_000);
                                    put(&mut session, key.as_bytes(), &user(number));
                                    written[place] = Some(number);
                                }
                                1 => {
                                    session.delete(0, key.as_bytes()).expect("undamaged");
                                    written[place] = None;
                                }
                                _ => assert_eq!(read(&mut session, key.as_bytes()), written[place].map(user)),
                            }
                        }
                        now += 1_000;
                    }
                });
            }
            let mut now = NOW;
            while tried(&store) < 1_000 {
                now += 10_000_000;
                maintain(&mut maintenance, now);
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_value_that_expires_meanwhile_is_gone() {
    let (store, mut maintenance, mut session) = with_few_users();
    session.set(0, b"user:1", &user(1), Expiry::At(COLD - 1), Condition::Always).expect("there is room");
    maintain(&mut maintenance, COLD);
    assert_eq!(tried(&store), FEW - 1);
    session.set_now(Some(COLD));
    assert_eq!(read(&mut session, b"user:1"), None);
}
