//! Lists of events that share a vocabulary, and a dictionary that was learned for their nodes.

use std::sync::OnceLock;

use snugly_store::{Choice, Config, Element, End, Session, Store};

use super::alike::{active, maintain};
use super::*;

/// The name of the class of the nodes of lists.
pub const LISTS: &[u8] = b"*lists*";

/// The words of all events.
fn words() -> &'static [String] {
    static WORDS: OnceLock<Vec<String>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let mut random = fastrand::Rng::with_seed(1);
        (0..1_500).map(|_| (0..9).map(|_| random.lowercase()).collect()).collect()
    })
}

/// Some hundred bytes of which any node has seen few before.
pub fn event(number: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(number as u64);
    let words: Vec<&str> = (0..30).map(|_| &*words()[random.usize(..words().len())]).collect();
    format!("{{\"event\":{number},\"words\":\"{}\"}}", words.join(" ")).into_bytes()
}

/// Lists compressed with zstd.
pub fn config_with_zstd() -> Config {
    let mut config = config();
    config.settings.lists.compress_codec = Some(Choice::new("zstd", None, 0).expect("it is built in"));
    config
}

pub fn push(
    session: &mut Session,
    database: usize,
    key: &[u8],
    end: End,
    events: impl Iterator<Item = usize>,
) {
    for number in events {
        let event = event(number);
        let pushed = session.list_push(database, key, end, std::iter::once(&event[..]), false);
        pushed.expect("there is room");
    }
}

pub fn all(session: &mut Session, database: usize, key: &[u8]) -> Vec<Vec<u8>> {
    let Some(elements) = session.list_range(database, key, 0, -1).expect("it can be read") else {
        return Vec::new();
    };
    let mut shown = Vec::new();
    let show = |element: Element<'_>| shown.push(element.bytes().into_owned());
    session.show(&elements, show).expect("its nodes are whole");
    shown
}

/// Counts the nodes that need a dictionary by looking at each key of each database.
pub fn recount(store: &Store, session: &mut Session) -> u64 {
    let mut found = 0;
    for database in 0..store.databases() {
        let (mut cursor, mut keys) = (0, Vec::new());
        loop {
            let scanned = session.scan(database, cursor, 100, |key| keys.push(key.to_vec()));
            cursor = scanned.expect("it can be read");
            if cursor == 0 {
                break;
            }
        }
        keys.sort();
        keys.dedup();
        for key in keys {
            let value = session.peek(database, &key).expect("it can be read");
            found += value.and_then(|value| value.list()).map_or(0, |list| list.dictionary_nodes as u64);
        }
    }
    found
}

/// Returns the number of nodes that need a dictionary by the store's own account.
pub fn counted(store: &Store) -> u64 {
    store.dictionaries().iter().map(|dictionary| dictionary.records).sum()
}

/// A dictionary that a store has learned for such lists.
pub fn learned() -> &'static [u8] {
    static LEARNED: OnceLock<Vec<u8>> = OnceLock::new();
    LEARNED.get_or_init(|| {
        let store = Store::new(config_with_zstd());
        let mut maintenance = store.maintenance(|| std::time::Duration::ZERO);
        push(&mut session_at(&store, NOW), 0, b"list", End::Right, 0..20_000);
        maintain(&mut maintenance, NOW);
        let [dictionary] = &active(&store)[..] else { panic!("{:?}", store.classes()) };
        store.dictionary_content(dictionary.number).expect("it is there")
    })
}
