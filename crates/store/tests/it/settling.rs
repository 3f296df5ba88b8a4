//! Values that stay are encoded anew with what suits how often they are read, and nobody notices but those who count bytes.
#![cfg(all(feature = "zstd", feature = "lz4"))]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::support::alike::*;
use crate::support::*;
use snugly_store::{
    Choice, Config, Durability, ExpireConditions, Expiry, Goal, RecompressionStats, Session, Stage, Storage,
    Store, StoreMaintenance,
};

/// Time after which another pass is due in any case.
const REST: u64 = 60_000;
/// Reads between two passes of values most of which count as read seldom and often: chance decides.
const SELDOM: u64 = 5;
const OFTEN: u64 = 45;
/// Of one that certainly counts as read often at least, and constantly.
const AT_LEAST_OFTEN: u64 = 150;
const CONSTANTLY: u64 = 5_000;
/// Too few values for a decision about their class.
const FEW: u64 = 40;
const COLD_AFTER: u64 = 600_000;

fn quick(config: &mut Config) {
    config.settings.compression = Choice::new("lz4", None, 64).expect("it is built in");
    config.settings.goal = Some(Goal::Balanced);
}

/// A store that writes quickly and packs what stays, with some values.
fn with_pages() -> (Arc<Store>, StoreMaintenance, Session) {
    let store = store_with(quick);
    let maintenance = store.maintenance(|| Duration::ZERO);
    let mut session = session_at(&store, NOW);
    put_pages(&mut session);
    (store, maintenance, session)
}

fn key(number: u64) -> Vec<u8> {
    format!("page:{number}").into_bytes()
}

/// A value that has something in common with itself.
fn page(number: u64) -> Vec<u8> {
    (0..8).flat_map(|part| user(number * 8 + part)).collect()
}

fn put_pages(session: &mut Session) {
    (0..FEW).for_each(|number| put(session, &key(number), &page(number)));
}

fn assert_pages(session: &mut Session) {
    (0..FEW).for_each(|number| assert_eq!(read(session, &key(number)), Some(page(number))));
}

/// The codec and the stage of a value, without using it.
fn seen(session: &mut Session, number: u64) -> (&'static str, Stage) {
    let value = session.peek(0, &key(number)).expect("undamaged").expect("it is there");
    let codec = value.record().expect("it is a string").codec();
    (codec.name(), value.stage())
}

/// Whether most of the values have this codec and stage.
fn most_are(session: &mut Session, mut numbers: Range<u64>, expected: (&str, Stage)) -> bool {
    let count = numbers.end - numbers.start;
    2 * numbers.by_ref().filter(|number| seen(session, *number) == expected).count() as u64 > count
}

fn read_page(session: &mut Session, number: u64, times: u64) {
    (0..times).for_each(|_| assert_eq!(read(session, &key(number)), Some(page(number))));
}

/// Does all passes that are due up to this time; returns the time of the next one.
fn pass(maintenance: &mut StoreMaintenance, session: &mut Session, now: u64) -> u64 {
    maintain(maintenance, now);
    session.set_now(Some(now));
    now + REST
}

/// What passes have done, however many there were.
fn stats(store: &Store) -> RecompressionStats {
    RecompressionStats { passes: 0, ..store.recompression_stats() }
}

#[test]
fn a_value_that_stays_and_is_not_read_takes_as_little_as_it_can() {
    let (store, mut maintenance, mut session) = with_pages();
    assert_eq!(seen(&mut session, 1), ("lz4", Stage::Written));
    let later = pass(&mut maintenance, &mut session, NOW);
    assert_eq!(seen(&mut session, 1), ("lz4", Stage::Written), "it may have been written a moment ago");
    let before = store.used_memory();
    let later = pass(&mut maintenance, &mut session, later);
    assert_eq!(seen(&mut session, 1), ("zstd", Stage::Settled));
    let after = stats(&store);
    assert_eq!((after.tried, after.recompressed, after.promoted), (FEW, FEW, 0));
    assert_eq!(before - store.used_memory(), after.saved_bytes);
    assert_eq!(after.tried_bytes, (0..FEW).map(|number| page(number).len() as u64).sum::<u64>());
    let passes = store.recompression_stats().passes;
    pass(&mut maintenance, &mut session, later);
    assert_eq!(stats(&store), after, "nothing is tried twice");
    assert!(store.recompression_stats().passes > passes);
    assert_pages(&mut session);
}

