//! Replies: from what a command answers to the bytes of RESP2 or RESP3.

use super::{ProtocolError, format_double};

/// The version of RESP that a client has asked for with `HELLO`. Connections start with [`Resp2`](Self::Resp2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2: strings, integers, errors and arrays; everything else is expressed in these.
    #[default]
    Resp2,
    /// RESP3.
    Resp3,
}

/// Collects replies for a connection's write buffer, in the version of RESP that the client speaks.
///
/// Every method appends one reply, or the head of one: after [`array`](Self::array) of `n` exactly `n` replies are to
/// follow, after [`map`](Self::map) of `n` twice as many.
#[derive(Debug)]
pub struct ReplyBuffer {
    bytes: Vec<u8>,
    protocol: Protocol,
    limit: usize,
    is_over: bool,
}

impl Default for ReplyBuffer {
    fn default() -> Self {
        Self::new(Protocol::default())
    }
}

impl ReplyBuffer {
    /// An empty buffer.
    pub fn new(protocol: Protocol) -> Self {
        Self { bytes: Vec::new(), protocol, limit: usize::MAX, is_over: false }
    }

    /// Sets how many bytes the buffer may hold. Strings that would make it longer are not written, and nothing is kept of
    /// what was: see [`is_over`](Self::is_over).
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Returns whether the replies would have been longer than the limit, after which the connection can only
    /// be closed.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Discards all that was written, and all that is still to come: the replies are longer than they may be.
    pub fn give_up(&mut self) {
        self.is_over = true;
        self.bytes = Vec::new();
    }

    /// Returns whether there is room for a string of `len` bytes; if there is not, all is discarded.
    fn has_room_for(&mut self, len: usize) -> bool {
        let has_room = self.bytes.len().saturating_add(len) <= self.limit;
        if !has_room {
            self.give_up();
        }
        has_room
    }

    /// The version that replies are written in.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Changes the version for the replies that follow.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// The bytes that were written and not yet taken away through [`as_mut_vec`](Self::as_mut_vec).
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The buffer itself: to send and clear it, to take back a reply that turned out wrong, to append bytes that are
    /// replies already.
    #[inline]
    pub fn as_mut_vec(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// A status such as `OK`. Line ends become spaces.
    #[inline]
    pub fn simple(&mut self, text: impl AsRef<[u8]>) {
        self.bytes.push(b'+');
        self.line(text.as_ref());
    }

    /// An error: its code, a space, its text (`ERR syntax error`). Line ends become spaces.
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        self.bytes.push(b'-');
        self.line(text.as_ref());
    }

    /// The answer to malformed input, after which a server closes the connection.
    pub fn protocol_error(&mut self, error: &ProtocolError) {
        match error {
            ProtocolError::ExpectedBulk(byte) => {
                let mut text = b"ERR Protocol error: expected '$', got ' '".to_vec();
                let quoted = text.len() - 2;
                text[quoted] = *byte;
                self.error(text);
            }
            other => self.error(format!("ERR {other}")),
        }
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        self.head(b':', value);
    }

    /// A string of any bytes.
    #[inline]
    pub fn bulk(&mut self, value: &[u8]) {
        if !self.has_room_for(value.len()) {
            return;
        }
        self.bytes.reserve(value.len() + 32);
        self.head(b'$', value.len() as i64);
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Starts a string of `len` bytes that somebody else, such as a decoder, appends to the buffer handed out: exactly
    /// `len` bytes, then [`end_bulk`](Self::end_bulk). If that fails, truncate to `as_bytes().len()` from before the
    /// call and answer an error instead. `None` if the buffer may not hold so much, or there is no memory for it:
    /// nothing is to be written then.
    #[inline]
    pub fn begin_bulk(&mut self, len: usize) -> Option<&mut Vec<u8>> {
        if !self.has_room_for(len) || self.bytes.try_reserve(len + 32).is_err() {
            self.is_over = true;
            return None;
        }
        self.head(b'$', len as i64);
        Some(&mut self.bytes)
    }

    /// Starts a string of `len` bytes that the sender puts in here later, followed by [`end_bulk`](Self::end_bulk).
    pub fn begin_absent_bulk(&mut self, len: usize) {
        self.head(b'$', len as i64);
    }

    /// Ends what [`begin_bulk`](Self::begin_bulk) started.
    #[inline]
    pub fn end_bulk(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// No value.
    #[inline]
    pub fn null(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// No array, where a command otherwise answers one.
    #[inline]
    pub fn null_array(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The head of an array of `len` replies.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.head(b'*', len as i64);
    }

    /// The head of a map of `len` pairs, key before value; in RESP2 an array of twice as many replies.
    pub fn map(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.head(b'*', len as i64 * 2),
            Protocol::Resp3 => self.head(b'%', len as i64),
        }
    }

    /// The head of a set of `len` replies; in RESP2 an array.
    pub fn set(&mut self, len: usize) {
        self.head(self.resp3_or(b'~', b'*'), len as i64);
    }

    /// The head of a message that answers no request, `len` replies long; in RESP2 an array.
    pub fn push(&mut self, len: usize) {
        self.head(self.resp3_or(b'>', b'*'), len as i64);
    }

    /// A floating point number; in RESP2 a string. See [`format_double`].
    pub fn double(&mut self, value: f64) {
        let mut text = Vec::with_capacity(32);
        format_double(value, &mut text);
        self.number(b',', &text);
    }

    /// An integer beyond 64 bits, in decimal digits; in RESP2 a string.
    pub fn big_number(&mut self, digits: &str) {
        self.number(b'(', digits.as_bytes());
    }

    /// True or false; in RESP2 the integer 1 or 0.
    pub fn boolean(&mut self, value: bool) {
        match self.protocol {
            Protocol::Resp2 => self.integer(i64::from(value)),
            Protocol::Resp3 => self.bytes.extend_from_slice(if value { b"#t\r\n" } else { b"#f\r\n" }),
        }
    }

    /// Text for people, with its format in three characters (`txt`, `mkd`); in RESP2 a string without the format.
    pub fn verbatim(&mut self, format: &[u8; 3], text: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                self.head(b'=', text.len() as i64 + 4);
                self.bytes.extend_from_slice(format);
                self.bytes.push(b':');
                self.bytes.extend_from_slice(text);
                self.bytes.extend_from_slice(b"\r\n");
            }
        }
    }

