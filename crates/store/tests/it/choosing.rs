//! Codec and level chosen for each class of values, for a goal.
#![cfg(all(feature = "zstd", feature = "lz4"))]

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::support::alike::*;
use crate::support::*;
use snugly_codec::Family;
use snugly_store::{Goal, Session, Store, StoreMaintenance};

/// A store that chooses, and a clock that goes on by so much each time that somebody looks.
fn choosing(goal: Goal, tick: Duration) -> (Arc<Store>, StoreMaintenance, Session) {
    let store = store_with(|config| config.settings.goal = Some(goal));
    let now = Cell::new(Duration::ZERO);
    let maintenance = store.maintenance(move || {
        now.set(now.get() + tick);
        now.get()
    });
    let session = session_at(&store, NOW);
    (store, maintenance, session)
}

fn put_images(session: &mut Session, numbers: Range<u64>) {
    for number in numbers {
        let mut random = fastrand::Rng::with_seed(number);
        let image: Vec<u8> = (0..600).map(|_| random.u8(..)).collect();
        put(session, format!("image:{number}").as_bytes(), &image);
    }
}

fn codec(store: &Store, key: &[u8], len: usize) -> Option<&'static str> {
    Some(store.decision_for(key, len)?.choice.codec().name())
}

#[test]
fn each_kind_of_values_gets_what_suits_it() {
    let (store, mut maintenance, mut session) = choosing(Goal::Balanced, Duration::from_micros(100));
    for start in (0..3_000).step_by(100) {
        put_users(&mut session, start..start + 100);
        put_images(&mut session, start..start + 100);
        maintain(&mut maintenance, NOW);
    }
    // All codecs are as fast by this clock, and so few values are worth no more than LZ4's small tables.
    assert_eq!(codec(&store, b"user:1", user(1).len()), Some("lz4"));
    assert!(store.decision_for(b"user:1", user(1).len()).expect("it is decided").uses_dictionary);
    assert_eq!(codec(&store, b"image:1", 600), Some("none"));
    assert_eq!(codec(&store, b"other:1", 600), None);
    let before = store.stats();
    put_images(&mut session, 3_000..4_000);
    let since = store.stats().since(&before).codec;
    assert_eq!(
        since.total(Family::SkippedNoGain) + since.total(Family::SkippedCompressed),
        0,
        "none is tried"
    );
    put_users(&mut session, 3_000..3_100);
    assert_users(&mut session, 0..3_100);
}

#[test]
fn a_kind_is_decided_after_its_first_values() {
    let (store, mut maintenance, mut session) = choosing(Goal::Memory, Duration::ZERO);
    put_users(&mut session, 0..64);
    assert!(store.decisions().is_empty());
    maintain(&mut maintenance, NOW);
    assert_eq!(store.decisions().len(), 1);
}

#[test]
fn what_costs_too_much_is_left_alone_and_another_goal_is_decided_anew() {
    // Each of 64 values takes a microsecond to encode, and one to decode.
    let (store, mut maintenance, mut session) = choosing(Goal::Speed, Duration::from_micros(64));
    put_users(&mut session, 0..64);
    maintain(&mut maintenance, NOW);
    assert_eq!(codec(&store, b"user:1", user(1).len()), Some("none"));
    store.change_settings(|settings| settings.goal = Some(Goal::Memory));
    assert!(store.decisions().is_empty());
    put_users(&mut session, 64..128);
    maintain(&mut maintenance, NOW);
    assert_eq!(codec(&store, b"user:1", user(1).len()), Some("zstd"));
}

#[test]
fn a_dictionary_is_learned_and_used_where_it_is_best() {
    let (store, mut maintenance, mut session) = choosing(Goal::Memory, Duration::ZERO);
    put_users(&mut session, 0..USERS);
    maintain(&mut maintenance, NOW);
    put_users(&mut session, USERS..2 * USERS);
    maintain(&mut maintenance, NOW);
    assert!(store.decision_for(b"user:1", user(1).len()).is_some_and(|decision| decision.uses_dictionary));
    assert!(store.dictionaries().iter().map(|dictionary| dictionary.records).sum::<u64>() > 0);
    assert_users(&mut session, 0..2 * USERS);
}

#[test]
fn values_that_become_different_are_decided_anew() {
    let (store, mut maintenance, mut session) = choosing(Goal::Memory, Duration::from_micros(64));
    store.change_settings(|settings| settings.dictionaries.enabled = false);
    let write = |session: &mut Session, value: &dyn Fn(u64) -> Vec<u8>, numbers: Range<u64>| {
        numbers.for_each(|number| put(session, format!("page:{number}").as_bytes(), &value(number)));
    };
    let noise = |number| -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(number);
        (0..300).map(|_| random.u8(..)).collect()
    };
    write(&mut session, &user, 0..USERS);
    maintain(&mut maintenance, NOW);
    write(&mut session, &user, USERS..2 * USERS);
    maintain(&mut maintenance, NOW + 2_000);
    assert_eq!(codec(&store, b"page:1", 300), Some("zstd"));
    for round in 0..4 {
        write(&mut session, &noise, (2 + round) * USERS..(3 + round) * USERS);
        maintain(&mut maintenance, NOW + 4_000 + round * 2_000);
    }
    assert_eq!(codec(&store, b"page:1", 300), Some("none"));
}

#[test]
fn what_was_decided_goes_when_everything_is_deleted() {
    let (store, mut maintenance, mut session) = choosing(Goal::Memory, Duration::ZERO);
    put_users(&mut session, 0..1_000);
    maintain(&mut maintenance, NOW);
    assert_eq!(store.decisions().len(), 1);
    drop(store.flush(None));
    assert!(store.decisions().is_empty());
}
