//! How many records need each dictionary, as an account of few entries.

/// Counts by the number of a dictionary, those of 0 left out.
#[derive(Default)]
pub(crate) struct Uses(Vec<(u32, u32)>);

impl Uses {
    /// So many records more.
    pub(crate) fn add(&mut self, number: u32, records: u32) {
        match self.0.iter_mut().find(|(known, _)| *known == number) {
            Some((_, count)) => *count += records,
            None => {
                self.0.reserve_exact(1);
                self.0.push((number, records));
            }
        }
    }

    /// So many records fewer.
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

    /// Bytes that are asked of the allocator.
    pub(crate) fn requested_len(&self) -> usize {
        self.0.capacity() * size_of::<(u32, u32)>()
    }
}
