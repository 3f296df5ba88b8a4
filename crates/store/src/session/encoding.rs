//! Encoding of values to records and decoding, with the current dictionaries.

use std::sync::Arc;

use snugly_codec::{Choice, DecodeError, Dictionary, Learned, Record};
use snugly_learning::{Decision, ReadRate, with_dictionary};

use super::{Recompressor, Session, StoreError, Value};
use crate::dictionaries::KeyPredicate;
use crate::dictionaries::set::{DictionarySet, Version};
use crate::entry::{self, Entry, EntryRef, Properties, Stage};
use crate::key::Key;
use crate::memory::shard::Presence;
use crate::settings::Settings;
use crate::slab::entry_allocation_size;
use crate::values::quicklist::node::NodeId;

/// Average number of values encoded with a dictionary for each one that is noted, to measure how good it
/// still is.
const NOTED: u32 = 16;
/// Attempts to re-encode a key that others keep changing.
const TRIES: u32 = 4;

/// Encoding of a value.
pub(super) struct CodecChoice<'k> {
    pub(super) choice: Choice,
    pub(super) version: Option<&'k Arc<Version>>,
    /// Decision that chose it, if any.
    decision: Option<&'k Arc<Decision>>,
}

/// Result of re-encoding a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReencodeOutcome {
    /// The key has the encoding of a new value already, or is gone.
    Same,
    /// The key was re-encoded.
    Encoded,
    /// Some nodes of a collection were re-encoded.
    EncodedNodes,
    /// The key needs this dictionary, which is missing.
    Missing(u32),
    /// Others kept changing the key, or a key beside it.
    Missed,
}

impl<'k> CodecChoice<'k> {
    /// Chooses the encoding for a value of this length.
    pub(super) fn of(
        known: &'k DictionarySet,
        settings: &Settings,
        excluded: Option<&KeyPredicate>,
        key: &[u8],
        len: usize,
    ) -> CodecChoice<'k> {
        let decision = settings.goal.and_then(|_| known.decision_for(key, len));
        let is_used =
            settings.values_use_dictionaries() && decision.is_none_or(|decision| decision.uses_dictionary);
        let version = if is_used { known.active_for(key, len) } else { None };
        let version = version.filter(|_| excluded.is_none_or(|excluded| !excluded(key)));
        let choice = match (decision, version) {
            (Some(decision), _) => decision.choice,
            (None, Some(_)) => with_dictionary(settings.compression),
            (None, None) => settings.compression,
        };
        CodecChoice { choice, version, decision }
    }

    /// Returns what a value that stays is encoded with, if anything else than this is considered for such values.
    pub(super) fn kept(&self, settings: &Settings, rate: ReadRate) -> Option<Choice> {
        match self.decision {
            Some(decision) => decision.choice.compresses().then(|| decision.kept(rate).choice),
            None => settings.keeps_with(rate),
        }
    }
}

impl Session {
    pub(super) fn follow_dictionaries(&mut self) {
        let edition = self.store.dictionaries.edition();
        if edition != self.edition {
            self.edition = edition;
            self.dictionaries = self.store.dictionaries.set();
            self.excluded = self.store.dictionaries.excluded();
        }
    }

    pub(super) fn is_excluded(&self, key: &[u8]) -> bool {
        self.excluded.as_ref().is_some_and(|excluded| excluded(key))
    }

    /// Returns whether a key's record must not need this dictionary any more.
    pub(super) fn is_outdated(&self, key: &[u8], dictionary: Option<u32>) -> bool {
        dictionary.is_some_and(|number| !self.dictionaries.is_active(number) || self.is_excluded(key))
    }

    /// Encodes a value that is written, with the dictionary that is for it if there is one.
    pub(super) fn encode(&mut self, key: &[u8], value: &[u8], properties: Properties) -> Entry {
        self.encode_entry(key, value, properties, true)
    }

    /// Re-encodes a value that was written before.
    pub(super) fn encode_again(&mut self, key: &[u8], value: &[u8], properties: Properties) -> Entry {
        self.encode_entry(key, value, properties, false)
    }

    /// Encodes an entry; `is_new` says whether it counts for the statistics of written values.
    fn encode_entry(&mut self, key: &[u8], value: &[u8], properties: Properties, is_new: bool) -> Entry {
        let CodecChoice { choice, version, decision } =
            CodecChoice::of(&self.dictionaries, &self.settings, self.excluded.as_ref(), key, value.len());
        let dictionary = choice
            .learned(Learned::Values, version)
            .map(|version| (version.number(), &**version.dictionary()));
        let overhead = entry::overhead(key.len(), properties.fields());
        let record = self.encoder.encode_with(choice, dictionary, value, overhead, entry_allocation_size);
        // A decision for values with a dictionary does not apply to those that are excluded from it.
        let decision = decision.filter(|decision| version.is_some() || !decision.uses_dictionary);
        if is_new && (version.is_some() || decision.is_some()) {
            match self.unnoted.checked_sub(1) {
                Some(unnoted) => self.unnoted = unnoted,
                None => {
                    let (raw, encoded) = (value.len(), record.payload().len());
                    version.inspect(|version| version.note(raw, encoded));
                    decision.inspect(|decision| decision.drift.note(raw, encoded));
                    // At random, so that a periodic writer does not always show the same kind of value.
                    self.unnoted = self.random.u32(..2 * NOTED - 1);
                }
            }
        }
        let entry = Entry::new(key, &record, properties);
        self.note_buffers();
        entry
    }

    pub(super) fn decode(&mut self, record: &Record<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        if let Some(number) = record.dictionary() {
            self.find_dictionary(number);
        }
        let known = &self.dictionaries;
        let find = |number| known.version(number).map(|version| &**version.dictionary());
        self.decoder.decode_with(record, &find, record.raw_len(), out)
    }

