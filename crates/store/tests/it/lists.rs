//! Lists through a session: what every operation does to keys, memory, expiry and other kinds of values.

use std::sync::Arc;

use snugly_codec::Family;
use snugly_store::{
    Choice, Condition, Config, Element, End, Expiry, Inserted, Kind, ListSet, Popped, Search, Session, Store,
    StoreError,
};

fn store() -> Arc<Store> {
    Store::new(Config::new(Choice::new("none", None, 256).expect("it is always there")))
}

fn push(session: &mut Session, key: &[u8], elements: &[&[u8]]) -> u64 {
    session.list_push(0, key, End::Right, elements.iter().copied(), false).expect("there is room")
}

fn all(session: &mut Session, key: &[u8]) -> Vec<String> {
    let Some(elements) = session.list_range(0, key, 0, -1).expect("it is a list") else { return Vec::new() };
    let mut shown = Vec::new();
    session.show(&elements, |element| shown.push(text(element))).expect("its nodes are whole");
    assert_eq!(shown.len(), elements.len());
    shown
}

fn text(element: Element<'_>) -> String {
    String::from_utf8(element.bytes().into_owned()).expect("it is text")
}

fn popped(session: &mut Session, key: &[u8], end: End, count: u64) -> Option<Vec<String>> {
    let mut popped = Vec::new();
    let is_there = session.list_pop(0, key, end, count, |_, element| popped.push(text(element)));
    is_there.expect("its nodes are whole").then_some(popped)
}

fn event(number: u32) -> Vec<u8> {
    format!("{{\"event\":{number},\"kind\":\"clicked\",\"where\":\"a button somewhere on the page\"}}")
        .into_bytes()
}

#[test]
fn a_list_is_there_from_its_first_element_to_its_last() {
    let store = store();
    let session = &mut store.session();
    assert_eq!(push(session, b"list", &[b"a", b"b"]), 2);
    assert_eq!(session.list_push(0, b"list", End::Left, [&b"c"[..], b"7"].into_iter(), false).unwrap(), 4);
    assert_eq!(all(session, b"list"), ["7", "c", "a", "b"]);
    assert_eq!(popped(session, b"list", End::Right, 1), Some(vec!["b".to_owned()]));
    assert_eq!(popped(session, b"list", End::Left, 9), Some(vec!["7".into(), "c".into(), "a".into()]));
    assert!(session.peek(0, b"list").unwrap().is_none());
    assert_eq!(popped(session, b"list", End::Left, 1), None);
    assert_eq!(session.list_push(0, b"list", End::Left, [&b"c"[..]].into_iter(), true).unwrap(), 0);
    assert!(session.peek(0, b"list").unwrap().is_none());
    assert_eq!(store.database_stats(0).unwrap().keys, 0);
}

#[test]
fn places_count_from_both_ends() {
    let store = store();
    let session = &mut store.session();
    push(session, b"list", &[b"a", b"b", b"c"]);
    let mut get = |index| session.list_get(0, b"list", index, text).unwrap();
    assert_eq!([get(0), get(2), get(-1), get(-3)].map(Option::unwrap), ["a", "c", "c", "a"]);
    assert_eq!([get(3), get(-4), get(i64::MIN)], [None, None, None]);
    assert_eq!(session.list_set(0, b"list", -2, b"B").unwrap(), ListSet::Replaced);
    assert_eq!(session.list_set(0, b"list", 3, b"B").unwrap(), ListSet::OutOfRange);
    assert_eq!(session.list_set(0, b"none", 0, b"B").unwrap(), ListSet::NoList);
    assert_eq!(session.list_insert(0, b"list", b"B", true, b"x").unwrap(), Inserted::Of(4));
    assert_eq!(session.list_insert(0, b"list", b"a", false, b"y").unwrap(), Inserted::Of(5));
    assert_eq!(session.list_insert(0, b"list", b"z", false, b"y").unwrap(), Inserted::NoPivot);
    assert_eq!(all(session, b"list"), ["y", "a", "B", "x", "c"]);
    session.list_trim(0, b"list", 1, -2).unwrap();
    assert_eq!(all(session, b"list"), ["a", "B", "x"]);
    session.list_trim(0, b"list", 5, 9).unwrap();
    assert!(session.peek(0, b"list").unwrap().is_none());
}

