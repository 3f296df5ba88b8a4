//! Values that nobody uses, at a stronger level: to everybody but the disk, such a key has not changed.

use std::collections::HashMap;

use snugly_codec::Dictionary;

use super::encoding::CodecChoice;
use super::{Session, StoreError, Value};
use crate::dictionaries::set::Version;
use crate::entry::{self, Entry};
use crate::memory::shard::Presence;
use crate::slab::entry_allocation_size;
use crate::tiers::Cold;

/// Dictionaries with zstd's tables for the stronger level, which nobody else needs: copies, so that the tables can be let
/// go when a pass is over.
#[derive(Default)]
pub(crate) struct Recompressor {
    dictionaries: HashMap<u32, Dictionary>,
    bytes: usize,
}

/// Result of recompressing a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recompression {
    /// The key is not eligible, must get another dictionary first, or has just been changed.
    Left,
    /// The stronger level was tried.
    Tried {
        /// Length of the value in bytes.
        len: usize,
        /// Whether the key is in memory only until it is on disk again.
        was_on_disk: bool,
    },
}

impl Recompressor {
    /// Returns the copy of a version with tables for this level. All copies together take no more than
    /// `limit` bytes, or there is only one.
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
        *self = Recompressor::default();
    }
}

impl Session {
    /// Shows keys that are cold from `cursor` on, out of about `count`; returns the next cursor, 0 at the
    /// end.
    ///
    /// # Errors
    /// Errors of [`Session::scan`].
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

    /// Encodes a cold key's value at the stronger level and keeps the smaller record. Whatever the result, it
    /// is not tried again until the value is written or re-encoded.
    ///
    /// # Errors
    /// Errors of [`Session::get`] and [`Session::read`], and the disk's error when it takes no writes; the
    /// key is as before.
    pub(crate) fn recompress(
        &mut self,
        cold: Cold,
        database: usize,
        key: &[u8],
        recompressor: &mut Recompressor,
    ) -> Result<Recompression, StoreError> {
        self.follow_settings();
        let Some(choice) = self.settings.recompresses_with() else { return Ok(Recompression::Left) };
        self.wait_for_the_disk()?;
        self.refuse_if_disk_does()?;
        let key = self.key(database, key);
        let Some((found, shard_version)) = self.store.find(key, self.now())? else {
            return Ok(Recompression::Left);
        };
        let value = Value(found);
        let current = value.record().and_then(|record| record.dictionary());
        let is_outdated =
            current.is_some_and(|number| !self.dictionaries.is_active(number) || self.is_excluded(key.bytes));
        let usual = CodecChoice::of(
            &self.dictionaries,
            &self.settings,
            self.excluded.as_ref(),
            key.bytes,
            value.len(),
        );
        let is_strong_enough =
            usual.choice.codec().id() == choice.codec().id() && usual.choice.level() >= choice.level();
        if is_outdated || is_strong_enough || !cold.has(value.0.borrow(), self.now()) {
            return Ok(Recompression::Left);
        }
        let version = usual.version.or_else(|| self.dictionaries.version(current?)).cloned();
        let mut bytes = Vec::new();
        self.read(&value, &mut bytes)?;
        let limit = self.settings.dictionaries.dictionaries_limit();
        let dictionary = match &version {
            Some(version) => recompressor
                .dictionary(version, choice.level(), limit)
                .map(|dictionary| (version.number(), dictionary)),
            None => None,
        };
        let old = value.0.borrow();
        let properties = old.properties();
        let overhead = entry::overhead(key.bytes.len(), properties.fields());
        let record = self.encoder.encode_with(choice, dictionary, &bytes, overhead, entry_allocation_size);
        let recompressed = Entry::recompressed(key.bytes, &record, properties);
        let saved = old.allocation_size().saturating_sub(recompressed.borrow().allocation_size());
        let entry = if saved > 0 { recompressed } else { old.copy_as_recompressed() };
        // A key that is on disk alone is in memory until it is there again.
        if self.store.disk().is_some() {
            self.has_room_for(entry.borrow().allocation_size() as u64)?;
        }
        let Some(presence) = self.replace_encoding(key, &value, shard_version, entry) else {
            return Ok(Recompression::Left);
        };
        self.store.recompression.tried(saved);
        Ok(Recompression::Tried { len: bytes.len(), was_on_disk: presence == Presence::Unknown })
    }
}
