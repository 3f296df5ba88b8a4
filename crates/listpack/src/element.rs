//! One element and its encoding. It knows nothing of the elements beside it.

use std::borrow::Cow;
use std::io::{self, Write};

/// An element as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<'a> {
    /// Integer whose decimal form is the element.
    Integer(i64),
    /// Any other bytes.
    Bytes(&'a [u8]),
}

/// Length of the longest decimal form of an integer of 64 bits.
const LONGEST_INTEGER: usize = 20;

// First bytes, and their bits that are part of the data.
const BITS_7: u8 = 0x00;
const SHORT_STRING: u8 = 0x80;
const BITS_13: u8 = 0xc0;
const MEDIUM_STRING: u8 = 0xe0;
const LONG_STRING: u8 = 0xf0;
const BITS_16: u8 = 0xf1;
const BITS_24: u8 = 0xf2;
const BITS_32: u8 = 0xf3;
const BITS_64: u8 = 0xf4;

/// Greatest lengths of the first two kinds of string headers.
const SHORT_LEN: usize = 63;
const MEDIUM_LEN: usize = 4095;
/// Number of integers of 13 bits.
const RANGE_13: i64 = 1 << 13;
/// Flag of a byte of a back length that has others in front of it.
const MORE: u8 = 0x80;
const BACK_BITS: u32 = 7;
/// Greatest values of back lengths of one byte to four, as in Valkey 9.1. Older servers, and Redis, took one
/// byte more for the last three of these: that is read, too.
const BACK_LIMITS: [usize; 4] = [0x7f, 0x3fff, 0x1f_ffff, 0xfff_ffff];

/// An element to search for.
#[derive(Clone, Copy, Debug)]
pub struct Needle<'n> {
    bytes: &'n [u8],
    integer: Option<i64>,
}

impl<'n> Needle<'n> {
    /// Creates a needle for elements of these bytes.
    pub fn new(bytes: &'n [u8]) -> Needle<'n> {
        Needle { bytes, integer: parse_integer(bytes) }
    }

    /// Returns whether it equals this element.
    pub fn is(&self, element: Element<'_>) -> bool {
        match element {
            Element::Integer(integer) => self.integer == Some(integer),
            Element::Bytes(bytes) => self.bytes == bytes,
        }
    }
}

impl<'a> Element<'a> {
    /// Creates an element from bytes, as it is stored.
    pub fn of(bytes: &'a [u8]) -> Element<'a> {
        parse_integer(bytes).map_or(Element::Bytes(bytes), Element::Integer)
    }

    /// Returns the bytes of the element.
    pub fn bytes(self) -> Cow<'a, [u8]> {
        match self {
            Element::Integer(integer) => itoa::Buffer::new().format(integer).as_bytes().to_vec().into(),
            Element::Bytes(bytes) => bytes.into(),
        }
    }

    /// Passes the bytes of the element to `show`; an integer takes no allocation.
    pub fn with_bytes<R>(self, show: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Element::Integer(integer) => show(itoa::Buffer::new().format(integer).as_bytes()),
            Element::Bytes(bytes) => show(bytes),
        }
    }

    /// Returns the encoded length in bytes, that of its back length included.
    pub fn encoded_len(self) -> usize {
        self.len() + back_len_len(self.len())
    }

    /// Returns the encoded length in bytes, without the back length.
    fn len(self) -> usize {
        match self {
            Element::Integer(integer) => integer_len(integer),
            Element::Bytes(bytes) => string_header_len(bytes.len()) + bytes.len(),
        }
    }

