//! What the primary has and this server has not: counted, and commands told once each kind.
//!
//! It knows kinds by their names, which the primary gives: there is an end to how many are kept.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Kinds of commands that are told apart.
const MOST_KINDS: usize = 256;

/// Commands and keys of the primary that were passed over.
#[derive(Default)]
pub(crate) struct Skipped {
    commands: AtomicU64,
    keys: AtomicU64,
    /// Kinds of commands that were told.
    told: Mutex<BTreeSet<String>>,
}

impl Skipped {
    /// Counts a command; returns whether it is the first one of its kind.
    pub(crate) fn note_command(&self, kind: &str) -> bool {
        self.commands.fetch_add(1, Ordering::Relaxed);
        let mut told = self.told.lock();
        told.len() < MOST_KINDS && !told.contains(kind) && told.insert(kind.to_owned())
    }

    /// Counts a key.
    pub(crate) fn note_key(&self) {
        self.keys.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins anew, with another primary.
    pub(crate) fn forget(&self) {
        self.commands.store(0, Ordering::Relaxed);
        self.keys.store(0, Ordering::Relaxed);
        self.told.lock().clear();
    }

    pub(crate) fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    pub(crate) fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_counted_and_each_kind_of_command_is_told_once() {
        let skipped = Skipped::default();
        assert_eq!([skipped.note_command("HSET"), skipped.note_command("HSET")], [true, false]);
        skipped.note_key();
        assert_eq!((skipped.commands(), skipped.keys()), (2, 1));
        skipped.forget();
        assert_eq!((skipped.commands(), skipped.keys()), (0, 0));
        assert!(skipped.note_command("HSET"));
    }

    #[test]
    fn a_primary_that_makes_up_names_fills_no_memory() {
        let skipped = Skipped::default();
        let told = (0..1_000).filter(|number| skipped.note_command(&number.to_string())).count();
        assert_eq!((told, skipped.commands()), (MOST_KINDS, 1_000));
    }
}
