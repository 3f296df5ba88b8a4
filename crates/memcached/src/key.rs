//! Keys as they are in requests: as they are, or in base64 (meta's flag `b`).
//!
//! It knows the limits of a key and how to decode it. It must not know what a key is for.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Longest key in bytes, on the wire (protocol.txt, "Keys").
pub const MAX_KEY: usize = 250;

/// Room for a key that is decoded.
pub type KeyBuffer = [u8; MAX_KEY];

/// Padding is asked for and stray bits are not, as in memcached.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// A key of 1 to [`MAX_KEY`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    wire: &'a [u8],
    is_base64: bool,
}

impl<'a> Key<'a> {
    /// A key that is on the wire as it is.
    pub(crate) fn new(wire: &'a [u8]) -> Key<'a> {
        Key { wire, is_base64: false }
    }

    /// A key in base64; `None` if it is none.
    pub(crate) fn base64(wire: &'a [u8]) -> Option<Key<'a>> {
        let mut buffer = [0; MAX_KEY];
        let len = BASE64.decode_slice(wire, &mut buffer).ok()?;
        (len > 0).then_some(Key { wire, is_base64: true })
    }

    /// The key itself. `buffer` is only used if it has to be decoded.
    #[inline]
    pub fn bytes<'b>(self, buffer: &'b mut KeyBuffer) -> &'b [u8]
    where
        'a: 'b,
    {
        if !self.is_base64 {
            return self.wire;
        }
        match BASE64.decode_slice(self.wire, buffer) {
            Ok(len) => &buffer[..len],
            Err(_) => &[], // never: it was decoded when it was parsed
        }
    }

    /// The key itself, unless it has to be decoded.
    #[inline]
    pub fn plain(self) -> Option<&'a [u8]> {
        (!self.is_base64).then_some(self.wire)
    }

    /// The key as it is in the request.
    pub fn wire(self) -> &'a [u8] {
        self.wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_plain_key_is_borrowed_from_the_request() {
        let key = Key::new(b"Zm9v");
        assert_eq!(key.bytes(&mut [0; MAX_KEY]), b"Zm9v");
        assert_eq!(key.plain(), Some(&b"Zm9v"[..]));
    }

    #[test]
    fn a_key_in_base64_is_decoded() {
        let key = Key::base64(b"Zm9v").expect("it is base64");
        assert_eq!(key.bytes(&mut [0; MAX_KEY]), b"foo");
        assert_eq!((key.plain(), key.wire()), (None, &b"Zm9v"[..]));
    }

    #[test]
    fn what_is_not_base64_or_decodes_to_nothing_is_no_key() {
        for wrong in [&b"foo"[..], b"Zm9v=", b"Zg", b"", b"====", b"Zm9v Zm9v", b"Zm9v_-=="] {
            assert_eq!(Key::base64(wrong), None, "{}", wrong.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_key_in_base64(bytes in prop::collection::vec(any::<u8>(), 1..187)) {
            let wire = BASE64.encode(&bytes);
            let key = Key::base64(wire.as_bytes()).expect("it is base64");
            let mut buffer = [0; MAX_KEY];
            prop_assert_eq!(key.bytes(&mut buffer), &bytes[..]);
        }
    }
}
