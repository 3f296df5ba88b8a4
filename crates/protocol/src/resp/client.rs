//! The client's direction: commands to bytes, and bytes to replies.

use super::{ProtocolError, parse_integer, write_head};

/// Longest line that is not a bulk string: a status, an error, a number.
const MAX_LINE: usize = 64 << 10;

const NEGATIVE: ProtocolError = ProtocolError::InvalidReply("a negative length");
pub(super) const TOO_MANY: ProtocolError = ProtocolError::ReplyTooBig("more values than the limit");

/// Appends a command, its name first, as the array of bulk strings that servers expect.
pub fn encode_command<A: AsRef<[u8]>>(args: &[A], out: &mut Vec<u8>) {
    out.reserve(16 + args.iter().map(|arg| arg.as_ref().len() + 16).sum::<usize>());
    encode_array(args.len(), out);
    for arg in args {
        encode_bulk(arg.as_ref(), out);
    }
}

/// Appends the head of a command of this many words, its name included.
pub fn encode_array(words: usize, out: &mut Vec<u8>) {
    write_head(out, b'*', words as i64);
}

/// Appends one word of a command.
#[inline]
pub fn encode_bulk(word: &[u8], out: &mut Vec<u8>) {
    write_head(out, b'$', word.len() as i64);
    out.reserve(word.len() + 2);
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// Limits of a reply.
#[derive(Clone, Copy, Debug)]
pub struct ReplyLimits {
    /// Longest string in bytes. Default 512 MiB.
    pub max_bulk: usize,
    /// Most values in a reply, nested ones included. Default 16,777,216.
    pub max_values: usize,
    /// Deepest nesting. Default 32.
    pub max_depth: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self { max_bulk: 512 << 20, max_values: 1 << 24, max_depth: 32 }
    }
}

