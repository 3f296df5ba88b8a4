//! lua-cmsgpack 0.4.0: values as MessagePack, and back.
//!
//! It knows how the original tells arrays from maps and integers from floats, which nesting it packs, and its errors. It
//! must not know the other libraries.

use mlua::{Lua, MultiValue, Table, Value};

use super::functions::{Arguments, Failure, define};
use super::{MAX_NESTING, MAX_RESULT, MAX_RESULTS, for_each_key};

/// Tables that are nested deeper are packed as nil.
const PACKED_NESTING: usize = 16;

/// The table `cmsgpack`.
pub(super) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    define(lua, &table, "pack", pack)?;
    define(lua, &table, "unpack", |arguments| unpack(arguments, 0, 0))?;
    define(lua, &table, "unpack_one", |arguments| {
        let offset = arguments.integer_or(2, 0)?;
        unpack(arguments, 1, offset)
    })?;
    define(lua, &table, "unpack_limit", |arguments| {
        let limit = arguments.integer(2)?;
        let offset = arguments.integer_or(3, 0)?;
        unpack(arguments, limit, offset)
    })?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Redis Ltd.")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    Ok(table)
}

fn pack(arguments: &Arguments) -> Result<Value, Failure> {
    if arguments.len() == 0 {
        return Err(Failure::argument(0, "MessagePack pack needs input."));
    }
    let mut out = Vec::new();
    for position in 1..=arguments.len() {
        put(&mut out, arguments.get(position).unwrap_or(&Value::Nil), 0)?;
    }
    Ok(Value::String(arguments.lua.create_string(&out)?))
}

fn put(out: &mut Vec<u8>, value: &Value, level: usize) -> Result<(), Failure> {
    if out.len() > MAX_RESULT {
        return Err(Failure::message("MessagePack larger than 512 MB"));
    }
    match value {
        Value::String(string) => put_string(out, &string.as_bytes())?,
        Value::Boolean(boolean) => out.push(if *boolean { 0xc3 } else { 0xc2 }),
        Value::Integer(integer) => put_integer(out, *integer),
        Value::Number(number) => put_number(out, *number),
        Value::Table(table) if level < PACKED_NESTING => put_table(out, table, level)?,
        _ => out.push(0xc0),
    }
    Ok(())
}

