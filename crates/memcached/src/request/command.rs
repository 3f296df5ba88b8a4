//! Commands: what a line of text or meta asks for, before the value behind it is there.
//!
//! It knows how lines and values follow each other. The words of a line are for `text` and `meta`.

use super::{meta, text};
use crate::line::{Words, unsigned, without_end};
use crate::operation::{Operation, Store};
use crate::refusal::Refusal;
use crate::reply::{Form, text::Form as TextForm};

/// Longest value that a line may announce, in bytes, as in memcached.
const LONGEST_VALUE: u64 = i32::MAX as u64 - 2;

/// A line.
pub(super) enum Command<'a> {
    /// Keys to get.
    Keys(text::Keys),
    /// Something that needs nothing more.
    Done(Operation<'a>, Form<'a>),
    /// A value of so many bytes to be stored, which follows.
    Store(Store<'a>, u64, Form<'a>),
    /// Something wrong, and what follows it.
    Refused(Refusal, Form<'a>, Body),
}

/// What follows a line that is refused.
pub(super) enum Body {
    /// The next line.
    None,
    /// A value of so many bytes, and the end of its line.
    Len(u64),
    /// A value that nobody can wait for.
    Endless,
}

impl Body {
    /// What follows a line that says `len` of its value's length: no number announces no value.
    pub(super) fn announced(len: Option<&[u8]>) -> Body {
        let digits = len.map_or(&b""[..], |word| word.strip_prefix(b"+").unwrap_or(word));
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Body::None;
        }
        value_len(digits).map_or(Body::Endless, Body::Len)
    }
}

/// The length of a value; `None` if it is no number, or beyond what memcached takes for one.
#[inline]
pub(super) fn value_len(word: &[u8]) -> Option<u64> {
    unsigned(word).filter(|len| *len <= LONGEST_VALUE)
}

/// Parses a line, with its end.
#[inline]
pub(super) fn parse(line: &[u8]) -> Command<'_> {
    let mut words = Words::new(without_end(line));
    match words.next() {
        Some([b'm', letter]) => meta::parse(*letter, words),
        Some(name) => text::parse(name, words, line),
        None => unknown(),
    }
}

/// The answer to no command.
pub(super) fn unknown<'a>() -> Command<'a> {
    Command::Refused(Refusal::UnknownCommand, Form::Text(TextForm::default()), Body::None)
}
