//! The structure of an LZ4 payload, read without decoding it and without liblz4: in an envelope the raw
//! length (u32, little-endian) and one raw block, in a record the block alone.

use super::{Claims, Extent, Framing};

/// The length of an envelope's raw length.
pub(crate) const RAW_LEN: usize = size_of::<u32>();
/// A byte of a block yields at most 255 bytes of value: a length byte of a long match.
const MAX_RATIO: u64 = 255;
/// The reason why a payload without a block is refused.
pub(super) const MISSING: &str = "the LZ4 block is missing";

/// The payload's claim and its block.
pub(crate) fn split(framing: Framing, payload: &[u8]) -> Result<(Option<u64>, &[u8]), &'static str> {
    let (claimed, block) = match framing {
        Framing::Record => (None, payload),
        Framing::Envelope => {
            let (raw_len, block) =
                payload.split_first_chunk::<RAW_LEN>().ok_or("the raw length is cut off")?;
            (Some(u32::from_le_bytes(*raw_len).into()), block)
        }
    };
    if block.is_empty() { Err(MISSING) } else { Ok((claimed, block)) }
}

/// The most bytes that a block can decode to.
pub(super) fn reach(block: &[u8]) -> u64 {
    block.len() as u64 * MAX_RATIO
}

/// Claims of an envelope's payload, read without decoding it.
pub(super) fn claims(payload: &[u8]) -> Option<Claims> {
    let Extent { claimed, reach } = extent(Framing::Envelope, payload).ok()?;
    Some(Claims { len: claimed, reach: Some(reach), dictionary: None })
}

/// Lengthens the block at the end of `out`, which begins at `start` and is of `value`, to at least `least` bytes where that is
/// possible: the end of the value is written as literals. What is longer already stays.
///
/// # Errors
/// The block is not of this value.
pub(crate) fn lengthen(
    out: &mut Vec<u8>,
    start: usize,
    value: &[u8],
    least: usize,
) -> Result<(), &'static str> {
    if out.len() - start >= least {
        return Ok(());
    }
    let sequences = Sequence::all(&out[start..], value.len()).ok_or("the block is not of this value")?;
    // The last sequence in whose place literals are long enough.
    let is_enough = |sequence: &&Sequence| sequence.at + literals_len(value.len() - sequence.raw_at) >= least;
    let Some(sequence) = sequences.iter().rev().find(is_enough) else { return Ok(()) };
    // Most often a part of its match may stay, too.
    let part = (MIN_MATCH..sequence.matched).rev().find(|&matched| {
        let rest = value.len() - sequence.raw_at - sequence.literals - matched;
        sequence.at + sequence_len(sequence.literals, matched) + literals_len(rest) >= least
    });
    let mut raw_at = sequence.raw_at;
    let offset = sequence.offset;
    out.truncate(start + sequence.at);
    if let Some(matched) = part {
        let literals = &value[raw_at..raw_at + sequence.literals];
        raw_at += sequence.literals + matched;
        push_sequence(out, literals, Some((offset, matched)));
    }
    push_sequence(out, &value[raw_at..], None);
    Ok(())
}

/// The shortest match.
const MIN_MATCH: usize = 4;
/// A length in a token that goes on behind it.
const LONG: usize = 15;

/// A sequence of a block: literals, and a match unless it is the last one.
struct Sequence {
    /// Its place in the block, and that of its first literal in the value.
    at: usize,
    raw_at: usize,
    literals: usize,
    offset: [u8; 2],
    /// Length of the match, or 0.
    matched: usize,
}

impl Sequence {
    /// All sequences of a block; `None` if it is none of so many bytes.
    fn all(block: &[u8], raw_len: usize) -> Option<Vec<Sequence>> {
        let (mut rest, mut raw_at, mut all) = (block, 0, Vec::new());
        loop {
            let at = block.len() - rest.len();
            let token = usize::from(*rest.split_off_first()?);
            let literals = length(token >> 4, &mut rest)?;
            rest.split_off(..literals)?;
            let Some(offset) = rest.split_off(..2) else {
                all.push(Sequence { at, raw_at, literals, offset: [0; 2], matched: 0 });
                return (rest.is_empty() && raw_at + literals == raw_len).then_some(all);
            };
            let matched = length(token & LONG, &mut rest)? + MIN_MATCH;
            all.push(Sequence { at, raw_at, literals, offset: [offset[0], offset[1]], matched });
            raw_at += literals + matched;
            if raw_at > raw_len {
                return None;
            }
        }
    }
}

/// A length whose first part is in a token.
fn length(first: usize, rest: &mut &[u8]) -> Option<usize> {
    let mut len = first;
    if first == LONG {
        loop {
            let more = *rest.split_off_first()?;
            len += usize::from(more);
            if more < u8::MAX {
                break;
            }
        }
    }
    Some(len)
}

/// Bytes of the last sequence, with so many literals.
fn literals_len(literals: usize) -> usize {
    1 + more_len(literals) + literals
}

/// Bytes of a sequence.
fn sequence_len(literals: usize, matched: usize) -> usize {
    literals_len(literals) + 2 + more_len(matched - MIN_MATCH)
}

/// Bytes of a length behind its token.
fn more_len(len: usize) -> usize {
    if len < LONG { 0 } else { (len - LONG) / 255 + 1 }
}

fn push_sequence(out: &mut Vec<u8>, literals: &[u8], matched: Option<([u8; 2], usize)>) {
    let more = matched.map_or(0, |(_, matched)| matched - MIN_MATCH);
    out.push((literals.len().min(LONG) << 4 | more.min(LONG)) as u8);
    push_more(out, literals.len());
    out.extend_from_slice(literals);
    if let Some((offset, _)) = matched {
        out.extend_from_slice(&offset);
        push_more(out, more);
    }
}

fn push_more(out: &mut Vec<u8>, len: usize) {
    let Some(more) = len.checked_sub(LONG) else { return };
    out.extend(std::iter::repeat_n(u8::MAX, more / 255));
    out.push((more % 255) as u8);
}

/// Claimed length of a payload, and the longest that it can reach.
pub(crate) fn extent(framing: Framing, payload: &[u8]) -> Result<Extent, &'static str> {
    let (claimed, block) = split(framing, payload)?;
    Ok(Extent { claimed, reach: reach(block) })
}
