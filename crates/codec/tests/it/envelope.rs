//! The rules of the envelope that a round trip does not show.

use crate::values::*;
use snugly_codec::envelope::{
    self, Decoded, ExistingEnvelopes, Fault, Options, Outcome, decode, decode_with, encode, encode_at_least,
    encode_with, inspect,
};
use snugly_codec::{Choice, CodecId, Counters, DESCRIPTORS, DecodeError, Reason};

fn encoded(options: &Options, value: &[u8]) -> Option<Vec<u8>> {
    let mut sent = Vec::new();
    matches!(encode(options, value, &mut sent), Outcome::Encoded { .. }).then_some(sent)
}

#[test]
fn the_header_names_the_backend() {
    for codec in compressing_values() {
        let sent = encoded(&options(choice(codec.name())), &json(1, 10)).expect("it compresses");
        let backend = if codec.name() == "zstd" { 1 } else { 2 };
        assert_eq!(sent[..5], [0, 1, 2, 0, backend]);
        let envelope = inspect(&sent).expect("an envelope");
        assert_eq!((envelope.backend(), envelope.codec()), (backend, Some(codec.id())));
        assert_eq!(envelope.claimed_len(), Some(json(1, 10).len() as u64));
        assert_eq!(envelope.dictionary_id(), None);
        assert!(envelope.is_well_formed(MAX_RAW));
    }
}

#[test]
fn an_envelope_can_be_as_long_as_its_readers_want_it() {
    if !CodecId::Zstd.codec().is_available() {
        return;
    }
    for value in [&b""[..], b"hello", &[b'x'; 1000], &json(1, 10), &random(500, 3)] {
        for least in [0, 5, 100, 101, 102, 128, 1000] {
            let mut sent = b"before".to_vec();
            let outcome = encode_at_least(least, value, &mut sent);
            let sent = &sent[6..];
            assert_eq!(outcome, Outcome::Encoded { codec: CodecId::Zstd, len: sent.len() });
            assert!(sent.len() >= least);
            let mut received = Vec::new();
            decode(&options(Choice::none()), sent, &mut received).expect("it decodes");
            assert_eq!(received, value);
        }
    }
}

#[test]
fn an_envelope_is_lengthened_in_its_place() {
    let dictionary = dictionary();
    let find = |id| (id == dictionary.id()).then_some(&*dictionary);
    let values =
        [vec![b'x'; 5_000], json(1, 3), json(2, 10), b"abcdefgh".repeat(40), random(200, 1).repeat(3)];
    for (codec, dictionary) in
        compressing_values().flat_map(|codec| [(codec, None), (codec, Some(&*dictionary))])
    {
        for value in &values {
            let options = options(choice(codec.name()));
            let mut short = Vec::new();
            if let Outcome::AsIs(_) = encode_with(&options, dictionary, value, &mut short) {
                continue;
            }
            for least in (0..200).chain([value.len()]) {
                let mut sent = short.clone();
                let len = envelope::lengthen(least, value, &mut sent).expect("it is of this value");
                assert_eq!(len, sent.len());
                assert!(len >= least, "{codec:?}: {len} of {least}");
                assert!(len <= short.len().max(least + 8), "{codec:?}: {len} of {least}");
                let mut received = Vec::new();
                decode_with(&options, &find, &sent, &mut received).expect("it decodes");
                assert_eq!(&received, value);
            }
        }
    }
    for wrong in
        [&b""[..], b"no envelope", b"\0\x01\x02\0\x02\x05\0\0\0", b"\0\x01\x02\0\x02\x05\0\0\0\x50hell"]
    {
        assert!(envelope::lengthen(100, &values[0], &mut wrong.to_vec()).is_err());
    }
}

#[test]
fn a_well_formed_envelope_is_sent_as_it_is_unless_it_is_to_be_wrapped() {
    for codec in compressing_values() {
        let pass = options(choice(codec.name()));
        let sent = encoded(&pass, &json(1, 10)).expect("it compresses");
        assert_eq!(encode(&pass, &sent, &mut Vec::new()), Outcome::AsIs(Reason::Envelope));
        let wrap = Options { existing_envelopes: ExistingEnvelopes::Wrap, ..pass };
        let twice = encoded(&wrap, &sent).expect("it is wrapped");
        let mut received = Vec::new();
        decode(&wrap, &twice, &mut received).expect("it decodes");
        assert_eq!(received, sent);
    }
}

#[test]
fn what_only_counts_as_an_envelope_is_encoded_even_if_it_grows_or_nothing_is_chosen() {
    let Some(codec) = compressing_values().next() else { return };
    for choice in [choice(codec.name()), Choice::none()] {
        for value in [
            &b"\0\x01\x02\0\x01"[..],
            b"\0\x01\x02\0\x1f",
            b"\0\x01\x02\0\x81\x28\xb5",
            b"\0\x01\x02\0\x02\0\0\0\0",
        ] {
            let sent = encoded(&options(choice), value).expect("it is encoded");
            assert!(sent.len() > value.len());
            let mut received = Vec::new();
            decode(&options(choice), &sent, &mut received).expect("it decodes");
            assert_eq!(received, value);
        }
    }
}

