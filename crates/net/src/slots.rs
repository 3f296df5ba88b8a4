//! Places for connections: counted exactly, however many arrive at once and however they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of places taken.
#[derive(Clone, Default)]
pub struct Slots(Arc<AtomicUsize>);

/// A place that is taken until this is dropped, and maybe another one with it.
pub struct Slot {
    of: Slots,
    other: Option<Box<Slot>>,
}

impl Slots {
    /// Takes a place if fewer than `most` are taken.
    pub fn take(&self, most: usize) -> Option<Slot> {
        let more = |taken: usize| (taken < most).then_some(taken + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Slot { of: self.clone(), other: None })
    }

    /// Number of places taken at this moment.
    pub fn taken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Slot {
    /// Holds another place as long as this one.
    #[must_use]
    pub fn and(mut self, other: Slot) -> Slot {
        self.other = Some(Box::new(other));
        self
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.of.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_places_are_given_than_there_are_and_each_is_given_back() {
        let slots = Slots::default();
        let taken: Vec<Slot> = (0..3).filter_map(|_| slots.take(2)).collect();
        assert_eq!((taken.len(), slots.taken()), (2, 2));
        drop(taken);
        assert_eq!(slots.taken(), 0);
        assert!(slots.take(0).is_none());
    }
}
