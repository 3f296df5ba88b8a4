//! Counts of the records that need each dictionary, for few entries.

/// Counts by dictionary number, zero counts left out.
#[derive(Default)]
pub(crate) struct DictionaryRefs(Vec<(u32, u32)>);

impl DictionaryRefs {
    /// Adds references to a dictionary.
    pub(crate) fn add(&mut self, number: u32, records: u32) {
        match self.0.iter_mut().find(|(known, _)| *known == number) {
            Some((_, count)) => *count += records,
            None => {
                self.0.reserve_exact(1);
                self.0.push((number, records));
            }
        }
    }

    /// Removes references to a dictionary.
    pub(crate) fn remove(&mut self, number: u32, records: u32) {
        let Some(place) = self.0.iter().position(|(known, _)| *known == number) else { return };
        self.0[place].1 -= records;
        if self.0[place].1 == 0 {
            self.0.swap_remove(place);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().copied()
    }

    /// Returns the bytes requested from the allocator.
    pub(crate) fn requested_len(&self) -> usize {
        self.0.capacity() * size_of::<(u32, u32)>()
    }
}
