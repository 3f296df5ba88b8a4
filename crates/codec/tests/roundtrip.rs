//! Everything that is written is read back, byte for byte, and nothing is stored larger than it was.
#![cfg(any(feature = "zstd", feature = "lz4"))]

use snugly_codec::*;
use std::sync::Arc;

#[test]
fn records() {
    for algorithm in ALGORITHMS.iter().filter(|a| a.is_available()) {
        for level in [*algorithm.levels().start(), algorithm.default_level(), *algorithm.levels().end()] {
            let choice = Choice::new(algorithm.name(), Some(level), 32).unwrap();
            let counters = Arc::new(Counters::default());
            let mut encoder = Encoder::new(counters.clone());
            let mut decoder = Decoder::new(counters.clone());
            for n in [0, 1, 10, 100, 1000, 100000] {
                let value = b"{\"a\": 12, \"b\": \"hello\"}".repeat(n);
                let mut stored = Vec::new();
                encoder.encode(choice, &value, 20, |b| b.next_multiple_of(16)).append_to(&mut stored);
                let mut out = b"x".to_vec();
                decoder.decode(&Record::parse(&stored).unwrap(), 1 << 30, &mut out).unwrap();
                assert_eq!(&out[1..], value);
                let options = envelope::Options { choice, ..Default::default() };
                let mut e = Vec::new();
                let outcome = envelope::encode(&options, &value, &mut e);
                if let envelope::Outcome::Encoded { .. } = outcome {
                    let mut out = b"x".to_vec();
                    envelope::decode(&options, &e, &mut out).unwrap();
                    assert_eq!(&out[1..], value);
                    println!("{} {level} {} {} {}", algorithm.name(), value.len(), stored.len(), e.len());
                }
            }
        }
    }
}
