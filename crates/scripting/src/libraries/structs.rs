//! The library `struct` of Roberto Ierusalimschy, as Valkey has it: bytes of C's structures from values, and back.
//!
//! It knows formats, their sizes and alignment on a 64-bit machine, and nothing of the other libraries.

use mlua::{Lua, LuaString, MultiValue, Table, Value};

use super::MAX_RESULTS;
use super::functions::{Arguments, Failure, define, truncated};

/// The most bytes of an integer.
const MAX_INTEGER: usize = 32;
/// The alignment of `!` without a number: that of a double.
const MAX_ALIGNMENT: usize = 8;

/// The table `struct`.
pub(super) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    define(lua, &table, "pack", pack)?;
    define(lua, &table, "unpack", unpack)?;
    define(lua, &table, "size", size)?;
    Ok(table)
}

#[derive(Clone, Copy)]
enum Kind {
    Integer {
        signed: bool,
    },
    Float,
    Double,
    Padding,
    Characters,
    Terminated,
    /// A setting of what follows, or no option at all.
    Control,
}

/// An option of a format.
struct Item {
    option: u8,
    kind: Kind,
    size: usize,
}

/// A format that is read from left to right, up to its end or a zero byte.
struct Format<'a> {
    rest: &'a [u8],
    big_endian: bool,
    alignment: usize,
}

impl<'a> Format<'a> {
    fn new(text: &'a [u8]) -> Self {
        let end = memchr(0, text).unwrap_or(text.len());
        Self { rest: &text[..end], big_endian: false, alignment: 1 }
    }

    fn next(&mut self) -> Result<Option<Item>, Failure> {
        let Some((&option, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        let (kind, size) = match option {
            b'b' | b'B' => (Kind::Integer { signed: option == b'b' }, 1),
            b'h' | b'H' => (Kind::Integer { signed: option == b'h' }, 2),
            b'l' | b'L' => (Kind::Integer { signed: option == b'l' }, 8),
            b'T' => (Kind::Integer { signed: false }, 8),
            b'i' | b'I' => (Kind::Integer { signed: option == b'i' }, self.integer_size()?),
            b'f' => (Kind::Float, 4),
            b'd' => (Kind::Double, 8),
            b'x' => (Kind::Padding, 1),
            b'c' => (Kind::Characters, self.number(1)?),
            b's' => (Kind::Terminated, 0),
            _ => (Kind::Control, 0),
        };
        Ok(Some(Item { option, kind, size }))
    }

    fn integer_size(&mut self) -> Result<usize, Failure> {
        let size = self.number(4)?;
        if size > MAX_INTEGER {
            let text = format!("integral size {size} is larger than limit of {MAX_INTEGER}");
            return Err(Failure::message(text));
        }
        Ok(size)
    }

    /// The number that is next in the format, or the default.
    fn number(&mut self, default: usize) -> Result<usize, Failure> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(default);
        }
        let (digits, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let number = digits
            .iter()
            .try_fold(0_i32, |number, digit| number.checked_mul(10)?.checked_add(i32::from(digit - b'0')));
        number.map(|number| number as usize).ok_or_else(|| Failure::message("integral size overflow"))
    }

    /// Bytes before an item that begins at this position.
    fn padding(&self, position: usize, item: &Item) -> usize {
        if item.size == 0 || matches!(item.kind, Kind::Characters) {
            return 0;
        }
        let size = item.size.min(self.alignment);
        (size - (position & (size - 1))) & (size - 1)
    }

    /// Does what an option says that stands for no bytes.
    fn control(&mut self, option: u8) -> Result<(), Failure> {
        match option {
            b' ' => {}
            b'>' => self.big_endian = true,
            b'<' => self.big_endian = false,
            b'!' => {
                let alignment = self.number(MAX_ALIGNMENT)?;
                if !alignment.is_power_of_two() {
                    return Err(Failure::message(format!("alignment {alignment} is not a power of 2")));
                }
                self.alignment = alignment;
            }
            _ => {
                return Err(Failure::argument(1, [b"invalid format option '", &[option][..], b"'"].concat()));
            }
        }
        Ok(())
    }

    /// Puts the bytes, the lowest first, in the order of the format.
    fn put<const N: usize>(&self, out: &mut Vec<u8>, mut little: [u8; N]) {
        if self.big_endian {
            little.reverse();
        }
        out.extend_from_slice(&little);
    }

    /// The bytes in the order of the format with the lowest first.
    fn take<const N: usize>(&self, bytes: &[u8]) -> [u8; N] {
        let mut little: [u8; N] = bytes.try_into().expect("the option's size is that of its type");
        if self.big_endian {
            little.reverse();
        }
        little
    }

    fn put_integer(&self, out: &mut Vec<u8>, value: u64, size: usize) {
        let mut bytes = [0; MAX_INTEGER];
        bytes[..8].copy_from_slice(&value.to_le_bytes());
        let bytes = &mut bytes[..size];
        if self.big_endian {
            bytes.reverse();
        }
        out.extend_from_slice(bytes);
    }

    /// The lowest 64 bits of an integer of any size.
    fn integer(&self, bytes: &[u8], signed: bool) -> f64 {
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let value = if self.big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) };
        if !signed {
            return value as f64;
        }
        // Of an integer with more than 64 bits, the highest of these is the sign.
        let sign = u64::MAX.wrapping_shl((bytes.len() as u32).wrapping_mul(8).wrapping_sub(1));
        let extended = if value & sign == 0 { value } else { value | sign };
        extended as i64 as f64
    }
}

fn memchr(byte: u8, bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|other| *other == byte)
}

