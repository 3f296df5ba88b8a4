//! Arguments of JavaScript as bytes.

use std::borrow::Cow;

use napi::bindgen_prelude::{Array, BufferSlice, FromNapiValue, Unknown};
use napi::{JsValue, ValueType};
use snugly_commands::Arguments;

/// The words of a command: its name, and the arguments of an array from one of them on.
pub(crate) struct Words<'a, 'env> {
    name: &'a [u8],
    args: &'a Array<'env>,
    from: usize,
}

impl<'a, 'env> Words<'a, 'env> {
    /// `from` is the number of words in the array that are the name.
    pub fn new(name: &'a str, args: &'a Array<'env>, from: usize) -> Words<'a, 'env> {
        Words { name: name.as_bytes(), args, from }
    }

    /// Returns the index in the array of the word at a position, which is not the name's.
    pub fn index(&self, at: usize) -> u32 {
        (at - 1 + self.from) as u32
    }

    /// Returns the argument at a position, which is not the name's.
    pub fn argument(&self, at: usize) -> napi::Result<Option<Unknown<'_>>> {
        self.args.get(self.index(at))
    }
}

impl Arguments for Words<'_, '_> {
    fn len(&self) -> usize {
        1 + (self.args.len() as usize).saturating_sub(self.from)
    }

    fn get(&self, at: usize) -> Cow<'_, [u8]> {
        if at == 0 {
            return Cow::Borrowed(self.name);
        }
        let argument = self.argument(at).ok().flatten();
        Cow::Owned(argument.and_then(|argument| bytes(&argument).ok().flatten()).unwrap_or_default())
    }
}

/// Returns the bytes of a string, as UTF-8, or of a Buffer; `None` for what is neither.
pub(crate) fn bytes(argument: &Unknown<'_>) -> napi::Result<Option<Vec<u8>>> {
    Ok(match argument.get_type()? {
        ValueType::String => Some(text(argument)?.into_bytes()),
        ValueType::Object if argument.is_buffer()? => Some(slice(argument)?.to_vec()),
        _ => None,
    })
}

/// Returns a string.
pub(crate) fn text(argument: &Unknown<'_>) -> napi::Result<String> {
    let value = argument.value();
    // SAFETY: the value is of this environment, and alive while `argument` is.
    unsafe { String::from_napi_value(value.env, value.value) }
}

/// Returns the bytes of a Buffer, in place.
pub(crate) fn slice<'a>(argument: &'a Unknown<'_>) -> napi::Result<BufferSlice<'a>> {
    let value = argument.value();
    // SAFETY: the value is of this environment, and alive while `argument` is.
    unsafe { BufferSlice::from_napi_value(value.env, value.value) }
}
