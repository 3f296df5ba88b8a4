//! The client's direction of the text protocol: requests to bytes, and bytes to replies.
//!
//! It knows as much as measuring and testing a server takes: values that are got and stored. It must not know
//! how a server reads and answers.

use std::fmt;

use crate::MAX_KEY;
use crate::line::{Words, unsigned, unsigned_32, without_end};
use crate::reply::write_number;

/// Longest line of a reply in bytes: a key, three numbers, and words.
const MAX_LINE: usize = 2048;

/// One reply, or one part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// One of the values that were asked for.
    Value {
        /// The key.
        key: &'a [u8],
        /// The client's own bits.
        flags: u32,
        /// The token, if it was asked for.
        cas: Option<u64>,
        /// The value.
        value: &'a [u8],
    },
    /// The end of the values that were asked for.
    End,
    /// Any other line, without its end: `STORED`, `SERVER_ERROR out of memory`.
    Line(&'a [u8]),
}

/// The line, for people: of a value all but the value.
impl fmt::Display for Reply<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Value { key, flags, value, .. } => {
                write!(f, "VALUE {} {flags} {}", String::from_utf8_lossy(key), value.len())
            }
            Reply::End => f.write_str("END"),
            Reply::Line(line) => f.write_str(&String::from_utf8_lossy(line)),
        }
    }
}

/// Why bytes are no reply: the connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// No line, or no end of a value, where there has to be one.
    #[error("no reply of memcached's text protocol")]
    Malformed,
    /// A value longer than the client takes.
    #[error("a value of {len} bytes, of which at most {limit} are taken")]
    TooLarge {
        /// Its length in bytes.
        len: u64,
        /// Longest value in bytes.
        limit: usize,
    },
}

/// Whether `key` can be asked for in text: 1 to 250 bytes, and no spaces and control characters.
pub fn is_key(key: &[u8]) -> bool {
    (1..=MAX_KEY).contains(&key.len()) && key.iter().all(|byte| *byte > b' ' && *byte != 0x7f)
}

