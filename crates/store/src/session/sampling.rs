//! Values that are in the store already, for those who learn dictionaries.

use super::{Session, StoreError, Value};
use crate::dictionaries::Dictionaries;

impl Session {
    /// Lets those who learn dictionaries see a key's value. To everybody else nothing changes, and the key is not taken
    /// into memory if it is only on disk.
    ///
    /// # Errors
    /// What the disk says if it cannot be read. A value that is damaged is passed over.
    pub(crate) fn show_existing(&mut self, database: usize, key: &[u8]) -> Result<(), StoreError> {
        let place = self.store.keyspace.place(key);
        let value = match self.store.find(database, place, key, self.now()) {
            Ok(Some((entry, _))) => Value(entry),
            Ok(None) | Err(StoreError::Damaged { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        if !self.settings.learns() || !Dictionaries::wants(value.len()) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        if self.read(&value, &mut bytes).is_ok() {
            self.store.dictionaries.offer(key, &bytes, 1);
        }
        Ok(())
    }
}
