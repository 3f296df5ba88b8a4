//! Damaged and hostile bytes: always an error or the declared number of bytes, never a panic, and never
//! memory that only a claim asks for.

mod values;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use proptest::prelude::*;
use snugly_codec::envelope::{self, Outcome};
use snugly_codec::{CodecId, DecodeError, Dictionary, Record};
use values::*;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// Remembers the largest allocation of each thread.
struct Watching;

// SAFETY: all calls are passed on to the system's allocator as they are.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(layout.size()));
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(size));
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// The result of `decode` and the largest allocation that it made.
fn watched<T>(decode: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.set(0);
    let result = decode();
    (result, LARGEST.get())
}

/// Decodes a record and checks what every decoding keeps to, whatever the bytes.
fn decode_record(bytes: &[u8], limit: usize, dictionary: Option<&Arc<Dictionary>>) -> Option<Vec<u8>> {
    let record = Record::parse(bytes).ok()?;
    let mut value = b"before".to_vec();
    let find = |_| dictionary.map(|dictionary| &**dictionary);
    let (result, largest) = watched(|| decoder().decode_with(&record, &find, limit, &mut value));
    assert_eq!(&value[..6], b"before");
    match result {
        Ok(()) => assert_eq!(value.len() - 6, record.raw_len()),
        Err(_) => assert_eq!(value.len(), 6),
    }
    assert!(value.len() <= limit + 6);
    assert!(largest <= 4_096 + 2 * limit.min(record.raw_len()), "{largest} bytes for {record:?}");
    result.ok().map(|()| value.split_off(6))
}

/// Decodes an envelope and checks what every decoding keeps to, whatever the bytes.
fn decode_envelope(bytes: &[u8], limit: usize, dictionary: Option<&Arc<Dictionary>>) -> Option<Vec<u8>> {
    let options = envelope::Options { max_decompressed_size: limit, ..Default::default() };
    let mut value = b"before".to_vec();
    let find = |id| dictionary.filter(|dictionary| dictionary.id() == id).map(|dictionary| &**dictionary);
    let (result, largest) = watched(|| envelope::decode_with(&options, &find, bytes, &mut value));
    assert_eq!(&value[..6], b"before");
    assert!(value.len() <= limit + 6);
    assert!(largest <= 8_192 + 2 * limit, "{largest} bytes for {} of {limit}", bytes.len());
    if let Err(error) = &result {
        assert_eq!(value.len(), 6);
        assert!(error.to_string().contains(&format!("{} bytes", bytes.len())), "{error}");
        assert!(!error.name().is_empty());
    }
    result.ok().map(|_| value.split_off(6))
}

fn records() -> Vec<(Vec<u8>, Vec<u8>)> {
    let values = [json(1, 3), json(2, 100), b"ab".repeat(300_000), [random(3_000, 1), json(3, 40)].concat()];
    let codecs: Vec<_> = compressing().collect();
    let pairs = codecs.iter().flat_map(|codec| values.iter().map(move |value| (codec, value)));
    pairs.map(|(codec, value)| (stored(&mut encoder(), choice(codec.name()), value), value.clone())).collect()
}

fn envelopes() -> Vec<(Vec<u8>, Vec<u8>)> {
    let values = [json(1, 3), json(2, 100), b"ab".repeat(300_000)];
    let codecs: Vec<_> = compressing_values().collect();
    let pairs = codecs.iter().flat_map(|codec| values.iter().map(move |value| (codec, value)));
    pairs
        .map(|(codec, value)| {
            let mut sent = Vec::new();
            let outcome = envelope::encode(&options(choice(codec.name())), value, &mut sent);
            assert!(matches!(outcome, Outcome::Encoded { .. }));
            (sent, value.clone())
        })
        .collect()
}

#[test]
fn whatever_is_cut_off_is_missed() {
    for (stored, _) in records() {
        for len in (0..stored.len()).rev().take(300).chain(0..20) {
            assert_eq!(decode_record(&stored[..len], MAX_RAW, None), None);
        }
    }
    for (sent, _) in envelopes() {
        for len in (5..sent.len()).rev().take(300).chain(5..25) {
            assert_eq!(decode_envelope(&sent[..len], MAX_RAW, None), None);
        }
    }
}

#[test]
fn whatever_follows_is_noticed() {
    let skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd";
    for tail in [&b"\0"[..], b"a", b"\x10\xff", skippable, &[0; 100]] {
        for (stored, _) in records() {
            assert_eq!(decode_record(&[&stored, tail].concat(), MAX_RAW, None), None);
        }
        for (sent, _) in envelopes() {
            assert_eq!(decode_envelope(&[&sent, tail].concat(), MAX_RAW, None), None);
        }
    }
    for (sent, _) in envelopes() {
        let frame_twice = [&sent[..], &sent[5..]].concat();
        assert_eq!(decode_envelope(&frame_twice, MAX_RAW, None), None);
    }
}

