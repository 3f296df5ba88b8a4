//! Requests: from the bytes of a connection to the arguments of a command.

use super::args::{Args, Range};
use super::inline;
use super::{ProtocolError, parse_integer};

/// Before a client has authenticated: the most arguments of a request, and the longest one.
const UNAUTHENTICATED_MAX_ARGS: i64 = 10;
const UNAUTHENTICATED_MAX_BULK: usize = 16 * 1024;
/// The shortest argument on the wire: `$0\r\n\r\n`.
const SHORTEST_BULK: usize = 6;
/// Bytes that [`RequestParser::wanted`] may ask for however little has arrived.
const WANTED_FLOOR: usize = 16 * 1024;
/// Argument ranges and inline bytes that a parser keeps room for between requests.
const KEPT_RANGES: usize = 1024;
const KEPT_INLINE: usize = 4096;

/// Limits of a request. A claim above a limit is refused before anything is reserved for it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest argument in bytes. Default 512 MiB (Valkey: `proto-max-bulk-len`).
    pub max_bulk: usize,
    /// Longest inline request, and longest header line, in bytes. Default 64 KiB.
    pub max_inline: usize,
    /// Most arguments in a request. Default 2,147,483,647, as in Valkey: what they take counts within `max_request`.
    pub max_args: usize,
    /// Largest request in all, and what is noted of its arguments, in bytes. Default 1 GiB (Valkey: `client-query-buffer-limit`).
    pub max_request: usize,
    /// Whether the client may use the limits above; until then 10 arguments of at most 16 KiB. Default true.
    pub authenticated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bulk: 512 << 20,
            max_inline: 64 << 10,
            max_args: i32::MAX as usize,
            max_request: 1 << 30,
            authenticated: true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Before the first byte of a request, or within an inline request.
    Start,
    /// `remaining` arguments are missing; the length of the first of these is known if `bulk` is there.
    Arguments { remaining: usize, bulk: Option<usize> },
    /// A request was handed out; its arguments may be read until the next call of `parse`.
    Complete,
}

/// Incremental parser of requests out of a connection's buffer, without copying arguments.
///
/// The caller keeps a buffer of unread bytes. After each read it calls [`parse`](Self::parse) until that returns
/// `None`, dropping the bytes of a finished request in between; while a request is unfinished, its bytes must stay at
/// the buffer's start. Bytes are looked at only once, however small the pieces that arrive.
///
/// ```
/// use snugly_protocol::resp::{Limits, RequestParser};
///
/// let mut parser = RequestParser::default();
/// let buffer = b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n";
/// let taken = parser.parse(buffer, &Limits::default()).unwrap();
/// assert_eq!(taken, Some(buffer.len()));
/// assert_eq!(&parser.args(buffer)[1], b"key");
/// ```
#[derive(Debug)]
pub struct RequestParser {
    stage: Stage,
    /// Bytes at the buffer's start that are understood.
    position: usize,
    /// Bytes at the buffer's start that hold no end of the line that is being looked for.
    scanned: usize,
    ranges: Vec<Range>,
    /// The arguments of an inline request, unquoted; `ranges` points in here if `inlined`.
    inline: Vec<u8>,
    inlined: bool,
    wanted: usize,
}

impl Default for RequestParser {
    fn default() -> Self {
        Self {
            stage: Stage::Start,
            position: 0,
            scanned: 0,
            ranges: Vec::new(),
            inline: Vec::new(),
            inlined: false,
            wanted: 1,
        }
    }
}

