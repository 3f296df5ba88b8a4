//! Values from JSON.
//!
//! It knows the grammar as Lua CJSON reads it, and how that words errors; nothing of the functions that scripts call.

use mlua::{Lua, LuaString, Table, Value};

use super::super::MAX_NESTING;
use super::super::functions::Failure;
use super::{Settings, number};

/// The value of the whole text.
pub(super) fn value(lua: &Lua, json: &[u8], settings: &Settings) -> Result<Value, Failure> {
    if json.len() >= 2 && json[..2].contains(&0) {
        return Err(Failure::message("JSON parser does not support UTF-16 or UTF-32"));
    }
    let max_depth = (settings.decode_max_depth as usize).min(MAX_NESTING);
    let invalid_numbers = settings.decode_invalid_numbers;
    let mut decoder =
        Decoder { lua, json, at: 0, begin: 0, unescaped: Vec::new(), max_depth, invalid_numbers };
    let token = decoder.next();
    let value = decoder.value(token, 0)?;
    match decoder.next() {
        Token::End => Ok(value),
        token => Err(decoder.unexpected("the end", &token)),
    }
}

enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// A string without escapes: where it is in the text.
    Plain(usize, usize),
    /// A string with escapes, which the decoder has.
    Unescaped,
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl Token {
    fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::Plain(..) | Self::Unescaped => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Error(reason) => reason,
        }
    }
}

struct Decoder<'a> {
    lua: &'a Lua,
    json: &'a [u8],
    /// Where the next token, or the space before it, begins.
    at: usize,
    /// Where the last token begins, or what is wrong with it.
    begin: usize,
    unescaped: Vec<u8>,
    max_depth: usize,
    invalid_numbers: bool,
}

