//! The table of types: their names and the encodings of their values. Types that are not read are skipped by it.

use super::error::Fault;
use super::input::Input;
use super::list::Form;
use super::{length, string};

/// One type of the format; several can be of the same type of value.
#[derive(Debug)]
pub(super) struct Kind {
    pub name: &'static str,
    pub shape: Shape,
}

/// The encoding of a value.
#[derive(Debug)]
pub(super) enum Shape {
    String,
    List(Form),
    /// Anything else: parts that can be passed over.
    Other(&'static [Part]),
    /// A part whose end only its writer knows.
    Endless,
}

/// A part of what is passed over.
#[derive(Debug)]
pub(super) enum Part {
    Number,
    String,
    Bytes(u64),
    /// A length of one byte and digits, or one byte for what is no number.
    DecimalDouble,
    /// A number, and these parts that many times.
    Repeated(&'static [Part]),
    /// The output of a module: marked values, up to the mark of the end.
    Module,
}

use Part::{Bytes, DecimalDouble, Module, Number, Repeated, String as Text};

const TIME: Part = Bytes(8);
const DOUBLE: Part = Bytes(8);
const STREAM_ID: Part = Bytes(16);

/// Pending entries of a stream's group: ID, time, number of deliveries.
const PENDING: Part = Repeated(&[STREAM_ID, TIME, Number]);
const PENDING_OF_CONSUMER: Part = Repeated(&[STREAM_ID]);
/// Listpacks of a stream, each with the ID that it begins with.
const ENTRIES: Part = Repeated(&[Text, Text]);

const fn known(name: &'static str, shape: Shape) -> Option<Kind> {
    Some(Kind { name, shape })
}

/// All types, by their number; a gap has none.
#[rustfmt::skip]
static KINDS: [Option<Kind>; 23] = [
    known("string", Shape::String),
    known("list", Shape::List(Form::Strings)),
    known("set", Shape::Other(&[Repeated(&[Text])])),
    known("zset", Shape::Other(&[Repeated(&[Text, DecimalDouble])])),
    known("hash", Shape::Other(&[Repeated(&[Text, Text])])),
    known("zset", Shape::Other(&[Repeated(&[Text, DOUBLE])])),
    known("module", Shape::Endless),
    known("module", Shape::Other(&[Number, Module])),
    None,
    // Zipmaps, ziplists, intsets and listpacks are one string each.
    known("hash", Shape::Other(&[Text])),
    known("list", Shape::List(Form::Ziplist)),
    known("set", Shape::Other(&[Text])),
    known("zset", Shape::Other(&[Text])),
    known("hash", Shape::Other(&[Text])),
    known("list", Shape::List(Form::Ziplists)),
    // Number of entries, last ID; groups with name, last ID, pending entries, and consumers.
    known("stream", Shape::Other(&[
        ENTRIES, Number, Number, Number,
        Repeated(&[Text, Number, Number, PENDING, Repeated(&[Text, TIME, PENDING_OF_CONSUMER])]),
    ])),
    known("hash", Shape::Other(&[Text])),
    known("zset", Shape::Other(&[Text])),
    known("list", Shape::List(Form::Nodes)),
    // And the first ID, the greatest deleted one, the number of entries ever; of a group, how many it has read.
    known("stream", Shape::Other(&[
        ENTRIES, Number, Number, Number, Number, Number, Number, Number, Number,
        Repeated(&[Text, Number, Number, Number, PENDING, Repeated(&[Text, TIME, PENDING_OF_CONSUMER])]),
    ])),
    known("set", Shape::Other(&[Text])),
    // And of a consumer, when it was last successful.
    known("stream", Shape::Other(&[
        ENTRIES, Number, Number, Number, Number, Number, Number, Number, Number,
        Repeated(&[Text, Number, Number, Number, PENDING, Repeated(&[Text, TIME, TIME, PENDING_OF_CONSUMER])]),
    ])),
    // Fields that can expire.
    known("hash", Shape::Other(&[Repeated(&[Text, Text, TIME])])),
];

/// The type with this number.
pub(super) fn kind(number: u8) -> Option<&'static Kind> {
    KINDS.get(usize::from(number))?.as_ref()
}

/// Passes over parts.
pub(super) fn skip<'a>(parts: &[Part], input: &mut impl Input<'a>) -> Result<(), Fault> {
    for part in parts {
        match part {
            Number => drop(length::read_number(input)?),
            Text => string::skip(input)?,
            Bytes(len) => input.skip(*len)?,
            DecimalDouble => skip_decimal(input)?,
            Repeated(parts) => {
                for _ in 0..length::read_number(input)? {
                    skip(parts, input)?;
                }
            }
            Module => skip_module(input)?,
        }
    }
    Ok(())
}

/// Lengths from this one on stand for what is no number, and for infinity.
const NO_DIGITS: u8 = 253;

fn skip_decimal<'a>(input: &mut impl Input<'a>) -> Result<(), Fault> {
    match input.byte()? {
        NO_DIGITS.. => Ok(()),
        len => input.skip(len.into()),
    }
}

fn skip_module<'a>(input: &mut impl Input<'a>) -> Result<(), Fault> {
    loop {
        match length::read_number(input)? {
            0 => return Ok(()),
            // Integers, with a sign or without one.
            1 | 2 => drop(length::read_number(input)?),
            3 => input.skip(size_of::<f32>() as u64)?,
            4 => input.skip(size_of::<f64>() as u64)?,
            5 => string::skip(input)?,
            _ => return Err(Fault::Malformed("a module's value has a part of no known kind")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of bytes that are passed over.
    fn skipped(number: u8, bytes: &[u8]) -> Option<usize> {
        let Shape::Other(parts) = &kind(number)?.shape else { return None };
        let mut input = bytes;
        skip(parts, &mut input).ok()?;
        Some(bytes.len() - input.len())
    }

    #[test]
    fn values_that_no_server_writes_any_more_are_passed_over() {
        for (number, bytes) in [
            (3, &b"\x04\x01a\x031.5\x01b\xfd\xc0\x05\xfe\xc3\x04\x06\x00a\x40\x00\xff"[..]),
            (7, b"\x81\0\0\0\0\0\0\0\x01\x01\x40\x50\x02\x80\0\0\0\x09\x03abcd\x04abcdefgh\x05\x02ab\x05\xc1\0\x01\0"),
            (9, b"\x03abc"),
            (
                15,
                b"\x01\x10aaaaaaaaaaaaaaaa\x03abc\x01\x02\x03\x01\x01g\x04\x05\x01iiiiiiiiiiiiiiiitttttttt\x06\
                  \x01\x01cssssssss\x01iiiiiiiiiiiiiiii",
            ),
        ] {
            assert_eq!(skipped(number, &[bytes, b"rest"].concat()), Some(bytes.len()), "type {number}");
            for len in 0..bytes.len() {
                assert_eq!(skipped(number, &bytes[..len]), None, "type {number}, {len} bytes");
            }
        }
        assert_eq!(skipped(7, b"\x01\x06\x00"), None);
    }
}