impl RequestParser {
    /// Parses on in `buffer`, the connection's unread bytes.
    ///
    /// `Some(n)`: a request is complete and takes the first `n` bytes; read its [`args`](Self::args), then drop these
    /// bytes before the next call. It may have no arguments (an empty line, `*0`, `*-1`), which asks for nothing and
    /// gets no reply. `None`: more bytes are needed, about [`wanted`](Self::wanted).
    ///
    /// # Errors
    /// The connection cannot go on: see [`ProtocolError`].
    #[inline]
    pub fn parse(&mut self, buffer: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        if self.stage == Stage::Complete {
            self.reset();
        }
        if self.stage == Stage::Start {
            match buffer.first() {
                None => return Ok(None),
                Some(b'*') => {
                    let Some(count) = self.parse_count(buffer, limits)? else { return Ok(None) };
                    self.stage = Stage::Arguments { remaining: count, bulk: None };
                }
                Some(_) => return self.parse_inline(buffer, limits),
            }
        }
        self.parse_arguments(buffer, limits)
    }

    /// The arguments of the request that [`parse`](Self::parse) has just completed in the same `buffer`.
    ///
    /// # Panics
    /// If `buffer` is shorter than that request.
    #[inline]
    pub fn args<'a>(&'a self, buffer: &'a [u8]) -> Args<'a> {
        debug_assert!(self.stage == Stage::Complete, "args of an unfinished request");
        Args::new(if self.inlined { &self.inline } else { buffer }, &self.ranges)
    }

