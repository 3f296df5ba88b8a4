//! Values to records and back, with the dictionaries of the moment.

use std::sync::Arc;

use snugly_codec::{Choice, DecodeError, Dictionary};
use snugly_learning::{Decision, with_dictionary};

use super::{Session, StoreError, Value};
use crate::dictionaries::KeyPredicate;
use crate::dictionaries::known::{Known, Version};
use crate::memory::entry::{self, Access, Entry};
use crate::memory::entry_allocation_size;
use crate::memory::keyspace::Place;
use crate::memory::shard::Presence;
use crate::quicklist::node::NodeId;
use crate::store::Settings;

/// One of so many values that are encoded with a dictionary is noted on average, to see how good that still is.
const NOTED: u32 = 16;
/// How often it is tried to encode a key anew that others change meanwhile.
const TRIES: u32 = 4;

/// How a value is encoded.
pub(super) struct Method<'k> {
    pub(super) choice: Choice,
    pub(super) version: Option<&'k Arc<Version>>,
    /// Where it says so, if it was chosen.
    decision: Option<&'k Arc<Decision>>,
}

/// What came of encoding a key anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anew {
    /// It is as it would be if it were written now, or it is gone.
    Same,
    /// It was not, and now is.
    Encoded,
    /// Some nodes of a list were not, and now are.
    EncodedNodes,
    /// It needs this dictionary, which is not there.
    Missing(u32),
    /// Others have changed it, or a key beside it, all the time.
    Missed,
}

impl<'k> Method<'k> {
    /// That for a value of this length.
    pub(super) fn of(
        known: &'k Known,
        settings: &Settings,
        excluded: Option<&KeyPredicate>,
        key: &[u8],
        len: usize,
    ) -> Method<'k> {
        let decision = settings.goal.and_then(|_| known.decision_for(key, len));
        let is_used = match decision {
            Some(decision) => decision.uses_dictionary,
            None => settings.values_use_dictionaries(),
        };
        let version = if is_used { known.active_for(key, len) } else { None };
        let version = version.filter(|_| excluded.is_none_or(|excluded| !excluded(key)));
        let choice = match (decision, version) {
            (Some(decision), _) => decision.choice,
            (None, Some(_)) => with_dictionary(settings.compression),
            (None, None) => settings.compression,
        };
        Method { choice, version, decision }
    }
}

impl Session {
    pub(super) fn follow_dictionaries(&mut self) {
        let edition = self.store.dictionaries.edition();
        if edition != self.edition {
            self.edition = edition;
            self.known = self.store.dictionaries.known();
            self.excluded = self.store.dictionaries.excluded();
        }
    }

    pub(super) fn is_excluded(&self, key: &[u8]) -> bool {
        self.excluded.as_ref().is_some_and(|excluded| excluded(key))
    }

    /// Encodes a value that is written, with the dictionary that is for it if there is one.
    pub(super) fn encode(&mut self, key: &[u8], value: &[u8], expiry: Option<u64>, access: Access) -> Entry {
        self.encode_entry(key, value, expiry, access, true)
    }

    /// `is_new` says whether it tells something about the values that are written.
    fn encode_entry(
        &mut self,
        key: &[u8],
        value: &[u8],
        expiry: Option<u64>,
        access: Access,
        is_new: bool,
    ) -> Entry {
        let Method { choice, version, decision } =
            Method::of(&self.known, &self.settings, self.excluded.as_ref(), key, value.len());
        let dictionary = version.map(|version| (version.number(), &**version.dictionary()));
        let overhead = entry::overhead(key.len(), expiry.is_some());
        let record = self.encoder.encode_with(choice, dictionary, value, overhead, entry_allocation_size);
        // What is decided for values with a dictionary says nothing of those that are kept out of it.
        let decision = decision.filter(|decision| version.is_some() || !decision.uses_dictionary);
        if is_new && (version.is_some() || decision.is_some()) {
            match self.unnoted.checked_sub(1) {
                Some(unnoted) => self.unnoted = unnoted,
                None => {
                    let (raw, encoded) = (value.len(), record.payload().len());
                    version.inspect(|version| version.note(raw, encoded));
                    decision.inspect(|decision| decision.drift.note(raw, encoded));
                    // At random, so that whoever writes in turns does not always show the same kind of value.
                    self.unnoted = self.random.u32(..2 * NOTED - 1);
                }
            }
        }
        Entry::new(key, &record, expiry, access)
    }

    pub(super) fn decode(&mut self, value: &Value, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let record = value.record();
        if let Some(number) = record.dictionary() {
            self.find_dictionary(number);
        }
        let known = &self.known;
        let find = |number| known.version(number).map(|version| &**version.dictionary());
        self.decoder.decode_with(&record, &find, value.len(), out)
    }