#[test]
fn a_record_that_declares_another_length_is_refused() {
    for (stored, value) in records() {
        let record = Record::parse(&stored).expect("a record");
        let header = |raw_len: usize| {
            let mut wrong = Vec::new();
            Record::identity(&vec![0; raw_len]).append_to(&mut wrong);
            wrong.truncate(wrong.len() - raw_len);
            wrong[0] = record.codec() as u8;
            wrong.extend_from_slice(record.payload());
            wrong
        };
        assert_eq!(decode_record(&header(value.len()), MAX_RAW, None), Some(value.clone()));
        for raw_len in [0, 1, value.len() - 1, value.len() + 1, value.len() * 2] {
            assert_eq!(decode_record(&header(raw_len), MAX_RAW, None), None, "{raw_len} for {}", value.len());
        }
    }
}

#[test]
fn values_over_the_limit_are_refused_before_memory_is_reserved() {
    for (stored, value) in records() {
        assert_eq!(decode_record(&stored, value.len(), None), Some(value.clone()));
        let record = Record::parse(&stored).expect("a record");
        let mut out = Vec::new();
        let (result, largest) = watched(|| decoder().decode(&record, value.len() - 1, &mut out));
        let (raw, limit, codec) = (value.len() as u64, value.len() - 1, record.codec());
        assert_eq!(result, Err(DecodeError::TooLarge { codec, raw, limit }));
        assert!(largest < 1_000);
    }
    for (sent, value) in envelopes() {
        assert_eq!(decode_envelope(&sent, value.len(), None), Some(value.clone()));
        let (decoded, largest) = watched(|| decode_envelope(&sent, value.len() - 1, None));
        assert_eq!(decoded, None);
        assert!(largest < 1_000);
    }
}

#[test]
fn claims_that_cannot_be_true_reserve_nothing() {
    let zstd_claims_2_to_the_60 =
        b"\x00\x01\x02\x00\x01\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\0\0\x10\x19\x00\x00abc".to_vec();
    let zstd_claims_100_mib = b"\x00\x01\x02\x00\x01\x28\xb5\x2f\xfd\xa0\0\0\x40\x06\x19\x00\x00abc".to_vec();
    let lz4_claims_4_gib = b"\x00\x01\x02\x00\x02\xff\xff\xff\xff\x30abc".to_vec();
    let lz4_claims_100_mib = b"\x00\x01\x02\x00\x02\x00\x00\x40\x06\x30abc".to_vec();
    let with_dictionary = |raw_len: u32| {
        let header = [40_000, raw_len, 0].map(u32::to_le_bytes).concat();
        [b"\x00\x01\x02\x00\x82", &header[..], b"\x30abc"].concat()
    };
    for bytes in [
        zstd_claims_2_to_the_60,
        zstd_claims_100_mib,
        lz4_claims_4_gib,
        lz4_claims_100_mib,
        with_dictionary(u32::MAX),
        with_dictionary(100 << 20),
    ] {
        for limit in [1 << 20, 512 << 20, usize::MAX] {
            let options = envelope::Options { max_decompressed_size: limit, ..Default::default() };
            let mut out = Vec::new();
            let (result, largest) = watched(|| envelope::decode(&options, &bytes, &mut out));
            let name = result.expect_err("it is refused").name();
            assert!(["unreachable", "too_large", "not_built_in"].contains(&name), "{name}");
            assert!(largest < 1_000, "{largest} bytes reserved");
        }
    }
    for (stored, _) in records() {
        let record = Record::parse(&stored).expect("a record");
        let claim =
            [&[record.codec() as u8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03], record.payload()].concat();
        let record = Record::parse(&claim).expect("a record");
        let (result, largest) = watched(|| decoder().decode(&record, usize::MAX, &mut Vec::new()));
        assert_eq!(result.expect_err("it is refused").name(), "unreachable");
        assert!(largest < 1_000);
    }
}

#[test]
fn a_window_of_two_gib_reserves_nothing() {
    // One raw block "abc" without content size in a window of 2^31 bytes.
    let bytes = b"\x00\x01\x02\x00\x01\x28\xb5\x2f\xfd\x00\xa8\x19\x00\x00abc";
    if compressing().any(|codec| codec.name() == "zstd") {
        assert_eq!(decode_envelope(bytes, 3, None), Some(b"abc".to_vec()));
        assert_eq!(decode_envelope(bytes, 2, None), None);
    }
}

