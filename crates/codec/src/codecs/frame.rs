//! The structure of a zstd frame (RFC 8878, section 3.1.1), read without decoding it and without libzstd.
//!
//! Reading it first gives the dictionary's ID, the claimed size, a bound on the real one, and the certainty
//! that there is exactly one frame and nothing after it.

use super::{Claims, Extent, Framing};

const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
const CHECKSUM_LEN: usize = 4;
const BLOCK_HEADER_LEN: usize = 3;
/// Block_Maximum_Size is the window's size, and never more than this.
const MAX_BLOCK: u64 = 128 << 10;
/// libzstd's ZSTD_WINDOWLOG_MAX on 64-bit machines.
const MAX_WINDOW_LOG: u32 = 31;

/// The frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The claimed size of the value, if the header has it.
    pub content_size: Option<u64>,
    /// Dictionary_ID; 0 if the header has none.
    pub dictionary_id: u32,
    window: u64,
    has_checksum: bool,
    len: usize,
}

/// Claims of the frame of an envelope. No claim is too large here: the frame's blocks would have to be walked.
pub(super) fn claims(payload: &[u8]) -> Option<Claims> {
    let header = header(Framing::Envelope, payload).ok()?;
    let dictionary = (header.dictionary_id != 0).then_some(header.dictionary_id);
    Some(Claims { len: header.content_size, reach: None, dictionary })
}

/// Reads a frame's header, with its magic number unless the frame stands in a record.
#[inline]
pub(crate) fn header(framing: Framing, frame: &[u8]) -> Result<Header, &'static str> {
    let mut bytes = Bytes(frame);
    if framing == Framing::Envelope && bytes.take(MAGIC.len())? != MAGIC {
        return Err("no zstd frame starts here");
    }
    let descriptor = bytes.take(1)?[0];
    if descriptor & 0b1000 != 0 {
        return Err("the frame header uses a reserved bit");
    }
    let single_segment = descriptor & 0b10_0000 != 0;
    let window = if single_segment { None } else { Some(window(bytes.take(1)?[0])?) };
    let dictionary_id = match descriptor & 0b11 {
        0 => 0,
        1 => bytes.little_endian::<1>()?,
        2 => bytes.little_endian::<2>()?,
        _ => bytes.little_endian::<4>()?,
    };
    let content_size = match descriptor >> 6 {
        0 if !single_segment => None,
        0 => Some(bytes.little_endian::<1>()?),
        1 => Some(bytes.little_endian::<2>()? + 256),
        2 => Some(bytes.little_endian::<4>()?),
        _ => Some(bytes.little_endian::<8>()?),
    };
    Ok(Header {
        content_size,
        dictionary_id: dictionary_id as u32,
        window: window.or(content_size).unwrap_or_default(),
        has_checksum: descriptor & 0b100 != 0,
        len: frame.len() - bytes.0.len(),
    })
}

/// Size that the frame claims and sizes that it can reach.
pub(crate) fn extent(framing: Framing, frame: &[u8]) -> Result<Extent, &'static str> {
    let header = header(framing, frame)?;
    Ok(Extent { claimed: header.content_size, reach: reach(&header, frame)? })
}

/// Walks over the blocks: the most that the frame can decode to, if it is all there and nothing follows it.
#[inline]
fn reach(header: &Header, frame: &[u8]) -> Result<u64, &'static str> {
    let max_block = header.window.min(MAX_BLOCK);
    let mut bytes = Bytes(&frame[header.len..]);
    let mut reach = 0;
    loop {
        let block = bytes.little_endian::<BLOCK_HEADER_LEN>()?;
        let size = block >> 3;
        let (stored, decoded) = match (block >> 1) & 0b11 {
            0 => (size, size),
            1 => (1, size),
            2 => (size, max_block),
            _ => return Err("a block of the reserved type"),
        };
        if size > max_block {
            return Err("a block larger than the window allows");
        }
        bytes.take(stored as usize)?;
        reach += decoded;
        if block & 1 != 0 {
            break;
        }
    }
    if header.has_checksum {
        bytes.take(CHECKSUM_LEN)?;
    }
    if bytes.0.is_empty() { Ok(reach) } else { Err("bytes after the end of the frame") }
}

/// Lengthens the frame at the end of `out`, which begins at `start`, by empty blocks to at least `least` bytes. A block
/// of no bytes is a block like any other (section 3.1.1.2), and costs a reader three bytes.
pub(crate) fn lengthen(out: &mut Vec<u8>, start: usize, least: usize) -> Result<(), &'static str> {
    let header = header(Framing::Envelope, &out[start..])?;
    let missing = least.saturating_sub(out.len() - start).next_multiple_of(BLOCK_HEADER_LEN);
    let blocks = start + header.len;
    // A raw block of size 0 that is not the last.
    out.splice(blocks..blocks, std::iter::repeat_n(0, missing));
    Ok(())
}

