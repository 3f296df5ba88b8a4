//! Values as DUMP gives them and RESTORE takes them: a value in the format of RDB files, and a footer.
//!
//! ```text
//! type (1 byte)  value …  version (2 bytes, little-endian)  CRC-64 of all before (8 bytes, little-endian)
//! ```
//!
//! [`dump`] writes strings, [`restore`] reads every form in which Valkey writes strings: as they are, as integers of
//! 8, 16 or 32 bits, and compressed by LZF. It knows bytes; what is done with a value is for others.

mod error;
mod length;

use std::borrow::Cow;
use std::ops::RangeInclusive;

use crc::{CRC_64_REDIS, Crc, Table};

pub use error::RestoreError;
use length::Length;

/// The version that [`dump`] writes: Valkey and Redis read it from 7.2 on.
const WRITTEN_VERSION: u16 = 11;
/// The versions that Valkey 9.1 reads. Those between 11 and 80 belong to other servers.
const READ_VERSIONS: [RangeInclusive<u16>; 2] = [1..=11, 80..=80];

const VERSION_LEN: usize = size_of::<u16>();
const CHECKSUM_LEN: usize = size_of::<u64>();
const FOOTER_LEN: usize = VERSION_LEN + CHECKSUM_LEN;

const STRING: u8 = 0;
/// The names of all types, by their number; a gap has none.
#[rustfmt::skip]
const TYPES: [&str; 23] = [
    "string", "list", "set", "zset", "hash", "zset", "module", "module", "", "hash", "list", "set", "zset",
    "hash", "list", "stream", "hash", "zset", "list", "stream", "set", "stream", "hash",
];

static CRC_64: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// How many bytes [`dump`] appends for a string of this length.
pub fn dumped_len(len: usize) -> usize {
    1 + length::encoded_len(len as u64) + len + FOOTER_LEN
}

/// Appends what DUMP answers for a string.
pub fn dump(value: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.reserve(dumped_len(value.len()));
    out.push(STRING);
    length::encode(value.len() as u64, out);
    out.extend_from_slice(value);
    append_footer(start, out);
}

/// Appends version and checksum to a type and a value, which start at `start`.
pub fn append_footer(start: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&WRITTEN_VERSION.to_le_bytes());
    let checksum = CRC_64.checksum(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// The string that RESTORE is given, of `limit` bytes at most. As with Valkey, bytes between value and footer do not
/// matter.
///
/// # Errors
/// Those of [`RestoreError`]. No more memory is reserved than the payload can fill.
pub fn restore(payload: &[u8], limit: usize) -> Result<Cow<'_, [u8]>, RestoreError> {
    let body = checked(payload).ok_or(RestoreError::Footer)?;
    let (&type_number, value) = body.split_first().ok_or(RestoreError::Malformed)?;
    match TYPES.get(usize::from(type_number)) {
        Some(_) if type_number == STRING => string(value, limit),
        None | Some(&"") => Err(RestoreError::Malformed),
        Some(name) => Err(RestoreError::UnsupportedType(name)),
    }
}

/// A payload without its footer, if that is right.
fn checked(payload: &[u8]) -> Option<&[u8]> {
    let (content, checksum) = payload.split_last_chunk::<CHECKSUM_LEN>()?;
    let (body, version) = content.split_last_chunk::<VERSION_LEN>()?;
    let version = u16::from_le_bytes(*version);
    let is_read = READ_VERSIONS.iter().any(|versions| versions.contains(&version));
    (is_read && CRC_64.checksum(content) == u64::from_le_bytes(*checksum)).then_some(body)
}

