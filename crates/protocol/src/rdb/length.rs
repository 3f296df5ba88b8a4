//! Lengths as RDB writes them: big-endian in 6, 14, 32 or 64 bits. The upper two bits of the first byte say which, or
//! that something else than a string as it is follows.

/// What the first bytes of a string say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// So many bytes follow.
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
/// What a first byte holds below its upper two bits.
const LOWER: u8 = (1 << 6) - 1;

/// Lengths from these on take more than so many bits.
const BEYOND_6: u64 = 1 << 6;
const BEYOND_14: u64 = 1 << 14;
const BEYOND_32: u64 = 1 << 32;

/// How many bytes [`encode`] appends.
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

/// Reads a length and gives what follows; `None` if it is cut off or there is no such length.
pub(super) fn decode(bytes: &[u8]) -> Option<(Length, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    match first {
        BITS_32 => {
            let (len, rest) = rest.split_first_chunk()?;
            Some((Length::Bytes(u32::from_be_bytes(*len).into()), rest))
        }
        BITS_64 => {
            let (len, rest) = rest.split_first_chunk()?;
            Some((Length::Bytes(u64::from_be_bytes(*len)), rest))
        }
        _ if first < BITS_14 => Some((Length::Bytes(first.into()), rest)),
        _ if first < BITS_32 => {
            let (&second, rest) = rest.split_first()?;
            Some((Length::Bytes(u64::from(first & LOWER) << u8::BITS | u64::from(second)), rest))
        }
        _ if first >= SPECIAL => {
            let kinds = [Length::Integer8, Length::Integer16, Length::Integer32, Length::Lzf];
            Some((*kinds.get(usize::from(first & LOWER))?, rest))
        }
        _ => None,
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
            prop_assert_eq!(decode(&out), Some((Length::Bytes(len), &rest[..])));
        }

        #[test]
        fn a_length_that_is_cut_off_is_none(bits in 0u32..64, below: u64, cut in 1usize..9) {
            let mut out = Vec::new();
            encode(below >> bits, &mut out);
            out.truncate(out.len().saturating_sub(cut));
            prop_assert_eq!(decode(&out), None);
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
            assert_eq!(decode(bytes).map(|(length, _)| length), length, "{bytes:02x?}");
        }
    }
}