    /// Writes the element and its back length, [`Element::encoded_len`] bytes.
    pub(crate) fn write(self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Element::Integer(integer) => write_integer(integer, out)?,
            Element::Bytes(bytes) => {
                match bytes.len() {
                    len @ ..=SHORT_LEN => out.write_all(&[SHORT_STRING | len as u8])?,
                    len @ ..=MEDIUM_LEN => out.write_all(&[MEDIUM_STRING | (len >> 8) as u8, len as u8])?,
                    len => {
                        out.write_all(&[LONG_STRING])?;
                        out.write_all(&(len as u32).to_le_bytes())?;
                    }
                }
                out.write_all(bytes)?;
            }
        }
        write_back_len(self.len(), out)
    }

    /// Reads the element at the start of the bytes, and its length, that of its back length included.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<(Element<'a>, usize)> {
        let (&first, rest) = bytes.split_first()?;
        let string = |header_len: usize, len: usize| {
            let data = bytes.get(header_len..header_len.checked_add(len)?)?;
            Some((Element::Bytes(data), header_len + len))
        };
        let (element, len) = match first {
            BITS_7..SHORT_STRING => (Element::Integer(first.into()), 1),
            SHORT_STRING..BITS_13 => string(1, usize::from(first & !SHORT_STRING))?,
            BITS_13..MEDIUM_STRING => {
                let value = i64::from(first & !BITS_13) << 8 | i64::from(*rest.first()?);
                (Element::Integer(if value >= RANGE_13 / 2 { value - RANGE_13 } else { value }), 2)
            }
            MEDIUM_STRING..LONG_STRING => {
                string(2, usize::from(first & !MEDIUM_STRING) << 8 | usize::from(*rest.first()?))?
            }
            LONG_STRING => string(5, u32::from_le_bytes(*rest.first_chunk()?) as usize)?,
            BITS_16 => (Element::Integer(i16::from_le_bytes(*rest.first_chunk()?).into()), 3),
            BITS_24 => {
                let [low, middle, high] = *rest.first_chunk()?;
                (Element::Integer((i32::from_le_bytes([0, low, middle, high]) >> 8).into()), 4)
            }
            BITS_32 => (Element::Integer(i32::from_le_bytes(*rest.first_chunk()?).into()), 5),
            BITS_64 => (Element::Integer(i64::from_le_bytes(*rest.first_chunk()?)), 9),
            _ => return None,
        };
        let is_longer = bytes.get(len) == Some(&0) && BACK_LIMITS[1..].contains(&len);
        let total = len + back_len_len(len) + usize::from(is_longer);
        (total <= bytes.len()).then_some((element, total))
    }
}

