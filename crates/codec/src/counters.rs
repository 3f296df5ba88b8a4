//! What encoders and decoders count, under the same names everywhere (client statistics, INFO, metrics).
//!
//! [`Counters`] are written by one thread and read by any; [`Snapshot`]s of several threads add up;
//! [`DESCRIPTORS`] is the one table of names, texts and values. What is printed where is for others to know.

use std::fmt;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::codecs::CodecId;
use crate::outcome::Reason;

/// A counter, or one counter a codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
#[allow(missing_docs, reason = "FAMILIES documents each")]
pub enum Family {
    EncodedValues,
    EncodedBytesIn,
    EncodedBytesOut,
    DecodedValues,
    DecodedBytesIn,
    DecodedBytesOut,
    SkippedSmall,
    SkippedLarge,
    SkippedCompressed,
    SkippedNoGain,
    EncodeFailures,
    DecodeFailures,
    DictionaryHits,
    DictionaryMisses,
    EncodeNanoseconds,
    DecodeNanoseconds,
}

use Family::*;

/// Families up to this one have a counter for each codec.
const PER_CODEC: usize = DecodedBytesOut as usize + 1;
const FAMILIES: [(Family, &str, &str); 16] = [
    (EncodedValues, "encoded_values", "values stored under this codec"),
    (EncodedBytesIn, "encoded_bytes_in", "bytes of these values before encoding"),
    (EncodedBytesOut, "encoded_bytes_out", "bytes of these values after encoding"),
    (DecodedValues, "decoded_values", "values read back from this codec"),
    (DecodedBytesIn, "decoded_bytes_in", "bytes of these values before decoding"),
    (DecodedBytesOut, "decoded_bytes_out", "bytes of these values after decoding"),
    (SkippedSmall, "skipped_small", "values left alone because they are shorter than the threshold"),
    (SkippedLarge, "skipped_large", "values left alone because they are longer than readers accept"),
    (
        SkippedCompressed,
        "skipped_compressed",
        "values left alone because they are compressed already, or look random",
    ),
    (SkippedNoGain, "skipped_no_gain", "values left alone because compressing them gains nothing"),
    (EncodeFailures, "encode_failures", "values left alone because compressing them failed"),
    (DecodeFailures, "decode_failures", "values that could not be read back"),
    (DictionaryHits, "dictionary_hits", "values read back with a dictionary that was at hand"),
    (DictionaryMisses, "dictionary_misses", "values whose dictionary was not at hand when they were read"),
    (EncodeNanoseconds, "encode_nanoseconds", "time spent encoding, estimated from a sample"),
    (DecodeNanoseconds, "decode_nanoseconds", "time spent decoding, estimated from a sample"),
];

const CODECS: usize = CodecId::ALL.len();
const SLOTS: usize = PER_CODEC * CODECS + FAMILIES.len() - PER_CODEC;

const fn slot(family: Family, codec: CodecId) -> usize {
    let family = family as usize;
    if family < PER_CODEC { family * CODECS + codec as usize } else { PER_CODEC * (CODECS - 1) + family }
}

/// One counter's name, text and place.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// Name of the counter, the same for every codec, in snake_case.
    pub family: &'static str,
    /// Which codec's, where there is one counter a codec.
    pub codec: Option<CodecId>,
    /// Description of the counter, in words.
    pub help: &'static str,
    slot: usize,
}

/// All counters, in the order in which they are printed.
pub static DESCRIPTORS: [Descriptor; SLOTS] = descriptors();

const fn descriptors() -> [Descriptor; SLOTS] {
    let mut rows = [Descriptor { family: "", codec: None, help: "", slot: 0 }; SLOTS];
    let mut index = 0;
    while index < FAMILIES.len() {
        let (family, name, help) = FAMILIES[index];
        let codecs = if index < PER_CODEC { CODECS } else { 1 };
        let mut number = 0;
        while number < codecs {
            let codec = CodecId::ALL[number];
            let slot = slot(family, codec);
            rows[slot] =
                Descriptor { family: name, codec: if codecs > 1 { Some(codec) } else { None }, help, slot };
            number += 1;
        }
        index += 1;
    }
    rows
}

impl Descriptor {
    /// The counter's value in a snapshot.
    pub fn value(&self, snapshot: &Snapshot) -> u64 {
        snapshot.slots[self.slot]
    }
}

/// The counter's full name: the family's, and the codec's if it has one.
impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.codec {
            Some(codec) => write!(f, "{}_{codec}", self.family),
            None => f.write_str(self.family),
        }
    }
}

/// Counters that one thread writes (a plain load and store each) and any thread may read.
#[derive(Debug)]
pub struct Counters {
    slots: [AtomicU64; SLOTS],
}

impl Default for Counters {
    fn default() -> Self {
        Counters { slots: [const { AtomicU64::new(0) }; SLOTS] }
    }
}