    /// Bytes that the unfinished request certainly needs, for the reader to make room: at least 1, and bounded by what
    /// has arrived already (or 16 KiB), so that a claim alone reserves nothing.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    fn reset(&mut self) {
        self.stage = Stage::Start;
        self.position = 0;
        self.scanned = 0;
        self.inlined = false;
        self.ranges.clear();
        if self.ranges.capacity() > KEPT_RANGES {
            self.ranges.shrink_to(KEPT_RANGES);
        }
        if self.inline.capacity() > KEPT_INLINE {
            self.inline = Vec::new();
        }
    }

    /// The number of arguments, from the line `*<count>`.
    #[inline]
    fn parse_count(&mut self, buffer: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let Some(line) = self.header(b'*', buffer, limits, ProtocolError::MultibulkCountTooBig)? else {
            return Ok(None);
        };
        let count = line.number.ok_or(ProtocolError::InvalidMultibulkLength)?;
        if count > limits.max_args as i64 {
            return Err(ProtocolError::InvalidMultibulkLength);
        }
        if count > UNAUTHENTICATED_MAX_ARGS && !limits.authenticated {
            return Err(ProtocolError::UnauthenticatedMultibulk);
        }
        self.position = line.end;
        Ok(Some(count.max(0) as usize))
    }

    /// The length of an argument, from the line `$<length>`.
    #[inline]
    fn parse_length(&mut self, buffer: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let Some(line) = self.header(b'$', buffer, limits, ProtocolError::BulkCountTooBig)? else {
            return Ok(None);
        };
        let length = line.number.and_then(|number| usize::try_from(number).ok());
        let length = length.ok_or(ProtocolError::InvalidBulkLength)?;
        if length > limits.max_bulk {
            return Err(ProtocolError::InvalidBulkLength);
        }
        if length > UNAUTHENTICATED_MAX_BULK && !limits.authenticated {
            return Err(ProtocolError::UnauthenticatedBulk);
        }
        let ranges = self.ranges.len() * size_of::<Range>();
        if line.end.saturating_add(length).saturating_add(2 + ranges) > limits.max_request {
            return Err(ProtocolError::RequestTooBig { limit: limits.max_request });
        }
        self.position = line.end;
        Ok(Some(length))
    }

    #[inline]
    fn parse_arguments(&mut self, buffer: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let Stage::Arguments { mut remaining, mut bulk } = self.stage else {
            unreachable!("parse set the stage")
        };
        while remaining > 0 {
            let length = match bulk.take() {
                Some(length) => length,
                None => match self.parse_length(buffer, limits)? {
                    Some(length) => length,
                    None => {
                        self.stage = Stage::Arguments { remaining, bulk: None };
                        return Ok(None);
                    }
                },
            };
            let start = self.position;
            let end = start + length;
            if buffer.len() < end + 2 {
                self.stage = Stage::Arguments { remaining, bulk: Some(length) };
                self.want(end + 2 + (remaining - 1) * SHORTEST_BULK, buffer);
                return Ok(None);
            }
            if buffer[end..end + 2] != *b"\r\n" {
                return Err(ProtocolError::InvalidCrlf);
            }
            self.ranges.push((start, end));
            self.position = end + 2;
            remaining -= 1;
        }
        self.stage = Stage::Complete;
        Ok(Some(self.position))
    }

    /// Every other request: a line of words.
    fn parse_inline(&mut self, buffer: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let Some(newline) = self.line_end(b'\n', buffer, limits, ProtocolError::InlineTooBig)? else {
            return Ok(None);
        };
        let line = &buffer[..newline];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.inline.clear();
        inline::split(line, &mut self.inline, &mut self.ranges)?;
        self.inlined = true;
        self.stage = Stage::Complete;
        Ok(Some(newline + 1))
    }

    /// The header line at the current position, which must start with `marker`, if it is complete.
    #[inline]
    fn header(
        &mut self,
        marker: u8,
        buffer: &[u8],
        limits: &Limits,
        endless: ProtocolError,
    ) -> Result<Option<HeaderLine>, ProtocolError> {
        match HeaderLine::short(marker, buffer, self.position) {
            Some(line) => Ok(Some(line)),
            None => self.any_header(marker, buffer, limits, endless),
        }
    }

    #[cold]
    fn any_header(
        &mut self,
        marker: u8,
        buffer: &[u8],
        limits: &Limits,
        endless: ProtocolError,
    ) -> Result<Option<HeaderLine>, ProtocolError> {
        let Some(carriage_return) = self.line_end(b'\r', buffer, limits, endless)? else { return Ok(None) };
        let end = carriage_return + 2;
        if buffer.len() < end {
            self.want(end, buffer);
            return Ok(None);
        }
        let first = buffer[self.position];
        if first != marker {
            return Err(ProtocolError::ExpectedBulk(first));
        }
        if buffer[carriage_return + 1] != b'\n' {
            return Err(ProtocolError::InvalidCrlf);
        }
        let number = parse_integer(&buffer[self.position + 1..carriage_return]);
        Ok(Some(HeaderLine { number, end }))
    }

    /// The end of the line that starts at the current position, looking only at bytes not looked at before.
    fn line_end(
        &mut self,
        terminator: u8,
        buffer: &[u8],
        limits: &Limits,
        endless: ProtocolError,
    ) -> Result<Option<usize>, ProtocolError> {
        let from = self.scanned.max(self.position);
        let to = buffer.len().min(self.position + limits.max_inline + 1);
        match memchr::memchr(terminator, &buffer[from..to]) {
            Some(offset) => {
                self.scanned = from + offset; // found again if the byte behind it is missing
                Ok(Some(from + offset))
            }
            None if to - self.position > limits.max_inline => Err(endless),
            None => {
                self.scanned = to;
                self.want(to + 1, buffer);
                Ok(None)
            }
        }
    }

    fn want(&mut self, end: usize, buffer: &[u8]) {
        self.wanted = (end - buffer.len()).min(buffer.len().max(WANTED_FLOOR));
    }
}

/// A line of a marker and a number.
struct HeaderLine {
    /// `None` if it is no number.
    number: Option<i64>,
    /// Offset of the byte behind the line and its end.
    end: usize,
}

