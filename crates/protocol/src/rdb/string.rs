//! Strings as RDB writes them: as they are, as integers of 8, 16 or 32 bits, and compressed by LZF. This module writes
//! them as they are or compressed.

use std::borrow::Cow;

use super::error::Fault;
use super::input::{Input, checked};
use super::length::{self, Length};

/// Bytes that [`encode`] appends for a string of this length.
pub(super) fn encoded_len(len: usize) -> usize {
    length::encoded_len(len as u64) + len
}

/// Appends a string.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    length::encode(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Strings up to this many bytes are never compressed, as by Valkey.
const SHORT: usize = 20;

/// Appends a string in its compressed form if that is shorter, and tells whether it has. `buffer` is for the compressed
/// bytes meanwhile.
pub(super) fn encode_compressed(bytes: &[u8], buffer: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
    buffer.clear();
    let is_smaller = bytes.len() > SHORT && snugly_lzf::compress(bytes, buffer);
    let len = buffer.len() as u64;
    let header_len = 1 + length::encoded_len(len);
    // The string itself has a length in front of it, too.
    if !is_smaller || header_len + buffer.len() >= bytes.len() {
        return false;
    }
    out.push(length::LZF);
    length::encode(len, out);
    length::encode(bytes.len() as u64, out);
    out.extend_from_slice(buffer);
    true
}

/// Reads a string of at most `limit` bytes.
pub(super) fn read<'a>(input: &mut impl Input<'a>, limit: usize) -> Result<Cow<'a, [u8]>, Fault> {
    match length::read(input)? {
        Length::Bytes(len) => input.bytes(len, limit),
        Length::Integer8 => digits(i8::from_le_bytes(input.array()?), limit),
        Length::Integer16 => digits(i16::from_le_bytes(input.array()?), limit),
        Length::Integer32 => digits(i32::from_le_bytes(input.array()?), limit),
        Length::Lzf => compressed(input, limit).map(Cow::Owned),
    }
}

/// Passes over a string of any length.
pub(super) fn skip<'a>(input: &mut impl Input<'a>) -> Result<(), Fault> {
    let len = match length::read(input)? {
        Length::Bytes(len) => len,
        Length::Integer8 => size_of::<i8>() as u64,
        Length::Integer16 => size_of::<i16>() as u64,
        Length::Integer32 => size_of::<i32>() as u64,
        Length::Lzf => {
            let compressed_len = length::read_number(input)?;
            length::read_number(input)?;
            compressed_len
        }
    };
    input.skip(len)
}

fn digits<'a>(number: impl itoa::Integer, limit: usize) -> Result<Cow<'a, [u8]>, Fault> {
    let digits = itoa::Buffer::new().format(number).as_bytes().to_vec();
    checked(digits.len() as u64, limit)?;
    Ok(digits.into())
}

/// Two lengths, in bytes: of the compressed string and of the string itself; then the compressed string.
fn compressed<'a>(input: &mut impl Input<'a>, limit: usize) -> Result<Vec<u8>, Fault> {
    let compressed_len = length::read_number(input)?;
    let len = length::read_number(input)?;
    // The compressor gives up a string that does not become smaller.
    let compressed = input.bytes(compressed_len, limit)?;
    if len > snugly_lzf::reach(compressed.len()) as u64 {
        return Err(Fault::Malformed("a compressed string claims more than its bytes can stand for"));
    }
    let len = checked(len, limit)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| Fault::NoMemory { len })?;
    let decompressed = snugly_lzf::decompress_to(&compressed, len, &mut bytes);
    decompressed.map(|()| bytes).ok_or(Fault::Malformed("a compressed string is no LZF"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A string in each form that it can have.
    fn forms(bytes: &[u8], integer: i32) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (mut plain, mut compressed) = (Vec::new(), Vec::new());
        encode(bytes, &mut plain);
        let mut forms = vec![(plain, bytes.to_vec())];
        let mut out = Vec::new();
        if encode_compressed(bytes, &mut compressed, &mut out) {
            assert!(out.len() < forms[0].0.len());
            forms.push((out, bytes.to_vec()));
        }
        let little = integer.to_le_bytes();
        let digits = |number: i32| number.to_string().into_bytes();
        forms.extend([
            ([&[0xc0], &little[..1]].concat(), digits((integer as i8).into())),
            ([&[0xc1], &little[..2]].concat(), digits((integer as i16).into())),
            ([&[0xc2], &little[..]].concat(), digits(integer)),
        ]);
        forms
    }

    proptest! {
        #[test]
        fn every_form_is_read_passed_over_and_missed_where_it_is_cut_off(
            word in prop::collection::vec(any::<u8>(), 0..60), times in 0usize..40, integer: i32, behind: Vec<u8>,
        ) {
            for (written, bytes) in forms(&word.repeat(times), integer) {
                let all = [&written[..], &behind].concat();
                let mut input = &all[..];
                prop_assert_eq!(&*read(&mut input, bytes.len()).unwrap(), &bytes);
                prop_assert_eq!(input, &behind);
                let mut input = &all[..];
                skip(&mut input).unwrap();
                prop_assert_eq!(input, &behind);
                for len in 0..written.len() {
                    prop_assert!(matches!(read(&mut &written[..len], bytes.len()), Err(Fault::Ended)));
                    prop_assert!(matches!(skip(&mut &written[..len]), Err(Fault::Ended)));
                }
                if let Some(limit) = bytes.len().checked_sub(1) {
                    let is_over = |fault| matches!(fault, Fault::TooLong { limit: told, .. } if told == limit);
                    prop_assert!(read(&mut &all[..], limit).is_err_and(is_over));
                }
            }
        }
    }
}
