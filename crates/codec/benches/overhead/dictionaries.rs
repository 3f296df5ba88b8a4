//! LZ4 and zstd with the same dictionary, and without: bytes of an envelope, and times. Below them, the two ways that liblz4
//! has to decode with a dictionary, bare.

use std::ffi::{c_char, c_int};
use std::hint::black_box;

use snugly_codec::envelope::{self, Options};
use snugly_codec::{Choice, Dictionary};

use crate::{LENGTHS, VALUES, least, values};

/// Values that the dictionary is trained on, and its size in bytes at most.
const TRAINED: usize = 2_000;
const DICTIONARY: usize = 32 << 10;
const METHODS: [(&str, i32); 6] = [("zstd", 1), ("zstd", 3), ("lz4", 0), ("lz4", 4), ("lz4", 9), ("lz4", 12)];
/// Bytes at the end of a dictionary that LZ4 is given.
const WINDOW: usize = 64 << 10;
/// The headers of an envelope and of its payload with a dictionary for LZ4.
const BLOCK_AT: usize = envelope::HEADER_LEN + 12;

// Built and linked by lz4-sys, not declared there.
unsafe extern "C" {
    fn LZ4_decompress_safe_usingDict(
        source: *const c_char,
        target: *mut c_char,
        source_len: c_int,
        target_len: c_int,
        dictionary: *const c_char,
        dictionary_len: c_int,
    ) -> c_int;
}

pub fn compare() {
    println!(
        "\nenvelopes with the same dictionary of at most {} KiB, and without: bytes and ns a value",
        DICTIONARY >> 10
    );
    println!("{:<24} {:>5} {:>9} {:>9} {:>9}", "", "raw", "bytes", "encode", "decode");
    for len in LENGTHS {
        let all = values::json(len, VALUES + TRAINED);
        // Spread over all of them, since neighbours are of one kind.
        let (measured, trained): (Vec<_>, Vec<_>) =
            all.into_iter().enumerate().partition(|(number, _)| number % (TRAINED / VALUES + 1) == 0);
        let [measured, trained] =
            [measured, trained].map(|part| part.into_iter().map(|(_, value)| value).collect::<Vec<_>>());
        let dictionary = Dictionary::train(&trained, DICTIONARY).expect("there are enough values");
        for (name, level) in METHODS {
            for dictionary in [None, Some(&dictionary)] {
                envelopes(name, level, dictionary, &measured);
            }
        }
        bare(&dictionary, &measured);
    }
}

fn encoded(options: &Options, dictionary: Option<&Dictionary>, values: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let encode = |value: &Vec<u8>| {
        let mut sent = Vec::new();
        match envelope::encode_with(options, dictionary, value, &mut sent) {
            envelope::Outcome::Encoded { .. } => sent,
            envelope::Outcome::AsIs(_) => value.clone(),
        }
    };
    values.iter().map(encode).collect()
}

fn options(name: &str, level: i32) -> Options {
    Options { choice: Choice::new(name, Some(level), 64).expect("it is built in"), ..Options::default() }
}

fn envelopes(name: &str, level: i32, dictionary: Option<&Dictionary>, values: &[Vec<u8>]) {
    let options = options(name, level);
    let envelopes = encoded(&options, dictionary, values);
    let find = |_: u32| dictionary;
    let (mut sent, mut restored) = (Vec::with_capacity(16 << 10), Vec::with_capacity(16 << 10));
    let [encode, decode] = least(
        values.len(),
        [
            &mut |number| {
                sent.clear();
                black_box(envelope::encode_with(&options, dictionary, &values[number], &mut sent));
            },
            &mut |number| {
                restored.clear();
                let result = envelope::decode_with(&options, &find, &envelopes[number], &mut restored);
                black_box(result).expect("it decodes");
            },
        ],
    );
    let with = if dictionary.is_some() { ", dictionary" } else { "" };
    let (raw, bytes) = (mean(values), mean(&envelopes));
    println!("{:<24} {raw:>5} {bytes:>9} {encode:>9.0} {decode:>9.0}", format!("{name} {level}{with}"));
}

fn mean(values: &[Vec<u8>]) -> usize {
    values.iter().map(Vec::len).sum::<usize>() / values.len()
}

/// Decodes with the dictionary somewhere else, and right behind a copy of it, from where the value is copied.
fn bare(dictionary: &Dictionary, values: &[Vec<u8>]) {
    let envelopes = encoded(&options("lz4", 0), Some(dictionary), values);
    let bytes = dictionary.bytes();
    let window = &bytes[bytes.len().saturating_sub(WINDOW)..];
    let room = 16 << 10;
    let (mut apart, mut behind) = (vec![0u8; room], window.to_vec());
    behind.resize(window.len() + room, 0);
    let mut copied = Vec::with_capacity(room);
    let decode = |number: usize, dictionary: *const u8, target: *mut u8| {
        let block = &envelopes[number][BLOCK_AT..];
        // SAFETY: the block, the value's length of the target and the window of the dictionary are valid.
        let len = unsafe {
            LZ4_decompress_safe_usingDict(
                block.as_ptr().cast(),
                target.cast(),
                block.len() as c_int,
                values[number].len() as c_int,
                dictionary.cast(),
                window.len() as c_int,
            )
        };
        assert_eq!(len as usize, values[number].len(), "it decodes");
    };
    let [apart, behind] = least(
        values.len(),
        [
            &mut |number| {
                decode(number, window.as_ptr(), apart.as_mut_ptr());
                black_box(&apart);
            },
            &mut |number| {
                let start = behind.as_mut_ptr();
                // SAFETY: the value is to follow the window, which is in front of the room.
                decode(number, start, unsafe { start.add(window.len()) });
                copied.clear();
                copied.extend_from_slice(&behind[window.len()..][..values[number].len()]);
                black_box(&copied);
            },
        ],
    );
    println!("{:<24} {:>5} {:>9} {:>9} {apart:>9.0}", "liblz4, usingDict", "", "", "");
    println!("{:<24} {:>5} {:>9} {:>9} {behind:>9.0}", "liblz4, prefix, copy", "", "", "");
}
