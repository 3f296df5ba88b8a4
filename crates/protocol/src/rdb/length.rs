//! Lengths as RDB writes them: big-endian in 6, 14, 32 or 64 bits. The upper two bits of the first byte say which, or
//! that something else than a string as it is follows.

use super::error::Fault;
use super::input::Input;

/// The meaning of the first bytes of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// A length in bytes, which follow.
    Bytes(u64),
    /// An integer follows, little-endian, that stands for its decimal digits.
    Integer8,
    Integer16,
    Integer32,
    /// A string compressed by LZF follows.
    Lzf,
}

const BITS_14: u8 = 0b01 << 6;
const BITS_32: u8 = 0b10 << 6;
const BITS_64: u8 = BITS_32 | 1;
const SPECIAL: u8 = 0b11 << 6;
/// The first byte of a compressed string.
pub(super) const LZF: u8 = SPECIAL | 3;
/// The bits of a first byte below its upper two.
const LOWER: u8 = (1 << 6) - 1;

const UNKNOWN: Fault = Fault::Malformed("a length is of no known kind");

/// Lengths from these on take more than so many bits.
const BEYOND_6: u64 = 1 << 6;
const BEYOND_14: u64 = 1 << 14;
const BEYOND_32: u64 = 1 << 32;

/// Bytes that [`encode`] appends.
pub(super) fn encoded_len(len: u64) -> usize {
    match len {
        ..BEYOND_6 => 1,
        BEYOND_6..BEYOND_14 => 2,
        BEYOND_14..BEYOND_32 => 1 + size_of::<u32>(),
        _ => 1 + size_of::<u64>(),
    }
}

/// Appends a length, in as few bytes as it can be written.
pub(super) fn encode(len: u64, out: &mut Vec<u8>) {
    match len {
        ..BEYOND_6 => out.push(len as u8),
        BEYOND_6..BEYOND_14 => {
            out.extend_from_slice(&(len as u16 | u16::from(BITS_14) << u8::BITS).to_be_bytes())
        }
        BEYOND_14..BEYOND_32 => {
            out.push(BITS_32);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
        _ => {
            out.push(BITS_64);
            out.extend_from_slice(&len.to_be_bytes());
        }
    }
}

/// Reads what the first bytes of a string say.
pub(super) fn read<'a>(input: &mut impl Input<'a>) -> Result<Length, Fault> {
    let first = input.byte()?;
    match first {
        BITS_32 => Ok(Length::Bytes(u32::from_be_bytes(input.array()?).into())),
        BITS_64 => Ok(Length::Bytes(u64::from_be_bytes(input.array()?))),
        _ if first < BITS_14 => Ok(Length::Bytes(first.into())),
        _ if first < BITS_32 => {
            Ok(Length::Bytes(u64::from(first & LOWER) << u8::BITS | u64::from(input.byte()?)))
        }
        _ if first >= SPECIAL => {
            let kinds = [Length::Integer8, Length::Integer16, Length::Integer32, Length::Lzf];
            kinds.get(usize::from(first & LOWER)).copied().ok_or(UNKNOWN)
        }
        _ => Err(UNKNOWN),
    }
}

/// Reads a number, or the length of something that is no string.
pub(super) fn read_number<'a>(input: &mut impl Input<'a>) -> Result<u64, Fault> {
    match read(input)? {
        Length::Bytes(number) => Ok(number),
        _ => Err(Fault::Malformed("a string stands where a number should be")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_length_is_read_back(bits in 0u32..64, below: u64, rest: Vec<u8>) {
            let len = below >> bits;
            let mut out = Vec::new();
            encode(len, &mut out);
            prop_assert_eq!(out.len(), encoded_len(len));
            out.extend_from_slice(&rest);
            let mut input = &out[..];
            prop_assert_eq!(read_number(&mut input).unwrap(), len);
            prop_assert_eq!(input, rest);
        }

        #[test]
        fn a_length_that_is_cut_off_is_missed(bits in 0u32..64, below: u64, cut in 1usize..9) {
            let mut out = Vec::new();
            encode(below >> bits, &mut out);
            out.truncate(out.len().saturating_sub(cut));
            prop_assert!(matches!(read(&mut &out[..]), Err(Fault::Ended)));
        }
    }

    #[test]
    fn the_first_byte_says_what_follows() {
        for (bytes, length) in [
            (&[0x3f][..], Some(Length::Bytes(63))),
            (&[0x40, 0x40], Some(Length::Bytes(64))),
            (&[0x7f, 0xff], Some(Length::Bytes(16383))),
            (&[0x80, 0, 0, 0x40, 0], Some(Length::Bytes(16384))),
            (&[0x81, 0, 0, 0, 1, 0, 0, 0, 0], Some(Length::Bytes(1 << 32))),
            (&[0x82, 0, 0, 0, 1, 0, 0, 0, 0], None),
            (&[0xc0], Some(Length::Integer8)),
            (&[0xc3], Some(Length::Lzf)),
            (&[0xc4], None),
            (&[], None),
        ] {
            let mut input = bytes;
            assert_eq!(read(&mut input).ok(), length, "{bytes:02x?}");
        }
    }
}
