//! A snapshot shows every key as it was when the snapshot began, whatever happens to it meanwhile.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::support::random_bytes;
use proptest::collection::vec as many;
use proptest::prelude::*;
use snugly_listpack::View;
use snugly_store::{
    Choice, Condition, Config, Durability, End, EvictionPolicy, ExpireConditions, Expiry, Fill,
    KeyspaceSnapshot, Kind, Session, SnapshotError, SnapshotKey, Storage, Store, StoreError, system_time,
};

const DATABASES: usize = 3;
const CODEC: &str = if cfg!(feature = "lz4") { "lz4" } else { "none" };
/// The year 2100, and a time long past.
const FAR: u64 = 4_102_444_800_000;
const PAST: u64 = 1;

fn config(max_memory: u64) -> Config {
    let mut config = Config::new(Choice::new(CODEC, None, 64).expect("the codec is in this build"));
    config.settings.max_memory = max_memory;
    config.settings.eviction = EvictionPolicy::NoEviction;
    config.settings.lists.max_listpack_size = Fill::new(4);
    (config.shards, config.databases) = (Some(4), DATABASES);
    config
}

fn open(path: &Path, max_memory: u64) -> Arc<Store> {
    let commit_interval = Duration::from_millis(1);
    let storage = Storage { durability: Durability::None, commit_interval, ..Storage::new(path) };
    Store::open(config(max_memory), storage).expect("the store opens")
}

/// A value and when it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shown {
    String(Vec<u8>, Option<u64>),
    List(Vec<Vec<u8>>, Option<u64>),
}

type Contents = BTreeMap<(usize, Vec<u8>), Shown>;

fn shown(mut key: SnapshotKey<'_>) -> Result<(Vec<u8>, Shown), SnapshotError> {
    let (name, expiry) = (key.key().to_vec(), key.expiry());
    if key.kind() == Kind::String {
        let mut value = Vec::new();
        key.read(&mut value)?;
        return Ok((name, Shown::String(value, expiry)));
    }
    let (mut elements, mut lens) = (Vec::new(), Vec::new());
    key.show_nodes(|listpack| {
        lens.push(listpack.len());
        let node = View::parse(listpack).expect("a node is a listpack");
        elements.extend(node.iter_from(0).map(|element| element.with_bytes(<[u8]>::to_vec)));
    })?;
    assert!(key.node_lens().eq(lens));
    Ok((name, Shown::List(elements, expiry)))
}

/// Shows all keys, and calls `meanwhile` after each.
fn contents(
    session: &mut Session,
    snapshot: &mut KeyspaceSnapshot,
    mut meanwhile: impl FnMut(),
) -> Result<Contents, SnapshotError> {
    let mut found = Contents::new();
    for database in 0..DATABASES {
        session.show_snapshot::<SnapshotError>(snapshot, database, |key| {
            let (key, value) = shown(key)?;
            assert_eq!(found.insert((database, key), value), None, "a key is shown once");
            meanwhile();
            Ok(())
        })?;
    }
    Ok(found)
}

fn all(session: &mut Session) -> Contents {
    let mut snapshot = session.snapshot().expect("there is no other");
    contents(session, &mut snapshot, || {}).expect("everything can be read")
}

#[derive(Clone, Debug)]
enum Step {
    Set(Vec<u8>),
    SetWithExpiry(bool),
    Delete,
    Append(Vec<u8>),
    Expire(bool),
    Persist,
    Rename(u8),
    Copy(u8),
    Push(bool, Vec<Vec<u8>>),
    Pop(bool, u64),
    Move(u8),
    Trim(i64, i64),
    Read,
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    // The longest become drafts when they are changed.
    prop_oneof![
        many(any::<u8>(), 0..40),
        (1..40usize).prop_map(|times| b"a value that repeats ".repeat(times)),
        (0..9u8).prop_map(|byte| vec![byte; 6 << 10]),
    ]
}

