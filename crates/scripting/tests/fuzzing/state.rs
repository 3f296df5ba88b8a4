//! A state of Lua with the libraries, and calls of their functions.

use mlua::{Lua, LuaOptions, MultiValue, StdLib, Table, Value};

pub fn state() -> Lua {
    let lua = Lua::new_with(StdLib::MATH, LuaOptions::default()).expect("math is safe");
    snugly_scripting::libraries::install(&lua).expect("there is memory");
    lua
}

/// What the function returns, or none if it raises an error, which is a string.
pub fn call(lua: &Lua, library: &str, function: &str, arguments: MultiValue) -> Option<MultiValue> {
    let library: Table = lua.globals().raw_get(library).expect("it is installed");
    let function: mlua::Function = library.raw_get(function).expect("the library has it");
    match function.call(arguments) {
        Ok(results) => Some(results),
        Err(mlua::Error::RuntimeError(_)) => None,
        Err(error) => panic!("{error:?} is no string to a script"),
    }
}

pub fn string(lua: &Lua, bytes: &[u8]) -> Value {
    Value::String(lua.create_string(bytes).expect("there is memory"))
}