fn put_string(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Failure> {
    match bytes.len() {
        len @ 0..32 => out.push(0xa0 | len as u8),
        len @ 32..0x100 => out.extend_from_slice(&[0xd9, len as u8]),
        len => put_len(out, [0xda, 0xdb], len)?,
    }
    out.extend_from_slice(bytes);
    Ok(())
}

/// Puts a length of two or four bytes after the byte for each.
fn put_len(out: &mut Vec<u8>, heads: [u8; 2], len: usize) -> Result<(), Failure> {
    if let Ok(len) = u16::try_from(len) {
        out.push(heads[0]);
        out.extend_from_slice(&len.to_be_bytes());
    } else {
        let len = u32::try_from(len).map_err(|_| Failure::message("a value is too long for MessagePack"))?;
        out.push(heads[1]);
        out.extend_from_slice(&len.to_be_bytes());
    }
    Ok(())
}

fn put_integer(out: &mut Vec<u8>, integer: i64) {
    let bytes = integer.to_be_bytes();
    let (head, len) = match integer {
        -32..=0x7f => return out.push(integer as u8),
        0x80..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -0x80..=-33 => (0xd0, 1),
        -0x8000..=-0x81 => (0xd1, 2),
        -0x8000_0000..=-0x8001 => (0xd2, 4),
        ..=-0x8000_0001 => (0xd3, 8),
    };
    out.push(head);
    out.extend_from_slice(&bytes[8 - len..]);
}

/// Puts an integer if the number is one, a float if that is as exact, or a double.
fn put_number(out: &mut Vec<u8>, number: f64) {
    if let Some(integer) = whole(number) {
        put_integer(out, integer);
    } else if f64::from(number as f32) == number {
        out.push(0xca);
        out.extend_from_slice(&(number as f32).to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn whole(number: f64) -> Option<i64> {
    const LIMIT: f64 = (1_u64 << 63) as f64;
    ((-LIMIT..LIMIT).contains(&number) && number.trunc() == number).then_some(number as i64)
}

fn put_table(out: &mut Vec<u8>, table: &Table, level: usize) -> Result<(), Failure> {
    let (count, array) = shape(table)?;
    if array {
        put_count(out, 0x90, [0xdc, 0xdd], count)?;
        for index in 1..=count {
            put(out, &table.raw_get(index)?, level + 1)?;
        }
    } else {
        put_count(out, 0x80, [0xde, 0xdf], count)?;
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            put(out, &key, level + 1)?;
            put(out, &value, level + 1)?;
        }
    }
    Ok(())
}

fn put_count(out: &mut Vec<u8>, short: u8, heads: [u8; 2], count: usize) -> Result<(), Failure> {
    if count < 16 {
        out.push(short | count as u8);
        return Ok(());
    }
    put_len(out, heads, count)
}

/// The count of the table's keys, and whether they are the integers from one up to it.
fn shape(table: &Table) -> Result<(usize, bool), Failure> {
    let (mut count, mut max, mut indices) = (0, 0, true);
    for_each_key(table, |key| {
        match key {
            Value::Integer(index @ 1..=0x7fff_ffff) => max = max.max(*index),
            _ => indices = false,
        }
        count += 1;
        true
    })?;
    Ok((count, indices && max as usize == count))
}

/// The values of the first argument, up to a limit and from an offset on, after the offset of the next ones. Without
/// both, all of the values and no offset.
fn unpack(arguments: &Arguments, limit: i64, offset: i64) -> Result<MultiValue, Failure> {
    let packed = arguments.string(1)?;
    let packed = packed.as_bytes();
    if offset < 0 || limit < 0 {
        let (offset, len) = (offset as i32, packed.len());
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {len}.");
        return Err(Failure::message(text));
    }
    let Some(rest) = packed.get(offset as usize..) else {
        let (offset, len) = (offset as i32, packed.len());
        return Err(Failure::message(format!("Start offset {offset} greater than input length {len}.")));
    };
    let all = limit == 0 && offset == 0;
    let limit = if all { usize::MAX } else { limit as usize };
    let mut decoder = Decoder { lua: arguments.lua, rest };
    let mut results = MultiValue::new();
    while results.len() < limit && !decoder.rest.is_empty() {
        if results.len() == MAX_RESULTS {
            return Err(Failure::message(TOO_MANY));
        }
        results.push_back(decoder.value(0)?);
    }
    if !all {
        let next = packed.len() - decoder.rest.len();
        results.push_front(Value::Integer(if decoder.rest.is_empty() { -1 } else { next as i64 }));
    }
    Ok(results)
}

const TOO_MANY: &str =
    "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)";

struct Decoder<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// The next value, which is inside of `depth` others.
    fn value(&mut self, depth: usize) -> Result<Value, Failure> {
        if depth > MAX_NESTING {
            return Err(Failure::message("stack overflow (in function mp_decode_to_lua_array)"));
        }
        let [head] = self.array()?;
        Ok(match head {
            0x00..=0x7f => Value::Integer(head.into()),
            0x80..=0x8f => self.map(usize::from(head & 0x0f), depth)?,
            0x90..=0x9f => self.sequence(usize::from(head & 0x0f), depth)?,
            0xa0..=0xbf => self.string(usize::from(head & 0x1f))?,
            0xc0 => Value::Nil,
            0xc2 | 0xc3 => Value::Boolean(head == 0xc3),
            0xca => Value::Number(f32::from_be_bytes(self.array()?).into()),
            0xcb => Value::Number(f64::from_be_bytes(self.array()?)),
            0xcc => Value::Integer(u8::from_be_bytes(self.array()?).into()),
            0xcd => Value::Integer(u16::from_be_bytes(self.array()?).into()),
            0xce => Value::Integer(u32::from_be_bytes(self.array()?).into()),
            // The original takes unsigned integers of 64 bits for signed ones.
            0xcf | 0xd3 => Value::Integer(i64::from_be_bytes(self.array()?)),
            0xd0 => Value::Integer(i8::from_be_bytes(self.array()?).into()),
            0xd1 => Value::Integer(i16::from_be_bytes(self.array()?).into()),
            0xd2 => Value::Integer(i32::from_be_bytes(self.array()?).into()),
            0xd9..=0xdb => {
                let len = self.len(1 << (head - 0xd9))?;
                self.string(len)?
            }
            0xdc | 0xdd => {
                let count = self.len(2 << (head - 0xdc))?;
                self.sequence(count, depth)?
            }
            0xde | 0xdf => {
                let count = self.len(2 << (head - 0xde))?;
                self.map(count, depth)?
            }
            0xe0..=0xff => Value::Integer((head as i8).into()),
            0xc1 | 0xc4..=0xc9 | 0xd4..=0xd8 => return Err(Failure::message("Bad data format in input.")),
        })
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Failure> {
        let split = self.rest.split_at_checked(len);
        let (taken, rest) = split.ok_or_else(|| Failure::message("Missing bytes in input."))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        Ok(self.take(N)?.try_into().expect("as many are taken"))
    }

    /// A length of one, two or four bytes.
    fn len(&mut self, bytes: usize) -> Result<usize, Failure> {
        Ok(self.take(bytes)?.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)))
    }

    fn string(&mut self, len: usize) -> Result<Value, Failure> {
        Ok(Value::String(self.lua.create_string(self.take(len)?)?))
    }

    fn sequence(&mut self, count: usize, depth: usize) -> Result<Value, Failure> {
        let table = self.lua.create_table()?;
        for index in 1..=count {
            let value = self.value(depth + 1)?;
            table.raw_set(index, value)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, count: usize, depth: usize) -> Result<Value, Failure> {
        let table = self.lua.create_table()?;
        for _ in 0..count {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            match key {
                Value::Nil => return Err(Failure::Bare("table index is nil")),
                Value::Number(number) if number.is_nan() => return Err(Failure::Bare("table index is NaN")),
                key => table.raw_set(key, value)?,
            }
        }
        Ok(Value::Table(table))
    }
}
