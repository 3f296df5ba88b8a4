//! The reply to a command that the module has called.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::slice;

use super::table::{self, functions};

/// A reply, or an element of one.
pub struct CallReply<'a> {
    raw: *mut table::CallReply,
    kept: PhantomData<&'a table::CallReply>,
}

impl<'a> CallReply<'a> {
    /// The reply behind this pointer, if it is not null; freed with this.
    ///
    /// # Safety
    /// The server has handed it over to the caller.
    pub unsafe fn from_raw(raw: *mut table::CallReply) -> Option<CallReply<'a>> {
        (!raw.is_null()).then(|| CallReply { raw, kept: PhantomData })
    }

    /// The pointer to it.
    pub fn raw(&self) -> *mut table::CallReply {
        self.raw
    }

    fn kind(&self) -> i32 {
        // SAFETY: the reply lives.
        unsafe { (functions().CallReplyType)(self.raw) }
    }

    /// The text of an error.
    pub fn error(&self) -> Option<&[u8]> {
        (self.kind() == table::REPLY_ERROR).then(|| self.bytes())
    }

    /// The bytes of a string.
    pub fn string(&self) -> Option<&[u8]> {
        (self.kind() == table::REPLY_STRING).then(|| self.bytes())
    }

    fn bytes(&self) -> &[u8] {
        let mut len = 0;
        // SAFETY: the reply lives, and keeps its bytes.
        let start = unsafe { (functions().CallReplyStringPtr)(self.raw, &mut len) };
        if start.is_null() {
            return &[];
        }
        // SAFETY: the server says that so many bytes are there.
        unsafe { slice::from_raw_parts(start.cast(), len) }
    }

    /// Number of elements of an array.
    pub fn array(&self) -> Option<usize> {
        // SAFETY: the reply lives.
        (self.kind() == table::REPLY_ARRAY).then(|| unsafe { (functions().CallReplyLength)(self.raw) })
    }

    /// An element of an array; it goes with the array.
    pub fn element(&self, at: usize) -> Option<ManuallyDrop<CallReply<'_>>> {
        // SAFETY: the reply lives, and keeps its elements.
        let raw = unsafe { (functions().CallReplyArrayElement)(self.raw, at) };
        // SAFETY: it is not freed: that is what the array does.
        unsafe { CallReply::from_raw(raw) }.map(ManuallyDrop::new)
    }
}

impl Drop for CallReply<'_> {
    fn drop(&mut self) {
        // SAFETY: the reply lives, and is no element.
        unsafe { (functions().FreeCallReply)(self.raw) }
    }
}
