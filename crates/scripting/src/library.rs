//! Libraries of functions (<https://valkey.io/topics/functions-intro/>): their first line, and what their code registers
//! when it is loaded.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mlua::{Function, Lua, MultiValue, Table, Value};
use snugly_protocol::resp::{Args, Protocol};
use thiserror::Error;

use crate::failure::raised;
use crate::header::{Header, split_line};
use crate::host::Host;
use crate::script::Script;

/// The longest time that the code of a library may take to register its functions.
const LONGEST_LOAD: Duration = Duration::from_millis(500);

/// A function of a library, as it was registered.
pub struct Registered {
    /// Letters, digits and underscores.
    pub name: Vec<u8>,
    /// What it is for, if the library says so.
    pub description: Option<Vec<u8>>,
    /// Names of its flags.
    pub flags: Vec<String>,
    /// The rules that these make.
    pub header: Header,
    /// What runs.
    pub script: Script,
}

/// Reason why a library is refused, in Valkey's words.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LibraryError {
    /// It does not begin with `#!`.
    #[error("Missing library metadata")]
    NoHeader,
    /// Its first line is its only one.
    #[error("Invalid library metadata")]
    NoLine,
    /// A language other than Lua.
    #[error("Engine '{0}' not found")]
    UnknownEngine(String),
    /// The header has no name.
    #[error("Library name was not given")]
    NoName,
    /// The header has two names.
    #[error("Invalid metadata value, name argument was given multiple times")]
    TwoNames,
    /// A word of the header that means nothing.
    #[error("Invalid metadata value given: {0}")]
    UnknownOption(String),
    /// A name with other characters.
    #[error(
        "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
    )]
    WrongName,
    /// A function's name with other characters.
    #[error(
        "Function names can only contain letters, numbers, or underscores(_) and must be at least one character long"
    )]
    WrongFunctionName,
    /// Two functions of the same name.
    #[error("Function already exists in the library")]
    TwoFunctions,
    /// No function at all.
    #[error("No functions registered")]
    NoFunctions,
    /// The code cannot be compiled.
    #[error("Error compiling function: {0}")]
    Code(String),
    /// The code has ended with an error.
    #[error("Error registering functions: {0}")]
    Failed(String),
    /// The code has not come to its end in time.
    #[error("FUNCTION LOAD timeout")]
    TooLong,
}

