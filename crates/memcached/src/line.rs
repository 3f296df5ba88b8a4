//! Words of a line, and the numbers among them as memcached reads them.
//!
//! It knows spaces and digits. It must not know what a word means.

/// The words of a line: what is between spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    /// The words of `line`, which has no end of a line any more.
    #[inline]
    pub(crate) fn new(line: &'a [u8]) -> Words<'a> {
        Words { rest: line }
    }

    /// What is behind the words that were taken, with its spaces.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Drops spaces in front of the next word.
    #[inline]
    pub(crate) fn skip_spaces(&mut self) {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.skip_spaces();
        if self.rest.is_empty() {
            return None;
        }
        // Most words are shorter than a search for anything longer would take to begin.
        let len = self.rest.iter().position(|byte| *byte == b' ').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest;
        Some(word)
    }
}

/// The line without its end: `\n`, or `\r\n`.
#[inline]
pub(crate) fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A number from 0 on, with or without `+`; `None` if it is none, or beyond 64 bits.
#[inline]
pub(crate) fn unsigned(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"+").unwrap_or(word);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A number, with or without a sign; `None` if it is none, or beyond 64 bits.
#[inline]
pub(crate) fn signed(word: &[u8]) -> Option<i64> {
    match word {
        [b'-', b'+', ..] => None,
        [b'-', digits @ ..] => 0i64.checked_sub_unsigned(unsigned(digits)?),
        _ => unsigned(word)?.try_into().ok(),
    }
}

/// A number of at most 32 bits from 0 on.
#[inline]
pub(crate) fn unsigned_32(word: &[u8]) -> Option<u32> {
    unsigned(word)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn any_number_of_spaces_is_between_words() {
        let words: Vec<_> = Words::new(b"  get  a b ").collect();
        assert_eq!(words, [&b"get"[..], b"a", b"b"]);
        assert_eq!(Words::new(b"   ").next(), None);
        assert_eq!(Words::new(b"").next(), None);
    }

    #[test]
    fn only_spaces_are_between_words() {
        let words: Vec<_> = Words::new(b"a\tb \0\r").collect();
        assert_eq!(words, [&b"a\tb"[..], b"\0\r"]);
    }

    #[test]
    fn the_end_of_a_line_is_one_or_two_bytes() {
        for line in [&b"get a\r\n"[..], b"get a\n", b"get a"] {
            assert_eq!(without_end(line), b"get a");
        }
        assert_eq!(without_end(b"get a\r\r\n"), b"get a\r");
    }

    #[test]
    fn numbers_may_have_a_sign_and_nothing_else() {
        assert_eq!(unsigned(b"+1"), Some(1));
        assert_eq!(signed(b"+1"), Some(1));
        assert_eq!(signed(b"-0"), Some(0));
        for wrong in [&b""[..], b"+", b"-", b"x", b"1x", b"--1", b"-+1", b"++1", b" 1", b"1.0"] {
            assert_eq!((unsigned(wrong), signed(wrong)), (None, None), "{}", wrong.escape_ascii());
        }
        assert_eq!(unsigned(b"-1"), None);
    }

    #[test]
    fn numbers_beyond_their_bits_are_none() {
        assert_eq!(unsigned(b"18446744073709551616"), None);
        assert_eq!(signed(b"9223372036854775808"), None);
        assert_eq!(signed(b"-9223372036854775809"), None);
        assert_eq!(unsigned_32(b"4294967295"), Some(u32::MAX));
        assert_eq!(unsigned_32(b"4294967296"), None);
    }

    proptest! {
        #[test]
        fn numbers_that_are_written_are_read_back(number: u64, signed_number: i64) {
            prop_assert_eq!(unsigned(number.to_string().as_bytes()), Some(number));
            prop_assert_eq!(signed(signed_number.to_string().as_bytes()), Some(signed_number));
        }
    }
}
