//! Reasons why a script cannot be compiled or has not come to its end.

use mlua::{Lua, Table, Value};
use thiserror::Error;

/// Reason why there is no virtual machine.
#[derive(Debug, Error)]
#[error("the engine of scripts cannot be started: {0}")]
pub struct EngineError(#[from] pub(crate) mlua::Error);

/// Reason why a script is refused, as Valkey words it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("Error compiling script (new function): {}", String::from_utf8_lossy(.0))]
pub struct CompileError(pub Vec<u8>);

/// Reason why a script has not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error reply, its code first.
    pub text: Vec<u8>,
    /// Whether the error was counted when a command of the script gave it.
    pub is_counted: bool,
}

/// The error that ends a script from outside, which the script cannot catch.
#[derive(Debug, Error)]
#[error("Script killed by user with {0} KILL.")]
pub(crate) struct Killed(pub(crate) &'static str);

/// An error that a script may catch, as text or as a table with the error reply.
#[derive(Debug, Error)]
#[error("{}", String::from_utf8_lossy(&.0.text))]
pub(crate) struct Raised(pub(crate) Failure);

impl Raised {
    /// The one behind an error, if there is one.
    pub(crate) fn behind(error: &mlua::Error) -> Option<&Failure> {
        error.chain().find_map(|cause| cause.downcast_ref::<Raised>()).map(|raised| &raised.0)
    }
}

/// An error that a function raises in the script that calls it.
pub(crate) fn raised(reason: &str) -> mlua::Error {
    mlua::Error::external(Raised(Failure::new(reason)))
}

/// Returns whether an error is [`Killed`], however deep in others.
pub(crate) fn is_kill(error: &mlua::Error) -> bool {
    error.chain().any(|cause| cause.is::<Killed>())
}

/// Returns an error's text without a place in the sandbox, which scripts do not see; whether it had one is returned too.
pub(crate) fn without_sandbox(text: &[u8]) -> (&[u8], bool) {
    let rest = text.strip_prefix(b"sandbox:").and_then(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest[digits..].strip_prefix(b": ")
    });
    rest.map_or((text, false), |rest| (rest, true))
}

/// The message of an error as Lua's own functions would have raised it.
pub(crate) fn message(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause, .. } => message(cause),
        mlua::Error::RuntimeError(text) | mlua::Error::MemoryError(text) => text.clone(),
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// The name of a field of an error that was counted when a command gave it.
pub(crate) const COUNTED: &str = "ignore_error_stats_update";

impl Failure {
    /// A failure with the code `ERR`.
    pub(crate) fn new(reason: &str) -> Failure {
        Failure { text: format!("ERR {reason}").into_bytes(), is_counted: false }
    }

    /// The failure as scripts see it: a table with the error reply.
    pub(crate) fn to_table(&self, lua: &Lua) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        table.raw_set("err", lua.create_string(&self.text)?)?;
        if self.is_counted {
            table.raw_set(COUNTED, true)?;
        }
        Ok(table)
    }

    /// The failure that a script has raised as this value.
    pub(crate) fn of(value: &Value) -> Failure {
        let own = |text: Vec<u8>| Failure { text: [b"ERR ", &text[..]].concat(), is_counted: false };
        match value {
            Value::Error(error) if let Some(failure) = Raised::behind(error) => failure.clone(),
            Value::Table(table) => match table.raw_get::<Value>("err") {
                Ok(text @ (Value::String(_) | Value::Number(_) | Value::Integer(_))) => {
                    let is_counted = table.raw_get(COUNTED).unwrap_or(false);
                    Failure { text: text_of(&text), is_counted }
                }
                _ => own(b"unknown error".to_vec()),
            },
            value => own(text_of(value)),
        }
    }

    /// Puts the script's line where there is one of the sandbox.
    pub(crate) fn without_sandbox(mut self, place: Option<&(String, usize)>) -> Failure {
        if let Some(text) = self.text.strip_prefix(b"ERR ")
            && let (rest, true) = without_sandbox(text)
        {
            let line = place.map(|(source, line)| format!("{}:{line}: ", source.trim_start_matches('@')));
            self.text = [b"ERR ", line.unwrap_or_default().as_bytes(), rest].concat();
        }
        self
    }

    /// Adds where the script was.
    pub(crate) fn at(mut self, source: &str, line: usize) -> Failure {
        self.text.extend_from_slice(format!(" script: on {source}:{line}.").as_bytes());
        self
    }
}

/// A value as Lua prints it.
fn text_of(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.as_bytes().to_vec(),
        Value::Error(error) => message(error).into_bytes(),
        value => value.to_string().unwrap_or_default().into_bytes(),
    }
}
