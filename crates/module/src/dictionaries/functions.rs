//! The server's functions, which dictionaries are kept among: they are in RDB and append-only files, go to replicas, and are
//! loaded by servers without the module as well.

use std::ffi::CStr;

use super::library;
use crate::server::{CallReply, Context, OwnedText};

/// Those who are told of a change.
#[derive(Clone, Copy)]
enum Copies {
    /// Replicas and the append-only file.
    All,
    /// The append-only file: what a replica does is nothing to its own replicas.
    File,
    None,
}

impl Copies {
    fn of(context: Context) -> Copies {
        if context.is_replica() { Copies::File } else { Copies::All }
    }
}

/// Names of the libraries that are there.
pub fn names(context: Context) -> Vec<Vec<u8>> {
    list(context, library::ALL, &[], |row| field(row, b"library_name"))
}

/// Text of a library.
pub fn code(context: Context, name: &str) -> Option<Vec<u8>> {
    list(context, name, &[b"WITHCODE"], |row| field(row, b"library_code")).pop()
}

/// Adds a library, or replaces it.
///
/// # Errors
/// The server's text.
pub fn load(context: Context, code: &str) -> Result<(), String> {
    call(context, Copies::of(context), &[b"LOAD", b"REPLACE", code.as_bytes()]).map(drop)
}

/// Takes a library away.
///
/// # Errors
/// The server's text, if there is no such library.
pub fn delete(context: Context, name: &str) -> Result<(), String> {
    call(context, Copies::of(context), &[b"DELETE", name.as_bytes()]).map(drop)
}

/// Whether functions can be read and added now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    Idle,
    /// A script runs that takes long: the server must not get another function meanwhile.
    Busy,
    /// The server has no such command (`rename-command`), or no language for them.
    Missing,
}

/// The present state.
pub fn state(context: Context) -> State {
    match call(context, Copies::None, &[b"STATS"]) {
        Ok(reply) if reply.element(1).is_some_and(|running| running.array().is_some()) => State::Busy,
        Ok(_) => State::Idle,
        Err(error) if error.starts_with("BUSY") => State::Busy,
        Err(_) => State::Missing,
    }
}

fn list<T>(
    context: Context,
    pattern: &str,
    options: &[&[u8]],
    see: impl Fn(&CallReply<'_>) -> Option<T>,
) -> Vec<T> {
    let words: Vec<&[u8]> = [&b"LIST"[..], b"LIBRARYNAME", pattern.as_bytes()]
        .into_iter()
        .chain(options.iter().copied())
        .collect();
    let Ok(reply) = call(context, Copies::None, &words) else { return Vec::new() };
    let rows = (0..reply.array().unwrap_or(0)).filter_map(|at| reply.element(at));
    rows.filter_map(|row| see(&row)).collect()
}

/// The string behind a name, in an array of both.
fn field(row: &CallReply<'_>, name: &[u8]) -> Option<Vec<u8>> {
    let is_it = |at: &usize| row.element(*at).is_some_and(|element| element.string() == Some(name));
    let at = (0..row.array()?).step_by(2).find(is_it)?;
    row.element(at + 1)?.string().map(<[u8]>::to_vec)
}

fn call<'a>(context: Context, copies: Copies, words: &[&[u8]]) -> Result<CallReply<'a>, String> {
    let format: &CStr = match copies {
        Copies::All => c"!Ev",
        // Not to replicas.
        Copies::File => c"!REv",
        Copies::None => c"Ev",
    };
    let words: Vec<OwnedText> = words.iter().map(|word| OwnedText::new(word)).collect();
    let arguments: Vec<_> = words.iter().map(|word| word.as_text().raw()).collect();
    let reply = context.call(c"FUNCTION", format, &arguments).ok_or("the server has not run it")?;
    match reply.error() {
        Some(error) => Err(String::from_utf8_lossy(error).into_owned()),
        None => Ok(reply),
    }
}
