//! Lists on disk: what is there when the store is opened again, what leaves memory and comes back, and what goes.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use snugly_store::{
    Choice, Condition, Config, Durability, Element, End, Expiry, Fill, ListSet, Popped, Session,
    SnapshotError, SnapshotKey, Storage, Store, StoreError, check,
};

fn open_with(folder: &Path, max_memory: u64, durability: Durability) -> Arc<Store> {
    let mut config = Config::new(Choice::new("none", None, 256).expect("it is always there"));
    config.settings.max_memory = max_memory;
    let storage = Storage { durability, commit_interval: Duration::from_millis(10), ..Storage::new(folder) };
    Store::open(config, storage).expect("the folder is ours")
}

fn open(folder: &Path) -> Arc<Store> {
    open_with(folder, 0, Durability::Batched)
}

fn event(number: usize) -> Vec<u8> {
    format!("{{\"event\":{number},\"kind\":\"clicked\",\"where\":\"a button somewhere on the page\"}}")
        .into_bytes()
}

fn push(session: &mut Session, key: &[u8], elements: impl Iterator<Item = Vec<u8>>) {
    for element in elements {
        session.list_push(0, key, End::Right, [&element[..]].into_iter(), false).expect("there is room");
    }
}

fn all(session: &mut Session, key: &[u8]) -> Vec<Vec<u8>> {
    let elements = session.list_range(0, key, 0, -1).expect("it can be read");
    let mut shown = Vec::new();
    if let Some(elements) = elements {
        session.show(&elements, |element| shown.push(bytes(element))).expect("its nodes are whole");
    }
    shown
}

fn bytes(element: Element<'_>) -> Vec<u8> {
    element.bytes().into_owned()
}

fn close(store: Arc<Store>) {
    store.close().expect("the disk has room");
}

/// Nothing is wrong with the store, and nothing is left behind in it.
fn assert_whole(folder: &Path) {
    let report = check(folder, |_| {}).expect("it can be read");
    assert_eq!((report.faults, report.orphaned_nodes, report.orphaned_chunks), (Vec::new(), 0, 0));
}

#[test]
fn a_list_that_memory_has_no_room_for_is_refused_whole_and_shown_a_node_at_a_time() {
    let folder = tempfile::tempdir().expect("there is room for it");
    let store = open_with(folder.path(), 1 << 20, Durability::Batched);
    let mut session = store.session();
    // Bytes that do not compress.
    let element = |number: u64| {
        let mut random = fastrand::Rng::with_seed(number);
        (0..1 << 20).map(|_| random.u8(..)).collect::<Vec<u8>>()
    };
    push(&mut session, b"list", (0..24).map(element));
    // Every node is on disk once there is no other place for it.
    let until = Instant::now() + Duration::from_secs(60);
    while store.disk_stats().unwrap().pending_bytes > 0
        || !matches!(session.list_range(0, b"list", 0, -1), Err(StoreError::OutOfMemory { .. }))
    {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(10));
    }
    let taken = session.list_take(0, b"list", End::Right, 24, 0, |_, _| {});
    assert!(matches!(taken, Err(StoreError::OutOfMemory { .. })));
    assert_eq!(session.list_len(0, b"list").unwrap(), 24);
    let mut nodes = 0;
    let mut snapshot = session.snapshot().expect("there is no other");
    let count = |mut list: SnapshotKey<'_>| {
        Ok(list.show_nodes(|listpack| nodes += u8::from(listpack.len() > 1 << 20))?)
    };
    session.show_snapshot::<SnapshotError>(&mut snapshot, 0, count).unwrap();
    drop(snapshot);
    assert_eq!(nodes, 24);
    let mut snapshot = session.snapshot().expect("there is no other");
    push(&mut session, b"list", std::iter::once(element(24)));
    let shown = session.show_snapshot(&mut snapshot, 0, |_| Ok(()));
    assert!(matches!(shown, Err(SnapshotError::TooLong { key }) if key == b"list"), "it has changed");
    drop(snapshot);
    session.list_pop(0, b"list", End::Right, 1, |_, _| {}).unwrap();
    let Popped::Given(elements) = session.list_take(0, b"list", End::Right, 2, 0, |_, _| {}).unwrap() else {
        panic!("no node has 0 bytes");
    };
    let mut shown = Vec::new();
    session.show(&elements, |element| shown.push(bytes(element))).unwrap();
    assert!(shown == [element(23), element(22)]);
    assert_eq!(session.list_len(0, b"list").unwrap(), 22);
    drop(session);
    close(store);
    assert_whole(folder.path());
}

