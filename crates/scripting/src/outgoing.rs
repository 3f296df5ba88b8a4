//! Values of Lua as replies, by the rules of <https://valkey.io/topics/lua-api/#data-type-conversion>.

use mlua::{Table, Value};
use snugly_protocol::resp::{Protocol, ReplyBuffer};

/// Most levels of tables within tables.
const MOST_LEVELS: usize = 7_900;

/// A value that cannot be answered.
pub(crate) enum Unanswerable {
    /// Too many tables within tables.
    TooDeep,
    /// Lua's own trouble, such as no memory.
    Lua(mlua::Error),
}

impl From<mlua::Error> for Unanswerable {
    fn from(error: mlua::Error) -> Unanswerable {
        Unanswerable::Lua(error)
    }
}

/// Answers a value. `protocol` is the version of RESP that the script has chosen, which may not be the client's.
///
/// # Errors
/// [`Unanswerable`]; then a part of the reply may be written.
pub(crate) fn reply(value: Value, protocol: Protocol, replies: &mut ReplyBuffer) -> Result<(), Unanswerable> {
    // Tables may be as deep as the script likes, so the levels are on the heap.
    let mut levels = Vec::new();
    let mut next = Some(value);
    loop {
        if let Some(value) = next
            && let Some(elements) = write(value, protocol, replies)?
        {
            levels.push(elements);
            if levels.len() > MOST_LEVELS {
                return Err(Unanswerable::TooDeep);
            }
        }
        let Some(level) = levels.last_mut() else { return Ok(()) };
        next = level.next();
        if next.is_none() {
            levels.pop();
        }
    }
}

type Elements = std::vec::IntoIter<Value>;

/// Answers a value, of an aggregate its head; returns its elements, which are still to be answered.
fn write(
    value: Value,
    protocol: Protocol,
    replies: &mut ReplyBuffer,
) -> Result<Option<Elements>, Unanswerable> {
    match value {
        Value::String(text) => replies.bulk(&text.as_bytes()),
        Value::Integer(number) => replies.integer(number),
        Value::Number(number) => replies.integer(truncated(number)),
        Value::Boolean(value) if protocol == Protocol::Resp3 => replies.boolean(value),
        Value::Boolean(true) => replies.integer(1),
        Value::Table(table) => return write_table(&table, replies),
        _ => replies.null(),
    }
    Ok(None)
}

/// Returns digits as text, with spaces for what would end the line.
fn on_one_line(digits: &[u8]) -> String {
    String::from_utf8_lossy(digits).replace(['\r', '\n'], " ")
}

/// Returns a number without its fraction, as the processors that Valkey runs on convert one that no integer can be.
fn truncated(number: f64) -> i64 {
    let is_in_range = number >= i64::MIN as f64 && number < i64::MAX as f64;
    if is_in_range { number as i64 } else { i64::MIN }
}

fn write_table(table: &Table, replies: &mut ReplyBuffer) -> Result<Option<Elements>, Unanswerable> {
    // The fields that make a table something other than an array, in the order in which they are looked for.
    if let Value::String(text) = table.raw_get("err")? {
        replies.error(&*text.as_bytes());
        return Ok(None);
    }
    if let Value::String(text) = table.raw_get("ok")? {
        replies.simple(&*text.as_bytes());
        return Ok(None);
    }
    match table.raw_get("double")? {
        Value::Number(number) => {
            replies.double(number);
            return Ok(None);
        }
        Value::Integer(number) => {
            replies.double(number as f64);
            return Ok(None);
        }
        _ => {}
    }
    if let Value::Table(map) = table.raw_get("map")? {
        let mut elements = Vec::new();
        map.for_each(|key: Value, value: Value| {
            elements.extend([key, value]);
            Ok(())
        })?;
        replies.map(elements.len() / 2);
        return Ok(Some(elements.into_iter()));
    }
    if let Value::Table(set) = table.raw_get("set")? {
        let mut elements = Vec::new();
        set.for_each(|key: Value, _: Value| {
            elements.push(key);
            Ok(())
        })?;
        replies.set(elements.len());
        return Ok(Some(elements.into_iter()));
    }
    if let Value::String(digits) = table.raw_get("big_number")? {
        replies.big_number(&on_one_line(&digits.as_bytes()));
        return Ok(None);
    }
    if let Value::Table(verbatim) = table.raw_get("verbatim_string")?
        && let (Value::String(format), Value::String(text)) =
            (verbatim.raw_get("format")?, verbatim.raw_get("string")?)
    {
        let mut kind = *b"   ";
        kind.iter_mut().zip(&*format.as_bytes()).for_each(|(byte, given)| *byte = *given);
        replies.verbatim(&kind, &text.as_bytes());
        return Ok(None);
    }
    let mut elements = Vec::new();
    for index in 1.. {
        match table.raw_get(index)? {
            Value::Nil => break,
            value => elements.push(value),
        }
    }
    replies.array(elements.len());
    Ok(Some(elements.into_iter()))
}
