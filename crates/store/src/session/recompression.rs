//! Values encoded anew for the stage that they have come to: to everybody but the disk, such a key has not changed.

use std::collections::HashMap;

use snugly_codec::{Choice, CodecId, Dictionary, Learned};

use super::encoding::CodecChoice;
use super::{Session, StoreError, Value};
use crate::dictionaries::set::Version;
use crate::entry::{self, Entry, EntryRef, Properties, Stage};
use crate::memory::shard::Presence;
use crate::recompression::{Cold, Task};
use crate::slab::entry_allocation_size;

/// Dictionaries with tables that nobody else needs: copies, so that the tables can be let go when a pass is over.
#[derive(Default)]
pub(crate) struct Recompressor {
    dictionaries: HashMap<u32, Dictionary>,
}

/// Result of recompressing a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recompression {
    /// The key has what it would get, must get another dictionary first, or has just been changed.
    Left,
    /// The value was encoded anew.
    Tried {
        /// Whether the key is in memory only until it is on disk again.
        was_on_disk: bool,
    },
}

impl Recompressor {
    /// Returns the copy of a version with tables for this choice. All copies together take no more than
    /// `limit` bytes, or there is only one.
    fn dictionary(&mut self, version: &Version, choice: Choice, limit: usize) -> Option<&Dictionary> {
        let number = version.number();
        let copy = match self.dictionaries.remove(&number) {
            Some(copy) => copy,
            None => Dictionary::load(version.dictionary().bytes()).ok()?,
        };
        let bytes = copy.memory_for(choice);
        if self.bytes() + bytes > limit {
            self.clear();
        }
        Some(self.dictionaries.entry(number).or_insert(copy))
    }

    /// Bytes that the copies take.
    pub(crate) fn bytes(&self) -> usize {
        self.dictionaries.values().map(Dictionary::memory_taken).sum()
    }

