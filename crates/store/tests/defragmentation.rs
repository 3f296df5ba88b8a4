//! Memory that deletes, evictions and changing sizes leave scattered comes back, and the keys stay as they were.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use snugly_store::{Choice, Condition, EvictionPolicy, Expiry, Session, Store};
use support::{NOW, limited, put, read, session_at};

/// Stores share the pages of the process, so that what one test sees of them depends on the others.
static ALONE: Mutex<()> = Mutex::new(());

fn value(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fastrand::Rng::with_seed(number.into()).fill(&mut bytes);
    bytes
}

/// A store that does not compress: entries are as long as the values make them.
fn plain(max_memory: u64, eviction: EvictionPolicy) -> Arc<Store> {
    let store = limited(max_memory, eviction);
    store.change_settings(|settings| {
        settings.compression = Choice::new("none", None, 64).expect("it always exists")
    });
    store
}

/// Bytes of pages for each byte that stands in them.
fn spread() -> f64 {
    let stats = Store::slab_stats();
    stats.page_bytes as f64 / stats.slot_bytes as f64
}

fn defragment(store: &Arc<Store>) {
    while store.defragment(1000) > 0 {}
}

/// Writes 40,000 keys and deletes all but every eighth.
fn scatter(session: &mut Session) {
    (0..40_000u32).for_each(|number| put(session, &number.to_be_bytes(), &value(number, 700)));
    for number in (0..40_000u32).filter(|number| number % 8 != 0) {
        session.remove(0, &number.to_be_bytes()).expect("undamaged");
    }
}

#[test]
fn pages_go_back_to_the_system_after_deletes() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let store = plain(0, EvictionPolicy::NoEviction);
    let mut session = session_at(&store, NOW);
    scatter(&mut session);
    let used = store.used_memory();
    assert!(spread() > 4.0, "{:.2}", spread());
    defragment(&store);
    // Empty pages are kept a while in case that they are needed, and half a MiB is not worth a walk.
    let stats = Store::slab_stats();
    assert!(stats.page_bytes - stats.slot_bytes < 1 << 20, "{stats:?}");
    assert_eq!(store.used_memory(), used);
    for number in (0..40_000u32).step_by(8) {
        assert_eq!(read(&mut session, &number.to_be_bytes()), Some(value(number, 700)));
    }
}

#[test]
fn pages_stand_close_to_few_values_of_many_sizes() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let store = plain(0, EvictionPolicy::NoEviction);
    let mut session = session_at(&store, NOW);
    let mut random = fastrand::Rng::with_seed(1);
    // As sizes of records are: half are below 500 bytes, one in a hundred is above 4,000.
    let mut size =
        || (500.0 * (0.9 * (random.f64() + random.f64() + random.f64() - 1.5) * 2.0).exp()) as usize;
    (0..18_000u32).for_each(|number| put(&mut session, &number.to_be_bytes(), &value(number, size())));
    // Their sizes change, as they do when they are encoded again.
    (0..18_000u32).for_each(|number| put(&mut session, &number.to_be_bytes(), &value(number, size())));
    while store.defragment(1000) > 0 {}
    store.defragment(0);
    store.defragment(0);
    assert!(spread() < 1.25, "{:.2} of {:?}", spread(), Store::slab_stats());
}

#[test]
fn an_entry_that_moves_keeps_expiry_frequency_and_last_use() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let store = plain(1 << 30, EvictionPolicy::AllKeysLfu);
    let mut session = session_at(&store, NOW);
    scatter(&mut session);
    let kept = || (0..40_000u32).step_by(8);
    for number in kept() {
        let expiry =
            if number % 16 == 0 { Expiry::At(NOW + 1_000_000 + u64::from(number)) } else { Expiry::Never };
        session.get_and_expire(0, &number.to_be_bytes(), expiry).expect("undamaged");
        (0..number % 5).for_each(|_| drop(session.get(0, &number.to_be_bytes()).expect("undamaged")));
    }
    let describe = |session: &mut Session| -> Vec<_> {
        kept()
            .map(|number| {
                let value = session.peek(0, &number.to_be_bytes()).expect("undamaged").expect("it was kept");
                (value.expiry(), value.frequency(), value.idle_seconds(NOW + 5000))
            })
            .collect()
    };
    let before = describe(&mut session);
    defragment(&store);
    assert_eq!(describe(&mut session), before);
    session.set_now(Some(NOW + 2_000_000));
    store.expire_due(NOW + 2_000_000, usize::MAX);
    assert_eq!(
        store.database_stats(0).expect("readable").keys,
        kept().count() / 2,
        "the expiry index still leads to them"
    );
}

#[test]
fn a_value_that_is_held_stays_where_it_is() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let store = plain(0, EvictionPolicy::NoEviction);
    let mut session = session_at(&store, NOW);
    scatter(&mut session);
    let held: Vec<_> = (0..800u32)
        .step_by(8)
        .map(|number| session.peek(0, &number.to_be_bytes()).expect("undamaged").expect("kept"))
        .collect();
    let addresses: Vec<_> = held.iter().map(|value| value.key().as_ptr()).collect();
    store.defragment(usize::MAX);
    for ((value, address), number) in held.iter().zip(addresses).zip((0..800u32).step_by(8)) {
        let current = session.peek(0, &number.to_be_bytes()).expect("undamaged").expect("kept");
        assert_eq!((value.key().as_ptr(), current.key().as_ptr()), (address, address));
    }
}

#[test]
fn pages_stay_close_to_what_stands_in_them_while_sizes_change_under_a_budget() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    const BUDGET: u64 = 64 << 20;
    // A sixteenth may be empty, another while entries move; the rest is kept, or the unused part of a page for each of
    // a hundred sizes.
    let bound = BUDGET + BUDGET / 8 + (12 << 20);
    let store = plain(BUDGET, EvictionPolicy::AllKeysLru);
    for len in [300, 900, 2500, 300] {
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut session = session_at(&store, NOW);
                    let mut random = fastrand::Rng::new();
                    let bytes = value(1, 2 * len);
                    for round in 0..BUDGET as usize / len {
                        let bytes = &bytes[random.usize(len / 2..len * 3 / 2)..];
                        put(&mut session, &random.u64(..).to_be_bytes(), bytes);
                        if round % 100 == 0 {
                            let stats = Store::slab_stats();
                            assert!(stats.page_bytes < bound, "{stats:?} with values of {len} bytes");
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn readers_and_writers_see_only_whole_values_while_entries_move() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let store = plain(0, EvictionPolicy::NoEviction);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let mover = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                store.defragment(100);
            }
        });
        let workers: Vec<_> = (0..2u32)
            .map(|part| {
                let store = &store;
                scope.spawn(move || {
                    let mut session = session_at(store, NOW);
                    let mut random = fastrand::Rng::with_seed(part.into());
                    for _ in 0..100_000 {
                        let number = random.u32(..20_000);
                        let key = number.to_be_bytes();
                        match random.u8(..4) {
                            0 => {
                                let bytes = value(number, 200 + (number as usize % 3) * 900);
                                let expiry = Expiry::Never;
                                session
                                    .set(0, &key, &bytes, expiry, Condition::Always)
                                    .expect("there is room");
                            }
                            1 => drop(session.remove(0, &key).expect("undamaged")),
                            _ => {
                                if let Some(bytes) = read(&mut session, &key) {
                                    assert_eq!(bytes, value(number, bytes.len()));
                                }
                            }
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().expect("every value was whole");
        }
        done.store(true, Ordering::Relaxed);
        mover.join().expect("no panic");
    });
}