impl Counters {
    /// The counts of this moment.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { slots: std::array::from_fn(|slot| self.slots[slot].load(Ordering::Relaxed)) }
    }

    /// Counts a value that was stored under `codec`, encoded or not.
    pub fn encoded(&self, codec: CodecId, bytes_in: usize, bytes_out: usize) {
        self.add(EncodedValues, codec, 1);
        self.add(EncodedBytesIn, codec, bytes_in as u64);
        self.add(EncodedBytesOut, codec, bytes_out as u64);
    }

    /// Counts why a value was left as it is.
    pub fn skipped(&self, reason: Reason) {
        let family = match reason {
            Reason::Off => return,
            Reason::Small => SkippedSmall,
            Reason::Large => SkippedLarge,
            Reason::Envelope | Reason::Compressed => SkippedCompressed,
            Reason::NoGain => SkippedNoGain,
            Reason::Failed => EncodeFailures,
        };
        self.increment(family);
    }

    /// Counts a value that was read back.
    pub fn decoded(&self, codec: CodecId, bytes_in: usize, bytes_out: usize) {
        self.add(DecodedValues, codec, 1);
        self.add(DecodedBytesIn, codec, bytes_in as u64);
        self.add(DecodedBytesOut, codec, bytes_out as u64);
    }

    /// Counts values that were read and had been stored as they are.
    pub fn decoded_as_they_are(&self, values: u64, bytes: u64) {
        self.add(DecodedValues, CodecId::Identity, values);
        self.add(DecodedBytesIn, CodecId::Identity, bytes);
        self.add(DecodedBytesOut, CodecId::Identity, bytes);
    }

    /// Adds one to a family that has one counter.
    pub fn increment(&self, family: Family) {
        self.add(family, CodecId::Identity, 1);
    }

    pub(crate) fn add(&self, family: Family, codec: CodecId, amount: u64) {
        let counter = &self.slots[slot(family, codec)];
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }
}

/// The counts of one moment, of one thread or of several added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    slots: [u64; SLOTS],
}

impl Default for Snapshot {
    fn default() -> Self {
        Snapshot { slots: [0; SLOTS] }
    }
}

impl Snapshot {
    /// Adds another thread's counts.
    pub fn add(&mut self, other: &Snapshot) {
        *self += other;
    }

    /// Counts since an earlier snapshot of the same counters.
    pub fn since(&self, earlier: &Snapshot) -> Snapshot {
        Snapshot { slots: std::array::from_fn(|slot| self.slots[slot].wrapping_sub(earlier.slots[slot])) }
    }

    /// The family's count for one codec, or its only count.
    pub fn of(&self, family: Family, codec: CodecId) -> u64 {
        self.slots[slot(family, codec)]
    }

    /// The family's count over all codecs.
    pub fn total(&self, family: Family) -> u64 {
        let codecs = if (family as usize) < PER_CODEC { &CodecId::ALL[..] } else { &CodecId::ALL[..1] };
        codecs.iter().map(|&codec| self.of(family, codec)).sum()
    }
}

impl AddAssign<&Snapshot> for Snapshot {
    fn add_assign(&mut self, other: &Snapshot) {
        for (slot, amount) in self.slots.iter_mut().zip(other.slots) {
            *slot = slot.wrapping_add(amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_table_follows_the_order_of_the_families_and_fills_every_slot() {
        for (index, (family, _, _)) in FAMILIES.iter().enumerate() {
            assert_eq!(*family as usize, index);
        }
        for (slot, descriptor) in DESCRIPTORS.iter().enumerate() {
            assert_eq!(descriptor.slot, slot);
            assert!(!descriptor.family.is_empty());
        }
    }

    #[test]
    fn names_and_texts_are_those_of_the_specification() {
        let specified = crate::policy::rules::specified("data/counters.json");
        let rows = |part: &str| specified[part].as_object().expect("an object").clone();
        let (each, all) = (rows("each_codec"), rows("all_codecs"));
        assert_eq!((each.len(), each.len() + all.len()), (PER_CODEC, FAMILIES.len()));
        for (family, name, text) in FAMILIES {
            let part = if (family as usize) < PER_CODEC { &each } else { &all };
            assert_eq!(part.get(name).and_then(|text| text.as_str()), Some(text), "{name}");
        }
    }

    #[test]
    fn every_counter_has_a_name_of_its_own() {
        let names: HashSet<String> = DESCRIPTORS.iter().map(Descriptor::to_string).collect();
        assert_eq!(names.len(), DESCRIPTORS.len());
        assert!(names.contains("encoded_bytes_out_zstd_dictionary") && names.contains("decode_failures"));
    }

    #[test]
    fn a_count_is_seen_under_its_own_name_only() {
        for descriptor in &DESCRIPTORS {
            let counters = Counters::default();
            let (family, _, _) = FAMILIES.iter().find(|row| row.1 == descriptor.family).expect("a family");
            counters.add(*family, descriptor.codec.unwrap_or(CodecId::Identity), 7);
            let snapshot = counters.snapshot();
            let counted: Vec<_> = DESCRIPTORS.iter().filter(|row| row.value(&snapshot) > 0).collect();
            assert_eq!(counted.len(), 1);
            assert_eq!((counted[0].to_string(), counted[0].value(&snapshot)), (descriptor.to_string(), 7));
            assert_eq!(snapshot.total(*family), 7);
        }
    }

    #[test]
    fn the_counts_of_threads_add_up() {
        let (one, other) = (Counters::default(), Counters::default());
        one.encoded(CodecId::Lz4, 100, 40);
        other.encoded(CodecId::Lz4, 10, 5);
        other.encoded(CodecId::Identity, 3, 3);
        other.skipped(Reason::Small);
        other.skipped(Reason::Off);
        let mut sum = one.snapshot();
        sum.add(&other.snapshot());
        assert_eq!(sum.of(EncodedBytesIn, CodecId::Lz4), 110);
        assert_eq!(sum.of(EncodedBytesOut, CodecId::Lz4), 45);
        assert_eq!(sum.total(EncodedValues), 3);
        assert_eq!(sum.total(SkippedSmall), 1);
    }
}
