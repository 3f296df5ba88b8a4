//! The protocols of a load on keys: the bytes of its requests, and the parts of their replies.
//!
//! It knows how keys and values are written and read. It must not know which keys are asked for, or whether a reply is
//! the right one.

use std::fmt;
use std::io::Write;

use anyhow::Result;
use snugly_memcached::MAX_KEY;
use snugly_memcached::client::{Reply, encode_get, encode_set, parse_reply};
use snugly_protocol::resp::{ReplyLimits, Token, next_token};

use super::client::Scheme;
use super::memcached::{LONGEST_VALUE, check_key};

/// Digits of a key's number, so that all keys are of one length.
const KEY_DIGITS: usize = 12;

/// A reply to a request for keys, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A value was stored.
    Stored,
    /// So many parts follow, one for each key.
    Head(usize),
    /// A value: of the key that is named, else of the next one that was asked for.
    Value { key: Option<&'a [u8]>, value: &'a [u8] },
    /// The next key has no value.
    Missing,
    /// No other key has a value.
    End,
    /// An error, in the server's words.
    Error(&'a [u8]),
    /// Something else, which is no reply to such a request.
    Other(&'a [u8]),
}

/// For people, where it is not what was asked for.
impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored => f.write_str("that a value is stored"),
            Self::Head(count) => write!(f, "of {count} values"),
            Self::Value { .. } => f.write_str("of a value"),
            Self::Missing => f.write_str("that there is no value"),
            Self::End => f.write_str("that there are no values"),
            Self::Error(line) | Self::Other(line) => f.write_str(String::from_utf8_lossy(line).trim_end()),
        }
    }
}

/// Keys with a prefix, in the protocol of a server.
pub enum Keys {
    /// Beginnings of requests, up to the key's number: of SET, of GET, and the key alone.
    Resp {
        set: Vec<u8>,
        get: Vec<u8>,
        key: Vec<u8>,
    },
    Memcached {
        prefix: Vec<u8>,
    },
}

/// A key of memcached.
struct TextKey {
    bytes: [u8; MAX_KEY],
    len: usize,
}

impl AsRef<[u8]> for TextKey {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Keys {
    /// Errors are keys that the protocol does not know.
    pub fn new(scheme: Scheme, prefix: &str) -> Result<Self> {
        let length = prefix.len() + KEY_DIGITS;
        Ok(match scheme {
            Scheme::Resp => {
                let key = format!("${length}\r\n{prefix}");
                Self::Resp {
                    set: format!("*3\r\n$3\r\nSET\r\n{key}").into_bytes(),
                    get: format!("*2\r\n$3\r\nGET\r\n{key}").into_bytes(),
                    key: key.into_bytes(),
                }
            }
            Scheme::Memcached => {
                check_key(&format!("{prefix}{:0KEY_DIGITS$}", 0))?;
                Self::Memcached { prefix: prefix.into() }
            }
        })
    }

    /// Appends a request to store a value; `bulk` is the same value as RESP writes it.
    #[inline]
    pub fn append_set(&self, number: u64, value: &[u8], bulk: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Resp { set, .. } => {
                append_numbered(set, number, out);
                out.extend_from_slice(bulk);
            }
            Self::Memcached { prefix } => encode_set(text_key(prefix, number).as_ref(), 0, 0, value, out),
        }
    }

    /// Appends a request for the values of one key and of `more`.
    #[inline]
    pub fn append_get(&self, number: u64, more: &[u64], out: &mut Vec<u8>) {
        match self {
            Self::Resp { get, .. } if more.is_empty() => append_numbered(get, number, out),
            Self::Resp { key, .. } => {
                let _ = write!(out, "*{}\r\n$4\r\nMGET\r\n", more.len() + 2);
                append_numbered(key, number, out);
                more.iter().for_each(|&number| append_numbered(key, number, out));
            }
            Self::Memcached { prefix } => {
                let numbers = std::iter::once(&number).chain(more);
                encode_get(numbers.map(|&number| text_key(prefix, number)), out);
            }
        }
    }

    /// Whether `key` is the key of this number. Keys are only named by memcached.
    #[inline]
    pub fn is(&self, key: &[u8], number: u64) -> bool {
        match self {
            Self::Resp { .. } => false,
            Self::Memcached { prefix } => text_key(prefix, number).as_ref() == key,
        }
    }

    /// The part that `input` begins with, and its length; `None` if it is not all there.
    #[inline]
    pub fn next_part<'a>(&self, input: &'a [u8]) -> Result<Option<(Part<'a>, usize)>> {
        match self {
            Self::Resp { .. } => {
                let found = next_token(input, &ReplyLimits::default())?;
                Ok(found.map(|(token, taken)| (part_of_token(token, &input[..taken]), taken)))
            }
            Self::Memcached { .. } => {
                let found = parse_reply(input, LONGEST_VALUE)?;
                Ok(found.map(|(reply, taken)| (part_of_reply(reply), taken)))
            }
        }
    }
}

#[inline]
fn part_of_token<'a>(token: Token<'a>, bytes: &'a [u8]) -> Part<'a> {
    match token {
        Token::Simple(_) => Part::Stored,
        Token::Array(count) => Part::Head(count),
        Token::Bulk(value) => Part::Value { key: None, value },
        Token::Null => Part::Missing,
        Token::Error(text) => Part::Error(text),
        _ => Part::Other(bytes),
    }
}

