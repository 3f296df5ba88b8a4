//! A walk over all keys of a database, a few at a time.

use std::ffi::c_void;

use super::context::Context;
use super::table::{Ctx, Key, ScanCursor, Str, functions};
use super::text::{OwnedText, Text};

/// The place of a walk. Keys that are there all the time are met once at least, as with SCAN.
pub struct Scan(*mut ScanCursor);

impl Scan {
    /// A walk that has not begun.
    pub fn new() -> Scan {
        // SAFETY: takes nothing; the cursor is the caller's.
        Scan(unsafe { (functions().ScanCursorCreate)() })
    }

    /// Begins anew.
    pub fn restart(&mut self) {
        // SAFETY: the cursor lives.
        unsafe { (functions().ScanCursorRestart)(self.0) };
    }

    /// Adds the names of the next keys of the selected database. Returns whether there may be more.
    pub fn next(&mut self, context: Context, names: &mut Vec<OwnedText>) -> bool {
        let names: *mut Vec<OwnedText> = names;
        // SAFETY: all live until this returns, and `add` takes what `names` points to.
        unsafe { (functions().Scan)(context.raw(), self.0, add, names.cast()) != 0 }
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        // SAFETY: the cursor lives.
        unsafe { (functions().ScanCursorDestroy)(self.0) }
    }
}

unsafe extern "C" fn add(_context: *mut Ctx, name: *mut Str, _key: *mut Key, names: *mut c_void) {
    // SAFETY: `next` has given the vector, and the server the name, which is its own.
    unsafe {
        let name = Text::from_raw(name).to_owned();
        (*names.cast::<Vec<OwnedText>>()).push(name);
    }
}
