//! A command before it is looked up.

use std::ffi::c_int;
use std::marker::PhantomData;

use super::table::{self, FilterCtx, Str, functions};
use super::text::{OwnedText, Text};

/// The arguments of a command, its name first, and the client that has sent it.
pub struct FilterContext<'a> {
    raw: *mut FilterCtx,
    kept: PhantomData<&'a FilterCtx>,
}

impl FilterContext<'_> {
    /// The context of a filter that runs.
    ///
    /// # Safety
    /// The server has handed it to the filter, and has not got control back since.
    pub unsafe fn from_raw(raw: *mut FilterCtx) -> Self {
        FilterContext { raw, kept: PhantomData }
    }

    /// Number of arguments.
    pub fn len(&self) -> usize {
        // SAFETY: the context is that of the running filter.
        unsafe { (functions().CommandFilterArgsCount)(self.raw) as usize }
    }

    /// The argument at this position, which is smaller than the number of arguments.
    pub fn get(&self, at: usize) -> Text<'_> {
        // SAFETY: as above; the command keeps the argument until it is replaced, which takes `&mut self`.
        unsafe { Text::from_raw((functions().CommandFilterArgGet)(self.raw, at as c_int)) }
    }

    /// All arguments.
    pub fn all(&self) -> Vec<*mut Str> {
        (0..self.len()).map(|at| self.get(at).raw()).collect()
    }

    /// Puts another one in its place.
    pub fn replace(&mut self, at: usize, argument: OwnedText) {
        let raw = argument.into_raw();
        // SAFETY: as above; the command frees what was there, and owns what is there now.
        let replaced = unsafe { (functions().CommandFilterArgReplace)(self.raw, at as c_int, raw) };
        debug_assert_eq!(replaced, table::OK, "there is an argument at {at}");
    }

    /// Identity of the client.
    pub fn client(&self) -> u64 {
        // SAFETY: as above.
        unsafe { (functions().CommandFilterGetClientId)(self.raw) }
    }
}
