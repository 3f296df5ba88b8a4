//! Dictionaries: what is accepted as one, and what one is worth.
#![cfg(feature = "zstd")]

use std::sync::Arc;

use crate::values::*;
use snugly_codec::{
    Choice, Counters, DecodeError, Decoder, Dictionary, Encoder, Family, LoadError, Record, TrainError,
};

#[test]
fn the_id_is_that_of_the_content() {
    let dictionary = dictionary();
    let hash = xxhash_rust::xxh64::xxh64(&dictionary.bytes()[8..], 0);
    assert_eq!(u64::from(dictionary.id()), 32_768 + hash % ((1 << 31) - 32_768));
    assert_eq!(dictionary.bytes()[4..8], dictionary.id().to_le_bytes());
    let loaded = Dictionary::load(dictionary.bytes()).expect("it is what was trained");
    assert_eq!(loaded.id(), dictionary.id());
}

#[test]
fn what_is_no_dictionary_is_refused() {
    let bytes = dictionary().bytes().to_vec();
    let load = |bytes: &[u8]| Dictionary::load(bytes).map(|dictionary| dictionary.id());
    assert_eq!(load(b"raw content"), Err(LoadError::NotADictionary));
    assert_eq!(load(b""), Err(LoadError::NotADictionary));
    assert_eq!(load(&bytes[..7]), Err(LoadError::NotADictionary));
    assert_eq!(load(&vec![0; Dictionary::MAX_BYTES + 1]), Err(LoadError::TooLarge { len: (1 << 20) + 1 }));
    for at in [4, 8, 100, bytes.len() - 1] {
        let mut other = bytes.clone();
        other[at] ^= 1;
        assert!(matches!(load(&other), Err(LoadError::WrongId { .. })), "byte {at}");
    }
    let mut cut_off_with_its_id = bytes[..40].to_vec();
    let hash = xxhash_rust::xxh64::xxh64(&cut_off_with_its_id[8..], 0);
    let id = (32_768 + hash % ((1 << 31) - 32_768)) as u32;
    cut_off_with_its_id[4..8].copy_from_slice(&id.to_le_bytes());
    assert_eq!(load(&cut_off_with_its_id), Err(LoadError::Corrupt));
}

