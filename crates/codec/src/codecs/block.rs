//! The structure of an LZ4 payload, read without decoding it and without liblz4: in an envelope the raw
//! length (u32, little-endian) and one raw block, in a record the block alone.

use super::{Claims, Extent, Framing};

/// The length of an envelope's raw length.
pub(crate) const RAW_LEN: usize = size_of::<u32>();
/// A byte of a block yields at most 255 bytes of value: a length byte of a long match.
const MAX_RATIO: u64 = 255;
/// The reason why a payload without a block is refused.
pub(super) const MISSING: &str = "the LZ4 block is missing";

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
    if block.is_empty() { Err(MISSING) } else { Ok((claimed, block)) }
}

/// The most bytes that a block can decode to.
pub(super) fn reach(block: &[u8]) -> u64 {
    block.len() as u64 * MAX_RATIO
}

/// Claims of an envelope's payload, read without decoding it.
pub(super) fn claims(payload: &[u8]) -> Option<Claims> {
    let Extent { claimed, reach } = extent(Framing::Envelope, payload).ok()?;
    Some(Claims { len: claimed, reach: Some(reach), dictionary: None })
}

/// Claimed length of a payload, and the longest that it can reach.
pub(crate) fn extent(framing: Framing, payload: &[u8]) -> Result<Extent, &'static str> {
    let (claimed, block) = split(framing, payload)?;
    Ok(Extent { claimed, reach: reach(block) })
}
