//! The class of list nodes: one for all lists of a store, whatever their keys.
//!
//! A node has no key, so its class is named by a pattern that no key can have: in a key's pattern `*` only
//! ends a segment. Otherwise it is a class like any other, whose values are the listpacks of nodes.

use std::sync::Arc;

use snugly_codec::{Choice, Learned};
use snugly_learning::Band;

use super::Dictionaries;
use super::set::{DictionarySet, Version};
use crate::settings::Settings;

/// The name of the class, in the place of a pattern.
pub(crate) const LISTS: &[u8] = b"*lists*";
/// Lengths of the listpacks that belong to the class, in bytes; larger ones gain little by a dictionary.
pub(crate) const BAND: Band = Band::ANY;

/// Returns the length band of values of about this length whose keys have this pattern, or of nodes if it
/// stands for lists.
pub(super) fn band_of(pattern: &[u8], len: usize) -> Option<Band> {
    if pattern == LISTS { Some(BAND) } else { Band::of(len) }
}

/// Returns the encoding of a class of this pattern, as far as the settings say it.
pub(super) fn choice(pattern: &[u8], settings: &Settings) -> Choice {
    let of_nodes = |choice: &Choice| choice.codec().uses_learned_dictionaries(Learned::Nodes);
    let of_lists = settings.lists.compress_codec.filter(of_nodes);
    of_lists.filter(|_| pattern == LISTS).unwrap_or(settings.compression)
}

impl Settings {
    /// Returns whether new values of this class are encoded with a dictionary.
    pub(crate) fn uses_dictionary_for(&self, pattern: &[u8]) -> bool {
        if pattern == LISTS { self.lists_use_dictionaries() } else { self.values_use_dictionaries() }
    }

    /// Returns whether values of this class are sampled.
    pub(super) fn learns_for(&self, pattern: &[u8]) -> bool {
        if pattern == LISTS { self.learns_from_lists() } else { self.learns_from_values() }
    }
}

impl DictionarySet {
    /// Returns the version for a new list node of this many bytes.
    pub(crate) fn active_for_node(&self, len: usize) -> Option<&Arc<Version>> {
        self.active_of(LISTS, BAND).filter(|_| BAND.contains(len))
    }
}

impl Dictionaries {
    /// Like [`Dictionaries::offer`], for a node of a key's list; `name` is that of the node in its list.
    pub(crate) fn offer_node(&self, key: &[u8], name: &[u8], node: &[u8], stands_for: u64) -> u32 {
        self.show(key, |classes| classes.offer_apart(LISTS, &[key, name].concat(), node, stands_for))
    }
}
