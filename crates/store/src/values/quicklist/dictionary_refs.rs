//! Counts of a list's nodes by the dictionary that they need, and the changes that the list's shard has yet
//! to count.

use crate::dictionary_refs::DictionaryRefs;
use crate::slab::allocation_size;

/// References of one list. Most lists have none, and take only a pointer for them.
#[derive(Default)]
pub(super) struct NodeDictionaryRefs(Option<Box<Account>>);

#[derive(Default)]
struct Account {
    uses: DictionaryRefs,
    /// Changes of the counts since the shard last took them.
    untold: Vec<(u32, i32)>,
}

impl NodeDictionaryRefs {
    /// A node has another record now, or came, or went.
    pub(super) fn moved(&mut self, before: Option<u32>, after: Option<u32>) {
        if before == after {
            return;
        }
        let account = self.0.get_or_insert_default();
        if let Some(number) = before {
            account.uses.remove(number, 1);
            account.grow(number, -1);
        }
        if let Some(number) = after {
            account.uses.add(number, 1);
            account.grow(number, 1);
        }
    }

    /// Returns the number of nodes that need each dictionary.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().flat_map(|account| account.uses.iter())
    }

    /// Takes the changes of the counts since the last call.
    pub(super) fn take_untold(&mut self) -> Vec<(u32, i32)> {
        let Some(account) = &mut self.0 else { return Vec::new() };
        let untold = std::mem::take(&mut account.untold);
        if account.uses.iter().next().is_none() {
            self.0 = None;
        }
        untold
    }

    /// Bytes that it takes beside the list.
    pub(super) fn memory(&self) -> usize {
        self.0.as_ref().map_or(0, |account| {
            allocation_size(size_of::<Account>()) + allocation_size(account.uses.requested_len())
        })
    }
}

impl Account {
    fn grow(&mut self, number: u32, by: i32) {
        match self.untold.iter_mut().find(|(known, _)| *known == number) {
            Some((_, growth)) => *growth += by,
            None => self.untold.push((number, by)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_told_adds_up_to_what_is_needed(
            nodes in prop::collection::vec((0..8usize, prop::option::of(1..5u32), any::<bool>()), 0..100),
        ) {
            let (mut needs, mut current, mut told) = (NodeDictionaryRefs::default(), [None; 8], BTreeMap::new());
            let mut tell = |needs: &mut NodeDictionaryRefs| {
                for (number, growth) in needs.take_untold() {
                    *told.entry(number).or_insert(0) += growth;
                }
                told.retain(|_, count| *count != 0);
                told.clone()
            };
            for (place, next, is_told) in nodes {
                needs.moved(current[place], next);
                current[place] = next;
                if is_told {
                    let mut expected = BTreeMap::new();
                    current.iter().flatten().for_each(|number| *expected.entry(*number).or_insert(0) += 1);
                    prop_assert_eq!(tell(&mut needs), expected.clone());
                    let counted: BTreeMap<u32, i32> =
                        needs.iter().map(|(number, count)| (number, count as i32)).collect();
                    prop_assert_eq!(counted, expected);
                }
            }
        }
    }

    #[test]
    fn a_list_without_such_nodes_takes_nothing_for_them() {
        let mut needs = NodeDictionaryRefs::default();
        needs.moved(None, Some(3));
        assert!(needs.memory() > 0);
        needs.moved(Some(3), None);
        assert_eq!(needs.take_untold(), [(3, 0)]);
        assert_eq!(needs.memory(), 0);
    }
}