/// Splits the source of a library into its name and its code, whose first line is then empty.
///
/// # Errors
/// [`LibraryError`].
pub fn split_library(source: &[u8]) -> Result<(String, &[u8]), LibraryError> {
    if !source.starts_with(b"#!") {
        return Err(LibraryError::NoHeader);
    }
    let (line, code) = split_line(source).ok_or(LibraryError::NoLine)?;
    let mut words = line.split_ascii_whitespace();
    let engine = words.next().unwrap_or_default().trim_start_matches("#!");
    let mut name = None;
    for word in words {
        let given = word.strip_prefix("name=").ok_or_else(|| LibraryError::UnknownOption(word.to_owned()))?;
        if name.replace(given).is_some() {
            return Err(LibraryError::TwoNames);
        }
    }
    let name = name.ok_or(LibraryError::NoName)?;
    if !is_name(name.as_bytes()) {
        return Err(LibraryError::WrongName);
    }
    if !engine.eq_ignore_ascii_case("lua") {
        return Err(LibraryError::UnknownEngine(engine.to_owned()));
    }
    Ok((name.to_owned(), code))
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// The functions that a library's code registers, while it does.
pub(crate) type Registry = Rc<RefCell<Result<Vec<Registered>, LibraryError>>>;

/// The function `register_function`.
pub(crate) fn register_function(lua: &Lua, registry: Registry) -> mlua::Result<Function> {
    lua.create_function(move |lua, args: MultiValue| {
        let registered = read(lua, args)?;
        let mut registry = registry.borrow_mut();
        // The first mistake counts; the code goes on, as in Valkey.
        if let Ok(functions) = &mut *registry {
            let is_double = functions.iter().any(|other| other.name.eq_ignore_ascii_case(&registered.name));
            if !is_name(&registered.name) {
                *registry = Err(LibraryError::WrongFunctionName);
            } else if is_double {
                *registry = Err(LibraryError::TwoFunctions);
            } else {
                functions.push(registered);
            }
        }
        Ok(())
    })
}

fn read(lua: &Lua, mut args: MultiValue) -> mlua::Result<Registered> {
    match (args.len(), args.pop_front(), args.pop_front()) {
        (1, Some(Value::Table(named)), _) => read_named(lua, &named),
        (1, ..) => Err(raised(
            "calling server.register_function with a single argument is only applicable to Lua table (representing named arguments).",
        )),
        (2, Some(name), Some(callback)) => {
            let Some(name) = bytes(lua, name)? else {
                return Err(raised("first argument to server.register_function must be a string"));
            };
            let Value::Function(callback) = callback else {
                return Err(raised("second argument to server.register_function must be a function"));
            };
            Ok(without_options(name, callback))
        }
        _ => Err(raised("wrong number of arguments to server.register_function")),
    }
}

fn without_options(name: Vec<u8>, callback: Function) -> Registered {
    let header = Header { is_present: true, ..Header::default() };
    Registered {
        name,
        description: None,
        flags: Vec::new(),
        header,
        script: Script { function: callback, is_of_library: true },
    }
}

fn read_named(lua: &Lua, named: &Table) -> mlua::Result<Registered> {
    let (mut name, mut description, mut callback, mut flags) = (None, None, None, None);
    for pair in named.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let key = bytes(lua, key)?.unwrap_or_default();
        match (&key[..], value) {
            (b"function_name", value) => {
                let text = bytes(lua, value)?;
                name = Some(text.ok_or_else(|| {
                    raised("function_name argument given to server.register_function must be a string")
                })?);
            }
            (b"description", value) => {
                let text = bytes(lua, value)?;
                description = Some(text.ok_or_else(|| {
                    raised("description argument given to server.register_function must be a string")
                })?);
            }
            (b"callback", Value::Function(function)) => callback = Some(function),
            (b"callback", _) => {
                return Err(raised("callback argument given to server.register_function must be a function"));
            }
            (b"flags", Value::Table(given)) => flags = Some(given),
            (b"flags", _) => {
                return Err(raised(
                    "flags argument to server.register_function must be a table representing function flags",
                ));
            }
            _ => return Err(raised("unknown argument given to server.register_function")),
        }
    }
    let missing = |what: &str| raised(&format!("server.register_function must get a {what} argument"));
    let name = name.ok_or_else(|| missing("function name"))?;
    let mut function = without_options(name, callback.ok_or_else(|| missing("callback"))?);
    function.description = description;
    for flag in flags.iter().flat_map(Table::sequence_values::<String>) {
        let flag = flag?;
        function.header.raise(&flag).map_err(|_| raised("unknown flag given"))?;
        function.flags.push(flag);
    }
    Ok(function)
}

fn bytes(lua: &Lua, value: Value) -> mlua::Result<Option<Vec<u8>>> {
    match value {
        Value::String(_) | Value::Number(_) | Value::Integer(_) => {
            Ok(lua.coerce_string(value)?.map(|text| text.as_bytes().to_vec()))
        }
        _ => Ok(None),
    }
}

/// The host of a library's code, which runs no commands, and not for long.
pub(crate) struct Loading {
    started: Instant,
}

impl Loading {
    pub(crate) fn begin() -> Loading {
        Loading { started: Instant::now() }
    }
}

impl Host for Loading {
    fn call(&mut self, _request: Args<'_>, _protocol: Protocol) -> &[u8] {
        b"-ERR a library runs no commands while it is loaded\r\n"
    }

    fn may_run(&mut self, _request: Args<'_>) -> Option<bool> {
        Some(false)
    }

    fn log(&mut self, _level: u8, _message: &[u8]) {}

    fn kind(&self) -> &'static str {
        "FUNCTION"
    }

    fn is_killed(&mut self) -> bool {
        self.started.elapsed() > LONGEST_LOAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_the_name_and_nothing_else() {
        assert_eq!(split_library(b"#!lua name=lib_1\ncode"), Ok(("lib_1".to_owned(), &b"\ncode"[..])));
        let refused = |source: &str| split_library(source.as_bytes()).expect_err(source).to_string();
        for (source, reason) in [
            ("return 1", "Missing library metadata"),
            ("#!lua name=x", "Invalid library metadata"),
            ("#!lua\nx", "Library name was not given"),
            ("#!js name=a\nx", "Engine 'js' not found"),
            ("#!lua name=a b\nx", "Invalid metadata value given: b"),
            ("#!lua name=a name=b\nx", "Invalid metadata value, name argument was given multiple times"),
        ] {
            assert_eq!(refused(source), reason);
        }
        assert_eq!(split_library(b"#!lua name=a-b\nx"), Err(LibraryError::WrongName));
        assert_eq!(split_library(b"#!lua name=\nx"), Err(LibraryError::WrongName));
    }
}
