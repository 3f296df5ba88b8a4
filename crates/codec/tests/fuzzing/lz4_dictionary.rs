//! Any bytes as an LZ4 payload that needs a dictionary, and as a value to compress with one.

use crate::checks::{DICTIONARY, decode_envelope, decode_payload, round_trip};
use snugly_codec::{Choice, CodecId};
use xxhash_rust::xxh32::xxh32;

pub fn run(data: &[u8]) {
    decode_payload(CodecId::Lz4Dictionary, data);
    if let Some((&level, value)) = data.split_first() {
        decode_with_a_good_header(value);
        let level = i32::from(level as i8).min(12);
        let choice = Choice::new("lz4", Some(level), 0).expect("the level is in range");
        round_trip(choice, Some(&DICTIONARY), value);
    }
}

/// Decodes the bytes as a block of the dictionary's, with the length in front, which few inputs would be by chance.
fn decode_with_a_good_header(data: &[u8]) {
    let Some((&[low, high], block)) = data.split_first_chunk() else { return };
    let raw_len = u32::from(u16::from_le_bytes([low, high]));
    let envelope = |checksum: u32| {
        let fields = [DICTIONARY.id(), raw_len, checksum].map(u32::to_le_bytes).concat();
        [&[0, 1, 2, 0, 0x82], &fields[..], block].concat()
    };
    let declared = match decode_envelope(&envelope(0)) {
        Err(error) => match error.fault {
            snugly_codec::envelope::Fault::Payload(snugly_codec::DecodeError::ChecksumMismatch {
                actual,
                ..
            }) => actual,
            _ => return,
        },
        Ok(_) => 0,
    };
    let value = decode_envelope(&envelope(declared)).expect("its checksum is right").expect("an envelope");
    assert_eq!((value.len() as u32, xxh32(&value, 0)), (raw_len, declared));
}
