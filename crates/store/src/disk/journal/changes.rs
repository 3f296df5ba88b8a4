//! Encoding of a journal record's changes, byte by byte (FORMAT.md), and decoding that trusts nothing.

use std::sync::Arc;

use super::super::change::{Change, Item};
use super::super::row::{self, Damaged};
use crate::clock::system_time;
use crate::entry::{Access, Entry, MAX_KEY_LEN, Metadata, Properties, Stage};
use crate::values::Kind;

// Numbers of changes. Those that put a value without metadata are in `Put::numbers`.
const DELETE: u8 = 2;
const GENERATIONS: u8 = 3;
const PUT_DICTIONARY: u8 = 4;
const DELETE_DICTIONARY: u8 = 5;
const ALL_GONE: u8 = 6;
const ACTIVE_DICTIONARIES: u8 = 7;
const LOAD: u8 = 12;
const PUT_WITH_METADATA: u8 = 13;

// Flags of a value with metadata.
const EXPIRES: u8 = 1;
const COLD: u8 = 2;
const SETTLED: u8 = 4;

/// A change that puts a value.
#[derive(Clone, Copy)]
struct Put {
    kind: Kind,
    stage: Stage,
    expires: bool,
    has_metadata: bool,
}

impl Put {
    /// Returns the numbers of such changes: of a value that stays, and of one that expires.
    const fn numbers(kind: Kind, stage: Stage) -> [u8; 2] {
        match (kind, stage) {
            (Kind::String, Stage::Written) => [0, 1],
            (Kind::String, Stage::Settled) => [14, 15],
            (Kind::String, Stage::Cold) => [8, 9],
            (Kind::List, _) => [10, 11],
        }
    }

    fn encode(self, out: &mut Vec<u8>) {
        if !self.has_metadata {
            return out.push(Put::numbers(self.kind, self.stage)[usize::from(self.expires)]);
        }
        let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
        let flags = flag(EXPIRES, self.expires)
            | flag(COLD, self.stage == Stage::Cold)
            | flag(SETTLED, self.stage == Stage::Settled);
        out.extend_from_slice(&[PUT_WITH_METADATA, self.kind.number(), flags]);
    }

    fn parse_with_metadata([kind, flags]: [u8; 2]) -> Result<Put, Damaged> {
        let stage = match flags & !EXPIRES {
            0 => Stage::Written,
            SETTLED => Stage::Settled,
            COLD => Stage::Cold,
            _ => return Err(Damaged),
        };
        Ok(Put {
            kind: Kind::of_number(kind).map_err(|_| Damaged)?,
            stage,
            expires: flags & EXPIRES != 0,
            has_metadata: true,
        })
    }

    fn of_number(number: u8) -> Option<Put> {
        let kinds = Kind::ALL.into_iter().flat_map(|kind| Stage::ALL.map(|stage| (kind, stage)));
        kinds.into_iter().find_map(|(kind, stage)| {
            let place = Put::numbers(kind, stage).iter().position(|other| *other == number)?;
            Some(Put { kind, stage, expires: place == 1, has_metadata: false })
        })
    }
}

/// Reason why the changes of a record cannot be decoded.
#[derive(Debug)]
pub(in crate::disk) enum Undecodable {
    Damaged,
    /// Another program has written a change of this number.
    UnknownChange(u8),
}

impl From<Damaged> for Undecodable {
    fn from(_: Damaged) -> Undecodable {
        Undecodable::Damaged
    }
}

pub(super) fn encode(item: &Item, out: &mut Vec<u8>) {
    let part = |out: &mut Vec<u8>, bytes: &[u8]| {
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    };
    let numbers = |out: &mut Vec<u8>, numbers: &[u32]| {
        out.extend_from_slice(&(numbers.len() as u32).to_le_bytes());
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    };
    match item {
        Item::Change(Change { generation, entry, expiry, .. }) => {
            let (entry, metadata) = (entry.borrow(), entry.borrow().metadata());
            let put = Put {
                kind: entry.kind(),
                stage: entry.stage(),
                expires: expiry.is_some(),
                has_metadata: !metadata.is_default(),
            };
            if entry.is_tombstone() {
                out.push(DELETE)
            } else {
                put.encode(out)
            }
            out.extend_from_slice(&generation.to_le_bytes());
            part(out, entry.key());
            if !entry.is_tombstone() {
                part(out, entry.record_bytes().unwrap_or_default());
                out.extend(expiry.iter().flat_map(|at| at.to_le_bytes()));
                if put.has_metadata {
                    out.extend_from_slice(&row::encode_metadata(metadata));
                }
            }
        }
        Item::Dictionary { number, row } => {
            out.push(if row.is_some() { PUT_DICTIONARY } else { DELETE_DICTIONARY });
            out.extend_from_slice(&number.to_le_bytes());
            row.as_ref().inspect(|row| part(out, row));
        }
        Item::Generations { generations, all_gone, .. } => {
            out.push(if *all_gone { ALL_GONE } else { GENERATIONS });
            numbers(out, generations);
        }
        Item::ActiveDictionaries(active) => {
            out.push(ACTIVE_DICTIONARIES);
            numbers(out, active);
        }
        Item::Load(row) => {
            out.push(LOAD);
            part(out, row.as_deref().unwrap_or_default());
        }
    }
}

