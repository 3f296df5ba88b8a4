//! Values that go to other keys as they are stored, and what is told of a key's use: nothing is encoded or decoded.

use super::{Session, StoreError, Value};
use crate::memory::entry::{Access, Entry};
use crate::quicklist::{List, NodeError};
use crate::session::Expiry;

/// How a key was used before, for [`Session::set_usage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// It was last used so many seconds ago.
    IdleSeconds(u64),
    /// It was used so often lately, counted up to the cap of the eviction policy.
    Frequency(u8),
}

impl Session {
    /// Gives the key `to` the value of the key `from` as it is stored, and its expiry; says whether there was one. Each
    /// is a database and a key. Both keys are to be held ([`Session::exclusively`]) if it shall be one step.
    ///
    /// # Errors
    /// As [`Session::set`] and [`Session::get`]; then nothing has changed.
    pub fn copy(&mut self, from: (usize, &[u8]), to: (usize, &[u8])) -> Result<bool, StoreError> {
        let Some(value) = self.peek(from.0, from.1)? else { return Ok(false) };
        let value = self.fork(value)?;
        self.put_copy(&value, to, 0)?;
        Ok(true)
    }

    /// As [`Session::copy`], and removes the key `from`. Memory has to be found only for what the new key takes more.
    ///
    /// # Errors
    /// As [`Session::copy`].
    pub fn rename(&mut self, from: (usize, &[u8]), to: (usize, &[u8])) -> Result<bool, StoreError> {
        // As one step: the list of both is accounted for twice in between, and its nodes are on disk once.
        self.exclusively([from.1, to.1].into_iter(), |session| {
            let Some(value) = session.peek(from.0, from.1)? else { return Ok(false) };
            if from != to {
                session.put_copy(&value, to, value.memory())?;
                session.forget(from.0, from.1);
            }
            Ok(true)
        })
    }

    /// The same value, to become another key's: a list is a list of its own, which shares nodes as long as they do not change.
    fn fork(&self, value: Value) -> Result<Value, StoreError> {
        let entry = value.0.borrow();
        let Some(list) = entry.list() else { return Ok(value) };
        let mut read = |node| self.store.load_node(node)?.ok_or(NodeError::Damaged);
        let copy = list.lock().fork(&mut read).map_err(|error| error.of(value.key()))?;
        Ok(Value(Entry::list(entry.key(), List::new(copy), entry.expiry(), entry.access())))
    }

    /// Writes a value under another key, where `freed` bytes are about to be freed.
    fn put_copy(&mut self, value: &Value, to: (usize, &[u8]), freed: usize) -> Result<(), StoreError> {
        self.follow_settings();
        self.wait_for_the_disk()?;
        let (database, key) = to;
        self.check_key(key)?;
        let now = self.now();
        let entry = value.0.borrow().copy(key, value.expiry(), Access::written(now));
        let need = entry.borrow().allocation_size().saturating_sub(freed);
        let roomy = need == 0 || self.has_room_for(need as u64)?;
        let place = self.store.keyspace.place(key);
        let mut shard = self.store.keyspace.lock(place.shard);
        let presence = shard.locate(database, place.tag, key, now);
        let size = presence.live().map(|index| shard.entry(database, index).allocation_size());
        self.admit(roomy, &entry, size)?;
        let expiry = value.expiry().map_or(Expiry::Never, Expiry::At);
        let before = self.put(&mut shard, database, place, presence, entry, expiry);
        drop(shard);
        drop(before);
        self.wrote();
        Ok(())
    }

    /// Removes a key without asking the disk what it was.
    fn forget(&mut self, database: usize, key: &[u8]) {
        let place = self.store.keyspace.place(key);
        let mut shard = self.store.keyspace.lock(place.shard);
        let removed = match shard.locate(database, place.tag, key, self.now()).live() {
            Some(index) => Some(shard.remove(database, index)),
            None => {
                shard.bury(database, place.tag, key);
                None
            }
        };
        drop(shard);
        drop(removed);
        self.wrote();
    }

    /// Lets a key look as if it had been used so.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn set_usage(&mut self, database: usize, key: &[u8], usage: Usage) -> Result<(), StoreError> {
        self.follow_settings();
        if let Some(value) = self.peek(database, key)? {
            let entry = value.0.borrow();
            let access = match usage {
                Usage::IdleSeconds(seconds) => {
                    Access::idle(self.now(), seconds).with_frequency(entry.access().frequency())
                }
                Usage::Frequency(frequency) => {
                    entry.access().with_frequency(frequency.min(self.settings.eviction.frequency_cap()))
                }
            };
            entry.set_access(access);
        }
        Ok(())
    }
}
