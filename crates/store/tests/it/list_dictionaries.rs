//! A dictionary for the nodes of lists: learned from them, used where it pays, counted node by node.
#![cfg(feature = "zstd")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::alike::{active, close, maintain, settle};
use crate::support::events::*;
use crate::support::*;
use proptest::prelude::*;
use snugly_store::{
    Choice, Durability, End, EvictionPolicy, Expiry, Kind, Session, Storage, Store, StoreMaintenance, check,
};

const EVENTS: usize = 30_000;

fn store() -> Arc<Store> {
    Store::new(config_with_zstd())
}

fn maintained() -> (Arc<Store>, StoreMaintenance, Session) {
    let store = store();
    let maintenance = store.maintenance(|| Duration::ZERO);
    let session = session_at(&store, NOW);
    (store, maintenance, session)
}

/// A store whose lists have a dictionary.
fn taught() -> (Arc<Store>, StoreMaintenance, Session) {
    let (store, maintenance, session) = maintained();
    store.import_dictionary(learned(), LISTS, 8_192).expect("it is whole");
    (store, maintenance, session)
}

fn events(numbers: impl Iterator<Item = usize>) -> Vec<Vec<u8>> {
    numbers.map(event).collect()
}

/// Advances time by seconds, in which sessions fetch changes.
fn wait(maintenance: &mut StoreMaintenance, session: &mut Session, seconds: std::ops::RangeInclusive<u64>) {
    for second in seconds {
        session.follow();
        maintain(maintenance, NOW + second * 1_000);
    }
}

#[test]
fn nodes_that_are_alike_get_a_dictionary_and_take_less() {
    let (store, mut maintenance, mut session) = maintained();
    for list in 0..3 {
        push(
            &mut session,
            0,
            format!("list:{list}").as_bytes(),
            End::Right,
            list * EVENTS..(list + 1) * EVENTS,
        );
    }
    let before = store.used_memory();
    maintain(&mut maintenance, NOW);
    let [dictionary] = &active(&store)[..] else { panic!("one for all lists: {:?}", store.dictionaries()) };
    assert_eq!((&dictionary.pattern[..], dictionary.min_len, dictionary.max_len), (LISTS, 32, 32 << 10));
    assert!(dictionary.ratio_after < dictionary.ratio_before.map(|before| 0.9 * before), "{dictionary:?}");
    let after = store.used_memory() + dictionary.memory as u64;
    assert!(after * 10 < before * 9, "{after} bytes, the dictionary included, after {before}");
    // Nodes that were there before are encoded with it as well.
    assert_eq!(dictionary.records, store.collection_totals(Kind::List).inner_nodes);
    assert_eq!(dictionary.records, recount(&store, &mut session));
    for list in 0..3 {
        let expected = events(list * EVENTS..(list + 1) * EVENTS);
        assert!(all(&mut session, 0, format!("list:{list}").as_bytes()) == expected);
    }
    push(&mut session, 0, b"list:0", End::Left, 0..1_000);
    assert_eq!(counted(&store), store.collection_totals(Kind::List).inner_nodes);
    let list = session.peek(0, b"list:0").unwrap().unwrap().list().unwrap();
    assert_eq!((list.codec, list.dictionary), (Some("zstd_dictionary"), Some(dictionary.number)));
}

#[test]
fn training_on_request_learns_from_lists_that_were_there_before_zstd() {
    let (store, mut maintenance, mut session) = maintained();
    let lists = |codec: &str| Choice::new(codec, None, 0).ok();
    store.change_settings(|settings| settings.lists.compress_codec = lists("lz4"));
    push(&mut session, 0, b"list", End::Right, 0..EVENTS);
    assert_eq!(store.train_dictionaries(Some(LISTS)), 0);
    store.change_settings(|settings| settings.lists.compress_codec = lists("zstd"));
    assert_eq!(store.train_dictionaries(Some(LISTS)), 1);
    maintain(&mut maintenance, NOW);
    let [dictionary] = &active(&store)[..] else { panic!("one for all lists: {:?}", store.dictionaries()) };
    assert_eq!(&dictionary.pattern[..], LISTS);
}