fn string(bytes: &[u8], limit: usize) -> Result<Cow<'_, [u8]>, RestoreError> {
    let (first, rest) = length::decode(bytes).ok_or(RestoreError::Malformed)?;
    let value = match first {
        Length::Bytes(len) => Cow::Borrowed(prefix(rest, len)?.0),
        Length::Integer8 => Cow::Owned(integer(rest, i8::from_le_bytes)?),
        Length::Integer16 => Cow::Owned(integer(rest, i16::from_le_bytes)?),
        Length::Integer32 => Cow::Owned(integer(rest, i32::from_le_bytes)?),
        Length::Lzf => Cow::Owned(compressed(rest, limit)?),
    };
    check_len(value.len(), limit)?;
    Ok(value)
}

fn check_len(len: usize, limit: usize) -> Result<(), RestoreError> {
    if len > limit { Err(RestoreError::TooLong { len, limit }) } else { Ok(()) }
}

fn integer<const N: usize, I: itoa::Integer>(
    bytes: &[u8],
    read: fn([u8; N]) -> I,
) -> Result<Vec<u8>, RestoreError> {
    let number = bytes.first_chunk::<N>().ok_or(RestoreError::Malformed)?;
    Ok(itoa::Buffer::new().format(read(*number)).as_bytes().to_vec())
}

/// Two lengths, in bytes: of the compressed string and of the string itself; then the compressed string.
fn compressed(bytes: &[u8], limit: usize) -> Result<Vec<u8>, RestoreError> {
    let (Length::Bytes(compressed_len), rest) = length::decode(bytes).ok_or(RestoreError::Malformed)? else {
        return Err(RestoreError::Malformed);
    };
    let (Length::Bytes(len), rest) = length::decode(rest).ok_or(RestoreError::Malformed)? else {
        return Err(RestoreError::Malformed);
    };
    let (compressed, _) = prefix(rest, compressed_len)?;
    let len = usize::try_from(len).map_err(|_| RestoreError::Malformed)?;
    if len <= snugly_lzf::reach(compressed.len()) {
        check_len(len, limit)?;
    }
    snugly_lzf::decompress(compressed, len).ok_or(RestoreError::Malformed)
}

