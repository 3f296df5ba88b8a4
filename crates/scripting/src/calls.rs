//! Functions of `redis` and `server`, through which scripts ask the server (<https://valkey.io/topics/lua-api/>).
//!
//! An error is raised as [`Raised`]; what catches it in `sandbox.lua` makes it what scripts know.

use mlua::{Lua, LuaString, MultiValue, Table, Value};
use snugly_protocol::resp::{ArgsBuffer, Protocol};

use crate::command_call::{self, choose_protocol};
use crate::digest::digest;
use crate::failure::{Failure, Raised, raised};
use crate::host::HOST;

/// Levels of the log.
const LEVELS: [(&str, u8); 4] = [("LOG_DEBUG", 0), ("LOG_VERBOSE", 1), ("LOG_NOTICE", 2), ("LOG_WARNING", 3)];
/// Destinations of a write, were the effects of scripts replicated.
const REPLICATION: [(&str, u8); 5] =
    [("REPL_NONE", 0), ("REPL_AOF", 1), ("REPL_SLAVE", 2), ("REPL_REPLICA", 2), ("REPL_ALL", 3)];
/// The version that the server claims towards clients, as its name, text and number.
const VERSIONS: [(&str, &str, u32); 2] = [("REDIS", "7.2.4", 0x07_02_04), ("VALKEY", "9.1.0", 0x09_01_00)];

/// The functions and numbers that scripts find in `server`.
pub(crate) fn natives(lua: &Lua) -> mlua::Result<Table> {
    let native = lua.create_table()?;
    let (call, pcall) = command_call::functions(lua)?;
    native.raw_set("call", call)?;
    native.raw_set("pcall", pcall)?;
    native.raw_set("error_reply", lua.create_function(error_reply)?)?;
    native.raw_set("status_reply", lua.create_function(status_reply)?)?;
    native.raw_set("log", lua.create_function(log)?)?;
    native.raw_set("sha1hex", lua.create_function(sha1hex)?)?;
    native.raw_set("set_repl", lua.create_function(set_repl)?)?;
    native.raw_set("acl_check_cmd", lua.create_function(acl_check_cmd)?)?;
    native.raw_set("setresp", lua.create_function(setresp)?)?;
    native.raw_set("replicate_commands", lua.create_function(|_, ()| Ok(true))?)?;
    native.raw_set("breakpoint", lua.create_function(|_, ()| Ok(false))?)?;
    native.raw_set("debug", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
    for (name, number) in LEVELS.iter().chain(&REPLICATION) {
        native.raw_set(*name, *number)?;
    }
    for (name, text, number) in VERSIONS {
        native.raw_set(format!("{name}_VERSION"), text)?;
        native.raw_set(format!("{name}_VERSION_NUM"), number)?;
    }
    native.raw_set("SERVER_NAME", "valkey")?;
    Ok(native)
}

fn error_reply(lua: &Lua, args: MultiValue) -> mlua::Result<Table> {
    let Some(text) = only_string(args) else {
        return Failure::new("wrong number or type of arguments").to_table(lua);
    };
    let text = text.as_bytes();
    let text = text.strip_prefix(b"-").unwrap_or(&text);
    let text = if text.contains(&b' ') { text.to_vec() } else { [b"ERR ", text].concat() };
    let end = text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
    Failure { text: text[..end].to_vec(), is_counted: false }.to_table(lua)
}

fn status_reply(lua: &Lua, args: MultiValue) -> mlua::Result<Table> {
    let Some(text) = only_string(args) else {
        return Failure::new("wrong number or type of arguments").to_table(lua);
    };
    let table = lua.create_table()?;
    table.raw_set("ok", text)?;
    Ok(table)
}

fn only_string(mut args: MultiValue) -> Option<LuaString> {
    match (args.pop_front(), args.is_empty()) {
        (Some(Value::String(text)), true) => Some(text),
        _ => None,
    }
}

fn log(lua: &Lua, args: MultiValue) -> mlua::Result<Value> {
    let (Some(level), 2..) = (args.front(), args.len()) else {
        return Err(raised("server.log() requires two arguments or more."));
    };
    let Some(level) = lua.coerce_number(level.clone())? else {
        return Err(raised("First argument must be a number (log level)."));
    };
    let Some((_, level)) = LEVELS.iter().find(|(_, number)| f64::from(*number) == level.trunc()) else {
        return Err(raised("Invalid log level."));
    };
    let texts = args.iter().skip(1).filter_map(|value| match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Number(_) | Value::Integer(_) => value.to_string().ok().map(String::into_bytes),
        _ => None,
    });
    let message = texts.collect::<Vec<_>>().join(&b' ');
    HOST.with(|host| host.log(*level, &message));
    Ok(Value::Nil)
}

fn sha1hex(lua: &Lua, args: MultiValue) -> mlua::Result<Value> {
    let (Some(value), 1) = (args.front(), args.len()) else {
        return Err(raised("wrong number of arguments"));
    };
    let text = match lua.coerce_string(value.clone())? {
        Some(text) => text.as_bytes().to_vec(),
        None => Vec::new(),
    };
    Ok(Value::String(lua.create_string(digest(&text))?))
}

fn set_repl(lua: &Lua, args: MultiValue) -> mlua::Result<Value> {
    let (Some(value), 1) = (args.front(), args.len()) else {
        return Err(raised("server.set_repl() requires one argument."));
    };
    // Whatever is no number is 0 to Lua.
    match lua.coerce_number(value.clone())?.or(Some(0.0)).map(f64::trunc) {
        Some(flags) if REPLICATION.iter().any(|(_, number)| f64::from(*number) == flags) => Ok(Value::Nil),
        _ => Err(raised("Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")),
    }
}

fn acl_check_cmd(_lua: &Lua, args: MultiValue) -> mlua::Result<Value> {
    let mut arguments = ArgsBuffer::default();
    if let Err(reason) = command_call::collect_values(&mut arguments, &args) {
        let reason = Failure { text: reason.to_vec(), is_counted: false };
        return Err(mlua::Error::external(Raised(reason)));
    }
    match HOST.with(|host| host.may_run(arguments.args())) {
        Some(may) => Ok(Value::Boolean(may)),
        None => Err(raised("Invalid command passed to server.acl_check_cmd()")),
    }
}

fn setresp(lua: &Lua, args: MultiValue) -> mlua::Result<Value> {
    let (Some(value), 1) = (args.front(), args.len()) else {
        return Err(raised("server.setresp() requires one argument."));
    };
    match lua.coerce_number(value.clone())?.map(f64::trunc) {
        Some(2.0) => choose_protocol(Protocol::Resp2),
        Some(3.0) => choose_protocol(Protocol::Resp3),
        _ => return Err(raised("RESP version must be 2 or 3.")),
    }
    Ok(Value::Nil)
}