fn step() -> impl Strategy<Value = (usize, u8, Step)> {
    let step = prop_oneof![
        3 => value().prop_map(Step::Set),
        1 => any::<bool>().prop_map(Step::SetWithExpiry),
        2 => Just(Step::Delete),
        2 => value().prop_map(Step::Append),
        1 => any::<bool>().prop_map(Step::Expire),
        1 => Just(Step::Persist),
        3 => (0..KEYS).prop_map(Step::Rename),
        2 => (0..KEYS).prop_map(Step::Copy),
        4 => (any::<bool>(), many(value(), 1..6)).prop_map(|(left, elements)| Step::Push(left, elements)),
        3 => (any::<bool>(), 1..4u64).prop_map(|(left, count)| Step::Pop(left, count)),
        3 => (0..KEYS).prop_map(Step::Move),
        1 => (-9..9i64, -9..9i64).prop_map(|(start, stop)| Step::Trim(start, stop)),
        2 => Just(Step::Read),
    ];
    (0..DATABASES, 0..KEYS, step)
}

const KEYS: u8 = 12;

fn key(number: u8) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

fn end(left: bool) -> End {
    if left { End::Left } else { End::Right }
}

/// Takes a step; what is refused, since a value is of another kind or there is no room, changes nothing.
fn take(session: &mut Session, (database, number, step): &(usize, u8, Step)) {
    let (database, key_) = (*database, key(*number));
    let expiry = |far: bool| Expiry::At(if far { FAR } else { PAST });
    let taken = match step {
        Step::Set(value) => session.set(database, &key_, value, Expiry::Never, Condition::Always).map(drop),
        Step::SetWithExpiry(far) => {
            session.set(database, &key_, b"value", expiry(*far), Condition::Always).map(drop)
        }
        Step::Delete => session.delete(database, &key_).map(drop),
        Step::Append(more) => session.update_part(database, &key_, |current, part| {
            part.extend_from_slice(more);
            Ok((current.map_or(0, <[u8]>::len), ()))
        }),
        Step::Expire(far) => {
            session.expire(database, &key_, expiry(*far), ExpireConditions::default()).map(drop)
        }
        Step::Persist => {
            session.expire(database, &key_, Expiry::Never, ExpireConditions::default()).map(drop)
        }
        Step::Rename(to) => session.rename((database, &key_), (database, &key(*to))).map(drop),
        Step::Copy(to) => session.copy((database, &key_), ((database + 1) % DATABASES, &key(*to))).map(drop),
        Step::Push(left, elements) => {
            let elements = elements.iter().map(|element| &element[..]);
            session.list_push(database, &key_, end(*left), elements, false).map(drop)
        }
        Step::Pop(left, count) => session.list_pop(database, &key_, end(*left), *count, |_, _| {}).map(drop),
        Step::Move(to) => {
            session.list_move(database, (&key_, End::Left), (&key(*to), End::Right), |_| {}).map(drop)
        }
        Step::Trim(start, stop) => session.list_trim(database, &key_, *start, *stop),
        Step::Read => session.get(database, &key_).map(drop),
    };
    match taken {
        Ok(()) | Err(StoreError::WrongType | StoreError::OutOfMemory { .. }) => {}
        Err(error) => panic!("{step:?}: {error}"),
    }
}

/// Takes steps on another thread, one each time it is asked to.
fn in_the_background<R>(
    store: &Arc<Store>,
    steps: &[(usize, u8, Step)],
    main: impl FnOnce(&mut dyn FnMut()) -> R,
) -> R {
    let (ask, asked): (SyncSender<()>, Receiver<()>) = sync_channel(0);
    let (answer, answered) = sync_channel(0);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut session = store.session();
            for step in steps {
                if asked.recv().is_err() {
                    return;
                }
                take(&mut session, step);
                let _ = answer.send(());
            }
        });
        let result = main(&mut || {
            if ask.send(()).is_ok() {
                let _ = answered.recv();
            }
        });
        drop(ask);
        result
    })
}

