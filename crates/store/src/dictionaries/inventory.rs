//! Statistics of each class of values.

use super::Dictionaries;

/// A class of values: those of similar size whose keys have one pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassStats {
    /// The pattern of the keys, as a glob of KEYS.
    pub pattern: Vec<u8>,
    /// The length of its shortest value, in bytes; the longest is shorter than `max_len`.
    pub min_len: usize,
    /// Upper bound of the length, exclusive; see `min_len`.
    pub max_len: usize,
    /// Approximate number of its values written since the start, or since all data was deleted.
    pub seen: u64,
    /// Number of samples kept at this moment.
    pub samples: usize,
    /// Bytes of these samples.
    pub sample_bytes: usize,
    /// The number of the dictionary that new values are encoded with, if there is one.
    pub dictionary: Option<u32>,
}

impl Dictionaries {
    /// The classes that are told apart at this moment, by pattern and length.
    pub(crate) fn class_stats(&self) -> Vec<ClassStats> {
        let known = self.set();
        let sampled = self.sampled();
        let mut stats: Vec<ClassStats> = sampled
            .classes
            .classes()
            .iter()
            .map(|class| ClassStats {
                pattern: class.pattern.to_vec(),
                min_len: class.band.start(),
                max_len: class.band.end(),
                seen: class.seen,
                samples: class.samples(),
                sample_bytes: class.sampled_bytes(),
                dictionary: known.active_of(&class.pattern, class.band).map(|version| version.number()),
            })
            .collect();
        drop(sampled);
        stats.sort_by(|a, b| (&a.pattern, a.min_len).cmp(&(&b.pattern, b.min_len)));
        stats
    }
}
