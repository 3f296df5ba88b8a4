//! Names of commands and options, compared without regard to ASCII case: a few integers instead of bytes.
//!
//! The build script has this module too: it places the names in the table that [`Word::slot`] looks them up in.

/// Length of the longest name in the table, in bytes.
pub const LONGEST: usize = 24;

/// A short word in capitals, padded with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    letters: [u64; LONGEST / 8],
    len: usize,
}

impl Word {
    /// Reads a word of any case; `None` for one that is longer than all names.
    #[inline]
    pub const fn read(bytes: &[u8]) -> Option<Word> {
        let len = bytes.len();
        if len > LONGEST {
            return None;
        }
        let mut letters = [0; LONGEST / 8];
        let (mut at, mut start) = (0, 0);
        while start < len {
            letters[at] = capitals(load(bytes, start));
            at += 1;
            start += 8;
        }
        Some(Word { letters, len })
    }

    /// Creates the word of a name in the table.
    pub const fn of(name: &str) -> Word {
        match Word::read(name.as_bytes()) {
            Some(word) => word,
            None => panic!("a name is longer than LONGEST"),
        }
    }

    /// Returns the first of `1 << bits` slots to search for the word.
    #[inline]
    pub const fn slot(&self, bits: u32) -> usize {
        let [first, second, third] = self.letters;
        let mixed = first ^ second.rotate_left(21) ^ third.rotate_left(42);
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - bits)) as usize
    }
}

/// Loads up to eight bytes from `start` on, padded with zeros.
#[inline]
const fn load(bytes: &[u8], start: usize) -> u64 {
    if let Some((_, rest)) = bytes.split_at_checked(start) {
        if let Some(whole) = rest.first_chunk() {
            return u64::from_le_bytes(*whole);
        }
        // Two loads that overlap are quicker than a loop over the bytes.
        let bits = 8 * rest.len() as u32;
        if let (Some(head), Some(tail)) = (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
            let (head, tail) = (u32::from_le_bytes(*head) as u64, u32::from_le_bytes(*tail) as u64);
            return head | tail << (bits - 32);
        }
        if let (Some(head), Some(tail)) = (rest.first_chunk::<2>(), rest.last_chunk::<2>()) {
            let (head, tail) = (u16::from_le_bytes(*head) as u64, u16::from_le_bytes(*tail) as u64);
            return head | tail << (bits - 16);
        }
        if let Some(&letter) = rest.first() {
            return letter as u64;
        }
    }
    0
}

/// Converts eight letters to capitals, all at once: a byte from `a` to `z` loses the bit 0x20.
#[inline]
const fn capitals(letters: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let seven_bits = letters & !HIGH;
    let from_a = seven_bits + (0x80 - b'a' as u64) * EACH;
    let behind_z = seven_bits + (0x7f - b'z' as u64) * EACH;
    let small = (from_a ^ behind_z) & !letters & HIGH;
    letters ^ (small >> 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_are_equal_if_their_capitals_are(
            one in prop::collection::vec(any::<u8>(), 0..30),
            other in prop::collection::vec(any::<u8>(), 0..30),
        ) {
            prop_assert_eq!(Word::read(&one).is_some(), one.len() <= LONGEST);
            let capitals = one.to_ascii_uppercase();
            prop_assert_eq!(Word::read(&one), Word::read(&capitals));
            prop_assert_eq!(Word::read(&one), Word::read(&one.to_ascii_lowercase()));
            if one.len().max(other.len()) <= LONGEST {
                let equal = capitals == other.to_ascii_uppercase();
                prop_assert_eq!(Word::read(&one) == Word::read(&other), equal);
            }
        }
    }

    #[test]
    fn every_byte_has_the_capital_of_ascii() {
        for byte in 0..=u8::MAX {
            for before in 0..LONGEST {
                let mut word = vec![b'x'; before];
                word.push(byte);
                assert_eq!(Word::read(&word), Word::read(&word.to_ascii_uppercase()), "{byte} at {before}");
            }
        }
    }

    #[test]
    fn zeros_are_letters() {
        assert_ne!(Word::read(b"GET\0"), Word::read(b"GET"));
    }
}