#[test]
fn positions_are_found_from_both_ends() {
    let store = store();
    let session = &mut store.session();
    push(session, b"list", &[b"a", b"1", b"b", b"1", b"1", b"c"]);
    let mut find = |rank, count, max_len| {
        session.list_positions(0, b"list", b"1", Search { rank, count, max_len }).unwrap().unwrap()
    };
    assert_eq!(find(1, 1, 0), [1]);
    assert_eq!(find(2, 0, 0), [3, 4]);
    assert_eq!(find(-1, 2, 0), [4, 3]);
    assert_eq!(find(-3, 0, 0), [1]);
    assert_eq!(find(1, 0, 4), [1, 3]);
    assert_eq!(find(-1, 0, 2), [4]);
    assert_eq!(
        session.list_positions(0, b"none", b"1", Search { rank: 1, count: 1, max_len: 0 }).unwrap(),
        None
    );
}

#[test]
fn elements_are_removed_from_either_end() {
    let store = store();
    let session = &mut store.session();
    push(session, b"list", &[b"x", b"a", b"x", b"b", b"x"]);
    assert_eq!(session.list_remove(0, b"list", -1, b"x").unwrap(), 1);
    assert_eq!(all(session, b"list"), ["x", "a", "x", "b"]);
    assert_eq!(session.list_remove(0, b"list", 1, b"x").unwrap(), 1);
    assert_eq!(session.list_remove(0, b"list", 0, b"x").unwrap(), 1);
    assert_eq!(all(session, b"list"), ["a", "b"]);
    assert_eq!(session.list_remove(0, b"none", 0, b"x").unwrap(), 0);
}

#[test]
fn what_is_too_long_to_be_shown_is_given_in_the_same_order_and_removed() {
    let store = store();
    let session = &mut store.session();
    for (end, count) in [(End::Left, 1), (End::Right, 700), (End::Left, 1_999), (End::Right, u64::MAX)] {
        for key in [b"popped", b"taken!"] {
            session.delete(0, key).unwrap();
            (0..2_000).for_each(|number| _ = push(session, key, &[&event(number)]));
        }
        let shown = popped(session, b"popped", end, count);
        let Popped::Given(elements) = session.list_take(0, b"taken!", end, count, 0, |_, _| {}).unwrap()
        else {
            panic!("no node has 0 bytes");
        };
        assert_eq!(all(session, b"taken!"), all(session, b"popped"));
        let mut given = Vec::new();
        session.show(&elements, |element| given.push(text(element))).unwrap();
        assert_eq!(Some(&given), shown.as_ref());
        let (mut kept, mut sent) = (session.keep_elements(elements), Vec::new());
        while session.next_elements(&mut kept, |element| sent.push(text(element))).unwrap() {}
        assert_eq!(sent, given);
    }
    let mut take = |key: &[u8], most| session.list_take(0, key, End::Left, 5, most, |_, _| {});
    assert!(matches!(take(b"taken!", 0), Ok(Popped::NoList)));
    push(&mut store.session(), b"short", &[b"a", b"b"]);
    assert!(matches!(take(b"short", 1_000), Ok(Popped::Shown)));
    store.session().set(0, b"string", b"", Expiry::Never, Condition::Always).unwrap();
    assert!(matches!(take(b"string", 0), Err(StoreError::WrongType)));
}

#[test]
fn an_element_moves_to_another_list_or_around_its_own() {
    let store = store();
    let session = &mut store.session();
    push(session, b"from", &[b"a", b"b"]);
    let mut moved = |from: (&[u8], End), to: (&[u8], End)| {
        let mut element = Vec::new();
        let is_there = session.list_move(0, from, to, |bytes| element.extend_from_slice(bytes)).unwrap();
        is_there.then(|| String::from_utf8(element).unwrap())
    };
    assert_eq!(moved((b"from", End::Left), (b"from", End::Right)).as_deref(), Some("a"));
    assert_eq!(moved((b"from", End::Right), (b"to", End::Left)).as_deref(), Some("a"));
    assert_eq!(moved((b"from", End::Right), (b"to", End::Left)).as_deref(), Some("b"));
    assert_eq!(moved((b"from", End::Right), (b"to", End::Left)), None);
    assert_eq!(all(session, b"to"), ["b", "a"]);
    assert!(session.peek(0, b"from").unwrap().is_none());
}