impl Decoder<'_> {
    fn value(&mut self, token: Token, depth: usize) -> Result<Value, Failure> {
        match token {
            Token::ObjectBegin => self.object(depth + 1),
            Token::ArrayBegin => self.array(depth + 1),
            token => self.leaf(&token),
        }
    }

    /// A value without others in it. Not inlined, as are the others that take place on the stack, so that the recursion
    /// takes little.
    #[inline(never)]
    fn leaf(&self, token: &Token) -> Result<Value, Failure> {
        Ok(match token {
            Token::Plain(..) | Token::Unescaped => Value::String(self.lua.create_string(self.string(token))?),
            Token::Number(number) => Value::Number(*number),
            Token::Boolean(boolean) => Value::Boolean(*boolean),
            Token::Null => Value::NULL,
            token => return Err(self.unexpected("value", token)),
        })
    }

    fn object(&mut self, depth: usize) -> Result<Value, Failure> {
        let table = self.table(depth)?;
        let mut token = self.next();
        while !matches!(token, Token::ObjectEnd) {
            let key = self.key(&token)?;
            token = self.next();
            let value = self.value(token, depth)?;
            token = self.end_entry(&table, key, value)?;
        }
        Ok(Value::Table(table))
    }

    fn array(&mut self, depth: usize) -> Result<Value, Failure> {
        let table = self.table(depth)?;
        let mut token = self.next();
        let mut index = 0;
        while !matches!(token, Token::ArrayEnd) {
            let value = self.value(token, depth)?;
            index += 1;
            token = self.end_element(&table, index, value)?;
        }
        Ok(Value::Table(table))
    }

    #[inline(never)]
    fn table(&self, depth: usize) -> Result<Table, Failure> {
        if depth > self.max_depth {
            let text = format!("Found too many nested data structures ({depth}) at character {}", self.at);
            return Err(Failure::message(text));
        }
        Ok(self.lua.create_table()?)
    }

    /// The key of this token, after which there is a colon.
    #[inline(never)]
    fn key(&mut self, token: &Token) -> Result<LuaString, Failure> {
        let (Token::Plain(..) | Token::Unescaped) = token else {
            return Err(self.unexpected("object key string", token));
        };
        let key = self.lua.create_string(self.string(token))?;
        match self.next() {
            Token::Colon => Ok(key),
            token => Err(self.unexpected("colon", &token)),
        }
    }

    /// Sets an entry of an object, and takes the token of the next one's key or the end.
    #[inline(never)]
    fn end_entry(&mut self, table: &Table, key: LuaString, value: Value) -> Result<Token, Failure> {
        table.raw_set(key, value)?;
        match self.next() {
            token @ Token::ObjectEnd => Ok(token),
            // The end is none after a comma.
            Token::Comma => match self.next() {
                token @ Token::ObjectEnd => Err(self.unexpected("object key string", &token)),
                token => Ok(token),
            },
            token => Err(self.unexpected("comma or object end", &token)),
        }
    }

    /// Sets an element of an array, and takes the token that the next one begins with or the end.
    #[inline(never)]
    fn end_element(&mut self, table: &Table, index: usize, value: Value) -> Result<Token, Failure> {
        table.raw_seti(index, value)?;
        match self.next() {
            token @ Token::ArrayEnd => Ok(token),
            // The end is none after a comma.
            Token::Comma => match self.next() {
                token @ Token::ArrayEnd => Err(self.unexpected("value", &token)),
                token => Ok(token),
            },
            token => Err(self.unexpected("comma or array end", &token)),
        }
    }

    fn unexpected(&self, expected: &str, token: &Token) -> Failure {
        let (found, character) = (token.name(), self.begin + 1);
        Failure::message(format!("Expected {expected} but found {found} at character {character}"))
    }

    /// The bytes of a string, which is the last token.
    fn string(&self, token: &Token) -> &[u8] {
        match token {
            Token::Plain(begin, end) => &self.json[*begin..*end],
            _ => &self.unescaped,
        }
    }

    /// A byte of the text, which ends with zero bytes.
    fn byte(&self, at: usize) -> u8 {
        self.json.get(at).copied().unwrap_or(0)
    }

    fn next(&mut self) -> Token {
        while let b' ' | b'\t' | b'\n' | b'\r' = self.byte(self.at) {
            self.at += 1;
        }
        self.begin = self.at;
        let single = match self.byte(self.at) {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b':' => Token::Colon,
            b',' => Token::Comma,
            0 => return Token::End,
            b'"' => return self.string_token().unwrap_or_else(|reason| self.error(reason)),
            b'-' | b'0'..=b'9' if !self.invalid_numbers && self.is_invalid_number() => {
                return Token::Error("invalid number");
            }
            b'-' | b'0'..=b'9' => return self.number(),
            b't' if self.begins("true") => return self.word(4, Token::Boolean(true)),
            b'f' if self.begins("false") => return self.word(5, Token::Boolean(false)),
            b'n' if self.begins("null") => return self.word(4, Token::Null),
            b'i' | b'I' | b'n' | b'N' | b'+' if self.invalid_numbers && self.is_invalid_number() => {
                return self.number();
            }
            _ => return Token::Error("invalid token"),
        };
        self.at += 1;
        single
    }

    fn begins(&self, word: &str) -> bool {
        self.json[self.at..].starts_with(word.as_bytes())
    }

    fn word(&mut self, len: usize, token: Token) -> Token {
        self.at += len;
        token
    }

    /// An error that is where the decoder stands.
    fn error(&mut self, reason: &'static str) -> Token {
        self.begin = self.at;
        Token::Error(reason)
    }

    fn number(&mut self) -> Token {
        match number::parse(&self.json[self.at..]) {
            Some((number, len)) => self.word(len, Token::Number(number)),
            None => Token::Error("invalid number"),
        }
    }

    /// Whether the number is one that C reads but JSON does not have.
    fn is_invalid_number(&self) -> bool {
        if self.byte(self.at) == b'+' {
            return true;
        }
        let at = self.at + usize::from(self.byte(self.at) == b'-');
        if self.byte(at) == b'0' {
            return matches!(self.byte(at + 1), b'x' | b'X' | b'0'..=b'9');
        }
        let head = self.json.get(at..at + 3).unwrap_or_default();
        head.eq_ignore_ascii_case(b"inf") || head.eq_ignore_ascii_case(b"nan")
    }

    fn string_token(&mut self) -> Result<Token, &'static str> {
        self.at += 1;
        let begin = self.at;
        self.skip_plain();
        if self.byte(self.at) == b'"' {
            self.at += 1;
            return Ok(Token::Plain(begin, self.at - 1));
        }
        self.unescaped.clear();
        self.unescaped.extend_from_slice(&self.json[begin..self.at]);
        loop {
            match self.byte(self.at) {
                b'"' => break,
                b'\\' => self.escape()?,
                _ => return Err("unexpected end of string"),
            }
            let begin = self.at;
            self.skip_plain();
            self.unescaped.extend_from_slice(&self.json[begin..self.at]);
        }
        self.at += 1;
        Ok(Token::Unescaped)
    }

    /// Skips bytes up to the end of the string, an escape, or the end of the text.
    fn skip_plain(&mut self) {
        let rest = &self.json[self.at..];
        let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0));
        self.at += plain.unwrap_or(rest.len());
    }

    fn escape(&mut self) -> Result<(), &'static str> {
        let byte = match self.byte(self.at + 1) {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'f' => 0x0c,
            b'r' => b'\r',
            b'u' => return self.unicode().ok_or("invalid unicode escape code"),
            _ => return Err("invalid escape code"),
        };
        self.unescaped.push(byte);
        self.at += 2;
        Ok(())
    }

    /// Takes a code of UTF-16, or two that are one character.
    fn unicode(&mut self) -> Option<()> {
        let first = self.code(self.at)?;
        let (character, len) = match first {
            0xdc00..=0xdfff => return None,
            0xd800..=0xdbff => {
                let second = self.code(self.at + 6)?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return None;
                }
                (0x10000 + ((first & 0x3ff) << 10 | second & 0x3ff), 12)
            }
            other => (other, 6),
        };
        let character = char::from_u32(character)?;
        self.unescaped.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        self.at += len;
        Some(())
    }

    /// The number after `\u`.
    fn code(&self, at: usize) -> Option<u32> {
        let digits = self.json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |code, digit| Some(code << 4 | (*digit as char).to_digit(16)?))
    }
}
