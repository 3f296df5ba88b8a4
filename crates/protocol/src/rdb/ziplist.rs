//! Reading ziplists, which older servers kept small lists in. Valkey's `ziplist.c` describes them.
//!
//! ```text
//! length u32  offset of the last entry u32  entries u16  (previous length, encoding, data) …  0xff     little-endian
//! ```
//!
//! The previous length is that of the whole entry before: one byte, or 254 and four. 65,535 entries or more are not
//! counted in the header.

use snugly_listpack::Element;

use super::error::Fault;
use super::input::Input;

const HEADER_LEN: usize = 10;
const END: u8 = 0xff;
/// The number of entries that says that they must be counted.
const UNKNOWN_COUNT: u16 = u16::MAX;
/// The first byte of a previous length that has four more.
const LONG_PREVIOUS: u8 = 0xfe;

// First bytes of an encoding. In those of strings, the lower bits are a part of the length.
const BITS_14: u8 = 0b01 << 6;
const BITS_32: u8 = 0b10 << 6;
const INTEGER_16: u8 = 0xc0;
const INTEGER_32: u8 = 0xd0;
const INTEGER_64: u8 = 0xe0;
const INTEGER_24: u8 = 0xf0;
const INTEGER_8: u8 = 0xfe;
/// Integers from 0 to 12 are in the encoding itself.
const ZERO: u8 = 0xf1;
const TWELVE: u8 = 0xfd;
/// The bits of an encoding below its upper two.
const LOWER: u8 = (1 << 6) - 1;

/// Shows all elements, in their order. After an error some may have been shown.
pub(super) fn each(
    bytes: &[u8],
    mut show: impl FnMut(Element<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut header = bytes;
    let len = u32::from_le_bytes(header.array()?);
    let last = u32::from_le_bytes(header.array()?);
    let written_count = u16::from_le_bytes(header.array()?);
    if len as usize != bytes.len() || header.last() != Some(&END) {
        return Err(Fault::Malformed(
            "a ziplist's length is not the one that it says, or its end is missing",
        ));
    }
    let entries = &bytes[..bytes.len() - 1];
    let (mut at, mut previous, mut count) = (HEADER_LEN, None, 0usize);
    while at < entries.len() {
        let mut rest = &entries[at..];
        if previous_len(&mut rest)? != previous.map_or(0, |start| at - start) {
            return Err(Fault::Malformed("a previous length in a ziplist is not that of the entry before"));
        }
        show(element(&mut rest)?)?;
        previous = Some(at);
        at = entries.len() - rest.len();
        count += 1;
    }
    if previous.is_some_and(|start| start != last as usize) {
        return Err(Fault::Malformed("a ziplist's last entry is not where it says"));
    }
    if written_count != UNKNOWN_COUNT && usize::from(written_count) != count {
        return Err(Fault::Malformed("a ziplist does not have as many entries as it says"));
    }
    Ok(())
}

fn previous_len(rest: &mut &[u8]) -> Result<usize, Fault> {
    match rest.byte()? {
        LONG_PREVIOUS => Ok(u32::from_le_bytes(rest.array()?) as usize),
        END => Err(Fault::Malformed("a ziplist goes on behind its end")),
        len => Ok(len.into()),
    }
}

fn element<'a>(rest: &mut &'a [u8]) -> Result<Element<'a>, Fault> {
    let first = rest.byte()?;
    let len = match first {
        ..BITS_14 => first.into(),
        BITS_14..BITS_32 => usize::from(first & LOWER) << u8::BITS | usize::from(rest.byte()?),
        BITS_32..INTEGER_16 => u32::from_be_bytes(rest.array()?) as usize,
        _ => return integer(first, rest).map(Element::Integer),
    };
    rest.split_off(..len).map(Element::Bytes).ok_or(Fault::Ended)
}