#[test]
fn a_step_of_a_pass_ends_with_the_value_at_which_its_time_is_over() {
    let store = store_with(quick);
    let now = AtomicU64::new(0);
    // Each look at the clock takes a millisecond, which is more than a step may take.
    let mut maintenance =
        store.maintenance(move || Duration::from_millis(now.fetch_add(1, Ordering::Relaxed)));
    let mut session = session_at(&store, NOW);
    put_pages(&mut session);
    let later = pass(&mut maintenance, &mut session, NOW);
    let mut tried = 0;
    while maintenance.step(later) {
        assert!(stats(&store).tried <= tried + 1, "one is tried at least, and no more");
        tried = stats(&store).tried;
    }
    assert_eq!(tried, FEW);
    assert_pages(&mut session);
}

#[test]
fn a_value_that_is_read_is_encoded_with_what_is_read_quickly() {
    let (store, mut maintenance, mut session) = with_pages();
    let mut later = pass(&mut maintenance, &mut session, NOW);
    (0..10).for_each(|number| read_page(&mut session, number, SELDOM));
    (10..20).for_each(|number| read_page(&mut session, number, OFTEN));
    read_page(&mut session, 20, CONSTANTLY);
    read_page(&mut session, 21, 1);
    later = pass(&mut maintenance, &mut session, later);
    assert!(most_are(&mut session, 0..10, ("lz4", Stage::Settled)));
    assert!(most_are(&mut session, 10..20, ("lz4", Stage::Written)), "they take little time as they are");
    assert_eq!(seen(&mut session, 20), ("none", Stage::Settled));
    assert_eq!(seen(&mut session, 21), ("zstd", Stage::Settled), "one read may be by chance");
    assert!(stats(&store).promoted >= 1);
    read_page(&mut session, 20, AT_LEAST_OFTEN);
    later = pass(&mut maintenance, &mut session, later);
    assert!(most_are(&mut session, 10..20, ("zstd", Stage::Settled)), "nobody reads them any more");
    assert_eq!(seen(&mut session, 20), ("none", Stage::Settled), "it is still read often");
    later = pass(&mut maintenance, &mut session, later);
    assert_eq!(seen(&mut session, 20), ("zstd", Stage::Settled));
    let tried = stats(&store).tried;
    pass(&mut maintenance, &mut session, later);
    assert_eq!(stats(&store).tried, tried);
}

#[test]
fn a_value_that_is_written_again_begins_anew() {
    let (store, mut maintenance, mut session) = with_pages();
    let mut later = pass(&mut maintenance, &mut session, NOW);
    later = pass(&mut maintenance, &mut session, later);
    for _ in 0..3 {
        put(&mut session, &key(1), &page(1));
        later = pass(&mut maintenance, &mut session, later);
        assert_eq!(seen(&mut session, 1), ("lz4", Stage::Written));
    }
    pass(&mut maintenance, &mut session, later);
    assert_eq!(seen(&mut session, 1), ("zstd", Stage::Settled));
    assert_eq!(stats(&store).tried, FEW + 1);
}

#[test]
fn what_is_read_often_again_comes_back_and_stays_until_nobody_uses_it() {
    let (store, mut maintenance, mut session) = with_pages();
    let mut later = pass(&mut maintenance, &mut session, NOW);
    later = pass(&mut maintenance, &mut session, later);
    for (reads, codec) in [(1, "zstd"), (0, "zstd"), (OFTEN, "lz4"), (1, "lz4"), (0, "lz4")] {
        (0..10).for_each(|number| read_page(&mut session, number, reads));
        later = pass(&mut maintenance, &mut session, later);
        assert!(most_are(&mut session, 0..10, (codec, Stage::Settled)), "{reads} reads");
    }
    let after = stats(&store);
    assert!(after.promoted > 5 && after.promoted_bytes > 0, "{after:?}");
    pass(&mut maintenance, &mut session, later + 2 * COLD_AFTER);
    assert!((0..FEW).all(|number| seen(&mut session, number) == ("zstd", Stage::Cold)));
    assert_pages(&mut session);
}