/// Parses an integer of which the bytes are the canonical decimal form.
fn parse_integer(bytes: &[u8]) -> Option<i64> {
    if bytes.len() > LONGEST_INTEGER {
        return None;
    }
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    match digits {
        [b'0'] if digits.len() == bytes.len() => return Some(0),
        [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => {}
        _ => return None,
    }
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn integer_len(integer: i64) -> usize {
    match integer {
        0..=0x7f => 1,
        -0x1000..=0xfff => 2,
        -0x8000..=0x7fff => 3,
        -0x80_0000..=0x7f_ffff => 4,
        -0x8000_0000..=0x7fff_ffff => 5,
        _ => 9,
    }
}

fn write_integer(integer: i64, out: &mut impl Write) -> io::Result<()> {
    let bytes = integer.to_le_bytes();
    match integer_len(integer) {
        1 => out.write_all(&[integer as u8]),
        2 => {
            let value = integer.rem_euclid(RANGE_13) as u16;
            out.write_all(&[BITS_13 | (value >> 8) as u8, value as u8])
        }
        len => {
            let first = match len {
                3 => BITS_16,
                4 => BITS_24,
                5 => BITS_32,
                _ => BITS_64,
            };
            out.write_all(&[first])?;
            out.write_all(&bytes[..len - 1])
        }
    }
}

fn string_header_len(len: usize) -> usize {
    if len <= SHORT_LEN {
        1
    } else if len <= MEDIUM_LEN {
        2
    } else {
        5
    }
}

/// Returns the length of the back length of an element that takes `len` bytes without it.
fn back_len_len(len: usize) -> usize {
    1 + BACK_LIMITS.iter().filter(|limit| len > **limit).count()
}

/// Writes seven bits to a byte, the highest first; all but the first have `MORE`, since they are read
/// backwards.
fn write_back_len(len: usize, out: &mut impl Write) -> io::Result<()> {
    let count = back_len_len(len) as u32;
    for place in (0..count).rev() {
        let bits = (len as u64 >> (BACK_BITS * place)) as u8 & !MORE;
        out.write_all(&[if place == count - 1 { bits } else { bits | MORE }])?;
    }
    Ok(())
}

/// Returns the offset of the element that ends at `end`, its back length included.
pub(crate) fn start_of(bytes: &[u8], end: usize) -> Option<usize> {
    let mut len: u64 = 0;
    for place in 0..5 {
        let byte = *bytes.get(end.checked_sub(1 + place)?)?;
        len |= u64::from(byte & !MORE) << (BACK_BITS * place as u32);
        if byte & MORE == 0 {
            let len = usize::try_from(len).ok()?;
            return end.checked_sub(len.checked_add(place + 1)?);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Element::of(bytes).write(&mut out).unwrap();
        out
    }

    #[test]
    fn elements_are_written_as_valkey_writes_them() {
        for (element, bytes) in [
            (&b""[..], &[0x80, 1][..]),
            (b"hello", b"\x85hello\x06"),
            (b"0", &[0, 1]),
            (b"42", &[42, 1]),
            (b"127", &[127, 1]),
            (b"128", &[0xc0, 0x80, 2]),
            (b"-1", &[0xdf, 0xff, 2]),
            (b"-4096", &[0xd0, 0, 2]),
            (b"4095", &[0xcf, 0xff, 2]),
            (b"4096", &[0xf1, 0, 0x10, 3]),
            (b"-32769", &[0xf2, 0xff, 0x7f, 0xff, 4]),
            (b"8388608", &[0xf3, 0, 0, 0x80, 0, 5]),
            (b"2147483648", &[0xf4, 0, 0, 0, 0x80, 0, 0, 0, 0, 9]),
            (b"-9223372036854775808", &[0xf4, 0, 0, 0, 0, 0, 0, 0, 0x80, 9]),
            (b"007", b"\x83007\x04"),
            (b"+1", b"\x82+1\x03"),
            (b"-0", b"\x82-0\x03"),
            (b"-", b"\x81-\x02"),
            (b"9223372036854775808", b"\x939223372036854775808\x14"),
        ] {
            assert_eq!(written(element), bytes, "{}", element.escape_ascii());
        }
        assert_eq!(written(&[b'x'; 64])[..2], [0xe0, 64]);
        assert_eq!(written(&[b'x'; 4096])[..5], [0xf0, 0, 0x10, 0, 0]);
    }

    #[test]
    fn back_lengths_have_a_byte_for_every_seven_bits() {
        for (len, bytes) in [
            (127, &[0x7f][..]),
            (128, &[0x01, 0x80]),
            (0x3fff, &[0x7f, 0xff]),
            (0x4000, &[0x01, 0x80, 0x80]),
            (0x1f_ffff, &[0x7f, 0xff, 0xff]),
            (0x20_0000, &[0x01, 0x80, 0x80, 0x80]),
            (u32::MAX as usize, &[0x0f, 0xff, 0xff, 0xff, 0xff]),
        ] {
            let mut out = Vec::new();
            write_back_len(len, &mut out).unwrap();
            assert_eq!(out, bytes, "{len}");
        }
    }

    #[test]
    fn back_lengths_with_a_byte_more_are_read_where_older_servers_wrote_them() {
        for encoded_len in [0x3fff, 0x1f_ffff] {
            let bytes = vec![b'x'; encoded_len - 5];
            let mut out = written(&bytes);
            out.insert(encoded_len, 0);
            out[encoded_len + 1] |= MORE;
            assert_eq!(Element::read(&out), Some((Element::Bytes(&bytes), out.len())));
            assert_eq!(start_of(&out, out.len()), Some(0));
            assert_eq!(Element::read(&out[..out.len() - 1]), None);
        }
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            any::<i64>().prop_map(|integer| integer.to_string().into_bytes()),
            (-70_000i64..70_000).prop_map(|integer| integer.to_string().into_bytes()),
            prop::collection::vec(any::<u8>(), 0..200),
            (0usize..40_000).prop_map(|len| vec![b'x'; len]),
            Just(vec![b'x'; 16_378]),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_from_both_ends(bytes in bytes(), behind: Vec<u8>) {
            let mut out = written(&bytes);
            let len = out.len();
            prop_assert_eq!(Element::of(&bytes).encoded_len(), len);
            prop_assert_eq!(start_of(&out, len), Some(0));
            out.extend_from_slice(&behind);
            let (element, read) = Element::read(&out).expect("it was written");
            prop_assert_eq!((element.bytes().into_owned(), read), (bytes.clone(), len));
            prop_assert!(Needle::new(&bytes).is(element));
            for short in 0..len {
                prop_assert_eq!(Element::read(&out[..short]), None);
            }
        }

        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            if let Some((element, len)) = Element::read(&bytes) {
                prop_assert!(len <= bytes.len());
                element.with_bytes(|shown| assert_eq!(shown, &*element.bytes()));
            }
            start_of(&bytes, bytes.len());
        }
    }
}