impl HeaderLine {
    /// The usual header, a marker and one to nine digits, if it is there as a whole; `None` for all others.
    #[inline(always)]
    fn short(marker: u8, buffer: &[u8], position: usize) -> Option<Self> {
        let [first, digits @ ..] = buffer.get(position..)? else { return None };
        if *first != marker {
            return None;
        }
        let mut number = 0;
        for (count, pair) in digits.windows(2).take(10).enumerate() {
            let digit = pair[0].wrapping_sub(b'0');
            if digit <= 9 && (number != 0 || count == 0) {
                number = number * 10 + i64::from(digit);
            } else if count > 0 && pair == b"\r\n" {
                return Some(Self { number: Some(number), end: position + count + 3 });
            } else {
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::encode_command;
    use proptest::prelude::*;

    type Request = Vec<Vec<u8>>;

    /// Feeds `stream` in pieces of the given sizes (the last one repeats), as a connection would.
    fn parse_all(stream: &[u8], pieces: &[usize], limits: &Limits) -> (Vec<Request>, Option<ProtocolError>) {
        let mut parser = RequestParser::default();
        let mut requests = Vec::new();
        let mut buffer = Vec::new();
        let mut sizes =
            pieces.iter().copied().chain(std::iter::repeat(*pieces.last().unwrap_or(&stream.len())));
        let mut rest = stream;
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(sizes.next().unwrap_or(1).clamp(1, rest.len()));
            buffer.extend_from_slice(piece);
            rest = tail;
            loop {
                match parser.parse(&buffer, limits) {
                    Ok(Some(taken)) => {
                        requests.push(parser.args(&buffer).iter().map(<[u8]>::to_vec).collect());
                        buffer.drain(..taken);
                    }
                    Ok(None) => break,
                    Err(error) => return (requests, Some(error)),
                }
            }
        }
        (requests, None)
    }

    fn parse_whole(stream: &[u8]) -> (Vec<Request>, Option<ProtocolError>) {
        parse_all(stream, &[stream.len()], &Limits::default())
    }

    fn words(words: &[&str]) -> Request {
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn malformed_requests_are_refused_in_valkeys_words() {
        let cases: &[(&[u8], &str)] = &[
            (b"*\r\n", "invalid multibulk length"),
            (b"*x\r\n", "invalid multibulk length"),
            (b"*+1\r\n", "invalid multibulk length"),
            (b"*01\r\n", "invalid multibulk length"),
            (b"*-0\r\n", "invalid multibulk length"),
            (b"*2147483648\r\n", "invalid multibulk length"),
            (b"*99999999999999999999\r\n", "invalid multibulk length"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*1\r\n$\r\n", "invalid bulk length"),
            (b"*1\r\n$04\r\n", "invalid bulk length"),
            (b"*1\r\n$536870913\r\n", "invalid bulk length"),
            (b"*1\r\n$99999999999999999999\r\n", "invalid bulk length"),
            (b"*1\r\nx4\r\n", "expected '$', got 'x'"),
            (b"*1\r\n:4\r\n", "expected '$', got ':'"),
            (b"*1\r\n$4\r\nPINGPONG", "invalid CRLF in request"),
            (b"*1\rx", "invalid CRLF in request"),
            (b"ECHO 'open\r\n", "unbalanced quotes in request"),
        ];
        for (stream, words) in cases {
            let (requests, error) = parse_whole(stream);
            assert_eq!(requests, Vec::<Request>::new(), "{}", stream.escape_ascii());
            let error = error.map(|error| error.to_string());
            assert_eq!(error, Some(format!("Protocol error: {words}")), "{}", stream.escape_ascii());
        }
    }

    #[test]
    fn lines_that_do_not_end_are_refused_beyond_64_kib_and_awaited_until_then() {
        for (head, error) in [
            (&b"x"[..], ProtocolError::InlineTooBig),
            (b"*", ProtocolError::MultibulkCountTooBig),
            (b"*1\r\n$", ProtocolError::BulkCountTooBig),
        ] {
            let line_start = head.len() - 1;
            let mut stream = head.to_vec();
            stream.resize(line_start + 65536, b'1');
            assert_eq!(parse_whole(&stream), (vec![], None));
            stream.push(b'1');
            assert_eq!(parse_whole(&stream), (vec![], Some(error)));
        }
    }

    #[test]
    fn an_unauthenticated_client_gets_ten_arguments_of_16_kib() {
        let limits = Limits { authenticated: false, ..Limits::default() };
        let parse = |stream: &[u8]| parse_all(stream, &[stream.len()], &limits).1;
        assert_eq!(parse(b"*10\r\n$16384\r\n"), None);
        assert_eq!(parse(b"*11\r\n"), Some(ProtocolError::UnauthenticatedMultibulk));
        assert_eq!(parse(b"*1\r\n$16385\r\n"), Some(ProtocolError::UnauthenticatedBulk));
    }

    #[test]
    fn a_request_beyond_the_limit_in_all_is_refused_from_its_claim() {
        let limits = Limits { max_request: 1000, ..Limits::default() };
        let (_, error) = parse_all(b"*2\r\n$3\r\nSET\r\n$990\r\n", &[100], &limits);
        assert_eq!(error, Some(ProtocolError::RequestTooBig { limit: 1000 }));
    }

    #[test]
    fn empty_requests_have_no_arguments_and_what_follows_them_is_understood() {
        let (requests, error) = parse_whole(b"*0\r\n*-1\r\n*-5\r\n\r\n\n  \r\nPING\r\n*1\r\n$4\r\nQUIT\r\n");
        assert_eq!(error, None);
        let requests: Vec<Request> = requests.into_iter().filter(|request| !request.is_empty()).collect();
        assert_eq!(requests, [words(&["PING"]), words(&["QUIT"])]);
    }

    #[test]
    fn what_is_wanted_is_what_is_missing_but_never_much_more_than_has_come() {
        let mut parser = RequestParser::default();
        assert_eq!(parser.parse(b"*2\r\n$3\r\nGET\r\n$10\r\nabc", &Limits::default()), Ok(None));
        assert_eq!(parser.wanted(), 9);
        let mut parser = RequestParser::default();
        assert_eq!(parser.parse(b"*2147483647\r\n$536870912\r\n", &Limits::default()), Ok(None));
        assert_eq!(parser.wanted(), WANTED_FLOOR);
    }

    #[test]
    fn room_for_an_unusually_large_request_is_given_back() {
        let mut parser = RequestParser::default();
        let many = vec!["x"; 100_000];
        let mut buffer = Vec::new();
        encode_command(&many, &mut buffer);
        assert_eq!(parser.parse(&buffer, &Limits::default()), Ok(Some(buffer.len())));
        assert_eq!(parser.args(&buffer).len(), many.len());
        assert_eq!(parser.parse(b"PING\n", &Limits::default()), Ok(Some(5)));
        assert!(parser.ranges.capacity() <= KEPT_RANGES);
    }

    fn request() -> impl Strategy<Value = Request> {
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6)
    }

    proptest! {
        #[test]
        fn encoded_requests_are_read_back_whatever_the_pieces(
            requests in prop::collection::vec(request(), 1..5),
            pieces in prop::collection::vec(1usize..30, 1..20),
        ) {
            let mut stream = Vec::new();
            for request in &requests {
                encode_command(request, &mut stream);
            }
            let (parsed, error) = parse_all(&stream, &pieces, &Limits::default());
            prop_assert_eq!(error, None);
            prop_assert_eq!(parsed, requests);
        }

        #[test]
        fn any_bytes_mean_the_same_in_pieces_as_at_once(
            stream in prop::collection::vec(
                prop::sample::select(&b"*$0123456789-\r\n\r\n\r\n '\"\\xabc"[..]), 0..200),
            pieces in prop::collection::vec(1usize..10, 1..20),
        ) {
            let limits = Limits { max_inline: 50, max_bulk: 60, max_args: 20, ..Limits::default() };
            let whole = parse_all(&stream, &[stream.len()], &limits);
            prop_assert_eq!(parse_all(&stream, &pieces, &limits), whole);
        }
    }
}
