//! Something for each key, in parts with locks of their own.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use parking_lot::{Mutex, MutexGuard};

/// Enough for as many threads as serve connections.
const PARTS: usize = 64;

pub(crate) struct Sharded<T> {
    parts: [Mutex<T>; PARTS],
    hasher: RandomState,
}

impl<T: Default> Default for Sharded<T> {
    fn default() -> Sharded<T> {
        Sharded { parts: std::array::from_fn(|_| Mutex::default()), hasher: RandomState::new() }
    }
}

impl<T> Sharded<T> {
    /// The part where a key is.
    pub(crate) fn of(&self, key: &[u8]) -> MutexGuard<'_, T> {
        self.parts[self.hasher.hash_one(key) as usize % PARTS].lock()
    }

    /// All parts, one after the other.
    pub(crate) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.each_from(0)
    }

    /// All parts, from any of them on.
    pub(crate) fn each_from(&self, start: usize) -> impl Iterator<Item = MutexGuard<'_, T>> {
        (0..PARTS).map(move |step| self.parts[start.wrapping_add(step) % PARTS].lock())
    }
}
