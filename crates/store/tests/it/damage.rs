//! Stores with a damaged page: nobody dies of it, nobody reads a wrong value, what is whole is served, and a repair makes a
//! store of it.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::random_bytes;
use fastrand::Rng;
use snugly_store::{
    Choice, Condition, Config, Durability, End, Expiry, Session, Storage, Store, StoreError, check, repair,
    system_time,
};

const PAGE: usize = 4096;
/// Number of damages tried; SNUGLY_DAMAGES asks for more.
const DAMAGES: u64 = 150;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    String(Vec<u8>),
    List(Vec<Vec<u8>>),
}

type Contents = BTreeMap<Vec<u8>, Value>;

fn open(path: &Path, durability: Durability) -> Result<Arc<Store>, snugly_store::OpenError> {
    let codec = if cfg!(feature = "lz4") { "lz4" } else { "none" };
    let mut config = Config::new(Choice::new(codec, None, 64).expect("the codec is in this build"));
    config.shards = Some(16);
    let commit_interval = Duration::from_millis(5);
    Store::open(config, Storage { durability, commit_interval, ..Storage::new(path) })
}

/// Strings that are in rows and in chunks, lists of several nodes, keys that expire, and pages that are free.
fn fill(path: &Path) -> Contents {
    let store = open(path, Durability::None).expect("the store opens");
    let mut session = store.session();
    let mut contents = Contents::new();
    for number in 0..600 {
        let key = format!("key:{number}").into_bytes();
        let value = random_bytes([5, 300, 1_500, 4_000, 9_000][number as usize % 5], number);
        let expiry = if number % 7 == 0 { Expiry::At(system_time() + 10_000_000) } else { Expiry::Never };
        session.set(0, &key, &value, expiry, Condition::Always).expect("there is room");
        contents.insert(key, Value::String(value));
    }
    for number in 0..10 {
        let key = format!("list:{number}").into_bytes();
        let elements: Vec<Vec<u8>> =
            (0..400).map(|element| random_bytes(60, number * 1_000 + element)).collect();
        let shown = elements.iter().map(Vec::as_slice);
        session.list_push(0, &key, End::Right, shown, false).expect("there is room");
        contents.insert(key, Value::List(elements));
    }
    std::thread::sleep(Duration::from_millis(50));
    for number in (0..600).step_by(4) {
        let key = format!("key:{number}").into_bytes();
        session.delete(0, &key).expect("it can be deleted");
        contents.remove(&key);
    }
    drop(session);
    store.close().expect("everything can be written");
    contents
}

fn read(session: &mut Session, key: &[u8]) -> Result<Option<Value>, StoreError> {
    if key.starts_with(b"list") {
        let Some(elements) = session.list_range(0, key, 0, -1)? else { return Ok(None) };
        let mut all = Vec::new();
        session.show(&elements, |element| all.push(element.bytes().into_owned()))?;
        return Ok(Some(Value::List(all)));
    }
    let Some(value) = session.get(0, key)? else { return Ok(None) };
    let mut bytes = Vec::new();
    session.read(&value, &mut bytes)?;
    Ok(Some(Value::String(bytes)))
}

/// Counts the keys that read as they were; none may be different.
fn whole(store: &Arc<Store>, contents: &Contents) -> usize {
    let mut session = store.session();
    let mut whole = 0;
    for (key, value) in contents {
        if let Ok(Some(found)) = read(&mut session, key) {
            assert!(&found == value, "a wrong value of {}", key.escape_ascii());
            whole += 1;
        }
    }
    whole
}

/// Pages up to the last one that was ever used, as the meta pages say; the file reaches further.
fn used_pages(file: &[u8]) -> usize {
    let last = |page: usize| {
        let field = &file[page * PAGE + 136..][..8];
        u64::from_le_bytes(field.try_into().expect("eight bytes")) as usize
    };
    last(0).max(last(1)) + 1
}