#[test]
fn a_list_is_there_after_a_restart_and_can_be_changed_anywhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    push(&mut store.session(), b"list", (0..2_000).map(event));
    push(&mut store.session(), b"small", (0..3).map(event));
    close(store);
    assert_whole(folder.path());

    let store = open(folder.path());
    let mut owned = store.session();
    let session = &mut owned;
    assert_eq!(store.database_stats(0).unwrap().keys, 2);
    assert_eq!(session.list_len(0, b"list").unwrap(), 2_000);
    assert_eq!(session.list_get(0, b"list", 1_234, bytes).unwrap(), Some(event(1_234)));
    assert_eq!(session.list_set(0, b"list", 700, b"set").unwrap(), ListSet::Replaced);
    session.list_pop(0, b"list", End::Left, 10, |_, _| {}).unwrap();
    session.list_insert(0, b"list", b"set", true, b"inserted").unwrap();
    push(session, b"list", std::iter::once(b"last".to_vec()));
    drop(owned);
    close(store);
    assert_whole(folder.path());

    let mut expected: Vec<_> = (10..2_000).map(event).collect();
    expected[690] = b"set".to_vec();
    expected.insert(691, b"inserted".to_vec());
    expected.push(b"last".to_vec());
    let store = open(folder.path());
    assert_eq!(all(&mut store.session(), b"list"), expected);
    assert_eq!(all(&mut store.session(), b"small"), (0..3).map(event).collect::<Vec<_>>());
    close(store);
}

#[test]
fn lists_that_go_leave_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let mut owned = store.session();
    let session = &mut owned;
    for key in [&b"deleted"[..], b"overwritten", b"renamed", b"expired", b"emptied", b"kept"] {
        push(session, key, (0..600).map(event));
    }
    push(session, b"at once", (0..600).map(event));
    session.delete(0, b"at once").unwrap();
    drop(owned);
    close(store);
    let store = open(folder.path());
    let mut owned = store.session();
    let session = &mut owned;
    session.delete(0, b"deleted").unwrap();
    session.set(0, b"overwritten", b"string", Expiry::Never, Condition::Always).unwrap();
    session.rename((0, b"renamed"), (3, b"elsewhere")).unwrap();
    session.copy((0, b"kept"), (0, b"copy")).unwrap();
    session.expire(0, b"expired", Expiry::At(session.now() + 30), Default::default()).unwrap();
    session.list_pop(0, b"emptied", End::Right, 600, |_, _| {}).unwrap();
    let started = Instant::now();
    while store.database_stats(0).unwrap().keys != 3 {
        store.expire_due(session.now(), 100);
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", store.database_stats(0));
        std::thread::sleep(Duration::from_millis(10));
    }
    session.list_set(0, b"copy", 300, b"other").unwrap();
    drop(owned);
    close(store);
    assert_whole(folder.path());
    let store = open(folder.path());
    let mut owned = store.session();
    let session = &mut owned;
    let events: Vec<_> = (0..600).map(event).collect();
    assert_eq!(all(session, b"kept"), events);
    assert_eq!(session.list_len(3, b"elsewhere").unwrap(), 600);
    let elements = session.list_range(3, b"elsewhere", 0, -1).unwrap().unwrap();
    let mut shown = Vec::new();
    session.show(&elements, |element| shown.push(bytes(element))).unwrap();
    assert_eq!(shown, events);
    store.flush(None);
    let started = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(200));
        if store.disk_stats().unwrap().pending_bytes == 0 || started.elapsed() > Duration::from_secs(10) {
            break;
        }
    }
    drop(owned);
    close(store);
    assert_whole(folder.path());
}