/// Appends a request for the values of keys, for which [`is_key`] is true.
pub fn encode_get(keys: impl IntoIterator<Item: AsRef<[u8]>>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"get");
    for key in keys {
        out.push(b' ');
        out.extend_from_slice(key.as_ref());
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a request to store a value that expires as `exptime` says, see [`Exptime`](crate::Exptime).
pub fn encode_set(key: &[u8], flags: u32, exptime: i64, value: &[u8], out: &mut Vec<u8>) {
    out.reserve(key.len() + value.len() + 64);
    out.extend_from_slice(b"set ");
    out.extend_from_slice(key);
    out.push(b' ');
    write_number(flags, out);
    out.push(b' ');
    write_number(exptime, out);
    out.push(b' ');
    write_number(value.len(), out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The reply that `input` starts with, and how many bytes it takes; `None` if more have to come. Values are
/// at most `limit` bytes long.
///
/// # Errors
/// [`ReplyError`]
pub fn parse_reply(input: &[u8], limit: usize) -> Result<Option<(Reply<'_>, usize)>, ReplyError> {
    let Some(newline) = memchr::memchr(b'\n', &input[..input.len().min(MAX_LINE)]) else {
        return if input.len() < MAX_LINE { Ok(None) } else { Err(ReplyError::Malformed) };
    };
    let line = without_end(&input[..=newline]);
    let start = newline + 1;
    let Some(words) = line.strip_prefix(b"VALUE ") else {
        let reply = if line == b"END" { Reply::End } else { Reply::Line(line) };
        return Ok(Some((reply, start)));
    };
    let mut words = Words::new(words);
    let mut word = || words.next().ok_or(ReplyError::Malformed);
    let key = word()?;
    let flags = unsigned_32(word()?).ok_or(ReplyError::Malformed)?;
    let len = unsigned(word()?).ok_or(ReplyError::Malformed)?;
    let cas = words.next().map(|word| unsigned(word).ok_or(ReplyError::Malformed)).transpose()?;
    let end = match usize::try_from(len) {
        Ok(len) if len <= limit => start.saturating_add(len),
        _ => return Err(ReplyError::TooLarge { len, limit }),
    };
    match input.get(end..end.saturating_add(2)) {
        None => Ok(None),
        Some(b"\r\n") => {
            let reply = Reply::Value { key, flags, cas, value: &input[start..end] };
            Ok(Some((reply, end + 2)))
        }
        Some(_) => Err(ReplyError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, Limits, Operation, Outcome, Parsed, Request, RequestParser};
    use proptest::prelude::*;

    /// The requests that a server finds.
    fn requests(mut stream: &[u8], check: &mut dyn FnMut(Request<'_>)) {
        let mut parser = RequestParser::default();
        while let Parsed::Request(request, taken) = parser.parse(stream, &Limits::default()) {
            check(request);
            stream = &stream[taken..];
        }
        assert_eq!(stream, b"");
    }

    #[test]
    fn replies_are_read_one_after_the_other() {
        let stream = b"VALUE a 5 2 84\r\nhi\r\nVALUE b 0 0\r\n\r\nEND\r\nSTORED\r\nCLIENT_ERROR no\r\n";
        let (mut rest, mut replies) = (&stream[..], Vec::new());
        while let Some((reply, taken)) = parse_reply(rest, 10).expect("they are replies") {
            replies.push(reply);
            rest = &rest[taken..];
        }
        let expected = [
            Reply::Value { key: b"a", flags: 5, cas: Some(84), value: b"hi" },
            Reply::Value { key: b"b", flags: 0, cas: None, value: b"" },
            Reply::End,
            Reply::Line(b"STORED"),
            Reply::Line(b"CLIENT_ERROR no"),
        ];
        assert_eq!((replies.as_slice(), rest), (&expected[..], &b""[..]));
    }

    #[test]
    fn replies_are_shown_as_their_lines() {
        let value = Reply::Value { key: b"a", flags: 5, cas: None, value: b"hi" };
        let shown = [value, Reply::End, Reply::Line(b"SERVER_ERROR no")].map(|reply| reply.to_string());
        assert_eq!(shown, ["VALUE a 5 2", "END", "SERVER_ERROR no"]);
    }

    #[test]
    fn keys_are_up_to_250_bytes_without_spaces_and_control_characters() {
        assert!(is_key(b"k") && is_key(&[b'k'; 250]) && is_key("\u{fc}ber".as_bytes()));
        for wrong in [&b""[..], &[b'k'; 251], b"a key", b"a\r\nkey", b"a\0", b"a\x7f"] {
            assert!(!is_key(wrong), "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for wrong in [&b"VALUE a x 2\r\nhi\r\n"[..], b"VALUE a 0\r\n", b"VALUE a 0 2\r\nhixx", &[b'x'; 2048]]
        {
            assert_eq!(parse_reply(wrong, 10), Err(ReplyError::Malformed));
        }
        let long = parse_reply(b"VALUE a 0 11\r\n", 10);
        assert_eq!(long, Err(ReplyError::TooLarge { len: 11, limit: 10 }));
    }

    fn key() -> impl Strategy<Value = String> {
        "[!-~]{1,250}"
    }

    proptest! {
        #[test]
        fn a_server_reads_what_a_client_stores(
            key in key(),
            flags: u32,
            exptime: i64,
            value in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut stream = Vec::new();
            encode_set(key.as_bytes(), flags, exptime, &value, &mut stream);
            requests(&stream, &mut |request| {
                let Operation::Store(store) = request.operation else { panic!("{request:?}") };
                assert_eq!(store.key.plain(), Some(key.as_bytes()));
                assert_eq!((store.flags, store.exptime.0, store.value), (flags, exptime, &value[..]));
                let mut reply = Vec::new();
                request.form.outcome(Outcome::Stored { cas: 1, len: value.len() }, &mut reply);
                assert_eq!(parse_reply(&reply, 0), Ok(Some((Reply::Line(b"STORED"), reply.len()))));
            });
        }

        #[test]
        fn a_client_reads_what_a_server_answers(
            keys in prop::collection::vec(key(), 1..5),
            flags: u32,
            value in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut stream = Vec::new();
            encode_get(keys.iter().map(String::as_bytes), &mut stream);
            let mut replies = Vec::new();
            requests(&stream, &mut |request| {
                request.form.begin_hit(&Item { flags, len: value.len(), ..Item::default() }, &mut replies);
                replies.extend_from_slice(&value);
                request.form.end_hit(&mut replies);
            });
            let mut rest = &replies[..];
            for key in &keys {
                for end in 0..rest.len().min(20) {
                    prop_assert_eq!(parse_reply(&rest[..end], 200), Ok(None));
                }
                let (reply, taken) = parse_reply(rest, 200).expect("a reply").expect("a whole one");
                prop_assert_eq!(reply, Reply::Value { key: key.as_bytes(), flags, cas: None, value: &value });
                rest = &rest[taken..];
            }
            prop_assert_eq!(parse_reply(rest, 200), Ok(Some((Reply::End, 5))));
        }

        #[test]
        fn any_bytes_are_replies_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let stream = [b"VALUE ", &bytes[..]].concat();
            if let Ok(Some((_, taken))) = parse_reply(&stream, 50) {
                prop_assert!((1..=stream.len()).contains(&taken));
            }
        }
    }
}
