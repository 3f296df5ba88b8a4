//! The arguments of a request, as ranges of borrowed bytes.

/// An argument's place: from, to.
pub(super) type Range = (usize, usize);

/// The arguments of a request, the command's name first, borrowed from the connection's buffer.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    bytes: &'a [u8],
    ranges: &'a [Range],
}

impl<'a> Args<'a> {
    /// The arguments that stand at these places of `bytes`.
    #[inline]
    pub(super) fn new(bytes: &'a [u8], ranges: &'a [Range]) -> Args<'a> {
        Args { bytes, ranges }
    }

    /// Number of arguments, the command's name included.
    #[inline]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns whether the request asks for nothing (an empty line, `*0`).
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The argument at `index`, for as long as the buffer lives; `args[index]` is the shorter-lived form that panics.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.ranges.get(index).map(|&(start, end)| &self.bytes[start..end])
    }

    /// The arguments from `index` on (none if there are fewer).
    #[inline]
    pub fn from(&self, index: usize) -> Args<'a> {
        Args { bytes: self.bytes, ranges: self.ranges.get(index..).unwrap_or_default() }
    }

    /// All arguments in order.
    #[inline]
    pub fn iter(&self) -> ArgsIter<'a> {
        ArgsIter { bytes: self.bytes, ranges: self.ranges.iter() }
    }
}

impl std::ops::Index<usize> for Args<'_> {
    type Output = [u8];

    #[inline]
    fn index(&self, index: usize) -> &[u8] {
        let (start, end) = self.ranges[index];
        &self.bytes[start..end]
    }
}

impl std::fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(<[u8]>::escape_ascii)).finish()
    }
}

impl<'a> IntoIterator for Args<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgsIter<'a>;

    fn into_iter(self) -> ArgsIter<'a> {
        self.iter()
    }
}

/// Iterator over [`Args`].
#[derive(Clone)]
pub struct ArgsIter<'a> {
    bytes: &'a [u8],
    ranges: std::slice::Iter<'a, Range>,
}

impl<'a> Iterator for ArgsIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.ranges.next().map(|&(start, end)| &self.bytes[start..end])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ranges.size_hint()
    }
}

impl DoubleEndedIterator for ArgsIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.ranges.next_back().map(|&(start, end)| &self.bytes[start..end])
    }
}

impl ExactSizeIterator for ArgsIter<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_can_be_indexed_skipped_and_walked_backwards() {
        let args = Args::new(b"SET key value", &[(0, 3), (4, 7), (8, 13)]);
        assert_eq!((args.len(), args.is_empty(), &args[0], args.get(3)), (3, false, &b"SET"[..], None));
        assert_eq!(args.from(1).iter().rev().collect::<Vec<_>>(), [&b"value"[..], b"key"]);
        assert!(args.from(4).is_empty());
    }
}