#[test]
fn a_list_that_is_turned_keeps_its_expiry_even_with_one_element() {
    let store = store();
    let session = &mut store.session();
    push(session, b"list", &[b"a"]);
    let at = session.now() + 100_000;
    session.expire(0, b"list", Expiry::At(at), Default::default()).unwrap();
    session.list_move(0, (b"list", End::Left), (b"list", End::Right), |_| {}).unwrap();
    assert_eq!(session.peek(0, b"list").unwrap().and_then(|value| value.expiry()), Some(at));
}

#[test]
fn strings_are_no_lists_and_lists_are_no_strings() {
    let store = store();
    let session = &mut store.session();
    session.set(0, b"string", b"value", Expiry::Never, Condition::Always).unwrap();
    push(session, b"list", &[b"a"]);
    let wrong = |result: Result<(), StoreError>| assert!(matches!(result, Err(StoreError::WrongType)));
    wrong(session.list_push(0, b"string", End::Left, [&b"a"[..]].into_iter(), false).map(drop));
    wrong(session.list_pop(0, b"string", End::Left, 1, |_, _| {}).map(drop));
    wrong(session.list_range(0, b"string", 0, -1).map(drop));
    wrong(session.list_move(0, (b"list", End::Left), (b"string", End::Left), |_| {}).map(drop));
    wrong(session.get(0, b"list").map(drop));
    wrong(session.take(0, b"list").map(drop));
    wrong(session.get_and_expire(0, b"list", Expiry::At(1)).map(drop));
    wrong(session.get_and_set(0, b"list", b"x", Expiry::Never, Condition::Always).map(drop));
    wrong(session.set(0, b"list", b"x", Expiry::Never, Condition::IfEqual(b"")).map(drop));
    wrong(session.update(0, b"list", |_, _| Ok::<_, StoreError>(())));
    assert_eq!(all(session, b"list"), ["a"]);
    assert!(session.set(0, b"list", b"x", Expiry::Never, Condition::IfPresent).unwrap());
    assert_eq!(session.peek(0, b"list").unwrap().unwrap().kind(), Kind::String);
}

#[test]
fn a_copy_is_a_list_of_its_own_and_a_renamed_list_is_the_same() {
    let store = store();
    let session = &mut store.session();
    let events: Vec<Vec<u8>> = (0..2_000).map(event).collect();
    session.list_push(0, b"list", End::Right, events.iter().map(|event| &event[..]), false).unwrap();
    assert!(session.copy((0, b"list"), (3, b"copy")).unwrap());
    assert!(session.rename((0, b"list"), (0, b"renamed")).unwrap());
    let before = all(session, b"renamed");
    session.list_set(3, b"copy", 1_000, b"other").unwrap();
    session.list_pop(3, b"copy", End::Left, 500, |_, _| {}).unwrap();
    assert_eq!(all(session, b"renamed"), before);
    assert_eq!(session.list_len(3, b"copy").unwrap(), 1_500);
    assert!(session.peek(0, b"list").unwrap().is_none());
}