/// One item of a reply: a value, or the head of several, borrowed from the buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    /// A status (`+`).
    Simple(&'a [u8]),
    /// An error (`-` or `!`), its code first.
    Error(&'a [u8]),
    /// An integer (`:`).
    Integer(i64),
    /// A string of any bytes (`$`).
    Bulk(&'a [u8]),
    /// No value (`_`, `$-1`, `*-1`).
    Null,
    /// True or false (`#`).
    Boolean(bool),
    /// A floating point number (`,`).
    Double(f64),
    /// An integer of any size, in decimal digits (`(`).
    BigNumber(&'a [u8]),
    /// Text and its format in three characters (`=`).
    Verbatim(&'a [u8], &'a [u8]),
    /// The head of this many values (`*`).
    Array(usize),
    /// The head of this many pairs of values (`%`).
    Map(usize),
    /// The head of this many values (`~`).
    Set(usize),
    /// The head of this many values that answer no request (`>`).
    Push(usize),
    /// The head of this many pairs of values that describe the value behind them (`|`).
    Attribute(usize),
}

/// The first token of `buffer` and how many bytes it takes; `None` if it is not complete.
///
/// Nothing is copied, and the bytes of a long string are not looked at: calling it again as they arrive is cheap.
///
/// # Errors
/// [`ProtocolError::InvalidReply`] and [`ProtocolError::ReplyTooBig`].
#[inline]
pub fn next_token<'a>(
    buffer: &'a [u8],
    limits: &ReplyLimits,
) -> Result<Option<(Token<'a>, usize)>, ProtocolError> {
    let Some((&kind, rest)) = buffer.split_first() else { return Ok(None) };
    let window = &rest[..rest.len().min(MAX_LINE)];
    let Some(length) = memchr::memchr(b'\r', window) else {
        if rest.len() > MAX_LINE {
            return Err(ProtocolError::ReplyTooBig("a line of more than 64 KiB"));
        }
        return Ok(None);
    };
    match rest.get(length + 1) {
        None => return Ok(None),
        Some(b'\n') => {}
        Some(_) => return Err(ProtocolError::InvalidReply("a line that ends in CR without LF")),
    }
    let line = &rest[..length];
    let line_end = length + 3;
    let token = match kind {
        b'+' => Token::Simple(line),
        b'-' => Token::Error(line),
        b':' => Token::Integer(integer(line)?),
        b'_' => Token::Null,
        b'(' => Token::BigNumber(big_number(line)?),
        b',' => Token::Double(double(line)?),
        b'#' => Token::Boolean(boolean(line)?),
        b'*' => count(line, limits)?.map_or(Token::Null, Token::Array),
        b'%' => Token::Map(count(line, limits)?.ok_or(NEGATIVE)?),
        b'~' => Token::Set(count(line, limits)?.ok_or(NEGATIVE)?),
        b'>' => Token::Push(count(line, limits)?.ok_or(NEGATIVE)?),
        b'|' => Token::Attribute(count(line, limits)?.ok_or(NEGATIVE)?),
        b'$' | b'!' | b'=' => return bulk(kind, line, buffer, line_end, limits),
        _ => return Err(ProtocolError::InvalidReply("an unknown type")),
    };
    Ok(Some((token, line_end)))
}

/// A string of a stated length, which starts at `start` of `buffer`.
#[inline]
fn bulk<'a>(
    kind: u8,
    length: &[u8],
    buffer: &'a [u8],
    start: usize,
    limits: &ReplyLimits,
) -> Result<Option<(Token<'a>, usize)>, ProtocolError> {
    let length = match integer(length)? {
        -1 if kind == b'$' => return Ok(Some((Token::Null, start))),
        length => usize::try_from(length).map_err(|_| NEGATIVE)?,
    };
    if length > limits.max_bulk {
        return Err(ProtocolError::ReplyTooBig("a string above the limit"));
    }
    let end = start + length;
    let (Some(text), Some(line_end)) = (buffer.get(start..end), buffer.get(end..end + 2)) else {
        return Ok(None);
    };
    if line_end != b"\r\n" {
        return Err(ProtocolError::InvalidReply("a string that is longer than it says"));
    }
    let token = match kind {
        b'!' => Token::Error(text),
        b'=' => match text.split_at_checked(4) {
            Some(([format @ .., b':'], text)) => Token::Verbatim(format, text),
            _ => return Err(ProtocolError::InvalidReply("text without its format")),
        },
        _ => Token::Bulk(text),
    };
    Ok(Some((token, end + 2)))
}

#[inline]
fn integer(line: &[u8]) -> Result<i64, ProtocolError> {
    parse_integer(line.strip_prefix(b"+").unwrap_or(line))
        .ok_or(ProtocolError::InvalidReply("a number that is not one"))
}

/// Number of values that follow, `None` for -1.
fn count(line: &[u8], limits: &ReplyLimits) -> Result<Option<usize>, ProtocolError> {
    match integer(line)? {
        -1 => Ok(None),
        count => match usize::try_from(count) {
            Err(_) => Err(NEGATIVE),
            Ok(count) if count > limits.max_values => Err(TOO_MANY),
            Ok(count) => Ok(Some(count)),
        },
    }
}

fn big_number(line: &[u8]) -> Result<&[u8], ProtocolError> {
    let digits = line.strip_prefix(b"-").or(line.strip_prefix(b"+")).unwrap_or(line);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(ProtocolError::InvalidReply("a big number that is not one"));
    }
    Ok(line)
}

fn double(line: &[u8]) -> Result<f64, ProtocolError> {
    std::str::from_utf8(line)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(ProtocolError::InvalidReply("a floating point number that is not one"))
}

fn boolean(line: &[u8]) -> Result<bool, ProtocolError> {
    match line {
        b"t" => Ok(true),
        b"f" => Ok(false),
        _ => Err(ProtocolError::InvalidReply("a boolean that is neither t nor f")),
    }
}

/// A whole reply, owned.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A status.
    Simple(Vec<u8>),
    /// An error, its code first.
    Error(Vec<u8>),
    /// An integer.
    Integer(i64),
    /// A string of any bytes.
    Bulk(Vec<u8>),
    /// No value.
    Null,
    /// True or false.
    Boolean(bool),
    /// A floating point number.
    Double(f64),
    /// An integer of any size, in decimal digits.
    BigNumber(Vec<u8>),
    /// Text for people.
    Verbatim {
        /// Three characters, such as `txt`.
        format: Vec<u8>,
        /// The text.
        text: Vec<u8>,
    },
    /// Values in order.
    Array(Vec<Value>),
    /// Pairs, in the order in which they were sent.
    Map(Vec<(Value, Value)>),
    /// Values without order.
    Set(Vec<Value>),
    /// A message that answers no request.
    Push(Vec<Value>),
    /// A value with further information about it.
    Attributed {
        /// The information.
        attributes: Vec<(Value, Value)>,
        /// The value.
        value: Box<Value>,
    },
}

