//! The rows of the table of meta: a store's identity, its state, and whether it holds only a part of the file
//! that it is loaded from.

use std::collections::{BTreeMap, BTreeSet};

use xxhash_rust::xxh3::xxh3_64;

use super::row::{Damaged, Generation, NODES};

/// The version of the format that FORMAT.md specifies.
pub(crate) const FORMAT_VERSION: u32 = 5;
/// First version, which has no dictionaries, no lists and no metadata; the second one has no lists and no metadata,
/// and the third no metadata. Each version only adds
/// tables and rows to the one before, so that opening a store upgrades it.
const FIRST_VERSION: u32 = 1;
pub(crate) const IDENTITY_KEY: &[u8] = b"identity";
pub(crate) const STATE_KEY: &[u8] = b"state";
/// Key of the number of the last committed journal record: `number u64 | checksum u64`, little-endian.
pub(crate) const JOURNAL_KEY: &[u8] = b"journal";
/// Key of the load mark, if there is one.
pub(crate) const LOAD_KEY: &[u8] = b"load";
const MAGIC: &[u8; 12] = b"snugly-store";

/// Identity, which never changes: `magic | version u32 | hash key 2 × u64 | checksum u64`, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) version: u32,
    /// Key of the hash that orders rows, shared with the memory tier.
    pub(crate) hash_key: [u64; 2],
}

/// Reason why this program cannot use an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotOurs {
    Damaged,
    Version(u32),
}

impl Identity {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.version.to_le_bytes());
        self.hash_key.iter().for_each(|part| bytes.extend_from_slice(&part.to_le_bytes()));
        seal(bytes)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Identity, NotOurs> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(NotOurs::Damaged)?;
        let (version, _) = rest.split_first_chunk().ok_or(NotOurs::Damaged)?;
        // Before the checksum: another version may compute it in another way.
        let version = u32::from_le_bytes(*version);
        if !(FIRST_VERSION..=FORMAT_VERSION).contains(&version) {
            return Err(NotOurs::Version(version));
        }
        let mut reader = Reader(unseal(bytes).map_err(|_| NotOurs::Damaged)?);
        let mut parse = || {
            reader.bytes::<{ MAGIC.len() + 4 }>()?;
            let identity = Identity { version, hash_key: [reader.u64()?, reader.u64()?] };
            if reader.0.is_empty() { Ok(identity) } else { Err(Damaged) }
        };
        parse().map_err(|Damaged| NotOurs::Damaged)
    }
}

/// Contents of one database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) generation: Generation,
    pub(crate) keys: u64,
    /// Keys that expire.
    pub(crate) volatile_keys: u64,
    /// Bytes of rows and chunks.
    pub(crate) bytes: u64,
}

/// State that every commit updates: `next generation u32 | next chunk id u64 | next version u64 | databases
/// u32, their contents | dead generations u32, their numbers | next dictionary u32 | dictionaries in use u32,
/// their numbers u32 and records u64 | active dictionaries u32, their numbers u32 | checksum u64`,
/// little-endian.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) next_generation: Generation,
    pub(crate) next_chunk: u64,
    /// Version of values that the next process gives out first, above all that this one can give before it commits
    /// again.
    pub(crate) next_version: u64,
    /// Contents by database.
    pub(crate) contents: Vec<Contents>,
    /// Generations whose rows are still to be deleted.
    pub(crate) dead: Vec<Generation>,
    pub(crate) next_dictionary: u32,
    /// Number of rows that need each dictionary, as far as rows are whole.
    pub(crate) dictionary_uses: BTreeMap<u32, u64>,
    /// Dictionaries that new values are encoded with.
    pub(crate) active_dictionaries: BTreeSet<u32>,
}

impl State {
    /// Creates the state of a new store with this many databases.
    pub(crate) fn new(databases: usize) -> State {
        let mut state = State { next_chunk: 1, next_version: 1, next_dictionary: 1, ..State::default() };
        state.extend_to(databases);
        state
    }

    /// Adds databases, if there are fewer than this many.
    pub(crate) fn extend_to(&mut self, databases: usize) {
        while self.contents.len() < databases {
            self.contents.push(Contents { generation: self.next_generation, ..Contents::default() });
            self.next_generation += 1;
        }
    }

    /// Returns the contents with this generation, unless it is dead.
    pub(crate) fn of(&mut self, generation: Generation) -> Option<&mut Contents> {
        self.contents.iter_mut().find(|contents| contents.generation == generation)
    }