#[test]
fn what_is_cold_comes_back_when_it_is_read_often() {
    let (_store, mut maintenance, mut session) = with_pages();
    let later = pass(&mut maintenance, &mut session, NOW + COLD_AFTER);
    assert_eq!(seen(&mut session, 1), ("zstd", Stage::Cold));
    read_page(&mut session, 1, AT_LEAST_OFTEN);
    pass(&mut maintenance, &mut session, later);
    let (codec, stage) = seen(&mut session, 1);
    assert!(codec != "zstd" && stage == Stage::Settled);
    assert_eq!(seen(&mut session, 2), ("zstd", Stage::Cold));
}

#[test]
fn nothing_comes_back_beyond_the_budget_of_memory() {
    let (store, mut maintenance, mut session) = with_pages();
    let later = pass(&mut maintenance, &mut session, NOW);
    let later = pass(&mut maintenance, &mut session, later);
    store.change_settings(|settings| settings.max_memory = store.used_memory() + 10);
    (0..OFTEN).for_each(|_| assert_pages(&mut session));
    pass(&mut maintenance, &mut session, later);
    assert_eq!(stats(&store).promoted, 0);
    assert_eq!((store.stats().evicted, seen(&mut session, 1)), (0, ("zstd", Stage::Settled)));
}

#[test]
fn without_a_goal_values_stay_as_they_are() {
    let (store, mut maintenance, mut session) = with_pages();
    store.change_settings(|settings| settings.goal = None);
    let later = pass(&mut maintenance, &mut session, NOW);
    let later = pass(&mut maintenance, &mut session, later);
    pass(&mut maintenance, &mut session, later + 2 * COLD_AFTER);
    assert_eq!((stats(&store).tried, seen(&mut session, 1)), (0, ("lz4", Stage::Written)));
}

#[test]
fn what_was_written_with_zstd_before_comes_to_lz4_where_it_is_read_often() {
    let (store, mut maintenance, mut session) = with_pages();
    store.change_settings(|settings| {
        settings.compression = Choice::new("zstd", None, 64).expect("it is built in")
    });
    session.follow();
    put_pages(&mut session);
    store.change_settings(|settings| {
        settings.compression = Choice::new("lz4", None, 64).expect("it is built in");
    });
    let later = pass(&mut maintenance, &mut session, NOW);
    read_page(&mut session, 1, AT_LEAST_OFTEN);
    pass(&mut maintenance, &mut session, later);
    let (codec, stage) = seen(&mut session, 1);
    assert!(codec != "zstd" && stage == Stage::Settled);
    assert_eq!(seen(&mut session, 2).0, "zstd");
    assert_pages(&mut session);
}

#[test]
fn values_with_a_dictionary_keep_it_in_all_stages() {
    let store = store_with(quick);
    let mut maintenance = store.maintenance(|| Duration::ZERO);
    let mut session = session_at(&store, NOW);
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    let number = active(&store)[0].number;
    let mut memory = store.used_memory();
    for (time, stage) in [(NOW + REST, Stage::Settled), (NOW + 2 * COLD_AFTER, Stage::Cold)] {
        maintain(&mut maintenance, time);
        let value = session.peek(0, b"user:7").expect("undamaged").expect("it is there");
        let dictionary = value.record().expect("it is a string").dictionary();
        assert_eq!((dictionary, value.stage()), (Some(number), stage));
        assert!(store.used_memory() < memory);
        memory = store.used_memory();
    }
    assert_eq!(stats(&store).table_bytes, 0, "its tables are gone");
    assert_eq!(active(&store)[0].records, USERS);
    assert_users(&mut session, 0..USERS);
}

