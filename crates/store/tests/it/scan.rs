//! SCAN's promise: a key that is there from the first call to the last is shown, whatever happens meanwhile.

use std::collections::BTreeSet;

use crate::support::{NOW, put, session_at, store_with};

#[test]
fn a_scan_shows_every_key_once_when_nothing_changes() {
    let store = store_with(|_| {});
    let mut session = session_at(&store, NOW);
    (0..3000u32).for_each(|number| put(&mut session, &number.to_be_bytes(), b"v"));
    for count in [1, 7, 100, 10_000] {
        let mut shown = Vec::new();
        let mut cursor = 0;
        loop {
            cursor = session.scan(0, cursor, count, |key| shown.push(key.to_vec())).expect("undamaged");
            if cursor == 0 {
                break;
            }
        }
        let distinct: BTreeSet<_> = shown.iter().collect();
        assert_eq!((shown.len(), distinct.len()), (3000, 3000), "with COUNT {count}");
    }
}

#[test]
fn a_scan_shows_keys_that_stay_while_others_come_and_go() {
    let store = store_with(|_| {});
    let mut session = session_at(&store, NOW);
    let lasting: Vec<_> = (0..500u32).map(|number| format!("stays:{number}").into_bytes()).collect();
    lasting.iter().for_each(|key| put(&mut session, key, b"v"));
    (0..5000u32).for_each(|number| put(&mut session, &number.to_be_bytes(), b"v"));
    let mut shown = BTreeSet::new();
    let (mut cursor, mut next) = (0, 0u32);
    loop {
        cursor = session
            .scan(0, cursor, 10, |key| {
                shown.insert(key.to_vec());
            })
            .expect("undamaged");
        if cursor == 0 {
            break;
        }
        for _ in 0..8 {
            session.remove(0, &next.to_be_bytes()).expect("undamaged");
            put(&mut session, format!("new:{next}").as_bytes(), b"v");
            put(&mut session, &lasting[next as usize % lasting.len()], b"another value");
            next += 1;
        }
    }
    assert!(lasting.iter().all(|key| shown.contains(key)));
}

#[test]
fn any_cursor_is_harmless() {
    let store = store_with(|_| {});
    let mut session = session_at(&store, NOW);
    put(&mut session, b"k", b"v");
    for cursor in [1, 0xffff, 1 << 32, u64::MAX] {
        session.scan(0, cursor, 10, |_| {}).expect("undamaged");
    }
    assert_eq!(session.scan(0, u64::MAX, 10, |_| panic!("nothing is there")).expect("undamaged"), 0);
}
