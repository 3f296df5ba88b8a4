//! Training a dictionary for a class, and whether it is worth having: measured on samples that it was not trained on, in
//! bytes of the allocator, with the dictionary's own memory on the other side of the scale.

use std::sync::Arc;

use snugly_codec::{Choice, Counters, Dictionary, Encoder, Record};

use super::samples::Sample;
use crate::memory::{entry, entry_allocation_size};

/// The sizes that are tried, in bytes; most of the gain is there at 8 to 16 KiB.
const SIZES: [usize; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
/// A dictionary has at most one of so many bytes of its samples: a larger one learns them by heart.
const SAMPLES_FOR_EACH_BYTE: usize = 8;
/// What it must save, in percent of what is saved without it,
const LEAST_SAVED: u64 = 110;
/// and beyond that, one of so many bytes of the values: less is not worth the time.
const LEAST_SHARE: u64 = 20;
/// With a dictionary, values are worth compressing from one of so many bytes of the usual threshold on.
const SHORTER: usize = 4;

/// What is known of a class beside its samples.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) choice: Choice,
    /// What the class uses now.
    pub(super) current: Option<&'a Dictionary>,
    /// How many values the class has in the store, about.
    pub(super) population: u64,
    /// How many bytes the dictionary may take in memory.
    pub(super) room: usize,
}

/// A dictionary that is worth having.
pub(super) struct Found {
    pub(super) dictionary: Arc<Dictionary>,
    /// Bytes that it takes in memory.
    pub(super) memory: usize,
    /// Bytes for each byte of a value, in the samples that were held out: with what is in use now, and with this one.
    pub(super) ratio_before: f64,
    pub(super) ratio_after: f64,
}

/// How values are compressed with a dictionary.
pub(crate) fn with_dictionary(choice: Choice) -> Choice {
    choice.with_min_bytes(choice.min_bytes() / SHORTER)
}

/// Trains dictionaries of several sizes and gives that which saves the most, if it saves enough.
pub(super) fn train(samples: &[Sample], terms: Terms<'_>) -> Option<Found> {
    let (held_out, trained): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| sample.is_held_out());
    let values: Vec<&[u8]> = trained.iter().map(|sample| &*sample.value).collect();
    let bytes: usize = values.iter().map(|value| value.len()).sum();
    let choice = if terms.current.is_some() { with_dictionary(terms.choice) } else { terms.choice };
    let before = Measured::of(&held_out, choice, terms.current);
    let scale = |saved: i64| saved * terms.population as i64 / held_out.len().max(1) as i64;
    let own = terms.current.map_or(0, |current| current.memory(terms.choice.level()));
    let saved_before = (scale(before.saved()) - own as i64).max(0);
    let needed = (saved_before * LEAST_SAVED as i64 / 100)
        .max(saved_before + scale((before.plain / LEAST_SHARE) as i64))
        .max(1);

    let mut best: Option<(i64, Found)> = None;
    for size in SIZES.into_iter().filter(|size| size * SAMPLES_FOR_EACH_BYTE <= bytes) {
        let Ok(dictionary) = Dictionary::train(&values, size) else { break };
        let memory = dictionary.memory(terms.choice.level());
        if memory > terms.room {
            break;
        }
        let after = Measured::of(&held_out, with_dictionary(terms.choice), Some(&dictionary));
        let saved = scale(after.saved()) - memory as i64;
        if best.as_ref().is_some_and(|(most, _)| saved <= *most) {
            break;
        }
        let dictionary = Arc::new(dictionary);
        let (ratio_before, ratio_after) = (before.ratio(), after.ratio());
        best = Some((saved, Found { dictionary, memory, ratio_before, ratio_after }));
    }
    best.filter(|(saved, _)| *saved >= needed).map(|(_, found)| found)
}

/// What values take, in bytes.
#[derive(Default)]
struct Measured {
    raw: u64,
    encoded: u64,
    /// In the allocator as they are, and encoded.
    plain: u64,
    stored: u64,
}

impl Measured {
    fn of(samples: &[&Sample], choice: Choice, dictionary: Option<&Dictionary>) -> Measured {
        let mut encoder = Encoder::new(Arc::<Counters>::default());
        let mut measured = Measured::default();
        for sample in samples {
            let overhead = entry::overhead(sample.key_len, false);
            let dictionary = dictionary.map(|dictionary| (1, dictionary));
            let plain = Record::identity(&sample.value).encoded_len();
            let record =
                encoder.encode_with(choice, dictionary, &sample.value, overhead, entry_allocation_size);
            measured.raw += sample.value.len() as u64;
            measured.encoded += record.payload().len() as u64;
            measured.plain += entry_allocation_size(overhead + plain) as u64;
            measured.stored += entry_allocation_size(overhead + record.encoded_len()) as u64;
        }
        measured
    }

    fn saved(&self) -> i64 {
        self.plain as i64 - self.stored as i64
    }

    fn ratio(&self) -> f64 {
        self.encoded as f64 / self.raw.max(1) as f64
    }
}