/// Incremental parser of replies out of a connection's buffer.
///
/// As with [`RequestParser`](super::RequestParser), the bytes of an unfinished reply must stay at the buffer's start;
/// what is understood is not looked at again.
#[derive(Debug, Default)]
pub struct ReplyParser {
    position: usize,
    values: usize,
    open: Vec<Aggregate>,
}

/// A reply of several values that is not complete.
#[derive(Debug)]
struct Aggregate {
    kind: Kind,
    /// Number of values to come.
    missing: usize,
    values: Vec<Value>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Array,
    Map,
    Set,
    Push,
    Attribute,
}

impl ReplyParser {
    /// Parses on in `buffer`. `Some((value, n))`: a reply is complete and takes the first `n` bytes, to be dropped
    /// before the next call. `None`: more bytes are needed.
    ///
    /// # Errors
    /// The connection cannot go on: [`ProtocolError::InvalidReply`] and [`ProtocolError::ReplyTooBig`].
    pub fn parse(
        &mut self,
        buffer: &[u8],
        limits: &ReplyLimits,
    ) -> Result<Option<(Value, usize)>, ProtocolError> {
        while let Some((token, taken)) = next_token(&buffer[self.position..], limits)? {
            self.position += taken;
            self.values += 1;
            if self.values > limits.max_values {
                return Err(TOO_MANY);
            }
            let mut complete = match token {
                Token::Array(count) => self.open(Kind::Array, count, limits)?,
                Token::Map(count) => self.open(Kind::Map, count.saturating_mul(2), limits)?,
                Token::Set(count) => self.open(Kind::Set, count, limits)?,
                Token::Push(count) => self.open(Kind::Push, count, limits)?,
                Token::Attribute(count) => {
                    self.open(Kind::Attribute, count.saturating_mul(2).saturating_add(1), limits)?
                }
                token => Some(scalar(token)),
            };
            while let Some(value) = complete {
                let Some(parent) = self.open.last_mut() else {
                    self.values = 0;
                    return Ok(Some((value, std::mem::take(&mut self.position))));
                };
                parent.values.push(value);
                parent.missing -= 1;
                complete = if parent.missing == 0 { self.open.pop().map(Aggregate::close) } else { None };
            }
        }
        Ok(None)
    }

    /// Opens an aggregate of `count` values; without values it is complete at once.
    fn open(
        &mut self,
        kind: Kind,
        count: usize,
        limits: &ReplyLimits,
    ) -> Result<Option<Value>, ProtocolError> {
        // A claim alone reserves little: the rest grows with what arrives.
        let aggregate = Aggregate { kind, missing: count, values: Vec::with_capacity(count.min(16)) };
        if count == 0 {
            return Ok(Some(aggregate.close()));
        }
        if self.open.len() >= limits.max_depth {
            return Err(ProtocolError::ReplyTooBig("nested too deeply"));
        }
        self.open.push(aggregate);
        Ok(None)
    }
}

impl Aggregate {
    fn close(self) -> Value {
        match self.kind {
            Kind::Array => Value::Array(self.values),
            Kind::Set => Value::Set(self.values),
            Kind::Push => Value::Push(self.values),
            Kind::Map => Value::Map(pairs(self.values).0),
            Kind::Attribute => {
                let (attributes, value) = pairs(self.values);
                Value::Attributed { attributes, value: Box::new(value.unwrap_or(Value::Null)) }
            }
        }
    }
}

/// Neighbours in pairs, and the last one if it is alone.
fn pairs(values: Vec<Value>) -> (Vec<(Value, Value)>, Option<Value>) {
    let mut pairs = Vec::with_capacity(values.len() / 2);
    let mut values = values.into_iter();
    while let Some(first) = values.next() {
        match values.next() {
            Some(second) => pairs.push((first, second)),
            None => return (pairs, Some(first)),
        }
    }
    (pairs, None)
}

