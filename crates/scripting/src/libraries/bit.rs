//! Lua BitOp 1.0.2: operations on the 32 lowest bits of numbers.
//!
//! It knows bits, and nothing of the other libraries.

use mlua::{Lua, Table, Value};

use super::functions::{Arguments, Failure, define};

/// Adding it leaves the integer next to a number in the lowest bits of the fraction: 2^52 + 2^51.
const TO_BITS: f64 = 6_755_399_441_055_744.0;

type Unary = fn(u32) -> u32;
type Binary = fn(u32, u32) -> u32;

/// What is made of one number.
const UNARY: [(&str, Unary); 3] =
    [("tobit", |bits| bits), ("bnot", |bits| !bits), ("bswap", u32::swap_bytes)];

/// What is made of any number of numbers, from one on.
const FOLDED: [(&str, Binary); 3] = [("band", |a, b| a & b), ("bor", |a, b| a | b), ("bxor", |a, b| a ^ b)];

/// What is made of a number and a count of places, of which the five lowest bits count.
const SHIFTS: [(&str, Binary); 5] = [
    ("lshift", u32::wrapping_shl),
    ("rshift", u32::wrapping_shr),
    ("arshift", |bits, places| (bits as i32).wrapping_shr(places) as u32),
    ("rol", |bits, places| bits.rotate_left(places & 31)),
    ("ror", |bits, places| bits.rotate_right(places & 31)),
];

/// The table `bit`.
pub(super) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, operation) in UNARY {
        define(lua, &table, name, move |arguments| Ok(number(operation(bits(arguments, 1)?))))?;
    }
    for (name, operation) in FOLDED {
        define(lua, &table, name, move |arguments| {
            // The first argument is looked at first and the others from the last on, as their errors show.
            let first = bits(arguments, 1)?;
            let others = (2..=arguments.len()).rev().try_fold(first, |all, position| {
                Ok::<_, Failure>(operation(all, bits(arguments, position)?))
            })?;
            Ok(number(others))
        })?;
    }
    for (name, operation) in SHIFTS {
        define(lua, &table, name, move |arguments| {
            Ok(number(operation(bits(arguments, 1)?, bits(arguments, 2)?)))
        })?;
    }
    define(lua, &table, "tohex", to_hex)?;
    Ok(table)
}

fn bits(arguments: &Arguments, position: usize) -> Result<u32, Failure> {
    Ok((arguments.number(position)? + TO_BITS).to_bits() as u32)
}

fn number(bits: u32) -> Value {
    Value::Integer((bits as i32).into())
}

/// The lowest digits of the number: as many as the second argument says, in capitals if it is negative.
fn to_hex(arguments: &Arguments) -> Result<Value, Failure> {
    let number = bits(arguments, 1)?;
    let digits = if arguments.len() < 2 { 8 } else { bits(arguments, 2)? as i32 };
    let text = if digits < 0 { format!("{number:08X}") } else { format!("{number:08x}") };
    let shown = digits.unsigned_abs().min(8) as usize;
    Ok(Value::String(arguments.lua.create_string(&text[8 - shown..])?))
}