    fn resp3_or(&self, resp3: u8, resp2: u8) -> u8 {
        match self.protocol {
            Protocol::Resp2 => resp2,
            Protocol::Resp3 => resp3,
        }
    }

    fn number(&mut self, resp3_type: u8, text: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                self.bytes.push(resp3_type);
                self.line(text);
            }
        }
    }

    #[inline]
    fn head(&mut self, kind: u8, number: i64) {
        super::write_head(&mut self.bytes, kind, number);
    }

    fn line(&mut self, text: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        for byte in &mut self.bytes[start..] {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.bytes.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the same replies for both versions.
    fn written(write: impl Fn(&mut ReplyBuffer)) -> (String, String) {
        let [resp2, resp3] = [Protocol::Resp2, Protocol::Resp3].map(|protocol| {
            let mut replies = ReplyBuffer::new(protocol);
            write(&mut replies);
            replies.as_bytes().escape_ascii().to_string()
        });
        (resp2, resp3)
    }

    #[test]
    fn every_type_is_written_in_both_versions_as_the_specification_says() {
        type Write = fn(&mut ReplyBuffer);
        let cases: &[(Write, &str, &str)] = &[
            (|r| r.simple("OK"), r"+OK\r\n", r"+OK\r\n"),
            (|r| r.error("ERR no"), r"-ERR no\r\n", r"-ERR no\r\n"),
            (|r| r.integer(-42), r":-42\r\n", r":-42\r\n"),
            (|r| r.integer(i64::MIN), r":-9223372036854775808\r\n", r":-9223372036854775808\r\n"),
            (|r| r.bulk(b"a\r\nb"), r"$4\r\na\r\nb\r\n", r"$4\r\na\r\nb\r\n"),
            (|r| r.bulk(b""), r"$0\r\n\r\n", r"$0\r\n\r\n"),
            (|r| r.null(), r"$-1\r\n", r"_\r\n"),
            (|r| r.null_array(), r"*-1\r\n", r"_\r\n"),
            (|r| r.array(3), r"*3\r\n", r"*3\r\n"),
            (|r| r.map(3), r"*6\r\n", r"%3\r\n"),
            (|r| r.set(3), r"*3\r\n", r"~3\r\n"),
            (|r| r.push(3), r"*3\r\n", r">3\r\n"),
            (|r| r.double(0.5), r"$3\r\n0.5\r\n", r",0.5\r\n"),
            (|r| r.boolean(true), r":1\r\n", r"#t\r\n"),
            (|r| r.boolean(false), r":0\r\n", r"#f\r\n"),
            (|r| r.big_number("123"), r"$3\r\n123\r\n", r"(123\r\n"),
            (|r| r.verbatim(b"txt", b"hi"), r"$2\r\nhi\r\n", r"=6\r\ntxt:hi\r\n"),
        ];
        for (write, resp2, resp3) in cases {
            assert_eq!(written(write), (resp2.to_string(), resp3.to_string()));
        }
    }

    #[test]
    fn a_bulk_may_be_filled_by_somebody_else() {
        let (resp2, _) = written(|replies| {
            replies.begin_bulk(3).expect("there is no limit").extend_from_slice(b"abc");
            replies.end_bulk();
        });
        assert_eq!(resp2, r"$3\r\nabc\r\n");
    }

    #[test]
    fn nothing_is_kept_of_replies_that_are_longer_than_the_limit() {
        let mut replies = ReplyBuffer::default();
        replies.set_limit(20);
        replies.bulk(b"0123456789");
        assert!(!replies.is_over());
        replies.bulk(b"0123456789");
        assert!(replies.is_over());
        assert!(replies.begin_bulk(21).is_none());
        assert!(replies.as_bytes().len() < 20);
    }

    #[test]
    fn line_ends_cannot_be_smuggled_into_statuses_and_errors() {
        let (resp2, _) = written(|replies| {
            replies.error(b"ERR unknown command 'a\r\n+OK'");
            replies.simple("a\nb");
        });
        assert_eq!(resp2, r"-ERR unknown command \'a  +OK\'\r\n+a b\r\n");
    }

    #[test]
    fn a_protocol_error_quotes_the_byte_as_it_came() {
        let error = ProtocolError::ExpectedBulk(0xff);
        assert_eq!(
            written(|r| r.protocol_error(&error)).0,
            r"-ERR Protocol error: expected \'$\', got \'\xff\'\r\n"
        );
        let error = ProtocolError::UnbalancedQuotes;
        assert_eq!(
            written(|r| r.protocol_error(&error)).0,
            r"-ERR Protocol error: unbalanced quotes in request\r\n"
        );
    }
}