#[cfg(feature = "zstd")]
mod without_content_size {
    use super::*;
    use zstd_safe::{CCtx, CParameter};

    /// As GLIDE writes them.
    fn enveloped(value: &[u8]) -> Vec<u8> {
        let mut context = CCtx::create();
        context.set_parameter(CParameter::ContentSizeFlag(false)).expect("libzstd knows the parameter");
        let mut frame = vec![0; zstd_safe::compress_bound(value.len())];
        let len = context.compress2(&mut frame[..], value).expect("it compresses");
        [&[0, 1, 2, 0, 1], &frame[..len]].concat()
    }

    #[test]
    fn frames_are_read_whatever_they_grow_to() {
        for value in [b"".to_vec(), json(1, 1), json(1, 5_000), vec![b'a'; 3 << 20], random(300_000, 1)] {
            let bytes = enveloped(&value);
            assert_eq!(envelope::inspect(&bytes).and_then(|envelope| envelope.claimed_len()), None);
            assert_eq!(decode_envelope(&bytes, MAX_RAW, None), Some(value.clone()));
            assert_eq!(decode_envelope(&bytes, value.len(), None), Some(value.clone()));
            if !value.is_empty() {
                let limit = value.len() - 1;
                assert_eq!(decode_envelope(&bytes, limit, None), None);
                let options = envelope::Options { max_decompressed_size: limit, ..Default::default() };
                let error =
                    envelope::decode(&options, &bytes, &mut Vec::new()).expect_err("it is over the limit");
                assert_eq!(error.name(), "too_large");
            }
        }
    }

    #[test]
    fn memory_grows_with_the_value_and_not_with_what_it_could_be() {
        // 2,000 blocks that could be 128 KiB each, and are a byte each.
        let block = b"\x08\x00\x00a".repeat(2_000);
        let bytes = [b"\x00\x01\x02\x00\x01\x28\xb5\x2f\xfd\x00\x58", &block[..], b"\x01\x00\x00"].concat();
        let mut out = Vec::new();
        let options = envelope::Options::default();
        let (result, largest) = watched(|| envelope::decode(&options, &bytes, &mut out));
        result.expect("it decodes");
        assert_eq!(out, vec![b'a'; 2_000]);
        assert!(largest <= 8 * bytes.len(), "{largest} bytes reserved");
    }
}

proptest! {
    #[test]
    fn flipped_bits_never_yield_more_than_declared(
        at in any::<proptest::sample::Index>(),
        bit in 0u8..8,
        which in any::<proptest::sample::Index>(),
    ) {
        let (records, envelopes) = (records(), envelopes());
        let mut stored = which.get(&records).0.clone();
        *at.get_mut(&mut stored) ^= 1 << bit;
        decode_record(&stored, MAX_RAW, None);
        if envelopes.is_empty() {
            return Ok(());
        }
        let mut sent = which.get(&envelopes).0.clone();
        *at.get_mut(&mut sent) ^= 1 << bit;
        decode_envelope(&sent, MAX_RAW, None);
    }

    #[test]
    fn any_bytes_may_be_decoded(
        codec in 0u8..6,
        backend in prop_oneof![Just(1u8), Just(2), Just(0x81), Just(0x82)],
        magic: bool,
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        limit in 0usize..100_000,
    ) {
        static DICTIONARY: std::sync::OnceLock<Option<Arc<Dictionary>>> = std::sync::OnceLock::new();
        let has_zstd = compressing().any(|codec| codec.name() == "zstd");
        let dictionary = DICTIONARY.get_or_init(|| has_zstd.then(dictionary)).as_ref();
        decode_record(&[&[codec], &bytes[..]].concat(), limit, dictionary);
        let magic: &[u8] = if magic { b"\x28\xb5\x2f\xfd" } else { b"" };
        decode_envelope(&[&[0, 1, 2, 0, backend], magic, &bytes].concat(), limit, dictionary);
    }
}

#[test]
fn checksums_reveal_every_flipped_bit_of_the_content() {
    if compressing().all(|codec| codec.name() != "zstd") {
        return;
    }
    let value = json(1, 20);
    let options = envelope::Options { checksum: true, ..options(choice("zstd")) };
    let mut sent = Vec::new();
    let outcome = envelope::encode(&options, &value, &mut sent);
    assert_eq!(outcome, Outcome::Encoded { codec: CodecId::Zstd, len: sent.len() });
    for bit in 8 * 11..8 * sent.len() {
        let mut damaged = sent.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let decoded = decode_envelope(&damaged, MAX_RAW, None);
        assert!(decoded.is_none_or(|decoded| decoded == value), "bit {bit}");
    }
}