#[test]
fn somebody_elses_data_is_no_envelope() {
    let counting: Vec<u8> = (0..=255).collect();
    for value in [
        &counting[..],
        b"\0\x01\x02",
        b"\0\x01\x02\0",
        b"\0\x01\x02\x01\x01",
        b"\0\x01\x02\0\0",
        b"\0\x01\x02\0\x20",
    ] {
        assert_eq!(inspect(value), None);
        assert_eq!(decode(&Options::default(), value, &mut Vec::new()), Ok(Decoded::AsIs));
        assert_eq!(encode(&Options::default(), value, &mut Vec::new()), Outcome::AsIs(Reason::Off));
    }
    for backend in (0x01..=0x1f).chain(0x80..=0x9f) {
        assert!(inspect(&[0, 1, 2, 0, backend]).is_some());
    }
}

#[test]
fn an_envelope_is_well_formed_if_its_payload_starts_as_the_backend_demands() {
    let cases: [(&[u8], bool); 15] = [
        (b"\0\x01\x02\0\x01\x28\xb5\x2f\xfd\x20\x03", true),
        (b"\0\x01\x02\0\x01\x28\xb5\x2f\xfd\x20", false),
        (b"\0\x01\x02\0\x01\x28\xb5\x2f\xfc\x20\x03", false),
        (b"\0\x01\x02\0\x01\x28\xb5\x2f\xfd\x28\x03", false),
        (b"\0\x01\x02\0\x81\x28\xb5\x2f\xfd\x21\x09\x03", true),
        (b"\0\x01\x02\0\x81\x28\xb5\x2f\xfd\x20\x03", false),
        (b"\0\x01\x02\0\x02\xff\0\0\0a", true),
        (b"\0\x01\x02\0\x02\0\x01\0\0a", false),
        (b"\0\x01\x02\0\x02\0\0\0\0", false),
        (b"\0\x01\x02\0\x03\0\0\0\0a", false),
        (b"\0\x01\x02\0\x82\0\x80\0\0\xff\0\0\0\0\0\0\0a", true),
        (b"\0\x01\x02\0\x82\xff\x7f\0\0\xff\0\0\0\0\0\0\0a", false),
        (b"\0\x01\x02\0\x82\0\x80\0\0\0\x01\0\0\0\0\0\0a", false),
        (b"\0\x01\x02\0\x82\0\x80\0\0\0\0\0\0\0\0\0\0", false),
        (b"\0\x01\x02\0\x82\0\x80\0\0\0\0\0\0", false),
    ];
    for (value, well_formed) in cases {
        let envelope = inspect(value).expect("it counts as an envelope");
        assert_eq!(envelope.is_well_formed(MAX_RAW), well_formed, "{:?}", value.escape_ascii());
    }
    let lz4 = inspect(b"\0\x01\x02\0\x02\xff\0\0\0a").expect("it counts as an envelope");
    assert!(lz4.is_well_formed(255) && !lz4.is_well_formed(254));
}

#[test]
fn short_and_incompressible_values_are_sent_as_they_are() {
    for codec in compressing_values() {
        let choice = |min_bytes| Choice::new(codec.name(), None, min_bytes).expect("it is available");
        let as_is = |choice, value: &[u8]| encode(&options(choice), value, &mut Vec::new());
        assert_eq!(as_is(choice(64), &[b'a'; 63]), Outcome::AsIs(Reason::Small));
        assert!(matches!(as_is(choice(64), &[b'a'; 64]), Outcome::Encoded { .. }));
        assert_eq!(as_is(choice(6), &[b'1'; 31]), Outcome::AsIs(Reason::Small));
        assert!(matches!(as_is(choice(6), &[b'1'; 32]), Outcome::Encoded { .. }));
        assert_eq!(as_is(choice(64), &random(100, 1)), Outcome::AsIs(Reason::NoGain));
        let long = Options { max_decompressed_size: 999, ..options(choice(64)) };
        assert_eq!(encode(&long, &[b'a'; 1_000], &mut Vec::new()), Outcome::AsIs(Reason::Large));
    }
}

#[test]
fn lzf_is_in_no_envelope() {
    let options = options(Choice::lzf(64));
    assert_eq!(encode(&options, &json(1, 10), &mut Vec::new()), Outcome::AsIs(Reason::Off));
    let looks_like_an_envelope = b"\0\x01\x02\0\x1f";
    match encode(&options, looks_like_an_envelope, &mut Vec::new()) {
        Outcome::Encoded { codec, .. } => assert_ne!(codec, CodecId::Lzf),
        Outcome::AsIs(reason) => {
            assert_eq!((reason, compressing_values().count()), (Reason::Failed, 0));
        }
    }
}

