//! The memory budget holds, and the policies choose whom they say.

use std::sync::Arc;

use crate::support::{NOW, limited, put, random_bytes, read, session_at, store_with};
use snugly_store::{Condition, EvictionPolicy, Expiry, Inserted, ManyCondition, Session, Store, StoreError};

const BUDGET: u64 = 1 << 20;

/// Writes values that do not compress.
fn fill(session: &mut Session, keys: std::ops::Range<u32>) {
    for number in keys {
        put(session, &number.to_be_bytes(), &random_bytes(400, number.into()));
    }
}

#[test]
fn memory_stays_inside_the_budget_under_every_policy_that_may_evict_anything() {
    for policy in [EvictionPolicy::AllKeysLru, EvictionPolicy::AllKeysLfu, EvictionPolicy::AllKeysRandom] {
        let store = limited(BUDGET, policy);
        let mut session = session_at(&store, NOW);
        for start in (0..20_000).step_by(1000) {
            fill(&mut session, start..start + 1000);
            // A growing table may need up to an eighth of its size before the next write makes room for it.
            assert!(
                store.used_memory() <= BUDGET + (16 << 10),
                "{} under {}",
                store.used_memory(),
                policy.name()
            );
        }
        assert!(store.used_memory() > BUDGET * 8 / 10, "the budget is used under {}", policy.name());
        assert!(store.stats().evicted > 10_000);
    }
}

#[test]
fn threads_that_write_at_once_never_fail_where_something_can_be_evicted() {
    let store = limited(BUDGET, EvictionPolicy::AllKeysLru);
    std::thread::scope(|scope| {
        for part in 0..4 {
            let store = &store;
            scope.spawn(move || fill(&mut session_at(store, NOW), part * 10_000..(part + 1) * 10_000));
        }
    });
    assert!(store.used_memory() <= BUDGET + (64 << 10));
}

#[test]
fn without_eviction_a_write_fails_and_changes_nothing() {
    let store = limited(64 << 10, EvictionPolicy::NoEviction);
    let mut session = session_at(&store, NOW);
    put(&mut session, b"first", b"value");
    let failed = session.set(0, b"second", &random_bytes(100_000, 1), Expiry::Never, Condition::Always);
    assert!(matches!(failed, Err(StoreError::OutOfMemory { .. })));
    assert_eq!(read(&mut session, b"first").as_deref(), Some(&b"value"[..]));
    assert!(session.peek(0, b"second").expect("undamaged").is_none());
    // A full store still takes a value no larger than the one it replaces, and deletes.
    put(&mut session, b"first", b"other");
    assert!(session.remove(0, b"first").expect("undamaged").is_some());
}

#[test]
fn volatile_policies_spare_keys_that_do_not_expire() {
    for policy in [
        EvictionPolicy::VolatileLru,
        EvictionPolicy::VolatileLfu,
        EvictionPolicy::VolatileRandom,
        EvictionPolicy::VolatileTtl,
    ] {
        let store = limited(BUDGET, policy);
        let mut session = session_at(&store, NOW);
        (0..100u32).for_each(|number| put(&mut session, format!("stays:{number}").as_bytes(), b"value"));
        for number in 0..30_000u32 {
            let expiry = Expiry::At(NOW + 1_000_000 + u64::from(number));
            session.set(0, &number.to_be_bytes(), b"value", expiry, Condition::Always).expect("room is made");
        }
        assert!((0..100u32).all(|number| {
            session.peek(0, format!("stays:{number}").as_bytes()).expect("undamaged").is_some()
        }));
        assert!(store.stats().evicted > 0, "{}", policy.name());
    }
}

#[test]
fn volatile_ttl_evicts_what_expires_first() {
    let store = limited(BUDGET, EvictionPolicy::VolatileTtl);
    let mut session = session_at(&store, NOW);
    for number in 0..30_000u32 {
        let expiry = Expiry::At(NOW + 1_000_000 + u64::from(number));
        session.set(0, &number.to_be_bytes(), b"value", expiry, Condition::Always).expect("room is made");
    }
    let live: Vec<u32> = (0..30_000)
        .filter(|number: &u32| session.peek(0, &number.to_be_bytes()).expect("undamaged").is_some())
        .collect();
    assert_eq!(
        live.first().map(|first| 30_000 - *first as usize),
        Some(live.len()),
        "only the latest are left"
    );
}

#[test]
fn volatile_policies_fail_when_nothing_expires() {
    let store = limited(64 << 10, EvictionPolicy::VolatileLru);
    let mut session = session_at(&store, NOW);
    let failed = (0..10_000u32)
        .map(|number| session.set(0, &number.to_be_bytes(), &[1; 50], Expiry::Never, Condition::Always))
        .find_map(Result::err);
    assert!(matches!(failed, Some(StoreError::OutOfMemory { .. })));
}

#[test]
fn a_write_that_its_condition_refuses_evicts_nothing_and_counts_as_nothing() {
    let store = limited(8 * BUDGET, EvictionPolicy::AllKeysLru);
    let mut session = session_at(&store, NOW);
    fill(&mut session, 0..10_000);
    let large = random_bytes(4 << 20, 1);
    let [there, absent] = [&7u32.to_be_bytes()[..], b"absent"];
    let before = (store.used_memory(), store.stats().evicted, format!("{:?}", store.stats().codec));
    for (key, condition) in [(there, Condition::IfAbsent), (absent, Condition::IfPresent)] {
        assert!(!session.set(0, key, &large, Expiry::Never, condition).expect("it is refused"));
        let outcome = session.get_and_set(0, key, &large, Expiry::Never, condition);
        assert!(!outcome.expect("it is refused").written);
    }
    for (pairs, condition) in [
        ([(absent, &large[..]), (there, &large)], ManyCondition::IfAllAbsent),
        ([(there, &large), (absent, &large)], ManyCondition::IfAllPresent),
    ] {
        let written = session.set_many(0, pairs.into_iter(), Expiry::Never, condition);
        assert!(!written.expect("it is refused"));
    }
    let pushed = session.list_insert(0, absent, b"pivot", false, &large);
    assert_eq!(pushed.expect("there is no list"), Inserted::NoList);
    let after = (store.used_memory(), store.stats().evicted, format!("{:?}", store.stats().codec));
    assert_eq!(after, before);
}

