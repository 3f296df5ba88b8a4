//! Any bytes as an LZF payload, and as a value to compress with it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use snugly_codec::{Choice, CodecId};
use snugly_codec_fuzz::{decode_payload, round_trip};

fuzz_target!(|data: &[u8]| {
    decode_payload(CodecId::Lzf, data);
    round_trip(Choice::lzf(0), None, data);
});
