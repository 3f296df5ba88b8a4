//! The dictionaries that this node has, which of them new strings are compressed with, and which nobody needs any more.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::sync::Arc;

use super::questions::Questions;

use snugly_codec::Dictionary;
use snugly_learning::Pattern;

/// A dictionary is gone after so many rounds in a row over all keys have met none of its strings. One might be too few: a key
/// that is renamed meanwhile may get behind the walk.
const LEAST_ROUNDS: u8 = 2;

/// All dictionaries of a node.
#[derive(Default)]
pub struct Known {
    /// Sorted by their IDs.
    entries: Vec<Entry>,
    /// Those for new strings, the one with the most precise pattern first.
    chosen: Vec<Chosen>,
    /// Those that strings need and that are not there.
    pub questions: RefCell<Questions>,
}

struct Entry {
    dictionary: Arc<Dictionary>,
    /// Whether one of its strings was met in this round.
    is_met: Cell<bool>,
    /// Number of rounds in a row that have met none.
    unmet_rounds: u8,
    /// Whether the primary of this replica does not have it any more.
    is_released: bool,
}

/// The dictionary for new strings of keys of a pattern.
pub struct Chosen {
    pub pattern: Pattern,
    pub dictionary: Arc<Dictionary>,
}

impl Known {
    /// The dictionary with this ID; it counts as met.
    #[inline]
    pub fn find(&self, id: u32) -> Option<&Arc<Dictionary>> {
        let entry = &self.entries[self.place(id).ok()?];
        entry.is_met.set(true);
        Some(&entry.dictionary)
    }

    /// Whether strings that need the dictionary with this ID are the module's: it is there, or other nodes may have it.
    #[inline]
    pub fn is_ours(&self, id: u32) -> bool {
        self.find(id).is_some() || self.questions.borrow_mut().ask(id)
    }

    /// Whether other nodes are to be asked.
    #[inline]
    pub fn has_questions(&self) -> bool {
        self.questions.borrow().has_new()
    }

    /// The dictionary for new strings of a key.
    #[inline]
    pub fn for_key(&self, key: &[u8]) -> Option<&Arc<Dictionary>> {
        let chosen = self.chosen.iter().find(|chosen| chosen.pattern.matches(key))?;
        self.find(chosen.dictionary.id())
    }

    /// Whether new strings of some keys are compressed with a dictionary.
    #[inline]
    pub fn has_chosen(&self) -> bool {
        !self.chosen.is_empty()
    }

    /// All dictionaries.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Dictionary>> {
        self.entries.iter().map(|entry| &entry.dictionary)
    }

    /// The chosen ones, the one with the most precise pattern first.
    pub fn chosen(&self) -> &[Chosen] {
        &self.chosen
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a dictionary, if it is not there.
    pub fn add(&mut self, dictionary: Arc<Dictionary>) {
        if let Err(place) = self.place(dictionary.id()) {
            self.questions.get_mut().forget(dictionary.id());
            self.entries.insert(
                place,
                Entry { dictionary, is_met: Cell::new(true), unmet_rounds: 0, is_released: false },
            );
        }
    }

    /// Chooses these from now on, each a pattern and the ID of a dictionary; those that are not there are left out.
    pub fn choose(&mut self, chosen: impl IntoIterator<Item = (Vec<u8>, u32)>) {
        let chosen = chosen.into_iter().filter_map(|(pattern, id)| {
            Some(Chosen { pattern: Pattern::parse(&pattern), dictionary: self.find(id)?.clone() })
        });
        let mut chosen: Vec<_> = chosen.collect();
        chosen.sort_by_key(|chosen| Reverse(chosen.pattern.precision()));
        self.chosen = chosen;
    }

    /// Lets all dictionaries count as met.
    pub fn meet_all(&self) {
        self.entries.iter().for_each(|entry| entry.is_met.set(true));
    }

    /// Ends a round over all keys.
    pub fn end_round(&mut self) {
        for entry in &mut self.entries {
            let is_met = entry.is_met.replace(false)
                || self.chosen.iter().any(|chosen| chosen.dictionary.id() == entry.dictionary.id());
            entry.unmet_rounds = if is_met { 0 } else { entry.unmet_rounds.saturating_add(1) };
        }
    }

    /// Dictionaries that nothing is left of; on a replica, of those that its primary does not have.
    pub fn unneeded(&self, is_replica: bool) -> Vec<u32> {
        let is_unneeded =
            |entry: &&Entry| entry.unmet_rounds >= LEAST_ROUNDS && (!is_replica || entry.is_released);
        self.entries.iter().filter(is_unneeded).map(|entry| entry.dictionary.id()).collect()
    }

    /// Takes a dictionary away.
    pub fn remove(&mut self, id: u32) {
        self.entries.retain(|entry| entry.dictionary.id() != id);
    }

    /// Notes that the primary of this replica does not have these any more.
    pub fn release(&mut self, ids: &[u32]) {
        let released = self.entries.iter_mut().filter(|entry| ids.contains(&entry.dictionary.id()));
        released.for_each(|entry| entry.is_released = true);
    }

    /// Notes that the primary may have all of them.
    pub fn retain_all(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.is_released = false);
    }

    fn place(&self, id: u32) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&id, |entry| entry.dictionary.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionaries::sample;

    fn chosen(known: &Known, key: &[u8]) -> Option<u32> {
        known.for_key(key).map(|dictionary| dictionary.id())
    }

    #[test]
    fn the_most_precise_pattern_says_which_dictionary_a_key_gets() {
        let (users, rest) = (sample("user"), sample("rest"));
        let mut known = Known::default();
        for dictionary in [&users, &rest] {
            known.add(dictionary.clone());
        }
        known.choose([
            (b"*".to_vec(), rest.id()),
            (b"user:*".to_vec(), users.id()),
            (b"page:*".to_vec(), 40_000),
        ]);
        assert_eq!(chosen(&known, b"user:1"), Some(users.id()));
        assert_eq!(chosen(&known, b"page:1"), Some(rest.id()));
        known.choose([]);
        assert_eq!(chosen(&known, b"user:1"), None);
        assert!(known.find(users.id()).is_some(), "what is stored can still be read");
    }

    #[test]
    fn a_dictionary_is_gone_when_two_rounds_have_met_none_of_its_strings() {
        let dictionary = sample("user");
        let id = dictionary.id();
        let mut known = Known::default();
        known.add(dictionary);
        known.choose([(b"*".to_vec(), id)]);
        let round = |known: &mut Known| {
            known.end_round();
            known.unneeded(false)
        };
        for _ in 0..5 {
            assert!(round(&mut known).is_empty(), "it is chosen");
        }
        known.choose([]);
        assert!(round(&mut known).is_empty());
        assert!(known.find(id).is_some());
        assert!(round(&mut known).is_empty(), "it was met");
        assert!(round(&mut known).is_empty());
        assert_eq!(round(&mut known), [id]);
        assert!(known.unneeded(true).is_empty(), "its primary may need it");
        known.release(&[id]);
        assert_eq!(known.unneeded(true), [id]);
        known.retain_all();
        assert!(known.unneeded(true).is_empty());
        known.remove(id);
        assert!(known.is_empty() && known.find(id).is_none());
    }
}
