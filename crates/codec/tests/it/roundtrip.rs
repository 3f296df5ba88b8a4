//! What is written is read back, byte for byte, and is never larger for having been compressed.

use std::sync::Arc;

use crate::values::*;
use proptest::prelude::*;
use snugly_codec::Record;
use snugly_codec::envelope::{self, Decoded, ExistingEnvelopes, Options, Outcome};

/// What the application reads back if it writes `value`.
fn through_envelope(options: &Options, value: &[u8]) -> Vec<u8> {
    let mut sent = b"before".to_vec();
    let sent = match envelope::encode(options, value, &mut sent) {
        Outcome::Encoded { len, .. } => {
            assert_eq!(len, sent.len() - b"before".len());
            sent[b"before".len()..].to_vec()
        }
        Outcome::AsIs(_) => {
            assert_eq!(sent, b"before");
            value.to_vec()
        }
    };
    let mut received = b"before".to_vec();
    match envelope::decode(options, &sent, &mut received).expect("it decodes") {
        Decoded::Restored { len, .. } => {
            assert_eq!(len, received.len() - b"before".len());
            received[b"before".len()..].to_vec()
        }
        Decoded::AsIs => sent,
    }
}

proptest! {
    #[test]
    fn records_keep_every_value(choice in any_choice(), values in proptest::collection::vec(any_value(), 1..4)) {
        let (mut encoder, mut decoder) = (encoder(), decoder());
        for value in values {
            let stored = stored(&mut encoder, choice, &value);
            let record = Record::parse(&stored).unwrap();
            let mut restored = b"before".to_vec();
            decoder.decode(&record, MAX_RAW, &mut restored).unwrap();
            prop_assert_eq!(&restored[b"before".len()..], &value);
            prop_assert!(stored.len() <= Record::identity(&value).encoded_len());
        }
    }

    #[test]
    fn envelopes_keep_every_value(choice in any_choice(), checksum: bool, value in any_value()) {
        let options = Options { checksum, ..options(choice) };
        prop_assert_eq!(through_envelope(&options, &value), value);
    }

    #[test]
    fn dictionaries_keep_every_value(choice in any_choice(), value in any_value(), seed: u64) {
        static DICTIONARY: std::sync::OnceLock<Arc<snugly_codec::Dictionary>> = std::sync::OnceLock::new();
        let Some(with_dictionary) = choice.codec().with_dictionary() else { return Ok(()) };
        if compressing().all(|codec| codec.name() != "zstd") {
            return Ok(());
        }
        let dictionary = DICTIONARY.get_or_init(dictionary);
        let level = choice.level().max(-128);
        let choice = snugly_codec::Choice::new(choice.codec().name(), Some(level), 64).unwrap();
        // The value that follows a part of the dictionary is one to copy from it, for all of its window.
        let content = dictionary.bytes()[seed as usize % dictionary.bytes().len()..].to_vec();
        for value in [[&content, &value[..]].concat(), value, json(seed, 2), content] {
            let mut encoder = encoder();
            let record = encoder.encode_with(choice, Some((7, dictionary)), &value, 0, |bytes| bytes);
            let find = |number| (number == 7).then(|| &**dictionary);
            let mut restored = Vec::new();
            decoder().decode_with(&record, &find, MAX_RAW, &mut restored).unwrap();
            prop_assert_eq!(&restored, &value);

            let mut sent = Vec::new();
            if let Outcome::Encoded { codec, .. } =
                envelope::encode_with(&options(choice), Some(dictionary), &value, &mut sent)
            {
                prop_assert_eq!(codec, with_dictionary);
                let find = |id| (id == dictionary.id()).then(|| &**dictionary);
                restored.clear();
                envelope::decode_with(&options(choice), &find, &sent, &mut restored).unwrap();
                prop_assert_eq!(&restored, &value);
            }
        }
    }

    #[test]
    fn values_that_count_as_envelopes_are_read_back_as_they_were_written(
        backend in prop_oneof![Just(1u8), Just(2), Just(0x81), Just(0x82), any::<u8>()],
        rest in proptest::collection::vec(any::<u8>(), 0..100),
        wrap: bool,
    ) {
        let Some(codec) = compressing_values().next() else { return Ok(()) };
        let value = [&[0, 1, 2, 0, backend], &rest[..]].concat();
        let well_formed = envelope::inspect(&value).is_some_and(|envelope| envelope.is_well_formed(MAX_RAW));
        let existing_envelopes = if wrap { ExistingEnvelopes::Wrap } else { ExistingEnvelopes::Keep };
        for choice in [choice(codec.name()), snugly_codec::Choice::none()] {
            let options = Options { existing_envelopes, ..options(choice) };
            if wrap || !well_formed {
                prop_assert_eq!(through_envelope(&options, &value), &value[..]);
            }
        }
    }
}

#[test]
fn values_of_every_small_length_come_back() {
    for codec in available() {
        for len in 0..400 {
            for value in [vec![b'a'; len], random(len, len as u64)] {
                assert_eq!(restored(&stored(&mut encoder(), choice(codec.name()), &value)), value);
                assert_eq!(through_envelope(&options(choice(codec.name())), &value), value);
            }
        }
    }
}

#[test]
fn values_of_several_blocks_and_windows_come_back() {
    let value: Vec<u8> =
        (0..40).flat_map(|seed| [json(seed, 2_000), random(90_000, seed)].concat()).collect();
    for codec in compressing() {
        let stored = stored(&mut encoder(), choice(codec.name()), &value);
        assert!(stored.len() < value.len() * 9 / 10);
        assert_eq!(restored(&stored), value);
        assert_eq!(through_envelope(&options(choice(codec.name())), &value), value);
    }
}