#[inline]
fn part_of_reply(reply: Reply<'_>) -> Part<'_> {
    match reply {
        Reply::Value { key, value, .. } => Part::Value { key: Some(key), value },
        Reply::End => Part::End,
        Reply::Line(b"STORED") => Part::Stored,
        Reply::Line(line) => {
            let kind = line.split(|&byte| byte == b' ').next().unwrap_or_default();
            let is_error = matches!(kind, b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR");
            if is_error { Part::Error(line) } else { Part::Other(line) }
        }
    }
}

#[inline]
fn digits(mut number: u64) -> [u8; KEY_DIGITS] {
    let mut digits = [b'0'; KEY_DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    digits
}

/// Appends what is in front of a key's number, the number, and the end of the line.
#[inline]
fn append_numbered(head: &[u8], number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(head);
    out.extend_from_slice(&digits(number));
    out.extend_from_slice(b"\r\n");
}

#[inline]
fn text_key(prefix: &[u8], number: u64) -> TextKey {
    let mut key = TextKey { bytes: [0; MAX_KEY], len: prefix.len() + KEY_DIGITS };
    key.bytes[..prefix.len()].copy_from_slice(prefix);
    key.bytes[prefix.len()..key.len].copy_from_slice(&digits(number));
    key
}

#[cfg(test)]
mod tests {
    use snugly_memcached::{self as memcached, Operation, Parsed};
    use snugly_protocol::resp::{Limits, RequestParser};

    use super::*;

    #[test]
    fn requests_in_resp_are_what_they_stand_for() {
        let keys = Keys::new(Scheme::Resp, "k:").unwrap();
        let mut requests = Vec::new();
        keys.append_set(987, b"hi", b"$2\r\nhi\r\n", &mut requests);
        keys.append_get(987, &[], &mut requests);
        keys.append_get(1, &[2, 3], &mut requests);
        let expected: [&[&str]; 3] = [
            &["SET", "k:000000000987", "hi"],
            &["GET", "k:000000000987"],
            &["MGET", "k:000000000001", "k:000000000002", "k:000000000003"],
        ];
        let (mut parser, mut rest) = (RequestParser::default(), &requests[..]);
        for words in expected {
            let taken = parser.parse(rest, &Limits::default()).unwrap().unwrap();
            let args = parser.args(rest);
            assert!((0..words.len()).all(|index| &args[index] == words[index].as_bytes()), "{words:?}");
            assert_eq!(args.get(words.len()), None);
            rest = &rest[taken..];
        }
        assert_eq!(rest, b"");
    }

    #[test]
    fn requests_to_memcached_are_what_they_stand_for() {
        let keys = Keys::new(Scheme::Memcached, "k:").unwrap();
        let mut requests = Vec::new();
        keys.append_set(987, b"hi", b"", &mut requests);
        keys.append_get(987, &[1], &mut requests);
        assert!(requests.ends_with(b"get k:000000000987 k:000000000001\r\n"), "{}", requests.escape_ascii());
        let parsed = memcached::RequestParser::default().parse(&requests, &memcached::Limits::default());
        let Parsed::Request(request, _) = parsed else { panic!("no request") };
        let Operation::Store(store) = request.operation else { panic!("{request:?}") };
        assert_eq!((store.key.wire(), store.value), (&b"k:000000000987"[..], &b"hi"[..]));
        assert_eq!((store.flags, store.exptime.0), (0, 0));
    }

    #[test]
    fn keys_that_memcached_does_not_know_are_refused() {
        assert!(Keys::new(Scheme::Memcached, &"k".repeat(238)).is_ok());
        for (prefix, bytes) in [("k".repeat(239), 251), ("a key".to_owned(), 17)] {
            let error = Keys::new(Scheme::Memcached, &prefix).err().unwrap().to_string();
            assert!(error.contains(&format!("({bytes} bytes)")), "{error}");
            assert!(Keys::new(Scheme::Resp, &prefix).is_ok());
        }
    }

    #[test]
    fn replies_are_the_same_parts_in_both_protocols() {
        let value = |key| Part::Value { key, value: b"hi" };
        let (resp, memcached) = (Scheme::Resp, Scheme::Memcached);
        let rows: [(Scheme, &[u8], Part<'_>); 13] = [
            (resp, b"+OK\r\n", Part::Stored),
            (resp, b"*2\r\n", Part::Head(2)),
            (resp, b"$2\r\nhi\r\n", value(None)),
            (resp, b"$-1\r\n", Part::Missing),
            (resp, b"-OOM no memory\r\n", Part::Error(b"OOM no memory")),
            (resp, b":1\r\n", Part::Other(b":1\r\n")),
            (memcached, b"STORED\r\n", Part::Stored),
            (memcached, b"VALUE k 0 2\r\nhi\r\n", value(Some(b"k"))),
            (memcached, b"END\r\n", Part::End),
            (memcached, b"ERROR\r\n", Part::Error(b"ERROR")),
            (memcached, b"SERVER_ERROR out of memory\r\n", Part::Error(b"SERVER_ERROR out of memory")),
            (memcached, b"ERRORS\r\n", Part::Other(b"ERRORS")),
            (memcached, b"NOT_STORED\r\n", Part::Other(b"NOT_STORED")),
        ];
        for (scheme, bytes, part) in rows {
            let keys = Keys::new(scheme, "k").unwrap();
            assert_eq!(keys.next_part(bytes).unwrap(), Some((part, bytes.len())), "{}", bytes.escape_ascii());
            assert_eq!(keys.next_part(&bytes[..bytes.len() - 1]).unwrap(), None, "{}", bytes.escape_ascii());
        }
    }
}