fn prefix(bytes: &[u8], len: u64) -> Result<(&[u8], &[u8]), RestoreError> {
    let len = usize::try_from(len).map_err(|_| RestoreError::Malformed)?;
    bytes.split_at_checked(len).ok_or(RestoreError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: usize = 1 << 20;

    /// A payload around a type and a value, with a footer that fits.
    fn payload(body: &[u8]) -> Vec<u8> {
        let mut payload = body.to_vec();
        append_footer(0, &mut payload);
        payload
    }

    fn restored(body: &[u8]) -> Result<Vec<u8>, RestoreError> {
        restore(&payload(body), LIMIT).map(Cow::into_owned)
    }

    proptest! {
        #[test]
        fn what_is_dumped_is_restored(value: Vec<u8>, repeated in 0usize..40, before: Vec<u8>) {
            let value = value.repeat(repeated);
            let mut out = before.clone();
            dump(&value, &mut out);
            prop_assert_eq!(out.len(), before.len() + dumped_len(value.len()));
            prop_assert_eq!(restore(&out[before.len()..], LIMIT).unwrap(), value);
        }

        #[test]
        fn a_payload_with_another_bit_is_refused(value: Vec<u8>, place: prop::sample::Index, bit in 0u8..8) {
            let mut out = Vec::new();
            dump(&value, &mut out);
            let place = place.index(out.len());
            out[place] ^= 1u8 << bit;
            prop_assert_eq!(restore(&out, LIMIT), Err(RestoreError::Footer));
        }

        #[test]
        fn any_value_of_any_type_is_restored_within_the_limit_or_refused(body: Vec<u8>, limit in 0usize..300) {
            let payload = payload(&body);
            if let Ok(value) = restore(&payload, limit) {
                prop_assert!(value.len() <= limit);
            }
        }
    }

    #[test]
    fn what_valkey_9_1_dumps_is_restored() {
        for (payload, value) in [
            (&b"\x00\x05helloP\x00\xacX\x16\xe7\xfbfG\xfe"[..], &b"hello"[..]),
            (b"\x00\xc0\x0cP\x00\xf3\x001\xc0\xc2V\xdb!", b"12"),
            (b"\x00\xc1,\x01P\x00Zh\xa8c\xfb\xd0;\xe4", b"300"),
            (b"\x00\xc2\x90\xee\xfe\xffP\x00\xe7_\x17\xea\x8d\xb9O\xf4", b"-70000"),
            (b"\x00\x0b12345678901P\x00\xffd\x9bF\xb9E\x02\xe4", b"12345678901"),
            (b"\x00\xc3\x06\x15\x01aa\xe0\n\x00P\x002&z\xf9\x99\x13X\x9c", &[b'a'; 21]),
            (b"\x00\xc3\t9\x01aa\xe0,\x00\x01aaP\x00\xb6\x9d\x90\xfc\x9d\n\xc0\x80", &[b'a'; 57]),
        ] {
            assert_eq!(restore(payload, LIMIT).unwrap(), value);
        }
    }

    #[test]
    fn integers_are_restored_as_their_digits() {
        for (body, value) in [
            (&[0, 0xc0, 0x80][..], "-128"),
            (&[0, 0xc1, 0xff, 0x7f], "32767"),
            (&[0, 0xc2, 0, 0, 0, 0x80], "-2147483648"),
        ] {
            assert_eq!(restored(body).unwrap(), value.as_bytes());
        }
    }

    #[test]
    fn versions_of_other_servers_and_of_the_future_are_refused() {
        for (version, is_read) in
            [(0u16, false), (1, true), (11, true), (12, false), (79, false), (80, true), (81, false)]
        {
            let mut payload = vec![STRING, 1, b'a'];
            payload.extend_from_slice(&version.to_le_bytes());
            let checksum = CRC_64.checksum(&payload);
            payload.extend_from_slice(&checksum.to_le_bytes());
            assert_eq!(restore(&payload, LIMIT).is_ok(), is_read, "version {version}");
        }
    }

    #[test]
    fn what_is_too_short_for_a_footer_is_refused() {
        for len in 0..FOOTER_LEN {
            assert_eq!(restore(&vec![0; len], LIMIT), Err(RestoreError::Footer));
        }
        assert_eq!(restored(&[]), Err(RestoreError::Malformed));
    }

    #[test]
    fn values_that_are_cut_off_or_unknown_are_malformed() {
        for body in [
            &[STRING][..],
            &[STRING, 5, b'a'],
            &[STRING, 0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[STRING, 0xc1, 0],
            &[STRING, 0xc3, 0xc0, 1, 0, b'a'],
            &[STRING, 0xc3, 3, 1, 0, b'a'],
            &[STRING, 0xc3, 2, 2, 0, b'a'],
            &[STRING, 0xc4, 0],
            &[8, 0],
            &[23, 0],
            &[255, 0],
        ] {
            assert_eq!(restored(body), Err(RestoreError::Malformed), "{body:02x?}");
        }
    }

    #[test]
    fn other_types_are_named() {
        for (number, name) in [(1, "list"), (3, "zset"), (7, "module"), (21, "stream"), (22, "hash")] {
            assert_eq!(restored(&[number, 0]), Err(RestoreError::UnsupportedType(name)));
        }
    }

    #[test]
    fn a_string_over_the_limit_is_refused() {
        // One byte, copied 4 + 264 times.
        let body = [STRING, 0xc3, 7, 0x41, 0x0d, 0, b'a', 0x40, 0, 0xe0, 0xff, 0];
        assert_eq!(restored(&body).unwrap(), [b'a'; 269]);
        assert_eq!(restore(&payload(&body), 268), Err(RestoreError::TooLong { len: 269, limit: 268 }));
        let integer = payload(&[STRING, 0xc0, 0x80]);
        assert_eq!(restore(&integer, 3), Err(RestoreError::TooLong { len: 4, limit: 3 }));
    }
}
