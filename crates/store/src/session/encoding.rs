//! Values to records and back, with the dictionaries of the moment.

use std::sync::Arc;

use snugly_codec::{CodecId, DecodeError};
use snugly_learning::with_dictionary;

use super::{Session, StoreError, Value};
use crate::dictionaries::Dictionaries;
use crate::dictionaries::known::Version;
use crate::memory::entry::{self, Access, Entry};
use crate::memory::entry_allocation_size;
use crate::memory::shard::Presence;

/// One of so many values that are encoded with a dictionary is noted, to see how good that still is.
const NOTED: u32 = 16;

impl Session {
    /// Follows what has changed since the last operation.
    pub(crate) fn follow(&mut self) {
        self.follow_settings();
    }

    pub(super) fn follow_dictionaries(&mut self) {
        let edition = self.store.dictionaries.edition();
        if edition != self.edition {
            self.edition = edition;
            self.known = self.store.dictionaries.known();
        }
    }

    /// Lets those who learn dictionaries see a value that is about to be written, unless they have enough.
    pub(super) fn show_sample(&mut self, key: &[u8], value: &[u8]) {
        self.skipped += 1;
        if self.unsampled > 0 {
            self.unsampled -= 1;
            return;
        }
        if self.uses_dictionaries() && !self.is_holding && Dictionaries::wants(value.len()) {
            self.unsampled = self.store.dictionaries.offer(key, value, self.skipped);
            self.skipped = 0;
        }
    }

    fn uses_dictionaries(&self) -> bool {
        self.settings.dictionaries.enabled && self.settings.compression.algorithm().id() == CodecId::Zstd
    }

    /// The dictionary for a value of this length.
    fn version_for(&self, key: &[u8], len: usize) -> Option<&Arc<Version>> {
        if self.uses_dictionaries() { self.known.active_for(key, len) } else { None }
    }

    /// Encodes a value for a key, with the dictionary that is for it if there is one.
    pub(super) fn encode(&mut self, key: &[u8], value: &[u8], expiry: Option<u64>, access: Access) -> Entry {
        let version = match self.uses_dictionaries() {
            true => self.known.active_for(key, value.len()),
            false => None,
        };
        let choice = self.settings.compression;
        let choice = if version.is_some() { with_dictionary(choice) } else { choice };
        let dictionary = version.map(|version| (version.number(), &**version.dictionary()));
        let overhead = entry::overhead(key.len(), expiry.is_some());
        let record = self.encoder.encode_with(choice, dictionary, value, overhead, entry_allocation_size);
        if let Some(version) = version {
            self.with_dictionary = self.with_dictionary.wrapping_add(1);
            if self.with_dictionary.is_multiple_of(NOTED) {
                version.note(value.len(), record.payload().len());
            }
        }
        Entry::new(key, &record, expiry, access)
    }

    pub(super) fn decode(&mut self, value: &Value, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let record = value.record();
        if record.dictionary().is_some_and(|number| self.known.version(number).is_none()) {
            self.follow_dictionaries();
        }
        let known = &self.known;
        let find = |number| known.version(number).map(|version| &**version.dictionary());
        self.decoder.decode_with(&record, &find, value.len(), out)
    }

    /// Encodes a key's value anew, as it would be if it were written now, if that is smaller or the value needs a
    /// dictionary that new ones are not encoded with. To everybody else the key does not change, and it is not taken into
    /// memory if it is only on disk and stays as it is.
    ///
    /// # Errors
    /// As [`Session::get`] and [`Session::read`], and what the disk says when it takes no writes; the key is as before.
    pub(crate) fn encode_anew(&mut self, database: usize, key: &[u8]) -> Result<(), StoreError> {
        self.follow_settings();
        let place = self.store.keyspace.place(key);
        let Some((old, version)) = self.store.find(database, place, key, self.now())? else { return Ok(()) };
        let value = Value(old);
        let current = value.record().dictionary();
        let wanted = self.version_for(key, value.len()).map(|version| version.number());
        let is_outdated = current.is_some_and(|number| !self.known.is_active(number));
        if current == wanted || wanted.is_none() && !is_outdated {
            return Ok(());
        }
        self.wait_for_the_disk()?;
        let mut bytes = Vec::new();
        self.read(&value, &mut bytes)?;
        let old = value.0.borrow();
        let entry = self.encode(key, &bytes, old.expiry(), old.access());
        let need = entry.borrow().allocation_size();
        if need >= old.allocation_size() && !is_outdated {
            return Ok(());
        }
        let is_cache = self.store.disk().is_some();
        if is_cache {
            self.has_room_for(need as u64)?;
            self.refuse_if_disk_does()?;
        }
        let mut shard = self.store.keyspace.lock(place.shard);
        let presence = shard.locate(database, place.tag, key, self.now());
        let entry = match presence {
            Presence::Live(index) if value.0.same(shard.entry(database, index)) => {
                let found = shard.entry(database, index);
                entry.borrow().set_access(found.access());
                match entry.borrow().set_expiry(found.expiry()) {
                    Ok(()) => entry,
                    Err(copy) => copy,
                }
            }
            // It is on disk alone, where nothing has changed either.
            Presence::Unknown if is_cache && shard.version() == version => entry,
            _ => return Ok(()),
        };
        let before = shard.encoded_anew(database, place.tag, presence, entry);
        drop(shard);
        drop(before);
        Ok(())
    }
}
