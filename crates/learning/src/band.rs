//! Lengths of values that are alike enough to share a dictionary.

/// Values of similar size: of at least 32, 128, 512, 2 Ki and 8 Ki bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Band(u8);

impl Band {
    /// Values shorter than this have no class, nor those from [`Band::END`] on.
    pub const START: usize = 32;
    /// See [`Band::START`].
    pub const END: usize = 32 << 10;
    /// All values that have a class, where size makes no difference: to all of them, or to those of a class apart.
    pub const ANY: Band = Band(u8::MAX);

    /// Returns the band of values of this many bytes; the longest gain little by a dictionary and have none.
    pub fn of(len: usize) -> Option<Band> {
        (Band::START..Band::END).contains(&len).then(|| Band(((len.ilog2() - Band::START.ilog2()) / 2) as u8))
    }

    /// The length of its shortest value, in bytes.
    pub fn start(self) -> usize {
        if self == Band::ANY { Band::START } else { Band::START << (2 * self.0) }
    }

    /// Behind the length of its longest value, in bytes.
    pub fn end(self) -> usize {
        if self == Band::ANY { Band::END } else { Band::END.min(Band::START << (2 * self.0 + 2)) }
    }

    /// Returns whether values of this many bytes are of this band.
    pub fn contains(self, len: usize) -> bool {
        (self.start()..self.end()).contains(&len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_follow_each_other_and_cover_what_has_one() {
        for len in [32, 127, 128, 511, 512, 2_047, 2_048, 8_191, 8_192, 32_767] {
            let band = Band::of(len).expect("it has a band");
            assert!(band.contains(len), "{len}");
        }
        assert_eq!((Band::of(31), Band::of(32_768)), (None, None));
        assert!(Band::ANY.contains(32) && Band::ANY.contains(32_767) && !Band::ANY.contains(31));
    }
}
