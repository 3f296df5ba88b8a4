//! A listpack that can be changed.

use std::ops::Range;

use crate::element::{Element, Needle};
use crate::view::{Iter, View};
use crate::{EMPTY_LEN, END, HEADER_LEN, Malformed, UNKNOWN_COUNT};

/// A listpack that can be changed. Changes move what is behind them, so it is for some kilobytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Listpack {
    bytes: Vec<u8>,
}

impl Listpack {
    /// Creates a listpack without elements.
    pub fn new() -> Listpack {
        Listpack::with_capacity(EMPTY_LEN)
    }

    /// Creates a listpack without elements, with a capacity in bytes.
    pub fn with_capacity(capacity: usize) -> Listpack {
        let mut bytes = Vec::with_capacity(capacity.max(EMPTY_LEN));
        bytes.extend_from_slice(&(EMPTY_LEN as u32).to_le_bytes());
        bytes.extend([0, 0, END]);
        Listpack { bytes }
    }

    /// Parses bytes from any source.
    ///
    /// # Errors
    /// [`Malformed`] if they are not a listpack.
    pub fn parse(bytes: Vec<u8>) -> Result<Listpack, Malformed> {
        View::parse(&bytes)?;
        Ok(Listpack { bytes })
    }

    /// Wraps bytes that were a listpack before.
    pub fn of_known(bytes: Vec<u8>) -> Listpack {
        Listpack { bytes }
    }

    /// Returns a read-only view.
    pub fn view(&self) -> View<'_> {
        View::of_known(&self.bytes)
    }

    /// Returns all bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the capacity in bytes.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Raises the capacity to this many bytes in all, if it is less.
    pub fn reserve_exact(&mut self, capacity: usize) {
        self.bytes.reserve_exact(capacity.saturating_sub(self.bytes.len()));
    }

    /// Frees the unused capacity.
    pub fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.view().is_empty()
    }

    /// Returns an iterator over the elements, from both ends.
    pub fn iter(&self) -> Iter<'_> {
        self.view().iter()
    }

    /// Appends an element.
    pub fn push_back(&mut self, bytes: &[u8]) {
        self.bytes.pop();
        Element::of(bytes).write(&mut self.bytes).expect("vectors grow");
        self.bytes.push(END);
        self.count(1);
    }

    /// Prepends an element.
    pub fn push_front(&mut self, bytes: &[u8]) {
        self.splice(HEADER_LEN..HEADER_LEN, Element::of(bytes));
        self.count(1);
    }

    /// Inserts an element in front of another, or behind the last one.
    pub fn insert(&mut self, index: usize, bytes: &[u8]) {
        let at = self.view().offset(index);
        self.splice(at..at, Element::of(bytes));
        self.count(1);
    }

    /// Replaces an element, if it exists.
    pub fn replace(&mut self, index: usize, bytes: &[u8]) {
        let mut iter = self.view().iter_from(index);
        let start = iter.offset();
        if iter.next().is_some() {
            let end = iter.offset();
            self.splice(start..end, Element::of(bytes));
            self.count(0);
        }
    }

    fn splice(&mut self, place: Range<usize>, element: Element<'_>) {
        let len = self.bytes.len();
        let end = place.start + element.encoded_len();
        self.bytes.resize(len + end.saturating_sub(place.end), 0);
        self.bytes.copy_within(place.end..len, end);
        self.bytes.truncate(len + end - place.end);
        element.write(&mut &mut self.bytes[place.start..end]).expect("it takes as much as it says");
    }

    /// Removes the elements of a range, as far as they exist.
    pub fn remove(&mut self, range: Range<usize>) {
        let mut iter = self.view().iter_from(range.start);
        let start = iter.offset();
        let removed = iter.by_ref().take(range.len()).count();
        let end = iter.offset();
        self.bytes.drain(start..end);
        self.count(-(removed as isize));
    }

    /// Removes matches, up to `limit` of them from the front, or from the back; returns the number removed.
    pub fn remove_matching(&mut self, needle: &Needle<'_>, limit: usize, from_back: bool) -> usize {
        let matching = self.iter().filter(|element| needle.is(*element)).count();
        let wanted = matching.min(limit);
        if wanted == 0 {
            return 0;
        }
        let spared = if from_back { matching - wanted } else { 0 };
        let mut kept = Listpack::with_capacity(self.bytes.len());
        kept.bytes.pop();
        let (mut met, mut iter) = (0, self.iter());
        let mut start = iter.offset();
        while let Some(element) = iter.next() {
            let end = iter.offset();
            let is_met = needle.is(element);
            if !(is_met && met >= spared && met < spared + wanted) {
                kept.bytes.extend_from_slice(&self.bytes[start..end]);
            }
            met += usize::from(is_met);
            start = end;
        }
        kept.bytes.push(END);
        let left = self.len() - wanted;
        kept.set_count(left);
        *self = kept;
        wanted
    }

    /// Moves the elements from an index on into a new listpack.
    pub fn split_off(&mut self, index: usize) -> Listpack {
        let at = self.view().offset(index);
        let (len, behind) = (self.len(), self.len().saturating_sub(index));
        let mut other = Listpack::with_capacity(HEADER_LEN + self.bytes.len() - at);
        other.bytes.pop();
        other.bytes.extend_from_slice(&self.bytes[at..]);
        other.set_count(behind);
        self.bytes.truncate(at);
        self.bytes.push(END);
        self.set_count(len - behind);
        other
    }

    /// Appends the elements of another listpack.
    pub fn append(&mut self, other: View<'_>) {
        let count = self.len() + other.len();
        self.bytes.pop();
        self.bytes.extend_from_slice(other.as_bytes().get(HEADER_LEN..).unwrap_or(&[END]));
        self.set_count(count);
    }

    /// Updates the header for `more` additional elements.
    fn count(&mut self, more: isize) {
        let written = u16::from_le_bytes([self.bytes[4], self.bytes[5]]);
        let count = match written {
            UNKNOWN_COUNT => self.iter().count(),
            known => usize::from(known).saturating_add_signed(more),
        };
        self.set_count(count);
    }

    fn set_count(&mut self, count: usize) {
        let len = self.bytes.len() as u32;
        let count = u16::try_from(count).unwrap_or(UNKNOWN_COUNT);
        self.bytes[..4].copy_from_slice(&len.to_le_bytes());
        self.bytes[4..HEADER_LEN].copy_from_slice(&count.to_le_bytes());
    }
}

