//! The greatest size of a node: `list-max-listpack-size`, with Valkey's meanings.

/// Bytes that an element may take beyond its own when its header is longer than that of a short string.
const HEADER_ESTIMATE: usize = 8;
/// A limit by number is one by size as well.
const MAX_BYTES_BY_COUNT: usize = 8192;
/// Largest size of -1, in bytes; each further step doubles it.
const SMALLEST_SIZE: usize = 4096;
const LOWEST: i32 = -5;
const HIGHEST: i32 = 32_767;

/// Greatest size of a node: from -1 to -5, 4 to 64 KiB; from 1 on, this many elements, and 8 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill(i32);

impl Fill {
    /// Default: 8 KiB.
    pub const DEFAULT: Fill = Fill(-2);

    /// Creates a fill from a setting; a value out of range becomes the nearest in it.
    pub fn new(setting: i64) -> Fill {
        Fill(setting.clamp(LOWEST.into(), HIGHEST.into()) as i32)
    }

    /// Returns the setting.
    pub fn setting(self) -> i32 {
        self.0
    }

    /// Returns the most bytes of a node that has more than one element.
    pub(crate) fn max_bytes(self) -> usize {
        if self.0 < 0 { SMALLEST_SIZE << (-self.0 - 1) } else { MAX_BYTES_BY_COUNT }
    }

    fn max_elements(self) -> usize {
        if self.0 < 0 { usize::MAX } else { self.0.max(1) as usize }
    }

    /// Returns whether a node may have so much.
    pub(crate) fn holds(self, bytes: usize, elements: usize) -> bool {
        bytes <= self.max_bytes() && elements <= self.max_elements()
    }

    /// Returns whether it may have twice as much.
    pub(crate) fn holds_twice(self, bytes: usize, elements: usize) -> bool {
        bytes <= self.max_bytes() / 2 && elements <= self.max_elements() / 2
    }

    /// Returns whether a node of this size may have one element more, of `more` bytes.
    pub(crate) fn has_room(self, bytes: usize, elements: usize, more: usize) -> bool {
        self.holds(bytes.saturating_add(more).saturating_add(HEADER_ESTIMATE), elements + 1)
    }
}

impl Default for Fill {
    fn default() -> Fill {
        Fill::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_numbers_are_sizes_and_positive_ones_numbers_of_elements() {
        for (setting, bytes) in
            [(-1, 4096), (-2, 8192), (-3, 16_384), (-4, 32_768), (-5, 65_536), (-9, 65_536)]
        {
            let fill = Fill::new(setting);
            assert!(fill.has_room(bytes - 108, 10_000, 100));
            assert!(!fill.has_room(bytes - 107, 1, 100));
        }
        let three = Fill::new(3);
        assert!(three.has_room(8000, 2, 100) && !three.has_room(10, 3, 1) && !three.has_room(8100, 1, 100));
        assert!(Fill::new(0).has_room(7, 0, 1) && !Fill::new(0).has_room(10, 1, 1));
        assert_eq!(Fill::new(1 << 40).setting(), 32_767);
    }
}