#[test]
fn a_dictionary_holds_nothing_that_one_value_alone_says() {
    let secret = |number: u64| format!("{:016x}", xxhash_rust::xxh64::xxh64(&number.to_le_bytes(), 7));
    let value = |number| format!(r#"{{"kind":"session","token":"{}","expires":3600}}"#, secret(number));
    let samples: Vec<String> = (0..1_000).map(value).collect();
    let dictionary = Dictionary::train(&samples, 16 << 10).expect("there are enough samples");
    let content = dictionary.bytes();
    assert!(
        content.windows(20).any(|window| window == br#"{"kind":"session","t"#),
        "what they share is there"
    );
    for number in 0..1_000 {
        let secret = secret(number);
        assert!(
            !content.windows(8).any(|window| secret.as_bytes().windows(8).any(|part| part == window)),
            "{secret}"
        );
    }
}

#[test]
fn training_says_what_it_lacks() {
    let none: [&[u8]; 0] = [];
    assert!(matches!(Dictionary::train(&none, 4_096), Err(TrainError::Refused(_))));
    assert!(matches!(Dictionary::train(&[b"one"; 3], 4_096), Err(TrainError::Refused(_))));
    assert!(matches!(Dictionary::train(&[b""; 300], 4_096), Err(TrainError::Refused(_))));
    for max_bytes in [0, 255, (1 << 20) + 1] {
        assert_eq!(Dictionary::train(&none, max_bytes).err(), Some(TrainError::SizeOutOfRange { max_bytes }));
    }
}

#[test]
fn small_values_become_much_smaller_at_every_level() {
    let dictionary = dictionary();
    for level in [-7, 1, 3, 9, 19, 22] {
        let choice = Choice::new("zstd", Some(level), 64).expect("it is built in");
        let value = json(123_456, 3);
        let mut encoder = encoder();
        let plain = encoder.encode(choice, &value, 0, |bytes| bytes).encoded_len();
        let with =
            encoder.encode_with(choice, Some((1, &dictionary)), &value, 0, |bytes| bytes).encoded_len();
        assert!(with * 10 < plain * 7, "level {level}: {with} bytes with, {plain} without");
    }
}

#[test]
fn its_memory_is_more_than_its_content_and_grows_with_the_level() {
    let dictionary = dictionary();
    let memory = [1, 3, 19].map(|level| dictionary.memory(level));
    assert!(memory[0] > 3 * dictionary.bytes().len(), "the content is in it three times: {memory:?}");
    assert!(memory[0] <= memory[1] && memory[1] <= memory[2], "{memory:?}");
}

#[test]
fn what_was_made_for_other_levels_counts_and_what_hardly_compresses_makes_no_tables_of_its_own() {
    let dictionary = dictionary();
    let memory = dictionary.memory(9);
    let (mut encoder, choice) = (encoder(), Choice::new("zstd", Some(9), 64).expect("it is built in"));
    for seed in 0..2_000 {
        encoder.encode_with(choice, Some((1, &dictionary)), &random(400, seed), 0, |bytes| bytes);
    }
    assert_eq!(dictionary.memory_taken(), memory);
    assert!(dictionary.memory(3) > memory);
    assert_eq!(dictionary.memory(9), dictionary.memory_taken());
}

#[test]
fn a_record_needs_the_dictionary_that_it_was_made_with() {
    let dictionary = dictionary();
    let counters = Arc::new(Counters::default());
    let mut encoder = Encoder::new(counters.clone());
    let mut decoder = Decoder::new(counters.clone());
    let value = json(1, 3);
    let mut stored = Vec::new();
    encoder
        .encode_with(choice("zstd"), Some((9, &dictionary)), &value, 0, |bytes| bytes)
        .append_to(&mut stored);
    let record = Record::parse(&stored).expect("a record");
    assert_eq!(record.dictionary(), Some(9));

    let payload = record.payload().len();
    let missing = decoder.decode(&record, MAX_RAW, &mut Vec::new());
    assert_eq!(missing, Err(DecodeError::DictionaryMissing { dictionary: 9, payload }));
    let other = Dictionary::train(&(0..2_000).map(|seed| random(40, seed % 50)).collect::<Vec<_>>(), 1_024);
    let other = Arc::new(other.expect("the samples are enough"));
    let mut wrong = Vec::new();
    let _ = decoder.decode_with(&record, &|_| Some(&*other), MAX_RAW, &mut wrong);
    assert_ne!(wrong, value);
    let mut right = Vec::new();
    let find = |number| (number == 9).then(|| &*dictionary);
    decoder.decode_with(&record, &find, MAX_RAW, &mut right).expect("it decodes");
    assert_eq!(right, value);
    let counts = counters.snapshot();
    assert_eq!((counts.total(Family::DictionaryMisses), counts.total(Family::DictionaryHits)), (1, 2));
}

#[test]
fn plain_frames_are_not_affected_by_a_dictionary_used_before() {
    let dictionary = dictionary();
    let mut encoder = encoder();
    let value = json(1, 3);
    let before = stored(&mut encoder, choice("zstd"), &value);
    encoder.encode_with(choice("zstd"), Some((1, &dictionary)), &value, 0, |bytes| bytes);
    drop(dictionary);
    assert_eq!(stored(&mut encoder, choice("zstd"), &value), before);
    assert_eq!(restored(&before), value);
}

#[test]
fn threads_share_one() {
    let dictionary = dictionary();
    std::thread::scope(|scope| {
        for level in [1, 3, 3, 7, 7, 1] {
            let dictionary = &dictionary;
            scope.spawn(move || {
                let choice = Choice::new("zstd", Some(level), 64).expect("it is built in");
                for seed in 0..200 {
                    let value = json(seed, 3);
                    let mut encoder = encoder();
                    let record = encoder.encode_with(choice, Some((1, dictionary)), &value, 0, |bytes| bytes);
                    let mut restored = Vec::new();
                    let find = |_| Some(&**dictionary);
                    decoder().decode_with(&record, &find, MAX_RAW, &mut restored).expect("it decodes");
                    assert_eq!(restored, value);
                }
            });
        }
    });
}
