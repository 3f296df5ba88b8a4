//! LZF: one stream, without any header. It is what Valkey compresses the inner nodes of lists with, and for those only.

use super::tail::reserve;
use super::{Decoding, Encoding, Extent, Fault, Framing, Functions};

pub(super) const FUNCTIONS: Functions = Functions { compress, decompress };

/// A stream does not say how long it is, so that only its reach is known.
pub(super) fn extent(_: Framing, payload: &[u8]) -> Result<Extent, &'static str> {
    Ok(Extent { claimed: None, reach: snugly_lzf::reach(payload.len()) as u64 })
}

fn compress(_: &Encoding<'_>, value: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    reserve(out, value.len())?;
    if snugly_lzf::compress(value, out) { Ok(()) } else { Err(Fault::OutputFull) }
}

fn decompress(decoding: &Decoding<'_>, payload: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
    reserve(out, decoding.limit)?;
    snugly_lzf::decompress_to(payload, decoding.limit, out)
        .map(|()| decoding.limit)
        .ok_or(Fault::Other("it is no LZF, or stands for another number of bytes than declared"))
}