/// What C makes of a number as an unsigned integer on x86-64.
fn unsigned(number: f64) -> u64 {
    const HALF: f64 = (1_u64 << 63) as f64;
    if number >= HALF { truncated(number - HALF) as u64 ^ 1 << 63 } else { truncated(number) as u64 }
}

fn pack(arguments: &Arguments) -> Result<Value, Failure> {
    let text = arguments.string(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(&text);
    let mut out = Vec::new();
    let mut position = 1;
    while let Some(item) = format.next()? {
        out.resize(out.len() + format.padding(out.len(), &item), 0);
        if matches!(item.kind, Kind::Control) {
            format.control(item.option)?;
            continue;
        }
        if matches!(item.kind, Kind::Padding) {
            out.push(0);
            continue;
        }
        position += 1;
        match item.kind {
            Kind::Integer { .. } => {
                format.put_integer(&mut out, unsigned(packed(arguments, position)?), item.size)
            }
            Kind::Float => format.put(&mut out, (packed(arguments, position)? as f32).to_le_bytes()),
            Kind::Double => format.put(&mut out, packed(arguments, position)?.to_le_bytes()),
            _ => put_string(&mut out, arguments, position, &item)?,
        }
    }
    Ok(Value::String(arguments.lua.create_string(&out)?))
}

/// The number to pack; one that is missing is nil.
fn packed(arguments: &Arguments, position: usize) -> Result<f64, Failure> {
    arguments.number(position).map_err(|failure| missing(arguments, position, "number", failure))
}

fn missing(arguments: &Arguments, position: usize, expected: &str, failure: Failure) -> Failure {
    if position == arguments.len() + 1 {
        Failure::argument(position, format!("{expected} expected, got nil"))
    } else {
        failure
    }
}

fn put_string(out: &mut Vec<u8>, arguments: &Arguments, position: usize, item: &Item) -> Result<(), Failure> {
    let string = arguments.string(position);
    let string = string.map_err(|failure| missing(arguments, position, "string", failure))?;
    let bytes = string.as_bytes();
    let size = if item.size == 0 { bytes.len() } else { item.size };
    // The position is that of the next argument, as the original counts.
    let part = bytes.get(..size).ok_or_else(|| Failure::argument(position + 1, "string too short"))?;
    if out.len() + part.len() > super::MAX_RESULT {
        return Err(Failure::message("packed string larger than 512 MB"));
    }
    out.extend_from_slice(part);
    if matches!(item.kind, Kind::Terminated) {
        out.push(0);
    }
    Ok(())
}

fn unpack(arguments: &Arguments) -> Result<MultiValue, Failure> {
    let text = arguments.string(1)?;
    let text = text.as_bytes();
    let data = arguments.string(2)?;
    let data = data.as_bytes();
    // Positions wrap around as those of the original, which takes a negative one for the end of memory.
    let mut position = arguments.integer_or(3, 1)? as usize;
    if position == 0 {
        return Err(Failure::argument(3, "offset must be 1 or greater"));
    }
    position -= 1;
    let mut format = Format::new(&text);
    let mut results = MultiValue::new();
    while let Some(item) = format.next()? {
        position = position.wrapping_add(format.padding(position, &item));
        let mut bytes = part(&data, position, item.size)?;
        if results.len() == MAX_RESULTS {
            return Err(Failure::message("stack overflow (too many results)"));
        }
        let value = match item.kind {
            Kind::Integer { signed } => Some(Value::Number(format.integer(bytes, signed))),
            Kind::Float => Some(Value::Number(f32::from_le_bytes(format.take(bytes)).into())),
            Kind::Double => Some(Value::Number(f64::from_le_bytes(format.take(bytes)))),
            Kind::Padding => None,
            Kind::Characters => {
                if item.size == 0 {
                    let size = previous_size(arguments.lua, &mut results)?;
                    bytes = part(&data, position, size)?;
                }
                Some(Value::String(arguments.lua.create_string(bytes)?))
            }
            Kind::Terminated => {
                let rest = &data[position..];
                let end = memchr(0, rest).ok_or_else(|| Failure::message("unfinished string in data"))?;
                bytes = &rest[..=end];
                Some(Value::String(arguments.lua.create_string(&rest[..end])?))
            }
            Kind::Control => {
                format.control(item.option)?;
                None
            }
        };
        results.extend(value);
        position += bytes.len();
    }
    results.push_back(Value::Integer(position.wrapping_add(1) as i64));
    Ok(results)
}

/// Bytes of the data, which is the second argument.
fn part(data: &[u8], position: usize, size: usize) -> Result<&[u8], Failure> {
    let end = position.checked_add(size);
    let part = end.and_then(|end| data.get(position..end));
    part.ok_or_else(|| Failure::argument(2, "data string too short"))
}

/// Takes the last result away, which is the size of what follows.
fn previous_size(lua: &Lua, results: &mut MultiValue) -> Result<usize, Failure> {
    let size = results.pop_back().and_then(|last| lua.coerce_number(last).ok().flatten());
    let size = size.ok_or_else(|| Failure::message("format 'c0' needs a previous size"))?;
    Ok(unsigned(size) as usize)
}

fn size(arguments: &Arguments) -> Result<Value, Failure> {
    let text: LuaString = arguments.string(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(&text);
    let mut total = 0_usize;
    while let Some(item) = format.next()? {
        total += format.padding(total, &item) + item.size;
        match item.kind {
            Kind::Terminated => return Err(Failure::argument(1, "option 's' has no fixed size")),
            Kind::Characters if item.size == 0 => {
                return Err(Failure::argument(1, "option 'c0' has no fixed size"));
            }
            // A letter or digit that is no option counts nothing here.
            Kind::Control if !item.option.is_ascii_alphanumeric() => format.control(item.option)?,
            _ => {}
        }
    }
    Ok(Value::Integer(total as i64))
}
