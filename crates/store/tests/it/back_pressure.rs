//! A disk that is slower than the writers: they wait, so that no more can be lost than was promised.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use snugly_store::{Choice, Condition, Config, Durability, Expiry, Session, Storage, Store};

const INTERVAL: Duration = Duration::from_millis(20);
/// A write that began in time is let through for a tenth more.
const MOST_AGE: Duration = Duration::from_millis(22);

fn set(session: &mut Session, key: &str) {
    session.set(0, key.as_bytes(), &[b'x'; 4_000], Expiry::Never, Condition::Always).expect("there is room");
}

fn oldest(store: &Store) -> Duration {
    store.disk_stats().expect("there is a disk").pending_age
}

/// Returns the start and end of each write that was done before the commits went on.
fn write_until(store: &Arc<Store>, name: usize, commits_go_on: &AtomicBool) -> Vec<(Instant, Instant)> {
    let mut session = store.session();
    let mut writes = Vec::new();
    loop {
        let begun = Instant::now();
        set(&mut session, &format!("key:{name}:{}", writes.len()));
        let done = Instant::now();
        if commits_go_on.load(Ordering::SeqCst) {
            return writes;
        }
        writes.push((begun, done));
    }
}

fn open(folder: &Path) -> Arc<Store> {
    let storage =
        Storage { durability: Durability::Batched, commit_interval: INTERVAL, ..Storage::new(folder) };
    let config = Config::new(Choice::new("none", None, 64).expect("it is in each build"));
    Store::open(config, storage).expect("the store opens")
}

#[test]
fn who_tells_nobody_of_writes_waits_for_no_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let written = AtomicUsize::new(0);
    thread::scope(|scope| {
        store.session().exclusively([&b"held"[..]].into_iter(), |session| {
            set(session, "held");
            while oldest(&store) < 2 * INTERVAL {
                thread::sleep(INTERVAL);
            }
            // Some of these keys may be in the shard that is held.
            for number in 0..8 {
                let (store, written) = (&store, &written);
                scope.spawn(move || {
                    let mut session = store.session();
                    session.answer_nobody();
                    set(&mut session, &format!("key:{number}"));
                    written.fetch_add(1, Ordering::SeqCst);
                });
            }
            while written.load(Ordering::SeqCst) == 0 {
                thread::sleep(INTERVAL);
            }
        });
    });
}

#[test]
fn what_a_kill_takes_was_written_within_one_interval() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let commits_go_on = AtomicBool::new(false);
    let writes: Vec<_> = thread::scope(|scope| {
        let mut session = store.session();
        // No commit begins while changes are made that belong together.
        let writers = session.exclusively([&b"held"[..]].into_iter(), |_| {
            let write = |name| {
                let (store, commits_go_on) = (&store, &commits_go_on);
                scope.spawn(move || write_until(store, name, commits_go_on))
            };
            let writers = [0, 1, 2].map(write);
            while oldest(&store) < 10 * INTERVAL {
                thread::sleep(INTERVAL);
            }
            commits_go_on.store(true, Ordering::SeqCst);
            writers
        });
        writers.into_iter().flat_map(|writer| writer.join().expect("it does not panic")).collect()
    });
    let oldest = writes.iter().map(|(_, done)| *done).min().expect("somebody wrote");
    let late = writes.iter().filter(|(begun, _)| begun.saturating_duration_since(oldest) > MOST_AGE).count();
    assert_eq!(late, 0, "of {} writes", writes.len());
}