#[test]
fn nodes_in_the_middle_are_compressed_and_memory_is_accounted_for() {
    let store = store();
    let session = &mut store.session();
    // The table of the shard keeps the room of its first key.
    push(session, b"list", &[b"a"]);
    session.delete(0, b"list").unwrap();
    let before = store.used_memory();
    for number in 0..5_000 {
        push(session, b"list", &[&event(number)]);
    }
    let stats = session.peek(0, b"list").unwrap().unwrap().list().unwrap();
    assert_eq!(stats.compressed_nodes, stats.nodes - 2);
    assert!(stats.is_large && stats.memory < stats.raw_bytes as usize / 3);
    assert!(store.used_memory() - before >= stats.memory as u64);
    for number in (0..5_000).step_by(7) {
        session.list_set(0, b"list", number, b"changed").unwrap();
    }
    session.list_remove(0, b"list", 0, b"changed").unwrap();
    for number in (0..2_000).rev() {
        assert!(session.list_pop(0, b"list", End::Left, 1, |_, _| {}).unwrap(), "{number}");
    }
    session.list_trim(0, b"list", 0, 99).unwrap();
    assert_eq!(session.list_len(0, b"list").unwrap(), 100);
    session.delete(0, b"list").unwrap();
    assert_eq!(store.used_memory(), before);
}

#[test]
fn nodes_that_are_read_again_are_not_decoded_again() {
    let store = store();
    let session = &mut store.session();
    for number in 0..5_000 {
        push(session, b"list", &[&event(number)]);
    }
    let decoded = |store: &Store| store.stats().codec.total(Family::DecodedValues);
    let first = session.list_get(0, b"list", 2_500, text).unwrap();
    let before = decoded(&store);
    assert_eq!(session.list_get(0, b"list", 2_500, text).unwrap(), first);
    assert_eq!(decoded(&store), before);
    assert!(store.decoded_node_bytes() > 0);
    store.change_settings(|settings| settings.lists.cache_bytes = 0);
    assert_eq!(session.list_get(0, b"list", 2_500, text).unwrap(), first);
    assert_eq!(session.list_get(0, b"list", 2_500, text).unwrap(), first);
    assert_eq!(store.decoded_node_bytes(), 0);
    assert!(decoded(&store) >= before + 2);
}

/// Makes lists, each with a node in the middle that was changed.
#[cfg(feature = "lz4")]
fn change_lists(store: &Arc<Store>, names: std::ops::Range<u32>) -> Vec<String> {
    store.change_settings(|settings| settings.lists.cache_bytes = 200_000);
    let session = &mut store.session();
    let keys: Vec<String> = names.map(|number| format!("list:{number}")).collect();
    let events: Vec<Vec<u8>> = (0..600).map(event).collect();
    for key in &keys {
        push(session, key.as_bytes(), &events.iter().map(|event| &event[..]).collect::<Vec<_>>());
        assert_eq!(session.list_set(0, key.as_bytes(), 300, b"changed").unwrap(), ListSet::Replaced);
    }
    keys
}

#[cfg(feature = "lz4")]
fn plain_nodes_inside(store: &Arc<Store>, key: &str) -> usize {
    let stats = store.session().peek(0, key.as_bytes()).unwrap().unwrap().list().unwrap();
    stats.nodes - 2 - stats.compressed_nodes
}

#[cfg(feature = "lz4")]
#[test]
fn nodes_that_were_changed_wait_to_be_recompressed_in_so_many_bytes_of_all_lists() {
    let store = store();
    let keys = change_lists(&store, 0..200);
    let plain: Vec<usize> = keys.iter().map(|key| plain_nodes_inside(&store, key)).collect();
    let waiting = plain.iter().sum::<usize>();
    assert!((20..=24).contains(&waiting), "{waiting} nodes of 8 KiB wait");
    assert_eq!(plain[199], 1, "the last one does");
    assert_eq!(plain[0], 0, "the first one does not");
    let session = &mut store.session();
    assert_eq!(all(session, b"list:0")[300], "changed");
}

#[cfg(feature = "lz4")]
#[test]
fn a_node_that_waits_is_recompressed_under_another_name_too() {
    let store = store();
    change_lists(&store, 0..1);
    let session = &mut store.session();
    session.rename((0, b"list:0"), (0, b"other")).unwrap();
    assert_eq!(plain_nodes_inside(&store, "other"), 1);
    change_lists(&store, 1..100);
    push(session, b"other", &[b"more"]);
    assert_eq!(plain_nodes_inside(&store, "other"), 0);
    assert_eq!(all(session, b"other")[300], "changed");
}

