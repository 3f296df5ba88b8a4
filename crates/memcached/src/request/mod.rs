//! Requests: from the bytes of a connection to operations.
//!
//! - `text`, `meta`, `binary`: one protocol each
//! - `command`: what a line of text or meta asks for, before its value is there
//!
//! It knows the state between two requests, and which protocol a connection speaks. It must not know what
//! comes of them.

mod binary;
mod command;
mod meta;
mod text;

use crate::key::Key;
use crate::operation::{Operation, Refused, Request, Store};
use crate::refusal::Refusal;
use crate::reply::{Form, ReplyForm};
use binary::Packet;
use command::{Body, Command};
use text::Keys;

/// Bytes that [`Parsed::Incomplete`] may ask for however little has arrived.
const WANTED_FLOOR: usize = 16 * 1024;
/// Longest line that is no line of keys, in bytes, as in memcached.
const MAX_LINE: usize = 2048;

/// Limits of a request. A claim above a limit is refused before anything is reserved for it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest value in bytes. Default 1 MiB (memcached: `-I`).
    pub max_value: usize,
    /// Longest line of keys (`get a b c`) in bytes; memcached knows no limit. Default 8 MiB. Other lines end
    /// within 2 KiB.
    pub max_line: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_value: 1 << 20, max_line: 8 << 20 }
    }
}

/// The protocol of a connection, which its first byte decides for its whole life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Lines of text, of which some are meta commands.
    Text,
    /// Packets whose first byte is 0x80.
    Binary,
}

impl Protocol {
    /// Returns the protocol of a connection whose first byte is this.
    pub fn of(first: u8) -> Protocol {
        if first == binary::MAGIC { Protocol::Binary } else { Protocol::Text }
    }
}

/// What [`RequestParser::parse`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A request, and how many bytes it takes: never more than there are, and at least 1.
    Request(Request<'a>, usize),
    /// So many bytes, at least 1, that mean nothing: they belong to a request that was refused.
    Skipped(usize),
    /// There is no whole request yet. The bytes must remain, and more are needed.
    Incomplete {
        /// Bytes that certainly have to come, for the reader to make room: at least 1, and bounded by what
        /// has arrived (or 16 KiB), so that a claim alone reserves nothing.
        wanted: usize,
    },
}

/// What is left of the last request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rest {
    /// Nothing: a request begins.
    #[default]
    Nothing,
    /// A line of keys that has been checked.
    Keys(Keys),
    /// So many bytes of a value that was refused, in text with its line's end.
    Value { left: u64, is_text: bool },
    /// Bytes up to the end of a line.
    Line,
    /// Whatever comes: the connection is to be closed.
    Everything,
}

/// Parser of requests out of a connection's buffer, without copying anything.
///
/// The caller keeps a buffer of unread bytes. After each read it calls [`parse`](Self::parse) until that
/// returns [`Incomplete`](Parsed::Incomplete), dropping the bytes that it took in between. The parser is
/// small and `Copy`: to parse ahead, keep a copy from before a request; to come back to it, put the copy back
/// and parse from its first byte. A long line is looked at only once, however small the pieces that arrive.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestParser {
    protocol: Option<Protocol>,
    rest: Rest,
    /// Bytes at the buffer's start that hold no end of the line.
    scanned: usize,
}

impl RequestParser {
    /// The protocol of the connection, once its first byte is there.
    pub fn protocol(&self) -> Option<Protocol> {
        self.protocol
    }