impl Default for Listpack {
    fn default() -> Listpack {
        Listpack::new()
    }
}

impl std::fmt::Debug for Listpack {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn elements(listpack: &Listpack) -> Vec<Vec<u8>> {
        listpack.iter().map(|element| element.bytes().into_owned()).collect()
    }

    fn of(elements: &[Vec<u8>]) -> Listpack {
        let mut listpack = Listpack::new();
        elements.iter().for_each(|element| listpack.push_back(element));
        listpack
    }

    #[derive(Clone, Debug)]
    enum Step {
        PushBack(Vec<u8>),
        PushFront(Vec<u8>),
        Insert(usize, Vec<u8>),
        Replace(usize, Vec<u8>),
        Remove(usize, usize),
        RemoveMatching(Vec<u8>, usize, bool),
        SplitAndAppend(usize),
    }

    fn element() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            3 => (0i64..4).prop_map(|integer| integer.to_string().into_bytes()),
            1 => any::<i64>().prop_map(|integer| integer.to_string().into_bytes()),
            2 => prop::collection::vec(any::<u8>(), 0..80),
            1 => (4_000usize..4_200).prop_map(|len| vec![b'x'; len]),
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        let place = || 0usize..20;
        prop_oneof![
            3 => element().prop_map(Step::PushBack),
            3 => element().prop_map(Step::PushFront),
            3 => (place(), element()).prop_map(|(at, element)| Step::Insert(at, element)),
            3 => (place(), element()).prop_map(|(at, element)| Step::Replace(at, element)),
            1 => (place(), place()).prop_map(|(at, count)| Step::Remove(at, count)),
            1 => (element(), place(), any::<bool>()).prop_map(|(what, limit, back)| Step::RemoveMatching(what, limit, back)),
            1 => place().prop_map(Step::SplitAndAppend),
        ]
    }

    fn apply(step: Step, listpack: &mut Listpack, model: &mut Vec<Vec<u8>>) {
        match step {
            Step::PushBack(element) => {
                listpack.push_back(&element);
                model.push(element);
            }
            Step::PushFront(element) => {
                listpack.push_front(&element);
                model.insert(0, element);
            }
            Step::Insert(at, element) => {
                let at = at.min(model.len());
                listpack.insert(at, &element);
                model.insert(at, element);
            }
            Step::Replace(at, element) => {
                listpack.replace(at, &element);
                if at < model.len() {
                    model[at] = element;
                }
            }
            Step::Remove(at, count) => {
                listpack.remove(at..at + count);
                let start = at.min(model.len());
                model.drain(start..(at + count).min(model.len()));
            }
            Step::RemoveMatching(what, limit, from_back) => {
                let removed = listpack.remove_matching(&Needle::new(&what), limit, from_back);
                let before = model.len();
                let mut left = limit;
                let mut keep = |element: &Vec<u8>| {
                    let goes = *element == what && left > 0;
                    left -= usize::from(goes);
                    !goes
                };
                if from_back {
                    model.reverse();
                    model.retain(&mut keep);
                    model.reverse();
                } else {
                    model.retain(&mut keep);
                }
                assert_eq!(removed, before - model.len());
            }
            Step::SplitAndAppend(at) => {
                let tail = listpack.split_off(at.min(model.len()));
                assert_eq!(elements(&tail), model[at.min(model.len())..]);
                assert!(View::parse(tail.as_bytes()).is_ok());
                listpack.append(tail.view());
            }
        }
    }

    proptest! {
        #[test]
        fn every_change_does_what_it_does_to_a_plain_list(steps in prop::collection::vec(step(), 1..60)) {
            let (mut listpack, mut model) = (Listpack::new(), Vec::new());
            for step in steps {
                apply(step, &mut listpack, &mut model);
                prop_assert_eq!(View::parse(listpack.as_bytes()).map(View::len), Ok(model.len()));
                prop_assert_eq!(elements(&listpack), model.clone());
                let mut backwards: Vec<_> = listpack.iter().rev().map(|element| element.bytes().into_owned()).collect();
                backwards.reverse();
                prop_assert_eq!(backwards, model.clone());
                for (index, element) in model.iter().enumerate() {
                    let found = listpack.view().get(index).map(|element| element.bytes().into_owned());
                    prop_assert_eq!(found.as_ref(), Some(element));
                }
                prop_assert_eq!(listpack.view().get(model.len()), None);
            }
        }

        #[test]
        fn any_bytes_can_be_parsed_and_walked(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = View::parse(&bytes);
            let view = View::of_known(&bytes);
            prop_assert!(view.iter().count() <= bytes.len());
            prop_assert!(view.iter().rev().count() <= bytes.len());
            view.get(3);
        }

        #[test]
        fn a_listpack_with_another_byte_is_refused_or_read(
            given in prop::collection::vec(element(), 1..6), place: prop::sample::Index, byte: u8,
        ) {
            let mut bytes = of(&given).as_bytes().to_vec();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            if let Ok(view) = View::parse(&bytes) {
                prop_assert_eq!(view.iter().count(), view.len());
                prop_assert_eq!(view.iter().rev().count(), view.len());
            }
        }
    }

    #[test]
    fn more_elements_than_the_header_can_count_are_counted_by_walking() {
        let mut listpack = Listpack::new();
        (0..66_000).for_each(|_| listpack.push_back(b"1"));
        assert_eq!((listpack.len(), listpack.as_bytes()[4..6].to_vec()), (66_000, vec![0xff, 0xff]));
        listpack.remove(0..1_000);
        assert_eq!(listpack.len(), 65_000);
        assert_eq!(listpack.as_bytes()[4..6], 65_000u16.to_le_bytes());
    }

    #[test]
    fn a_listpack_is_the_bytes_that_valkey_has() {
        let listpack = of(&[b"a".to_vec(), b"1024".to_vec()]);
        assert_eq!(listpack.as_bytes(), b"\x0d\0\0\0\x02\0\x81a\x02\xc4\x00\x02\xff");
    }
}
