//! Values that nobody uses, at a stronger level: to everybody but the disk, such a key has not changed.

use std::collections::HashMap;

use snugly_codec::Dictionary;

use super::encoding::Method;
use super::{Session, StoreError, Value};
use crate::dictionaries::known::Version;
use crate::memory::entry::{self, Entry};
use crate::memory::entry_allocation_size;
use crate::memory::shard::Presence;
use crate::tiers::Cold;

/// Dictionaries with zstd's tables for the stronger level, which nobody else needs: copies, so that the tables can be let
/// go when a pass is over.
#[derive(Default)]
pub(crate) struct Packer {
    dictionaries: HashMap<u32, Dictionary>,
    bytes: usize,
}

/// What came of packing a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// It is not for it, is to have another dictionary first, or has just been changed.
    Left,
    /// It was tried, on a value of so many bytes.
    Tried {
        /// How long the value is.
        len: usize,
        /// Whether the key is in memory only until it is on disk again.
        was_on_disk: bool,
    },
}

impl Packer {
    /// The copy of a version, with tables for this level. All that there are take no more than `limit` bytes, or are one.
    fn dictionary(&mut self, version: &Version, level: i32, limit: usize) -> Option<&Dictionary> {
        let number = version.number();
        if !self.dictionaries.contains_key(&number) {
            let dictionary = Dictionary::load(version.dictionary().bytes()).ok()?;
            let bytes = dictionary.memory(level);
            if self.bytes + bytes > limit {
                self.clear();
            }
            self.bytes += bytes;
            self.dictionaries.insert(number, dictionary);
        }
        self.dictionaries.get(&number)
    }

    /// Bytes that the copies take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn clear(&mut self) {
        *self = Packer::default();
    }
}

impl Session {
    /// Shows keys that are cold from `cursor` on, out of about `count`; gives the next cursor, 0 at the end.
    ///
    /// # Errors
    /// As [`Session::scan`].
    pub(crate) fn scan_cold(
        &self,
        cold: Cold,
        database: usize,
        cursor: u64,
        count: usize,
        show: impl FnMut(&[u8]),
    ) -> Result<u64, StoreError> {
        self.store.scan_for(Some(cold), database, cursor, count, self.now(), show)
    }

    /// Encodes a cold key's value at the stronger level and keeps what takes less. Whatever comes of it, it is not tried
    /// again until the value is written or encoded anew.
    ///
    /// # Errors
    /// As [`Session::get`] and [`Session::read`], and what the disk says when it takes no writes; the key is as before.
    pub(crate) fn pack(
        &mut self,
        cold: Cold,
        database: usize,
        key: &[u8],
        packer: &mut Packer,
    ) -> Result<Packing, StoreError> {
        self.follow_settings();
        let Some(choice) = self.settings.packs_with() else { return Ok(Packing::Left) };
        self.wait_for_the_disk()?;
        self.refuse_if_disk_does()?;
        let place = self.store.keyspace.place(key);
        let Some((found, shard_version)) = self.store.find(database, place, key, self.now())? else {
            return Ok(Packing::Left);
        };
        let value = Value(found);
        let current = value.record().dictionary();
        let is_outdated =
            current.is_some_and(|number| !self.known.is_active(number) || self.is_excluded(key));
        let usual = Method::of(&self.known, &self.settings, self.excluded.as_ref(), key, value.len());
        let is_strong_enough = usual.choice.algorithm().id() == choice.algorithm().id()
            && usual.choice.level() >= choice.level();
        if is_outdated || is_strong_enough || !cold.has(value.0.borrow(), self.now()) {
            return Ok(Packing::Left);
        }
        let version = usual.version.or_else(|| self.known.version(current?)).cloned();
        let mut bytes = Vec::new();
        self.read(&value, &mut bytes)?;
        let limit = self.settings.dictionaries.dictionaries_limit();
        let dictionary = match &version {
            Some(version) => packer
                .dictionary(version, choice.level(), limit)
                .map(|dictionary| (version.number(), dictionary)),
            None => None,
        };
        let old = value.0.borrow();
        let overhead = entry::overhead(key.len(), old.expiry().is_some());
        let record = self.encoder.encode_with(choice, dictionary, &bytes, overhead, entry_allocation_size);
        let packed = Entry::packed(key, &record, old.expiry(), old.access());
        let saved = old.allocation_size().saturating_sub(packed.borrow().allocation_size());
        let entry = if saved > 0 { packed } else { old.copy_as_packed() };
        // A key that is on disk alone is in memory until it is there again.
        if self.store.disk().is_some() {
            self.has_room_for(entry.borrow().allocation_size() as u64)?;
        }
        let Some(presence) = self.put_anew(database, place, &value, shard_version, entry) else {
            return Ok(Packing::Left);
        };
        self.store.packing.tried(saved);
        Ok(Packing::Tried { len: bytes.len(), was_on_disk: presence == Presence::Unknown })
    }
}