#[test]
fn threads_that_push_and_pop_at_both_ends_lose_nothing() {
    let store = store();
    let threads: Vec<_> = (0..4)
        .map(|thread: u32| {
            let store = store.clone();
            std::thread::spawn(move || {
                let session = &mut store.session();
                let mut taken = 0;
                for number in 0..3_000 {
                    push(session, b"queue", &[&event(thread * 10_000 + number)]);
                    if number % 2 == 0 {
                        session.list_pop(0, b"queue", End::Left, 1, |_, _| taken += 1).unwrap();
                    }
                    session.list_get(0, b"queue", i64::from(number), |_| {}).unwrap();
                }
                taken
            })
        })
        .collect();
    let taken: u64 = threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum();
    assert_eq!(store.session().list_len(0, b"queue").unwrap() + taken, 12_000);
}

#[test]
fn a_list_grows_out_of_one_listpack_even_if_the_element_finds_no_place() {
    let store = store();
    let session = &mut store.session();
    let (half, large) = (vec![b'a'; 5000], vec![b'b'; 5000]);
    for key in [&b"set"[..], b"inserted"] {
        push(session, key, &[&half]);
        assert!(!session.peek(0, key).unwrap().and_then(|value| value.list()).unwrap().is_large);
    }
    assert_eq!(session.list_set(0, b"set", 7, &large).unwrap(), ListSet::OutOfRange);
    assert_eq!(session.list_insert(0, b"inserted", b"x", true, &large).unwrap(), Inserted::NoPivot);
    for key in [&b"set"[..], b"inserted"] {
        assert!(session.peek(0, key).unwrap().and_then(|value| value.list()).unwrap().is_large);
    }
}

#[cfg(feature = "lz4")]
#[test]
fn a_list_tells_what_its_nodes_take_before_and_after() {
    let store = store();
    let session = &mut store.session();
    for number in 0..5000 {
        push(session, b"list", &[&event(number)]);
    }
    let stats = session.peek(0, b"list").unwrap().and_then(|value| value.list()).unwrap();
    assert_eq!((stats.elements, stats.codec), (5000, Some("lz4")));
    assert_eq!(stats.compressed_nodes, stats.nodes - 2);
    assert!(stats.stored_bytes < stats.raw_bytes / 2, "{stats:?}");
}

#[test]
fn what_all_lists_take_follows_every_change() {
    let store = store();
    let session = &mut store.session();
    for number in 0..1000 {
        push(session, b"list", &[&event(number)]);
    }
    push(session, b"other", &[b"a"]);
    session.copy((0, b"list"), (1, b"list")).unwrap();
    session.list_trim(1, b"list", 0, 99).unwrap();
    session.set(0, b"string", b"a", Expiry::Never, Condition::Always).unwrap();
    let stats = |session: &mut Session, database, key: &[u8]| {
        session.peek(database, key).unwrap().and_then(|value| value.list()).expect("it is a list")
    };
    let all = [stats(session, 0, b"list"), stats(session, 0, b"other"), stats(session, 1, b"list")];
    let totals = store.collection_totals(Kind::List);
    assert_eq!((totals.values, totals.elements), (3, 1101));
    assert_eq!(totals.nodes, all.iter().map(|list| list.nodes as u64).sum::<u64>());
    assert_eq!(totals.raw_bytes, all.iter().map(|list| list.raw_bytes).sum::<u64>());
    assert_eq!(totals.memory, all.iter().map(|list| list.memory as u64).sum::<u64>());
    assert_eq!(totals.compressed_nodes, all.iter().map(|list| list.compressed_nodes as u64).sum::<u64>());
    let saved = totals.compressed_raw_bytes - totals.compressed_bytes;
    assert_eq!(saved, all.iter().map(|list| list.raw_bytes - list.stored_bytes).sum::<u64>());
    drop(store.flush(Some(1)));
    session.set(0, b"list", b"a", Expiry::Never, Condition::Always).unwrap();
    session.list_pop(0, b"other", End::Left, 1, |_, _| {}).unwrap();
    assert_eq!(store.collection_totals(Kind::List), Default::default());
}
