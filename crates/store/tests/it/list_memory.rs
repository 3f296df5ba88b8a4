//! Changes inside compressed nodes: what they leave decoded counts within the budget, and goes before any key does.

use std::sync::{Arc, Barrier};

use snugly_store::{Element, End, EvictionPolicy, Expiry, ListSet, Session, Store};

use crate::support::{NOW, limited, put, random_bytes, session_at};

const BUDGET: u64 = 2 << 20;
/// More than a decoded node takes.
const NODE: u64 = 16 << 10;
const CHANGES: i64 = 200;

fn event(number: usize) -> Vec<u8> {
    format!("event {number}, {}", "the same as ever ".repeat(10)).into_bytes()
}

fn fill(session: &mut Session, key: &[u8], elements: usize) {
    for number in 0..elements {
        let pushed = session.list_push(0, key, End::Right, [&event(number)[..]].into_iter(), false);
        pushed.expect("there is room");
    }
}

/// Lists that take about half of the budget, and keys for the rest of it.
fn full(policy: EvictionPolicy) -> (Arc<Store>, Session) {
    let store = limited(0, policy);
    let mut session = session_at(&store, NOW);
    while store.used_memory() < BUDGET / 2 {
        let len = session.list_len(0, b"list").expect("it is a list") as usize;
        (len..len + 1_000).for_each(|number| {
            session
                .list_push(0, b"list", End::Right, [&event(number)[..]].into_iter(), false)
                .expect("there is room");
        });
    }
    for number in 0u32.. {
        if store.used_memory() >= BUDGET {
            break;
        }
        put(&mut session, &number.to_be_bytes(), &random_bytes(1_000, number.into()));
    }
    let budget = store.used_memory();
    store.change_settings(|settings| settings.max_memory = budget);
    (store, session)
}

/// Places of a list that are in as many different nodes.
fn places(session: &mut Session) -> impl Iterator<Item = i64> + use<> {
    let len = session.list_len(0, b"list").expect("it is a list") as i64;
    (1..=CHANGES).map(move |number| number * (len / (CHANGES + 2)))
}

/// Removes an element from each of many nodes.
fn remove_some(session: &mut Session) {
    for place in places(session) {
        let removed = session.list_remove(0, b"list", 1, &event(place as usize));
        assert_eq!(removed.expect("it is whole"), 1);
    }
}

/// Replaces an element in each of many nodes.
fn set_some(session: &mut Session) {
    for place in places(session) {
        let set = session.list_set(0, b"list", place, &event(place as usize)).expect("there is room");
        assert_eq!(set, ListSet::Replaced);
    }
}

#[test]
fn removing_elements_from_a_full_store_makes_room() {
    let (store, mut session) = full(EvictionPolicy::NoEviction);
    let budget = store.settings().max_memory;
    remove_some(&mut session);
    assert!(store.used_memory() <= budget, "{} over {budget}", store.used_memory());
    put(&mut session, b"key", b"value");
}

#[test]
fn changes_of_a_full_store_evict_no_more_than_they_add() {
    let (store, mut session) = full(EvictionPolicy::AllKeysLru);
    remove_some(&mut session);
    put(&mut session, b"key", b"value");
    assert_eq!(store.stats().evicted, 0);
    set_some(&mut session);
    assert!(store.stats().evicted <= 2 * NODE / 1_000, "{} keys", store.stats().evicted);
}

#[test]
fn decoded_nodes_go_before_keys_do_when_room_is_wanted() {
    let (store, mut session) = full(EvictionPolicy::AllKeysLru);
    let budget = store.settings().max_memory;
    store.change_settings(|settings| settings.max_memory = 2 * budget);
    set_some(&mut session);
    let decoded = store.used_memory();
    assert!(decoded > budget + NODE * CHANGES as u64 / 8, "{decoded}: they are kept where there is room");
    store.change_settings(|settings| settings.max_memory = budget + NODE);
    assert!(store.used_memory() <= budget + NODE);
    assert_eq!(store.stats().evicted, 0);
}

#[test]
fn the_nodes_of_a_list_that_was_renamed_go_too() {
    let (store, mut session) = full(EvictionPolicy::AllKeysLru);
    let budget = store.settings().max_memory;
    store.change_settings(|settings| settings.max_memory = 2 * budget);
    set_some(&mut session);
    assert!(session.rename((0, b"list"), (1, b"other")).expect("there is room"));
    store.swap(1, 2);
    store.change_settings(|settings| settings.max_memory = budget + NODE);
    assert!(store.used_memory() <= budget + NODE);
    assert_eq!(store.stats().evicted, 0);
}

