//! Compression of drafts on their way to the disk: in memory they are uncompressed, since they are changed in
//! place.

use std::sync::Arc;

use snugly_codec::{Choice, Counters, Encoder};

use super::change::Item;
use crate::entry::{self, Entry, EntryRef};
use crate::slab::entry_allocation_size;

/// Returns the compressed entry to write in the place of a draft; `None` if the entry is not a draft, or
/// there is no choice of codec.
pub(super) fn encoded(entry: EntryRef<'_>, choice: Option<Choice>) -> Option<Entry> {
    let (value, choice) = entry.value_of_draft().zip(choice)?;
    // The store's counters are for values of clients only.
    let properties = entry.properties();
    let mut encoder = Encoder::new(Arc::new(Counters::default()));
    let overhead = entry::overhead(entry.key().len(), properties.fields());
    let record = encoder.encode(choice, value, overhead, entry_allocation_size);
    Some(Entry::new(entry.key(), &record, properties))
}

/// Replaces drafts by compressed entries.
pub(super) fn encode_all(items: &mut [Item], choice: Option<Choice>) {
    for item in items {
        if let Item::Change(change) = item
            && let Some(encoded) = encoded(change.entry.borrow(), choice)
        {
            change.entry = encoded;
        }
    }
}

/// Returns the bytes that drafts among these items may need on disk, and that the queue has not counted.
pub(super) fn uncounted_bytes(items: &[Item]) -> usize {
    let bytes = |item: &Item| match item {
        Item::Change(change) if change.entry.borrow().is_draft() => change.entry.borrow().allocation_size(),
        Item::Change(_)
        | Item::Generations { .. }
        | Item::Dictionary { .. }
        | Item::ActiveDictionaries(_)
        | Item::Load(_) => 0,
    };
    items.iter().map(bytes).sum()
}