fn scalar(token: Token<'_>) -> Value {
    match token {
        Token::Simple(text) => Value::Simple(text.to_vec()),
        Token::Error(text) => Value::Error(text.to_vec()),
        Token::Integer(value) => Value::Integer(value),
        Token::Bulk(bytes) => Value::Bulk(bytes.to_vec()),
        Token::Null => Value::Null,
        Token::Boolean(value) => Value::Boolean(value),
        Token::Double(value) => Value::Double(value),
        Token::BigNumber(digits) => Value::BigNumber(digits.to_vec()),
        Token::Verbatim(format, text) => Value::Verbatim { format: format.to_vec(), text: text.to_vec() },
        Token::Array(_) | Token::Map(_) | Token::Set(_) | Token::Push(_) | Token::Attribute(_) => {
            unreachable!("aggregates are opened")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::{Protocol, ReplyBuffer};
    use proptest::prelude::*;

    fn parse_in_pieces(stream: &[u8], piece: usize) -> Result<Vec<Value>, ProtocolError> {
        let mut parser = ReplyParser::default();
        let (mut buffer, mut values) = (Vec::new(), Vec::new());
        for piece in stream.chunks(piece) {
            buffer.extend_from_slice(piece);
            while let Some((value, taken)) = parser.parse(&buffer, &ReplyLimits::default())? {
                values.push(value);
                buffer.drain(..taken);
            }
        }
        assert!(buffer.is_empty(), "unread: {}", buffer.escape_ascii());
        Ok(values)
    }

    fn parse_one(stream: &[u8]) -> Result<Option<(Value, usize)>, ProtocolError> {
        ReplyParser::default().parse(stream, &ReplyLimits::default())
    }

    #[test]
    fn every_type_of_both_versions_is_read() {
        let cases: &[(&[u8], Value)] = &[
            (b"+OK\r\n", Value::Simple(b"OK".to_vec())),
            (b"-ERR no\r\n", Value::Error(b"ERR no".to_vec())),
            (b"!6\r\nERR no\r\n", Value::Error(b"ERR no".to_vec())),
            (b":-7\r\n", Value::Integer(-7)),
            (b":+7\r\n", Value::Integer(7)),
            (b"$4\r\na\r\nb\r\n", Value::Bulk(b"a\r\nb".to_vec())),
            (b"$-1\r\n", Value::Null),
            (b"*-1\r\n", Value::Null),
            (b"_\r\n", Value::Null),
            (b"#t\r\n", Value::Boolean(true)),
            (b",-inf\r\n", Value::Double(f64::NEG_INFINITY)),
            (b",1.5e+20\r\n", Value::Double(1.5e20)),
            (b"(-123\r\n", Value::BigNumber(b"-123".to_vec())),
            (b"=6\r\ntxt:hi\r\n", Value::Verbatim { format: b"txt".to_vec(), text: b"hi".to_vec() }),
            (b"*0\r\n", Value::Array(vec![])),
            (b"~1\r\n:1\r\n", Value::Set(vec![Value::Integer(1)])),
            (b">1\r\n*1\r\n:1\r\n", Value::Push(vec![Value::Array(vec![Value::Integer(1)])])),
            (b"%1\r\n+a\r\n:1\r\n", Value::Map(vec![(Value::Simple(b"a".to_vec()), Value::Integer(1))])),
            (
                b"|1\r\n+ttl\r\n:9\r\n$1\r\nx\r\n",
                Value::Attributed {
                    attributes: vec![(Value::Simple(b"ttl".to_vec()), Value::Integer(9))],
                    value: Box::new(Value::Bulk(b"x".to_vec())),
                },
            ),
        ];
        for (stream, value) in cases {
            assert_eq!(
                parse_one(stream),
                Ok(Some((value.clone(), stream.len()))),
                "{}",
                stream.escape_ascii()
            );
        }
    }

    #[test]
    fn replies_that_are_not_resp_are_refused() {
        for stream in [
            &b"?\r\n"[..],
            b"+a\rb",
            b":\r\n",
            b":1x\r\n",
            b"$-2\r\n",
            b"$1\r\nabc",
            b"=2\r\nab\r\n",
            b"=4\r\ntxt-\r\n",
            b"%-1\r\n",
            b"#x\r\n",
            b",x\r\n",
            b"(1.5\r\n",
            b"(\r\n",
            b"!-1\r\n",
        ] {
            let result = parse_one(stream);
            assert!(
                matches!(result, Err(ProtocolError::InvalidReply(_))),
                "{}: {result:?}",
                stream.escape_ascii()
            );
        }
    }

    #[test]
    fn replies_beyond_the_limits_are_refused() {
        let endless_line = [b"+".to_vec(), vec![b'x'; MAX_LINE + 1]].concat();
        let too_deep = b"*1\r\n".repeat(33);
        for stream in
            [&b"$536870913\r\n"[..], b"*99999999\r\n", b"*9223372036854775807\r\n", &endless_line, &too_deep]
        {
            let result = parse_one(stream);
            assert!(matches!(result, Err(ProtocolError::ReplyTooBig(_))), "{result:?}");
        }
        let limits = ReplyLimits { max_values: 3, ..ReplyLimits::default() };
        let nested = b"*2\r\n*2\r\n:1\r\n:2\r\n:3\r\n";
        assert!(matches!(ReplyParser::default().parse(nested, &limits), Err(ProtocolError::ReplyTooBig(_))));
    }

    /// A tree of replies that both versions can express without loss.
    fn value() -> impl Strategy<Value = Value> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..50);
        let line = || "[ -~]{0,20}".prop_map(String::into_bytes);
        let leaf = prop_oneof![
            any::<i64>().prop_map(Value::Integer),
            bytes().prop_map(Value::Bulk),
            line().prop_map(Value::Simple),
            line().prop_map(Value::Error),
            any::<f64>().prop_map(Value::Double),
            any::<bool>().prop_map(Value::Boolean),
            Just(Value::Null),
            any::<u128>().prop_map(|number| Value::BigNumber(number.to_string().into_bytes())),
            bytes().prop_map(|text| Value::Verbatim { format: b"txt".to_vec(), text }),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let several = || prop::collection::vec(inner.clone(), 0..5);
            prop_oneof![
                several().prop_map(Value::Array),
                several().prop_map(Value::Set),
                several().prop_map(Value::Push),
                prop::collection::vec((inner.clone(), inner.clone()), 0..4).prop_map(Value::Map),
            ]
        })
    }

    fn write(value: &Value, replies: &mut ReplyBuffer) {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        match value {
            Value::Simple(line) => replies.simple(text(line)),
            Value::Error(line) => replies.error(line),
            Value::Integer(number) => replies.integer(*number),
            Value::Bulk(bytes) => replies.bulk(bytes),
            Value::Null => replies.null(),
            Value::Boolean(value) => replies.boolean(*value),
            Value::Double(number) => replies.double(*number),
            Value::BigNumber(digits) => replies.big_number(&text(digits)),
            Value::Verbatim { format, text } => replies.verbatim(&format[..].try_into().unwrap(), text),
            Value::Array(values) => head_and_values(values, replies, ReplyBuffer::array),
            Value::Set(values) => head_and_values(values, replies, ReplyBuffer::set),
            Value::Push(values) => head_and_values(values, replies, ReplyBuffer::push),
            Value::Map(pairs) => {
                replies.map(pairs.len());
                for (key, value) in pairs {
                    write(key, replies);
                    write(value, replies);
                }
            }
            Value::Attributed { .. } => unreachable!("servers write no attributes"),
        }
    }

    fn head_and_values(values: &[Value], replies: &mut ReplyBuffer, head: fn(&mut ReplyBuffer, usize)) {
        head(replies, values.len());
        values.iter().for_each(|value| write(value, replies));
    }

    proptest! {
        #[test]
        fn replies_written_in_resp3_are_read_back_whatever_the_pieces(
            values in prop::collection::vec(value(), 1..4),
            piece in 1usize..40,
        ) {
            let mut replies = ReplyBuffer::new(Protocol::Resp3);
            values.iter().for_each(|value| write(value, &mut replies));
            prop_assert_eq!(parse_in_pieces(replies.as_bytes(), piece).unwrap(), values);
        }

        #[test]
        fn the_same_replies_in_resp2_are_as_many_and_well_formed(value in value(), piece in 1usize..40) {
            let mut replies = ReplyBuffer::new(Protocol::Resp2);
            write(&value, &mut replies);
            prop_assert_eq!(parse_in_pieces(replies.as_bytes(), piece).unwrap().len(), 1);
        }

        #[test]
        fn any_bytes_mean_the_same_in_pieces_as_at_once(
            stream in prop::collection::vec(
                prop::sample::select(&b"+-:$*%~>|!=,#_(0123tf\r\n\r\n\r\n"[..]), 0..120),
            piece in 1usize..10,
        ) {
            let parse = |piece: usize| {
                let mut parser = ReplyParser::default();
                let (mut buffer, mut values) = (Vec::new(), Vec::new());
                for piece in stream.chunks(piece.max(1)) {
                    buffer.extend_from_slice(piece);
                    loop {
                        match parser.parse(&buffer, &ReplyLimits::default()) {
                            Ok(Some((value, taken))) => {
                                values.push(format!("{value:?}")); // NaN equals itself as text
                                buffer.drain(..taken);
                            }
                            Ok(None) => break,
                            Err(error) => return (values, Some(error)),
                        }
                    }
                }
                (values, None)
            };
            prop_assert_eq!(parse(piece), parse(stream.len()));
        }
    }
}