#[test]
fn values_that_have_settled_stay_so_when_their_dictionary_is_replaced() {
    let store = store_with(quick);
    let mut maintenance = store.maintenance(|| Duration::ZERO);
    let mut session = session_at(&store, NOW);
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    maintain(&mut maintenance, NOW + REST);
    let old = active(&store)[0].number;
    assert_eq!(stats(&store).tried, USERS);
    store.forget_dictionary(old).expect("it is there");
    for second in 1..=20 {
        session.follow();
        maintain(&mut maintenance, NOW + REST + second * 1_000);
    }
    assert!(store.dictionaries().iter().all(|dictionary| dictionary.number != old));
    for number in [1, 7, 7_000] {
        let key = format!("user:{number}");
        let value = session.peek(0, key.as_bytes()).expect("undamaged").expect("it is there");
        assert_eq!(value.stage(), Stage::Settled);
    }
    let written = store_with(quick);
    put_users(&mut session_at(&written, NOW), 0..USERS);
    // They have what is best without a dictionary: zstd, or LZ4 if nothing is decided yet.
    assert!(store.used_memory() <= written.used_memory() + 1_024);
    assert_users(&mut session, 0..USERS);
}

#[test]
fn to_everybody_else_nothing_changes() {
    let changes = Arc::new(Changes::default());
    let observer = changes.clone();
    let store = store_with(|config| {
        quick(config);
        config.observer = Some(observer);
    });
    let mut maintenance = store.maintenance(|| Duration::ZERO);
    let mut session = session_at(&store, NOW);
    put_pages(&mut session);
    read(&mut session, &key(2));
    session.expire(0, &key(1), Expiry::At(NOW + 1_000_000), ExpireConditions::default()).expect("undamaged");
    let look = |session: &mut Session| -> Vec<_> {
        let of = |number| {
            let value = session.peek(0, &key(number)).expect("undamaged").expect("it is there");
            let used = (value.idle_seconds(NOW + 60_000), value.frequency(), value.was_read());
            (used, value.expiry(), value.len())
        };
        (0..FEW).map(of).collect()
    };
    let before = (look(&mut session), changes.count(), store.stats().hits);
    let later = pass(&mut maintenance, &mut session, NOW);
    pass(&mut maintenance, &mut session, later);
    assert_eq!(stats(&store).tried, FEW);
    assert_eq!((look(&mut session), changes.count(), store.stats().hits), before);
}

#[test]
fn the_stage_is_known_after_a_restart() {
    for durability in [Durability::Batched, Durability::Fsync] {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || {
            let mut config = config();
            quick(&mut config);
            let commit_interval = Duration::from_millis(10);
            let storage = Storage { durability, commit_interval, ..Storage::new(folder.path()) };
            let store = Store::open(config, storage).expect("the store opens");
            (store.maintenance(|| Duration::ZERO), session_at(&store, NOW), store)
        };
        let (mut maintenance, mut session, store) = open();
        put_pages(&mut session);
        for time in [NOW, NOW + REST, NOW + 2 * REST] {
            maintain(&mut maintenance, time);
            settle(&store);
        }
        assert_eq!(stats(&store).tried, FEW);
        drop((session, maintenance));
        close(store);

        let (mut maintenance, mut session, store) = open();
        assert_eq!(seen(&mut session, 1), ("zstd", Stage::Settled));
        assert_pages(&mut session);
        for time in [NOW, NOW + REST, NOW + 2 * REST] {
            maintain(&mut maintenance, time);
            settle(&store);
        }
        assert_eq!(stats(&store).tried, 0);
        drop((session, maintenance));
        close(store);
    }
}

#[test]
fn whoever_writes_and_reads_and_deletes_everything_meanwhile_finds_what_was_written_last() {
    let (store, mut maintenance, session) = with_pages();
    drop(session);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, stop) = (&store, &stop);
        scope.spawn(move || {
            let mut random = fastrand::Rng::with_seed(7);
            let mut written = [None; FEW as usize];
            let mut session = session_at(store, NOW);
            while !stop.load(Ordering::Relaxed) {
                let place = random.usize(..written.len());
                let key = format!("own:{place}");
                match random.u16(..1_000) {
                    0 => {
                        drop(store.flush(None));
                        written = [None; FEW as usize];
                    }
                    1..100 => {
                        let number = random.u64(..1_000_000);
                        put(&mut session, key.as_bytes(), &page(number));
                        written[place] = Some(number);
                    }
                    _ => assert_eq!(read(&mut session, key.as_bytes()), written[place].map(page)),
                }
            }
        });
        let mut now = NOW;
        while stats(store).tried < 1_000 || stats(store).promoted == 0 {
            now += REST;
            maintain(&mut maintenance, now);
        }
        stop.store(true, Ordering::Relaxed);
    });
}