fn window(descriptor: u8) -> Result<u64, &'static str> {
    let log = 10 + u32::from(descriptor >> 3);
    if log > MAX_WINDOW_LOG {
        return Err("the window is larger than zstd allows");
    }
    let base = 1u64 << log;
    Ok(base + base / 8 * u64::from(descriptor & 0b111))
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    #[inline]
    fn take(&mut self, len: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or("the frame is cut off")?;
        self.0 = rest;
        Ok(taken)
    }

    #[inline]
    fn little_endian<const LEN: usize>(&mut self) -> Result<u64, &'static str> {
        let mut number = [0; size_of::<u64>()];
        number[..LEN].copy_from_slice(self.take(LEN)?);
        Ok(u64::from_le_bytes(number))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame of one raw block "abc", window 1 KiB, no content size.
    const FRAME: &[u8] = b"\x28\xb5\x2f\xfd\x00\x00\x19\x00\x00abc";

    #[test]
    fn a_raw_block_reaches_its_size() {
        assert_eq!(extent(Framing::Envelope, FRAME), Ok(Extent { claimed: None, reach: 3 }));
        assert_eq!(extent(Framing::Record, &FRAME[4..]), Ok(Extent { claimed: None, reach: 3 }));
    }

    #[test]
    fn a_repeated_byte_reaches_its_count_and_a_compressed_block_the_window() {
        let repeated = b"\x28\xb5\x2f\xfd\x00\x00\x1b\x00\x00a";
        assert_eq!(extent(Framing::Envelope, repeated), Ok(Extent { claimed: None, reach: 3 }));
        let compressed = b"\x28\xb5\x2f\xfd\x00\x00\x1d\x00\x00abc";
        assert_eq!(extent(Framing::Envelope, compressed), Ok(Extent { claimed: None, reach: 1_024 }));
        let in_128_mib = b"\x28\xb5\x2f\xfd\x00\x88\x1d\x00\x00abc";
        assert_eq!(extent(Framing::Envelope, in_128_mib), Ok(Extent { claimed: None, reach: 128 << 10 }));
    }

    #[test]
    fn a_claim_is_read_but_not_believed() {
        let claims_2_to_the_60 = b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\0\0\x10\x19\x00\x00abc";
        assert_eq!(
            extent(Framing::Envelope, claims_2_to_the_60),
            Ok(Extent { claimed: Some(1 << 60), reach: 3 })
        );
    }

    #[test]
    fn frames_that_are_cut_off_or_followed_by_anything_are_refused() {
        for len in 0..FRAME.len() {
            assert!(extent(Framing::Envelope, &FRAME[..len]).is_err(), "the first {len} bytes");
        }
        let twice = FRAME.repeat(2);
        assert_eq!(extent(Framing::Envelope, &twice), Err("bytes after the end of the frame"));
        let skippable = b"\x50\x2a\x4d\x18\x00\x00\x00\x00";
        assert_eq!(extent(Framing::Envelope, skippable), Err("no zstd frame starts here"));
    }

    #[test]
    fn what_the_specification_reserves_or_forbids_is_refused() {
        for (at, byte, reason) in [
            (4, 0b1000, "the frame header uses a reserved bit"),
            (5, 0xFF, "the window is larger than zstd allows"),
            (6, 0x1F, "a block of the reserved type"),
            (8, 0x01, "a block larger than the window allows"),
        ] {
            let mut frame = FRAME.to_vec();
            frame[at] = byte;
            assert_eq!(extent(Framing::Envelope, &frame), Err(reason));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_looked_at(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = extent(Framing::Envelope, &[&MAGIC[..], &bytes].concat());
            let _ = extent(Framing::Record, &bytes);
        }
    }

    #[cfg(feature = "zstd")]
    proptest! {
        #[test]
        fn what_libzstd_writes_is_within_reach(
            word in proptest::collection::vec(any::<u8>(), 1..50),
            repeat in 1usize..20_000,
            level in -5i32..6,
        ) {
            let value = word.repeat(repeat);
            let mut frame = vec![0; zstd_safe::compress_bound(value.len())];
            let len = zstd_safe::compress(&mut frame[..], &value, level).unwrap();
            let extent = extent(Framing::Envelope, &frame[..len]).unwrap();
            prop_assert_eq!(extent.claimed, Some(value.len() as u64));
            prop_assert!(extent.reach >= value.len() as u64);
        }
    }
}
