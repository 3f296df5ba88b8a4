//! Any sequence of operations has the outcome that a plain map would have.

use std::collections::BTreeMap;

use crate::support::{NOW, read, session_at, store_with};
use proptest::collection::vec;
use proptest::prelude::*;
use snugly_store::{Condition, ExpireConditions, Expiry, ManyCondition, Session, StoreError};

#[derive(Clone, Debug)]
enum Operation {
    Set { key: u8, value: Vec<u8>, ttl: Option<u16>, keep: bool, condition: u8 },
    SetMany { keys: Vec<u8>, value: Vec<u8>, if_all_absent: bool },
    Append { key: u8, value: Vec<u8> },
    Remove { key: u8 },
    Copy { from: u8, to: u8 },
    Rename { from: u8, to: u8 },
    Expire { key: u8, ttl: i16, conditions: u8 },
    Persist { key: u8 },
    Pass { milliseconds: u16 },
    ExpireDue,
    Defragment,
    Flush,
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..40),
        (any::<u8>(), 0..5000usize).prop_map(|(byte, len)| vec![byte; len]),
        vec(any::<u8>(), 3900..4300),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..12u8;
    prop_oneof![
        4 => (key.clone(), value(), any::<Option<u16>>(), any::<bool>(), 0..4u8)
            .prop_map(|(key, value, ttl, keep, condition)| Operation::Set { key, value, ttl, keep, condition }),
        1 => (vec(key.clone(), 1..4), value(), any::<bool>())
            .prop_map(|(keys, value, if_all_absent)| Operation::SetMany { keys, value, if_all_absent }),
        2 => (key.clone(), value()).prop_map(|(key, value)| Operation::Append { key, value }),
        2 => key.clone().prop_map(|key| Operation::Remove { key }),
        1 => (key.clone(), key.clone()).prop_map(|(from, to)| Operation::Copy { from, to }),
        1 => (key.clone(), key.clone()).prop_map(|(from, to)| Operation::Rename { from, to }),
        2 => (key.clone(), any::<i16>(), 0..16u8)
            .prop_map(|(key, ttl, conditions)| Operation::Expire { key, ttl, conditions }),
        1 => key.prop_map(|key| Operation::Persist { key }),
        1 => any::<u16>().prop_map(|milliseconds| Operation::Pass { milliseconds }),
        1 => Just(Operation::ExpireDue),
        1 => Just(Operation::Defragment),
        1 => Just(Operation::Flush),
    ]
}

#[derive(Default)]
struct Model {
    now: u64,
    keys: BTreeMap<u8, (Vec<u8>, Option<u64>)>,
}

impl Model {
    fn drop_expired(&mut self) {
        let now = self.now;
        self.keys.retain(|_, (_, expiry)| expiry.is_none_or(|at| at > now));
    }

    fn put(&mut self, key: u8, value: Vec<u8>, expiry: Option<u64>) {
        self.keys.insert(key, (value, expiry));
        self.drop_expired();
    }