fn a_snapshot_is_of_the_moment_when_it_began(
    store: &Arc<Store>,
    before: &[(usize, u8, Step)],
    meanwhile: &[(usize, u8, Step)],
) {
    let mut session = store.session();
    before.iter().for_each(|step| take(&mut session, step));
    let expected = all(&mut session);
    let mut snapshot = session.snapshot().expect("there is no other");
    let shown = in_the_background(store, meanwhile, |step| {
        (0..meanwhile.len() / 2).for_each(|_| step());
        contents(&mut session, &mut snapshot, step)
    });
    assert_eq!(shown.expect("everything can be read"), expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn in_memory(before in many(step(), 0..80), meanwhile in many(step(), 0..80)) {
        let store = Store::new(config(0));
        let _maintenance = store.maintenance(|| Duration::ZERO);
        a_snapshot_is_of_the_moment_when_it_began(&store, &before, &meanwhile);
    }

    #[test]
    fn on_disk(
        before in many(step(), 0..80),
        meanwhile in many(step(), 0..80),
        max_memory in prop_oneof![Just(0), Just(20_000)],
    ) {
        let folder = tempfile::tempdir().expect("there is room for it");
        let store = open(folder.path(), max_memory);
        let maintenance = store.maintenance(|| Duration::ZERO);
        a_snapshot_is_of_the_moment_when_it_began(&store, &before, &meanwhile);
        drop(maintenance);
        store.close().expect("everything can be written");
    }
}

#[test]
fn a_flush_or_an_exchange_of_databases_voids_a_snapshot_but_not_the_next() {
    let store = Store::new(config(0));
    let mut session = store.session();
    for change in [|store: &Store| drop(store.flush(Some(2))), |store: &Store| store.swap(0, 1)] {
        session.set(0, b"key", b"value", Expiry::Never, Condition::Always).expect("there is room");
        let mut snapshot = session.snapshot().expect("there is no other");
        change(&store);
        let shown = contents(&mut session, &mut snapshot, || {});
        assert!(matches!(shown, Err(SnapshotError::Flushed)));
        drop(snapshot);
        assert!(!all(&mut session).is_empty());
    }
}

#[test]
fn there_is_one_snapshot_at_a_time() {
    let store = Store::new(config(0));
    let snapshot = store.session().snapshot().expect("there is no other");
    assert!(store.session().snapshot().is_none());
    drop(snapshot);
    assert!(store.session().snapshot().is_some());
}

#[test]
fn a_key_that_has_expired_is_not_shown() {
    let store = Store::new(config(0));
    let mut session = store.session();
    let now = system_time();
    session.set_now(Some(now));
    for (key, at) in [(b"soon", now + 10), (b"late", now + 1_000)] {
        session.set(0, key, b"value", Expiry::At(at), Condition::Always).expect("there is room");
    }
    let mut snapshot = session.snapshot().expect("there is no other");
    session.set_now(Some(now + 100));
    session.delete(0, b"late").expect("the store is in memory");
    let shown = contents(&mut session, &mut snapshot, || {}).expect("everything can be read");
    assert_eq!(shown.into_keys().collect::<Vec<_>>(), [(0, b"late".to_vec())]);
}

#[test]
fn a_draft_is_shown_as_it_was_although_it_is_changed_in_place() {
    let store = Store::new(config(0));
    let _maintenance = store.maintenance(|| Duration::ZERO);
    let mut session = store.session();
    let mut append = || {
        session.update_part(0, b"key", |current, part| {
            part.extend_from_slice(&[b'x'; 5_000]);
            Ok::<_, StoreError>((current.map_or(0, <[u8]>::len), ()))
        })
    };
    append().and_then(|()| append()).expect("there is room");
    assert_eq!(store.draft_stats().values, 1);
    let mut snapshot = store.session().snapshot().expect("there is no other");
    append().and_then(|()| append()).expect("there is room");
    let shown = contents(&mut session, &mut snapshot, || {}).expect("everything can be read");
    let expected = Shown::String(vec![b'x'; 10_000], None);
    assert_eq!(shown.into_values().collect::<Vec<_>>(), [expected]);
}

#[test]
fn values_that_only_the_disk_has_are_shown_although_they_are_overwritten_unread() {
    let folder = tempfile::tempdir().expect("there is room for it");
    let store = open(folder.path(), 20_000);
    let mut session = store.session();
    let value = random_bytes(1_000, 1);
    let mut set_all = |value: &[u8]| {
        for number in 0..200u32 {
            let key = number.to_be_bytes();
            session.set(0, &key, value, Expiry::Never, Condition::Always).expect("there is room");
        }
    };
    set_all(&value);
    let mut snapshot = store.session().snapshot().expect("there is no other");
    set_all(b"new");
    let shown = contents(&mut session, &mut snapshot, || {}).expect("everything can be read");
    assert_eq!(shown.len(), 200);
    assert!(shown.into_values().all(|shown| shown == Shown::String(value.clone(), None)));
    drop((snapshot, session));
    store.close().expect("everything can be written");
}
