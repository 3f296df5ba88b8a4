//! Lua CJSON 2.1.0: values as JSON, and back.
//!
//! It knows the functions and settings of the library, and leaves bytes to the modules below. It must not know the other
//! libraries.

mod decode;
mod encode;
mod number;

use std::cell::Cell;
use std::rc::Rc;

use mlua::{IntoLuaMulti, Lua, MultiValue, Table, Value};

use super::functions::{Arguments, Failure, define};

/// The most bytes of a buffer that is kept from one encoding to the next.
const KEPT: usize = 64 << 10;

/// What scripts can set.
#[derive(Clone, Copy)]
struct Settings {
    sparse_convert: bool,
    sparse_ratio: i32,
    sparse_safe: i32,
    encode_max_depth: i32,
    decode_max_depth: i32,
    encode_invalid_numbers: InvalidNumbers,
    decode_invalid_numbers: bool,
    keep_buffer: bool,
    precision: i32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_max_depth: 1000,
            decode_max_depth: 1000,
            encode_invalid_numbers: InvalidNumbers::Refused,
            decode_invalid_numbers: true,
            keep_buffer: true,
            precision: 14,
        }
    }
}

/// What becomes of numbers that JSON has no text for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InvalidNumbers {
    Refused,
    Written,
    Null,
}

/// What the functions of a table share.
#[derive(Default)]
pub(super) struct Shared {
    settings: Cell<Settings>,
    buffer: Cell<Vec<u8>>,
}

impl Shared {
    /// Brings the defaults back.
    pub(super) fn reset(&self) {
        self.settings.set(Settings::default());
    }

    fn change(&self, change: impl FnOnce(&mut Settings)) {
        let mut settings = self.settings.get();
        change(&mut settings);
        self.settings.set(settings);
    }
}

/// The table `cjson`, whose functions share these settings.
pub(super) fn table(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    type Body = fn(&Arguments, &Shared) -> Result<Value, Failure>;
    const FUNCTIONS: [(&str, Body); 8] = [
        ("encode", encode),
        ("decode", decode),
        ("encode_max_depth", encode_max_depth),
        ("decode_max_depth", decode_max_depth),
        ("encode_number_precision", encode_number_precision),
        ("encode_keep_buffer", encode_keep_buffer),
        ("encode_invalid_numbers", encode_invalid_numbers),
        ("decode_invalid_numbers", decode_invalid_numbers),
    ];
    for (name, body) in FUNCTIONS {
        let shared = Rc::clone(shared);
        define(lua, &table, name, move |arguments| body(arguments, &shared))?;
    }
    let sparse = Rc::clone(shared);
    define(lua, &table, "encode_sparse_array", move |arguments| encode_sparse_array(arguments, &sparse))?;
    define(lua, &table, "new", |arguments| {
        Ok(Value::Table(self::table(arguments.lua, &Rc::new(Shared::default()))?))
    })?;
    table.raw_set("null", Value::NULL)?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    Ok(table)
}

fn encode(arguments: &Arguments, shared: &Shared) -> Result<Value, Failure> {
    let value = only(arguments)?;
    let settings = shared.settings.get();
    let mut buffer = shared.buffer.take();
    buffer.clear();
    encode::append(&mut buffer, value, &settings)?;
    let json = arguments.lua.create_string(&buffer)?;
    if settings.keep_buffer && buffer.capacity() <= KEPT {
        shared.buffer.set(buffer);
    }
    Ok(Value::String(json))
}

fn decode(arguments: &Arguments, shared: &Shared) -> Result<Value, Failure> {
    only(arguments)?;
    let json = arguments.string(1)?;
    decode::value(arguments.lua, &json.as_bytes(), &shared.settings.get())
}

fn only<'a>(arguments: &'a Arguments) -> Result<&'a Value, Failure> {
    let value = arguments.get(1).filter(|_| arguments.len() == 1);
    value.ok_or_else(|| Failure::argument(1, "expected 1 argument"))
}

fn encode_sparse_array(arguments: &Arguments, shared: &Shared) -> Result<MultiValue, Failure> {
    at_most(arguments, 3)?;
    if let Some(convert) = switch(arguments)? {
        shared.change(|settings| settings.sparse_convert = convert);
    }
    if let Some(ratio) = integer(arguments, 2, 0, i32::MAX)? {
        shared.change(|settings| settings.sparse_ratio = ratio);
    }
    if let Some(safe) = integer(arguments, 3, 0, i32::MAX)? {
        shared.change(|settings| settings.sparse_safe = safe);
    }
    let now = shared.settings.get();
    Ok((now.sparse_convert, now.sparse_ratio, now.sparse_safe).into_lua_multi(arguments.lua)?)
}

