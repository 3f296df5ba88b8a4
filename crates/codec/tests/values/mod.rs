//! Values and choices that the tests share.
#![allow(dead_code, reason = "each test program uses some of them")]

use std::sync::Arc;

use proptest::prelude::*;
use snugly_codec::envelope::Options;
use snugly_codec::{CODECS, Choice, Codec, Counters, Decoder, Dictionary, Encoder, Record};

pub const MAX_RAW: usize = 64 << 20;

/// The codecs of this build, identity included.
pub fn available() -> impl Iterator<Item = &'static Codec> {
    CODECS.iter().filter(|codec| codec.is_available() && !codec.id().needs_dictionary())
}

/// The codecs of this build that compress.
pub fn compressing() -> impl Iterator<Item = &'static Codec> {
    available().filter(|codec| codec.name() != "none")
}

/// Those that a setting can name, and that envelopes know.
pub fn compressing_values() -> impl Iterator<Item = &'static Codec> {
    compressing().filter(|codec| codec.is_for_values())
}

pub fn choice(name: &str) -> Choice {
    at_level(name, None)
}

fn at_level(name: &str, level: Option<i32>) -> Choice {
    if name == "lzf" {
        Choice::lzf(64)
    } else {
        Choice::new(name, level, 64).expect("the codec is available")
    }
}

pub fn options(choice: Choice) -> Options {
    Options { choice, max_decompressed_size: MAX_RAW, ..Options::default() }
}

/// Every codec of this build with any level, the bounds more often than the rest.
pub fn any_choice() -> impl Strategy<Value = Choice> {
    let codecs: Vec<_> = available().collect();
    proptest::sample::select(codecs).prop_flat_map(|codec| {
        let (least, most) = codec.levels().into_inner();
        prop_oneof![
            Just(least),
            Just(most),
            Just(codec.default_level()),
            least..=most,
            (-9).max(least)..=9.min(most)
        ]
        .prop_map(|level| at_level(codec.name(), Some(level)).with_min_bytes(32))
    })
}

/// Values as caches see them: noise, repetition, text, and mixtures of all.
pub fn any_value() -> impl Strategy<Value = Vec<u8>> {
    let noise = proptest::collection::vec(any::<u8>(), 0..600);
    let text = "[a-z ]{0,600}".prop_map(String::into_bytes);
    let repeated = (proptest::collection::vec(any::<u8>(), 1..40), 1usize..4_000)
        .prop_map(|(word, times)| word.repeat(times));
    let part = prop_oneof![noise, text, repeated].boxed();
    proptest::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
}

/// Random bytes, the same for the same seed.
pub fn random(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// A JSON document like the others, and yet no other's copy.
pub fn json(seed: u64, entries: usize) -> Vec<u8> {
    let numbers = random(entries * 4, seed);
    let entries = numbers.chunks(4).map(|number| {
        let [a, b, c, d] = [number[0], number[1], number[2], number[3]];
        format!(
            r#"{{"id":{a}{b},"name":"user {c}","email":"user{c}.{d}@example.com","active":{}}}"#,
            d % 2 == 0
        )
    });
    format!("[{}]", entries.collect::<Vec<_>>().join(",")).into_bytes()
}

pub fn dictionary() -> Arc<Dictionary> {
    let samples: Vec<Vec<u8>> = (0..2_000).map(|seed| json(seed, 3)).collect();
    Arc::new(Dictionary::train(&samples, 4_096).expect("the samples are enough"))
}

/// What a store would keep of a value.
pub fn stored(encoder: &mut Encoder, choice: Choice, value: &[u8]) -> Vec<u8> {
    let mut stored = Vec::new();
    encoder.encode(choice, value, 0, |bytes| bytes).append_to(&mut stored);
    stored
}

pub fn encoder() -> Encoder {
    Encoder::new(Arc::new(Counters::default()))
}

pub fn decoder() -> Decoder {
    Decoder::new(Arc::new(Counters::default()))
}

/// The value that is restored from what a store kept.
pub fn restored(stored: &[u8]) -> Vec<u8> {
    let record = Record::parse(stored).expect("a record");
    let mut value = Vec::new();
    decoder().decode(&record, MAX_RAW, &mut value).expect("it decodes");
    value
}
