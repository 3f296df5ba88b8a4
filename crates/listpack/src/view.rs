//! A borrowed, read-only view of a listpack.

use crate::element::{self, Element};
use crate::{EMPTY_LEN, END, HEADER_LEN, Malformed, UNKNOWN_COUNT};

/// A read-only view of a listpack's bytes.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    /// Parses bytes from any source, and walks all elements.
    ///
    /// # Errors
    /// [`Malformed`] if they are not a listpack, or more than one.
    pub fn parse(bytes: &'a [u8]) -> Result<View<'a>, Malformed> {
        let malformed = |reason| Err(Malformed { reason });
        if bytes.len() < EMPTY_LEN || bytes.last() != Some(&END) {
            return malformed("it has no header or no end");
        }
        let view = View { bytes };
        if view.written_len() != bytes.len() {
            return malformed("its length is not the one that it says");
        }
        let (mut at, mut count) = (HEADER_LEN, 0usize);
        while at < view.end() {
            let Some((_, len)) = Element::read(&bytes[at..view.end()]) else {
                return malformed("an element is cut off or of no known kind");
            };
            if element::start_of(bytes, at + len) != Some(at) {
                return malformed("a back length is not that of its element");
            }
            at += len;
            count += 1;
        }
        let written = view.written_count();
        if written != UNKNOWN_COUNT && usize::from(written) != count {
            return malformed("it does not have as many elements as it says");
        }
        Ok(view)
    }

    /// Wraps bytes that were a listpack before. If they were not, there are fewer elements than there should
    /// be.
    pub fn of_known(bytes: &'a [u8]) -> View<'a> {
        View { bytes }
    }

    /// Returns all bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    fn written_len(self) -> usize {
        self.bytes.first_chunk().map_or(0, |len| u32::from_le_bytes(*len) as usize)
    }

    fn written_count(self) -> u16 {
        self.bytes.get(4..HEADER_LEN).map_or(0, |count| u16::from_le_bytes([count[0], count[1]]))
    }

    /// Returns the offset of the byte behind the last element.
    pub(crate) fn end(self) -> usize {
        self.bytes.len().saturating_sub(1).max(HEADER_LEN)
    }

    /// Returns the number of elements.
    pub fn len(self) -> usize {
        match self.written_count() {
            UNKNOWN_COUNT => self.iter().count(),
            count => count.into(),
        }
    }

    /// Returns whether there are no elements.
    pub fn is_empty(self) -> bool {
        self.end() <= HEADER_LEN
    }

    /// Returns an iterator over the elements, from both ends.
    pub fn iter(self) -> Iter<'a> {
        Iter { bytes: self.bytes, front: HEADER_LEN, back: self.end() }
    }

    /// Returns an iterator over the elements from an index on.
    pub fn iter_from(self, index: usize) -> Iter<'a> {
        Iter { front: self.offset(index), ..self.iter() }
    }

    /// Returns the element at an index.
    pub fn get(self, index: usize) -> Option<Element<'a>> {
        self.iter_from(index).next()
    }

    /// Returns the offset of an element, searched for from the nearer end; behind the last one it is the end.
    pub(crate) fn offset(self, index: usize) -> usize {
        let len = self.len();
        let mut iter = self.iter();
        if index <= len / 2 {
            iter.by_ref().take(index).for_each(drop);
            iter.front
        } else {
            iter.by_ref().rev().take(len.saturating_sub(index)).for_each(drop);
            iter.back
        }
    }
}

/// Iterator over the elements of a listpack, from both ends.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    front: usize,
    back: usize,
}

impl Iter<'_> {
    /// Returns the offset of the next element.
    pub(crate) fn offset(&self) -> usize {
        self.front
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let (element, len) = Element::read(self.bytes.get(self.front..self.back)?)?;
        self.front += len;
        Some(element)
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.front >= self.back {
            return None;
        }
        let start = element::start_of(self.bytes, self.back).filter(|start| *start >= self.front)?;
        let (element, _) = Element::read(self.bytes.get(start..self.back)?)?;
        self.back = start;
        Some(element)
    }
}
