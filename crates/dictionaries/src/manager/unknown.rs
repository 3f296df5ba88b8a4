//! Rate limit for IDs that no catalogue has (`spec/dictionaries.md`, Reading): even made-up ones cost at most
//! one look-up a second.

use std::collections::BTreeMap;
use std::time::Duration;

/// Time from a look-up that did not find all IDs until the next one for unknown IDs.
const REST: Duration = Duration::from_secs(1);
/// Most unknown IDs of one look-up.
pub(super) const MOST: usize = 1_024;

/// Outcome of a look-up for unknown IDs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All IDs were found, or are listed in the catalogue by now.
    Useful,
    /// An ID was not found.
    InVain,
    /// The server was lost, or the reader went away: nothing is known of the IDs.
    Unanswered,
}

/// Unknown IDs that readers wait for.
#[derive(Default)]
pub(super) struct Unknown {
    /// Number of readers that wait for each.
    waiting: BTreeMap<u32, usize>,
    is_looking: bool,
    rests_until: Duration,
    vain_until: Duration,
}

impl Unknown {
    /// Returns whether a look-up was in vain within the last second.
    pub(super) fn is_vain(&self, now: Duration) -> bool {
        now < self.vain_until
    }

    /// Adds IDs to the next look-up, by any reader.
    pub(super) fn join(&mut self, ids: &[u32]) {
        for id in ids {
            *self.waiting.entry(*id).or_default() += 1;
        }
    }

    /// Ends the wait of one reader for these.
    pub(super) fn leave(&mut self, ids: &[u32]) {
        for id in ids {
            if let Some(readers) = self.waiting.get_mut(id) {
                *readers -= 1;
                if *readers == 0 {
                    self.waiting.remove(id);
                }
            }
        }
    }

    /// Returns the IDs to look up now; none if it is not the time. A caller that gets some calls
    /// [`Unknown::release`].
    pub(super) fn claim(&mut self, now: Duration) -> Vec<u32> {
        if self.is_looking || now < self.rests_until || self.waiting.is_empty() {
            return Vec::new();
        }
        self.is_looking = true;
        self.waiting.keys().copied().take(MOST).collect()
    }

    /// Notes that a look-up has ended.
    pub(super) fn release(&mut self, outcome: Outcome, now: Duration) {
        self.is_looking = false;
        if outcome != Outcome::Useful {
            self.rests_until = now + REST;
        }
        if outcome == Outcome::InVain {
            self.vain_until = now + REST;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use snugly_codec::Dictionary;

    use super::MOST;
    use crate::Catalogue;
    use crate::cache::MOST_HELD;

    #[test]
    fn limits_are_those_of_the_specification() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/data/limits.json");
        let mut specified: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let own = json!({
            "dictionary_bytes": Dictionary::MAX_BYTES,
            "held_dictionaries": MOST_HELD,
            "unknown_ids_of_one_look_up": MOST,
            "catalogue": {
                "bytes": Catalogue::MAX_BYTES,
                "active": Catalogue::MAX_ACTIVE,
                "dictionaries": Catalogue::MAX_DICTIONARIES,
                "forgotten": Catalogue::MAX_FORGOTTEN,
            },
        });
        // That one is for writers of values.
        specified.as_object_mut().unwrap().remove("shortest_compressed_value");
        assert_eq!(own, specified);
    }
}