    /// Returns the dictionary of this number, if there is one.
    pub(super) fn dictionary(&mut self, number: u32) -> Option<Arc<Dictionary>> {
        self.find_dictionary(number);
        self.dictionaries.version(number).map(|version| version.dictionary().clone())
    }

    fn find_dictionary(&mut self, number: u32) {
        if self.dictionaries.version(number).is_none() {
            self.follow_dictionaries();
        }
    }

    /// Re-encodes a key's value as a new one would be, if that is smaller or the value needs an inactive
    /// dictionary. To everybody else the key does not change, and it is not taken into memory if it is only
    /// on disk and stays as it is. Of a collection, some nodes are re-encoded, from the one on that `part`
    /// names, which is then set to the next one, if there are more.
    ///
    /// # Errors
    /// Errors of [`Session::get`] and [`Session::read`], the disk's error when it takes no writes, and
    /// [`StoreError::OutOfMemory`]; the key is as before.
    pub(crate) fn reencode(
        &mut self,
        database: usize,
        key: &[u8],
        part: &mut Option<NodeId>,
        recompressor: &mut Recompressor,
    ) -> Result<ReencodeOutcome, StoreError> {
        let key = self.key(database, key);
        for _ in 0..TRIES {
            self.follow_settings();
            self.wait_for_the_disk()?;
            let Some((old, version)) = self.store.find(key, self.now())? else {
                *part = None;
                return Ok(ReencodeOutcome::Same);
            };
            if let Some(collection) = old.borrow().collection() {
                return self.reencode_nodes(key, collection, part);
            }
            *part = None;
            match self.try_to_reencode(key, &Value(old), version, recompressor)? {
                // In memory the key is not mistaken for changed when a key beside it is.
                ReencodeOutcome::Missed => drop(self.peek_at(key)?),
                outcome => return Ok(outcome),
            }
        }
        Ok(ReencodeOutcome::Missed)
    }

    fn try_to_reencode(
        &mut self,
        key: Key<'_>,
        value: &Value,
        version: u64,
        recompressor: &mut Recompressor,
    ) -> Result<ReencodeOutcome, StoreError> {
        let old = value.0.borrow();
        let is_plain = value.plain().is_some();
        // A draft is encoded when it has been idle for a while, and a value that is kept as it is for its readers when
        // these are gone.
        if old.is_draft() || is_plain && old.stage() == Stage::Settled {
            return Ok(ReencodeOutcome::Same);
        }
        let current = value.record().and_then(|record| record.dictionary());
        let wanted = CodecChoice::of(
            &self.dictionaries,
            &self.settings,
            self.excluded.as_ref(),
            key.bytes,
            value.len(),
        );
        // A value that has stayed does not begin anew: it would take more until it has settled again.
        let kept = match old.stage() {
            Stage::Written => None,
            Stage::Settled | Stage::Cold => wanted.kept(&self.settings, ReadRate::Unread),
        };
        let kept = kept.map(|choice| (choice, wanted.version.cloned()));
        let wanted = wanted.version.map(|version| version.number());
        let is_outdated = self.is_outdated(key.bytes, current);
        if current == wanted || wanted.is_none() && !is_outdated {
            return Ok(ReencodeOutcome::Same);
        }
        if let Some(number) = current.filter(|number| self.dictionaries.version(*number).is_none()) {
            return Ok(ReencodeOutcome::Missing(number));
        }
        let mut bytes = Vec::new();
        self.read(value, &mut bytes)?;
        let entry = match kept {
            Some((choice, version)) => {
                let method = (choice, version.as_deref());
                self.encode_at(Stage::Settled, method, key.bytes, &bytes, old.properties(), recompressor)
            }
            None => self.encode_again(key.bytes, &bytes, old.properties()),
        };
        let (need, had) = (entry.borrow().allocation_size(), old.allocation_size());
        if need >= had && !is_outdated {
            return Ok(ReencodeOutcome::Same);
        }
        let is_cache = self.store.disk().is_some();
        // A key that is on disk alone is in memory until it is there again.
        let more = if is_cache { need } else { need.saturating_sub(had) };
        if more > 0 && !self.has_room_for(more as u64)? {
            return Err(self.out_of_memory());
        }
        self.refuse_if_disk_does()?;
        let was_put = self.replace_encoding(key, value, version, entry).is_some();
        self.store.recompression.reencoded(usize::from(was_put));
        Ok(if was_put { ReencodeOutcome::Encoded } else { ReencodeOutcome::Missed })
    }

    /// Replaces an entry by one that has the same value, unless others have changed the key since it was
    /// found in this version of its shard; returns where the old one was.
    pub(super) fn replace_encoding(
        &self,
        key: Key<'_>,
        found: &Value,
        version: u64,
        entry: Entry,
    ) -> Option<Presence> {
        let mut shard = self.store.keyspace.lock(key.shard());
        let presence = shard.locate(key, self.now());
        let entry = match presence {
            Presence::Live(index) if found.0.same(shard.entry(key.database, index)) => {
                as_used(entry, shard.entry(key.database, index))
            }
            // The entry is on disk alone, where nothing has changed either.
            Presence::Unknown if self.store.disk().is_some() && shard.version() == version => entry,
            _ => return None,
        };
        let before = shard.reencoded(key, presence, entry);
        drop(shard);
        drop(before);
        Some(presence)
    }
}

/// Returns the entry with the use and the expiry of the one that it replaces.
pub(super) fn as_used(entry: Entry, current: EntryRef<'_>) -> Entry {
    entry.borrow().set_access(current.access());
    match entry.borrow().set_expiry(current.expiry()) {
        Ok(()) => entry,
        Err(copy) => copy,
    }
}