    fn apply(&mut self, operation: &Operation, session: &mut Session) -> Result<(), TestCaseError> {
        self.drop_expired();
        match operation.clone() {
            Operation::Set { key, value, ttl, keep, condition } => {
                let before = self.keys.get(&key).cloned();
                let expected = before.clone().map(|(value, _)| value);
                let (condition, allowed) = match condition {
                    0 => (Condition::Always, true),
                    1 => (Condition::IfAbsent, before.is_none()),
                    2 => (Condition::IfPresent, before.is_some()),
                    _ => (Condition::IfEqual(expected.as_deref().unwrap_or(b"x")), before.is_some()),
                };
                let (expiry, at) = match ttl {
                    _ if keep => (Expiry::Keep, before.and_then(|(_, at)| at)),
                    Some(ttl) => (Expiry::At(self.now + u64::from(ttl)), Some(self.now + u64::from(ttl))),
                    None => (Expiry::Never, None),
                };
                let written = session.set(0, &[key], &value, expiry, condition).expect("there is no limit");
                prop_assert_eq!(written, allowed);
                if allowed {
                    self.put(key, value, at);
                }
            }
            Operation::SetMany { keys, value, if_all_absent } => {
                let allowed = !if_all_absent || keys.iter().all(|key| !self.keys.contains_key(key));
                let pairs = keys.iter().map(|key| (std::slice::from_ref(key), &value[..]));
                let condition =
                    if if_all_absent { ManyCondition::IfAllAbsent } else { ManyCondition::Always };
                let written =
                    session.set_many(0, pairs, Expiry::Never, condition).expect("there is no limit");
                prop_assert_eq!(written, allowed);
                if allowed {
                    keys.iter().for_each(|key| self.put(*key, value.clone(), None));
                }
            }
            Operation::Append { key, value } => {
                let append = |current: Option<&[u8]>, edited: &mut Vec<u8>| {
                    edited.extend_from_slice(current.unwrap_or_default());
                    edited.extend_from_slice(&value);
                    Ok::<_, StoreError>(())
                };
                session.update(0, &[key], append).expect("there is no limit");
                self.keys.entry(key).or_default().0.extend_from_slice(&value);
            }
            Operation::Remove { key } => {
                prop_assert_eq!(
                    session.remove(0, &[key]).expect("undamaged").is_some(),
                    self.keys.remove(&key).is_some()
                );
            }
            Operation::Copy { from, to } => {
                let copied = session.copy((0, &[from]), (0, &[to])).expect("there is no limit");
                prop_assert_eq!(copied, self.keys.contains_key(&from));
                if let Some(copy) = self.keys.get(&from).cloned() {
                    self.keys.insert(to, copy);
                }
            }
            Operation::Rename { from, to } => {
                let renamed = session.rename((0, &[from]), (0, &[to])).expect("there is no limit");
                prop_assert_eq!(renamed, self.keys.contains_key(&from));
                if let Some(value) = self.keys.remove(&from) {
                    self.keys.insert(to, value);
                }
            }
            Operation::Expire { key, ttl, conditions } => self.expire(key, ttl, conditions, session),
            Operation::Persist { key } => {
                session.expire(0, &[key], Expiry::Never, ExpireConditions::default()).expect("undamaged");
                if let Some((_, expiry)) = self.keys.get_mut(&key) {
                    *expiry = None;
                }
            }
            Operation::Pass { milliseconds } => {
                self.now += u64::from(milliseconds);
                session.set_now(Some(self.now));
            }
            Operation::ExpireDue => {
                session.store().expire_due(self.now, usize::MAX);
                self.drop_expired();
                prop_assert_eq!(session.store().database_stats(0).expect("readable").keys, self.keys.len());
            }
            Operation::Defragment => {
                session.store().defragment(100);
            }
            Operation::Flush => {
                drop(session.store().flush(Some(0)));
                self.keys.clear();
            }
        }
        self.drop_expired();
        Ok(())
    }

    fn expire(&mut self, key: u8, ttl: i16, conditions: u8, session: &mut Session) {
        let at = self.now.saturating_add_signed(i64::from(ttl));
        let has = |bit: u8| conditions & bit != 0;
        let conditions =
            ExpireConditions { if_none: has(1), if_some: has(2), if_later: has(4), if_earlier: has(8) };
        session.expire(0, &[key], Expiry::At(at), conditions).expect("undamaged");
        if let Some((_, expiry)) = self.keys.get_mut(&key) {
            let old = expiry.unwrap_or(u64::MAX);
            let refused = conditions.if_none && expiry.is_some()
                || conditions.if_some && expiry.is_none()
                || conditions.if_later && at <= old
                || conditions.if_earlier && at >= old;
            if !refused {
                *expiry = Some(at);
            }
        }
    }
}

#[test]
fn a_key_or_value_that_is_too_long_is_refused_before_anything_is_stored() {
    let store = store_with(|config| {
        config.settings.max_key_len = 10;
        config.settings.max_value_len = 20;
    });
    let mut session = session_at(&store, NOW);
    let mut set =
        |key: &[u8], value: &[u8]| session.set(0, key, value, Expiry::Never, Condition::Always).err();
    assert!(set(&[1; 10], &[1; 20]).is_none());
    assert!(matches!(set(&[2; 11], b""), Some(StoreError::KeyTooLong { len: 11, limit: 10 })));
    assert!(matches!(set(&[3; 3], &[1; 21]), Some(StoreError::ValueTooLong { len: 21, limit: 20 })));
    assert_eq!(store.database_stats(0).expect("readable").keys, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn the_store_does_what_a_map_does(operations in vec(operation(), 1..60)) {
        let store = store_with(|_| {});
        let empty = store.used_memory();
        let mut session = session_at(&store, NOW);
        let mut model = Model { now: NOW, ..Model::default() };
        for operation in &operations {
            model.apply(operation, &mut session)?;
            for key in 0..12u8 {
                let expected = model.keys.get(&key);
                prop_assert_eq!(read(&mut session, &[key]), expected.map(|(value, _)| value.clone()));
                let expiry = session.peek(0, &[key]).expect("undamaged").and_then(|value| value.expiry());
                prop_assert_eq!(expiry, expected.and_then(|(_, expiry)| *expiry));
            }
        }
        drop(store.flush(None));
        prop_assert_eq!(store.used_memory(), empty);
    }
}
