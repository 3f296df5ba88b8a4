//! The structure of a zstd frame (RFC 8878, section 3.1.1), read without decoding it and without libzstd.
//!
//! Reading it first gives the dictionary's ID, the claimed size, a bound on the real one, and the certainty that
//! there is exactly one frame and nothing after it.

use super::Framing;

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

/// Reads a frame's header, with its magic number unless the frame stands in a record.
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
    let dictionary_id_len = [0, 1, 2, 4][usize::from(descriptor & 0b11)];
    let dictionary_id = bytes.little_endian(dictionary_id_len)? as u32;
    let content_size = match descriptor >> 6 {
        0 if !single_segment => None,
        0 => Some(bytes.little_endian(1)?),
        1 => Some(bytes.little_endian(2)? + 256),
        2 => Some(bytes.little_endian(4)?),
        _ => Some(bytes.little_endian(8)?),
    };
    Ok(Header {
        content_size,
        dictionary_id,
        window: window.or(content_size).unwrap_or_default(),
        has_checksum: descriptor & 0b100 != 0,
        len: frame.len() - bytes.0.len(),
    })
}

/// Walks over the blocks: the most that the frame can decode to, if it is all there and nothing follows it.
pub(crate) fn reach(header: &Header, frame: &[u8]) -> Result<u64, &'static str> {
    let max_block = header.window.min(MAX_BLOCK);
    let mut bytes = Bytes(&frame[header.len..]);
    let mut reach = 0;
    loop {
        let block = bytes.little_endian(BLOCK_HEADER_LEN)?;
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
    fn take(&mut self, len: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or("the frame is cut off")?;
        self.0 = rest;
        Ok(taken)
    }

    fn little_endian(&mut self, len: usize) -> Result<u64, &'static str> {
        let mut number = [0; size_of::<u64>()];
        number[..len].copy_from_slice(self.take(len)?);
        Ok(u64::from_le_bytes(number))
    }
}