    /// Returns whether a generation is a database's, or that of the nodes of collections; a flushed one is
    /// not.
    pub(crate) fn has(&self, generation: Generation) -> bool {
        generation == NODES || self.contents.iter().any(|contents| contents.generation == generation)
    }

    /// Assigns these generations to the databases: contents follow their generation, and an unassigned one is
    /// dead.
    pub(crate) fn assign(&mut self, generations: &[Generation]) {
        let before = std::mem::take(&mut self.contents);
        self.contents = generations
            .iter()
            .map(|&generation| {
                let known = before.iter().find(|contents| contents.generation == generation).copied();
                known.unwrap_or(Contents { generation, ..Contents::default() })
            })
            .collect();
        let is_dead = |contents: &&Contents| !generations.contains(&contents.generation);
        self.dead.extend(before.iter().filter(is_dead).map(|contents| contents.generation));
        let next = generations.iter().max().map_or(0, |&highest| highest + 1);
        self.next_generation = self.next_generation.max(next);
    }

    /// Counts a row that needs this dictionary.
    pub(crate) fn use_dictionary(&mut self, number: u32) {
        *self.dictionary_uses.entry(number).or_default() += 1;
    }

    /// Uncounts a row that needed this dictionary.
    pub(crate) fn release_dictionary(&mut self, number: u32) {
        if let Some(uses) = self.dictionary_uses.get_mut(&number) {
            *uses -= 1;
            if *uses == 0 {
                self.dictionary_uses.remove(&number);
            }
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.next_generation.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.next_chunk.to_le_bytes());
        bytes.extend_from_slice(&self.next_version.to_le_bytes());
        bytes.extend_from_slice(&(self.contents.len() as u32).to_le_bytes());
        for contents in &self.contents {
            bytes.extend_from_slice(&contents.generation.to_le_bytes());
            for number in [contents.keys, contents.volatile_keys, contents.bytes] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        bytes.extend_from_slice(&(self.dead.len() as u32).to_le_bytes());
        self.dead.iter().for_each(|generation| bytes.extend_from_slice(&generation.to_le_bytes()));
        bytes.extend_from_slice(&self.next_dictionary.to_le_bytes());
        bytes.extend_from_slice(&(self.dictionary_uses.len() as u32).to_le_bytes());
        for (number, uses) in &self.dictionary_uses {
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&uses.to_le_bytes());
        }
        bytes.extend_from_slice(&(self.active_dictionaries.len() as u32).to_le_bytes());
        self.active_dictionaries.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        seal(bytes)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<State, Damaged> {
        let mut reader = Reader(unseal(bytes)?);
        let mut state = State {
            next_generation: reader.u32()?,
            next_chunk: reader.u64()?,
            next_version: reader.u64()?,
            ..State::default()
        };
        for _ in 0..reader.u32()? {
            state.contents.push(Contents {
                generation: reader.u32()?,
                keys: reader.u64()?,
                volatile_keys: reader.u64()?,
                bytes: reader.u64()?,
            });
        }
        for _ in 0..reader.u32()? {
            state.dead.push(reader.u32()?);
        }
        if reader.0.is_empty() {
            // The state is of the previous version.
            return Ok(State { next_dictionary: 1, ..state });
        }
        state.next_dictionary = reader.u32()?;
        for _ in 0..reader.u32()? {
            let (number, uses) = (reader.u32()?, reader.u64()?);
            let is_next = state.dictionary_uses.last_key_value().is_none_or(|(last, _)| *last < number);
            if !is_next || uses == 0 {
                return Err(Damaged);
            }
            state.dictionary_uses.insert(number, uses);
        }
        for _ in 0..reader.u32()? {
            let number = reader.u32()?;
            if state.active_dictionaries.last().is_some_and(|last| *last >= number) {
                return Err(Damaged);
            }
            state.active_dictionaries.insert(number);
        }
        if reader.0.is_empty() { Ok(state) } else { Err(Damaged) }
    }
}

/// Progress of loading a store from a file: `is done u8 | fingerprint 16 bytes | source | checksum u64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadMark {
    /// Name of the file, for messages.
    pub source: String,
    /// Fingerprint that tells the file's content from that of others.
    pub fingerprint: [u8; 16],
    /// Whether all of it is in the store; otherwise a part is.
    pub is_done: bool,
}

