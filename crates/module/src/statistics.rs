//! Counts, state and dictionaries of the module, in the order in which INFO and SNUGLY.STATS show it.

use std::sync::atomic::{AtomicU64, Ordering};

use snugly_codec::DESCRIPTORS;

use crate::background::{self, PROGRESS, Purpose};
use crate::dictionaries;
use crate::guard;
use crate::values;

/// A number or a word.
pub enum Field {
    Number(u64),
    Word(&'static str),
}

/// All fields with their names, which have no zero.
pub fn fields() -> Vec<(String, Field)> {
    let counted = values::counted();
    let codecs = DESCRIPTORS.iter().map(|each| (each.to_string(), Field::Number(each.value(&counted))));
    let (number, memory, chosen) = dictionaries::with(|known| {
        let memory: usize = known.all().map(|dictionary| dictionary.memory_taken()).sum();
        (known.all().count(), memory, known.chosen().len())
    });
    let rest = [
        ("state", Field::Word(state())),
        ("background_rounds", progress(&PROGRESS.rounds)),
        ("background_compressed_strings", progress(&PROGRESS.compressed)),
        ("background_compressed_bytes_before", progress(&PROGRESS.bytes_before)),
        ("background_compressed_bytes_after", progress(&PROGRESS.bytes_after)),
        ("background_restored_strings", progress(&PROGRESS.restored)),
        ("background_damaged_strings", progress(&PROGRESS.damaged)),
        ("observed_strings", progress(&PROGRESS.observed_strings)),
        ("observed_bytes_before", progress(&PROGRESS.observed_bytes_before)),
        ("observed_bytes_after", progress(&PROGRESS.observed_bytes_after)),
        ("dictionaries", Field::Number(number as u64)),
        ("dictionaries_chosen", Field::Number(chosen as u64)),
        ("dictionaries_learned", Field::Number(dictionaries::learned())),
        ("dictionary_memory_bytes", Field::Number(memory as u64)),
        ("panics", Field::Number(guard::panics())),
    ];
    let version = ("version".to_string(), Field::Word(env!("CARGO_PKG_VERSION")));
    [version].into_iter().chain(codecs).chain(rest.map(|(name, field)| (name.to_string(), field))).collect()
}

fn progress(count: &AtomicU64) -> Field {
    Field::Number(count.load(Ordering::Relaxed))
}

fn state() -> &'static str {
    match background::purpose() {
        Purpose::Compress => "compressing",
        Purpose::Restore { .. } => "restoring",
        Purpose::Rest => "restored",
    }
}
