//! Any bytes as an LZ4 payload, and as a value to compress with it.

use crate::checks::{decode_payload, round_trip};
use snugly_codec::{Choice, CodecId};

pub fn run(data: &[u8]) {
    decode_payload(CodecId::Lz4, data);
    if let Some((&level, value)) = data.split_first() {
        let level = i32::from(level as i8).min(12);
        round_trip(Choice::new("lz4", Some(level), 0).expect("the level is in range"), None, value);
    }
}
