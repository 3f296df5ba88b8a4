//! Functions of Rust that look like those of C to scripts: errors are strings that begin with the line of the caller.
//!
//! It knows how Lua's auxiliary library checks arguments and words errors, and nothing of what the functions do.

use std::ffi::c_int;

use mlua::{Function, IntoLuaMulti, Lua, LuaString, MultiValue, Table, Value, ffi};

/// Why a function has no result.
#[derive(Debug)]
pub(super) enum Failure {
    /// The argument of this position, counted from one, does not suit, for the reason of the text.
    Argument(usize, Vec<u8>),
    /// What went wrong; the line of the caller is put before it.
    Message(Vec<u8>),
    /// What Lua itself says, without a line.
    Bare(&'static str),
    /// Lua could not go on: there is no memory.
    Lua(Box<mlua::Error>),
}

impl Failure {
    pub(super) fn message(text: impl Into<Vec<u8>>) -> Self {
        Self::Message(text.into())
    }

    pub(super) fn argument(position: usize, text: impl Into<Vec<u8>>) -> Self {
        Self::Argument(position, text.into())
    }
}

impl From<mlua::Error> for Failure {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(Box::new(error))
    }
}

/// The arguments of a call, whose positions are counted from one.
pub(super) struct Arguments<'a> {
    pub(super) lua: &'a Lua,
    values: MultiValue,
}

impl Arguments<'_> {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The argument, if the caller gave one.
    pub(super) fn get(&self, position: usize) -> Option<&Value> {
        self.values.get(position - 1)
    }

    /// The argument, if the caller gave one that is not nil.
    pub(super) fn given(&self, position: usize) -> Option<&Value> {
        self.get(position).filter(|value| !value.is_nil())
    }

    /// A number, or a string that Lua takes for one.
    pub(super) fn number(&self, position: usize) -> Result<f64, Failure> {
        let number = match self.get(position) {
            Some(Value::Integer(integer)) => return Ok(*integer as f64),
            Some(Value::Number(number)) => return Ok(*number),
            Some(value @ Value::String(_)) => self.lua.coerce_number(value.clone())?,
            _ => None,
        };
        number.ok_or_else(|| self.unexpected(position, "number"))
    }

    /// A number as Lua's `lua_Integer`, of 64 bits.
    pub(super) fn integer(&self, position: usize) -> Result<i64, Failure> {
        Ok(truncated(self.number(position)?))
    }

    /// The same, or the default for an argument that is missing or nil.
    pub(super) fn integer_or(&self, position: usize, default: i64) -> Result<i64, Failure> {
        if self.given(position).is_none() { Ok(default) } else { self.integer(position) }
    }

    /// A number as an `int` of C: the lower half of the integer.
    pub(super) fn int(&self, position: usize) -> Result<i32, Failure> {
        Ok(self.integer(position)? as i32)
    }

    /// A string, or a number as Lua writes it.
    pub(super) fn string(&self, position: usize) -> Result<LuaString, Failure> {
        let string = match self.get(position) {
            Some(Value::String(string)) => return Ok(string.clone()),
            Some(value @ (Value::Integer(_) | Value::Number(_))) => self.lua.coerce_string(value.clone())?,
            _ => None,
        };
        string.ok_or_else(|| self.unexpected(position, "string"))
    }

    /// The failure of an argument of another type than what is expected.
    pub(super) fn unexpected(&self, position: usize, expected: &str) -> Failure {
        let found = self.get(position).map_or("no value", type_name);
        Failure::argument(position, format!("{expected} expected, got {found}"))
    }
}

/// What a cast of C makes of a number on x86-64: the smallest integer of all that do not fit.
pub(super) fn truncated(number: f64) -> i64 {
    const LIMIT: f64 = (1_u64 << 63) as f64;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// Lua's name of the value's type.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) | Value::Number(_) => "number",
        Value::LightUserData(_) | Value::UserData(_) | Value::Error(_) => "userdata",
        other => other.type_name(),
    }
}

/// Puts the function into the table.
pub(super) fn define<R, F>(lua: &Lua, table: &Table, name: &str, function: F) -> mlua::Result<()>
where
    R: IntoLuaMulti + Default,
    F: Fn(&Arguments) -> Result<R, Failure> + 'static,
{
    let inner = lua.create_function(move |lua, values: MultiValue| {
        let error = match function(&Arguments { lua, values }) {
            Ok(results) => return Ok((Value::Nil, results)),
            Err(Failure::Argument(position, text)) => bad_argument(lua, position, &text),
            Err(Failure::Message(text)) => at_line(lua, &text),
            Err(Failure::Bare(text)) => text.into(),
            Err(Failure::Lua(error)) => return Err(*error),
        };
        Ok((Value::String(lua.create_string(error)?), R::default()))
    })?;
    table.raw_set(name, raising(lua, inner)?)
}

/// A function that raises the first result of `inner` if it is not nil, and returns the others.
fn raising(lua: &Lua, inner: Function) -> mlua::Result<Function> {
    // SAFETY: the stack holds `inner`, which becomes the only upvalue of the closure that takes its place, as the
    // closure expects of its upvalues.
    unsafe { lua.exec_raw(inner, |state| ffi::lua_pushcclosure(state, raise_or_return, 1)) }
}

/// Calls the upvalue with the arguments. Scripts see this function and none of Lua, so that it is on the stack for
/// the caller's line and the function's name, in a tail call as well.
unsafe extern "C-unwind" fn raise_or_return(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: Lua calls it with the arguments on the stack and twenty places above; one is used, for the upvalue.
    // Nothing here has a destructor, so that errors may leave by a long jump from `lua_call` and `lua_error`. `inner`
    // returns at least one value.
    unsafe {
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
        ffi::lua_insert(state, 1);
        ffi::lua_call(state, ffi::lua_gettop(state) - 1, ffi::LUA_MULTRET);
        if ffi::lua_type(state, 1) != ffi::LUA_TNIL {
            ffi::lua_settop(state, 1);
            ffi::lua_error(state);
        }
        ffi::lua_gettop(state) - 1
    }
}

/// The level of the function that scripts see, above the one of Rust.
const SEEN: usize = 1;

fn bad_argument(lua: &Lua, position: usize, text: &[u8]) -> Vec<u8> {
    let names = lua.inspect_stack(SEEN, |function| {
        let names = function.names();
        (names.name.map(String::from), names.name_what == Some("method"))
    });
    let (name, method) = names.unwrap_or_default();
    let name = name.as_deref().unwrap_or("?");
    let head = match position - usize::from(method && position > 0) {
        0 if method => format!("calling '{name}' on bad self ("),
        position => format!("bad argument #{position} to '{name}' ("),
    };
    at_line(lua, &[head.as_bytes(), text, b")"].concat())
}

fn at_line(lua: &Lua, text: &[u8]) -> Vec<u8> {
    let line = lua.inspect_stack(SEEN + 1, |caller| {
        let line = caller.current_line()?;
        Some(format!("{}:{line}: ", caller.source().short_src?))
    });
    [line.flatten().unwrap_or_default().as_bytes(), text].concat()
}