#[test]
fn keys_have_nothing_to_do_with_it_whatever_they_are_called() {
    let (store, _maintenance, mut session) = taught();
    let value: Vec<u8> = (0..20).flat_map(event).collect();
    for key in [LISTS, b"*lists*:1", b"lists", b"*", b""] {
        put(&mut session, key, &value);
        assert_eq!(read(&mut session, key), Some(value.clone()));
    }
    assert_eq!(counted(&store), 0);
}

#[test]
fn what_would_save_too_little_gets_none() {
    let (store, mut maintenance, mut session) = maintained();
    push(&mut session, 0, b"short", End::Right, 0..3_400);
    maintain(&mut maintenance, NOW);
    assert_eq!(store.sample_stats().trainings, 1, "{:?}", store.sample_stats());
    assert!(store.dictionaries().is_empty(), "{:?}", store.dictionaries());
}

#[test]
fn other_codecs_and_other_settings_use_none() {
    let (store, mut maintenance, mut session) = taught();
    let lists = |codec: &str| Choice::new(codec, None, 0).ok();
    store.change_settings(|settings| settings.lists.compress_codec = lists("none"));
    push(&mut session, 0, b"none", End::Right, 0..500);
    store.change_settings(|settings| settings.lists.compress_codec = lists("zstd"));
    store.change_settings(|settings| settings.dictionaries.enabled = false);
    push(&mut session, 0, b"off", End::Right, 0..500);
    assert!(active(&store).is_empty());
    assert_eq!((counted(&store), store.sample_stats().classes), (0, 0));
    store.change_settings(|settings| settings.dictionaries.enabled = true);
    store.change_settings(|settings| settings.compression = Choice::none());
    push(&mut session, 0, b"strings are not compressed", End::Right, 0..500);
    assert!(counted(&store) > 10);
    maintain(&mut maintenance, NOW);
    assert_eq!(counted(&store), recount(&store, &mut session));
    assert!(store.settings().uses_dictionaries() && store.settings().learns());
}

#[test]
fn lists_of_excluded_keys_are_kept_out_of_it() {
    let (store, mut maintenance, mut session) = taught();
    push(&mut session, 0, b"secret:1", End::Right, 0..1_000);
    push(&mut session, 0, b"open:1", End::Right, 0..1_000);
    let nodes = |session: &mut Session, key: &[u8]| {
        session.peek(0, key).unwrap().unwrap().list().unwrap().dictionary_nodes
    };
    assert!(nodes(&mut session, b"secret:1") > 10);
    store.exclude_from_dictionaries(Some(Arc::new(|key: &[u8]| key.starts_with(b"secret"))));
    wait(&mut maintenance, &mut session, 1..=4);
    push(&mut session, 0, b"secret:2", End::Right, 0..5_000);
    assert_eq!((nodes(&mut session, b"secret:1"), nodes(&mut session, b"secret:2")), (0, 0));
    assert!(nodes(&mut session, b"open:1") > 10);
    assert_eq!(store.sample_stats().samples, 0, "{:?}", store.classes());
    assert!(all(&mut session, 0, b"secret:1") == events(0..1_000));
}

#[test]
fn a_dictionary_that_is_forgotten_goes_once_no_node_needs_it() {
    let (store, mut maintenance, mut session) = taught();
    push(&mut session, 0, b"list", End::Right, 0..2_000);
    let number = active(&store)[0].number;
    let had = counted(&store);
    let held = session.list_range(0, b"list", 500, 600).unwrap().unwrap();
    store.forget_dictionary(number).unwrap();
    assert_eq!(counted(&store), had, "they still need it");
    let mut found = 0;
    session.show(&held, |_| found += 1).expect("who has nodes can read them");
    assert_eq!(found, 101);
    drop(held);
    wait(&mut maintenance, &mut session, 1..=10);
    assert!(store.dictionaries().is_empty(), "{:?}", store.dictionaries());
    assert_eq!(recount(&store, &mut session), 0);
    assert!(all(&mut session, 0, b"list") == events(0..2_000));
}

