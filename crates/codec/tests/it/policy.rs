//! What is compressed, what is left alone, and what that costs.

use std::sync::Arc;

use crate::values::*;
use snugly_codec::{
    Choice, CodecId, Counters, Dictionary, Encoder, Family, LoadError, Record, Snapshot, TrainError,
};

/// Encodes values, counts them, and says how many are encoded.
fn encode<'a>(choice: Choice, values: impl IntoIterator<Item = &'a Vec<u8>>) -> (usize, Snapshot) {
    let counters = Arc::new(Counters::default());
    let mut encoder = Encoder::new(counters.clone());
    let encoded = values
        .into_iter()
        .filter(|value| encoder.encode(choice, value, 0, |bytes| bytes).codec() != CodecId::Identity)
        .count();
    (encoded, counters.snapshot())
}

#[test]
fn a_value_is_encoded_only_if_its_real_allocation_shrinks() {
    for codec in compressing() {
        let choice = choice(codec.name());
        let value = json(1, 4);
        let len = encoder().encode(choice, &value, 0, |bytes| bytes).encoded_len();
        let encoded = |overhead, allocation| {
            encoder().encode(choice, &value, overhead, allocation).codec() != CodecId::Identity
        };
        assert!(encoded(0, |bytes| bytes));
        assert!(!encoded(0, |bytes| bytes.next_multiple_of(4_096)));
        // Header and key count too: with them, the value needs a second page and the record does not.
        assert!(encoded(4_096 - len, |bytes| bytes.next_multiple_of(4_096)));
        assert!(!encoded(4_097 - len, |bytes| bytes.next_multiple_of(4_096)));
    }
}

#[test]
fn what_is_stored_as_it_is_is_not_copied() {
    let value = json(1, 4);
    let mut encoder = encoder();
    let record = encoder.encode(Choice::none(), &value, 0, |bytes| bytes);
    assert_eq!(record.as_identity().map(<[u8]>::as_ptr), Some(value.as_ptr()));
}

#[test]
fn short_values_are_left_alone_and_counted() {
    for codec in compressing() {
        let choice = choice(codec.name()).with_min_bytes(256);
        let (encoded, counts) = encode(choice, &[vec![b'a'; 255], vec![b'a'; 256]]);
        assert_eq!((encoded, counts.total(Family::SkippedSmall)), (1, 1));
    }
}

#[test]
fn envelopes_are_stored_as_they_are() {
    for codec in compressing_values() {
        let mut sent = Vec::new();
        snugly_codec::envelope::encode(&options(choice(codec.name())), &json(1, 100), &mut sent);
        let (encoded, counts) = encode(choice(codec.name()), &[sent]);
        assert_eq!((encoded, counts.total(Family::SkippedCompressed)), (0, 1));
    }
}

#[test]
fn random_values_are_hardly_ever_tried() {
    for codec in compressing() {
        for len in [1_000, 256 << 10] {
            let values: Vec<_> = (0..8).map(|seed| random(len, seed)).collect();
            let (encoded, counts) = encode(choice(codec.name()), values.iter().cycle().take(2_000));
            assert_eq!(encoded, 0);
            assert_eq!(counts.total(Family::SkippedCompressed) + counts.total(Family::SkippedNoGain), 2_000);
            let tried = counts.total(Family::SkippedNoGain);
            assert!((1..=20).contains(&tried), "{tried} of 2,000 values of {len} bytes tried");
        }
    }
}

#[test]
fn who_alternates_between_levels_remembers_what_was_not_worth_it_at_each() {
    let counters = Arc::new(Counters::default());
    let mut encoder = Encoder::new(counters.clone());
    for codec in compressing_values() {
        let choices = [1, 2].map(|level| Choice::new(codec.name(), Some(level), 64).expect("it exists"));
        for seed in 0..500 {
            let value = random(1_000, seed);
            for choice in choices {
                encoder.encode(choice, &value, 0, |bytes| bytes);
            }
        }
    }
    let counts = counters.snapshot();
    let tried = counts.total(Family::SkippedNoGain);
    assert!(tried <= 20 * compressing_values().count() as u64, "{tried} attempts");
}

#[test]
fn compressed_files_are_left_alone_from_the_first_on() {
    for codec in compressing() {
        let magics: [&[u8]; 4] = [b"\x1f\x8b\x08", b"\x89PNG\r\n\x1a\n", b"PK\x03\x04", b"\xff\xd8\xff"];
        let files = magics.map(|magic| [magic, &random(5_000, 1)].concat());
        let (encoded, counts) = encode(choice(codec.name()), &files);
        assert_eq!((encoded, counts.total(Family::SkippedCompressed)), (0, 4));
    }
}

