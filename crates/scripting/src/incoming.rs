//! Replies of commands as values of Lua, by the rules of <https://valkey.io/topics/lua-api/#data-type-conversion>.

use mlua::{Lua, Table, Value};
use snugly_protocol::resp::{Protocol, ReplyLimits, Token, next_token};

use crate::failure::Failure;

/// Most levels of arrays within arrays.
const MOST_LEVELS: usize = 128;

/// The value that a reply becomes.
///
/// # Errors
/// Bytes that are no reply, or no memory for the value.
pub(crate) fn value(lua: &Lua, reply: &[u8], protocol: Protocol) -> mlua::Result<Value> {
    Reader { lua, rest: reply, protocol }.value(0)
}

struct Reader<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
    protocol: Protocol,
}

impl<'a> Reader<'a> {
    fn token(&mut self) -> mlua::Result<Token<'a>> {
        let limits = ReplyLimits { max_bulk: usize::MAX, ..ReplyLimits::default() };
        let (token, len) = next_token(self.rest, &limits)
            .map_err(|error| mlua::Error::RuntimeError(error.to_string()))?
            .ok_or_else(|| mlua::Error::runtime("the reply of a command is not complete"))?;
        self.rest = &self.rest[len..];
        Ok(token)
    }

    fn value(&mut self, level: usize) -> mlua::Result<Value> {
        if level > MOST_LEVELS {
            return Err(mlua::Error::runtime("the reply of a command has too many levels"));
        }
        let level = level + 1;
        Ok(match self.token()? {
            Token::Bulk(text) => Value::String(self.lua.create_string(text)?),
            Token::Integer(number) => Value::Number(number as f64),
            Token::Null if self.protocol == Protocol::Resp2 => Value::Boolean(false),
            Token::Null => Value::Nil,
            Token::Boolean(value) => Value::Boolean(value),
            Token::Simple(text) => self.tagged("ok", self.lua.create_string(text)?)?,
            Token::Error(text) => {
                let failure = Failure { text: text.to_vec(), is_counted: true };
                Value::Table(failure.to_table(self.lua)?)
            }
            Token::Double(number) => self.tagged("double", number)?,
            Token::BigNumber(digits) => self.tagged("big_number", self.lua.create_string(digits)?)?,
            Token::Verbatim(format, text) => {
                let inner = self.lua.create_table()?;
                inner.raw_set("format", self.lua.create_string(format)?)?;
                inner.raw_set("string", self.lua.create_string(text)?)?;
                self.tagged("verbatim_string", inner)?
            }
            Token::Array(count) | Token::Push(count) => Value::Table(self.array(count, level)?),
            Token::Map(count) => {
                let inner = self.lua.create_table()?;
                for _ in 0..count {
                    let key = self.value(level)?;
                    inner.raw_set(key, self.value(level)?)?;
                }
                self.tagged("map", inner)?
            }
            Token::Set(count) => {
                let inner = self.lua.create_table()?;
                for _ in 0..count {
                    inner.raw_set(self.value(level)?, true)?;
                }
                self.tagged("set", inner)?
            }
            Token::Attribute(count) => {
                for _ in 0..count * 2 {
                    self.value(level)?;
                }
                self.value(level)?
            }
        })
    }

    fn array(&mut self, count: usize, level: usize) -> mlua::Result<Table> {
        // An element has at least three bytes.
        let table = self.lua.create_table_with_capacity(count.min(self.rest.len() / 3), 0)?;
        for index in 1..=count {
            table.raw_set(index, self.value(level)?)?;
        }
        Ok(table)
    }

    fn tagged(&self, tag: &str, value: impl mlua::IntoLua) -> mlua::Result<Value> {
        let table = self.lua.create_table_with_capacity(0, 1)?;
        table.raw_set(tag, value)?;
        Ok(Value::Table(table))
    }
}
