//! Any bytes as a payload that needs a dictionary, as a value to compress with one, and as a dictionary.

use crate::checks::{DICTIONARY, decode_payload, round_trip};
use snugly_codec::{Choice, CodecId, Dictionary};

pub fn run(data: &[u8]) {
    decode_payload(CodecId::ZstdDictionary, data);
    if let Some((&level, value)) = data.split_first() {
        let choice = Choice::new("zstd", Some(i32::from(level) % 7), 0).expect("the level is in range");
        round_trip(choice, Some(&DICTIONARY), value);
        load(choice, value);
    }
}

/// Loads the bytes with the ID that they must have, and uses them if zstd accepts them.
fn load(choice: Choice, bytes: &[u8]) {
    let mut bytes = [b"\x37\xa4\x30\xec\0\0\0\0", bytes].concat();
    if let Err(snugly_codec::LoadError::WrongId { content, .. }) = Dictionary::load(&bytes[..]) {
        bytes[4..8].copy_from_slice(&content.to_le_bytes());
        if let Ok(dictionary) = Dictionary::load(&bytes[..]) {
            let _ = snugly_codec::envelope::encode_with(
                &snugly_codec::envelope::Options { choice, ..Default::default() },
                Some(&dictionary),
                &bytes,
                &mut Vec::new(),
            );
        }
    }
}
