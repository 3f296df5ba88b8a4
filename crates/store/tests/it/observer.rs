//! Observers of a store are told of every change, and of nothing else.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{NOW, config, put, session_at, store_with};
use parking_lot::Mutex;
use snugly_store::{Condition, ExpireConditions, Expiry, Observer, Storage, Store, system_time};

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn changed(&self, database: usize, key: &[u8]) {
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
