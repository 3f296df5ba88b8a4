//! JSON from values.
//!
//! It knows how Lua CJSON tells arrays from objects and what it escapes, and nothing of the functions that scripts call.

use mlua::{Table, Value};

use super::super::functions::{Failure, truncated, type_name};
use super::super::{MAX_NESTING, MAX_RESULT, for_each_key};
use super::{InvalidNumbers, Settings, number};

/// Appends the value's JSON.
pub(super) fn append(out: &mut Vec<u8>, value: &Value, settings: &Settings) -> Result<(), Failure> {
    let max_depth = (settings.encode_max_depth as usize).min(MAX_NESTING);
    Encoder { out, settings, max_depth }.value(value, 0)
}

struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    settings: &'a Settings,
    max_depth: usize,
}

impl Encoder<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Failure> {
        match value {
            Value::Table(table) => self.table(table, depth + 1),
            value => self.leaf(value),
        }
    }

    /// Appends a value without others in it. Not inlined, as are the others that take place on the stack, so that the
    /// recursion takes little.
    #[inline(never)]
    fn leaf(&mut self, value: &Value) -> Result<(), Failure> {
        match value {
            Value::String(string) => append_string(self.out, &string.as_bytes()),
            Value::Integer(integer) => self.number(*integer as f64)?,
            Value::Number(number) => self.number(*number)?,
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Nil => self.out.extend_from_slice(b"null"),
            value if value.is_null() => self.out.extend_from_slice(b"null"),
            value => return Err(refused(type_name(value), "type not supported")),
        }
        Ok(())
    }

    fn number(&mut self, number: f64) -> Result<(), Failure> {
        match self.settings.encode_invalid_numbers {
            _ if number.is_finite() => number::append(self.out, number, self.settings.precision),
            InvalidNumbers::Refused => return Err(refused("number", "must not be NaN or Inf")),
            InvalidNumbers::Null => self.out.extend_from_slice(b"null"),
            InvalidNumbers::Written if number.is_nan() => self.out.extend_from_slice(b"nan"),
            InvalidNumbers::Written if number < 0.0 => self.out.extend_from_slice(b"-inf"),
            InvalidNumbers::Written => self.out.extend_from_slice(b"inf"),
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<(), Failure> {
        match self.array_len(table, depth)? {
            Some(len) if len > 0 => {
                self.out.push(b'[');
                for index in 1..=len {
                    let value = self.element(table, index)?;
                    self.value(&value, depth)?;
                }
                self.out.push(b']');
            }
            _ => {
                self.out.push(b'{');
                let begin = self.out.len();
                let mut entries = table.pairs();
                while let Some(value) = self.entry(&mut entries, begin)? {
                    self.value(&value, depth)?;
                }
                self.out.push(b'}');
            }
        }
        Ok(())
    }

    /// Appends what is before an element of an array, and returns the element.
    #[inline(never)]
    fn element(&mut self, table: &Table, index: i32) -> Result<Value, Failure> {
        if index > 1 {
            self.out.push(b',');
        }
        self.check_len()?;
        Ok(table.raw_get(index)?)
    }

    /// Appends what is before the next value of an object that begins at this byte, and returns the value.
    #[inline(never)]
    fn entry<I>(&mut self, entries: &mut I, begin: usize) -> Result<Option<Value>, Failure>
    where
        I: Iterator<Item = mlua::Result<(Value, Value)>>,
    {
        let Some(entry) = entries.next() else { return Ok(None) };
        let (key, value) = entry?;
        if self.out.len() > begin {
            self.out.push(b',');
        }
        self.check_len()?;
        self.key(&key)?;
        Ok(Some(value))
    }

    fn check_len(&self) -> Result<(), Failure> {
        if self.out.len() > MAX_RESULT {
            return Err(too_large());
        }
        Ok(())
    }

    /// The greatest index, if there are no other keys than indices and not too many are missing.
    #[inline(never)]
    fn array_len(&self, table: &Table, depth: usize) -> Result<Option<i32>, Failure> {
        if depth > self.max_depth {
            return Err(Failure::message(format!("Cannot serialise, excessive nesting ({depth})")));
        }
        let (mut max, mut count, mut indices) = (0, 0_i64, true);
        for_each_key(table, |key| {
            let index = index_of(key);
            match index {
                Some(index) if index > f64::from(max) => max = to_int(index),
                _ => {}
            }
            count += 1;
            indices = index.is_some();
            indices
        })?;
        if !indices {
            return Ok(None);
        }
        let ratio = i64::from(self.settings.sparse_ratio);
        let sparse = ratio > 0 && i64::from(max) > count * ratio && max > self.settings.sparse_safe;
        if sparse && !self.settings.sparse_convert {
            return Err(refused("table", "excessively sparse array"));
        }
        // An element has two bytes at least.
        if !sparse && max > 0 && max as usize > MAX_RESULT / 2 {
            return Err(too_large());
        }
        Ok((!sparse).then_some(max))
    }

    fn key(&mut self, key: &Value) -> Result<(), Failure> {
        let number = match key {
            Value::String(string) => {
                append_string(self.out, &string.as_bytes());
                self.out.push(b':');
                return Ok(());
            }
            Value::Integer(integer) => *integer as f64,
            Value::Number(number) => *number,
            key => return Err(refused(type_name(key), "table key must be a number or string")),
        };
        self.out.push(b'"');
        self.number(number)?;
        self.out.extend_from_slice(b"\":");
        Ok(())
    }
}

/// The key, if it is an integer from one on.
fn index_of(key: &Value) -> Option<f64> {
    let index = match key {
        Value::Integer(index) => *index as f64,
        Value::Number(index) => *index,
        _ => return None,
    };
    (index.floor() == index && index >= 1.0).then_some(index)
}

fn too_large() -> Failure {
    Failure::message("Cannot serialise: the JSON is larger than 512 MB")
}

fn refused(type_name: &str, reason: &str) -> Failure {
    Failure::message(format!("Cannot serialise {type_name}: {reason}"))
}

/// What C makes of a number as an `int` on x86-64: the smallest one of all that do not fit.
fn to_int(number: f64) -> i32 {
    i32::try_from(truncated(number)).unwrap_or(i32::MIN)
}

/// The letter after the backslash of bytes that are escaped, `u` for those that are written as numbers, zero for others.
const ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    let mut control = 0;
    while control < 0x20 {
        escapes[control] = b'u';
        control += 1;
    }
    escapes[0x7f] = b'u';
    escapes[0x08] = b'b';
    escapes[b'\t' as usize] = b't';
    escapes[b'\n' as usize] = b'n';
    escapes[0x0c] = b'f';
    escapes[b'\r' as usize] = b'r';
    escapes[b'"' as usize] = b'"';
    escapes[b'/' as usize] = b'/';
    escapes[b'\\' as usize] = b'\\';
    escapes
};

fn append_string(out: &mut Vec<u8>, bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut rest = bytes;
    while let Some(plain) = rest.iter().position(|byte| ESCAPES[usize::from(*byte)] != 0) {
        let byte = rest[plain];
        out.extend_from_slice(&rest[..plain]);
        match ESCAPES[usize::from(byte)] {
            b'u' => {
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digits[0], digits[1]]);
            }
            letter => out.extend_from_slice(&[b'\\', letter]),
        }
        rest = &rest[plain + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}
