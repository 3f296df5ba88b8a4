//! LZ4 with a dictionary: what it saves, what it takes, and that nothing wrong is ever taken for the value.
#![cfg(all(feature = "zstd", feature = "lz4"))]

use std::sync::{Arc, LazyLock};

use crate::values::*;
use snugly_codec::envelope::{self, Decoded, EnvelopeError, Fault, Outcome};
use snugly_codec::{Choice, CodecId, DecodeError, Dictionary, Learned, Record};

/// Bytes in front of an envelope's block: its own header, the dictionary's ID, the raw length and the checksum.
const BLOCK_AT: usize = 5 + 12;
const LEVELS: [i32; 9] = [-9, -1, 0, 1, 2, 3, 9, 10, 12];

static DICTIONARY: LazyLock<Arc<Dictionary>> = LazyLock::new(dictionary);

fn at_level(level: i32) -> Choice {
    Choice::new("lz4", Some(level), 64).expect("the level is in range")
}

/// A dictionary of so many bytes: one that was trained, with other content behind it.
fn dictionary_of(len: usize) -> Dictionary {
    let trained = DICTIONARY.bytes();
    let content = (0..).flat_map(|seed| json(seed, 1)).take(len - trained.len());
    let mut bytes: Vec<u8> = trained.iter().copied().chain(content).collect();
    let id = 32_768 + xxhash_rust::xxh64::xxh64(&bytes[8..], 0) % ((1 << 31) - 32_768);
    bytes[4..8].copy_from_slice(&(id as u32).to_le_bytes());
    Dictionary::load(bytes).expect("it has its ID")
}

fn encoded(choice: Choice, dictionary: &Dictionary, value: &[u8]) -> Vec<u8> {
    let mut sent = Vec::new();
    let outcome = envelope::encode_with(&options(choice), Some(dictionary), value, &mut sent);
    assert_eq!(outcome, Outcome::Encoded { codec: CodecId::Lz4Dictionary, len: sent.len() });
    sent
}

fn decoded(dictionary: Option<&Dictionary>, sent: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
    let mut value = b"before".to_vec();
    let result = envelope::decode_with(&options(Choice::none()), &|_| dictionary, sent, &mut value);
    let value = value.strip_prefix(b"before").expect("what was there is kept").to_vec();
    match result? {
        Decoded::Restored { codec, len } => assert_eq!((codec, len), (CodecId::Lz4Dictionary, value.len())),
        Decoded::AsIs => panic!("it is an envelope"),
    }
    Ok(value)
}

