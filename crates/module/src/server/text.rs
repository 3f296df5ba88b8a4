//! Strings of the server.

use std::marker::PhantomData;
use std::{ptr, slice};

use super::table::{Str, functions};

/// A string that somebody else keeps.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    raw: *mut Str,
    kept: PhantomData<&'a Str>,
}

impl<'a> Text<'a> {
    /// The string behind this pointer.
    ///
    /// # Safety
    /// It is one of the server's, and lives as long as `'a`.
    pub unsafe fn from_raw(raw: *mut Str) -> Text<'a> {
        Text { raw, kept: PhantomData }
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        let mut len = 0;
        // SAFETY: the string lives as long as 'a, and nobody changes it: arguments of commands never are.
        unsafe { slice::from_raw_parts((functions().StringPtrLen)(self.raw, &mut len).cast(), len) }
    }

    /// One more owner of it.
    pub fn to_owned(self) -> OwnedText {
        // SAFETY: the string lives; without a context its new owner is the caller.
        OwnedText(unsafe { (functions().HoldString)(ptr::null_mut(), self.raw) })
    }

    /// The slot of a cluster that a key of this name is in.
    pub fn slot(self) -> u32 {
        // SAFETY: the string lives.
        unsafe { (functions().ClusterKeySlot)(self.raw) }
    }

    /// The pointer to it.
    pub fn raw(self) -> *mut Str {
        self.raw
    }
}

/// A string that the module keeps, until it is dropped or handed over.
pub struct OwnedText(*mut Str);

impl OwnedText {
    /// A string of these bytes.
    pub fn new(bytes: &[u8]) -> OwnedText {
        // SAFETY: the server copies the bytes; without a context the string is the caller's to free.
        OwnedText(unsafe { (functions().CreateString)(ptr::null_mut(), bytes.as_ptr().cast(), bytes.len()) })
    }

    /// The string behind this pointer, if it is not null.
    ///
    /// # Safety
    /// The server has handed it over to the caller.
    pub unsafe fn from_raw(raw: *mut Str) -> Option<OwnedText> {
        (!raw.is_null()).then(|| OwnedText(raw))
    }

    /// One more owner of it.
    pub fn held(&self) -> OwnedText {
        self.as_text().to_owned()
    }

    /// The string, borrowed.
    pub fn as_text(&self) -> Text<'_> {
        // SAFETY: it lives as long as this owner.
        unsafe { Text::from_raw(self.0) }
    }

    /// The pointer, whose owner is now the caller.
    pub fn into_raw(self) -> *mut Str {
        let raw = self.0;
        std::mem::forget(self);
        raw
    }
}

impl Drop for OwnedText {
    fn drop(&mut self) {
        // SAFETY: this owner has not given it away.
        unsafe { (functions().FreeString)(ptr::null_mut(), self.0) }
    }
}