/// Decodes the changes of a record.
pub(in crate::disk) fn decode(payload: &[u8]) -> Result<Vec<Item>, Undecodable> {
    let access = Access::written(system_time());
    let mut reader = Reader(payload);
    let mut items = Vec::new();
    while !reader.0.is_empty() {
        let [change] = reader.take()?;
        if let GENERATIONS | ALL_GONE | ACTIVE_DICTIONARIES = change {
            let count = u32::from_le_bytes(reader.take()?);
            let numbers: Result<Arc<[u32]>, Damaged> =
                (0..count).map(|_| reader.take().map(u32::from_le_bytes)).collect();
            let numbers = numbers?;
            items.push(match change {
                ACTIVE_DICTIONARIES => Item::ActiveDictionaries(numbers),
                _ => {
                    Item::Generations { generations: numbers, all_gone: change == ALL_GONE, in_group: false }
                }
            });
            continue;
        }
        if let PUT_DICTIONARY | DELETE_DICTIONARY = change {
            let number = u32::from_le_bytes(reader.take()?);
            let row = if change == PUT_DICTIONARY { Some(reader.part()?.into()) } else { None };
            items.push(Item::Dictionary { number, row });
            continue;
        }
        if change == LOAD {
            let row = reader.part()?;
            items.push(Item::Load((!row.is_empty()).then(|| row.into())));
            continue;
        }
        let put = match change {
            PUT_WITH_METADATA => Some(Put::parse_with_metadata(reader.take()?)?),
            number => Put::of_number(number),
        };
        if put.is_none() && change != DELETE {
            return Err(Undecodable::UnknownChange(change));
        }
        let generation = u32::from_le_bytes(reader.take()?);
        let key = reader.part()?;
        let (entry, expiry) = match put {
            None if key.len() > MAX_KEY_LEN => return Err(Undecodable::Damaged),
            None => (Entry::tombstone(key), None),
            Some(Put { kind, stage, expires, has_metadata }) => {
                let record = reader.part()?;
                let expiry = if expires { Some(u64::from_le_bytes(reader.take()?)) } else { None };
                let metadata =
                    if has_metadata { row::parse_metadata(reader.take()?)? } else { Metadata::default() };
                kind.directory(record).map_err(Damaged::from)?;
                let properties = Properties { expiry, access, metadata };
                let entry = Entry::of_pieces(kind, key, &[record], properties, stage);
                (entry.ok_or(Damaged)?, expiry)
            }
        };
        items.push(Item::Change(Change { generation, entry, expiry, in_group: false, _holds: None }));
    }
    Ok(items)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*first)
    }

    /// Takes bytes that follow their length.
    fn part(&mut self) -> Result<&'a [u8], Damaged> {
        let len = u32::from_le_bytes(self.take()?) as usize;
        let (part, rest) = self.0.split_at_checked(len).ok_or(Damaged)?;
        self.0 = rest;
        Ok(part)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use snugly_codec::Record;

    use super::super::super::row::tests::any_metadata;
    use super::*;

    pub(in crate::disk) fn put(key: &[u8], value: &[u8], expiry: Option<u64>) -> Item {
        put_as(key, value, expiry, Metadata::default(), Stage::Written)
    }

    fn put_as(key: &[u8], value: &[u8], expiry: Option<u64>, metadata: Metadata, stage: Stage) -> Item {
        let properties = Properties { expiry, access: Access::written(0), metadata };
        let entry = Entry::at_stage(stage, key, &Record::identity(value), properties);
        Item::Change(Change { generation: 1, entry, expiry, in_group: false, _holds: None })
    }

    fn delete(key: &[u8]) -> Item {
        Item::Change(Change {
            generation: 1,
            entry: Entry::tombstone(key),
            expiry: None,
            in_group: false,
            _holds: None,
        })
    }

    pub(in crate::disk) fn encoded(items: &[Item]) -> Vec<u8> {
        let mut bytes = Vec::new();
        items.iter().for_each(|item| encode(item, &mut bytes));
        bytes
    }

    /// Key, value, expiry, metadata and stage of a put; without a value it is a deletion.
    type Given = (Vec<u8>, Option<Vec<u8>>, Option<u64>, Metadata, Stage);

    fn given() -> impl Strategy<Value = Given> {
        let bytes = |most| prop::collection::vec(any::<u8>(), 0..most);
        let stage = prop::sample::select(&Stage::ALL[..]);
        (bytes(50), prop::option::of(bytes(5_000)), any::<Option<u64>>(), any_metadata(), stage)
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            changes in prop::collection::vec(given(), 0..10),
            generations in prop::collection::vec(any::<u32>(), 1..20),
            all_gone: bool,
            active in prop::collection::vec(any::<u32>(), 0..20),
            dictionary in (any::<u32>(), prop::option::of(prop::collection::vec(any::<u8>(), 0..100))),
        ) {
            let mut items =
                vec![Item::Generations { generations: generations.into(), all_gone, in_group: false }];
            items.push(Item::ActiveDictionaries(active.into()));
            items.push(Item::Dictionary { number: dictionary.0, row: dictionary.1.map(Arc::from) });
            items.extend(changes.iter().map(|(key, value, at, metadata, stage)| match value {
                Some(value) => put_as(key, value, *at, *metadata, *stage),
                None => delete(key),
            }));
            let bytes = encoded(&items);
            let decoded = decode(&bytes).expect("it was encoded");
            prop_assert_eq!(decoded.len(), items.len());
            prop_assert_eq!(encoded(&decoded), bytes);
            for (item, given) in decoded[3..].iter().zip(&changes) {
                let Item::Change(change) = item else { panic!("{} is no change", given.0.escape_ascii()) };
                let (entry, is_put) = (change.entry.borrow(), given.1.is_some());
                prop_assert_eq!(entry.stage(), if is_put { given.4 } else { Stage::Written });
                prop_assert_eq!(entry.metadata(), if is_put { given.3 } else { Metadata::default() });
            }
        }

        #[test]
        fn any_bytes_can_be_decoded(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(items) = decode(&bytes) {
                prop_assert_eq!(encoded(&items), bytes);
            }
        }
    }
}