fn fault(dictionary: Option<&Dictionary>, sent: &[u8]) -> DecodeError {
    match decoded(dictionary, sent).expect_err("it is refused").fault {
        Fault::Payload(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn small_values_become_much_smaller_at_every_level() {
    let value = json(123_456, 3);
    for level in [-4, -1, 0, 1, 2, 3, 9, 10, 12] {
        let mut encoder = encoder();
        let plain = encoder.encode(at_level(level), &value, 0, |bytes| bytes).encoded_len();
        let with = encoder.encode_with(at_level(level), Some((1, &DICTIONARY)), &value, 0, |bytes| bytes);
        assert_eq!((with.codec(), with.dictionary()), (CodecId::Lz4Dictionary, Some(1)));
        assert!(
            with.encoded_len() * 10 < plain * 8,
            "level {level}: {} of {plain} bytes",
            with.encoded_len()
        );
    }
}

#[test]
fn an_envelope_says_which_dictionary_how_long_and_which_value() {
    let value = json(7, 3);
    let sent = encoded(at_level(0), &DICTIONARY, &value);
    let fields = [DICTIONARY.id(), value.len() as u32, xxhash_rust::xxh32::xxh32(&value, 0)];
    assert_eq!(sent[..BLOCK_AT], [&[0, 1, 2, 0, 0x82], &fields.map(u32::to_le_bytes).concat()[..]].concat());
    let envelope = envelope::inspect(&sent).expect("an envelope");
    assert_eq!(envelope.codec(), Some(CodecId::Lz4Dictionary));
    assert_eq!(envelope.dictionary_id(), Some(DICTIONARY.id()));
    assert_eq!(envelope.claimed_len(), Some(value.len() as u64));
    assert!(envelope.is_well_formed(value.len()) && !envelope.is_well_formed(value.len() - 1));
}

#[test]
fn values_of_every_size_come_back_at_every_level_whatever_was_encoded_before() {
    let entries = [0, 1, 3, 12, 60, 70, 300, 2_000];
    for (number, level) in LEVELS.into_iter().cycle().take(5 * LEVELS.len()).enumerate() {
        for entries in entries {
            let value = [json(number as u64, entries), vec![b' '; 300]].concat();
            let sent = encoded(at_level(level), &DICTIONARY, &value);
            assert!(decoded(Some(&DICTIONARY), &sent).expect("it decodes") == value);
            let plain = stored(&mut encoder(), at_level(level), &value);
            assert!(restored(&plain) == value);
        }
    }
}

/// A block of 36 bytes by hand: 20 from `offset` bytes before the value, 16 letters.
fn copying(dictionary: &Dictionary, offset: usize) -> (Vec<u8>, Vec<u8>) {
    let bytes = dictionary.bytes();
    let start = bytes.len().saturating_sub(offset);
    let value = [&bytes[start..start + 20], b"sixteen letters."].concat();
    let block = [&[0x0f], &(offset as u16).to_le_bytes()[..], &[1, 0xf0, 1], b"sixteen letters."].concat();
    let fields = [dictionary.id(), value.len() as u32, xxhash_rust::xxh32::xxh32(&value, 0)];
    ([&[0, 1, 2, 0, 0x82], &fields.map(u32::to_le_bytes).concat()[..], &block].concat(), value)
}

#[test]
fn a_block_may_copy_from_the_last_64_kib_of_a_dictionary_its_header_included() {
    const WINDOW: usize = 64 << 10;
    for len in [WINDOW - 2, WINDOW - 1, WINDOW, WINDOW + 1, 100_000, Dictionary::MAX_BYTES] {
        let dictionary = dictionary_of(len);
        let farthest = len.min(WINDOW - 1);
        for offset in [20, 1_000, farthest] {
            let (sent, value) = copying(&dictionary, offset);
            assert_eq!(decoded(Some(&dictionary), &sent).expect("it is within reach"), value);
        }
        if farthest < WINDOW - 1 {
            let (sent, _) = copying(&dictionary, farthest + 1);
            assert_eq!(fault(Some(&dictionary), &sent).name(), "corrupt");
        }
        let within = &dictionary.bytes()[len - farthest..][..300];
        let sent = encoded(at_level(9), &dictionary, within);
        assert!(sent.len() < BLOCK_AT + 40, "{} bytes of {len}", sent.len());
        assert!(decoded(Some(&dictionary), &sent).expect("it decodes") == within);
    }
}

#[test]
fn the_dictionarys_own_bytes_are_a_value_like_any_other() {
    for dictionary in [&**DICTIONARY, &dictionary_of(200_000)] {
        for level in LEVELS {
            let sent = encoded(at_level(level), dictionary, dictionary.bytes());
            assert!(decoded(Some(dictionary), &sent).expect("it decodes") == dictionary.bytes());
        }
    }
}

#[test]
fn what_was_encoded_before_leaves_no_trace() {
    for level in LEVELS {
        let value = json(1, 3);
        let first = encoded(at_level(level), &DICTIONARY, &value);
        for other in LEVELS {
            encoded(at_level(other), &dictionary_of(50_000), &json(2, 80));
            encoded(at_level(other), &DICTIONARY, &json(3, 3));
        }
        assert_eq!(encoded(at_level(level), &DICTIONARY, &value), first, "level {level}");
    }
}

#[test]
fn another_dictionary_never_yields_a_value() {
    let other = dictionary_of(DICTIONARY.bytes().len() + 100);
    for seed in 0..300 {
        let value = json(seed, 3);
        let mut sent = encoded(at_level(0), &DICTIONARY, &value);
        let payload = sent.len() - 5;
        // It is not the one that the envelope names.
        let missing = DecodeError::DictionaryMissing { dictionary: DICTIONARY.id(), payload };
        assert_eq!(fault(Some(&other), &sent), missing);
        assert_eq!(fault(None, &sent), missing);
        // It is the one, and the envelope is not true.
        sent[5..9].copy_from_slice(&other.id().to_le_bytes());
        let error = decoded(Some(&other), &sent).expect_err("another value");
        assert_eq!(error.kind(), "corrupt");
        assert!(["checksum_mismatch", "corrupt", "length_mismatch"].contains(&error.name()), "{error}");
    }
}

#[test]
fn every_flipped_bit_is_an_error_or_changes_nothing() {
    let value = json(1, 3);
    let sent = encoded(at_level(0), &DICTIONARY, &value);
    for bit in 8 * 5..8 * sent.len() {
        let mut damaged = sent.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Ok(decoded) = decoded(Some(&DICTIONARY), &damaged) {
            assert_eq!(decoded, value, "bit {bit}");
        }
    }
}

#[test]
fn a_checksum_that_is_not_the_values_is_told() {
    let value = json(1, 3);
    let mut sent = encoded(at_level(0), &DICTIONARY, &value);
    let actual = xxhash_rust::xxh32::xxh32(&value, 0);
    sent[13] ^= 1;
    let (codec, payload, declared) = (CodecId::Lz4Dictionary, sent.len() - 5, actual ^ 1);
    let error = DecodeError::ChecksumMismatch { codec, payload, declared, actual };
    assert_eq!(fault(Some(&DICTIONARY), &sent), error);
    assert_eq!(
        error.to_string(),
        format!(
            "a lz4_dictionary payload of {payload} bytes decodes to a value with the checksum {actual:08x} where \
             {declared:08x} is declared: it is corrupt"
        )
    );
}

#[test]
fn checks_come_in_the_order_of_the_specification() {
    let value = json(1, 3);
    let sent = encoded(at_level(0), &DICTIONARY, &value);
    let (block_len, payload) = (sent.len() - BLOCK_AT, sent.len() - 5);
    let codec = CodecId::Lz4Dictionary;
    let with =
        |at: usize, field: u32, sent: &[u8]| [&sent[..at], &field.to_le_bytes(), &sent[at + 4..]].concat();
    // All that can be wrong, from the last to the first.
    let sent = with(13, 0, &sent);
    assert_eq!(fault(Some(&DICTIONARY), &sent).name(), "checksum_mismatch");
    let longer = with(9, value.len() as u32 + 1, &sent);
    assert_eq!(fault(Some(&DICTIONARY), &longer).name(), "length_mismatch");
    let shorter = with(9, value.len() as u32 - 1, &sent);
    assert_eq!(fault(Some(&DICTIONARY), &shorter).name(), "corrupt");
    let unknown = with(5, 32_768, &longer);
    assert_eq!(
        fault(Some(&DICTIONARY), &unknown),
        DecodeError::DictionaryMissing { dictionary: 32_768, payload }
    );
    let reach = 255 * block_len as u64;
    let unreachable = with(9, reach as u32 + 1, &unknown);
    assert_eq!(
        fault(Some(&DICTIONARY), &unreachable),
        DecodeError::Unreachable { codec, raw: reach + 1, payload, reach }
    );
    let large = with(9, u32::MAX, &unreachable);
    assert_eq!(
        fault(Some(&DICTIONARY), &large),
        DecodeError::TooLarge { codec, raw: u32::MAX.into(), limit: MAX_RAW }
    );
    let reserved = with(5, 32_767, &large);
    let error = decoded(Some(&DICTIONARY), &reserved).expect_err("no dictionary has this ID");
    assert_eq!((error.fault.clone(), error.kind()), (Fault::NoDictionaryId, "corrupt"));
}

#[test]
fn whatever_is_cut_off_or_follows_is_noticed() {
    for (level, entries) in [(0, 3), (9, 3), (0, 100)] {
        let value = json(5, entries);
        let sent = encoded(at_level(level), &DICTIONARY, &value);
        for len in (5..sent.len()).rev().take(400).chain(5..40) {
            let error = decoded(Some(&DICTIONARY), &sent[..len]).expect_err("it is cut off");
            assert_eq!(error.kind(), "corrupt", "{len} of {} bytes", sent.len());
        }
        for tail in [&b"\0"[..], b"a", b"\x10\xff", &[0; 100], &sent[BLOCK_AT..]] {
            let error = decoded(Some(&DICTIONARY), &[&sent, tail].concat()).expect_err("something follows");
            assert_eq!(error.kind(), "corrupt");
        }
    }
}

#[test]
fn a_record_has_the_number_and_the_block_alone() {
    let value = json(3, 3);
    let mut encoder = encoder();
    let record = encoder.encode_with(at_level(0), Some((300, &DICTIONARY)), &value, 0, |bytes| bytes);
    let block = encoded(at_level(0), &DICTIONARY, &value).split_off(BLOCK_AT);
    let mut bytes = Vec::new();
    record.append_to(&mut bytes);
    let header = [5, 0xac, 0x02, value.len() as u8 | 0x80, (value.len() >> 7) as u8];
    assert_eq!(bytes, [&header[..], &block].concat());
    let record = Record::parse(&bytes).expect("a record");
    let mut value_again = Vec::new();
    let find = |number| (number == 300).then(|| &**DICTIONARY);
    decoder().decode_with(&record, &find, MAX_RAW, &mut value_again).expect("it decodes");
    assert_eq!(value_again, value);
    let missing = decoder().decode(&record, MAX_RAW, &mut Vec::new());
    assert_eq!(missing, Err(DecodeError::DictionaryMissing { dictionary: 300, payload: block.len() }));
}

#[test]
fn tables_are_made_once_and_counted() {
    let dictionary = dictionary_of(10_000);
    let before = dictionary.memory_taken();
    let fast = dictionary.memory_for(at_level(-3)) - before;
    assert!((16 << 10..17 << 10).contains(&fast), "{fast} bytes");
    assert_eq!(dictionary.memory_for(at_level(0)), before + fast);
    encoded(at_level(-9), &dictionary, &json(1, 3));
    assert_eq!(dictionary.memory_taken(), before + fast);
    let high = dictionary.memory_for(at_level(12)) - before - fast;
    assert!((256 << 10..260 << 10).contains(&high), "{high} bytes");
    encoded(at_level(1), &dictionary, &json(1, 3));
    assert_eq!(dictionary.memory_taken(), before + fast + high);
    assert_eq!(dictionary.memory_for(Choice::none()), dictionary.memory_taken());
}

#[test]
fn threads_share_the_tables_and_a_dictionary_may_move_and_go() {
    let dictionary = Arc::new(dictionary_of(70_000));
    std::thread::scope(|scope| {
        for level in [0, 0, -5, 3, 3, 12] {
            let dictionary = dictionary.clone();
            scope.spawn(move || {
                for seed in 0..100 {
                    let value = json(seed, 3);
                    let sent = encoded(at_level(level), &dictionary, &value);
                    assert_eq!(decoded(Some(&dictionary), &sent).expect("it decodes"), value);
                }
            });
        }
    });
    let value = json(1, 3);
    let sent = encoded(at_level(0), &dictionary, &value);
    let moved = Box::new(Arc::into_inner(dictionary).expect("nobody else has it"));
    assert_eq!(encoded(at_level(0), &moved, &value), sent);
    drop(moved);
    let plain = encoded(at_level(0), &DICTIONARY, &value);
    assert_eq!(decoded(Some(&DICTIONARY), &plain).expect("it decodes"), value);
}

#[test]
fn values_and_envelopes_take_learned_dictionaries_and_nodes_of_lists_do_not() {
    let codec = at_level(0);
    assert_eq!(codec.codec().with_dictionary(), Some(CodecId::Lz4Dictionary));
    let kinds = [Learned::Values, Learned::Nodes, Learned::Envelopes];
    assert_eq!(kinds.map(|kind| codec.learned(kind, Some(1))), [Some(1), None, Some(1)]);
    assert_eq!(kinds.map(|kind| choice("zstd").learned(kind, Some(1))), [Some(1); 3]);
    assert!(Choice::new("lz4_dictionary", None, 64).is_err(), "no setting names it");
    // What nobody but snugly must read is encoded whatever was handed over.
    let counts = b"\0\x01\x02\0\x02\0\0\0\0";
    let mut sent = Vec::new();
    let outcome = envelope::encode_with(&options(codec), Some(&DICTIONARY), counts, &mut sent);
    assert_eq!(outcome, Outcome::Encoded { codec: CodecId::Lz4, len: sent.len() });
}