impl LoadMark {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.is_done)];
        bytes.extend_from_slice(&self.fingerprint);
        bytes.extend_from_slice(self.source.as_bytes());
        seal(bytes)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<LoadMark, Damaged> {
        let mut reader = Reader(unseal(bytes)?);
        let [is_done] = reader.bytes()?;
        let fingerprint = reader.bytes()?;
        let source = String::from_utf8_lossy(reader.0).into_owned();
        if is_done > 1 {
            return Err(Damaged);
        }
        Ok(LoadMark { source, fingerprint, is_done: is_done == 1 })
    }
}

pub(crate) fn encode_applied(number: u64) -> Vec<u8> {
    seal(number.to_le_bytes().to_vec())
}

pub(crate) fn parse_applied(bytes: &[u8]) -> Result<u64, Damaged> {
    unseal(bytes)?.try_into().map(u64::from_le_bytes).map_err(|_| Damaged)
}

pub(super) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = xxh3_64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

pub(super) fn unseal(bytes: &[u8]) -> Result<&[u8], Damaged> {
    let (content, checksum) = bytes.split_last_chunk().ok_or(Damaged)?;
    if xxh3_64(content) == u64::from_le_bytes(*checksum) { Ok(content) } else { Err(Damaged) }
}

pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Damaged> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Damaged> {
        self.bytes().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn generations_that_no_database_has_any_more_are_dead() {
        let mut state = State::new(3);
        state.contents[0].keys = 5;
        state.contents[1].keys = 7;
        // Database 2 was flushed, and 0 and 1 were exchanged.
        state.assign(&[1, 0, 3]);
        let keys: Vec<u64> = state.contents.iter().map(|contents| contents.keys).collect();
        assert_eq!((keys, state.dead.clone(), state.next_generation), (vec![7, 5, 0], vec![2], 4));
        assert!(state.of(2).is_none());
    }

    #[test]
    fn another_version_is_told_apart_from_damage() {
        let mut bytes = Identity { version: FORMAT_VERSION, hash_key: [1, 2] }.encode();
        bytes[MAGIC.len()] = FORMAT_VERSION as u8 + 1;
        assert_eq!(Identity::parse(&bytes), Err(NotOurs::Version(FORMAT_VERSION + 1)));
        bytes[MAGIC.len()] = FORMAT_VERSION as u8;
        bytes[20] ^= 1;
        assert_eq!(Identity::parse(&bytes), Err(NotOurs::Damaged));
        assert_eq!(Identity::parse(b"something else"), Err(NotOurs::Damaged));
    }

    #[test]
    fn what_was_written_before_there_were_dictionaries_is_read() {
        let identity = Identity { version: FIRST_VERSION, hash_key: [1, 2] };
        assert_eq!(Identity::parse(&identity.encode()), Ok(identity));
        let state = State::new(2);
        let bytes = state.encode();
        let before = seal(bytes[..bytes.len() - 8 - 12].to_vec());
        assert_eq!(State::parse(&before), Ok(state));
    }

    fn contents() -> impl Strategy<Value = Contents> {
        any::<(u32, u64, u64, u64)>().prop_map(|(generation, keys, volatile_keys, bytes)| Contents {
            generation,
            keys,
            volatile_keys,
            bytes,
        })
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_parsed(
            next_generation: u32,
            next_chunk: u64,
            next_version: u64,
            contents in prop::collection::vec(contents(), 0..20),
            dead: Vec<u32>,
            next_dictionary: u32,
            dictionary_uses in prop::collection::btree_map(any::<u32>(), 1..u64::MAX, 0..10),
            active_dictionaries in prop::collection::btree_set(any::<u32>(), 0..10),
            hash_key: [u64; 2],
        ) {
            let state = State {
                next_generation, next_chunk, next_version, contents, dead, next_dictionary, dictionary_uses,
                active_dictionaries,
            };
            prop_assert_eq!(State::parse(&state.encode()), Ok(state));
            let identity = Identity { version: FORMAT_VERSION, hash_key };
            prop_assert_eq!(Identity::parse(&identity.encode()), Ok(identity));
        }

        #[test]
        fn a_load_mark_is_parsed_as_it_was_encoded(source: String, fingerprint: [u8; 16], is_done: bool) {
            let mark = LoadMark { source, fingerprint, is_done };
            prop_assert_eq!(LoadMark::parse(&mark.encode()), Ok(mark));
        }

        #[test]
        fn any_bytes_can_be_parsed(bytes: Vec<u8>) {
            let _ = LoadMark::parse(&bytes);
            let _ = LoadMark::parse(&seal(bytes.clone()));
            let _ = State::parse(&bytes);
            let _ = State::parse(&seal(bytes.clone()));
            let _ = Identity::parse(&bytes);
        }
    }
}