/// Moves a list to another database, does something to the key where it was, and empties that database in the same commit.
fn assert_that_a_moved_list_stays(durability: Durability, after: impl FnOnce(&mut Session)) {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || open_with(folder.path(), 0, durability);
    let store = open();
    push(&mut store.session(), b"list", (0..600).map(event));
    close(store);
    let store = open();
    let mut session = store.session();
    session
        .all_exclusively(|session| {
            session.rename((0, b"list"), (1, b"list"))?;
            after(session);
            drop(session.flush(Some(0)));
            Ok::<_, StoreError>(())
        })
        .expect("there is room");
    drop(session);
    close(store);
    assert_whole(folder.path());
    let store = open();
    store.swap(0, 1);
    assert_eq!(all(&mut store.session(), b"list"), (0..600).map(event).collect::<Vec<_>>());
    close(store);
}

#[test]
fn a_list_that_was_moved_stays_when_its_former_database_is_emptied() {
    for durability in [Durability::Fsync, Durability::Batched, Durability::None] {
        assert_that_a_moved_list_stays(durability, |_| {});
        assert_that_a_moved_list_stays(durability, |session| push(session, b"list", (0..3).map(event)));
        assert_that_a_moved_list_stays(durability, |session| {
            session.set(0, b"list", b"a string", Expiry::Never, Condition::Always).expect("there is room");
        });
    }
}

#[test]
fn a_list_that_is_longer_than_memory_is_read_and_changed_from_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let limit = 8 << 20;
    let store = open_with(folder.path(), limit, Durability::Batched);
    let mut random = fastrand::Rng::with_seed(5);
    let mut element = |number: usize| {
        let noise: Vec<u8> = (0..500).map(|_| random.u8(..)).collect();
        [format!("{number}:").as_bytes(), &noise].concat()
    };
    let elements: Vec<Vec<u8>> = (0..60_000).map(&mut element).collect();
    let mut owned = store.session();
    let session = &mut owned;
    for (number, element) in elements.iter().enumerate() {
        session.list_push(0, b"long", End::Right, [&element[..]].into_iter(), false).expect("there is room");
        if number % 5_000 == 0 {
            assert!(store.used_memory() < 2 * limit, "{} bytes are in memory", store.used_memory());
        }
    }
    assert!(store.used_memory() < 2 * limit, "{} bytes are in memory", store.used_memory());
    for index in (0..60_000).step_by(611) {
        let found = session.list_get(0, b"long", index as i64, bytes).unwrap();
        assert_eq!(found.as_ref(), Some(&elements[index]));
    }
    for index in (0..60_000).step_by(5_003) {
        session.list_set(0, b"long", index as i64, format!("set {index}").as_bytes()).unwrap();
    }
    let mut popped = 0;
    while popped < 30_000 {
        session
            .list_pop(0, b"long", End::Left, 100, |_, element| {
                let expected = match popped % 5_003 {
                    0 => format!("set {popped}").into_bytes(),
                    _ => elements[popped].clone(),
                };
                assert_eq!(bytes(element), expected);
                popped += 1;
            })
            .unwrap();
    }
    assert_eq!(session.list_len(0, b"long").unwrap(), 30_000);
    drop(owned);
    close(store);
    assert_whole(folder.path());
    let store = open_with(folder.path(), limit, Durability::Batched);
    let mut owned = store.session();
    let session = &mut owned;
    assert_eq!(session.list_get(0, b"long", -1, bytes).unwrap().as_ref(), elements.last());
    assert_eq!(session.list_get(0, b"long", 0, bytes).unwrap().as_ref(), Some(&elements[30_000]));
    drop(owned);
    close(store);
}

#[test]
fn a_push_that_was_answered_is_in_the_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open_with(folder.path(), 0, Durability::Fsync);
    let mut owned = store.session();
    let session = &mut owned;
    push(session, b"list", (0..300).map(event));
    let ticket = session.take_ticket().expect("it has written");
    let waiting = store.durable(ticket);
    block_on(waiting).expect("the disk has room");
    // The files as they are now, which a crash would leave.
    let copy = tempfile::tempdir().expect("a folder");
    for file in std::fs::read_dir(folder.path()).expect("it is a folder") {
        let file = file.expect("it can be read");
        if file.file_type().expect("it has one").is_file() {
            std::fs::copy(file.path(), copy.path().join(file.file_name())).expect("there is room");
        }
    }
    drop(owned);
    close(store);
    let store = open_with(copy.path(), 0, Durability::Fsync);
    assert_eq!(all(&mut store.session(), b"list"), (0..300).map(event).collect::<Vec<_>>());
    close(store);
    assert_whole(copy.path());
}