/// Damages one page of a file, and says how.
fn damage(file: &mut [u8], random: &mut Rng) -> String {
    let pages = used_pages(file);
    let page = random.usize(..pages);
    let at = |range: Range<usize>| page * PAGE + range.start..page * PAGE + range.end;
    let other = random.usize(..pages) * PAGE;
    let mut flip =
        |range: Range<usize>, random: &mut Rng| file[random.usize(at(range))] ^= 1 << random.u8(..8);
    let kind = match random.u8(..8) {
        0 => {
            random.fill(&mut file[at(0..PAGE)]);
            "garbage"
        }
        1 => {
            file[at(0..PAGE)].fill(0);
            "zeros"
        }
        2 => {
            file.copy_within(other..other + PAGE, page * PAGE);
            "another page"
        }
        3 => {
            random.fill(&mut file[at(16..PAGE)]);
            "garbage behind the header"
        }
        4 => {
            random.fill(&mut file[at(0..16)]);
            "garbage in the header"
        }
        5 => {
            flip(0..160, random);
            "a bit near the header"
        }
        6 => {
            flip(16..PAGE, random);
            "a bit anywhere"
        }
        _ => {
            random.fill(&mut file[at(PAGE / 2..PAGE)]);
            "garbage in the second half"
        }
    };
    format!("{kind} in page {page}")
}

#[test]
fn no_damage_of_a_page_ends_anybody_or_gives_a_wrong_value() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let contents = fill(&path);
    let data = path.join("data.mdb");
    let sound = fs::read(&data).expect("the file");
    let damages =
        std::env::var("SNUGLY_DAMAGES").ok().and_then(|count| count.parse().ok()).unwrap_or(DAMAGES);
    let (mut noticed, mut opened, mut repaired, mut accepted) = (0, 0, 0, 0);
    for seed in 0..damages {
        let mut file = sound.clone();
        let what = damage(&mut file, &mut Rng::with_seed(seed));
        fs::write(&data, &file).expect("the file can be written");
        let faults = check(&path, |_| {}).map_or(1, |report| report.fault_count);
        noticed += u64::from(faults > 0);
        let target = folder.path().join("repaired");
        if let Ok(report) = repair(&path, &target, |_| {}) {
            repaired += 1;
            let left = check(&target, |_| {}).expect("it can be checked");
            assert_eq!(left.faults, Vec::<String>::new(), "{what}");
            let store = open(&target, Durability::None).expect("it is whole");
            let kept = whole(&store, &contents);
            // The commit before the last one may have more keys.
            let is_all = kept == contents.len() && report.keys >= contents.len() as u64;
            assert!(is_all || report.loss_count > 0, "{what}: nothing is said of what is lost");
            store.close().expect("it can be written");
        }
        fs::remove_dir_all(&target).or_else(|_| fs::create_dir_all(&target)).expect("it can be removed");
        if let Ok(store) = open(&path, Durability::None) {
            opened += 1;
            whole(&store, &contents);
            let answered = write_everywhere(&store, &contents);
            accepted += answered.len();
            std::thread::sleep(Duration::from_millis(20));
            assert_kept(&store, &answered, &what);
            store.close().unwrap_or_else(|error| panic!("{what}: {error}"));
            drop(store);
            let store = open(&path, Durability::None).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_kept(&store, &answered, &what);
            store.close().unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        fs::write(&data, &sound).expect("the file can be written");
    }
    assert!(noticed > damages / 2, "{noticed} of {damages} are noticed");
    assert!(opened > damages / 3, "{opened} of {damages} are served");
    // A page is one of hundreds, and a few are on the way to all others.
    assert!(accepted as u64 > 250 * opened, "{accepted} writes are accepted by {opened} stores");
    assert!(repaired > damages / 2, "{repaired} of {damages} can be repaired");
}

