//! Checks that the fuzz targets share: a payload put into a record or an envelope, and the answer that must follow.

use std::sync::{Arc, LazyLock};

use snugly_codec::envelope::{self, Decoded, Outcome};
use snugly_codec::{CODECS, Choice, CodecId, Counters, DecodeError, Decoder, Dictionary, Encoder, Record};

/// The longest value that the targets decode, in bytes.
pub const LIMIT: usize = 1 << 20;

/// The number under which the targets know [`DICTIONARY`].
pub const NUMBER: u32 = 300;

/// A dictionary trained on the seeds.
pub static DICTIONARY: LazyLock<Arc<Dictionary>> = LazyLock::new(|| {
    Arc::new(
        Dictionary::load(&include_bytes!("../../fuzz/seeds/dictionary.zdict")[..])
            .expect("it was trained for this"),
    )
});

fn encoder() -> Encoder {
    Encoder::new(Arc::new(Counters::default()))
}

/// Some codec at some level that is not too slow.
pub fn choice(settings: u8) -> Choice {
    let codec = &CODECS[usize::from(settings) % CODECS.len()];
    if !codec.is_for_values() {
        return Choice::lzf(0);
    }
    let level = (i32::from(settings >> 2) % 20 - 8).clamp(*codec.levels().start(), *codec.levels().end());
    Choice::new(codec.name(), Some(level), 0).expect("the level is in range")
}

/// Decodes a record and checks that it yields its length or nothing.
pub fn decode_record(record: &Record<'_>) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = Decoder::new(Arc::new(Counters::default()));
    let mut value = b"before".to_vec();
    let find = |number| (number == NUMBER).then(|| &**DICTIONARY);
    let result = decoder.decode_with(record, &find, LIMIT, &mut value);
    let value = value.strip_prefix(b"before").expect("what was there is kept").to_vec();
    assert_eq!(value.len(), if result.is_ok() { record.raw_len() } else { 0 });
    result.map(|()| value)
}

/// Decodes an envelope and checks that an error leaves nothing behind.
pub fn decode_envelope(bytes: &[u8]) -> Result<Option<Vec<u8>>, envelope::EnvelopeError> {
    let options = envelope::Options { max_decompressed_size: LIMIT, ..Default::default() };
    let mut value = b"before".to_vec();
    let find = |id| (id == DICTIONARY.id()).then(|| &**DICTIONARY);
    let result = envelope::decode_with(&options, &find, bytes, &mut value);
    let value = value.strip_prefix(b"before").expect("what was there is kept").to_vec();
    match result? {
        Decoded::AsIs => {
            assert!(value.is_empty());
            Ok(None)
        }
        Decoded::Restored { len, .. } => {
            assert_eq!(len, value.len());
            assert!(len <= LIMIT);
            Ok(Some(value))
        }
    }
}

/// Puts a payload into a record that declares the length in the first bytes, and into an envelope if those know
/// the codec; decodes both.
pub fn decode_payload(codec: CodecId, data: &[u8]) {
    let Some((length, payload)) = data.split_first_chunk::<3>() else { return };
    let raw_len = u32::from_le_bytes([length[0], length[1], length[2], 0]);
    let mut bytes = vec![codec as u8];
    if codec.needs_dictionary() {
        varint(NUMBER, &mut bytes);
    }
    varint(raw_len, &mut bytes);
    bytes.extend_from_slice(payload);
    let record = Record::parse(&bytes).expect("the header is well-formed");
    let _ = decode_record(&record);

    let backend = match codec {
        CodecId::Identity | CodecId::Lzf => return,
        CodecId::Zstd => 0x01,
        CodecId::Lz4 => 0x02,
        CodecId::ZstdDictionary => 0x81,
        CodecId::Lz4Dictionary => 0x82,
    };
    let _ = decode_envelope(&[&[0, 1, 2, 0, backend], payload].concat());
}

fn varint(mut number: u32, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Encodes a value both ways and checks that it comes back.
pub fn round_trip(choice: Choice, dictionary: Option<&Dictionary>, value: &[u8]) {
    let mut encoder = encoder();
    let numbered = dictionary.map(|dictionary| (NUMBER, dictionary));
    let mut stored = Vec::new();
    encoder.encode_with(choice, numbered, value, 0, |bytes| bytes).append_to(&mut stored);
    let record = Record::parse(&stored).expect("it was just made");
    assert!(stored.len() <= Record::identity(value).encoded_len());
    assert_eq!(decode_record(&record).expect("it was just made"), value);

    let options = envelope::Options {
        choice,
        existing_envelopes: envelope::ExistingEnvelopes::Wrap,
        max_decompressed_size: LIMIT,
        ..Default::default()
    };
    let mut sent = Vec::new();
    let received = match envelope::encode_with(&options, dictionary, value, &mut sent) {
        Outcome::AsIs(_) => decode_envelope(value),
        Outcome::Encoded { .. } => decode_envelope(&sent),
    };
    assert_eq!(received.expect("it was just made").as_deref().unwrap_or(value), value);
}