/// Waits for a future on this thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(result) => return result,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(End, usize),
    Pop(End, u64),
    Set(i64),
    Insert(usize),
    Remove(usize),
    Trim(i64, i64),
    Rename,
    Copy,
    Expire,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let end = || prop_oneof![Just(End::Left), Just(End::Right)];
    prop_oneof![
        8 => (end(), 1usize..200).prop_map(|(end, count)| Step::Push(end, count)),
        3 => (end(), 1u64..150).prop_map(|(end, count)| Step::Pop(end, count)),
        2 => (-50i64..50).prop_map(Step::Set),
        2 => (0usize..20).prop_map(Step::Insert),
        1 => (0usize..20).prop_map(Step::Remove),
        1 => (0i64..20, -20i64..0).prop_map(|(start, stop)| Step::Trim(start, stop)),
        1 => Just(Step::Rename),
        1 => Just(Step::Copy),
        1 => Just(Step::Expire),
        2 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_is_done_to_a_list_is_there_when_it_is_opened_again(
        steps in prop::collection::vec(step(), 1..40),
        durability in prop_oneof![Just(Durability::Fsync), Just(Durability::Batched)],
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || {
            let store = open_with(folder.path(), 0, durability);
            store.change_settings(|settings| settings.lists.max_listpack_size = Fill::new(-1));
            store
        };
        let (mut store, mut model, mut counter) = (open(), VecDeque::new(), 0);
        for step in steps {
            let mut owned = store.session();
            let session = &mut owned;
            let mut fresh = || {
                counter += 1;
                event(counter % 30 * 1_000)
            };
            match step {
                Step::Push(end, count) => {
                    for _ in 0..count {
                        let element = fresh();
                        session.list_push(0, b"list", end, [&element[..]].into_iter(), false).unwrap();
                        if end == End::Left { model.push_front(element) } else { model.push_back(element) }
                    }
                }
                Step::Pop(end, count) => {
                    session.list_pop(0, b"list", end, count, |_, _| {}).unwrap();
                    for _ in 0..count.min(model.len() as u64) {
                        if end == End::Left { model.pop_front() } else { model.pop_back() };
                    }
                }
                Step::Set(place) => {
                    let element = fresh();
                    let index = if place < 0 { place + model.len() as i64 } else { place };
                    let set = session.list_set(0, b"list", place, &element).unwrap();
                    let old = usize::try_from(index).ok().and_then(|index| model.get_mut(index));
                    prop_assert_eq!(set == ListSet::Replaced, old.is_some());
                    old.into_iter().for_each(|old| old.clone_from(&element));
                }
                Step::Insert(kind) => {
                    let (pivot, element) = (event(kind * 1_000), fresh());
                    session.list_insert(0, b"list", &pivot, true, &element).unwrap();
                    if let Some(place) = model.iter().position(|other| *other == pivot) {
                        model.insert(place + 1, element);
                    }
                }
                Step::Remove(kind) => {
                    let gone = event(kind * 1_000);
                    session.list_remove(0, b"list", 0, &gone).unwrap();
                    model.retain(|element| *element != gone);
                }
                Step::Trim(start, stop) => {
                    session.list_trim(0, b"list", start, stop).unwrap();
                    let end = (model.len() as i64 + stop + 1).max(0) as usize;
                    model.truncate(end);
                    model.drain(..(start as usize).min(model.len()));
                }
                Step::Rename => {
                    if session.rename((0, b"list"), (1, b"other")).unwrap() {
                        session.rename((1, b"other"), (0, b"list")).unwrap();
                    }
                }
                Step::Copy => {
                    if session.copy((0, b"list"), (0, b"copy")).unwrap() {
                        session.delete(0, b"list").unwrap();
                        session.rename((0, b"copy"), (0, b"list")).unwrap();
                    }
                }
                Step::Expire => {
                    let at = session.now() + 1_000_000;
                    session.expire(0, b"list", Expiry::At(at), Default::default()).unwrap();
                }
                Step::Reopen => {
                    drop(owned);
                    let memory = Store::new(Config::new(Choice::new("none", None, 256).unwrap()));
                    close(std::mem::replace(&mut store, memory));
                    assert_whole(folder.path());
                    store = open();
                }
            }
            prop_assert!(model == all(&mut store.session(), b"list"));
        }
            close(store);
        assert_whole(folder.path());
    }
}
