//! Restoring what was compressed, from bytes that nobody vouches for.

use crate::{LONG_COPY, LONGEST_COPY, OFFSET_BITS, SHORTEST_COPY};

/// First bytes from this on start a copy.
const FIRST_COPY: u8 = 1 << OFFSET_BITS;
/// No byte of compressed data gives more bytes than this: the longest copy is 264 bytes from three.
const REACH: usize = LONGEST_COPY / 3;

/// Returns the most bytes that this many compressed ones can stand for.
pub fn reach(compressed_len: usize) -> usize {
    compressed_len.saturating_mul(REACH)
}

/// The `len` bytes that `compressed` stands for; `None` if it is not LZF, or stands for more or fewer. No more memory is
/// reserved than `compressed` can [reach](reach).
pub fn decompress(compressed: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    decompress_to(compressed, len, &mut out)?;
    Some(out)
}

/// Like [`decompress`], appending; `out` is as it was if there is nothing to append.
pub fn decompress_to(compressed: &[u8], len: usize, out: &mut Vec<u8>) -> Option<()> {
    if len > reach(compressed.len()) {
        return None;
    }
    out.reserve(len);
    let start = out.len();
    let result = expand(compressed, len, out);
    if result.is_none() {
        out.truncate(start);
    }
    result
}

fn expand(compressed: &[u8], len: usize, out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    let mut rest = compressed;
    while let Some((&first, after)) = rest.split_first() {
        let room = start + len - out.len();
        rest = if first < FIRST_COPY {
            literal(usize::from(first) + 1, after, room, out)?
        } else {
            copy(first, after, start, room, out)?
        };
    }
    (out.len() == start + len).then_some(())
}

fn literal<'a>(count: usize, rest: &'a [u8], room: usize, out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (bytes, rest) = rest.split_at_checked(count)?;
    if count > room {
        return None;
    }
    out.extend_from_slice(bytes);
    Some(rest)
}

fn copy<'a>(first: u8, mut rest: &'a [u8], start: usize, room: usize, out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut count = usize::from(first >> OFFSET_BITS);
    if count == LONG_COPY {
        count += usize::from(*rest.split_off_first()?);
    }
    count += SHORTEST_COPY;
    let offset = usize::from(first & (FIRST_COPY - 1)) << u8::BITS | usize::from(*rest.split_off_first()?);
    let from = out.len().checked_sub(offset + 1).filter(|from| *from >= start)?;
    if count > room {
        return None;
    }
    // A copy may be longer than the output so far: it then continues with its own bytes.
    let mut left = count;
    while left > 0 {
        let available = left.min(out.len() - from);
        out.extend_from_within(from..from + available);
        left -= available;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Literal(Vec<u8>),
        Copy { offset: usize, count: usize },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let literal = prop::collection::vec(any::<u8>(), 1..=32).prop_map(Step::Literal);
        let copy = (0usize..1 << 13, 3usize..=264).prop_map(|(offset, count)| Step::Copy { offset, count });
        prop::collection::vec(prop_oneof![literal, copy], 0..40)
    }

    /// The compressed form of these steps, and what it stands for, made byte by byte. A copy from before the start
    /// is made one from the start.
    fn written(steps: &[Step]) -> (Vec<u8>, Vec<u8>) {
        let (mut compressed, mut plain) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Literal(bytes) => {
                    compressed.push(bytes.len() as u8 - 1);
                    compressed.extend_from_slice(bytes);
                    plain.extend_from_slice(bytes);
                }
                Step::Copy { .. } if plain.is_empty() => {}
                Step::Copy { offset, count } => {
                    let offset = (*offset).min(plain.len() - 1);
                    let length = count - SHORTEST_COPY;
                    compressed.push((length.min(LONG_COPY) as u8) << OFFSET_BITS | (offset >> 8) as u8);
                    if length >= LONG_COPY {
                        compressed.push((length - LONG_COPY) as u8);
                    }
                    compressed.push(offset as u8);
                    (0..*count).for_each(|_| plain.push(plain[plain.len() - 1 - offset]));
                }
            }
        }
        (compressed, plain)
    }

    proptest! {
        #[test]
        fn literals_and_copies_give_what_they_say(steps in steps()) {
            let (compressed, plain) = written(&steps);
            prop_assert_eq!(decompress(&compressed, plain.len()), Some(plain));
        }

        #[test]
        fn another_length_than_the_real_one_is_refused(steps in steps(), wrong in 0usize..10_000) {
            let (compressed, plain) = written(&steps);
            prop_assume!(wrong != plain.len());
            prop_assert_eq!(decompress(&compressed, wrong), None);
        }

        #[test]
        fn any_bytes_append_the_length_that_was_asked_for_or_nothing(bytes: Vec<u8>, len in 0usize..10_000) {
            let mut out = b"before".to_vec();
            let result = decompress_to(&bytes, len, &mut out);
            prop_assert_eq!(&out[..6], b"before");
            prop_assert_eq!(out.len() - 6, if result.is_some() { len } else { 0 });
        }
    }

    #[test]
    fn a_copy_may_go_on_with_itself() {
        assert_eq!(decompress(&[0x00, b'a', 0x20, 0x00], 4).unwrap(), b"aaaa");
        assert_eq!(decompress(&[0x01, b'a', b'b', 0xe0, 0xff, 0x01], 266).unwrap(), b"ab".repeat(133));
    }

    #[test]
    fn what_is_cut_off_or_points_before_the_start_is_refused() {
        for compressed in [
            &[0x01, b'a'][..],
            &[0x00, b'a', 0x20],
            &[0x00, b'a', 0xe0, 0x00],
            &[0x20, 0x00],
            &[0x00, b'a', 0x20, 0x01],
        ] {
            for len in 0..300 {
                let mut out = b"before the start".to_vec();
                assert_eq!(
                    decompress_to(compressed, len, &mut out),
                    None,
                    "{compressed:02x?} as {len} bytes"
                );
            }
        }
    }

    #[test]
    fn a_claim_beyond_what_the_bytes_can_reach_reserves_nothing() {
        assert_eq!(decompress(&[0x00, b'a'], usize::MAX), None);
    }
}
