//! Copies of stored values to other keys, and access statistics set by callers: nothing is encoded or
//! decoded.

use super::commit::{Precondition, Write};
use super::{Session, StoreError, Value};
use crate::entry::{Access, Entry, Properties};
use crate::key::Key;
use crate::session::Expiry;

/// Earlier use of a key, for [`Session::set_usage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Seconds since the last use.
    IdleSeconds(u64),
    /// Frequency of recent use, counted up to the cap of the eviction policy.
    Frequency(u8),
}

impl Session {
    /// Copies the value of the key `from`, as it is stored, and its expiry to the key `to`; returns whether
    /// there was one. Each is a database and a key. Both keys must be held ([`Session::exclusively`]) for it
    /// to be atomic.
    ///
    /// # Errors
    /// Errors of [`Session::set`] and [`Session::get`]; then nothing has changed.
    pub fn copy(&mut self, from: (usize, &[u8]), to: (usize, &[u8])) -> Result<bool, StoreError> {
        let Some(value) = self.peek(from.0, from.1)? else { return Ok(false) };
        let value = self.fork(value)?;
        self.put_copy(&value, self.key(to.0, to.1), 0)?;
        Ok(true)
    }

    /// Like [`Session::copy`], and removes the key `from`. Memory is needed only for what the new key takes
    /// more.
    ///
    /// # Errors
    /// Errors of [`Session::copy`].
    pub fn rename(&mut self, from: (usize, &[u8]), to: (usize, &[u8])) -> Result<bool, StoreError> {
        // In one step: in between, a collection of both is accounted for twice, and its nodes are on disk
        // once.
        let is_other = from != to;
        let (from, to) = (self.key(from.0, from.1), self.key(to.0, to.1));
        self.holding_keys([from.hash, to.hash].into_iter(), |session| {
            let Some(value) = session.peek_at(from)? else { return Ok(false) };
            if is_other {
                session.put_copy(&value, to, value.memory())?;
                session.forget(from);
            }
            Ok(true)
        })
    }

    /// Forks the value for another key: a collection becomes a new one, which shares nodes as long as they do
    /// not change.
    fn fork(&self, value: Value) -> Result<Value, StoreError> {
        let entry = value.0.borrow();
        let Some(collection) = entry.collection() else { return Ok(value) };
        let mut read = self.store.node_reader(self.settings.most_read());
        let copy = collection.lock().fork(&mut read).map_err(|error| self.node_error(error, value.key()))?;
        Ok(Value(Entry::of_collection(entry.key(), copy, entry.expiry(), entry.access())))
    }

    /// Writes a value under another key, where `freed` bytes are about to be freed.
    fn put_copy(&mut self, value: &Value, key: Key<'_>, freed: usize) -> Result<(), StoreError> {
        let expiry = value.expiry().map_or(Expiry::Never, Expiry::At);
        let write = Write { precondition: Precondition::Nothing, expiry, freed };
        self.commit(key, write, |session| {
            let properties = Properties {
                expiry: value.expiry(),
                access: Access::written(session.now()),
                metadata: value.metadata().of_another_state(),
            };
            Ok::<_, StoreError>(match value.plain().filter(|_| value.0.borrow().is_draft()) {
                Some(bytes) => session.encode_again(key.bytes, bytes, properties),
                None => value.0.borrow().copy(key.bytes, properties),
            })
        })?;
        if let Some(list) = value.0.borrow().collection_handle() {
            self.wait_under(key, &list);
        }
        Ok(())
    }

    /// Removes a key without asking the disk what it was, unless a snapshot needs to know.
    fn forget(&mut self, key: Key<'_>) {
        let mut place = self.enter_blindly(key).unwrap_or_else(|_| self.enter_in_memory(key));
        place.remove();
        let left = place.leave();
        self.finish(left);
    }

    /// Sets the access statistics of a key.
    ///
    /// # Errors
    /// Errors of [`Session::get`].
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