/// Writes, replaces, copies and deletes keys on all pages; returns what was answered. What is read afterwards is
/// that, or an error.
fn write_everywhere(store: &Arc<Store>, contents: &Contents) -> BTreeMap<Vec<u8>, Option<Value>> {
    let mut session = store.session();
    let mut answered = BTreeMap::new();
    let mut set = |session: &mut Session, key: &[u8], value: &[u8]| {
        if session.set(0, key, value, Expiry::Never, Condition::Always).is_ok() {
            answered.insert(key.to_vec(), Some(Value::String(value.to_vec())));
        }
    };
    for key in contents.keys().filter(|key| key.starts_with(b"key:1")) {
        set(&mut session, key, b"replaced");
    }
    for number in 0..100 {
        set(&mut session, format!("new:{number}").as_bytes(), b"value");
    }
    for (number, key) in contents.keys().filter(|key| key.starts_with(b"key:2")).enumerate() {
        let source = format!("source:{number}");
        let (from, to) = ((0, source.as_bytes()), (0, &key[..]));
        let is_there = session.set(0, from.1, b"copied", Expiry::Never, Condition::Always).is_ok();
        let copy = if number % 2 == 0 { Session::copy } else { Session::rename };
        if is_there && copy(&mut session, from, to).is_ok() {
            answered.insert(key.clone(), Some(Value::String(b"copied".to_vec())));
        }
    }
    for key in contents.keys().filter(|key| !key.starts_with(b"key:1")).step_by(2) {
        if session.delete(0, key).is_ok() {
            answered.insert(key.clone(), None);
        }
    }
    answered
}

fn assert_kept(store: &Arc<Store>, answered: &BTreeMap<Vec<u8>, Option<Value>>, what: &str) {
    let mut session = store.session();
    for (key, value) in answered {
        if let Ok(found) = read(&mut session, key) {
            assert!(&found == value, "{what}: {} is not what was answered", key.escape_ascii());
        }
    }
}

/// Bytes between the start of a row's key and the key in the row: the row's key, its checksum, kind, flags, and a length.
const IN_FRONT_OF_KEY: usize = 13 + 8 + 2 + 4;

#[test]
fn a_row_that_seems_to_be_of_no_database_is_told_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let store = open(&path, Durability::None).expect("the store opens");
    for number in 10..90 {
        let key = format!("key:{number}");
        let set = store.session().set(0, key.as_bytes(), b"value", Expiry::Never, Condition::Always);
        set.expect("there is room");
    }
    store.close().expect("everything can be written");
    drop(store);
    let data = path.join("data.mdb");
    let mut file = fs::read(&data).expect("the file");
    // Rows by the hash of their keys, which is their order; pages that are free may have copies of them.
    let mut rows: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    for at in IN_FRONT_OF_KEY..file.len() - 6 {
        if file[at - 4..].starts_with(b"\x06\0\0\0key:") {
            let row = at - IN_FRONT_OF_KEY;
            rows.entry(file[row + 4..row + 12].to_vec()).or_default().push(row);
        }
    }
    assert_eq!(rows.len(), 80);
    // The last one stays in its place, whatever its database is.
    let (_, last) = rows.pop_last().expect("there are some");
    last.into_iter().for_each(|at| file[at] ^= 0x10);
    fs::write(&data, &file).expect("the file can be written");
    let report = repair(&path, &folder.path().join("repaired"), |_| {}).expect("it can be read");
    assert_eq!((report.keys, report.loss_count), (79, 1), "{report:?}");
}

#[test]
fn a_store_without_one_of_its_tables_is_refused_and_its_loss_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    fill(&path);
    let data = path.join("data.mdb");
    let sound = fs::read(&data).expect("the file");
    for name in [&b"entries"[..], b"chunks", b"expiries"] {
        let mut file = sound.clone();
        let places: Vec<usize> =
            (0..file.len() - name.len()).filter(|&at| file[at..].starts_with(name)).collect();
        places.into_iter().for_each(|at| file[at + name.len() - 1] ^= 1);
        fs::write(&data, &file).expect("the file can be written");
        let name = name.escape_ascii();
        assert!(open(&path, Durability::None).is_err(), "{name}");
        assert!(fs::read(&data).expect("the file") == file, "{name}: it was changed");
        assert!(check(&path, |_| {}).expect("it can be read").fault_count > 0, "{name}");
        let target = folder.path().join(format!("repaired-{name}"));
        assert!(repair(&path, &target, |_| {}).expect("it can be read").loss_count > 0, "{name}");
    }
}