#[test]
fn deleting_everything_ends_it() {
    let (store, mut maintenance, mut session) = taught();
    push(&mut session, 0, b"list", End::Right, 0..2_000);
    drop(session.flush(None));
    assert_eq!((active(&store).len(), counted(&store)), (0, 0));
    push(&mut session, 0, b"list", End::Right, 0..500);
    assert_eq!(counted(&store), 0);
    wait(&mut maintenance, &mut session, 1..=8);
    assert!(store.dictionaries().is_empty());
}

#[test]
fn a_training_can_be_asked_for_with_nodes_that_are_there() {
    let (store, mut maintenance, mut session) = maintained();
    store.change_settings(|settings| settings.dictionaries.trains = false);
    push(&mut session, 0, b"list", End::Right, 0..EVENTS);
    store.change_settings(|settings| settings.dictionaries.trains = true);
    push(&mut session, 0, b"other", End::Right, 0..100);
    maintain(&mut maintenance, NOW);
    assert_eq!(store.sample_stats().trainings, 0);
    assert_eq!(store.train_dictionaries(Some(LISTS)), 1);
    maintain(&mut maintenance, NOW);
    assert_eq!(active(&store).len(), 1, "{:?}", store.sample_stats());
}

#[test]
fn what_is_recompressed_with_a_newer_dictionary_than_a_session_knows_can_be_read() {
    let (store, _maintenance, mut session) = maintained();
    push(&mut session, 0, b"list", End::Right, 0..10);
    let mut other = session_at(&store, NOW);
    store.import_dictionary(learned(), LISTS, 8_192).expect("it is whole");
    push(&mut other, 0, b"list", End::Right, 10..2_000);
    let elements = other.list_range(0, b"list", 0, -1).unwrap().unwrap();
    let mut found = Vec::new();
    // This session has not followed since the dictionary came.
    session.show(&elements, |element| found.push(element.bytes().into_owned())).expect("it can be read");
    assert!(found == events(0..2_000));
    assert!(counted(&store) > 10);
}

#[test]
fn what_is_evicted_or_expires_does_not_count() {
    let (store, _maintenance, mut session) = taught();
    push(&mut session, 0, b"expiring", End::Right, 0..1_000);
    push(&mut session, 0, b"staying", End::Right, 0..1_000);
    let one = counted(&store) / 2;
    session.expire(0, b"expiring", Expiry::At(NOW + 10), Default::default()).unwrap();
    store.expire_due(NOW + 20, 10);
    assert_eq!((counted(&store), recount(&store, &mut session)), (one, one));
    store.change_settings(|settings| {
        settings.eviction = EvictionPolicy::AllKeysRandom;
        settings.max_memory = 1;
    });
    assert_eq!((counted(&store), store.database_stats(0).unwrap().keys), (0, 0));
}

fn open(folder: &Path, max_memory: u64, durability: Durability) -> Arc<Store> {
    let mut config = config_with_zstd();
    config.settings.max_memory = max_memory;
    let interval = Duration::from_millis(10);
    let storage = Storage { durability, commit_interval: interval, ..Storage::new(folder) };
    Store::open(config, storage).expect("the folder is ours")
}

/// Nothing is wrong with the store, and nothing is left behind in it.
fn assert_whole(folder: &Path) {
    let report = check(folder, |_| {}).expect("it can be read");
    assert_eq!((report.faults, report.orphaned_nodes, report.orphaned_chunks), (Vec::new(), 0, 0));
}

