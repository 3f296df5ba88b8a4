//! Observers of a store are told of every change, and of nothing else.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{NOW, config, put, session_at, store_with};
use parking_lot::Mutex;
use snugly_store::{
    Condition, End, EvictionPolicy, ExpireConditions, Expiry, KeyChange, Observer, Session, Storage, Store,
    system_time,
};

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn changed(&self, database: usize, key: &[u8], _: snugly_store::KeyChange) {
        self.0.lock().push(format!("{database}:{}", String::from_utf8_lossy(key)));
    }

    fn flushed(&self, database: Option<usize>) {
        self.0.lock().push(format!("flushed {database:?}"));
    }
}

#[test]
fn an_observer_is_told_of_changes_and_not_of_what_changes_nothing() {
    let notes = Arc::<Notes>::default();
    let store = store_with(|config| config.observer = Some(notes.clone()));
    let mut session = session_at(&store, NOW);
    let told = || std::mem::take(&mut *notes.0.lock());

    put(&mut session, b"a", b"1");
    assert_eq!(told(), ["0:a"]);
    session.get(0, b"a").expect("undamaged");
    session.get_and_expire(0, b"a", Expiry::Never).expect("undamaged");
    session.set(0, b"a", b"2", Expiry::Never, Condition::IfAbsent).expect("there is room");
    session.remove(0, b"b").expect("undamaged");
    assert_eq!(told(), [] as [String; 0]);
    session.expire(0, b"a", Expiry::At(NOW + 1), ExpireConditions::default()).expect("undamaged");
    assert_eq!(told(), ["0:a"]);
    session.set_now(Some(NOW + 1));
    assert!(session.get(0, b"a").expect("undamaged").is_none());
    assert_eq!(told(), ["0:a"]);
    session.set(3, b"c", b"3", Expiry::Never, Condition::Always).expect("there is room");
    session.remove(3, b"c").expect("undamaged");
    assert_eq!(told(), ["3:c", "3:c"]);
    drop(session.flush(Some(3)));
    drop(session.flush(None));
    assert_eq!(told(), ["flushed Some(3)", "flushed None"]);
}

/// What has become of keys, and those that were missed.
#[derive(Default)]
struct Fates(Mutex<Vec<(String, Option<KeyChange>)>>);

impl Observer for Fates {
    fn changed(&self, _: usize, key: &[u8], change: KeyChange) {
        self.0.lock().push((String::from_utf8_lossy(key).into_owned(), Some(change)));
    }

    fn missed(&self, _: usize, key: &[u8]) {
        self.0.lock().push((String::from_utf8_lossy(key).into_owned(), None));
    }

    fn flushed(&self, _: Option<usize>) {}
}

#[test]
fn an_observer_is_told_what_has_become_of_a_key() {
    use KeyChange::{Created, Evicted, Expired, Removed, Written};

    let fates = Arc::<Fates>::default();
    let store = store_with(|config| config.observer = Some(fates.clone()));
    let mut session = session_at(&store, NOW);
    let told = |what: &str, session: &mut Session, expected: &[Option<KeyChange>]| {
        let fates: Vec<_> = std::mem::take(&mut *fates.0.lock()).into_iter().map(|(_, fate)| fate).collect();
        assert_eq!(fates, expected, "{what}");
        session.set_now(Some(NOW));
    };
    put(&mut session, b"a", b"1");
    told("a new key", &mut session, &[Some(Created)]);
    put(&mut session, b"a", b"2");
    session.list_push(0, b"list", End::Left, [&b"x"[..]].into_iter(), false).expect("there is room");
    told("another value, and a list", &mut session, &[Some(Written), Some(Created)]);
    session.list_pop(0, b"list", End::Left, 1, |_, _| {}).expect("undamaged");
    told("the last element", &mut session, &[Some(Removed)]);
    session.expire(0, b"a", Expiry::At(NOW + 5), ExpireConditions::default()).expect("undamaged");
    session.set_now(Some(NOW + 5));
    assert!(session.get(0, b"a").expect("undamaged").is_none());
    told("an expiry, its end, and a miss", &mut session, &[Some(Written), Some(Expired), None]);
    put(&mut session, b"a", b"3");
    session.expire(0, b"a", Expiry::At(NOW - 1), ExpireConditions::default()).expect("undamaged");
    told("an expiry in the past", &mut session, &[Some(Created), Some(Expired)]);
    put(&mut session, b"a", b"4");
    session.rename((0, b"a"), (1, b"b")).expect("undamaged");
    session.delete(1, b"b").expect("undamaged");
    told("another name", &mut session, &[Some(Created), Some(Created), Some(Removed), Some(Removed)]);

    let fates = Arc::<Fates>::default();
    let store = store_with(|config| {
        config.observer = Some(fates.clone());
        config.settings.max_memory = 1 << 20;
        config.settings.eviction = EvictionPolicy::AllKeysLru;
    });
    let mut session = session_at(&store, NOW);
    for number in 0..5_000_u32 {
        put(&mut session, &number.to_be_bytes(), &[7; 500].map(|byte: u8| byte ^ number as u8));
    }
    let evicted = fates.0.lock().iter().filter(|(_, fate)| *fate == Some(Evicted)).count();
    assert_eq!(evicted as u64, store.stats().evicted);
}

#[test]
fn an_observer_is_told_of_keys_that_expire_on_disk_only() {
    let notes = Arc::<Notes>::default();
    let folder = tempfile::tempdir().expect("a folder for the test");
    let open = || {
        let mut config = config();
        config.observer = Some(notes.clone());
        Store::open(config, Storage::new(folder.path())).expect("the store opens")
    };
    let store = open();
    let now = system_time();
    let mut session = store.session();
    for (key, expiry) in [(b"soon", Expiry::At(now + 500)), (b"late", Expiry::Never)] {
        session.set(1, key, b"value", expiry, Condition::Always).expect("there is room");
    }
    drop(session);
    store.close().expect("the disk takes everything");
    drop(store);
    notes.0.lock().clear();
    let store = open();
    let deadline = Instant::now() + Duration::from_secs(20);
    while notes.0.lock().is_empty() {
        assert!(Instant::now() < deadline, "nobody was told");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(*notes.0.lock(), ["1:soon"]);
    assert_eq!(store.database_stats(1).expect("undamaged").keys, 1);
}
