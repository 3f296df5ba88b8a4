//! The structure of an LZ4 payload, read without decoding it and without liblz4: in an envelope the raw
//! length (u32, little-endian) and one raw block, in a record the block alone.

use super::{Extent, Framing};

/// The length of an envelope's raw length.
pub(crate) const RAW_LEN: usize = size_of::<u32>();
/// A byte of a block yields at most 255 bytes of value: a length byte of a long match.
const MAX_RATIO: u64 = 255;

/// The payload's claim and its block.
pub(crate) fn split(framing: Framing, payload: &[u8]) -> Result<(Option<u64>, &[u8]), &'static str> {
    let (claimed, block) = match framing {
        Framing::Record => (None, payload),
        Framing::Envelope => {
            let (raw_len, block) =
                payload.split_first_chunk::<RAW_LEN>().ok_or("the raw length is cut off")?;
            (Some(u32::from_le_bytes(*raw_len).into()), block)
        }
    };
    if block.is_empty() { Err("the LZ4 block is missing") } else { Ok((claimed, block)) }
}

/// What the payload claims and can reach.
pub(crate) fn extent(framing: Framing, payload: &[u8]) -> Result<Extent, &'static str> {
    let (claimed, block) = split(framing, payload)?;
    Ok(Extent { claimed, reach: block.len() as u64 * MAX_RATIO })
}