#[test]
fn text_that_starts_like_a_compressed_file_is_compressed() {
    for codec in compressing() {
        for start in
            ["GIF89a is a format. ", "BZh is how bzip2 starts. ", "ID3, PK, OggS, wOFF. ", "RIFF....WEBP "]
        {
            let text = [start.as_bytes(), &json(1, 10)].concat();
            assert_eq!(encode(choice(codec.name()), &[text]).0, 1, "{start}");
        }
    }
}

#[test]
fn random_blocks_that_repeat_are_found_among_those_that_do_not() {
    for codec in compressing() {
        let noise: Vec<_> = (0..2_000).map(|seed| random(20_000, seed % 16)).collect();
        let repeated: Vec<_> = (0..600).map(|seed| random(3_000, seed).repeat(7)).collect();
        let (encoded, _) = encode(choice(codec.name()), noise.iter().chain(&repeated));
        // Fewer than all: they do look random.
        assert!((600 - 257..600).contains(&encoded), "{encoded} of 600 found by {}", codec.name());
    }
}

#[test]
fn json_is_compressed_whatever_stands_between() {
    for codec in compressing() {
        let noise: Vec<_> = (0..900).map(|seed| random(1_000, seed)).collect();
        let json: Vec<_> = (0..100).map(|seed| json(seed, 12)).collect();
        let mixed = noise.chunks(9).zip(&json).flat_map(|(noise, json)| noise.iter().chain([json]));
        let (encoded, _) = encode(choice(codec.name()), mixed);
        assert_eq!(encoded, json.len(), "{}", codec.name());
    }
}

#[test]
fn what_does_not_gain_is_tried_less_and_less_but_never_forgotten() {
    // No two bytes repeat, so LZ4 gains nothing; 64 symbols only, so it does not look random.
    let Some(lz4) = compressing().find(|codec| codec.name() == "lz4") else { return };
    let base64: Vec<Vec<u8>> =
        (0..1_000).map(|seed| random(400, seed).iter().map(|byte| b' ' + byte % 64).collect()).collect();
    let (encoded, counts) = encode(choice(lz4.name()), &base64);
    assert_eq!((encoded, counts.total(Family::SkippedNoGain)), (0, 1_000));
    let then_json: Vec<_> = (0..40).map(|seed| json(seed, 6)).collect();
    let (encoded, _) = encode(choice(lz4.name()), base64.iter().chain(&then_json));
    assert!(encoded >= 40 - 16, "{encoded} of 40");
}

#[test]
fn base64_is_compressed_by_entropy_coding() {
    let Some(zstd) = compressing().find(|codec| codec.name() == "zstd") else { return };
    let base64: Vec<Vec<u8>> =
        (0..200).map(|seed| random(20_000, seed).iter().map(|byte| b' ' + byte % 64).collect()).collect();
    let mut noise_first = vec![random(20_000, 9); 50];
    noise_first.extend(base64);
    assert_eq!(encode(choice(zstd.name()), &noise_first).0, 200);
}

#[test]
fn counters_add_up_to_what_was_done() {
    for codec in compressing() {
        let counters = Arc::new(Counters::default());
        let mut encoder = Encoder::new(counters.clone());
        let value = json(1, 20);
        let len = encoder.encode(choice(codec.name()), &value, 0, |bytes| bytes).payload().len() as u64;
        for _ in 1..200 {
            encoder.encode(choice(codec.name()), &value, 0, |bytes| bytes);
        }
        let counts = counters.snapshot();
        assert_eq!(counts.of(Family::EncodedValues, codec.id()), 200);
        assert_eq!(counts.of(Family::EncodedBytesIn, codec.id()), 200 * value.len() as u64);
        assert_eq!(counts.of(Family::EncodedBytesOut, codec.id()), 200 * len);
        assert!(counts.total(Family::EncodeNanoseconds) > 0);
    }
}

#[test]
fn a_record_of_a_codec_that_is_not_built_in_is_an_error_that_says_so() {
    for (number, name) in [(1, "lz4"), (2, "zstd")] {
        if compressing().any(|codec| codec.name() == name) {
            continue;
        }
        let record = [number, 1, 0];
        let error = decoder().decode(&Record::parse(&record).expect("a record"), 10, &mut Vec::new());
        let message = error.expect_err("it is not built in").to_string();
        assert_eq!(message, format!("this build has no {name}: rebuild with the feature `{name}`"));
    }
}

#[test]
fn a_build_without_zstd_loads_and_trains_no_dictionary() {
    if compressing().any(|codec| codec.name() == "zstd") {
        return;
    }
    let samples: Vec<_> = (0..2_000).map(|seed| json(seed, 3)).collect();
    assert_eq!(Dictionary::train(&samples, 4_096).err(), Some(TrainError::NotBuiltIn));
    let id = 32_768 + xxhash_rust::xxh64::xxh64(b"", 0) % ((1 << 31) - 32_768);
    let empty = [&b"\x37\xa4\x30\xec"[..], &(id as u32).to_le_bytes()].concat();
    assert_eq!(Dictionary::load(empty).err(), Some(LoadError::NotBuiltIn));
}
