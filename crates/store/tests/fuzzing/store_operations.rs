//! Any operations on a store have the outcome that a map would have, whatever is evicted or moved meanwhile.

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Unstructured};
use snugly_store::{
    Choice, Condition, Config, EvictionPolicy, ExpireConditions, Expiry, Metadata, Session, Store,
    StoreError, Value,
};

#[derive(Arbitrary, Debug)]
struct Input {
    codec: u8,
    /// Evicts; a key that is missing is then no error.
    limited: bool,
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Set { key: u8, len: u16, ttl: Option<u16> },
    Fill { from: u8, count: u8, len: u16 },
    Append { key: u8, len: u8 },
    Alter { key: u8, client_flags: u32, has_version: bool },
    Hold { key: u8 },
    LetGo,
    Remove { key: u8 },
    RemoveEvery { step: u8 },
    Expire { key: u8, ttl: Option<u16> },
    Pass { milliseconds: u16 },
    ExpireDue,
    Defragment { limit: u8 },
    Scan { count: u8 },
    Limit { kib: u16 },
    Flush,
}

#[derive(Default)]
struct Model {
    now: u64,
    /// Values, when they expire, and what is kept beside them.
    keys: BTreeMap<u16, (Vec<u8>, Option<u64>, Metadata)>,
    /// Handles, and what they must keep showing.
    held: Vec<(Value, Vec<u8>)>,
    written: u8,
}

impl Model {
    /// A value that tells its key and when it was written.
    fn value(&mut self, key: u16, len: usize) -> Vec<u8> {
        self.written = self.written.wrapping_add(1);
        let mut random = fastrand::Rng::with_seed(u64::from(key) << 8 | u64::from(self.written));
        let noisy = len / 2;
        let mut value = vec![self.written; len];
        random.fill(&mut value[..noisy]);
        value
    }

    fn set(&mut self, session: &mut Session, key: u16, len: usize, at: Option<u64>) {
        let value = self.value(key, len);
        let expiry = at.map_or(Expiry::Never, Expiry::At);
        match session.set(0, &key.to_be_bytes(), &value, expiry, Condition::Always) {
            Ok(_) => drop(self.keys.insert(key, (value, at, Metadata::default()))),
            Err(StoreError::OutOfMemory { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn apply(&mut self, session: &mut Session, operation: Operation) {
        match operation {
            Operation::Set { key, len, ttl } => {
                let at = ttl.map(|ttl| self.now + u64::from(ttl));
                self.set(session, key.into(), len.into(), at);
            }
            Operation::Fill { from, count, len } => {
                let first = u16::from(from) << 4;
                (first..first + u16::from(count)).for_each(|key| self.set(session, key, len.into(), None));
            }
            Operation::Append { key, len } => {
                let more = self.value(key.into(), len.into());
                let append = |current: Option<&[u8]>, edited: &mut Vec<u8>| {
                    edited.extend_from_slice(current.unwrap_or_default());
                    edited.extend_from_slice(&more);
                    Ok::<_, StoreError>(edited.clone())
                };
                match session.update(0, &u16::from(key).to_be_bytes(), append) {
                    Ok(value) => {
                        let (known, _, metadata) = self.keys.entry(key.into()).or_default();
                        *known = value;
                        *metadata = Metadata { client_flags: metadata.client_flags, ..Metadata::default() };
                    }
                    Err(StoreError::OutOfMemory { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            Operation::Alter { key, client_flags, has_version } => {
                let version = if has_version { session.new_version() } else { 0 };
                let metadata = Metadata { client_flags, version, ..Metadata::default() };
                let altered =
                    session.alter(0, &u16::from(key).to_be_bytes(), |_, kept| kept.metadata = metadata);
                if altered.expect("undamaged").is_some()
                    && let Some(known) = self.keys.get_mut(&key.into())
                {
                    known.2 = metadata;
                }
            }
            Operation::Hold { key } => {
                if let Some(value) = session.get(0, &u16::from(key).to_be_bytes()).expect("undamaged") {
                    let bytes = read(session, &value);
                    self.held.push((value, bytes));
                }
            }
            Operation::LetGo => drop(self.held.pop()),
            Operation::Remove { key } => {
                session.remove(0, &u16::from(key).to_be_bytes()).expect("undamaged");
                self.keys.remove(&key.into());
            }
            Operation::RemoveEvery { step } => {
                for key in (0..4500u16).step_by(usize::from(step) + 1) {
                    session.remove(0, &key.to_be_bytes()).expect("undamaged");
                    self.keys.remove(&key);
                }
            }
            Operation::Expire { key, ttl } => {
                let at = ttl.map(|ttl| self.now + u64::from(ttl));
                let expiry = at.map_or(Expiry::Never, Expiry::At);
                session
                    .expire(0, &u16::from(key).to_be_bytes(), expiry, ExpireConditions::default())
                    .expect("undamaged");
                if let Some((_, expiry, _)) = self.keys.get_mut(&key.into()) {
                    *expiry = at;
                }
            }
            Operation::Pass { milliseconds } => {
                self.now += u64::from(milliseconds);
                session.set_now(Some(self.now));
            }
            Operation::ExpireDue => {
                session.store().expire_due(self.now, usize::MAX);
            }
            Operation::Defragment { limit } => {
                session.store().defragment(limit.into());
            }
            Operation::Scan { count } => {
                let mut cursor = 0;
                loop {
                    cursor = session
                        .scan(0, cursor, usize::from(count) + 1, |key| assert_eq!(key.len(), 2))
                        .expect("undamaged");
                    if cursor == 0 {
                        break;
                    }
                }
            }
            Operation::Limit { kib } => {
                session.store().change_settings(|settings| {
                    if settings.max_memory > 0 {
                        settings.max_memory = (64 + u64::from(kib)) << 10;
                    }
                });
            }
            Operation::Flush => {
                drop(session.store().flush(None));
                self.keys.clear();
            }
        }
        let now = self.now;
        self.keys.retain(|_, (_, expiry, _)| expiry.is_none_or(|at| at > now));
    }

    /// Compares what the store has with what it must have; with a limit it may have less.
    fn check(&mut self, session: &mut Session, limited: bool) {
        self.keys.retain(|key, (expected, expiry, metadata)| {
            let Some(value) = session.peek(0, &key.to_be_bytes()).expect("undamaged") else {
                assert!(limited, "key {key} is gone");
                return false;
            };
            assert_eq!(&read(session, &value), expected);
            assert_eq!(value.expiry(), *expiry);
            assert_eq!(value.metadata(), *metadata);
            true
        });
        for (value, expected) in &self.held {
            assert_eq!(&read(session, value), expected);
        }
    }
}

fn read(session: &mut Session, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    session.read(value, &mut bytes).expect("what was written can be read");
    bytes
}

pub fn run(bytes: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
    let codec = ["none", "lz4", "zstd"][usize::from(input.codec) % 3];
    let mut config = Config::new(Choice::new(codec, None, 64).expect("a codec of this build"));
    config.shards = Some(4);
    if input.limited {
        config.settings.max_memory = 1 << 20;
        config.settings.eviction = EvictionPolicy::AllKeysLru;
    }
    let store = Store::new(config);
    let empty = store.used_memory();
    let mut session = store.session();
    let mut model = Model { now: 1_700_000_000_000, ..Model::default() };
    session.set_now(Some(model.now));
    for operation in input.operations {
        model.apply(&mut session, operation);
    }
    model.check(&mut session, input.limited);
    store.defragment(usize::MAX);
    model.check(&mut session, input.limited);
    drop(store.flush(None));
    assert_eq!(store.used_memory(), empty);
}