fn integer(first: u8, rest: &mut &[u8]) -> Result<i64, Fault> {
    Ok(match first {
        INTEGER_8 => i8::from_le_bytes(rest.array()?).into(),
        INTEGER_16 => i16::from_le_bytes(rest.array()?).into(),
        INTEGER_24 => {
            let [low, middle, high] = rest.array()?;
            i64::from(i32::from_le_bytes([0, low, middle, high]) >> u8::BITS)
        }
        INTEGER_32 => i32::from_le_bytes(rest.array()?).into(),
        INTEGER_64 => i64::from_le_bytes(rest.array()?),
        ZERO..=TWELVE => (first - ZERO).into(),
        _ => return Err(Fault::Malformed("an entry of a ziplist is of no known kind")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(bytes: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
        let mut elements = Vec::new();
        let result = each(bytes, |element| {
            elements.push(element.bytes().into_owned());
            Ok(())
        });
        match result {
            Ok(()) => Ok(elements),
            Err(Fault::Malformed(reason)) => Err(reason),
            Err(_) => Err("cut off"),
        }
    }

    /// A ziplist of these entries, each without its previous length.
    fn ziplist(entries: &[&[u8]]) -> Vec<u8> {
        let (mut bytes, mut last, mut previous) = (vec![0; HEADER_LEN], HEADER_LEN, 0);
        for entry in entries {
            last = bytes.len();
            match previous {
                0..=0xfd => bytes.push(previous as u8),
                _ => {
                    bytes.push(LONG_PREVIOUS);
                    bytes.extend_from_slice(&(previous as u32).to_le_bytes());
                }
            }
            bytes.extend_from_slice(entry);
            previous = bytes.len() - last;
        }
        bytes.push(END);
        let len = bytes.len() as u32;
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        bytes[4..8].copy_from_slice(&(last as u32).to_le_bytes());
        bytes[8..HEADER_LEN].copy_from_slice(&(entries.len() as u16).to_le_bytes());
        bytes
    }

    #[test]
    fn every_encoding_is_read() {
        let long = [&[0x80, 0, 0, 0x40, 0], &[b'x'; 0x4000][..]].concat();
        let middle = [&[0x41, 0x00], &[b'y'; 0x100][..]].concat();
        for (entry, element) in [
            (&[0x00][..], &b""[..]),
            (b"\x05hello", b"hello"),
            (&middle, &[b'y'; 0x100]),
            (&long, &[b'x'; 0x4000]),
            (&[0xf1], b"0"),
            (&[0xfd], b"12"),
            (&[0xfe, 0x80], b"-128"),
            (&[0xc0, 0xff, 0x7f], b"32767"),
            (&[0xf0, 0, 0, 0x80], b"-8388608"),
            (&[0xd0, 0, 0, 0, 0x80], b"-2147483648"),
            (&[0xe0, 0, 0, 0, 0, 0, 0, 0, 0x80], b"-9223372036854775808"),
        ] {
            // Behind a long entry and in front of another one.
            let bytes = ziplist(&[&middle, entry, entry, &middle]);
            assert_eq!(elements(&bytes).unwrap()[1..3], [element, element]);
            for len in 0..bytes.len() {
                assert!(elements(&bytes[..len]).is_err());
            }
        }
        assert_eq!(elements(&ziplist(&[])), Ok(vec![]));
    }

    #[test]
    fn entries_beyond_what_the_header_counts_are_read() {
        let mut bytes = ziplist(&vec![&[0xf1][..]; 65_536]);
        bytes[8..HEADER_LEN].copy_from_slice(&UNKNOWN_COUNT.to_le_bytes());
        assert_eq!(elements(&bytes).unwrap().len(), 65_536);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let good = ziplist(&[b"\x05hello", &[0xf1]]);
        assert_eq!(elements(&good).unwrap(), [&b"hello"[..], b"0"]);
        for (at, byte, reason) in [
            (0, 21, "a ziplist's length is not the one that it says, or its end is missing"),
            (4, 10, "a ziplist's last entry is not where it says"),
            (8, 3, "a ziplist does not have as many entries as it says"),
            (10, 1, "a previous length in a ziplist is not that of the entry before"),
            (10, END, "a ziplist goes on behind its end"),
            (11, 0xc1, "an entry of a ziplist is of no known kind"),
            (11, 0xff, "an entry of a ziplist is of no known kind"),
            (11, 0x3f, "cut off"),
            (18, 0xc0, "cut off"),
        ] {
            let mut bytes = good.clone();
            bytes[at] = byte;
            assert_eq!(elements(&bytes), Err(reason), "byte {at}");
        }
    }
}