    /// Parses on in `input`, the connection's unread bytes.
    #[inline]
    pub fn parse<'a>(&mut self, input: &'a [u8], limits: &Limits) -> Parsed<'a> {
        let Some(&first) = input.first() else { return Parsed::Incomplete { wanted: 1 } };
        if self.rest != Rest::Nothing {
            return self.go_on(input);
        }
        let protocol = *self.protocol.get_or_insert(Protocol::of(first));
        match protocol {
            Protocol::Text => self.parse_line(input, limits),
            Protocol::Binary => self.parse_packet(input, limits),
        }
    }

    /// Parses what is left of the last request, at least one byte.
    fn go_on<'a>(&mut self, input: &'a [u8]) -> Parsed<'a> {
        match self.rest {
            Rest::Keys(keys) => match input.get(..keys.left) {
                Some(line) => self.next_key(keys, line, 0),
                None => incomplete(keys.left, input),
            },
            Rest::Value { left, is_text } => {
                let taken = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                self.rest = Rest::value(left - taken as u64, is_text);
                Parsed::Skipped(taken)
            }
            Rest::Line => match memchr::memchr(b'\n', input) {
                Some(newline) => {
                    self.rest = Rest::Nothing;
                    Parsed::Skipped(newline + 1)
                }
                None => Parsed::Skipped(input.len()),
            },
            Rest::Everything | Rest::Nothing => Parsed::Skipped(input.len()),
        }
    }

    /// Takes a request of `taken` bytes.
    #[inline]
    fn take<'a>(&mut self, operation: Operation<'a>, form: Form<'a>, taken: usize) -> Parsed<'a> {
        self.scanned = 0;
        Parsed::Request(Request { operation, form: ReplyForm(form) }, taken)
    }

    /// Refuses a request of `taken` bytes, which `rest` follows. `superseded` is the key whose value is out
    /// of date by it.
    fn refuse<'a>(
        &mut self,
        refusal: Refusal,
        superseded: Option<Key<'a>>,
        form: Form<'a>,
        taken: usize,
        rest: Rest,
    ) -> Parsed<'a> {
        self.rest = rest;
        let refused = Refused { refusal, closes: rest == Rest::Everything, superseded };
        self.take(Operation::Refused(refused), form, taken)
    }

    /// A request of text or meta.
    #[inline]
    fn parse_line<'a>(&mut self, input: &'a [u8], limits: &Limits) -> Parsed<'a> {
        let line = match self.find_line(input, limits) {
            Line::Whole(line) => line,
            Line::Begun => return incomplete(input.len() + 1, input),
            Line::Endless => {
                let form = Form::Text(Default::default());
                return self.refuse(Refusal::Unanswerable, None, form, input.len(), Rest::Everything);
            }
        };
        match command::parse(line) {
            Command::Keys(keys) => {
                let before = line.len() - keys.left;
                self.next_key(keys, &line[before..], before)
            }
            Command::Done(operation, form) => self.take(operation, form, line.len()),
            Command::Store(store, len, form) => self.parse_value(store, len, form, line.len(), input, limits),
            Command::Refused(refusal, form, body) => {
                let rest = match body {
                    Body::None => Rest::Nothing,
                    Body::Len(left) => Rest::value(left, true),
                    Body::Endless => Rest::Everything,
                };
                self.refuse(refusal, None, form, line.len(), rest)
            }
        }
    }

    /// The first line of `input`, looking only at bytes not looked at before.
    #[inline]
    fn find_line<'a>(&mut self, input: &'a [u8], limits: &Limits) -> Line<'a> {
        let from = self.scanned.min(input.len());
        let end_before = |to: usize| {
            let newline = memchr::memchr(b'\n', input.get(from..to).unwrap_or_default());
            newline.map(|offset| &input[..from + offset + 1])
        };
        let mut longest = MAX_LINE;
        if let Some(line) = end_before(input.len().min(longest + 1)) {
            return Line::Whole(line);
        }
        if input.len() > longest && text::is_line_of_keys(input) {
            longest = limits.max_line.max(longest);
            if let Some(line) = end_before(input.len().min(longest.saturating_add(1))) {
                return Line::Whole(line);
            }
        }
        if input.len() > longest {
            return Line::Endless;
        }
        self.scanned = input.len();
        Line::Begun
    }

    /// The next one of a line of keys: `line` is what is left of it, with its end, behind `before` bytes that
    /// are taken too.
    #[inline]
    fn next_key<'a>(&mut self, keys: Keys, line: &'a [u8], before: usize) -> Parsed<'a> {
        let Some((operation, form, taken)) = keys.next(line) else {
            // Never: the line was checked when it came.
            self.rest = Rest::Nothing;
            return Parsed::Skipped(before + line.len());
        };
        let left = line.len() - taken;
        self.rest = if left == 0 { Rest::Nothing } else { Rest::Keys(Keys { left, ..keys }) };
        self.take(operation, form, before + taken)
    }

    /// The value of `len` bytes that is behind a line of `start` bytes.
    #[inline]
    fn parse_value<'a>(
        &mut self,
        store: Store<'a>,
        len: u64,
        form: Form<'a>,
        start: usize,
        input: &'a [u8],
        limits: &Limits,
    ) -> Parsed<'a> {
        let end = match usize::try_from(len) {
            Ok(len) if len <= limits.max_value => start.saturating_add(len),
            _ => {
                let rest = Rest::value(len, true);
                return self.refuse(Refusal::TooLarge, store.superseded(), form, start, rest);
            }
        };
        match input.get(end..end.saturating_add(2)) {
            None => incomplete(end.saturating_add(2), input),
            Some(b"\r\n") => {
                let store = Store { value: &input[start..end], ..store };
                self.take(Operation::Store(store), form, end + 2)
            }
            Some(wrong) => {
                let rest = if wrong.ends_with(b"\n") { Rest::Nothing } else { Rest::Line };
                self.refuse(Refusal::BadDataChunk, None, form, end + 2, rest)
            }
        }
    }

    /// A request of the binary protocol.
    #[inline]
    fn parse_packet<'a>(&mut self, input: &'a [u8], limits: &Limits) -> Parsed<'a> {
        match binary::parse(input, limits) {
            Packet::Incomplete(end) => incomplete(end, input),
            Packet::Done(operation, form, taken) => self.take(operation, Form::Binary(form), taken),
            Packet::Refused { refusal, superseded, form, taken, left } => {
                let rest = left.map_or(Rest::Everything, |left| Rest::value(left, false));
                self.refuse(refusal, superseded, Form::Binary(form), taken, rest)
            }
        }
    }
}

/// The first line of some bytes.
enum Line<'a> {
    /// With its end.
    Whole(&'a [u8]),
    /// Its end is still to come.
    Begun,
    /// It is longer than any line may be.
    Endless,
}

impl Rest {
    /// So many bytes of a value, and in text the end of its line.
    fn value(left: u64, is_text: bool) -> Rest {
        match (left, is_text) {
            (0, true) => Rest::Line,
            (0, false) => Rest::Nothing,
            _ => Rest::Value { left, is_text },
        }
    }
}

/// `end` bytes have to be there.
fn incomplete<'a>(end: usize, input: &[u8]) -> Parsed<'a> {
    let missing = end.saturating_sub(input.len()).max(1);
    Parsed::Incomplete { wanted: missing.min(input.len().max(WANTED_FLOOR)) }
}

#[cfg(test)]
pub(crate) mod tests;