#[test]
fn on_disk_nodes_are_reencoded_and_the_old_dictionary_goes() {
    for (max_memory, durability) in [(1, Durability::None), (0, Durability::Batched), (0, Durability::Fsync)]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(folder.path(), max_memory, durability);
        let (mut maintenance, mut session) = (store.maintenance(|| Duration::ZERO), session_at(&store, NOW));
        push(&mut session, 0, b"list", End::Right, 0..EVENTS);
        settle(&store);
        maintain(&mut maintenance, NOW);
        settle(&store);
        let first = active(&store)[0].clone();
        let nodes = store.collection_totals(Kind::List).inner_nodes.max(800);
        assert_eq!(first.pattern, LISTS);
        assert!(first.records >= nodes, "{first:?}");
        assert!(all(&mut session, 0, b"list") == events(0..EVENTS));
        drop((session, maintenance));
        close(store);
        assert_whole(folder.path());

        let store = open(folder.path(), max_memory, durability);
        let (mut maintenance, mut session) = (store.maintenance(|| Duration::ZERO), session_at(&store, NOW));
        assert_eq!(active(&store), std::slice::from_ref(&first));
        assert_eq!(
            session.list_get(0, b"list", 7_000, |e| e.bytes().into_owned()).unwrap(),
            Some(event(7_000))
        );
        // Another one takes its place.
        store.import_dictionary(learned(), LISTS, 8_192).expect("it is whole");
        let mut second = 0;
        while store.dictionaries().len() > 1 {
            second += 1;
            assert!(second < 1_000, "{:?}", store.dictionaries());
            wait(&mut maintenance, &mut session, second..=second);
            settle(&store);
        }
        assert_eq!(store.dictionaries()[0].records, first.records);
        assert!(all(&mut session, 0, b"list") == events(0..EVENTS));
        drop((session, maintenance));
        close(store);
        assert_whole(folder.path());
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(u8, End, usize),
    Pop(u8, End, u64),
    Set(u8, i64),
    Remove(u8, usize),
    Trim(u8, i64, i64),
    Delete(u8),
    Rename(u8, u8, usize),
    Copy(u8, u8, usize),
    Swap(usize, usize),
    FlushDatabase(usize),
    Expire(u8),
    Read(u8, i64),
    /// Another dictionary, or the end of the use of the one that there is.
    Import,
    Forget,
    Tend,
    Evict,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let end = || prop_oneof![Just(End::Left), Just(End::Right)];
    let key = || 0u8..3;
    let database = || 0usize..2;
    prop_oneof![
        8 => (key(), end(), 1usize..200).prop_map(|(key, end, count)| Step::Push(key, end, count)),
        3 => (key(), end(), 1u64..150).prop_map(|(key, end, count)| Step::Pop(key, end, count)),
        2 => (key(), -200i64..200).prop_map(|(key, place)| Step::Set(key, place)),
        1 => (key(), 0usize..300).prop_map(|(key, number)| Step::Remove(key, number)),
        1 => (key(), 0i64..60, -60i64..0).prop_map(|(key, start, stop)| Step::Trim(key, start, stop)),
        1 => key().prop_map(Step::Delete),
        2 => (key(), key(), database()).prop_map(|(from, to, database)| Step::Rename(from, to, database)),
        2 => (key(), key(), database()).prop_map(|(from, to, database)| Step::Copy(from, to, database)),
        1 => (database(), database()).prop_map(|(first, second)| Step::Swap(first, second)),
        1 => database().prop_map(Step::FlushDatabase),
        1 => key().prop_map(Step::Expire),
        2 => (key(), 0i64..500).prop_map(|(key, place)| Step::Read(key, place)),
        2 => Just(Step::Import),
        1 => Just(Step::Forget),
        3 => Just(Step::Tend),
        1 => Just(Step::Evict),
        2 => Just(Step::Reopen),
    ]
}

/// Stores in memory, and on disk.
struct Subject {
    folder: Option<tempfile::TempDir>,
    durability: Durability,
    store: Arc<Store>,
    maintenance: StoreMaintenance,
    seconds: u64,
    pushed: usize,
}

impl Subject {
    fn new(durability: Option<Durability>) -> Subject {
        let folder = durability.map(|_| tempfile::tempdir().expect("a folder"));
        let durability = durability.unwrap_or(Durability::None);
        let store = match &folder {
            Some(folder) => open(folder.path(), 0, durability),
            None => store(),
        };
        let maintenance = store.maintenance(|| Duration::ZERO);
        Subject { folder, durability, store, maintenance, seconds: 0, pushed: 0 }
    }

