//! The class of the nodes of lists: one for all lists of a store, whatever their keys.
//!
//! A node has no key, so its class is called what the pattern of no key can be: there a `*` only ends a segment. To others
//! it is a class like any other, whose values are the listpacks of nodes.

use std::sync::Arc;

use snugly_codec::CodecId;
use snugly_learning::Band;

use super::Dictionaries;
use super::known::{Known, Version};
use crate::store::Settings;

/// The name of the class, in the place of a pattern.
pub(crate) const LISTS: &[u8] = b"*lists*";
/// Which nodes it is for, by the bytes of their listpacks; larger ones gain little by a dictionary.
pub(crate) const BAND: Band = Band::ANY;

/// Of which class values of about this length are, if their keys have this pattern or it stands for lists.
pub(super) fn band_of(pattern: &[u8], len: usize) -> Option<Band> {
    if pattern == LISTS { Some(BAND) } else { Band::of(len) }
}

/// The level at which a class of this pattern is encoded.
pub(super) fn level(pattern: &[u8], settings: &Settings) -> i32 {
    let of_lists = settings.lists.compress_codec.filter(|codec| codec.algorithm().id() == CodecId::Zstd);
    of_lists.filter(|_| pattern == LISTS).unwrap_or(settings.compression).level()
}

impl Settings {
    /// Whether new values of this class are encoded with a dictionary.
    pub(crate) fn uses_dictionary_for(&self, pattern: &[u8]) -> bool {
        if pattern == LISTS { self.lists_use_dictionaries() } else { self.values_use_dictionaries() }
    }

    /// Whether values of this class are sampled.
    pub(super) fn learns_for(&self, pattern: &[u8]) -> bool {
        if pattern == LISTS { self.learns_from_lists() } else { self.learns_from_values() }
    }
}

impl Known {
    /// The version for a new node of a list, of so many bytes.
    pub(crate) fn active_for_node(&self, len: usize) -> Option<&Arc<Version>> {
        self.active_of(LISTS, BAND).filter(|_| BAND.contains(len))
    }
}

impl Dictionaries {
    /// As [`Dictionaries::offer`], a node of the list of a key; the name is that of the node in its list.
    pub(crate) fn offer_node(&self, key: &[u8], name: &[u8], node: &[u8], stands_for: u64) -> u32 {
        self.show(key, |classes| classes.offer_apart(LISTS, &[key, name].concat(), node, stands_for))
    }
}