fn encode_max_depth(arguments: &Arguments, shared: &Shared) -> Result<Value, Failure> {
    integer_setting(arguments, shared, i32::MAX, |settings| &mut settings.encode_max_depth)
}

fn decode_max_depth(arguments: &Arguments, shared: &Shared) -> Result<Value, Failure> {
    integer_setting(arguments, shared, i32::MAX, |settings| &mut settings.decode_max_depth)
}

fn encode_number_precision(arguments: &Arguments, shared: &Shared) -> Result<Value, Failure> {
    integer_setting(arguments, shared, number::MAX_PRECISION, |settings| &mut settings.precision)
}

fn encode_keep_buffer(arguments: &Arguments, shared: &Shared) -> Result<Value, Failure> {
    switch_setting(arguments, shared, |settings| &mut settings.keep_buffer)
}

fn decode_invalid_numbers(arguments: &Arguments, shared: &Shared) -> Result<Value, Failure> {
    switch_setting(arguments, shared, |settings| &mut settings.decode_invalid_numbers)
}

fn encode_invalid_numbers(arguments: &Arguments, shared: &Shared) -> Result<Value, Failure> {
    use InvalidNumbers::{Null, Refused, Written};
    at_most(arguments, 1)?;
    let setting = match arguments.given(1) {
        None => None,
        Some(Value::Boolean(on)) => Some(if *on { Written } else { Refused }),
        Some(_) => Some(option(arguments, &[("off", Refused), ("on", Written), ("null", Null)])?),
    };
    if let Some(setting) = setting {
        shared.change(|settings| settings.encode_invalid_numbers = setting);
    }
    Ok(match shared.settings.get().encode_invalid_numbers {
        Null => Value::String(arguments.lua.create_string("null")?),
        other => Value::Boolean(other == Written),
    })
}

type Field<T> = fn(&mut Settings) -> &mut T;

fn integer_setting(
    arguments: &Arguments,
    shared: &Shared,
    max: i32,
    field: Field<i32>,
) -> Result<Value, Failure> {
    at_most(arguments, 1)?;
    if let Some(value) = integer(arguments, 1, 1, max)? {
        shared.change(|settings| *field(settings) = value);
    }
    Ok(Value::Integer((*field(&mut shared.settings.get())).into()))
}

fn switch_setting(arguments: &Arguments, shared: &Shared, field: Field<bool>) -> Result<Value, Failure> {
    at_most(arguments, 1)?;
    if let Some(on) = switch(arguments)? {
        shared.change(|settings| *field(settings) = on);
    }
    Ok(Value::Boolean(*field(&mut shared.settings.get())))
}

fn at_most(arguments: &Arguments, count: usize) -> Result<(), Failure> {
    if arguments.len() > count {
        return Err(Failure::argument(count + 1, "found too many arguments"));
    }
    Ok(())
}

/// An integer that may be missing. The failure of one out of bounds names the first argument, whichever it was.
fn integer(arguments: &Arguments, position: usize, min: i32, max: i32) -> Result<Option<i32>, Failure> {
    if arguments.given(position).is_none() {
        return Ok(None);
    }
    let value = arguments.int(position)?;
    if !(min..=max).contains(&value) {
        return Err(Failure::argument(1, format!("expected integer between {min} and {max}")));
    }
    Ok(Some(value))
}

/// The first argument, which may be missing, as a boolean or its words.
fn switch(arguments: &Arguments) -> Result<Option<bool>, Failure> {
    match arguments.given(1) {
        None => Ok(None),
        Some(Value::Boolean(on)) => Ok(Some(*on)),
        Some(_) => option(arguments, &[("off", false), ("on", true)]).map(Some),
    }
}

/// What the word of the first argument stands for.
fn option<T: Copy>(arguments: &Arguments, options: &[(&str, T)]) -> Result<T, Failure> {
    let word = arguments.string(1)?;
    let word = word.as_bytes();
    let found = options.iter().find(|(name, _)| name.as_bytes() == &*word);
    let found = found.map(|(_, option)| *option);
    found.ok_or_else(|| Failure::argument(1, [b"invalid option '", &*word, b"'"].concat()))
}
