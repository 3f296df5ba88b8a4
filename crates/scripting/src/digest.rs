//! Digests of scripts, by which they are known.

use ring::digest::SHA1_FOR_LEGACY_USE_ONLY;

/// The SHA-1 digest of a script, as lower-case hexadecimal digits.
pub type Digest = [u8; 40];

/// Returns a script's digest.
pub fn digest(text: &[u8]) -> Digest {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 40];
    let digest = ring::digest::digest(&SHA1_FOR_LEGACY_USE_ONLY, text);
    for (pair, byte) in digits.chunks_exact_mut(2).zip(digest.as_ref()) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_sha1() {
        assert_eq!(&digest(b"a"), b"86f7e437faa5a7fce15d1ddcb9eaeaea377667b8");
    }
}