    pub(crate) fn clear(&mut self) {
        self.dictionaries.clear();
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

    /// Encodes a key's value with what the task asks for, and keeps the smaller record, or the one that takes less time to
    /// read if that is what it asks for. Whatever the result, this is not tried again until the value is written or
    /// re-encoded.
    ///
    /// # Errors
    /// Errors of [`Session::get`] and [`Session::read`], and the disk's error when it takes no writes; the
    /// key is as before.
    pub(crate) fn recompress(
        &mut self,
        task: Task,
        database: usize,
        key: &[u8],
        recompressor: &mut Recompressor,
    ) -> Result<Recompression, StoreError> {
        self.follow_settings();
        self.wait_for_the_disk()?;
        self.refuse_if_disk_does()?;
        let key = self.key(database, key);
        let Some((found, shard_version)) = self.store.find(key, self.now())? else {
            return Ok(Recompression::Left);
        };
        let value = Value(found);
        let Some(record) = value.record() else { return Ok(Recompression::Left) };
        let current = record.dictionary();
        let usual = CodecChoice::of(
            &self.dictionaries,
            &self.settings,
            self.excluded.as_ref(),
            key.bytes,
            value.len(),
        );
        let old = value.0.borrow();
        if self.is_outdated(key.bytes, current) {
            return Ok(Recompression::Left);
        }
        let Some(choice) = self.choice_for(task, old, record.codec(), &usual) else {
            return Ok(Recompression::Left);
        };
        let had_codec = record.codec();
        let grows_at_most = value.len().saturating_sub(record.payload().len());
        if matches!(task, Task::Promote(_)) && !self.has_free(grows_at_most) {
            // Its readers have to wait until there is room.
            return Ok(Recompression::Left);
        }
        let is_promotion = task.stage() == Stage::Settled && is_quicker(choice, record.codec());
        let version = usual.version.or_else(|| self.dictionaries.version(current?)).cloned();
        let mut bytes = Vec::new();
        self.read(&value, &mut bytes)?;
        let method = (choice, version.as_deref());
        let encoded = self.encode_at(task.stage(), method, key.bytes, &bytes, old.properties(), recompressor);
        let is_compressed =
            encoded.borrow().record().is_some_and(|record| record.codec() != CodecId::Identity);
        let (had, has) = (old.allocation_size(), encoded.borrow().allocation_size());
        let is_as_asked = is_compressed == choice.compresses();
        let is_kept = has < had || is_promotion && is_as_asked && self.has_free(has.saturating_sub(had));
        let entry = match (is_kept, task) {
            (true, _) => encoded,
            (false, Task::Promote(_)) => return Ok(Recompression::Left),
            // What no codec makes smaller is left alone from now on.
            (false, Task::Settle(_)) if had_codec == CodecId::Identity => old.copy_at_stage(Stage::Cold),
            (false, Task::Settle(_) | Task::Cool(_)) => old.copy_at_stage(task.stage()),
        };
        // A key that is on disk alone is in memory until it is there again.
        if self.store.disk().is_some() {
            self.has_room_for(entry.borrow().allocation_size() as u64)?;
        }
        let has = entry.borrow().allocation_size();
        let Some(presence) = self.replace_encoding(key, &value, shard_version, entry) else {
            return Ok(Recompression::Left);
        };
        self.store.recompression.tried(bytes.len(), had, has, is_kept && is_promotion);
        Ok(Recompression::Tried { was_on_disk: presence == Presence::Unknown })
    }

    /// Encodes a value for a stage, by the choice and with the dictionary of a method.
    pub(super) fn encode_at(
        &mut self,
        stage: Stage,
        (choice, version): (Choice, Option<&Version>),
        key: &[u8],
        value: &[u8],
        properties: Properties,
        recompressor: &mut Recompressor,
    ) -> Entry {
        let limit = self.settings.dictionaries.dictionaries_limit();
        let dictionary = choice.learned(Learned::Values, version).and_then(|version| {
            let copy = recompressor.dictionary(version, choice, limit)?;
            Some((version.number(), copy))
        });
        let overhead = entry::overhead(key.len(), properties.fields());
        let record = self.encoder.encode_with(choice, dictionary, value, overhead, entry_allocation_size);
        Entry::at_stage(stage, key, &record, properties)
    }

    /// Returns what an entry is encoded with for a task; `None` if it is not for this one, or has it already.
    fn choice_for(
        &self,
        task: Task,
        entry: EntryRef<'_>,
        codec: CodecId,
        usual: &CodecChoice<'_>,
    ) -> Option<Choice> {
        let kept = |rate| usual.kept(&self.settings, rate);
        match task {
            Task::Cool(cold) => {
                let choice = self.settings.recompresses_with()?;
                let is_strong_enough = usual.choice.codec().id() == choice.codec().id()
                    && usual.choice.level() >= choice.level();
                (!is_strong_enough && cold.has(entry, self.now())).then_some(choice)
            }
            Task::Settle(rate) => {
                let choice = kept(rate)?;
                let is_as_new = codec.without_dictionary() == choice.codec().id()
                    && choice.with_min_bytes(usual.choice.min_bytes()) == usual.choice;
                let is_due = match entry.stage() {
                    // It may have been written since it was found.
                    Stage::Written => codec != CodecId::Identity && entry.access().was_visited(),
                    Stage::Settled => codec == CodecId::Identity,
                    Stage::Cold => false,
                };
                (!is_as_new && is_due).then_some(choice)
            }
            Task::Promote(rate) => {
                let choice = kept(rate)?;
                is_quicker(choice, codec).then_some(choice)
            }
        }
    }

    /// Returns whether so many bytes more are within `max_memory` as it is.
    fn has_free(&self, more: usize) -> bool {
        let max_memory = self.settings.max_memory;
        max_memory == 0 || self.store.used_memory() + more as u64 <= max_memory
    }
}

/// Returns whether values encoded so take less time to read than those of this codec.
fn is_quicker(choice: Choice, codec: CodecId) -> bool {
    choice.codec().relative_speed() > codec.codec().relative_speed()
}
