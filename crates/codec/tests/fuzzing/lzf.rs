//! Any bytes as an LZF payload, and as a value to compress with it.

use crate::checks::{decode_payload, round_trip};
use snugly_codec::{Choice, CodecId};

pub fn run(data: &[u8]) {
    decode_payload(CodecId::Lzf, data);
    round_trip(Choice::lzf(0), None, data);
}
