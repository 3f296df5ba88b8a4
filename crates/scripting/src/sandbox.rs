//! The environment of scripts, which `sandbox.lua` builds from Lua's functions, the libraries and what the engine gives.

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaString, Table, Value};

use rustix::time::{ClockId, clock_gettime};

use crate::c_functions::{as_native, protected_call, protected_call_with_handler};
use crate::failure::{Raised, is_kill, message, without_sandbox};

/// The first byte of bytecode.
const BYTECODE: u8 = 0x1b;
const SOURCE: &str = include_str!("sandbox.lua");
/// The libraries of which scripts are given everything.
const WHOLE: [&str; 6] = ["bit", "cjson", "cmsgpack", "math", "string", "struct"];

/// The environments of scripts and of libraries, and the functions that run them.
pub(crate) struct Sandbox {
    pub(crate) scripts: Table,
    pub(crate) libraries: Table,
    /// Takes the script, its keys and its arguments; says whether it has come to its end, and what it returns.
    pub(crate) run_script: Function,
    /// The same for a function of a library.
    pub(crate) run_function: Function,
    /// Takes the code of a library.
    pub(crate) load_library: Function,
}

impl Sandbox {
    /// Builds the environments, of which `server` is the table of that name. `fail` is shown the error that ends a script.
    pub(crate) fn new(
        lua: &Lua,
        server: &Table,
        fail: Function,
        register_function: Function,
    ) -> mlua::Result<Sandbox> {
        let native = lua.create_table()?;
        native.raw_set("register_function", register_function)?;
        native.raw_set("fail", fail)?;
        let globals = lua.globals();
        let whole = lua.create_table()?;
        for name in WHOLE {
            whole.raw_set(name, globals.raw_get::<Table>(name)?)?;
        }
        native.raw_set("clock", lua.create_function(|_, ()| Ok(processor_seconds()))?)?;
        native.raw_set("as_native", lua.create_function(|lua, inner: Function| as_native(lua, inner))?)?;
        native.raw_set("pcall", protected_call(lua)?)?;
        native.raw_set("xpcall", protected_call_with_handler(lua)?)?;
        native.raw_set(
            "is_kill",
            lua.create_function(|_, error: Value| {
                Ok(matches!(error, Value::Error(error) if is_kill(&error)))
            })?,
        )?;
        native.raw_set("message", lua.create_function(error_message)?)?;
        native.raw_set("error_value", lua.create_function(error_value)?)?;
        let (scripts, libraries, run_script, run_function, load_library) =
            lua.load(SOURCE).set_name("=sandbox").into_function()?.call((&native, server, whole))?;
        let sandbox = Sandbox { scripts, libraries, run_script, run_function, load_library };
        let scope = sandbox.scripts.clone();
        native.raw_set(
            "load",
            lua.create_function(move |lua, (text, name): (LuaString, LuaString)| {
                let name = name.to_string_lossy();
                // A name ends at a NUL, as everywhere in C.
                let name = name.split('\0').next().unwrap_or_default();
                match compile(lua, &text.as_bytes(), name, &scope) {
                    Ok(function) => Ok((Some(function), None)),
                    Err(error) => Ok((None, Some(message(&error)))),
                }
            })?,
        )?;
        Ok(sandbox)
    }
}

/// The text of an error that a script has caught.
fn error_message(lua: &Lua, error: Value) -> mlua::Result<Value> {
    match error_value(lua, error)? {
        Value::Table(table) => table.raw_get("err"),
        value => Ok(value),
    }
}

/// An error that a script has caught, as it knows errors: a table of a command, a text of Lua, or what it has raised. One
/// that it must not catch is raised again.
fn error_value(lua: &Lua, error: Value) -> mlua::Result<Value> {
    match error {
        Value::Error(error) if is_kill(&error) => Err(*error),
        Value::Error(error) => match Raised::behind(&error) {
            Some(failure) => Ok(Value::Table(failure.to_table(lua)?)),
            None => Ok(Value::String(lua.create_string(message(&error))?)),
        },
        Value::String(text) => match without_sandbox(&text.as_bytes()) {
            (rest, true) => Ok(Value::String(lua.create_string(rest)?)),
            (_, false) => Ok(Value::String(text.clone())),
        },
        value => Ok(value),
    }
}

/// Compiles text, never bytecode: Lua does not check that, and it can reach anything.
pub(crate) fn compile(lua: &Lua, text: &[u8], name: &str, environment: &Table) -> mlua::Result<Function> {
    if text.first() == Some(&BYTECODE) {
        let message = format!("{}:1: unexpected symbol near 'char({BYTECODE})'", chunk_name(name));
        return Err(mlua::Error::SyntaxError { message, incomplete_input: false });
    }
    // Lua 5.1's compiler keeps its chunk's name where the collector does not see it (CVE-2025-49844).
    lua.gc_stop();
    let compiled = lua
        .load(text)
        .set_name(name)
        .set_mode(ChunkMode::Text)
        .set_environment(environment.clone())
        .into_function();
    lua.gc_restart();
    compiled
}

/// A chunk's name as Lua's errors show it.
fn chunk_name(name: &str) -> String {
    match name.strip_prefix(['@', '=']) {
        Some(name) => name.to_owned(),
        None => format!("[string \"{}\"]", name.lines().next().unwrap_or_default()),
    }
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
