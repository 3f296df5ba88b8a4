//! Concurrent operations have the outcome of some sequential order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{NOW, put, read, session_at, store_with};
use snugly_store::{Condition, Expiry, ManyCondition, StoreError};

const ROUNDS: u32 = if cfg!(miri) { 50 } else { 20_000 };

#[test]
fn no_increment_is_lost() {
    let store = store_with(|_| {});
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = session_at(&store, NOW);
                for _ in 0..ROUNDS {
                    let increment = |current: Option<&[u8]>, edited: &mut Vec<u8>| {
                        let number: u32 =
                            current.map_or(0, |text| String::from_utf8_lossy(text).parse().unwrap());
                        edited.extend_from_slice((number + 1).to_string().as_bytes());
                        Ok::<_, StoreError>(())
                    };
                    session.update(0, b"counter", increment).expect("there is room");
                }
            });
        }
    });
    let counted = read(&mut session_at(&store, NOW), b"counter").expect("it was counted");
    assert_eq!(counted, (4 * ROUNDS).to_string().as_bytes());
}

#[test]
fn a_change_comes_to_its_end_while_others_keep_replacing_the_key() {
    let store = store_with(|_| {});
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut session = session_at(&store, NOW);
                while !done.load(Ordering::Relaxed) {
                    put(&mut session, b"key", b"another value");
                }
            });
        }
        let mut session = session_at(&store, NOW);
        for _ in 0..20 {
            let append = |current: Option<&[u8]>, edited: &mut Vec<u8>| {
                // Long enough for the key to be replaced in every attempt that does not hold it.
                thread::sleep(Duration::from_millis(2));
                edited.extend_from_slice(current.unwrap_or_default());
                edited.push(b'!');
                Ok::<_, StoreError>(())
            };
            session.update(0, b"key", append).expect("there is room");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(read(&mut session_at(&store, NOW), b"key").is_some());
}

#[test]
fn several_keys_change_at_one_instant() {
    let store = store_with(|_| {});
    let done = AtomicBool::new(false);
    let keys: [&[u8]; 3] = [b"a", b"b", b"c"];
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut session = session_at(&store, NOW);
            while !done.load(Ordering::Relaxed) {
                let values = session.get_many(0, keys.iter().copied()).expect("undamaged");
                let mut texts = Vec::new();
                for value in values.iter().flatten() {
                    let mut text = Vec::new();
                    session.read(value, &mut text).expect("readable");
                    texts.push(text);
                }
                assert!(texts.windows(2).all(|pair| pair[0] == pair[1]), "{texts:?}");
            }
        });
        let mut session = session_at(&store, NOW);
        for round in 0..ROUNDS {
            let value = round.to_string();
            session
                .set_many(
                    0,
                    keys.iter().map(|key| (*key, value.as_bytes())),
                    Expiry::Never,
                    ManyCondition::Always,
                )
                .expect("there is room");
        }
        done.store(true, Ordering::Relaxed);
        reader.join().expect("the reader saw no mixture");
    });
}

#[test]
fn one_of_many_takes_a_lock_key() {
    let store = store_with(|_| {});
    for round in 0..ROUNDS / 10 {
        let key = round.to_be_bytes();
        let winners: u32 = thread::scope(|scope| {
            let take = || {
                let mut session = session_at(&store, NOW);
                let outcome = session.set(0, &key, b"mine", Expiry::Never, Condition::IfAbsent);
                u32::from(outcome.expect("there is room"))
            };
            let threads = [scope.spawn(take), scope.spawn(take)];
            threads.map(|thread| thread.join().expect("no panic")).iter().sum()
        });
        assert_eq!(winners, 1);
    }
}

#[test]
fn a_value_that_is_held_survives_its_key() {
    let store = store_with(|_| {});
    let mut session = session_at(&store, NOW);
    put(&mut session, b"key", b"value");
    let value = session.get(0, b"key").expect("undamaged").expect("it was written");
    session.remove(0, b"key").expect("undamaged");
    drop(store.flush(None));
    let mut bytes = Vec::new();
    session.read(&value, &mut bytes).expect("readable");
    assert_eq!(bytes, b"value");
}
