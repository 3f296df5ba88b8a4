//! The compressor of liblzf: a table has the latest place of each three bytes, and what is found there is copied as far
//! as it goes.

use std::cell::RefCell;

use crate::{FARTHEST, LONG_COPY, LONGEST_COPY, LONGEST_LITERAL, OFFSET_BITS, SHORTEST_COPY};

/// Three bytes are looked up at a time.
const LOOKED_UP: usize = 3;
/// A copy reaches back over 8 KiB, so twice as many places are enough.
const TABLE_BITS: u32 = 14;
/// 2^32 divided by the golden ratio, for Fibonacci hashing.
const MULTIPLIER: u32 = 0x9e37_79b1;
/// Longer inputs are given up: places are counted in 32 bits.
const LONGEST_INPUT: usize = 1 << 31;

thread_local! {
    static TABLE: RefCell<Table> = const { RefCell::new(Table::NEW) };
}

/// Appends the compressed bytes if they are fewer, and says whether they are. The table of places (64 KiB) is kept for
/// the next call of the thread.
///
/// ```
/// let mut compressed = Vec::new();
/// assert!(snugly_lzf::compress(&[b'a'; 100], &mut compressed));
/// assert_eq!(snugly_lzf::decompress(&compressed, 100).unwrap(), [b'a'; 100]);
/// assert!(!snugly_lzf::compress(b"abc", &mut compressed));
/// ```
pub fn compress(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let is_smaller =
        bytes.len() <= LONGEST_INPUT && TABLE.with_borrow_mut(|table| table.compress(bytes, out));
    if !is_smaller {
        out.truncate(start);
    }
    is_smaller
}

/// Positions at which three bytes were last seen. They count on from input to input, with a gap that no copy
/// can span, so that entries of earlier inputs need no clearing.
struct Table {
    places: Vec<u32>,
    /// The place of the first byte of the input.
    start: u32,
    /// The place of the first byte of the next one.
    next: u32,
}

impl Table {
    const NEW: Table = Table { places: Vec::new(), start: 0, next: 0 };

    /// Compresses until that is no longer worth it; returns whether it was.
    fn compress(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        self.make_ready(bytes.len());
        let out_start = out.len();
        let is_too_long = |out: &Vec<u8>| out.len() - out_start >= bytes.len();
        let (mut at, mut copied) = (0, 0);
        while let Some(sequence) = sequence(bytes, at) {
            let Some(from) = self.exchange(sequence, at).filter(|from| bytes[*from..].starts_with(&sequence))
            else {
                at += 1;
                continue;
            };
            let count = common_len(bytes, from, at);
            append_literals(&bytes[copied..at], out);
            append_copy(at - from - 1, count, out);
            if is_too_long(out) {
                return false;
            }
            at += count;
            copied = at;
            // The last two positions inside a copy are enough for what follows.
            for place in at - 2..at {
                if let Some(sequence) = self::sequence(bytes, place) {
                    self.exchange(sequence, place);
                }
            }
        }
        append_literals(&bytes[copied..], out);
        !is_too_long(out)
    }

    /// Makes the places of an input of this length larger than all that are in the table.
    fn make_ready(&mut self, len: usize) {
        let span = len as u32 + FARTHEST as u32;
        let is_full = self.next.checked_add(span).is_none();
        if self.places.is_empty() || is_full {
            self.places.clear();
            self.places.resize(1 << TABLE_BITS, 0);
            self.next = FARTHEST as u32 + 1;
        }
        self.start = self.next;
        self.next += span;
    }

    /// Notes that three bytes are at `at`, and gives where they, or others of the same hash, were before, if a copy
    /// reaches so far.
    fn exchange(&mut self, sequence: [u8; LOOKED_UP], at: usize) -> Option<usize> {
        let slot = &mut self.places[hash(sequence)];
        let place = self.start + at as u32;
        let distance = (place - std::mem::replace(slot, place)) as usize;
        if distance <= FARTHEST { at.checked_sub(distance) } else { None }
    }
}

fn sequence(bytes: &[u8], at: usize) -> Option<[u8; LOOKED_UP]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn hash([a, b, c]: [u8; LOOKED_UP]) -> usize {
    (u32::from_le_bytes([a, b, c, 0]).wrapping_mul(MULTIPLIER) >> (u32::BITS - TABLE_BITS)) as usize
}