/// A store with this budget that evicts, and a session of it.
fn evicting(budget: u64) -> (Arc<Store>, Session) {
    let store = limited(budget, EvictionPolicy::AllKeysLru);
    let session = session_at(&store, NOW);
    (store, session)
}

/// Bytes that each of 10,000 small keys takes, in a database of this number.
fn bytes_per_small_key(database: usize) -> u64 {
    let (store, mut session) = evicting(0);
    let before = store.used_memory();
    for number in 0..10_000_u32 {
        let key = format!("key:{number:06}");
        session.set(database, key.as_bytes(), b"1234567890", Expiry::Never, Condition::Always).expect("room");
    }
    (store.used_memory() - before) / 10_000
}

#[test]
fn a_key_takes_about_as_much_in_any_database() {
    let first = bytes_per_small_key(0);
    for database in [1, 15] {
        let other = bytes_per_small_key(database);
        assert!(other < first * 3 / 2, "{other} bytes in database {database}, {first} in database 0");
    }
}

#[test]
fn a_small_budget_is_used_by_keys_in_whatever_databases_they_are() {
    for budget in [256 << 10, 8 << 20] {
        let (store, mut session) = evicting(budget);
        for number in 0..60_000_u32 {
            let key = number.to_be_bytes();
            let database = number as usize % 16;
            session.set(database, &key, b"1234567890", Expiry::Never, Condition::Always).expect("room");
        }
        let keys: usize = (0..16).map(|database| store.database_stats(database).expect("no disk").keys).sum();
        assert!(keys as u64 > budget / 512, "{keys} keys in {budget} bytes");
    }
}

#[test]
fn a_value_that_fits_no_empty_store_evicts_nothing() {
    let (store, mut session) = evicting(BUDGET);
    fill(&mut session, 0..1000);
    let before = store.stats().evicted;
    let large = random_bytes(BUDGET as usize, 1);
    let failed = session.set(0, b"large", &large, Expiry::Never, Condition::Always);
    assert!(matches!(failed, Err(StoreError::OutOfMemory { .. })));
    assert_eq!(store.stats().evicted, before);
}

#[test]
fn a_lower_budget_is_enforced_at_once() {
    let store = limited(0, EvictionPolicy::AllKeysLru);
    fill(&mut session_at(&store, NOW), 0..10_000);
    store.change_settings(|settings| settings.max_memory = BUDGET);
    assert!(store.used_memory() <= BUDGET);
}

/// The share of reads that hit, for keys drawn with a Zipf-like skew, each miss followed by a write.
fn hit_ratio(store: &Arc<Store>) -> f64 {
    let mut session = session_at(store, NOW);
    let mut random = fastrand::Rng::with_seed(7);
    let (mut hits, mut reads) = (0u32, 0u32);
    for step in 0..200_000 {
        // Squaring twice crowds the draws towards the low keys; one read in five is of a key never seen again.
        let rank = random.f64().powi(4) * 20_000.0;
        let key = if random.u8(..) < 51 { 1_000_000 + step } else { rank as u32 };
        let hit = session.get(0, &key.to_be_bytes()).expect("undamaged").is_some();
        if !hit {
            put(&mut session, &key.to_be_bytes(), &[1; 40]);
        }
        if step > 50_000 {
            hits += u32::from(hit);
            reads += 1;
        }
    }
    f64::from(hits) / f64::from(reads)
}

#[test]
fn recency_and_frequency_keep_hot_keys_better_than_chance() {
    let ratio = |policy| hit_ratio(&limited(256 << 10, policy));
    let random = ratio(EvictionPolicy::AllKeysRandom);
    let lru = ratio(EvictionPolicy::AllKeysLru);
    let lfu = ratio(EvictionPolicy::AllKeysLfu);
    assert!(lru > random + 0.02, "lru {lru:.3}, random {random:.3}");
    assert!(lfu >= lru, "lfu {lfu:.3}, lru {lru:.3}");
}

#[test]
fn accounting_is_the_sum_of_what_the_values_say() {
    let store = store_with(|_| {});
    let empty = store.used_memory();
    let mut session = session_at(&store, NOW);
    fill(&mut session, 0..2000);
    let values: u64 = (0..2000u32)
        .map(|number| {
            session.peek(0, &number.to_be_bytes()).expect("undamaged").expect("it was written").memory()
                as u64
        })
        .sum();
    let tables = store.used_memory() - empty - values;
    assert!((2000 * 8..2000 * 11).contains(&tables), "{tables} bytes of tables for 2,000 keys");
}

#[test]
fn what_does_not_count_as_used_looks_as_unused_as_before() {
    let store = limited(BUDGET, EvictionPolicy::AllKeysLru);
    let mut session = session_at(&store, NOW);
    put(&mut session, b"key", b"value");
    let later = NOW + 5000;
    session.set_now(Some(later));
    session.set_touches(false);
    read(&mut session, b"key");
    put(&mut session, b"key", b"another");
    let mut idle = |touches| {
        session.set_touches(touches);
        let value = session.get(0, b"key").expect("undamaged").expect("it was written");
        (value.idle_seconds(later), value.frequency())
    };
    assert_eq!(idle(false), (5, 0));
    assert_eq!(idle(true), (0, 1));
}