#[test]
fn threads_that_hold_a_list_each_do_not_wait_for_the_list_of_the_other() {
    let store = limited(0, EvictionPolicy::NoEviction);
    let session = &mut session_at(&store, NOW);
    for number in 0..64 {
        put(session, format!("list:{number}").as_bytes(), b"");
    }
    // In the order of the shards, so that the first and the last are in different ones.
    let mut found = Vec::new();
    assert_eq!(session.scan(0, 0, 1_000, |key| found.push(key.to_vec())).expect("undamaged"), 0);
    let keys = [found.swap_remove(0), found.pop().expect("there are more")];
    for key in &keys {
        session.delete(0, key).expect("it is there");
        fill(session, key, 1_000);
        session.list_set(0, key, 500, &event(500)).expect("there is room");
    }
    // Nothing may stay decoded, so that either looks for nodes of the other.
    store.change_settings(|settings| settings.lists.cache_bytes = 0);
    let both_hold = Barrier::new(keys.len());
    std::thread::scope(|scope| {
        for key in &keys {
            let (store, both_hold) = (&store, &both_hold);
            scope.spawn(move || {
                session_at(store, NOW).exclusively(std::iter::once(&key[..]), |session| {
                    both_hold.wait();
                    session.list_set(0, key, 300, &event(300)).expect("there is room");
                    both_hold.wait();
                });
            });
        }
    });
}

/// A way to write a long list.
type Write = fn(&mut Session, &[Vec<u8>]);

#[test]
fn a_long_list_evicts_for_what_it_takes_compressed() {
    let elements: Vec<Vec<u8>> = (0..4_000).map(event).collect();
    let bytes: usize = elements.iter().map(Vec::len).sum();
    let alone = limited(0, EvictionPolicy::NoEviction);
    let before = alone.used_memory();
    fill(&mut session_at(&alone, NOW), b"other", elements.len());
    let need = alone.used_memory() - before;
    assert!(need < bytes as u64 / 4, "{need} of {bytes}");
    let ways: [Write; 3] = [
        |session, elements| {
            let all = elements.iter().map(Vec::as_slice);
            session.list_push(0, b"other", End::Right, all, false).expect("there is room");
        },
        |session, elements| {
            let all = elements.iter().map(Vec::as_slice);
            session.list_push(0, b"other", End::Left, all, false).expect("there is room");
        },
        |session, elements| {
            let all = elements.iter().map(|element| Element::of(element));
            session.list_write(0, b"other", all, Expiry::Never).expect("there is room");
        },
    ];
    for write in ways {
        let (store, mut session) = full(EvictionPolicy::AllKeysRandom);
        session.delete(0, b"list").expect("it is there");
        let budget = store.used_memory();
        store.change_settings(|settings| settings.max_memory = budget);
        write(&mut session, &elements);
        assert_eq!(session.list_len(0, b"other").expect("it is a list"), elements.len() as u64);
        assert!(store.used_memory() <= budget + 2 * NODE, "{} over {budget}", store.used_memory());
        let evicted = store.stats().evicted;
        assert!(evicted <= (need + 4 * NODE) / 1_000, "{evicted} keys for {need} bytes");
    }
}

#[test]
fn removing_elements_from_every_node_decodes_some_nodes_at_a_time() {
    let (store, mut session) = full(EvictionPolicy::AllKeysLru);
    let len = session.list_len(0, b"list").expect("it is a list");
    store.change_settings(|settings| settings.max_memory = 0);
    for number in (0..len as i64).step_by(20) {
        session.list_set(0, b"list", number, b"gone").expect("there is room");
    }
    for from_end in [1, -1] {
        let budget = store.used_memory();
        store.change_settings(|settings| settings.max_memory = budget);
        let removed = session.list_remove(0, b"list", from_end * 1_000, b"gone").expect("it is whole");
        assert_eq!(removed, 1_000);
        assert!(store.used_memory() <= budget, "{} over {budget}", store.used_memory());
    }
    let before = session.list_len(0, b"list").expect("it is a list");
    let removed = session.list_remove(0, b"list", 0, b"gone").expect("it is whole");
    assert_eq!(removed + 2_000, len.div_ceil(20));
    assert_eq!(session.list_len(0, b"list").expect("it is a list"), before - removed);
    assert_eq!(session.list_remove(0, b"list", 0, b"gone").expect("it is whole"), 0);
    assert_eq!(store.stats().evicted, 0);
}