    fn take(&mut self, step: &Step) {
        if let Step::Reopen = step {
            return self.reopen();
        }
        let session = &mut session_at(&self.store, NOW + self.seconds * 1_000);
        let name = |key: &u8| format!("list:{key}").into_bytes();
        match step {
            Step::Push(key, end, count) => {
                push(session, 0, &name(key), *end, self.pushed..self.pushed + count);
                self.pushed += count;
            }
            Step::Pop(key, end, count) => {
                session.list_pop(0, &name(key), *end, *count, |_, _| {}).unwrap();
            }
            Step::Set(key, place) => {
                session.list_set(0, &name(key), *place, &event(self.pushed)).unwrap();
            }
            Step::Remove(key, number) => {
                session.list_remove(0, &name(key), 0, &event(*number)).unwrap();
            }
            Step::Trim(key, start, stop) => session.list_trim(0, &name(key), *start, *stop).unwrap(),
            Step::Delete(key) => drop(session.delete(0, &name(key)).unwrap()),
            Step::Rename(from, to, database) => {
                session.rename((0, &name(from)), (*database, &name(to))).unwrap();
            }
            Step::Copy(from, to, database) => {
                if from != to || *database != 0 {
                    session.copy((0, &name(from)), (*database, &name(to))).unwrap();
                }
            }
            Step::Swap(first, second) => self.store.swap(*first, *second),
            Step::FlushDatabase(database) => drop(self.store.flush(Some(*database))),
            Step::Expire(key) => {
                // The disk goes by the clock.
                let now = if self.folder.is_some() { 2 * NOW } else { NOW };
                let at = now + self.seconds * 1_000 + 500;
                session.expire(0, &name(key), Expiry::At(at), Default::default()).unwrap();
            }
            Step::Read(key, place) => {
                session.list_get(0, &name(key), *place, |_| ()).unwrap();
            }
            Step::Import => drop(self.store.import_dictionary(learned(), LISTS, 8_192).unwrap()),
            Step::Forget => {
                active(&self.store)
                    .iter()
                    .for_each(|dictionary| self.store.forget_dictionary(dictionary.number).unwrap());
            }
            Step::Tend => {
                self.seconds += 3;
                maintain(&mut self.maintenance, NOW + self.seconds * 1_000);
            }
            Step::Evict => {
                for max_memory in [200_000, 0] {
                    self.store.change_settings(|settings| {
                        settings.eviction = EvictionPolicy::AllKeysRandom;
                        settings.max_memory = max_memory;
                    });
                }
            }
            Step::Reopen => unreachable!("no session is open for it"),
        }
    }

    fn reopen(&mut self) {
        let Some(folder) = &self.folder else { return };
        let nothing = store();
        self.maintenance = nothing.maintenance(|| Duration::ZERO);
        close(std::mem::replace(&mut self.store, nothing));
        assert_whole(folder.path());
        self.store = open(folder.path(), 0, self.durability);
        self.maintenance = self.store.maintenance(|| Duration::ZERO);
    }

    /// Returns the elements of every list, after all of it was read from where it is.
    fn elements(&self) -> Vec<Vec<Vec<u8>>> {
        let mut session = session_at(&self.store, NOW + self.seconds * 1_000);
        let keys = (0..2).flat_map(|database| (0..3).map(move |key| (database, format!("list:{key}"))));
        keys.map(|(database, key)| all(&mut session, database, key.as_bytes())).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn whatever_is_done_every_node_that_needs_a_dictionary_is_counted_once(
        steps in prop::collection::vec(step(), 1..40),
        durability in prop_oneof![
            Just(None), Just(Some(Durability::Fsync)), Just(Some(Durability::Batched)),
        ],
    ) {
        let mut subject = Subject::new(durability);
        for step in steps {
            subject.take(&step);
            if subject.folder.is_none() {
                let mut session = session_at(&subject.store, NOW + subject.seconds * 1_000);
                subject.store.expire_due(session.now(), 100);
                prop_assert_eq!(counted(&subject.store), recount(&subject.store, &mut session));
            }
        }
        if subject.folder.is_some() {
            let before = subject.elements();
            subject.reopen();
            prop_assert!(subject.elements() == before);
            // Every node has been read from its row. The rows of what was flushed go in the background.
            let mut session = session_at(&subject.store, NOW + subject.seconds * 1_000);
            let nodes = recount(&subject.store, &mut session);
            let is_counted = (0..6_000).any(|_| {
                let is_it = counted(&subject.store) == nodes;
                std::thread::sleep(Duration::from_millis(if is_it { 0 } else { 10 }));
                is_it
            });
            prop_assert!(is_counted, "{} rows, {nodes} nodes", counted(&subject.store));
        }
    }
}