    /// The dictionary of this number, if there is one.
    pub(super) fn dictionary(&mut self, number: u32) -> Option<Arc<Dictionary>> {
        self.find_dictionary(number);
        self.known.version(number).map(|version| version.dictionary().clone())
    }

    fn find_dictionary(&mut self, number: u32) {
        if self.known.version(number).is_none() {
            self.follow_dictionaries();
        }
    }

    /// Encodes a key's value anew, as it would be if it were written now, if that is smaller or the value needs a
    /// dictionary that new ones are not encoded with. To everybody else the key does not change, and it is not taken into
    /// memory if it is only on disk and stays as it is. Of a list these are some of its nodes, from the one on that `part`
    /// names: it then names the next one, if there are more.
    ///
    /// # Errors
    /// As [`Session::get`] and [`Session::read`], what the disk says when it takes no writes, and
    /// [`StoreError::OutOfMemory`]; the key is as before.
    pub(crate) fn encode_anew(
        &mut self,
        database: usize,
        key: &[u8],
        part: &mut Option<NodeId>,
    ) -> Result<Anew, StoreError> {
        let place = self.store.keyspace.place(key);
        for _ in 0..TRIES {
            self.follow_settings();
            self.wait_for_the_disk()?;
            let Some((old, version)) = self.store.find(database, place, key, self.now())? else {
                *part = None;
                return Ok(Anew::Same);
            };
            if let Some(list) = old.borrow().list() {
                return self.encode_nodes_anew(database, place, key, list, part);
            }
            *part = None;
            match self.try_to_encode_anew(database, place, &Value(old), version)? {
                // In memory it is not mistaken for changed when a key beside it is.
                Anew::Missed => drop(self.peek(database, key)?),
                outcome => return Ok(outcome),
            }
        }
        Ok(Anew::Missed)
    }

    fn try_to_encode_anew(
        &mut self,
        database: usize,
        place: Place,
        value: &Value,
        version: u64,
    ) -> Result<Anew, StoreError> {
        let key = value.key();
        let current = value.record().dictionary();
        let wanted = Method::of(&self.known, &self.settings, self.excluded.as_ref(), key, value.len());
        let wanted = wanted.version.map(|version| version.number());
        let is_outdated =
            current.is_some_and(|number| !self.known.is_active(number) || self.is_excluded(key));
        if current == wanted || wanted.is_none() && !is_outdated {
            return Ok(Anew::Same);
        }
        if let Some(number) = current.filter(|number| self.known.version(*number).is_none()) {
            return Ok(Anew::Missing(number));
        }
        let mut bytes = Vec::new();
        self.read(value, &mut bytes)?;
        let old = value.0.borrow();
        let entry = self.encode_entry(key, &bytes, old.expiry(), old.access(), false);
        let (need, had) = (entry.borrow().allocation_size(), old.allocation_size());
        if need >= had && !is_outdated {
            return Ok(Anew::Same);
        }
        let is_cache = self.store.disk().is_some();
        // A key that is on disk alone is in memory until it is there again.
        let more = if is_cache { need } else { need.saturating_sub(had) };
        if more > 0 && !self.has_room_for(more as u64)? {
            return Err(self.out_of_memory());
        }
        self.refuse_if_disk_does()?;
        let was_put = self.put_anew(database, place, value, version, entry).is_some();
        Ok(if was_put { Anew::Encoded } else { Anew::Missed })
    }

    /// Puts an entry in the place of one that has the same value, unless others have changed the key since it was found in
    /// this version of its shard; says where that one was.
    pub(super) fn put_anew(
        &self,
        database: usize,
        place: Place,
        found: &Value,
        version: u64,
        entry: Entry,
    ) -> Option<Presence> {
        let mut shard = self.store.keyspace.lock(place.shard);
        let presence = shard.locate(database, place.tag, found.key(), self.now());
        let entry = match presence {
            Presence::Live(index) if found.0.same(shard.entry(database, index)) => {
                let current = shard.entry(database, index);
                entry.borrow().set_access(current.access());
                match entry.borrow().set_expiry(current.expiry()) {
                    Ok(()) => entry,
                    Err(copy) => copy,
                }
            }
            // It is on disk alone, where nothing has changed either.
            Presence::Unknown if self.store.disk().is_some() && shard.version() == version => entry,
            _ => return None,
        };
        let before = shard.encoded_anew(database, place.tag, presence, entry);
        drop(shard);
        drop(before);
        Some(presence)
    }
}
