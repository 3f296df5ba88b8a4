//! A key and its value, if it is a string.

use std::ffi::c_int;
use std::time::Duration;
use std::{ptr, slice};

use super::context::Context;
use super::table::{self, Key, functions};
use super::text::Text;

/// A key that is open until this is dropped.
pub struct OpenKey(*mut Key);

/// A look that leaves no trace: neither use, hits and misses, nor expiry.
const LOOK: c_int =
    table::READ | table::NO_EFFECTS | table::NO_TOUCH | table::NO_NOTIFY | table::NO_STATS | table::NO_EXPIRE;

impl OpenKey {
    /// Opens a key for reading, which counts as its use.
    pub fn read(context: Context, name: Text<'_>) -> Option<OpenKey> {
        OpenKey::open(context, name, table::READ)
    }

    /// Opens a key for a look that nobody notices.
    pub fn look(context: Context, name: Text<'_>) -> Option<OpenKey> {
        OpenKey::open(context, name, LOOK)
    }

    /// Opens a key to put the same value into it in another form, which nobody notices either.
    pub fn rewrite(context: Context, name: Text<'_>) -> Option<OpenKey> {
        // Read as well: a key that is opened for writing alone need not be there.
        OpenKey::open(context, name, LOOK | table::WRITE)
    }

    fn open(context: Context, name: Text<'_>, mode: c_int) -> Option<OpenKey> {
        // SAFETY: the context and the name are the server's, and alive.
        let raw = unsafe { (functions().OpenKey)(context.raw(), name.raw(), mode) };
        (!raw.is_null()).then(|| OpenKey(raw))
    }

    /// Type of the value, one of the table's `KEY_TYPE_...`.
    pub fn kind(&self) -> i32 {
        // SAFETY: the key is open.
        unsafe { (functions().KeyType)(self.0) }
    }

    /// Whether the value is a string.
    pub fn is_string(&self) -> bool {
        self.kind() == table::KEY_TYPE_STRING
    }

    /// Length of the string, in bytes.
    pub fn len(&self) -> usize {
        // SAFETY: the key is open.
        unsafe { (functions().ValueLength)(self.0) }
    }

    /// The string's bytes. Only for one that is stored raw, as long ones are: any other would become raw.
    pub fn bytes(&self) -> &[u8] {
        let mut len = 0;
        // SAFETY: the key is open, and its value stays where it is until it is replaced, which takes `&mut self`, or
        // until somebody else runs a command, which nobody does while the key is borrowed.
        let start = unsafe { (functions().StringDMA)(self.0, &mut len, table::READ) };
        if start.is_null() {
            return &[];
        }
        // SAFETY: the server says that so many bytes are there.
        unsafe { slice::from_raw_parts(start.cast(), len) }
    }

    /// Time since the key was last used; `None` where the server counts uses instead (`maxmemory-policy` with `lfu`).
    pub fn idle(&self) -> Option<Duration> {
        let mut milliseconds = 0;
        // SAFETY: the key is open.
        let known = unsafe { (functions().GetLRU)(self.0, &mut milliseconds) } == table::OK;
        u64::try_from(milliseconds).ok().filter(|_| known).map(Duration::from_millis)
    }

    /// As [`replace`](OpenKey::replace), in an allocation of this length. The server doubles the allocation of a string that
    /// grows, and keeps that of one that shrinks by less than half; so the string is cut to one byte first, and then grows by
    /// one byte too many, which makes it give back what it has doubled.
    pub fn replace_for_long(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        for len in [1, bytes.len() + 1] {
            // SAFETY: the key is open for writing.
            if unsafe { (functions().StringTruncate)(self.0, len) } != table::OK {
                return Err(TooLong);
            }
        }
        self.replace(bytes)
    }

    /// Puts other bytes in the place of the string's; the key keeps its expiry and its place among those to evict.
    /// Fails where the server allows no string of this length.
    pub fn replace(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let mut len = 0;
        // SAFETY: the key is open for writing.
        let truncated = unsafe { (functions().StringTruncate)(self.0, bytes.len()) };
        if truncated != table::OK {
            return Err(TooLong);
        }
        // SAFETY: as above; the server copies the string first if somebody else reads it at this time.
        let start = unsafe { (functions().StringDMA)(self.0, &mut len, table::WRITE) };
        if start.is_null() || len != bytes.len() {
            return Err(TooLong);
        }
        // SAFETY: so many bytes are there, only this key has them, and `bytes` are not among them: they are borrowed
        // while the key is borrowed for changing it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast(), len) };
        Ok(())
    }
}

/// The server allows no string of this length.
#[derive(Debug)]
pub struct TooLong;

impl Drop for OpenKey {
    fn drop(&mut self) {
        // SAFETY: the key is open.
        unsafe { (functions().CloseKey)(self.0) }
    }
}
