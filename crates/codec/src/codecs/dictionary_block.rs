//! The structure of an LZ4 payload with a dictionary, read without decoding it and without liblz4: in an envelope the
//! dictionary's ID, the raw length, a checksum of the value and one raw block, in a record the block alone.
//!
//! A block says nothing of its dictionary, and decodes with another one into other bytes. Hence ID and checksum, where the
//! payload is on its own; a record's number is the store's word for the dictionary.

use super::{Claims, Extent, Framing, block};
use crate::dictionary::FIRST_ID;

/// The length of what is in front of an envelope's block: ID, raw length and checksum, u32 each.
pub(crate) const HEADER_LEN: usize = 3 * size_of::<u32>();

/// Header in front of an envelope's block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The dictionary's ID.
    pub dictionary_id: u32,
    /// The length of the value, in bytes.
    pub raw_len: u32,
    /// xxh32 of the value, with seed 0.
    pub checksum: u32,
}

impl Header {
    /// The header's bytes, all of them little-endian.
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        let fields = [self.dictionary_id, self.raw_len, self.checksum];
        for (place, field) in bytes.chunks_exact_mut(size_of::<u32>()).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    fn of_bytes(bytes: &[u8; HEADER_LEN]) -> Header {
        let field = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Header { dictionary_id: field(0), raw_len: field(4), checksum: field(8) }
    }
}

/// The header, which only an envelope has, and the block.
pub(crate) fn split(framing: Framing, payload: &[u8]) -> Result<(Option<Header>, &[u8]), &'static str> {
    let (header, block) = match framing {
        Framing::Record => (None, payload),
        Framing::Envelope => {
            let (header, block) = payload
                .split_first_chunk()
                .ok_or("the dictionary's ID, the raw length or the checksum is cut off")?;
            (Some(Header::of_bytes(header)), block)
        }
    };
    if block.is_empty() { Err(block::MISSING) } else { Ok((header, block)) }
}

/// Claims of an envelope's payload, read without decoding it.
pub(super) fn claims(payload: &[u8]) -> Option<Claims> {
    let (header, block) = split(Framing::Envelope, payload).ok()?;
    let Header { dictionary_id, raw_len, .. } = header?;
    let dictionary = (u64::from(dictionary_id) >= FIRST_ID).then_some(dictionary_id);
    Some(Claims { len: Some(raw_len.into()), reach: Some(block::reach(block)), dictionary })
}

/// Claimed length of a payload, and the longest that it can reach.
pub(crate) fn extent(framing: Framing, payload: &[u8]) -> Result<Extent, &'static str> {
    let (header, block) = split(framing, payload)?;
    Ok(Extent { claimed: header.map(|header| header.raw_len.into()), reach: block::reach(block) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ID 1,348,745,366, five bytes, a checksum, and a block of five literals.
    const PAYLOAD: &[u8] = b"\x96\x38\x64\x50\x05\0\0\0\x78\x56\x34\x12\x50hello";

    #[test]
    fn the_header_has_id_length_and_checksum() {
        let header = Header { dictionary_id: 1_348_745_366, raw_len: 5, checksum: 0x1234_5678 };
        assert_eq!(split(Framing::Envelope, PAYLOAD), Ok((Some(header), &b"\x50hello"[..])));
        assert_eq!(header.to_bytes(), PAYLOAD[..HEADER_LEN]);
        assert_eq!(extent(Framing::Envelope, PAYLOAD), Ok(Extent { claimed: Some(5), reach: 6 * 255 }));
    }

    #[test]
    fn a_record_has_the_block_alone() {
        assert_eq!(split(Framing::Record, b"\x50hello"), Ok((None, &b"\x50hello"[..])));
        assert_eq!(extent(Framing::Record, b"\x50hello"), Ok(Extent { claimed: None, reach: 6 * 255 }));
    }

    #[test]
    fn a_header_that_is_cut_off_and_a_block_that_is_missing_are_refused() {
        for len in 0..=HEADER_LEN {
            assert!(extent(Framing::Envelope, &PAYLOAD[..len]).is_err(), "the first {len} bytes");
            assert_eq!(claims(&PAYLOAD[..len]), None);
        }
        assert!(extent(Framing::Record, b"").is_err());
    }

    #[test]
    fn only_ids_of_dictionaries_are_claimed() {
        for (id, claimed) in [(0, None), (32_767, None), (32_768, Some(32_768)), (u32::MAX, Some(u32::MAX))] {
            let payload = [&id.to_le_bytes()[..], &PAYLOAD[4..]].concat();
            assert_eq!(claims(&payload).map(|claims| claims.dictionary), Some(claimed));
        }
    }
}