/// Returns the number of equal bytes from two positions on, as far as one copy goes.
fn common_len(bytes: &[u8], from: usize, at: usize) -> usize {
    let later = &bytes[at..bytes.len().min(at + LONGEST_COPY)];
    let earlier = &bytes[from..from + later.len()];
    const WORD: usize = size_of::<u64>();
    let words = earlier.chunks_exact(WORD).zip(later.chunks_exact(WORD));
    let same = words.take_while(|(earlier, later)| earlier == later).count() * WORD;
    same + earlier[same..].iter().zip(&later[same..]).take_while(|(earlier, later)| earlier == later).count()
}

fn append_literals(literals: &[u8], out: &mut Vec<u8>) {
    for run in literals.chunks(LONGEST_LITERAL) {
        out.push(run.len() as u8 - 1);
        out.extend_from_slice(run);
    }
}

fn append_copy(offset: usize, count: usize, out: &mut Vec<u8>) {
    let len = count - SHORTEST_COPY;
    out.push((len.min(LONG_COPY) << OFFSET_BITS | offset >> u8::BITS) as u8);
    if len >= LONG_COPY {
        out.push((len - LONG_COPY) as u8);
    }
    out.push(offset as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decompress;

    fn compressed(bytes: &[u8]) -> Option<Vec<u8>> {
        let mut out = b"before".to_vec();
        let is_smaller = compress(bytes, &mut out);
        let appended = out.strip_prefix(b"before").expect("what was there is kept").to_vec();
        assert_eq!(is_smaller, !appended.is_empty());
        is_smaller.then_some(appended)
    }

    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        let noise = prop::collection::vec(any::<u8>(), 0..600);
        let text = "[a-d ]{0,600}".prop_map(String::into_bytes);
        let repeated = (prop::collection::vec(any::<u8>(), 1..300), 1usize..2_000)
            .prop_map(|(word, times)| word.repeat(times));
        let part = prop_oneof![noise, text, repeated].boxed();
        prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn what_is_compressed_is_smaller_and_comes_back(inputs in prop::collection::vec(any_bytes(), 1..4)) {
            for bytes in inputs {
                if let Some(compressed) = compressed(&bytes) {
                    prop_assert!(compressed.len() < bytes.len());
                    prop_assert_eq!(decompress(&compressed, bytes.len()), Some(bytes));
                }
            }
        }

        #[test]
        fn the_same_bytes_are_compressed_the_same_whatever_came_before(bytes in any_bytes(), before in any_bytes()) {
            let alone = std::thread::spawn({
                let bytes = bytes.clone();
                move || compressed(&bytes)
            });
            compressed(&before);
            prop_assert_eq!(compressed(&bytes), alone.join().unwrap());
        }
    }

    #[test]
    fn what_would_not_become_smaller_is_given_up() {
        for bytes in [&b""[..], b"a", b"ab", b"abc", b"abcabc", &(0..=255).collect::<Vec<u8>>()] {
            assert_eq!(compressed(bytes), None, "{}", bytes.escape_ascii());
        }
        assert_eq!(compressed(b"aaaaaa").unwrap(), [0, b'a', 0x60, 0]);
    }

    #[test]
    fn copies_are_as_long_and_reach_as_far_as_they_can() {
        assert_eq!(compressed(&[b'a'; 1 + LONGEST_COPY]).unwrap(), [0, b'a', 0xe0, 0xff, 0]);
        let random: Vec<u8> = {
            let mut state = 1u32;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            };
            (0..FARTHEST + 1_000).map(|_| next()).collect()
        };
        let again_after = |distance: usize| [&random[..distance], &random[..1_000]].concat();
        assert!(compressed(&again_after(FARTHEST)).is_some());
        assert!(compressed(&again_after(FARTHEST + 1)).is_none());
    }

    #[test]
    fn places_are_counted_anew_before_they_overflow() {
        let mut table = Table { places: vec![7; 1 << TABLE_BITS], start: 0, next: u32::MAX - 10_000 };
        for _ in 0..3 {
            let mut out = Vec::new();
            assert!(table.compress(&[b'a'; 1_000], &mut out));
            assert_eq!(decompress(&out, 1_000).unwrap(), [b'a'; 1_000]);
        }
    }
}
