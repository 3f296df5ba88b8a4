//! The arguments of a request, as ranges of borrowed bytes.

/// An argument's place: from, to.
pub(super) type Range = (usize, usize);

/// The arguments of a request, the command's name first, borrowed from the connection's buffer.
#[derive(Clone, Copy, Default)]
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

    /// The first `count` arguments (all if there are fewer).
    #[inline]
    pub fn first(&self, count: usize) -> Args<'a> {
        Args { bytes: self.bytes, ranges: &self.ranges[..count.min(self.ranges.len())] }
    }

    /// All arguments in order.
    #[inline]
    pub fn iter(&self) -> ArgsIter<'a> {
        ArgsIter { bytes: self.bytes, ranges: self.ranges.iter() }
    }
}

/// Arguments that are put together one by one, to be read as those of a request.
///
/// ```
/// use snugly_protocol::resp::ArgsBuffer;
///
/// let mut buffer = ArgsBuffer::default();
/// buffer.push(b"GET");
/// buffer.push(b"key");
/// assert_eq!(&buffer.args()[1], b"key");
/// ```
#[derive(Debug, Default)]
pub struct ArgsBuffer {
    bytes: Vec<u8>,
    ranges: Vec<Range>,
}

impl ArgsBuffer {
    /// Takes all arguments out. Memory over `kept` bytes is given back.
    pub fn clear(&mut self, kept: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(kept);
        self.ranges.clear();
    }

    /// Appends an argument.
    #[inline]
    pub fn push(&mut self, argument: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(argument);
        self.ranges.push((start, self.bytes.len()));
    }

    /// Appends an argument that is written to the end of the bytes handed out.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.ranges.push((start, self.bytes.len()));
    }

    /// The arguments.
    pub fn args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.ranges)
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