#[test]
fn a_checksum_costs_four_bytes() {
    if compressing().any(|codec| codec.name() == "zstd") {
        let plain = encoded(&options(choice("zstd")), &json(1, 10)).expect("it compresses");
        let with_checksum = Options { checksum: true, ..options(choice("zstd")) };
        let checked = encoded(&with_checksum, &json(1, 10)).expect("it compresses");
        assert_eq!(checked.len(), plain.len() + 4);
        let again = encoded(&options(choice("zstd")), &json(1, 10)).expect("it compresses");
        assert_eq!(again, plain);
    }
}

#[test]
fn errors_name_the_backend_the_sizes_and_the_key() {
    let error = decode(&Options::default(), b"\0\x01\x02\0\x03abc", &mut Vec::new()).expect_err("unknown");
    assert_eq!((error.name(), &error.fault), ("unknown_backend", &Fault::UnknownBackend));
    assert_eq!(
        error.for_key(b"user:1\xff").to_string(),
        "cannot decode an envelope of 8 bytes, backend 03, at key \"user:1\\xff\": its backend is unknown: a newer \
         client may have written it"
    );
    let lz4 = b"\0\x01\x02\0\x02\x00\x10\0\0abc";
    let error = decode(&Options::default(), lz4, &mut Vec::new()).expect_err("unreachable");
    if compressing().any(|codec| codec.name() == "lz4") {
        let (codec, raw, payload, reach) = (CodecId::Lz4, 4_096, 7, 765);
        assert_eq!(error.fault, Fault::Payload(DecodeError::Unreachable { codec, raw, payload, reach }));
        assert_eq!(
            error.to_string(),
            "cannot decode an envelope of 12 bytes, backend 02: a lz4 payload of 7 bytes claims 4096 bytes but can \
             reach 765 at most: it is corrupt"
        );
    } else {
        assert_eq!(error.name(), "not_built_in");
    }
}

#[test]
fn a_missing_dictionary_is_named() {
    let bytes = b"\0\x01\x02\0\x81\x28\xb5\x2f\xfd\x23\x01\x80\0\0\x03\x19\0\0abc";
    if compressing().any(|codec| codec.name() == "zstd") {
        let error = envelope::decode(&Options::default(), bytes, &mut Vec::new()).expect_err("it is missing");
        assert_eq!(
            error.fault,
            Fault::Payload(DecodeError::DictionaryMissing { dictionary: 32_769, payload: 16 })
        );
    }
    let without_id = b"\0\x01\x02\0\x81\x28\xb5\x2f\xfd\x20\x03\x19\0\0abc";
    let error = envelope::decode(&Options::default(), without_id, &mut Vec::new()).expect_err("no ID");
    assert_eq!(error.fault, Fault::NoDictionaryId);
}

#[test]
fn what_becomes_of_values_is_counted() {
    for codec in compressing_values() {
        let options = options(choice(codec.name()));
        let counters = Counters::default();
        let (value, mut sent) = (json(1, 10), Vec::new());
        encode(&options, &value, &mut sent).count(value.len(), &counters);
        encode(&options, b"short", &mut Vec::new()).count(5, &counters);
        for stored in [&sent[..], b"short"] {
            decode(&options, stored, &mut Vec::new()).expect("it decodes").count(stored.len(), &counters);
        }
        decode(&options, &sent[..sent.len() - 1], &mut Vec::new()).expect_err("it is cut").count(&counters);
        let missing = [0, 1, 2, 0, 0x81, 0x28, 0xb5, 0x2f, 0xfd, 0x03, 0, 1, 2, 3, 4, 0x29, 0, 0]
            .into_iter()
            .chain(*b"hello")
            .collect::<Vec<u8>>();
        decode(&options, &missing, &mut Vec::new()).expect_err("no dictionary").count(&counters);

        let snapshot = counters.snapshot();
        let counted = DESCRIPTORS
            .iter()
            .filter(|row| row.value(&snapshot) > 0)
            .map(|row| (row.to_string(), row.value(&snapshot) as usize));
        let (raw, name) = (value.len(), codec.name());
        let mut wanted = vec![
            ("encoded_values_none".to_owned(), 1),
            (format!("encoded_values_{name}"), 1),
            ("encoded_bytes_in_none".to_owned(), 5),
            (format!("encoded_bytes_in_{name}"), raw),
            ("encoded_bytes_out_none".to_owned(), 5),
            (format!("encoded_bytes_out_{name}"), sent.len()),
            ("decoded_values_none".to_owned(), 1),
            (format!("decoded_values_{name}"), 1),
            ("decoded_bytes_in_none".to_owned(), 5),
            (format!("decoded_bytes_in_{name}"), sent.len()),
            ("decoded_bytes_out_none".to_owned(), 5),
            (format!("decoded_bytes_out_{name}"), raw),
            ("skipped_small".to_owned(), 1),
            ("decode_failures".to_owned(), 2),
        ];
        // Without zstd the frame is not looked into.
        if snugly_codec::Codec::by_name("zstd").expect("a row").is_available() {
            wanted.push(("dictionary_misses".to_owned(), 1));
        }
        assert_eq!(counted.collect::<Vec<_>>(), wanted);
    }
}
